#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What an earlier ocsd wrote and was asked, with the ocsd of this tree.  TAP on stdout.

Each folder of tests/data/older holds what one earlier tree left when its ocsd was killed: ocs.yaml,
the database as SQL, the patches of the switches, and the requests of its clients with the answers
that its ocsd gave on that database.  The ocsd of this tree starts on it, and has to answer alike.

    test_ocsd_older.py --make BUILD FOLDER     makes such a folder with the programs in BUILD/src
"""
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DATA = os.path.join(TOP, "tests/data/older")
NAMED = "address: \"unix:@DIR@/{name}\", credentials: @DIR@/credentials, size: 16"
YAML = """version: 1
ocsd: {socket: "unix:@DIR@/ocsd.sock", state: @DIR@/ocsd}
timeouts: {switch: 4s, retry: 200ms, poll: 60s, dark: 1s}
switches:
  - {name: "t-[x,y,z]-[0-1]-[0-1]", driver: tl1, @NAMED@}
  - {name: "direct-[0-1]", driver: tl1, @NAMED@}
  - {name: "rail-[0-1]", driver: tl1, @NAMED@}
  - {name: "quad-[0-3]", driver: tl1, @NAMED@}
  - {name: "[near,ahead]-[0-3]", driver: tl1, @NAMED@}
  - {name: "flip-[0-3]", driver: tl1, moves: true, @NAMED@}
fabrics:
  - name: pod
    kind: torus
    partitions: [tpu]
    cube: 2x2x2
    tile: 1x1x2
    cubes:
@CUBES@
    ports: {switch: "t-{dim}-{a}-{b}", port: 2*cube+sign+1}
  - name: ring
    kind: direct
    partitions: [ring]
    nodes: d[0-5]
    degree: 2
    ports: {switch: "direct-{interface}", port: server+1}
  - name: rails
    kind: rails
    partitions: [rails]
    nodes: r[0-3]
    rails: 2
    ports: {switch: "rail-{interface}", port: server+1}
  - name: quad
    kind: direct
    partitions: [quad]
    nodes: q[0-7]
    degree: 4
    ports: {switch: "quad-{interface}", port: server+1}
  - name: two
    kind: direct
    partitions: [two]
    nodes: w[0-3]
    degree: 4
    ports: {switch: "near-{interface}", port: server+1}
    look_ahead:
      ports: {switch: "ahead-{interface}", port: server+1}
      select: {switch: "flip-{interface}", port: 3*server+1}
""".replace("@NAMED@", NAMED).replace("@CUBES@", "\n".join(
    "      - {name: c%d, nodes: \"n[%d-%d]\"}" % (i, 4 * i, 4 * i + 3) for i in range(8)))
# What differs between two runs of one ocsd, and sentences, whose words may change.
VOLATILE = {"last_read", "since", "time", "term", "revision", "expected", "in_dbm", "out_dbm", "loss",
            "excess", "baseline", "status", "address", "source", "error", "text", "id", "max_epoch"}

tests = 0


def check(good, name, seen=""):
    global tests
    tests += 1
    print("%sok %d - %s" % ("" if good else "not ", tests, name))
    if not good:
        print("\n".join("# " + line for line in str(seen).splitlines()[:60]))
    sys.stdout.flush()
    return good


def read(path):
    with open(path) as handle:
        return handle.read()


def write(path, text):
    with open(path, "w") as handle:
        handle.write(text)


class Client:
    """A connection to ocsd, or with lines of text to the emulator."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(40)
        self.sock.connect(path)
        self.lines = self.sock.makefile()
        self.events = []
        self.number = 0

    def send(self, **request):
        self.number += 1
        self.sock.sendall((json.dumps(dict(request, id=self.number)) + "\n").encode())
        return self.number

    def ask(self, **request):
        number = self.send(**request)
        for text in self.lines:
            line = json.loads(text)
            if line.get("id") == number and "event" not in line:
                return line
            self.events.append(line)
        return {"ok": False, "error": "ocsd has closed the connection"}

    def done(self, **request):
        reply = self.ask(**request)
        if not reply["ok"]:
            raise RuntimeError("%s: %s" % (request, reply))
        return reply

    def event(self, name, job):
        while True:
            for line in self.events:
                if line.get("event") == name and line.get("job") == job:
                    return line
            self.events.append(json.loads(next(self.lines)))


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class World:
    """Emulated switches and an ocsd in a folder of their own."""

    def __init__(self, build, source=None):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix="ocs-older-")
        self.ocsd = None
        text = read(os.path.join(source, "ocs.yaml")) if source else YAML
        write(self.path("ocs.yaml"), text.replace("@DIR@", self.dir))
        write(self.path("credentials"), "user=admin\npassword=root\n")
        os.chmod(self.path("credentials"), 0o600)
        os.mkdir(self.path("ocsd"), 0o700)
        os.mkdir(self.path("patches"))
        if source:
            self.restore(source)
        self.emulator = self.spawn("emulator/ocs-emulator", "--fabric", self.path("ocs.yaml"), "--delay",
                                   "2", "--state", self.path("patches"), "--log", self.path("log"),
                                   "--control", "unix:" + self.path("control"))
        until(lambda: os.path.exists(self.path("control")))

    def path(self, name):
        return os.path.join(self.dir, name)

    def restore(self, source):
        old = os.umask(0o077)
        database = sqlite3.connect(self.path("ocsd/ocsd.db"))
        database.executescript(read(os.path.join(source, "ocsd.sql")))
        database.close()
        os.umask(old)
        for line in read(os.path.join(source, "patches")).splitlines():
            switch, patch = line.split(" ", 1)
            with open(self.path("patches/%s.patches" % switch), "a") as handle:
                handle.write(patch + "\n")

    def spawn(self, program, *arguments):
        with open(self.path("output"), "a") as log:
            return subprocess.Popen([os.path.join(self.build, "src", program)] + list(arguments),
                                    stdout=log, stderr=log)

    def start(self):
        self.ocsd = self.spawn("ocsd/ocsd", "--foreground", "--fabric", self.path("ocs.yaml"))
        return until(lambda: os.path.exists(self.path("ocsd.sock")) and self.answers() or
                     self.ocsd.poll() is not None) and self.ocsd.poll() is None

    def answers(self):
        try:
            return self.client().ask(op="show", what="fabric")["ok"]
        except OSError:
            return False

    def client(self):
        return Client(self.path("ocsd.sock"))

    def kill(self):
        self.ocsd.send_signal(signal.SIGKILL)
        self.ocsd.wait()
        os.unlink(self.path("ocsd.sock"))

    def emulate(self, command):
        control = Client(self.path("control"))
        control.sock.sendall((command + "\n").encode())
        answer = json.loads(control.lines.readline())
        if not answer.get("ok", True):
            raise RuntimeError("%s: %s" % (command, answer))
        return answer

    def patches(self):
        return sum(status["patches"] for status in self.emulate("status").values())

    def ctl(self, *arguments):
        done = subprocess.run([os.path.join(self.build, "src/ocsctl/ocsctl")] + list(arguments),
                              stdout=subprocess.PIPE, env=dict(os.environ, OCS_CONF=self.path("ocs.yaml")),
                              text=True, check=True)
        return done.stdout.strip()

    def place(self, pair):
        """4x2x2 on the cubes 2 * PAIR and 2 * PAIR + 1."""
        write(self.path("busy"), "".join(
            "c%d %d %d %d\n" % (cube, at >> 2, at >> 1 & 1, at & 1)
            for cube in range(8) if cube // 2 != pair for at in range(8)))
        return self.ctl("place", "4x2x2", "--fabric", self.path("ocs.yaml"), "--busy", self.path("busy"),
                        "--compact")

    def stop(self):
        for child in (self.ocsd, self.emulator):
            if child and child.poll() is None:
                child.terminate()
                child.wait()
        shutil.rmtree(self.dir)


def commit(client, job, section, nodes, **more):
    client.done(op="commit", job=job, epoch=job * 10, uid=1000, user="alice", section=section,
                partition={"pod": "tpu"}.get(section, section), nodes=nodes, **more)


def apply(client, job, *nodes):
    for node in nodes:
        client.done(op="apply", job=job, epoch=job * 10, node=node)


def commit_torus(world, client, job, pair):
    commit(client, job, "pod", "n[%d-%d]" % (8 * pair, 8 * pair + 7), shape="4x2x2",
           conn="torus,torus,torus", placement=world.place(pair))


def names(letter, first, last):
    return ["%s%d" % (letter, i) for i in range(first, last + 1)]


def live(world):
    """Jobs in every state, drains, ports in quarantine; ocsd is killed while one is being applied."""
    client, other = world.client(), world.client()
    slurmctld = world.client()
    slurmctld.done(op="subscribe", jobs=[], term=0, controller=0, age_ms=3, boot="boot",
                   yaml={"source": "/etc/slurm/ocs.yaml", "digest": "0", "text": "0"})
    commit_torus(world, client, 1, 0)
    apply(client, 1, *names("n", 0, 7))
    commit_torus(world, client, 2, 1)
    commit(client, 4, "ring", "d[0-3]", demand={"allreduce": [{"members": [0, 1, 2, 3], "bytes": 1000000}]})
    apply(client, 4, "d0", "d1")
    world.emulate("port direct-0 5 refuse")
    commit(client, 5, "ring", "d[4-5]")
    other.send(op="apply", job=5, epoch=50, node="d4")
    slurmctld.event("job_failed", 5)
    world.emulate("port direct-0 5 good")
    commit(client, 6, "quad", "q[0-5]")
    apply(client, 6, *names("q", 0, 5))
    client.done(op="fail", kind="port", name="quad-0:1", reason="no light")
    client.done(op="apply", job=6, epoch=60, node="q0", after=1)
    commit(client, 7, "quad", "q[6-7]")
    apply(client, 7, "q6", "q7")
    client.done(op="end", job=7, epoch=70, reason="the job left its nodes")
    client.done(op="release", job=7, epoch=70, node="q6")
    commit(client, 8, "two", "w[0-3]")
    apply(client, 8, *names("w", 0, 3))
    client.done(op="prepare", job=9, nodes="w[0-3]")
    until(lambda: sum(world.emulate("status")["ahead-%d" % i]["patches"] for i in range(4)) == 16)
    commit(client, 10, "rails", "r[0-1]")
    apply(client, 10, "r0")
    client.ask(op="unheard", job=10, epoch=100, ended="r[0-1]")
    commit_torus(world, client, 11, 3)
    apply(client, 11, *names("n", 24, 31))
    world.emulate("patch quad-3 16 31")
    for kind, name in (("cube", "c7"), ("xpu", "c6:0,0,1"), ("port", "t-y-0-0:9"), ("switch", "t-z-1-1"),
                       ("port", "near-0:9")):
        client.done(op="drain", kind=kind, name=name, reason="dust on " + name)
    client.done(op="drain", kind="cube", name="c6", reason="by root", transaction="t:1")
    client.ask(op="present", node="n31")
    client.done(op="reconcile")
    time.sleep(1.3)
    client.done(op="reconcile")
    world.emulate("fault t-x-0-0 silent")
    world.emulate("fault t-x-1-1 silent")
    other.send(op="gone", job=11, epoch=110)
    commit_torus(world, client, 3, 2)
    other.send(op="apply", job=3, epoch=30, node="n16")
    # Sent, and not answered.
    until(lambda: client.ask(op="show", what="job", name="3")["jobs"][0]["state"] == "applying")
    time.sleep(0.5)
    world.kill()
    world.emulate("fault t-x-0-0 none")
    world.emulate("fault t-x-1-1 none")


def questions(world):
    """What the clients of that tree send, in the order of an operation's day."""
    for what in ("fabric", "switch", "cube", "job", "circuit", "pending", "nodes"):
        yield {"op": "show", "what": what}
    for what, name in (("job", "6"), ("circuit", "9"), ("switch", "flip-0"), ("port", "direct-0"),
                       ("port", "quad-3:16"), ("cube", "c6")):
        yield {"op": "show", "what": what, "name": name}
    yield {"op": "show", "what": "history", "name": "direct-0", "last": 0}
    yield {"op": "drain", "kind": "cube", "name": "c6", "reason": "by root", "transaction": "t:1"}
    yield {"op": "drain", "kind": "cube", "name": "c5", "reason": "late", "expect": 1,
           "transaction": "t:2"}
    living = [1, 2, 3, 4, 5, 6, 7, 8, 10]
    yield {"op": "subscribe", "jobs": [{"job": job, "epoch": 10 * job} for job in living], "term": 0,
           "controller": 0, "yaml": {"source": "/etc/slurm/ocs.yaml", "digest": "0", "text": "0"},
           "age_ms": 3, "boot": "boot"}
    yield {"op": "nodes", "nodes": {"n0": {"state": "busy", "job": 1}, "n31": {"state": "down",
                                                                             "reason": "lamp"}}}
    yield {"op": "show", "what": "nodes"}
    yield {"op": "pending", "job": 40, "user": "ada", "uid": 1001, "shape": "4x4x4", "reason": "needs 8 cubes"}
    yield {"op": "show", "what": "pending", "name": "40"}
    yield {"op": "present", "node": "r1"}
    yield {"op": "apply", "job": 1, "epoch": 10, "node": "n3"}
    yield {"op": "apply", "job": 3, "epoch": 30, "node": "n17"}
    yield {"op": "apply", "job": 6, "epoch": 60, "node": "q0", "after": 1}
    yield {"op": "apply", "job": 6, "epoch": 60, "node": "d3"}
    yield {"op": "apply", "job": 2, "epoch": 20, "node": "n8"}
    yield {"op": "unheard", "job": 2, "epoch": 20, "ended": "n[8-15]"}
    yield {"op": "commit", "job": 12, "epoch": 120, "uid": 0, "user": "root", "section": "ring",
           "partition": "ring", "nodes": "d[4-5]"}
    yield {"op": "end", "job": 5, "epoch": 50, "reason": "the job left its nodes"}
    yield {"op": "apply", "job": 5, "epoch": 50, "node": "d4"}
    yield {"op": "gone", "job": 5, "epoch": 50}
    yield {"op": "resume", "kind": "port", "name": "direct-0:5"}
    for kind, name in (("cube", "c7"), ("xpu", "c6:0,0,1"), ("port", "t-y-0-0:9"), ("switch", "t-z-1-1"),
                       ("cube", "c6"), ("port", "quad-0:1")):
        yield {"op": "resume", "kind": kind, "name": name}
    yield {"op": "commit", "job": 12, "epoch": 121, "uid": 0, "user": "root", "section": "ring",
           "partition": "ring", "nodes": "d[4-5]", "demand": {"allreduce": [{"members": [0, 1],
                                                                            "bytes": 1000}]}}
    yield {"op": "apply", "job": 12, "epoch": 121, "node": "d4", "macs": ["02:00:00:00:00:01"] * 2}
    yield {"op": "unable", "job": 12, "epoch": 121, "node": "d4", "error": "no tc"}
    yield {"op": "commit", "job": 13, "epoch": 130, "uid": 0, "user": "root", "section": "pod",
           "partition": "tpu", "nodes": "n[24-31]", "shape": "4x2x2", "conn": "torus,torus,torus",
           "placement": world.place(3)}
    yield {"op": "apply", "job": 13, "epoch": 130, "node": "n24"}
    yield {"op": "show", "what": "job", "name": "13"}
    yield {"op": "end", "job": 8, "epoch": 80, "reason": "the job left its nodes"}
    yield {"op": "release", "job": 8, "epoch": 80}
    yield {"op": "commit", "job": 9, "epoch": 90, "uid": 1000, "user": "alice", "section": "two",
           "partition": "two", "nodes": "w[0-3]"}
    yield {"op": "apply", "job": 9, "epoch": 90, "node": "w1"}
    yield {"op": "show", "what": "circuit", "name": "9"}
    yield {"op": "fail", "kind": "port", "name": "quad-1:2", "reason": "no light"}
    yield {"op": "reconcile"}
    yield {"op": "release", "job": 7, "epoch": 70, "node": "q7"}
    for job in (1, 2, 3, 4, 6, 9, 10, 12, 13):
        epoch = 121 if job == 12 else 10 * job
        yield {"op": "end", "job": job, "epoch": epoch, "reason": "the job left its nodes"}
        if job % 2:
            yield {"op": "release", "job": job, "epoch": 0}
        else:
            yield {"op": "gone", "job": job, "epoch": epoch}


def settle(client):
    """Every switch is read, and no job is on its way."""
    client.ask(op="reconcile")
    until(lambda: not {job["state"] for job in client.ask(op="show", what="job")["jobs"]} &
          {"applying", "repairing"})
    client.ask(op="reconcile")


def make(build, folder):
    world = World(build)
    try:
        if not world.start():
            raise RuntimeError(read(world.path("output")))
        live(world)
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, "ocs.yaml"), YAML)
        database = sqlite3.connect(world.path("ocsd/ocsd.db"))
        version = database.execute("PRAGMA user_version").fetchone()[0]
        write(os.path.join(folder, "ocsd.sql"), "\n".join(database.iterdump()) +
              "\nPRAGMA user_version=%d;\n" % version)
        database.close()
        tables = world.emulate("table")
        write(os.path.join(folder, "patches"), "".join(
            "%s %d %d\n" % (name, *pair) for name in sorted(tables) for pair in tables[name]))
    finally:
        world.stop()
    world = World(build, folder)
    try:
        if not world.start():
            raise RuntimeError(read(world.path("output")))
        client = world.client()
        settle(client)
        with open(os.path.join(folder, "exchange"), "w") as handle:
            for request in questions(world):
                reply = client.ask(**request)
                if "knows no operation" in reply.get("error", ""):
                    continue
                handle.write(json.dumps(request) + "\n" + json.dumps(reply) + "\n")
        print("%d patches are left" % world.patches())
    finally:
        world.stop()


def same(old, new, where):
    """Of a reason its kind is part of the protocol, the sentence is not."""
    return old == new or (where.endswith(".reason") and isinstance(old, str) and isinstance(new, str) and
                          ": " in old and old.split(": ")[0] == new.split(": ")[0])


def difference(old, new, where=""):
    """What NEW lacks or has otherwise, as text; more members are no difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old:
            if name not in new:
                return "%s.%s is gone" % (where, name)
            found = "" if name in VOLATILE else difference(old[name], new[name], "%s.%s" % (where, name))
            if found:
                return found
        return ""
    if isinstance(old, list) and isinstance(new, list):
        if where == ".drift":   # older ones say what they read twice twice
            old = [row for i, row in enumerate(old) if row not in old[:i]]
        if len(old) != len(new):
            return "%s has %d elements, not %d" % (where, len(new), len(old))
        return next(filter(None, (difference(a, b, "%s[%d]" % (where, i))
                                  for i, (a, b) in enumerate(zip(old, new)))), "")
    return "" if same(old, new, where) else "%s: %s, not %s" % (where, json.dumps(new), json.dumps(old))


def replay(name):
    folder = os.path.join(DATA, name)
    world = World(os.environ["OCS_BUILD_DIR"], folder)
    try:
        if not check(world.start(), "%s: its database is opened" % name, read(world.path("output"))):
            return
        client = world.client()
        settle(client)
        lines = [json.loads(line) for line in read(os.path.join(folder, "exchange")).splitlines()]
        for request, old in zip(lines[::2], lines[1::2]):
            new = client.ask(**request)
            # What is only read is read again: circuits that were made ahead go a little later.
            end = time.monotonic() + 10
            while request["op"] == "show" and difference(old, new) and time.monotonic() < end:
                time.sleep(0.1)
                new = client.ask(**request)
            what = " ".join(str(request[field]) for field in ("op", "what", "kind", "job", "name")
                            if field in request)
            check(not difference(old, new), "%s: %s" % (name, what), "%s\n%s\n%s" % (
                difference(old, new), json.dumps(old), json.dumps(new)))
        # quad-3 keeps the patch that is not of ocsd.
        check(until(lambda: world.patches() == 1), "%s: no circuit is left" % name, world.emulate("status"))
        check(not client.ask(op="show", what="job")["jobs"], "%s: nor a job" % name)
        world.ocsd.terminate()
        check(world.ocsd.wait() == 0, "%s: ocsd ends in order" % name, read(world.path("output")))
    finally:
        world.stop()


if sys.argv[1:2] == ["--make"]:
    make(*sys.argv[2:4])
else:
    for older in sorted(os.listdir(DATA)):
        replay(older)
    print("1..%d" % tests)
