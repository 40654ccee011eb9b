/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TESTS_UNIT_FORWARD_FORWARD_MACHINE_H
#define OCS_TESTS_UNIT_FORWARD_FORWARD_MACHINE_H

/* Machines that run the generated commands: an interpreter that knows what ip, tc
 * flower, pedit and mirred do, and nothing of the tables that the commands come from. */

#include <stdbool.h>
#include <stddef.h>

#include "src/forward/internal.h"

enum kind { ROUTE, NEIGHBOUR, RULE, FILTER, ADDRESS };

/* One thing that a command made. */
struct fact {
	enum kind kind;
	char device[16], to[16]; /* on, and for a filter: on to */
	char ip[16], mac[18];
	int table;
};

struct machine {
	struct fact *facts;
	size_t count;
};

struct net {
	struct ocs_plan *plan;
	struct ocs_forward_hosts *hosts;
	struct ocs_forward *forward;
	struct machine *machines;
};

/* Makes a plan for REQUEST and lets every machine run its commands.  SPLIT: each port has
 * a function of its own that forwards.  net_close. */
void net_open(struct net *net, const struct ocs_plan_request *request, bool split,
	      enum ocs_forward_backend backend);
void net_close(struct net *net);

/* Sends a packet from SRC to DST and writes the servers that it came past to PATH (MAX
 * at the most); how many, -1: lost. */
int send_packet(const struct net *net, int src, int dst, int *path, int max);

#endif
