# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""An emulated switch with a namespace at each port, and frames in it."""
import json
import os
import socket
import subprocess
import time

import netlab

HOSTS = 4


class Switch:
    """One switch of four ports, a namespace with one interface at each; no neighbours are asked for."""

    def __init__(self, bins, folder, delay):
        self.folder, self.names = folder, [f"ocsb{os.getpid()}{part}" for part in ["o", *range(HOSTS)]]
        self.emulator = None
        for name in self.names:
            netlab.run("ip", "netns", "add", name)
            netlab.run("ip", "netns", "exec", name, "sh", "-c",
                       "for i in all default; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done")
        for h in range(HOSTS):
            netlab.run("ip", "-n", self.names[0], "link", "add", f"b{h}", "type", "veth", "peer", "name",
                       "ocs0", "netns", self.names[h + 1], "address", f"02:6f:63:0:0:{h + 1:02x}")
            netlab.run("ip", "-n", self.names[h + 1], "addr", "add", f"10.77.0.{h + 1}/24", "dev", "ocs0")
            netlab.run("ip", "-n", self.names[h + 1], "link", "set", "ocs0", "up")
            for other in range(HOSTS):
                netlab.run("ip", "-n", self.names[h + 1], "neigh", "add", f"10.77.0.{other + 1}", "dev",
                           "ocs0", "lladdr", f"02:6f:63:0:0:{other + 1:02x}", "nud", "permanent")
        (folder / "plane").write_text("".join(f"ocs0 {h + 1} b{h}\n" for h in range(HOSTS)))
        self.emulator = subprocess.Popen(
            ["ip", "netns", "exec", self.names[0], bins / "ocs-emulator", "--switch",
             f"ocs0=unix:{folder}/ocs0,{HOSTS}", "--delay", str(delay), "--data-plane", folder / "plane",
             "--control", f"unix:{folder}/control"], stdout=subprocess.PIPE, text=True)
        assert any(line.strip() == "ready" for line in self.emulator.stdout)
        self.tl1 = socket.socket(socket.AF_UNIX)
        self.tl1.connect(f"{folder}/ocs0")
        self.tag = 0

    def send(self, *verbs):
        text = ""
        for verb in verbs:
            self.tag += 1
            text += f"{verb}:{self.tag}:;"
        self.tl1.sendall(text.encode())

    def answers(self, count=1):
        got = ""
        while got.count("\n;") < count:
            part = self.tl1.recv(65536).decode()
            assert part
            got += part
        return got

    def join(self, *pairs):
        """Circuits between ports, each of two patches; returns ms."""
        ins = "&".join(f"{a}&{b}" for a, b in pairs)
        outs = "&".join(f"{b + HOSTS}&{a + HOSTS}" for a, b in pairs)
        begin = time.monotonic()
        self.send(f"ENT-PATCH::{ins},{outs}")
        assert "COMPLD" in self.answers()
        return (time.monotonic() - begin) * 1e3

    def cut(self, *ports):
        self.send(f"DLT-PATCH::{'&'.join(map(str, ports))}")
        assert "COMPLD" in self.answers()

    def frames(self):
        control = socket.socket(socket.AF_UNIX)
        control.connect(f"{self.folder}/control")
        with control, control.makefile("rw") as file:
            file.write("frames ocs0\n")
            file.flush()
            return {int(port): row for port, row in json.loads(file.readline())["ocs0"].items()}

    def reaches(self, source, target):
        """Whether some of five datagrams arrive."""
        hear = ("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('',7))\n"
                "print('ready',flush=True)\ninput()\ns.settimeout(.5)\ns.recv(9)\n")
        say = ("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
               f"for i in range(5): s.sendto(b'x', ('10.77.0.{target}', 7))\n")
        with subprocess.Popen(["ip", "netns", "exec", self.names[target], "python3", "-c", hear],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener:
            assert listener.stdout.readline()
            netlab.run("ip", "netns", "exec", self.names[source], "python3", "-c", say)
            # its time runs from here on, however long the sender took to start
            listener.stdin.write(b"\n")
            listener.stdin.flush()
            return listener.wait() == 0

    def sender(self, source, target):
        """Datagrams, one after the other, as long as it lives."""
        code = ("import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
                f"while 1:\n s.sendto(b'x', ('10.77.0.{target}', 7))\n time.sleep(.001)\n")
        return subprocess.Popen(["ip", "netns", "exec", self.names[source], "python3", "-c", code])

    def close(self):
        if self.emulator:
            self.emulator.terminate()
            self.emulator.wait(10)
            self.emulator.stdout.close()
            self.tl1.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
