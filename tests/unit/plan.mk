# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

PLAN_CHECK = plan/plan_check.c plan/plan_check.h
PLAN_LIBS = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_plan
test_plan_SOURCES = plan/test_plan.c $(PLAN_CHECK)
test_plan_LDADD = $(PLAN_LIBS)

check_PROGRAMS += test_plan_demand
test_plan_demand_SOURCES = plan/test_plan_demand.c $(PLAN_CHECK)
test_plan_demand_LDADD = $(PLAN_LIBS)

check_PROGRAMS += test_plan_match
test_plan_match_SOURCES = plan/test_plan_match.c
test_plan_match_LDADD = $(PLAN_LIBS)

check_PROGRAMS += test_plan_repair
test_plan_repair_SOURCES = plan/test_plan_repair.c $(PLAN_CHECK)
test_plan_repair_LDADD = $(PLAN_LIBS)

check_PROGRAMS += test_plan_kautz
test_plan_kautz_SOURCES = plan/test_plan_kautz.c $(PLAN_CHECK)
test_plan_kautz_LDADD = $(PLAN_LIBS)

check_PROGRAMS += test_plan_trees
test_plan_trees_SOURCES = plan/test_plan_trees.c $(PLAN_CHECK)
test_plan_trees_LDADD = $(PLAN_LIBS)
