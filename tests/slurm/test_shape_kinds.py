# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Every kind of shape through sbatch: one to six dimensions, twisted, mesh, straight,
unrotated.  What the tasks say of themselves is held against what the switches do."""

import itertools
import math

import pytest

from rings import seat, unjoined
from test_shapes import TELL, tasks, whole

# One task per XPU, then one per node, then what the batch script sees.
SCRIPT = """srun {tell}
srun --ntasks-per-node=1 -n $SLURM_NNODES {node}
env | grep ^SLURM_OCS_SHAPE=
touch {dir}/out/$SLURM_JOB_ID.told
sleep 300"""


def lines(text, word):
    return tasks("\n".join("TASK|" + line[len(word) + 1:] for line in text.splitlines()
                           if line.startswith(word + "|")))


def judge(pod, shape, conn, per_xpu, per_node, twisted=False):
    """Tasks, not placement.json, say what sits where; the switches say what is joined."""
    every = list(itertools.product(*[range(extent) for extent in shape]))
    at = {}
    for proc, (node, rank, coords, devices, coord) in per_xpu.items():
        assert rank == proc and len(coords) == len(devices) == 1
        assert coords == [every[rank]], "rank %d sits at %s" % (rank, coords)
        assert coord == ",".join(map(str, coords[0]))
        at[coords[0]] = seat(node, devices[0], pod.edge, pod.tile)
    assert sorted(at) == every
    bad = unjoined(at, shape, conn, pod.patches(), pod.switch_size(), pod.edge, twisted)
    assert not bad, bad[:5]
    # One task per node: all its coordinates, nodes in the order of their first one.
    firsts, seen = [], {}
    for proc in sorted(per_node):
        node, rank, coords, devices, coord = per_node[proc]
        assert rank == proc and coords == sorted(coords)
        assert coord == (",".join(map(str, coords[0])) if len(coords) == 1 else "")
        firsts.append(coords[0])
        seen.update({c: seat(node, d, pod.edge, pod.tile) for c, d in zip(coords, devices)})
    assert firsts == sorted(firsts)
    assert seen == at


def run(pod, text, *arguments, conn=None):
    """Runs a shape to the point where its tasks have spoken; job and placement."""
    twisted = text.endswith("_twisted")
    shape = [int(n) for n in text.replace("_twisted", "").split("x")]
    job = pod.sbatch("--shape=" + text, *arguments, script=SCRIPT.format(
        tell=TELL, node=TELL.replace("TASK", "NODE"), dir=pod.dir))
    fields = pod.running(job, 90)
    placement = whole(pod, job)
    assert placement["shape"] == shape
    assert ("twist" in placement) == twisted
    assert placement["conn"] == conn if conn else set(placement["conn"]) == {"torus"}
    pod.until(lambda: pod.run(["test", "-e", pod.path("out", "%d.told" % job)],
                              check=False).returncode == 0, 120, "the tasks of %d" % job)
    with open(pod.path("out", "%d.out" % job)) as handle:
        out = handle.read()
    per_node = lines(out, "NODE")
    assert len(per_node) == int(fields["NumNodes"])
    judge(pod, shape, placement["conn"], lines(out, "TASK"), per_node, twisted)
    assert "SLURM_OCS_SHAPE=" + text in out.split()
    return job, placement


def least(pod, shape):
    return math.ceil(math.prod(shape) / math.prod(pod.tile))


@pytest.mark.parametrize("shape,nodes", [
    # one dimension: around one, two or three axes
    ("40", 10), ("6", 2), ("64", 16), ("2", 1),
    ("8x8", 16), ("6x6", 9), ("4x10", 10), ("1x6", 2),
    # four, five and six: a wrapped axis of four is a 2x2
    ("2x2x4x4", 16), ("2x8x2x2", 16), ("4x2x2x2x2", 16), ("2x1x2x1x2", 2),
    ("2x2x2x2x2x2", 16), ("2x2x4x1x1x2", 8), ("1x1x1x1x1x1", 1), ("8x2x2x2x2", 32),
])
def test_dimensions(pod, shape, nodes):
    job, placement = run(pod, shape)
    assert int(pod.job(job)["NumNodes"]) == nodes


@pytest.mark.parametrize("shape,cubes", [("4x4x8_twisted", 2), ("8x4x8_twisted", 4)])
def test_twisted(pod, shape, cubes):
    job, placement = run(pod, shape)
    assert len(placement["cubes"]) == cubes
    assert placement["ocs_links"] == cubes * 48
    assert "shape=" + shape in pod.job(job)["Extra"]


@pytest.mark.parametrize("shape,conn,word", [
    ("3x5", ["mesh", "mesh"], "mesh"), ("7", ["mesh"], "mesh"),
    ("3x4", ["mesh", "torus"], "mesh,torus"), ("4x3x5", ["torus", "mesh", "mesh"],
                                                "torus,mesh,mesh"),
    ("5x7x3", ["mesh"] * 3, "mesh")])
def test_mesh(pod, shape, conn, word):
    run(pod, shape, "--conn-type=" + word, conn=conn)


def straight(placement):
    """For every dimension the axes along which its neighbours inside cubes differ."""
    at = {tuple(x["coord"]): (x["cube"], x["at"]) for x in placement["xpus"]}
    axes = [set() for _ in placement["shape"]]
    for coord, (cube, here) in at.items():
        for dim in range(len(coord)):
            following = at.get(coord[:dim] + (coord[dim] + 1,) + coord[dim + 1:])
            if following and following[0] == cube:
                axes[dim] |= {a for a in range(3) if here[a] != following[1][a]}
    return axes


def test_no_fold(pod):
    job, folded = run(pod, "8x2")
    assert len(folded["cubes"]) == 1
    job, placement = run(pod, "8x2", "--no-fold")
    assert all(len(axes) == 1 for axes in straight(placement))
    assert len(placement["cubes"]) == 2
    assert "no-fold" in pod.job(job)["Extra"].split()


@pytest.mark.parametrize("shape", ["2x4x8", "8x2x4", "4x8x2"])
def test_no_rotate(pod, shape):
    job, placement = run(pod, shape, "--no-rotate", "--no-fold")
    assert straight(placement) == [{0}, {1}, {2}]
    assert {"no-rotate", "no-fold"} <= set(pod.job(job)["Extra"].split())


def test_mesh_without_folding(pod):
    job, placement = run(pod, "3x6x2", "--conn-type=mesh", "--no-fold", "--no-rotate",
                         conn=["mesh"] * 3)
    assert straight(placement) == [{0}, {1}, {2}]


def emptied(cluster):
    cluster.cancel_all()
    cluster.until(lambda: not cluster.patches(), 20, "dark switches")


@pytest.fixture(scope="module")
def cubes_of_three(make_cluster):
    cluster = make_cluster(cubes=2, edge=3, tile=(1, 1, 1))
    yield cluster
    cluster.stop()


@pytest.fixture
def small(cubes_of_three):
    """Cubes of edge 3, one XPU a node: rings of three and their multiples close."""
    yield cubes_of_three
    emptied(cubes_of_three)


@pytest.mark.parametrize("shape,arguments", [
    ("3", []), ("3x3", []), ("6x3", []), ("3x4", []), ("2x3x3", []), ("3x3x3", []),
    ("5", []), ("3x5", []), ("3x6x3", ["--no-fold"]), ("2x5", ["--conn-type=mesh"]), ("3x2x3", ["--no-rotate"])])
def test_odd_extents(small, shape, arguments):
    conn = ["mesh"] * len(shape.split("x")) if "--conn-type=mesh" in arguments else None
    job, placement = run(small, shape, *arguments, conn=conn)
    assert int(small.job(job)["NumNodes"]) == len(placement["xpus"])


def test_odd_extents_that_cannot_close(small):
    for shape in ("5x5", "3x3x5", "9x9"):
        assert "nearest shapes that fit" in small.refused("--shape=" + shape)


@pytest.fixture(scope="module")
def cubes_of_two(make_cluster):
    cluster = make_cluster(cubes=8, edge=2, tile=(2, 1, 1))
    yield cluster
    cluster.stop()


@pytest.fixture
def tiny(cubes_of_two):
    """Cubes of edge 2: a wrapped axis joins two XPUs twice."""
    yield cubes_of_two
    emptied(cubes_of_two)


@pytest.mark.parametrize("shape", ["2x2x2", "4x4x4", "6", "2x4x8", "4x4x8", "16x2", "12x4"])
def test_cubes_of_two(tiny, shape):
    if math.prod(int(n) for n in shape.split("x")) > 64:
        assert "64" in tiny.refused("--shape=" + shape)
        return
    job, placement = run(tiny, shape)
    assert int(tiny.job(job)["NumNodes"]) == least(tiny, placement["shape"])


def free_of(pod, jobs):
    """Nothing is shared: XPUs, nodes and switch ports of JOBS."""
    xpus, ports = [], []
    for job in jobs:
        placement = pod.placement(job)
        xpus += [(x["cube"], tuple(x["at"])) for x in placement["xpus"]]
        for switch, ingress, egress in pod.circuit_patches(placement):
            ports += [(switch, ingress), (switch, egress)]
    assert len(xpus) == len(set(xpus))
    assert len(ports) == len(set(ports))


def test_busy_fabric(pod):
    """Shaped jobs among leftovers: pieces of several jobs in one cube."""
    plain = [pod.sbatch("-N1", "-n1", "-w", "n%d" % n) for n in (5, 21, 37)]
    for job in plain:
        pod.running(job)
    shaped = [run(pod, shape, *arguments)[0] for shape, *arguments in (
        ("4x4x4",), ("2x4x4",), ("4x6",), ("2x2x2x2",), ("14",))]
    shaped.append(run(pod, "3x3x2", "--conn-type=mesh", conn=["mesh"] * 3)[0])
    free_of(pod, shaped)
    busy = {"n5", "n21", "n37"}
    for job in shaped:
        assert not busy & {x["node"] for x in pod.placement(job)["xpus"]}
    # Gaps open and are used again.
    pod.run(["scancel", str(shaped[0]), str(shaped[2])])
    again = [run(pod, shape)[0] for shape in ("2x2x4x4", "8x2")]
    free_of(pod, [shaped[1]] + shaped[3:] + again)
    pod.run(["ocs-emulator", "--check-log", pod.path("emulator.log")])


def test_faulty_parts_are_avoided(pod):
    """A node that is drained, a drained port, a silent switch: none is used."""
    fabric = ["--fabric", pod.yaml]
    pod.run(["scontrol", "update", "NodeName=n0", "State=DRAIN", "Reason=test"])
    pod.run(["ocsctl", "drain", "port", "ocs-z-1-1:3", "--reason", "dirty"] + fabric)
    pod.run(["ocsctl", "drain", "switch", "ocs-x-0-0", "--reason", "dirty"] + fabric)
    try:
        def seen():
            shown = pod.out(["ocsctl", "show", "switch", "ocs-x-0-0"] + fabric)
            return "drained" in shown
        pod.until(seen, 20, "the drained switch to be seen")
        for shape in ("4x4", "8x2", "2x2x2x2", "6"):
            job, placement = run(pod, shape)
            assert "n0" not in {x["node"] for x in placement["xpus"]}
            patches = pod.circuit_patches(placement)
            assert not [p for p in patches if p[0] == "ocs-x-0-0"]
            assert not [p for p in patches if p[0] == "ocs-z-1-1" and
                        3 in (p[1], p[2] - pod.switch_size())]
    finally:
        pod.run(["ocsctl", "resume", "port", "ocs-z-1-1:3"] + fabric)
        pod.run(["ocsctl", "resume", "switch", "ocs-x-0-0"] + fabric)


def test_array_of_six_dimensions(pod):
    job = pod.sbatch("--shape=2x2x2x2x1x2", "--array=0-5", script="srun -n1 true; sleep 1")
    pod.until(lambda: not pod.out(["squeue", "-h", "-j", str(job)]).strip(), 120, "the array")
    done = pod.out(["scontrol", "-o", "show", "job", str(job)])
    assert done.count("JobState=COMPLETED") == 6, done
    pod.until(lambda: not pod.patches(), 20, "dark switches")


def test_two_shaped_parts_of_one_job(pod):
    """Each part of a heterogeneous job has a shape, circuits and coordinates of its own."""
    job = pod.sbatch("--shape=4x4x4", ":", "--shape=2x2x2x2", "--conn-type=torus",
                     script="srun --het-group=0 %s\nsrun --het-group=1 %s\n"
                     "srun --het-group=1 -m block bash -c 'echo BLOCK'\n"
                     "srun --het-group=1 -n3 bash -c 'echo THREE'\n"
                     "touch %s/out/$SLURM_JOB_ID.told\nsleep 300" % (
                         TELL.replace("TASK", "ONE"), TELL.replace("TASK", "TWO"), pod.dir))
    pod.running(job, 90)
    pod.until(lambda: pod.run(["test", "-e", pod.path("out", "%d.told" % job)],
                              check=False).returncode == 0, 120, "the tasks of %d" % job)
    with open(pod.path("out", "%d.out" % job)) as handle:
        out = handle.read()
    assert out.count("BLOCK") == 16 and out.count("THREE") == 3, out
    for word, shape in (("ONE", (4, 4, 4)), ("TWO", (2, 2, 2, 2))):
        found = lines(out, word)
        at = {row[2][0]: seat(row[0], row[3][0]) for row in found.values()}
        assert sorted(at) == list(itertools.product(*[range(e) for e in shape])), out
        assert not unjoined(at, shape, ["torus"] * len(shape), pod.patches(),
                            pod.switch_size())
