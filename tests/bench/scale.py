#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What the plugins cost slurmctld at 4096 nodes.

Two clusters of 4096 CLOUD nodes (no slurmd at all: jobs are allocated and stay
there until they are cancelled): one of cons_tres and topology/default, one of the
plugins over 64 cubes of 4x4x4 with one XPU a node, ocsd and the emulator.  Each
round sends the same number of jobs to both, in turn: unshaped ones to compare
with, and shaped ones of the same number of nodes.  A round is

  submit     JOBS times sbatch while the partition is down
  main       the partition goes up: the cycle that fills the machine
  backfill   the cycles over those that wait

usage: scale.py STAGE SLURM [ROUNDS [JOBS [STREAM...]]]

Prints medians over the rounds, and ratios to cons_tres in the same round.
"""

import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm"))
from cloud import Cloud  # noqa: E402

STREAMS = (     # name, cluster, options, the stream to compare with
    ("16 nodes, cons_tres", "plain", "-N 16 --exclusive", None),
    ("16 nodes, our plugins", "ours", "-N 16 --exclusive", "16 nodes, cons_tres"),
    ("--shape=4x4", "ours", "--shape=4x4", "16 nodes, cons_tres"),
    ("64 nodes, cons_tres", "plain", "-N 64 --exclusive", None),
    ("64 nodes, our plugins", "ours", "-N 64 --exclusive", "64 nodes, cons_tres"),
    ("--shape=4x4x4", "ours", "--shape=4x4x4", "64 nodes, cons_tres"),
    ("--shape=8x8", "ours", "--shape=8x8", "64 nodes, cons_tres"),
)
MEASURES = (    # key, heading, a larger number is better
    ("rate", "submits/s", True),
    ("client", "sbatch CPU ms", False),
    ("rpc", "submit RPC us", False),
    ("daemon", "its CPU us", False),
    ("main", "main max ms", False),
    ("main_cpu", "CPU ms", False),
    ("cycles", "cycles", None),
    ("backfill", "backfill ms", False),
    ("backfill_cpu", "CPU ms", False),
    ("running", "running", None),
    ("memory", "RSS MB", None),
)
CONFIG = {
    "SchedulerParameters": "bf_interval=6,batch_sched_delay=0,bf_max_job_test=1000,default_queue_depth=1000,"
                           "sched_interval=5,bf_window=2880,bf_continue",
    "MinJobAge": "5",
}


class Bench(Cloud):
    def sdiag(self):
        """{name: microseconds or count} of what is used here."""
        text = self.out(["sdiag"])
        main, backfill = text.split("Main schedule statistics")[1].split("Backfilling stats")
        found = {}
        for name, part in (("main", main), ("backfill", backfill)):
            for what in ("Last cycle", "Max cycle", "Mean cycle", "Total cycles"):
                match = re.search(r"%s:\s+(\d+)" % what, part)
                found[name + " " + what] = int(match.group(1)) if match else 0
        match = re.search(r"REQUEST_SUBMIT_BATCH_JOB.*?ave_time:(\d+)", text)
        found["submit"] = int(match.group(1)) if match else 0
        return found


def measure(cluster, options, jobs):
    """One round of one stream."""
    cluster.run(["scontrol", "update", "PartitionName=tpu", "State=DOWN"])
    cluster.run(["sdiag", "--reset"])
    start, client, daemon = time.monotonic(), os.times(), cluster.cpu_all()
    cluster.run("for i in $(seq %d); do sbatch -Q -o /dev/null -t $((60 + i %% 60)) %s --wrap "
                "'sleep 1000' >/dev/null || exit 1; done" % (jobs, options), timeout=600)
    result = {"rate": jobs / (time.monotonic() - start)}
    result["client"] = sum(os.times()[2:4]) - sum(client[2:4])
    result["client"] *= 1e3 / jobs
    result["daemon"] = (cluster.cpu_all() - daemon) * 1e6 / jobs
    result["rpc"] = cluster.sdiag()["submit"]
    time.sleep(3)       # the scheduler looks at what was submitted
    cluster.run(["sdiag", "--reset"])
    before = cluster.cpu("sched_agent")
    cluster.run(["scontrol", "update", "PartitionName=tpu", "State=UP"])
    last = -1
    while last < 1 or last != cluster.count("CF,R"):
        last = cluster.count("CF,R")
        time.sleep(2)
    result["running"] = last
    # Where the backfill scheduler came first there was nothing left to fill.
    result["main"] = cluster.sdiag()["main Max cycle"] / 1e3
    result["cycles"] = cluster.sdiag()["main Total cycles"]
    result["main_cpu"] = cluster.cpu("sched_agent") - before
    cycles = []
    waiting = cluster.out("squeue -h -t PD -o %A | tail -n 1").strip()
    for number in range(3):
        cluster.run(["sdiag", "--reset"])
        # the backfill scheduler rests while nothing changes
        cluster.run(["scontrol", "update", "JobId=" + waiting, "Comment=%d" % number])
        before = cluster.cpu("bckfl")
        cluster.until(lambda: cluster.sdiag()["backfill Total cycles"], 120, "a backfill cycle")
        cycles.append((cluster.sdiag()["backfill Last cycle"] / 1e3, cluster.cpu("bckfl") - before))
    result["backfill"] = statistics.median(cycle[0] for cycle in cycles)
    result["backfill_cpu"] = statistics.median(cycle[1] for cycle in cycles)
    result["memory"] = cluster.memory()
    cluster.run("squeue -h -o %A | xargs -r scancel", timeout=300)
    cluster.until(lambda: not cluster.out(["squeue", "-h"]).strip(), 120, "the queue to be empty")
    time.sleep(1)
    return result


def report(results):
    print("%-22s" % "" + "".join("%14s" % heading for _, heading, _ in MEASURES))
    for name, _, _, base in STREAMS:
        if name not in results:
            continue
        rows = results[name]
        print("%-22s" % name + "".join(
            "%14.1f" % statistics.median(row[key] for row in rows) for key, _, _ in MEASURES))
        if base in results:
            print("%-22s" % "  ratio of each round" + "".join(
                "%14s" % ("" if better is None else "%.2f" % statistics.median(
                    row[key] / other[key] if other[key] else 0
                    for row, other in zip(rows, results[base])))
                for key, _, better in MEASURES))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # the clusters stop, too
    stage, slurm = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    jobs = int(sys.argv[4]) if len(sys.argv) > 4 else 400
    base = tempfile.mkdtemp(prefix="ocs-bench-")
    options = {"cubes": 64, "tile": (1, 1, 1), "delay_ms": 0, "config": CONFIG}
    clusters = {"plain": Bench(base + "/plain", stage, slurm, parts=(), **options),
                "ours": Bench(base + "/ours", stage, slurm, **options)}
    streams = [stream for stream in STREAMS if not sys.argv[5:] or stream[0] in sys.argv[5:]]
    results = {name: [] for name, _, _, _ in streams}
    load = []
    try:
        for cluster in clusters.values():
            cluster.start()
        for number in range(rounds):
            for name, side, line, _ in streams:
                results[name].append(measure(clusters[side], line, jobs))
                load.append(os.getloadavg()[0])
                print("# %d %s: %s" % (number, name, " ".join(
                    "%s %.1f" % pair for pair in results[name][-1].items())), file=sys.stderr)
    finally:
        for cluster in clusters.values():
            cluster.stop()
        if "--keep" not in sys.argv:
            shutil.rmtree(base, ignore_errors=True)
    print("4096 CLOUD nodes, %d jobs a round, %d rounds, %d cores, load average %.1f (median)" % (
        jobs, rounds, os.cpu_count(), statistics.median(load)))
    report(results)


if __name__ == "__main__":
    main()
