# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""slurmctld goes while a batch job waits for its circuits: Slurm forgets to start the script."""

import signal

import pytest

SWITCH = "ocs-x-0-0"


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
            pod.run(["scontrol", "reconfigure"], check=False)
    finally:
        pod.emulator("fault", SWITCH, "none")
    assert pod.wait(job, "COMPLETED", 60)
    fields = pod.job(job)
    assert fields["Restarts"] == "1"
    assert "slurmctld was restarted during its prolog" in fields["AdminComment"]
    assert "(requeued)" in fields["AdminComment"]
