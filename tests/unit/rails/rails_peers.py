# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What stands around the controller and the agents of a job on rails in tests: an ocsd that can be late, silent, or
refuse, and ranks, which write letters into real mailboxes."""
import array
import atexit
import ctypes
import hashlib
import hmac
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

BUILD = os.environ.get("OCS_BUILD_DIR", ".")
AGENT = os.path.join(BUILD, "src/rails/ocs-rails-agent")
CONTROLLER = os.path.join(BUILD, "src/rails/ocs-rails-controller")
HELLO, WELCOME, GROUP, KNOWN, GOODBYE, NOTE = range(1, 7)
ARRIVE, END, WISH, GRANT, LOST = range(1, 6)
GATED, FREE = range(2)
GRANTED, RANK_LOST, NO_RAIL, REVOKED = range(4)
GONE, REFUSED = 100, 101
WORD = struct.Struct("=IIIIQIIiI")
LETTER = struct.Struct("=IiQQQQ24x")
RING, LETTERS = 128 + 1024 * 64, 1024
KEY = "0123456789abcdef0123456789abcdef"
LIMIT = 180
TIMEOUT = 2  # until the controller of a test of troubles asks once more


def until(what, limit=LIMIT):
    """Waits until WHAT() is true; what it returned last."""
    end = time.monotonic() + limit
    while True:
        seen = what()
        if seen or time.monotonic() > end:
            return seen
        time.sleep(0.002)


def sleeps(process):
    with open("/proc/%d/stat" % process.pid, encoding="ascii") as handle:
        return handle.read().rpartition(")")[2].split()[0] == "S"


def secret(job, epoch):
    return hmac.new(KEY.encode(), ("agents %d %d" % (job, epoch)).encode(), hashlib.sha256).hexdigest()


def name_of(members, instance=0):
    value = 0xcbf29ce484222325
    for word in [*members, instance]:
        for byte in struct.pack("<I", word):
            value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return value


class Ocsd(threading.Thread):
    """A stand-in.  TROUBLE, a function of the request's number, says what becomes of it: None (served), "silent",
    "late", "doubled", "error", "busy" or "revoked"."""

    def __init__(self, path, job, epoch, extents=(2, 2), rails=2, mode="on-demand"):
        super().__init__(daemon=True)
        self.path, self.job, self.epoch, self.mode = path, job, epoch, mode
        self.extents, self.stands, self.seqs = list(extents), ["11"] * rails, [0] * rails
        self.topologies, self.requests, self.switch_s, self.stale, self.mispredicted, self.provisioned = [], 0, 0, 0, 0, 0
        self.trouble = lambda number: None
        self.judge = lambda rail, topo: None
        self.listener, self.client = None, None
        self.listen()
        self.start()

    def listen(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(8)
        self.listener = listener

    def down(self):
        """No process answers any more."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        self.cut()

    def up(self):
        self.listen()

    def cut(self):
        if self.client:
            try:
                self.client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                time.sleep(0.01)
                continue
            self.client = client
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def say(self, client, line):
        try:
            client.sendall((json.dumps(line) + "\n").encode())
        except OSError:
            pass

    def event(self, kind, **more):
        self.say(self.client, {"event": kind, "job": self.job, "epoch": self.epoch, **more})

    def serve(self, client):
        try:
            with client, client.makefile() as lines:
                for line in lines:
                    request = json.loads(line)
                    if request["op"] == "show":
                        self.show(client, request)
                    elif request["op"] == "topo":
                        self.requests += 1
                        self.topo(client, request, self.trouble(self.requests))
        except (OSError, ValueError):
            pass

    def show(self, client, request):
        rails = [{"rail": r, "seq": seq, "stands": stands} for r, (seq, stands) in enumerate(zip(self.seqs, self.stands))]
        self.say(client, {"id": request["id"], "ok": True, "phases": [{
            "job": self.job, "epoch": self.epoch, "mode": self.mode, "extents": self.extents, "asymmetric": 0,
            "nic_ports": 2, "rails": rails}]})

    def topo(self, client, request, trouble):
        self.mispredicted, self.provisioned = request.get("mispredicted", 0), request.get("provisioned", 0)
        answer = {"id": request["id"], "ok": True, "seq": request["seq"], "rails": []}
        if request.get("key") != KEY or trouble == "revoked":
            self.say(client, {"id": request["id"], "ok": False, "code": 1, "error": "no such key", "gone": True})
            return
        if trouble == "busy":
            self.say(client, {"id": request["id"], "ok": False, "code": 4, "error": "busy", "retry_ms": 20})
            return
        if trouble == "silent":
            return
        for entry in request["rails"]:
            rail, topo = entry["rail"], entry["topo"]
            row = {"rail": rail, "topo": topo, "seq": request["seq"], "stage": "verified"}
            if request["seq"] < self.seqs[rail]:
                self.stale += 1
                row.update(seq=self.seqs[rail], topo=self.stands[rail], stage="none", error="older", code=4)
            elif trouble == "error" and topo != "ring":
                self.seqs[rail] = request["seq"]
                row.update(stage="sent", error="the switch is on fire", code=1)
            else:
                if topo != self.stands[rail]:
                    self.judge(rail, topo)
                    self.topologies.append((rail, topo))
                self.seqs[rail], self.stands[rail] = request["seq"], topo
            answer["rails"].append(row)
        if self.switch_s or trouble == "late":
            time.sleep(self.switch_s or 1.5 * TIMEOUT)
        self.say(client, answer)
        if trouble == "doubled":
            self.say(client, answer)


class Rank:
    """A rank at its agent's socket."""

    def __init__(self, path, rank, ranks, version=1):
        self.rank, self.ranks, self.notes, self.next, self.instances = rank, ranks, [], {}, {}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = "\0" + path[1:] if path[0] == "@" else path
        until(lambda: self.socket.connect_ex(name) == 0)
        self.socket.settimeout(LIMIT)
        self.error, self.box, self.read, self.wrote = None, None, 0, 0
        self.say(WORD.pack(HELLO, version, rank, ranks, 0, 0, 0, 0, 0))

    def welcome(self):
        data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(8))
        self.error = WORD.unpack(data[:WORD.size])[7]
        if not self.error:
            fds = array.array("i")
            fds.frombytes(control[0][2][:8])
            self.box, self.bell = mmap.mmap(fds[0], 2 * RING), fds[1]
            os.close(fds[0])
        return self

    def say(self, data):
        self.socket.sendall(data)

    def group(self, members, instance=0):
        """(its number, error, need)"""
        number = name_of(members, instance)
        self.say(WORD.pack(GROUP, 1, 0, 0, number, len(members), 0, 0, 0) + struct.pack("=%di" % len(members), *members))
        while True:
            data = self.socket.recv(65536)
            word = WORD.unpack(data[:WORD.size])
            if word[0] == KNOWN and word[4] == number:
                return number, word[7], word[6]
            self.noted(word, data[WORD.size:].decode())

    def noted(self, word, text):
        self.notes.append(word)

    def fault(self, limit=LIMIT):
        """(rank that writes it, text) of the next fault that the agent tells, or None."""
        self.socket.settimeout(limit)
        try:
            while True:
                data = self.socket.recv(65536)
                word = WORD.unpack(data[:WORD.size])
                if not data or (word[0] == NOTE and word[7]):
                    return word[2], data[WORD.size:WORD.size + word[5]].decode()
        except (TimeoutError, struct.error):
            return None
        finally:
            self.socket.settimeout(LIMIT)

    def head(self, ring=0):
        return ctypes.c_uint32.from_buffer(self.box, ring * RING).value

    def store(self, offset, number):
        """At once: struct.pack_into clears the bytes first, and the other side may read that."""
        ctypes.c_uint32.from_buffer(self.box, offset).value = number % 2 ** 32

    def write(self, kind, group, idx, ring=True):
        LETTER.pack_into(self.box, 128 + self.wrote % LETTERS * 64, kind, 0, group, idx, 0, time.monotonic_ns())
        self.wrote += 1
        self.store(0, self.wrote)
        if ring:
            os.write(self.bell, struct.pack("=Q", 1))

    def letter(self, limit=LIMIT):
        """The next letter from the agent, (kind, error, group, idx, rails), or None."""
        if not until(lambda: self.head(1) != self.read % 2 ** 32, limit):
            return None
        found = LETTER.unpack_from(self.box, RING + 128 + self.read % LETTERS * 64)
        self.read += 1
        self.store(RING + 64, self.read)
        return found[:5]

    def enter(self, group, idx=None):
        """The error of the next operation of GROUP."""
        at = self.next.get(group, 0) if idx is None else idx
        self.next[group] = at + 1
        self.write(ARRIVE, group, at)
        while True:
            found = self.letter()
            if not found:
                return "nothing came"
            if found[0] == LOST:
                return found[1]
            if found[2:4] == (group, at):
                return found[1]

    def leave(self, group):
        self.write(END, group, self.next[group] - 1)

    def goodbye(self):
        self.say(WORD.pack(GOODBYE, 1, 0, 0, 0, 0, 0, 0, 0))
        self.close()

    def close(self):
        self.socket.close()


def tcp_rows():
    """(port, state, inode) of the sockets of this network namespace."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(name):
            with open(name, encoding="ascii") as handle:
                for words in (line.split() for line in list(handle)[1:]):
                    yield int(words[1].rpartition(":")[2], 16), words[3], words[9]


def port_of(process):
    """Where the controller PROCESS listens, or None."""
    inodes = set()
    folder = "/proc/%d/fd" % process.pid
    for name in os.listdir(folder):
        try:
            inodes.add(os.readlink(os.path.join(folder, name)))
        except FileNotFoundError:
            pass
    return next((port for port, state, inode in tcp_rows() if state == "0A" and "socket:[%s]" % inode in inodes), None)


def connections(port):
    """How many there are to PORT."""
    return sum(at == port and state == "01" for at, state, _ in tcp_rows())


class Job:
    """An ocsd, a controller and agents, all on this machine."""

    numbers = random.randrange(1000, 4000)

    def __init__(self, folder, nodes=4, width=1, controller=(), timeout=60, **ocsd):
        Job.numbers += 3
        self.job, self.epoch, self.folder, self.width, self.nodes = Job.numbers, Job.numbers * 10, folder, width, nodes
        self.ocsd = Ocsd(os.path.join(folder, "ocsd-%d" % self.job), self.job, self.epoch, **ocsd)
        self.options, self.agents, self.ranks, self.log = controller, [], {}, os.path.join(folder, "log-%d" % self.job)
        self.controller = self.start([CONTROLLER, "--ocsd", "unix:" + self.ocsd.path, "--timeout", str(timeout),
                                      *controller], KEY)

    def start(self, words, key):
        fd = os.memfd_create("key")
        os.write(fd, key.encode() + b"\n")
        with open(self.log, "ab") as log:
            # as root runs these tests, and the agent's user is that of its ranks
            process = subprocess.Popen([*words, "--job", str(self.job), "--epoch", str(self.epoch), "--key-fd", str(fd)],
                                       pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(fd)
        atexit.register(process.kill)
        return process

    def path(self, node, step=0):
        return "@ocs-test-%d-%d-%d-%d" % (os.getpid(), self.job, step, node)

    def agent(self, node, step=0, ranks=None, total=None, more=()):
        first = node * self.width
        return self.start([AGENT, "--host", "127.0.0.1", "--step", str(step), "--node", str(node), "--socket",
                           self.path(node, step), "--ranks", ranks or "%d-%d" % (first, first + self.width - 1),
                           "--total", str(total or self.nodes * self.width), *(more or ["--wait", "60"])],
                          secret(self.job, self.epoch))

    def step(self, step=0):
        """Starts agents and ranks of a step; the ranks."""
        self.agents = [self.agent(node, step) for node in range(self.nodes)]
        total = self.nodes * self.width
        self.ranks = {rank: Rank(self.path(rank // self.width, step), rank, total) for rank in range(total)}
        return [rank.welcome() for rank in self.ranks.values()]

    def text(self):
        with open(self.log, encoding="utf-8") as handle:
            return handle.read()

    def end(self):
        """Ends all; what was wrong with how they ended."""
        for rank in self.ranks.values():
            rank.close()
        faults = []
        for process in [*self.agents, self.controller]:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = "hangs"
            if code not in (0, -signal.SIGKILL):
                faults.append((process.args[0], code))
        self.ocsd.down()
        if "Sanitizer" in self.text() or "runtime error" in self.text():
            faults.append(self.text())
        return faults
