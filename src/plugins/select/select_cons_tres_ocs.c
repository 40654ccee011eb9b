/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* SelectType=select/cons_tres_ocs: select/cons_tres, with shapes.  Which nodes a
 * shape gets is decided inside the topology evaluation (evaluate.c); here a job's
 * placement is committed when it starts and released when it ends. */

#include "src/plugins/compat/conf.h"
#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"

OCS_EXPORT const char plugin_name[] = "cons_tres with shapes on optical circuit switches";
OCS_EXPORT const char plugin_type[] = "select/cons_tres_ocs";
OCS_EXPORT const uint32_t plugin_id = OCS_SELECT_ID;
OCS_EXPORT const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static void *ocs_compat_base(void)
{
	static void *handle;

	if (!handle)
		handle = ocs_compat_open(OCS_SELECT_BASE);
	return handle;
}

#include "src/plugins/compat/select_entries.h"

OCS_NEXT(int, select_p_node_init, (void))
OCS_NEXT(int, select_p_job_test,
	 (job_record_t *, bitstr_t *, uint32_t, uint32_t, uint32_t, uint16_t, list_t *, list_t **,
	  resv_exc_t *, will_run_data_t *))
OCS_NEXT(int, select_p_job_begin, (job_record_t *))
OCS_NEXT(int, select_p_job_fini, (job_record_t *))
OCS_NEXT(int, select_p_job_expand, (job_record_t *, job_record_t *))
OCS_NEXT(int, select_p_job_resized, (job_record_t *, node_record_t *))
OCS_NEXT(int, select_p_reconfigure, (void))

static void message_say(bool problem, const char *text)
{
	if (problem)
		ocs_slurm_error("%s", text);
	else
		ocs_slurm_verbose("%s", text);
}

/* cons_tres sets itself up in init(); where Slurm has not loaded it by itself, we
 * must call that.  It only reads the configuration: twice does no harm. */
static int base_init(void)
{
	int (*base)(void) = NULL;

	if (!ocs_compat_base())
		return SLURM_ERROR;
	*(void **)&base = dlsym(ocs_compat_base(), "init");
	return base ? base() : SLURM_SUCCESS;
}

/* Only the plugin that is chosen does more than being loaded. */
static bool plugin_chosen(void)
{
	return running_in_slurmctld() && !xstrcmp(slurm_conf.select_type, "select/cons_tres_ocs");
}

OCS_EXPORT int init(void)
{
	if (base_init() != SLURM_SUCCESS)
		return SLURM_ERROR;
	if (plugin_chosen()) {
		if (ocs_conf_forbids())
			ocs_slurm_fatal("%s", ocs_conf_forbids());
		if (!(slurm_conf.select_type_param &
		      (OCS_SELECT_CPU | OCS_SELECT_CORE | OCS_SELECT_SOCKET)))
			ocs_slurm_fatal(
				"SelectType=select/cons_tres_ocs needs SelectTypeParameters=CR_Core, CR_CPU or CR_Socket in slurm.conf");
		if (ocs_conf_missing())
			ocs_slurm_error("%s: jobs with a shape are refused", ocs_conf_missing());
		ocs_controller_log_set(message_say);
		ocs_controller_hook_set(ocs_select_evaluate);
	}
	ocs_slurm_verbose("%s loaded", plugin_name);
	return SLURM_SUCCESS;
}

OCS_EXPORT OCS_FINI_TYPE fini(void)
{
	if (plugin_chosen()) {
		ocs_controller_hook_set(NULL);
		ocs_controller_link_stop();
		ocs_select_keeper_stop();
		ocs_controller_log_set(NULL);
	}
	OCS_FINI_RETURN;
}

OCS_EXPORT int select_p_node_init(void)
{
	ocs_select_promise_drop(0);
	ocs_select_nodes_map();
	return ocs_next_select_p_node_init() ? ocs_next_select_p_node_init()() : SLURM_ERROR;
}

OCS_EXPORT int select_p_job_test(job_record_t *job, bitstr_t *nodes, uint32_t min_nodes,
				 uint32_t max_nodes, uint32_t req_nodes, uint16_t mode,
				 list_t *preemptable, list_t **preempted, resv_exc_t *excluded,
				 will_run_data_t *will_run)
{
	struct ocs_select_test test = {
		.job = job,
		.nodes = nodes,
		.min_nodes = min_nodes,
		.max_nodes = max_nodes,
		.req_nodes = req_nodes,
		.mode = mode,
		.preemptable = preemptable,
		.preempted = preempted,
		.excluded = excluded,
		.will_run = will_run,
		.base = ocs_next_select_p_job_test(),
	};
	int rc = SLURM_ERROR;

	if (!test.base)
		return rc;
	/* The backfill scheduler says for when it plans, people who ask do not. */
	rc = ocs_select_test_begin(job, nodes, mode, !will_run);
	if (rc == SLURM_SUCCESS)
		rc = ocs_select_test_run(&test);
	return ocs_select_test_end(job, rc);
}

/* Commits what the job was promised, on exactly the nodes it got. */
static int job_commit(job_record_t *job)
{
	struct ocs_controller_allocation *made = NULL;
	struct ocs_controller_request request;
	struct ocs_error err = { 0 };
	int *nodes = NULL, outside = 0, count, rc;

	rc = ocs_select_request(job, &request, &err);
	/* A requeued job may have lost its shape, or be in another partition now. */
	if (rc == 0 && ocs_select_epoch(job))
		ocs_select_forget(job);
	if (rc > 0) {
		if (!job->user_name)
			job->user_name = uid_to_string_or_null(job->user_id);
		request.demand = ocs_spank_get(job, OCS_SELECT_DEMAND);
		request.rings = ocs_spank_get(job, OCS_SELECT_RINGS);
		request.name = job->name;
		count = ocs_select_nodes_of(job->node_bitmap, &nodes, &outside);
		if (outside)
			rc = ocs_error_set(&err, OCS_ERROR, "it got nodes outside the fabric");
		else
			rc = ocs_controller_begin(&request, nodes, count, job->user_id,
						  job->user_name, job->part_ptr->name, &made, &err);
		xfree(nodes);
	}
	if (rc < 0) {
		ocs_slurm_error("%pJ does not start: %s", job, err.text);
		ocs_controller_pending(job->job_id, job->user_id, job->user_name, NULL, err.text,
				       false);
		ocs_select_keeper_wake();
		return SLURM_ERROR;
	}
	if (made) {
		/* All of its nodes or none.  job_submit says so as well, but Slurm takes that from
		 * no update, and it may not have known which partition the job ends up in. */
		job->kill_on_node_fail = 1;
		ocs_select_publish(job, made);
		ocs_select_hold(job);
		ocs_controller_pending_clear(job->job_id);
		ocs_slurm_info("%pJ: epoch %" PRIu64 " section %s shape %s cubes %d circuits %d",
			       job, made->epoch, made->section, made->shape ? made->shape : "none",
			       made->cubes, made->circuits);
		ocs_controller_allocation_free(made);
	}
	return SLURM_SUCCESS;
}

OCS_EXPORT int select_p_job_begin(job_record_t *job)
{
	int rc = ocs_next_select_p_job_begin() ? ocs_next_select_p_job_begin()(job) : SLURM_ERROR;

	if (rc != SLURM_SUCCESS)
		return rc;
	ocs_select_promise_drop(job->job_id);
	return job_commit(job);
}

OCS_EXPORT int select_p_job_fini(job_record_t *job)
{
	/* First of all: Slurm sends no epilog to the nodes of a job that it holds itself. */
	ocs_select_hold_drop(job);
	if (ocs_select_epoch(job)) {
		ocs_controller_end(job->job_id, 0, "the job left its nodes");
		ocs_select_unpublish(job);
		ocs_select_keeper_wake();
	}
	return ocs_next_select_p_job_fini() ? ocs_next_select_p_job_fini()(job) : SLURM_ERROR;
}

OCS_EXPORT int select_p_job_expand(job_record_t *from, job_record_t *to)
{
	if (ocs_select_epoch(from) || ocs_select_epoch(to)) {
		ocs_slurm_error(
			"%pJ and %pJ cannot be merged: circuits belong to the nodes they started on",
			from, to);
		return ESLURM_NOT_SUPPORTED;
	}
	return ocs_next_select_p_job_expand() ? ocs_next_select_p_job_expand()(from, to) :
						SLURM_ERROR;
}

OCS_EXPORT int select_p_job_resized(job_record_t *job, node_record_t *node)
{
	int index = ocs_select_node_fabric((int)node->index);

	if (ocs_select_epoch(job) && index >= 0)
		ocs_controller_node_lost(job->job_id, index);
	/* Slurm goes on counting an exclusive job that has given the node back.  Once the next
	 * exclusive job there has ended, no job would get the node until it answers a ping. */
	if (node->no_share_job_cnt > node->run_job_cnt)
		node->no_share_job_cnt = node->run_job_cnt;
	if (!node->no_share_job_cnt)
		bit_set(share_node_bitmap, (int)node->index);
	return ocs_next_select_p_job_resized() ? ocs_next_select_p_job_resized()(job, node) :
						 SLURM_ERROR;
}

/* After a start, and after changes of partitions and nodes. */
OCS_EXPORT int select_p_reconfigure(void)
{
	int rc = ocs_next_select_p_reconfigure() ? ocs_next_select_p_reconfigure()() : SLURM_ERROR;

	if (plugin_chosen() && !ocs_controller_fabric()) {
		static bool once;

		/* Those that were held stay so, and those that wait need a reason. */
		if (!once)
			ocs_select_restore_all();
		once = true;
		ocs_select_keeper_start();
	} else if (plugin_chosen()) {
		ocs_select_nodes_map();
		/* Once: later, a completing job may have been released already. */
		if (!ocs_controller_link_runs()) {
			ocs_select_accept();
			ocs_select_restore_all();
		}
		ocs_select_keeper_join();
		ocs_select_keeper_start();
	}
	return rc;
}
