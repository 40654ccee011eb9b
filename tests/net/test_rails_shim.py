# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Unmodified programs behind the gates of rails: Open MPI and PyTorch's Gloo, on one machine, with an agent of
the tests' own."""

import os
import pathlib
import shutil
import subprocess

import pytest

import netlab
import rails_agent

HERE = pathlib.Path(__file__).resolve().parent
STAGE = pathlib.Path(os.environ.get("OCS_STAGE", "/nonexistent"))
SHIMS = STAGE / "libexec/slurm-ocs"
# A machine of its own whose address is not the loopback's.
OWN = ["unshare", "-n", "sh", "-c",
       'ip link set lo up; ip link add d0 type veth peer name d1; ip link set d1 up; '
       'ip address add 10.9.9.1/24 dev d0; ip link set d0 up; exec "$@"', "sh"]


@pytest.fixture(scope="module", autouse=True)
def possible():
    why = netlab.possible()
    if why:
        pytest.skip(why)
    if not SHIMS.exists():
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("mpicc") or not shutil.which("mpirun") or not (SHIMS / "libocs-rails-mpi.so").exists():
        pytest.skip("Open MPI is not installed")
    path = tmp_path_factory.mktemp("program") / "program"
    subprocess.run(["mpicc", "-O1", "-Wall", "-Werror", "-o", path, HERE / "rails_program.c"], check=True)
    return path


def grid(stages, ranks, free=()):
    """Replicas of a stage, a pair of stages: circuits of their own each; all else: the ring."""
    width = ranks // stages

    def colour(members):
        if set(members) <= set(free):
            return None
        if len({rank // width for rank in members}) == 1:
            return "replicas"
        return "pipeline" if len({rank % width for rank in members}) == 1 else "ring"
    return colour


def mpirun(tmp_path, program, ranks, *words, gated=True, patience=200):
    task = tmp_path / "task"
    task.write_text("""#!/bin/sh
        export OCS_RAILS_TIMEOUT=%d SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_NTASKS=$OMPI_COMM_WORLD_SIZE
        %s exec "$@"
        """ % (patience, "LD_PRELOAD=%s/libocs-rails-mpi.so OCS_RAILS_AGENT=%s/agent" % (SHIMS, tmp_path) if gated else ""))
    task.chmod(0o755)
    return subprocess.run(
        OWN + ["mpirun", "--allow-run-as-root", "-np", str(ranks), "--bind-to", "none", "--oversubscribe",
               "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "d0", "--mca", "pml", "ob1",
               "--mca", "mpi_yield_when_idle", "1", task, program] + [str(word) for word in words],
        capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("stages, ranks", [(2, 4), (3, 6)])
def test_mpi(tmp_path, program, stages, ranks):
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(stages, ranks))
    done = mpirun(tmp_path, program, ranks, stages, 3)
    agent.stop()
    assert (done.returncode, agent.faults) == (0, []), done.stdout + done.stderr
    assert "%d ranks, 3 steps: right" % ranks in done.stdout
    assert not agent.open and not agent.waiting
    assert len(agent.log) > 100 and agent.changes > 3 and agent.quiet > 20
    # every rank of the world takes part in what the world does
    assert any(len(members) == ranks for members, _, _ in agent.log)
    assert any(len(members) == 2 for members, _, _ in agent.log)


def test_mpi_inside_a_node(tmp_path, program):
    """Groups that need no circuits send no letters."""
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, 4, free=range(4)))
    done = mpirun(tmp_path, program, 4, 2, 1)
    agent.stop()
    assert (done.returncode, agent.faults, agent.log) == (0, [], []), done.stdout + done.stderr


def test_mpi_loaded_late(tmp_path, program):
    """As mpi4py does: MPI comes with a module that is loaded at run time, privately."""
    late = tmp_path / "late.so"
    subprocess.run(["mpicc", "-O1", "-shared", "-fPIC", "-Dmain=run", "-o", late, HERE / "rails_program.c"], check=True)
    text = ("import ctypes, sys; words = [b'late', b'2', b'2']; "
            "sys.exit(ctypes.CDLL('%s').run(3, (ctypes.c_char_p * 4)(*words)))" % late)
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, 4))
    done = mpirun(tmp_path, "/usr/bin/python3", 4, "-c", text)
    agent.stop()
    assert (done.returncode, agent.faults) == (0, []), done.stdout + done.stderr
    assert "2 steps: right" in done.stdout and len(agent.log) > 100


LOOKED_UP = """
import ctypes, sys
mpi = ctypes.CDLL(sys.argv[1])
mpi.MPI_Init(None, None)
world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))
number = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_int"))
add = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_op_sum"))
rank, total = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
for turn in range(20):
    mine = ctypes.c_int(rank.value + turn)
    mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, number, add, world)
    assert total.value == 6 + 4 * turn, total
mpi.MPI_Finalize()
if not rank.value:
    print("20 turns: right")
"""


def test_mpi_looked_up(tmp_path):
    """As MPI.jl and ctypes do: the library by its path, functions by dlsym in its handle."""
    paths = [line.split()[-1] for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
             .stdout.splitlines() if line.split()[:1] == ["libmpi.so.40"]]
    if not paths:
        pytest.skip("Open MPI is not installed")
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, 4))
    done = mpirun(tmp_path, "/usr/bin/python3", 4, "-c", LOOKED_UP, paths[0])
    agent.stop()
    assert (done.returncode, agent.faults) == (0, []), done.stdout + done.stderr
    assert "20 turns: right" in done.stdout
    assert sum(len(members) == 4 for members, _, _ in agent.log) >= 20, agent.log


def test_mpi_two_of_a_node(tmp_path, program):
    """Ranks 0 and 1 are on one node, 2 and 3 on another: what passes freely does not stop what is held."""
    colour = grid(2, 4)
    agent = rails_agent.Agent(str(tmp_path / "agent"), lambda members: colour(members) if len({r // 2 for r in members}) > 1 else None)
    done = mpirun(tmp_path, program, 4, 2, 3)
    agent.stop()
    assert (done.returncode, agent.faults) == (0, []), done.stdout + done.stderr
    assert "3 steps: right" in done.stdout


def test_mpi_refused(tmp_path, program):
    """What cannot be gated ends the program, and says why."""
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, 4))
    done = mpirun(tmp_path, program, 4, 2, 1, 1, "wrong")
    agent.stop()
    assert done.returncode != 0
    assert "MPI_ANY_SOURCE" in done.stderr and "--ocs-phases=off" in done.stderr


def test_agent_dies(tmp_path, program):
    """In the middle of a step: every task fails, and says why."""
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, 4))
    agent.last = 30
    done = mpirun(tmp_path, program, 4, 2, 3)
    agent.stop()
    assert done.returncode != 0 and len(agent.log) >= 30
    assert "agent of this node" in done.stderr and "right" not in done.stdout


def test_no_agent(tmp_path, program):
    """No gate, no sending: the program fails and does not hang."""
    done = mpirun(tmp_path, program, 2, 2, 1, patience=3)       # there is none
    assert done.returncode != 0
    assert "must not send" in done.stderr


def train(tmp_path, ranks, stages, steps, gated):
    """The output of rank 0, and whether all ranks ended well."""
    script = "".join("""
        SLURM_PROCID=%d RANK=%d %s /usr/bin/python3 %s/rails_train.py %d %d >%s/%d.out 2>&1 & pids="$pids $!"
        """ % (rank, rank, "LD_PRELOAD=%s/libocs-rails-gloo.so OCS_RAILS_AGENT=%s/agent" % (SHIMS, tmp_path) if gated
               else "", HERE, stages, steps, tmp_path, rank) for rank in range(ranks))
    done = subprocess.run(
        OWN + ["bash", "-c", """export SLURM_NTASKS=%d WORLD_SIZE=%d MASTER_ADDR=10.9.9.1 MASTER_PORT=29500 OMP_NUM_THREADS=1 OCS_RAILS_TIMEOUT=200
        export GLOO_SOCKET_IFNAME=d0 PYTHONDONTWRITEBYTECODE=1
        %s
        for pid in $pids; do wait $pid || bad=1; done; exit $bad""" % (ranks, ranks, script)],
        timeout=300, check=False)
    told = [(tmp_path / ("%d.out" % rank)).read_text() for rank in range(ranks)]
    assert done.returncode == 0, "\n".join(told)
    return told[0]


def test_gloo(tmp_path):
    """A pipeline with data parallel stages: losses and weights to the last bit, with gates and without."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True, check=False).returncode:
        pytest.skip("python3-torch is not installed")
    if not (SHIMS / "libocs-rails-gloo.so").exists():
        pytest.skip("the library for Gloo is not built here")
    ranks, steps = 4, 3
    plain = train(tmp_path, ranks, 2, steps, False)
    agent = rails_agent.Agent(str(tmp_path / "agent"), grid(2, ranks))
    gated = train(tmp_path, ranks, 2, steps, True)
    agent.stop()
    assert agent.faults == []
    assert gated == plain and gated.count("loss") == steps and "weights" in gated
    assert not agent.waiting
    sizes = [len(members) for members, _, _ in agent.log]
    # messages of two, rings of two, and what all do: connections, losses, experts
    assert sizes.count(4) >= 2 * steps + 2 and sizes.count(2) > 10 * steps
    assert agent.changes >= 2 * steps and agent.quiet > 20


def test_no_job(tmp_path, program):
    """Outside a job, and in programs without MPI, the library does nothing."""
    done = mpirun(tmp_path, program, 4, 2, 1, gated=False)
    assert done.returncode == 0, done.stderr
    for preload in SHIMS.glob("libocs-rails-*.so"):
        done = subprocess.run(["bash", "-c", "echo $((6 * 7)); ls / >/dev/null"], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": str(preload), "OCS_RAILS_AGENT": "/nowhere",
                                   "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")
