# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""However a job ends and whatever dies, the switches end up holding exactly the
circuits of the jobs that still run."""

import signal
import time

import pytest

from rings import broken_edges


@pytest.fixture
def bystander(pod):
    """A shaped job that must not notice anything."""
    job = pod.sbatch("--shape=4x4x4", "--no-requeue")
    pod.running(job)
    kept = pod.circuit_patches(pod.placement(job))
    assert kept and kept == pod.patches()
    yield kept
    assert pod.state(job) == "RUNNING"
    assert not broken_edges(pod.placement(job), pod.patches(), pod.switch_size())


def only(pod, kept, seconds=30):
    pod.until(lambda: pod.patches() == kept, seconds,
              lambda: "exactly the other job's circuits; too many: %s, missing: %s" % (
                  sorted(pod.patches() - kept)[:4], sorted(kept - pod.patches())[:4]))


def start(pod, *arguments, script="sleep 300"):
    job = pod.sbatch("--shape=8x4x4", *arguments, script=script)
    pod.running(job)
    assert not broken_edges(pod.placement(job), pod.patches(), pod.switch_size())
    return job


def start_until_told(pod, status):
    """A job whose script ends with STATUS, once the file that comes second is there."""
    leave = pod.path("out", "leave.%d" % time.monotonic_ns())
    return start(pod, script="until [ -e %s ]; do sleep 0.1; done; exit %d" % (leave, status)), leave


def gone(pod, job, node):
    """No file of the job is left on its node."""
    pod.until(lambda: pod.run(["test", "-e", pod.job_dir(node, job)],
                              check=False).returncode != 0, 20, "the job's folder to go")


def test_normal_end(pod, bystander):
    job, leave = start_until_told(pod, 0)
    node = pod.job(job)["BatchHost"]
    pod.run(["touch", leave])
    pod.wait(job, "COMPLETED")
    only(pod, bystander)
    gone(pod, job, node)


def test_failure(pod, bystander):
    job, leave = start_until_told(pod, 3)
    pod.run(["touch", leave])
    pod.wait(job, "FAILED")
    only(pod, bystander)


def test_cancel_while_running(pod, bystander):
    job = start(pod)
    pod.run(["scancel", str(job)])
    pod.wait(job, "CANCELLED")
    only(pod, bystander)


def test_cancel_while_the_prolog_is_slow(pod, bystander):
    pod.emulator("delay", "3000")
    try:
        job = pod.sbatch("--shape=8x4x4", script="touch %s/out/%s.ran" % (pod.dir, "slow"))
        pod.wait(job, ("CONFIGURING", "RUNNING"))
        pod.until(lambda: (job, "applying") in [(row["job"], row["state"]) for row in pod.ocsctl("show", "job")["jobs"]], 30,
                  lambda: "its circuits to be on their way: %s" % pod.ocsctl("show", "job"))
        pod.run(["scancel", str(job)])
        pod.wait(job, "CANCELLED")
    finally:
        pod.emulator("delay", str(pod.delay_ms))
    only(pod, bystander)
    assert pod.run(["test", "-e", pod.path("out", "slow.ran")], check=False).returncode


def test_time_limit(pod, bystander):
    job = start(pod, "-t", "1")             # slurmctld counts in minutes
    pod.wait(job, "TIMEOUT", 150)
    only(pod, bystander)


def test_requeue(pod, bystander):
    job = start(pod, "--requeue")
    first = pod.job(job)
    pod.run(["scontrol", "requeue", str(job)])
    pod.until(lambda: pod.job(job).get("Restarts") == "1", 20, "the requeue")
    pod.running(job, 180)
    assert pod.job(job)["Restarts"] == "1" and first["Restarts"] == "0"
    assert not broken_edges(pod.placement(job), pod.patches(), pod.switch_size())
    pod.run(["scancel", str(job)])
    only(pod, bystander)


def test_node_death(pod, bystander):
    job = start(pod, "--no-requeue")
    nodes = pod.out(["scontrol", "show", "hostnames", pod.job(job)["NodeList"]]).split()
    victim = nodes[-1]
    pod.stop_slurmd(victim)
    pod.run(["scontrol", "update", "NodeName=" + victim, "State=DOWN", "Reason=died"])
    pod.wait(job, ("NODE_FAIL", "FAILED", "CANCELLED"))
    only(pod, bystander)
    pod.start_slurmd(victim)
    pod.run(["scontrol", "update", "NodeName=" + victim, "State=RESUME"], check=False)


def test_slurmd_restart(pod, bystander):
    job = start(pod)
    node = pod.job(job)["BatchHost"]
    pod.stop_slurmd(node)
    time.sleep(0.5)
    pod.start_slurmd(node)
    time.sleep(1)
    assert pod.state(job) == "RUNNING"
    pod.run(["scancel", str(job)])
    pod.wait(job, "CANCELLED")
    only(pod, bystander)


def test_job_ends_while_a_slurmd_is_away(pod, bystander):
    job = start(pod)
    node = pod.job(job)["BatchHost"]
    pod.stop_slurmd(node)
    pod.run(["scancel", str(job)])
    time.sleep(2)
    pod.start_slurmd(node)
    pod.wait(job, "CANCELLED", 90)
    only(pod, bystander, 60)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_slurmctld_restart(pod, bystander, how):
    job = start(pod)
    before = pod.patches()
    if how == signal.SIGKILL:
        pod.saved()
    pod.kill("slurmctld", how)
    pod.start_slurmctld()
    assert pod.state(job) == "RUNNING"
    time.sleep(2)
    assert pod.patches() == before
    third = pod.sbatch("--shape=4x4")
    pod.running(third)                      # the recovered allocations are respected
    assert not broken_edges(pod.placement(third), pod.patches(), pod.switch_size())
    pod.run(["scancel", str(job), str(third)])
    pod.wait(job, "CANCELLED")
    only(pod, bystander)


def test_job_ends_while_slurmctld_is_dead(pod, bystander):
    job, leave = start_until_told(pod, 0)
    pod.saved()
    pod.kill("slurmctld")
    pod.run(["touch", leave])
    time.sleep(5)
    pod.start_slurmctld()
    pod.wait(job, ("COMPLETED", "NODE_FAIL", "FAILED"), 90)
    only(pod, bystander, 60)


def test_slurmctld_killed_during_the_prolog(pod, bystander):
    pod.saved()
    pod.emulator("delay", "2000")
    try:
        job = pod.sbatch("--shape=8x4x4")
        pod.wait(job, ("CONFIGURING", "RUNNING"))
        pod.kill("slurmctld")
        pod.start_slurmctld()
    finally:
        pod.emulator("delay", str(pod.delay_ms))
    # The job itself may not have reached the disk: then its nodes end it.
    pod.run(["scancel", str(job)], check=False)
    only(pod, bystander, 90)
    # A prolog that waits removes what it made; where one had ended, the next job's prolog does.
    pod.until(lambda: not pod.out("for dir in /run/ocs/*/%d; do [ ! -e $dir/epoch ] || [ -e $dir/env ] || "
                                  "echo $dir; done" % job), 60, "the folders of prologs that waited to go")
    for shape in ("8x4x4", "4x4x4"):        # all that is free
        pod.running(pod.sbatch("--shape=" + shape))
    left = pod.run("ls -d /run/ocs/*/%d" % job, check=False).stdout
    assert not left, left


def test_ocsd_killed_while_jobs_run(pod, bystander):
    job = start(pod)
    before = pod.patches()
    pod.kill("ocsd")
    time.sleep(1)
    assert pod.patches() == before, "circuits outlive their daemon"
    pod.start_ocsd()
    time.sleep(2)
    assert pod.patches() == before
    pod.run(["scancel", str(job)])
    pod.wait(job, "CANCELLED")
    only(pod, bystander)


def test_job_ends_while_ocsd_is_dead(pod, bystander):
    job = start(pod)
    pod.kill("ocsd")
    pod.run(["scancel", str(job)])
    time.sleep(2)
    pod.start_ocsd()
    pod.wait(job, "CANCELLED", 60)
    only(pod, bystander, 60)


def test_ocsd_killed_during_the_prolog(pod, bystander):
    pod.emulator("delay", "1500")
    try:
        job = pod.sbatch("--shape=8x4x4")
        pod.wait(job, ("CONFIGURING", "RUNNING"))
        time.sleep(0.7)
        pod.kill("ocsd")
        pod.start_ocsd()
        pod.running(job, 90)
    finally:
        pod.emulator("delay", str(pod.delay_ms))
    assert not broken_edges(pod.placement(job), pod.patches(), pod.switch_size())
    pod.run(["scancel", str(job)])
    only(pod, bystander, 60)


def test_switch_away_at_teardown(pod, bystander):
    job = start(pod)
    switch = sorted(pod.circuit_patches(pod.placement(job)))[0][0]
    pod.emulator("fault", switch, "silent")
    pod.run(["scancel", str(job)])
    pod.wait(job, "CANCELLED", 60)
    pod.emulator("fault", switch, "none")
    only(pod, bystander, 60)
    pod.wait_for_switch(switch)
