# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

MOE_LIBS = $(S)/moe/libocs_moe.la $(UTIL) $(CMOCKA_LIBS) $(JSON_LIBS) -lm

check_PROGRAMS += test_moe_allocate
test_moe_allocate_SOURCES = moe/test_moe_allocate.c moe/gates.c moe/gates.h
test_moe_allocate_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_routes
test_moe_routes_SOURCES = moe/test_moe_routes.c moe/gates.c moe/gates.h
test_moe_routes_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_wires
test_moe_wires_SOURCES = moe/test_moe_wires.c moe/gates.c moe/gates.h
test_moe_wires_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_predict
test_moe_predict_SOURCES = moe/test_moe_predict.c moe/gates.c moe/gates.h
test_moe_predict_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_control_random
test_moe_control_random_SOURCES = moe/test_moe_control_random.c moe/gates.c moe/gates.h
test_moe_control_random_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_control
test_moe_control_SOURCES = moe/test_moe_control.c moe/gates.c moe/gates.h
test_moe_control_LDADD = $(MOE_LIBS)

check_PROGRAMS += test_moe_alltoall
test_moe_alltoall_SOURCES = moe/test_moe_alltoall.c moe/gates.c moe/gates.h
test_moe_alltoall_LDADD = $(S)/moe/libocs_moe_job.la $(MOE_LIBS)

check_PROGRAMS += test_moe_steps
test_moe_steps_SOURCES = moe/test_moe_steps.c
test_moe_steps_LDADD = $(S)/moe/libocs_moe_job.la $(MOE_LIBS)

check_PROGRAMS += test_moe_gate
test_moe_gate_SOURCES = moe/test_moe_gate.c moe/gates.c moe/gates.h
test_moe_gate_LDADD = $(S)/moe/libocs_moe_job.la $(MOE_LIBS)

check_PROGRAMS += test_moe_gate_corpus test_moe_plan_corpus test_moe_region_corpus
test_moe_gate_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_moe_gate.c
test_moe_gate_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"moe_gate"' -DCORPUS_LEAST=5
test_moe_gate_corpus_LDADD = $(S)/moe/libocs_moe_job.la $(UTIL) $(CMOCKA_LIBS)
test_moe_plan_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_moe_plan.c
test_moe_plan_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"moe_plan"' -DCORPUS_LEAST=5
test_moe_plan_corpus_LDADD = $(S)/moe/libocs_moe_job.la $(UTIL) $(CMOCKA_LIBS)
test_moe_region_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_moe_region.c
test_moe_region_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"moe_region"' -DCORPUS_LEAST=5
test_moe_region_corpus_LDADD = $(S)/moe/libocs_moe_controller.la $(S)/moe/libocs_moe.la $(S)/moe/libocs_moe_job.la $(S)/place/libocs_place.la \
	$(S)/fold/libocs_fold.la $(S)/protocol/libocs_protocol.la $(FABRIC) $(GLPK_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS) -lm

check_PROGRAMS += test_moe_nccl
test_moe_nccl_SOURCES = moe/test_moe_nccl.c moe/gates.c moe/gates.h moe/stand_in/nccl.h
test_moe_nccl_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/moe/job -I$(srcdir)/moe/stand_in
test_moe_nccl_LDADD = $(S)/moe/libocs_moe_job.la $(MOE_LIBS)

dist_check_SCRIPTS += ocsctl/test_ocsctl_region.sh moe/test_moe_optimum.py moe/test_moe_nccl_header.sh

check_PROGRAMS += test_moe_controller
test_moe_controller_SOURCES = moe/test_moe_controller.c moe/controller_bench.c moe/controller_bench.h $(OCSD_RIG)
test_moe_controller_LDADD = $(S)/moe/libocs_moe_job.la $(OCSD_RIG_LIBS)

check_PROGRAMS += test_moe_relay
test_moe_relay_SOURCES = moe/test_moe_relay.c moe/controller_bench.c moe/controller_bench.h $(OCSD_RIG)
test_moe_relay_LDADD = $(S)/moe/libocs_moe_job.la $(S)/rails/libocs_rails_frames.la $(OCSD_RIG_LIBS)
