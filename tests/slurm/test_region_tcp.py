# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""`tcp` of a region: a job's ranks reach each other over its circuits with what ocs-node has set, and nothing of it stays."""

import json
import os

import pytest

from conftest import living
from regioncluster import RegionCluster

SERVERS, DEGREE, BYTES = 4, 2, 2000000
# Runs on every node of a job: over each circuit of its group the first of its two servers sends, the other one receives.
RANK = r"""
import json, os, socket, sys, time
region = json.load(open(os.environ["SLURM_OCS_DIR"] + "/region.json"))
name = os.environ["SLURMD_NODENAME"]
group = next(g for g in region["groups"] if name in g["nodes"])
me = group["nodes"].index(name)
address = group["addresses"]
listeners = [socket.create_server((address[me][nic], 7200)) for nic in range(region["nics"])]
for a, a_nic, b, b_nic in group["circuits"]:
    if me == b:
        conn = listeners[b_nic].accept()[0]
        got = 0
        while got < %d:
            more = len(conn.recv(65536))
            assert more, "the sender is gone"
            got += more
        assert conn.getpeername()[0] == address[a][a_nic]
        conn.sendall(b"y")
        conn.close()
    elif me == a:
        end = time.monotonic() + 120
        while True:
            try:
                conn = socket.create_connection((address[b][b_nic], 7200), 120, (address[a][a_nic], 0))
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.05)
        conn.sendall(bytes(%d))
        assert conn.recv(1) == b"y"
        conn.close()
print("CIRCUITS", name, len(group["circuits"]), flush=True)
""" % (BYTES, BYTES)


@pytest.fixture(scope="module")
def cluster():
    with living(RegionCluster, cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, degree=DEGREE, mbit=200, region_xpus=1,
                tcp=True, delay_ms=1, config={"AuthInfo": "cred_expire=5"}) as made:
        made.write("rank.py", RANK)
        yield made


@pytest.fixture
def bare(cluster):
    before = {name: cluster.snapshot(name) for name in cluster.region_nodes}
    yield before
    cluster.cancel_all()
    cluster.until(lambda: all(cluster.snapshot(name) == before[name] for name in before), 120, lambda: "hosts as they were: " + str(
        [set(cluster.snapshot(name)) ^ set(before[name]) for name in before]))


def sent(cluster, name, device):
    return int(cluster.host(name, "cat", "/sys/class/net/%s/statistics/tx_bytes" % device))


def submitted(cluster):
    """A job of two groups, once its ranks have spoken; its number."""
    job = cluster.sbatch("-p", "moe", "--shape=pp:2,ep:2", "--ocs-moe=static", "--ntasks-per-node=1", script=
                         "srun -N4 -n4 /usr/bin/python3 %s; echo ENDED $?; sleep 300" % cluster.path("rank.py"))
    cluster.running(job)

    def said():
        path = cluster.path("out", "%d.out" % job)
        return open(path, encoding="ascii").read() if os.path.exists(path) else ""
    cluster.until(lambda: "ENDED" in said(), 180, said)
    assert "ENDED 0" in said() and said().count("CIRCUITS") == SERVERS, said()
    return job


def test_ranks_meet_over_circuits(cluster, bare):
    """What the ranks send leaves by the NIC whose address it has; the epilog leaves every host as it was."""
    before = {(name, p): sent(cluster, name, "ocs%d" % p) for name in cluster.region_nodes for p in range(DEGREE)}
    packets = {name: sent(cluster, name, "packets") for name in cluster.region_nodes}
    job = submitted(cluster)
    # server 0 of each group sends over both circuits
    grown = [sorted(sent(cluster, name, "ocs%d" % p) - before[name, p] > BYTES for p in range(DEGREE))
             for name in cluster.region_nodes]
    assert grown == [[True, True], [False, False], [True, True], [False, False]]
    assert all(sent(cluster, name, "packets") - packets[name] < BYTES // 10 for name in packets)
    # NICs of the own group are neighbours, those of the other one are not
    assert cluster.host("m0", "ip", "neigh", "show", "nud", "permanent").count("10.8") == DEGREE * DEGREE
    assert bare["m0"] != cluster.snapshot("m0")
    cluster.run(["scancel", str(job)])


def test_slurmd_dies(cluster, bare):
    """A job that ends while its slurmd is dead leaves nothing once slurmd is back."""
    job = submitted(cluster)
    cluster.stop_slurmd("m1")
    cluster.run(["scancel", str(job)])
    cluster.until(lambda: cluster.snapshot("m0") == bare["m0"], 120, lambda: str(cluster.snapshot("m0")))
    assert cluster.snapshot("m1") != bare["m1"]
    cluster.start_slurmd("m1")


def test_nic_missing(cluster, bare):
    """A server without one of its NICs says so; the job goes back to the queue, and nothing stays anywhere."""
    cluster.host("m2", "ip", "link", "set", "ocs1", "name", "lost1")
    job = cluster.sbatch("-p", "moe", "--shape=ep:4", "--ocs-moe=static", script="sleep 300")
    try:
        cluster.until(lambda: "m2 has no interface ocs1" in json.dumps(cluster.job(job)), 120, lambda: str(cluster.job(job)))
        cluster.run(["scancel", str(job)])
        cluster.wait_idle(120)
    finally:
        cluster.host("m2", "ip", "link", "set", "lost1", "name", "ocs1")


def test_region_check(cluster, bare):
    """A change takes what the switch does, twice; beyond the limit it is refused with the figure, and circuits of jobs stay."""
    words = ["srun", "-p", "moe", "-N2", "--shape=ep:2", "--ocs-moe", "--ntasks-per-node=1", "ocsctl", "region", "check"]
    with open(cluster.yaml, encoding="utf-8") as handle:
        text = handle.read()
    limits = "    degree: %d\n" % DEGREE

    def written(whole):
        with open(cluster.yaml, "w", encoding="utf-8") as handle:
            handle.write(whole)

    def described(more):
        assert limits in text
        written(text.replace(limits, limits + more))
    try:
        cluster.run(["ocs-emulator", "--control", "unix:" + cluster.path("emulator.sock"), "delay", "20"])
        described("    change_limit_ms: 60000\n")
        said = json.loads(cluster.out(words + ["--json", "--fabric", cluster.yaml]))
        assert said["switch"] == "region-0" and said["mode"] == "follow" and said["limit_ms"] == 60000, said
        assert 40 <= said["change_ms"] <= said["change_max_ms"] and 0 <= said["link_ms"] <= said["link_max_ms"], said
        assert said["whole_ms"] >= said["change_ms"] and "no_carrier" not in said, said
        described("    change_limit_ms: 10\n")
        done = cluster.run(words + ["--fabric", cluster.yaml], check=False)
        assert done.returncode == 1 and "more than the 10 ms" in done.stderr, done.stderr
        assert "change_ms: " in done.stdout and "10 changes of all circuits of a group" in done.stdout, done.stdout
        described("    change_ms: 5670\n")
        cluster.kill("ocsd")
        cluster.start_ocsd()
        job = cluster.sbatch("-p", "moe", "--shape=ep:4", "--ocs-moe", script=
                             "cat $SLURM_OCS_DIR/warnings; ls $SLURM_OCS_DIR; echo MODE $SLURM_OCS_MOE")
        cluster.wait(job, "COMPLETED", seconds=120)
        printed = cluster.output(job)
        assert "a change takes 5670 ms in moe, circuits are changed up to 1000 ms; they stay" in printed, printed
        assert "MODE static" in printed and "moe.key" not in printed, printed
        done = cluster.run(["ocsctl", "region", "check", "--fabric", cluster.yaml], check=False)
        assert done.returncode == 2 and "run it in a job of its own" in done.stderr, done.stderr
    finally:
        written(text)
