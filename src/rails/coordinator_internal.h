/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_COORDINATOR_INTERNAL_H
#define OCS_RAILS_COORDINATOR_INTERNAL_H

/* What the files of the coordinator share. */

#include <sys/queue.h>

#include "src/rails/circuits.h"
#include "src/rails/coordinator.h"
#include "src/rails/leases.h"
#include "src/rails/predict.h"

#define OPEN_MOST 4096	      /* operations of a group at once */
#define LATE INT64_C(1000000) /* ns that others wait for a rank until it is counted */

struct operation {
	TAILQ_ENTRY(operation) of_group; /* ascending by idx */
	TAILQ_ENTRY(operation) by_age;	 /* while it waits for circuits */
	struct group *group;
	uint64_t idx;
	enum operation_state {
		OPERATION_ARRIVING,
		OPERATION_DEMANDED, /* all have arrived */
		OPERATION_OPEN,	    /* it is granted, and has its leases */
	} state;
	int narrived, nended;
	char *arrived, *ended; /* by member */
	int64_t latest;	       /* arrival so far */
	int64_t since;	       /* the last arrival */
	uint64_t rails;	       /* that carry it, */
	uint64_t leased;       /* and on which it has leases */
	uint64_t seq;	       /* of its grant */
	enum ocs_coordinator_error error;
};

TAILQ_HEAD(operations, operation);

struct phase_range {
	uint64_t first, last;
};

struct group {
	uint64_t id;
	int count;
	int *ranks;	  /* ascending */
	uint64_t *newest; /* of each member: the operation it arrived at last, plus one */
	uint64_t rails;
	struct ocs_rails_need need;
	uint64_t *circuits; /* that it needs; of a group outside the menu: all between its nodes */
	struct phase_range *phases;
	size_t nphases;
	bool lost; /* a member is gone */
	struct operations operations;
};

struct rail {
	enum rail_health {
		RAIL_GOOD,
		RAIL_TO_RING, /* it is to get the giant ring, and has not got it */
		RAIL_RING,
		RAIL_FAILED,
	} health;
	char topology[OCS_RAILS_TOPOLOGY]; /* verified last; at first, to be requested */
	char target[OCS_RAILS_TOPOLOGY];   /* requested, or about to be */
	bool changing;			   /* a request is under way */
	bool answered;			   /* no answer to it counts any more */
	bool unknown;			   /* circuits of the topology may be gone */
	bool speculative;		   /* the topology was provisioned, and not used yet */
	uint64_t seq;			   /* of the request */
	int tries;
	int64_t deadline; /* of the request, or of the wait for leases; INT64_MAX: none */
	uint64_t *stands; /* circuits that are verified, and are not about to change */
	struct ocs_rails_leases leases;
	signed char reserved[OCS_RAILS_STAGES]; /* digits that older demands want, or -1 */
};

struct ocs_coordinator {
	struct ocs_coordinator_options options;
	struct ocs_rails_circuits *circuits;
	struct ocs_rails_predict *predict;
	struct rail rails[OCS_RAILS_RAILS];
	int *nodes;
	uint64_t *last;
	bool *lost;
	enum ocs_coordinator_error over;
	struct group **groups; /* ascending by id */
	size_t ngroups;
	struct operations demanded; /* the oldest first */
	struct ocs_coordinator_output *outputs;
	size_t noutputs, first_output, room;
	uint64_t seq, grants;
	struct ocs_coordinator_counts counts;
};

/* Appends an empty output of KIND, and returns it until the next call. */
struct ocs_coordinator_output *ocs_coordinator_emit(struct ocs_coordinator *coordinator,
						    enum ocs_coordinator_kind kind);

/* Serves demands, and requests what they need. */
void ocs_coordinator_serve(struct ocs_coordinator *coordinator, int64_t now);

/* Grants OPERATION, which has an error or whose circuits stand on RAILS. */
void ocs_operation_grant(struct ocs_coordinator *coordinator, struct operation *operation,
			 uint64_t rails, int64_t now);
/* Tells RANK, or all members (-1), what was granted. */
void ocs_operation_answer(struct ocs_coordinator *coordinator, const struct operation *operation,
			  int rank);
/* Gives back its leases. */
void ocs_operation_close(struct ocs_coordinator *coordinator, struct operation *operation);
/* Removes it and frees it; its leases are given back. */
void ocs_operation_remove(struct ocs_coordinator *coordinator, struct operation *operation);

/* Whether operations of GROUP wait for all members and have leases. */
bool ocs_group_waits(const struct ocs_coordinator *coordinator, const struct group *group);

/* Everything that concerns one rail. */
void ocs_rail_init(struct ocs_coordinator *coordinator, struct rail *rail);
void ocs_rail_free(struct rail *rail);
/* Requests what the rail is to get, where leases allow it. */
void ocs_rail_request(struct ocs_coordinator *coordinator, struct rail *rail, int64_t now);
void ocs_rail_tick(struct ocs_coordinator *coordinator, struct rail *rail, int64_t now);
/* Whether GROUP may send on the rail now. */
bool ocs_rail_carries(const struct ocs_coordinator *coordinator, const struct rail *rail,
		      const struct group *group);
/* No rail works any more, or ocsd does not listen: all that waits fails. */
void ocs_coordinator_fail(struct ocs_coordinator *coordinator, enum ocs_coordinator_error error,
			  int64_t now);

#endif
