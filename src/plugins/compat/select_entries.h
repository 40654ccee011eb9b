/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The entry points of a select plugin that select/cons_tres_ocs passes on to
 * cons_tres unchanged, for every release.  Included once, by that plugin. */

OCS_FORWARD(int, select_p_job_ready, (job_record_t * job), (job), SLURM_ERROR)
OCS_FORWARD(int, select_p_job_suspend, (job_record_t * job, bool indefinite), (job, indefinite),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_job_resume, (job_record_t * job, bool indefinite), (job, indefinite),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_select_nodeinfo_set_all, (void), (), SLURM_ERROR)
OCS_FORWARD(int, select_p_select_nodeinfo_set, (job_record_t * job), (job), SLURM_ERROR)

#if OCS_SLURM(26, 5)
OCS_FORWARD_VOID(select_p_job_mem_reduce, (job_record_t * job), (job))
#endif

#if !OCS_SLURM(25, 5)
OCS_FORWARD(int, select_p_state_save, (char *dir), (dir), SLURM_ERROR)
OCS_FORWARD(int, select_p_state_restore, (char *dir), (dir), SLURM_ERROR)
OCS_FORWARD(int, select_p_job_init, (list_t * jobs), (jobs), SLURM_ERROR)
OCS_FORWARD(bitstr_t *, select_p_step_pick_nodes,
	    (job_record_t * job, select_jobinfo_t *info, uint32_t count, bitstr_t **available),
	    (job, info, count, available), NULL)
OCS_FORWARD(int, select_p_step_start, (step_record_t * step), (step), SLURM_ERROR)
OCS_FORWARD(int, select_p_step_finish, (step_record_t * step, bool killing), (step, killing),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_select_nodeinfo_pack,
	    (select_nodeinfo_t * info, buf_t *buffer, uint16_t version), (info, buffer, version),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_select_nodeinfo_unpack,
	    (select_nodeinfo_t * *info, buf_t *buffer, uint16_t version), (info, buffer, version),
	    SLURM_ERROR)
OCS_FORWARD(select_nodeinfo_t *, select_p_select_nodeinfo_alloc, (void), (), NULL)
OCS_FORWARD(int, select_p_select_nodeinfo_free, (select_nodeinfo_t * info), (info), SLURM_ERROR)
OCS_FORWARD(int, select_p_select_nodeinfo_get,
	    (select_nodeinfo_t * info, enum select_nodedata_type type, enum node_states state,
	     void *data),
	    (info, type, state, data), SLURM_ERROR)
OCS_FORWARD(select_jobinfo_t *, select_p_select_jobinfo_alloc, (void), (), NULL)
OCS_FORWARD(int, select_p_select_jobinfo_free, (select_jobinfo_t * info), (info), SLURM_ERROR)
OCS_FORWARD(int, select_p_select_jobinfo_set,
	    (select_jobinfo_t * info, enum select_jobdata_type type, void *data),
	    (info, type, data), SLURM_ERROR)
OCS_FORWARD(int, select_p_select_jobinfo_get,
	    (select_jobinfo_t * info, enum select_jobdata_type type, void *data),
	    (info, type, data), SLURM_ERROR)
OCS_FORWARD(select_jobinfo_t *, select_p_select_jobinfo_copy, (select_jobinfo_t * info), (info),
	    NULL)
OCS_FORWARD(int, select_p_select_jobinfo_pack,
	    (select_jobinfo_t * info, buf_t *buffer, uint16_t version), (info, buffer, version),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_select_jobinfo_unpack,
	    (select_jobinfo_t * *info, buf_t *buffer, uint16_t version), (info, buffer, version),
	    SLURM_ERROR)
OCS_FORWARD(int, select_p_get_info_from_plugin,
	    (enum select_plugindata_info type, job_record_t *job, void *data), (type, job, data),
	    SLURM_ERROR)
#endif
