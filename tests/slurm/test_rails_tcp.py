# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""TCP jobs on rails: while circuits come and go, connections between all nodes live on, over a circuit where one
stands and over the management network elsewhere, and no frame meets a port that is being changed."""

import contextlib
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
    with living(RailsCluster, cubes=1, edge=2, tile=(2, 2, 2), rails=6, nrails=2, nic_ports=2, rail_xpus=2, config={"AuthInfo": "cred_expire=5"},
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
        net.until(lambda: streams.routes(0).get(partner, {"none"}) <= rails, 60, lambda: streams.routes(0))
        others = {peer: devices for peer, devices in streams.routes(0).items() if peer != partner}
        assert set(map(frozenset, others.values())) == {frozenset({"eth0"})}, others
    # rail 1 alone
    assert controller.topo("11", "00")["ok"]
    def halves():
        found = streams.routes(0)
        return found.get(1) == {"ocs0", "ocs1"} and found.get(2, {"none"}) <= {"ocs2", "ocs3"}
    net.until(halves, 60, lambda: streams.routes(0))
    assert streams.routes(0)[3] == {"eth0"}
    said = net.host(streams.nodes[0], "ip", "neigh", "show", "nud", "permanent")
    assert said.count("PERMANENT") >= 2 * 2 * 2, said
    streams.end()


def test_giant_ring(net, bare):
    """The job's comment tells which rails went to the giant ring, also after slurmctld was started anew."""
    job = net.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand")
    net.running(job)
    controller = Controller(net, job)
    assert controller.topo("00", "11")["ok"]
    assert "ring" not in net.job(job)["AdminComment"]
    assert controller.topo("00", "ring")["ok"]
    def comment():
        return net.job(job).get("AdminComment", "")
    net.until(lambda: "ocs failure: rail 1 went to the giant ring" in comment(), 60, comment)
    net.saved(job)
    net.kill("slurmctld")
    assert controller.topo("ring", "ring")["ok"]
    net.start_slurmctld()
    net.wait_for_slurmctld()
    net.until(lambda: "ocs failure: rail 0 went to the giant ring, rail 1 went to the giant ring" in comment(), 60, comment)
    assert net.state(job) == "RUNNING"


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


@contextlib.contextmanager
def narrow(net, nodes, rate):
    """The ports of NODES send at RATE: what is sent at once waits in their queues."""
    ports = [(node, "ocs%d" % port) for node in nodes for port in range(net.ports)]
    for node, port in ports:
        net.host(node, "tc", "qdisc", "replace", "dev", port, "root", "tbf", "rate", rate, "burst", "1600", "limit", "1000000")
    try:
        yield
    finally:
        for node, port in ports:
            net.host(node, "tc", "qdisc", "del", "dev", port, "root", check=False)


def test_queues_leave_before_a_change(net, bare):
    """Ports that are slow have messages of 4096 bytes in their queues nearly all the time: these leave before the
    circuit is cut."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller = Controller(net, streams.job)
    with narrow(net, streams.nodes, "8mbit"):
        before = net.frames()
        for turn in range(20):
            said = controller.topo(*(("00", "11")[(turn + rail) % 2] for rail in range(2)))
            assert said["ok"] and not any("error" in row for row in said["rails"]), said
            time.sleep(0.05)
        after = net.frames()
        spoken = streams.end()
    assert set(spoken) == set(streams.pairs)
    assert sum(changed(before, after, "passed").values()) > 100
    assert changed(before, after, "changing") == changed(before, after, "dark") == {}


def test_queue_that_does_not_leave(net, bare):
    """A port that has to send for longer than ocsd waits keeps its circuit: the change fails, the node's log says why,
    and once the queue is gone circuits change again."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller, node = Controller(net, streams.job), streams.nodes[0]
    assert controller.topo("00", "00")["ok"]
    net.until(lambda: "eth0" not in streams.routes(0)[2], 60, lambda: streams.routes(0))
    before, patches = net.frames(), lit(net)
    with narrow(net, [node], "1kbit"):
        net.until(lambda: "backlog 0b" not in net.host(node, "tc", "-s", "qdisc", "show", "dev", "ocs0"), 20, "a queue")
        said = controller.topo("11", "11")
        assert not said["ok"] and said["code"] == 4 and node in said["error"], said
        assert lit(net) == patches
        # nor does a new process, which does not know what the one before waited for, let it go
        worker = max(watchers(net, node))
        net.run(["kill", "-KILL", str(worker)])
        net.until(lambda: len(watchers(net, node)) == 2 and worker not in watchers(net, node), 20, lambda: watchers(net, node))
        said = controller.topo("11", "11")
        assert not said["ok"] and said["code"] == 4 and node in said["error"], said
        assert lit(net) == patches
    net.until(lambda: controller.topo("11", "11")["ok"], 30, "the node to answer again")
    spoken = streams.end()
    assert set(spoken) == set(streams.pairs)
    assert changed(before, net.frames(), "changing") == changed(before, net.frames(), "dark") == {}


def test_rails_check(net, bare):
    """Each rail's change takes what its switch does, twice (one command cuts, one makes)."""
    words = ["-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand", "--ntasks-per-node=1"]
    done = net.run(["srun", *words, "ocsctl", "rails", "check", "--json", "--fabric", net.yaml])
    said = json.loads(done.stdout)
    assert [row["switch"] for row in said["rails"]] == ["rail-0", "rail-1"] and said["phases"] in ("provisioned", "off")
    for row in said["rails"]:
        assert 2 * net.delay_ms <= row["change_ms"] <= row["change_max_ms"], row
        assert 0 <= row["link_ms"] <= row["link_max_ms"] and "no_carrier" not in row, row
    text = net.out(["srun", *words, "ocsctl", "rails", "check", "--fabric", net.yaml])
    assert "--ocs-phases=%s: " % ("provisioned" if "hidden where" in text else "off") in text and "10 changes of each rail between 11 and 00" in text
    # without circuits to change, without a job
    done = net.run(["srun", "-p", "rails", "--shape=dp:2,tp:2", "--ocs-phases=on-demand", "--ntasks-per-node=1",
                    "ocsctl", "rails", "check", "--fabric", net.yaml], check=False)
    assert done.returncode and "no two topologies to change between" in done.stderr, done.stderr
    done = net.run(["ocsctl", "rails", "check", "--fabric", net.yaml], check=False)
    assert done.returncode == 2 and "run it in a job of its own" in done.stderr, done.stderr


def lit(net):
    return {patch for patch in net.patches() if patch[0].startswith("rail")}


def agrees(net, job=None):
    """Switches, ocsd and its audit of them: what a job has, or nothing at all."""
    owned = {(port["switch"], port["port"]) for port in net.ocsctl("show", "port")["ports"]
             if port.get("owner") and port["switch"].startswith("rail")}
    size = max(16, net.nic_ports * len(net.hosts))
    ends = {(sw, port if port <= size else port - size) for sw, a, b in lit(net) for port in (a, b)}
    return ends <= owned and (job is not None or not owned)


def watchers(net, node):
    """Processes of ocs-node on NODE: the one that waits, and the one that works."""
    return [int(line.split()[0]) for line in net.out("ps -eo pid,args").splitlines()
            if ("ocs-node forward" in line or "ocs-node sweep" in line) and "--node %s " % node in line + " "]


def ended(net, job):
    net.run(["scancel", str(job)])
    net.until(lambda: agrees(net) and not lit(net), 60, lambda: "ports and circuits to be free: %s" % lit(net))


def test_killed_processes(net, bare):
    """The process that changes routes is replaced; without any, changes that cut this node's circuits fail before
    anything is sent, and everything stays."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller, node = Controller(net, streams.job), streams.nodes[1]
    before = net.frames()
    assert controller.topo("00", "00")["ok"]
    net.until(lambda: len(watchers(net, node)) == 2, 10, lambda: watchers(net, node))
    worker = max(watchers(net, node))
    net.run(["kill", "-KILL", str(worker)])
    net.until(lambda: len(watchers(net, node)) == 2 and worker not in watchers(net, node), 20, lambda: watchers(net, node))
    net.until(lambda: controller.topo("11", "11")["ok"], 20, "the new process to answer")
    # both, the waiting one first; the other one may end by itself
    for process in sorted(watchers(net, node)):
        net.run(["kill", "-KILL", str(process)], check=False)
    net.until(lambda: not watchers(net, node), 60, lambda: watchers(net, node))
    patches = lit(net)
    said = controller.topo("00", "00")
    assert not said["ok"] and said["code"] == 4 and node in said["error"], said
    assert [(row["stage"], row["code"]) for row in said["rails"]] == [("none", 4)] * 2, said
    assert lit(net) == patches and streams.routes(0)[1] != {"eth0"}
    # what stands is answered
    assert controller.topo("11", "11")["ok"]
    # slurmd brings them back
    net.stop_slurmd(node)
    net.start_slurmd(node)
    net.until(lambda: len(watchers(net, node)) == 2, 30, lambda: watchers(net, node))
    net.until(lambda: controller.topo("00", "00")["ok"], 30, "the node to answer again")
    streams.end()
    after = net.frames()
    assert changed(before, after, "changing") == changed(before, after, "dark") == {}
    ended(net, streams.job)


def test_watcher_without_descriptors(net, bare):
    """A process that cannot open its sockets when it begins is begun again, until it can."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller, node = Controller(net, streams.job), streams.nodes[1]
    assert controller.topo("00", "00")["ok"]
    net.until(lambda: len(watchers(net, node)) == 2, 10, lambda: watchers(net, node))
    parent, worker = sorted(watchers(net, node))
    net.run(["prlimit", "--pid", str(parent), "--nofile=3:4096"])
    net.run(["kill", "-KILL", str(worker)])
    net.until(lambda: worker not in watchers(net, node), 20, lambda: watchers(net, node))
    said = controller.topo("11", "11")
    assert not said["ok"] and said["code"] == 4 and node in said["error"], said
    assert parent in watchers(net, node)
    net.run(["prlimit", "--pid", str(parent), "--nofile=4096:4096"])
    net.until(lambda: controller.topo("11", "11")["ok"], 30, "the process to begin")
    streams.end()
    ended(net, streams.job)


def test_ocsd_dies_in_a_change(net, bare):
    """Connections live on; the new one asks nodes and switch, and goes on from whatever stands."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller = Controller(net, streams.job)
    before = net.frames()
    for turn in range(3):
        assert controller.topo("00", "00")["ok"]
        controller.send("11", "ring")
        time.sleep(0.012 * turn)
        net.kill("ocsd")
        net.start_ocsd()
        controller.connect()

        def asked():
            try:
                return controller.topo("11", "11")["ok"]
            except OSError:
                controller.connect()
                return False
        net.until(asked, 30, "ocsd to change circuits again")
        assert agrees(net, streams.job)
    net.until(lambda: streams.routes(0)[1] <= {"ocs0", "ocs1", "ocs2", "ocs3"}, 20, lambda: streams.routes(0))
    spoken = streams.end()
    assert set(spoken) == set(streams.pairs)
    assert changed(before, net.frames(), "changing") == {}
    ended(net, streams.job)


def test_end_in_a_change(net, bare):
    """scancel, requeue, and a slurmctld that is killed, while circuits change: hosts, switches and ocsd agree afterwards."""
    for what in ("scancel", "requeue", "slurmctld"):
        job = net.sbatch("-p", "rails", "--requeue", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand")
        net.running(job)
        controller = Controller(net, job)
        assert controller.topo("00", "11")["ok"]
        controller.send("ring", "00")
        if what == "slurmctld":
            net.saved(job)
            net.kill("slurmctld")
            net.start_slurmctld()
            net.wait_for_slurmctld()
            net.until(lambda: agrees(net, job) and net.state(job) == "RUNNING", 30, lambda: net.state(job))
        elif what == "requeue":
            net.run(["scontrol", "requeue", str(job)])
            net.until(lambda: net.job(job)["Restarts"] == "1", 30, "the requeue")
            net.running(job)
            # the key of the first run is over
            try:
                assert not controller.topo("11", "11")["ok"]
            except OSError:
                pass
            assert agrees(net, job) and Controller(net, job).topo("00", "00")["ok"]
        ended(net, job)


def test_ocsd_restarts(net, bare):
    """Routes stay what the circuits are while ocsd is away, and follow what became of the circuits meanwhile."""
    streams = Streams(net, "pp:2,dp:2,tp:2")
    streams.flowing()
    controller = Controller(net, streams.job)
    before = net.frames()
    assert controller.topo("11", "00")["ok"]

    def halves():
        found = streams.routes(0)
        return found[1] == {"ocs0", "ocs1"} and found[2] <= {"ocs2", "ocs3"} and "eth0" not in found[2] and found[3] == {"eth0"}

    def asked():
        try:
            return controller.topo("11", "00")["ok"]
        except OSError:
            controller.connect()
            return False
    net.until(halves, 60, lambda: streams.routes(0))
    for _ in range(2):
        net.kill("ocsd")
        assert halves(), streams.routes(0)
        net.start_ocsd()
        # what stands is not known before the controller says what is to stand
        controller.connect()
        net.until(asked, 60, "ocsd to have the circuits again")
        net.until(halves, 60, lambda: streams.routes(0))
    after = net.frames()
    assert changed(before, after, "changing") == changed(before, after, "dark") == {}
    # circuits of rail 0 go while there is no ocsd: it makes them again, and routes take them again
    net.kill("ocsd")
    mine = {server * net.nic_ports + port + 1 for server in streams.servers for port in range(net.nic_ports)}
    for switch, ingress, _ in sorted(lit(net)):
        if switch == "rail-0" and ingress in mine:
            net.emulator("unpatch", switch, str(ingress))
    net.start_ocsd()
    controller.connect()
    net.until(asked, 60, "ocsd to have the circuits again")
    net.until(halves, 60, lambda: streams.routes(0))
    spoken = streams.end()
    assert set(spoken) == set(streams.pairs)
    ended(net, streams.job)


@pytest.mark.parametrize("noticed", [True, False])
def test_host_reboots(net, bare, noticed):
    """A node of a running job boots, and slurmd comes back with nothing of the job, before or after Slurm took note of it:
    ports are free, no table has anything of the job, and the next job on these nodes has its circuits."""
    job = net.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand", "--no-requeue",
                     script="srun --ntasks-per-node=1 -N4 -n4 sleep 300")
    net.running(job)
    controller = Controller(net, job)
    assert controller.topo("00", "11")["ok"]
    nodes = net.out(["scontrol", "show", "hostnames", net.job(job)["NodeList"]]).split()
    net.reboot(int(nodes[1][1:]))
    if noticed:
        net.run(["scontrol", "update", "NodeName=" + nodes[1], "State=DOWN", "Reason=boot"])
        net.wait(job, ("NODE_FAIL", "FAILED", "CANCELLED"))
    net.start_slurmd(nodes[1])
    if noticed:
        net.run(["scontrol", "update", "NodeName=" + nodes[1], "State=RESUME"], check=False)
    else:
        net.run(["scancel", str(job)])
    net.wait_idle()
    net.until(lambda: agrees(net) and not lit(net), 60, lambda: "ports and circuits to be free: %s" % lit(net))
    net.until(lambda: all(net.snapshot(name) == bare[name] for name in net.hosts), 60, lambda: str(
        [set(net.snapshot(name)) ^ set(bare[name]) for name in net.hosts]))
    for name in net.hosts:          # its interface has another MAC now, as no real one has
        net.host(name, "ip", "neigh", "flush", "dev", "eth0")
    streams = Streams(net, "pp:2,dp:2,tp:2", "-w", ",".join(nodes))
    streams.flowing()
    assert Controller(net, streams.job).topo("00", "00")["ok"]
    streams.end()
    ended(net, streams.job)
