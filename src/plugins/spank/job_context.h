/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SPANK_JOB_CONTEXT_H
#define OCS_SPANK_JOB_CONTEXT_H

/* A prolog or an epilog of one job on this node. */

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/util/error.h"

struct ocs_settings;

/* What slurmctld handed over, and where this node keeps its part. */
struct ocs_visit {
	const struct ocs_settings *settings;
	uint32_t job;
	uid_t uid;
	gid_t gid;
	uint64_t epoch; /* 0: none known */
	const char *node;
	char *fabric;  /* path of ocs.yaml */
	char *address; /* of ocsd */
	char *key;     /* file of the key to it, or NULL */
	char *user;    /* its account, or NULL */
	char *dir;     /* BASE/JOB */
	int64_t start, deadline;
	bool taken; /* ocs_visit_take_away was called */
};

/* Who, where, which job.  0 (ocs_visit_end), or -1 after logging. */
int ocs_visit_start(spank_t spank, const struct ocs_settings *settings, struct ocs_visit *visit);
void ocs_visit_end(struct ocs_visit *visit);
/* The node's own note of the epoch, 0: none.  An epilog may come without slurmctld's. */
uint64_t ocs_visit_epoch_noted(const struct ocs_visit *visit);

/* Finds ocsd, and how long to wait for it.  ocs.yaml is read only where the
 * arguments do not say.  0, or -1 with ERR. */
int ocs_visit_locate(struct ocs_visit *visit, bool prolog, struct ocs_error *err);
/* The same for a prolog.  An ocs.yaml that cannot be read is so on every node: it is given
 * time to be mended, and then the job is taken away, rather than one node drained after
 * the other.  0, or -1: *RC is what the prolog returns. */
int ocs_visit_locate_patiently(struct ocs_visit *visit, int *rc);

int ocs_visit_left_ms(const struct ocs_visit *visit);
/* Pauses that grow from *PAUSE_MS to five seconds, spread so that the nodes of a large
 * job do not all ask at once. */
void ocs_visit_rest(const struct ocs_visit *visit, int *pause_ms);

/* 1: the job is no longer in this allocation; 0: it is; -1: slurmctld does not say. */
int ocs_visit_job_left(const struct ocs_visit *visit);
/* Nothing on this node is wrong, but the job cannot have its circuits and slurmctld's side
 * of slurm-ocs did not take it away: do so from here, so that neither the script runs
 * without circuits nor a healthy node is drained.  Once; the deadline is moved so that it
 * can be seen to have left. */
void ocs_visit_take_away(struct ocs_visit *visit, const char *why);
/* At the deadline the job is taken away; true if that has been done and did not help. */
bool ocs_visit_hopeless(struct ocs_visit *visit, const char *why);

#endif
