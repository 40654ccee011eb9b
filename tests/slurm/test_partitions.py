# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Shapes among partitions, features, node lists, limits and QOS, with a real slurmdbd."""

import json
import time

import pytest

from cluster import Cluster
from conftest import living
from database import Database
from test_accounting import need_mariadb

NODES = "Nodes=n[0-15]"


class Limited(Database, Cluster):
    """slurmdbd and a private MariaDB besides."""

    def start_slurmctld(self):
        super().start_slurmctld()
        for words in ("add qos low", "add qos high preempt=low",
                      "add qos node4 grptres=node=4",
                      "add qos gpus maxtresperjob=gres/gpu=16 flags=DenyOnLimit",
                      "modify user root set qos=normal,low,high,node4,gpus"):
            self.run("sacctmgr -i " + words)


@pytest.fixture(scope="module")
def site():
    """Four cubes of four nodes; the first cube is fast, the last two have disks.  Four devices stand for
    the XPUs of a node."""
    need_mariadb()
    with living(
            Limited, tile=(4, 4, 1), delay_ms=1,
            partitions=["second " + NODES, "half Nodes=n[0-7]", "forced OverSubscribe=FORCE:2 " + NODES,
                        "shared OverSubscribe=YES:4 " + NODES, "whole OverSubscribe=EXCLUSIVE " + NODES],
            node_words={"n%d" % n: "Gres=gpu:4%s Features=%s,odd%d" % (
                ",disk:1" if n > 7 else "", "fast" if n < 4 else "slow", n % 2) for n in range(16)},
            more_files={"gres.conf": "NodeName=n[8-15] Name=disk Count=1\n" +
                                     "".join("Name=gpu File=/dev/%s\n" % name
                                             for name in ("full", "null", "random", "zero"))},
            config={"GresTypes": "gpu,disk", "AccountingStorageTRES": "gres/gpu",
                    "AccountingStorageType": "accounting_storage/slurmdbd",
                    "AccountingStorageHost": "127.0.0.1", "AccountingStorageEnforce": "limits,qos",
                    "PreemptType": "preempt/qos", "PreemptMode": "REQUEUE", "AuthInfo": "cred_expire=5",
                    "SchedulerParameters": "bf_interval=1,sched_interval=2,bf_continue"}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def idle(site):
    yield
    site.cancel_all()
    site.until(lambda: not site.patches(), 30, "dark switches")


def nodes(site, job):
    text = site.running(job)["NodeList"]
    return {int(name[1:]) for name in site.out(["scontrol", "show", "hostnames", text]).split()}


def waits(site, job, pattern):
    site.until(lambda: pattern in site.job(job)["Reason"], 20, lambda: site.job(job))


def test_partitions_over_the_same_cubes(site):
    jobs = [site.sbatch("--shape=4x4x4", "-p", part) for part in ("half", "tpu", "second", "second,tpu")]
    held = [nodes(site, job) for job in jobs]
    assert sorted(sum((list(some) for some in held), [])) == list(range(16))
    assert max(held[0]) < 8
    parts = [site.circuit_patches(site.placement(job)) for job in jobs]
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == len(site.patches())
    # Nothing is left, whichever partition asks.
    waits(site, site.sbatch("--shape=4x4", "-p", "half"), "free")


def test_what_a_partition_has_no_room_for(site):
    told = site.refused("--shape=16x4x4", "-p", "half")
    assert "--shape=16x4x4 does not fit the 8 of 16 nodes" in told and "would fit there" in told, told
    assert nodes(site, site.sbatch("--shape=8x4x4", "-p", "half")) == set(range(8))


def test_partitions_that_share_nodes(site):
    """OverSubscribe and --exclusive: a node with a shape is never shared."""
    assert "partition forced has OverSubscribe=FORCE" in site.refused("--shape=4x4", "-p", "forced")
    for part, words in (("shared", []), ("shared", ["--oversubscribe"]), ("whole", []),
                        ("tpu", ["--exclusive"])):
        nodes(site, site.sbatch("--shape=4x4x4", "-p", part, *words))
    late = [site.sbatch("-N1", "-n1", "-p", "shared", "--oversubscribe"),
            site.sbatch("-N1", "-n1", "-p", "forced"), site.sbatch("-N1", "-n1", "--exclusive")]
    time.sleep(4)
    assert [site.state(job) for job in late] == ["PENDING"] * 3


def test_a_shape_does_not_join_others_on_a_node(site):
    """One unshaped job with a single core in each cube."""
    small = [site.sbatch("-N1", "-n1", "-p", "forced", "-w", "n%d" % n) for n in (0, 5, 10, 15)]
    for job in small:
        site.running(job)
    waits(site, site.sbatch("--shape=4x4x4", "-p", "shared", "--oversubscribe"), "cube")
    assert not nodes(site, site.sbatch("--shape=4x4x2")) & {0, 5, 10, 15}


def test_features(site):
    assert nodes(site, site.sbatch("--shape=4x4x4", "-C", "fast")) == set(range(4))
    assert min(nodes(site, site.sbatch("--shape=4x4x4", "-C", "slow"))) >= 4
    waits(site, site.sbatch("--shape=4x4x4", "-C", "fast"), "cube")
    told = site.refused("--shape=8x4x4", "-C", "fast")
    assert "does not fit the 4 of 16 nodes that" in told and "-C" in told, told
    # One slab of a cube on every other node.
    assert nodes(site, site.sbatch("--shape=4x4", "-C", "slow&odd1")) <= {5, 7, 9, 11, 13, 15}
    assert "of 16 nodes" in site.refused("--shape=4x4x4", "-C", "slow&odd1")


def test_features_of_which_all_nodes_have_the_same(site):
    """Two cubes are free, but they differ: the job waits, and only one end lets it start."""
    held = [site.sbatch("--shape=4x4x4", "-t", limit, "-w", node) for node, limit in (("n4", "9"), ("n8", "5"))]
    for job in held:
        site.running(job)
    job = site.sbatch("--shape=8x4x4", "-t", "5", "-C", "[fast|slow]")
    waits(site, job, "cubes")
    told = json.loads(site.out(["ocsctl", "explain", str(job), "--json", "--fabric", site.yaml]))
    assert not told["room_now"] and [one["job"] for one in told["held_up_by"]] == held[1:], told
    either = site.sbatch("--shape=8x4x4", "-t", "1", "-C", "fast|slow")
    assert nodes(site, either) == {0, 1, 2, 3, 12, 13, 14, 15}
    site.run(["scancel", str(either), str(held[1])])
    assert nodes(site, job) == set(range(8, 16))
    told = site.refused("--shape=16x4x4", "-C", "[fast|slow]")
    assert "does not fit the 12 of 16 nodes" in told and "would fit there" in told, told
    assert nodes(site, site.sbatch("--shape=4x4", "-C", "(fast|slow)&odd1")) <= set(range(1, 16, 2))


def test_features_that_are_preferred(site):
    first = site.sbatch("--shape=4x4x4", "--prefer=fast")
    assert nodes(site, first) == {0, 1, 2, 3}
    assert min(nodes(site, site.sbatch("--shape=4x4x4", "--prefer=fast"))) >= 4
    told = site.refused("--shape=8x4x4", "--prefer=fast")
    assert "--prefer must be possible or be left out: --shape=8x4x4 does not fit the 4 of 16" in told, told


@pytest.mark.parametrize("option", ["-C", "--prefer"])
@pytest.mark.parametrize("counted", ["slow*4", "[fast*2&slow*2]", "fast*2&slow*2"])
def test_features_cannot_be_counted(site, option, counted):
    words = ["--prefer=" + counted] if option == "--prefer" else ["-C", counted]
    told = site.refused("--shape=4x4x4", *words)
    assert "%s %s: the nodes of a shape cannot be counted by feature" % (option, counted) in told, told


def test_update_of_features(site):
    job = site.sbatch("-H", "--shape=8x4x4")
    for words, needle in (("Features=fast", "4 of 16 nodes"), ("Features=slow*8", "cannot be counted"),
                          ("Features=[fast|odd1]", "8 of 16 nodes"), ("Prefer=fast", "--prefer must be")):
        done = site.run(["scontrol", "update", "JobId=%d" % job, words], check=False)
        assert done.returncode and needle in done.stderr, (words, done.stderr)
    assert site.job(job)["Features"] == "(null)"
    site.run(["scontrol", "update", "JobId=%d" % job, "Features=[fast|slow]"])
    site.run(["scontrol", "release", str(job)])
    assert min(nodes(site, job)) >= 4


def test_what_only_some_nodes_have(site):
    """Nodes without a disk are idle, too, and would come first."""
    held = [nodes(site, site.sbatch("--shape=4x4x4", "--gres=disk:1")) for _ in range(2)]
    assert sorted(sum((list(some) for some in held), [])) == list(range(8, 16))
    waits(site, site.sbatch("--shape=4x4", "--gres=disk:1"), "Resources")
    assert nodes(site, site.sbatch("--shape=4x4x4")) <= set(range(8))


def test_nodes_by_name(site):
    assert nodes(site, site.sbatch("--shape=4x4x4", "-w", "n6")) == {4, 5, 6, 7}
    assert nodes(site, site.sbatch("--shape=4x4x2", "-w", "n[9-10]")) == {9, 10}
    assert nodes(site, site.sbatch("--shape=4x4x4", "-x", "n[0-2,4,9]")) == {12, 13, 14, 15}
    assert "needs 1 node, but -w asks for 2" in site.refused("--shape=4x4", "-w", "n[0-1]")
    assert "does not fit the 12 of 16 nodes" in site.refused("--shape=4x4x4", "-x", "n0,n4,n8,n12")
    # n6 is busy: it waits, and says for what.
    waits(site, site.sbatch("--shape=4x4", "-w", "n6"), "Resources")


def test_limits_count_what_the_shape_takes(site):
    first = site.sbatch("--qos=node4", "--shape=4x4x4")
    assert len(nodes(site, first)) == 4
    waits(site, site.sbatch("--qos=node4", "--shape=4x4"), "QOSGrpNodeLimit")
    site.run(["scancel", str(first)])
    told = site.refused("--qos=gpus", "--shape=8x4x4")
    assert "QOSMaxGRESPerJob" in told or "limit" in told, told
    job = site.sbatch("--qos=gpus", "--shape=4x4x4")
    assert len(nodes(site, job)) == 4
    assert "gres/gpu=16" in site.job(job)["AllocTRES"]


def test_preemption_by_qos(site):
    low = [site.sbatch("--qos=low", "--shape=4x4x4", "-w", "n%d" % (4 * n)) for n in (0, 1)]
    low += [site.sbatch("--qos=low", "--shape=4x4", "-w", "n%d" % n) for n in range(8, 12)]
    firm = site.sbatch("--qos=normal", "--shape=4x4x4", "-w", "n12")
    for job in low + [firm]:
        site.running(job)
    job = site.sbatch("--qos=high", "--shape=4x4x4")
    assert nodes(site, job) in ({0, 1, 2, 3}, {4, 5, 6, 7})
    assert sorted(site.job(job)["Restarts"] for job in low[:2]) == ["0", "1"]
    for other in low[2:] + [firm]:
        assert site.state(other) == "RUNNING" and site.job(other)["Restarts"] == "0"
