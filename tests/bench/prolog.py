#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What a shape costs between `sbatch` and the first line of the script.

Two clusters of 64 slurmds each run on this machine: one with the plugins, ocsd
and the emulator (delay 0), one of plain cons_tres without a prolog of its own.
Both use PrologFlags=Alloc,DeferBatch, so that both send a prolog request to each
node and wait for all of them.  The same job of 64 nodes (in the first cluster
--shape=8x8x4 and nothing else) runs in turn in both.  Measured is the span from
the allocation (the line in slurmctld's log, in milliseconds) to the first line
of the script.  When the scheduler looks at the queue is Slurm's affair, and a
whole second or more: not part of it.

usage: prolog.py STAGE SLURM [RUNS] [--keep] [--only-ours] [--live] [--against STAGE]

With --against a third cluster runs another build of the project in turn with the others.
With --live each node asks hwloc about the machine, else it reads an XML file of it.

Prints medians, and the difference: what the project adds.
"""

import ctypes
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm"))
from cluster import Cluster, tail  # noqa: E402

KEEP_ALL = 0     # HWLOC_TYPE_FILTER_KEEP_ALL
CONFIG = {"SchedulerParameters": "bf_interval=2,sched_interval=5,batch_sched_delay=0"}


class Described(Cluster):
    """The nodes are described by a file: on one machine 64 of them would read the
    configuration space of the same PCI devices at once."""

    def ocs_yaml(self):
        return super().ocs_yaml() + "nccl: {hwloc_xml: %s}\n" % self.path("node.xml")

    def configure(self):
        hwloc, topology = ctypes.CDLL("libhwloc.so.15"), ctypes.c_void_p()
        os.makedirs(self.dir)
        hwloc.hwloc_topology_init(ctypes.byref(topology))
        hwloc.hwloc_topology_set_io_types_filter(topology, KEEP_ALL)
        hwloc.hwloc_topology_load(topology)
        if hwloc.hwloc_topology_export_xml(topology, self.path("node.xml").encode(), 0):
            raise RuntimeError("hwloc cannot describe this machine")
        super().configure()


def started(cluster, job):
    """When slurmctld allocated JOB, in seconds of the day."""
    pattern = re.compile(r"\[\S+T(\d+):(\d+):([\d.]+)\] (?:sched|backfill)"
                         r".*(?:Allocate|Started) JobId=%d " % job)
    with open(cluster.path("slurmctld.log")) as log:
        for line in log:
            match = pattern.match(line)
            if match:
                hours, minutes, seconds = match.groups()
                return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    raise RuntimeError("no start of job %d in\n%s" % (job, tail(log.name)))


def run(cluster, options):
    stamp = cluster.path("out", "stamp")
    if os.path.exists(stamp):
        os.unlink(stamp)
    job = cluster.sbatch(*options, script="date +%%s.%%N > %s.new; mv %s.new %s" % (
        stamp, stamp, stamp))
    cluster.until(lambda: os.path.exists(stamp), 120, lambda: "job %d to start\n%s" % (
        job, tail(cluster.path("slurmctld.log"), 40)))
    with open(stamp) as handle:
        first = float(handle.read())
    day = time.localtime(first)
    second = day.tm_hour * 3600 + day.tm_min * 60 + day.tm_sec + first % 1
    cluster.until(lambda: cluster.state(job) == "COMPLETED", 120, "job %d to end" % job)
    cluster.wait_idle(120)
    return (second - started(cluster, job)) % 86400


def report(name, values):
    values = sorted(values)
    print("  %-24s median %6.0f ms  min %6.0f  max %6.0f" % (
        name, statistics.median(values) * 1e3, values[0] * 1e3, values[-1] * 1e3))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # the clusters stop, too
    stage, slurm = sys.argv[1:3]
    runs = int(sys.argv[3]) if sys.argv[3:] and sys.argv[3].isdigit() else 10
    base = tempfile.mkdtemp(prefix="ocs-bench-")
    ours = (Cluster if "--live" in sys.argv else Described)(
        base + "/ours", stage, slurm, delay_ms=0, config=CONFIG)
    against = sys.argv[sys.argv.index("--against") + 1] if "--against" in sys.argv else None
    plain = Cluster(base + "/plain", stage, slurm, parts=(), config=CONFIG)
    sides = [(ours, ["--shape=8x8x4"]), (plain, ["-N", "64", "--exclusive"])]
    names = ["--shape=8x8x4", "plain cons_tres"]
    if "--only-ours" in sys.argv:
        sides.pop()
        names.pop()
    if against:
        other = Described(base + "/other", against, slurm, delay_ms=0, config=CONFIG)
        sides.append((other, ["--shape=8x8x4"]))
        names.append("the same, other build")
    times = {cluster: [] for cluster, _ in sides}
    try:
        for cluster, options in sides:
            cluster.start()
            run(cluster, options)       # warm the caches
        load = []
        for _ in range(runs):
            for cluster, options in sides:
                times[cluster].append(run(cluster, options))
            load.append(os.getloadavg()[0])
    finally:
        for cluster, _ in sides:
            cluster.stop()
        if "--keep" not in sys.argv:
            shutil.rmtree(base, ignore_errors=True)
    print("64 nodes on %d cores, %d runs in turn, load average %.1f (median)" % (
        os.cpu_count(), runs, statistics.median(load)))
    for (cluster, _), name in zip(sides, names):
        report(name, times[cluster])
    if against:
        report("difference of the builds", [a - b for a, b in zip(times[ours], times[other])])
    if plain in times:
        report("difference of each pair", [a - b for a, b in zip(times[ours], times[plain])])


if __name__ == "__main__":
    main()
