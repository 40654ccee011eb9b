# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

RAILS_LIBS = $(S)/rails/libocs_rails.la $(UTIL) $(CMOCKA_LIBS)

check_PROGRAMS += test_rails_menu
test_rails_menu_SOURCES = rails/test_rails_menu.c
test_rails_menu_LDADD = $(RAILS_LIBS)

check_PROGRAMS += test_rails_layout
test_rails_layout_SOURCES = rails/test_rails_layout.c
test_rails_layout_LDADD = $(S)/rails/libocs_rails.la $(S)/fold/libocs_fold.la $(UTIL) $(CMOCKA_LIBS)
