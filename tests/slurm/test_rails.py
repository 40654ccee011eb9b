# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs with shapes on rails: two XPUs a server, two rails, two ports per NIC."""

import itertools
import os
import shutil
import tempfile

import pytest

NAMES = "env | grep '^SLURM_OCS' | sort; "
TELL = "bash -c 'echo TASK $SLURM_PROCID $SLURMD_NODENAME $SLURM_OCS_COORD $SLURM_OCS_DEVICES'"


@pytest.fixture(scope="module")
def rails(make_cluster):
    program = tempfile.mkdtemp(prefix="ocs-test-") + "/controller"
    cluster = make_cluster(cubes=1, edge=2, tile=(2, 1, 1), rails=8, nrails=2, nic_ports=2, rail_xpus=2,
                           config={"AuthInfo": "cred_expire=5"}, spank=("controller=" + program,))
    os.chmod(os.path.dirname(program), 0o755)
    # stands in for the controller: says who and where it is, and sleeps
    with open(program, "w") as handle:
        handle.write("""#!/bin/bash
cd %s
{ echo "$(id -u):$(id -g) $(basename ${SLURM_OCS_DIR%%/*}) $SLURM_OCS_DIMENSIONS $SLURM_OCS_PHASES $(wc -c <$SLURM_OCS_DIR/rails.key)"
flock -n $SLURM_OCS_DIR/rails.key true && echo unlocked
ls /proc/$$/fd; } >$SLURM_JOB_ID.$$.controller
exec sleep 12345
""" % cluster.path("out"))
    os.chmod(program, 0o755)
    yield cluster
    cluster.stop()
    shutil.rmtree(os.path.dirname(program))


@pytest.fixture(autouse=True)
def nothing_left(rails):
    yield
    rails.cancel_all()


def told(cluster, job, what):
    """The output of a running job, when WHAT says that it is there."""
    text = ""

    def there():
        nonlocal text
        with open(cluster.path("out", "%d.out" % job)) as handle:
            text = handle.read()
        return what(text)
    cluster.until(lambda: os.path.exists(cluster.path("out", "%d.out" % job)) and there(), 30, lambda: text)
    return text


def shaped(cluster, shape, *words, **options):
    return cluster.sbatch("-p", "rails", "--shape=" + shape, *words, **options)


def nodes_of(cluster, job):
    return cluster.out(["scontrol", "show", "hostnames", cluster.job(job)["NodeList"]]).split()


def owned(cluster, job):
    return {(port["switch"], port["port"]) for port in cluster.ocsctl("show", "port")["ports"]
            if port.get("owner") == job}


def ports_of(nodes):
    return {("rail-%d" % rail, 2 * int(node[1:]) + port) for rail in range(2) for node in nodes
            for port in (1, 2)}


def circuits(nodes, rings):
    """The patches of rings of NODES (lists of their numbers), port 1 to port 0 of the next one, on both rails."""
    found = set()
    for ring in rings:
        for here, there in zip(ring, ring[1:] + ring[:1]):
            a, b = 2 * int(nodes[here][1:]) + 2, 2 * int(nodes[there][1:]) + 1
            found |= {("rail-%d" % rail, x, 16 + y) for rail in range(2) for x, y in ((a, b), (b, a))}
    return found


def lit(cluster):
    return {patch for patch in cluster.patches() if patch[0].startswith("rail")}


def end(cluster, job):
    cluster.run(["scancel", str(job)])
    cluster.until(lambda: not owned(cluster, job), 30, "the ports of job %d to be free" % job)
    cluster.until(lambda: not lit(cluster), 30, "the circuits of job %d to go" % job)


def ask(cluster, *words, env=None):
    return cluster.run(["sbatch", "--test-only", "-o", "/dev/null", *words, "--wrap", "true"], check=False,
                       env=env)


def test_names_nodes_and_ranks(rails):
    """Node i has coordinate i of the dimensions over nodes, and the XPUs of the last one."""
    job = shaped(rails, "pp:2,dp:3,tp:2", "--ocs-phases=off",
                 script=NAMES + "srun " + TELL + "; cat $SLURM_OCS_DIR/hostfile | sed 's/^/HOST /'; sleep 300")
    fields = rails.running(job)
    assert fields["NumNodes"] == "6" and fields["NumTasks"] == "12"
    assert fields["Extra"].strip() == "shape=pp:2,dp:3,tp:2"
    assert "ocs: shape=pp:2,dp:3,tp:2 xpus=12 idle=0 nodes=6" in fields["AdminComment"]
    nodes = nodes_of(rails, job)
    assert owned(rails, job) == ports_of(nodes)
    # nothing changes them, so they reach every node
    assert lit(rails) == circuits(nodes, [list(range(6))])
    text = told(rails, job, lambda text: text.count("HOST") == 12).splitlines()
    assert "SLURM_OCS_SHAPE=2x3x2" in text and "SLURM_OCS_DIMENSIONS=pp:2,dp:3,tp:2" in text
    assert not [line for line in text if line.startswith("SLURM_OCS_PHASES")]
    order = itertools.product(range(2), range(3), range(2))
    wanted = ["TASK %d %s %d,%d,%d %d" % (rank, nodes[rank // 2], *at, rank % 2)
              for rank, at in enumerate(order)]
    assert sorted((line for line in text if line.startswith("TASK")), key=lambda line: int(line.split()[1])) == wanted
    assert [line for line in text if line.startswith("HOST")] == ["HOST " + nodes[r // 2] for r in range(12)]
    text = rails.out(["ocsctl", "explain", str(job), "--fabric", rails.yaml])
    assert "pp:2,dp:3,tp:2" in text and "phases:   off, circuits stay as they are; rails 0-1 on ring" in text
    end(rails, job)


def test_the_first_topology(rails):
    """Stands before the job starts: the rings of the last dimension over nodes in both stages.  Only the user reads
    the key, on the first node."""
    job = shaped(rails, "pp:2,dp:3,tp:2", "--ocs-phases=on-demand", user="nobody",
                 script=NAMES + "test -r $SLURM_OCS_DIR/rails.key && echo READ; sleep 300")
    rails.running(job)
    nodes = nodes_of(rails, job)
    assert lit(rails) == circuits(nodes, [[0, 1, 2], [3, 4, 5]])
    assert "SLURM_OCS_PHASES=on-demand" in told(rails, job, lambda text: "READ" in text)
    keys = [rails.run(["stat", "-c", "%a %U", rails.job_dir(node, job) + "/rails.key"], check=False).stdout
            for node in nodes]
    assert keys == ["400 nobody\n"] + [""] * 5
    assert "phases=on-demand" in rails.job(job)["AdminComment"]
    assert "phases:   on-demand; rails 0-1 on 11" in rails.out(["ocsctl", "explain", str(job), "--fabric", rails.yaml])
    shown = rails.ocsctl("show", "phases", str(job))["phases"][0]
    assert shown["mode"] == "on-demand" and shown["extents"] == [2, 3] and shown["asymmetric"] == 0
    assert [rail["stands"] for rail in shown["rails"]] == ["11", "11"]
    text = rails.out(["ocsctl", "show", "phases", str(job), "--fabric", rails.yaml])
    assert "phases on-demand; 2 x 3 nodes, stages along dimension 1" in text and "rail-1" in text
    end(rails, job)


def controllers(cluster, job):
    """{process: what it says} of the controllers that were started for a job."""
    found = {}
    for name in os.listdir(cluster.path("out")):
        if name.startswith("%d." % job) and name.endswith(".controller"):
            with open(cluster.path("out", name)) as handle:
                found[int(name.split(".")[1])] = handle.read()
    return found


def sleepers(cluster):
    return cluster.run(["pgrep", "-f", "^sleep 12345"], check=False).stdout.split()


def test_the_controller(rails):
    """One for a job, on its first node, as its user; it ends with the job, however that ends."""
    job = shaped(rails, "pp:2,dp:2,tp:2", "--ocs-phases=provisioned", user="nobody",
                 script="srun true; srun true; echo STEPS; sleep 300")
    rails.running(job)
    told(rails, job, lambda text: "STEPS" in text)
    rails.until(lambda: [text for text in controllers(rails, job).values() if text.count("\n") > 3], 20,
                lambda: controllers(rails, job))
    (process, text), = controllers(rails, job).items()
    lines = text.splitlines()
    nobody = "%s:%s" % (rails.out(["id", "-u", "nobody"]).strip(), rails.out(["id", "-g", "nobody"]).strip())
    assert lines[0].split()[:4] == [nobody, nodes_of(rails, job)[0], "pp:2,dp:2,tp:2", "provisioned"]
    assert int(lines[0].split()[4]) > 16 and "unlocked" not in lines
    # 10 and 255 are those of bash
    assert {int(word) for word in lines[1:]} <= {0, 1, 2, 3, 10, 255} and "3" in lines
    rails.until(lambda: len(sleepers(rails)) == 1, 10, lambda: sleepers(rails))
    end(rails, job)
    rails.until(lambda: not sleepers(rails), 10, "the controller to be gone")
    # without a batch script the steps have one each
    for words in (["--ocs-phases=on-demand"], ["--ocs-phases=off"]):
        before = set(os.listdir(rails.path("out")))
        wait = "sleep 1"
        if words == ["--ocs-phases=on-demand"]:
            wait = "until [ -s %s/$SLURM_JOB_ID.*.controller ]; do sleep 0.1; done" % rails.path("out")
        rails.out(["srun", "-p", "rails", "--shape=pp:2,tp:2", *words, "bash", "-c", wait], user="nobody")
        rails.until(lambda: not sleepers(rails), 10, "the controller to be gone")
        new = [name for name in set(os.listdir(rails.path("out"))) - before if name.endswith(".controller")]
        assert len(new) == (words == ["--ocs-phases=on-demand"]), (words, new)


def test_refusals(rails):
    for words, says in (
            (["-p", "rails", "--shape=dp:9,tp:2"], "is 9 servers with the dimensions that fit inside a node, rails has 8"),
            (["-p", "rails", "--shape=dp:2,tp:4"], "the last stays inside a node, with 2"),
            (["-p", "rails", "--shape=2x2x4_twisted"], "leave _twisted out"),
            (["-p", "rails", "--shape=dp:2,dp:2"], "two dimensions are called dp"),
            (["-p", "rails", "--shape=dp:2,2"], "'2' has no name"),
            (["-p", "rails", "--shape=a+:2,b+:2,c:2"], "two dimensions are marked"),
            (["-p", "rails", "--ocs-phases=on-demand", "-N2"], "needs a shape"),
            (["-p", "rails", "--shape=2x2", "--ocs-phases=later"], "write provisioned, on-demand or off"),
            (["--shape=2x2", "--ocs-phases=on-demand"], "is for partitions on rails, and pod is not one")):
        done = ask(rails, *words)
        assert done.returncode, words
        assert says in done.stderr, done.stderr
    # what is no fault: off anywhere, and a mode in the profile of who asks for no shape
    for words in (["--shape=2x2", "--ocs-phases=off"], ["-N1"], ["-p", "rails", "--shape=pp:2,tp:2"]):
        done = ask(rails, *words, env={"OCS_PHASES": "off" if "--shape=2x2" in words else "on-demand"})
        assert done.returncode == 0, (words, done.stderr)


def test_names_are_labels_on_cubes(rails):
    job = rails.sbatch("--shape=a:2,b:2,c:2", script=NAMES + "srun --shape=2x2x2 true && echo SAME; sleep 300")
    rails.running(job)
    assert "SLURM_OCS_DIMENSIONS=a:2,b:2,c:2" in told(rails, job, lambda text: "SAME" in text)
    placement = rails.placement(job)
    assert placement["shape"] == [2, 2, 2] and placement["dimensions"] == ["a", "b", "c"]
    rails.write("named.json", rails.out(["cat", rails.job_dir(rails.job(job)["BatchHost"], job) + "/placement.json"]))
    assert "valid" in rails.out(["ocsctl", "verify", rails.path("named.json"), "--fabric", rails.yaml])
    rails.run(["scancel", str(job)])


def test_update_and_requeue(rails):
    """What waits can be changed; what is asked survives a requeue and a restart of slurmctld."""
    job = rails.sbatch("-p", "rails", "-H", "--requeue", "--extra=mine", "--shape=4x2",
                       "--ocs-phases=provisioned", script=NAMES + "sleep 300")
    assert rails.job(job)["Extra"].strip() == "mine shape=4x2 phases=provisioned"
    update = ["scontrol", "update", "JobId=%d" % job]
    done = rails.run(update + ["Extra=shape=dp:3,tp:3"], check=False)
    assert done.returncode and "the last stays inside a node" in done.stderr
    rails.run(update + ["Extra=yours shape=pp:3,tp:2 phases=on-demand"])
    fields = rails.job(job)
    assert fields["Extra"].strip() == "yours shape=pp:3,tp:2 phases=on-demand"
    assert fields["NumNodes"] == "3-3"
    rails.run(["scontrol", "release", str(job)])
    fields = rails.running(job)
    assert "phases=on-demand" in fields["AdminComment"]
    rails.run(["scontrol", "requeue", str(job)])
    rails.until(lambda: rails.job(job)["Restarts"] == "1", 30, "the requeue")
    rails.running(job)
    told(rails, job, lambda text: "SLURM_OCS_PHASES=on-demand" in text)
    rails.saved(job)
    rails.kill("slurmctld")
    rails.start_slurmctld()
    rails.wait_for_slurmctld()
    rails.until(lambda: owned(rails, job) == ports_of(nodes_of(rails, job)), 30, "the ports to be known")
    done = rails.run(update + ["Extra=shape=pp:3,tp:2 phases=provisioned"], check=False)
    assert done.returncode and "its shape cannot change" in done.stderr
    end(rails, job)


def test_one_job_of_a_node(rails):
    """A node serves one job with a shape: another one that wants it waits, whatever it says of sharing, and says so."""
    first = shaped(rails, "dp:2,tp:2", "-w", "r[0-1]", script="sleep 300")
    rails.running(first)
    second = shaped(rails, "dp:2,tp:2", "-w", "r[1-2]", "--oversubscribe", "--overcommit", script="sleep 300")
    rails.until(lambda: rails.job(second)["Reason"] not in ("None", "Priority"), 30, "a reason")
    assert rails.state(second) == "PENDING" and rails.job(second)["Reason"].startswith(("Resources", "ReqNodeNotAvail", "Nodes"))
    text = rails.out(["ocsctl", "explain", str(second), "--fabric", rails.yaml])
    assert "by 1 that must end" in text and "job %d " % first in text, text
    rails.run(["scancel", str(first)])
    rails.running(second)
    assert nodes_of(rails, second) == ["r1", "r2"] and len(owned(rails, second)) == 8
    end(rails, second)


def test_arrays_and_parts(rails):
    """Every task of an array and every part of a heterogeneous job has a shape of its own."""
    array = rails.sbatch("-p", "rails", "--array=0-1", "--shape=dp:2,tp:2", script="sleep 300")
    rails.running(array)
    jobs = [int(word) for word in rails.out(["squeue", "-h", "-r", "-j", str(array), "-o", "%A"]).split()]
    held = [owned(rails, job) for job in jobs]
    assert len(held) == 2 and all(len(ports) == 8 for ports in held) and not held[0] & held[1]
    rails.run(["scancel", str(array)])
    text = rails.out(["srun", "-p", "rails", "--shape=pp:2,tp:2", "bash", "-c",
                      "echo $SLURM_OCS_DIMENSIONS $SLURM_OCS_PHASES; sleep 1", ":", "-p", "rails", "-N1", "-n1",
                      "bash", "-c", "echo none:$SLURM_OCS_DIMENSIONS:$SLURM_OCS_PHASES"])
    assert sorted(text.split("\n")) == ["", "none::"] + ["pp:2,tp:2"] * 4


def test_model_on_rails(rails):
    """--ocs-model: the shape that the optimiser finds, divided at the edge of a node."""
    rails.write("model.yaml", """model: small
precision: bf16
batch: {step: 64}
sequence: 512
layers:
- repeat: 4
  layers:
  - {kind: attention, hidden: 512, heads: 8}
  - {kind: gated, hidden: 512, inner: 2048}
""")
    job = rails.sbatch("-p", "rails", "-N4", "--ocs-model=" + rails.path("model.yaml"))
    fields = rails.running(job)
    words = dict(w.split("=", 1) for w in fields["Extra"].split() if "=" in w)
    count = 1
    for part in words["shape"].split(","):
        count *= int(part.split(":")[1])
    assert count == 8 and fields["NumNodes"] == "4", fields
