# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

NETSIM = $(S)/netsim/libocs_netsim.la $(S)/plan/libocs_plan.la $(UTIL)
NETSIM_FABRICS = $(S)/netsim/libocs_netsim.la $(S)/rails/libocs_rails.la $(S)/moe/libocs_moe.la $(S)/plan/libocs_plan.la $(PLACE) \
	$(JSON_LIBS) $(CMOCKA_LIBS) -lm

check_PROGRAMS += test_netsim_graph
test_netsim_graph_SOURCES = netsim/test_netsim_graph.c
test_netsim_graph_LDADD = $(NETSIM) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_netsim_flow
test_netsim_flow_SOURCES = netsim/test_netsim_flow.c netsim/flow_replay.c netsim/flow_replay.h
test_netsim_flow_LDADD = $(NETSIM) $(CMOCKA_LIBS) -lm

check_PROGRAMS += test_netsim_step
test_netsim_step_SOURCES = netsim/test_netsim_step.c
test_netsim_step_LDADD = $(NETSIM_FABRICS)

dist_check_SCRIPTS += netsim/test_netsim_judges.py netsim/test_netsim.py netsim/test_netsim_published.py
