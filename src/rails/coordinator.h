/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_COORDINATOR_H
#define OCS_RAILS_COORDINATOR_H

/* The protocol of a job's controller (doc/rails.md), without sockets and clocks: ranks arrive at
 * operations and end them, ocsd answers requests for topologies, time passes; operations are
 * granted, topologies requested.
 *
 * An operation is known by its group and its index in it.  It is granted when all members have
 * arrived and its circuits stand on every rail of the group; from then on until all members have
 * ended it, its drain included, it has a lease on these circuits, and no circuit under a lease is cut.
 * Members of one node, and groups that no topology of the menu joins, need no circuits.
 *
 * Every call may produce outputs; the caller takes them with ocs_coordinator_output until it returns
 * false.  Times are numbers of any one unit, which never run backwards. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/menu.h"

struct ocs_error;
struct ocs_coordinator;

#define OCS_RAILS_RAILS 64

struct ocs_coordinator_options {
	struct ocs_rails_layout layout;
	int rails; /* 1 to OCS_RAILS_RAILS; rail r of a mask is bit r */
	int ranks;
	const int *nodes; /* of each rank; read during the call only */
	uint64_t epoch;
	bool provisioned; /* change topologies before they are demanded */
	/* Packets of the job take a circuit where one stands, and another network elsewhere (a TCP job
	 * whose addresses are reached both ways).  Operations outside the menu then wait for all members,
	 * too, and nothing changes between their nodes while they are open. */
	bool shared;
	int64_t timeout; /* until a request is made again */
	int tries;	 /* of a topology, before the giant ring, and of that */
	int64_t drain; /* a rail that is to get the ring, or another try, waits for leases at most */
};

/* Why an operation has no circuits. */
enum ocs_coordinator_error {
	OCS_COORDINATOR_GRANTED,
	OCS_COORDINATOR_RANK_LOST, /* a member is gone */
	OCS_COORDINATOR_NO_RAIL,   /* no rail works any more */
	OCS_COORDINATOR_REVOKED,   /* ocsd takes no requests of the job any more */
};

struct ocs_coordinator_output {
	enum ocs_coordinator_kind {
		OCS_COORDINATOR_GRANT,	 /* to RANK, or to all members: -1 */
		OCS_COORDINATOR_REQUEST, /* TOPOLOGY for RAIL, to ocsd */
		/* What the job is told, once each: */
		OCS_COORDINATOR_RING,	     /* RAIL has the giant ring from now on */
		OCS_COORDINATOR_RAIL_FAILED, /* RAIL is of no use; others take its groups */
		OCS_COORDINATOR_LOST,	     /* RANK; GROUP is in an operation with it, or 0 */
		OCS_COORDINATOR_OVER,	     /* no operation will be granted: ERROR */
	} kind;
	enum ocs_coordinator_error error;
	int rank, rail;
	uint64_t group, idx, epoch;
	uint64_t seq;	/* of a request; of a grant: how many came before */
	uint64_t rails; /* of a grant: those that carry it, 0 for none */
	char topology[OCS_RAILS_TOPOLOGY];
};

/* What happened so far. */
struct ocs_coordinator_counts {
	uint64_t barriers; /* operations granted to all their members together */
	uint64_t late;	   /* operations whose last rank came 1 ms or more after the others */
	uint64_t inside, outside;   /* operations within a node; outside the menu */
	uint64_t outside_phases;    /* operations outside every phase of a group that has phases */
	uint64_t changes;	    /* topologies that came to stand */
	uint64_t provisioned;	    /* those of them that were not demanded yet, */
	uint64_t mispredicted;	    /* and that were changed again before they were used */
	uint64_t retries, stale;    /* requests repeated; answers and arrivals dropped */
	uint64_t failed;	    /* operations granted with an error */
	int64_t waited, waited_max; /* from the last arrival to the grant */
};

/* Returns NULL with ERR (OCS_USAGE, or OCS_NEVER where the layout cannot be served).  The
 * coordinator holds topology of every rail to be unknown and requests the first one. */
struct ocs_coordinator *ocs_coordinator_create(const struct ocs_coordinator_options *options,
					       int64_t now, struct ocs_error *err);
void ocs_coordinator_destroy(struct ocs_coordinator *coordinator);

/* Makes GROUP known: COUNT distinct RANKS, and the RAILS that they use.  The same group may be given
 * again and again.  Returns 0, or -1 with ERR (OCS_USAGE): ranks or rails that there are none of, or
 * other ones than before. */
int ocs_coordinator_group(struct ocs_coordinator *coordinator, uint64_t group, const int *ranks,
			  int count, uint64_t rails, struct ocs_error *err);

/* A phase of GROUP has its operations FIRST to LAST.  A hint: what is outside is served all the same,
 * and counted.  Phases of a group are given in order.  Returns as above. */
int ocs_coordinator_phase(struct ocs_coordinator *coordinator, uint64_t group, uint64_t first,
			  uint64_t last, struct ocs_error *err);

/* RANK has reached operation IDX of GROUP, in ascending order.  An arrival that is repeated is
 * answered again.  -1 with ERR (OCS_USAGE): no such group, not a member, too many at once. */
int ocs_coordinator_arrive(struct ocs_coordinator *coordinator, uint64_t group, uint64_t idx,
			   int rank, int64_t now, struct ocs_error *err);

/* The operation is over at RANK, and all that RANK had to send has left it.  -1 as above. */
int ocs_coordinator_end(struct ocs_coordinator *coordinator, uint64_t group, uint64_t idx, int rank,
			int64_t now, struct ocs_error *err);

/* RANK expects to send in GROUP next, as its stage will.  Ignored unless the job is provisioned. */
void ocs_coordinator_wish(struct ocs_coordinator *coordinator, uint64_t group, int rank,
			  int64_t now);

/* ocsd's answer about RAIL; GOOD: its circuits stand and were verified.  Stale ones are dropped. */
void ocs_coordinator_answer(struct ocs_coordinator *coordinator, int rail, uint64_t epoch,
			    uint64_t seq, bool good, int64_t now);

/* ocsd says that circuits of RAIL are gone or unknown. */
void ocs_coordinator_topo_lost(struct ocs_coordinator *coordinator, int rail, int64_t now);

/* RANK is gone.  What it was to take part in fails at the others. */
void ocs_coordinator_rank_lost(struct ocs_coordinator *coordinator, int rank, int64_t now);

/* ocsd takes no more requests of this job. */
void ocs_coordinator_revoked(struct ocs_coordinator *coordinator, int64_t now);

/* Time passes.  To be called at ocs_coordinator_deadline at the latest: INT64_MAX for never. */
void ocs_coordinator_tick(struct ocs_coordinator *coordinator, int64_t now);
int64_t ocs_coordinator_deadline(const struct ocs_coordinator *coordinator);

bool ocs_coordinator_output(struct ocs_coordinator *coordinator,
			    struct ocs_coordinator_output *output);

const struct ocs_coordinator_counts *ocs_coordinator_counts(
	const struct ocs_coordinator *coordinator);

/* The topology of RAIL that was verified last, and whether it stands unchanged. */
const char *ocs_coordinator_topology(const struct ocs_coordinator *coordinator, int rail,
				     bool *settled);

/* The ranks of GROUP, ascending, and its number of them; NULL where there is no such group. */
const int *ocs_coordinator_ranks(const struct ocs_coordinator *coordinator, uint64_t group,
				 int *count);

/* A rank that others wait for. */
struct ocs_coordinator_stall {
	int rank;	      /* the first of those that are missing */
	int members, arrived; /* of the operation */
	bool open; /* it was granted and RANK has not ended it, while another operation wants circuits */
	uint64_t group, idx;
	int64_t since; /* when the last of the others came */
};

/* Finds the operation that has waited longest for a rank, since before the time BEFORE.  False: there is none. */
bool ocs_coordinator_stall(const struct ocs_coordinator *coordinator, int64_t before,
			   struct ocs_coordinator_stall *stall);

/* How often RANK was the last one that others waited for. */
uint64_t ocs_coordinator_last(const struct ocs_coordinator *coordinator, int rank);

#endif
