# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""GPUs that Slurm counts and the XPUs of a shape are the same devices."""

import re

import pytest

TASK = ("sh -c 'echo \"TASK|$SLURM_PROCID|$SLURM_OCS_COORD|$SLURM_OCS_DEVICES|"
        "$CUDA_VISIBLE_DEVICES\"'")


@pytest.fixture(scope="module")
def counted(make_cluster):
    """One 4x4x4 cube of 2x2x1 tiles; every node has four GPUs."""
    cluster = make_cluster(
        cubes=1, delay_ms=1, config={"GresTypes": "gpu"},
        node_words={"n%d" % n: "Gres=gpu:4" for n in range(16)},
        # Any four devices do.
        more_files={"gres.conf": "".join("Name=gpu Flags=nvidia_gpu_env File=/dev/%s\n" % name
                                         for name in ("full", "null", "random", "zero"))})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def idle(counted):
    yield
    counted.cancel_all()
    counted.until(lambda: not counted.patches(), 30, "dark switches")


def told(counted, *arguments, script="srun " + TASK):
    """The job's fields, the lines of its tasks and the rest of its output."""
    job = counted.sbatch(*arguments, script="echo BATCH $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES\n"
                         "scontrol -o -d show job $SLURM_JOB_ID\n" + script)
    text = counted.output(job).splitlines()
    fields = dict(word.split("=", 1) for line in text if line.startswith("JobId=")
                  for word in line.split() if "=" in word)
    return fields, [line.split("|")[1:] for line in text if line.startswith("TASK|")], text


def gpus(text):
    """GPUs that slurmctld has given to the job, over all its nodes."""
    line = [line for line in text if line.startswith("JobId=")][0]
    return sum(int(count) * len(hosts(nodes)) for nodes, count in
               re.findall(r" Nodes=(\S+) CPU_IDs=\S+ Mem=\S+ GRES=gpu:(\d+)", line))


def hosts(text):
    bracket = re.match(r"n\[(.*)\]$", text)
    return sum((list(range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1))
                for part in (bracket.group(1) if bracket else text[1:]).split(",")), [])


def judge(counted, shape, *arguments):
    count = 1
    for extent in shape.split("x"):
        count *= int(extent)
    fields, tasks, text = told(counted, "--shape=" + shape, *arguments)
    assert gpus(text) == 4 * int(fields["NumNodes"]), text
    assert "BATCH 0,1,2,3 0,1,2,3" in text, text
    assert len(tasks) == count, text
    for proc, coord, devices, visible in tasks:
        assert coord and visible == devices, (proc, coord, devices, visible)
    assert {row[3] for row in tasks} == {"0", "1", "2", "3"}


def test_shape_alone_takes_all_gpus(counted):
    judge(counted, "4x4")


@pytest.mark.parametrize("arguments", [
    ["--gpus=16"], ["--gpus-per-node=4"], ["--gres=gpu:4"], ["-n16", "--gpus-per-task=1"],
    ["--gpus=16", "--gpus-per-node=4"]])
def test_gpus_that_agree_with_the_shape(counted, arguments):
    judge(counted, "4x4", *arguments)


def test_the_whole_cube_by_gpus(counted):
    """Job-wide counts together with all nodes of the machine."""
    judge(counted, "4x4x4", "--gpus=64")


def test_a_node_with_one_xpu_of_the_shape(counted):
    """Its only task sees that device, not the first one of the node."""
    _, tasks, text = told(counted, "--shape=5x5", "--conn-type=mesh")
    assert len(tasks) == 25 and all(visible == devices for _, _, devices, visible in tasks), text


def test_several_gpus_per_task(counted):
    fields, tasks, text = told(counted, "--shape=4x4", "-n4", "--ntasks-per-node=1", "--gpus-per-task=4")
    assert gpus(text) == 16
    assert len(tasks) == 4, text
    for _, _, devices, visible in tasks:
        assert sorted(devices.split(",")) == list("0123") and visible == "0,1,2,3", text


def test_idle_devices_of_a_tile_need_not_be_asked_for(counted):
    """Two XPUs of a tile of four: the job still has the node."""
    fields, tasks, text = told(counted, "--shape=2", "--gpus=2")
    assert gpus(text) == 4 and fields["NumNodes"] == "1"
    assert sorted(row[3] for row in tasks) == sorted(row[2] for row in tasks)


@pytest.mark.parametrize("arguments,needle", [
    (["--gpus=8"], "--gpus=8: --shape=4x4 takes all 4 GPUs of each of its 4 nodes, 16 in all"),
    (["--gpus=17"], "16 in all"),
    (["--gpus-per-node=2"], "--gpus-per-node=2: --shape=4x4 takes all 4 GPUs"),
    (["--gres=gpu:1"], "takes all 4 GPUs"),
    (["-n16", "--gpus-per-task=2"], "--gpus-per-task=2 with 16 tasks")])
def test_contradictions_are_refused(counted, arguments, needle):
    message = counted.refused("--shape=4x4", *arguments)
    assert needle in message, message
    assert "leave" in message and len(message.strip().splitlines()) == 2, message


def test_unshaped_jobs_share_nodes_as_before(counted):
    """Two jobs with a GPU each on one node; shapes stay off it."""
    first, second = [counted.sbatch("--gres=gpu:1", "-n1", "-w", "n3") for _ in range(2)]
    for job in (first, second):
        counted.running(job)
    shaped = counted.running(counted.sbatch("--shape=4x4"))
    busy = counted.out(["scontrol", "show", "hostnames", shaped["NodeList"]]).split()
    assert "n3" not in busy and len(busy) == 4


def test_a_step_with_fewer_tasks(counted):
    """One task per node of a shaped job sees all GPUs of its node."""
    fields, tasks, text = told(counted, "--shape=4x4", script="srun --ntasks-per-node=1 -n4 " + TASK)
    assert [row[3] for row in tasks] == ["0,1,2,3"] * 4, text


def test_a_step_with_fewer_tasks_and_a_gpu_for_each(counted):
    """They share the XPUs of the node, but no GPU."""
    _, tasks, text = told(counted, "--shape=4x4", script="srun -N1 -n2 --gpus-per-task=1 " + TASK)
    assert len(tasks) == 2 and {len(row[3].split(",")) for row in tasks} == {1}, text
    assert tasks[0][3] != tasks[1][3], text


@pytest.mark.parametrize("arguments", [["--gpus-per-task=1"], ["--ntasks-per-gpu=1"]])
def test_a_step_with_a_gpu_for_each_task(counted, arguments):
    _, tasks, text = told(counted, "--shape=4x4", script="srun -n16 %s %s" % (" ".join(arguments), TASK))
    assert len(tasks) == 16 and all(row[3] == row[2] for row in tasks), text


@pytest.mark.parametrize("arguments", [[], ["--gpus-per-task=1"], ["--gpus=16"]])
def test_srun_by_itself(counted, arguments):
    text = counted.out("srun --shape=4x4 -n16 %s %s" % (" ".join(arguments), TASK))
    rows = [line.split("|")[1:] for line in text.splitlines() if line.startswith("TASK|")]
    assert len(rows) == 16 and all(row[3] == row[2] for row in rows), text


def test_a_step_of_salloc(counted):
    """The count of the whole job does not make its steps smaller."""
    text = counted.out("salloc -Q --shape=2 --gpus=2 srun " + TASK)
    rows = [line.split("|")[1:] for line in text.splitlines() if line.startswith("TASK|")]
    assert sorted(row[3] for row in rows) == sorted(row[2] for row in rows) and len(rows) == 2, text
