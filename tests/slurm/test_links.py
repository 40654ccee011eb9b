# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Tasks start when the ports of the job's circuits have a link, on hosts with network namespaces of
their own that do not forward."""

import os
import time

import pytest

from conftest import places
from netcluster import NetCluster

SERVERS = 2


class LinkCluster(NetCluster):
    def ocs_yaml(self):
        text = super().ocs_yaml()
        text = "".join(line + "\n" for line in text.splitlines() if "forwarding:" not in line)
        return text.replace("timeouts: {", "timeouts: {link: 8s, ")


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    stage, slurm = places()
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    cluster = LinkCluster(tmp_path_factory.mktemp("links"), stage, slurm, cubes=1, edge=2, tile=(2, 2, 2),
                          direct=SERVERS, spank=("prolog_timeout=60",))
    try:
        cluster.start()
        for name in cluster.direct_nodes:
            for port in range(cluster.degree):
                cluster.host(name, "ip", "link", "set", "ocs%d" % port, "up")
        yield cluster
    finally:
        cluster.stop()


def test_tasks_wait_for_links(net):
    net.run("ip link set s1p0 down")
    start = time.time()
    job = net.sbatch("-p", "direct", "-N2", script="srun date +%s.%N\n")
    net.until(lambda: net.out(["squeue", "-h", "-j", str(job), "-o", "%N"]).strip(), 20, "nodes")
    time.sleep(1.5)
    lit = time.time()
    net.run("ip link set s1p0 up")
    times = [float(line) for line in net.output(job).split()]
    assert len(times) == 2 and min(times) > lit > start + 1


def test_a_port_without_link_stops_the_job(net):
    """Its numbers would shift under NCCL: the job is held with the reason instead."""
    net.run("ip link set s1p0 down")
    job = net.sbatch("-p", "direct", "-N2", script="srun true\n")
    try:
        net.until(lambda: net.job(job)["JobState"] == "REQUEUE_HOLD" or
                  net.job(job)["Reason"].startswith("JobHeld") or "held" in net.job(job)["Reason"].lower(),
                  60, "the job to be held")
        logs = "".join(open(net.path("log", name)).read() for name in os.listdir(net.path("log"))
                       if name.startswith("slurmd"))
        assert "interface ocs0 has no carrier" in logs
        states = net.run("sinfo -h -p direct -o %T").stdout.split()
        assert set(states) <= {"idle", "completing", "planned"}, states
    finally:
        net.run("ip link set s1p0 up")
        net.run(["scancel", str(job)])
