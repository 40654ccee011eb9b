# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

dist_check_SCRIPTS += ocsctl/test_ocsctl_usage.sh ocsctl/test_ocsctl_place.sh ocsctl/test_ocsctl_advise.sh ocsctl/test_ocsctl_plan.sh \
	ocsctl/test_doc_pictures.sh ocsctl/test_ocsctl_scripts.sh ocsctl/test_ocsctl_site.sh ocsctl/test_ocsctl_queue.sh ocsctl/test_ocsctl_daemon.py house/test_completion.sh \
	house/test_manuals.py house/test_programs.sh

check_PROGRAMS += test_blockers
test_blockers_SOURCES = ocsctl/test_blockers.c place/place_random.h
test_blockers_LDADD = $(S)/ocsctl/libocs_ctl.la $(PLACE) $(CMOCKA_LIBS)
