#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Slurm's own test suite on two clusters that differ in the plugins alone.

    suite.py [--beside-shapes] [--lanes N] [--limit SECONDS] [--only TEST]... [SERIES ...]

Every test of the series runs on a plain cluster and on one with our plugins, ocsd and emulated
switches.  The series "python" is what Slurm has written in Python, without a change of the
configuration; "auto" the same where each test writes the configuration and starts Slurm.  N pairs of
clusters share the tests.  A test that ends differently, or fails or is skipped for another reason, runs
again, alone on the machine, up to twice on both, since tests wait for times; it counts if it never ended
alike.  With --beside-shapes jobs with a shape run and end beside it, in a partition of their own (on the
plain side jobs of as many nodes).  Exit status: 0 if every test ends alike."""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import queue
import re
import sys
import threading

from side import Side

SERIES = ["1", "2", "5", "7", "12", "14", "15", "16", "17", "20", "24", "28", "38", "39", "python", "auto"]
PYTHON = ("python", "auto")
ENDS = ("pass", "skip", "fail", "late")
AGAIN = 2
OUT = threading.Lock()


def number(name):
    return [int(part) for part in re.findall(r"\d+", name)]


def tests(source, series):
    """The names of the tests of a series."""
    pattern = "python/tests/test_*.py" if series in PYTHON else "expect/test%s.*" % series
    names = [os.path.basename(path) for path in glob.glob(os.path.join(source, "testsuite", pattern))]
    names = [name for name in names if re.fullmatch(r"test\d+\.\d+|test_\d+_\d+\.py", name)]
    return [("auto/" if series == "auto" else "") + name for name in sorted(names, key=number)]


def series_of(name):
    if name.endswith(".py"):
        return "auto" if name.startswith("auto/") else "python"
    return str(number(name)[0])


class Lane:
    """A pair of clusters."""

    def __init__(self, make):
        self.sides = [make(False), make(True)]
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def test(self, name):
        """How it ends on the plain one and on ours."""
        return tuple(self.pool.map(lambda side: side.test(name), self.sides))

    def stop(self):
        for side in self.sides:
            side.stop()


def alike(pair):
    """For a test that passes or runs out of time there is no why."""
    return pair[0].end == pair[1].end and pair[0].why == pair[1].why


class Results:
    """What has ended, and what is said of it."""

    def __init__(self, report, total):
        self.report = open(report, "a") if report else None
        self.tries = collections.defaultdict(list)
        self.total, self.said = total, 0

    def add(self, name, pair):
        """Whether it ended alike."""
        with OUT:
            self.tries[name].append(pair)
            kept = not alike(pair) or pair[1].end == "fail"
            if self.report:
                self.report.write(json.dumps({"test": name, "try": len(self.tries[name]), "ends": [
                    {"end": side.end, "why": side.why, "seconds": round(side.seconds, 1)} for side in pair],
                    "text": [side.text[-4000:] for side in pair] if kept else []}) + "\n")
                self.report.flush()
            same = alike(pair)
            if same:
                self.say("ok", name, pair)
            elif len(self.tries[name]) > AGAIN:
                self.say("not ok", name, pair)
                print("\n".join("# " + line for line in pair[1].text.splitlines()[-15:]), flush=True)
            else:
                print("# %s: again, since %s" % (name, self.words(pair)), flush=True)
        return same

    @staticmethod
    def words(pair):
        plain, ours = pair
        if plain.end == ours.end:
            return "%s, plain %s, ours %s" % (ours.end, plain.why, ours.why)
        return "plain %s %s, ours %s %s" % (plain.end, plain.why or "", ours.end, ours.why or "")

    def say(self, ok, name, pair):
        self.said += 1
        tries = len(self.tries[name])
        print("%s %d - %s: %s, %.0f s%s" % (
            ok, self.said, name, pair[1].end if alike(pair) else self.words(pair), pair[1].seconds,
            " (try %d)" % tries if tries > 1 else ""), flush=True)

    def table(self):
        """A line for each series: tests, how those end that end alike, and how many differ."""
        rows = collections.defaultdict(collections.Counter)
        for name, tries in self.tries.items():
            row = rows[series_of(name)]
            row["tests"] += 1
            row[tries[-1][1].end if alike(tries[-1]) else "different"] += 1
        columns = ("tests",) + ENDS + ("different",)
        lines = ["# series " + " ".join("%9s" % column for column in columns)]
        for series in sorted(rows, key=lambda text: (text in PYTHON, number(text))):
            lines.append("# %-6s " % series + " ".join("%9d" % rows[series][column] for column in columns))
        whole = sum(rows.values(), collections.Counter())
        lines.append("# %-6s " % "all" + " ".join("%9d" % whole[column] for column in columns))
        return "\n".join(lines), whole["different"]


def work(lane, todo, results, again):
    """Until nothing is left to do; what has to run again goes there."""
    while True:
        try:
            name = todo.get_nowait()
        except queue.Empty:
            return
        if not results.add(name, lane.test(name)):
            again.append(name)


def run(names, lanes, make, results):
    """How the jobs with a shape ended that ran beside."""
    todo, again, started = queue.Queue(), [], [Lane(make) for _ in range(lanes)]
    for name in names:
        todo.put(name)
    try:
        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            for future in [pool.submit(work, lane, todo, results, again) for lane in started]:
                future.result()
        for lane in started[1:]:
            lane.stop()
        for name in sorted(again, key=number):
            for _ in range(AGAIN):
                if results.add(name, started[0].test(name)):
                    break
    finally:
        for lane in started:
            lane.stop()
    return sum((lane.sides[1].shaped for lane in started), collections.Counter())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beside-shapes", action="store_true", help="jobs with a shape run and end beside the tests")
    parser.add_argument("--lanes", type=int, default=4,
                        help="pairs of clusters, of 1 GB each, that share the tests (default 4)")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one test on both sides (default 300)")
    parser.add_argument("--only", action="append", metavar="TEST",
                        help="one test, such as test1.1, test_101_1.py or auto/test_101_1.py")
    parser.add_argument("--report", help="JSON lines: what each test did")
    parser.add_argument("series", nargs="*", default=[])
    args = parser.parse_args()
    slurm, stage = os.environ["OCS_SLURM"], os.environ["OCS_STAGE"]
    source = os.path.join(os.path.dirname(slurm.rstrip("/")), "src")
    names = args.only or [name for series in args.series or SERIES for name in tests(source, series)]
    if not names:
        parser.error("no tests in series %s" % " ".join(args.series))
    results = Results(args.report, len(names))
    print("1..%d" % len(names), flush=True)
    shaped = run(names, max(1, min(args.lanes, len(names))), lambda ours: Side(
        ours, slurm, source, stage, args.beside_shapes, args.limit), results)
    table, different = results.table()
    print(table)
    if args.beside_shapes:
        print("# jobs with a shape beside: %s" % ", ".join(
            "%d %s" % (n, state) for state, n in shaped.most_common()))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
