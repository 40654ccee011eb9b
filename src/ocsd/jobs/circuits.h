/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_CIRCUITS_H
#define OCS_OCSD_JOBS_CIRCUITS_H

/* Circuits of jobs: the state that each has to reach, and what is known of it. */

#include "src/ocsd/state/ocsd.h"

/* Puts CIRCUIT into STATE in memory (the caller tells the store). */
void ocsd_circuit_set(struct ocsd *d, struct ocsd_circuit *circuit, enum ocsd_circuit_state state);

/* Whether the ports of CIRCUIT belong to its job now. */
bool ocsd_circuit_owned(struct ocsd *d, const struct ocsd_circuit *circuit);

/* The last look before CIRCUIT may reach a switch: its ports are its job's, and no other circuit of
 * ocsd sits on them.  0, or -1 with ERR. */
int ocsd_circuit_check(struct ocsd *d, const struct ocsd_circuit *circuit, struct ocs_error *err);

/* Whether the switch of CIRCUIT works, or its job waits for it: 0, or -1 with ERR. */
int ocsd_circuit_switch_check(const struct ocsd *d, const struct ocsd_circuit *circuit,
			      struct ocs_error *err);

/* CIRCUIT, whose ports were looked at, may go to its switch (the caller tells the store). */
void ocsd_circuit_connect(struct ocsd *d, struct ocsd_circuit *circuit);

/* CIRCUIT, one of a menu, goes: in the batch in which another one comes to its ports.  One that no
 * switch may have is gone at once. */
void ocsd_circuit_leave(struct ocsd *d, struct ocsd_circuit *circuit);

/* Whether JOB has a circuit in STATE on SW. */
bool ocsd_circuits_any(const struct ocsd_job *job, const struct ocsd_switch *sw,
		       enum ocsd_circuit_state state);

/* Whether CIRCUIT is a position of a 1x2 switch, which moves from one to the other. */
bool ocsd_circuit_moves(struct ocsd *d, const struct ocsd_circuit *circuit);

/* The position that the job in line needs of the 1x2 switch whose position CIRCUIT is to go, so
 * that both are one batch; or NULL. */
struct ocsd_circuit *ocsd_circuit_successor(struct ocsd *d, const struct ocsd_circuit *circuit);

/* The batch on its way to SW had no answer, even if it has one by now. */
void ocsd_circuits_lost(struct ocsd_switch *sw);

/* Whether CIRCUIT, which its switch does not have, was in a batch that had no answer.  A
 * switch that hung may do that one after it has told its table, in the time that a command
 * takes: the circuit may still come, or what is next on its ports be cut.  Not for 1x2 switches of
 * look-ahead, whose next position must not wait. */
bool ocsd_circuit_outcome_unknown(struct ocsd *d, const struct ocsd_circuit *circuit);

/* SW has cut CIRCUITS.  Those of unknown outcome are looked at again. */
void ocsd_circuits_gone(struct ocsd *d, const struct ocsd_switch *sw,
			struct ocsd_circuit *const *circuits, size_t count);

/* Writes that the circuits of JOB were seen, if that is still to be done: it is left for
 * after the answers that wait for the last of them. */
void ocsd_circuits_write(struct ocsd *d, struct ocsd_job *job);

/* The same for all jobs whose answers are out; whether some is left for the next pass. */
bool ocsd_circuits_write_due(struct ocsd *d);

#endif
