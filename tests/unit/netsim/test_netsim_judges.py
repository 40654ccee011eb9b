#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Random cases through the flow engine, which checks itself after each event, through the few lines
of this file that fill links naively, and through SimGrid where it is installed: all finish times are
equal to 1e-9.  TAP on stdout.  Without SimGrid its cases are skipped."""
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("OCS_SOURCE_DIR", ".")
BUILD = os.environ.get("OCS_BUILD_DIR", "build/gcc")
CASES = 120
SIMGRID_CASES = 60
EQUAL = 1e-9
# CM02 without factors, gamma and cross-traffic is max-min fair; the rest is how exact it computes.
SIMGRID = ["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0",
           "--cfg=surf/precision:1e-12", "--cfg=maxmin/precision:1e-12", "--log=root.thres:error"]


def make(seed, simple):
    """Lines of a case.  Simple: what SimGrid can, too.  There a flow never gets more than the smallest
    rate that a link of its path had when the flow began, so that rates change after all have begun,
    and stay below those of the beginning."""
    rng = random.Random(seed)
    links = rng.randint(1, 12)
    lines = ["link %d" % rng.choice((1000, 10000, rng.randint(1000, 100000))) for _ in range(links)]
    flows = rng.randint(1, 40)
    burst = rng.random() < .4
    for _ in range(flows):
        start = 0 if burst else rng.choice((0, rng.randint(0, 20), rng.random() * 20))
        path = rng.sample(range(links), rng.randint(1, min(links, 16 if rng.random() < .2 else 3)))
        lines.append("flow %.12g %d %d %s" % (start, rng.choice((5000, rng.randint(1, 10 ** 6))),
                                              1 if simple else rng.choice((1, 1, 3)), " ".join(map(str, path))))
    for _ in range(rng.randint(0, 6)):
        link = rng.randrange(links)
        if simple:
            rate = rng.randint(100, int(lines[link].split()[1]))
            lines.append("change %.12g %d %d" % (20 + rng.random() * 30, link, rate))
        else:
            rate = rng.choice((0, rng.randint(1000, 100000)))
            lines.append("change %.12g %d %d" % (rng.random() * 30, link, rate))
    for _ in range(0 if simple else rng.randint(0, 10)):
        verb = rng.choice(("pause", "resume", "reroute"))
        line = "%s %.12g %d" % (verb, rng.random() * 30, rng.randrange(flows))
        if verb == "reroute":
            line += " " + " ".join(map(str, rng.sample(range(links), rng.randint(1, min(links, 3)))))
        lines.append(line)
    return lines


def fill(rates, flows):
    """Progressive filling, from the definition: raise all rates together until a link is full."""
    given = {}
    active = [k for k, flow in enumerate(flows) if flow["on"]]
    while len(given) < len(active):
        level, full = math.inf, None
        for link, rate in enumerate(rates):
            mine = [k for k in active if link in flows[k]["links"]]
            open_ones = sum(flows[k]["count"] for k in mine if k not in given)
            if open_ones:
                share = (rate - sum(given[k] * flows[k]["count"] for k in mine if k in given)) / open_ones
                if share < level:
                    level, full = share, link
        for k in active:
            if full in flows[k]["links"]:
                given.setdefault(k, max(level, 0.0))
    return given


def naive(lines):
    """Finish times from the definition; -1: never."""
    rates, flows, events = [], [], []
    for number, line in enumerate(lines):
        words = line.split()
        if words[0] == "link":
            rates.append(float(words[1]))
        elif words[0] == "flow":
            flows.append({"left": float(words[2]), "count": int(words[3]), "links": list(map(int, words[4:])),
                          "on": False, "end": -1, "begun": False})
            events.append((float(words[1]), number, "start", len(flows) - 1, None))
        else:
            rest = float(words[3]) if words[0] == "change" else list(map(int, words[3:]))
            events.append((float(words[1]), number, words[0], int(words[2]), rest))
    events.sort()
    now = 0.0
    while True:
        given = fill(rates, flows)
        ends = [(now + flows[k]["left"] / rate, k) for k, rate in given.items() if rate > 0 or flows[k]["left"] <= 0]
        first = min(ends)[0] if ends else math.inf
        until = min(first, events[0][0] if events else math.inf)
        if until == math.inf:
            return [flow["end"] for flow in flows]
        for k, rate in given.items():
            flows[k]["left"] -= rate * (until - now)
        now = until
        for time, k in ends:
            if time <= now * (1 + 1e-12):
                flows[k].update(on=False, end=now, left=0)
        while events and events[0][0] <= now:
            _, _, verb, k, rest = events.pop(0)
            if verb == "change":
                rates[k] = rest
                continue
            flow = flows[k]
            if verb == "start":
                flow.update(on=True, begun=True)
            elif not flow["begun"] or flow["end"] >= 0:
                continue
            elif verb == "pause":
                flow["on"] = False
            elif verb == "resume":
                flow["on"] = True
            else:
                flow["links"] = rest


def case_write(folder, seed, simple):
    path = os.path.join(folder, "case%d" % seed)
    with open(path, "w") as handle:
        handle.write("\n".join(make(seed, simple)) + "\n")
    return path


def engine(path, tolerance="0"):
    done = subprocess.run([os.path.join(BUILD, "tests/unit/test_netsim_flow"), path, tolerance], text=True,
                          capture_output=True)
    if done.returncode:
        return done.stdout + done.stderr, None
    lines = done.stdout.split("\n")
    return None, [float(line) for line in lines if line and not line.startswith("carried")]


def differ(ours, theirs):
    """The first flow of which the times differ, or None."""
    if len(ours) != len(theirs):
        return "%d times against %d" % (len(ours), len(theirs))
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if abs(a - b) > EQUAL * max(1, abs(b)):
            return "flow %d ends at %.12g, judged %.12g" % (k, a, b)
    return None


def simgrid_build(folder):
    """The judge, or why there is none."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler or not os.path.exists("/usr/include/simgrid/s4u.hpp"):
        return None, "libsimgrid-dev or a C++ compiler is not installed"
    program = os.path.join(folder, "judge")
    done = subprocess.run([compiler, "-O0", "-std=c++17", "-o", program,
                           os.path.join(SOURCE, "tests/unit/netsim/simgrid_judge.cpp"), "-lsimgrid"],
                          text=True, capture_output=True)
    return (program, None) if done.returncode == 0 else (None, done.stderr[:400].replace("\n", " "))


def naive_test(folder):
    for seed in range(CASES):
        fault, times = engine(case_write(folder, seed, False))
        fault = fault or differ(times, naive(make(seed, False)))
        if fault:
            return "seed %d: %s" % (seed, fault)
    return None


def tolerance_test(folder):
    """With a tolerance flows end late in the mean, and not much."""
    late = count = 0
    for seed in range(CASES):
        path = case_write(folder, seed, True)
        (_, exact), (fault, loose) = engine(path), engine(path, "0.01")
        if fault:
            return "seed %d: %s" % (seed, fault)
        late += sum((b - a) / a for a, b in zip(exact, loose) if a > 0)
        count += len(exact)
    mean = late / count
    print("# tolerance 0.01: flows end %.3f %% later in the mean" % (100 * mean))
    return None if 0 < mean < .05 else "flows end %.3g later in the mean" % mean


def simgrid_test(folder, judge):
    worst = 0
    for seed in range(1000, 1000 + SIMGRID_CASES):
        path = case_write(folder, seed, True)
        fault, times = engine(path)
        done = subprocess.run([judge, path] + SIMGRID, text=True, capture_output=True)
        if done.returncode:
            return "seed %d: SimGrid: %s" % (seed, done.stderr[:300].replace("\n", " "))
        theirs = list(map(float, done.stdout.split()))
        fault = fault or differ(times, theirs)
        if fault:
            return "seed %d: %s" % (seed, fault)
        worst = max(worst, max(abs(a - b) / b for a, b in zip(times, theirs)))
    print("# %d cases, largest difference %.2g" % (SIMGRID_CASES, worst))
    return None


def report(number, name, fault):
    print("%sok %d - %s" % ("not " if fault else "", number, name))
    if fault:
        print("# " + fault)
    return bool(fault)


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = report(1, "%d random cases equal the naive filling" % CASES, naive_test(folder))
        bad |= report(2, "a tolerance ends flows late, and not much", tolerance_test(folder))
        judge, why = simgrid_build(folder)
        name = "%d random cases with changes of links equal SimGrid" % SIMGRID_CASES
        if judge:
            bad |= report(3, name, simgrid_test(folder, judge))
        else:
            print("ok 3 - %s # SKIP %s" % (name, why))
        print("1..3")
    return bad


if __name__ == "__main__":
    sys.exit(main())
