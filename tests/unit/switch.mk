# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

SWITCH = $(S)/switch/libocs_switch.la $(FABRIC)

check_PROGRAMS += test_switch_diff test_switch_tl1 test_switch_driver test_emulator \
	test_emulator_driver test_switch_suite
test_switch_diff_SOURCES = switch/test_switch_diff.c
test_switch_diff_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_switch_tl1_SOURCES = switch/test_switch_tl1.c
test_switch_tl1_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_switch_driver_SOURCES = switch/test_switch_driver.c switch/tl1_peer.c switch/tl1_peer.h
test_switch_driver_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_emulator_SOURCES = switch/test_emulator.c switch/emulator_peer.c switch/emulator_peer.h
test_emulator_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_emulator_driver_SOURCES = switch/test_emulator_driver.c switch/emulator_peer.c switch/emulator_peer.h
test_emulator_driver_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_switch_suite_SOURCES = switch/test_switch_suite.c switch/emulator_peer.c switch/emulator_peer.h
test_switch_suite_LDADD = $(SWITCH) $(CMOCKA_LIBS) -lm

check_PROGRAMS += test_switch_netconf
test_switch_netconf_SOURCES = switch/test_switch_netconf.c
test_switch_netconf_LDADD = $(SWITCH) $(CMOCKA_LIBS) -lm
check_PROGRAMS += test_netconf_corpus test_scpi_corpus test_tl1_corpus
test_netconf_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_netconf.c
test_netconf_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"netconf"'
test_netconf_corpus_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_scpi_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_scpi.c
test_scpi_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"scpi"'
test_scpi_corpus_LDADD = $(SWITCH) $(CMOCKA_LIBS)
test_tl1_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_tl1.c
test_tl1_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tl1"'
test_tl1_corpus_LDADD = $(SWITCH) $(CMOCKA_LIBS)
if HAVE_LIBSSH
check_PROGRAMS += test_netconf_driver
test_netconf_driver_SOURCES = switch/test_netconf_driver.c switch/emulator_peer.c switch/emulator_peer.h
test_netconf_driver_LDADD = $(SWITCH) $(CMOCKA_LIBS)
check_PROGRAMS += test_netconf_danger
test_netconf_danger_SOURCES = switch/test_netconf_danger.c switch/emulator_peer.c switch/emulator_peer.h
test_netconf_danger_LDADD = $(SWITCH) $(CMOCKA_LIBS) $(JSON_LIBS)
check_PROGRAMS += test_netconf_strange
test_netconf_strange_SOURCES = switch/test_netconf_strange.c switch/netconf_peer.c switch/netconf_peer.h
test_netconf_strange_CFLAGS = $(AM_CFLAGS) $(SSH_CFLAGS) -Wno-deprecated-declarations
test_netconf_strange_LDADD = $(SWITCH) $(CMOCKA_LIBS) $(SSH_LIBS)
check_PROGRAMS += test_netconf_yuma
test_netconf_yuma_SOURCES = switch/test_netconf_yuma.c switch/yuma_peer.c switch/yuma_peer.h
test_netconf_yuma_LDADD = $(SWITCH) $(CMOCKA_LIBS)
endif

check_PROGRAMS += test_switch_scpi
test_switch_scpi_SOURCES = switch/test_switch_scpi.c
test_switch_scpi_LDADD = $(SWITCH) $(CMOCKA_LIBS) -lpthread -lm

check_PROGRAMS += test_switch_danger
test_switch_danger_SOURCES = switch/test_switch_danger.c switch/emulator_peer.c switch/emulator_peer.h
test_switch_danger_LDADD = $(SWITCH) $(CMOCKA_LIBS) -lpthread

check_PROGRAMS += test_switch_lost
test_switch_lost_SOURCES = switch/test_switch_lost.c
test_switch_lost_LDADD = $(SWITCH) $(CMOCKA_LIBS)

dist_check_SCRIPTS += house/test_storm_judge.sh house/test_soak_judge.sh
check_PROGRAMS += test_switch_withhold
test_switch_withhold_SOURCES = switch/test_switch_withhold.c switch/tl1_peer.c switch/tl1_peer.h
test_switch_withhold_LDADD = $(SWITCH) $(CMOCKA_LIBS)
