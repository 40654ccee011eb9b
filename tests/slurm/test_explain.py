# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""`ocsctl explain`: what a job waits for and who holds it up, or where it runs."""

import json
import time

import pytest

from cluster import seconds


@pytest.fixture(scope="module")
def asked(make_cluster):
    """Four cubes of four nodes; nobody sees the jobs of others."""
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, config={
        "SchedulerParameters": "bf_interval=1,sched_interval=2,bf_resolution=1",
        "PrivateData": "jobs", "Licenses": "disk:1"})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def idle(asked):
    yield
    asked.cancel_all()
    asked.until(lambda: not asked.patches(), 30, "dark switches")


def end_of(cluster, job):
    return int(seconds(cluster.job(job)["EndTime"]))


def holder(cluster, node, minutes):
    job = cluster.sbatch("-N1", "-n1", "--exclusive", "-w", node, "-t", str(minutes))
    cluster.running(job)
    return job


def explain(cluster, job, user=None):
    done = cluster.run(["ocsctl", "explain", str(job), "--json", "--fabric", cluster.yaml],
                       user=user)
    return json.loads(done.stdout)


def text(cluster, job):
    return cluster.out(["ocsctl", "explain", str(job), "--fabric", cluster.yaml])


def waiting(cluster, *arguments, reason="needs", **options):
    job = cluster.sbatch(*arguments, **options)
    cluster.until(lambda: reason in cluster.job(job).get("Reason", ""), 20,
                  lambda: "a reason with %s: %s" % (reason, cluster.job(job)))
    return job


def by(explained, member="held_up_by"):
    return [one.get("job") or one.get("name") for one in explained[member]]


def test_the_fewest_jobs_whose_end_would_let_it_start(asked):
    """Cube c1 is free first, but takes two jobs; c3 takes one."""
    holders = [holder(asked, "n0", 8), holder(asked, "n4", 2), holder(asked, "n5", 3),
               holder(asked, "n8", 6), holder(asked, "n12", 4)]
    one = waiting(asked, "--shape=4x4x4", "-t", "5")
    two = asked.sbatch("--shape=8x4x4", "-t", "5")
    told = explain(asked, one)
    assert told["state"] == "pending" and told["shape"] == "4x4x4" and not told["room_now"]
    assert by(told) == [holders[4]] and told["complete"]
    assert told["held_up_by"][0]["end"] == end_of(asked, holders[4])
    assert told["held_up_by"][0]["nodes"] == "n12" and told["held_up_by"][0]["user"] == "root"
    assert told["ahead"] == [] and told["lacks"] == []
    told = explain(asked, two)
    assert by(told) == [holders[4], holders[3]] and told["complete"]
    assert told["ahead"] == [one]
    third = asked.sbatch("--shape=4x4x4", "-t", "5")
    assert explain(asked, third)["ahead"] == [one, two]
    asked.run(["scancel", str(third)])
    shown = text(asked, two)
    for word in ("job %d" % holders[4], "job %d" % holders[3], "no fewer would do",
                 "ahead:    1 job: %d" % one,
                 time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(end_of(asked, holders[3])))):
        assert word in shown, shown
    # It is true: with these two gone both find their places.
    asked.run(["scancel", str(holders[4]), str(holders[3]), str(one)])
    asked.running(two)


def test_drains_and_faults_in_the_way(asked):
    asked.run(["ocsctl", "drain", "cube", "c3", "--reason", "new fibres", "--fabric", asked.yaml])
    asked.run(["scontrol", "update", "NodeName=n8", "State=DRAIN", "Reason=fan"])
    try:
        holders = [holder(asked, "n0", 3), holder(asked, "n4", 5)]
        all_of_it = waiting(asked, "--shape=16x4x4", "-t", "5", reason="DRAINED")
        told = explain(asked, all_of_it)
        assert sorted(by(told, "lacks")) == ["c3", "n8"], told
        assert by(told) == holders and told["complete"]
        assert {"new fibres" in one["reason"] or "fan" in one["reason"]
                for one in told["lacks"]} == {True}
        shown = text(asked, all_of_it)
        assert "cube c3 (drained: new fibres)" in shown and "nodes n8 (drained: fan)" in shown
        assert "waits: nodes that it needs are down, drained" in shown
        small = asked.sbatch("--shape=4x4x4", "-t", "5")
        told = explain(asked, small)
        # Either the end of one job, or one repair.
        assert by(told) == holders[:1] and told["lacks"] == []
        assert by(told, "at_once_without") in (["c3"], ["n8"]), told
        assert "at once:" in text(asked, small)
        asked.run(["scancel", str(all_of_it), str(small)])
        asked.run(["ocsctl", "drain", "switch", "ocs-y-1-1", "--reason", "dust", "--fabric",
                   asked.yaml])
        told = explain(asked, waiting(asked, "--shape=4x4x4", "-t", "5"))
        assert by(told, "lacks") == ["ocs-y-1-1"] and by(told) == holders[:1], told
    finally:
        asked.run(["ocsctl", "resume", "cube", "c3", "--fabric", asked.yaml])
        asked.run(["ocsctl", "resume", "switch", "ocs-y-1-1", "--fabric", asked.yaml])
        asked.run(["scontrol", "update", "NodeName=n8", "State=RESUME"])


def test_a_job_without_a_time_limit_has_no_end(asked):
    endless = asked.sbatch("-N16", "--exclusive", "-t", "0")
    asked.running(endless)
    job = waiting(asked, "--shape=4x4x4", "-t", "5")
    told = explain(asked, job)
    assert by(told) == [endless] and "end" not in told["held_up_by"][0]
    assert "no time limit" in text(asked, job) and "ends:" not in text(asked, endless)
    done = asked.run(["ocsctl", "reserve", "4x4x4", "--users=root", "--duration=60", "--fabric",
                      asked.yaml], check=False)
    assert done.returncode and "job %d may run on n[0-15] without a time limit" % endless in done.stderr


def test_earlier_jobs_of_the_queue(asked):
    """There is room, but it is kept for the one that came first."""
    first = holder(asked, "n0", 5)
    large = waiting(asked, "--shape=16x4x4", "-t", "5")
    small = asked.sbatch("--shape=4x4x4", "-t", "20")
    told = explain(asked, small)
    assert told["room_now"] and told["ahead"] == [large] and told["held_up_by"] == []
    assert "it waits for its turn" in text(asked, small)
    asked.until(lambda: "start" in explain(asked, large), 20, "an estimate")
    told = explain(asked, large)
    assert abs(told["start"] - end_of(asked, first)) <= 5 and told["planned_nodes"] == "n[0-15]"
    assert "planned:" in text(asked, large)


def test_reasons_of_slurm_itself(asked):
    first = holder(asked, "n0", 5)
    cases = [
        (["--dependency=afterok:%d" % first], "Dependency",
         "it depends on other jobs: afterok:%d" % first),
        (["--hold"], "JobHeldUser", "its user holds it; scontrol release"),
        (["--begin=now+1hour"], "BeginTime", "not to start before 20"),
    ]
    for arguments, reason, words in cases:
        for shape in (["--shape=4x4x4"], ["-N1"]):
            job = waiting(asked, *shape, *arguments, "-t", "5", reason=reason)
            assert words in text(asked, job), text(asked, job)
            told = explain(asked, job)
            assert words in told["slurm"] and "held_up_by" not in told
    asked.run(["scontrol", "update", "PartitionName=tpu", "State=DOWN"])
    try:
        job = waiting(asked, "--shape=4x4x4", "-t", "5", reason="Partition")
        assert "partition tpu starts no jobs" in text(asked, job)
        asked.run(["scontrol", "update", "PartitionName=tpu", "State=UP", "MaxTime=20"])
        job = waiting(asked, "--shape=4x4x4", "-t", "30", reason="PartitionTimeLimit")
        assert "its time limit is beyond that of partition tpu" in text(asked, job)
    finally:
        asked.run(["scontrol", "update", "PartitionName=tpu", "State=UP", "MaxTime=INFINITE"])


def test_licences_and_not_what_was_missing_before(asked):
    large = asked.sbatch("--shape=16x4x4", "-t", "5", script="sleep 60")
    asked.running(large)
    job = waiting(asked, "--shape=4x4x4", "-t", "5", "-L", "disk:1")
    asked.run(["scontrol", "hold", str(job)])
    asked.run(["scancel", str(large)])
    asked.running(asked.sbatch("-N1", "-n1", "-t", "5", "-L", "disk:1"))
    asked.run(["scontrol", "release", str(job)])
    asked.until(lambda: asked.job(job)["Reason"] == "Licenses", 20, lambda: asked.job(job))
    assert "waits" in text(asked, job) and "it waits for licences: disk:1" in text(asked, job)
    assert "needs" not in text(asked, job) and "room:" not in text(asked, job)
    until = time.monotonic() + 3
    while time.monotonic() < until:     # the scheduler writes its reason every two seconds
        assert asked.job(job)["Reason"] in ("Licenses", "None")
        time.sleep(0.1)


def test_reservations_hold_jobs_up_too(asked):
    asked.run(["scontrol", "create", "reservation", "ReservationName=night", "StartTime=now+120",
               "Duration=30", "Users=root", "Nodes=n[0-11]"])
    try:
        holder(asked, "n12", 20)
        job = waiting(asked, "--shape=4x4x4", "-t", "10", reason="e")
        told = asked.until(lambda: explain(asked, job) if explain(asked, job)["held_up_by"]
                           else None, 20, "what holds it up")
        assert told["held_up_by"][0]["kind"] in ("job", "reservation")
        assert len(told["held_up_by"]) == 1
        inside = waiting(asked, "--shape=4x4x4", "-t", "5", "--reservation=night",
                         reason="Reservation")
        assert "its reservation night has not begun" in text(asked, inside)
        assert "held_up_by" not in explain(asked, inside)
        two = asked.sbatch("--shape=8x4x4", "-t", "10")
        assert inside not in explain(asked, two)["ahead"]
        assert by(explain(asked, two)) == ["night"]
        assert "reservation night" in text(asked, two)
    finally:
        asked.cancel_all()
        asked.run(["scontrol", "delete", "ReservationName=night"])


def test_where_a_job_runs(asked):
    shaped = asked.sbatch("--shape=8x4x4", "-t", "5")
    asked.running(shaped)
    shown = text(asked, shaped)
    placement = asked.placement(shaped)
    assert "realised" in shown and "cubes:    c[" in shown and len(placement["cubes"]) == 2
    assert asked.job(shaped)["EndTime"] in shown and asked.job(shaped)["NodeList"] in shown
    assert explain(asked, shaped)["end"] == end_of(asked, shaped)
    plain = asked.sbatch("-N1", "-n1", "-t", "5")
    asked.running(plain)
    shown = text(asked, plain)
    assert "holds no circuits" in shown and asked.job(plain)["NodeList"] in shown
    asked.run(["scancel", str(plain)])
    asked.wait(plain, "CANCELLED")
    asked.until(lambda: "CANCELLED" in text(asked, plain), 20, "its end")
    done = asked.run(["ocsctl", "explain", "4000000", "--fabric", asked.yaml], check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_topology_names_no_jobs(asked):
    """slurmctld is not told who asks for it, so with PrivateData=jobs nobody sees them there."""
    job = asked.sbatch("--shape=4x4x4")
    asked.running(job)
    for user in ("nobody", None):
        text = asked.out(["scontrol", "show", "topology"], user=user)
        assert "Busy=4" in text and "Jobs=" not in text and "Address=" not in text, text
    assert asked.ocsctl("show", "job", str(job))["jobs"]


def test_a_user_learns_nothing_of_others(asked):
    """PrivateData=jobs: that nodes are taken is no secret, who has them is."""
    own = asked.sbatch("-N1", "-n1", "--exclusive", "-w", "n12", "-t", "9", user="nobody")
    others = [holder(asked, node, 5) for node in ("n0", "n4", "n8")]
    asked.running(own)
    job = waiting(asked, "--shape=4x4x4", "-t", "5", user="nobody")
    told = explain(asked, job, user="nobody")
    assert len(told["held_up_by"]) == 1 and told["held_up_by"][0]["kind"] in ("job", "hidden")
    done = asked.run(["ocsctl", "explain", str(job), "--fabric", asked.yaml], user="nobody")
    for secret in others:
        assert "job %d" % secret not in done.stdout
    assert "root" not in done.stdout
    two = asked.sbatch("--shape=8x4x4", "-t", "5", user="nobody")
    done = asked.run(["ocsctl", "explain", str(two), "--fabric", asked.yaml], user="nobody")
    assert "jobs not shown to you" in done.stdout, done.stdout
    for hidden in others[:1]:
        done = asked.run(["ocsctl", "explain", str(hidden), "--fabric", asked.yaml],
                         user="nobody", check=False)
        assert done.returncode == 1 and "not yours to see" in done.stderr, done.stderr
