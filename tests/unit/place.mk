# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_shape
test_shape_SOURCES = test_shape.c
test_shape_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_place
test_place_SOURCES = test_place.c place_check.h place_random.h
test_place_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_near
test_near_SOURCES = test_near.c place_check.h
test_near_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_verify
test_verify_SOURCES = test_verify.c place_random.h
test_verify_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_ranks
test_ranks_SOURCES = test_ranks.c
test_ranks_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_family
test_family_SOURCES = test_family.c
test_family_LDADD = $(PLACE) $(CMOCKA_LIBS)

check_PROGRAMS += test_oracle
test_oracle_SOURCES = test_oracle.c
test_oracle_LDADD = $(PLACE) $(IGRAPH_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test_twisted
test_twisted_SOURCES = test_twisted.c place_check.h
test_twisted_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_thread
test_thread_SOURCES = test_thread.c place_check.h place_random.h
test_thread_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_reason
test_reason_SOURCES = test_reason.c place_check.h place_random.h
test_reason_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_leftovers
test_leftovers_SOURCES = test_leftovers.c place_check.h place_random.h
test_leftovers_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_embed
test_embed_SOURCES = test_embed.c place_check.h place_random.h
test_embed_LDADD = $(PLACE) $(IGRAPH_LIBS) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_warm
test_warm_SOURCES = test_warm.c place_check.h place_random.h
test_warm_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
test_warm_LDFLAGS = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=ocs_compact_encode -Wl,--wrap=ocs_thread_encode -Wl,--wrap=ocs_embed_encode

check_PROGRAMS += test_many
test_many_SOURCES = test_many.c place_check.h place_random.h
test_many_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)

check_PROGRAMS += test_victims
test_victims_SOURCES = test_victims.c
test_victims_LDADD = $(PLACE) $(CMOCKA_LIBS) $(JSON_LIBS)
