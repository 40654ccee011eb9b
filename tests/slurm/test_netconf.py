# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs over switches that speak NETCONF over SSH."""

import json

import pytest

from rings import broken_edges


@pytest.fixture(scope="module")
def fabric(make_cluster):
    """Two 4x4x4 cubes: 32 slurmds, 48 switches, each with an SSH session."""
    return make_cluster(cubes=2, netconf=True)


@pytest.fixture(autouse=True)
def idle(fabric):
    yield
    fabric.emulator("delay", str(fabric.delay_ms))
    fabric.cancel_all()
    fabric.until(lambda: not fabric.patches(), 60,
                 lambda: "the switches to be empty: %s" % sorted(fabric.patches()))


def edits(fabric):
    """Requests that changed something, as (switch, text)."""
    found = []
    with open(fabric.path("emulator.log")) as handle:
        for line in handle:
            entry = json.loads(line)
            if entry.get("event") == "command" and "edit-config" in entry["text"]:
                found.append((entry["switch"], entry["text"]))
    return found


def whole(fabric, job):
    placement = fabric.placement(job)
    assert fabric.patches() == fabric.circuit_patches(placement)
    assert not broken_edges(placement, fabric.patches(), fabric.switch_size())


def test_job(fabric):
    before = len(edits(fabric))
    job = fabric.sbatch("--shape=8x4x4")
    fabric.running(job)
    whole(fabric, job)
    # one edit on each switch, whatever the number of nodes
    made = edits(fabric)[before:]
    assert len(made) == 48 == len({switch for switch, _ in made})
    assert all("operation=\"create\"" in text for _, text in made)
    fabric.run(["scancel", str(job)])
    fabric.until(lambda: not fabric.patches(), 60, "the circuits to go")
    cut = edits(fabric)[before + 48:]
    assert len(cut) == 48
    assert all("operation=\"delete\"" in text for _, text in cut)


def test_switch_reboots_in_the_prolog(fabric):
    """It comes back dark after two seconds; the job starts all the same."""
    fabric.emulator("delay", "ocs-x-0-0", "1500")
    before = len(edits(fabric))
    job = fabric.sbatch("--shape=8x4x4")
    fabric.until(lambda: any(switch == "ocs-x-0-0" for switch, _ in edits(fabric)[before:]), 60,
                 "the switch to be asked")
    fabric.emulator("reboot", "ocs-x-0-0", "dark", "2000")
    fabric.emulator("delay", "ocs-x-0-0", str(fabric.delay_ms))
    fabric.running(job, 120)
    fabric.until(lambda: fabric.lit(job), 60, "its circuits")    # had the reboot come after the edit
    whole(fabric, job)
    assert not [line for line in fabric.out(["sinfo", "-h", "-N", "-o", "%T"]).splitlines()
                if "drain" in line or "down" in line]


def test_reboots_under_a_running_job(fabric):
    """Switches that come back dark are found by polling and made whole."""
    job = fabric.sbatch("--shape=4x4x4")
    fabric.running(job)
    placement = fabric.placement(job)
    for circuit in placement["circuits"][:3]:
        fabric.emulator("reboot", "ocs-%s-%d-%d" % (circuit["dim"], *circuit["position"]), "dark")
    fabric.until(lambda: fabric.patches() == fabric.circuit_patches(placement), 60,
                 "the circuits to be made again")
    assert fabric.state(job) == "RUNNING"


def test_host_key_that_changes(fabric):
    """A switch that shows another key is not spoken to, and its password not told."""
    known = fabric.path("etc", "known_hosts")
    with open(known) as handle:
        good = handle.read()
    other = fabric.run(["bash", "-c", "rm -f /tmp/k /tmp/k.pub; ssh-keygen -q -t ed25519 -N '' "
                        "-f /tmp/k && cut -d' ' -f1,2 /tmp/k.pub"]).stdout.strip()
    lines = [line.split(" ")[0] + " " + other if ":3100" in line else line
             for line in good.splitlines()]
    name = fabric.ocsctl("show", "switch")["switches"][0]["name"]
    try:
        with open(known, "w") as handle:
            handle.write("\n".join(lines) + "\n")
        fabric.emulator("reboot", name, "restore")
        fabric.wait_for_switch(name, "failed", 60)
        shown = json.dumps(fabric.ocsctl("show", "switch", name))
        assert "another machine answers there" in shown
    finally:
        with open(known, "w") as handle:
            handle.write(good)
    fabric.wait_for_switch(name, "up", 60)
