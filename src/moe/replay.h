/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_REPLAY_H
#define OCS_MOE_REPLAY_H

/* A training whose gates are known, as it would have run with circuits that follow them. */

#include "src/moe/circuits.h"

struct ocs_error;

enum ocs_moe_replay_mode {
	OCS_MOE_REPLAY_PACKETS,	  /* no circuit */
	OCS_MOE_REPLAY_STATIC,	  /* the best circuits for the mean of all matrices, all the time */
	OCS_MOE_REPLAY_FOLLOWING, /* control.h, which begins with no circuits */
};

/* A pass is a microbatch forward and backward through all layers.  Times in tokens per NIC rate. */
struct ocs_moe_replay {
	const struct ocs_moe_region *region;
	struct ocs_moe_demand *const *demand; /* [passes x layers] */
	int passes, layers;
	double computing; /* before each all-to-all; twice as long backward */
	double first,
		each; /* until one exchanged circuit carries light, and for each further one */
	int predict, relay;
};

/* Means over the second half of the passes. */
struct ocs_moe_replay_result {
	double time;	/* of a pass */
	double sending; /* of it, all-to-alls; the rest is computation and waiting for the switch */
	double exchanges; /* orders to the switch in a pass */
	double cut;	  /* circuits that they cut */
	double predicted; /* of the orders, on a prediction */
};

/* -1 with ERR: a number makes no sense. */
int ocs_moe_replay_run(const struct ocs_moe_replay *replay, enum ocs_moe_replay_mode mode,
		       struct ocs_moe_replay_result *result, struct ocs_error *err);

#endif
