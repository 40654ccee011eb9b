# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_forward
test_forward_SOURCES = forward/test_forward.c forward/forward_machine.c forward/forward_machine.h
test_forward_LDADD = $(S)/forward/libocs_forward.la $(S)/plan/libocs_plan.la $(FABRIC) \
	$(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_ocsd_forward
test_ocsd_forward_SOURCES = ocsd/test_ocsd_forward.c $(OCSD_RIG)
test_ocsd_forward_LDADD = $(OCSD_RIG_LIBS)

check_PROGRAMS += test_forward_state
test_forward_state_SOURCES = forward/test_forward_state.c
test_forward_state_LDADD = $(S)/forward/libocs_forward.la $(S)/plan/libocs_plan.la $(FABRIC) \
	$(CMOCKA_LIBS) $(JSON_LIBS)
