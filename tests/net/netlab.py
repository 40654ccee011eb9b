# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Servers as network namespaces, joined by the circuits of a plan through the
emulator's data plane."""

import contextlib
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import time

IP_RECVTTL = 12
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, check=True, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def end(process):
    """Of one that ends on SIGTERM, soon; if it does not, the namespaces are still to go."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def inside(namespace, folder="/run/netns"):
    """This thread is in the network namespace; sockets made here stay in it."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"{folder}/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(there)
        os.close(home)


class Net:
    """N servers of a plan; interface p of server s is `ocsP` there and `s<s>p<p>`
    in the namespace of the switches."""

    count = 0

    def __init__(self, bin_folder, folder, servers, degree, *options):
        Net.count += 1
        self.ocsctl = pathlib.Path(bin_folder) / "ocsctl"
        self.folder = pathlib.Path(folder)
        self.prefix = f"ocs{os.getpid()}x{Net.count}"
        self.servers, self.degree = servers, degree
        self.plan_file = self.folder / "plan.json"
        self.plan_file.write_text(run(self.ocsctl, "plan", "--servers", servers, "--degree", degree,
                                      "--routes", "--json", *options))
        self.plan = json.loads(self.plan_file.read_text())
        self.emulator = None
        self.control = None
        self.sockets = {}
        try:
            self._build()
            self._start(pathlib.Path(bin_folder) / "ocs-emulator")
            for circuit in self.plan["circuits"]:
                self.patch(circuit)
            self._listen()
        except BaseException:
            self.close()
            raise

    def host(self, server):
        return f"{self.prefix}h{server}"

    @property
    def optic(self):
        return f"{self.prefix}o"

    def address(self, server):
        return f"10.192.{(server + 1) >> 8}.{(server + 1) & 255}"

    def _build(self):
        batch, names = [], [self.optic] + [self.host(s) for s in range(self.servers)]
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "sh", "-c",
                "for i in all default; do [ ! -e /proc/sys/net/ipv6/conf/$i ] ||"
                " echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done; ip link set lo up;"
                " echo 0 > /proc/sys/net/ipv4/conf/all/send_redirects")
        for s in range(self.servers):
            for p in range(self.degree):
                batch.append(f"link add s{s}p{p} type veth peer name ocs{p} netns {self.host(s)}"
                             f" address 02:6f:63:{s >> 8:02x}:{s & 255:02x}:{p:02x}")
        run("ip", "-n", self.optic, "-batch", "-", input="\n".join(batch) + "\n")
        up = "".join(f"link set ocs{p} up\n" for p in range(self.degree))
        for s in range(self.servers):
            run("ip", "-n", self.host(s), "-batch", "-", input=up)

    def _start(self, program):
        switches = 1 if self.plan["any_port"] else self.degree
        plane = self.folder / "plane"
        plane.write_text("".join(
            f"ocs{p} {s + 1} s{s}p{p}\n" for s in range(self.servers) for p in range(self.degree)))
        arguments = []
        for i in range(switches):
            arguments += ["--switch", f"ocs{i}=unix:{self.folder}/ocs{i},{self.servers}"]
        path = f"{self.folder}/control"
        self.emulator = subprocess.Popen(
            ["ip", "netns", "exec", self.optic, program, *arguments, "--delay", "0",
             "--data-plane", plane, "--control", f"unix:{path}", "--log", self.folder / "log"],
            stdout=subprocess.PIPE, text=True)
        for line in self.emulator.stdout:
            if line.strip() == "ready":
                break
        else:
            raise RuntimeError("the emulator did not start")
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(path)
        self.control_file = self.control.makefile("rw")

    def tell(self, line):
        self.control_file.write(line + "\n")
        self.control_file.flush()
        answer = json.loads(self.control_file.readline())
        if "error" in answer:
            raise RuntimeError(f"{line}: {answer['error']}")
        return answer

    def _fibres(self, circuit):
        a, b = circuit["a"][0], circuit["b"][0]
        yield a + 1, self.servers + b + 1
        if not self.plan["directed"]:
            yield b + 1, self.servers + a + 1

    def patch(self, circuit):
        for light_in, light_out in self._fibres(circuit):
            self.tell(f"patch ocs{circuit['ocs']} {light_in} {light_out}")

    def cut(self, circuit):
        for light_in, _ in self._fibres(circuit):
            self.tell(f"unpatch ocs{circuit['ocs']} {light_in}")

    def forward(self, server, *options):
        return run("ip", "netns", "exec", self.host(server), self.ocsctl, "forward", self.plan_file,
                   "--node", server, *options)

    def forward_all(self, *options):
        for s in range(self.servers):
            self.forward(s, *options)

    def paths(self, *options):
        told = json.loads(run(self.ocsctl, "forward", self.plan_file, "--json", *options))
        return {(r["src"], r["dst"]): r for r in told["paths"]}, told["adjusted"]

    def _listen(self):
        """A UDP socket in every namespace, and the counters of the switches' side."""
        for s in range(self.servers):
            with inside(self.host(s)):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
            sock.bind(("0.0.0.0", 7000))
            sock.settimeout(1)
            self.sockets[s] = sock
        with inside(self.optic):
            self.device_file = open("/proc/thread-self/net/dev", encoding="ascii")

    def sent(self):
        """Frames that every port of every server has sent: {(server, port): n}."""
        self.device_file.seek(0)
        result = {}
        for line in self.device_file.read().splitlines()[2:]:
            name, numbers = line.split(":")
            name = name.strip()
            if name.startswith("s"):
                server, port = name[1:].split("p")
                result[int(server), int(port)] = int(numbers.split()[1])
        return result

    def packet(self, src, dst, timeout=1.0):
        """Sends one packet.  (ttl on arrival, sender's address), or None: lost."""
        text = f"{src}>{dst} {time.monotonic_ns()}".encode()
        try:
            self.sockets[src].sendto(text, (self.address(dst), 7000))
        except OSError:
            return None
        self.sockets[dst].settimeout(timeout)
        try:
            while True:
                data, extra, _, sender = self.sockets[dst].recvmsg(200, 200)
                if data == text:
                    return int.from_bytes(extra[0][2], "little"), sender[0]
        except TimeoutError:
            return None

    def walk(self, src, dst, timeout=1.0):
        """packet(), and the ports that it left by: {(server, port): frames}."""
        before = self.sent()
        arrived = self.packet(src, dst, timeout)
        after = self.sent()
        return arrived, {k: after[k] - before[k] for k in after if after[k] != before[k]}

    def snapshot(self, server):
        """All that forwarding could leave behind on a server."""
        name = self.host(server)
        text = run("sh", "-c", f"""
            ip -n {name} rule; ip -n {name} route show table all; ip -n {name} neigh
            ip -n {name} -o addr | sed 's/valid_lft.*//'; tc -n {name} qdisc
            for i in $(seq 0 {self.degree - 1}); do tc -n {name} filter show dev ocs$i ingress; done
            ip netns exec {name} grep -r . /proc/sys/net/ipv4/conf \
                --include=forwarding --include=rp_filter \
                --include=send_redirects --include=accept_redirects
            ip netns exec {name} cat /proc/sys/net/ipv4/ip_forward""", check=False)
        lines = []
        for line in text.splitlines():
            # what a kernel numbers anew each time
            words = line.split()
            if "tag" in words:
                line = " ".join(words[:words.index("tag")]).replace(" not_in_hw", "")
                line = " ".join(w for w in line.split() if not w.isdigit())
            lines.append(line)
        return sorted(lines)

    def close(self):
        for sock in self.sockets.values():
            sock.close()
        if self.control:
            self.control.close()
        if self.emulator:
            end(self.emulator)
            self.emulator.stdout.close()
        for name in run("ip", "netns", "list", check=False).split():
            if name.startswith(self.prefix):
                run("ip", "netns", "del", name, check=False)


def possible(rates=False):
    """Why the tests cannot run here, or None.  RATES: those that give NICs a rate, and addresses tables of their own."""
    if os.geteuid() != 0:
        return "needs root"
    name = f"ocs{os.getpid()}t"
    try:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "one", "type", "veth", "peer", "name", "two")
        run("tc", "-n", name, "qdisc", "add", "dev", "one", "ingress")
        run("tc", "-n", name, "filter", "add", "dev", "one", "ingress", "protocol", "all", "pref", "1",
            "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", "two")
        if rates:
            run("tc", "-n", name, "qdisc", "add", "dev", "one", "root", "tbf", "rate", "10mbit", "burst", "16kb", "latency", "1s")
            run("ip", "-n", name, "rule", "add", "from", "10.78.1.1", "lookup", "100")
    except (RuntimeError, OSError) as error:
        return f"the kernel lacks network namespaces, veth, u32, mirred, tbf or rules: {error}"
    finally:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
    return None
