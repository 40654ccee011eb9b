# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

check_PROGRAMS += test_config test_expr test_fabric test_load test_occupancy
test_config_SOURCES = config/test_config.c
test_config_LDADD = $(FABRIC) $(CMOCKA_LIBS)
test_expr_SOURCES = config/test_expr.c
test_expr_LDADD = $(FABRIC) $(CMOCKA_LIBS)
test_fabric_SOURCES = fabric/test_fabric.c
test_fabric_LDADD = $(FABRIC) $(CMOCKA_LIBS)
test_load_SOURCES = config/test_load.c
test_load_LDADD = $(FABRIC) $(CMOCKA_LIBS)
test_occupancy_SOURCES = fabric/test_occupancy.c
test_occupancy_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_load_links
test_load_links_SOURCES = config/test_load_links.c
test_load_links_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_load_ahead
test_load_ahead_SOURCES = config/test_load_ahead.c
test_load_ahead_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_compatible
test_compatible_SOURCES = fabric/test_compatible.c
test_compatible_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_load_addresses
test_load_addresses_SOURCES = config/test_load_addresses.c
test_load_addresses_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_load_regions
test_load_regions_SOURCES = config/test_load_regions.c
test_load_regions_LDADD = $(FABRIC) $(CMOCKA_LIBS)

check_PROGRAMS += test_load_nic_ports
test_load_nic_ports_SOURCES = config/test_load_nic_ports.c
test_load_nic_ports_LDADD = $(FABRIC) $(CMOCKA_LIBS)
