# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

# ocsd without what fuzz_ocsd.c takes in whole (main.c, server.c) or stands in for
# (worker.c).
D = ../../src/ocsd
OCSD_PARTS = $(D)/ahead.c $(D)/audit.c $(D)/auth.c $(D)/broken.c $(D)/clock.c $(D)/commit.c $(D)/direct.c \
	$(D)/drain.c $(D)/examine.c $(D)/forward.c $(D)/health.c $(D)/history.c $(D)/job.c \
	$(D)/limit.c $(D)/load.c $(D)/loop.c $(D)/metrics.c $(D)/open.c $(D)/power.c \
	$(D)/quarantine.c $(D)/realise.c $(D)/reload.c $(D)/repair.c $(D)/request.c \
	$(D)/selftest.c $(D)/service.c $(D)/show.c $(D)/standby.c $(D)/store.c \
	$(D)/transaction.c $(D)/wait.c
