# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""TCP jobs on rails: while circuits come and go, connections between all nodes live on, over a circuit where one
stands and over the management network elsewhere, and no frame meets a port that is being changed."""

import itertools
import json
import os
import statistics
import time

import pytest

from conftest import living
from netcluster import Controller, RailsCluster

# Runs on every node of a job: asks all that come later, message by message, and answers those before.
STREAMS = r"""
import os, socket, sys, threading, time
stop = sys.argv[1]
hosts = [line.split() for line in open(os.environ["SLURM_OCS_DIR"] + "/addresses")]
me = [name for _, name in hosts].index(os.environ["SLURMD_NODENAME"])
server = socket.create_server(("0.0.0.0", 7100), backlog=64)
def answer(conn):
    while True:
        data = conn.recv(65536)
        if not data:
            return
        conn.sendall(data)
def accept():
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
def connect(address):
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection((address, 7100), 60, (hosts[me][0], 0))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
said = {}
def ask(peer):
    conn = connect(hosts[peer][0])
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    conn.settimeout(60)
    number, longest = 0, 0
    while not os.path.exists(stop):
        text = (b"%08d" % number) * 512
        begin = time.monotonic()
        conn.sendall(text)
        got = b""
        while len(got) < len(text):
            more = conn.recv(65536)
            if not more:
                raise OSError("lost the connection to %d" % peer)
            got += more
        assert got == text
        longest = max(longest, time.monotonic() - begin)
        number += 1
        time.sleep(0.001)
        if number == 1:
            open("%s.%d.%d" % (stop, me, peer), "w").close()
    # and anew, while circuits are what they are
    connect(hosts[peer][0]).close()
    said[peer] = (number, longest)
threads = [threading.Thread(target=ask, args=(peer,)) for peer in range(me + 1, len(hosts))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for peer, (number, longest) in said.items():
    print("PAIR", me, peer, number, "%.3f" % longest, flush=True)
open("%s.%d.done" % (stop, me), "w").close()
while not all(os.path.exists("%s.%d.done" % (stop, rank)) for rank in range(len(hosts))):
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def net():
    with living(RailsCluster, cubes=1, edge=2, tile=(2, 2, 2), rails=6, nrails=2, nic_ports=2, rail_xpus=2,
                spank=("prolog_timeout=60", "controller=no", "agent=no", "shims=none")) as cluster:
        yield cluster


@pytest.fixture
def bare(net):
    before = {name: net.snapshot(name) for name in net.hosts}
    yield before
    net.cancel_all()
    net.until(lambda: all(net.snapshot(name) == before[name] for name in net.hosts), 30, lambda: "hosts as they were: " + str(
        [set(net.snapshot(name)) ^ set(before[name]) for name in net.hosts]))
    net.until(lambda: "ocs-node" not in net.out("ps -eo args | grep -v grep"), 20, "the watchers to end")


class Streams:
    """A job whose nodes all speak to each other."""

    def __init__(self, net, shape, *words):
        net.write("streams.py", STREAMS)
        self.net = net
        self.stop = net.path("out", "stop.%d" % time.monotonic_ns())
        self.job = net.sbatch("-p", "rails", "--shape=" + shape, "--ocs-phases=on-demand", *words,
                              script="srun --ntasks-per-node=1 -N$SLURM_JOB_NUM_NODES -n$SLURM_JOB_NUM_NODES "
                              "/usr/bin/python3 %s %s; echo ENDED $?; sleep 300" % (net.path("streams.py"), self.stop))
        net.running(self.job)
        self.nodes = net.out(["scontrol", "show", "hostnames", net.job(self.job)["NodeList"]]).split()
        self.servers = [int(name[1:]) for name in self.nodes]
        self.pairs = list(itertools.combinations(range(len(self.nodes)), 2))

    def flowing(self):
        self.net.until(lambda: all(os.path.exists("%s.%d.%d" % (self.stop, *pair)) for pair in self.pairs), 60,
                       lambda: "all pairs to speak: " + self.text())

    def text(self):
        with open(self.net.path("out", "%d.out" % self.job)) as handle:
            return handle.read()

    def end(self):
        """{pair: (messages, longest time of one)}"""
        open(self.stop, "w").close()
        self.net.until(lambda: "ENDED" in self.text(), 60, self.text)
        assert "ENDED 0" in self.text(), self.text()
        rows = [line.split() for line in self.text().splitlines() if line.startswith("PAIR")]
        return {(int(row[1]), int(row[2])): (int(row[3]), float(row[4])) for row in rows}

    def routes(self, node):
        """{node of the job: the devices that lead there}"""
        server = self.servers[node]
        said = self.net.host(self.net.hosts[server], "ip", "-o", "route", "show", "table",
                             str(7700 + self.net.ports)).replace("\\", " ").splitlines()
        found = {}
        for line in said:
            words = line.split()
            if words[0].startswith("10.192."):
                other = self.servers.index(int(words[0].split(".")[3].partition("/")[0]) - 1)
                found[other] = {words[i + 1] for i, word in enumerate(words) if word == "dev"}
        return found


def changed(before, after, what):
    return {port: after[port][what] - before[port][what] for port in after if after[port][what] != before[port][what]}


def test_routes_follow_circuits(net, bare):
    """A circuit's two ends route over it while it stands, everything else over the management network; neighbours are
    permanent for every pair of the menu."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller = Controller(net, streams.job)
    rails = {"ocs0", "ocs1", "ocs2", "ocs3"}
    for topo, partner in (("11", 1), ("00", 2), ("11", 1)):
        assert controller.topo(topo, topo)["ok"]
        net.until(lambda: streams.routes(0)[partner] <= rails, 10, lambda: streams.routes(0))
        others = {peer: devices for peer, devices in streams.routes(0).items() if peer != partner}
        assert set(map(frozenset, others.values())) == {frozenset({"eth0"})}, others
    # rail 1 alone
    assert controller.topo("11", "00")["ok"]
    net.until(lambda: streams.routes(0)[1] == {"ocs0", "ocs1"}, 10, lambda: streams.routes(0))
    assert streams.routes(0)[2] <= {"ocs2", "ocs3"} and streams.routes(0)[3] == {"eth0"}
    said = net.host(streams.nodes[0], "ip", "neigh", "show", "nud", "permanent")
    assert said.count("PERMANENT") >= 2 * 2 * 2, said
    streams.end()


def test_streams_outlive_changes(net, bare):
    """All pairs exchange messages during 60 changes: none is lost, and no frame enters a port in change or a dark
    one; a foreign job on the same switches loses none either."""
    other = Streams(net, "dp:2,tp:2")
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    other.flowing()
    controller = Controller(net, streams.job)
    before, took = net.frames(), []
    for turn in range(60):
        begin = time.monotonic()
        said = controller.topo(*(("00", "11", "01", "ring")[(turn + rail) % 4] for rail in range(2)))
        took.append(time.monotonic() - begin)
        assert said["ok"] and not any("error" in row for row in said["rails"]), said
        time.sleep(0.02)
    after = net.frames()
    spoken = streams.end()
    assert set(spoken) == set(streams.pairs) and all(number > 10 for number, _ in spoken.values()), spoken
    assert changed(before, after, "changing") == {}
    assert changed(before, after, "dark") == {}
    passed = changed(before, after, "passed")
    for server in streams.servers + other.servers:
        assert sum(number for (s, _), number in passed.items() if s == server) > 0, passed
    other.end()
    print("60 changes, each p50 %.1f ms, with a switch of %d ms" % (1e3 * statistics.median(took), net.delay_ms))


def test_rails_check(net, bare):
    """Each rail's change takes what its switch does, twice (one command cuts, one makes)."""
    words = ["-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand", "--ntasks-per-node=1"]
    done = net.run(["srun", *words, "ocsctl", "rails", "check", "--json", "--fabric", net.yaml])
    said = json.loads(done.stdout)
    assert [row["switch"] for row in said["rails"]] == ["rail-0", "rail-1"] and said["phases"] == "provisioned"
    for row in said["rails"]:
        assert 2 * net.delay_ms <= row["change_ms"] <= row["change_max_ms"], row
        assert 0 <= row["link_ms"] <= row["link_max_ms"] and "no_carrier" not in row, row
    text = net.out(["srun", *words, "ocsctl", "rails", "check", "--fabric", net.yaml])
    assert "--ocs-phases=provisioned: hidden where" in text and "10 changes of each rail between 11 and 00" in text
    # without circuits to change, without a job
    done = net.run(["srun", "-p", "rails", "--shape=dp:2,tp:2", "--ocs-phases=on-demand", "--ntasks-per-node=1",
                    "ocsctl", "rails", "check", "--fabric", net.yaml], check=False)
    assert done.returncode and "no two topologies to change between" in done.stderr, done.stderr
    done = net.run(["ocsctl", "rails", "check", "--fabric", net.yaml], check=False)
    assert done.returncode == 2 and "run it in a job of its own" in done.stderr, done.stderr
