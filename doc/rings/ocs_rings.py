# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The rings of a job on a direct fabric, read from its plan.json, and communicators
whose ranks follow them.

    from mpi4py import MPI
    import ocs_rings

    for ring in ocs_rings.read():
        comm = ocs_rings.split(ring, MPI.COMM_WORLD)

Ring 0 is what NCCL and MPI use by themselves when the ranks are in the order of the
nodes.  Run as a program it prints every ring of the plan:

    python3 ocs_rings.py [plan.json]
"""
import json
import os
import sys

UNDEFINED = -32766      # MPI_UNDEFINED of Open MPI; mpi4py's own value is used if it is there


class Ring:
    """One ring: `nodes`, names in ring order; `group` and `step` as in the plan."""

    def __init__(self, group, step, nodes):
        self.group, self.step, self.nodes = group, step, nodes

    def place(self, node=None):
        """Where NODE (default: this one) stands in the ring, or None."""
        node = node or os.environ.get("SLURMD_NODENAME")
        return self.nodes.index(node) if node in self.nodes else None

    def ranks(self, node_of):
        """Ranks in ring order; NODE_OF is a list: the node of every rank."""
        return [rank for node in self.nodes
                for rank, there in enumerate(node_of) if there == node]


def read(path=None):
    """All rings of the plan at PATH (default: $SLURM_OCS_DIR/plan.json)."""
    with open(path or os.path.join(os.environ["SLURM_OCS_DIR"], "plan.json")) as file:
        plan = json.load(file)
    names = plan["nodes"]
    return [Ring(number, step, [names[server] for server in servers])
            for number, group in enumerate(plan["groups"])
            for step, servers in zip(group["steps"], group["rings"])]


def split(ring, comm):
    """The ranks of COMM (mpi4py's, or anything with its Split) on nodes of RING, in ring
    order; ranks of one node keep their order.  Collective over COMM."""
    place = ring.place()
    undefined = getattr(sys.modules.get("mpi4py.MPI"), "UNDEFINED", UNDEFINED)
    return comm.Split(undefined if place is None else 0, place or 0)


def main():
    for number, ring in enumerate(read(*sys.argv[1:2])):
        print("ring %d, group %d, step %d: %s" % (number, ring.group, ring.step,
                                                  " ".join(ring.nodes)))


if __name__ == "__main__":
    main()
