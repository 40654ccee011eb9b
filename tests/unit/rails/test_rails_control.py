#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The controller of a job on rails and the agents of its nodes, with ranks that write into real mailboxes and an ocsd
that can be late, silent, or gone: what is granted, what is not, and what each hears when another one dies.  TAP on
stdout."""
import os
import random
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["OCS_SOURCE_DIR"], "tests/unit"))
from rails_peers import (ARRIVE, END, FREE, GATED, GONE, KEY, LIMIT, LOST, NOTE, RANK_LOST, REFUSED, REVOKED, TIMEOUT,
                         WORD, Job, Rank, connections, name_of, port_of, secret, sleeps, until)  # noqa: E402
from tap import end, result  # noqa: E402



class Leases:
    """Which digits operations that are open need; a topology that takes one away is a fault."""

    def __init__(self, ocsd):
        self.lock, self.open, self.faults = threading.Lock(), {}, []
        self.ocsd = ocsd
        ocsd.judge = self.judge

    def change(self, need, by):
        with self.lock:
            self.open[need] = self.open.get(need, 0) + by
            if by > 0:
                self.faults += ["granted %s on %s" % (need, topo) for topo in self.ocsd.stands
                                if any(topo[stage] != digit for stage, digit in need)]

    def judge(self, rail, topo):
        with self.lock:
            self.faults += ["%s on rail %d under %s" % (topo, rail, need) for need, count in self.open.items()
                            if count and any(topo[stage] != digit for stage, digit in need)]


def operation(rank, leases, members, need, errors, instance=0):
    group, error, _ = rank.group(members, instance) if (tuple(members), instance) not in rank.instances else \
        rank.instances[tuple(members), instance]
    rank.instances[tuple(members), instance] = (group, error, None)
    error = error or rank.enter(group)
    if error:
        errors.append((rank.rank, members, error))
        return
    leases.change(need, 1)
    leases.change(need, -1)
    rank.leave(group)


def train(job, rank, leases, rounds, errors):
    """Steps of pp:2,dp:2 with WIDTH ranks a node, one operation of all at the end of each."""
    width = job.width
    node, place = divmod(rank.rank, width)
    stage, column = divmod(node, 2)
    for _ in range(rounds):
        pair = [column * width + place, (2 + column) * width + place]
        operation(rank, leases, pair, ((0, "0"), (1, "0")), errors)
        ring = [(2 * stage + k) * width + place for k in range(2)]
        operation(rank, leases, ring, ((stage, "1"),), errors)
        operation(rank, leases, list(range(job.nodes * width)), (), errors)
        if errors:
            return


def trained(job, rounds, during=None):
    """Errors of a training of all ranks, and what the leases say."""
    leases, errors = Leases(job.ocsd), []
    threads = [threading.Thread(target=train, args=(job, rank, leases, rounds, errors), daemon=True)
               for rank in job.ranks.values()]
    for thread in threads:
        thread.start()
    if during:
        during()
    for thread in threads:
        thread.join(LIMIT)
    if any(thread.is_alive() for thread in threads):
        errors.append("ranks hang")
    return errors, leases.faults


def test_training(folder):
    for mode in ("on-demand", "provisioned"):
        job = Job(folder, width=2, mode=mode)
        job.step()
        errors, faults = trained(job, 8)
        result("eight ranks train, %s, and no circuit is cut or used in change" % mode, not errors and not faults,
               (errors, faults, job.text()))
        # The kernel's table is read in parts: while others come and go, a row may be missed or be there twice.
        found = []
        until(lambda: found.append(connections(port_of(job.controller))) or found[-1] == job.nodes)
        result("with one connection a node", found[-1] == job.nodes, found[-1])
        result("circuits of both rails follow the phases", len(job.ocsd.topologies) >= 2 * 2 * 8 - 2, job.ocsd.topologies)
        for rank in job.ranks.values():
            rank.goodbye()
        result("agents end with their ranks", all(until(lambda: agent.poll() is not None) for agent in job.agents))
        before = max(job.ocsd.seqs)
        job.step(1)
        errors, faults = trained(job, 2)
        result("the next step goes on with the numbers", not errors and not faults and min(job.ocsd.seqs) > before
               and not job.ocsd.stale, (errors, faults, job.ocsd.seqs, job.text()))
        faults = job.end()
        result("all end in good order", not faults, faults)


def together(job, groups, at):
    """All ranks reach operation AT of their GROUPS, and end it once each has its grant; the errors."""
    for rank in job.ranks.values():
        rank.write(ARRIVE, groups[rank.rank], at)
    errors = [rank.letter()[1:4] for rank in job.ranks.values()]
    for rank in job.ranks.values():
        rank.write(END, groups[rank.rank], at)
    return [error for rank, error in enumerate(errors) if error != (0, groups[rank], at)]


def test_windows(folder):
    """Ranks compute between two phases: a change begins before anybody demands it, once the steps are known."""
    rounds, learnt = 8, 4
    for mode in ("on-demand", "provisioned"):
        job = Job(folder, mode=mode)
        ranks = job.step()
        phases = [("00", [rank.group([rank.rank % 2, rank.rank % 2 + 2])[0] for rank in ranks]),
                  ("11", [rank.group([rank.rank // 2 * 2, rank.rank // 2 * 2 + 1])[0] for rank in ranks])]
        errors, early = [], []
        for at in range(0, 3 * rounds, 3):      # three operations in each phase
            for stands, groups in phases:
                def stand():
                    return job.ocsd.stands == [stands] * 2      # before any rank arrives
                early.append(until(stand) if mode == "provisioned" and at >= 3 * learnt else stand())
                for k in range(3):
                    errors += together(job, groups, at + k)
        result("%s: operations of phases with windows" % mode, not errors, (errors, job.text()))
        before = early[2 * learnt:]
        result("%s: changes that began before they were demanded" % mode,
               before == [mode == "provisioned"] * len(before) and len(before) == 2 * (rounds - learnt), early)
        # and provisioned one for a step that does not come
        result("%s: two changes of each rail a step" % mode,
               0 <= len(job.ocsd.topologies) - 2 * 2 * rounds <= 2 * (mode == "provisioned"), job.ocsd.topologies)
        # What no step had so far: rings once more, all together, and the pipeline as it was expected.
        everybody = [rank.group([0, 1, 2, 3])[0] for rank in ranks]
        if mode == "provisioned":
            until(lambda: job.ocsd.stands == ["00"] * 2)
        errors = [error for groups, at in ((phases[1][1], 3 * rounds), (everybody, 0), (phases[0][1], 3 * rounds),
                                           (everybody, 1), (phases[1][1], 3 * rounds + 1))
                  for error in together(job, groups, at)]
        result("%s: operations outside every phase are served" % mode, not errors, (errors, job.text()))
        result("%s: and what was expected instead is counted" % mode,
               job.ocsd.mispredicted >= 1 if mode == "provisioned" else job.ocsd.mispredicted == 0, job.ocsd.mispredicted)
        result("%s: as are those that began before, of both rails" % mode, 2 * len(before) <= job.ocsd.provisioned + 2 <= len(
            job.ocsd.topologies) if mode == "provisioned" else job.ocsd.provisioned == 0, job.ocsd.provisioned)
        faults = job.end()
        result("%s: all end in good order" % mode, not faults, faults)


def test_steps(folder):
    """Which of several steps has the circuits."""
    job = Job(folder)
    job.step(1)
    monitor, monitors = job.ranks, job.agents
    job.step(2)
    training, agents = job.ranks, job.agents
    errors, faults = trained(job, 2)
    result("a step that names no group keeps nothing from another", not errors and not faults and job.ocsd.topologies,
           (errors, faults, job.text()))
    result("once that has the circuits, it runs without gates",
           all(rank.group([0, 1, 2, 3])[1:] == (0, FREE) for rank in monitor.values()), job.text())
    late = [job.agent(0, 3)]
    first = Rank(job.path(0, 3), 0, 4).welcome()
    note = until(lambda: first.group([0, 1])[1:] == (0, FREE) and first.notes)
    result("a step that begins now does, and is told", note and note[0][0] == NOTE, note)
    for rank in training.values():
        rank.goodbye()
    result("a step ends", all(until(lambda: agent.poll() is not None) for agent in agents), job.text())
    late += [job.agent(node, 3) for node in range(1, 4)]
    others = [Rank(job.path(node, 3), node, 4).welcome() for node in range(1, 4)]
    result("what began without gates ends without, on each of its nodes",
           all(rank.group([0, 1, 2, 3])[1:] == (0, FREE) for rank in others), job.text())
    job.step(4)
    errors, faults = trained(job, 2)
    result("the next step has the circuits", not errors and not faults, (errors, faults, job.text()))
    for rank in [*monitor.values(), first, *others]:
        rank.goodbye()
    result("agents end with their ranks", all(until(lambda: agent.poll() is not None) for agent in late + monitors))
    result("all end in good order", not job.end())


def test_troubles(folder):
    """What ocsd does wrong costs time, never an operation."""
    kinds = ["silent", "late", "doubled", "busy", None, None, None, None]
    chance = random.Random(1)
    job = Job(folder, timeout=TIMEOUT)
    job.ocsd.trouble = lambda number: kinds[number % len(kinds)] if number < 12 else chance.choice(["doubled", "busy", None])
    job.ocsd.seqs = [70, 90]
    job.step()
    errors, faults = trained(job, 5)
    result("answers that are lost, late or doubled", not errors and not faults, (errors, faults, job.text()))
    result("numbers begin after those of a controller before", min(job.ocsd.seqs) > 90, job.ocsd.seqs)

    def restart():
        job.ocsd.down()
        until(lambda: job.ocsd.client is None, 0.2)
        job.ocsd.up()
    errors, faults = trained(job, 5, restart)
    result("an ocsd that is gone for a while", not errors and not faults, (errors, faults, job.text()))
    errors, faults = trained(job, 5, lambda: job.ocsd.event("topo_lost", rail=1, switch="s", error="e"))
    result("circuits that are lost", not errors and not faults, (errors, faults, job.text()))
    job.ocsd.trouble = lambda number: "revoked"
    errors, faults = trained(job, 2)
    result("a key that is over ends operations", {error[-1] for error in errors} == {REVOKED} and not faults, (errors, faults))
    faults = job.end()
    result("all end in good order", not faults, faults)
    job = Job(folder, timeout=1)
    job.ocsd.trouble = lambda number: "error"
    job.step()
    errors, faults = trained(job, 1)
    result("switches that make nothing: the giant ring, and no word of despair", not errors and
           job.ocsd.stands == ["ring", "ring"] and "giant ring" in job.text(), (errors, job.ocsd.stands, job.text()))
    faults = job.end()
    result("and an end in good order", not faults, faults)


def waits(job, who):
    """Rank WHO does not come to an operation of all: the others' errors, to be filled, and the threads that wait."""
    errors = {}

    def wait(rank):
        group, error, _ = rank.group(list(range(job.nodes)))
        errors[rank.rank] = error or rank.enter(group)
    threads = [threading.Thread(target=wait, args=(rank,), daemon=True) for rank in job.ranks.values() if rank.rank != who]
    for thread in threads:
        thread.start()
    for rank in job.ranks.values():
        until(lambda: rank.rank == who or rank.wrote)
    return errors, threads


def test_deaths(folder):
    def die(what, who, says, kill):
        job = Job(folder)
        job.step()
        errors, threads = waits(job, who)
        kill(job)
        for thread in threads:
            thread.join(LIMIT)
        result(what, errors == {rank: says for rank in range(4) if rank != who}, (errors, job.text()))
        return job
    job = die("a rank dies: the others hear of it", 1, RANK_LOST, lambda job: job.ranks[1].close())
    result("and people, too", "rank 1 is gone" in job.text(), job.text())
    told = [job.ranks[rank].fault() for rank in (0, 2, 3)]
    result("each rank knows of it, the first one says it", len(set(told)) == 1 and told[0] and told[0][0] == 0
           and told[0][1].startswith("rank 1 is gone without a goodbye"), told)
    result("once", job.text().count("operations of 4 ranks that wait for it fail") == 1, job.text())
    result("all end in good order", not job.end())
    job = Job(folder)
    job.step()
    everyone = list(range(4))
    group = [job.ranks[rank].group(everyone)[0] for rank in everyone][0]
    for rank in everyone:
        job.ranks[rank].write(ARRIVE, group, 0)
    granted = [job.ranks[rank].letter()[1:4] for rank in everyone]
    job.ranks[1].close()
    told = job.ranks[0].fault()
    result("a rank that dies in the middle of an operation is told before others wait for it",
           granted == [(0, group, 0)] * 4 and told and told[1].startswith("rank 1 is gone without a goodbye")
           and "under way with it" in told[1], (granted, told, job.text()))
    for rank in (0, 2, 3):
        job.ranks[rank].next[group] = 1
        job.ranks[rank].leave(group)
    result("the next one fails", [job.ranks[rank].enter(group) for rank in (0, 2, 3)] == [RANK_LOST] * 3, job.text())
    result("and it is told once", job.text().count("rank 1 is gone without a goodbye") == 1, job.text())
    result("all end in good order", not job.end())
    job = die("a rank leaves in good order", 1, RANK_LOST, lambda job: job.ranks[1].goodbye())
    result("and no word of it", "is gone" not in job.text().replace("agent is gone", ""), job.text())
    result("all end in good order", not job.end())
    job = die("an agent is killed", 2, RANK_LOST, lambda job: job.agents[2].kill())
    result("its rank sees its socket close", job.ranks[2].socket.recv(10) == b"")
    result("all end in good order", not job.end())
    job = die("the controller is killed", 0, GONE, lambda job: job.controller.kill())
    result("who comes later is refused", job.ranks[0].letter()[:2] == (LOST, GONE))
    told = [job.ranks[rank].fault() for rank in range(4)]
    result("the first rank of each node says so", [fault and fault[0] for fault in told] == [0, 1, 2, 3]
           and all("connection to the controller is lost" in fault[1] for fault in told[1:]), told)
    result("all end in good order", not job.end())
    job = Job(folder, controller=["--gather", "3"])
    job.agents = [job.agent(0)]
    job.ranks = {0: Rank(job.path(0), 0, 4).welcome()}
    result("agents that never come end the step", job.ranks[0].group([0, 1])[1] == GONE, job.text())
    result("and it is said", "have not come" in job.text(), job.text())
    result("all end in good order", not job.end())
    job = Job(folder)
    job.controller.kill()
    job.agents = [job.agent(0, more=["--wait", "1"])]
    job.ranks = {0: Rank(job.path(0), 0, 4).welcome()}
    result("no controller at all", job.ranks[0].error == GONE, job.ranks[0].error)
    result("all end in good order", not job.end())


def test_stalls(folder):
    """A rank that is stopped keeps others waiting: it is named, and all goes on once it comes."""
    job = Job(folder, controller=["--stall", "1"])
    job.step()
    errors, threads = waits(job, 2)
    told = job.ranks[0].fault()
    result("a rank that does not come is named", told and told[0] == 0 and told[1].startswith("rank 2 (node 2 of the job) "
           "keeps 3 of 4 ranks waiting for "), (told, job.text()))
    group, error, _ = job.ranks[2].group(list(range(4)))
    result("once it comes, all are granted", not error and not job.ranks[2].enter(group) and
           not [thread for thread in threads if thread.join(LIMIT) or thread.is_alive()] and not any(errors.values()), errors)
    result("and the log says so", until(lambda: "no rank keeps others waiting any more" in job.text()), job.text())
    for rank in (0, 1, 3):
        job.ranks[rank].write(END, group, 0)
    pairs = [job.ranks[rank].group([rank % 2, rank % 2 + 2])[0] for rank in range(4)]
    for rank in range(4):
        job.ranks[rank].write(ARRIVE, pairs[rank], 0)
    told = job.ranks[1].fault()
    result("a rank that does not end an operation, either", told and told[1].startswith("rank 2 (node 2 of the job) has not "
           "ended an operation of 4 ranks for "), (told, job.text()))
    job.ranks[2].leave(group)
    result("its end lets circuits change", [job.ranks[rank].letter()[1:3] for rank in range(4)] ==
           [(0, pair) for pair in pairs], job.text())
    result("all end in good order", not job.end())


def test_seeks(folder):
    """The controller of the step before ends while a step begins: its agents find the next one."""
    job = Job(folder)
    job.agents = [job.agent(node) for node in range(3)]
    job.ranks = {rank: Rank(job.path(rank), rank, 4).welcome() for rank in range(3)}
    # one is not there: nothing was granted yet
    for rank in (0, 1, 2):
        job.ranks[rank].say(WORD.pack(3, 1, 0, 0, name_of([0, 1, 2, 3]), 4, 0, 0, 0) + struct.pack("=4i", 0, 1, 2, 3))
    waiting = job.start(job.controller.args[:5], KEY)
    until(lambda: "sought again" in job.text(), 0.2)
    job.controller.kill()
    job.controller.wait()
    job.controller = waiting
    job.agents.append(job.agent(3))
    job.ranks[3] = Rank(job.path(3), 3, 4).welcome()
    errors, faults = trained(job, 2)
    result("nothing was lost", not errors and not faults and "sought again" in job.text(), (errors, faults, job.text()))
    result("all end in good order", not job.end())


def test_turns(folder):
    """A second controller of the job waits for the end of the first one, and ends with its parent."""
    job = Job(folder)
    key = os.path.join(folder, "key")
    with open(key, "w", encoding="ascii") as handle:
        handle.write(KEY + "\n")
    words = [*job.controller.args[:5], "--job", str(job.job + 1), "--epoch", "5"]
    parent = subprocess.Popen(["sleep", "1000"])
    started = []
    for more in ([], [], ["--parent-fd", "4"]):
        fd, pidfd = os.open(key, os.O_RDONLY), os.pidfd_open(parent.pid)
        moves = "exec 3<&%d 4<&%d; exec \"$@\"" % (fd, pidfd)
        started.append(subprocess.Popen(["bash", "-c", moves, "bash", *words, *more], pass_fds=[fd, pidfd]))
        os.close(fd)
        os.close(pidfd)
        if len(started) == 1:
            result("the first one serves", until(lambda: port_of(started[0])))
    result("others wait", all(process.poll() is None and not port_of(process) for process in started[1:]))
    parent.kill()
    parent.wait()
    result("one of them ends with its parent", until(lambda: started[2].poll() is not None))
    started[0].kill()
    started[0].wait()
    result("and the other one serves", until(lambda: port_of(started[1])))
    started[1].terminate()
    result("until it is told to end", started[1].wait(LIMIT) == 0)
    result("all end in good order", not job.end())


def test_liars(folder):
    job = Job(folder)
    job.step()
    a, b = job.ranks[0], job.ranks[1]
    everybody = list(range(4))
    result("a group that one is not in", a.group([1, 2])[1] == REFUSED)
    result("ranks that there are none of", a.group([0, 9])[1] == REFUSED)
    result("ranks in no order", a.group([1, 0])[1] == REFUSED)
    good = a.group(everybody)[0]
    a.say(WORD.pack(3, 1, 0, 0, good, 2, 0, 0, 0) + struct.pack("=2i", 0, 1))
    result("other ranks under the same name", WORD.unpack(a.socket.recv(4096))[7] == REFUSED)
    b.say(WORD.pack(3, 1, 0, 0, good, 2, 0, 0, 0) + struct.pack("=2i", 1, 2))
    result("also from another node", WORD.unpack(b.socket.recv(4096))[7] == REFUSED)
    result("an operation of a group that one did not name", a.enter(12345) == REFUSED)
    b.group(everybody)
    for rank in (job.ranks[2], job.ranks[3]):
        rank.group(everybody)
    for rank in job.ranks.values():
        rank.write(ARRIVE, good, 5)
    result("operations may begin anywhere", all(rank.letter()[1:4] == (0, good, 5) for rank in job.ranks.values()))
    a.write(ARRIVE, good, 3)
    a.write(END, good, 3)
    a.write(END, good, 99)
    a.write(77, good, 1)
    for rank in job.ranks.values():
        rank.write(END, good, 5)
        rank.write(ARRIVE, good, 6)
    seen = [until(lambda: [found for found in [rank.letter(1)] if found and found[3] == 6]) for rank in job.ranks.values()]
    result("what comes in no order stops nobody", all(found and found[0][1] == 0 for found in seen), seen)
    other = Rank(job.path(0), 0, 4).welcome()
    result("a second process of the same rank", other.error == REFUSED)
    result("another version", Rank(job.path(0), 0, 4, version=9).welcome().error == REFUSED)
    result("a rank of another node", Rank(job.path(0), 3, 4).welcome().error == REFUSED)
    chance = random.Random(2)
    for size in (0, 1, 39, 40, 41, 200, 60000):
        rogue = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rogue.connect("\0" + job.path(0)[1:])
        rogue.send(chance.randbytes(size))
        rogue.settimeout(LIMIT)
        rogue.close()
    for rank in (a, b):
        rank.write(END, good, 6)
    a.store(0, a.wrote + 5000)
    os.write(a.bell, struct.pack("=Q", 1))
    result("a ring that cannot be: the rank is out", a.socket.recv(100) == b"")
    b.write(ARRIVE, good, 7)
    result("and the others know", b.letter()[1:4] == (RANK_LOST, good, 7), job.text())
    result("all end in good order", not job.end())


def test_many(folder):
    """16,384 ranks on two nodes, of which two are there."""
    job = Job(folder, nodes=2, extents=(2, 1))
    job.agents = [job.agent(node, ranks="%d-%d" % (8192 * node, 8192 * node + 8191), total=16384) for node in range(2)]
    job.ranks = {node: Rank(job.path(node), 8192 * node, 16384) for node in range(2)}
    for rank in job.ranks.values():
        rank.welcome()
    everybody = list(range(16384))
    seen = [rank.group(everybody)[1:] for rank in job.ranks.values()]
    result("a group of 16,384", seen == [(0, GATED)] * 2, (seen, job.text()))
    result("ranks of one node need no gate", job.ranks[0].group(list(range(8192)))[1:] == (0, FREE))
    pair = [0, 8192]
    groups = [rank.group(pair)[0] for rank in job.ranks.values()]
    for rank, group in zip(job.ranks.values(), groups):
        rank.write(ARRIVE, group, 0)
    result("and a pair of them sends", all(rank.letter()[1] == 0 for rank in job.ranks.values()), job.text())
    # more letters than a ring has
    group = groups[0]
    errors = []
    for idx in range(1, 3000):
        for rank in job.ranks.values():
            rank.write(END, group, idx - 1)
            rank.write(ARRIVE, group, idx)
        errors += [found for found in (rank.letter() for rank in job.ranks.values()) if not found or found[1:4] != (0, group, idx)]
    result("thousands of operations", not errors, errors[:3])
    liar = job.ranks[0]
    liar.store(0, liar.wrote + 5000)
    os.write(liar.bell, struct.pack("=Q", 1))
    result("a rank that is put out", liar.socket.recv(100) == b"")
    os.write(liar.bell, struct.pack("=Q", 1))
    result("may ring: its agent sleeps", until(lambda: sleeps(job.agents[0])))
    result("all end in good order", not job.end())


def port_take():
    """A socket that listens at the first port of the next job's controller, whose number may be moved on for that."""
    while True:
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("", 24000 + (Job.numbers + 3) * 7 % 1000))
            taken.listen(8)
            return taken
        except OSError:
            taken.close()
            Job.numbers += 3


def dropped(one):
    """Whether the other side closes it, whatever it said."""
    try:
        while one.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_doors(folder):
    """The port of the controller, and what listens there that is none."""
    taken = port_take()
    job = Job(folder)
    job.step()
    errors, faults = trained(job, 1)
    result("a port that is taken by a process that says nothing", not errors and not faults
           and port_of(job.controller) != taken.getsockname()[1], (errors, job.text()))
    taken.close()
    again = Job(folder)
    again.step()
    port = port_of(again.controller)
    again.controller.kill()
    again.controller.wait()
    result("ranks of a controller that is gone", all(rank.letter()[0] == LOST for rank in again.ranks.values()))
    again.controller = again.start(again.controller.args[:5], KEY)
    result("the next controller has its port, in spite of TIME_WAIT", until(lambda: port_of(again.controller) == port),
           again.text())
    result("all end in good order", not again.end())
    chance = random.Random(3)
    port = port_of(job.controller)
    for words in (b"", b"x", struct.pack("<IHH", 4, 2, 0), struct.pack("<IHH", 2 ** 31, 2, 0),
                  struct.pack("<IHH", 100, 2, 0) + bytes(92), chance.randbytes(5000),
                  struct.pack("<IHH", 40, 6, 0) + bytes(32)):
        rogue = socket.create_connection(("127.0.0.1", port))
        rogue.settimeout(LIMIT)
        rogue.sendall(words)
        rogue.shutdown(socket.SHUT_WR)
        try:
            while rogue.recv(4096):
                pass
        except OSError:
            pass
        rogue.close()
    errors, faults = trained(job, 1)
    result("garbage at the controller's port", not errors and not faults, (errors, job.text()))
    # connections that say nothing, more than there are places, and than descriptors
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
    errors, faults = trained(job, 1)
    result("hundreds of silent connections", not errors and not faults, (errors, job.text()))
    silent[0].settimeout(LIMIT)
    result("of which the oldest gave way", dropped(silent[0]))
    limit = len(os.listdir("/proc/%d/fd" % job.controller.pid))
    resource.prlimit(job.controller.pid, resource.RLIMIT_NOFILE, (limit, limit))
    for _ in range(20):
        silent.append(socket.create_connection(("127.0.0.1", port)))
    silent[-1].settimeout(LIMIT)
    result("and no descriptor for more", until(lambda: sleeps(job.controller)) and dropped(silent[-1]), job.text())
    errors, faults = trained(job, 1)
    result("disturb nobody", not errors and not faults, (errors, job.text()))
    for one in silent:
        one.close()
    result("whose places are free again", until(lambda: len(os.listdir("/proc/%d/fd" % job.controller.pid)) < 50))
    # its own frames, with another secret
    false = job.start([job.agents[0].args[0], "--host", "127.0.0.1", "--step", "0", "--node", "0", "--socket",
                       job.path(9), "--ranks", "0", "--total", "4", "--wait", "1"], secret(job.job, job.epoch + 1))
    rank = Rank(job.path(9), 0, 4).welcome()
    result("an agent without the secret", rank.error == GONE, rank.error)
    false.terminate()
    false.wait()
    # two ranks of one node, an agent each
    halves = [job.agent(0, 8, ranks="0", total=2)]
    rank = Rank(job.path(0, 8), 0, 2).welcome()
    halves.append(job.start([job.agents[0].args[0], "--host", "127.0.0.1", "--step", "8", "--node", "0", "--socket",
                             job.path(9, 8), "--ranks", "1", "--total", "2", "--wait", "1"], secret(job.job, job.epoch)))
    other = Rank(job.path(9, 8), 1, 2).welcome()
    result("a second connection of a node", rank.error == 0 and other.error == GONE, (rank.error, other.error, job.text()))
    for process in halves:
        process.terminate()
        process.wait()
    second = [job.agent(node, 7, ranks=str(node), total=2) for node in range(2)]
    ranks = [Rank(job.path(node, 7), node, 2).welcome() for node in range(2)]
    result("a second step at the same time needs no gates", all(rank.group([0, 1])[1:] == (0, FREE) for rank in ranks))
    errors, faults = trained(job, 1)
    result("and does not disturb the first", not errors and not faults, (errors, job.text()))
    job.controller.kill()
    result("nor needs the controller", job.ranks[0].letter()[0] == LOST and ranks[0].letter(0.5) is None
           and ranks[0].group([0, 1], 1)[1:] == (0, FREE))
    for process in second:
        process.terminate()
        process.wait()
    result("all end in good order", not job.end())


def main():
    tests = [test_training, test_windows, test_steps, test_troubles, test_deaths, test_stalls, test_seeks, test_turns, test_liars,
             test_many, test_doors]
    wanted = sys.argv[1:]
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="ocs-test-") as folder:
            test(folder)
    return end()


if __name__ == "__main__":
    sys.exit(main())
