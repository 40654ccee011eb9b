# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on cubes: placements by ocsctl, files by ocs-node, links found anew from the places of the XPUs."""

import itertools
import json
import os
import shutil
import tempfile

import fabrics
import judge
import machines

CUBE = 4
DIRECTIONS = [(axis, sign) for axis in range(3) for sign in (1, -1)]


def leaving(tile):
    """(XPU of the tile, axis, sign) of every link that leaves it."""
    places = list(itertools.product(*(range(n) for n in tile)))
    return [(i, axis, sign) for i, at in enumerate(places) for axis, sign in DIRECTIONS
            if at[axis] == (tile[axis] - 1 if sign > 0 else 0)]


class Job:
    """The files of a job of SHAPE on CUBES cubes with nodes of TILE."""

    def __init__(self, shape, tile, conn=None, subnets=True, cubes=4, nccl="", sockets=1, network=None):
        self.tile, self.links = tile, leaving(tile)
        self.machine = machines.Machine(tile[0] * tile[1] * tile[2], len(self.links), sockets, nvlink=True)
        self.folder = tempfile.mkdtemp()
        try:
            self.describe(subnets, nccl, cubes)
            words = [shape, "--fabric", self.path("ocs.yaml")] + (["--conn-type", conn] if conn else [])
            compact = fabrics.call(fabrics.OCSCTL, "place", *words, "--compact").strip()
            self.placement = json.loads(fabrics.call(fabrics.OCSCTL, "place", *words, "--json", "--orders"))
            self.shape = self.placement["shape"]
            self.xpus = self.placement["xpus"]
            self.nodes = sorted({x["node"] for x in self.xpus})
            self.prepare(compact, network or [])
            self.servers = {name: self.server(name) for name in self.nodes}
        finally:
            shutil.rmtree(self.folder)
        self.ends()

    def path(self, name):
        return os.path.join(self.folder, name)

    def describe(self, subnets, nccl, cubes):
        with open(self.path("machine.xml"), "w") as file:
            file.write(self.machine.description())
        nodes = CUBE ** 3 // (self.tile[0] * self.tile[1] * self.tile[2])
        with open(self.path("ocs.yaml"), "w") as file:
            file.write("version: 1\nocsd:\n  listen: 127.0.0.1:6822\nswitches:\n  - name: s[0-47]\n    driver: tl1\n"
                       "    dialect: polatis\n    address: 10.20.0.{10 + index}:3082\n    size: 64\n"
                       "    credentials: /etc/slurm/ocs.cred\n"
                       "nccl:\n  hwloc_xml: %s\n  management: eth0\n%s"
                       "fabrics:\n  - name: pod\n    kind: torus\n    cube: 4x4x4\n    tile: %s\n%s    interfaces:\n%s"
                       "    cubes:\n      names: c[0-%d]\n      nodes: n[0-%d]\n"
                       "    ports:\n      switch: s{dim * 16 + a * 4 + b}\n      port: 2 * cube + sign + 1\n"
                       % (self.path("machine.xml"), nccl, "x".join(map(str, self.tile)),
                          "    subnets: 10.128.0.0/16\n" if subnets else "",
                          "".join("      - {xpu: %d, direction: %s%s, name: ens%d, rdma: \"%s:1\", speed: %d}\n"
                                  % (xpu, "+" if sign > 0 else "-", "xyz"[axis], i, self.machine.interfaces()[i],
                                     self.machine.mbps) for i, (xpu, axis, sign) in enumerate(self.links)),
                          cubes - 1, cubes * nodes - 1))

    def prepare(self, compact, network):
        """One host plays all nodes: each takes the addresses of the one before away."""
        each = 'for n in %s; do "$0" prepare --fabric %s --dir %s/$n --job 7 --epoch 1 --node $n --placement "$1" || exit 1; done'
        fabrics.call(*network, "sh", "-c", each % (" ".join(self.nodes), self.path("ocs.yaml"), self.folder),
                     fabrics.NODE, compact)

    def server(self, name):
        folder, text = self.path(name), {}
        for file in os.listdir(folder):
            with open(os.path.join(folder, file)) as stream:
                text[file] = stream.read()
        env = dict(line.split("=", 1) for line in text["env"].splitlines())
        addresses = {}
        for line in text.get("subnets", "").splitlines():
            device, address = line.split()
            addresses[self.machine.interfaces()[int(device[3:])]] = address
        server = judge.Server(name, self.machine, {"topo": text.get("topo.xml"), "graph": text.get("graph.xml")},
                              env, addresses)
        server.text, (server.note, server.warnings) = text, fabrics.noted(text.get("warnings", ""))
        return server

    def ends(self):
        """Both ends of every link that exists between nodes: {(node, RDMA device): the same}."""
        where = {(x["cube"], *x["at"]): x["node"] for x in self.xpus}
        circuits = {}
        for c in self.placement["circuits"]:
            axis, (a, b) = "xyz".index(c["dim"]), c["position"]
            last, first = [a, b], [a, b]
            last.insert(axis, CUBE - 1)
            first.insert(axis, 0)
            circuits[(c["from"], *last, axis)] = (c["to"], *first)
        self.joined = {}
        for place, node in where.items():
            for axis in range(3):
                after = list(place)
                after[1 + axis] += 1
                if after[1 + axis] == CUBE:
                    after = circuits.get((*place, axis))
                after = tuple(after) if after else None
                if after not in where or where[after] == node:
                    continue
                here, there = (node, self.device(place, axis, 1)), (where[after], self.device(after, axis, -1))
                self.joined[here], self.joined[there] = there, here

    def device(self, place, axis, sign):
        """The RDMA device of a link of the XPU at PLACE (cube, x, y, z)."""
        return self.machine.interfaces()[self.links.index((self.local(place), axis, sign))]

    def local(self, place):
        at = [c % t for c, t in zip(place[1:], self.tile)]
        return (at[0] * self.tile[1] + at[1]) * self.tile[2] + at[2]

    def lines(self, dim):
        """Ranks along DIM, for each value of the other coordinates."""
        found = {}
        for rank, x in enumerate(self.xpus):
            found.setdefault(tuple(x["coord"][:dim] + x["coord"][dim + 1:]), []).append(rank)
        return [found[key] for key in sorted(found)]

    def judge(self, dim, number, release, files=True, ranks=None):
        """A communicator of RANKS (those of line NUMBER of DIM; "all": with the job's own file), with its graph files or without."""
        ranks = ranks or self.lines(dim)[number]
        order = list(dict.fromkeys(self.xpus[r]["node"] for r in ranks))
        servers, used, circuits = [], [], {}
        for name in order:
            s = self.servers[name]
            env = {k: v for k, v in s.env.items() if k != "NCCL_GRAPH_FILE"}
            graph = s.text.get("graph-all.xml" if dim == "all" else "graph-%d-%d.xml" % (dim, number)) if files else None
            if graph:
                env["NCCL_GRAPH_FILE"] = "graph"
            servers.append(judge.Server(name, self.machine, {"topo": s.files["topo"], "graph": graph}, env, s.addresses))
            used.append({self.local((self.xpus[r]["cube"], *self.xpus[r]["at"])) for r in ranks
                         if self.xpus[r]["node"] == name})
        for (node, device), (other, far) in self.joined.items():
            if node in order and other in order:
                circuits[(order.index(node), device)] = (order.index(other), far)
        return judge.judge(servers, circuits, judge.Release(release), used) if len(order) > 1 else None


def network(tile):
    """What gives ocs-node a network in which the interfaces are, or None where that does not work."""
    return fabrics.namespace(len(leaving(tile)))
