# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Judges placements from outside: job edges against fixed links and the patches
that the emulated switches hold.  Shares nothing with the project's own code."""

import itertools


def twists(shape):
    """{wrapping dimension: {dimension it shifts: by how much}} of a twisted torus:
    in k x k x 2k both k wraps shift the long dimension by k, in k x 2k x 2k the k wrap
    shifts both long ones."""
    short, longer = min(shape), max(shape)
    assert len(shape) == 3 and longer == 2 * short and set(shape) == {short, longer}
    far = {dim: short for dim in range(3) if shape[dim] == longer}
    return {dim: far for dim in range(3) if shape[dim] == short}


def edges(shape, conn, twisted=False):
    """The job's graph: pairs of coordinates that must be joined."""
    shifts = twists(shape) if twisted else {}
    for coord in itertools.product(*[range(extent) for extent in shape]):
        for dim, extent in enumerate(shape):
            other = list(coord)
            other[dim] += 1
            if other[dim] == extent:
                if conn[dim] == "mesh" or (extent <= 2 and not twisted):
                    continue
                other[dim] = 0
                for also, by in shifts.get(dim, {}).items():
                    other[also] = (other[also] + by) % shape[also]
            if tuple(other) != coord:
                yield coord, tuple(other)


def seat(node, device, edge=4, tile=(2, 2, 1)):
    """(cube, (x, y, z)) of a device of node "n17": nodes follow the tiles of a cube,
    cube by cube, and devices the XPUs of a tile, the last dimension fastest."""
    across = [edge // t for t in tile]
    number, cube_nodes = int(node[1:]), across[0] * across[1] * across[2]
    cube, rest = divmod(number, cube_nodes)
    corner = (rest // (across[1] * across[2]), rest // across[2] % across[1],
              rest % across[2])
    inner = (device // (tile[1] * tile[2]), device // tile[2] % tile[1], device % tile[2])
    return "c%d" % cube, tuple(corner[i] * tile[i] + inner[i] for i in range(3))


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


def unjoined(at, shape, conn, patches, size, edge=4, twisted=False):
    """Edges of the shape without a link of their own, when its coordinates sit where AT
    says ({coordinate: (cube, (x, y, z))}); empty when the job is whole."""
    links = Links(patches, size, edge)
    used, broken = set(), []
    assert len(set(at.values())) == len(at), "two coordinates on one XPU"
    for a, b in edges(tuple(shape), conn, twisted):
        free = [link for link in links.between(at[a], at[b]) if link not in used]
        if free:
            used.add(free[0])
        else:
            broken.append((a, b, at[a], at[b]))
    return broken


def broken_edges(placement, patches, size, edge=4):
    """The same for what placement.json says."""
    at = {tuple(x["coord"]): (x["cube"], tuple(x["at"])) for x in placement["xpus"]}
    return unjoined(at, placement["shape"], placement["conn"], patches, size, edge,
                    "twist" in placement)


def coordinates(text):
    """"0,0,0;0,0,1" as a list of tuples."""
    return [tuple(int(n) for n in part.split(",")) for part in text.split(";")]
