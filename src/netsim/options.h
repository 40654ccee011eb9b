/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_OPTIONS_H
#define OCS_NETSIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/netsim/collective.h"

struct ocs_error;

#define OCS_NETSIM_JOBS_MAX 256

struct ocs_netsim_args {
	const char *graphs[OCS_NETSIM_JOBS_MAX]; /* files, a job each */
	bool models[OCS_NETSIM_JOBS_MAX];	 /* the file is a model */
	int ngraphs;
	const char *fabric, *svg, *write_graph;
	enum ocs_netsim_algorithm algorithm;
	double tolerance, speed;
	uint64_t seed;
	int steps;
	bool json, scatter;
};

/* Returns 0; 1 when --help or --version was printed; -1 with ERR (OCS_USAGE). */
int ocs_netsim_args_parse(int argc, char **argv, struct ocs_netsim_args *args,
			  struct ocs_error *err);

#endif
