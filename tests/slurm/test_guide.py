# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The commands of the user's guide, as they stand there."""

import os
import re

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
