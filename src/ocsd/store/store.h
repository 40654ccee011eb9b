/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STORE_STORE_H
#define OCS_OCSD_STORE_STORE_H

/* SQLite, the single home of state.  From the first write or read that fails on
 * the store is lost: nothing more is written or read, and what is in memory must be
 * thrown away (nothing may be sent that is not in the journal). */

#include "src/ocsd/state/ocsd.h"

/* The database in FOLDER; waits LOCK_WAIT_MS for others who hold it.  One that is not
 * certainly whole and ours is refused with what to do, and not touched. */
struct ocsd_store *ocsd_store_open(const char *folder, int lock_wait_ms, struct ocs_error *err);
void ocsd_store_close(struct ocsd_store *store);

/* Why the store is lost, a sentence; or NULL. */
const char *ocsd_store_lost(const struct ocsd_store *store);
void ocsd_store_commit(struct ocsd_store *store); /* ends the open transaction */
void ocsd_store_job_add(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_job_update(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_job_remove(struct ocsd *d, const struct ocsd_job *job);
/* The menu of JOB, entered beside it; a port that JOB, which has one, gives back before it is removed. */
void ocsd_store_menu_add(struct ocsd *d, const struct ocsd_job *job, const char *layout,
			 const char *phases, const char *digest, const char *key);
/* The circuits with which the last job of this name, of the user and in the section of JOB, ended (text of
 * jobs/region.h; the caller frees it, NULL: none is known), and those of JOB, which ends. */
char *ocsd_store_region_run(struct ocsd *d, const struct ocsd_job *job, const char *name);
void ocsd_store_region_run_set(struct ocsd *d, const struct ocsd_job *job, const char *name,
			       const char *circuits);
void ocsd_store_port_remove(struct ocsd *d, const struct ocsd_job *job, struct ocs_port port);
/* Nothing is written of a circuit of a menu. */
void ocsd_store_circuit_add(struct ocsd *d, const struct ocsd_circuit *circuit);
void ocsd_store_circuit(struct ocsd *d, const struct ocsd_circuit *circuit);

/* All circuits of JOB (on SW unless NULL) in state FROM are now in state TO. */
void ocsd_store_circuits(struct ocsd *d, const struct ocsd_job *job, const struct ocsd_switch *sw,
			 enum ocsd_circuit_state from, enum ocsd_circuit_state to);
/* All circuits of the realised JOB were seen; no revision of its own. */
void ocsd_store_circuits_seen(struct ocsd *d, const struct ocsd_job *job);
/* All circuits of JOB that are not gone must go. */
void ocsd_store_circuits_delete(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_release(struct ocsd *d, const struct ocsd_job *job, const char *node);
/* JOB is realised and all of its nodes have asked; NODE was heard of. */
void ocsd_store_met(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_heard(struct ocsd *d, const char *node);
/* NODE has asked for the circuits of JOB; NULL: forgets who has asked for any. */
void ocsd_store_asked(struct ocsd *d, const struct ocsd_job *job, const char *node);
void ocsd_store_drain(struct ocsd *d, const char *kind, const char *name, const char *reason,
		      uid_t who);
void ocsd_store_max_epoch(struct ocsd *d);
void ocsd_store_term(struct ocsd *d);

/* The greatest number of a job that is known or was so lately, 0: none. */
uint32_t ocsd_store_max_job(struct ocsd *d);

/* How often allocations, circuits, releases and drains were written since the database
 * was made. */
int64_t ocsd_store_revision(const struct ocsd *d);

/* The transaction NAME: what it ASKED, and the ANSWER if there was one (the caller frees
 * both); false if it is not known. */
bool ocsd_store_transaction_find(struct ocsd *d, const char *name, char **asked, char **answer);
void ocsd_store_transaction_add(struct ocsd *d, const char *name, const char *asked);
void ocsd_store_transaction_answer(struct ocsd *d, const char *name, const char *answer);

/* Forgets those that are old. */
void ocsd_store_transaction_trim(struct ocsd_store *store);
/* Forgets the epochs of jobs that were over a month ago. */
void ocsd_store_history_trim(struct ocsd_store *store);

/* The newest epoch of JOB whose teardown is finished, 0: none known. */
uint64_t ocsd_store_last_epoch(struct ocsd *d, uint32_t job);

/* The loss of the path IN>OUT that was stored first, NAN: none. */
double ocsd_store_baseline(struct ocsd *d, const struct ocsd_switch *sw, int in, int out);
void ocsd_store_baseline_add(struct ocsd *d, const struct ocsd_switch *sw, int in, int out,
			     double loss);

#endif
