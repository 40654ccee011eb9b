/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/moe/internal.h"

static const char *const policy_names[] = {
	[OCS_MOE_PAPER] = "paper",
	[OCS_MOE_GREEDY] = "greedy",
	[OCS_MOE_BEST] = "best",
};

int ocs_moe_policy_parse(const char *text, enum ocs_moe_policy *policy)
{
	for (size_t i = 0; i < sizeof(policy_names) / sizeof(*policy_names); i++) {
		if (!strcmp(text, policy_names[i])) {
			*policy = (enum ocs_moe_policy)i;
			return 0;
		}
	}
	return -1;
}

/* The better of two greedy starts. */
static struct ocs_moe_circuits *start_make(const struct ocs_moe_request *request)
{
	struct ocs_moe_circuits *first = ocs_moe_circuits_create(request->region->n);
	struct ocs_moe_circuits *second = ocs_moe_circuits_create(request->region->n);

	ocs_moe_greedy(request, OCS_MOE_BOTH_WAYS, false, first);
	ocs_moe_greedy(request, OCS_MOE_LARGER_WAY, false, second);
	if (ocs_moe_finish_time(request->demand, request->region, second) <
	    ocs_moe_finish_time(request->demand, request->region, first)) {
		ocs_moe_circuits_destroy(first);
		return second;
	}
	ocs_moe_circuits_destroy(second);
	return first;
}

struct ocs_moe_circuits *ocs_moe_allocate(const struct ocs_moe_request *request)
{
	struct ocs_moe_circuits *circuits;

	if (request->policy == OCS_MOE_BEST) {
		if (request->keep) {
			circuits = ocs_moe_circuits_copy(request->keep);
			ocs_moe_greedy(request, OCS_MOE_BOTH_WAYS, false, circuits);
		} else {
			circuits = start_make(request);
		}
		ocs_moe_search(request, circuits);
		return circuits;
	}
	circuits = ocs_moe_circuits_create(request->region->n);
	ocs_moe_greedy(request, OCS_MOE_BOTH_WAYS, request->policy == OCS_MOE_PAPER, circuits);
	return circuits;
}
