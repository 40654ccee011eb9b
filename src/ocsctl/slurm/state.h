/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_STATE_H
#define OCS_OCSCTL_SLURM_STATE_H

/* What ocsd knows at one moment, and what it means for a section.  Users that are no
 * administrators of ocsd learn from Slurm's commands what these show them. */

#include "src/fabric/occupancy.h"
#include "src/place/place.h"

#include <stdio.h>

/* In the legends of pictures. */
#define OCS_CTL_RESERVED "idle, but reserved"

struct json_object;
struct ocs_client;
struct ocs_ctl_args;

struct ocs_ctl_state {
	struct json_object *fabric; /* replies of `show`, named after "what" */
	struct json_object *nodes;
	struct json_object *jobs;	  /* the array itself */
	struct json_object *switches;	  /* the array itself */
	struct json_object *reservations; /* that have nodes now: [{"name","nodes","for",
					 * "maintenance","end"}], or NULL */
	char *unreserved;		  /* why these are not known, or NULL */
	bool by_slurm;			  /* all but the jobs is what Slurm's commands say */
};

/* One `show` over CLIENT; NAME may be NULL.  The caller puts the reply; NULL with
 * ERR. */
struct json_object *ocs_ctl_ask(struct ocs_client *client, const char *what, const char *name,
				struct ocs_error *err);

/* Whether ERR is ocsd's answer to a user who is no administrator. */
bool ocs_ctl_for_administrators(const struct ocs_error *err);

/* Asks ocsd for everything above, and Slurm for what ocsd does not tell this user.
 * Returns 0, or -1 with ERR. */
int ocs_ctl_state_read(struct ocs_client *client, struct ocs_ctl_state *state,
		       struct ocs_error *err);
/* state_slurm.c: fabric (its drains), nodes and switches as sinfo and scontrol show
 * topology have them.  Returns 0, or -1 with ERR. */
int ocs_ctl_state_from_slurm(struct ocs_ctl_state *state, struct ocs_error *err);
/* state_reserved.c: takes the nodes of reservations for taken; jobs get them only with
 * --reservation.  Part of ocs_ctl_state_read. */
void ocs_ctl_state_reserve(struct ocs_ctl_state *state);
/* "for ann,bob until 2026-12-01T16:30:00", of one of state.reservations; the caller frees it. */
char *ocs_ctl_reservation_describe(struct json_object *reservation);
/* A line for each, a part of ocs_ctl_state_notes. */
void ocs_ctl_state_reserved_notes(const struct ocs_ctl_state *state, const char *before, FILE *out);
/* What the state may lack, a line each that begins with BEFORE. */
void ocs_ctl_state_notes(const struct ocs_ctl_state *state, const char *before, FILE *out);
/* The same from what `map --json` printed.  Returns 0, or -1 with ERR. */
int ocs_ctl_state_from_map(struct json_object *map, struct ocs_ctl_state *state,
			   struct ocs_error *err);
void ocs_ctl_state_free(struct ocs_ctl_state *state);

/* True if slurmctld has sent its nodes to ocsd. */
bool ocs_ctl_state_has_nodes(const struct ocs_ctl_state *state);
/* "idle", "busy", "reserved" (idle, and kept for a reservation), "down", "drained", "absent" (Slurm
 * does not have it); "idle" for a node that ocsd does not mention. */
const char *ocs_ctl_state_node(const struct ocs_ctl_state *state, const char *node);
/* Whether NODE is out of service: one of the last three. */
bool ocs_ctl_state_out(const struct ocs_ctl_state *state, const char *node);
/* The reservation that NODE, busy or not, is kept for ("?": not known which), or NULL. */
const char *ocs_ctl_state_reservation(const struct ocs_ctl_state *state, const char *node);
/* The job on NODE, with a shape or without, or 0. */
int64_t ocs_ctl_state_job(const struct ocs_ctl_state *state, const char *node);

/* A job of ocsd that holds XPUs or servers (every state but ended). */
bool ocs_ctl_job_lives(struct json_object *job);

/* Takes from OCCUPANCY what is down, drained or held.  PLACER is of the same
 * section.  Returns 0, or -1 with ERR (a placement that this ocs.yaml does not
 * explain: the two files differ). */
int ocs_ctl_state_occupy(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			 struct ocs_placer *placer, struct ocs_occupancy *occupancy,
			 struct ocs_error *err);

/* Whether node NODE of FABRIC is drained, with its cube, or for one of its XPUs. */
bool ocs_ctl_state_drained(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			   int node);

/* For programs, what "map --json" prints: every node of SECTION (NULL: of all), its state and the job
 * that holds it, the living jobs, drains, switches and reservations.  The caller puts it. */
struct json_object *ocs_ctl_state_json(const struct ocs_ctl_state *state,
				       const struct ocs_fabric *fabric, const char *section);

/* The node that a drain of KIND and NAME closes, of its own or for an XPU; -1: none. */
int ocs_ctl_drain_node(const struct ocs_fabric *fabric, const char *kind, const char *name);

/* Its last part: what is drained, and switches that are not up.  May be done again. */
void ocs_ctl_state_drains(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			  struct ocs_occupancy *occupancy);

/* The placement of JOB if it lies on SECTION.  *PLACEMENT is NULL if it does not
 * (free with ocs_placement_destroy).  Returns 0, or -1 with ERR. */
int ocs_ctl_job_placement(struct json_object *job, const struct ocs_section *section,
			  struct ocs_placer *placer, struct ocs_placement **placement,
			  struct ocs_error *err);

#endif
