#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What applications read the rings of a plan with: the C header (compiled as C and as
C++, and run under Open MPI where it is), and the Python file.  TAP on stdout.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("OCS_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
OCSCTL = os.path.join(os.environ["OCS_BUILD_DIR"], "src/ocsctl/ocsctl")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "doc/rings"))
import ocs_rings  # noqa: E402

work = tempfile.mkdtemp()
number = 0


def result(good, name, seen=""):
    global number
    number += 1
    print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    if not good:
        print("\n".join("# " + line for line in str(seen).splitlines()[:30]))


def run(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, **env or {}))
    return done.returncode, done.stdout, done.stderr


def plan_make(name, *arguments, names="n%d"):
    """A plan of the real planner, with names for its servers."""
    code, out, err = run(OCSCTL, "plan", "--json", "--strategy", "paper", *arguments)
    assert code == 0, err
    plan = json.loads(out)
    plan["nodes"] = [names % i for i in range(plan["servers"])]
    os.makedirs(os.path.join(work, name), exist_ok=True)
    path = os.path.join(work, name, "plan.json")
    with open(path, "w") as file:
        json.dump(plan, file)
    return path, plan


def joined(plan):
    pairs = {(c["a"][0], c["b"][0]) for c in plan["circuits"]}
    return pairs if plan["directed"] else pairs | {(b, a) for a, b in pairs}


def rings_are_circuits(plan, rings):
    """Every step along every ring is a circuit, and the first ring is the nodes' order."""
    pairs, index = joined(plan), {name: i for i, name in enumerate(plan["nodes"])}
    return all((index[a], index[b]) in pairs for ring in rings
               for a, b in zip(ring.nodes, ring.nodes[1:] + ring.nodes[:1]))


class World:
    """Ranks as mpi4py has them; Split gives what MPI_Comm_split would."""

    def __init__(self, node_of):
        self.asked = [None] * len(node_of)
        self.rank = 0

    def Split(self, color, key):
        self.asked[self.rank] = (color, key)

    def order(self):
        return [rank for (color, _), rank in sorted(
            ((asked, rank) for rank, asked in enumerate(self.asked)),
            key=lambda pair: (pair[0][1], pair[1])) if color == 0]


def compiled(compiler, name, *flags):
    program = os.path.join(work, name)
    code, _, err = run(*compiler, "-I" + SOURCE, "-Wall", "-Wextra", "-Werror", *flags, "-o", program,
                       os.path.join(SOURCE, "tests/unit/nccl/rings.c"))
    result(code == 0, "%s compiles the header" % compiler[0], err)
    return program


def orders_are_links(placement, found):
    """Every step in a list is by one along its dimension (a twist shifts others at its wrap), and each list
    holds other ranks."""
    shape, coords = placement["shape"], [x["coord"] for x in placement["xpus"]]
    twist = placement.get("twist", [[0] * len(shape)] * len(shape))
    for order in found:
        if sorted(r for ranks in order.ranks for r in ranks) != list(range(len(coords))):
            return False
        for ranks in order.ranks:
            for a, b in zip(ranks, ranks[1:] + (ranks[:1] if order.ring else [])):
                after = list(coords[a])
                after[order.dim] += 1
                if after[order.dim] == shape[order.dim]:
                    after = [(c + s) % n if i != order.dim else 0
                             for i, (c, s, n) in enumerate(zip(after, twist[order.dim], shape))]
                if coords[b] != after:
                    return False
    return [o.dim for o in found] == [d for d, extent in enumerate(shape) if extent > 1]


def orders_of_placements(program):
    """The orders along the dimensions of a shape, in Python and C."""
    helper = os.path.join(SOURCE, "doc/rings/ocs_rings.py")
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
    for words in (["4x8x2"], ["16"], ["4x4x8_twisted"], ["4x1x4", "--conn-type", "mesh,torus,torus"]):
        code, out, err = run(OCSCTL, "place", "--fabric", "torus cubes:2x1x1 cube:4x4x4 tile:2x2x1", "--json", "--orders", *words)
        assert code == 0, err
        path = os.path.join(work, "placement.json")
        with open(path, "w") as file:
            file.write(out)
        found = ocs_rings.orders(path)
        result(orders_are_links(json.loads(out), found), "orders of %s" % words[0], [o.ranks[0] for o in found])
        expected = run(sys.executable, helper, path, env=quiet)[1]
        seen = run(program, path)
        result(expected and seen[0] == 0 and seen[1] == expected, "C agrees", seen)
    result([len(o.ranks[0]) for o in ocs_rings.orders(path)] == [4, 4] and not found[0].ring and found[1].ring,
           "a line and a ring")
    for name in ("graph-0-2.xml", "graph-2-1.xml"):
        with open(os.path.join(work, name), "w"):
            pass
    env = {"SLURM_OCS_DIR": work, "SLURM_OCS_RANK": "6", "NCCL_GRAPH_FILE": "before"}
    gnu = compiled(["gcc"], "orders", "-D_GNU_SOURCE")
    seen = run(gnu, path, "graphs", env=env)[1]
    result(seen == "2 1 1 %s/graph-0-2.xml\n1 2 1 %s/graph-2-1.xml\n" % (work, work), "NCCL_GRAPH_FILE of a rank", seen)
    seen = run(gnu, path, "graphs", env=dict(env, SLURM_OCS_RANK="0"))[1]
    result(seen == "0 0 0 -\n0 0 0 -\n", "none where there is no file", seen)
    os.environ.update(env)
    with ocs_rings.graph(found[0]) as inside, ocs_rings.graph(found[1], 0) as other:
        seen = inside, other
    result(seen == (os.path.join(work, "graph-0-2.xml"), None) and os.environ.pop("NCCL_GRAPH_FILE") == "before",
           "Python sets and restores it", seen)
    world = World([""] * 16)
    for world.rank in range(16):
        os.environ["SLURM_OCS_RANK"] = str(world.rank)
        ocs_rings.split_order(found[0], world)
    result([world.asked[r] for r in found[0].ranks[3]] == [(3, 0), (3, 1), (3, 2), (3, 3)], "splitting along a line",
           world.asked)
    del os.environ["SLURM_OCS_RANK"], os.environ["SLURM_OCS_DIR"]


def main():
    path, plan = plan_make("one", "--servers", "12", "--degree", "4")
    rings = ocs_rings.read(path)
    result(len(rings) == 2 and [r.step for r in rings] == [1, 5], "Python reads two rings",
           [r.step for r in rings])
    result(rings[0].nodes == plan["nodes"], "the first ring is the order of the nodes")
    result(rings_are_circuits(plan, rings), "every step along a ring is a circuit")
    for degree, directed in ((6, []), (4, ["--directed"])):
        _, other = plan_make("other", "--servers", "16", "--degree", str(degree), *directed)
        found = ocs_rings.read(os.path.join(work, "other/plan.json"))
        result(len(found) > 1 and rings_are_circuits(other, found), "so for 16 servers %s" %
               " ".join(directed))

    # two ranks a node, block by block
    node_of = [plan["nodes"][rank // 2] for rank in range(24)]
    ranks = rings[1].ranks(node_of)
    result(sorted(ranks) == list(range(24)) and ranks[2:4] == [10, 11], "a permuted rank list",
           ranks)
    world = World(node_of)
    for world.rank, os.environ["SLURMD_NODENAME"] in enumerate(node_of):
        ocs_rings.split(rings[1], world)
    result(world.order() == ranks, "splitting gives that list", world.order())

    # groups: nodes that are in none stay out
    demand = os.path.join(work, "demand.json")
    with open(demand, "w") as file:
        json.dump({"allreduce": [{"members": [0, 2, 4, 6], "bytes": 1000},
                                 {"members": [1, 3, 5], "bytes": 1000}]}, file)
    groups, plan = plan_make("groups", "--servers", "8", "--degree", "4", "--demand", demand,
                             names="node-%d.x")
    os.environ["SLURMD_NODENAME"] = "node-7.x"
    found = ocs_rings.read(groups)
    # the last joins all of them
    result([r.place() for r in found] == [None, 7] and rings_are_circuits(plan, found),
           "groups of a demand", [r.nodes for r in found])
    code, printed, err = run(sys.executable, os.path.join(SOURCE, "doc/rings/ocs_rings.py"), groups,
                             env={"PYTHONDONTWRITEBYTECODE": "1"})
    result(code == 0 and printed.startswith("ring 0, group 0, step 1: node-"), "run as a program", err)

    # the header finds the same
    program = compiled(["gcc", "-std=c99"], "rings")
    for name in ("one", "other", "groups"):
        file = os.path.join(work, name, "plan.json")
        expected = run(sys.executable, os.path.join(SOURCE, "doc/rings/ocs_rings.py"), file,
                       env={"PYTHONDONTWRITEBYTECODE": "1"})[1]
        for form in ("compact", "indented"):
            with open(file) as stream:
                content = json.load(stream)
            with open(file, "w") as stream:
                json.dump(content, stream, indent=2 if form == "indented" else None)
            code, out, err = run(program, file)
            result(code == 0 and out == expected, "C agrees on %s, %s" % (name, form), out + err)
    orders_of_placements(program)
    code, out, _ = run(program, env={"SLURM_OCS_DIR": os.path.join(work, "one")})
    result(code == 0 and out.startswith("ring 0"), "SLURM_OCS_DIR says where", out)
    with open(path) as stream:
        text = stream.read()
    broken = os.path.join(work, "broken.json")
    wrong = []
    for length in range(0, len(text), 37):
        with open(broken, "w") as stream:
            stream.write(text[:length])
        if run(program, broken)[0] not in (0, 1):
            wrong.append(length)
    result(not wrong, "a file that is cut off crashes nothing", wrong)
    result(run(program, os.path.join(work, "absent"))[0] == 1, "no file, no rings")
    if shutil.which("g++"):
        compiled(["g++", "-x", "c++"], "rings++")

    if not (shutil.which("mpicc") and shutil.which("mpirun")):
        print("ok %d - communicators under MPI # SKIP there is no Open MPI" % (number + 1))
        print("1..%d" % (number + 1))
        return
    program = compiled(["mpicc"], "rings_mpi", "-DWITH_MPI")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
              "-n"]
    for name, ranks, per in (("one", "24", 2), ("groups", "8", 1)):
        names = "n%d" if name == "one" else "node-%d.x"
        script = "SLURMD_NODENAME=$(printf %s $((OMPI_COMM_WORLD_RANK / %d))); " \
                 "export SLURMD_NODENAME; exec %s %s" % (
                     names, per, program, os.path.join(work, name, "plan.json"))
        code, out, err = run(*mpirun, ranks, "sh", "-c", script,
                             env={"TMPDIR": work, "OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"})
        result(code == 0 and "ring 0" in out, "%s ranks in communicators, plan %s" % (ranks, name),
               out + err)
    print("1..%d" % number)


try:
    main()
finally:
    shutil.rmtree(work)
