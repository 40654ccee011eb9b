/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_CONTROLLER_H
#define OCS_OCSD_PROTOCOL_CONTROLLER_H

/* Controllers of jobs: clients with the key of one job and epoch, which they were given by the prolog of
 * its first node.  A key opens nothing but `topo`, `region` and `gates` for its own job. */

#include "src/ocsd/state/ocsd.h"
#include "src/util/secret.h"

struct json_object;

/* Whether REQUEST names a job that runs, and has its key; CLIENT is its controller from then on, and the
 * one before is told that it is not.  Else refuses it. */
bool ocsd_controller_admit(struct ocsd *d, struct ocsd_client *client, int64_t id,
			   struct json_object *request);

/* Whether PROOF is that of the key of JOB and EPOCH for CHALLENGE and NONCE (doc/protocol.md, hello); then
 * SESSION is the key of the session, and *UID the owner of the job. */
bool ocsd_controller_prove(struct ocsd *d, uint32_t job, uint64_t epoch, const char *challenge,
			   const char *nonce, const char *proof, char session[OCS_MAC_HEX + 1],
			   uid_t *uid);

/* Whether REQUEST of CLIENT is paid for by its job, and not by its user. */
bool ocsd_controller_exempt(struct ocsd_client *client, struct json_object *request);

/* Whether JOB, which has a menu, may ask once more now: 0, or after how many ms. */
int ocsd_controller_wait_ms(const struct ocsd *d, struct ocsd_job *job);

/* Whether JOB, which has a menu, may say what it has seen now: 0, or after how many ms. */
int ocsd_controller_report_ms(const struct ocsd_job *job);

/* Events that were posted for controllers become lines of their connections. */
void ocsd_controllers_tell(struct ocsd *d);

#endif
