#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Wall time and peak memory of ocs-sim for the rows of doc/published-evaluation.md, one line each.

    sim_memory.py BUILD [--data FOLDER] [--runs N] [--threads N] [--limit MB] [WORD ...]

FOLDER has philly_trace.csv.gz and iat5.csv; without it ocs-sim draws from its fitted distributions.  Rows whose name
has every WORD are run.  Exit status 1: ocs-sim failed, or took more than --limit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

CUBES = "torus cubes:%s cube:%s tile:1x1x1"
MACHINES = {"static 16^3": "static:16x16x16 tile:1x1x1", "cubes 8^3": CUBES % ("2x2x2", "8x8x8"),
            "cubes 4^3": CUBES % ("4x4x4", "4x4x4"), "cubes 2^3": CUBES % ("8x8x8", "2x2x2")}
# the rows of each table: machine, policy and what is added to the command
POSSIBLE = [("static 16^3", policy) for policy in ("firstfit", "folding", "best")] + \
           [(machine, policy) for machine in ("cubes 8^3", "cubes 4^3") for policy in ("reconfig", "rfold", "best")]
REPLAYED = [("cubes 2^3", "reconfig"), ("cubes 2^3", "rfold"), ("cubes 2^3", "best"), ("cubes 4^3", "published-reconfig"),
            ("cubes 4^3", "reconfig"), ("cubes 4^3", "rfold"), ("cubes 4^3", "best"), ("cubes 4^3", "unconstrained")]
SATURATED = [("static 16^3", "firstfit"), ("static 16^3", "folding"), ("cubes 8^3", "reconfig"), ("cubes 8^3", "rfold"),
             ("cubes 4^3", "published-reconfig"), ("cubes 4^3", "reconfig"), ("cubes 4^3", "rfold"),
             ("cubes 4^3", "best"), ("cubes 4^3", "best", "--defragment", "2"), ("cubes 4^3", "scratch"),
             ("cubes 4^3", "best", "--backfill"), ("cubes 4^3", "unconstrained"), ("cubes 2^3", "reconfig"),
             ("cubes 2^3", "rfold"), ("cubes 2^3", "best")]


def rows(runs):
    """Name and options of each row."""
    for what, table, options in (
            ("fits", POSSIBLE, ["--lenient", "--possible"]),
            ("replay", REPLAYED, ["--lenient", "--runs", str(runs)]),
            ("replay, strict", [("cubes 4^3", "best")], ["--runs", str(runs)]),
            ("saturated", SATURATED, ["--lenient", "--saturated", "--hours", "3000", "--runs", str(runs)])):
        for machine, policy, *more in table:
            yield " ".join([what + ",", machine + ",", policy, *more]), \
                ["--policy", policy, "--fabric", MACHINES[machine], *options, *more]


def measured(command):
    """Wall time in seconds, peak memory in MB, and the exit status with what was said."""
    with tempfile.TemporaryFile("w+") as said:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return time.monotonic() - begun, used.ru_maxrss * 1024 / 1e6, process.returncode, said.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--data")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=200)
    options = parser.parse_intermixed_args()
    files = ["--durations", options.data + "/philly_trace.csv.gz", "--arrivals", options.data + "/iat5.csv"] \
        if options.data else []
    bad = 0
    print("| row | wall time, s | peak memory, MB |\n|---|---|---|")
    for name, more in rows(options.runs):
        if not all(word in name for word in options.words):
            continue
        took, peak, status, said = measured([os.path.join(options.build, "src/sim/ocs-sim"), "--quiet", "--workload",
                                             "rfold-2025", "--threads", str(options.threads), *files, *more])
        print("| %s | %.1f | %.0f |" % (name, took, peak), flush=True)
        if status != 0 or peak > options.limit:
            bad += 1
            print("sim_memory.py: %s: exit status %d, %.0f MB\n%s" % (name, status, peak, said), file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
