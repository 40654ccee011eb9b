/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "tests/unit/plan/plan_check.h"

struct ocs_plan *plan_make(const struct ocs_plan_request *request)
{
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = ocs_plan_make(request, &err);

	if (!plan || ocs_plan_verify(plan, &err) < 0)
		fail_msg("%d servers, degree %d%s%s: %s", request->servers, request->degree,
			 request->directed ? ", directed" : "",
			 request->any_port ? ", any port" : "", err.text);
	return plan;
}
