# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_shape
test_shape_SOURCES = fold/test_shape.c
test_shape_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_place
test_place_SOURCES = place/test_place.c place/place_check.h place/place_random.h
test_place_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_nearest_shape
test_nearest_shape_SOURCES = advice/test_nearest_shape.c place/place_check.h
test_nearest_shape_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_verify
test_verify_SOURCES = place/test_verify.c place/place_random.h
test_verify_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_task_map
test_task_map_SOURCES = layout/test_task_map.c
test_task_map_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_foldings
test_foldings_SOURCES = fold/test_foldings.c
test_foldings_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_oracle
test_oracle_SOURCES = fold/test_oracle.c
test_oracle_LDADD = $(PLACE) $(IGRAPH_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test_twisted
test_twisted_SOURCES = place/test_twisted.c place/place_check.h
test_twisted_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_thread
test_thread_SOURCES = place/test_thread.c place/place_check.h place/place_random.h
test_thread_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_reason
test_reason_SOURCES = advice/test_reason.c place/place_check.h place/place_random.h
test_reason_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_leftovers
test_leftovers_SOURCES = place/test_leftovers.c place/place_check.h place/place_random.h
test_leftovers_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_exhaustive
test_exhaustive_SOURCES = place/test_exhaustive.c place/exhaustive_placement.c \
	place/exhaustive_search.c place/exhaustive_search.h place/place_check.h place/place_random.h
test_exhaustive_LDADD = $(PLACE) $(IGRAPH_LIBS) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_warm
test_warm_SOURCES = place/test_warm.c place/place_check.h place/place_random.h
test_warm_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
test_warm_LDFLAGS = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=ocs_placement_encode -Wl,--wrap=ocs_ring_encode

check_PROGRAMS += test_catalogue
test_catalogue_SOURCES = place/test_catalogue.c place/place_check.h
test_catalogue_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_catalogue_cache
test_catalogue_cache_SOURCES = place/test_catalogue_cache.c place/place_check.h place/place_random.h
test_catalogue_cache_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_decisions
test_decisions_SOURCES = place/test_decisions.c place/place_check.h place/place_random.h
test_decisions_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_preemption
test_preemption_SOURCES = advice/test_preemption.c
test_preemption_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_region_groups
test_region_groups_SOURCES = place/test_region_groups.c place/place_random.h
test_region_groups_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
