# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Judges placements from outside: job edges against fixed links and the patches
that the emulated switches hold.  Shares nothing with the project's own code."""

import itertools


def edges(shape, conn):
    """The job's graph: pairs of coordinates that must be joined."""
    for coord in itertools.product(*[range(extent) for extent in shape]):
        for dim, extent in enumerate(shape):
            following = coord[dim] + 1
            if following == extent:
                if conn[dim] == "mesh" or extent <= 2:
                    continue
                following = 0
            yield coord, coord[:dim] + (following,) + coord[dim + 1:]


class Links:
    """The links of the machine now: inside cubes, and through the switches."""

    def __init__(self, patches, size, edge=4):
        self.edge = edge
        self.joined = {}        # (switch, logical port) -> logical port
        for switch, ingress, egress in patches:
            self.joined[(switch, ingress)] = egress - size

    def between(self, a, b):
        """The name of a link between two XPUs (cube, (x, y, z)), or None."""
        found = []
        for axis in range(3):
            others = [i for i in range(3) if i != axis]
            if any(a[1][i] != b[1][i] for i in others):
                continue
            if a[0] == b[0] and abs(a[1][axis] - b[1][axis]) == 1:
                found.append(("fixed", a[0], axis, min(a[1], b[1]), max(a[1], b[1])))
            switch = "ocs-%s-%d-%d" % ("xyz"[axis], a[1][others[0]], a[1][others[1]])
            for low, high in ((a, b), (b, a)):
                if low[1][axis] != self.edge - 1 or high[1][axis] != 0:
                    continue
                plus, minus = 2 * int(low[0][1:]) + 1, 2 * int(high[0][1:]) + 2
                if (self.joined.get((switch, plus)) == minus and
                        self.joined.get((switch, minus)) == plus):
                    found.append(("circuit", switch, plus, minus))
        return found


def broken_edges(placement, patches, size, edge=4):
    """Job edges without a link of their own; empty when the job is whole."""
    links = Links(patches, size, edge)
    at = {tuple(x["coord"]): (x["cube"], tuple(x["at"])) for x in placement["xpus"]}
    used, broken = set(), []
    for a, b in edges(placement["shape"], placement["conn"]):
        free = [link for link in links.between(at[a], at[b]) if link not in used]
        if free:
            used.add(free[0])
        else:
            broken.append((a, b, at[a], at[b]))
    return broken


def coordinates(text):
    """"0,0,0;0,0,1" as a list of tuples."""
    return [tuple(int(n) for n in part.split(",")) for part in text.split(";")]
