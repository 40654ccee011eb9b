/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_COMPAT_COMPAT_H
#define OCS_PLUGINS_COMPAT_COMPAT_H

/* Everything that differs between the releases of Slurm we build for (24.11,
 * 25.05, 25.11, 26.05), so that no plugin has to ask for the release.  Included
 * first by every plugin that uses Slurm's internal headers.  What the topology
 * and select interfaces add or rename is in topology_entries.h and
 * select_entries.h beside this file. */

#include "src/common/slurm_xlator.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "slurm/slurm_version.h"
#include "src/common/bitstring.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/pack.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/uid.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/interfaces/select.h"
#include "src/interfaces/topology.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"
#include "src/stepmgr/srun_comm.h"
#include "src/scheduler/scheduler.h"

#define OCS_SLURM(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

#if !OCS_SLURM(24, 11)
#error "Slurm 24.11 or newer is needed"
#endif

/* The names Slurm looks up with dlsym; all else is hidden. */
#define OCS_EXPORT __attribute__((visibility("default")))

/* Plugins are loaded by clients too, which lack slurmctld's data and functions:
 * weak references keep such a load from failing, whatever the linker's flags.
 * They are null there and used in slurmctld only. */
#pragma weak job_list
#pragma weak last_job_update
#pragma weak share_node_bitmap
#pragma weak lock_slurmctld
#pragma weak unlock_slurmctld
#pragma weak abort_job_on_nodes
#pragma weak find_job_record
#pragma weak get_next_job_id
#pragma weak slurmctld_config
#pragma weak slurmctld_primary
#pragma weak backup_inx
#if OCS_SLURM(25, 11)
#pragma weak job_requeue_internal
#else
#pragma weak job_requeue
#endif
#pragma weak job_signal
#ifndef job_state_set_flag
#pragma weak job_state_set_flag
#endif
#pragma weak test_job_nodes_ready
#pragma weak het_job_signal
#pragma weak queue_job_scheduler
#pragma weak srun_user_message

/* fini() of a plugin */
#if OCS_SLURM(25, 11)
#define OCS_FINI_TYPE void
#define OCS_FINI_RETURN return
#else
#define OCS_FINI_TYPE int
#define OCS_FINI_RETURN return SLURM_SUCCESS
#endif

/* Ids of our plugins.  A select plugin has one of its own in 24.11, where all
 * that are installed are loaded side by side, and must pose as cons_tres later. */
#if OCS_SLURM(25, 5)
#define OCS_SELECT_ID SELECT_PLUGIN_CONS_TRES
#else
#define OCS_SELECT_ID 121
#endif
#define OCS_TOPOLOGY_ID 121

/* The plugin whose generic evaluation topology/ocs builds on. */
#if OCS_SLURM(25, 5)
#define OCS_TOPOLOGY_BASE "topology_flat.so"
#else
#define OCS_TOPOLOGY_BASE "topology_default.so"
#endif
#define OCS_SELECT_BASE "select_cons_tres.so"

/* SelectTypeParameters */
#if OCS_SLURM(25, 11)
#define OCS_SELECT_CPU SELECT_CPU
#define OCS_SELECT_CORE SELECT_CORE
#define OCS_SELECT_SOCKET SELECT_SOCKET
#else
#define OCS_SELECT_CPU CR_CPU
#define OCS_SELECT_CORE CR_CORE
#define OCS_SELECT_SOCKET CR_SOCKET
#endif

/* `sbatch --external`: Slurm starts neither prologs nor a script. */
#ifdef EXTERNAL_JOB
#define OCS_EXTERNAL_JOB EXTERNAL_JOB
#else
#define OCS_EXTERNAL_JOB UINT64_C(0)
#endif

/* Every line of ours in slurmctld's log has these words, as those of spank_ocs in slurmd's have:
 * `grep ocs:` finds all of them. */
#define ocs_slurm_fatal(format, ...) fatal("ocs: " format, ##__VA_ARGS__)
#define ocs_slurm_error(format, ...) error("ocs: " format, ##__VA_ARGS__)
#define ocs_slurm_info(format, ...) info("ocs: " format, ##__VA_ARGS__)
#define ocs_slurm_verbose(format, ...) verbose("ocs: " format, ##__VA_ARGS__)

/* Whether slurmctld refuses jobs with fewer tasks than nodes. */
#define OCS_TASK_ON_EACH_NODE OCS_SLURM(26, 5)

/* Requeues a job on behalf of root (job write lock); FLAGS is 0 or JOB_REQUEUE_HOLD. */
static inline int ocs_compat_requeue(job_record_t *job, uint32_t flags)
{
#if OCS_SLURM(25, 11)
	return job_requeue_internal(0, job, false, flags);
#else
	return job_requeue(0, job->job_id, NULL, false, flags);
#endif
}

/* The state of NODE (NULL: absent) as the pictures of the fabric show it. */
static inline uint8_t ocs_compat_node_state(node_record_t *node)
{
	if (!node || IS_NODE_FUTURE(node))
		return OCS_NODE_ABSENT;
	if (IS_NODE_DOWN(node) || IS_NODE_FAIL(node))
		return OCS_NODE_DOWN;
	if (IS_NODE_ALLOCATED(node) || IS_NODE_MIXED(node) || IS_NODE_COMPLETING(node))
		return OCS_NODE_BUSY;
	if (IS_NODE_DRAIN(node))
		return OCS_NODE_DRAINED;
	return IS_NODE_MAINT(node) || IS_NODE_RES(node) ? OCS_NODE_RESERVED : OCS_NODE_IDLE;
}

/* What Slurm knows of the place of NODE, or NULL. */
static inline const char *ocs_compat_topology(const node_record_t *node)
{
#if OCS_SLURM(25, 5)
	return node->topology_str;
#else
	return NULL;
#endif
}

/* Opens NAME from the folders of PluginDir.  The handle is the one Slurm holds
 * if it has loaded that plugin already; it is never closed. */
static inline void *ocs_compat_open(const char *name)
{
	char *dirs = xstrdup(slurm_conf.plugindir), *save = NULL;
	void *handle = NULL;

	for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir && !handle;
	     dir = strtok_r(NULL, ":", &save)) {
		char *path = xstrdup_printf("%s/%s", dir, name);

		if (access(path, R_OK) == 0) {
			handle = dlopen(path, RTLD_LAZY);
			if (!handle)
				ocs_slurm_error("cannot load %s: %s", path, dlerror());
		}
		xfree(path);
	}
	if (!handle)
		ocs_slurm_error("%s is not in PluginDir=%s", name, slurm_conf.plugindir);
	xfree(dirs);
	return handle;
}

/* Entry points that the plugin below answers unchanged.  The including file
 * defines ocs_compat_base(), which gives its handle or NULL. */
#define OCS_FORWARD(type, name, parameters, arguments, otherwise)          \
	OCS_EXPORT type name parameters                                    \
	{                                                                  \
		static type(*next) parameters;                             \
                                                                           \
		if (!next && ocs_compat_base())                            \
			*(void **)&next = dlsym(ocs_compat_base(), #name); \
		return next ? next arguments : (otherwise);                \
	}
#define OCS_FORWARD_VOID(name, parameters, arguments)                      \
	OCS_EXPORT void name parameters                                    \
	{                                                                  \
		static void(*next) parameters;                             \
                                                                           \
		if (!next && ocs_compat_base())                            \
			*(void **)&next = dlsym(ocs_compat_base(), #name); \
		if (next)                                                  \
			next arguments;                                    \
	}

/* The same for a function that does more than forwarding: ocs_next_NAME()
 * gives the function below. */
#define OCS_NEXT(type, name, parameters)                                   \
	static type(*ocs_next_##name(void)) parameters                     \
	{                                                                  \
		static type(*next) parameters;                             \
                                                                           \
		if (!next && ocs_compat_base())                            \
			*(void **)&next = dlsym(ocs_compat_base(), #name); \
		return next;                                               \
	}

#endif
