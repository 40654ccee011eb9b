#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The agent of a node that has no descriptors left, and what agent and controller write to the system's log.  TAP on
stdout."""
import os
import resource
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["OCS_SOURCE_DIR"], "tests/unit"))
from rails_peers import BUILD, GATED, GONE, KEY, LIMIT, RANK_LOST, Job, Rank, sleeps, until  # noqa: E402
from tap import end, result  # noqa: E402

RECORDER = os.path.join(BUILD, "tests/unit/.libs/syslog_preload.so")


def connect(job):
    """A connection to the agent of node 0 that says nothing."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.settimeout(LIMIT)
    one.connect("\0" + job.path(0)[1:])
    return one


def exhaust(job, most):
    """The agent of node 0, whose hard limit is MOST, may open nothing any more: the connections that took the last."""
    folder = "/proc/%d/fd" % job.agents[0].pid
    limit = max(map(int, os.listdir(folder))) + 1
    resource.prlimit(job.agents[0].pid, resource.RLIMIT_NOFILE, (limit, most))
    silent = []
    while len(os.listdir(folder)) < limit:
        count = len(os.listdir(folder))
        silent.append(connect(job))
        until(lambda: len(os.listdir(folder)) > count)
    return silent


def closed(one):
    """Whether the agent hangs up on ONE, and says no word before."""
    try:
        return one.recv(4096) == b""
    except ConnectionResetError:
        return True


def granted(ranks, at):
    """All RANKS reach an operation of them, and end it; the errors."""
    members = [rank.rank for rank in ranks]
    known = [rank.group(members) for rank in ranks]
    for rank, (group, _, _) in zip(ranks, known):
        rank.write(1, group, at)
    errors = [rank.letter()[1] for rank in ranks]
    for rank, (group, _, _) in zip(ranks, known):
        rank.write(2, group, at)
    return {*errors, *(error for _, error, _ in known)} | ({"free"} if known[0][2] != GATED else set())


def test_descriptors(folder):
    """Four ranks on one of two nodes: some find an agent that may open nothing any more."""
    job = Job(folder, nodes=2, extents=(2, 1))
    job.agents = [job.agent(0, ranks="0-3", total=5), job.agent(1, ranks="4", total=5)]
    job.ranks = {rank: Rank(job.path(rank // 4), rank, 5).welcome() for rank in (0, 4)}
    both = list(job.ranks.values())
    result("ranks send", granted(both, 0) == {0}, job.text())
    agent = job.agents[0]
    most = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)[1]
    silent = exhaust(job, most)
    result("no descriptor for a connection: it is closed", closed(connect(job)) and closed(connect(job)), job.text())
    before = len(os.listdir("/proc/%d/fd" % agent.pid))
    silent.pop().close()
    until(lambda: len(os.listdir("/proc/%d/fd" % agent.pid)) < before)
    result("none for a mailbox: the rank is refused", Rank(job.path(0), 2, 5).welcome().error == GONE, job.text())
    until(lambda: job.text().count("rank 2 is gone"))
    result("others send, and the agent sleeps", granted(both, 1) == {0} and until(lambda: sleeps(agent)), job.text())
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (most, most))
    for one in silent:
        one.close()
    job.ranks[1] = Rank(job.path(0), 1, 5).welcome()
    job.ranks[3] = Rank(job.path(0), 3, 5).welcome()
    result("with descriptors again ranks that come now are served", not job.ranks[1].error and not job.ranks[3].error, job.text())
    result("and they send", granted([job.ranks[1], job.ranks[3], job.ranks[4]], 0) == {0}, job.text())
    result("who was refused is gone for the others",
           [rank.enter(rank.group([0, 2, 4])[0]) for rank in both] == [RANK_LOST] * 2, job.text())
    result("all end in good order", not job.end())


def test_syslog(folder):
    """Faults of a step, as the system's log has them from both programs; none without --syslog."""
    path = os.path.join(folder, "log")
    os.environ.update(LD_PRELOAD=RECORDER, OCS_TEST_SYSLOG=path)
    try:
        quiet = Job(folder, nodes=2, extents=(2, 1))
        quiet.step()
        quiet.ranks[1].close()
        until(lambda: "rank 1 is gone" in quiet.text())
        result("nothing without --syslog", "rank 1 is gone" in quiet.text() and not os.path.exists(path), quiet.text())
        quiet.end()
        job = Job(folder, nodes=2, extents=(2, 1), controller=["--syslog"])
        job.agents = [job.agent(node, more=["--wait", "60", "--syslog"]) for node in range(2)]
        job.ranks = {rank: Rank(job.path(rank), rank, 2).welcome() for rank in range(2)}
    finally:
        del os.environ["LD_PRELOAD"], os.environ["OCS_TEST_SYSLOG"]

    def lines():
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as handle:
            return handle.read().splitlines()
    result("two ranks send", granted(list(job.ranks.values()), 0) == {0}, job.text())
    job.ranks[1].close()
    said = "daemon.notice ocs-rails-controller: job %d: rank 1 is gone" % job.job
    result("the controller's lines", until(lambda: said in lines()), (lines(), job.text()))
    job.controller.kill()
    said = "daemon.notice ocs-rails-agent: job %d: node 0, step 0: the connection to the controller is lost" % job.job
    result("and the agent's", until(lambda: [line for line in lines() if line.startswith(said)]), (lines(), job.text()))
    result("the same as on stderr", all(line.split(": ", 2)[2] in job.text() for line in lines()), (lines(), job.text()))
    result("and no key", KEY not in "".join(lines()))
    result("all end in good order", not job.end())


def main():
    for test in (test_descriptors, test_syslog):
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="ocs-test-") as folder:
            test(folder)
    return end()


if __name__ == "__main__":
    sys.exit(main())
