#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Slurm's own test suite on two clusters that differ in the plugins alone.

    suite.py [--beside-shapes] [--only TEST]... [SERIES ...]

Every test of the series runs on a plain cluster and on one with our plugins, ocsd and emulated
switches.  One that ends differently runs again, alone, up to twice on both, since tests wait for
times; it counts if it never ended alike.  With --beside-shapes jobs with a shape run and end beside
it, in a partition of their own.  Exit status: 0 if every test ends alike."""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "slurm"))
from cluster import Cluster  # noqa: E402

SERIES = ["1", "2", "5", "7", "12", "14", "15", "16", "17", "20", "24", "28", "38", "39"]
AGAIN = 2
LIMIT = 300         # seconds for one test

CONF = """SlurmSourceDir={source}
SlurmBuildDir={source}
SlurmInstallDir={prefix}
SlurmConfigDir={etc}
"""
# Nodes of the shapes that run beside, so that the suite sees the same nodes on both.
BESIDE = "beside Nodes=n[8-15]"


def number(name):
    return [int(part) for part in re.findall(r"\d+", name)]


class Side:
    """One of the two clusters."""

    def __init__(self, ours, slurm, source, stage, beside):
        self.name = "ours" if ours else "plain"
        self.ours, self.source = ours, source
        self.stop_shapes = threading.Event()
        nodes = "n[0-7]" if beside else "n[0-15]"
        self.cluster = Cluster(tempfile.mkdtemp(prefix="ocs-suite-"), stage, slurm, cubes=2, edge=2,
                               tile=(1, 1, 1), parts=("select", "topology") if ours else (),
                               config={} if ours else {"SelectType": "select/cons_tres"},
                               partitions=["suite Nodes=%s Default=YES" % nodes, BESIDE])

    def start(self):
        cluster = self.cluster
        cluster.start()
        folder = cluster.path("testsuite")
        shutil.copytree(os.path.join(self.source, "testsuite"), folder, symlinks=True)
        cluster.write("testsuite.conf", CONF.format(source=self.source, prefix=cluster.slurm,
                                                    etc=cluster.path("etc")))
        return self

    def test(self, name):
        """How it ends: "pass", "skip", "fail" or "late"; and what it printed."""
        folder = self.cluster.path("testsuite", "expect")
        try:
            done = self.cluster.run(
                "cd %s && exec timeout -k 10 %d expect ./%s" % (folder, LIMIT, name), check=False,
                timeout=LIMIT + 60, env={"SLURM_TESTSUITE_CONF": self.cluster.path("testsuite.conf"),
                                         "SLURM_LOCAL_GLOBALS_FILE": "/dev/null"})
        except subprocess.TimeoutExpired:
            return "late", ""
        self.cluster.run("scancel --partition=suite; true", check=False)
        end = {0: "pass", 124: "late", 137: "late"}.get(done.returncode)
        return end or ("skip" if done.returncode > 127 else "fail"), done.stdout + done.stderr

    def shapes(self):
        """Jobs with a shape, one after the other, until told to stop."""
        if not self.ours:
            return
        while not self.stop_shapes.is_set():
            self.cluster.run(["sbatch", "-p", "beside", "--shape=2x2x2", "-o", "/dev/null", "--wrap",
                              "sleep 1"], check=False)
            time.sleep(3)


def compare(sides, name, pool):
    """[(end on plain, end on ours), ...], the last one first alike or the last try."""
    tries, texts = [], ["", ""]
    for _ in range(1 + AGAIN):
        both = list(pool.map(lambda side: side.test(name), sides))
        tries.append((both[0][0], both[1][0]))
        texts = [both[0][1], both[1][1]]
        if tries[-1][0] == tries[-1][1]:
            break
    return tries, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beside-shapes", action="store_true")
    parser.add_argument("--only", action="append", help="one test, such as test1.1")
    parser.add_argument("--report", help="JSON lines: what each test did")
    parser.add_argument("series", nargs="*", default=[])
    args = parser.parse_args()
    slurm, stage = os.environ["OCS_SLURM"], os.environ["OCS_STAGE"]
    source = os.path.join(os.path.dirname(slurm.rstrip("/")), "src")
    names = args.only or sorted(
        (os.path.basename(path) for series in args.series or SERIES
         for path in glob.glob(os.path.join(source, "testsuite/expect/test%s.*" % series))
         if re.fullmatch(r"test\d+\.\d+", os.path.basename(path))), key=number)
    sides, different, count = [], [], {}
    report = open(args.report, "a") if args.report else None
    print("1..%d" % len(names), flush=True)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for ours in (False, True):
                sides.append(Side(ours, slurm, source, stage, args.beside_shapes))
                sides[-1].start()
            if args.beside_shapes:
                threading.Thread(target=sides[1].shapes, daemon=True).start()
            for index, name in enumerate(names, 1):
                tries, texts = compare(sides, name, pool)
                plain, ours = tries[-1]
                alike = plain == ours
                count[ours] = count.get(ours, 0) + 1
                print("%sok %d - %s: %s%s" % (
                    "" if alike else "not ", index, name,
                    ours if alike else "plain %s, ours %s" % (plain, ours),
                    " (try %d)" % len(tries) if len(tries) > 1 else ""), flush=True)
                if report:
                    report.write(json.dumps({"test": name, "tries": tries}) + "\n")
                    report.flush()
                if not alike:
                    different.append(name)
                    print("\n".join("# " + line for line in texts[1].splitlines()[-15:]), flush=True)
    finally:
        for side in sides:
            side.stop_shapes.set()
            side.cluster.stop()
            if not os.environ.get("OCS_KEEP"):
                shutil.rmtree(side.cluster.dir, ignore_errors=True)
    print("# %d tests, %d end differently; with our plugins: %s" % (
        len(names), len(different), ", ".join("%d %s" % (n, end) for end, n in sorted(count.items()))))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
