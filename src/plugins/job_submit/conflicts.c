/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/conflicts.h"

#include <stdlib.h>
#include <string.h>

#include "src/common/assoc_mgr.h"

#include "src/fold/shape.h"
#include "src/plugins/compat/conf.h"
#include "src/plugins/compat/spank_env.h"
#include "src/util/text.h"

/* A partition that says nothing does as slurm.conf says for all. */
static bool partition_suspends(const part_record_t *part)
{
	uint16_t mode = ocs_conf_preempts_by_qos() ? PREEMPT_MODE_OFF : slurm_conf.preempt_mode;

	if (part->preempt_mode != NO_VAL16 &&
	    !xstrcmp(slurm_conf.preempt_type, "preempt/partition_prio"))
		mode = part->preempt_mode;
	return (mode & PREEMPT_MODE_SUSPEND) != 0;
}

static int partition_check(const part_record_t *part, struct ocs_error *err)
{
	if (part->max_share & SHARED_FORCE)
		return ocs_error_set(
			err, OCS_USAGE,
			"partition %s has OverSubscribe=FORCE, but the nodes of a shape cannot be shared; choose another with -p, or ask the administrator for OverSubscribe=NO",
			part->name);
	if (partition_suspends(part))
		return ocs_error_set(
			err, OCS_USAGE,
			"partition %s has PreemptMode=SUSPEND, but a suspended job would keep its circuits; choose another with -p, or ask the administrator for PreemptMode=REQUEUE, CANCEL or OFF",
			part->name);
	return 0;
}

int ocs_conflicts_partition(const char *partition, struct ocs_error *err)
{
	char *copy = ocs_strdup(partition ? partition : ""), *save = NULL, *name;
	int rc = 0;

	for (name = strtok_r(copy, ",", &save); name && !rc; name = strtok_r(NULL, ",", &save)) {
		part_record_t *part = find_part_record(name);

		/* Unknown ones are Slurm's to refuse. */
		if (part)
			rc = partition_check(part, err);
	}
	free(copy);
	return rc;
}

/* The QOS that a job gets which asks for WANTED (no name: the usual one for ASSOC); the
 * locks of assoc_mgr are held. */
static int check_qos(slurmdb_qos_rec_t *wanted, slurmdb_assoc_rec_t *assoc, struct ocs_error *err)
{
	slurmdb_qos_rec_t *qos = NULL;
	uint16_t mode = slurm_conf.preempt_mode;

	assoc_mgr_get_default_qos_info(assoc, wanted);
	/* Unknown ones are Slurm's to refuse. */
	if (assoc_mgr_fill_in_qos(acct_db_conn, wanted, 0, &qos, true) != SLURM_SUCCESS)
		return 0;
	if (qos && qos->preempt_mode)
		mode = qos->preempt_mode;
	if (!(mode & PREEMPT_MODE_SUSPEND))
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"QOS %s has PreemptMode=SUSPEND%s, but a suspended job would keep its circuits; choose another with -q, or ask the administrator for PreemptMode=REQUEUE or CANCEL",
		qos ? qos->name : "normal",
		qos && qos->preempt_mode ? "" : " (as slurm.conf says for all)");
}

int ocs_conflicts_qos(const char *names, const char *account, const char *partition, uint32_t uid,
		      struct ocs_error *err)
{
	assoc_mgr_lock_t locks = { .assoc = READ_LOCK, .qos = READ_LOCK, .user = READ_LOCK };
	slurmdb_assoc_rec_t like = { .acct = (char *)account, .uid = uid }, *assoc = NULL;
	char *copy, *save = NULL, *name;
	int rc = 0;

	if (!ocs_conf_preempts_by_qos())
		return 0;
	copy = ocs_strdup(names ? names : "");
	like.partition = partition && !strchr(partition, ',') ? (char *)partition : NULL;
	assoc_mgr_lock(&locks);
	name = strtok_r(copy, ",", &save);
	if (!name)
		assoc_mgr_fill_in_assoc(acct_db_conn, &like, 0, &assoc, true);
	/* An account that is not the user's is left out, unless Slurm refuses the job for it. */
	if (!name && account && !assoc) {
		like.acct = NULL;
		assoc_mgr_fill_in_assoc(acct_db_conn, &like, 0, &assoc, true);
	}
	do {
		slurmdb_qos_rec_t wanted = { .name = name };

		rc = check_qos(&wanted, assoc, err);
		name = name ? strtok_r(NULL, ",", &save) : NULL;
	} while (name && !rc);
	assoc_mgr_unlock(&locks);
	free(copy);
	return rc;
}

bool ocs_conflicts_allocated(const job_record_t *job)
{
	return ocs_spank_get(job, "OCS_EPOCH");
}

int ocs_conflicts_expand(const char *dependency, bool shaped, struct ocs_error *err)
{
	const char *at = dependency ? xstrcasestr(dependency, "expand:") : NULL;
	job_record_t *target;
	unsigned long id;

	if (!at)
		return 0;
	if (shaped)
		return ocs_error_set(
			err, OCS_USAGE,
			"--dependency=expand: nodes with a shape cannot be given to another job; submit one job with the larger shape");
	id = strtoul(at + strlen("expand:"), NULL, 10);
	target = find_job_record((uint32_t)id);
	if (target && (ocs_conflicts_allocated(target) ||
		       ocs_shape_extra_parse(target->extra ? target->extra : "",
					     &(struct ocs_shape){ 0 }, NULL) > 0))
		return ocs_error_set(
			err, OCS_USAGE,
			"--dependency=expand:%lu: that job has circuits between the nodes it started on and cannot grow; submit one job with the larger shape",
			id);
	return 0;
}
