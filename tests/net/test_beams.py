# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The emulator's data plane: frames go where circuits lead, and those that come in while a circuit
is changed are lost and counted."""
import json
import os
import socket
import subprocess
import time

import pytest

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
                "s.settimeout(.5)\nprint('ready',flush=True)\ns.recv(9)\n")
        say = ("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
               f"for i in range(5): s.sendto(b'x', ('10.77.0.{target}', 7))\n")
        with subprocess.Popen(["ip", "netns", "exec", self.names[target], "python3", "-c", hear],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener:
            assert listener.stdout.readline()
            netlab.run("ip", "netns", "exec", self.names[source], "python3", "-c", say)
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


@pytest.fixture
def switch(bins, tmp_path):
    made = []

    def make(delay):
        made.append(Switch(bins, tmp_path, delay))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_frames_follow_circuits(switch):
    sw = switch(0)
    sw.join((1, 2), (3, 4))
    assert sw.reaches(1, 2) and sw.reaches(4, 3) and not sw.reaches(1, 3)
    before = sw.frames()
    sw.cut(1, 2, 3, 4)
    took = [sw.join((1, 3), (2, 4))]
    assert sw.reaches(1, 3) and sw.reaches(2, 4) and not sw.reaches(1, 2)
    after = sw.frames()
    assert after[1]["device"] == "b0"
    assert after[1]["passed"] >= before[1]["passed"] + 5
    # what was sent to 10.77.0.2 went along the circuit all the same, to a host that is not that one
    assert all(row["changing"] == 0 for row in after.values())
    # a frame into a dark port is counted there, and nowhere else
    sw.cut(1, 3)
    assert not sw.reaches(1, 3)
    assert sw.frames()[1]["dark"] > 0 and sw.frames()[2]["dark"] == 0
    sw.cut(2, 4)
    for _ in range(50):
        took.append(sw.join((1, 2), (3, 4)))
        sw.cut(1, 2, 3, 4)
    took.sort()
    print(f"four patches, TL1 included: min {took[0]:.3f}, p50 {took[len(took) // 2]:.3f} ms")


def test_frames_in_a_change(switch):
    sw = switch(150)
    sw.join((1, 2), (3, 4))
    sender = sw.sender(1, 2)
    try:
        deadline = time.monotonic() + 10
        while sw.frames()[1]["passed"] < 20 and time.monotonic() < deadline:
            time.sleep(.02)
        assert sw.frames()[1]["changing"] == 0
        sw.cut(1, 2)
        sw.join((1, 2))
    finally:
        sender.kill()
        sender.wait()
    frames = sw.frames()
    assert frames[1]["changing"] > 10
    assert frames[2]["changing"] == frames[3]["changing"] == frames[4]["changing"] == 0
    # who does not send while circuits change loses nothing
    before = sw.frames()
    sw.cut(3, 4)
    sw.join((3, 4))
    assert sw.reaches(3, 4)
    assert all(row["changing"] == before[port]["changing"] for port, row in sw.frames().items())
