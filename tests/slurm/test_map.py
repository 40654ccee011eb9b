# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""ocsctl map on a terminal and as a picture, while real jobs come and go."""

import os
import sys
import xml.etree.ElementTree as tree

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit", "ocsctl"))
from terminal import Terminal  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def watch(pod):
    screens = []

    def start(*arguments, env=None, **size):
        command = ["ocsctl", "map", "--fabric", pod.yaml, "--section", "pod"] + list(arguments)
        screens.append(Terminal(pod.enter(command), env=pod.environment(dict({"TERM": "xterm"}, **(env or {}))),
                                **size))
        return screens[-1]

    yield start
    for screen in screens:
        if screen.child.poll() is None:
            screen.child.kill()
            screen.child.wait()


def cells(text):
    """What the picture of the cubes is made of, the legend left out."""
    return "".join(line for line in text.splitlines() if set(line) <= set("AB.*#- ") and line)


def test_map_follows_jobs_and_drains(pod, watch):
    screen = watch("--watch=1", rows=30, columns=100)
    text = screen.shows("every 1 s", "free (256 of 256 XPUs)")
    assert text and cells(text).count(".") == 256, screen.raw
    first = pod.sbatch("--shape=8x4x4")
    text = screen.shows("A  job %d" % first, "realised (128 XPUs)")
    assert text and cells(text).count("A") == 128, screen.text()
    second = pod.sbatch("--shape=4x4x2")
    text = screen.shows("B  job %d" % second)
    assert text and cells(text).count("B") == 32, screen.text()
    pod.run(["scancel", str(first)])
    text = screen.shows("B  job %d" % second, without=["job %d," % first])
    assert text and cells(text).count("B") == 32 and "A" not in cells(text), screen.text()
    taken = pod.placement(second)["cubes"][0]
    other = "c3" if taken != "c3" else "c0"
    pod.ocsctl("drain", "cube", other, "--reason", "dust")
    try:
        text = screen.shows("#  down or drained (64 XPUs)")
        assert text and cells(text).count("#") == 64, screen.text()
    finally:
        pod.ocsctl("resume", "cube", other)
    assert screen.shows("free (", without=["down or drained"]), screen.text()


def test_map_fits_the_window_and_gives_it_back(pod, watch):
    screen = watch("--watch=1", rows=30, columns=100)
    across = screen.shows("section pod", "c0", "c3")
    assert across and len([line for line in across.splitlines() if "c0" in line and "c3" in line]) == 1
    screen.size(40, 50)		# two cubes in a row
    assert screen.shows("\nc2                    c3"), screen.text()
    assert not [line for line in screen.text().splitlines() if "c0" in line and "c2" in line]
    screen.size(8, 50)
    assert screen.shows("more lines; the screen is too low"), screen.text()
    screen.key(b"\x03")
    # the harness enters the cluster through nsenter, which the key ends as well
    assert screen.left(), screen.raw[-80:]
    screen.end()
    assert screen.same and screen.cursor
    assert screen.raw.endswith(b"\x1b[?1049l")


def test_map_has_colour_on_terminals_only(pod, watch):
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    for env, colour in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        screen = watch(env=env, columns=100)
        assert screen.end() == 0
        assert (b"\x1b[1;32mA" in screen.raw) == colour and b"A" in screen.raw, screen.raw
        assert not screen.alternate
    assert "\x1b" not in pod.out(["ocsctl", "map", "--fabric", pod.yaml])


def test_map_as_a_report(pod):
    job = pod.sbatch("--shape=4x8x2")
    pod.running(job)
    taken = pod.placement(job)["cubes"]
    other = [cube for cube in ("c0", "c1", "c2", "c3") if cube not in taken][0]
    pod.ocsctl("drain", "cube", other, "--reason", "dust")
    path = pod.path("map.svg")
    try:
        pod.out(["ocsctl", "map", "--fabric", pod.yaml, "--section", "pod", "--svg", path])
    finally:
        pod.ocsctl("resume", "cube", other)
    root = tree.parse(path).getroot()
    fills = [box.get("fill") for box in root.iter(SVG + "rect")]
    words = [text.text for text in root.iter(SVG + "text")]
    # one more of each in the legend
    assert fills.count("url(#down)") == 64 + 1 and words.count("A") == 64 + 1
    assert fills.count("#eeeeee") == 128 + 1
    assert any(word.startswith("section pod, 20") for word in words), words
    assert any(word.startswith("job %d, " % job) and word.endswith("(64 XPUs)") for word in words), words
    assert "down or drained (64 XPUs)" in words and "free (128 of 256 XPUs)" in words, words
