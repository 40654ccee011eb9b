# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs with experts: two regions of four servers, with two XPUs and three optical NICs each."""

import json
import os

import pytest

from test_model import written


@pytest.fixture(scope="module")
def region(make_cluster):
    cluster = make_cluster(cubes=1, edge=2, tile=(2, 2, 1), regions=2, config={"AuthInfo": "cred_expire=5"},
                           region_yaml="""    interfaces:
      - {name: o0, address: "10.50.0.{server + 1}/16", speed: 1}
      - {name: o1, address: "10.51.0.{server + 1}/16", speed: 1}
      - {name: o2, address: "10.52.0.{server + 1}/16", speed: 1}
""")
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


GATES = r"""
import os, socket, struct, sys, time
folder, far = os.environ["SLURM_OCS_MOE_SOCKETS"], [2, 3, 0, 1]
end = time.monotonic() + 120
while not os.path.exists(folder + "/plan.0") and time.monotonic() < end:
    time.sleep(0.05)
gate = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
gate.connect(folder + "/gate.0")
ask = socket.socket(socket.AF_UNIX)
ask.connect(folder + "/plan.0")
lines = ask.makefile("rw")

def plan(microbatch, backward, second):
    lines.write("plan 0 %d %d %d\n" % (microbatch, backward, second))
    lines.flush()
    links = []
    for line in lines:
        if line == "end\n":
            return links
        if line.startswith("link"):
            links.append(tuple(int(word) for word in line.split()[2:4]))

microbatch, links = 0, []
while links.count((0, 2)) < 3 and time.monotonic() < end:
    for backward in range(2):
        for second in range(2):
            links = plan(microbatch, backward, second)
            if not backward and not second:
                for rank in range(4):
                    row = [1000000 if r == far[rank] else 10 for r in range(4)]
                    gate.send(struct.pack("=IHHiiiiqQ4q", 0x6f6d6731, 1, 4, rank, 4, 0, 0, microbatch, 0, *row))
    microbatch += 1
print("FOLDER", folder, flush=True)
print("LINKS", sorted(links), flush=True)
time.sleep(300)
"""


def test_circuits_follow_gates(region):
    """The controller runs as the job's; what its gates say is what the switch has soon after."""
    job = experts(region, "ep:4,tp:2", script="exec /usr/bin/python3 - <<'END'\n" + GATES + "END")
    fields = region.running(job)
    assert fields["NodeList"] == "m[0-3]"
    path = region.path("out", "%d.out" % job)
    region.until(lambda: "LINKS" in written(path), 180, lambda: written(path))
    assert "LINKS [(0, 2), (0, 2), (0, 2), (1, 3), (1, 3), (1, 3)]" in written(path), written(path)
    table = json.loads(region.emulator("table"))["region-0"]
    # server s has the ports 3 s + 1 to 3 s + 3; all of server 0 lead to server 2
    assert sorted(((a - 1) // 3, (b - 17) // 3) for a, b in table) == [(0, 2)] * 3 + [(1, 3)] * 3 + [(2, 0)] * 3 + [
        (3, 1)] * 3
    folder = written(path).split("FOLDER ")[1].split("\n")[0]
    assert folder.startswith("/tmp/ocs-moe-%d." % job) and sorted(os.listdir(folder)) == ["gate.0", "plan.0"]
    region.run(["scancel", str(job)])
    region.wait_idle(60)
    region.until(lambda: json.loads(region.emulator("table"))["region-0"] == [], 60, lambda: region.emulator("table"))
    region.until(lambda: not os.path.exists(folder), 60, lambda: os.listdir(folder))


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
