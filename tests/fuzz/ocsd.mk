# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

# ocsd without what fuzz_ocsd.c takes in whole (main.c, hello.c, server.c) or stands in for
# (worker.c).  Folders are written out: automake wants these names for make dist even where
# the conditional around this file, and with it any variable set here, is out.
OCSD_PARTS = ../../src/ocsd/ahead.c ../../src/ocsd/audit.c ../../src/ocsd/auth.c ../../src/ocsd/broken.c \
	../../src/ocsd/clock.c ../../src/ocsd/commit.c ../../src/ocsd/complain.c ../../src/ocsd/crowd.c ../../src/ocsd/direct.c ../../src/ocsd/drain.c \
	../../src/ocsd/examine.c ../../src/ocsd/forward.c ../../src/ocsd/health.c ../../src/ocsd/heard.c ../../src/ocsd/history.c \
	../../src/ocsd/http.c ../../src/ocsd/job.c ../../src/ocsd/limit.c ../../src/ocsd/listed.c ../../src/ocsd/listener.c \
	../../src/ocsd/load.c ../../src/ocsd/loop.c ../../src/ocsd/metrics.c ../../src/ocsd/open.c \
	../../src/ocsd/power.c ../../src/ocsd/quarantine.c ../../src/ocsd/realise.c ../../src/ocsd/reload.c \
	../../src/ocsd/repair.c ../../src/ocsd/request.c ../../src/ocsd/selftest.c ../../src/ocsd/service.c \
	../../src/ocsd/show.c ../../src/ocsd/standby.c ../../src/ocsd/standing.c ../../src/ocsd/store.c ../../src/ocsd/term.c \
	../../src/ocsd/transaction.c ../../src/ocsd/wait.c
