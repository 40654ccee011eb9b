# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Power saving: nodes are off until a shape wants them, and one of them may not come."""

import os

import pytest

from cluster import Cluster, tail
from conftest import living

WAKE = """#!/bin/bash
export PATH={path} SLURM_CONF={dir}/etc/slurm.conf
for node in $(scontrol show hostnames "$1"); do
    [ -e {dir}/broken.$node ] || SLURM_CONF={dir}/etc-slurmd/slurm.conf SLURMD_NODENAME=$node \\
        setsid -f slurmd -D -b -N $node -f {dir}/etc-slurmd/slurm.conf </dev/null >>{dir}/log/$node.err 2>&1
done
sleep 0.5   # slurmctld kills what is not yet in a session of its own
"""
# Slurm looks every 30 s for jobs whose nodes have booted, and when this ends.
BOOTED = """#!/bin/bash
export PATH={path} SLURM_CONF={dir}/etc/slurm.conf
while sinfo -h -N -n "$SLURM_JOB_NODELIST" -o %t | grep -v down | grep -q '[~#]'; do sleep 0.1; done
"""


class Saving(Cluster):
    """All nodes are off, and those with a file broken.NODE never boot."""

    def __init__(self, directory, stage, slurm, **options):
        etc = os.path.join(directory, "etc")
        super().__init__(directory, stage, slurm, more_files={"wake": WAKE, "booted": BOOTED}, config={
            "SuspendProgram": "/bin/true", "SuspendTime": "600", "ResumeProgram": etc + "/wake",
            "ResumeTimeout": "60", "ResumeRate": "0", "PrologSlurmctld": etc + "/booted",
            "SlurmctldParameters": "power_save_interval=1",
            "SchedulerParameters": "bf_interval=1,sched_interval=1"}, **options)
        self.node_words = {name: "State=CLOUD" for name in self.nodes}

    def start(self):
        self.more_files = {name: text.replace("{path}", self.environment()["PATH"])
                           for name, text in self.more_files.items()}
        self.configure()
        for name in self.more_files:
            os.chmod(self.path("etc", name), 0o755)
        self.start_namespace()
        self.start_emulator()
        self.start_ocsd()
        self.start_slurmctld()
        return self


@pytest.fixture(scope="module")
def saving():
    """Three cubes of two nodes."""
    with living(Saving, cubes=3, edge=2, delay_ms=1) as cluster:
        yield cluster


def powers(cluster):
    return dict(line.split() for line in cluster.out(["sinfo", "-h", "-N", "-o", "%N %t"]).splitlines())


def ended(cluster, job):
    cluster.run(["scancel", str(job)])
    cluster.wait(job)
    cluster.until(lambda: not cluster.patches() and not cluster.ocsctl("show", "job")["jobs"], 30,
                  "dark switches and no jobs")


def test_nodes_that_are_up_come_first(saving):
    """Then others are woken, and circuits made when all are up."""
    assert set(powers(saving).values()) == {"idle~"}
    saving.wait(saving.sbatch("-N2", "--exclusive", "-w", "n[2-3]", script="true"), "COMPLETED")
    job = saving.sbatch("--shape=2x2x2")
    assert saving.running(job)["NodeList"] == "n[2-3]"
    assert powers(saving) == {"n%d" % n: "alloc" if n in (2, 3) else "idle~" for n in range(6)}
    ended(saving, job)
    job = saving.sbatch("--shape=4x2x2", "-x", "n[4-5]")
    assert saving.running(job)["NodeList"] == "n[0-3]"
    assert saving.patches() == saving.circuit_patches(saving.placement(job))
    ended(saving, job)


def test_a_node_that_does_not_boot(saving):
    """The job goes back to the queue, no circuit was made, and ocsd has nothing left of it."""
    for name in ("n4", "n5"):
        saving.write("broken." + name, "")
    saving.write("etc/slurm.conf", saving.slurm_conf().replace("ResumeTimeout=60", "ResumeTimeout=2"))
    saving.reconfigure()
    before = saving.makes()
    job = saving.sbatch("--requeue", "--shape=6x2x2")
    saving.until(lambda: saving.job(job)["Restarts"] == "1" and saving.state(job) == "PENDING", 60,
                 lambda: saving.job(job))
    assert powers(saving)["n5"].startswith("down")
    assert "job %d of root committed: 6x2x2 on 6 nodes" % job in tail(saving.path("ocsd.log"), 1000)
    ended(saving, job)
    assert saving.makes() == before
