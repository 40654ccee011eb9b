# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""slurmctld goes while a batch job waits for its circuits: Slurm forgets to start the script."""

import signal

import pytest

SWITCH = "ocs-x-0-0"
WAIT = """#!/bin/bash
while [ -e {0} ]; do sleep 0.1; done
"""


def in_prolog(cluster, job):
    """Whether ocsd is at the job's circuits."""
    return [row for row in cluster.ocsctl("show", "job")["jobs"]
            if row["job"] == job and row["state"] == "applying"]


@pytest.mark.parametrize("how", ["restart", "reconfigure"])
def test_job_in_its_prolog_starts_anew(pod, how):
    pod.emulator("fault", SWITCH, "slow", "1500")
    try:
        job = pod.sbatch("--shape=4x4x4", script="sleep 1")
        pod.until(lambda: in_prolog(pod, job), 20, "its prolog")
        if how == "restart":
            pod.kill("slurmctld", signal.SIGTERM)
            pod.start_slurmctld()
        else:
            pod.reconfigure()
    finally:
        pod.emulator("fault", SWITCH, "none")
    assert pod.wait(job, "COMPLETED", 60)
    fields = pod.job(job)
    assert fields["Restarts"] == "1"
    assert "slurmctld was restarted during its prolog" in fields["AdminComment"]
    assert "(requeued)" in fields["AdminComment"]


def test_job_that_was_still_being_configured_is_left_alone(make_cluster, tmp_path):
    """Its nodes boot, or PrologSlurmctld runs: Slurm itself goes on with it after a restart, and
    the job must not be taken off its nodes when its prolog ends."""
    script, boots = tmp_path / "prolog", tmp_path / "boots"
    script.write_text(WAIT.format(boots))
    script.chmod(0o755)
    boots.touch()
    cluster = make_cluster(cubes=1, edge=2, delay_ms=1, config={"PrologSlurmctld": str(script)})
    try:
        job = cluster.sbatch("--shape=2x2x2", script="sleep 2")
        cluster.wait(job, "CONFIGURING")
        cluster.kill("slurmctld", signal.SIGTERM)
        cluster.start_slurmctld()
        boots.unlink()
        assert cluster.wait(job, "COMPLETED", 60)
        assert cluster.job(job)["Restarts"] == "0", cluster.job(job)
    finally:
        cluster.stop()
