#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on rails that change their topologies, while switches fail in every way that the emulator knows, nodes are slow to
change their routes, and ocsd is killed: soak_rails.py BUILD DIRECTORY [JOBS [SEED]]

Plays slurmctld, the nodes and the controllers of two sections, one of them with `tcp`.  At every checkpoint the faults end;
then each job gets the topology that it asks for, whole, by the emulator's table, and when all have ended no patch, no owner of
a port and no row of a job in the database is left."""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time

NODES, AT_ONCE, PORTS, RAILS, CHECKPOINT, KILL_EVERY = 12, 6, 2, 2, 100, 15
SIZE = 2 * NODES * PORTS
FAULTS = ["fault %s silent count 1", "fault %s drop count 2", "fault %s deny count 1", "fault %s partial count 1",
          "fault %s lost count 1", "fault %s duplicate count 2", "fault %s refuse count 1", "fault %s slow 100 count 2",
          "reboot %s dark 50", "reboot %s restore 50"]


def config(folder):
    names = ", ".join("{name: ocs%d}" % p for p in range(RAILS * PORTS))
    section = """  - {name: %s, kind: rails, nodes: "%s[0-%d]", rails: %d, ports_per_nic: 2, partitions: [%s],%s
     ports: {switch: "rail-{interface}", port: "2 * (server + %d) + nic_port + 1"}}
"""
    return """version: 1
ocsd: {socket: "unix:%s/ocsd.sock", state: %s/state}
timeouts: {switch: 500ms, retry: 200ms, poll: 1s, prolog: 2m, routes: 200ms}
limits: {topologies_per_second: 1000}
switches:
  - {name: "rail-[0-%d]", driver: tl1, dialect: polatis, address: "unix:%s/{name}", credentials: %s/cred, size: %d}
fabrics:
""" % (folder, folder, RAILS - 1, folder, folder, SIZE) + \
        section % ("plain", "p", NODES - 1, RAILS, "plain", "", 0) + \
        section % ("tcp", "q", NODES - 1, RAILS, "tcp", " interfaces: [%s], tcp: {address: 10.192.0.0/16, management: e}," %
                   names, NODES)


class Lost(Exception):
    pass


class Line:
    """A connection to ocsd."""

    def __init__(self, soak):
        end = time.monotonic() + 60
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(60)
            try:
                self.socket.connect(soak.folder + "/ocsd.sock")
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
        self.file, self.id = self.socket.makefile("rw"), 0

    def send(self, **request):
        self.id += 1
        try:
            self.file.write(json.dumps({**request, "id": self.id}) + "\n")
            self.file.flush()
        except OSError as error:
            raise Lost from error
        return self.id

    def read(self):
        try:
            line = self.file.readline()
        except OSError as error:
            raise Lost from error
        if not line:
            raise Lost
        return json.loads(line)

    def ask(self, **request):
        number = self.send(**request)
        while True:
            said = self.read()
            if said.get("id") == number:
                return said


class Routes(threading.Thread):
    """The process of a job's node that changes routes; now and then it is slow."""

    def __init__(self, job, node):
        super().__init__(daemon=True)
        self.job, self.node = job, node

    def run(self):
        while True:
            try:
                self.follow()
                return
            except Lost:
                pass

    def follow(self):
        line, revision = Line(self.job.soak), 0
        line.socket.settimeout(300)
        while True:
            said = line.ask(op="routes", job=self.job.number, epoch=self.job.epoch, node=self.node, after=revision)
            if not said["ok"]:
                if not said.get("gone"):
                    self.job.soak.fault("routes of %s: %s" % (self.node, said))
                return
            revision = said["revision"]
            if not self.job.soak.calm and random.random() < 0.005:
                time.sleep(0.4)


class Job(threading.Thread):
    """One of 2 x 2 nodes, from its commit to its end."""

    def __init__(self, soak, place, number):
        super().__init__(daemon=True)
        self.soak, self.place, self.number, self.epoch = soak, place, number, 10 * number
        self.tcp = place >= AT_ONCE // 2
        first = 4 * (place % (AT_ONCE // 2))
        self.nodes = ["%s%d" % ("q" if self.tcp else "p", first + n) for n in range(4)]
        self.base = 2 * ((NODES if self.tcp else 0) + first) + 1
        self.line, self.seq, self.changes, self.failed, self.told = None, 0, 0, 0, 0

    def ask(self, **request):
        """Asked again after a loss."""
        while True:
            try:
                if not self.line:
                    self.line = Line(self.soak)
                return self.line.ask(job=self.number, epoch=self.epoch, **request)
            except Lost:
                self.line = None

    def settle(self, good, **request):
        """Until it is so."""
        end = time.monotonic() + 90
        while True:
            said = self.ask(**request)
            if said["ok"] == good or said.get("gone"):
                return said
            if time.monotonic() > end:
                self.soak.fault("job %d: %s is answered %s" % (self.number, request, said))
                return said
            time.sleep(0.02)

    def apply(self):
        """The key, or None: it failed, and an answer waits for what slurmctld says to that."""
        end = time.monotonic() + 4
        while time.monotonic() < end:
            line = None
            try:
                line = Line(self.soak)
                line.socket.settimeout(4)
                said = line.ask(job=self.number, epoch=self.epoch, op="apply", node=self.nodes[0])
                if said["ok"] or said.get("gone"):
                    return said.get("key")
            except Lost:
                pass
        return None

    def topo(self, *topologies):
        self.seq += 1
        said = self.ask(op="topo", key=self.key, seq=self.seq, rails=[
            {"rail": rail, "topo": text} for rail, text in enumerate(topologies)])
        whole = said["ok"] and not any("error" in row for row in said["rails"])
        self.changes += 1
        self.failed += not whole
        return whole, said

    def run(self):
        commit = {"op": "commit", "uid": 1, "user": "a", "section": "tcp" if self.tcp else "plain",
                  "nodes": ",".join(self.nodes), "shape": "pp:2,dp:2", "phases": "on-demand"}
        self.settle(True, **commit)
        self.key = self.apply()
        if self.key:
            for node in self.nodes if self.tcp else ():
                Routes(self, node).start()
            self.told = 1
            for _ in range(random.randrange(1, 12)):
                self.topo(*(random.choice(["11", "00", "01", "10", "ring"]) for _ in range(RAILS)))
                if self.soak.calm:
                    break
            if self.soak.calm:
                self.judge()
        self.settle(True, op="end", reason="soak")
        for node in self.nodes:
            self.settle(True, op="release", node=node)

    def wanted(self, topo):
        """The patches of rings, from port 1 of each node to port 0 of the next."""
        rings = [[0, 1, 2, 3]] if topo == "ring" else [[0, 1], [2, 3]]
        found = set()
        for ring in rings:
            for here, there in zip(ring, ring[1:] + ring[:1]):
                a, b = self.base + 2 * here + 1, self.base + 2 * there
                found |= {(a, SIZE + b), (b, SIZE + a)}
        return found

    def judge(self):
        """Without faults a topology comes, and is what it says."""
        asked, end = [random.choice(["11", "ring"]) for _ in range(RAILS)], time.monotonic() + 60
        while True:
            whole, said = self.topo(*asked)
            tables = json.loads(self.soak.control("table"))
            ports = range(self.base, self.base + 8)
            right = all({(row[0], row[1]) for row in tables["rail-%d" % r] if row[0] in ports} == self.wanted(asked[r])
                        for r in range(RAILS))
            if whole and right:
                return
            if said.get("gone"):
                return
            if time.monotonic() > end:
                self.soak.fault("job %d asked for %s: %s, %s" % (self.number, asked, said, "right" if right else tables))
                return
            time.sleep(0.1)


class Soak:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.calm, self.faults, self.number, self.kills, self.hurts = False, [], 0, 0, 0
        self.jobs, self.done, self.lock = [None] * AT_ONCE, [], threading.Lock()
        os.makedirs(folder + "/state", mode=0o700, exist_ok=True)
        with open(folder + "/cred", "w") as handle:
            handle.write("user=admin\npassword=root\n")
        os.chmod(folder + "/cred", 0o600)
        with open(folder + "/ocs.yaml", "w") as handle:
            handle.write(config(folder))
        self.emulator = self.spawn("emulator/ocs-emulator", "--delay", "2", "--log", folder + "/emulator.log",
                                   "--control", "unix:%s/control" % folder)
        end = time.monotonic() + 30
        while not os.path.exists(folder + "/control") and time.monotonic() < end:
            time.sleep(0.02)
        self.ocsd = None
        self.start()

    def spawn(self, program, *words):
        name = os.path.basename(program)
        with open("%s/%s.err" % (self.folder, name), "a") as log:
            return subprocess.Popen(["%s/src/%s" % (self.build, program), "--fabric", self.folder + "/ocs.yaml", *words],
                                    stdout=log, stderr=log)

    def start(self):
        self.ocsd = self.spawn("ocsd/ocsd", "--foreground", "--log-level", "warning")

    def fault(self, text):
        self.faults.append(text)
        print("FAULT " + text, flush=True)

    def control(self, command):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(self.folder + "/control")
            line.sendall((command + "\n").encode())
            with line.makefile() as file:
                return file.readline()

    def hurt(self):
        self.hurts += 1
        if self.hurts % KILL_EVERY == 0:
            self.kills += 1
            self.ocsd.kill()
            self.ocsd.wait()
            self.start()
        else:
            self.control(random.choice(FAULTS) % ("rail-%d" % random.randrange(RAILS)))

    def serve(self):
        """Jobs that have ended make room for others."""
        for place, job in enumerate(self.jobs):
            if job and job.is_alive():
                continue
            if job:
                self.done.append(job)
                self.jobs[place] = None
            if not self.calm:
                self.number += 1
                self.jobs[place] = Job(self, place, self.number)
                self.jobs[place].start()

    def left(self):
        """What is there though no job is."""
        line, found = Line(self), []
        tables = json.loads(self.control("table"))
        found += ["patches %s" % tables] if any(tables.values()) else []
        owned = [port for port in line.ask(op="show", what="port")["ports"] if port.get("owner")]
        found += ["owners %s" % owned] if owned else []
        with sqlite3.connect("file:%s/state/ocsd.db?mode=ro" % self.folder, uri=True) as db:
            for table, where in (("circuits", "state != 5"), ("menus", "1")):
                count = db.execute("SELECT count(*) FROM %s WHERE %s" % (table, where)).fetchone()[0]
                found += ["%d rows of %s" % (count, table)] if count else []
        return found

    def checkpoint(self):
        self.calm = True
        for rail in range(RAILS):
            self.control("fault rail-%d none" % rail)
        end = time.monotonic() + 180
        while any(self.jobs):
            self.serve()
            if time.monotonic() > end:
                self.fault("jobs do not end: %s" % [job.number for job in self.jobs if job])
                break
            time.sleep(0.02)
        end = time.monotonic() + 30
        while self.left() and time.monotonic() < end:
            time.sleep(0.2)
        for what in self.left():
            self.fault(what)
        print("%d jobs, %d of them with a topology; %d changes, %d not whole; %d faults, %d kills%s" % (
            len(self.done), sum(job.told for job in self.done), sum(job.changes for job in self.done),
            sum(job.failed for job in self.done), self.hurts, self.kills, "" if self.faults else ": nothing is left"), flush=True)
        self.calm = False

    def end(self):
        for process in (self.ocsd, self.emulator):
            process.terminate()
            process.wait()


def main():
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    soak = Soak(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    later, next_hurt = CHECKPOINT, 0
    try:
        while len(soak.done) < jobs and not soak.faults:
            soak.serve()
            if time.monotonic() > next_hurt:
                soak.hurt()
                next_hurt = time.monotonic() + random.uniform(0.05, 0.5)
            time.sleep(0.005)
            if len(soak.done) >= min(later, jobs):
                soak.checkpoint()
                later = len(soak.done) + CHECKPOINT
    finally:
        soak.end()
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
