# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""NCCL itself on a GPU: each server of a direct fabric is a network namespace whose interfaces the
emulator's data plane joins.  All ranks share the GPU, but NCCL takes each for a node of its own
(NCCL_HOSTID) and sends over sockets.  Needs a GPU, PyTorch and root; skipped elsewhere."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import places
from netcluster import NetCluster

SERVERS = 4
BYTES = 16 << 20        # of the tensor; a ring sends 2 * 3/4 of it over each of its edges
RANKS = """
import os, torch, torch.distributed as dist
rank, count = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
torch.cuda.set_device(0)
dist.init_process_group("nccl", init_method="tcp://10.77.0.2:29511", rank=rank, world_size=count)
x = torch.full((%d,), float(rank + 1), device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
assert bool((x == count * (count + 1) / 2).all())
print("right", flush=True)
dist.destroy_process_group()
""" % (BYTES // 4)


class GpuCluster(NetCluster):
    backend = "routes"
    subnets = ""

    def ocs_yaml(self):
        return super().ocs_yaml().replace("    forwarding:", self.subnets + "    forwarding:")

    def bytes_sent(self):
        """{(server, port): bytes that the server sent there}."""
        told = re.findall(r"^ *s(\d+)p(\d+): *(\d+)", self.out(["cat", "/proc/net/dev"]), re.M)
        return {(int(server), int(port)): int(count) for server, port, count in told}


class SubnetGpuCluster(GpuCluster):
    subnets = "    subnets: 10.128.0.0/24\n"


@pytest.fixture(scope="module")
def python():
    path = shutil.which("python3")
    done = subprocess.run([path, "-c", "import torch; assert torch.cuda.is_available()"],
                          capture_output=True, check=False)
    if os.geteuid() != 0 or done.returncode:
        pytest.skip("needs root, a GPU and PyTorch for it")
    return path


@pytest.mark.parametrize("kind", [GpuCluster, SubnetGpuCluster])
def test_all_reduce_goes_along_the_circuits(python, kind, tmp_path):
    net = kind(tmp_path / "net", *places(), cubes=1, edge=2, tile=(2, 2, 2), direct=SERVERS, degree=2,
               spank=("prolog_timeout=60",))
    try:
        check(net.start(), python)
    finally:
        net.stop()


def check(net, python):
    net.write("ranks.py", RANKS)
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS, "--ntasks-per-node=1")
    net.running(job)
    plan = json.loads(net.out(["cat", net.plan(job)]))
    before = net.bytes_sent()
    done = net.run("srun --jobid=%d --overlap -N%d --ntasks-per-node=1 bash -c '"
                   "NCCL_HOSTID=$SLURMD_NODENAME NCCL_DEBUG=INFO NCCL_DEBUG_FILE=%s.$SLURM_PROCID "
                   "timeout 100 %s %s'" % (job, SERVERS, net.path("nccl"), python, net.path("ranks.py")),
                   check=False, timeout=150)
    after = net.bytes_sent()
    said = [open(net.path("nccl.%d" % rank), errors="replace").read() for rank in range(SERVERS)]
    assert done.stdout.split() == ["right"] * SERVERS, done.stderr + said[0]
    # it reads the file of the job, and finds nothing wrong with it
    topology = net.job_dir("d0", job) + "/topo.xml"
    assert "NCCL_TOPO_FILE set by environment to " + topology in said[0]
    assert not [line for text in said for line in text.splitlines() if " WARN " in line]
    # its rings are those of the plan
    assert {words for words in re.findall(r"Channel \d+/\d+ : +([\d ]+\d)\n", said[0])} == {"0 1 2 3"}
    assert plan["groups"][0]["rings"] == [[0, 1, 2, 3]]
    # and what a server sends to the next one goes over the circuit between them
    for one in range(SERVERS):
        other = (one + 1) % SERVERS
        ports = {c["a"][1] for c in plan["circuits"] if {c["a"][0], c["b"][0]} == {one, other}}
        sent = {port: after[one, port] - before[one, port] for port in range(2)}
        forward = sum(sent[port] for port in ports)
        assert forward > 1.5 * BYTES, sent
        assert sum(sent.values()) - forward < 0.2 * BYTES, sent
