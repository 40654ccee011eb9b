/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_COMPAT_CONF_H
#define OCS_PLUGINS_COMPAT_CONF_H

/* What slurm.conf says, as all plugins have to understand it. */

#include "src/plugins/compat/compat.h"

/* Whether a topology.yaml lies beside slurm.conf, which from 25.05 on takes the place of
 * TopologyPlugin.  It is read at a start only. */
static inline bool ocs_conf_topology_overruled(void)
{
#if OCS_SLURM(25, 5)
	static int there = -1;

	if (there < 0) {
		char *path = get_extra_conf_path((char *)"topology.yaml");

		there = access(path, F_OK) == 0;
		xfree(path);
	}
	return there;
#else
	return false;
#endif
}

/* What of the configuration keeps shapes from being served, as part of a sentence; NULL:
 * nothing. */
static inline const char *ocs_conf_missing(void)
{
	const uint16_t flags = PROLOG_FLAG_ALLOC | PROLOG_FLAG_DEFER_BATCH;

	if (xstrcmp(slurm_conf.select_type, "select/cons_tres_ocs"))
		return "slurm.conf lacks SelectType=select/cons_tres_ocs";
	if (xstrcmp(slurm_conf.topology_plugin, "topology/ocs"))
		return "slurm.conf lacks TopologyPlugin=topology/ocs";
	if (ocs_conf_topology_overruled())
		return "topology.yaml beside slurm.conf takes the place of TopologyPlugin=topology/ocs (remove it)";
	if ((slurm_conf.prolog_flags & flags) != flags)
		return "slurm.conf lacks PrologFlags=Alloc,DeferBatch";
	/* slurmstepd then runs Prolog= alone, and jobs would start without their circuits. */
	if (slurm_conf.prolog_flags & PROLOG_FLAG_RUN_IN_JOB)
		return "PrologFlags=RunInJob of slurm.conf leaves out the prolog of spank_ocs";
	return NULL;
}

/* Why no plugin of ours may be loaded, as a sentence; NULL: they may. */
static inline const char *ocs_conf_forbids(void)
{
	return xstrcasestr(slurm_conf.sched_params, "extra_constraints") ?
		       "SchedulerParameters=extra_constraints in slurm.conf makes Slurm read Extra as constraints, but slurm-ocs keeps shapes there: remove it" :
		       NULL;
}

/* Whether jobs are preempted by quality of service. */
static inline bool ocs_conf_preempts_by_qos(void)
{
	return !xstrcmp(slurm_conf.preempt_type, "preempt/qos");
}

/* Where slurmctld keeps a copy of the ocs.yaml that it took last; xfree it. */
static inline char *ocs_conf_accepted(void)
{
	return xstrdup_printf("%s/ocs.yaml", slurm_conf.state_save_location);
}

/* And the names of the partitions whose jobs all get circuits by that; xfree it. */
static inline char *ocs_conf_partitions(void)
{
	return xstrdup_printf("%s/ocs.partitions", slurm_conf.state_save_location);
}

#endif
