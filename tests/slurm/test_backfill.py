# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Backfill and estimates: Slurm's own scheduler plans with shapes as it does with counts."""

import re
import time

import pytest

from cluster import seconds

DEPTH = 40      # bf_max_job_test


@pytest.fixture(scope="module")
def planned(make_cluster):
    """Four cubes of four nodes; the scheduler looks every second and plans to the second."""
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, config={
        "SchedulerParameters": "bf_interval=1,sched_interval=2,bf_resolution=1,bf_window=1440,"
                               "bf_max_job_test=%d,bf_continue" % DEPTH,
        "MinJobAge": "30"})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def idle(planned):
    yield
    planned.run("ocsctl resume cube c3 --fabric %s" % planned.yaml, check=False)
    planned.cancel_all()
    planned.until(lambda: not planned.patches(), 30, "dark switches")


def promise(cluster, job, limit=40):
    """When slurmctld expects JOB to start."""
    def told():
        fields = cluster.job(job)
        return fields["StartTime"] if fields.get("JobState") != "PENDING" or \
            fields.get("StartTime", "Unknown") not in ("Unknown", "N/A") else None
    return seconds(cluster.until(told, limit, lambda: "an estimate for %s" % cluster.job(job)))


def end_of(cluster, job):
    return seconds(cluster.job(job)["EndTime"])


def reason(cluster, job, pattern):
    def told():
        text = cluster.job(job).get("Reason", "").replace("_", " ")
        return text if re.search(pattern, text) else None
    return cluster.until(told, 30, lambda: "a reason like %s: %s" % (pattern, cluster.job(job)))


def cycles(cluster):
    text = cluster.out(["sdiag"])
    part = text.split("Backfilling stats")[1]
    return int(re.search(r"Total cycles: (\d+)", part).group(1))


def occupy_a_node_of_each_cube(cluster, minutes):
    """Twelve of sixteen nodes are free then, but no cube is whole."""
    jobs = [cluster.sbatch("-N1", "-n1", "--exclusive", "-w", "n%d" % (4 * cube), "-t",
                           str(minutes[cube])) for cube in range(4)]
    for job in jobs:
        cluster.running(job)
    return jobs


def test_a_waiting_shape_is_told_when_it_starts(planned):
    """Nodes enough are free; what it waits for is a whole cube, then two."""
    holders = occupy_a_node_of_each_cube(planned, [8, 2, 6, 4])
    one = planned.sbatch("--shape=4x4x4", "-t", "5")
    two = planned.sbatch("--shape=8x4x4", "-t", "5")
    assert abs(promise(planned, one) - end_of(planned, holders[1])) <= 5
    # The second goes where the first is not: the cubes that are free at 4 and 6 minutes.
    assert abs(promise(planned, two) - end_of(planned, holders[2])) <= 5
    rows = planned.out(["squeue", "-h", "-t", "PD", "-O", "JobID:10,StartTime:22,SchedNodes:30"])
    rows = {int(row.split()[0]): row.split()[1:] for row in rows.splitlines()}
    assert rows[one][1] == "n[4-7]", rows
    assert rows[two][1] == "n[8-15]", rows
    shown = planned.out(["squeue", "--start", "-h", "-j", str(two)])
    assert rows[two][0] in shown, shown


def test_small_jobs_fill_the_gap_and_the_large_one_is_not_late(planned):
    """Two cubes are busy; a shape of four waits.  Short jobs run on the other two
    meanwhile, long ones do not, and the shape starts no later than it was told first."""
    first = planned.sbatch("--shape=8x4x4", "-t", "2", script="sleep 14")
    planned.running(first)
    large = planned.sbatch("--shape=16x4x4", "-t", "5")
    promised = promise(planned, large)
    assert promised <= end_of(planned, first) + 5
    # Both of these would fit at once, but could still run when the shape is to start.
    long = [planned.sbatch("--shape=4x4x4", "-t", "10"), planned.sbatch("-N1", "-t", "10")]
    small, end = [], time.monotonic() + 60
    while planned.state(large) == "PENDING" and time.monotonic() < end:
        small.append(planned.sbatch("--shape=4x4", "-t", "1", script="sleep 2"))
        small.append(planned.sbatch("-N1", "-n1", "-t", "1", script="sleep 2"))
        time.sleep(0.5)
    fields = planned.running(large)
    started = seconds(fields["StartTime"])
    assert started <= promised, fields
    rows = planned.out(["squeue", "-h", "-t", "all", "-o", "%A %S %t"]).splitlines()
    rows = {int(row.split()[0]): row.split()[1:] for row in rows}
    for kind in (0, 1):
        filled = [job for job in small[kind::2] if job in rows and rows[job][1] != "PD" and
                  seconds(rows[job][0]) < started]
        assert filled, "no %s job ran in the gap\n%s" % (("shaped", "unshaped")[kind], rows)
    assert {rows[job][1] for job in long} == {"PD"}, rows


def test_test_only_tells_time_and_nodes(planned):
    holders = occupy_a_node_of_each_cube(planned, [8, 6, 2, 4])

    def asked(*arguments):
        done = planned.run(["sbatch", "--test-only", "--wrap", "true", "-t", "1"] +
                           list(arguments))
        found = re.search(r"to start at (\S+) .* on nodes (\S+) in partition", done.stderr)
        assert found, done.stderr
        return seconds(found.group(1)), found.group(2)
    when, nodes = asked("--shape=4x4x4")
    assert abs(when - end_of(planned, holders[2])) <= 5 and nodes == "n[8-11]"
    when, nodes = asked("--shape=8x4x4")
    assert abs(when - end_of(planned, holders[3])) <= 5 and nodes == "n[8-15]"
    when, nodes = asked("--shape=4x4x2")
    assert abs(when - time.time()) <= 10, "two nodes of a cube are free now"
    assert not planned.out(["squeue", "-h", "-t", "PD"]).strip()


def test_srun_immediate(planned):
    command = ["srun", "--immediate=1", "--shape=16x4x4", "-t", "1", "hostname"]
    done = planned.run(command)
    assert len(done.stdout.split()) == 256
    planned.wait_idle()
    blocker = planned.sbatch("-N1", "-n1", "--exclusive", "-t", "5")
    planned.running(blocker)
    began = time.monotonic()
    done = planned.run(command, check=False)
    assert done.returncode and time.monotonic() - began < 20, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
    planned.until(lambda: len(planned.out(["squeue", "-h"]).splitlines()) == 1, 20,
                  "the job that could not start to be gone")


def test_beyond_bf_window_nothing_is_kept_free(planned):
    """The window is a day.  For what starts later there is a guess, but no place: else one
    shape could keep half of the machine idle for days."""
    blocker = planned.sbatch("--shape=8x4x4", "-t", "2-0")
    planned.running(blocker)
    waiting = planned.sbatch("--shape=16x4x4", "-t", "5")
    longer = planned.sbatch("--shape=8x4x4", "-t", "4-0")
    planned.running(longer)
    assert planned.state(waiting) == "PENDING"


def test_a_slot_needs_its_ports_as_well(planned):
    """All nodes are free, now and later, but a ring cannot close without its switch: no time
    is promised, nothing is kept free for it, and it starts when the switch is back."""
    planned.run(["ocsctl", "drain", "switch", "ocs-x-0-0", "--reason", "cleaning", "--fabric",
                 planned.yaml])
    try:
        ring = planned.sbatch("--shape=16x4x4", "-t", "5")
        assert "ocs-x-0-0" in reason(planned, ring, "drained")
        done = planned.run(["sbatch", "--test-only", "--shape=16x4x4", "--wrap", "true"],
                           check=False)
        assert done.returncode and "to start at" not in done.stderr, done.stderr
        line = planned.sbatch("--shape=16x4x4", "--conn-type=mesh", "-t", "5")
        planned.running(line)
        seen = cycles(planned)
        planned.until(lambda: cycles(planned) >= seen + 2, 30, "two more backfill cycles")
        assert planned.job(ring)["StartTime"] in ("Unknown", "N/A")
        planned.run(["scancel", str(line)])
    finally:
        planned.run(["ocsctl", "resume", "switch", "ocs-x-0-0", "--fabric", planned.yaml])
    planned.running(ring)


def test_a_hundred_shapes_in_the_queue(planned):
    """Every cycle ends; those within bf_max_job_test are told a time, the others are not,
    and the log has no error."""
    log = planned.path("slurmctld.log")
    with open(log) as handle:
        before = len(handle.readlines())
    blocker = planned.sbatch("--shape=16x4x4", "-t", "5")
    planned.running(blocker)
    shapes = ["4x4x4", "8x4x4", "4x4", "16x4x4", "4x4x2", "8x8", "12x4x4", "2x2x2", "8x8x4", "18"]
    script = "#!/bin/bash\nsleep 300\n"
    lines = " ".join("--shape=%s" % shapes[i % len(shapes)] for i in range(100))
    planned.run("for s in %s; do sbatch --parsable -o /dev/null -t 5 $s <<< '%s' || exit 1; done" %
                (lines, script), timeout=120)
    seen = cycles(planned)
    planned.until(lambda: cycles(planned) >= seen + 3, 60, "three more backfill cycles")

    def told():
        rows = planned.out(["squeue", "-h", "-t", "PD", "-S", "i", "-o", "%A %S"]).splitlines()
        assert len(rows) == 100
        known = [not row.endswith(("N/A", "Unknown")) for row in rows]
        return known if sum(known) >= DEPTH else None
    known = planned.until(told, 40, "estimates for the first %d" % DEPTH)
    assert all(known[:DEPTH]) and not any(known[DEPTH:]), known
    with open(log) as handle:
        problems = [line for line in handle.readlines()[before:] if "error:" in line]
    assert not problems, problems


def test_the_reason_says_what_is_missing_and_follows_the_machine(planned):
    planned.run(["ocsctl", "drain", "cube", "c3", "--reason", "new fibres", "--fabric",
                 planned.yaml])
    quarters = [planned.sbatch("-N1", "-n1", "--exclusive", "-w", node) for node in ("n0", "n4")]
    for job in quarters:
        planned.running(job)
    job = planned.sbatch("--shape=16x4x4")
    first = reason(planned, job, r"needs 4 cubes that are wholly free; 1 is free, 1 is drained")
    assert "c3" in first
    planned.run(["scancel", str(quarters[0])])
    reason(planned, job, r"needs 4 cubes that are wholly free; 2 are free, 1 is drained")
    planned.run(["ocsctl", "resume", "cube", "c3", "--fabric", planned.yaml])
    text = reason(planned, job, r"needs 4 cubes that are wholly free; 3 are free")
    assert "drained" not in text
    planned.run(["scancel", str(quarters[1])])
    planned.running(job)
