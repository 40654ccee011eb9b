# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A broken ocs.yaml stops nobody: slurmctld and ocsd start with the copy of the last one that
they took, and where there is no such copy, jobs without a shape run."""

import os
import signal

import pytest


@pytest.fixture(scope="module")
def small(make_cluster):
    """Four 2x2x2 cubes of two nodes, twelve switches."""
    return make_cluster(edge=2)


@pytest.fixture(autouse=True)
def mended(small):
    """Every test leaves the good file and all daemons behind."""
    with open(small.yaml) as handle:
        good = handle.read()
    yield good
    small.write("etc/ocs.yaml", good)
    if not small.alive("ocsd"):
        small.start_ocsd()
    restart(small)
    small.cancel_all()
    small.until(lambda: not small.patches(), 30, "dark switches")


def news(cluster):
    with open(cluster.path("slurmctld.log"), errors="replace") as handle:
        return handle.read().rsplit("slurmctld version", 1)[-1]


def restart(cluster):
    if cluster.alive("slurmctld"):
        cluster.kill("slurmctld", signal.SIGTERM)
    cluster.start_slurmctld()


def broken(text):
    wrong = text.replace("cube: 2x2x2", "cube: 2x2x")
    assert wrong != text
    return wrong


def check(cluster):
    return cluster.run(["ocsctl", "check"], env={"OCS_CONF": cluster.yaml}, check=False)


def runs_plain(cluster):
    job = cluster.sbatch("-N1", script="echo it ran")
    assert cluster.output(job) == "it ran\n"


def copy(cluster):
    return cluster.path("state", "ocs.yaml")


def test_slurmctld_starts_with_its_copy(small, mended):
    """Shapes are served as before; a job that runs keeps its circuits; everybody says it."""
    job = small.sbatch("--shape=4x2x2")
    small.running(job)
    assert mended in open(copy(small)).read()
    small.write("etc/ocs.yaml", broken(mended))
    restart(small)
    assert "ocs.yaml:" in news(small) and "what was read before is kept: " + copy(small) in news(small)
    shown = small.out(["scontrol", "show", "topology"]).splitlines()
    assert shown[0].startswith("Config=%s State=KEPT Reason=\"" % copy(small)), shown[0]
    assert "cube" in shown[0] and shown[1].startswith("Section=")
    assert small.out(["scontrol", "show", "topology", "unit=c0"]).startswith("Cube=c0 ")
    checked = check(small)
    assert checked.returncode == 2 and "the running slurmctld goes on with " + copy(small) \
        in checked.stderr, checked.stderr
    assert small.state(job) == "RUNNING" and small.lit(job)
    runs_plain(small)
    # A prolog reads the file itself, and waits until it can.
    second = small.sbatch("--shape=4x2x2")
    small.until(lambda: small.job(second).get("Reason") == "Prolog", 20,
                lambda: small.job(second))
    small.write("etc/ocs.yaml", mended)
    small.running(second)
    assert "could not read" not in check(small).stdout      # it is what it kept
    small.write("etc/ocs.yaml", mended + "# mended\n")
    checked = check(small)
    assert "slurmctld: could not read ocs.yaml, and goes on with what it read before" in \
        checked.stdout, checked.stdout
    # Broken once more, a reconfigure and a start find the same copy.
    small.write("etc/ocs.yaml", broken(mended))
    restart(small)
    assert "what was read before is kept" in news(small)
    small.write("etc/ocs.yaml", mended)
    small.reconfigure()
    small.until(lambda: "Config=" not in small.out(["scontrol", "show", "topology"]), 20,
                "slurmctld to have read the good one")
    small.until(lambda: "could not read" not in check(small).stdout, 20, lambda: check(small).stdout)
    assert small.state(job) == small.state(second) == "RUNNING"


@pytest.mark.parametrize("damage", ["absent", "short", "edited", "of another slurm-ocs"])
def test_slurmctld_starts_without_shapes(small, mended, damage):
    """The copy cannot be used either: plain jobs run, new shapes are refused, those that wait go
    on waiting, and one that runs keeps its circuits."""
    runs = small.sbatch("--shape=4x2x2")
    small.running(runs)
    waits = small.sbatch("--shape=4x4x2")
    small.kill("slurmctld", signal.SIGTERM)
    kept = open(copy(small)).read()
    os.unlink(copy(small))
    if damage != "absent":
        with open(copy(small), "w") as handle:
            handle.write({"short": kept[:len(kept) // 2], "edited": kept.replace("c3", "c9"),
                          "of another slurm-ocs": mended + "later: 1\n"}[damage])
    small.write("etc/ocs.yaml", broken(mended))
    small.start_slurmctld()
    assert "shapes are refused" in news(small)
    assert small.out(["scontrol", "show", "topology"]).startswith("Config=none State=MISSING Reason=")
    assert "the running slurmctld serves no shapes" in check(small).stderr
    runs_plain(small)
    said = small.refused("--shape=2x2x2")
    assert "ocs.yaml:" in said and "cube" in said, said
    small.until(lambda: "until_ocs.yaml_can_be_read" in small.job(waits).get("Reason", "") or
                "until ocs.yaml can be read" in small.job(waits).get("Reason", ""), 60,
                lambda: small.job(waits))
    assert small.state(waits) == "PENDING" and small.job(waits)["Priority"] != "0"
    assert small.state(runs) == "RUNNING" and small.lit(runs)
    # The circuits of one that ends meanwhile are cut when the file can be read.
    small.run(["scancel", str(runs)])
    small.write("etc/ocs.yaml", mended)
    small.reconfigure()
    small.running(waits)        # it needs all four cubes
    assert small.circuit_patches(small.placement(waits)) == small.patches()


def test_a_copy_and_nodes_that_slurm_lacks(small, mended):
    """Nodes that slurm.conf has no more are told once at a start, and not with every picture."""
    last = small.nodes[-1]
    other = mended.replace("n[6-7]", "n[6,99]")
    assert other != mended and last == "n7"
    small.write("etc/ocs.yaml", other)
    restart(small)
    assert "n[6,99]" in open(copy(small)).read()
    small.write("etc/ocs.yaml", broken(other))
    restart(small)
    for _ in range(3):
        assert "Unconfigured=1" in small.out(["scontrol", "show", "topology"])
    said = news(small)
    assert said.count("1 nodes of") == 1 and "n99)" in said, said
    assert 'failure for node "n99"' not in said, said
    runs_plain(small)


def test_a_job_without_its_circuits_stays_held(small, mended):
    """Its switches hang while slurmctld starts without shapes: nothing of it runs before they
    were heard."""
    switches = ["ocs-%s-%d-%d" % (axis, i, k) for axis in "xyz" for i in (0, 1) for k in (0, 1)]
    ran = small.path("out", "held.ran")
    for name in switches:
        small.emulator("fault", name, "silent")
    try:
        job = small.sbatch("--shape=4x2x2", script="touch %s; sleep 300" % ran)
        small.until(lambda: small.job(job).get("Reason") == "Prolog", 20, lambda: small.job(job))
        small.kill("slurmctld", signal.SIGTERM)
        os.unlink(copy(small))
        small.write("etc/ocs.yaml", broken(mended))
        small.start_slurmctld()
        runs_plain(small)
        assert not os.path.exists(ran)
    finally:
        for name in switches:
            small.emulator("fault", name, "none")
    runs_plain(small)
    assert small.alive("slurmctld") and not (os.path.exists(ran) and not small.patches())
    small.write("etc/ocs.yaml", mended)
    small.reconfigure()
    small.until(lambda: os.path.exists(ran), 120, lambda: "%s\n%s" % (small.job(job), news(small)))
    assert small.circuit_patches(small.placement(job)) <= small.patches()
