# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Unmodified programs in a region, with --ocs-moe and nothing else: circuits follow their all-to-alls, and results are those
of programs without circuits, whichever daemon dies."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import living
from mpi_task import LATE, mpi_task
from regioncluster import RegionCluster, nics_yaml

SERVERS, DEGREE, MBIT = 4, 2, 100
NET = pathlib.Path(__file__).resolve().parent.parent / "net"
TASK = mpi_task("own=$(ip -o -4 address show packets | sed 's/.*inet \\([0-9.]*\\).*/\\1/')", "packets", "packets")
# PyTorch meets, and Gloo speaks, over the packet network.
TRAIN = r"""#!/bin/bash
dir=$1.$SLURM_JOB_ID
shift
mkdir -p $dir
if [ $SLURM_PROCID = 0 ]; then
    ip -o -4 address show packets | sed 's/.*inet \([0-9.]*\).*/\1/' >$dir/new; mv $dir/new $dir/master
fi
until [ -e $dir/master ]; do sleep 0.02; done
export MASTER_ADDR=$(cat $dir/master) MASTER_PORT=29500 RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS OMP_NUM_THREADS=1
export GLOO_SOCKET_IFNAME=packets PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$@"
"""


@pytest.fixture(scope="module")
def cluster():
    with living(RegionCluster, cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, regions=2, degree=DEGREE, mbit=MBIT, region_xpus=1,
                delay_ms=1, apart=True, region_yaml=nics_yaml(DEGREE, MBIT) + "    change_ms: 1\n",
                more_yaml="limits: {topologies_per_second: 200}\n") as made:
        for name, text in (("task", TASK), ("train", TRAIN)):
            made.write(name, text)
            os.chmod(made.path(name), 0o755)
        yield made


@pytest.fixture(autouse=True)
def ends(cluster):
    """What a test that fails has left does not stand in the way of the next one."""
    yield
    cluster.cancel_all()


class Job:
    """One whose only step is COMMAND, each task in a shell of its own."""

    def __init__(self, cluster, command, *options):
        self.cluster = cluster
        self.before, self.seen = self.optical(), set()
        self.number = cluster.sbatch("-p", "moe", "--shape=ep:%d" % SERVERS, "--ntasks-per-node=1", *options, script=
                                     "srun -N%d --ntasks-per-node=1 %s; echo ENDED $?" % (SERVERS, command))
        cluster.running(self.number)
        self.nodes = cluster.out(["scontrol", "show", "hostnames", cluster.job(self.number)["NodeList"]]).split()

    def optical(self):
        """Bytes that have left by optical NICs, of any job."""
        return sum(int(self.cluster.host(name, "cat", "/sys/class/net/ocs%d/statistics/tx_bytes" % p))
                   for name in self.cluster.region_nodes for p in range(DEGREE))

    def text(self):
        path = pathlib.Path(self.cluster.path("out", "%d.out" % self.number))
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def passes(self):
        return len(re.findall("^pass ", self.text(), re.M))

    def goes_on(self, more=4):
        wanted = self.passes() + more
        self.cluster.until(lambda: self.passes() >= wanted, 120, self.text)

    def follows(self, sets=1):
        """Circuits are used, and SETS of them have been seen."""
        before = self.optical()

        def changed():
            self.seen.add(self.circuits())
            return len(self.seen) >= sets and self.optical() > before + 1000000
        self.cluster.until(changed, 120, lambda: "circuits that follow, not %d; %s" % (len(self.seen), self.text()))

    def ended(self):
        """Its output."""
        self.cluster.until(lambda: "ENDED" in self.text(), 300, self.text)
        assert "ENDED 0" in self.text() and "slurm-ocs:" not in self.text(), self.text()
        self.sent = self.optical() - self.before
        self.cluster.wait(self.number, "COMPLETED", seconds=120)
        return self.text()

    def switch(self):
        """That of its region."""
        return "region-%d" % (int(self.nodes[0][1:]) // SERVERS)

    def circuits(self):
        switch = self.switch()
        return frozenset(patch for patch in self.cluster.patches() if patch[0] == switch)


def controllers(cluster, words):
    return cluster.out("pgrep -f '[o]cs-moe-controller .*%s' || true" % words).split()


def shown(cluster, job):
    """'ocsctl show region' has heat maps of the job that runs, and how well its gates were foretold."""
    words = "ocsctl show region %d --ocsd unix:%s" % (job.number, cluster.path("ocsd.sock"))

    def maps():
        text = cluster.out(words)
        return all(part in text for part in ("demand, tokens", "circuits", "achieved, of a NIC's rate", "METHOD NOW")) and text
    cluster.until(maps, 120, lambda: cluster.out(words))
    cluster.run("%s --svg %s" % (words, cluster.path("out", "region.svg")))
    text = pathlib.Path(cluster.path("out", "region.svg")).read_text(encoding="utf-8")
    assert len(re.findall("<rect x=", text)) == 3 * SERVERS ** 2, text


def kills(cluster, job):
    """Circuits follow; with daemons that die, each in turn, it goes on."""
    job.follows(sets=2)
    shown(cluster, job)
    cluster.saved(job.number)
    cluster.kill("slurmctld")
    job.goes_on()
    cluster.stop_slurmd(job.nodes[1])
    job.goes_on()
    cluster.start_slurmctld()
    cluster.start_slurmd(job.nodes[1])
    cluster.wait_for_slurmctld()
    cluster.kill("ocsd")
    job.goes_on()
    # where a change was under way for 10 s, circuits stay from then on
    cluster.start_ocsd()
    job.goes_on()
    cluster.run(["kill", "-9", controllers(cluster, "--node 2")[0]])
    job.goes_on()
    cluster.run(["kill", "-9", *controllers(cluster, "--ocsd")])
    job.goes_on()
    # with it the data plane: circuits carry nothing any more
    cluster.kill("ocs-emulator")
    job.goes_on()
    cluster.start_emulator()
    job.goes_on()


def sums_check(text, plain):
    """TEXT begins with the sums of PLAIN, which has 3."""
    sums = re.findall("^sum .*", plain, re.M)
    assert len(sums) == 3 and re.findall("^sum .*", text, re.M)[:3] == sums, text


class Program:
    """A command for jobs, and what it says without circuits."""

    def __init__(self, cluster, command):
        self.cluster, self.command = cluster, command
        plain = Job(cluster, command)
        self.text = plain.ended()
        assert plain.sent < 100000

    def start(self, stop=None, moe=""):
        """With circuits; until the file STOP is there, if it is said."""
        return Job(self.cluster, "%s %s" % (self.command, stop or ""), "--ocs-moe" + moe)


@pytest.fixture(scope="module")
def layers(cluster):
    """MPI_Alltoallv of an Open MPI program."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    path = cluster.path("layers")
    subprocess.run(["mpicc", "-O1", "-o", path, NET / "layers.c"], check=True)
    return Program(cluster, "%s %s %s 65536 3" % (cluster.path("task"), cluster.path("out", "mpi"), path))


@pytest.fixture(scope="module")
def training(cluster):
    """all_to_all_single of a training with experts in PyTorch."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], check=False, capture_output=True).returncode:
        pytest.skip("PyTorch is not installed")
    return Program(cluster, "%s %s %s 3 3" % (cluster.path("train"), cluster.path("out", "torch"), NET / "experts_train.py"))


def training_check(text, plain):
    """Losses and weights are the same to the last bit."""
    sums_check(text, plain)
    assert re.findall("loss .*", text)[:3] == re.findall("loss .*", plain)


def test_mpi(cluster, layers):
    stop = cluster.path("out", "stop")
    job = layers.start(stop)
    kills(cluster, job)
    pathlib.Path(stop).touch()
    sums_check(job.ended(), layers.text)
    # circuits that stay
    job = layers.start(moe="=static")
    stand = job.circuits()
    sums_check(job.ended(), layers.text)
    assert job.sent > 1000000 and stand


def test_mpi_late(cluster, layers):
    """MPI that is loaded at run time and privately."""
    subprocess.run(["mpicc", "-O1", "-shared", "-fPIC", "-Dmain=run", "-o", cluster.path("late.so"), NET / "layers.c"],
                   check=True)
    cluster.write("late.py", LATE)
    late = "/usr/bin/python3 %s %s" % (cluster.path("late.py"), cluster.path("late.so"))
    job = Job(cluster, layers.command.replace(cluster.path("layers"), late), "--ocs-moe")
    assert re.findall("^sum .*", job.ended(), re.M) == re.findall("^sum .*", layers.text, re.M) and job.sent > 1000000


def test_torch(cluster, training):
    stop = cluster.path("out", "stop.torch")
    job = training.start(stop)
    kills(cluster, job)
    pathlib.Path(stop).touch()
    training_check(job.ended(), training.text)


def test_two_regions(cluster, layers, training):
    """Both programs at once, each in a region of its own: circuits of both follow, and ocsd dies under both."""
    stops = [cluster.path("out", "stop.%s" % name) for name in ("one", "other")]
    jobs = layers.start(stops[0]), training.start(stops[1])
    assert {job.switch() for job in jobs} == {"region-0", "region-1"}
    for job in jobs:
        job.follows(sets=2)
    cluster.kill("ocsd")
    for job in jobs:
        job.goes_on(2)
    cluster.start_ocsd()
    for job in jobs:
        job.goes_on(2)
    for stop in stops:
        pathlib.Path(stop).touch()
    sums_check(jobs[0].ended(), layers.text)
    training_check(jobs[1].ended(), training.text)
