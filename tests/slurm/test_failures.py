# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Switches that fail and a daemon that is away: nothing is drained, no script runs
without its circuits, and nobody else notices."""

import os
import time

import pytest

from rings import broken_edges


def drained(pod):
    return [line for line in pod.out(["sinfo", "-h", "-N", "-o", "%N %T"]).splitlines()
            if "drain" in line or "down" in line]


@pytest.fixture
def silent(pod):
    """Makes switches silent; all of them answer again afterwards."""
    broken = []

    def make(switch):
        pod.emulator("fault", switch, "silent")
        broken.append(switch)

    yield make
    for switch in broken:
        pod.emulator("fault", switch, "none")
    for switch in broken:
        pod.wait_for_switch(switch)


def test_batch_job_is_requeued_and_named(pod, silent):
    silent("ocs-x-0-0")
    ran = pod.path("out", "ran-without-circuits")
    job = pod.sbatch("--shape=4x4x4", script="touch " + ran)
    # A whole cube needs every switch: the job cannot start, is requeued, and waits.
    pod.until(lambda: int(pod.job(job).get("Restarts", 0)) >= 1, 60, "the requeue")
    def waits():
        fields = pod.job(job)
        return fields["JobState"] == "PENDING" and "ocs-x-0-0" in " ".join(fields.values())
    pod.until(waits, 60, lambda: "a pending job that names the switch: %s" % pod.job(job))
    assert not drained(pod)
    assert pod.run(["test", "-e", ran], check=False).returncode != 0
    # A job that does not need the switch goes ahead meanwhile.
    other = pod.sbatch("--shape=2x2x2")
    pod.running(other)
    pod.emulator("fault", "ocs-x-0-0", "none")
    pod.wait(job, "COMPLETED", 60)
    assert not drained(pod)


def test_other_placements_avoid_the_switch(pod, silent):
    silent("ocs-z-0-0")
    pod.run(["scancel", str(pod.sbatch("--shape=4x4x4"))])
    pod.wait_for_switch("ocs-z-0-0", "failed")
    job = pod.sbatch("--shape=4x4")
    pod.running(job)
    assert not any(c["dim"] == "z" and c["position"] == [0, 0]
                   for c in pod.placement(job)["circuits"])
    assert not broken_edges(pod.placement(job), pod.patches(), pod.switch_size())


def test_held_after_three_attempts(pod):
    """The switch takes connections and reads, but fails every change."""
    pod.emulator("fault", "ocs-y-1-1", "deny")
    try:
        job = pod.sbatch("--shape=4x4x4")
        def held():
            fields = pod.job(job)
            return fields["JobState"] == "PENDING" and fields["Priority"] == "0"
        pod.until(held, 120, lambda: "the job to be held: %s" % pod.job(job))
        fields = pod.job(job)
        assert int(fields["Restarts"]) == 3
        assert "ocs-y-1-1" in " ".join(fields.values())
        assert not drained(pod)
    finally:
        pod.emulator("fault", "ocs-y-1-1", "none")
    pod.wait_for_switch("ocs-y-1-1")


def test_interactive_job_is_cancelled_with_a_message(pod, silent):
    silent("ocs-x-1-1")
    done = pod.run(["srun", "--shape=4x4x4", "echo", "ran"], check=False)
    assert done.returncode != 0
    assert "ran" not in done.stdout
    assert "ocs-x-1-1" in done.stderr
    assert not drained(pod)


def test_batch_job_that_may_not_be_requeued(pod, silent):
    silent("ocs-x-2-2")
    job = pod.sbatch("--shape=4x4x4", "--no-requeue", script="touch %s/out/never" % pod.dir)
    pod.wait(job, ("CANCELLED", "FAILED", "NODE_FAIL"), 60)
    assert "ocs-x-2-2" in " ".join(pod.job(job).values())
    assert pod.run(["test", "-e", pod.path("out", "never")], check=False).returncode != 0
    assert not drained(pod)


def test_without_ocsd(pod):
    pod.kill("ocsd")
    time.sleep(1.5)
    shaped = pod.sbatch("--shape=4x4x4")
    plain = [pod.sbatch("-N1", "-n1", script="sleep 1") for _ in range(3)]
    for job in plain:
        pod.wait(job, "COMPLETED", 30)
    fields = pod.job(shaped)
    assert fields["JobState"] == "PENDING"
    pod.until(lambda: "ocsd" in pod.job(shaped)["Reason"], 20,
              lambda: "a reason that names ocsd: %s" % pod.job(shaped))
    pod.run(["sbatch", "--test-only", "--shape=4x4", "--wrap", "true"], check=False)
    pod.start_ocsd()
    pod.running(shaped, 30)


def test_prolog_that_cannot_read_ocs_yaml(pod):
    """At its deadline the job is taken off its nodes, none of which is to blame."""
    with open(pod.path("etc", "plugstack.conf")) as handle:
        good = handle.read()
    ran = pod.path("out", "ran-unread")
    job = pod.sbatch("--shape=2x2x2", "-H", script="touch " + ran)
    try:
        pod.write("etc/plugstack.conf", good.replace("conf=", "prolog_timeout=2 conf=/nowhere"))
        pod.run(["scontrol", "release", str(job)])
        pod.until(lambda: pod.job(job)["Restarts"] == "1" and pod.state(job) == "PENDING", 60,
                  lambda: "the job to leave: %s" % pod.job(job))
    finally:
        pod.write("etc/plugstack.conf", good)
    assert "held" in pod.job(job)["Reason"].lower() and not os.path.exists(ran)
    pod.wait_idle()
    assert not drained(pod)


def test_prolog_that_cannot_write(pod):
    """The node is to blame, and the script does not run without what it needs."""
    ran = pod.path("out", "ran-unwritten")
    job = pod.sbatch("--shape=2x2x2", "-H", script="touch " + ran)
    dirs = " ".join(pod.job_dir("n%d" % i, job) for i in range(64))
    pod.run("for dir in %s; do mkdir -p $(dirname $dir) && touch $dir; done" % dirs)
    try:
        pod.run(["scontrol", "release", str(job)])
        pod.until(lambda: pod.job(job)["Restarts"] == "1" and pod.state(job) == "PENDING", 60,
                  lambda: "the job to leave: %s" % pod.job(job))
    finally:
        pod.run(["rm", "-f"] + dirs.split())
    pod.until(lambda: not pod.patches(), 30, "dark switches")
    assert not os.path.exists(ran)
    pod.until(lambda: drained(pod), 20, "a drained node")
    reasons = pod.out(["sinfo", "-h", "-R", "-o", "%E"]).split("\n")
    assert set(filter(None, reasons)) == {"Prolog error"}, reasons


def test_pending_reason_says_what_is_missing(pod):
    first = pod.sbatch("--shape=8x8x4")
    pod.running(first)
    second = pod.sbatch("--shape=4x4x4")
    pod.until(lambda: "cube" in pod.job(second)["Reason"], 30,
              lambda: "a readable reason: %s" % pod.job(second))
    answer = pod.out(["ocsctl", "explain", str(second), "--fabric", pod.yaml])
    assert "cube" in answer
    pod.run(["scancel", str(first)])
    pod.running(second)


def ready(pod):
    with open(pod.path("ocsd.log"), errors="replace") as handle:
        return handle.read().count("ready: ")


def test_ocsd_reloads_while_a_prolog_waits(pod, silent):
    """A job in its prolog, one that runs, one that waits: none notices."""
    running = pod.sbatch("--shape=4x4x4")
    pod.running(running)
    before = pod.patches()
    pod.emulator("delay", "3000")
    slow = pod.sbatch("--shape=4x4x4")
    pod.until(lambda: pod.state(slow) == "RUNNING", 30, "the prolog of the second job")
    starts = ready(pod)
    pod.run(["pkill", "-HUP", "-x", "ocsd"])
    pod.emulator("delay", "20")
    pod.until(lambda: ready(pod) > starts, 30, "the reload")
    pod.until(lambda: before < pod.patches(), 60, "circuits of the second job")
    fields = pod.job(slow)
    assert (fields["JobState"], fields.get("Restarts", "0")) == ("RUNNING", "0")
    assert pod.state(running) == "RUNNING"
    later = pod.sbatch("--shape=2x2x2", script="true")
    pod.wait(later, "COMPLETED", 60)
    assert not drained(pod)


def test_patch_pulled_by_hand_comes_back(pod):
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    before = pod.patches()
    switch, ingress, _ = sorted(before)[0]
    pod.emulator("unpatch", switch, str(ingress))
    pod.until(lambda: pod.patches() == before, 30, "the circuit to be restored")
    assert pod.state(job) == "RUNNING"


def test_drained_switch_and_cube_are_avoided(pod):
    pod.run(["ocsctl", "drain", "cube", "c0", "--reason", "maintenance", "--fabric", pod.yaml])
    pod.run(["ocsctl", "drain", "switch", "ocs-x-3-3", "--reason", "dirty", "--fabric", pod.yaml])
    try:
        time.sleep(1)
        job = pod.sbatch("--shape=2x2x2")
        pod.running(job)
        assert "c0" not in pod.placement(job)["cubes"]
        whole = pod.sbatch("--shape=4x4x4")
        pod.until(lambda: pod.job(whole)["Reason"] not in ("None", "Priority", "Resources"),
                  30, lambda: "a reason: %s" % pod.job(whole))
        assert pod.state(whole) == "PENDING"
    finally:
        pod.run(["ocsctl", "resume", "cube", "c0", "--fabric", pod.yaml])
        pod.run(["ocsctl", "resume", "switch", "ocs-x-3-3", "--fabric", pod.yaml])
    pod.running(whole)
