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


@pytest.fixture
def external(ring):
    """Submits `sbatch --external ...`; the finished process."""
    release = ring.out(["sbatch", "--version"]).split()[-1]
    if [int(part) for part in release.split(".")[:2]] < [25, 5]:
        pytest.skip("Slurm %s has no sbatch --external" % release)

    def submit(*arguments):
        return ring.run(["sbatch", "--parsable", "--external"] + list(arguments), check=False)

    yield submit
    ring.cancel_all()


def said(done):
    """Why it was refused."""
    assert done.returncode == 1 and not done.stdout, done.stdout
    return done.stderr


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


def test_external_jobs(ring, external):
    """They have no prolog: whatever way one comes to a partition whose jobs all get ports, it does
    not start there, and elsewhere it runs."""
    for partition in ("direct", "plain,direct", "direct,plain"):
        assert "choose another partition" in said(external("-p", partition, "-N1"))
    assert "contradict each other" in said(external("-p", "tpu", "--shape=2x2x2"))
    for partition in ("tpu", "plain"):
        job = int(external("-p", partition, "-N1").stdout)
        ring.running(job)
        ring.run(["scancel", str(job)])
    waits = int(external("-p", "plain", "-N1", "-H").stdout)
    for change in ("Partition=direct", "Partition=plain,direct", "Extra=shape=2x2x2"):
        done = ring.run(["scontrol", "update", "JobId=%d" % waits, change], check=False)
        assert done.returncode == 1 and "external" in done.stderr, done.stderr
    ring.run(["scontrol", "update", "JobId=%d" % waits, "Partition=tpu"])
    # The partition is one of the direct section from now on.
    with open(ring.yaml) as handle:
        good = handle.read()
    other = good.replace("partitions: [tpu]", "partitions: [gone]").replace(
        "partitions: [direct]", "partitions: [direct, tpu]")
    assert other.count("tpu]") == 1 and "gone" in other, good
    ring.write("etc/ocs.yaml", other)
    try:
        ring.reconfigure()
        ring.run(["scontrol", "release", str(waits)])
        ring.until(lambda: "does not start: Slurm runs no prolog for an external job" in
                   reason(ring, waits), 60, lambda: ring.job(waits))
        plain = ring.sbatch("-p", "plain", "-N1", script="echo it ran")
        assert ring.output(plain) == "it ran\n"
        assert ring.state(waits) == "PENDING" and not ring.patches()
    finally:
        ring.write("etc/ocs.yaml", good)
        ring.reconfigure()
    ring.running(waits)


@pytest.mark.parametrize("known", [True, False], ids=["names", "nothing"])
def test_external_jobs_and_a_fabric_that_is_not_known(ring, external, known):
    """By the names that are kept, such a job is refused where jobs get ports; without them
    everywhere, and one that waits does not start.  Other jobs run."""
    waits = int(external("-p", "plain", "-N1", "-H").stdout)
    good = restart_without(ring, "ocs.yaml", *(() if known else ("ocs.partitions",)))
    try:
        for partition in ("direct", "plain,direct"):
            why = said(external("-p", partition, "-N1"))
            assert ("choose another partition" if known else "cube must be") in why, why
        elsewhere = external("-p", "plain", "-N1")
        ring.run(["scontrol", "release", str(waits)])
        if known:
            ring.running(int(elsewhere.stdout))
            ring.run(["scancel", elsewhere.stdout.strip()])
            ring.running(waits)
        else:
            why = said(elsewhere)
            assert "no external job is taken while it is not known" in why and "ocs.yaml:" in why, why
            ring.until(lambda: "no external job starts until ocs.yaml can be read" in
                       reason(ring, waits), 60, lambda: ring.job(waits))
            job = ring.sbatch("-p", "plain", "-N1", script="echo it ran")
            assert ring.output(job) == "it ran\n"
            assert ring.state(waits) == "PENDING"
    finally:
        ring.write("etc/ocs.yaml", good)
        ring.reconfigure()
    ring.until(lambda: "Config=" not in ring.out(["scontrol", "show", "topology"]), 20,
               "slurmctld to have read the file")
    ring.running(waits)
