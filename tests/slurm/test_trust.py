# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Who is believed: a user's process where ocsd should answer is not."""

import os
import re
import shutil

import pytest

IMPOSTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "impostor.py")
# Of the ways of impostor.py.
WAYS = 8


def read(cluster, *names):
    with open(cluster.path(*names)) as handle:
        return handle.read()


@pytest.fixture
def remote(make_cluster):
    if not shutil.which("munged", path="/usr/sbin:/usr/bin") or not shutil.which("unmunge"):
        pytest.skip("munge is not installed")
    cluster = make_cluster(cubes=4, edge=2, remote="munge")
    yield cluster
    cluster.stop()


def test_an_impostor_of_ocsd_gets_nothing(remote):
    """ocsd is down and `nobody` holds its port: running jobs stay, later ones wait, slurmctld
    lives and says why; with ocsd everything goes on."""
    done = remote.run(["ocsctl", "check"], env={"OCS_CONF": remote.yaml}, check=False)
    lacks = remote.run(["getent", "passwd", "ocsd"], check=False).returncode != 0
    assert ("this host has no account ocsd" in done.stdout) == lacks, done
    host, port = re.search(r"address: ([\d.]+):(\d+)", read(remote, "etc", "ocs.yaml")).groups()
    job = remote.sbatch("--shape=4x2x2")
    remote.running(job)
    remote.saved(job)
    patches = remote.patches()
    assert patches
    remote.kill("ocsd")
    with open(IMPOSTOR) as handle:
        impostor = remote.spawn(["/usr/bin/python3", "-c", handle.read(), host, port, str(job)],
                                remote.path("impostor.log"), user="nobody")
    later = remote.sbatch("--shape=4x2x2")

    def tried():
        assert impostor.poll() is None, read(remote, "impostor.log")
        return len(set(line.split(":")[0] for line in
                       read(remote, "impostor.log").splitlines())) == WAYS
    remote.until(tried, 90, lambda: "all ways to be tried\n" + read(remote, "impostor.log"))
    # A slurmctld that starts meanwhile believes no more than one that runs.
    remote.kill("slurmctld")
    remote.start_slurmctld()
    remote.write("impostor.log", "", 0o666)
    remote.until(tried, 90, lambda: "all ways again\n" + read(remote, "impostor.log"))
    for _ in range(WAYS):
        done = remote.run(["ocsctl", "show", "fabric", "--ocsd", "%s:%s" % (host, port),
                           "--fabric", remote.yaml], check=False)
        assert done.returncode == 5, done
    log = read(remote, "slurmctld.log")
    assert "runs as uid 65534, but ocsd as uid " in log
    assert "connected to ocsd" not in log[log.index("runs as uid 65534"):]
    told = set(line.split(": ")[1] for line in read(remote, "impostor.log").splitlines())
    assert told == {"nothing", "a secret"}, told
    assert remote.alive("slurmctld")
    assert remote.state(job) == "RUNNING" and remote.patches() == patches
    assert "forged" not in str(remote.job(job))
    assert remote.state(later) == "PENDING"
    # nsenter forks: its child is the impostor.
    remote.run(["pkill", "-KILL", "-u", "nobody", "-x", "python3"])
    remote.start_ocsd()
    remote.run(["scancel", str(job)])
    remote.running(later)
    assert remote.circuit_patches(remote.placement(later)) <= remote.patches()
