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


def test_model_with_experts(region):
    """--ocs-model: the group of experts that the optimiser finds is a dimension of the shape."""
    region.write("experts.yaml", """model: experts
precision: bf16
batch: {step: 64}
sequence: 4096
layers:
- repeat: 2
  layers:
  - {kind: attention, hidden: 4096, heads: 32, kv_heads: 8}
  - {kind: experts, hidden: 4096, inner: 14336, experts: 32, chosen: 2}
""")
    job = region.sbatch("-p", "moe", "-N4", "--ocs-moe", "--ocs-model=" + region.path("experts.yaml"), script="sleep 300")
    fields = region.running(job)
    words = dict(w.split("=", 1) for w in fields["Extra"].split() if "=" in w)
    extents = dict(part.split(":") for part in words["shape"].split(","))
    count = 1
    for extent in extents.values():
        count *= int(extent)
    assert count == 8 and int(extents["ep"]) > 1 and fields["NumNodes"] == "4", fields
