/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_SLURM_H
#define OCS_OCSCTL_SLURM_SLURM_H

/* What Slurm's own commands say to the user of ocsctl: they know what this user may
 * see.  Programs are run without a shell; times are seconds since 1970. */

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct ocs_error;

/* Runs WORDS (NULL-terminated; WORDS[0] is looked for in PATH).  Returns what it printed
 * (the caller frees it), or NULL with ERR: its own complaint, in one line. */
char *ocs_ctl_slurm_run(char *const *words, struct ocs_error *err);

/* The same for what only adds to an answer: it is given up after SECONDS (0: never), with
 * OCS_UNREACHABLE.  Slurm's programs wait for minutes for a slurmctld that hangs. */
char *ocs_ctl_slurm_ask(char *const *words, unsigned seconds, struct ocs_error *err);

/* A job of the queue.  Strings are never NULL. */
struct ocs_ctl_queued {
	long job;
	char *state; /* PENDING, RUNNING, ... */
	char *user, *partition;
	long priority;
	time_t start, end; /* expected or real; 0: not known, or never */
	char *nodes;	   /* host list it has, "" if none */
	char *dependency, *reservation, *wanted, *excluded;
	char *planned; /* host list that backfill keeps for it */
	long node_count;
	long limit; /* seconds, 0: unlimited or not known */
	char *licences;
	char *reason; /* in Slurm's one word, or a sentence with _ for blanks */
};
struct ocs_ctl_queue {
	struct ocs_ctl_queued *jobs;
	int count;
};
/* JOB 0: all that have not ended; else that one, ended or not.  0, or -1 with ERR. */
int ocs_ctl_queue_read(long job, struct ocs_ctl_queue *queue, struct ocs_error *err);
void ocs_ctl_queue_free(struct ocs_ctl_queue *queue);
const struct ocs_ctl_queued *ocs_ctl_queue_find(const struct ocs_ctl_queue *queue, long job);
/* It has nodes. */
bool ocs_ctl_queued_runs(const struct ocs_ctl_queued *job);

struct ocs_ctl_partition {
	char *name, *nodes;
	long tier; /* PriorityTier: those of a higher one go first */
};
struct ocs_ctl_partitions {
	struct ocs_ctl_partition *list;
	int count;
};
int ocs_ctl_partitions_read(struct ocs_ctl_partitions *all, struct ocs_error *err);
void ocs_ctl_partitions_free(struct ocs_ctl_partitions *all);

struct ocs_ctl_reservation {
	char *name, *nodes, *users, *accounts, *flags; /* "" if none */
	time_t start, end;
};
struct ocs_ctl_reservations {
	struct ocs_ctl_reservation *list;
	int count;
};
/* 0, or -1 with ERR, also where Slurm takes more than SECONDS (0: for ever). */
int ocs_ctl_reservations_read(struct ocs_ctl_reservations *all, unsigned seconds,
			      struct ocs_error *err);
void ocs_ctl_reservations_free(struct ocs_ctl_reservations *all);

/* Where slurm.conf says that a node is; only those of which it does. */
struct ocs_ctl_places {
	struct {
		char *node, *topology;
	} * list;
	int count;
};
/* 0, or -1 with ERR, also where Slurm takes more than SECONDS. */
int ocs_ctl_places_read(struct ocs_ctl_places *all, unsigned seconds, struct ocs_error *err);
void ocs_ctl_places_free(struct ocs_ctl_places *all);

/* A cube or a switch, as slurmctld's picture of the fabric shows it to all users.  Strings
 * are never NULL, but that of the two names which it has not. */
struct ocs_ctl_part {
	char *cube, *sw;
	char *section, *nodes; /* of a cube */
	char *state, *reason;  /* UP, DRAINED or FAILED */
};
struct ocs_ctl_parts {
	struct ocs_ctl_part *list;
	int count;
};
int ocs_ctl_parts_read(struct ocs_ctl_parts *all, struct ocs_error *err);
void ocs_ctl_parts_free(struct ocs_ctl_parts *all);

/* Nodes in one state, as sinfo groups them. */
struct ocs_ctl_nodes {
	char *state; /* sinfo's word without marks: idle, drained, ... */
	bool silent; /* does not respond */
	char *nodes, *reason;
	char **names; /* the same nodes, one by one */
	int nnames;
};
struct ocs_ctl_groups {
	struct ocs_ctl_nodes *list;
	int count;
};
/* 0, or -1 with ERR, also where Slurm takes more than some seconds. */
int ocs_ctl_groups_read(struct ocs_ctl_groups *all, struct ocs_error *err);
void ocs_ctl_groups_free(struct ocs_ctl_groups *all);
/* Per alternative of WANTED, which has COUNT (util/constraint.h), the host list of all nodes whose
 * features meet it; the caller frees them with ocs_names_free.  NULL with ERR, also where Slurm
 * takes more than some seconds. */
char **ocs_ctl_nodes_with(const char *wanted, int count, struct ocs_error *err);
/* No new job starts on them. */
bool ocs_ctl_nodes_out(const struct ocs_ctl_nodes *group);
/* Idle, and kept for a reservation. */
bool ocs_ctl_nodes_reserved(const struct ocs_ctl_nodes *group);
/* Jobs are on them. */
bool ocs_ctl_nodes_used(const struct ocs_ctl_nodes *group);

#endif
