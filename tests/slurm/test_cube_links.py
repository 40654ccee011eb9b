# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on cubes whose links are NICs: what their tasks find."""

import itertools
import json

import pytest

TILE = (2, 2, 1)
# (XPU, direction) of every link that leaves a tile; an interface each
LINKS = [(i, sign + "xyz"[axis]) for i, at in enumerate(itertools.product(*(range(n) for n in TILE)))
         for axis in range(3) for sign, end in (("+", TILE[axis] - 1), ("-", 0)) if at[axis] == end]


@pytest.fixture(scope="module")
def cubes(make_cluster):
    text = "    interfaces:\n" + "".join("      - {xpu: %d, direction: %s, name: ocsnic%d, rdma: ocsib_%d}\n" % (
        xpu, direction, i, i) for i, (xpu, direction) in enumerate(LINKS))
    cluster = make_cluster(cubes=2, edge=2, tile=TILE, torus_yaml=text)
    yield cluster
    cluster.stop()


def test_tasks_know_the_interfaces_of_their_links(cubes):
    """Only those that lead to another node; the prolog does not wait for what is not on the host."""
    script = "srun --ntasks-per-node=1 bash -c 'echo $SLURMD_NODENAME $SLURM_OCS_INTERFACES $NCCL_IB_HCA'\n" \
             "cat $SLURM_OCS_DIR/placement.json\n"
    job = cubes.sbatch("--shape=2x2x2", script=script)
    lines = cubes.output(job).splitlines()
    placement = json.loads(lines.pop())
    z_of = {x["node"]: x["at"][2] for x in placement["xpus"]}
    assert len(z_of) == 2 and not placement["circuits"], placement
    for line in lines:
        node, interfaces, ports = line.split()
        numbers = [i for i, (_, direction) in enumerate(LINKS) if direction == ("-z" if z_of[node] else "+z")]
        assert interfaces == ",".join("ocsnic%d" % i for i in numbers), lines
        assert ports == "=" + ",".join("ocsib_%d" % i for i in numbers), lines
    assert len(lines) == 2, lines
    assert [o["ranks"][0] for o in placement["orders"]] == [[0, 4], [0, 2], [0, 1]]
