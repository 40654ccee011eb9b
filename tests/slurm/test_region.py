# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs with experts: two regions of four servers, with two XPUs and three optical NICs each."""

import pytest


@pytest.fixture(scope="module")
def region(make_cluster):
    cluster = make_cluster(cubes=1, edge=2, tile=(2, 2, 1), regions=2, config={"AuthInfo": "cred_expire=5"})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def nothing_left(region):
    yield
    region.cancel_all()


def experts(cluster, shape, *words, **options):
    return cluster.sbatch("-p", "moe", "--shape=" + shape, "--ocs-moe", *words, **options)


def test_groups_fill_regions(region):
    """A group is in one region, and the fuller region is taken first."""
    first = experts(region, "ep:2,tp:2", script="sleep 300")
    assert region.running(first)["NodeList"] == "m[0-1]"
    second = experts(region, "pp:2,ep:2,tp:2", script="sleep 300")
    assert region.running(second)["NodeList"] == "m[4-7]"
    third = experts(region, "ep:2", script="sleep 300")
    assert region.running(third)["NodeList"] == "m2"
    # three servers are free, but no two in one region
    fourth = experts(region, "ep:2,tp:2", script="true")
    explain = ["ocsctl", "explain", str(fourth), "--fabric", region.yaml]
    region.until(lambda: "room for 0" in region.out(explain), 30, lambda: region.out(explain))
    region.run(["scancel", str(third)])
    region.wait(fourth, "COMPLETED")


def test_refusals(region):
    for shape, said in (("pp:2,tp:2", "one dimension is called ep"),
                        ("ep:5,tp:2", "a region of moe has 4"),
                        ("ep:3", "servers of 2 do not divide"),
                        ("pp:3,ep:3,tp:2", "9 servers, moe has 8")):
        assert said in region.refused("-p", "moe", "--shape=" + shape, "--ocs-moe")
    assert "--ocs-moe is for partitions of regions" in region.refused("-p", "tpu", "--shape=2x2", "--ocs-moe")
    assert "write follow or static" in region.refused("-p", "moe", "--shape=ep:4", "--ocs-moe=fast")
