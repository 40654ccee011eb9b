# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What users and administrators see."""

import json
import os
import shutil

import pytest


def test_scontrol_show_topology(pod):
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    text = pod.out(["scontrol", "show", "topology"])
    for word in ("c0", "c3", "ocs-x-0-0", "n[0-15]"):
        assert word in text
    assert "Jobs=%d" % job in text and "Address=" not in text and "127.0.0.1" not in text
    cube = pod.placement(job)["cubes"][0]
    line = [l for l in text.splitlines() if cube in l and "ocs-" not in l][0]
    assert str(job) in line or "16" in line
    # A bare name is the name of a topology since Slurm 25.05.
    for words, other in (("node=n0", "c3"), ("unit=c0", "c3"), ("unit=ocs-x-0-0", "ocs-x-0-1")):
        one = pod.out(["scontrol", "show", "topology", words])
        assert words.split("=")[1].replace("n0", "c0") in one and other not in one, one


def test_ocsctl_pictures_and_tables(pod):
    job = pod.sbatch("--shape=4x8x2")
    pod.running(job)
    text = pod.out(["ocsctl", "map", "--fabric", pod.yaml])
    assert str(job) in text and "4x8x2" in text
    shown = pod.ocsctl("show", "job", str(job))["jobs"][0]
    assert shown["job"] == job and shown["shape"] == "4x8x2" and shown["state"] == "realised"
    circuits = pod.ocsctl("show", "circuit")["circuits"]
    assert {c["state"] for c in circuits} == {"CONNECTED"}
    assert len(circuits) == pod.placement(job)["ocs_links"]
    text = pod.out(["ocsctl", "explain", str(job), "--fabric", pod.yaml])
    assert str(job) in text
    assert pod.ocsctl("show", "switch")["switches"]
    assert pod.ocsctl("reconcile")["drift"] == []


def test_check_compares_the_whole_site(pod):
    """ocs.yaml against slurm.conf, plugstack.conf, the running ocsd and slurmctld."""
    site = {"OCS_CONF": pod.yaml}
    text = pod.out(["ocsctl", "check"], env=site)
    assert "the running slurmctld" in text and "ocsd at unix:" in text, text
    assert text.rstrip().endswith(": all agree"), text
    pod.ocsctl("drain", "cube", "c2", "--reason", "dust")
    with open(pod.yaml) as handle:
        right = handle.read()
    with open(pod.path("etc", "slurm.conf")) as handle:
        conf = handle.read()
    try:
        pod.write("etc/ocs.yaml", right.replace("{name: c3, ", "{name: c4, "))
        pod.write("etc/slurm.conf", conf.replace("JobSubmitPlugins=ocs", "JobSubmitPlugins=lua"))
        done = pod.run(["ocsctl", "check"], env=site, check=False)
    finally:
        pod.write("etc/ocs.yaml", right)
        pod.write("etc/slurm.conf", conf)
        pod.ocsctl("resume", "cube", "c2")
    assert done.returncode == 1 and "contradict" in done.stderr, done
    for line in ("slurm.conf:", "JobSubmitPlugins=lua lacks ocs",
                 "ocsd: runs with other cubes", "ocsd: note: cube c2 is drained: dust",
                 "slurmctld: runs with JobSubmitPlugins=ocs, slurm.conf says lua"):
        assert line in done.stdout, done.stdout


def test_a_user_sees_only_own_jobs(pod):
    job = pod.sbatch("--shape=2x2x2")
    pod.running(job)
    done = pod.run(["ocsctl", "show", "job", "--json", "--fabric", pod.yaml], user="nobody")
    assert job not in [one["job"] for one in json.loads(done.stdout)["jobs"]]
    done = pod.run(["ocsctl", "release", str(job), "--fabric", pod.yaml], user="nobody",
                   check=False)
    assert done.returncode != 0
    assert pod.state(job) == "RUNNING"


def test_comment_for_accounting(pod):
    job = pod.sbatch("--shape=4x4x4")
    fields = pod.running(job)
    assert "shape=4x4x4" in fields["AdminComment"]


def test_one_plugin_missing(make_cluster):
    """With only one of the two plugins Slurm runs; a shape names the missing line."""
    for part, line in ((("topology",), "SelectType"), (("select",), "TopologyPlugin")):
        cluster = make_cluster(cubes=1, parts=part)
        try:
            job = cluster.sbatch("-N1", script="true")
            cluster.wait(job, "COMPLETED")
            assert line in cluster.refused("--shape=2x2x1")
        finally:
            cluster.stop()


def test_prologs_that_slurm_runs_without_spank(make_cluster):
    """A shape would start without its circuits: it is refused, all else runs."""
    cluster = make_cluster(cubes=1, edge=2, config={"PrologFlags": "Alloc,DeferBatch,RunInJob"})
    try:
        assert "PrologFlags=RunInJob" in cluster.refused("--shape=2x2x1")
        assert "PrologFlags holds RunInJob" in cluster.run(
            ["ocsctl", "check"], env={"OCS_CONF": cluster.yaml}, check=False).stdout
        cluster.wait(cluster.sbatch("-N1", script="true"), "COMPLETED")
    finally:
        cluster.stop()


def test_scripts_instead_of_spank(make_cluster):
    """Sites that prefer scripts: etc/prolog and etc/epilog do what SPANK does."""
    cluster = make_cluster(cubes=1, spank=["prolog=no"], config={
        "Prolog": "{stage}/share/slurm-ocs/prolog", "Epilog": "{stage}/share/slurm-ocs/epilog"})
    try:
        job = cluster.sbatch("--shape=4x4x4", script="srun -l bash -c 'echo $SLURM_OCS_COORD'\nsleep 300")
        placement = cluster.placement(job, cluster.running(job)["BatchHost"])
        assert cluster.circuit_patches(placement) == cluster.patches() != set()
        told = cluster.path("out", "%d.out" % job)
        cluster.until(lambda: os.path.exists(told) and len(open(told).readlines()) == 64, 60, "64 coordinates")
        # Each script noted the answer of ocsd: it was not the plugin that asked.
        node = cluster.job(job)["BatchHost"]
        assert "reply." + node in cluster.out(["ls", cluster.job_dir(node, job)])
        cluster.run(["scancel", str(job)])
        cluster.until(lambda: not cluster.patches(), 30, "dark switches")
        cluster.wait_idle()
        assert cluster.run(["ls", cluster.job_dir(node, job)], check=False).returncode
        # A folder whose job slurmctld has forgotten goes with the next prolog on the node; that
        # of one that is newer, or of no job of ours, stays.
        cluster.leave_job_dirs(node, {"4000001": 17, "4000002": 2 ** 62, "4000003.old": 17})
        job = cluster.sbatch("--shape=2x2", "-w", node)
        cluster.running(job)
        assert cluster.job_dirs(node) == {str(job), "4000002", "4000003.old"}
    finally:
        cluster.stop()


@pytest.mark.parametrize("remote", ["munge", "key"])
def test_nodes_reach_ocsd_by_tcp(make_cluster, remote):
    """On a real cluster the nodes have no socket of ocsd: TCP, and MUNGE or a shared key
    says who asks."""
    if remote == "munge" and not shutil.which("munged", path="/usr/sbin:/usr/bin"):
        pytest.skip("munged is not installed")
    cluster = make_cluster(cubes=1, remote=remote)
    try:
        job = cluster.sbatch("--shape=4x4x4")
        cluster.running(job)
        assert cluster.circuit_patches(cluster.placement(job)) == cluster.patches()
        assert "127.0.0.1:6820" in open(cluster.path("slurmctld.log")).read()
        done = cluster.run(["ocsctl", "release", str(job), "--ocsd", "127.0.0.1:6820",
                            "--fabric", cluster.yaml], user="nobody", check=False)
        # nobody is nobody by MUNGE, and cannot read the key
        assert done.returncode == (1 if remote == "munge" else 5), done.stdout + done.stderr
        done = cluster.run(["ocsctl", "show", "job", str(job), "--ocsd", "127.0.0.1:6820",
                            "--fabric", cluster.yaml])
        assert str(job) in done.stdout
        assert cluster.state(job) == "RUNNING" and cluster.patches()
        cluster.run(["scancel", str(job)])
        cluster.until(lambda: not cluster.patches(), 30, "dark switches")
    finally:
        cluster.stop()
