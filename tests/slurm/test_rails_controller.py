# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The controller of a job on rails and the agents of its nodes, as spank_ocs starts them: steps whose tasks write
letters into their mailboxes, and circuits that follow."""
import os
import sys

import pytest

from test_rails import end, lit, nodes_of, owned, told

PEERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit", "rails")
# a task of pp:2,dp:2 with a node each: a send along the pipeline, and a ring in its stage
TASK = """
import os, select, sys, threading, time
sys.dont_write_bytecode = True
from rails_peers import Rank, WORD
me, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
class Hearing(Rank):
    # prints faults that it is to write, as they come
    lock, heard = threading.Lock(), threading.Event()
    def noted(self, word, text):
        if word[7] and word[2] == me:
            print("FAULT", text, flush=True)
        if word[7]:
            self.heard.set()
    def group(self, members):
        with self.lock:
            return super().group(members)
    def listen(self):
        while True:
            time.sleep(0.05)
            with self.lock:
                if not select.select([self.socket], [], [], 0)[0]:
                    continue
                data = self.socket.recv(65536)
                if not data:
                    return
                self.noted(WORD.unpack(data[:WORD.size]), data[WORD.size:].decode())
rank = Hearing(os.environ["OCS_RAILS_AGENT"], me, ranks).welcome()
threading.Thread(target=rank.listen, daemon=True).start()
stage, column = divmod(me, 2)
errors = [rank.error]
for turn in range(int(sys.argv[1])):
    if any(errors):
        break
    for members in ([column, 2 + column], [2 * stage, 2 * stage + 1], list(range(ranks))):
        group, error, need = rank.group(members)
        errors.append(error or rank.enter(group))
        rank.leave(group)
if any(errors):
    rank.heard.wait(30)
    time.sleep(0.5)
print("PROFILER", os.environ.get("NCCL_PROFILER_PLUGIN"), flush=True)
print("RANK", me, sorted(set(errors)), need, os.environ.get("LD_PRELOAD", "-"), flush=True)
rank.goodbye()
"""


@pytest.fixture(scope="module")
def rails(make_cluster):
    cluster = make_cluster(cubes=1, edge=2, tile=(2, 1, 1), rails=8, nrails=2, nic_ports=2, rail_xpus=2,
                           config={"AuthInfo": "cred_expire=5"})
    cluster.write("task.py", TASK)
    # beside it: other users may not reach this tree
    with open(os.path.join(PEERS, "rails_peers.py")) as handle:
        cluster.write("rails_peers.py", handle.read())
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def nothing_left(rails):
    yield
    rails.cancel_all()
    rails.until(lambda: not programs(rails), 20, lambda: programs(rails))


def programs(cluster):
    """{name: how many} of the programs of jobs, with the users that they have."""
    # of this PID namespace: another cluster has its own
    done = cluster.run(["ps", "-eo", "user:32,args"], check=False).stdout
    found = {}
    for line in done.splitlines():
        for name in ("ocs-rails-controller", "ocs-rails-agent"):
            if name + " --job" in line:
                found.setdefault((name, line.split()[0]), []).append(line)
    return {key: len(lines) for key, lines in found.items()}


def steps(cluster, count):
    return "srun -N4 --ntasks-per-node=1 %s %s %d" % (sys.executable, cluster.path("task.py"), count)


def ranks(text):
    return sorted(line for line in text.splitlines() if line.startswith("RANK"))


def test_steps(rails):
    """Two steps after each other: every operation is granted, circuits change, ocsd hears of it."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand", user="nobody",
                       script="%s; %s; echo STEPS; sleep 300" % (steps(rails, 5), steps(rails, 3)))
    rails.running(job)
    text = told(rails, job, lambda text: "STEPS" in text)
    lines = ranks(text)
    assert len(lines) == 8, text
    for line in lines:
        assert " [0] 0 " in line, text
    shown = rails.ocsctl("show", "phases", str(job))["phases"][0]
    # two rails, at least 2 * 8 - 2 changes each
    assert shown["changes"] >= 24 and shown["refused"] == 0, shown
    assert [rail["stands"] for rail in shown["rails"]] == ["11", "11"], shown
    # the step's agents are gone with it, the controller stays with the batch script
    rails.until(lambda: programs(rails) == {("ocs-rails-controller", "nobody"): 1}, 20, lambda: programs(rails))
    end(rails, job)


def test_no_gates(rails):
    """Tasks that send nothing through gates: ocsd is asked for nothing, and another program may be the controller."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand",
                       script="srun -N4 sleep 2; echo STEPS; sleep 300")
    rails.running(job)
    told(rails, job, lambda text: "STEPS" in text)
    shown = rails.ocsctl("show", "phases", str(job))["phases"][0]
    assert [rail["seq"] for rail in shown["rails"]] == [0, 0] and not shown["refused"], shown
    end(rails, job)


def test_preload(rails):
    """What the user preloads stays; shims come only if they are there and wanted."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=provisioned",
                       script="export LD_PRELOAD=libm.so.6; %s; OCS_RAILS_SHIMS=none %s; echo STEPS; sleep 300" % (
                           steps(rails, 2), steps(rails, 2)))
    rails.running(job)
    text = told(rails, job, lambda text: "STEPS" in text)
    lines = ranks(text)
    assert len(lines) == 8 and all(line.endswith("libm.so.6") and " [0] 0 " in line for line in lines), text
    assert sum(line.endswith(" libm.so.6") for line in lines) >= 4, text
    profilers = [line.split()[1] for line in text.splitlines() if line.startswith("PROFILER")]
    assert sorted(profilers) == [rails.stage + "/libexec/slurm-ocs/libocs-rails-profiler.so"] * 4 + ["None"] * 4, text
    end(rails, job)


def test_own_profiler(rails):
    """A profiler of the user's stays."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=provisioned",
                       script="export NCCL_PROFILER_PLUGIN=mine; %s; echo STEPS; sleep 300" % steps(rails, 1))
    rails.running(job)
    assert told(rails, job, lambda text: "STEPS" in text).count("PROFILER mine") == 4
    end(rails, job)


def test_steps_alone(rails):
    """Ten short steps without a batch step: each has a controller of its own, after that of the one before."""
    done = rails.run(["salloc", "-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand", "bash", "-c",
                      "for i in 1 2 3 4 5 6 7 8 9 10; do %s; done" % steps(rails, 1)], check=False, timeout=300)
    lines = ranks(done.stdout)
    assert len(lines) == 40 and all(" [0] 0 " in line for line in lines), done.stdout + done.stderr


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_rank_fails(rails, signal):
    """A rank is killed, or stopped, while circuits change: the others hear which one it is; once it goes on they do."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand",
                       "--export=ALL,OCS_RAILS_STALL=1", script="%s; echo STEPS; sleep 300" % steps(
                           rails, 100000 if signal == "KILL" else 100))
    rails.running(job)
    rails.until(lambda: rails.ocsctl("show", "phases", str(job))["phases"][0]["changes"] > 4, 60, "changes of topology")
    rails.run("for p in $(pgrep -f 'task.py [0-9]'); do grep -zqx SLURM_PROCID=2 /proc/$p/environ && "
              "kill -%s $p; done; true" % signal)
    if signal == "STOP":
        told(rails, job, lambda text: "FAULT rank 2 (node 2 of the job) " in text)
        rails.run("pkill -CONT -f 'task.py [0-9]'")
    text = told(rails, job, lambda text: "STEPS" in text)
    lines = ranks(text)
    if signal == "KILL":
        assert len(lines) == 3 and all("1]" in line for line in lines), text
        # its agent ends with the killed task, and may do so before it has said why
        assert text.count("FAULT rank 2 is gone without a goodbye") + \
            text.count("FAULT rank 2 is gone with its node or its agent") == 1, text
    else:
        assert len(lines) == 4 and all(" [0] " in line for line in lines), text
    end(rails, job)
    assert not lit(rails) and not owned(rails, job)


def test_killed_controller(rails):
    """It is killed in the middle of a step: every task hears of it, and nothing is left behind."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand",
                       script="%s; echo STEPS; sleep 300" % steps(rails, 100000))
    rails.running(job)
    rails.until(lambda: rails.ocsctl("show", "phases", str(job))["phases"][0]["changes"] > 4, 30, "changes of topology")
    rails.run(["pkill", "-KILL", "-f", "ocs-rails-controller --job %d " % job])
    text = told(rails, job, lambda text: "STEPS" in text)
    lines = ranks(text)
    assert len(lines) == 4 and all("100" in line for line in lines), text
    end(rails, job)


def test_cancel_in_a_change(rails):
    """scancel while circuits change: ports and circuits are free afterwards."""
    job = rails.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=provisioned",
                       script=steps(rails, 100000))
    rails.running(job)
    rails.until(lambda: rails.ocsctl("show", "phases", str(job))["phases"][0]["changes"] > 10, 30, "changes of topology")
    assert nodes_of(rails, job) and owned(rails, job)
    end(rails, job)
    assert not lit(rails)
