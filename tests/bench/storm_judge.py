#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Judges a storm (storm.py): storm_judge.py DIRECTORY | --self-test

Shares nothing with the programs under test.  What is believed: the log and the tables of
the emulated switches, squeue, and what the jobs wrote themselves: when they began, that
they lived (beats), their placement, the table that the switches showed them.

A run of a job is one start of its script.  It lives from its first beat until its last,
but no longer than squeue shows it running: what slurmctld has given up, and a node that
is cut off still computes, is not a living job."""

import bisect
import collections
import copy
import glob
import json
import os
import sys


class Record:
    """What is known of a storm."""

    def __init__(self):
        self.size = 0           # ports of a switch, a side
        self.events = []        # (time, switch, "make"|"break"|"start", in, out, by)
        self.runs = []          # of Run
        self.polls = []         # (time, {job: (state, restarts)})
        self.final = set()      # (switch, in, out) when all was over


class Run:
    def __init__(self, name):
        job, restarts, _ = name.split(".")
        self.name, self.job, self.restarts = name, int(job), int(restarts)
        self.begin = self.end = 0.0
        self.tasks = []         # when tasks of its step began
        self.placement = None
        self.table = None       # {(switch, in, out)} as it saw it itself
        self.table_time = 0.0


def lines(path):
    try:
        with open(path, errors="replace") as handle:
            return [line for line in handle if line.endswith("\n")]
    except OSError:
        return []


def read_table(text):
    return {(switch, pair[0], pair[1]) for switch, pairs in json.loads(text).items()
            for pair in pairs}


def read(folder):
    record = Record()
    with open(os.path.join(folder, "storm.json")) as handle:
        record.size = json.load(handle)["size"]
    for line in lines(os.path.join(folder, "emulator.log")):
        if any(word in line for word in ('"event":"make"', '"event":"break"', '"event":"start"')):
            entry = json.loads(line)
            record.events.append((entry["wall"], entry["switch"], entry["event"],
                                  entry.get("in", 0), entry.get("out", 0), entry.get("by", "")))
    for line in lines(os.path.join(folder, "polls")):
        entry = json.loads(line)
        record.polls.append((entry["t"], {int(job): (state, int(restarts))
                                          for job, state, restarts in entry["rows"]}))
    for path in glob.glob(os.path.join(folder, "runs", "*.beat")):
        stem = path[:-len(".beat")]
        run = Run(os.path.basename(stem))
        beats = [float(line) for line in lines(path)]
        if not beats:
            continue
        run.begin, run.end = beats[0], beats[-1]
        run.tasks = [float(line) for line in lines(stem + ".tasks")]
        if os.path.exists(stem + ".placement"):
            with open(stem + ".placement") as handle:
                text = handle.read()
            run.placement = json.loads(text) if text else None
        text = lines(stem + ".table")
        if len(text) == 2:
            run.table, run.table_time = read_table(text[0]), float(text[1])
        record.runs.append(run)
    record.runs.sort(key=lambda run: run.begin)
    with open(os.path.join(folder, "final.table")) as handle:
        record.final = read_table(handle.read())
    return record


def circuits(run, size):
    """The patches of its placement: cube k has its + port at 2k+1, its - port at 2k+2."""
    found = set()
    for circuit in (run.placement or {}).get("circuits", ()):
        switch = "ocs-%s-%d-%d" % (circuit["dim"], *circuit["position"])
        plus, minus = 2 * int(circuit["from"][1:]) + 1, 2 * int(circuit["to"][1:]) + 2
        found |= {(switch, plus, size + minus), (switch, minus, size + plus)}
    return found


class History:
    """When each patch was made and broken, and every breach of what a switch can do."""

    def __init__(self, record, faults):
        self.of = collections.defaultdict(list)     # patch: [(time, made, by)]
        peers = {}
        for time, switch, event, first, second, by in record.events:
            if event == "start":
                for end in [end for end in peers if end[0] == switch]:
                    other = peers.pop(end)
                    if end[1] <= record.size:
                        self.of[switch, end[1], other[1]].append((time, False, "start"))
                continue
            ends = (switch, first), (switch, second)
            self.of[switch, first, second].append((time, event == "make", by))
            if event == "make":
                if any(end in peers for end in ends):
                    faults.append("two peers: %s %d>%d at %.3f" % (switch, first, second, time))
                peers[ends[0]], peers[ends[1]] = ends[1], ends[0]
            elif peers.pop(ends[0], None) != ends[1] or peers.pop(ends[1], None) != ends[0]:
                faults.append("broke what was not joined: %s %d>%d at %.3f" % (
                    switch, first, second, time))

    def missing(self, patch, time):
        """None if it was there, else why not: "hand", "reboot", "start", "command", "never"."""
        known = self.of.get(patch, ())
        index = bisect.bisect_right([entry[0] for entry in known], time) - 1
        if index < 0:
            return "never"
        return None if known[index][1] else known[index][2]


def lives(run, record):
    """Until when it lived for sure."""
    seen = [time for time, rows in record.polls
            if time > run.begin and rows.get(run.job) == ("R", run.restarts)]
    later = [other.begin for other in record.runs
             if other.job == run.job and other.begin > run.begin]
    return min([run.end, max(seen, default=run.begin)] + later)


def judge_starts(record, history, faults, count):
    for run in record.runs:
        if run.placement is None:
            faults.append("run %s began without its placement" % run.name)
        for patch in sorted(circuits(run, record.size)):
            moments = [run.begin] + run.tasks
            for moment in moments:
                why = history.missing(patch, moment)
                count["circuits seen by tasks"] += 1
                if why in ("never", "command"):
                    faults.append("run %s began at %.3f without %s %d>%d (%s)" % (
                        (run.name, moment) + patch + (why,)))
                elif why:
                    count["circuits away by hands and reboots at a start"] += 1
            if run.table is not None and patch not in run.table and \
                    history.missing(patch, run.table_time) in (None, "never", "command") and \
                    history.missing(patch, run.begin) in (None, "never", "command"):
                faults.append("run %s did not see %s %d>%d itself" % ((run.name,) + patch))


def judge_cuts(record, spans, faults, count):
    by_patch = collections.defaultdict(list)
    for run, end in spans:
        for patch in circuits(run, record.size):
            by_patch[patch].append((run, end))
    for time, switch, event, first, second, by in record.events:
        if event != "break":
            continue
        for run, end in by_patch.get((switch, first, second), ()):
            if run.begin < time < end:
                count["circuits of living runs cut, by " + by] += 1
                if by == "command":
                    faults.append("cut %s %d>%d of living run %s at %.3f" % (
                        switch, first, second, run.name, time))


def judge_sharing(record, spans, faults, count):
    def parts(run):
        ports = {(switch, port) for switch, first, second in circuits(run, record.size)
                 for port in (first, second)}
        xpus = {tuple(xpu["at"]) + (xpu["cube"],) for xpu in (run.placement or {}).get("xpus", ())}
        nodes = {xpu["node"] for xpu in (run.placement or {}).get("xpus", ())}
        return ports | xpus | nodes
    parts_of = [parts(run) for run, _ in spans]
    for i, (one, end) in enumerate(spans):
        for k in range(i):
            other, other_end = spans[k]
            if min(end, other_end) <= max(one.begin, other.begin):
                continue
            count["pairs of runs side by side"] += 1
            shared = parts_of[i] & parts_of[k]
            if shared:
                faults.append("runs %s and %s share %s" % (one.name, other.name,
                                                           sorted(map(str, shared))[:3]))


def judge(record):
    """(faults, counts)"""
    faults, count = [], collections.Counter()
    history = History(record, faults)
    spans = [(run, lives(run, record)) for run in record.runs]
    judge_starts(record, history, faults, count)
    judge_cuts(record, spans, faults, count)
    judge_sharing(record, spans, faults, count)
    for patch in sorted(record.final):
        faults.append("left behind: %s %d>%d" % patch)
    count["runs"] = len(record.runs)
    count["runs with circuits"] = sum(bool(circuits(run, record.size)) for run in record.runs)
    count["makes"] = sum(event[2] == "make" for event in record.events)
    count["breaks"] = sum(event[2] == "break" for event in record.events)
    return faults, count


# -- tampered records: the judge must see each ------------------------------------

def long_run(record):
    """A run with circuits that lived longest."""
    runs = [(lives(run, record) - run.begin, run.name, run) for run in record.runs
            if circuits(run, record.size)]
    return max(runs)[2] if runs else None


def mutate_start(record):
    run = long_run(record)
    patch = min(circuits(run, record.size))
    record.events = [e for e in record.events
                     if (e[1], e[3], e[4]) != patch or e[0] > run.begin or e[2] == "start"]


def mutate_cut(record):
    run = long_run(record)
    patch = min(circuits(run, record.size))
    middle = (run.begin + lives(run, record)) / 2
    record.events.append((middle, patch[0], "break", patch[1], patch[2], "command"))
    record.events.sort(key=lambda event: event[0])


def mutate_sharing(record):
    run = long_run(record)
    twin = copy.copy(run)
    twin.name, twin.job = "999999.0.0", 999999
    record.runs.append(twin)
    record.polls = [(time, dict(rows, **{})) for time, rows in record.polls]
    for _, rows in record.polls:
        if rows.get(run.job) == ("R", run.restarts):
            rows[twin.job] = ("R", 0)
    twin.restarts = 0


def mutate_peers(record):
    run = long_run(record)
    patch = min(circuits(run, record.size))
    record.events.append((run.begin + 1e-4, patch[0], "make", patch[1], patch[2] + 1, "command"))
    record.events.sort(key=lambda event: event[0])


def mutate_left(record):
    record.final.add(("ocs-x-0-0", 1, record.size + 2))


def mutate_table(record):
    run = next(run for run in record.runs if run.table is not None and circuits(run, record.size))
    run.table -= {min(circuits(run, record.size))}


MUTATIONS = {
    mutate_start: "without", mutate_cut: "cut", mutate_sharing: "share", mutate_peers: "two peers",
    mutate_left: "left behind", mutate_table: "did not see",
}


def blind_spots(record):
    """What was changed in RECORD, which is without faults, and the judge did not see."""
    missed = []
    for mutate, word in MUTATIONS.items():
        changed = copy.deepcopy(record)
        mutate(changed)
        if not any(word in fault for fault in judge(changed)[0]):
            missed.append(mutate.__name__)
    return missed


def invented():
    """A small storm in which all went well: two jobs, one after the other on the same ports,
    a third beside them, a hand that takes a circuit away."""
    record = Record()
    record.size = 16
    def run(name, begin, end, cubes):
        one = Run(name)
        one.begin, one.end, one.tasks = begin, end, [begin + 0.5]
        one.placement = {"xpus": [{"at": [0, 0, 0], "cube": cube, "node": "n" + cube[1:]}
                                  for cube in cubes],
                         "circuits": [{"dim": "x", "position": [0, 0], "from": a, "to": b}
                                      for a, b in zip(cubes, cubes[1:] + cubes[:1])]}
        one.table, one.table_time = circuits(one, 16), begin + 0.1
        record.runs.append(one)
        for patch in sorted(circuits(one, 16)):
            record.events.append((begin - 1, patch[0], "make", patch[1], patch[2], "command"))
            record.events.append((end + 1, patch[0], "break", patch[1], patch[2], "command"))
        record.polls += [(begin + t, {one.job: ("R", one.restarts)})
                         for t in range(1, int(end - begin))]
    run("1.0.1", 10.0, 20.0, ["c0", "c1"])
    run("2.0.1", 12.0, 30.0, ["c2", "c3"])
    run("3.1.1", 25.0, 40.0, ["c0", "c1"])
    patch = min(circuits(record.runs[0], 16))
    record.events += [(15.0, patch[0], "break", patch[1], patch[2], "hand"),
                      (15.5, patch[0], "make", patch[1], patch[2], "command")]
    record.events.sort(key=lambda event: event[0])
    polls = collections.defaultdict(dict)
    for time, rows in record.polls:
        polls[time].update(rows)
    record.polls = sorted(polls.items())
    return record


def self_test():
    record = invented()
    faults, _ = judge(record)
    missed = blind_spots(record)
    for fault in faults:
        print("invented without faults, but: " + fault)
    for name in missed:
        print("not seen: " + name)
    print("the judge sees %d of %d changes" % (len(MUTATIONS) - len(missed), len(MUTATIONS)))
    return 1 if faults or missed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    record = read(sys.argv[1])
    faults, count = judge(record)
    for what in sorted(count):
        print("%7d %s" % (count[what], what))
    for fault in faults[:30]:
        print(fault)
    missed = blind_spots(record) if not faults and long_run(record) else []
    for name in missed:
        print("not seen: " + name)
    print("%d violations in %d runs; %s" % (
        len(faults), len(record.runs), "the judge is blind" if missed else
        "each of %d changes of this record is seen" % len(MUTATIONS) if not faults else "see above"))
    return 1 if faults or missed else 0


if __name__ == "__main__":
    sys.exit(main())
