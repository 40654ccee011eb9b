/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_SETTINGS_H
#define OCS_PLUGINS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct ocs_error;

/* The arguments of spank_ocs.so in plugstack.conf. */
struct ocs_settings {
	const char *ocsd;	/* ocsd=ADDRESS, or NULL: from ocs.yaml */
	const char *ocsd_key;	/* ocsd_key=FILE, or NULL: from ocs.yaml; with ocsd=
				 * and without both, MUNGE */
	const char *ocsd_user;	/* ocsd_user=NAME, or NULL: likewise; else ocsd, or root */
	const char *conf;	/* conf=FILE, or NULL: ocs.yaml beside slurm.conf */
	const char *helper;	/* helper=PROGRAM */
	const char *dir;	/* dir=BASE; %n is the node's name */
	const char *controller; /* controller=PROGRAM, or NULL: none is started; by default ours */
	const char *agent;	/* agent=PROGRAM, likewise */
	const char *moe_controller; /* moe_controller=PROGRAM, likewise */
	const char *ports;	    /* controller_ports=LOW-HIGH, or NULL: those of the programs */
	const char *shims;	    /* shims=mpi,gloo,nccl, or NULL: those that are installed */
	bool prolog;		    /* prolog=yes|no: no where scripts of the site do the work */
	int prolog_s;		    /* prolog_timeout=SECONDS, 0: from ocs.yaml */
	int epilog_s;		    /* epilog_timeout=SECONDS */
	int helper_s;		    /* helper_timeout=SECONDS */
};

/* Strings point into ARGV or are static.  0, or -1 with ERR naming the argument. */
int ocs_settings_parse(int argc, char **argv, struct ocs_settings *settings, struct ocs_error *err);

/* BASE/JOB with %n replaced; caller frees. */
char *ocs_settings_job_dir(const struct ocs_settings *settings, const char *node, uint32_t job);

/* The path of ocs.yaml; caller frees. */
char *ocs_settings_fabric(const struct ocs_settings *settings);

#endif
