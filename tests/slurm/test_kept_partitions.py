# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""In partitions of direct and rail sections every job has circuits: while slurmctld does not know
the fabric, not even from a copy, these jobs wait, and no others."""

import os
import signal

import pytest


@pytest.fixture(scope="module")
def ring(make_cluster):
    """Two cubes of one node each, two direct servers, one node without circuits."""
    cluster = make_cluster(cubes=2, edge=2, tile=(2, 2, 2), direct=2, plain=1)
    yield cluster
    cluster.stop()


def check(cluster):
    return cluster.run(["ocsctl", "check"], env={"OCS_CONF": cluster.yaml}, check=False).stderr


def restart_without(cluster, *names):
    """slurmctld with a broken ocs.yaml and without these files of StateSaveLocation."""
    with open(cluster.yaml) as handle:
        good = handle.read()
    cluster.kill("slurmctld", signal.SIGTERM)
    for name in names:
        os.unlink(cluster.path("state", name))
    cluster.write("etc/ocs.yaml", good.replace("cube: 2x2x2", "cube: 2x2x"))
    cluster.start_slurmctld()
    return good


def reason(cluster, job):
    return cluster.job(job).get("Reason", "").replace("_", " ")


def test_jobs_of_a_direct_section_wait(ring):
    """Those that waited before and those that come, with their reason; plain jobs run, on the same
    nodes too; when the file can be read, the waiting ones start with their circuits."""
    before = ring.sbatch("-p", "direct", "-N2", "--begin=now+1")
    good = restart_without(ring, "ocs.yaml")
    try:
        later = ring.sbatch("-p", "direct", "-N1", script="cat $SLURM_OCS_DIR/plan.json")
        for job in (before, later):
            ring.until(lambda job=job: "no job of partition direct starts until ocs.yaml can be read"
                       in reason(ring, job), 60, lambda job=job: ring.job(job))
            assert ring.state(job) == "PENDING" and ring.job(job)["Priority"] != "0"
        for partition in ("tpu", "plain"):
            job = ring.sbatch("-p", partition, "-N1", script="echo it ran")
            assert ring.output(job) == "it ran\n"
        shown = ring.out(["scontrol", "show", "topology"])
        assert shown.startswith("Config=none State=MISSING") and "UNKNOWN" not in shown, shown
        assert "serves no shapes" in check(ring) and "without circuits" not in check(ring)
        assert ring.state(before) == ring.state(later) == "PENDING" and not ring.patches()
    finally:
        ring.write("etc/ocs.yaml", good)
    ring.reconfigure()
    ring.running(before)
    assert ring.patches()
    ring.run(["scancel", str(before)])
    assert '"servers": 1' in ring.output(later).replace(":1", ": 1")
    ring.until(lambda: not ring.patches(), 30, "dark switches")


def test_nothing_is_known(ring):
    """Without the names either it is said that such jobs run without circuits."""
    good = restart_without(ring, "ocs.yaml", "ocs.partitions")
    try:
        assert "Partitions=UNKNOWN" in ring.out(["scontrol", "show", "topology"])
        assert "jobs of rail and direct sections run without circuits" in check(ring)
        with open(ring.path("slurmctld.log"), errors="replace") as handle:
            assert "RUN WITHOUT CIRCUITS" in handle.read().rsplit("slurmctld version", 1)[-1]
    finally:
        ring.write("etc/ocs.yaml", good)
    ring.reconfigure()
    ring.until(lambda: "Config=" not in ring.out(["scontrol", "show", "topology"]), 20,
               "slurmctld to have read the file")
