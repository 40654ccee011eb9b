# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Many jobs, and jobs that belong together: arrays, bursts, heterogeneous jobs,
dependencies, holds and requeues.  Volume is tried on nodes that never come (cloud.py);
OCS_BURST is the number of submissions of the burst."""

import os
import time

import pytest

from cloud import Cloud
from conftest import living
from rings import broken_edges

BURST = int(os.environ.get("OCS_BURST", "300"))
# Two cubes of 2x2x2, one node each, and eight circuits.
SHAPE, NODES, CIRCUITS = "--shape=4x2x2", 2, 8


@pytest.fixture(scope="module")
def cloud():
    """1024 cubes of 2x2x2, a node each."""
    with living(Cloud, cubes=1024, edge=2, tile=(2, 2, 2), delay_ms=0, config={
            "SchedulerParameters": "bf_interval=1,sched_interval=1,batch_sched_delay=0,"
                                   "default_queue_depth=3000,bf_max_job_test=3000,bf_continue"}) as cluster:
        yield cluster


def known(cluster):
    """{job: its row} as ocsd has it."""
    rows = cluster.ocsctl("show", "job")["jobs"]
    assert len({row["job"] for row in rows}) == len(rows), rows
    return {row["job"]: row for row in rows}


def expand(text):
    """"n[0-1,7]" as numbers."""
    for part in text.lstrip("n").strip("[]").split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def judge(rows):
    """No epoch twice, no node twice, a placement and circuits for each."""
    nodes = [node for row in rows for node in expand(row["nodes"])]
    assert len(set(nodes)) == len(nodes) == NODES * len(rows)
    assert len({row["epoch"] for row in rows}) == len(rows)
    assert len({row["placement"] for row in rows}) == len(rows)
    assert all(row["circuits"] == CIRCUITS for row in rows)


def running(cluster, count, seconds=60):
    def reached():
        return cluster.count("CF,R") == count
    cluster.until(reached, seconds, lambda: "%d jobs to have nodes; %d have" % (
        count, cluster.count("CF,R")))
    cluster.until(lambda: len(known(cluster)) == count, 20, lambda: "ocsd to know %d, not %d" % (
        count, len(known(cluster))))


def cancel(cluster):
    cluster.run("squeue -h -o %A | sort -u | xargs -r scancel")
    cluster.until(lambda: not cluster.out(["squeue", "-h"]).strip(), 60, "an empty queue")
    cluster.until(lambda: not known(cluster), 30, lambda: "ocsd to forget %s" % list(known(cluster)))


def test_array_of_a_thousand(cloud):
    """The throttle holds, parts are cancelled, the rest takes turns, every element has its own
    nodes, placement and epoch, and nothing is left behind."""
    job = cloud.sbatch(SHAPE, "--array=0-999%300")
    running(cloud, 300)
    first = known(cloud)
    judge(list(first.values()))
    # A map of more jobs than letters: no letter stands for many jobs, let alone for all that
    # the others did not suffice for.
    told = cloud.out(["ocsctl", "map", "--fabric", cloud.yaml])
    letters = [line[0] for line in told.splitlines() if line[1:7] == "  job "]
    assert len(letters) == 300 and max(letters.count(letter) for letter in letters) == 5
    assert len(told.splitlines()) < 330, told       # 1024 cubes: a sign each
    cloud.run(["scancel", "%d_[0-49]" % job, "%d_[500-599]" % job])
    running(cloud, 300)                                         # fifty others

    def others():
        now = known(cloud)
        return now if len(set(first) - set(now)) == len(set(now) - set(first)) == 50 else None
    second = cloud.until(others, 30, "ocsd to know fifty others")
    judge(list(second.values()))
    assert all(second[at]["epoch"] == first[at]["epoch"] for at in set(first) & set(second))
    # Slurm complains about the elements that are no more.
    cloud.run(["scontrol", "update", "JobId=%d" % job, "ArrayTaskThrottle=400"], check=False)
    running(cloud, 400)
    judge(list(known(cloud).values()))
    left = cloud.out(["squeue", "-h", "-r", "-j", str(job), "-o", "%K"]).split()
    assert sorted(map(int, left)) == list(range(50, 500)) + list(range(600, 1000))
    cancel(cloud)


def test_array_that_is_too_large_is_refused(cloud):
    limit = int(cloud.config.get("MaxArraySize", "2000"))
    assert "array" in cloud.refused(SHAPE, "--array=0-%d" % limit)
    job = cloud.sbatch(SHAPE, "-H", "--array=%d" % (limit - 1))
    assert cloud.job(job)["Extra"].strip() == "shape=4x2x2"
    cancel(cloud)


def test_burst(cloud):
    """Many sbatch at once: none is lost, none is there twice, slurmctld answers meanwhile, and
    ocsd's tables are clean at the end."""
    slowest, at = 0, cloud.path("burst")
    sender = cloud.spawn(["bash", "-c", "seq %d | xargs -P4 -I{} sbatch --parsable -J burst-{} "
                          "-o /dev/null %s --wrap 'sleep 100'" % (BURST, SHAPE)], at)
    while sender.poll() is None:
        start = time.monotonic()
        cloud.out(["squeue", "-h", "-t", "R"], timeout=30)
        slowest = max(slowest, time.monotonic() - start)
        time.sleep(0.2)
    print("%d submissions; squeue took at most %.2f s" % (BURST, slowest))
    assert sender.returncode == 0
    with open(at) as handle:
        numbers = [int(line) for line in handle.read().split()]
    assert len(set(numbers)) == len(numbers) == BURST
    rows = [line.split() for line in cloud.out(["squeue", "-h", "-o", "%A %j"]).splitlines()]
    assert sorted(int(row[0]) for row in rows) == sorted(numbers)
    assert {row[1] for row in rows} == {"burst-%d" % i for i in range(1, BURST + 1)}
    assert slowest < 20
    running(cloud, min(BURST, len(cloud.nodes) // NODES), 120)
    found = known(cloud)
    judge(list(found.values()))
    assert set(found) <= set(numbers)
    cancel(cloud)
    assert not cloud.patches()


# On slurmds that run.

def component(pod, job, part):
    return pod.job("%d+%d" % (job, part))


def test_heterogeneous_parts(pod):
    """Two shapes and a part without one: each its own shape, epoch and circuits, and the part
    without inherits nothing, be it written as options or in the script."""
    script = ("#SBATCH --shape=4x4x4\n#SBATCH hetjob\n#SBATCH --shape=4x8 --conn-type=mesh,torus\n"
              "#SBATCH hetjob\n#SBATCH -N1 -n1\nsleep 300")
    job = pod.sbatch(script=script)
    pod.running(job, 90)
    parts = [component(pod, job, part) for part in range(3)]
    assert [part.get("Extra", "").strip() for part in parts] == [
        "shape=4x4x4", "shape=4x8 conn=mesh,torus", ""]
    assert [int(part["NumNodes"]) for part in parts] == [16, 8, 1]
    assert "shape=4x4x4 " in parts[0]["AdminComment"] and "shape=4x8 " in parts[1]["AdminComment"]
    assert "AdminComment" not in parts[2] and "SystemComment" not in parts[2]
    epochs = {part["SystemComment"].split()[1] for part in parts[:2]}
    assert len(epochs) == 2
    for part in parts[:2]:
        placement = pod.placement(int(part["JobId"]), part["BatchHost"])
        assert not broken_edges(placement, pod.patches(), pod.switch_size())
    pod.run(["scancel", str(job)])
    pod.until(lambda: not pod.patches(), 60, "dark switches")


def test_elements_have_circuits_of_their_own(pod):
    job = pod.sbatch("--shape=4x4x4", "--array=0-7%4", script="test -s $SLURM_OCS_DIR/placement.json "
                     "&& cp $SLURM_OCS_DIR/placement.json %s/out/array-$SLURM_ARRAY_TASK_ID" % pod.dir)
    pod.until(lambda: not pod.out(["squeue", "-h", "-j", str(job)]).strip(), 120, "the array")
    assert len([name for name in os.listdir(pod.path("out")) if name.startswith("array-")]) == 8
    done = pod.out(["scontrol", "-o", "show", "job", str(job)])
    assert done.count("JobState=COMPLETED") == 8, done
    pod.until(lambda: not known(pod), 30, "ocsd to forget the array")


def test_hold_release_requeue(pod):
    """A held job has nothing; released, it gets circuits; requeued and held it gives them back;
    released again it gets a later epoch."""
    job = pod.sbatch("-H", "--requeue", "--shape=4x4x4")
    assert pod.job(job)["Reason"].startswith("JobHeld") and job not in known(pod)
    pod.run(["scontrol", "release", str(job)])
    pod.running(job)
    first = known(pod)[job]["epoch"]
    pod.run(["scontrol", "requeuehold", str(job)])
    pod.until(lambda: not pod.patches() and job not in known(pod), 60, "the circuits to go")
    pod.until(lambda: pod.state(job) == "PENDING", 60, "the job to wait")
    held = pod.job(job)
    assert "SystemComment" not in held and held["Extra"].strip() == "shape=4x4x4"
    pod.run(["scontrol", "update", "JobId=%d" % job, "Extra=shape=2x2x2x2x2x2"])
    pod.run(["scontrol", "release", str(job)])
    pod.running(job, 120)
    assert known(pod)[job]["epoch"] > first
    fields = pod.job(job)
    fields.pop("SubmitLine", None)
    assert "shape=2x2x2x2x2x2 " in fields["AdminComment"] and "shape=4x4x4" not in str(fields)


def test_dependencies(pod):
    """afterok, afternotok and singleton between jobs with shapes that would all fit at once."""
    first = pod.sbatch("--shape=4x4x4", script="sleep 1")
    second = pod.sbatch("--shape=8x4x4", "-d", "afterok:%d" % first, script="sleep 1")
    never = pod.sbatch("--shape=4x4", "-d", "afternotok:%d" % first)
    single = [pod.sbatch("--shape=4x4", "-J", "one", "-d", "singleton", script="sleep 1")
              for _ in range(3)]
    pod.wait(single[-1], "COMPLETED", 120)
    pod.wait(second, "COMPLETED", 120)
    times = {job: pod.job(job) for job in [first, second] + single}
    assert times[second]["StartTime"] >= times[first]["EndTime"]
    for one, next_one in zip(single, single[1:]):
        assert times[next_one]["StartTime"] >= times[one]["EndTime"]
    assert pod.job(never)["Reason"] == "DependencyNeverSatisfied" and never not in known(pod)
