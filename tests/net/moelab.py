# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A region as network namespaces: servers with optical NICs on one emulated switch, and a NIC on a packet
network; each NIC has the rate of a token bucket."""

import json
import os
import pathlib
import socket
import subprocess

import netlab


def nic_lines(server, nics):
    """What `ip -batch` makes of a server's optical NICs.  Circuits come and go: a NIC reaches the one at the other end,
    whichever it is."""
    return [line for p in range(nics) for line in (
        f"addr add 10.78.{server + 1}.{p + 1}/32 dev ocs{p}", f"link set ocs{p} up",
        f"route add 10.78.0.0/16 dev ocs{p} scope link table {100 + p}",
        f"rule add from 10.78.{server + 1}.{p + 1} lookup {100 + p}")]


class Wiring:
    """Circuits of a region of N servers with ALPHA optical NICs on one emulated switch, and plans for it.
    Users set n, alpha, mbit, stage (a folder), folder and prefix (for files), and call connect()."""

    switch = "ocs0"

    def forget(self):
        """No circuit stands."""
        self.circuits = {}      # link's number: ((server, NIC), (server, NIC))
        self.links = 0
        self.exchanges = 0      # circuits that were cut

    def connect(self, path):
        """PATH: the emulator's control."""
        self.forget()
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(str(path))
        self.control_file = self.control.makefile("rw")

    def _tell(self, line):
        self.control_file.write(line + "\n")
        self.control_file.flush()
        answer = json.loads(self.control_file.readline())
        if "error" in answer:
            raise RuntimeError(f"{line}: {answer['error']}")

    def _port(self, end):
        return end[0] * self.alpha + end[1] + 1

    def wire(self, circuits):
        """CIRCUITS: [[i, j, count], ...].  What stands and is wanted stays; the rest is cut, then made."""
        wanted = {(min(i, j), max(i, j)): count for i, j, count in circuits}
        cut, made = [], []
        for link, ((i, _), (j, _)) in list(self.circuits.items()):
            pair = min(i, j), max(i, j)
            if wanted.get(pair, 0) > 0:
                wanted[pair] -= 1
            else:
                cut.append(self.circuits.pop(link))
        used = {end for ends in self.circuits.values() for end in ends}
        free = [[p for p in range(self.alpha) if (s, p) not in used] for s in range(self.n)]
        for (i, j), count in sorted(wanted.items()):
            for _ in range(count):
                self.links += 1
                self.circuits[self.links] = (i, free[i].pop(0)), (j, free[j].pop(0))
                made.append(self.circuits[self.links])
        self.exchanges += len(cut)
        if cut or made:
            self._change(cut, made)

    def _change(self, cut, made):
        """At the switch; each circuit is two fibres."""
        for ends in cut:
            for end in ends:
                self._tell(f"unpatch {self.switch} {self._port(end)}")
        for a, b in made:
            self._tell(f"patch {self.switch} {self._port(a)} {self.size + self._port(b)}")
            self._tell(f"patch {self.switch} {self._port(b)} {self.size + self._port(a)}")

    def table(self, port=7100):
        """For Moe.plan: (link, rank, rank, address, address), a rank a server."""
        return [[link, i, j, f"10.78.{i + 1}.{p + 1}:{port}", f"10.78.{j + 1}.{q + 1}:{port}"]
                for link, ((i, p), (j, q)) in self.circuits.items()]

    def plan(self, matrix, *options):
        """What `ocsctl region plan` says to MATRIX, tokens between servers."""
        done = subprocess.run([self.stage / "bin/ocsctl", "region", "plan", "--matrix", "/dev/stdin", "--alpha",
                               str(self.alpha), "--beta", "1", "--routes", "--json", *options],
                              input=json.dumps(matrix), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def kept(self, circuits):
        """CIRCUITS as a file."""
        path = self.folder / f"{self.prefix}.kept"
        path.write_text(json.dumps(circuits))
        return str(path)


class OpticalRegion(Wiring):
    """N servers of ALPHA optical NICs, 10.78.SERVER+1.NIC+1, and 10.77.0.SERVER+1 for packets; MBIT each."""

    count = 0

    def __init__(self, stage, folder, n, alpha, mbit):
        OpticalRegion.count += 1
        self.stage, self.folder = pathlib.Path(stage), pathlib.Path(folder)
        self.n, self.alpha, self.mbit = n, alpha, mbit
        self.prefix = f"opt{os.getpid()}x{OpticalRegion.count}"
        self.emulator = self.control = None
        try:
            self._build()
            self._start()
        except BaseException:
            self.close()
            raise

    def host(self, server):
        return f"{self.prefix}h{server}"

    def packets(self, server, port):
        return f"10.77.0.{server + 1}:{port}"

    def sent(self):
        """Bytes that servers have sent by packets, and by circuits."""
        sums = [0, 0]
        for s in range(self.n):
            for link in json.loads(netlab.run("ip", "-n", self.host(s), "-s", "-j", "link")):
                if link["ifname"] != "lo":
                    sums[link["ifname"] != "packets"] += link["stats64"]["tx"]["bytes"]
        return sums

    def _shape(self, space, device):
        netlab.run("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{self.mbit}mbit",
                   "burst", "16kb", "latency", "1s")

    def _build(self):
        self.switches = f"{self.prefix}o"
        for name in [self.switches] + [self.host(s) for s in range(self.n)]:
            netlab.run("ip", "netns", "add", name)
            netlab.run("ip", "-n", name, "link", "set", "lo", "up")
        netlab.run("ip", "-n", self.switches, "link", "add", "name", "lan", "type", "bridge")
        netlab.run("ip", "-n", self.switches, "link", "set", "lan", "up")
        for s in range(self.n):
            self._server_build(s)

    def _server_build(self, s):
        host, batch = self.host(s), []
        outside = [f"link add p{s} type veth peer name packets netns {host}", f"link set p{s} master lan up"]
        batch += [f"addr add 10.77.0.{s + 1}/24 dev packets", "link set packets up"]
        for p in range(self.alpha):
            outside.append(f"link add s{s}p{p} type veth peer name ocs{p} netns {host}")
        batch += nic_lines(s, self.alpha)
        netlab.run("ip", "-n", self.switches, "-batch", "-", input="\n".join(outside) + "\n")
        netlab.run("ip", "netns", "exec", host, "sh", "-c",
                   "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce")
        netlab.run("ip", "-n", host, "-batch", "-", input="\n".join(batch) + "\n")
        self._shape(self.switches, f"p{s}")
        for device in ["packets"] + [f"ocs{p}" for p in range(self.alpha)]:
            self._shape(host, device)

    def _start(self):
        self.size = self.n * self.alpha
        ports, plane = self.n * self.alpha, self.folder / f"{self.prefix}.plane"
        plane.write_text("".join(f"ocs0 {s * self.alpha + p + 1} s{s}p{p}\n" for s in range(self.n)
                                 for p in range(self.alpha)))
        path = f"{self.folder}/{self.prefix}.control"
        self.emulator = subprocess.Popen(
            ["ip", "netns", "exec", self.switches, self.stage / "bin/ocs-emulator", "--switch",
             f"ocs0=unix:{self.folder}/{self.prefix}.ocs0,{ports}", "--delay", "0", "--data-plane", plane, "--control",
             f"unix:{path}", "--log", self.folder / f"{self.prefix}.log"], stdout=subprocess.PIPE, text=True)
        for line in self.emulator.stdout:
            if line.strip() == "ready":
                break
        else:
            raise RuntimeError("the emulator did not start")
        self.connect(path)

    def close(self):
        if self.control:
            self.control.close()
        if self.emulator:
            netlab.end(self.emulator)
            self.emulator.stdout.close()
        for name in netlab.run("ip", "netns", "list", check=False).split():
            if name.startswith(self.prefix):
                netlab.run("ip", "netns", "del", name, check=False)
