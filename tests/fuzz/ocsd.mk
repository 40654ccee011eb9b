# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

# ocsd without what fuzz_ocsd.c takes in whole (main.c, hello.c, server.c) or stands in for
# (worker.c).  Folders are written out: automake wants these names for make dist even where
# the conditional around this file, and with it any variable set here, is out.
OCSD_PARTS = ../../src/ocsd/jobs/lookahead.c ../../src/ocsd/store/audit.c ../../src/ocsd/protocol/munge.c ../../src/ocsd/jobs/degraded.c \
	../../src/ocsd/store/clock.c ../../src/ocsd/ops/commit.c ../../src/ocsd/protocol/log_limit.c ../../src/ocsd/protocol/connection_quota.c ../../src/ocsd/jobs/plan.c ../../src/ocsd/ports/drain.c \
	../../src/ocsd/switches/readback.c ../../src/ocsd/jobs/forwarding.c ../../src/ocsd/ports/signal_loss.c ../../src/ocsd/jobs/node_presence.c ../../src/ocsd/store/history.c \
	../../src/ocsd/metrics/http.c ../../src/ocsd/jobs/job.c ../../src/ocsd/protocol/rate_limit.c ../../src/ocsd/ops/reconcile.c ../../src/ocsd/protocol/listener.c \
	../../src/ocsd/jobs/restore.c ../../src/ocsd/switches/scheduler.c ../../src/ocsd/metrics/exporter.c ../../src/ocsd/store/schema.c \
	../../src/ocsd/ports/optical_power.c ../../src/ocsd/ports/quarantine.c ../../src/ocsd/jobs/connect.c ../../src/ocsd/reload.c \
	../../src/ocsd/jobs/replan.c ../../src/ocsd/protocol/dispatch.c ../../src/ocsd/ports/selftest.c ../../src/ocsd/systemd.c \
	../../src/ocsd/ops/show.c ../../src/ocsd/degraded_mode.c ../../src/ocsd/switches/status.c ../../src/ocsd/store/store.c ../../src/ocsd/protocol/fencing.c \
	../../src/ocsd/protocol/transaction.c ../../src/ocsd/ops/pending_reply.c
