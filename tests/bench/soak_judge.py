#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Judges a run of soak: soak_judge.py DIRECTORY

From the emulator's log alone: no port ever had two peers, and no command ever broke a
patch of a job while the job lived (what hands and reboots broke is counted). Shares
nothing with the programs under test."""

import collections
import json
import os
import sys


def events(path):
    with open(path, errors="replace") as handle:
        for line in handle:
            if '"event":"make"' in line or '"event":"break"' in line or \
                    '"event":"start"' in line:
                yield json.loads(line)


def lives(path):
    """For every patch the intervals in which a living job had it."""
    found = collections.defaultdict(list)
    for line in open(path):
        row = json.loads(line)
        for name, first, second in row["patches"]:
            intervals = found[name, first, second]
            if row["live"]:
                intervals.append([row["t"], float("inf"), row["job"]])
            else:
                assert intervals[-1][2] == row["job"]
                intervals[-1][1] = row["t"]
    return found


def main():
    folder = sys.argv[1]
    ledger = lives(os.path.join(folder, "ledger"))
    peers, faults = {}, []
    count = collections.Counter()
    for event in events(os.path.join(folder, "emulator.log")):
        name = event["switch"]
        if event["event"] == "start":
            peers = {key: value for key, value in peers.items() if key[0] != name}
            continue
        ends = (name, event["in"]), (name, event["out"])
        count[event["event"] + " by " + event.get("by", "?")] += 1
        if event["event"] == "make":
            for end in ends:
                if end in peers:
                    faults.append("two peers: %s" % event)
            peers[ends[0]], peers[ends[1]] = ends[1], ends[0]
            continue
        if peers.pop(ends[0], None) != ends[1] or peers.pop(ends[1], None) != ends[0]:
            faults.append("broke what was not joined: %s" % event)
        for begin, end, job in ledger.get((name, event["in"], event["out"]), ()):
            if begin < event["t"] < end:
                count["of living jobs, by " + event["by"]] += 1
                if event["by"] == "command":
                    faults.append("cut a circuit of living job %d: %s" % (job, event))
    for what in sorted(count):
        print("%9d %s" % (count[what], what))
    for fault in faults[:20]:
        print(fault)
    print("%d circuits of living jobs cut by ocsd, %d violations in all" % (
        count["of living jobs, by command"], len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
