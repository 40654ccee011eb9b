# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What is broken is avoided from the next scheduling cycle on, takes out only the
placements that need it, and a running job that is hit gets what the policies say."""

import json
import os
import signal
import socket
import subprocess

import pytest

from cluster import tail

# Settings that let a test see a fault soon.
QUICK = ("poll: 5s,", "poll: 500ms, dark: 1s,")


@pytest.fixture(scope="module")
def small(make_cluster):
    """Four 2x2x2 cubes of two nodes, twelve switches."""
    return make_cluster(edge=2, config={"MinJobAge": "10"})


@pytest.fixture(autouse=True)
def whole(small):
    """Every test leaves all in order behind."""
    with open(small.yaml) as handle:
        before = handle.read()
    yield
    if not small.alive("slurmctld"):
        small.start_slurmctld()
    for name in sorted({patch[0] for patch in small.patches()} | {"ocs-x-0-0", "ocs-y-0-0"}):
        small.emulator("fault", name, "none")
        for port in range(1, 2 * small.cubes + 1):
            small.emulator("port", name, str(port), "good")
            small.emulator("port", name, str(small.switch_size() + port), "good")
    small.run("squeue -h -o %A | sort -u | xargs -r scancel", check=False)
    for node in small.nodes:
        small.run(["scontrol", "update", "NodeName=" + node, "State=RESUME"], check=False)
    for drain in small.ocsctl("show", "fabric").get("drains", []):
        small.run(["ocsctl", "resume", drain["kind"], drain["name"], "--fabric", small.yaml],
                  check=False)
    with open(small.yaml) as handle:
        if handle.read() != before:
            configure(small, before)
    small.cancel_all()
    small.until(lambda: not small.patches(), 30, "dark switches")


def starts(cluster):
    with open(cluster.path("ocsd.log"), errors="replace") as handle:
        return handle.read().count("ready: ")


def configure(cluster, text):
    """Gives ocsd and slurmctld TEXT as ocs.yaml, as the README says."""
    cluster.write("etc/ocs.yaml", text)
    cluster.run(["ocsctl", "check", cluster.yaml])
    before = starts(cluster)
    cluster.run(["pkill", "-HUP", "-x", "ocsd"])
    cluster.until(lambda: starts(cluster) > before, 30, "ocsd to start over")
    cluster.reconfigure()


def policies(cluster, words):
    with open(cluster.yaml) as handle:
        text = handle.read()
    configure(cluster, text.replace(*QUICK) + "policies: {%s}\n" % words)


def cubes(cluster, job):
    return set(cluster.placement(job)["cubes"])


def update(cluster, node, state):
    cluster.run(["scontrol", "update", "NodeName=" + node, "State=" + state, "Reason=test"])


def waits(cluster, job, *words):
    """The job stays pending, with a reason that has WORDS."""
    def said():
        fields = cluster.job(job)
        return fields["JobState"] == "PENDING" and all(w in fields["Reason"] for w in words)
    cluster.until(said, 20, lambda: "a job that waits for %s: %s" % (words, cluster.job(job)))


def test_nodes_down_drained_failing(small):
    """A cube with such a node takes no shape that needs the node; others do, and so does
    this one again once the node is back."""
    for node, state in (("n0", "DOWN"), ("n2", "DRAIN"), ("n4", "FAIL")):
        update(small, node, state)
    whole_cube = small.sbatch("--shape=2x2x2")
    small.running(whole_cube, 20)
    assert cubes(small, whole_cube) == {"c3"}
    parts = {}
    for job in [small.sbatch("--shape=2x2") for _ in range(3)]:
        parts[small.running(job, 20)["NodeList"]] = job
    assert set(parts) == {"n1", "n3", "n5"}
    second = small.sbatch("--shape=2x2x2")
    waits(small, second)
    # A node that is failing keeps the job that runs there.
    update(small, "n5", "FAIL")
    update(small, "n4", "RESUME")
    waits(small, second)
    small.run(["scancel", str(parts["n3"])])
    assert small.running(second, 20)["NodeList"] == "n[3-4]"
    assert small.state(parts["n5"]) == "RUNNING" and small.lit(second)


def test_switch_takes_out_what_needs_it(small):
    """Without a switch of the x axis a ring through two cubes goes along y, a shape that
    may not be turned waits, one within a cube starts."""
    small.ocsctl("drain", "switch", "ocs-x-0-0", "--reason", "dirty")
    turned = small.sbatch("--shape=4x2x2")
    small.running(turned, 20)
    assert {c["dim"] for c in small.placement(turned)["circuits"]} <= {"y", "z"}
    straight = small.sbatch("--shape=4x2x2", "--no-rotate", "--no-fold")
    waits(small, straight, "ocs-x-0-0")
    inside = small.sbatch("--shape=2x2x2")
    small.running(inside, 20)
    small.ocsctl("resume", "switch", "ocs-x-0-0")
    small.run(["scancel", str(turned)])
    small.running(straight, 20)
    assert small.lit(straight)


def test_port_takes_out_what_needs_it(small):
    """A port stands for one face position of one cube; the rest of the switch serves."""
    job = small.sbatch("--shape=4x2x2", "--no-rotate", "--no-fold")
    small.running(job)
    first = cubes(small, job)
    small.run(["scancel", str(job)])
    small.cancel_all()
    port = "ocs-x-1-1:%d" % (2 * int(min(first)[1:]) + 1)
    small.ocsctl("drain", "port", port, "--reason", "dirty")
    job = small.sbatch("--shape=4x2x2", "--no-rotate", "--no-fold")
    small.running(job, 20)
    assert min(first) not in cubes(small, job)
    assert any(c["dim"] == "x" and c["position"] == [1, 1]
               for c in small.placement(job)["circuits"])
    # What is left has one whole cube only: its x rings cannot be closed elsewhere.
    other = small.sbatch("--shape=4x2x2", "--no-rotate", "--no-fold")
    waits(small, other, port)
    inside = small.sbatch("--shape=2x2x2")
    small.running(inside, 20)
    small.run(["scancel", str(inside)])
    small.ocsctl("resume", "port", port)
    small.running(other, 20)


def test_cube_drained_and_resumed(small):
    for cube in ("c0", "c1", "c2"):
        small.ocsctl("drain", "cube", cube, "--reason", "water")
    first, second = [small.sbatch("--shape=2x2x2") for _ in range(2)]
    small.running(first, 20)
    assert cubes(small, first) == {"c3"}
    waits(small, second, "c0", "drained")
    small.ocsctl("resume", "cube", "c1")
    small.running(second, 20)
    assert cubes(small, second) == {"c1"}


def test_cube_with_a_dead_xpu(small):
    """An XPU is marked: its node serves no shape, the rest of its cube does."""
    for name in ("c0:0,1,0", "c1:1,1,1"):
        small.ocsctl("drain", "xpu", name, "--reason", "dead")
    assert "CUBE" in small.run(["ocsctl", "drain", "xpu", "c0", "--reason", "x", "--fabric",
                                small.yaml], check=False).stderr
    marked = {small.out(["scontrol", "show", "hostnames", "n[0-3]"]).split()[i] for i in (0, 3)}
    jobs = [small.sbatch("--shape=2x2") for _ in range(6)]
    used = {small.running(job, 20)["NodeList"] for job in jobs}
    assert len(used) == 6 and not used & marked, used
    waiting = small.sbatch("--shape=2x2")
    waits(small, waiting)
    small.ocsctl("resume", "xpu", "c0:0,1,0")
    small.running(waiting, 20)


def signal_to(cluster, name, daemon):
    """STOP or CONT; the nsenter that waits for the daemon stops with it."""
    if name == "CONT":
        subprocess.run(["pkill", "-CONT", "-f", "nsenter -t %d .* -- %s " % (
            cluster.init_pid, daemon)], check=False)
    cluster.run(["pkill", "-" + name, "-x", daemon])


def test_drained_between_choice_and_commit(small):
    """An XPU is drained while the commit of a job on its node is under way: ocsd refuses it,
    and the job is requeued with the reason, uncounted, and starts elsewhere."""
    probe = small.sbatch("--shape=2x2")
    node = small.running(probe)["NodeList"]
    small.run(["scancel", str(probe)])
    small.cancel_all()
    number = int(node[1:])
    name = "c%d:%d,0,0" % (number // 2, number % 2)
    with socket.socket(socket.AF_UNIX) as admin:
        admin.connect(small.path("ocsd.sock"))
        try:
            signal_to(small, "STOP", "slurmctld")
            # ocsd has read what slurmctld sent; Slurm, which does not answer, is not waited for.
            small.ocsctl("show", "fabric")
            signal_to(small, "STOP", "ocsd")
            admin.sendall(json.dumps({"op": "drain", "id": 1, "kind": "xpu", "name": name,
                                      "reason": "burnt"}).encode() + b"\n")
            signal_to(small, "CONT", "slurmctld")
            job = small.sbatch("--shape=2x2", "--requeue")
            small.until(lambda: small.job(job).get("NodeList") == node, 20, lambda: small.job(job))
        finally:
            for daemon in ("slurmctld", "ocsd"):
                signal_to(small, "CONT", daemon)
        comment(small, job, "ocs failure: xpu %s (node %s) is drained: burnt (requeued)" % (name, node))
        assert small.running(job)["NodeList"] != node
        assert small.job(job)["Restarts"] == "1"


# ---- under running jobs ----

TRAP = "trap 'echo batch' USR1; srun -n1 -N1 bash -c 'trap \"echo step\" USR1; touch %s; " \
       "for i in {1..600}; do sleep 0.1; done' & wait; wait; sleep 300"


def pair(cluster, *arguments):
    """A job with circuits between two cubes, one with none that it shares, both running."""
    armed = cluster.path("out", "armed")
    if os.path.exists(armed):
        os.unlink(armed)
    job = cluster.sbatch("--shape=4x2x2", *arguments, script=TRAP % armed)
    cluster.running(job)
    bystander = cluster.sbatch("--shape=4x2x2", "--requeue")
    cluster.running(bystander)
    cluster.until(lambda: os.path.exists(armed), 20, "the step")
    return job, bystander


def traps(cluster, job):
    """Who got the signal."""
    told = tail(cluster.path("out", "%d.out" % job), 1000)
    return [line for line in told.split("\n") if line in ("step", "batch")]


def comment(cluster, job, *words, seconds=30):
    """Waits until the job's AdminComment has all of WORDS; it."""
    def said():
        text = cluster.job(job).get("AdminComment", "")
        return text if all(word in text for word in words) else None
    return cluster.until(said, seconds, lambda: "a comment with %s: %s" % (
        words, cluster.job(job)))


def untouched(cluster, job):
    fields = cluster.job(job)
    assert (fields["JobState"], fields["Restarts"]) == ("RUNNING", "0")
    assert "ocs failure" not in fields.get("AdminComment", "")
    assert "ocs circuits" not in fields.get("AdminComment", "")


def steal(cluster, job, node=None):
    """Somebody patches one of the job's ports elsewhere by hand; how to undo it."""
    patch = sorted(cluster.circuit_patches(cluster.placement(job, node)))[0]
    foreign = [patch[0], str(patch[1]), str(2 * cluster.switch_size())]
    cluster.emulator("patch", *foreign)
    return lambda: cluster.emulator("unpatch", *foreign[:2])


def test_policy_requeue(small):
    policies(small, "circuit_failed: requeue, requeue_limit: 3")
    job, bystander = pair(small, "--requeue")
    before = small.job(job)["NodeList"]
    undo = steal(small, job)
    try:
        small.until(lambda: small.job(job).get("Restarts") == "1", 30, "the requeue")
        comment(small, job, "ocs failure: a circuit at switch", "attempt 1 of 3, requeued")
    finally:
        undo()
    untouched(small, bystander)
    small.running(job, 60)
    assert small.job(job)["Restarts"] == "1" and before
    assert small.lit(job)


def test_policy_signal(small):
    """The steps get the signal once, the job runs on, and learns that all is well again."""
    policies(small, "circuit_failed: signal, signal: USR1")
    job, bystander = pair(small)
    held = small.patches()
    undo = steal(small, job)
    try:
        comment(small, job, "ocs circuits: a circuit at switch", "it was sent SIGUSR1")
        small.until(lambda: traps(small, job), 20, "the signal")
    finally:
        undo()
    comment(small, job, "ocs circuits: all there again")
    small.until(lambda: small.patches() == held, 20, "the circuit to be restored")
    assert small.state(job) == "RUNNING"
    assert traps(small, job) == ["step"]
    untouched(small, bystander)


def test_policy_signal_to_the_batch_shell(small):
    """A port goes dark; with B: the script is told, too."""
    policies(small, "circuit_failed: signal, signal: 'B:SIGUSR1'")
    job, bystander = pair(small)
    switch, ingress, _ = sorted(small.circuit_patches(small.placement(job)))[0]
    name = "%s:%d" % (switch, ingress)
    for _ in range(2):
        small.ocsctl("reconcile")       # ocsd has seen it lit
    assert "loss" in small.ocsctl("show", "port", name)["ports"][0]
    small.emulator("port", switch, str(ingress), "fail")
    comment(small, job, "ocs circuits: a circuit at switch " + switch, "SIGUSR1")
    small.until(lambda: sorted(traps(small, job)) == ["batch", "step"], 20, "both signals")
    untouched(small, bystander)
    assert small.state(job) == "RUNNING"
    # The port is out of service for others until somebody has looked.
    drained = [d["name"] for d in small.ocsctl("show", "fabric")["drains"]]
    assert name in drained, drained
    small.emulator("port", switch, str(ingress), "good")
    for name in drained:
        small.ocsctl("resume", "port", name)
    comment(small, job, "all there again")


def test_policy_cancel(small):
    policies(small, "circuit_failed: cancel")
    job, bystander = pair(small, "--requeue")
    undo = steal(small, job)
    try:
        small.wait(job, "CANCELLED", 30)
        comment(small, job, "ocs failure: a circuit at switch")
    finally:
        undo()
    untouched(small, bystander)


def test_policy_ignore(small):
    """The comment is all."""
    policies(small, "circuit_failed: ignore")
    job, bystander = pair(small, "--requeue")
    undo = steal(small, job)
    try:
        comment(small, job, "ocs circuits: a circuit at switch", "(it runs on)")
    finally:
        undo()
    comment(small, job, "all there again")
    assert small.job(job)["Restarts"] == "0"
    assert not os.path.getsize(small.path("out", "%d.out" % job))
    untouched(small, bystander)


def test_silent_switch_under_a_running_job(small):
    """That a switch does not answer is no proof that its circuits are dark: the jobs with
    circuits there are told, or what switch_failed says."""
    policies(small, "switch_failed: signal")
    job, bystander = pair(small)
    used = {patch[0] for patch in small.circuit_patches(small.placement(job))}
    used -= {patch[0] for patch in small.circuit_patches(small.placement(bystander))}
    if not used:        # both along the same axis: they share switches
        used = {"ocs-%s-0-0" % small.placement(job)["circuits"][0]["dim"]}
        bystander = None
    switch = sorted(used)[0]
    small.emulator("fault", switch, "silent")
    said = comment(small, job, "ocs circuits: switch %s failed" % switch, "SIGUSR1")
    assert said.count("switch " + switch) == 1, said
    small.emulator("fault", switch, "none")
    comment(small, job, "all there again")
    assert small.state(job) == "RUNNING"
    if bystander:
        untouched(small, bystander)


def test_told_again_after_slurmctld_was_away(small):
    """What failed while slurmctld was away is acted on when it is back, once."""
    policies(small, "circuit_failed: signal")
    job, bystander = pair(small)
    node = small.job(job)["BatchHost"]
    small.kill("slurmctld", signal.SIGTERM)
    undo = steal(small, job, node)
    try:
        small.until(lambda: small.ocsctl("show", "job", str(job))["jobs"][0]["state"] ==
                    "degraded", 20, "ocsd to see it")
        small.start_slurmctld()
        comment(small, job, "it was sent SIGUSR1")
        small.kill("slurmctld", signal.SIGTERM)
        small.start_slurmctld()
        small.until(lambda: "connected to ocsd" in open(small.path("slurmctld.log")).read()
                    .rsplit("slurmctld version", 1)[-1], 20, "ocsd to be heard")
    finally:
        undo()
    comment(small, job, "all there again")
    assert traps(small, job) == ["step"]
    untouched(small, bystander)


# ---- ocs.yaml changed while jobs run ----

def reread(cluster, text):
    """`scontrol reconfigure` with TEXT as ocs.yaml; what slurmctld logs of it."""
    with open(cluster.path("slurmctld.log")) as handle:
        before = len(handle.read())
    cluster.write("etc/ocs.yaml", text)
    cluster.reconfigure()

    def again():
        with open(cluster.path("slurmctld.log")) as handle:
            news = handle.read()[before:]
        return news if "connected to ocsd" in news else None
    return cluster.until(again, 30, lambda: "slurmctld to be back: %s\n%s" % (
        cluster.run(["scontrol", "ping"], check=False).stdout,
        open(cluster.path("slurmctld.err")).read()[-2000:]))


def test_broken_file_at_reconfigure(small):
    """slurmctld -D has no process left that could go on: it goes back to its copy."""
    job = small.sbatch("--shape=4x2x2")
    small.running(job)
    with open(small.yaml) as handle:
        good = handle.read()
    news = reread(small, good.replace("cube: 2x2x2", "cube: 2x2x"))
    assert "ocs.yaml:" in news and "what was read before is kept" in news
    # Shapes are taken as before; a prolog waits until the file can be read again.
    second = small.sbatch("--shape=4x2x2")
    small.until(lambda: small.job(second)["Reason"] == "Prolog", 20, lambda: small.job(second))
    node = small.job(second)["BatchHost"]
    small.until(lambda: "waits until it can be read" in small.out(
        ["cat", small.path("log", "slurmd.%s.log" % node)]), 20, "the prolog to say so")
    small.write("etc/ocs.yaml", good)
    small.running(second, 20)
    assert "drain" not in small.out(["sinfo", "-h", "-N", "-o", "%T"])
    assert small.state(job) == "RUNNING" and small.lit(job) and small.lit(second)
    assert "kept" not in reread(small, good)


def test_change_that_contradicts_a_running_job(small):
    """Cubes change places under a job: slurmctld names the job and keeps what it has."""
    job = small.sbatch("--shape=2x2x2")
    small.running(job)
    with open(small.yaml) as handle:
        good = handle.read()
    name = small.placement(job)["cubes"][0]
    first, last = [[text for text in good.splitlines() if "name: " + cube in text][0]
                   for cube in (name, "c3")]
    assert first != last
    news = reread(small, good.replace(first, "@").replace(last, first).replace("@", last))
    assert "job %d uses cube %s" % (job, name) in news and "is kept" in news
    second = small.sbatch("--shape=2x2x2")
    small.running(second, 20)       # ocsd and slurmctld agree: on the old one
    small.run(["scancel", str(job), str(second)])
    small.cancel_all()
    # With nobody on it, it may change.
    assert "is kept" not in reread(small, good)


def test_check_names_an_older_file(small):
    """ocsctl check says that slurmctld runs with another ocs.yaml than the one that is there."""
    def checked():
        text = small.run(["ocsctl", "check"], env={"OCS_CONF": small.yaml}, check=False).stdout
        return "".join(line for line in text.splitlines() if line.startswith("slurmctld: "))

    with open(small.yaml) as handle:
        good = handle.read()
    assert not checked()
    reread(small, good.replace("cube: 2x2x2", "cube: 2x2x"))
    small.write("etc/ocs.yaml", good)
    # It kept just this one.
    assert not checked()
    changed = good + "policies: {circuit_failed: ignore}\n"
    small.write("etc/ocs.yaml", changed)
    kept = small.path("state", "ocs.yaml")
    told = checked()
    assert "note: has read another text of ocs.yaml (%s)" % kept in told, told
    small.write("etc/ocs.yaml", good.replace("{name: c3, ", "{name: c9, "))
    told = checked()
    assert "runs with other cubes" in told and kept in told, told
    reread(small, changed)
    assert not checked()
    reread(small, good)


def test_added_cube(small):
    """A cube is added to a machine that is full of running jobs."""
    with open(small.yaml) as handle:
        good = handle.read()
    line = [text for text in good.splitlines() if "name: c3" in text][0] + "\n"
    configure(small, good.replace(line, ""))
    jobs = [small.sbatch("--shape=2x2x2") for _ in range(4)]
    for job in jobs[:3]:
        small.running(job, 20)
    waits(small, jobs[3])
    configure(small, good)
    small.running(jobs[3], 30)
    assert cubes(small, jobs[3]) == {"c3"}
    assert [small.state(job) for job in jobs] == ["RUNNING"] * 4


# ---- upgrades ----

def test_placement_of_a_newer_version(small):
    """slurmctld of an older slurm-ocs finds a placement that it cannot read: one line; the
    job runs on with its circuits, others start, and its end cuts them."""
    job = small.sbatch("--shape=4x2x2")
    small.running(job)
    held = small.patches()
    small.kill("slurmctld", signal.SIGTERM)
    path = small.path("state", "job_state")
    with open(path, "rb") as handle:
        state = handle.read()
    assert b"OCS_PLACEMENT=p1:4x2x2" in state
    with open(path, "wb") as handle:
        handle.write(state.replace(b"OCS_PLACEMENT=p1:", b"OCS_PLACEMENT=p9:"))
    with open(small.path("slurmctld.log")) as handle:
        before = len(handle.read())
    small.start_slurmctld()
    other = small.sbatch("--shape=4x2x2")
    small.running(other)
    with open(small.path("slurmctld.log")) as handle:
        lines = [line for line in handle.read()[before:].splitlines() if "version p9" in line]
    assert len(lines) == 1 and "JobId=%d" % job in lines[0] and "reads p1" in lines[0]
    assert small.state(job) == "RUNNING" and held <= small.patches()
    small.run(["scancel", str(job)])
    small.until(lambda: not held & small.patches(), 30, "its circuits to go")
    assert small.lit(other)


# ---- what is left behind ----

def test_folder_of_a_forgotten_job(small):
    """slurmctld was killed and knows a job no more whose epilog never came: its folder goes
    with the next prolog on the node; that of a job which is there, or newer, stays."""
    node = "n0"
    plain = small.sbatch("-N1", "-n1", "-w", "n7")
    small.running(plain)
    small.leave_job_dirs(node, {"4000001": 17, "4000002": 2 ** 62, "4000003": 0})
    job = small.sbatch("--shape=2x2", "-w", node)
    small.running(job)
    assert small.job_dirs(node) == {str(job), "4000002", "4000003"}
    small.run(["scancel", str(job), str(plain)])
    small.run("rm -rf %s %s" % (small.job_dir(node, 4000002), small.job_dir(node, 4000003)))
