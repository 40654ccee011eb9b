/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_CONNECT_H
#define OCS_OCSD_JOBS_CONNECT_H

/* From a job's circuits to what the switches have to do, and back. */

#include "src/ocsd/state/ocsd.h"

void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job);
void ocsd_realise_abandon(struct ocsd *d, struct ocsd_job *job);

/* Puts CIRCUIT into STATE in memory (the caller tells the store). */
void ocsd_circuit_set(struct ocsd *d, struct ocsd_circuit *circuit, enum ocsd_circuit_state state);

/* APPLYING becomes REALISED when every circuit was seen. */
void ocsd_realise_check(struct ocsd *d, struct ocsd_job *job);

/* Tells how many circuits the realised JOB has, if they were planned here. */
void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job);

/* The batch on its way to SW had no answer, even if it has one by now. */
void ocsd_circuits_lost(struct ocsd_switch *sw);

/* Whether CIRCUIT, which its switch does not have, was in a batch that had no answer.  A
 * switch that hung may do that one after it has told its table, in the time that a command
 * takes: the circuit may still come, or what is next on its ports be cut.  Not for 1x2 switches of
 * look-ahead, whose next position must not wait. */
bool ocsd_circuit_unsure(struct ocsd *d, const struct ocsd_circuit *circuit);

/* SW has cut CIRCUITS.  The unsure ones are looked at again. */
void ocsd_circuits_gone(struct ocsd *d, const struct ocsd_switch *sw,
			struct ocsd_circuit *const *circuits, size_t count);

/* Writes that the circuits of JOB were seen, if that is still to be done: it is left for
 * after the answers that wait for the last of them. */
void ocsd_realise_write(struct ocsd *d, struct ocsd_job *job);

/* The same for all jobs whose answers are out; whether some is left for the next pass. */
bool ocsd_realise_write_due(struct ocsd *d);

/* Sends what a repair has planned for the running JOB, once everything that it cuts
 * is gone.  Returns 0, or -1: not yet, or not possible (then JOB has failed). */
int ocsd_realise_more(struct ocsd *d, struct ocsd_job *job);

#endif
