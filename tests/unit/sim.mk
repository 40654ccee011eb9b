# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

SIM = $(S)/sim/libocs_sim.la $(S)/netsim/libocs_netsim.la $(S)/plan/libocs_plan.la $(S)/moe/libocs_moe.la $(S)/rails/libocs_rails.la $(PLACE)

check_PROGRAMS += test_policy
test_policy_SOURCES = policy/test_policy.c
test_policy_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_workload
test_workload_SOURCES = sim/test_workload.c
test_workload_LDADD = $(SIM) $(CMOCKA_LIBS)

check_PROGRAMS += test_slowdown
test_slowdown_SOURCES = sim/test_slowdown.c
test_slowdown_LDADD = $(SIM) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_sim
test_sim_SOURCES = sim/test_sim.c
test_sim_LDADD = $(SIM) $(CMOCKA_LIBS) $(JSON_LIBS)

dist_check_SCRIPTS += sim/test_sim_usage.sh sim/test_sim_threads.sh

check_PROGRAMS += test_effort
test_effort_SOURCES = policy/test_effort.c place/place_random.h
test_effort_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_fragmentation
test_fragmentation_SOURCES = advice/test_fragmentation.c place/place_check.h place/place_random.h
test_fragmentation_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_advice
test_advice_SOURCES = advice/test_advice.c place/place_check.h place/place_random.h
test_advice_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
