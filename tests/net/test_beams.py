# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The emulator's data plane: frames go where circuits lead, and those that come in while a circuit
is changed are lost and counted."""
import time

import pytest

from beamlab import Switch


@pytest.fixture
def switch(bins, tmp_path):
    made = []

    def make(delay):
        made.append(Switch(bins, tmp_path, delay))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_frames_follow_circuits(switch):
    sw = switch(0)
    sw.join((1, 2), (3, 4))
    assert sw.reaches(1, 2) and sw.reaches(4, 3) and not sw.reaches(1, 3)
    before = sw.frames()
    sw.cut(1, 2, 3, 4)
    took = [sw.join((1, 3), (2, 4))]
    assert sw.reaches(1, 3) and sw.reaches(2, 4) and not sw.reaches(1, 2)
    after = sw.frames()
    assert after[1]["device"] == "b0"
    assert after[1]["passed"] >= before[1]["passed"] + 5
    # what was sent to 10.77.0.2 went along the circuit all the same, to a host that is not that one
    assert all(row["changing"] == 0 for row in after.values())
    # a frame into a dark port is counted there, and nowhere else
    sw.cut(1, 3)
    assert not sw.reaches(1, 3)
    assert sw.frames()[1]["dark"] > 0 and sw.frames()[2]["dark"] == 0
    sw.cut(2, 4)
    for _ in range(50):
        took.append(sw.join((1, 2), (3, 4)))
        sw.cut(1, 2, 3, 4)
    took.sort()
    print(f"four patches, TL1 included: min {took[0]:.3f}, p50 {took[len(took) // 2]:.3f} ms")


def test_frames_in_a_change(switch):
    sw = switch(150)
    sw.join((1, 2), (3, 4))
    sender = sw.sender(1, 2)
    try:
        deadline = time.monotonic() + 10
        while sw.frames()[1]["passed"] < 20 and time.monotonic() < deadline:
            time.sleep(.02)
        assert sw.frames()[1]["changing"] == 0
        sw.cut(1, 2)
        sw.join((1, 2))
    finally:
        sender.kill()
        sender.wait()
    frames = sw.frames()
    assert frames[1]["changing"] > 10
    assert frames[2]["changing"] == frames[3]["changing"] == frames[4]["changing"] == 0
    # who does not send while circuits change loses nothing
    before = sw.frames()
    sw.cut(3, 4)
    sw.join((3, 4))
    assert sw.reaches(3, 4)
    assert all(row["changing"] == before[port]["changing"] for port, row in sw.frames().items())
