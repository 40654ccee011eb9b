# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A shape from sbatch to tasks on XPUs whose rings are closed, and back."""

import json
import math

import pytest

from rings import broken_edges, coordinates

# What every task knows of itself, one line each.
TELL = ("bash -c 'echo \"TASK|$SLURM_PROCID|$SLURMD_NODENAME|$SLURM_OCS_RANK|"
        "$SLURM_OCS_COORDS|$SLURM_OCS_DEVICES|$SLURM_OCS_COORD\"'")


def tasks(text):
    """{rank of Slurm: (node, rank, [coordinates], [devices], coordinate)}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("TASK|"):
            _, proc, node, rank, coords, devices, coord = line.split("|")
            assert int(proc) not in found
            found[int(proc)] = (node, int(rank), coordinates(coords),
                                [int(d) for d in devices.split(",")], coord)
    return found


def check_tasks(found, placement):
    """Every XPU belongs to exactly one task, on its node; ranks follow coordinates."""
    xpus = {tuple(x["coord"]): x for x in placement["xpus"]}
    owned, firsts = {}, []
    for proc in sorted(found):
        node, rank, coords, devices, coord = found[proc]
        assert rank == proc
        assert len(coords) == len(devices)
        assert coord == (",".join(map(str, coords[0])) if len(coords) == 1 else "")
        firsts.append(coords[0])
        for c, device in zip(coords, devices):
            assert xpus[c]["node"] == node
            assert c not in owned
            owned[c] = (node, device)
    assert set(owned) == set(xpus)
    assert len(set(owned.values())) == len(owned), "two XPUs are one device of a node"
    assert firsts == sorted(firsts)


def whole(pod, job):
    """The placement of a running job, after all checks that need no tasks."""
    placement = pod.placement(job)
    pod.write("check.json", json.dumps(placement))
    pod.run(["ocsctl", "verify", pod.path("check.json"), "--fabric", pod.yaml])
    patches = pod.patches()
    assert pod.circuit_patches(placement) <= patches
    assert placement["ocs_links"] == len(placement["circuits"])
    assert not broken_edges(placement, patches, pod.switch_size(), pod.edge)
    nodes = set(pod.out(["scontrol", "show", "hostnames", pod.job(job)["NodeList"]]).split())
    assert nodes == {x["node"] for x in placement["xpus"]}
    return placement


def run_shape(pod, shape, *arguments, script="", seconds=60):
    """Runs a shape with one task per XPU; its placement and its output."""
    job = pod.sbatch("--shape=" + shape, *arguments,
                     script="srun %s\n%s\ntouch %s/out/$SLURM_JOB_ID.told\nsleep 300" % (
                         TELL, script, pod.dir))
    pod.running(job, seconds)
    placement = whole(pod, job)
    pod.until(lambda: pod.run(["test", "-e", pod.path("out", "%d.told" % job)],
                              check=False).returncode == 0, seconds, "the tasks of %d" % job)
    with open(pod.path("out", "%d.out" % job)) as handle:
        text = handle.read()
    return job, placement, text


def test_headline(pod):
    job, placement, text = run_shape(
        pod, "4x8x2", script="srun --ntasks-per-node=1 -n $SLURM_NNODES " + TELL.replace(
            "TASK", "NODE") + "\nenv | grep '^SLURM_OCS\\|^NCCL'\nsed 's/^/HOST /' $SLURM_OCS_DIR/hostfile")
    assert len(placement["xpus"]) == 64
    assert int(pod.job(job)["NumNodes"]) == 16
    found = tasks(text)
    assert len(found) == 64
    check_tasks(found, placement)
    per_node = tasks("\n".join(line.replace("NODE|", "TASK|", 1) for line in
                               text.splitlines() if line.startswith("NODE|")))
    assert len(per_node) == 16
    check_tasks(per_node, placement)
    assert "SLURM_OCS_SHAPE=4x8x2" in text
    assert "SLURM_OCS_CONN=torus,torus,torus" in text
    assert "SLURM_OCS_CUBES=" + ",".join(sorted(
        placement["cubes"], key=lambda name: int(name[1:]))) in text
    assert "NCCL_ALGO=Ring" in text
    hosts = [line[5:] for line in text.splitlines() if line.startswith("HOST ")]
    assert hosts == [found[rank][0] for rank in range(64)]
    pod.run(["scancel", str(job)])
    pod.wait(job)
    pod.until(lambda: not pod.patches(), 20, "dark switches after the job")


@pytest.mark.parametrize("shape,nodes", [
    ("18", 5), ("6x4", 6), ("8x8x4", 64), ("1", 1), ("4x4x4", 16), ("2x2x2", 2), ("8", 2)])
def test_shapes(pod, shape, nodes):
    job, placement, text = run_shape(pod, shape)
    extents = [int(n) for n in shape.split("x")]
    assert placement["shape"] == extents
    assert len(placement["xpus"]) == math.prod(extents)
    assert int(pod.job(job)["NumNodes"]) == nodes
    check_tasks(tasks(text), placement)


def test_mesh_closes_nothing(pod):
    job, placement, text = run_shape(pod, "3x5", "--conn-type=mesh")
    assert placement["conn"] == ["mesh", "mesh"]
    check_tasks(tasks(text), placement)


def test_two_tasks_a_node(pod):
    job = pod.sbatch("--shape=4x4x2", "--ntasks-per-node=2", script="srun " + TELL)
    text = pod.output(job)
    found = tasks(text)
    assert len(found) == 16
    for proc, (node, rank, coords, devices, coord) in found.items():
        assert rank == proc and len(coords) == 2 and coord == ""


def test_salloc_and_srun(pod):
    text = pod.out(["salloc", "-Q", "--shape=4x4x2", "srun"] +
                   ["bash", "-c", TELL.split("'")[1]])
    found = tasks(text)
    assert len(found) == 32
    assert [found[i][2] for i in sorted(found)] == sorted(found[i][2] for i in found)
    text = pod.out(["srun", "-Q", "--shape=2x4", "bash", "-c", TELL.split("'")[1]])
    found = tasks(text)
    # A direct srun fixes its layout before the allocation: any order, every coordinate.
    assert sorted(c for row in found.values() for c in row[2]) == [
        (x, y) for x in range(2) for y in range(4)]


def test_array(pod):
    job = pod.sbatch("--shape=4x4x2", "--array=0-3", script="srun " + TELL + "; sleep 2")
    pod.until(lambda: not pod.out(["squeue", "-h", "-j", str(job)]).strip(), 60, "the array")
    # %j is the number of each array task; its base is the array's own number.
    done = pod.out(["scontrol", "-o", "show", "job", str(job)])
    assert done.count("JobState=COMPLETED") == 4, done


def test_heterogeneous(pod):
    job = pod.sbatch("--shape=4x4", ":", "-N1", "-p", "plain", "-n1",
                     script="srun --het-group=0 " + TELL + "\n"
                            "srun --het-group=1 bash -c 'echo \"PLAIN|$SLURMD_NODENAME|"
                            "$SLURM_OCS_RANK|$SLURM_OCS_COORDS\"'")
    text = pod.output(job)
    assert len(tasks(text)) == 16
    plain = [line for line in text.splitlines() if line.startswith("PLAIN|")]
    assert len(plain) == 1 and plain[0].split("|")[1].startswith("p")
    assert plain[0].split("|")[2:] == ["", ""]


def test_heterogeneous_unshaped_part_in_the_same_partition(pod):
    job = pod.sbatch("--shape=4x4", ":", "-N1", "-n1", script="sleep 300")
    pod.running(job)
    second = pod.job("%d+1" % job)
    assert int(second["NumNodes"]) == 1
    assert "shape=" not in second.get("Extra", "")


def test_nested_submission_inherits_nothing(pod):
    script = ("sbatch --parsable -N1 -o {0}/out/nested.out "
              "--wrap 'env | grep -c ^SLURM_OCS; echo end' > {0}/out/nested.id\n"
              "sleep 1").format(pod.dir)
    job = pod.sbatch("--shape=4x4x2", script=script, env={"OCS_CONN_TYPE": "torus"})
    pod.wait(job, "COMPLETED")
    with open(pod.path("out", "nested.id")) as handle:
        nested = int(handle.read())
    pod.wait(nested, "COMPLETED")
    fields = pod.job(nested)
    assert "shape=" not in fields.get("Extra", "")
    assert int(fields["NumNodes"]) == 1
    with open(pod.path("out", "nested.out")) as handle:
        assert handle.read().split() == ["0", "end"]


def test_step_shape_must_match(pod):
    job = pod.sbatch("--shape=4x4", script="srun --shape=4x4 true && echo same\n"
                                           "srun --shape=2x2 true || echo differs")
    text = pod.output(job)
    assert "same" in text and "differs" in text


def test_precedence(pod):
    job = pod.sbatch("--shape=4x4x2", script="#SBATCH --shape=2x2\nsleep 300",
                     env={"OCS_SHAPE": "4x4"})
    pod.running(job)
    assert "shape=4x4x2" in pod.job(job)["Extra"]
    job = pod.sbatch(script="#SBATCH --shape=2x2\nsleep 300", env={"OCS_SHAPE": "4x4"})
    assert "shape=4x4" in pod.job(job)["Extra"]
    job = pod.sbatch(script="#SBATCH --shape=2x2\nsleep 300")
    assert "shape=2x2" in pod.job(job)["Extra"]


def test_extra_of_the_user_stays(pod):
    job = pod.sbatch("--shape=2x2", "--extra=mine and yours")
    assert pod.job(job)["Extra"].startswith("mine and yours shape=2x2")


def test_user_settings_of_nccl_win(pod):
    job = pod.sbatch("--shape=2x2", script="env | grep ^NCCL_ALGO; srun -n1 env | grep ^NCCL_ALGO",
                     env={"NCCL_ALGO": "Tree"})
    assert pod.output(job).split() == ["NCCL_ALGO=Tree", "NCCL_ALGO=Tree"]


def test_test_only(pod):
    done = pod.run(["sbatch", "--test-only", "--shape=4x8x2", "--wrap", "true"])
    assert "to start at" in done.stderr
    assert not pod.out(["squeue", "-h"]).strip()


def test_node_count_may_agree(pod):
    job = pod.sbatch("--shape=4x4x4", "-N16")
    pod.running(job)


def test_ordinary_user(pod):
    job = pod.sbatch("--shape=4x4", script="srun " + TELL, user="nobody")
    text = pod.output(job)
    assert len(tasks(text)) == 16


def test_rest(pod):
    """slurmrestd hands the option over as spank_environment."""
    if pod.run("command -v slurmrestd", check=False).returncode:
        pytest.skip("slurmrestd was not built (no libhttp-parser on this machine)")
    socket = "/run/rest/rest.sock"
    pod.run("mkdir -p /run/rest && chown nobody /run/rest")
    pod.spawn(["slurmrestd", "-s", "slurmctld", "-d", "v0.0.42", "unix:" + socket],
              pod.path("slurmrestd.log"), user="nobody")
    pod.until(lambda: pod.run(["test", "-S", socket], check=False).returncode == 0, 20,
              "slurmrestd")
    body = {"script": "#!/bin/bash\nsleep 300\n",
            "job": {"name": "rest", "current_working_directory": "/tmp",
                    "environment": ["PATH=/usr/bin:/bin"],
                    "standard_output": "/dev/null", "standard_error": "/dev/null",
                    "spank_environment": ["_SLURM_SPANK_OPTION_spank_ocs_shape=4x4x2"]}}
    answer = json.loads(pod.out(
        ["curl", "-s", "--unix-socket", socket, "-H", "Content-Type: application/json",
         "-d", json.dumps(body), "http://localhost/slurm/v0.0.42/job/submit"], user="nobody"))
    assert not answer["errors"], answer["errors"]
    job = answer["job_id"]
    fields = pod.running(job)
    assert "shape=4x4x2" in fields["Extra"] and int(fields["NumNodes"]) == 8
    whole(pod, job)
    pod.run(["pkill", "-x", "slurmrestd"], check=False)
