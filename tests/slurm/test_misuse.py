# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Users and administrators who do what they should not: odd words, forged variables,
patches by hand, a description that changes under running jobs."""

import signal

import pytest

from rings import broken_edges
from test_shapes import TELL, tasks


def size(pod):
    return pod.switch_size()


@pytest.mark.parametrize("shape", [
    "4XX4", "4 x4", "4x4 ", "4,4", "+4", "0x10", "4.0", "1e3", "_twisted", "4x4x8_twistedx",
    "4xx4", "\u0664x\u0664", "4x4\n", "$(id)", "(null)", "4x" * 200 + "4", "9" * 3000,
    "1048576x1048576", "2147483648", "4294967296x4", "4x4x8_twisted_twisted"])
def test_odd_words(pod, shape):
    message = pod.refused("--shape=" + shape)
    lines = [line for line in message.splitlines() if "Batch job submission" not in line]
    assert len(lines) == 1 and len(lines[0]) < 300, message
    assert lines[0].startswith("sbatch: error: ") and lines[0].isascii()
    assert not pod.out(["squeue", "-h"]).strip()


@pytest.mark.parametrize("env,extra", [
    ({"OCS_SHAPE": ""}, None), ({"OCS_CONN_TYPE": "mesh"}, None),
    ({"SLURM_OCS_SHAPE": "4x4"}, None), ({"SPANK_OCS_EPOCH": "5"}, None),
    ({"_SLURM_SPANK_OPTION_spank_ocs_shape": "4x4"}, None),
    ({"OCS_SHAPE": "2X2"}, "shape=2x2"),
    ({"OCS_SHAPE": "3x1", "OCS_CONN_TYPE": "mesh"}, "shape=3x1 conn=mesh,mesh"),
    ({"OCS_SHAPE": "2x2", "OCS_CONN_TYPE": ""}, "shape=2x2")])
def test_variables(pod, env, extra):
    job = pod.sbatch("-H", "-n1", env=env)
    found = pod.job(job).get("Extra", "").strip()
    assert found in ((extra,) if extra else ("", "(null)"))


@pytest.mark.parametrize("env,word", [
    ({"OCS_SHAPE": "bogus"}, "bogus"), ({"OCS_SHAPE": "2x2", "OCS_CONN_TYPE": "x"}, "'x'")])
def test_wrong_variables(pod, env, word):
    assert word in pod.refused(env=env)


@pytest.mark.parametrize("arguments,word", [
    (["--shape=4x4x8_twisted", "--conn-type=mesh"], "rings"),
    (["--shape=4x4", "-w", "p0"], "p0"),
    (["--shape=4x4", "-n17"], "at most -n 16"),
    (["--shape=4x4", "-n9", "-c2"], "at most -n 8"),
    (["--shape=8x8x4", "-x", "n0"], "would fit there: ")])
def test_contradictions(pod, arguments, word):
    """Slurm itself would say: Requested node configuration is not available."""
    message = pod.refused(*arguments)
    assert word in message.split("\n")[0], message


def test_partition_with_some_of_the_nodes(pod):
    """What would fit is what fits the partition."""
    with open(pod.yaml) as handle:
        good = handle.read()
    pod.run(["scontrol", "create", "PartitionName=half", "Nodes=n[0-31]"])
    try:
        pod.write("etc/ocs.yaml", good.replace("partitions: [tpu]", "partitions: [tpu, half]"))
        message = pod.refused("--shape=8x8x4", "-p", "half")
        assert "32 of 64 nodes" in message
        assert "8x4x4" in message.split("would fit there: ")[1]
        message = pod.refused("--shape=8x4x4", "-p", "half", "-x", "n0")
        assert "31 of 64 nodes" in message
        assert "would fit there: " in message
        pod.run(["scancel", str(pod.sbatch("-H", "--shape=8x4x4", "-p", "half"))])
        pod.run(["scancel", str(pod.sbatch("-H", "--shape=8x8x4", "-p", "half,tpu"))])
        assert "-w n40" in pod.refused("--shape=4x4", "-p", "half", "-w", "n40")
    finally:
        pod.write("etc/ocs.yaml", good)
        pod.run("squeue -h -o %A | xargs -r scancel", check=False)
        pod.until(lambda: pod.run(["scontrol", "delete", "PartitionName=half"],
                                  check=False).returncode == 0, 20, "the partition to go")


def test_forged_variables_of_a_step(pod):
    """A user can lead the order of his own tasks astray, and nothing else."""
    text = pod.out(["salloc", "-Q", "--shape=2x4", "env", "OCS_SHAPE=4x4", "SLURM_OCS_RANK=9",
                    "SLURM_OCS_COORDS=bad", "SLURM_OCS_DEVICES=99", "srun", "bash", "-c",
                    TELL.split("'")[1]])
    found = tasks(text)
    assert [found[i][2] for i in range(8)] == [[(x, y)] for x in range(2) for y in range(4)]
    done = pod.run(["salloc", "-Q", "--shape=2x4", "env", "SLURM_OCS_DIR=/etc", "srun", "-n2",
                    "bash", "-c", "echo $SLURM_OCS_DIR"], check=False)
    assert "/etc" not in done.stdout.split()


def by_hand(pod, switch, ingress, egress):
    pod.emulator("unpatch", switch, str(ingress), "quietly")
    pod.emulator("patch", switch, str(ingress), str(egress))


def test_foreign_patch_under_a_running_job(pod):
    """The port goes out of service and the job goes elsewhere; the patch stays, since it
    is not ours, and others go on using the switch."""
    job = pod.sbatch("--shape=4x4x4")
    fields = pod.running(job)
    (cube,) = pod.placement(job)["cubes"]
    index = int(cube[1:])
    neighbour = pod.sbatch("--shape=4x4x4")
    pod.running(neighbour)
    kept = pod.circuit_patches(pod.placement(neighbour))
    foreign = ("ocs-x-0-0", 2 * index + 1, size(pod) + 15)
    try:
        by_hand(pod, *foreign)
        pod.until(lambda: int(pod.job(job).get("Restarts", 0)) == 1, 30, "the requeue")
        # A new job that needs the same switch starts at once, on another cube.
        other = pod.sbatch("--shape=4x4x4")
        pod.running(other, 15)
        assert cube not in pod.placement(other)["cubes"]
        # One that needs no such circuit may have the cube.
        last = "n%d" % (16 * index + 15)
        pod.running(pod.sbatch("--shape=4x4x2", "--conn-type=torus,torus,mesh", "-w", last), 15)
        patches = pod.patches()
        assert foreign in patches and kept <= patches
        assert not broken_edges(pod.placement(other), patches, size(pod))
        assert "ocs-x-0-0" in " ".join(pod.job(job).values())
        assert not [line for line in pod.out(["sinfo", "-h", "-N", "-o", "%T"]).split()
                    if "drain" in line or "down" in line]
        pod.run(["scancel", str(other)])
        restarted = pod.running(job, 90)
        assert restarted["NodeList"] != fields["NodeList"]
        assert not broken_edges(pod.placement(job), pod.patches(), size(pod))
        said = pod.out(["ocsctl", "resume", "port", "ocs-x-0-0:%d" % foreign[1], "--fabric", pod.yaml])
        assert "stays out of service: a patch that is not ours is on it" in said, said
    finally:
        pod.emulator("unpatch", foreign[0], str(foreign[1]))
    pod.cancel_all()
    # Once the patch is gone, so is the quarantine.
    pod.until(lambda: "INVALID" not in pod.out(
        ["ocsctl", "show", "port", "ocs-x-0-0:%d" % foreign[1], "--json", "--fabric", pod.yaml]), 30,
        "the port")
    job = pod.sbatch("--shape=4x4x4", "-w", "n%d" % (16 * index))
    pod.running(job)


def test_foreign_patch_on_free_ports_is_left_alone(pod):
    """A patch that nobody asked for: its ports are avoided, it is not cut."""
    foreign = ("ocs-y-0-0", 5, size(pod) + 16)
    pod.emulator("patch", foreign[0], str(foreign[1]), str(foreign[2]))
    try:
        jobs = [pod.sbatch("--shape=4x4x4") for _ in range(3)]
        for job in jobs:
            pod.running(job, 60)
        used = {cube for job in jobs for cube in pod.placement(job)["cubes"]}
        assert foreign in pod.patches()
        assert len(used) == 3 and "c2" not in used
    finally:
        pod.emulator("unpatch", foreign[0], str(foreign[1]))


def test_description_changes_under_a_running_job(pod):
    """A cube goes from ocs.yaml while a job holds another: the job stays and ends
    properly; then the cube comes back."""
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    held = pod.patches()
    with open(pod.yaml) as handle:
        good = handle.read()
    line = [text for text in good.splitlines() if "name: c3" in text][0]
    try:
        for text in (good.replace(line + "\n", ""), good):
            pod.write("etc/ocs.yaml", text)
            pod.run(["ocsctl", "check", pod.yaml])
            # job_submit reads it at once; slurmctld and ocsd when they are told.
            shape = "--shape=8x8x4"
            if text is good:
                pod.run(["scancel", str(pod.sbatch("-H", shape))])
            else:
                assert "256" in pod.refused(shape) and "192" in pod.refused(shape)
                assert pod.patches() == held
                second = pod.sbatch("--shape=4x4")
                pod.running(second)
                assert held < pod.patches()
                pod.run(["scancel", str(second)])
                pod.until(lambda: pod.patches() == held, 20, "its circuits to go")
        assert pod.state(job) == "RUNNING"
    finally:
        pod.write("etc/ocs.yaml", good)
    pod.run(["scancel", str(job)])
    pod.until(lambda: not pod.patches(), 20, "dark switches")


def test_slurmctld_and_ocsd_disagree(pod):
    """Cubes in another order for slurmctld than for ocsd: the running job stays, no shape
    starts until they agree, and the reason says so."""
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    held = pod.patches()
    with open(pod.yaml) as handle:
        good = handle.read()
    first, last = [[text for text in good.splitlines() if "name: " + name in text][0]
                   for name in ("c0", "c3")]
    waiting = None
    try:
        pod.write("etc/ocs.yaml", good.replace(first, "@").replace(last, first).replace("@", last))
        pod.kill("slurmctld", signal.SIGTERM)
        pod.start_slurmctld()
        waiting = pod.sbatch("--shape=4x4x4")
        pod.until(lambda: "another_ocs.yaml" in pod.job(waiting)["Reason"], 30,
                  lambda: "a reason that names the file: %s" % pod.job(waiting)["Reason"])
        plain = pod.sbatch("-N1", "-n1", script="true")
        pod.wait(plain, "COMPLETED")
        assert pod.state(job) == "RUNNING" and pod.patches() == held
    finally:
        pod.write("etc/ocs.yaml", good)
        pod.kill("slurmctld", signal.SIGTERM)
        pod.start_slurmctld()
    pod.running(waiting)
    assert pod.state(job) == "RUNNING" and held < pod.patches()


def test_array_parts_and_requeue(pod):
    """Tasks of an array that is larger than the machine take turns; one is requeued by
    its user and comes back with circuits of a new epoch."""
    job = pod.sbatch("--shape=2x2x2x2x2x2", "--array=0-5%4", script="sleep 300")
    pod.until(lambda: pod.out(["squeue", "-h", "-j", str(job), "-t", "R", "-o", "%A"]).split()
              .__len__() == 4, 60, "four of the array to run")
    first = sorted(pod.out(["squeue", "-h", "-j", str(job), "-t", "R", "-o", "%A"]).split())[0]
    pod.until(lambda: len(pod.patches()) == 4 * 96, 30, "the circuits of four")
    pod.run(["scontrol", "requeue", first])
    pod.until(lambda: int(pod.job(first).get("Restarts", 0)) == 1, 30, "the requeue")
    pod.until(lambda: len(pod.patches()) <= 4 * 96, 30, "no more circuits than cubes have")
    pod.run(["ocs-emulator", "--check-log", pod.path("emulator.log")])
