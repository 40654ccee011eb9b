# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The rings of a job, and communicators whose ranks follow them: on a direct fabric the
rings of its plan.json, on cubes those along each dimension of its placement.json.

    from mpi4py import MPI
    import ocs_rings

    for ring in ocs_rings.read():
        comm = ocs_rings.split(ring, MPI.COMM_WORLD)

Ring 0 is what NCCL and MPI use by themselves when the ranks are in the order of the
nodes.  On cubes, with one process for each XPU and PyTorch:

    for order in ocs_rings.orders():
        groups = [torch.distributed.new_group(ranks) for ranks in order.ranks]
        mine = groups[order.place()[0]]
        with ocs_rings.graph(order):        # NCCL makes the communicator with the first call
            torch.distributed.all_reduce(torch.zeros(1, device="cuda"), group=mine)

Run as a program it prints every ring of a plan or every list of a placement:

    python3 ocs_rings.py [plan.json | placement.json]
"""
import contextlib
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


class Order:
    """The lists of ranks along dimension `dim`: a link joins each rank to the next and, if
    `ring`, the last to the first."""

    def __init__(self, dim, ring, ranks):
        self.dim, self.ring, self.ranks = dim, ring, ranks

    def place(self, rank=None):
        """(list, place in it) of RANK (default: $SLURM_OCS_RANK, this task's), or None."""
        rank = int(os.environ["SLURM_OCS_RANK"]) if rank is None else rank
        return next(((n, ranks.index(rank)) for n, ranks in enumerate(self.ranks) if rank in ranks), None)


def orders(path=None):
    """The orders of the placement at PATH (default: $SLURM_OCS_DIR/placement.json)."""
    with open(path or os.path.join(os.environ["SLURM_OCS_DIR"], "placement.json")) as file:
        return [Order(one["dim"], one["ring"], one["ranks"]) for one in json.load(file)["orders"]]


@contextlib.contextmanager
def graph(order, rank=None):
    """Within it NCCL makes communicators by the graph file of RANK's list (default: this task's), if
    the list has one; else by none."""
    before, at = os.environ.pop("NCCL_GRAPH_FILE", None), order.place(rank)
    path = os.path.join(os.environ.get("SLURM_OCS_DIR", ""), "graph-%d-%d.xml" % (order.dim, at[0])) if at else ""
    if os.path.exists(path):
        os.environ["NCCL_GRAPH_FILE"] = path
    try:
        yield os.environ.get("NCCL_GRAPH_FILE")
    finally:
        os.environ.pop("NCCL_GRAPH_FILE", None)
        if before is not None:
            os.environ["NCCL_GRAPH_FILE"] = before


def split_order(order, comm):
    """The ranks of COMM in this task's list, in its order.  Collective over COMM."""
    undefined = getattr(sys.modules.get("mpi4py.MPI"), "UNDEFINED", UNDEFINED)
    at = order.place()
    return comm.Split(*(at or (undefined, 0)))


def split(ring, comm):
    """The ranks of COMM (mpi4py's, or anything with its Split) on nodes of RING, in ring
    order; ranks of one node keep their order.  Collective over COMM."""
    place = ring.place()
    undefined = getattr(sys.modules.get("mpi4py.MPI"), "UNDEFINED", UNDEFINED)
    return comm.Split(undefined if place is None else 0, place or 0)


def main():
    if sys.argv[1:] and "orders" in json.load(open(sys.argv[1])):
        for order in orders(sys.argv[1]):
            for number, ranks in enumerate(order.ranks):
                print("dimension %d, %s %d: %s" % (order.dim, "ring" if order.ring else "line", number,
                                                   " ".join(map(str, ranks))))
        return
    for number, ring in enumerate(read(*sys.argv[1:2])):
        print("ring %d, group %d, step %d: %s" % (number, ring.group, ring.step,
                                                  " ".join(ring.nodes)))


if __name__ == "__main__":
    main()
