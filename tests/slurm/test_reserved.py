# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Nodes that are kept for maintenance or for others are not free: pictures, counts and what-if
answers say so, and for whom."""

import json
import re

import pytest


@pytest.fixture(scope="module")
def kept(make_cluster):
    """Four cubes of four nodes, and three servers of a direct section."""
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, direct=3)
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def free(kept):
    yield
    text = kept.out(["scontrol", "-o", "show", "reservation"])
    kept.run("squeue -h -o %A | xargs -r scancel", check=False)
    for name in re.findall(r"ReservationName=(\S+)", text):
        kept.until(lambda name=name: not kept.run(
            ["scontrol", "delete", "ReservationName=" + name], check=False).returncode, 30,
            "reservation %s to go" % name)
    kept.cancel_all()
    # slurmctld tells ocsd of its nodes once a second
    kept.until(lambda: "free (256 of 256 XPUs)" in ask(kept, "map", "--section", "pod").stdout, 30,
               lambda: ask(kept, "map").stdout)


def reserve(cluster, name, nodes, *more, users="root"):
    cluster.run(["scontrol", "create", "reservation", "ReservationName=" + name, "StartTime=now",
                 "Duration=60", "Nodes=" + nodes, "Users=" + users] + list(more))


def ask(cluster, *words, user=None, check=True):
    return cluster.run(["ocsctl"] + list(words) + ["--fabric", cluster.yaml, "--ocsd",
                                                   "unix:" + cluster.path("ocsd.sock")],
                       user=user, check=check)


def states(cluster, user=None):
    """What `map --json` says of each node of the cubes."""
    told = json.loads(ask(cluster, "map", "--json", "--section", "pod", user=user).stdout)
    return {one["node"]: one for one in told["nodes"]}


def expand(cluster, nodes):
    return set(cluster.out(["scontrol", "show", "hostnames", nodes]).split())


@pytest.mark.parametrize("user", [None, "nobody"])
def test_pictures_and_answers_leave_reserved_nodes_out(kept, user):
    """Administrators of ocsd, and users, to whom only Slurm's commands tell it."""
    reserve(kept, "fans", "n[0-3]", "Flags=MAINT")
    reserve(kept, "big", "n[4-7]", users="daemon")
    job = kept.sbatch("--shape=4x4x4", "--reservation=fans", user=None)
    kept.running(job)
    kept.until(lambda: states(kept)["n0"]["state"] == "busy", 30, "ocsd to hear of the job's nodes")
    text = ask(kept, "map", "--section", "pod", user=user).stdout
    assert "=  idle, but reserved (64 XPUs)" in text, text
    assert "free (128 of 256 XPUs)" in text, text
    assert "note: big has n[4-7], for daemon until 20" in text, text
    assert "note: fans has n[0-3], for root until 20" in text, text
    for shape in ("4x4x4", "8x4x4"):
        done = ask(kept, "place", shape, "--section", "pod", "--nodes", user=user)
        assert not expand(kept, done.stdout.strip()) & {"n%d" % i for i in range(8)}, done.stdout
        assert "big has n[4-7], for daemon" in done.stderr
    done = ask(kept, "place", "8x8x4", "--section", "pod", user=user, check=False)
    assert done.returncode == 4 and "big has n[4-7], for daemon" in done.stderr, done.stderr
    done = ask(kept, "advise", "8x8x4", "--section", "pod", user=user, check=False)
    assert done.returncode == 4, done.stdout + done.stderr
    # The state travels with the map.
    nodes = states(kept, user)
    assert nodes["n4"]["state"] == "reserved" and nodes["n4"]["reservation"] == "big"
    assert nodes["n0"]["state"] == "busy" and nodes["n0"]["reservation"] == "fans"
    assert nodes["n8"]["state"] == "idle" and "reservation" not in nodes["n8"]


def test_fabric_and_topology_count_them(kept):
    reserve(kept, "fans", "n[0-3],d0", "Flags=MAINT")
    shown = json.loads(ask(kept, "show", "fabric", "--json").stdout)
    room = [one for one in shown["room"] if one["section"] == "pod"][0]
    assert room["free"] == 192 and room["whole_cubes"] == 3
    out = [one for one in shown["out_of_service"] if one["kind"] == "reservation"]
    assert len(out) == 1 and out[0]["name"] == "fans" and out[0]["state"] == "maintenance"
    assert "d0" in out[0]["reason"] and "for root until 20" in out[0]["reason"], out
    assert "=  idle, but reserved (1 server)" in ask(kept, "map").stdout
    # slurmctld marks the nodes itself, some seconds later
    kept.until(lambda: " Reserved=4" in kept.out(["scontrol", "show", "topology", "unit=c0"]), 60,
               lambda: kept.out(["scontrol", "show", "topology"]))
    assert "Idle=0 " in kept.out(["scontrol", "show", "topology", "unit=c0"])
    kept.run(["scontrol", "delete", "ReservationName=fans"])
    room = json.loads(ask(kept, "show", "fabric", "--json").stdout)["room"][0]
    assert room["free"] == 256


def test_what_is_over_or_to_come_is_free(kept):
    kept.run(["scontrol", "create", "reservation", "ReservationName=later", "StartTime=now+1hour",
              "Duration=60", "Nodes=n[0-15]", "Users=root"])
    done = ask(kept, "place", "8x8x4", "--section", "pod", "--nodes")
    assert expand(kept, done.stdout.strip()) == {"n%d" % i for i in range(16)}
    assert "later" not in done.stderr


def test_advise_frees_no_reserved_nodes(kept):
    """Two jobs on a half of a cube each: one of them could move to the other's cube, but neither
    away from reserved nodes, which nobody else gets, nor to them."""
    for first in ("n0", "n4"):
        kept.running(kept.sbatch("--shape=4x4x2", "-w", first))
    for _ in range(2):
        kept.running(kept.sbatch("--shape=4x4x4"))
    kept.until(lambda: [one["state"] for one in states(kept).values()].count("busy") == 12, 30,
               "ocsd to hear of the jobs' nodes")
    done = ask(kept, "advise", "4x4x4", "--section", "pod", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reserve(kept, "big", "n[0-3]", "Flags=IGNORE_JOBS")
    done = ask(kept, "advise", "4x4x4", "--section", "pod", check=False)
    assert done.returncode == 4 and "2 are free" in done.stderr, done.stdout + done.stderr


def test_reservations_that_come_and_go(kept):
    """What was deleted is free at once; a reservation of other nodes is nobody's business."""
    reserve(kept, "big", "n[0-15]")
    assert "free (0 of 256 XPUs)" in ask(kept, "map", "--section", "pod").stdout
    kept.run(["scontrol", "delete", "ReservationName=big"])
    text = ask(kept, "map", "--section", "pod").stdout
    assert "free (256 of 256 XPUs)" in text and "reserved" not in text and "note:" not in text, text


def test_nodes_and_partitions_that_are_deleted(make_cluster):
    """Dynamic nodes come and go by scontrol: those that ocs.yaml has and Slurm has no more are
    out of service, in every picture, and shapes leave them alone."""
    cluster = make_cluster(cubes=2, tile=(4, 4, 1), delay_ms=1, config={"MaxNodeCount": "20"})
    try:
        with open(cluster.yaml) as handle:
            good = handle.read()
        more = good.replace('nodes: "n[4-7]"', 'nodes: "n[4-6],extra"')
        assert more != good
        cluster.write("etc/ocs.yaml", more)
        cluster.run(["pkill", "-HUP", "-x", "ocsd"])
        cluster.reconfigure()

        def mapped(user=None):
            done = ask(cluster, "map", "--json", user=user, check=False)
            if done.returncode:     # ocsd starts over
                return {}
            return {one["node"]: one["state"] for one in json.loads(done.stdout)["nodes"]}

        cluster.until(lambda: mapped().get("extra") == "absent", 30, mapped)
        cluster.run(["scontrol", "create", "NodeName=extra", "State=CLOUD", "CPUs=4"])
        cluster.until(lambda: mapped().get("extra") == "idle", 30, mapped)
        cluster.run(["scontrol", "create", "PartitionName=late", "Nodes=extra"])
        reserve(cluster, "short", "extra")
        assert mapped()["extra"] == "reserved" and mapped("nobody")["extra"] == "reserved"
        cluster.run(["scontrol", "delete", "ReservationName=short"])
        assert mapped()["extra"] == "idle"
        cluster.run(["scontrol", "delete", "PartitionName=late"])
        cluster.run(["scontrol", "delete", "NodeName=extra"])
        cluster.until(lambda: mapped().get("extra") == "absent", 30, mapped)
        assert mapped("nobody")["extra"] == "absent"
        text = ask(cluster, "map").stdout
        assert "#  down or drained (16 XPUs)" in text and "free (112 of 128 XPUs)" in text, text
        assert ask(cluster, "place", "8x4x4", check=False).returncode == 4
        assert "Unconfigured=1" in cluster.out(["scontrol", "show", "topology"])
        with open(cluster.path("slurmctld.log")) as handle:
            assert 'lookup failure for node "extra"' not in handle.read()
        job = cluster.sbatch("--shape=4x4x4")
        cluster.running(job)
        assert cluster.alive("slurmctld")
    finally:
        cluster.stop()
