# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""slurmctld dies with a job that it had not saved yet: its circuits and processes go, no
node is drained, and what comes next gets circuits of its own."""

import os
import time

import pytest


@pytest.fixture(scope="module")
def small(make_cluster):
    """Four cubes of two nodes."""
    return make_cluster(edge=2)


class Unsaved:
    """Within, slurmctld cannot save the state of jobs; then it is killed and started anew."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.obstacle = cluster.path("state", "job_state.new")

    def __enter__(self):
        # A save that is under way has this name for a moment.
        def placed():
            try:
                os.mkdir(self.obstacle)
            except FileExistsError:
                return False
            return True
        self.cluster.until(placed, 20, "no save to be under way")

    def __exit__(self, *exception):
        self.cluster.kill("slurmctld")
        os.rmdir(self.obstacle)
        self.cluster.start_slurmctld()


def drained(cluster):
    return cluster.out(["sinfo", "-h", "-N", "-t", "drain,drng", "-o", "%N %E"])


def epoch(cluster, job):
    return [row["epoch"] for row in cluster.ocsctl("show", "job")["jobs"] if row["job"] == job]


def sleepers(cluster, mark):
    return cluster.run(["pgrep", "-f", "sleep " + mark], check=False).stdout.split()


def test_number_of_a_forgotten_job_is_not_given_again(small):
    with Unsaved(small):
        lost = small.sbatch("--shape=4x4x2", script="sleep 1234")
        small.running(lost)
        small.until(lambda: sleepers(small, "1234"), 20, "the script to run")
    assert small.state(lost) == "GONE"
    job = small.sbatch("--shape=4x4x2")
    assert job > lost
    small.running(job)
    assert not drained(small) and not sleepers(small, "1234")
    assert small.patches() == small.circuit_patches(small.placement(job))
    small.cancel_all()
    small.until(lambda: not small.patches(), 30, "dark switches")


def test_job_whose_start_was_forgotten_starts_again(small):
    job = small.sbatch("-H", "--shape=4x4x2", script="sleep 1235")
    small.saved(job)
    with Unsaved(small):
        small.run(["scontrol", "release", str(job)])
        small.running(job)
        first = epoch(small, job)
    died = time.time()
    assert small.state(job) == "PENDING"
    small.run(["scontrol", "release", str(job)])
    # At once, on the nodes that still have it.
    small.until(lambda: epoch(small, job) > first, 60, "another start")
    small.running(job)
    assert not drained(small)
    # Every node has had its prolog once more, also those without steps.
    for node in small.torus_nodes:
        made = float(small.out(["stat", "-c", "%.Y", small.job_dir(node, job) + "/placement.json"]))
        assert made > died, node
    assert small.patches() == small.circuit_patches(small.placement(job))
    small.cancel_all()
    small.until(lambda: not small.patches(), 30, "dark switches")
