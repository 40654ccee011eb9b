# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What job_submit, cli_filter and the SPANK plugin do with the options of a job."""

import json
import signal

import pytest

from cluster import ClusterError
from test_shapes import TELL, tasks


def update(pod, job, *words):
    return pod.run(["scontrol", "update", "JobId=%d" % job] + list(words), check=False)


def test_update_of_a_pending_job(pod):
    job = pod.sbatch("-H", "--shape=4x4", "--extra=mine")
    assert update(pod, job, "Extra=new text").returncode == 0
    fields = pod.job(job)
    assert fields["Extra"].strip() == "new text shape=4x4"
    assert fields["NumNodes"] == "4-4" and fields["NumTasks"] == "16"
    assert update(pod, job, "Extra=other shape=4x4x4").returncode == 0
    fields = pod.job(job)
    assert fields["Extra"].strip() == "other shape=4x4x4"
    assert fields["NumNodes"] == "16-16" and fields["NumTasks"] == "64"
    for words, needle in ((["Extra=shape=5x5"], "ring"), (["NumNodes=3"], "16"),
                          (["Partition=plain"], "plain")):
        done = update(pod, job, *words)
        assert done.returncode and needle in done.stderr, done.stderr
    assert pod.job(job)["Extra"].strip() == "other shape=4x4x4"
    assert update(pod, job, "TimeLimit=10").returncode == 0
    pod.run(["scontrol", "release", str(job)])
    assert pod.running(job)["NumNodes"] == "16"


def test_owner_updates_a_pending_job(pod):
    """As root may; Slurm lets only operators change how nodes are shared."""
    job = pod.sbatch("-H", "--shape=4x4", user="nobody")
    plain = pod.sbatch("-H", "-N1", "-n1", user="nobody")
    for number, words, wanted in (
            (job, "Extra=shape=2x2", {"Extra": "shape=2x2", "NumNodes": "1-1", "NumTasks": "4"}),
            (job, "NumNodes=1", {"NumNodes": "1-1"}), (job, "Partition=tpu", {"Partition": "tpu"}),
            (plain, "Extra=shape=4x4", {"Extra": "shape=4x4", "NumNodes": "4-4"})):
        done = pod.run(["scontrol", "update", "JobId=%d" % number, words], check=False, user="nobody")
        assert done.returncode == 0, (words, done.stderr)
        fields = pod.job(number)
        assert {key: fields[key].strip() for key in wanted} == wanted, (words, fields)
    before = pod.job(job)
    done = pod.run(["scontrol", "update", "JobId=%d" % job, "NumNodes=3"], check=False, user="nobody")
    assert done.returncode and "-N asks for 3" in done.stderr and pod.job(job) == before, done.stderr
    for number in (job, plain):
        pod.run(["scontrol", "release", str(number)])
        assert pod.running(number)["OverSubscribe"] == "NO"


def test_no_job_with_circuits_outlives_a_node(pod):
    """--no-kill has no effect on it, though it had no shape when it was submitted."""
    job = pod.sbatch("-H", "--no-kill", "-N1")
    assert update(pod, job, "Extra=shape=4x4").returncode == 0
    pod.run(["scontrol", "release", str(job)])
    last = pod.out(["scontrol", "show", "hostnames", pod.running(job)["NodeList"]]).split()[-1]
    try:
        pod.run(["scontrol", "update", "NodeName=" + last, "State=DOWN", "Reason=gone"])
        pod.until(lambda: pod.job(job)["Restarts"] == "1", 20, lambda: pod.job(job))
    finally:
        # It may have registered, and be up, by itself.
        pod.run(["scontrol", "update", "NodeName=" + last, "State=RESUME"], check=False)
    pod.run(["scancel", str(job)])
    pod.until(lambda: not pod.patches(), 20, "dark switches")


def test_scrontab_takes_a_shape_as_extra(pod):
    """It runs none of spank's hooks at submission: --shape would be lost without a word."""
    line = "* 1 1 1 * true\n"
    told = pod.run(["scrontab", "-"], check=False, stdin="#SCRON --shape=4x4\n" + line)
    assert told.returncode and "write #SCRON --extra=shape=4x4" in told.stderr, told.stderr
    assert not pod.out(["squeue", "-h"]).strip()
    pod.run(["scrontab", "-"], stdin="#SCRON --extra=shape=4x4\n" + line)
    try:
        assert pod.out(["squeue", "-h", "-o", "%D"]).strip() == "4"
    finally:
        pod.run(["scrontab", "-r"])


def test_parts_of_a_step_have_nodes_of_their_own(pod):
    """As Slurm has it for `srun a : b` within one job."""
    text = pod.out("salloc -Q --shape=4x4 srun -n1 sh -c 'echo A $SLURMD_NODENAME' : "
                   "-n4 sh -c 'echo B $SLURMD_NODENAME $SLURM_OCS_COORD'")
    first, second = [[line.split()[1:] for line in text.splitlines() if line.startswith(part)]
                     for part in "AB"]
    assert len(first) == 1 and len(second) == 4 and first[0][0] not in [row[0] for row in second], text


def test_update_that_leaves_no_room(pod):
    """As at submission: one line, and nothing is applied.  Slurm would hold the job for ever."""
    job = pod.sbatch("-H", "--shape=4x4x4")
    before = pod.job(job)
    for words, needle in (("ExcNodeList=n[0-63]", "does not fit the 0 of 64 nodes"),
                          ("NumTasks=65", "at most -n 64"), ("CPUsPerTask=2", "at most -n 32"),
                          ("NumCPUs=65", "NumCPUs=65: --shape=4x4x4 takes 16 nodes of 4 CPUs"),
                          ("ReqNodeList=p0", "cannot have that node")):
        done = update(pod, job, words)
        assert done.returncode and needle in done.stderr, (words, done.stderr)
        assert pod.job(job) == before, words
    for words in ("ExcNodeList=n[16-63]", "ReqNodeList=n3", "NumTasks=32"):
        assert update(pod, job, words).returncode == 0, words
    pod.run(["scontrol", "release", str(job)])
    assert pod.running(job)["NodeList"] == "n[0-15]"


def test_update_of_a_running_job(pod):
    job = pod.sbatch("--shape=2x4")
    pod.running(job)
    assert update(pod, job, "Extra=words").returncode == 0
    assert pod.job(job)["Extra"].strip() == "words shape=2x4"
    for words in (["Extra=shape=4x4"], ["NumNodes=1"]):
        done = update(pod, job, *words)
        assert done.returncode and "submit it anew" in done.stderr, done.stderr
    plain = pod.sbatch("-N1", "-n1")
    pod.running(plain)
    assert update(pod, plain, "Extra=shape=2x2").returncode
    assert pod.state(job) == pod.state(plain) == "RUNNING"


def test_tpu_environment(pod):
    """Every node's block, from the variables alone, is where its tasks say they are."""
    script = ("srun sh -c 'echo \"$TPU_TOPOLOGY|$TPU_TOPOLOGY_WRAP|$TPU_HOST_BOUNDS|"
              "$TPU_CHIPS_PER_HOST_BOUNDS|$TPU_WORKER_ID|$TPU_WORKER_HOSTNAMES|"
              "$SLURMD_NODENAME|$SLURM_OCS_COORD\"'")
    job = pod.sbatch("--shape=4x4x8", "--conn-type=torus,torus,mesh", script=script)
    lines = pod.output(job).strip().splitlines()
    assert len(lines) == 128
    for line in lines:
        topology, wrap, bounds, size, worker, hosts, node, coord = line.split("|")
        assert (topology, wrap) == ("4x4x8", "true,true,false")
        bounds, size, coord = ([int(n) for n in text.split(",")]
                               for text in (bounds, size, coord))
        x, y, z = (c // s for c, s in zip(coord, size))
        assert int(worker) == x + bounds[0] * (y + bounds[1] * z), line
        assert hosts.split(",")[int(worker)] == node and len(hosts.split(",")) == 32
    mine = pod.sbatch("--shape=2x2x1", script="echo $TPU_WORKER_ID", env={"TPU_WORKER_ID": "7"})
    assert pod.output(mine).strip() == "7"


def test_step_in_a_job_seen_from_outside(pod):
    job = pod.sbatch("--shape=2x4")
    pod.running(job)
    found = tasks(pod.out("srun --jobid=%d %s" % (job, TELL)))
    assert [found[i][2] for i in range(8)] == [[(x, y)] for x in range(2) for y in range(4)]
    assert pod.run(["srun", "--jobid=%d" % job, "--shape=2x4", "-n1", "true"],
                   check=False).returncode == 0
    done = pod.run(["srun", "--jobid=%d" % job, "--shape=2x2", "-n1", "true"], check=False)
    assert done.returncode and "2x4" in done.stderr


def test_order_and_nodes_of_the_user_stay(pod):
    job = pod.sbatch("--shape=4x4", script="srun -m block -n4 hostname >/dev/null && "
                     "srun -m plane=2 -n16 %s\nsrun -N1 -n1 -r1 %s" % (TELL, TELL.replace(
                         "TASK", "ONE")))
    text = pod.output(job)
    found = tasks(text)
    # Two tasks here, two there: coordinates still follow node and local number.
    assert sorted(row[2][0] for row in found.values()) == [
        (x, y) for x in range(4) for y in range(4)]
    assert len([line for line in text.splitlines() if line.startswith("ONE|0|")]) == 1


def test_submission_inside_salloc_inherits_nothing(pod):
    text = pod.out(["salloc", "-Q", "--shape=2x4", "bash", "-c",
                    "sbatch --parsable -o /dev/null -N1 -n1 --wrap 'sleep 5'"],
                   env={"OCS_CONN_TYPE": "torus"})
    fields = pod.job(int(text))
    assert "shape=" not in fields.get("Extra", "")
    assert fields["NumTasks"] == "1"


def test_variables_of_slurmctld_cannot_be_forged(pod):
    """The prolog believes SPANK_OCS_*, so no job may bring its own."""
    if pod.run("command -v slurmrestd", check=False).returncode:
        pytest.skip("slurmrestd was not built (no libhttp-parser on this machine)")
    socket = "/run/rest/forger.sock"
    pod.run("mkdir -p /run/rest && chown nobody /run/rest")
    daemon = pod.spawn(["slurmrestd", "-s", "slurmctld", "-d", "v0.0.42", "unix:" + socket],
                       pod.path("slurmrestd.log"), user="nobody")
    try:
        pod.until(lambda: pod.run(["test", "-S", socket], check=False).returncode == 0, 20,
                  "slurmrestd")
        body = {"script": "#!/bin/bash\ntrue\n",
                "job": {"name": "rest", "current_working_directory": "/tmp",
                        "environment": ["PATH=/usr/bin:/bin"],
                        "standard_output": "/dev/null", "standard_error": "/dev/null",
                        "spank_environment": ["OCS_EPOCH=7", "SPANK_OCS_PLACEMENT=x"]}}
        answer = json.loads(pod.out(
            ["curl", "-s", "--unix-socket", socket, "-H", "Content-Type: application/json",
             "-d", json.dumps(body), "http://localhost/slurm/v0.0.42/job/submit"],
            user="nobody"))
        assert not answer["errors"], answer["errors"]
        pod.wait(answer["job_id"], "COMPLETED", 20)
    finally:
        pod.run(["pkill", "-x", "slurmrestd"], check=False)
        daemon.wait()


def test_broken_description_changes_nothing(pod):
    """job_submit reads ocs.yaml again when it changes, and keeps what it had if it is wrong."""
    with open(pod.yaml) as handle:
        good = handle.read()
    pod.sbatch("-H", "--shape=2x2")             # it is read at the first shape
    try:
        pod.write("etc/ocs.yaml", good.replace("kind: torus", "kind: tours"))
        job = pod.sbatch("-H", "--shape=2x4")
        assert pod.job(job)["NumNodes"] == "2-2"
    finally:
        pod.write("etc/ocs.yaml", good)
    job = pod.sbatch("-H", "--shape=4x4")
    assert pod.job(job)["NumNodes"] == "4-4"


def test_others_stay_off_the_cube_of_a_suspended_job(pod):
    """Slurm calls the nodes of a suspended job free; its circuits are not."""
    first = pod.sbatch("--shape=4x4x4")
    before = pod.running(first)["NodeList"]
    held = pod.patches()
    pod.run(["scontrol", "suspend", str(first)])
    second = pod.running(pod.sbatch("--shape=4x4x4"))
    assert second["NodeList"] != before
    assert held < pod.patches()
    pod.run(["scontrol", "resume", str(first)])
    assert pod.running(first)["NodeList"] == before
    assert held < pod.patches()


def test_reconfigure_with_a_broken_description(pod):
    """slurmctld as a daemon goes on with what it had; jobs and circuits stay."""
    pod.kill("slurmctld", signal.SIGTERM)      # it saves what it knows
    pod.spawn(["slurmctld"], pod.path("slurmctld.err"))
    pod.wait_for_slurmctld()
    pod.wait_idle()
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    held = pod.patches()
    with open(pod.yaml) as handle:
        good = handle.read()
    try:
        pod.write("etc/ocs.yaml", "version: 1\nbroken: [\n")
        assert pod.run(["timeout", "40", "scontrol", "reconfigure"], check=False).returncode
    finally:
        pod.write("etc/ocs.yaml", good)
    try:
        pod.wait_for_slurmctld()
    except ClusterError:        # see Cluster.reconfigure
        pod.kill("slurmctld")
        pod.start_slurmctld()
    assert pod.state(job) == "RUNNING" and pod.patches() == held
    pod.running(pod.sbatch("--shape=4x4x4"))
    pod.reconfigure()
    assert pod.state(job) == "RUNNING" and held < pod.patches()


def test_shape_that_no_plugin_wrote_down(pod):
    """job_submit/ocs is not listed, or another plugin overwrites Extra behind it: no job runs without
    the circuits it was submitted for."""
    with open(pod.path("etc", "slurm.conf")) as handle:
        good = handle.read()
    try:
        pod.write("etc/slurm.conf", good.replace("JobSubmitPlugins=ocs\n", "JobSubmitPlugins=require_timelimit\n"))
        pod.reconfigure()
        assert "Time limit" in pod.refused("--shape=2x4")
        assert "not available" in pod.refused("--shape=2x4", "-t", "5")
        with open(pod.path("slurmctld.log")) as handle:
            assert "it was submitted with --shape, but there is no shape in its Extra" in handle.read()
        pod.running(pod.sbatch("-N1", "-n1", "-t", "5"))
    finally:
        pod.write("etc/slurm.conf", good)
        pod.reconfigure()
    pod.running(pod.sbatch("--shape=2x4"))


def test_cpus_that_nodes_lack_are_no_lack_of_cubes(pod):
    job = pod.sbatch("--shape=2x2x1", "--overcommit", "--ntasks=5")
    pod.until(lambda: pod.job(job)["Reason"] not in ("None", "Priority"), 20, "a reason")
    assert "cube" not in pod.job(job)["Reason"]
