# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_forward
test_forward_SOURCES = test_forward.c
test_forward_LDADD = $(S)/forward/libocs_forward.la $(S)/plan/libocs_plan.la $(UTIL) \
	$(CMOCKA_LIBS) $(JSON_LIBS)
