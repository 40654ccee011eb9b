/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_FORWARD_WORK_H
#define OCS_NODE_FORWARD_WORK_H

/* What a host's part in the network of a job is made of, on direct fabrics and on rails; forward.c. */

#include "src/fabric/fabric.h"
#include "src/forward/forward.h"
#include "src/node/node.h"

/* What a host has to know to do its part. */
struct ocs_node_work {
	const struct ocs_node_request *request;
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	const struct ocs_section *section;
	struct json_object *macs, *forward_macs; /* our own; forward_macs may be NULL */
	char address[OCS_ADDRESS_TEXT];		 /* rails: on the management network */
	char *folder;				 /* of the jobs' directories */
	enum ocs_forward_backend backend;
	struct ocs_node_rails *rails; /* what is known of the job, or NULL; rails.h */
};

/* Whether the hosts of SECTION's jobs are told of each other and change their network for a job; what a
 * process follows meanwhile. */
bool ocs_node_section_meets(const struct ocs_section *section);

/* region_links.c: gives the optical NICs of a job with experts their addresses, neighbours and routes, and waits for the
 * links of the circuits that it begins with.  REPLY: of ocsd to apply.  0, or -1 with ERR: nothing is left. */
int ocs_node_region_hold(struct ocs_node_work *work, struct json_object *reply,
			 struct ocs_error *err);

/* A request OP for the job and this node; the caller puts it. */
struct json_object *ocs_node_work_question(const struct ocs_node_work *work, const char *op);
/* Adds what the other hosts have to know of this one. */
void ocs_node_work_announce(const struct ocs_node_work *work, struct json_object *request);
/* The plan, or the menu, and what all hosts have announced, once all have and the circuits are up.
 * AFTER: a plan of a later revision.  As ocs_node_work_ask. */
struct json_object *ocs_node_work_meet(const struct ocs_node_work *work, long after, int timeout_ms,
				       bool *gone, struct ocs_error *err);
/* One question by a connection of its own.  The reply, or NULL with ERR; *GONE: the job is over. */
struct json_object *ocs_node_work_ask(const struct ocs_node_work *work,
				      struct json_object *question, int timeout_ms, bool *gone,
				      struct ocs_error *err);
/* Tells ocsd that this host cannot do its part: the job is taken off its nodes. */
void ocs_node_work_unable(const struct ocs_node_work *work, const char *why);
/* Is the job still the one that this host's network is made for?  Sets *REVISION.  Waits up to a minute while
 * that cannot be read. */
bool ocs_node_work_current(const struct ocs_node_work *work, long *revision);
/* Sleeps, longer each time. */
void ocs_node_work_rest(int *pause_ms);

#endif
