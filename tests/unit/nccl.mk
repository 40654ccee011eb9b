# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_nccl
test_nccl_SOURCES = nccl/test_nccl.c nccl/nccl_rig.c nccl/nccl_rig.h
test_nccl_LDADD = $(S)/nccl/libocs_nccl.la $(UTIL) $(JSON_LIBS) $(HWLOC_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test_nccl_graph
test_nccl_graph_SOURCES = nccl/test_nccl_graph.c nccl/nccl_rig.c nccl/nccl_rig.h
test_nccl_graph_LDADD = $(S)/nccl/libocs_nccl.la $(UTIL) $(JSON_LIBS) $(HWLOC_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test_nccl_installed
test_nccl_installed_SOURCES = nccl/test_nccl_installed.c
test_nccl_installed_LDADD = $(S)/nccl/libocs_nccl_check.la $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_nccl_check
test_nccl_check_SOURCES = nccl/test_nccl_check.c
test_nccl_check_LDADD = $(S)/nccl/libocs_nccl_check.la $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_node
test_node_SOURCES = node/test_node.c node/node_rig.c node/node_rig.h
test_node_LDADD = $(S)/nccl/libocs_nccl_check.la $(PLACE) $(JSON_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test_node_sockets
test_node_sockets_SOURCES = node/test_node_sockets.c ../../src/node/sockets.c
test_node_sockets_CPPFLAGS = $(AM_CPPFLAGS)
test_node_sockets_LDADD = $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_route_batch
test_route_batch_SOURCES = node/test_route_batch.c ../../src/node/route_batch.c
test_route_batch_CPPFLAGS = $(AM_CPPFLAGS)
test_route_batch_LDADD = $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_port_queues
test_port_queues_SOURCES = node/test_port_queues.c ../../src/node/port_queues.c ../../src/node/route_cache.c
test_port_queues_CPPFLAGS = $(AM_CPPFLAGS)
test_port_queues_LDADD = $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_route_cache
test_route_cache_SOURCES = node/test_route_cache.c ../../src/node/route_batch.c ../../src/node/route_cache.c
test_route_cache_CPPFLAGS = $(AM_CPPFLAGS)
test_route_cache_LDADD = $(UTIL) $(CMOCKA_LIBS) -lpthread

check_PROGRAMS += test_node_torus
test_node_torus_SOURCES = node/test_node_torus.c node/node_rig.c node/node_rig.h
test_node_torus_LDADD = $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_node_direct
test_node_direct_SOURCES = node/test_node_direct.c node/node_rig.c node/node_rig.h
test_node_direct_LDADD = $(S)/nccl/libocs_nccl_check.la $(UTIL) $(CMOCKA_LIBS)

dist_check_SCRIPTS += nccl/test_rings.py nccl/test_judge.py plugins/test_enroot.sh
