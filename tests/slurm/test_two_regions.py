# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Two regions at once: circuits of one follow what gates say, those of the other one stand and lose no frame."""

import json
import pathlib

import pytest

from conftest import living
from regioncluster import RegionCluster, nics_yaml

SERVERS, DEGREE = 4, 2
# Gates of all ranks choose one other server, in turn each; a line for each set of circuits that stood by the plan.
GATES = r"""
import os, socket, struct, sys, time
folder = os.environ["SLURM_OCS_MOE_SOCKETS"]
while not os.path.exists(folder + "/plan.0"):
    time.sleep(0.05)
gate = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
gate.connect(folder + "/gate.0")
ask = socket.socket(socket.AF_UNIX)
ask.connect(folder + "/plan.0")
lines = ask.makefile("rw")
microbatch = 0
def plan(backward, second):
    lines.write("plan 0 %d %d %d\n" % (microbatch, backward, second))
    lines.flush()
    links = []
    for line in lines:
        if line == "end\n":
            return links
        if line.startswith("link"):
            links.append(tuple(int(word) for word in line.split()[2:4]))
for turn in range(1000000):
    far, links = [rank ^ 1 + turn % 3 for rank in range(4)], []
    while links.count((0, far[0])) < 2 and not os.path.exists(sys.argv[1]):
        for backward in range(2):
            for second in range(2):
                links = plan(backward, second)
                if not backward and not second:
                    for rank in range(4):
                        row = [1000000 if r == far[rank] else 10 for r in range(4)]
                        gate.send(struct.pack("=IHHiiiiqQ4q", 0x6f6d6731, 1, 4, rank, 4, 0, 0, microbatch, 0, *row))
        microbatch += 1
    if os.path.exists(sys.argv[1]):
        break
    print("TURN", turn, flush=True)
"""
# Over each circuit of its group the first of its two servers sends until a file is there, the other one looks at each byte.
STREAM = r"""
import json, os, socket, sys, threading, time
group = json.load(open(os.environ["SLURM_OCS_DIR"] + "/region.json"))["groups"][0]
me, address = group["nodes"].index(os.environ["SLURMD_NODENAME"]), group["addresses"]
PATTERN = bytes(range(251)) * 512
got = []
def give(here, there, port):
    while True:
        try:
            conn = socket.create_connection((there, port), 120, (here, 0))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    while not os.path.exists(sys.argv[1]):
        conn.sendall(PATTERN[:251 * 64])
        time.sleep(0.005)
    conn.shutdown(socket.SHUT_WR)
    got.append(conn.recv(1) == b"y")
def take(listener):
    conn, at = listener.accept()[0], 0
    while data := conn.recv(65536):
        if data != PATTERN[at % 251:at % 251 + len(data)]:
            os._exit(1)
        at += len(data)
    conn.sendall(b"y")
    got.append(at > 0)
threads = []
for number, (a, a_nic, b, b_nic) in enumerate(group["circuits"]):
    if me == a:
        threads.append(threading.Thread(target=give, args=(address[a][a_nic], address[b][b_nic], 7300 + number)))
    if me == b:
        threads.append(threading.Thread(target=take, args=(socket.create_server((address[b][b_nic], 7300 + number)),)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(0 if threads and len(got) == len(threads) and all(got) else 1)
"""


@pytest.fixture
def cluster():
    # NICs of 1 Mb/s: each change pays
    with living(RegionCluster, cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, regions=2, degree=DEGREE, mbit=100, region_xpus=1,
                delay_ms=1, region_yaml=nics_yaml(DEGREE, 1), more_yaml="limits: {topologies_per_second: 200}\n") as made:
        for name, text in (("stream.py", STREAM), ("gates.py", GATES)):
            made.write(name, text)
        yield made


def submitted(cluster, step, mode):
    """A running job, and a function for its output."""
    job = cluster.sbatch("-p", "moe", "--shape=ep:%d" % SERVERS, "--ocs-moe=" + mode, "--ntasks-per-node=1",
                         script=step + "; echo ENDED $?")
    cluster.running(job)
    path = pathlib.Path(cluster.path("out", "%d.out" % job))
    return job, lambda: path.read_text(encoding="utf-8") if path.exists() else ""


def switch_of(cluster, job):
    node = cluster.out(["scontrol", "show", "hostnames", cluster.job(job)["NodeList"]]).split()[0]
    return "region-%d" % (int(node[1:]) // SERVERS)


def test_alone(cluster):
    stop, end = cluster.path("out", "stop"), cluster.path("out", "end")
    still, said = submitted(cluster, "srun -N%d --ntasks-per-node=1 /usr/bin/python3 %s %s" % (
        SERVERS, cluster.path("stream.py"), stop), "static")
    moving, turns = submitted(cluster, "/usr/bin/python3 %s %s" % (cluster.path("gates.py"), end), "follow")
    switch, other = switch_of(cluster, still), switch_of(cluster, moving)

    def frames(what):
        return {port: one[what] for port, one in json.loads(cluster.emulator("frames", switch))[switch].items()}

    def circuits(name):
        return frozenset(patch for patch in cluster.patches() if patch[0] == name)

    stand, seen = circuits(switch), set()
    assert other != switch and len(stand) == SERVERS * DEGREE
    cluster.until(lambda: sum(frames("passed").values()) > 500, 120, said)
    lost, passed, turned = [frames("dark"), frames("changing")], sum(frames("passed").values()), turns().count("TURN")

    def changed():
        seen.add(circuits(other))
        assert circuits(switch) == stand
        return len(seen) > 3 and turns().count("TURN") > turned + 6 and sum(frames("passed").values()) > passed + 500
    cluster.until(changed, 120, lambda: turns() + said())
    assert [frames("dark"), frames("changing")] == lost
    for path, text in ((stop, said), (end, turns)):
        pathlib.Path(path).touch()
        cluster.until(lambda: "ENDED" in text(), 120, text)
        assert "ENDED 0" in text(), text()
