# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

MODEL_LIBS = $(S)/model/libocs_model.la $(FABRIC) $(CMOCKA_LIBS) -lm

check_PROGRAMS += test_model
test_model_SOURCES = model/test_model.c
test_model_LDADD = $(MODEL_LIBS)

check_PROGRAMS += test_model_strategy
test_model_strategy_SOURCES = model/test_model_strategy.c
test_model_strategy_LDADD = $(S)/netsim/libocs_netsim_model.la $(S)/netsim/libocs_netsim.la $(S)/plan/libocs_plan.la $(MODEL_LIBS) \
	$(JSON_LIBS)

dist_check_SCRIPTS += ocsctl/test_ocsctl_optimise.sh ocsctl/test_ocsctl_buying.py ocsctl/test_ocsctl_steps.py
check_PROGRAMS += test_optimise
test_optimise_SOURCES = optimise/test_optimise.c
test_optimise_LDADD = $(S)/optimise/libocs_optimise.la $(S)/plan/libocs_plan.la $(MODEL_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_cost
test_cost_SOURCES = optimise/test_cost.c
test_cost_LDADD = $(S)/optimise/libocs_optimise.la $(MODEL_LIBS)
