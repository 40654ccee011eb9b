# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A user who does not go through sbatch: what slurmctld and the nodes get is what he likes."""

import base64
import json
import os
import subprocess

import pytest

DEMAND = "_SLURM_SPANK_OPTION_spank_ocs_ocs_demand="


@pytest.fixture(scope="module")
def raw(pod):
    """Submits with raw_submit.c; the finished process."""
    program = pod.path("raw_submit")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "raw_submit.c")
    subprocess.run(["gcc", "-o", program, source, "-I", pod.slurm + "/include", "-L",
                    pod.slurm + "/lib", "-lslurm", "-Wl,-rpath," + pod.slurm + "/lib"],
                   check=True)

    def submit(partition, nodes, environment=(), spank=()):
        for name, lines in (("environment", ("PATH=/usr/bin:/bin",) + tuple(environment)),
                            ("spank", spank)):
            pod.write(name, "".join(line + "\n" for line in lines))
        return pod.run([program, partition, str(nodes), pod.path("out", "%j.out"),
                        pod.path("environment"), pod.path("spank")], check=False)

    return submit


def coded(text):
    return DEMAND + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("demand", [
    coded(json.dumps({"allreduce": [], "padding": "x" * 2000000})), coded("{\"allreduce\": ["),
    coded("[]"), DEMAND + "***", DEMAND], ids=["large", "half", "list", "stars", "empty"])
def test_demand_that_no_sbatch_sends(pod, raw, demand):
    """A line to ocsd has its limit; a demand beyond it cut slurmctld off from ocsd, and every
    shape in the queue waited for that."""
    done = raw("direct", 2, spank=[demand])
    assert done.returncode == 1 and "--ocs-demand" in done.stderr, done.stderr + done.stdout
    assert len(done.stderr) < 400


def test_environment_entry_that_is_no_variable(pod, raw):
    """slurmstepd turned in circles over it, nobody could end the job, and its node was drained."""
    done = raw("direct", 2, environment=["SLURM_OCS_NONE", "OCS_SHAPE", "SLURM_OCS_EXPORTED",
                                         "SLURM_OCS_=1", "SLURM_OCS_OLD=1", "=", "A=b"])
    job = int(done.stdout)
    pod.running(job)
    path = pod.path("out", "%d.out" % job)
    pod.until(lambda: os.path.exists(path) and "ran" in open(path).read(), 20, "the script to run")
    pod.run(["scancel", str(job)])
    pod.wait(job, "CANCELLED", 30)
