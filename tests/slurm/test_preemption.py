# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Preemption for shapes: exactly the jobs that are in the way, for exactly the nodes they leave."""

import os
import time

import pytest

from cluster import seconds
from rings import broken_edges

GRACE_S = 120


@pytest.fixture(scope="module")
def tiers(make_cluster):
    """Four cubes of four nodes.  tpu is preempted by requeue, cheap by cancel, gentle and brisk with
    a grace time; urgent preempts them all."""
    nodes = "Nodes=n[0-15] "
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, partitions=[
        "urgent PriorityTier=10 PreemptMode=OFF " + nodes,
        "cheap PreemptMode=CANCEL " + nodes,
        "gentle GraceTime=%d " % GRACE_S + nodes, "brisk GraceTime=1 PreemptMode=CANCEL " + nodes], config={
            "PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE",
            "AuthInfo": "cred_expire=5",
            "SchedulerParameters": "bf_interval=1,sched_interval=2,bf_continue"})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def idle(tiers):
    yield
    tiers.cancel_all()
    tiers.until(lambda: not tiers.patches(), 30, "dark switches")


def cube(number):
    return "n[%d-%d]" % (4 * number, 4 * number + 3)


def unshaped(tiers, nodes, *arguments):
    count = len(tiers.out(["scontrol", "show", "hostnames", nodes]).split())
    return tiers.sbatch("-N%d" % count, "--exclusive", "-w", nodes, *arguments)


def on(tiers, nodes, shape, *arguments):
    return tiers.sbatch("--shape=" + shape, "-w", nodes, *arguments)


def untouched(tiers, jobs):
    for job in jobs:
        fields = tiers.job(job)
        assert fields["JobState"] == "RUNNING" and fields["Restarts"] == "0", fields


def reluctant(tiers):
    """A job on n0 that takes its grace time, and what makes it end."""
    leave = tiers.path("out", "leave")
    if os.path.exists(leave):
        os.unlink(leave)
    job = tiers.sbatch("-N1", "--exclusive", "-w", "n0", "-p", "gentle",
                       script="until [ -e %s ]; do sleep 0.2; done" % leave)
    tiers.running(job)
    return job, lambda: open(leave, "w").close()


def restarts(tiers, job):
    return int(tiers.job(job)["Restarts"])


def started(tiers, job):
    """In seconds, as Slurm counts them."""
    return seconds(tiers.job(job)["StartTime"])


def urgent(tiers, shape="4x4x4", *arguments):
    return tiers.sbatch("-p", "urgent", "--shape=" + shape, *arguments)


def joined(tiers, job):
    assert not broken_edges(tiers.placement(job), tiers.patches(), tiers.switch_size())


def test_fewest_jobs_go(tiers):
    """One job with a whole cube goes, though smaller ones come first in Slurm's order."""
    quarters = [on(tiers, "n%d" % n, "4x4") for n in range(4)]
    halves = [on(tiers, nodes, "4x4x2") for nodes in ("n[4-5]", "n[6-7]")]
    whole = on(tiers, cube(2), "4x4x4")
    plain = [unshaped(tiers, "n%d" % n) for n in range(12, 16)]
    for job in quarters + halves + [whole] + plain:
        tiers.running(job)
    first = urgent(tiers)
    assert tiers.running(first)["NodeList"] == cube(2)
    joined(tiers, first)
    assert restarts(tiers, whole) == 1
    untouched(tiers, quarters + halves + plain)
    # The next one takes the two halves rather than four quarters or four unshaped jobs.
    second = urgent(tiers)
    assert tiers.running(second)["NodeList"] == cube(1)
    assert [restarts(tiers, job) for job in halves] == [1, 1]
    untouched(tiers, quarters + plain)
    tiers.run(["ocs-emulator", "--check-log", tiers.path("emulator.log")])


def test_cheapest_of_as_many_goes(tiers):
    """Of four jobs alike the one that has run for the shortest time loses least."""
    jobs = []
    for number in (2, 0, 3, 1):
        jobs.append(on(tiers, cube(number), "4x4x4"))
        tiers.running(jobs[-1])
        time.sleep(1.2)
    tiers.running(urgent(tiers))
    assert restarts(tiers, jobs[3]) == 1
    untouched(tiers, jobs[:3])


def test_shaped_and_unshaped_jobs_go_alike(tiers):
    """Two cubes are wanted: an unshaped job and a small shaped one are all that is in the way."""
    big = on(tiers, "n[0-7]", "8x4x4")
    small = on(tiers, "n8", "4x4")
    plain = unshaped(tiers, "n13")
    for job in (big, small, plain):
        tiers.running(job)
    # One job less, but dearer or not: the single job goes.
    single = urgent(tiers, "8x4x4")
    assert tiers.running(single)["NodeList"] == "n[0-7]"
    assert restarts(tiers, big) == 1
    untouched(tiers, [small, plain])
    other = urgent(tiers, "8x4x4")
    assert tiers.running(other)["NodeList"] == "n[8-15]"
    joined(tiers, other)
    assert (restarts(tiers, small), restarts(tiers, plain)) == (1, 1)
    untouched(tiers, [single])


def test_victims_are_cancelled_where_the_partition_says_so(tiers):
    jobs = [on(tiers, cube(n), "4x4x4", "-p", "cheap") for n in range(4)]
    for job in jobs:
        tiers.running(job)
    tiers.running(urgent(tiers))
    states = [tiers.state(job) for job in jobs]
    assert sorted(states) == ["PREEMPTED"] + ["RUNNING"] * 3


def test_nobody_goes_in_vain(tiers):
    """A job that cannot be preempted sits in every cube."""
    firm = [tiers.sbatch("-p", "urgent", "-N1", "--exclusive", "-w", "n%d" % n) for n in (0, 5, 10, 15)]
    soft = [unshaped(tiers, nodes) for nodes in ("n[1-3]", "n4", "n[6-9]", "n[11-14]")]
    for job in firm + soft:
        tiers.running(job)
    job = urgent(tiers)
    tiers.until(lambda: "cube" in tiers.job(job)["Reason"], 20, lambda: tiers.job(job)["Reason"])
    time.sleep(4)       # two cycles of each scheduler
    assert tiers.state(job) == "PENDING"
    untouched(tiers, firm + soft)
    # What fits beside them preempts as much as it needs.
    small = urgent(tiers, "4x4x2")
    tiers.running(small)
    assert sorted(restarts(tiers, job) for job in soft) == [0, 0, 0, 1]


def test_nothing_slips_onto_promised_nodes(tiers):
    """While the victims have their grace time, the idle nodes beside them stay idle."""
    firm = [tiers.sbatch("-p", "urgent", "-N4", "--exclusive", "-w", cube(n)) for n in (1, 2, 3)]
    for job in firm:
        tiers.running(job)
    victim, leave = reluctant(tiers)
    job = urgent(tiers)
    tiers.until(lambda: str(victim) in tiers.job(job)["Reason"], 20, lambda: tiers.job(job))
    late = [tiers.sbatch("-N1", "-n1"), tiers.sbatch("--shape=4x4"),
            tiers.sbatch("-p", "urgent", "-N1", "-n1"), urgent(tiers, "4x4"),
            tiers.sbatch("-N1", "-n1", "-w", "n2")]
    began = time.time()
    while tiers.state(job) == "PENDING":
        assert {tiers.state(other) for other in late} == {"PENDING"}
        assert time.time() < began + 60, tiers.job(job)
        if time.time() > began + 4:     # some cycles of both schedulers
            leave()
        time.sleep(0.3)
    assert tiers.running(job)["NodeList"] == cube(0)
    assert restarts(tiers, victim) == 1
    assert {tiers.state(other) for other in late} == {"PENDING"}
    # Cancelled, it gives them back.
    tiers.run(["scancel", str(job)])
    tiers.running(late[2])


def test_victims_leave_when_their_grace_time_is_over(tiers):
    """The job for which they go ends them, not slurmctld's look at time limits every half minute;
    that one may be first once in a while, but not four times in a row."""
    def ended_for_another():
        victim = on(tiers, "n[0-15]", "16x4x4", "-p", "brisk")
        tiers.running(victim)
        job = urgent(tiers, "16x4x4")
        tiers.running(job)
        assert tiers.state(victim) == "PREEMPTED"
        tiers.run(["scancel", str(job)])
        with open(tiers.path("slurmctld.log")) as handle:
            return "JobId=%d has been killed to reclaim resources for JobId=%d\n" % (victim, job) in handle.read()
    assert any(ended_for_another() for _ in range(4))


def left_waiting(tiers):
    """A victim in its grace time whose preemptor is gone, and a job that has all other nodes."""
    firm = tiers.sbatch("-p", "urgent", "-N12", "--exclusive", "-w", "n[4-15]")
    tiers.running(firm)
    victim, leave = reluctant(tiers)
    job = urgent(tiers)
    tiers.until(lambda: str(victim) in tiers.job(job)["Reason"], 20, lambda: tiers.job(job))
    tiers.run(["scancel", str(job)])
    return firm, victim, leave


def test_a_promise_dies_with_its_job(tiers):
    _, victim, _ = left_waiting(tiers)
    tiers.running(tiers.sbatch("-N3", "--exclusive"))
    assert tiers.state(victim) == "RUNNING"


def preempts(cluster, job):
    """The first reason of JOB that names victims: the main scheduler puts another one in its place at times."""
    def reason():
        text = cluster.job(job)["Reason"]
        return text if "preempts" in text else None
    return cluster.until(reason, 20, lambda: cluster.job(job))


def test_who_leaves_anyhow_is_taken_first(tiers):
    """Victims in their grace time cost the next one nothing, though others may be cheaper."""
    firm, victim, leave = left_waiting(tiers)
    tiers.run(["scancel", str(firm)])
    tiers.running(tiers.sbatch("-p", "urgent", "-N8", "--exclusive", "-w", "n[8-15]"))
    fresh = on(tiers, "n[4-7]", "4x4x4", "-p", "cheap")
    tiers.running(fresh)
    small = urgent(tiers)
    assert ":_%d;" % victim in preempts(tiers, small) + ";"
    untouched(tiers, [fresh])
    tiers.run(["scancel", str(small)])
    # Two cubes take one more besides.
    large = urgent(tiers, "8x4x4")
    preempts(tiers, large)
    tiers.wait(fresh, "PREEMPTED")
    assert tiers.state(victim) == "RUNNING"
    leave()
    assert tiers.running(large)["NodeList"] == "n[0-7]"


def test_unshaped_jobs_preempt_shaped_ones(tiers):
    jobs = [on(tiers, cube(n), "4x4x4") for n in range(4)]
    for job in jobs:
        tiers.running(job)
    plain = tiers.sbatch("-p", "urgent", "-N1", "-n1")
    node = tiers.running(plain)["NodeList"]
    assert sorted(restarts(tiers, job) for job in jobs) == [0, 0, 0, 1]
    victim = [job for job in jobs if restarts(tiers, job)][0]
    left = set()
    for job in jobs:
        if job != victim:
            left |= tiers.circuit_patches(tiers.placement(job))
    tiers.until(lambda: tiers.patches() == left, 20, "the victim's circuits to go, and no others")
    tiers.run(["scancel", str(plain)])
    assert tiers.running(victim, 90)["NodeList"] == cube(int(node[1:]) // 4)
    joined(tiers, victim)


def reconfigured(tiers, **settings):
    with open(tiers.path("etc/slurm.conf")) as handle:
        before = handle.read()
    text = before
    for name, value in settings.items():
        text = "".join(line for line in text.splitlines(True) if not line.startswith(name + "="))
        text = "%s=%s\n" % (name, value) + text
    tiers.write("etc/slurm.conf", text)
    tiers.reconfigure()
    return before


def restored(tiers, before):
    tiers.write("etc/slurm.conf", before)
    tiers.reconfigure()


def test_exempt_time_is_kept(tiers):
    before = reconfigured(tiers, PreemptExemptTime="00:00:09")
    try:
        old = on(tiers, "n[0-7]", "8x4x4")
        tiers.running(old)
        began = started(tiers, old)
        time.sleep(4)
        young = [on(tiers, cube(n), "4x4x4") for n in (2, 3)]
        for job in young:
            tiers.running(job)
        job = urgent(tiers)
        tiers.running(job)
        # The old one was the first that might be touched, though it is the dearest.
        assert restarts(tiers, old) == 1
        untouched(tiers, young)
        assert started(tiers, job) - began >= 9
    finally:
        restored(tiers, before)


def test_suspension_is_refused_with_a_reason(tiers):
    """A suspended job keeps its circuits: nothing would be gained."""
    before = reconfigured(tiers, PreemptMode="SUSPEND,GANG")
    try:
        told = tiers.refused("--shape=4x4")
        assert "SUSPEND" in told and "PreemptMode" in told and "REQUEUE" in told, told
        tiers.running(tiers.sbatch("-N1", "-n1"))
        tiers.running(urgent(tiers))        # its own partition says OFF
        assert "partition tpu" in tiers.refused("--shape=4x4", "-p", "cheap,tpu")
        tiers.running(tiers.sbatch("--shape=4x4", "-p", "cheap"))
    finally:
        restored(tiers, before)
