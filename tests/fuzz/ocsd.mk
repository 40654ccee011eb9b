# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

# ocsd without what fuzz_ocsd.c takes in whole (main.c, handshake.c, connection.c) or stands in for
# (worker.c).  Folders are written out: automake wants these names for make dist even where
# the conditional around this file, and with it any variable set here, is out.
OCSD_PARTS = ../../src/ocsd/degraded_mode.c ../../src/ocsd/jobs/allocation.c \
	../../src/ocsd/jobs/circuits.c ../../src/ocsd/jobs/connect.c ../../src/ocsd/jobs/job_state.c ../../src/ocsd/jobs/degraded.c ../../src/ocsd/jobs/rail_fault.c ../../src/ocsd/jobs/forwarding.c \
	../../src/ocsd/jobs/lifecycle.c ../../src/ocsd/jobs/lookahead.c ../../src/ocsd/jobs/menu.c ../../src/ocsd/jobs/region.c ../../src/ocsd/jobs/node_presence.c \
	../../src/ocsd/jobs/plan.c ../../src/ocsd/jobs/replan.c ../../src/ocsd/jobs/restore.c ../../src/ocsd/jobs/routes.c ../../src/ocsd/jobs/topology.c ../../src/ocsd/jobs/transition.c \
	../../src/ocsd/metrics/exporter.c ../../src/ocsd/metrics/http.c ../../src/ocsd/ops/apply.c \
	../../src/ocsd/ops/commit.c ../../src/ocsd/ops/drain.c ../../src/ocsd/ops/end.c \
	../../src/ocsd/ops/operations.c ../../src/ocsd/ops/prepare.c ../../src/ocsd/ops/presence.c \
	../../src/ocsd/ops/queue.c ../../src/ocsd/ops/reconcile.c ../../src/ocsd/ops/release.c ../../src/ocsd/ops/routes.c \
	../../src/ocsd/ops/gates.c ../../src/ocsd/ops/show.c ../../src/ocsd/ops/show_menus.c ../../src/ocsd/ops/show_phases.c ../../src/ocsd/ops/show_region.c ../../src/ocsd/ops/topo.c ../../src/ocsd/ops/subscribe.c ../../src/ocsd/ops/unable.c \
	../../src/ocsd/ports/drain.c ../../src/ocsd/ports/optical_power.c ../../src/ocsd/ports/quarantine.c \
	../../src/ocsd/ports/selftest.c ../../src/ocsd/ports/signal_loss.c \
	../../src/ocsd/protocol/connection_quota.c ../../src/ocsd/protocol/controller.c ../../src/ocsd/protocol/dispatch.c \
	../../src/ocsd/protocol/fencing.c ../../src/ocsd/protocol/listener.c \
	../../src/ocsd/protocol/log_limit.c ../../src/ocsd/protocol/munge.c \
	../../src/ocsd/protocol/pending_reply.c ../../src/ocsd/protocol/rate_limit.c \
	../../src/ocsd/protocol/role.c ../../src/ocsd/protocol/transaction.c ../../src/ocsd/reload.c ../../src/ocsd/settle.c \
	../../src/ocsd/state/counters.c ../../src/ocsd/state/events.c ../../src/ocsd/state/job_states.c ../../src/ocsd/state/menus.c ../../src/ocsd/state/out_of_service.c \
	../../src/ocsd/state/switch_state.c ../../src/ocsd/store/audit.c ../../src/ocsd/store/clock.c \
	../../src/ocsd/store/history.c ../../src/ocsd/store/schema.c ../../src/ocsd/store/store.c \
	../../src/ocsd/switches/notification.c ../../src/ocsd/switches/readback.c \
	../../src/ocsd/switches/scheduler.c ../../src/ocsd/switches/status.c ../../src/ocsd/systemd.c
