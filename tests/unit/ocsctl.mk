# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

dist_check_SCRIPTS += test_ocsctl_usage.sh test_ocsctl_place.sh test_ocsctl_advise.sh test_ocsctl_plan.sh \
	test_doc_pictures.sh test_ocsctl_scripts.sh test_ocsctl_site.sh test_ocsctl_queue.sh test_ocsctl_daemon.py test_completion.sh \
	test_manuals.py test_programs.sh

check_PROGRAMS += test_obstacle
test_obstacle_SOURCES = test_obstacle.c place_random.h
test_obstacle_LDADD = $(S)/ocsctl/libocs_ctl.la $(PLACE) $(CMOCKA_LIBS)
