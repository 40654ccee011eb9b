# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs with circuits neither grow nor shrink; others do as ever."""


def update(pod, job, *words):
    return pod.run(["scontrol", "update", "JobId=%d" % job] + list(words), check=False)


def one_line(done, needle):
    assert done.returncode, done.stdout
    lines = [line for line in done.stderr.strip().splitlines()
             if line.strip() != "Requested topology configuration is not available for job"]
    assert needle in done.stderr, done.stderr
    assert len([line for line in lines if needle in line]) == 1, done.stderr


def test_a_shaped_job_does_not_grow(pod):
    job = pod.sbatch("--shape=4x4x4")
    nodes = pod.running(job)["NodeList"]
    held = pod.patches()
    one_line(update(pod, job, "NumNodes=20"), "nodes cannot be added or given back")
    told = pod.refused("-N1", "--dependency=expand:%d" % job)
    assert "has circuits between the nodes it started on and cannot grow" in told, told
    waiting = pod.sbatch("-N1", "-H")
    one_line(update(pod, waiting, "Dependency=expand:%d" % job), "cannot grow")
    assert pod.job(job)["NodeList"] == nodes and pod.patches() == held


def test_a_shape_expands_no_other_job(pod):
    plain = pod.sbatch("-N1", "-n1")
    pod.running(plain)
    told = pod.refused("--shape=2x2", "--dependency=expand:%d" % plain)
    assert "submit one job with the larger shape" in told, told


def test_a_shaped_job_does_not_shrink(pod):
    job = pod.sbatch("--shape=4x4x4")
    nodes = pod.running(job)["NodeList"]
    held = pod.patches()
    first = pod.out(["scontrol", "show", "hostnames", nodes]).split()[0]
    one_line(update(pod, job, "NumNodes=8"), "nodes cannot be added or given back")
    one_line(update(pod, job, "NodeList=" + first), "nodes cannot be added or given back")
    assert pod.job(job)["NodeList"] == nodes
    assert pod.state(job) == "RUNNING" and pod.patches() == held
    pod.run(["scancel", str(job)])
    pod.until(lambda: not pod.patches(), 20, "dark switches")


def test_a_job_on_a_direct_fabric_keeps_its_servers(pod):
    """It has no shape, but circuits between all of its servers."""
    job = pod.sbatch("-p", "direct", "-N4")
    nodes = pod.running(job)["NodeList"]
    held = pod.patches()
    assert held
    one_line(update(pod, job, "NumNodes=2"), "has circuits between its nodes")
    told = pod.refused("-p", "direct", "-N1", "--dependency=expand:%d" % job)
    assert "expand" in told and "larger shape" in told, told
    assert pod.job(job)["NodeList"] == nodes and pod.patches() == held


def test_unshaped_jobs_shrink_as_ever(pod):
    """On cubes, too: what they give back serves a shape."""
    job = pod.sbatch("-N4", "-n4", "--exclusive", "-w", "n[0-3]")
    pod.running(job)
    assert update(pod, job, "NumNodes=2").returncode == 0
    pod.until(lambda: pod.job(job)["NodeList"] == "n[0-1]", 20, lambda: pod.job(job))
    shaped = pod.running(pod.sbatch("--shape=12x4x4"))
    assert shaped["NumNodes"] == "48"
    # And the one after that, too: Slurm keeps count of who shares a node with nobody.
    for _ in range(2):
        pod.cancel_all()
        pod.running(pod.sbatch("--shape=16x4x4"))


def test_a_pending_job_keeps_the_count_of_its_shape(pod):
    job = pod.sbatch("-H", "--shape=4x4x4")
    one_line(update(pod, job, "NumNodes=8"), "--shape=4x4x4 needs 16 nodes, but -N asks for 8")
    assert pod.job(job)["NumNodes"] == "16-16"
