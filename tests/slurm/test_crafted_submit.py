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

    def submit(partition, nodes, environment=(), spank=(), script=None):
        for name, lines in (("environment", ("PATH=/usr/bin:/bin",) + tuple(environment)),
                            ("spank", spank)):
            pod.write(name, "".join(line + "\n" for line in lines))
        if script:
            pod.write("script", script)
        return pod.run([program, partition, str(nodes), pod.path("out", "%j.out"),
                        pod.path("environment"), pod.path("spank")] +
                       ([pod.path("script")] if script else []), check=False)

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


def test_rings_that_no_sbatch_sends(pod, raw):
    done = raw("direct", 2, spank=[DEMAND.replace("demand=", "rings=") + "round"])
    assert done.returncode == 1 and "--ocs-rings=round is unknown" in done.stderr, done.stderr + done.stdout
    done = raw("tpu", 2, spank=[DEMAND.replace("demand=", "rings=") + "stock"])
    assert done.returncode == 1 and "--ocs-rings is for partitions on a direct fabric" in done.stderr, done.stderr


def test_model_that_no_sbatch_sends(pod, raw):
    done = raw("direct", 2, spank=[DEMAND.replace("demand=", "model=") + "llama-3-8b"])
    assert done.returncode == 1 and "--ocs-model arrived as it was typed" in done.stderr, done.stderr + done.stdout


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


def test_lines_that_only_sbatch_reads(pod, raw):
    """A script that slurmrestd took ran without the shape that stands in it."""
    script = "#!/bin/bash\n#SBATCH -J named --shape=4x4\nsleep 300\n#SBATCH --shape=2x2\n"
    done = raw("tpu", 1, script=script)
    assert done.returncode == 1 and "line 2 of the script, #SBATCH --shape: only sbatch reads" in \
        done.stderr, done.stderr
    assert not pod.out(["squeue", "-h"]).strip()
    # With the option, or without a line that sbatch would read, it runs.
    for spank, text, nodes in ((["_SLURM_SPANK_OPTION_spank_ocs_shape=4x4"], script, 4),
                               ([], script.replace("-J named --shape=4x4", "-J named"), 1)):
        done = raw("tpu", nodes, script=text, spank=spank)
        assert done.returncode == 0, done.stderr
        job = int(done.stdout)
        assert pod.running(job)["NumNodes"] == str(nodes)
        assert ("shape=4x4" in pod.job(job).get("Extra", "")) == bool(spank)
        pod.run(["scancel", str(job)])
    # sbatch itself: the lines, what overrules them, and those of another component.
    job = pod.sbatch("-H", script="#SBATCH --shape=4x4")
    assert "shape=4x4" in pod.job(job)["Extra"]
    job = pod.sbatch("-H", "--shape=2x2", script="#SBATCH --shape=4x4")
    assert "shape=2x2" in pod.job(job)["Extra"]
    parts = ["#SBATCH -p plain -N1\n", "#SBATCH --shape=2x2 -p tpu\n"]
    for order in (parts, parts[::-1]):
        pod.run(["sbatch", "-H", "-o", "/dev/null"],
                stdin="#!/bin/bash\n" + "#SBATCH hetjob\n".join(order) + "true\n")


def test_counts_of_nodes_and_who_is_to_blame(pod):
    job = pod.sbatch("-H", "-N", "2,4", "--shape=4x4")
    assert pod.job(job)["NumNodes"] in ("4", "4-4")
    message = pod.refused("--shape=4x4", "-N", "2,8")
    assert "needs 4 nodes, but -N asks for 2,8; leave -N out" in message, message
    message = pod.refused("--shape=16x4x4", "-x", "n0")
    assert "does not fit the 63 of 64 nodes that -x leaves it: " in message, message
