#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Judges a soak (soak_slurm.py): soak_slurm_judge.py DIRECTORY | --self-test

Shares nothing with the programs under test.  What is believed: tables and counters of the emulated switches, slurmctld's
records of jobs, what the tasks noted, and the list of faults with whom each was done to."""

import collections
import copy
import json
import os
import re
import sqlite3
import sys

# How long after a fault its effects may show, in s, and how long before it the job may have begun to die
AFTER, SIZE = 45, 16
DAEMONS = re.compile(r"^(\S*python3 -c|ocs-emulator |ocsd |slurmctld |: slurmscriptd|slurmd |nsenter |timeout |ps |ip netns|\[)")


# -- what is left at a checkpoint ------------------------------------------------------

def hosts_read(cluster):
    return {name: cluster.snapshot(name) for name in cluster.hosts}


def database_read(path):
    """What is in the database though no job is."""
    found = []
    with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as db:
        for table, where in (("jobs", "1"), ("ports", "1"), ("circuits", "state != 5"), ("menus", "1"), ("releases", "1"),
                             ("asked", "1")):
            rows = db.execute("SELECT * FROM %s WHERE %s" % (table, where)).fetchall()
            if rows:
                found.append("database: %d rows of %s: %s" % (len(rows), table, str(rows[0])[:150]))
    return found


def leftovers(cluster, bare):
    """Everything that is there though no job is."""
    found = ["%s has the patches %s" % item for item in cluster.ask("table").items() if item[1]]
    owned = ["%s:%d of %s" % (port["switch"], port["port"], port["owner"])
             for port in cluster.ocsctl("show", "port")["ports"] if port.get("owner")]
    found += ["ports with owners: %s" % owned[:8]] if owned else []
    jobs = cluster.ocsctl("show", "job")["jobs"]
    found += ["ocsd knows jobs: %s" % [job.get("job") for job in jobs]] if jobs else []
    found += database_read(cluster.path("ocsd", "ocsd.db"))
    found += ["process: " + line for line in cluster.out("ps -eo args").splitlines()[1:] if not DAEMONS.match(line)]
    found += ["file: " + line for line in cluster.out(
        "find /tmp /dev/shm -mindepth 1; find /run/ocs -mindepth 2 ! -name forward.lock ! -name .warned").splitlines()]
    if found:
        return found
    now = hosts_read(cluster)
    return ["host %s: %s" % (name, sorted(set(now[name]) ^ set(bare[name]))[:6]) for name in bare if now[name] != bare[name]]


# -- the jobs --------------------------------------------------------------------------

class Record:
    def __init__(self):
        self.submits, self.faults, self.polls = {}, [], []      # {name: (t, kind, nodes)}, rows, rows
        self.jobs, self.notes = {}, collections.defaultdict(dict)   # {name: fields}, {name: {rest of the file's name: text}}


def lines(path):
    with open(path, errors="replace", encoding="utf-8") as handle:
        return [line for line in handle if line.endswith("\n")]


def read(folder):
    record = Record()
    for line in lines(os.path.join(folder, "faults")):
        row = json.loads(line)
        if "submit" in row:
            record.submits[row["submit"]] = row["t"], row["of"], row["nodes"]
        else:
            record.faults.append(row)
    record.polls = [json.loads(line) for line in lines(os.path.join(folder, "polls"))]
    for line in lines(os.path.join(folder, "jobs")) if os.path.exists(os.path.join(folder, "jobs")) else ():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "JobName" in fields:
            record.jobs[fields["JobName"]] = fields
    for name in os.listdir(os.path.join(folder, "runs")):
        job, _, rest = name.partition(".")
        with open(os.path.join(folder, "runs", name), errors="replace", encoding="utf-8") as handle:
            record.notes[job][rest] = handle.read()
    return record


def hosts_expand(text):
    """r[0-1,3] as r0, r1, r3"""
    found = set()
    for name, ranges in re.findall(r"([a-z]+)(\[[^]]*\]|\d+)", text):
        for part in ranges.strip("[]").split(","):
            first, _, last = part.partition("-")
            found |= {"%s%d" % (name, n) for n in range(int(first), int(last or first) + 1)}
    return found


class Life:
    """When a job was in the queue and on which nodes, by squeue."""

    def __init__(self, record, name):
        self.name = name
        self.begin, self.kind, self.count = record.submits[name]
        seen = [poll for poll in record.polls if name in poll["jobs"]]
        self.end = seen[-1]["t"] if seen else self.begin
        self.nodes = set().union(*(hosts_expand(poll["jobs"][name][1]) for poll in seen)) if seen else set()

    def switch_uses(self, switch):
        return switch.startswith({"cubes": "ocs-", "rails": "rail-", "region": "region-"}[self.kind])

    def faults(self, record, margin=AFTER):
        """The kinds of faults that were done to it, or to what it used."""
        found = set()
        for row in record.faults:
            if self.name in row.get("jobs", ()):
                found.add(row["kind"])
            elif self.begin - margin < row["t"] < self.end + 5:
                if row.get("node") in self.nodes or self.switch_uses(row.get("switch", "-")):
                    found.add(row["kind"])
        return found


def patches_of(placement):
    """What circuits between cubes are on the switches."""
    found = set()
    for circuit in placement["circuits"]:
        switch = "ocs-%s-%d-%d" % (circuit["dim"], *circuit["position"])
        plus, minus = 2 * int(circuit["from"][1:]) + 1, 2 * int(circuit["to"][1:]) + 2
        found |= {(switch, plus, SIZE + minus), (switch, minus, SIZE + plus)}
    return found


def values_judge(record, life, restart, faults):
    """What is wrong with the values of a run that ended well."""
    notes = record.notes[life.name]
    if notes.get("%d.rc" % restart, "").strip() != "0":
        return ["it completed, and noted %r" % notes.get("%d.rc" % restart)]
    if life.kind != "cubes":
        said = [notes.get("%d.%d" % (restart, rank), "nothing").strip().split("\n")[-1] for rank in range(life.count)]
        return [] if said == ["right"] * life.count else ["it completed, and its tasks noted %s" % said]
    table = {(switch, a, b) for switch, rows in json.loads(notes["%d.table" % restart]).items() for a, b in rows}
    missing = {patch for patch in patches_of(json.loads(notes["%d.placement" % restart])) - table
               if not any(row.get("switch") == patch[0] and life.begin - AFTER < row["t"] < life.end + 5 for row in record.faults)}
    return ["it ran without %s" % sorted(missing)[:4]] if missing else []


# What may end or restart a job; a moe-controller and ocsd may die without any job failing.
HARD = {"scancel", "requeue", "rank", "agent", "rails_controller", "slurmctld", "slurmd"}


def job_judge(record, name, counts):
    life, fields = Life(record, name), record.jobs.get(name)
    faults = life.faults(record)
    hard = {kind for kind in faults if kind in HARD or kind.split()[0] in ("switch", "reboot", "port")}
    if not fields:
        counts["lost with slurmctld"] += 1
        return [] if "slurmctld" in faults else ["slurmctld does not know it"]
    state, restarts = fields["JobState"], int(fields["Restarts"])
    counts["jobs of %s %s" % (life.kind, state)] += 1
    counts["restarts"] += restarts
    found = ["%s in run %s" % (text.strip()[:200], rest) for rest, text in record.notes[name].items() if "wrong" in text]
    found += ["run %s hangs: %s" % (rest, text.strip()[-150:]) for rest, text in record.notes[name].items() if "nothing came" in text]
    if state == "COMPLETED":
        found += values_judge(record, life, restarts, faults)
    elif state == "CANCELLED":
        found += [] if faults & {"scancel", "slurmctld"} else ["is cancelled, and nobody did"]
    elif state == "TIMEOUT" and "slurmctld" in faults:
        # slurmds without SACK cannot tell srun of an end while slurmctld is away
        counts["out of time since slurmctld was killed"] += 1
    elif state == "TIMEOUT":
        found.append("hung until its time was over, after %s" % sorted(faults))
    elif not hard:
        last = [text.strip().split("\n")[-1] for rest, text in sorted(record.notes[name].items()) if re.fullmatch(r"\d+\.\d+", rest)]
        found.append("is %s after %s: %s" % (state, sorted(faults), last))
    if restarts and not hard:
        found.append("was started %d times after %s" % (restarts + 1, sorted(faults)))
    return found


def runs_seen(record):
    """{job: [the first and the last poll of each of its runs]}: one that is requeued has several."""
    seen, on = {}, set()
    for poll in record.polls:
        if not poll["jobs"]:        # no slurmctld to ask
            continue
        for name, (state, _) in poll["jobs"].items():
            if state == "R" and name in on:
                seen[name][-1][1] = poll["t"]
            elif state == "R":
                seen.setdefault(name, []).append([poll["t"], poll["t"]])
        on = {name for name, (state, _) in poll["jobs"].items() if state == "R"}
    return seen


def frames_judge(record, counts):
    """A frame that met a port in change on a node of a job that ran before and after.  What sockets of a run that ended
    still send when its circuits are cut is counted: the ports were its own.  So is what a job sends in the two seconds after
    its region's controller was killed, perhaps within a change: without one ranks go on with the circuits they know."""
    found, seen = [], runs_seen(record)
    for before, poll in zip(record.polls, record.polls[1:]):
        for place, count in poll["lost"].items():
            names = sorted(name for name, (state, nodes) in before["jobs"].items() if state == "R" and
                           place.split()[0] in hosts_expand(nodes) and
                           any(begin < before["t"] - 0.5 and end > poll["t"] + 0.5 for begin, end in seen[name]))
            alone = sorted(row["jobs"][0] for row in record.faults if row.get("kind") == "moe_controller" and
                           before["t"] - 2 < row["t"] < poll["t"])
            kind = "at an end or a start" if not names else "without a controller" if names == alone else "of running jobs"
            counts["frames in change, " + kind] += count
            if kind == "of running jobs":
                found.append("%d frames of %s, where %s runs, met a port in change" % (count, place, names))
    return found


def judge(record):
    """(what is wrong, counts)"""
    found, counts = [], collections.Counter()
    for name in record.submits:
        found += ["%s (%s) %s" % (name, record.submits[name][1], what) for what in job_judge(record, name, counts)]
    return found + frames_judge(record, counts), counts


# -- does it see? ----------------------------------------------------------------------

def sample():
    """Three jobs that went well, one that was cancelled."""
    record = Record()
    record.submits = {"s1": (100, "cubes", 1), "s2": (101, "rails", 2), "s3": (102, "region", 2), "s4": (103, "rails", 2)}
    record.polls = [{"t": t, "lost": {}, "jobs": {"s1": ["R", "n0"], "s2": ["R", "r[0-1]"], "s3": ["R", "m[2,3]"],
                                                  "s4": ["R", "r[4-5]"]}} for t in (104, 105, 106, 107)]
    record.faults = [{"t": 104.5, "kind": "scancel", "jobs": ["s4"]}]
    record.jobs = {name: {"JobName": name, "JobState": "COMPLETED", "Restarts": "0"} for name in ("s1", "s2", "s3")}
    record.jobs["s4"] = {"JobName": "s4", "JobState": "CANCELLED", "Restarts": "0"}
    circuit = {"dim": "x", "position": [0, 1], "from": "c0", "to": "c1"}
    record.notes["s1"] = {"0.rc": "0\n", "0.placement": json.dumps({"circuits": [circuit]}),
                          "0.table": json.dumps({"ocs-x-0-1": [[1, 20], [4, 17]]})}
    for name in ("s2", "s3"):
        record.notes[name] = {"0.rc": "0\n", "0.0": "right\n", "0.1": "right\n"}
    return record


def changes():
    """(what is changed, how): each of them has to be noticed."""
    def note(job, name, text):
        return lambda r: r.notes[job].update({name: text})
    return [("a wrong value", note("s2", "0.1", "wrong: turn 1\n")), ("a silent task", note("s3", "0.0", "")),
            ("a circuit that is not there", note("s1", "0.table", json.dumps({"ocs-x-0-1": [[1, 20]]}))),
            ("a run without an end", note("s1", "0.rc", "")),
            ("a hang", note("s2", "0.0", "error: turn 0 of [0]: nothing came\n")),
            ("a failure without a fault", lambda r: r.jobs["s3"].update(JobState="FAILED")),
            ("a restart without a fault", lambda r: r.jobs["s2"].update(Restarts="1") or
             r.notes["s2"].update({"1.rc": "0", "1.0": "right", "1.1": "right"})),
            ("a job that nobody knows", lambda r: r.jobs.pop("s1")),
            ("a cancellation of another job", lambda r: r.faults[0].update(jobs=["s2"])),
            ("a time limit", lambda r: r.jobs["s4"].update(JobState="TIMEOUT")),
            ("a frame lost", lambda r: r.polls[2]["lost"].update({"r1 0": 1})),
            ("a frame lost long after a controller's end", lambda r: r.polls[3]["lost"].update({"m3 0": 1}) or
             r.faults.append({"t": 103.5, "kind": "moe_controller", "jobs": ["s3"]}) or
             r.polls.extend({"t": t, "lost": {}, "jobs": r.polls[0]["jobs"]} for t in (108, 109)))]


def self_test():
    record = sample()
    blind = ["what is right is called wrong: %s" % judge(record)[0]] if judge(record)[0] else []
    for what, how in changes():
        other = copy.deepcopy(record)
        how(other)
        if not judge(other)[0]:
            blind.append("not seen: " + what)
    print("\n".join(blind) or "the judge sees all %d changes" % len(changes()))
    return 1 if blind else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found, counts = judge(read(sys.argv[1]))
    for what in sorted(counts):
        print("%7d %s" % (counts[what], what))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
