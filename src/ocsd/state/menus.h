/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_MENUS_H
#define OCS_OCSD_STATE_MENUS_H

/* The menus of jobs on rails (jobs/menu.h), and where each rail is with its topologies.  In a region
 * (jobs/region.h) a group of servers takes the place of a rail, and a digest of its circuits that of the
 * name of a topology. */

#include "src/fold/shape.h"
#include "src/ocsd/state/ocsd.h"
#include "src/place/region_circuits.h"
#include "src/place/region_groups.h"
#include "src/rails/menu.h"

struct json_object;

/* How far a topology has come. */
enum ocsd_stage {
	OCSD_STAGE_NONE,     /* nothing of it was sent */
	OCSD_STAGE_SENT,     /* its outcome is not known, or only a part of it was made */
	OCSD_STAGE_VERIFIED, /* a read-back shows all of it */
};

/* A change that waits until no route of the job's nodes leads over what is to be cut
 * (jobs/routes.h). */
struct ocsd_leaving {
	bool waits;
	char from[OCS_RAILS_TOPOLOGY]; /* what stands while the rail is changing; "": not known */
	uint64_t revision;	       /* of the word that says so, */
	bool *nodes;		       /* and those that have not done it */
	size_t nnodes;
	int64_t deadline_ns;
};

/* What a node of a job was told of its routes. */
struct ocsd_node_routes {
	uint64_t wanted; /* revision of the last word that concerns it, */
	uint64_t done;	 /* and that it has done, 0: none since it is connected */
};

struct ocsd_rail {
	int sw;
	struct ocsd_circuit **circuits; /* of the pairs of the menu, in their order; in a
					  * region NCIRCUITS that were ever needed */
	size_t ncircuits;
	struct ocsd_circuit **by_ports;	 /* the same, by the lower and the higher port */
	char stands[OCS_RAILS_TOPOLOGY]; /* seen whole; "": that is not known */
	bool unread; /* since ocsd started: circuits may be there that are called GONE; */
	bool late;   /* and while the switch may do what it was told before */
	bool lost;   /* the controller was told that circuits were lost */
	int *ports;  /* in a region: [server * nics + nic] on SW */
	struct ocs_region_circuits first;
	struct json_object *seen; /* what the controller said of its all-to-alls; NULL: nothing */
	/* The last request, if SEQ is not 0. */
	uint64_t seq;
	struct ocs_region_circuits asked; /* in a region */
	char topo[OCS_RAILS_TOPOLOGY];
	enum ocsd_stage stage;
	bool waits; /* it is not answered yet */
	int code;   /* enum ocs_code of ERROR */
	char *error;
	const char *degraded; /* what became of it once, for the job's comment; NULL: nothing */
	bool changing;
	int64_t begun_ns;		/* when it was asked for the change under way */
	struct ocsd_transition *change; /* NULL: over */
	struct ocsd_leaving leaving;	/* routes, before that */
};

/* What has passed; the audit log gets a row of it now and then. */
struct ocsd_menu_count {
	uint64_t changes, circuits, kept, failed, refused;
	uint64_t verified; /* changes that came whole in a region, */
	int64_t took_ns;   /* and what they took together */
};

struct ocsd_menu {
	struct ocs_region_layout
		groups; /* in a region; `groups` is 0 on rails, and the rest of it */
	int nics;	/* of a server, optical */
	char *name;	/* of the job, or NULL */
	struct ocs_rails_layout layout;
	struct ocs_rails_pairs pairs;
	int nrails;
	struct ocsd_rail *rails;
	enum ocs_phases phases;
	char digest[17];
	char key[33];  /* of the job's controller; "": none is admitted */
	bool revoked;  /* its controller was told that it is over */
	double tokens; /* requests that it may make now, filled at FILLED_NS */
	int64_t filled_ns;
	struct ocsd_menu_count total, audited; /* the latter at AUDITED_NS */
	int64_t audited_ns;
	int64_t refused_ns; /* when the last row of a refusal was written */
	uint64_t recent[2]; /* changes in this and in the last period, since RECENT_NS */
	int64_t recent_ns;
	int64_t waited_ms, provisioned, mispredicted, last_arrivals; /* as the controller says */
	int64_t seen_ns;		 /* when it told what it has seen */
	uint64_t reported;		 /* changes when it said so last */
	struct ocsd_node_routes *routes; /* by node; NULL: routes do not follow the circuits */
	uint64_t routes_revision;
};

void ocsd_menu_free(struct ocsd_menu *menu);

/* Whether it is the menu of a job in a region. */
static inline bool ocsd_menu_region(const struct ocsd_menu *menu)
{
	return menu->groups.groups > 0;
}

/* The topology in which a job with MENU begins: OCS_RAILS_TOPOLOGY bytes. */
void ocsd_menu_first(const struct ocsd_menu *menu, char *topology);

/* Rails of JOB (on working switches unless ALL) that were not read since ocsd started, or may get a
 * circuit of before; and whether that of switch SW is one. */
size_t ocsd_menu_unread(const struct ocsd *d, const struct ocsd_job *job, bool all);
bool ocsd_menu_unread_on(const struct ocsd_job *job, int sw);

/* What nodes and the owner of a job are told of its menu; the caller puts it. */
struct json_object *ocsd_menu_describe(const struct ocsd_menu *menu);

/* The same of one in a region, with its first circuits. */
struct json_object *ocsd_menu_describe_region(const struct ocsd_menu *menu);
/* [[server, NIC, server, NIC]...]; the caller puts it. */
struct json_object *ocsd_menu_circuits_json(const struct ocs_region_circuits *circuits);
/* "follow" or "static". */
const char *ocsd_menu_mode(const struct ocsd_menu *menu);

#endif
