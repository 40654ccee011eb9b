/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_NODESIDE_H
#define OCS_PLUGINS_NODESIDE_H

/* The parts of spank_ocs.so that run on compute nodes.  Each returns what the SPANK
 * hook of that name returns. */

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

struct ocs_ranks;
struct ocs_settings;

int ocs_job_prolog(spank_t spank, const struct ocs_settings *settings);
int ocs_job_epilog(spank_t spank, const struct ocs_settings *settings);
int ocs_user_init(spank_t spank, const struct ocs_settings *settings);
int ocs_task_init(spank_t spank, const struct ocs_settings *settings);
/* Takes NCCL_GRAPH_FILE from a task that it does not fit, number LOCAL of NTASKS on its node, and says
 * so once in the output of the step; also where the user set it to "none". */
void ocs_task_graph_file(spank_t spank, int local, int ntasks);
/* A step starts on a node of the job with the directory DIR, and its environment is complete: starts
 * the job's controller of rails, where this is its first node and none runs. */
void ocs_controller_start(spank_t spank, const struct ocs_settings *settings, const char *dir);
/* The same for the agent of this node, in a step of tasks; RANKS: the job's XPUs, or NULL.  Tasks find it by
 * their environment, and load the shims of communication libraries. */
void ocs_agent_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
		     const struct ocs_ranks *ranks);
/* The same for the relay of a job with experts, on a node without its controller. */
void ocs_relay_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
		     const struct ocs_ranks *ranks);
/* Whether this is a step of tasks, and none of a script or of what is outside of steps; then *STEP. */
bool ocs_step_of_tasks(spank_t spank, uint32_t *step);
/* The tasks of this step load the shims that are installed, or those that the user or the site has named. */
enum ocs_shims { OCS_SHIMS_RAILS, OCS_SHIMS_MOE };
void ocs_preload_set(spank_t spank, const struct ocs_settings *settings, enum ocs_shims which);
/* Those of a job with experts, and where they are reached, if it has a controller. */
void ocs_moe_shims_set(spank_t spank, const struct ocs_settings *settings);
/* A line that ocs-node printed goes to slurmd's log. */
void ocs_helper_line(const char *text);
/* slurmd starts: tells ocsd, and takes away what a job that is over has left in this node's network. */
void ocs_node_start(const struct ocs_settings *settings);

#endif
