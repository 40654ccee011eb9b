#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What the plugins cost slurmctld at 4096 nodes, or 16384.

The nodes are CLOUD nodes that never come (no slurmd at all): jobs are allocated and stay
until they are cancelled.

usage: scale.py STAGE SLURM main        [--machine 64|256|1024] [--jobs 250] [--rounds 3] [--fills 7]
       scale.py STAGE SLURM backfill    [the same]
       scale.py STAGE SLURM stopped     [the same]
       scale.py STAGE SLURM utilisation [--machine 64|256|1024] [--steps 40]
       scale.py STAGE SLURM growth      [--machine 64|256|1024] [--starts 10000] [--plain]

main         The same stream of jobs (shapes drawn from the published mix of TPU v4 slices)
             goes to three slurmctlds that run at the same time: cons_tres with
             topology/default, the plugins with unshaped jobs of as many nodes, and the
             plugins with shapes.  Submissions alternate between the three, forwards and
             backwards; then all three fill their machines at the same time, again and
             again, with no backfill scheduler, and the CPU time of the main scheduler's
             thread is read.  Ratios are of what happened together: their median, and an
             interval that holds it in 95 of 100 resamples.
backfill     The same for backfill cycles over what waits, two after each time that the
             machines were filled.
stopped      backfill for two with shapes; ocsd of the second gets SIGSTOP before the machine is
             filled and SIGCONT after the backfill cycles.
utilisation  Closed loop: a quarter of the running jobs ends, the queue fills the room.
growth       Job starts as fast as possible; job records that slurmctld keeps (those of ended jobs
             go once a minute) and its resident memory meanwhile.

--machine 64: 64 cubes of 4x4x4, one XPU a node.  256, 1024: so many cubes, 2x2x1 XPUs a node: 16384 nodes on 1024.
"""

import argparse
import csv
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm"))
from cloud import Cloud  # noqa: E402

MACHINES = {64: {"cubes": 64, "tile": (1, 1, 1)}, 256: {"cubes": 256, "tile": (2, 2, 1)},
            1024: {"cubes": 1024, "tile": (2, 2, 1)}}
CONFIG = {
    "SchedulerParameters": "bf_interval=%d,batch_sched_delay=0,bf_max_job_test=1000,sched_interval=60,"
                           "default_queue_depth=1000,bf_window=2880,bf_continue,bf_max_time=300,max_sched_time=50",
    "MessageTimeout": "100",    # a cycle may take half of it; by itself it ends after 2 s, on a busy machine early
    "MinJobAge": "2", "MaxArraySize": "10001",
}


class Bench(Cloud):
    shaped = stopped = False
    alone = False       # the main scheduler, without backfill

    def sdiag(self):
        """{name: microseconds or count} of what is used here."""
        text = self.out(["sdiag"])
        main, backfill = text.split("Main schedule statistics")[1].split("Backfilling stats")
        found = {"started": int(re.search(r"Jobs started:\s+(\d+)", text).group(1)),
                 "backfilled": int(re.search(r"stats cycle start\):\s+(\d+)", text).group(1))}
        for name, part in (("main", main), ("backfill", backfill)):
            for what in ("Last cycle", "Max cycle", "Total cycles"):
                match = re.search(r"%s:\s+(\d+)" % what, part)
                found[name + " " + what] = int(match.group(1)) if match else 0
        return found

    def partition(self, state):
        self.run(["scontrol", "update", "PartitionName=tpu", "State=" + state])

    def settled(self):
        """The number of jobs with nodes, when it does not change any more."""
        last = -1
        while last < 1 or last != self.count("CF,R"):
            last = self.count("CF,R")
            time.sleep(0.7)
        return last

    def empty(self, states="PD,CF,R"):
        """Ends all jobs in STATES and closes the partition."""
        self.partition("DOWN")
        self.run("squeue -h -t %s -o %%A | sort -u | xargs -r scancel" % states, timeout=300)
        self.until(lambda: not self.count(states), 120, "the queue to be empty")

    def heap(self):
        """MB that slurmctld's heap has in use (what free() has got back stays in RSS); 0 without gdb."""
        self.run(["gdb", "-p", self.pid, "-batch", "-ex", "call (void)malloc_stats()"], check=False)
        with open(self.path("slurmctld.err"), errors="replace") as handle:
            found = re.findall(r"Total \(incl. mmap\):\n.*\nin use bytes +=\s*(\d+)", handle.read())
        return int(found[-1]) / 1e6 if found else 0

    def daemon_memory(self, name):
        """Resident MB of another daemon of this cluster."""
        return int(self.out("cat /proc/$(pgrep -x %s)/status | grep VmRSS" % name).split()[1]) / 1e3


# ---- streams ----

def nodes_of(stage, shape, machine):
    fabric = "torus cubes:%d cube:4x4x4 tile:%dx%dx%d" % (
        MACHINES[machine]["cubes"], *MACHINES[machine]["tile"])
    done = subprocess.run([stage + "/bin/ocsctl", "place", shape, "--fabric", fabric, "--json"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return len({xpu["node"] for xpu in json.loads(done.stdout)["xpus"]})


def published(stage, machine, seed, count):
    """COUNT times (shape, nodes, minutes), drawn from the mix of TPU v4 slices; nothing above
    a quarter of the machine."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as trace:
        subprocess.run([stage + "/bin/ocs-sim", "--policy", "best", "--workload", "tpu-v4", "-q",
                        "--fabric", "torus cubes:64 cube:4x4x4 tile:1x1x1", "--hours", "400",
                        "--seed", str(seed), "--write-trace", trace.name],
                       stdout=subprocess.DEVNULL, check=True)
        with open(trace.name) as handle:
            rows = [row for row in csv.reader(handle) if not row[0].startswith("#")]
    known, jobs = {}, []
    for row in rows:
        shape = row[3] + ("_twisted" if row[2].endswith("_T") else "")
        if int(row[4]) > MACHINES[machine]["cubes"] * 64 / 4:
            continue
        if shape not in known:
            known[shape] = nodes_of(stage, shape, machine)
        jobs.append((shape, known[shape], 60 + len(jobs) % 60))
    return jobs[:count]


def submit(cluster, jobs):
    lines = "".join("%s -t %d\n" % ("--shape=" + shape if cluster.shaped else
                                    "-N%d --exclusive" % nodes, minutes)
                    for shape, nodes, minutes in jobs)
    cluster.run("while read line; do sbatch -Q -o /dev/null $line --wrap 'sleep 1000' >/dev/null "
                "</dev/null || exit 1; done", stdin=lines, timeout=300)


# ---- cycles ----

def nudge(cluster, number):
    """The backfill scheduler rests while nothing changes.  A cycle under way must end first: what is
    left of it would be taken for a whole one.  (At rest its thread still wakes once a second.)"""
    waiting = cluster.out("squeue -h -t PD -o %A | tail -n 1").strip()
    for _ in range(30):
        before = cluster.cpu("bckfl")
        time.sleep(1)
        if cluster.cpu("bckfl") - before < 20:
            break
    cluster.run(["sdiag", "--reset"])
    cluster.before = cluster.cpu("bckfl")
    cluster.run(["scontrol", "update", "JobId=" + waiting, "Comment=%d" % number])


def backfill(clusters, number):
    """{name: (CPU ms of one backfill cycle, its length, cycles)}, all at the same time."""
    found = {}
    for cluster in clusters.values():
        nudge(cluster, number)
    for name, cluster in clusters.items():
        cluster.until(lambda: cluster.sdiag()["backfill Total cycles"], 300, "a backfill cycle")
        cpu, rows = cluster.cpu("bckfl"), cluster.sdiag()
        found[name] = ((cpu - cluster.before) / rows["backfill Total cycles"],
                       rows["backfill Max cycle"] / 1e3)
    return found


def fill(clusters, results):
    """The main cycle that fills the machine; not counted if the backfill scheduler helped."""
    found = {}
    for cluster in clusters.values():
        cluster.run(["sdiag", "--reset"])
        cluster.before = cluster.cpu("sched_agent")
    for cluster in clusters.values():
        cluster.partition("UP")
    for name, cluster in clusters.items():
        cluster.until(lambda: cluster.sdiag()["main Total cycles"], 60, "a cycle")
        cpu, rows = cluster.cpu("sched_agent"), cluster.sdiag()
        found[name] = ((cpu - cluster.before) / max(1, rows["started"]),
                       rows["main Max cycle"] / 1e3, rows["started"],
                       rows["backfill Total cycles"] + rows["backfilled"])
    if all(row[2] and not row[3] for row in found.values()):
        for name, row in found.items():
            results[name]["CPU ms of the main cycle for a job it starts"].append(row[0])
            results[name]["that cycle ms"].append(row[1])
            results[name]["jobs it starts"].append(row[2])
    for name, cluster in clusters.items():
        results[name]["jobs that run"].append(cluster.settled())


def answers(cluster):
    """Milliseconds of one squeue."""
    start = time.monotonic()
    cluster.out(["squeue", "-h", "-t", "R"])
    return (time.monotonic() - start) * 1e3


def one_round(clusters, jobs, fills, results, number):
    order = list(clusters) if number % 2 else list(clusters)[::-1]
    for at in range(0, len(jobs), 25):
        for name in (order if at // 25 % 2 else order[::-1]):
            part = jobs[at:at + 25]
            start, daemon = time.monotonic(), clusters[name].cpu_all()
            submit(clusters[name], part)
            results[name]["submits/s"].append(len(part) / (time.monotonic() - start))
            results[name]["slurmctld CPU ms a submission"].append(
                (clusters[name].cpu_all() - daemon) * 1e3 / len(part))
    for _ in range(fills):
        if not all(cluster.count("PD") for cluster in clusters.values()):
            break       # one has none left
        for cluster in clusters.values():
            if cluster.stopped:
                cluster.run(["pkill", "-STOP", "-x", "ocsd"])
        fill(clusters, results)
        for cycle in range(0 if clusters[order[0]].alone else 2):
            if not all(cluster.count("PD") for cluster in clusters.values()):
                break
            for name, found in backfill(clusters, cycle).items():
                results[name]["CPU ms of a backfill cycle"].append(found[0])
                results[name]["backfill cycle ms"].append(found[1])
                results[name]["squeue ms"].append(answers(clusters[name]))
        for cluster in clusters.values():
            if cluster.stopped:
                cluster.run(["pkill", "-CONT", "-x", "ocsd"])
            cluster.empty("CF,R")
    for name, cluster in clusters.items():
        results[name]["RSS MB"].append(cluster.memory())
        results[name]["heap in use MB"].append(cluster.heap())
        cluster.empty()


def interval(ratios):
    """The median and the interval of 95 of 100 medians of resamples."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def report(results, base):
    names = list(results)
    for measure in results[base]:
        if results[base][measure]:
            print(measure)
        for name in names:
            values, others = results[name][measure], results[base][measure]
            if not values:
                continue
            line = "    %-28s %10.2f" % (name, statistics.median(values))
            pairs = [a / b for a, b in zip(values, others) if b]
            if name != base and pairs:
                line += "   ratio %.3f (%.3f to %.3f, %d pairs)" % (*interval(pairs), len(pairs))
            print(line)


def run_cycles(make, options, sides, base):
    clusters = {name: make(name, **side) for name, side in sides.items()}
    measures = ("submits/s", "slurmctld CPU ms a submission",
                "CPU ms of the main cycle for a job it starts", "that cycle ms", "jobs it starts",
                "jobs that run", "CPU ms of a backfill cycle",
                "backfill cycle ms", "squeue ms", "RSS MB", "heap in use MB")
    results = {name: {measure: [] for measure in measures} for name in clusters}
    load = []
    for cluster in clusters.values():
        cluster.empty()
    for number in range(options.rounds + 1):
        jobs = published(options.stage, options.machine, number + 1, options.jobs)
        if not number:      # the first one warms up
            one_round(clusters, jobs[:50], 1, {name: {m: [] for m in measures} for name in clusters}, 0)
            continue
        one_round(clusters, jobs, options.fills, results, number)
        load.append(os.getloadavg()[0])
        print("# round %d of %d, load %.1f" % (number, options.rounds, load[-1]), file=sys.stderr)
    print("%d jobs a round, %d rounds, %d times filled a round; load average %.1f (median) on %d cores" % (
        options.jobs, options.rounds, options.fills, statistics.median(load), os.cpu_count()))
    report(results, base)


# ---- utilisation ----

def utilisation(make, options):
    """Jobs of 64 to 1024 XPUs (powers of two, as many XPU of each) wait all the time."""
    shapes = {64: "4x4x4", 128: "4x4x8", 256: "4x8x8", 512: "8x8x8", 1024: "8x8x16"}
    nodes = {size: nodes_of(options.stage, shape, options.machine) for size, shape in shapes.items()}
    for name, side in (("cons_tres", {"parts": ()}), ("plugins, shapes", {"shaped": True})):
        cluster, draw, used = make(name, **side), random.Random(1), []
        total, waiting = len(cluster.nodes), 0
        weights = [1 / size for size in shapes]

        def more(count):
            sizes = draw.choices(list(shapes), weights, k=count)
            submit(cluster, [(shapes[size], nodes[size], 60) for size in sizes])

        more(120)
        for step in range(options.steps):
            cluster.settled()
            rows = [line.split() for line in cluster.out(
                ["squeue", "-h", "-o", "%A %D %t"]).splitlines()]
            running = [row for row in rows if row[2] in ("CF", "R")]
            waiting = len(rows) - len(running)
            used.append(sum(int(row[1]) for row in running) / total)
            cluster.run(["scancel"] + [row[0] for row in draw.sample(running, max(1, len(running) // 4))])
            if waiting < 60:
                more(40)
            cluster.run(["scontrol", "update", "PartitionName=tpu", "State=UP"])
            time.sleep(1)
        print("%-18s utilisation %.3f (mean of %d, least %.3f)" % (
            name, statistics.mean(used), len(used), min(used)))
        cluster.stop()


# ---- growth ----

def growth(make, options):
    """Arrays of short life: all that runs is cancelled again and again."""
    cluster = make("growth", **({"parts": ()} if options.plain else {"shaped": True}))
    shape, nodes = "4x4", nodes_of(options.stage, "4x4", options.machine)
    what = "-N%d --exclusive" % nodes if options.plain else "--shape=" + shape
    started, began, next_report = 0, time.monotonic(), 0
    print("%8s %8s %8s %8s %12s %8s" % ("starts", "seconds", "records", "RSS MB", "heap used MB", "ocsd MB"))
    while True:
        if started >= next_report or started >= options.starts:
            # slurmctld purges the records of what has ended once a minute.
            print("%8d %8.1f %8d %8.1f %12.1f %8.1f" % (
                started, time.monotonic() - began, cluster.count("all"), cluster.memory(), cluster.heap(),
                0 if options.plain else cluster.daemon_memory("ocsd")), flush=True)
            next_report = started + max(1000, options.starts // 20)
        if started >= options.starts:
            break
        count = min(1000, options.starts - started)
        cluster.run("sbatch -Q -o /dev/null --array=0-%d %s --wrap 'sleep 1000'" % (count - 1, what))
        done = 0
        while done < count:
            rows = cluster.out(["squeue", "-h", "-t", "CF,R", "-o", "%A"]).split()
            if not rows:
                time.sleep(0.05)
                continue
            cluster.run(["scancel"] + rows)
            done += len(rows)
            while cluster.out("squeue -h -t CF,R,CG -o %A | head -n 1").strip() in rows:
                time.sleep(0.02)
            cluster.run(["scontrol", "update", "PartitionName=tpu", "State=UP"])
        started += done


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # the clusters stop, too
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage")
    parser.add_argument("slurm")
    parser.add_argument("what", choices=("main", "backfill", "stopped", "utilisation", "growth"))
    parser.add_argument("--machine", type=int, choices=tuple(MACHINES), default=64)
    for name, value in (("jobs", 250), ("rounds", 3), ("fills", 7), ("steps", 40), ("starts", 10000)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="ocs-bench-")
    made = []
    config = dict(CONFIG, SchedulerParameters=CONFIG["SchedulerParameters"] % (
        100000 if options.what == "main" else 3))

    def make(name, shaped=False, stopped=False, **more):
        cluster = Bench(os.path.join(base, re.sub(r"\W+", "-", name)), options.stage, options.slurm,
                        delay_ms=0, config=config, **MACHINES[options.machine], **more)
        cluster.shaped, cluster.stopped, cluster.alone = shaped, stopped, options.what == "main"
        made.append(cluster)
        return cluster.start()

    print("%d CLOUD nodes, %d cubes" % (options.machine * 64 // math.prod(MACHINES[options.machine]["tile"]), options.machine))
    try:
        if options.what in ("main", "backfill"):
            run_cycles(make, options, {"cons_tres": {"parts": ()}, "plugins, unshaped": {},
                                       "plugins, shapes": {"shaped": True}}, "cons_tres")
        elif options.what == "stopped":
            run_cycles(make, options, {"shapes": {"shaped": True},
                                       "shapes, ocsd stopped": {"shaped": True, "stopped": True}}, "shapes")
        elif options.what == "utilisation":
            utilisation(make, options)
        else:
            growth(make, options)
    finally:
        for cluster in made:
            cluster.stop()
            if cluster.stopped:     # nsenter stops with the ocsd that it waits for
                subprocess.run(["pkill", "-CONT", "-f", "nsenter .*" + cluster.dir], check=False)
        if not options.keep:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
