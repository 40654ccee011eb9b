# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One fabric whose switches speak three protocols: TL1 as Calient does along x, SCPI
along y, NETCONF along z."""

import json

import pytest

from rings import broken_edges

# how each says that something is to be made, and to go
WORDS = {"x": ("ACT-CRS", "CANC-CRS"), "y": (":conn:add", ":conn:sub"),
         "z": ("operation=\"create\"", "operation=\"delete\"")}


@pytest.fixture(scope="module")
def fabric(make_cluster):
    """Eight 2x2x2 cubes: 32 slurmds, 12 switches."""
    return make_cluster(cubes=8, edge=2, tile=(1, 1, 2),
                        languages=("calient", "scpi", "netconf"))


@pytest.fixture(autouse=True)
def idle(fabric):
    yield
    fabric.cancel_all()
    fabric.until(lambda: not fabric.patches(), 60,
                 lambda: "the switches to be empty: %s" % sorted(fabric.patches()))


def commands(fabric, switch):
    with open(fabric.path("emulator.log")) as handle:
        entries = [json.loads(line) for line in handle]
    return [entry["text"] for entry in entries
            if entry.get("event") == "command" and entry["switch"].startswith(switch)]


def whole(fabric, job):
    placement = fabric.placement(job)
    assert fabric.patches() == fabric.circuit_patches(placement)
    assert not broken_edges(placement, fabric.patches(), fabric.switch_size(), 2)


def test_job_over_all(fabric):
    job = fabric.sbatch("--shape=4x4x4")
    fabric.running(job)
    whole(fabric, job)
    for dim, (make, _) in WORDS.items():
        assert any(make in text for text in commands(fabric, "ocs-%s-" % dim)), dim
    fabric.run(["scancel", str(job)])
    fabric.until(lambda: not fabric.patches(), 60, "the circuits to go")
    for dim, (_, cut) in WORDS.items():
        assert any(cut in text for text in commands(fabric, "ocs-%s-" % dim)), dim


def test_light_of_each(fabric):
    job = fabric.sbatch("--shape=4x4x4")
    fabric.running(job)
    placement = fabric.placement(job)
    for dim in {circuit["dim"] for circuit in placement["circuits"]}:
        name = next(switch for switch, _, _ in fabric.patches() if "-%s-" % dim in switch)

        def measured():
            ports = fabric.ocsctl("show", "switch", name)["ports"]
            lit = [port for port in ports if port.get("loss")]
            return lit and all(0.5 < port["loss"] < 3 and port["status"] == "TUNED" and
                               port["state"] == "CONNECTED" for port in lit)
        fabric.until(measured, 30, "the light of " + name)


def test_faults_of_each(fabric):
    """Lost and half answers in the prolog; dark reboots while the job runs."""
    for dim, fault in (("x", "lost"), ("y", "partial"), ("z", "drop")):
        fabric.emulator("fault", "ocs-%s-0-0" % dim, fault, "count", "1")
    job = fabric.sbatch("--shape=4x4x4")
    fabric.running(job)
    whole(fabric, job)
    for dim in "xyz":
        fabric.emulator("fault", "ocs-%s-0-0" % dim, "none")
        fabric.emulator("reboot", "ocs-%s-1-1" % dim, "dark", "200")
    wanted = fabric.circuit_patches(fabric.placement(job))
    fabric.until(lambda: fabric.patches() == wanted, 60, "the circuits to be made again")
    assert fabric.state(job) == "RUNNING"


def test_one_bad_port(fabric):
    """What one switch refuses costs the job that needs it, whatever is spoken."""
    for dim in "xyz":
        switch = "ocs-%s-0-1" % dim
        fabric.emulator("port", switch, "1", "refuse")
        job = fabric.sbatch("--shape=4x4x4")
        fabric.until(lambda: any(port.get("reason", "").startswith("quarantine: ") for port in
                                 fabric.ocsctl("show", "switch", switch)["ports"]), 60,
                     "a port in quarantine")
        assert fabric.ocsctl("show", "switch", switch)["switches"][0]["state"] == "up"
        fabric.run(["scancel", str(job)])
        fabric.until(lambda: not fabric.patches(), 60, "the circuits to go")
        fabric.emulator("port", switch, "1", "good")
        for port in fabric.ocsctl("show", "switch", switch)["ports"]:
            if port.get("reason"):
                fabric.ocsctl("resume", "port", "%s:%d" % (switch, port["port"]))
    job = fabric.sbatch("--shape=4x4x4")
    fabric.running(job)
    whole(fabric, job)


def test_nothing_dangerous(fabric):
    with open(fabric.path("emulator.log")) as handle:
        assert "deleted-all" not in handle.read()
