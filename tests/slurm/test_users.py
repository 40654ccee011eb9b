# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What a user who is no administrator learns from ocsctl, and what nobody is told wrongly."""

import json

from cluster import tail


def ask(cluster, *words, user="nobody", status=0):
    section = ["--section", "pod"] if words[0] in ("map", "place") else []
    done = cluster.run(["ocsctl"] + list(words) + section, user=user, check=False,
                       env={"OCS_CONF": cluster.yaml})
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def states(cluster, user):
    return {node["node"]: node["state"]
            for node in json.loads(ask(cluster, "map", "--json", user=user).stdout)["nodes"]}


def test_a_user_asks_where_a_shape_would_lie(pod):
    """place and map tell a user what they tell root, but for who is on the nodes."""
    theirs = pod.sbatch("--shape=8x4x4")
    plain = pod.sbatch("-N1", "-n1")
    pod.running(theirs)
    pod.running(plain)
    pod.ocsctl("drain", "cube", "c3", "--reason", "dust")
    pod.run(["scontrol", "update", "NodeName=n40", "State=DRAIN", "Reason=fan"])
    try:
        pod.until(lambda: states(pod, "root") == states(pod, "nobody"), 20,
                  lambda: "the same states: %s" % sorted(
                      set(states(pod, "root").items()) ^ set(states(pod, "nobody").items())))
        for shape in ("4x4x2", "8", "2x2x2"):
            mine, root = (ask(pod, "place", shape, "--nodes", user=user) for user in ("nobody", "root"))
            assert mine.stdout == root.stdout and mine.stdout.startswith("n"), shape
            assert "administrators only" in mine.stderr and not root.stderr
        picture = ask(pod, "map").stdout
        assert "job %d" % theirs not in picture and "in use by jobs not shown to you (" in picture
        assert "#  down or drained (" in picture
        ask(pod, "place", "4x4x4", status=4)
        # nothing of that is a way around PrivateData or ocsd
        for what in ("fabric", "cube", "switch"):
            assert "scontrol show topology" in ask(pod, "show", what, status=1).stderr
    finally:
        pod.run(["scontrol", "update", "NodeName=n40", "State=RESUME"])
        pod.ocsctl("resume", "cube", "c3")


def test_explain_says_what_it_may_not_show(pod):
    """A job of somebody else is not said to hold no circuits."""
    theirs = pod.sbatch("--shape=4x4x4")
    plain = pod.sbatch("-N1", "-n1")
    pod.running(theirs)
    pod.running(plain)
    told = ask(pod, "explain", str(theirs)).stdout
    assert "job %d of root, whose circuits are not shown to you: RUNNING on n" % theirs in told
    assert json.loads(ask(pod, "explain", str(theirs), "--json").stdout)["hidden"] is True
    told = ask(pod, "explain", str(plain), user="root").stdout
    assert "job %d of root holds no circuits: RUNNING" % plain in told


def test_show_fabric_names_all_that_is_out_of_service(pod):
    """Drains of ocsd and nodes of Slurm, with their reasons, as a table and as JSON."""
    pod.ocsctl("drain", "xpu", "c2:3,3,3", "--reason", "dead HBM")
    pod.run(["scontrol", "update", "NodeName=n[8-9]", "State=DRAIN", "Reason=bad fan"])
    try:
        told = ask(pod, "show", "fabric", user="root").stdout
        rows = json.loads(ask(pod, "show", "fabric", "--json", user="root").stdout)["out_of_service"]
    finally:
        pod.run(["scontrol", "update", "NodeName=n[8-9]", "State=RESUME"])
        pod.ocsctl("resume", "xpu", "c2:3,3,3")
    assert rows == [{"kind": "xpu", "name": "c2:3,3,3", "state": "drained", "reason": "dead HBM"},
                    {"kind": "nodes", "name": "n[8-9]", "state": "drained", "reason": "bad fan"}]
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "xpu c2:3,3,3 drained dead HBM" in lines and "nodes n[8-9] drained bad fan" in lines, told


def test_the_files_of_a_job_are_its_users(pod):
    """The user's script, steps and tasks read them; others neither read them nor see whose there are."""
    job = pod.sbatch("--shape=4x4x4", user="nobody",
                     script="ls $SLURM_OCS_DIR; head -n 2 $SLURM_OCS_DIR/hostfile\n"
                            "srun -n16 -N16 sh -c 'cat $SLURM_OCS_DIR/* >/dev/null 2>/dev/null;"
                            " cat $SLURM_OCS_DIR/placement.json | wc -l; echo at $SLURM_OCS_COORDS'\n"
                            "touch $SLURM_OCS_DIR/mine || echo closed; sleep 300")
    fields = pod.running(job)
    node = fields["BatchHost"]
    folder = pod.job_dir(node, job)
    told = pod.path("out", "%d.out" % job)
    # Slurm calls the job running before its script is.
    pod.until(lambda: "closed" in tail(told, 100), 60, lambda: "the script to have looked: " + tail(told, 100))
    text = tail(told, 100)
    assert "hostfile" in text and "placement.json" in text and text.count("at ") == 16, text
    assert "\nn" in text
    # of the same group as nobody, which may list the folder
    for words in (["cat", folder + "/placement.json"], ["cat", folder + "/env"],
                  ["ls", "/run/ocs/" + node], ["ls", "/run/ocs"]):
        done = pod.run(words, user="daemon", check=False)
        assert done.returncode and "Permission denied" in done.stderr, (words, done)
        pod.run(words)
    assert pod.placement(job)["shape"] == [4, 4, 4]
    pod.run(["scancel", str(job)])
    pod.wait(job)
    pod.until(lambda: str(job) not in pod.job_dirs(node), 60, "the folder to be gone")
