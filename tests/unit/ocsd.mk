# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

OCSD_RIG = ocsd_rig.c ocsd_rig.h emulator_peer.c emulator_peer.h
OCSD_RIG_LIBS = $(S)/client/libocs_client.la $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_ocsd_jobs test_ocsd_faults test_ocsd_access
test_ocsd_jobs_SOURCES = test_ocsd_jobs.c $(OCSD_RIG)
test_ocsd_jobs_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
test_ocsd_faults_SOURCES = test_ocsd_faults.c $(OCSD_RIG)
test_ocsd_faults_LDADD = $(OCSD_RIG_LIBS)
test_ocsd_access_SOURCES = test_ocsd_access.c $(OCSD_RIG)
test_ocsd_access_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_repair
test_ocsd_repair_SOURCES = test_ocsd_repair.c $(OCSD_RIG)
test_ocsd_repair_LDADD = $(S)/plan/libocs_plan.la $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_operation
test_ocsd_operation_SOURCES = test_ocsd_operation.c $(OCSD_RIG)
test_ocsd_operation_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_transactions
test_ocsd_transactions_SOURCES = test_ocsd_transactions.c $(OCSD_RIG)
test_ocsd_transactions_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_history
test_ocsd_history_SOURCES = test_ocsd_history.c $(OCSD_RIG)
test_ocsd_history_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_limit
test_ocsd_limit_SOURCES = test_ocsd_limit.c $(OCSD_RIG)
test_ocsd_limit_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_listen
test_ocsd_listen_SOURCES = test_ocsd_listen.c $(OCSD_RIG)
test_ocsd_listen_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_ports
test_ocsd_ports_SOURCES = test_ocsd_ports.c $(OCSD_RIG)
test_ocsd_ports_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_remote
test_ocsd_remote_SOURCES = test_ocsd_remote.c $(OCSD_RIG)
test_ocsd_remote_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_ahead
test_ocsd_ahead_SOURCES = test_ocsd_ahead.c $(OCSD_RIG)
test_ocsd_ahead_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_secret
test_ocsd_secret_SOURCES = test_ocsd_secret.c $(OCSD_RIG)
test_ocsd_secret_LDADD = $(OCSD_RIG_LIBS)
if HAVE_LIBSSH
check_PROGRAMS += test_ocsd_netconf
test_ocsd_netconf_SOURCES = test_ocsd_netconf.c $(OCSD_RIG)
test_ocsd_netconf_LDADD = $(OCSD_RIG_LIBS)
endif
check_PROGRAMS += test_ocsd_crash
test_ocsd_crash_SOURCES = test_ocsd_crash.c $(OCSD_RIG)
test_ocsd_crash_LDADD = $(OCSD_RIG_LIBS)
EXTRA_test_ocsd_crash_DEPENDENCIES = crash_preload.la
check_PROGRAMS += test_ocsd_disk
test_ocsd_disk_SOURCES = test_ocsd_disk.c $(OCSD_RIG)
test_ocsd_disk_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
EXTRA_test_ocsd_disk_DEPENDENCIES = trouble_preload.la
check_PROGRAMS += test_ocsd_clock
test_ocsd_clock_SOURCES = test_ocsd_clock.c $(OCSD_RIG)
test_ocsd_clock_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
EXTRA_test_ocsd_clock_DEPENDENCIES = trouble_preload.la
check_LTLIBRARIES = crash_preload.la trouble_preload.la
trouble_preload_la_SOURCES = trouble_preload.c
trouble_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere
crash_preload_la_SOURCES = crash_preload.c
crash_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere
dist_check_SCRIPTS += test_ocsd_soak.sh
