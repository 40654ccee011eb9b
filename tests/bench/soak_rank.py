# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One task of a job of soak_slurm.py: soak_rank.py rails|region SERIAL FOLDER TURNS

On rails: operations through the mailbox of the node's agent; in each, every member sends a block to the next one over the
job's addresses, and looks at every byte of what it gets.  In a region: passes of gates and all-to-alls.  The last line of
FOLDER/SERIAL.RESTART.RANK is "right", "wrong" and what, or "error" and why."""

import json
import os
import pathlib
import socket
import sys
import time

sys.dont_write_bytecode = True
LIMIT, BLOCK = 60, 50000


class Task:
    def __init__(self, serial, folder):
        self.me, self.ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
        self.stem = "%s/%s.%s" % (folder, serial, os.environ.get("SLURM_RESTART_COUNT", "0"))

    def note(self, *words):
        with open("%s.%d" % (self.stem, self.me), "a", encoding="utf-8") as out:
            print(*words, file=out)

    def publish(self, what, text):
        """Tells the other tasks."""
        path = "%s.%s.%d" % (self.stem, what, self.me)
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(path + ".new", path)

    def learn(self, what, rank):
        path, end = "%s.%s.%d" % (self.stem, what, rank), time.monotonic() + LIMIT
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise OSError("task %d tells no %s" % (rank, what))
            time.sleep(0.01)
        return pathlib.Path(path).read_text(encoding="utf-8")


def block(turn, source):
    """What SOURCE sends."""
    return bytes((turn * 31 + source * 7 + k) & 255 for k in range(250)) * (BLOCK // 250)


class Rails(Task):
    """Grants by the agent, bytes by TCP over the circuits."""

    def __init__(self, *where):
        super().__init__(*where)
        with open(os.environ["SLURM_OCS_DIR"] + "/addresses", encoding="ascii") as lines:
            own = [line.split()[0] for line in lines if line.split()[1] == os.environ["SLURMD_NODENAME"]][0]
        server = socket.create_server((own, 0))
        self.publish("address", "%s %d" % (own, server.getsockname()[1]))
        self.lines = {}
        for rank in range(self.me):
            address, port = self.learn("address", rank).split()
            line = socket.create_connection((address, int(port)), LIMIT, (own, 0))
            line.sendall(b"%04d" % self.me)
            self.lines[rank] = line
        server.settimeout(LIMIT)
        for _ in range(self.me + 1, self.ranks):
            line, _ = server.accept()
            self.lines[int(self.take(line, 4))] = line
        for line in self.lines.values():
            line.settimeout(LIMIT)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def take(line, size):
        got = b""
        while len(got) < size:
            more = line.recv(size - len(got))
            if not more:
                raise OSError("a task has closed its connection")
            got += more
        return got

    def exchange(self, members, turn):
        """Whether all bytes were right; every member knows that its block has come."""
        at = members.index(self.me)
        after, before = members[(at + 1) % len(members)], members[at - 1]
        self.lines[after].sendall(block(turn, self.me))
        right = self.take(self.lines[before], BLOCK) == block(turn, before)
        self.lines[before].sendall(b"k")
        return self.take(self.lines[after], 1) == b"k" and right

    def run(self, turns):
        from rails_peers import Rank
        rank = Rank(os.environ["OCS_RAILS_AGENT"], self.me, self.ranks).welcome()
        if rank.error:
            return "error: the agent answers %s" % rank.error
        groups = [list(range(self.ranks))]
        if self.ranks == 4:
            stage, column = divmod(self.me, 2)
            groups = [[column, 2 + column], [2 * stage, 2 * stage + 1]] + groups
        for turn in range(turns):
            for members in groups:
                group, error, _ = rank.group(members)
                error = error or rank.enter(group)
                if error:
                    return "error: turn %d of %s: %s" % (turn, members, error)
                if not self.exchange(members, turn):
                    return "wrong: turn %d of %s" % (turn, members)
                rank.leave(group)
        rank.goodbye()
        return "right"


class Region(Task):
    """All-to-alls over the circuits of the job's controller."""

    def words(self, layer, source, target):
        """Most goes to one rank, another one in each layer."""
        if source == target:
            return 0
        return 20000 if (target - source) % self.ranks == 1 + layer % max(1, self.ranks - 1) else 1000

    def part(self, layer, number, source, target):
        return bytes((layer * 7 + number * 3 + source * 11 + target * 17 + k) & 255 for k in range(50)) * (
            self.words(layer, source, target) // 50)

    def sockets_find(self):
        """The folder of the controller, which the first node knows, and which appears with the controller."""
        if not self.me:
            folder, end = os.environ["SLURM_OCS_MOE_SOCKETS"], time.monotonic() + LIMIT
            while not os.path.exists(folder + "/plan.0") and time.monotonic() < end:
                time.sleep(0.02)
            self.publish("sockets", folder)
        return self.learn("sockets", 0)

    def run(self, turns):
        import ocs_moe
        server = int(os.environ["SLURMD_NODENAME"][1:])
        self.publish("address", "10.79.0.%d:7000" % (server + 1))
        addresses = [self.learn("address", rank) for rank in range(self.ranks)]
        folder = self.sockets_find()
        moe = ocs_moe.Moe(self.me, addresses, b"k" * 32, open_ms=60000, dark_ms=1000, idle_ms=60000)
        gate = ocs_moe.Gate(self.me, self.ranks, folder + "/gate.0")
        ask, right = ocs_moe.Controller(moe, folder + "/plan.0"), True
        for number in range(turns):
            for layer, backward, second in [(layer, b, s) for b in (0, 1) for layer in (0, 1) for s in (0, 1)]:
                if not backward and not second:
                    gate.row(layer, number, [self.words(layer, self.me, j) for j in range(self.ranks)])
                ask(layer, number, backward, second)
                gate.begin(layer, number, backward, second)
                pairs = [(j, self.me) if second else (self.me, j) for j in range(self.ranks)]
                wanted = [self.part(layer, number, b, a) for a, b in pairs]
                got = moe.alltoall([self.part(layer, number, *pair) for pair in pairs], [len(w) for w in wanted])
                right &= got == wanted
                gate.end(layer, number, backward, second)
        self.note("stats", json.dumps(moe.stats()))
        moe.close()
        return "right" if right else "wrong: an all-to-all"


def main():
    kind, serial, folder, turns = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    task = None
    try:
        task = {"rails": Rails, "region": Region}[kind](serial, folder)
        said = task.run(turns)
    except Exception as error:      # whatever it is, the judge reads it
        said = "error: %s: %s" % (type(error).__name__, error)
    if task:
        task.note(said)
    else:
        print(said)
    return 0 if said == "right" else 1


if __name__ == "__main__":
    sys.exit(main())
