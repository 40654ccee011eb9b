# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The all-to-all of src/moe/job between network namespaces: NICs are veths with the rate of a token bucket,
circuits are veths from one server to another, packets go over a bridge."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import netlab

MBIT = int(os.environ.get("OCS_MOE_MBIT", "80"))
BYTES = MBIT * 1e6 / 8 * 1448 / 1514    # a second of one NIC, headers off
MB = 1 << 20


class Region:
    """N servers; CIRCUITS: pairs of servers.  Rank r runs on server r / EACH and owns, of the circuits of its
    server in turn, every EACH-th."""

    count = 0

    def __init__(self, folder, n, circuits, each=1):
        Region.count += 1
        self.folder, self.n, self.each, self.circuits = pathlib.Path(folder), n, each, circuits
        self.prefix = f"moe{os.getpid()}x{Region.count}"
        self.ranks = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def host(self, server):
        return f"{self.prefix}h{server}"

    def _shape(self, space, device):
        netlab.run("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{MBIT}mbit",
                   "burst", "16kb", "latency", "1s")

    def _build(self):
        bridge = f"{self.prefix}p"
        for name in [bridge] + [self.host(s) for s in range(self.n)]:
            netlab.run("ip", "netns", "add", name)
            netlab.run("ip", "-n", name, "link", "set", "lo", "up")
        netlab.run("ip", "-n", bridge, "link", "add", "name", "lan", "type", "bridge")
        netlab.run("ip", "-n", bridge, "link", "set", "lan", "up")
        for s in range(self.n):
            host = self.host(s)
            netlab.run("ip", "-n", bridge, "link", "add", f"p{s}", "type", "veth", "peer", "name", "packets",
                       "netns", host)
            netlab.run("ip", "-n", bridge, "link", "set", f"p{s}", "master", "lan", "up")
            netlab.run("ip", "-n", host, "addr", "add", f"10.77.0.{s + 1}/24", "dev", "packets")
            netlab.run("ip", "-n", host, "link", "set", "packets", "up")
            self._shape(bridge, f"p{s}")
            self._shape(host, "packets")
        owners, self.links = [0] * self.n, []
        for k, (a, b) in enumerate(self.circuits):
            netlab.run("ip", "-n", self.host(a), "link", "add", f"c{k}", "type", "veth", "peer", "name", f"c{k}",
                       "netns", self.host(b))
            for end, server in ((1, a), (2, b)):
                netlab.run("ip", "-n", self.host(server), "addr", "add", f"10.78.{k}.{end}/24", "dev", f"c{k}")
                netlab.run("ip", "-n", self.host(server), "link", "set", f"c{k}", "up")
                self._shape(self.host(server), f"c{k}")
            ends = []
            for server in (a, b):
                ends.append(server * self.each + owners[server] % self.each)
                owners[server] += 1
            self.links.append([k + 1, *ends, f"10.78.{k}.1:7100", f"10.78.{k}.2:7100"])

    def start(self, calls, shares=(), links=None, idle_ms=60000, dark_ms=30000):
        addresses = [f"10.77.0.{s + 1}:{7000 + r}" for s in range(self.n) for r in range(self.each)]
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "addresses": addresses, "links": self.links if links is None else links, "shares": list(shares),
            "each": self.each, "calls": calls, "idle_ms": idle_ms, "dark_ms": dark_ms}))
        script = pathlib.Path(__file__).with_name("moe_rank.py")
        self.ranks = [subprocess.Popen(
            ["ip", "netns", "exec", self.host(r // self.each), sys.executable, script, config, str(r)],
            stdout=subprocess.PIPE, text=True) for r in range(len(addresses))]

    def wait(self, but=()):
        return [[json.loads(line) for line in rank.communicate(timeout=120)[0].splitlines()]
                for r, rank in enumerate(self.ranks) if r not in but]

    def run(self, calls, **more):
        """The seconds of each call, and the counters of each rank after the last."""
        self.start(calls, **more)
        said = self.wait()
        for rank, lines in enumerate(said):
            assert len(lines) == 1 + len(calls) and all(line["right"] for line in lines[1:]), (rank, lines)
        return [max(lines[1 + c]["seconds"] for lines in said) for c in range(len(calls))], \
            [lines[-1] for lines in said]

    def sent(self):
        """Bytes that have left by each NIC: {(server, device): bytes}."""
        return {(s, link["ifname"]): link["stats64"]["tx"]["bytes"] for s in range(self.n)
                for link in json.loads(netlab.run("ip", "-n", self.host(s), "-s", "-j", "link"))
                if link["ifname"] != "lo"}

    def close(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()
            rank.stdout.close()
        for name in netlab.run("ip", "netns", "list", check=False).split():
            if name.startswith(self.prefix):
                netlab.run("ip", "netns", "del", name, check=False)


@pytest.fixture
def region(tmp_path, monkeypatch):
    why = netlab.possible(rates=True)
    if why:
        pytest.skip(why)
    library = pathlib.Path(os.environ.get("OCS_STAGE", "/nonexistent")) / "libexec/slurm-ocs/libocsmoe.so"
    if not library.exists():
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")
    monkeypatch.setenv("OCS_MOE_LIBRARY", str(library))
    made = []

    def make(*what, **more):
        made.append(Region(tmp_path, *what, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ring(n, large, small, each=1):
    """Neighbours send each other LARGE, others SMALL; by ranks."""
    return [[0 if i == j else large if (i // each - j // each) % n in (1, n - 1) else small
             for j in range(n * each)] for i in range(n * each)]


def planned(sizes, region, shares):
    """Bytes that leave by each NIC, by each byte's way as the plan has it: {(server, device): bytes}, and the
    seconds of the busiest one.  Ranks are servers."""
    load, into = {}, {}

    def leg(a, b, circuit, amount):
        if circuit:
            devices = [f"c{k}" for k, ends in enumerate(region.circuits) if {a, b} == set(ends)]
            for device in devices:
                load[a, device] = load.get((a, device), 0) + amount / len(devices)
        else:
            load[a, "packets"] = load.get((a, "packets"), 0) + amount
            into[b] = into.get(b, 0) + amount

    for i, row in enumerate(sizes):
        for j, size in enumerate(row):
            left = 1
            for a, b, relay, first, second, share in shares:
                if (a, b) != (i, j):
                    continue
                left -= share
                leg(i, j if relay < 0 else relay, first, size * share)
                if relay >= 0:
                    leg(relay, j, second, size * share)
            if i != j:
                leg(i, j, 0, size * left)
    return load, max(list(load.values()) + list(into.values())) / BYTES


def test_ways(region):
    """Each NIC carries what the plan gives it; how long it
    took is printed, not judged: other programs use these cores, too."""
    net = region(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    sizes = ring(4, 3 * MB, MB // 2)
    direct = [(i, j, -1, 1, 0, 0.85) for i in range(4) for j in range(4) if (i - j) % 4 in (1, 3)]
    across = [(i, (i + 2) % 4, (i + 1) % 4, 1, 1, 0.5) for i in range(4)]
    times = {}
    for name, shares in (("packets", []), ("circuits", direct), ("relays", direct + across)):
        load, expected = planned(sizes, net, shares)
        before = net.sent()
        seconds, stats = net.run([sizes, sizes], shares=shares)
        after = net.sent()
        times[name] = min(seconds)
        print(f"{name}: {min(seconds):.3f} s, planned {expected:.3f} s")
        for key, amount in load.items():
            # what is sent again after a loss, headers, and confirmations of what came the other way
            assert 2 * amount < after[key] - before[key] < 2 * amount * 1.25 + MB // 2, (name, key)
        for key in set(after) - set(load):
            assert after[key] - before[key] < MB // 2, (name, key)
        assert (sum(s["circuits"] for s in stats) > 0) == bool(shares)
        assert (sum(s["relayed"] for s in stats) > 0) == (name == "relays")
        assert all(s["resent"] == 0 and s["dark"] == 0 for s in stats)


def test_unmodified_program(region, tmp_path):
    """MPI_Alltoallv with random sizes, on parts of the world and with strided types: what arrives is what
    arrives without the wrapper, and the agent hears of every gate."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    stage, here = pathlib.Path(os.environ["OCS_STAGE"]), pathlib.Path(__file__).parent
    folder = stage / "libexec/slurm-ocs"
    wrapper, program, agent = tmp_path / "ocs_moe_mpi.so", tmp_path / "alltoallv", str(tmp_path / "agent")
    netlab.run("mpicc", "-O1", "-shared", "-fPIC", "-I", stage / "share/slurm-ocs", "-o", wrapper,
               stage / "share/slurm-ocs/ocs_moe_mpi.c", "-L", folder, "-l:libocsmoe.so", f"-Wl,-rpath,{folder}")
    netlab.run("mpicc", "-O1", "-o", program, here / "alltoallv.c")
    # by the loopback: what other interfaces this machine has may go in the middle
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "4", "--mca", "btl",
               "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"]
    plain = netlab.run(*command, program, timeout=120)
    assert plain.count("rank ") == 4
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(agent)
        kinds = []

        def listen():
            while (data := listener.recv(4096)) != b"end":
                kinds.append(int.from_bytes(data[4:6], sys.byteorder))

        reader = threading.Thread(target=listen)
        reader.start()
        ours = netlab.run(*command, "-x", f"LD_PRELOAD={wrapper}", "-x", f"OCS_MOE_AGENT={agent}", "-x",
                          "OCS_MOE_LAYERS=2", program, timeout=120)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", agent)
        reader.join()
    assert ours == plain
    # six calls of four ranks on the world, two on both halves; what the reader is too slow for is dropped
    assert 0 < kinds.count(2) <= 32 and 0 < kinds.count(3) <= 32
    assert 0 < kinds.count(1) <= 12 and set(kinds) == {1, 2, 3}


def test_delegates(region):
    """Two ranks a server: what takes a circuit goes by the rank that owns its end."""
    net = region(3, [(0, 1), (0, 1), (1, 2)], each=2)
    sizes = ring(3, MB // 2, 0, each=2)
    shares = [(0, 1, -1, 1, 0, 1.0), (1, 0, -1, 1, 0, 1.0), (0, 2, 1, 1, 1, 0.5), (2, 0, 1, 0, 1, 0.5)]
    _, stats = net.run([sizes], shares=shares)
    assert sum(s["relayed"] for s in stats) > 4 * MB // 2
    assert all(s["resent"] == 0 and s["dark"] == 0 for s in stats)


def test_plan_lies(region):
    """Circuits that are not there, and ones that no one answers at."""
    net = region(3, [(0, 1)])
    links = net.links + [[7, 1, 2, "10.77.0.2:7300", "10.77.0.3:7300"], [8, 0, 2, "10.99.0.1:7300", "10.99.0.2:7300"]]
    shares = [(0, 1, 2, 1, 1, 0.9), (0, 2, -1, 1, 0, 1.0), (2, 0, 1, 1, 1, 0.7), (1, 0, -1, 1, 0, 0.4)]
    net.run([ring(3, MB // 4, 0)], shares=shares, links=links)


def test_dark_circuit(region):
    """A circuit goes dark in the middle of a call: packets carry the rest, and every byte is right."""
    net = region(3, [(0, 1), (1, 2)])
    sizes = ring(3, 16 * MB, 0)
    shares = [(0, 1, -1, 1, 0, 0.9), (1, 0, -1, 1, 0, 0.9), (0, 2, 1, 1, 1, 0.5)]
    net.start([sizes], shares=shares, dark_ms=2000)
    end = time.monotonic() + 60
    while net.sent()[0, "c0"] < MB // 2:
        assert time.monotonic() < end, net.sent()
        time.sleep(0.01)
    # Light is away, and no NIC says so.
    netlab.run("tc", "-n", net.host(0), "qdisc", "replace", "dev", "c0", "root", "netem", "loss", "100%", check=False)
    if "netem" not in netlab.run("tc", "-n", net.host(0), "qdisc", "show", "dev", "c0"):
        netlab.run("ip", "-n", net.host(0), "link", "set", "c0", "down")
    said = net.wait()
    assert all(lines[-1].get("right") for lines in said), said
    assert sum(lines[-1]["dark"] for lines in said) >= 1
    assert sum(lines[-1]["resent"] for lines in said) > 0


@pytest.mark.parametrize("how, says", [(signal.SIGKILL, "rank 2 is gone"), (signal.SIGSTOP, "rank 2 has not finished")])
def test_rank_fails(region, how, says):
    """All others end with an error that names it, soon."""
    net = region(4, [(0, 1), (1, 2)])
    # The first to be named is the one that is silent longest: not one that has its bytes to make still.
    net.start([ring(4, 12 * MB, MB)], shares=[(0, 1, -1, 1, 0, 0.5), (0, 2, 1, 1, 1, 0.5)], idle_ms=10000)
    assert json.loads(net.ranks[2].stdout.readline())["up"] >= 0
    time.sleep(0.3)
    net.ranks[2].send_signal(how)
    said = net.wait(but=(2,))
    assert all("error" in lines[-1] for lines in said), said
    assert any(says in lines[-1]["error"] for lines in said), said
