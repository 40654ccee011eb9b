# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Nothing of a job with circuits runs before they are verified and every node has asked for them."""

import os
import re
import signal
import subprocess
import time

import pytest

from cluster import Cluster
from conftest import living

SHAPE = "--shape=4x2x2"     # all four nodes
NODES = ["n0", "n1", "n2", "n3"]


class Patchy(Cluster):
    """The slurmds of nodes in `bare` read a plugstack.conf without our line."""
    bare = ()

    def configure(self):
        super().configure()
        self.write("etc/plugstack.bare", "")
        for name in os.listdir(self.path("etc-slurmd")):
            with open(self.path("etc-slurmd", name), "rb") as handle:
                text = handle.read()
            path = self.path("etc-bare", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as handle:
                handle.write(text.replace(b"etc/plugstack.conf", b"etc/plugstack.bare"))
            os.chmod(path, 0o600 if name == "slurm.key" else 0o644)

    def start_slurmd(self, name):
        if name not in self.bare:
            super().start_slurmd(name)
            return
        conf = self.path("etc-bare", "slurm.conf")
        self.spawn(["slurmd", "-D", "-N", name, "-f", conf], self.path("log", "slurmd.%s.err" % name),
                   env={"SLURM_CONF": conf, "SLURMD_NODENAME": name})

    def restart_slurmds(self, bare):
        self.bare = bare
        for name in NODES:
            self.stop_slurmd(name, signal.SIGTERM)
        self.until(lambda: not self.alive("slurmd"), 20, "all slurmds to end")
        for name in NODES:
            self.start_slurmd(name)
        self.wait_idle()

    def pause(self, name, signum=signal.SIGSTOP):
        """A slurmd that does not read what it is told."""
        self.stop_slurmd(name, signum)

    def drained(self):
        return {row["name"] for row in self.ocsctl("show", "fabric")["drains"] if row["kind"] == "node"}

    def unheard(self, job):
        rows = [row for row in self.ocsctl("show", "job")["jobs"] if row["job"] == job]
        return rows[0].get("unheard") if rows else None


def make(**options):
    return living(Patchy, edge=2, cubes=2, delay_ms=1, **options)


@pytest.fixture(scope="module")
def patchy():
    with make() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def hasty():
    """With NoHold Slurm itself waits for no prolog."""
    with make(config={"PrologFlags": "Alloc,DeferBatch,NoHold"}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def over(request):
    yield
    for name in ("patchy", "hasty"):
        if name not in request.fixturenames:
            continue
        cluster = request.getfixturevalue(name)
        for node in NODES:
            cluster.pause(node, signal.SIGCONT)
        cluster.run("squeue -h -o %A | sort -u | xargs -r scancel", check=False)
        if cluster.bare:
            cluster.restart_slurmds(())
        for node in cluster.drained():
            cluster.run(["ocsctl", "resume", "node", node, "--fabric", cluster.yaml])
        cluster.cancel_all()
        cluster.until(lambda: not cluster.patches(), 30, "dark switches")
        cluster.until(lambda: not cluster.ocsctl("show", "job")["jobs"], 30, "ports to be free")


def lit(cluster):
    return len(cluster.patches()) == 16


def tell(cluster, name):
    """A command that leaves the file NAME, and whether it has."""
    path = cluster.path("out", name)
    if os.path.exists(path):
        os.unlink(path)
    return "touch " + path, lambda: os.path.exists(path)


def test_node_without_the_plugin(patchy):
    """The job leaves it with a comment that names it; it takes no shapes until it answers."""
    patchy.restart_slurmds(("n3",))
    command, ran = tell(patchy, "patchy.ran")
    job = patchy.sbatch(SHAPE, script=command + "; echo $SLURM_OCS_SHAPE")
    patchy.until(lambda: patchy.job(job).get("Restarts") == "1", 30, lambda: patchy.job(job))
    assert "n3 did not ask ocsd for circuits" in patchy.job(job)["AdminComment"], patchy.job(job)
    assert patchy.drained() == {"n3"} and not ran()
    patchy.until(lambda: "node n3 drained: unheard" in patchy.out(
        ["squeue", "-h", "-j", str(job), "-o", "%r %R"]) + patchy.out(["scontrol", "show", "job", str(job)]) +
        patchy.out(["ocsctl", "explain", str(job), "--fabric", patchy.yaml]), 30,
        lambda: patchy.out(["ocsctl", "explain", str(job), "--fabric", patchy.yaml]))
    # Drained for shapes only.
    assert patchy.wait(patchy.sbatch("-N1", "-w", "n3", script="true")) == "COMPLETED"
    assert patchy.wait(patchy.sbatch("--shape=2x2x2", script="true")) == "COMPLETED"
    assert not ran()
    patchy.restart_slurmds(())
    patchy.until(lambda: not patchy.drained(), 20, "n3 to be heard of")
    assert patchy.output(job, 60).strip() == "4x2x2" and ran()


def test_no_node_has_the_plugin(patchy):
    """Who waits at a terminal is told which nodes are to blame."""
    patchy.restart_slurmds(NODES)
    command, ran = tell(patchy, "bare.ran")
    for program in ("salloc", "srun"):
        done = patchy.run([program, SHAPE] + command.split(), check=False, timeout=60)
        assert done.returncode and "n[0-3] did not ask" in done.stderr, done.stderr
        assert not ran() and patchy.drained() == set(NODES)
        patchy.cancel_all()
        for node in NODES:
            patchy.run(["ocsctl", "resume", "node", node, "--fabric", patchy.yaml])
    # Within a cube there are no circuits, and nodes lack the files and variables just the same.
    job = patchy.sbatch("--shape=2x2x2", script=command)
    patchy.until(lambda: "did not ask" in patchy.job(job).get("AdminComment", ""), 30,
                 lambda: patchy.job(job))
    assert not ran()


def test_check_finds_nodes_without_the_plugin():
    class Bare(Patchy):
        bare = ("n1", "n2")
    with living(Bare, edge=2, cubes=2, delay_ms=1) as cluster:
        def checked():
            return cluster.run(["ocsctl", "check"], check=False, env={"OCS_CONF": cluster.yaml})
        cluster.until(lambda: "n[1-2]" in checked().stdout, 30, lambda: checked().stdout + checked().stderr)
        done = checked()
        assert re.search(r"nodes n\[1-2\] have never been heard of", done.stdout), done.stdout
        cluster.restart_slurmds(())
        cluster.until(lambda: "heard of" not in checked().stdout, 30, lambda: checked().stdout)


@pytest.mark.parametrize("program", ["sbatch", "salloc", "srun"])
def test_late_answer(hasty, program):
    """Everything waits for the last node, and then starts."""
    command, ran = tell(hasty, "late.ran")
    hasty.pause("n3")
    if program == "sbatch":
        job = hasty.sbatch(SHAPE, script=command + "; sleep 300")
    else:
        # A child of the shell that is killed while it forks would keep srun's output open for a minute.
        started = hasty.spawn([program] + ["-K"] * (program == "salloc") +
                              [SHAPE, "sh", "-c", command + "; exec sleep 300"],
                              hasty.path("late.err"))
        job = int(hasty.until(lambda: hasty.out(["squeue", "-h", "-o", "%A"]).strip(), 20, "a job"))
    hasty.until(lambda: hasty.unheard(job) == "n3", 20, lambda: hasty.unheard(job))
    hasty.until(lambda: lit(hasty), 20, "circuits")
    assert "for n3 to ask" in hasty.out(["ocsctl", "explain", str(job), "--fabric", hasty.yaml])
    # A step from outside waits as well.
    step, stepped = tell(hasty, "step.ran")
    outside = hasty.spawn(["srun", "--jobid=%d" % job, "-N1", "-n1", "--overlap"] + step.split(),
                          hasty.path("step.err"))
    with pytest.raises(subprocess.TimeoutExpired):
        outside.wait(2)
    assert not ran() and not stepped()
    hasty.pause("n3", signal.SIGCONT)
    hasty.until(ran, 30, lambda: hasty.job(job))
    if program == "sbatch":
        hasty.until(stepped, 30, lambda: "a step: " + open(hasty.path("step.err")).read())
    assert hasty.job(job)["Restarts"] == "0"
    hasty.run(["scancel", str(job)])
    outside.wait(30)
    if program != "sbatch":
        started.wait(30)


@pytest.mark.parametrize("how", ["killed", "restarted", "reconfigured"])
def test_slurmctld_goes_while_it_holds_a_job(hasty, how):
    command, ran = tell(hasty, "again.ran")
    hasty.pause("n3")
    waiting = hasty.spawn(["salloc", "-K", SHAPE, "sh", "-c", command + "; sleep 300"],
                          hasty.path("again.err"))
    job = int(hasty.until(lambda: hasty.out(["squeue", "-h", "-o", "%A"]).strip(), 20, "a job"))
    hasty.until(lambda: hasty.unheard(job) == "n3", 20, lambda: hasty.unheard(job))
    if how == "reconfigured":
        hasty.run(["timeout", "40", "scontrol", "reconfigure"], check=False)
        hasty.wait_for_slurmctld()
    else:
        if how == "killed":
            hasty.saved(job)
        hasty.kill("slurmctld", signal.SIGKILL if how == "killed" else signal.SIGTERM)
        hasty.start_slurmctld()
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(4)
    assert not ran()
    hasty.pause("n3", signal.SIGCONT)
    hasty.until(ran, 60, lambda: hasty.job(job))
    assert lit(hasty)
    hasty.run(["scancel", str(job)])
    waiting.wait(30)


def test_ocsd_restarts_while_a_job_is_held(hasty):
    hasty.emulator("fault", "ocs-x-0-0", "slow", "700")
    try:
        command, ran = tell(hasty, "ocsd.ran")
        job = hasty.sbatch(SHAPE, script=command + "; sleep 300")
        hasty.until(lambda: hasty.unheard(job) == "", 20, lambda: hasty.unheard(job))
        assert not ran()
        hasty.kill("ocsd")
        hasty.start_ocsd()
    finally:
        hasty.emulator("fault", "ocs-x-0-0", "none")
    hasty.until(ran, 60, lambda: hasty.job(job))
    assert lit(hasty) and hasty.job(job)["Restarts"] == "0", hasty.job(job)


@pytest.mark.parametrize("how", [["scancel"], ["scontrol", "requeue"]])
def test_job_that_is_held_goes(hasty, how):
    """Every node that ran a prolog runs an epilog; nothing is held for ever."""
    command, ran = tell(hasty, "gone.ran")
    hasty.pause("n3")
    job = hasty.sbatch(SHAPE, script=command)
    hasty.until(lambda: hasty.unheard(job) == "n3" and lit(hasty), 20, lambda: hasty.unheard(job))
    time.sleep(2)       # for the prolog of n0 to end, and a script that nothing holds to start
    assert not ran()
    hasty.run(how + [str(job)])
    hasty.pause("n3", signal.SIGCONT)
    if how == ["scancel"]:
        hasty.wait(job, "CANCELLED")
        hasty.until(lambda: not hasty.patches(), 30, "dark switches")
        assert not ran()
    else:
        assert hasty.wait(job, "COMPLETED", 90) and hasty.job(job)["Restarts"] == "1"
    for node in NODES:
        hasty.until(lambda: str(job) not in hasty.job_dirs(node), 30, "the epilog of " + node)
    assert hasty.wait(hasty.sbatch(SHAPE, script="true")) == "COMPLETED"


def test_steps_that_are_made_on_the_first_node():
    """With a stepmgr, from a copy of the job that the prolog takes along."""
    with make(config={"PrologFlags": "Alloc,DeferBatch,Contain",
                      "SlurmctldParameters": "enable_stepmgr"}) as cluster:
        job = cluster.sbatch(SHAPE, "--stepmgr", script="srun -n4 -N4 printenv SLURM_OCS_SHAPE")
        assert cluster.output(job).split() == ["4x2x2"] * 4
        assert cluster.out(["salloc", "-Q", SHAPE, "--stepmgr", "srun", "-n4", "-N4", "printenv",
                            "SLURM_OCS_SHAPE"]).split() == ["4x2x2"] * 4
