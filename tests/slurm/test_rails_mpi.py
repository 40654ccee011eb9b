# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Unmodified Open MPI and PyTorch programs on rails: circuits follow the phases of their steps, results are those of
programs without circuits, and no frame meets a port in change."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import living
from mpi_task import LATE, mpi_task
from netcluster import RailsCluster

NET = pathlib.Path(__file__).resolve().parent.parent / "net"
TASK = mpi_task('while read -r address name; do [ $name = $SLURMD_NODENAME ] && own=$address; done <$SLURM_OCS_DIR/addresses',
                "10.77.0.0/24", "10.192.0.0/16")
# PyTorch meets over the management network, and Gloo speaks from the address that circuits lead to.
TRAIN = r"""#!/bin/bash
dir=$1.$SLURM_JOB_ID
shift
mkdir -p $dir
if [ $SLURM_PROCID = 0 ]; then
    ip -o -4 address show eth0 | sed 's/.*inet \([0-9.]*\).*/\1/' >$dir/new; mv $dir/new $dir/master
fi
until [ -e $dir/master ]; do sleep 0.02; done
export MASTER_ADDR=$(cat $dir/master) MASTER_PORT=29500 RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS OMP_NUM_THREADS=1
export OCS_RAILS_TIMEOUT=60
export GLOO_SOCKET_IFNAME=$(ip -o -4 address show to 10.192.0.0/16 | awk '{print $2; exit}') PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$@"
"""


@pytest.fixture(scope="module")
def net():
    with living(RailsCluster, cubes=1, edge=2, tile=(2, 2, 2), rails=12, nrails=1, nic_ports=2, rail_xpus=2,
                # plugins are called from a process that ends at once
                config={"SlurmdParameters": "config_overrides,contain_spank"}, spank=("prolog_timeout=60",)) as cluster:
        for name, text in (("task", TASK), ("train", TRAIN)):
            cluster.write(name, text)
            os.chmod(cluster.path(name), 0o755)
        yield cluster


def ended(net, shape, mode, nodes, command):
    """The output of a job whose one step is COMMAND, and what `show phases` said of it at its end."""
    job = net.sbatch("-p", "rails", "--shape=" + shape, "--ocs-phases=" + mode,
                     script="srun -N%d --ntasks-per-node=1 %s; echo ENDED $?; sleep 300" % (nodes, command))
    net.running(job)

    def text():
        path = pathlib.Path(net.path("out", "%d.out" % job))
        return path.read_text() if path.exists() else ""
    net.until(lambda: "ENDED" in text(), 300, text)
    shown = net.ocsctl("show", "phases", str(job))["phases"][0]
    net.cancel_all()
    assert "ENDED 0" in text(), text()
    return text(), shown


def changed(before, after, what):
    return {port: after[port][what] - before[port][what] for port in after if after[port][what] != before[port][what]}


@pytest.mark.parametrize("shape, nodes, words, mode, delay, late", [
    ("pp:2,dp:2,tp:2", 4, "2 2", "on-demand", 0, False),
    ("pp:2,dp:2,tp:2", 4, "2 2", "provisioned", 25, False),
    ("pp:2,dp:2,tp:2", 4, "2 1", "on-demand", 100, True),
    ("pp:3,dp:2,cp:2,tp:2", 12, "3 1 2", "provisioned", 25, False),
])
def test_mpi(net, shape, nodes, words, mode, delay, late):
    """Every kind of call, all-to-alls as successive matchings among them, and children of fork()."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    program = net.path("program")
    if late:
        subprocess.run(["mpicc", "-O1", "-shared", "-fPIC", "-Dmain=run", "-o", net.path("late.so"), NET / "rails_program.c"],
                       check=True)
        net.write("late.py", LATE)
        program = "/usr/bin/python3 %s %s" % (net.path("late.py"), net.path("late.so"))
    else:
        subprocess.run(["mpicc", "-O1", "-o", program, NET / "rails_program.c"], check=True)
    net.emulator("delay", str(delay))
    before = net.frames()
    text, shown = ended(net, shape, mode, nodes, "%s %s %s %s" % (
        net.path("task"), net.path("out", "mpi"), program, words))
    after = net.frames()
    assert "%d ranks, %s steps: right" % (nodes, words.split()[1]) in text
    assert shown["changes"] > 4 and shown["refused"] == 0, shown
    assert changed(before, after, "changing") == {} and changed(before, after, "dark") == {}
    assert changed(before, after, "passed")


# A program that asks for a signal, and what it heard when it ends; the signal may come after the error.
HEARING = r"""
import os, runpy, signal, sys, time
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(True))
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    end = time.monotonic() + 60
    while not heard and time.monotonic() < end:
        time.sleep(0.01)
    print("HEARD", os.environ["SLURM_PROCID"], bool(heard), flush=True)
"""


def losses(text):
    return [line for line in text.splitlines() if line.startswith(("loss", "weights"))]


TRAINING = "%s 2 2" % (NET / "rails_train.py")


@pytest.fixture(scope="module")
def plain():
    """The training without circuits, without a job."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True, check=False).returncode:
        pytest.skip("python3-torch is not installed")
    text = subprocess.run(
        ["unshare", "-n", "sh", "-c", """ip link set lo up; export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=4
        export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
        for i in 1 2 3; do RANK=$i /usr/bin/python3 %s & done; RANK=0 /usr/bin/python3 %s; wait""" % (TRAINING, TRAINING)],
        capture_output=True, text=True, timeout=300, check=True).stdout
    assert len(losses(text)) == 3
    return text


def test_killed_rank(net, plain):
    """A rank is killed in the middle of changes: the job fails and names it, ranks get the signal that they asked for,
    nothing is left, and a job beside it on the same switches loses no frame."""
    net.write("hearing.py", HEARING)
    net.emulator("delay", "10")
    before = net.frames()
    begun = [net.sbatch("-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand",
                        "--export=ALL,OCS_RAILS_SIGNAL=USR1",
                        script="srun -N4 --ntasks-per-node=1 %s %s %s %s 2 %d; echo ENDED $?" % (
                            net.path("train"), net.path("out", "kill"), more, NET / "rails_train.py", count))
             for count, more in ((2, ""), (1000, net.path("hearing.py")))]
    for job in begun:
        net.running(job)

    def text(job):
        path = pathlib.Path(net.path("out", "%d.out" % job))
        return path.read_text() if path.exists() else ""
    net.until(lambda: text(begun[1]).count("loss") > 1, 120, lambda: text(begun[1]))
    net.run("for p in $(pgrep -f 'rails_train.py 2 1000'); do grep -zqx SLURM_PROCID=2 /proc/$p/environ && kill -KILL $p; "
            "done; true")
    for job in begun:
        net.until(lambda: "ENDED" in text(job), 120, lambda: text(job))
    assert "ENDED 0" in text(begun[0]) and losses(text(begun[0])) == losses(plain), text(begun[0]) + plain
    assert "ENDED 0" not in text(begun[1]), text(begun[1])
    # its agent ends with the killed task, and may do so before it has said why
    assert sum(text(begun[1]).count("slurm-ocs: rank 2 is gone " + how) for how in (
        "without a goodbye", "with its node or its agent")) == 1, text(begun[1])
    assert sorted(line for line in text(begun[1]).splitlines() if line.startswith("HEARD")) == [
        "HEARD %d True" % rank for rank in (0, 1, 3)], text(begun[1])
    net.until(lambda: not [patch for patch in net.patches() if patch[0].startswith("rail")], 60, lambda: net.patches())
    net.until(lambda: not [port for port in net.ocsctl("show", "port")["ports"] if port.get("owner")], 60, "ports to be free")
    net.until(lambda: "ocs-rails" not in net.out("ps -eo args | grep -v grep"), 60, "programs of jobs to end")
    after = net.frames()
    assert changed(before, after, "changing") == {} and changed(before, after, "dark") == {}


@pytest.mark.parametrize("mode, delay", [("on-demand", 0), ("provisioned", 100)])
def test_train(net, plain, mode, delay):
    """A pipeline with data parallel stages: losses and weights to the last bit."""
    net.emulator("delay", str(delay))
    before = net.frames()
    text, shown = ended(net, "pp:2,dp:2,tp:2", mode, 4, "%s %s %s" % (net.path("train"), net.path("out", "train"), TRAINING))
    after = net.frames()
    assert losses(text) == losses(plain), text + plain
    assert shown["changes"] > 4 and shown["refused"] == 0, shown
    assert changed(before, after, "changing") == {} and changed(before, after, "dark") == {}
    assert changed(before, after, "passed")
