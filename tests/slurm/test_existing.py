# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A cluster that runs jobs gets slurm-ocs, and later gives it back, as the guide says."""

import os
import signal

from cluster import Cluster
from conftest import living


def change(cluster, parts):
    """Other plugins, the same keys; slurmctld first, then the slurmds."""
    keys = {}
    for etc in ("etc", "etc-slurmd"):
        with open(cluster.path(etc, "slurm.key"), "rb") as handle:
            keys[etc] = handle.read()
    cluster.kill("slurmctld", signal.SIGTERM)
    cluster.parts = parts
    cluster.configure()
    for etc, key in keys.items():
        with open(cluster.path(etc, "slurm.key"), "wb") as handle:
            handle.write(key)
    if parts and not os.path.exists(cluster.path("emulator.sock")):
        cluster.start_emulator()
        cluster.start_ocsd()
    cluster.start_slurmctld()
    for name in cluster.nodes:
        cluster.stop_slurmd(name, signal.SIGTERM)
    for name in cluster.nodes:
        cluster.start_slurmd(name)


def test_jobs_of_before_run_on_and_new_ones_have_shapes(make_cluster):
    cluster = make_cluster(cubes=2, edge=2, parts=())
    try:
        first = cluster.sbatch("-N1", script="sleep 600")
        held = cluster.sbatch("-N1", "--hold", script="sleep 600")
        cluster.running(first)
        change(cluster, ("select", "topology"))
        assert cluster.state(first) == "RUNNING"
        shaped = cluster.sbatch("--shape=2x2x1", script="sleep 600")
        cluster.running(shaped)
        assert cluster.job(shaped)["NodeList"] != cluster.job(first)["NodeList"]
        cluster.run(["scontrol", "release", str(held)])
        cluster.running(held)
        assert "all agree" in cluster.out(["ocsctl", "check", cluster.yaml, "--slurm-conf",
                                           cluster.path("etc", "slurm.conf")])

        cluster.run(["scancel", str(shaped)])
        cluster.wait(shaped)
        cluster.until(lambda: not cluster.patches(), 30, "dark switches")
        change(cluster, ())
        for job in (first, held):
            assert cluster.state(job) == "RUNNING", cluster.job(job)
        plain = cluster.sbatch("-N1", script="sleep 600")
        cluster.running(plain)
        assert "--shape" in cluster.refused("--shape=2x2x1")
    finally:
        cluster.stop()


class Configless(Cluster):
    """Its slurmd has no file of Slurm but those that slurmctld sends."""

    def start_slurmd(self, name):
        self.spawn(["env", "-u", "SLURM_CONF", "SLURM_SACK_KEY=" + self.path("etc", "slurm.key"),
                    "slurmd", "-D", "-N", name, "--conf-server", "127.0.0.1:6817"],
                   self.path("log", "slurmd.%s.err" % name))


def test_configless_nodes_need_ocs_yaml_and_a_line_that_names_it():
    with living(Configless, cubes=1, edge=2, tile=(2, 2, 2), config={
            "SlurmctldParameters": "enable_configless", "PlugStackConfig": ""}) as cluster:
        job = cluster.sbatch("--shape=2x2x2", script="echo shape $SLURM_OCS_SHAPE; ls /run/slurm/conf")
        words = cluster.output(job).split()
        assert words[:2] == ["shape", "2x2x2"]
        assert "plugstack.conf" in words and "ocs.yaml" not in words
