# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

RAILS_LIBS = $(S)/rails/libocs_rails.la $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_rails_menu
test_rails_menu_SOURCES = rails/test_rails_menu.c
test_rails_menu_LDADD = $(RAILS_LIBS)

check_PROGRAMS += test_rails_layout
test_rails_layout_SOURCES = rails/test_rails_layout.c
test_rails_layout_LDADD = $(S)/rails/libocs_rails.la $(S)/fold/libocs_fold.la $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_rails_coordinator
test_rails_coordinator_SOURCES = rails/test_rails_coordinator.c
test_rails_coordinator_LDADD = $(RAILS_LIBS)

# The coordinator once more, with rules that the test takes away.
check_PROGRAMS += test_rails_interleave
test_rails_interleave_SOURCES = rails/test_rails_interleave.c rails/interleave.c rails/interleave.h rails/interleave_optics.c rails/interleave_world.c rails/interleave_world.h $(RAILS_MUTANTS)
test_rails_interleave_CPPFLAGS = $(AM_CPPFLAGS) -DOCS_RAILS_MUTANTS
test_rails_interleave_LDADD = $(UTIL) $(CMOCKA_LIBS)
RAILS_MUTANTS = $(top_srcdir)/src/rails/circuits.c $(top_srcdir)/src/rails/coordinator.c $(top_srcdir)/src/rails/coordinator_rail.c \
	$(top_srcdir)/src/rails/coordinator_ranks.c $(top_srcdir)/src/rails/coordinator_serve.c $(top_srcdir)/src/rails/group.c \
	$(top_srcdir)/src/rails/leases.c $(top_srcdir)/src/rails/menu.c $(top_srcdir)/src/rails/predict.c

dist_check_SCRIPTS += rails/test_rails_replay.py

check_PROGRAMS += test_gate
test_gate_SOURCES = rails/test_gate.c rails/gate_agent.c rails/gate_agent.h
test_gate_LDADD = $(S)/rails/libocs_gate.la $(CMOCKA_LIBS)

check_PROGRAMS += test_gate_signal
test_gate_signal_SOURCES = rails/test_gate_signal.c rails/gate_agent.c rails/gate_agent.h
test_gate_signal_LDADD = $(S)/rails/libocs_gate.la $(CMOCKA_LIBS)

# The controller and agents as programs, with an ocsd and ranks around them.
dist_check_SCRIPTS += rails/test_rails_control.py rails/test_rails_agent.py
check_LTLIBRARIES += syslog_preload.la
syslog_preload_la_SOURCES = rails/syslog_preload.c
syslog_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere

check_PROGRAMS += test_rails_senders
test_rails_senders_SOURCES = rails/test_rails_senders.c $(top_srcdir)/src/rails/controller/senders.c
test_rails_senders_LDADD = $(S)/rails/libocs_rails_frames.la $(UTIL) $(CMOCKA_LIBS) -lpthread

check_PROGRAMS += test_phases_corpus
test_phases_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_phases.c
test_phases_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"phases"'
test_phases_corpus_LDADD = $(RAILS_LIBS)

check_PROGRAMS += test_frames_corpus
test_frames_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_frames.c
test_frames_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"frames"'
test_frames_corpus_LDADD = $(S)/rails/libocs_rails_frames.la $(UTIL) $(CMOCKA_LIBS)

dist_check_SCRIPTS += rails/test_nccl_shim.sh
