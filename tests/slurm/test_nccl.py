# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What NCCL finds in a job on servers whose interfaces are described: files it reads,
only the ports of the job's circuits, ranks along the first ring."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import MACHINE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The numbers of the ports do not follow their addresses on the bus.
PORTS = ["mlx5_2", "mlx5_0", "mlx5_3", "mlx5_1"]
TELL = """srun --ntasks-per-node=1 bash -c '
exec 2>&1
cd $SLURM_OCS_DIR
{
echo "env NODE=$SLURMD_NODENAME"
echo "env PROCID=$SLURM_PROCID"
env | grep "^NCCL\\|^SLURM_OCS_DIR" | sed "s/^/env /"
ocsctl nccl-check $NCCL_TOPO_FILE $NCCL_GRAPH_FILE | sed "s/^/check /"
[ ${PIPESTATUS[0]} = 0 ] && echo "env CHECKED=yes"
sed "s/^/topo /" topo.xml
sed "s/^/graph /" graph.xml
sed "s/^/warning /" warnings 2>/dev/null
} >OUT/task.$SLURM_PROCID
'
"""


@pytest.fixture(scope="module")
def servers(make_cluster, tmp_path_factory):
    machine = str(tmp_path_factory.mktemp("machine") / "machine.xml")
    shutil.copy(MACHINE, machine)
    os.chmod(os.path.dirname(machine), 0o755)
    interfaces = "".join("      - {name: ens%d, rdma: \"%s:1\", speed: 400000}\n" % (3 + i, port)
                         for i, port in enumerate(PORTS))
    cluster = make_cluster(cubes=1, direct=6, direct_yaml="    interfaces:\n" + interfaces,
                           more_yaml="nccl:\n  hwloc_xml: %s\n  management: eth0\n"
                                     "  rings: stock\n" % machine)
    cluster.machine = machine
    yield cluster
    cluster.stop()


class Task:
    def __init__(self, text):
        self.env, self.lines = {}, {"check": [], "topo": [], "graph": [], "warning": []}
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "env":
                name, _, value = rest.partition("=")
                self.env[name] = value
            else:
                self.lines[kind].append(rest)

    def text(self, kind):
        return "\n".join(self.lines[kind])


def tasks_of(cluster, *arguments, nodes=4, env=None):
    """The tasks of a job that tells everything, by rank, and its plan."""
    out = cluster.path("out")
    os.chmod(out, 0o777)
    script = TELL.replace("OUT", out) + "\ncat $SLURM_OCS_DIR/plan.json\n"
    job = cluster.sbatch("-p", "direct", "-N%d" % nodes, *arguments, script=script, env=env)
    plan = json.loads(cluster.output(job).strip().splitlines()[-1])
    found = []
    for rank in range(nodes):
        path = os.path.join(out, "task.%d" % rank)
        with open(path) as file:
            found.append(Task(file.read()))
        os.unlink(path)
    return job, found, plan


def held(plan, server):
    """Interfaces of a server that hold circuits."""
    return sorted({c[end][1] for c in plan["circuits"] for end in "ab" if c[end][0] == server})


def test_files_and_environment(servers):
    job, tasks, plan = tasks_of(servers)
    for rank, task in enumerate(tasks):
        env, server = task.env, plan["nodes"].index(task.env["NODE"])
        folder = servers.job_dir(env["NODE"], job)
        assert env["SLURM_OCS_DIR"] == folder
        assert env["NCCL_TOPO_FILE"] == folder + "/topo.xml"
        assert env["NCCL_GRAPH_FILE"] == folder + "/graph.xml"
        assert env["CHECKED"] == "yes", task.lines["check"]
        assert len(task.lines["warning"]) == 1 and "ends at its start (\"dev N not found\")" in task.text("warning")
        names = [PORTS[i] for i in held(plan, server)]
        assert env["NCCL_IB_HCA"] == "=" + ",".join(name + ":1" for name in names)
        assert env["NCCL_SOCKET_IFNAME"] == "=eth0"
        nets = re.findall(r'<net name="(\w+)" speed="400000"', task.text("topo"))
        assert sorted(nets) == sorted(names)
        # ranks are in the order of the nodes of the plan, which is that of ring +1
        assert int(env["PROCID"]) == rank and server == rank
    assert plan["groups"][0]["rings"] == [list(range(4))] * 2
    assert not os.path.exists(servers.job_dir("d0", job))


def test_graph_follows_the_circuits(servers):
    _, tasks, plan = tasks_of(servers, nodes=6)
    joined = {}
    for c in plan["circuits"]:
        joined[tuple(c["a"])], joined[tuple(c["b"])] = c["b"], c["a"]

    def passages(server):
        """Interfaces in and out for each channel: NCCL numbers ports by address."""
        task = tasks[server]
        used = [PORTS[i] for i in held(plan, server)]
        channels = re.findall(r"<channel>\s*<net dev=\"(\w+)\"/>(.*?)<net dev=\"(\w+)\"/>\s*</channel>",
                              task.text("graph"), re.S)
        assert channels
        for _, gpus, _ in channels:
            assert sorted(re.findall(r'<gpu dev="(\w+)"', gpus)) == list("01234567")
        # mlx5_0 ... mlx5_3 ascend on the bus of this machine
        return [tuple(PORTS.index(sorted(used)[int(dev, 16)]) for dev in (first, last))
                for first, _, last in channels]

    for server in range(6):
        following = (server + 1) % 6
        for (_, leave), (enter, _) in zip(passages(server), passages(following)):
            assert joined[(server, leave)] == [following, enter]
        assert len(passages(server)) == len(passages(following))


def test_rings_of_the_application(servers):
    """The header and the Python file on the plan of a real job."""
    program = servers.path("rings")
    subprocess.run(["gcc", "-I" + ROOT, "-o", program, ROOT + "/tests/unit/nccl/rings.c"], check=True)
    script = "exec 2>&1\npython3 -B %s/doc/rings/ocs_rings.py\necho --\n%s\n" % (ROOT, program)
    job = servers.sbatch("-p", "direct", "-N4", script=script)
    python, c = servers.output(job).split("--\n")
    assert python == c and python.startswith("ring 0, group 0, step 1: d")


def test_torchrun_of_the_document(servers):
    """The command of doc/nccl.md, with a torchrun that tells what it was given: node ranks follow the ring."""
    with open(os.path.join(ROOT, "doc/nccl.md")) as file:
        command = re.search(r"### PyTorch\n\n((?:    .*\n)+)", file.read()).group(1)
    folder = servers.path("torch")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "torchrun"), "w") as file:
        file.write('#!/bin/sh\necho "$SLURMD_NODENAME graph=${NCCL_GRAPH_FILE:+set} $*"\n')
    os.chmod(folder + "/torchrun", 0o755)
    os.chmod(folder, 0o755)
    script = "export PATH=%s:$PATH\n%s\ncat $SLURM_OCS_DIR/plan.json\n" % (folder, command)
    job = servers.sbatch("-p", "direct", "-N4", script=script)
    *lines, plan = servers.output(job).strip().splitlines()
    nodes = json.loads(plan)["nodes"]
    given = {line.split()[0]: dict(zip(*[iter(line.split()[2:-1])] * 2)) for line in lines}
    assert len(lines) == 4 and all(line.split()[1] == "graph=set" for line in lines), lines
    for rank, node in enumerate(nodes):
        assert given[node]["--node-rank"] == str(rank) and given[node]["--nnodes"] == "4"
        assert given[node]["--master-addr"] == nodes[0] and given[node]["--nproc-per-node"] == "8"


def test_user_settings_win(servers):
    mine = {"NCCL_IB_HCA": "=mine", "NCCL_GRAPH_FILE": "/dev/null", "NCCL_SOCKET_IFNAME": "lo"}
    script = "srun -n1 env | grep ^NCCL | sort\n"
    job = servers.sbatch("-p", "direct", "-N2", script=script, env=mine)
    text = servers.output(job)
    env = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("NCCL"))
    assert env, text
    assert {name: env[name] for name in mine} == mine
    assert env["NCCL_ALGO"] == "Ring"


def test_steps_that_the_graph_file_does_not_fit(servers):
    """It presumes all GPUs of a node: other steps do without, and say so once."""
    script = """exec 2>&1
tell() { echo "$1 ${NCCL_GRAPH_FILE:-unset}"; }
export -f tell
srun --ntasks-per-node=1 bash -c 'tell whole'
srun --ntasks-per-node=3 bash -c 'tell three'
srun --ntasks-per-node=3 bash -c 'tell again'
CUDA_VISIBLE_DEVICES=0,1 srun --ntasks-per-node=1 bash -c 'tell two'
NCCL_GRAPH_FILE=none srun --ntasks-per-node=1 bash -c 'tell none'
srun --ntasks-per-node=1 bash -c 'sed "s/^/file /" $SLURM_OCS_DIR/warnings'
"""
    job = servers.sbatch("-p", "direct", "-N2", script=script)
    lines = servers.output(job).splitlines()
    seen = {name: [line.split()[1] for line in lines if line.startswith(name + " ")]
            for name in ("whole", "three", "again", "two", "none")}
    assert [len(seen[name]) for name in seen] == [2, 6, 6, 2, 2], lines
    assert all(value.endswith("/%s/graph.xml" % job) for value in seen["whole"]), lines
    assert set(seen["three"] + seen["again"] + seen["two"] + seen["none"]) == {"unset"}, lines
    told = [line for line in lines if line.startswith("spank_ocs: NCCL_GRAPH_FILE is not set")]
    assert len(told) == 2, lines
    assert "3 tasks share the 8 GPUs" in told[0] and "the task sees 2 of the 8 GPUs" in told[1]
    # once in the output, and on each node in the file
    filed = [line for line in lines if line.startswith("file NCCL_GRAPH_FILE is not set in a step")]
    assert len(filed) == 4 and sum("3 tasks share" in line for line in filed) == 2, lines


def test_machine_without_gpus(servers):
    """The job runs without a file, and is told why."""
    with open(servers.machine) as file:
        whole = file.read()
    try:
        with open(servers.machine, "w") as file:
            file.write(whole.replace("[10de:2330]", "[1af4:1050]"))
        script = "env | grep ^NCCL_TOPO; ls $SLURM_OCS_DIR; cat $SLURM_OCS_DIR/warnings\n"
        job = servers.sbatch("-p", "direct", "-N2", script=script, user="nobody")
        text = servers.output(job)
    finally:
        with open(servers.machine, "w") as file:
            file.write(whole)
    assert "no NCCL topology file: the machine description shows no GPU" in text
    assert "NCCL_TOPO_FILE" not in text and "topo.xml" not in text
    assert servers.job(job)["JobState"] == "COMPLETED"
