# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A real parallel program over the routes of a plan: Open MPI, TCP, one rank on each
server."""

import pathlib
import shutil
import subprocess

import pytest

import netlab


@pytest.mark.parametrize("backend", ["bpf", "routes"])
def test_allreduce(lab, tmp_path, backend):
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    program = tmp_path / "allreduce"
    netlab.run("mpicc", "-O1", "-o", program, pathlib.Path(__file__).with_name("allreduce.c"))
    net = lab(12, 4)
    net.forward_all("--backend", backend)
    # Open MPI reaches a server as it would by ssh; the daemons tell servers apart by
    # their host names and keep files below TMPDIR.
    agent = tmp_path / "agent"
    cases = "".join(f"{net.address(s)}) s={s} n={net.host(s)} ;;\n" for s in range(12))
    agent.write_text(f"""#!/bin/sh
        case $1 in
        {cases}
        esac
        shift
        mkdir -p {tmp_path}/s$s
        export TMPDIR={tmp_path}/s$s
        exec ip netns exec $n unshare -u sh -c "hostname server$s; $*"
        """)
    agent.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{net.address(s)} slots=1\n" for s in range(12)))
    head = tmp_path / "s0"
    head.mkdir(exist_ok=True)
    before = net.sent()
    done = subprocess.run(
        ["ip", "netns", "exec", net.host(0), "env", f"TMPDIR={head}", "mpirun", "--allow-run-as-root",
         "--hostfile", hosts, "-np", "12", "--bind-to", "none", "--oversubscribe",
         "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
         "--mca", "oob_tcp_if_include", "ocs0", "--mca", "btl_tcp_if_include", "ocs0",
         "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1", program],
        capture_output=True, text=True, timeout=60, check=False)
    after = net.sent()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 ranks: right" in done.stdout
    # a ring of 12 sends far more than this; and it went by more than one port
    used = {k for k in after if after[k] - before[k] > 20}
    assert {s for s, _ in used} == set(range(12))
    assert len({p for _, p in used}) > 1
