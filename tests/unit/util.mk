# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_text test_hostlist test_net
test_text_SOURCES = util/test_text.c
test_text_LDADD = $(UTIL) $(CMOCKA_LIBS)
test_hostlist_SOURCES = util/test_hostlist.c
test_hostlist_LDADD = $(UTIL) $(CMOCKA_LIBS)
test_net_SOURCES = util/test_net.c
test_net_LDADD = $(UTIL) $(CMOCKA_LIBS)
check_PROGRAMS += test_secret
test_secret_SOURCES = util/test_secret.c
test_secret_LDADD = $(UTIL) $(CMOCKA_LIBS)
check_PROGRAMS += test_constraint
test_constraint_SOURCES = util/test_constraint.c
test_constraint_LDADD = $(UTIL) $(CMOCKA_LIBS)
