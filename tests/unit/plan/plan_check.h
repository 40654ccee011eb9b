/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TESTS_UNIT_PLAN_PLAN_CHECK_H
#define OCS_TESTS_UNIT_PLAN_PLAN_CHECK_H

struct ocs_plan;
struct ocs_plan_request;

/* A plan that was made and verified, or the test fails; ocs_plan_destroy. */
struct ocs_plan *plan_make(const struct ocs_plan_request *request);

#endif
