# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Power saving: nodes are off until a shape wants them, and one of them may not come."""

import json
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
    """All nodes are off.  One with a file broken.NODE never boots."""

    def __init__(self, directory, stage, slurm, **options):
        etc = os.path.join(directory, "etc")
        super().__init__(directory, stage, slurm, more_files={"wake": WAKE, "booted": BOOTED}, config={
            "SuspendProgram": "/bin/true", "SuspendTime": "600", "ResumeProgram": etc + "/wake",
            "ResumeTimeout": "3", "ResumeRate": "0", "PrologSlurmctld": etc + "/booted",
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


@pytest.fixture
def saving():
    """Two cubes of two nodes."""
    with living(Saving, cubes=2, edge=2, delay_ms=1) as cluster:
        yield cluster


def powers(cluster):
    return dict(line.split() for line in cluster.out(["sinfo", "-h", "-N", "-o", "%N %t"]).splitlines())


def made(cluster):
    """Whether a switch has ever joined two ports."""
    with open(cluster.path("emulator.log")) as handle:
        return any(json.loads(line)["event"] == "make" for line in handle)


def test_nodes_are_woken_and_circuits_made_when_all_are_up(saving):
    assert set(powers(saving).values()) == {"idle~"}
    saving.write("broken.n3", "")
    job = saving.sbatch("--requeue", "--shape=4x2x2")
    # n3 does not come: the job goes back to the queue, and ocsd has nothing left of it.
    saving.until(lambda: saving.job(job)["Restarts"] == "1", 60, lambda: saving.job(job))
    assert saving.state(job) == "PENDING" and powers(saving)["n3"].startswith("down")
    assert "committed: 4x2x2 on 4 nodes" in tail(saving.path("ocsd.log"), 1000) and not made(saving)
    saving.until(lambda: not saving.ocsctl("show", "job")["jobs"], 30, "ocsd to forget the job")
    saving.run(["scancel", str(job)])
    os.unlink(saving.path("broken.n3"))
    saving.write("etc/slurm.conf", saving.slurm_conf().replace("ResumeTimeout=3", "ResumeTimeout=60"))
    saving.run(["scontrol", "reconfigure"])
    down = [name for name, state in powers(saving).items() if state.startswith("down")]
    saving.run(["scontrol", "update", "NodeName=" + ",".join(down), "State=RESUME"])
    job = saving.sbatch("--shape=4x2x2")
    fields = saving.running(job, 90)
    assert fields["NodeList"] == "n[0-3]" and set(powers(saving).values()) == {"alloc"}
    assert saving.patches() == saving.circuit_patches(saving.placement(job))
    saving.run(["scancel", str(job)])
    saving.until(lambda: not saving.patches(), 30, "dark switches")
