# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

# The parts of spank_ocs, job_submit/ocs and cli_filter/ocs that need no Slurm.
check_PROGRAMS += test_submit_options
test_submit_options_SOURCES = plugins/test_submit_options.c \
	../../src/plugins/spank/settings.c ../../src/plugins/spank/subprocess.c \
	../../src/plugins/job_submit/extra.c ../../src/plugins/job_submit/script.c ../../src/plugins/cli_filter/model.c
test_submit_options_CPPFLAGS = $(AM_CPPFLAGS) -DOCS_HELPER='"/usr/libexec/slurm-ocs/ocs-node"' -DOCS_LIBEXEC='"/usr/libexec/slurm-ocs"' -DOCS_OCSCTL='"/usr/bin/ocsctl"'
test_submit_options_LDADD = $(S)/rails/libocs_rails_frames.la $(S)/scheduler/libocs_submit.la $(S)/plan/libocs_demand.la $(S)/fold/libocs_fold.la $(S)/config/libocs_config.la $(S)/fabric/libocs_fabric.la $(UTIL) $(JSON_LIBS) $(CMOCKA_LIBS)

# The state behind topology/ocs and select/cons_tres_ocs.
CONTROLLER = $(S)/scheduler/libocs_scheduler.la $(S)/protocol/libocs_protocol.la \
	$(S)/rails/libocs_rails.la $(PLACE) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += test_controller test_controller_link test_controller_ready
test_controller_SOURCES = scheduler/test_controller.c scheduler/controller_peer.c scheduler/controller_peer.h
test_controller_LDADD = $(CONTROLLER)
test_controller_link_SOURCES = scheduler/test_controller_link.c scheduler/controller_peer.c scheduler/controller_peer.h
test_controller_link_LDADD = $(CONTROLLER)
check_PROGRAMS += test_controller_pending
test_controller_pending_SOURCES = scheduler/test_controller_pending.c scheduler/controller_peer.c scheduler/controller_peer.h
test_controller_pending_LDADD = $(CONTROLLER)
test_controller_ready_SOURCES = scheduler/test_controller_ready.c scheduler/controller_peer.c scheduler/controller_peer.h
test_controller_ready_LDADD = $(CONTROLLER)
