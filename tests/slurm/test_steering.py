# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs without a shape go where cubes are broken already, unless ocs.yaml says otherwise."""

import random

import pytest

from cluster import Cluster
from conftest import living

CUBES, EACH = 16, 4         # nodes of a cube
OFF = "policies: {keep_cubes_whole: false}\n"


def started(more_yaml=""):
    return living(Cluster, cubes=CUBES, tile=(4, 4, 1), delay_ms=0, more_yaml=more_yaml, config={
        "SchedulerParameters": "bf_interval=1,sched_interval=1,sched_min_interval=100000"})


@pytest.fixture(scope="module")
def site():
    """16 cubes of 4 nodes."""
    with started() as cluster:
        yield cluster


def busy(site):
    """The nodes that have jobs, by cube."""
    cubes = [set() for _ in range(CUBES)]
    lists = ",".join(site.out(["squeue", "-h", "-t", "R", "-o", "%N"]).split())
    for name in site.out(["scontrol", "show", "hostnames", lists]).split() if lists else ():
        cubes[int(name[1:]) // EACH].add(int(name[1:]) % EACH)
    return cubes


def settled(site):
    site.until(lambda: not site.out(["squeue", "-h", "-t", "PD,CG"]).strip(), 60,
                lambda: "all jobs to start\n" + site.out("squeue -t PD,CG -o '%A %t %D %r %o'; sinfo"))


def empty(site):
    site.run(["scancel", "-u", "root"])
    site.until(lambda: not site.out(["squeue", "-h"]).strip(), 60, "an empty queue")


def stream(site, seed):
    """Unshaped jobs come and go on two thirds of the nodes; whole cubes, on average."""
    draw = random.Random(seed)
    living, whole = [], []
    for _ in range(12):
        sizes = []
        while sum(sizes) + sum(size for _, size in living) < 2 * CUBES * EACH // 3:
            sizes.append(draw.choice((1, 1, 2, 3)))
        jobs = site.out("".join("sbatch --parsable --exclusive -o /dev/null -N%d --wrap 'sleep 999'\n" % n
                                for n in sizes)).split()
        living += list(zip(jobs, sizes))
        settled(site)
        whole.append(sum(not cube for cube in busy(site)))
        gone = draw.sample(living, 6)
        site.run(["scancel"] + [job for job, _ in gone])
        living = [job for job in living if job not in gone]
        settled(site)
    empty(site)
    return sum(whole) / len(whole)


def placed(site, *arguments):
    job = site.sbatch("--exclusive", *arguments)
    settled(site)
    return site.job(job)["NodeList"]


def left(site):
    return [EACH - len(cube) for cube in busy(site)]


def holes(site):
    """n0, all of cube 2 and all from cube 4 on are busy: seven idle nodes in a row, and four
    that are a cube."""
    for nodes in ("n0", "n[8-11]", "n[16-63]"):
        site.sbatch("-N%d" % len(site.out(["scontrol", "show", "hostnames", nodes]).split()),
                    "--exclusive", "-w", nodes)
    settled(site)
    assert left(site)[:4] == [3, 4, 0, 4]


def test_broken_cubes_fill_up_first(site):
    """Slurm's own choice is the row of idle nodes that fits best, here a whole cube."""
    holes(site)
    assert placed(site, "-N1") == "n1"
    assert placed(site, "-N2") == "n[2-3]"
    assert left(site)[:4] == [0, 4, 0, 4]
    placed(site, "-N1")
    assert sorted(left(site)[:4]) == [0, 0, 3, 4]
    # A shape still finds its cube.
    assert placed(site, "--shape=4x4x4") in ("n[4-7]", "n[12-15]")
    empty(site)


def test_the_policy_can_be_turned_off_and_a_stream_tells(site):
    kept = stream(site, 1)
    with started(OFF) as other:
        holes(other)
        assert placed(other, "-N1") == "n12"
        empty(other)
        otherwise = stream(other, 1)
    print("cubes whole, of %d: %.2f with steering, %.2f without" % (CUBES, kept, otherwise))
    assert kept > otherwise, (kept, otherwise)


def test_what_a_job_asks_of_nodes_comes_first(site):
    """Names, exclusions, neighbours, and the weights of slurm.conf."""
    assert placed(site, "-N1", "-w", "n5") == "n5"
    assert placed(site, "-N1", "-w", "n10") == "n10"
    assert int(placed(site, "-N1", "-x", "n[4-11]")[1:]) not in range(4, 12)
    assert len(placed(site, "-N12", "--contiguous")) == len("n[12-23]")
    site.run(["scontrol", "update", "NodeName=n[52-55]", "Weight=1"])
    site.run(["scontrol", "update", "NodeName=n[0-51,56-63]", "Weight=50"])
    assert placed(site, "-N4") == "n[52-55]"
    site.run(["scontrol", "update", "NodeName=n[0-63]", "Weight=1"])
    empty(site)
