# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Prolog and Epilog of the site run besides spank_ocs, and take as long as they like."""

import os
import time

import pytest

SCRIPT = """#!/bin/bash
while [ -e {0}/hang ] || [ -e {0}/hang.$SLURMD_NODENAME ]; do sleep 0.1; done
touch {0}/ended.$SLURMD_NODENAME.$SLURM_JOB_ID
"""
SHAPE = "--shape=4x2x2"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Where the files lie that keep the scripts waiting."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("prolog", "epilog"):
        (folder / name).mkdir()
        (folder / (name + ".sh")).write_text(SCRIPT.format(folder / name))
        (folder / (name + ".sh")).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def site(make_cluster, scripts):
    return make_cluster(edge=2, cubes=2, delay_ms=1, config={
        "Prolog": str(scripts / "prolog.sh"), "Epilog": str(scripts / "epilog.sh")})


@pytest.fixture(autouse=True)
def over(site, scripts):
    yield
    for path in scripts.glob("*/hang*"):
        path.unlink()
    site.cancel_all()
    site.until(lambda: not site.patches(), 30, "dark switches")


def lit(cluster):
    """Both cubes have their circuits, once."""
    return len(cluster.patches()) == 16


def explained(cluster, job):
    return cluster.out(["ocsctl", "explain", str(job), "--fabric", cluster.yaml])


def test_circuits_go_before_an_epilog_that_hangs(site, scripts):
    job = site.sbatch(SHAPE)
    site.running(job)
    assert lit(site) and "prolog:" not in explained(site, job)
    (scripts / "epilog" / "hang").touch()
    site.run(["scancel", str(job)])
    site.until(lambda: not site.patches(), 30, "dark switches")
    following = site.sbatch(SHAPE)
    assert "COMPLETING" in site.out(["scontrol", "show", "job", str(job)])
    assert site.state(following) == "PENDING"
    (scripts / "epilog" / "hang").unlink()
    site.running(following)
    assert lit(site)


def test_job_cancelled_while_a_prolog_hangs(site, scripts):
    before = site.makes()
    (scripts / "prolog" / "hang").touch()
    job = site.sbatch(SHAPE)
    site.until(lambda: lit(site), 30, "circuits")
    site.until(lambda: "realised" in explained(site, job), 30, lambda: explained(site, job))
    assert "prolog:   Slurm waits" in explained(site, job)
    assert site.ocsctl("explain", str(job))["slurm_reason"] == "Prolog"
    following = site.sbatch(SHAPE)
    site.run(["scancel", str(job)])
    (scripts / "prolog" / "hang").unlink()
    site.running(following)
    assert site.state(job) == "CANCELLED" and lit(site)
    assert site.makes() == before + 2 * 16
    assert not site.out(["sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N"])


def test_slurmd_killed_in_a_prolog(site, scripts):
    """After ocsd has said that the job is ready: no slurmd knows of the prolog any more, and Slurm would wait for its end until
    the job's time is over."""
    (scripts / "prolog/hang.n3").touch()
    job = site.sbatch(SHAPE, "--requeue", script="hostname")
    site.until(lambda: site.job(job)["Reason"] == "Prolog" and lit(site), 30, lambda: site.job(job))
    site.until(lambda: "prolog:   Slurm waits" in explained(site, job), 30, lambda: explained(site, job))
    time.sleep(1)
    site.stop_slurmd("n3")
    (scripts / "prolog/hang.n3").unlink()
    site.start_slurmd("n3")
    site.until(lambda: site.job(job)["Restarts"] == "1", 60, lambda: site.job(job))
    assert "slurmd of n3 was started anew during the prolog" in site.job(job)["AdminComment"], site.job(job)
    assert site.wait(job) == "COMPLETED"


def test_slurmd_restarted_beside_a_prolog(site, scripts):
    """That of a node whose prolog has ended: the job waits for the others, and runs."""
    (scripts / "prolog/hang.n3").touch()
    job = site.sbatch(SHAPE, "--requeue", script="hostname")
    site.until((scripts / ("prolog/ended.n2.%d" % job)).exists, 30, lambda: site.job(job))
    time.sleep(1)       # until slurmctld has heard of it
    site.stop_slurmd("n2")
    site.start_slurmd("n2")
    time.sleep(15)
    (scripts / "prolog/hang.n3").unlink()
    assert site.wait(job) == "COMPLETED" and site.job(job)["Restarts"] == "0", site.job(job)


def test_script_that_slurm_does_not_hold_back(site, scripts):
    """With NoHold it starts when the prolog of its own node has ended, and has all circuits;
    steps wait on each node."""
    for conf in ("etc", "etc-slurmd"):
        with open(site.path(conf, "slurm.conf")) as handle:
            text = handle.read()
        site.write(conf + "/slurm.conf", text.replace("DeferBatch", "DeferBatch,NoHold"))
    site.reconfigure()
    site.wait_idle()
    (scripts / "prolog" / "hang.n1").touch()
    ran = site.path("out", "ran.")
    job = site.sbatch(SHAPE, script="touch %sscript; "
                      "srun -n4 -N4 bash -c 'touch %s$SLURMD_NODENAME'; sleep 300" % (ran, ran))
    site.until(lambda: os.path.exists(ran + "script"), 30, lambda: site.job(job))
    assert site.job(job)["BatchHost"] != "n1" and lit(site)
    site.until(lambda: os.path.exists(ran + "n3"), 30, lambda: site.job(job))
    assert not os.path.exists(ran + "n1")
    (scripts / "prolog" / "hang.n1").unlink()
    site.until(lambda: os.path.exists(ran + "n1"), 30, lambda: site.job(job))
