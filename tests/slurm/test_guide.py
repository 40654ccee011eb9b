# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The commands of the guides, as they stand there."""

import datetime
import os
import re

import pytest

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/users-guide.md")


def test_examples_of_the_users_guide(pod):
    with open(GUIDE) as handle:
        blocks = re.findall(r"```sh\n(.*?)```", handle.read(), re.S)
    assert len(blocks) > 8
    work = pod.path("out", "guide")
    os.makedirs(work)
    os.chmod(work, 0o777)
    seen = {}
    for block in blocks:
        done = pod.run(["bash", "-euc", "cd %s\n%s" % (work, block)], check=False, timeout=180,
                       env={"OCS_CONF": pod.yaml})
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        seen[block] = done.stdout
    everything = "".join(seen.values())
    for line in ("sits at 3,3, device", "4x8x2", "coordinates ",
                 "3,3,2", "placement.json"):
        assert line in everything, (line, everything)
    outputs = "".join(open(os.path.join(work, name)).read()
                      for name in os.listdir(work) if name.startswith("train-"))
    assert "shape 4x8x2 on cubes c" in outputs and "worker 63 of 64" in outputs, outputs
    assert "coordinate 3,7,1, master" in outputs, outputs


ADMINISTRATORS = os.path.join(os.path.dirname(GUIDE), "administrators-guide.md")


@pytest.fixture(scope="module")
def small(make_cluster):
    """The small cluster of the administrator's guide: two cubes of two nodes."""
    return make_cluster(cubes=2, edge=2, tile=(2, 2, 1), delay_ms=1)


def head_blocks(cluster, first, last):
    """What the blocks of the head between two headings print, with the emulator and a folder of this cluster and dates
    that are still to come."""
    with open(ADMINISTRATORS) as handle:
        text = handle.read()
    part = text[text.index("\n%s\n" % first):text.index("\n%s\n" % last)]
    part = re.sub(r"\b20\d\d-(\d\d-\d\dT)", r"%d-\1" % (datetime.date.today().year + 1), part)
    part = part.replace("unix:/run/ocs-emulator/control", "unix:" + cluster.path("emulator.sock"))
    seen = []
    for block in re.findall(r"^```sh head\n(.*?)```", part.replace("/root/", cluster.path("out", "")), re.S | re.M):
        done = cluster.run(["bash", "-euc", block], check=False, timeout=300, env={"OCS_CONF": cluster.yaml})
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        seen.append(done.stdout)
    return seen


def test_the_first_shape_of_the_administrators_guide(small):
    said, = head_blocks(small, "### 6. The first shape", "### 7. Real switches")
    assert sorted(re.findall(r"^\d: (\d,\d,\d) on ", said, re.M)) == [
        "%d,%d,%d" % (x, y, z) for x in range(2) for y in range(2) for z in range(2)], said
    assert said.count("CONNECTED\n") == 8 and "4x2x2, realised (16 XPUs)" in said and "circuits: 8, 8 CONNECTED" in said, said
    assert said.rstrip().splitlines()[-1].startswith("JOB "), said
    migrated, = head_blocks(small, "## From a topology.conf", "## Watching")
    assert re.search(r"name: c1, nodes: .n\[2-3\]", migrated), migrated


def test_faults_drains_and_windows_of_the_administrators_guide(small):
    """As they stand there, in their order: each block does what the text around it says."""
    fails, dark, patch, drains, windows, replaced = head_blocks(small, "## Faults", "## Changes of ocs.yaml")
    assert "refused" in fails and "JobState=RUNNING" in fails and "switch" in fails.split("AdminComment=")[1], fails
    assert "ocs failure" in dark and "ocs-x-0-0:1" in dark and " R " in dark.splitlines()[-1], dark
    assert "foreign" in patch and "INVALID" in patch and patch.endswith("every switch holds what it should\n"), patch
    assert "new cables" in drains and "ECC errors" in drains and "dirty connector" in drains and "new firmware" in drains, drains
    assert windows.count("ReservationName=") == 3 and "course" in windows, windows
    assert re.findall(r"^ocs-y-0-0 +(\w+) ", replaced, re.M)[-1] == "drained", replaced
    assert replaced.endswith("every switch holds what it should\nswitch ocs-y-0-0 is in service\n"), replaced
