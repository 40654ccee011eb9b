# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

import contextlib
import glob
import os
import shutil
import socket
import tempfile

import pytest

from cluster import Cluster, tail

MACHINE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                       "data/server-8gpu-4nic.xml")


# The files that take longest come first, so that no worker is left alone with one at the end.
LONGEST = ("test_forward", "test_guide", "test_failover", "test_moe_programs", "test_teardown", "test_steering")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def places():
    stage, slurm = os.environ.get("OCS_STAGE"), os.environ.get("OCS_SLURM")
    if not stage or not slurm:
        pytest.skip("set OCS_STAGE and OCS_SLURM to the installed trees (./check does)")
    return stage, slurm


def sockets_sweep():
    """Sockets of controllers that were killed: nobody answers at them any more."""
    for folder in glob.glob("/tmp/ocs-moe-*"):
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.connect(folder + "/plan.0")
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)
            except OSError:
                pass


def end(cluster):
    cluster.stop()
    if cluster.region_nodes:
        sockets_sweep()
    if not os.environ.get("OCS_KEEP"):
        shutil.rmtree(cluster.dir, ignore_errors=True)


@contextlib.contextmanager
def living(kind, **options):
    """A cluster that lives as long as the block."""
    cluster = kind(tempfile.mkdtemp(prefix="ocs-test-"), *places(), **options)
    try:
        yield cluster.start()
    finally:
        end(cluster)


@pytest.fixture(scope="session")
def make_cluster():
    """Starts a cluster with the given shape; all of them stop at the end."""
    made = []

    def make(**options):
        stage, slurm = places()
        directory = tempfile.mkdtemp(prefix="ocs-test-")
        cluster = Cluster(directory, stage, slurm, **options)
        made.append(cluster)
        return cluster.start()

    yield make
    for cluster in made:
        end(cluster)


@pytest.fixture(scope="session")
def pod(make_cluster):
    """Four 4x4x4 cubes of 2x2x1 tiles: 64 slurmds, 48 switches; and 6 direct servers.  The
    machine that the nodes describe has GPUs, which this one may lack."""
    return make_cluster(direct=6, plain=2, more_yaml="nccl:\n  hwloc_xml: %s\n" % MACHINE)


@pytest.fixture(autouse=True)
def clean(request):
    """Every test leaves an idle cluster and dark switches behind."""
    yield
    if "pod" not in request.fixturenames:
        return
    cluster = request.getfixturevalue("pod")
    for daemon, start in (("ocs-emulator", cluster.start_emulator),
                          ("ocsd", cluster.start_ocsd),
                          ("slurmctld", cluster.start_slurmctld)):
        if not cluster.alive(daemon):
            start()
    for line in cluster.out(["sinfo", "-h", "-N", "-o", "%N %T"]).splitlines():
        node, state = line.split()
        if "drain" in state or "down" in state:
            cluster.run(["scontrol", "update", "NodeName=" + node, "State=RESUME"], check=False)
    cluster.cancel_all()
    cluster.until(lambda: not cluster.patches(), 30,
                  lambda: "the switches to be empty: %s\n%s" % (
                      sorted(cluster.patches()), tail(cluster.path("ocsd.log"))))
    # A switch that was late may do it again: ocsd keeps the ports of its circuits a while.
    cluster.until(lambda: not cluster.ocsctl("show", "job")["jobs"], 30, lambda: "ports to be free")
