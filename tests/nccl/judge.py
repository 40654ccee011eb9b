# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Where NCCL sends: from the files and variables of a job to the hops between its servers.

Shares no code with what writes the files.  What differs between releases is in `Release`."""

import reader

CROSS_SOCKET = 16.0     # GB/s between two processors, with a margin: slower than a port of 400 Gb/s


class Failure(Exception):
    """NCCL ends at its start."""


class Release:
    def __init__(self, text):
        self.text = text
        self.number = tuple(int(part) for part in text.split("."))

    def fuses(self):
        """Each rank detects its own GPU and the ranks' copies are fused."""
        return self.number >= (2, 22)

    def sorts_devices(self):
        """RDMA devices are numbered by address, not as ibverbs lists them."""
        return self.number >= (2, 29, 7)

    def swaps(self, crossnic, channels):
        """Channels c and c + 1 change places on every second server."""
        meant = crossnic == 2 if self.number >= (2, 26, 2) else crossnic != 0
        return meant and channels % 2 == 0

    def trees_at_init(self):
        return self.number < (2, 22)

    def merges(self, env):
        """Are the functions of a NIC one device?"""
        if self.number >= (2, 24):
            return env.get("NCCL_NET_MERGE_LEVEL", "PORT") != "LOC" and env.get("NCCL_IB_MERGE_NICS", "1") != "0"
        return env.get("NCCL_IB_MERGE_NICS", "1") != "0"

    def routes_by_subnet(self, env):
        return self.number >= (2, 30, 7) and env.get("NCCL_IB_SUBNET_AWARE_ROUTING") == "1"


class Server:
    """One server: MACHINE is the truth, FILES the texts NCCL reads, ENV its variables."""

    def __init__(self, name, machine, files, env, addresses=()):
        self.name, self.machine, self.files, self.env = name, machine, files, env
        self.addresses = dict(addresses)    # RDMA device -> address of its circuit


class Channel:
    def __init__(self, into, out, first, last):
        self.into, self.out, self.first, self.last = into, out, first, last


def devices(server, release):
    """What NCCL numbers from 0: lists of RDMA devices, more than one where it merges them."""
    wanted = server.env.get("NCCL_IB_HCA")
    ports = list(server.machine.ports)
    if wanted is not None:
        exact = wanted.startswith("=")
        names = [one.split(":")[0] for one in wanted.lstrip("=").split(",")]
        ports = [p for p in ports if any(p.names[0] == n if exact else p.names[0].startswith(n) for n in names)]
    key = (lambda p: p.busid) if release.sorts_devices() else (lambda p: int(p.names[0].split("_")[1]))
    ports.sort(key=key)
    if not release.merges(server.env):
        return [[p] for p in ports]
    merged = {}
    for p in ports:
        merged.setdefault(p.busid[:-1], []).append(p)
    return list(merged.values())


def copies(server, release):
    """The processors after the fusion: [(numa, attributes, GPUs, NICs)].

    Every rank fills in what the file leaves open, for the processor of its own GPU."""
    file = reader.read(server.files["topo"], "topology") if server.files.get("topo") else None
    described = {c.get("numaid"): c.attributes for c in file.all("cpu")} if file else {}
    detected = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "143"}
    nodes = range(server.machine.sockets)
    found = []
    for gpu in server.machine.gpus:
        for numa in nodes:
            attributes = dict(described.get(str(numa), {"numaid": str(numa)}))
            mine = gpu.numa == numa
            if mine:
                for key, value in dict(detected, affinity=server.machine.cpumap(numa)).items():
                    attributes.setdefault(key, value)
            for copy in found:
                if copy[1] == attributes or not release.fuses() and copy[0] == numa:
                    break
            else:
                copy = (numa, attributes, [], [p for p in server.machine.ports if p.numa == numa])
                found.append(copy)
            if mine:
                copy[2].append(gpu)
    return found


def usable(server, release):
    """The ports that are near a GPU: those of a copy of a processor that has GPUs and comes first."""
    seen, near = set(), []
    for _, _, gpus, ports in copies(server, release):
        for p in ports:
            if p.busid not in seen:
                seen.add(p.busid)
                if gpus or server.machine.sockets == 1:
                    near.append(p.busid)
    return near


def halves(server):
    """Into how many servers NCCL divides this one: GPUs that reach the network faster than each other."""
    m = server.machine
    if m.nvlink or m.sockets == 1 or server.env.get("NCCL_NET_DISABLE_INTRA") == "1":
        return 1
    near = [s for s in range(m.sockets) if any(p.numa == s for p in m.ports) and any(g.numa == s for g in m.gpus)]
    return len(near) if len(near) > 1 and m.mbps / 8000 > CROSS_SOCKET else 1


def graph_channels(server, release, numbered, used):
    """The channels of the graph file, by index; USED are the GPUs of the communicator."""
    root = reader.read(server.files["graph"], "graph")
    graph = next((g for g in root.all("graph") if reader.number(g.get("id", "-1")) == 0), None) if root else None
    crossnic = reader.number(graph.get("crossnic")) if graph else 0
    if not graph or crossnic == 1 and server.env.get("NCCL_CROSS_NIC") == "0":
        return None, 0, 0.0
    found = []
    for channel in graph.children:
        nets = [reader.number(n.get("dev"), 16) for n in channel.children if n.name == "net"]
        gpus = [reader.number(g.get("dev"), 16) for g in channel.children if g.name == "gpu"]
        for g in gpus:
            if g not in used:
                raise Failure("dev %d not found" % g)
        if len(set(gpus)) != len(used) or len(gpus) != len(used):
            raise Failure("a channel has %d of %d GPUs" % (len(set(gpus)), len(used)))
        for n in nets:
            if n >= len(numbered):
                raise Failure("net %d not found" % n)
        into, out = numbered[nets[0]], numbered[nets[1]]
        found.append(Channel(into, into if len(gpus) == 1 else out, gpus[0], gpus[-1]))
    return found, crossnic, float(graph.get("speedinter"))


def search_channels(server, release, numbered):
    """What NCCL finds by itself: a channel goes in and out by one port, the ports take turns."""
    near = usable(server, release)
    found = [Channel(d, d, 0, 0) for d in numbered if d[0].busid in near]
    return (found or [Channel(d, d, 0, 0) for d in numbered]), 0, server.machine.mbps / 8000.0


def channels(server, release, used):
    numbered = devices(server, release)
    found, crossnic, speed = None, 0, 0.0
    if server.files.get("graph") and server.env.get("NCCL_GRAPH_FILE"):
        found, crossnic, speed = graph_channels(server, release, numbered, used)
    if not found:
        found, crossnic, speed = search_channels(server, release, numbered)
    return found, crossnic, speed


def address_number(text):
    value = 0
    for part in text.split("/")[0].split("."):
        value = value * 256 + int(part)
    return value


def leaving(server, channel, listener, port, release):
    """The port that the sender takes towards PORT of LISTENER."""
    if release.routes_by_subnet(server.env):
        there = listener.addresses.get(port.names[0])
        for p in server.machine.ports:
            here = server.addresses.get(p.names[0])
            if here and there and address_number(here) >> 1 == address_number(there) >> 1:
                return p
    return channel.out[0]


class Verdict:
    def __init__(self):
        self.hops = self.right = self.channels = 0
        self.expected = self.real = 0.0     # GB/s a server sends
        self.failure = None
        self.divided = self.doubled = self.trees = False

    def percent(self):
        return 100.0 * self.right / self.hops if self.hops else 0.0

    def good(self):
        return not self.failure and self.hops > 0 and self.right == self.hops and not self.divided

    def __str__(self):
        if self.failure:
            return "fails: " + self.failure
        return "%3.0f %% of %d hops on circuits, %2d channels, %g GB/s expected, %g real%s%s%s" % (
            self.percent(), self.hops, self.channels, self.expected, self.real,
            ", divided" if self.divided else "", ", processors doubled" if self.doubled else "",
            ", trees at start" if self.trees else "")


def judge(servers, circuits, release, used=None):
    """SERVERS in rank order; CIRCUITS: {(server, RDMA device): (server, RDMA device)}, from sender to
    receiver.  USED: GPUs of each server that the communicator has: how many of the first, or a set for each
    server (all)."""
    verdict = Verdict()
    used = used or len(servers[0].machine.gpus)
    if isinstance(used, int):
        used = [set(range(used))] * len(servers)
    verdict.trees = release.trees_at_init()
    verdict.doubled = any(len(copies(s, release)) > s.machine.sockets for s in servers)
    verdict.divided = any(halves(s) > 1 for s in servers)
    try:
        made = [channels(s, release, u) for s, u in zip(servers, used)]
    except (Failure, reader.Refused) as failure:
        verdict.failure = str(failure)
        return verdict
    count = min(len(found) for found, _, _ in made)
    rings = []
    for n, (found, crossnic, _) in enumerate(made):
        order = list(range(count))
        if n % 2 and release.swaps(crossnic, count):
            order = [c ^ 1 for c in order]
        rings.append([found[c] for c in order])
    speed = min(speed for _, _, speed in made)
    whole = 0
    for c in range(count):
        good = 0
        for n, server in enumerate(servers):
            after = (n + 1) % len(servers)
            entry = rings[after][c].into
            port = leaving(server, rings[n][c], servers[after], entry[0], release)
            merged = len(entry) > 1 or len(rings[n][c].out) > 1
            good += not merged and circuits.get((n, port.names[0])) == (after, entry[0].names[0])
        verdict.hops += len(servers)
        verdict.right += good
        whole += good == len(servers)
    if verdict.divided:
        # the other half of a server follows, which no circuit leads to
        verdict.right, whole, verdict.hops = 0, 0, verdict.hops * 2
    verdict.channels = count
    verdict.expected = count * speed
    verdict.real = whole * speed
    return verdict
