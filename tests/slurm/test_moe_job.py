# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A job in a region whose controller has ocsd change its circuits layer by layer, while every daemon dies in turn: all
all-to-alls are right to the last byte.  Then one whose nodes have nothing in common but the network: the controller that
spank_ocs starts, and its relays."""

import json
import os
import pathlib

import pytest

from conftest import living
from regioncluster import RegionCluster, nics_yaml

SERVERS, DEGREE, LAYERS = 4, 1, 3
NET = pathlib.Path(__file__).resolve().parent.parent / "net"
SCRIPT = """export OCS_MOE_LIBRARY={stage}/libexec/slurm-ocs/libocsmoe.so PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 {net}/moe_controller.py {config} > {folder}/said &
echo $! > {folder}/controller.pid
until [ -S {folder}/job.ask ]; do kill -0 $! || exit; sleep 0.1; done
srun --ntasks-per-node=1 bash -c '/usr/bin/python3 {net}/moe_steps.py {config} $SLURM_PROCID'
"""


@pytest.fixture
def cluster():
    with living(RegionCluster, cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, degree=DEGREE, mbit=200, region_xpus=1,
                delay_ms=1) as made:
        yield made


def test_daemons_die(cluster):
    out, config = cluster.path("out"), cluster.path("job.json")
    cluster.write("job.json", json.dumps({
        "addresses": ["10.77.0.%d:7000" % (s + 1) for s in range(SERVERS)], "key": "k" * 32, "out": out, "layers": LAYERS,
        "agent": cluster.path("job.agent"), "ask": cluster.path("job.ask"), "socket": cluster.path("ocsd.sock"),
        "servers": SERVERS, "degree": DEGREE, "mbit": 200, "mode": "following", "folder": cluster.dir, "name": "job",
        "stage": str(cluster.stage)}))
    job = cluster.sbatch("-p", "moe", "--shape=ep:%d" % SERVERS, "--ocs-moe", "--ntasks-per-node=1", "--chdir=" + out,
                         script=SCRIPT.format(stage=cluster.stage, net=NET, config=config, folder=cluster.dir))
    cluster.running(job)

    def lines(rank=0):
        path = os.path.join(out, str(rank))
        # the last one may be half there
        return open(path, encoding="ascii").read().split("\n")[:-1] if os.path.exists(path) else []

    def goes_on(passes=3):
        """Passes that begin from now on come to their end."""
        wanted = len(lines()) + 1 + passes
        cluster.until(lambda: len(lines()) >= wanted, 60, lambda: "passes after %d; %s" % (
            len(lines()), cluster.out("cat %s/*.out %s/said" % (out, cluster.dir))))

    def circuits():
        return json.loads(lines()[-1])["circuits"]

    goes_on(5)
    def follow():
        """Circuits are used, and change."""
        before, seen = circuits(), set()

        def changed():
            seen.add(tuple(sorted(map(tuple, cluster.patches()))))
            return len(seen) > 2 and circuits() > before
        cluster.until(changed, 60, lambda: "circuits that follow; %s" % cluster.out("cat %s/*.out" % out))

    follow()
    shown = cluster.out("ocsctl show region %d --ocsd unix:%s" % (job, cluster.path("ocsd.sock")))
    assert "job %d, ep:%d, follow" % (job, SERVERS) in shown and "servers 0 m0, 1 m1, 2 m2, 3 m3" in shown, shown
    cluster.saved(job)
    cluster.kill("slurmctld")
    goes_on()
    cluster.stop_slurmd("m1")
    goes_on()
    cluster.start_slurmctld()
    cluster.start_slurmd("m1")
    cluster.wait_for_slurmctld()
    cluster.kill("ocsd")
    goes_on()
    cluster.start_ocsd()
    follow()
    cluster.run("kill -9 $(cat %s)" % cluster.path("controller.pid"))
    goes_on()
    cluster.kill("ocs-emulator")
    goes_on()
    cluster.start_emulator()
    open(os.path.join(out, "stop"), "w", encoding="ascii").close()
    cluster.wait(job, "COMPLETED", seconds=60)
    for rank in range(SERVERS):
        assert all(json.loads(line)["right"] for line in lines(rank))
        assert len(lines(rank)) == len(lines())


RELAYED = """export OCS_MOE_LIBRARY={stage}/libexec/slurm-ocs/libocsmoe.so PYTHONDONTWRITEBYTECODE=1
srun --ntasks-per-node=1 bash -c 'until ls -d /tmp/ocs-moe-* > {out}/sockets.$SLURM_PROCID 2>&1; do sleep 0.1; done
    exec /usr/bin/python3 {net}/moe_steps.py {config} $SLURM_PROCID'
"""


@pytest.fixture
def nodes():
    with living(RegionCluster, cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, degree=2, mbit=200, region_xpus=1,
                delay_ms=1, apart=True, region_yaml=nics_yaml(2), more_yaml="limits: {topologies_per_second: 200}\n") as made:
        yield made


def test_nodes_apart(nodes):
    """No node has the sockets of another one; gates of all nodes reach the controller, also when relays and the controller die."""
    out, config = nodes.path("out"), nodes.path("job.json")
    nodes.write("job.json", json.dumps({
        "addresses": ["10.77.0.%d:7000" % (s + 1) for s in range(SERVERS)], "key": "k" * 32, "out": out, "layers": LAYERS}))
    job = nodes.sbatch("-p", "moe", "--shape=ep:%d" % SERVERS, "--ocs-moe", "--ntasks-per-node=1", "--chdir=" + out,
                       script=RELAYED.format(stage=nodes.stage, net=NET, config=config, out=out))
    nodes.running(job)

    def lines(rank=0):
        path = os.path.join(out, str(rank))
        # the last one may be half there
        return open(path, encoding="ascii").read().split("\n")[:-1] if os.path.exists(path) else []

    def follow():
        """Circuits are used, and change."""
        seen, before = set(), len(lines())

        def changed():
            seen.add(tuple(sorted(map(tuple, nodes.patches()))))
            now = lines()
            return len(seen) > 2 and len(now) > before + 3 and \
                json.loads(now[-1])["circuits"] > json.loads(now[before + 1])["circuits"]
        nodes.until(changed, 120, lambda: "circuits that follow; %s" % nodes.out("cat %s/*.out" % out))

    def controllers(words):
        return set(nodes.out("pgrep -f '[o]cs-moe-controller .*%s' || true" % words).split())

    follow()
    folders = [open(os.path.join(out, "sockets.%d" % s), encoding="ascii").read().split() for s in range(SERVERS)]
    assert all(len(names) == 1 for names in folders), folders
    assert len({names[0] for names in folders}) == SERVERS, folders
    nodes.until(lambda: len(controllers("--relay 10.76.0.2")) == SERVERS - 1, 60, lambda: controllers("--relay"))
    # a relay dies: its node's gates are lost, and circuits stay, or go on as they were
    nodes.run(["kill", "-9", sorted(controllers("--node 2"))[0]])
    passes = len(lines())
    nodes.until(lambda: len(lines()) > passes + 3, 120, lambda: nodes.out("cat %s/*.out" % out))
    nodes.run(["kill", "-9", *controllers("--ocsd")])
    passes = len(lines())
    nodes.until(lambda: len(lines()) > passes + 3, 120, lambda: nodes.out("cat %s/*.out" % out))
    open(os.path.join(out, "stop"), "w", encoding="ascii").close()
    nodes.wait(job, "COMPLETED", seconds=120)
    for rank in range(SERVERS):
        assert all(json.loads(line)["right"] for line in lines(rank))
        assert len(lines(rank)) == len(lines())
    nodes.until(lambda: not controllers("--relay"), 60, lambda: "relays to end with their job")
