# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""An unmodified Open MPI program between network namespaces, its MPI_Alltoallv by Open MPI itself, by packets alone, by
circuits that stay and by circuits that follow the matrix of each layer."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess

import pytest

import moe_steer
import moelab
import netlab

SERVERS, ALPHA, LAYERS = 6, 2, 3
MBIT = int(os.environ.get("OCS_MOE_MBIT", "40"))


@pytest.fixture
def stage():
    why = netlab.possible(rates=True)
    if why:
        pytest.skip(why)
    folder = pathlib.Path(os.environ.get("OCS_STAGE", "/nonexistent"))
    if not (folder / "libexec/slurm-ocs/libocsmoe.so").exists():
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    return folder


def launcher(region, folder):
    """mpirun's options: each rank in the namespace of a server, reached as it would be by ssh."""
    agent = folder / "agent"
    cases = "".join(f"10.77.0.{s + 1}) s={s} ;;\n" for s in range(SERVERS))
    agent.write_text(f"""#!/bin/sh
        case $1 in
        {cases}
        esac
        shift
        mkdir -p {folder}/s$s
        export TMPDIR={folder}/s$s OCS_MOE_ADDRESS=10.77.0.$((s + 1))
        exec ip netns exec {region.prefix}h$s unshare -u sh -c "hostname server$s; $*"
        """)
    agent.chmod(0o755)
    hosts = folder / "hosts"
    hosts.write_text("".join(f"10.77.0.{s + 1} slots=1\n" for s in range(SERVERS)))
    (folder / "s0").mkdir()
    return ["ip", "netns", "exec", region.host(0), "env", f"TMPDIR={folder}/s0", "OCS_MOE_ADDRESS=10.77.0.1", "mpirun",
            "--allow-run-as-root", "--hostfile", hosts, "-np", str(SERVERS), "--bind-to", "none", "--oversubscribe",
            "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include",
            "packets", "--mca", "btl_tcp_if_include", "packets", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
            "--mca", "mpi_yield_when_idle", "1"]


def test_unmodified_program(stage, tmp_path):
    wrapper, program = tmp_path / "ocs_moe_mpi.so", tmp_path / "layers"
    folder = stage / "libexec/slurm-ocs"
    netlab.run("mpicc", "-O1", "-shared", "-fPIC", "-I", stage / "share/slurm-ocs", "-o", wrapper,
               stage / "share/slurm-ocs/ocs_moe_mpi.c", "-L", folder, "-l:libocsmoe.so", f"-Wl,-rpath,{folder}")
    netlab.run("mpicc", "-O1", "-o", program, pathlib.Path(__file__).with_name("layers.c"))
    region = moelab.OpticalRegion(stage, tmp_path, SERVERS, ALPHA, MBIT)
    try:
        mpirun = launcher(region, tmp_path)
        times, sums, sent, record = {}, {}, {}, None
        for mode in ("open mpi", "packets", "static", "following"):
            words = []
            if mode != "open mpi":
                steer = moe_steer.Steer(region, LAYERS, mode, record=record, name=mode.replace(" ", ""))
                words = ["-x", f"LD_PRELOAD={wrapper}", "-x", f"OCS_MOE_AGENT={steer.agent_path}", "-x",
                         f"OCS_MOE_PLAN={steer.ask_path}", "-x", f"OCS_MOE_LAYERS={LAYERS}"]
            before = region.sent()
            done = subprocess.run([*map(str, mpirun), *words, str(program)], capture_output=True, text=True,
                                  timeout=300, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "ocs_moe_mpi:" not in done.stderr, done.stderr
            sent[mode] = [after - b for after, b in zip(region.sent(), before)]
            times[mode] = statistics.median(map(float, re.findall(r"pass [1-9]: (.*) s", done.stdout)))
            sums[mode] = re.search("checksum (.*)", done.stdout).group(1)
            record = record or (mode == "packets" and steer.trace) or None
        # a plan in a file, without a controller
        plan = tmp_path / "plan"
        plan.write_text("# two lines of a plan\n" + "".join("link %s %s %s %s %s\n" % tuple(link) for link in
                                                           region.table()) + "share 0 1 -1 1 0 0.5\n")
        done = subprocess.run([*map(str, mpirun), "-x", f"LD_PRELOAD={wrapper}", "-x", f"OCS_MOE_PLAN={plan}",
                               str(program)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and "ocs_moe_mpi:" not in done.stderr, done.stderr
        sums["file"] = re.search("checksum (.*)", done.stdout).group(1)
    finally:
        region.close()
    for mode, took in times.items():
        print("%-10s %.3f s a pass (%.2f of packets), %.1f MB by packets, %.1f by circuits" % (
            mode, took, took / times["packets"], *(amount / 1e6 for amount in sent[mode])))
    assert len(set(sums.values())) == 1, sums
    assert region.exchanges > 10
    # not how long it took: other programs use these cores, too
    assert sent["packets"][1] < sent["packets"][0] / 50, sent
    assert sent["following"][0] < sent["packets"][0] * 3 / 4, sent
