# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_model_corpus test_matrix_corpus test_demand_corpus test_fabric_corpus test_hostlist_corpus \
	test_cost_corpus test_measured_corpus test_placement_corpus test_shape_corpus test_ocsd_corpus \
	test_taskgraph_corpus test_netsim_fabric_corpus
test_model_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_model.c
test_model_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"model"'
test_model_corpus_LDADD = $(S)/model/libocs_model.la $(FABRIC) $(CMOCKA_LIBS) -lm
test_cost_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_cost.c
test_cost_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"cost"'
test_cost_corpus_LDADD = $(S)/optimise/libocs_optimise.la $(S)/model/libocs_model.la $(FABRIC) $(JSON_LIBS) $(CMOCKA_LIBS) -lm
test_measured_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_measured.c
test_measured_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"measured"'
test_measured_corpus_LDADD = $(S)/optimise/libocs_optimise.la $(S)/model/libocs_model.la $(FABRIC) $(JSON_LIBS) $(CMOCKA_LIBS) -lm
test_matrix_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_matrix.c
test_matrix_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"matrix"'
test_matrix_corpus_LDADD = $(S)/moe/libocs_moe.la $(UTIL) $(JSON_LIBS) $(CMOCKA_LIBS) -lm
test_demand_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_demand.c
test_demand_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"demand"'
test_demand_corpus_LDADD = $(S)/plan/libocs_plan.la $(UTIL) $(JSON_LIBS) $(CMOCKA_LIBS)
test_fabric_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_fabric.c
test_fabric_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"fabric"'
test_fabric_corpus_LDADD = $(FABRIC) $(CMOCKA_LIBS)
test_hostlist_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_hostlist.c
test_hostlist_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"hostlist"'
test_hostlist_corpus_LDADD = $(UTIL) $(CMOCKA_LIBS)
test_placement_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_placement.c
test_placement_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"placement"'
test_placement_corpus_LDADD = $(PLACE) $(JSON_LIBS) $(CMOCKA_LIBS)
test_shape_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_shape.c
test_shape_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"shape"'
test_shape_corpus_LDADD = $(S)/fold/libocs_fold.la $(UTIL) $(CMOCKA_LIBS)
test_taskgraph_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_taskgraph.c
test_taskgraph_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"taskgraph"'
test_taskgraph_corpus_LDADD = $(NETSIM_FABRICS)
test_netsim_fabric_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_netsim_fabric.c
test_netsim_fabric_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"netsim_fabric"'
test_netsim_fabric_corpus_LDADD = $(NETSIM_FABRICS)

include $(srcdir)/../fuzz/ocsd.mk
test_ocsd_corpus_SOURCES = house/test_corpus.c ../fuzz/fuzz_ocsd.c $(OCSD_PARTS)
test_ocsd_corpus_CFLAGS = $(AM_CFLAGS) $(MUNGE_CFLAGS)
test_ocsd_corpus_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"ocsd"' -DOCS_SYSCONFDIR='"$(sysconfdir)"'
test_ocsd_corpus_LDADD = $(S)/protocol/libocs_protocol.la $(S)/plan/libocs_plan.la $(S)/rails/libocs_rails.la $(S)/switch/libocs_switch.la $(PLACE) \
	$(EVENT_LIBS) $(JSON_LIBS) $(SQLITE_LIBS) $(MUNGE_LIBS) $(CMOCKA_LIBS)
