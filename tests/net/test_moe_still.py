# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Between two all-to-alls libocsmoe sends nothing into circuits: they may be cut, and are changed here at once."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import netlab
from beamlab import Switch

ROUNDS, SERVERS, BYTES = 6, 3, 200000
RANK = """
import json, os, sys
import ocs_moe
rank, addresses = int(sys.argv[1]), sys.argv[2:]
moe = ocs_moe.Moe(rank, addresses, b"k" * 32, open_ms=60000, idle_ms=60000, dark_ms=30000)
for line in sys.stdin:
    links, size = json.loads(line)
    if not links:
        moe.lib.ocs_moe_ways(moe.moe, None, 0)
    shares = [pair + (-1, 1, 0, 1.0) for link in links for pair in ((link[1], link[2]), (link[2], link[1]))]
    up = moe.plan(links, shares, 1)
    send = [bytes((rank * 7 + j * 3 + k) & 255 for k in range(100)) * (size // 100) for j in range(len(addresses))]
    got = moe.alltoall(send, [size] * len(addresses))
    want = [bytes((j * 7 + rank * 3 + k) & 255 for k in range(100)) * (size // 100) for j in range(len(addresses))]
    print(json.dumps([up, got == want, moe.stats()["circuits"]]), flush=True)
moe.close()
"""


@pytest.fixture
def lab(bins, tmp_path, monkeypatch):
    why = netlab.possible()
    if why:
        pytest.skip(why)
    library = pathlib.Path(os.environ.get("OCS_STAGE", "/nonexistent")) / "libexec/slurm-ocs/libocsmoe.so"
    if not library.exists():
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")
    monkeypatch.setenv("OCS_MOE_LIBRARY", str(library))
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2] / "src/moe/job"))
    switch = Switch(bins, tmp_path, 60)
    ranks = []
    try:
        outside = switch.names[0]
        netlab.run("ip", "-n", outside, "link", "add", "lan", "type", "bridge")
        netlab.run("ip", "-n", outside, "link", "set", "lan", "up")
        for s in range(SERVERS):
            host = switch.names[s + 1]
            netlab.run("ip", "-n", host, "link", "set", "lo", "up")
            netlab.run("ip", "-n", outside, "link", "add", f"p{s}", "type", "veth", "peer", "name", "packets", "netns", host)
            netlab.run("ip", "-n", outside, "link", "set", f"p{s}", "master", "lan", "up")
            netlab.run("ip", "-n", host, "addr", "add", f"10.79.0.{s + 1}/24", "dev", "packets")
            netlab.run("ip", "-n", host, "link", "set", "packets", "up")
        ranks += [subprocess.Popen(["ip", "netns", "exec", switch.names[s + 1], sys.executable, "-c", RANK, str(s)] +
                                   [f"10.79.0.{k + 1}:7000" for k in range(SERVERS)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for s in range(SERVERS)]
        yield switch, ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdin.close()
            rank.stdout.close()
        switch.close()


def call(ranks, links, size):
    for rank in ranks:
        rank.stdin.write(json.dumps([links, size]) + "\n")
        rank.stdin.flush()
    said = [json.loads(rank.stdout.readline()) for rank in ranks]
    assert all(right for _, right, _ in said), said
    return said


def test_no_frame_into_a_change(lab):
    switch, ranks = lab
    carried = 0
    for number in range(ROUNDS):
        other = 2 + number % 2
        switch.join((1, other))
        circuits = [[number + 1, 0, other - 1, "10.77.0.1:7100", f"10.77.0.{other}:7100"]]
        said = call(ranks, circuits, BYTES)
        assert said[0][0] == said[other - 1][0] == 1
        assert said[0][2] > carried, said
        carried = said[0][2]
        # the switch is told at once, and the next call begins while the circuit is being cut
        ports = f"1&{other}"
        switch.send(f"DLT-PATCH::{ports}")
        call(ranks, [], 100)
        assert "COMPLD" in switch.answers()
    for rank in ranks:
        rank.stdin.close()
    assert [rank.wait(60) for rank in ranks] == [0] * SERVERS
    met = {port: (row["changing"], row["dark"]) for port, row in switch.frames().items()}
    assert all(counts == (0, 0) for counts in met.values()), met
    assert switch.frames()[1]["passed"] > ROUNDS
