# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

OCSD_RIG = ocsd/ocsd_rig.c ocsd/ocsd_rig.h ocsd/ocsd_talk.c ocsd/ocsd_talk.h switch/emulator_peer.c switch/emulator_peer.h
OCSD_ROWS = ocsd/ocsd_rows.c ocsd/ocsd_rows.h
OCSD_RIG_LIBS = $(S)/protocol/libocs_protocol.la $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_ocsd_jobs test_ocsd_faults test_ocsd_access
test_ocsd_jobs_SOURCES = ocsd/test_ocsd_jobs.c $(OCSD_RIG)
test_ocsd_jobs_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
test_ocsd_faults_SOURCES = ocsd/test_ocsd_faults.c $(OCSD_RIG)
test_ocsd_faults_LDADD = $(OCSD_RIG_LIBS)
test_ocsd_access_SOURCES = ocsd/test_ocsd_access.c protocol/munge_peer.c protocol/munge_peer.h $(OCSD_RIG)
test_ocsd_access_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_client_trust
test_client_trust_SOURCES = protocol/test_client_trust.c protocol/munge_peer.c protocol/munge_peer.h
test_client_trust_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_controllers
test_ocsd_controllers_SOURCES = ocsd/test_ocsd_controllers.c $(OCSD_RIG)
test_ocsd_controllers_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_repair
test_ocsd_repair_SOURCES = ocsd/test_ocsd_repair.c $(OCSD_RIG)
test_ocsd_repair_LDADD = $(S)/plan/libocs_plan.la $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_operation
test_ocsd_operation_SOURCES = ocsd/test_ocsd_operation.c $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_operation_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_transactions
test_ocsd_transactions_SOURCES = ocsd/test_ocsd_transactions.c $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_transactions_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_history
test_ocsd_history_SOURCES = ocsd/test_ocsd_history.c $(OCSD_RIG)
test_ocsd_history_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_limit
test_ocsd_limit_SOURCES = ocsd/test_ocsd_limit.c $(OCSD_RIG)
test_ocsd_limit_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_commit
test_ocsd_commit_SOURCES = ocsd/test_ocsd_commit.c $(OCSD_RIG)
test_ocsd_commit_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_listen
test_ocsd_listen_SOURCES = ocsd/test_ocsd_listen.c $(OCSD_RIG)
test_ocsd_listen_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_ports
test_ocsd_ports_SOURCES = ocsd/test_ocsd_ports.c $(OCSD_RIG)
test_ocsd_ports_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_remote
test_ocsd_remote_SOURCES = ocsd/test_ocsd_remote.c $(TOPO_RIG)
test_ocsd_remote_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_ahead
test_ocsd_ahead_SOURCES = ocsd/test_ocsd_ahead.c $(OCSD_RIG)
test_ocsd_ahead_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_secret
test_ocsd_secret_SOURCES = ocsd/test_ocsd_secret.c $(OCSD_RIG)
test_ocsd_secret_LDADD = $(OCSD_RIG_LIBS)
if HAVE_LIBSSH
check_PROGRAMS += test_ocsd_netconf
test_ocsd_netconf_SOURCES = ocsd/test_ocsd_netconf.c $(OCSD_RIG)
test_ocsd_netconf_LDADD = $(OCSD_RIG_LIBS)
endif
check_PROGRAMS += test_ocsd_crash
test_ocsd_crash_SOURCES = ocsd/test_ocsd_crash.c $(OCSD_RIG)
test_ocsd_crash_LDADD = $(OCSD_RIG_LIBS)
EXTRA_test_ocsd_crash_DEPENDENCIES = crash_preload.la
check_PROGRAMS += test_ocsd_disk
test_ocsd_disk_SOURCES = ocsd/test_ocsd_disk.c $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_disk_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
EXTRA_test_ocsd_disk_DEPENDENCIES = trouble_preload.la
check_PROGRAMS += test_ocsd_hostile
test_ocsd_hostile_SOURCES = ocsd/test_ocsd_hostile.c $(OCSD_RIG)
test_ocsd_hostile_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_connections
test_ocsd_connections_SOURCES = ocsd/test_ocsd_connections.c $(OCSD_RIG)
test_ocsd_connections_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_ocsd_database
test_ocsd_database_SOURCES = ocsd/test_ocsd_database.c $(OCSD_RIG)
test_ocsd_database_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_clock
test_ocsd_clock_SOURCES = ocsd/test_ocsd_clock.c $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_clock_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
EXTRA_test_ocsd_clock_DEPENDENCIES = trouble_preload.la
check_LTLIBRARIES += crash_preload.la trouble_preload.la
trouble_preload_la_SOURCES = ocsd/trouble_preload.c
trouble_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere
crash_preload_la_SOURCES = ocsd/crash_preload.c
crash_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere
dist_check_SCRIPTS += ocsd/test_ocsd_soak.sh

check_PROGRAMS += test_ocsd_late
test_ocsd_late_SOURCES = ocsd/test_ocsd_late.c $(OCSD_RIG)
test_ocsd_late_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_heard
test_ocsd_heard_SOURCES = ocsd/test_ocsd_heard.c $(OCSD_RIG)
test_ocsd_heard_LDADD = $(OCSD_RIG_LIBS)
check_PROGRAMS += test_job_state
test_job_state_SOURCES = ocsd/test_job_state.c ../../src/ocsd/jobs/job_state.c \
	../../src/ocsd/state/job_states.c
test_job_state_LDADD = $(UTIL) $(CMOCKA_LIBS)
dist_check_SCRIPTS += ocsd/test_ocsd_older.py
check_PROGRAMS += test_transition
test_transition_SOURCES = ocsd/test_transition.c ../../src/ocsd/jobs/allocation.c \
	../../src/ocsd/jobs/circuits.c ../../src/ocsd/jobs/transition.c \
	../../src/ocsd/state/job_states.c
test_transition_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
check_PROGRAMS += test_ocsd_transition
test_ocsd_transition_SOURCES = ocsd/test_ocsd_transition.c $(OCSD_RIG)
test_ocsd_transition_LDADD = $(OCSD_RIG_LIBS)
TOPO_RIG = ocsd/topo_rig.c ocsd/topo_rig.h $(OCSD_RIG)
REGION_TENANT = ocsd/region_tenant.c ocsd/region_tenant.h
check_PROGRAMS += test_ocsd_region test_ocsd_region_faults test_ocsd_region_restart
test_ocsd_region_SOURCES = ocsd/test_ocsd_region.c $(REGION_TENANT) $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_region_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
test_ocsd_region_faults_SOURCES = ocsd/test_ocsd_region_faults.c $(REGION_TENANT) $(OCSD_RIG)
test_ocsd_region_faults_LDADD = $(OCSD_RIG_LIBS)
test_ocsd_region_restart_SOURCES = ocsd/test_ocsd_region_restart.c $(REGION_TENANT) $(OCSD_RIG) $(OCSD_ROWS)
test_ocsd_region_restart_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)

check_PROGRAMS += test_ocsd_topo test_ocsd_topo_crash
test_ocsd_topo_SOURCES = ocsd/test_ocsd_topo.c $(TOPO_RIG) $(OCSD_ROWS)
test_ocsd_topo_LDADD = $(OCSD_RIG_LIBS) $(SQLITE_LIBS)
check_PROGRAMS += test_ocsd_topo_fair
test_ocsd_topo_fair_SOURCES = ocsd/test_ocsd_topo_fair.c $(TOPO_RIG)
test_ocsd_topo_fair_LDADD = $(OCSD_RIG_LIBS)

check_PROGRAMS += test_ocsd_topo_counts
test_ocsd_topo_counts_SOURCES = ocsd/test_ocsd_topo_counts.c $(TOPO_RIG)
test_ocsd_topo_counts_LDADD = $(OCSD_RIG_LIBS)
test_ocsd_topo_crash_SOURCES = ocsd/test_ocsd_topo_crash.c $(TOPO_RIG)
test_ocsd_topo_crash_LDADD = $(OCSD_RIG_LIBS)
EXTRA_test_ocsd_topo_crash_DEPENDENCIES = crash_preload.la
