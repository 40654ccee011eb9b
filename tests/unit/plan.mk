# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_plan
test_plan_SOURCES = test_plan.c
test_plan_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_plan_match
test_plan_match_SOURCES = test_plan_match.c
test_plan_match_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_plan_repair
test_plan_repair_SOURCES = test_plan_repair.c
test_plan_repair_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_plan_kautz
test_plan_kautz_SOURCES = test_plan_kautz.c
test_plan_kautz_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_plan_trees
test_plan_trees_SOURCES = test_plan_trees.c
test_plan_trees_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm
