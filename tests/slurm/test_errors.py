# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Bad requests: one clear line at submit that says what would work."""

import pytest


@pytest.mark.parametrize("shape,words", [
    ("0x4x4", ["0x4x4"]),
    ("4x4x", ["4x4x"]),
    ("axb", ["axb"]),
    ("-4x4", ["-4x4"]),
    ("4x4x4x4x4x4x4", ["dimension", "6"]),
    ("99999999999999999999x4", ["99999999999999999999"]),
    ("", ["shape"]),
    ("16x16x16", ["256"]),          # larger than the machine: 4 cubes of 64
    ("5x5", ["ring", "5"]),         # odd rings cannot close
    ("3", ["ring", "3"]),
])
def test_refused(pod, shape, words):
    message = pod.refused("--shape=" + shape)
    lines = [line for line in message.splitlines()
             if "Batch job submission failed" not in line and line.strip()]
    assert len(lines) == 1, message
    for word in words:
        assert word in lines[0], message


def test_nearest_shapes_are_named_and_fit(pod):
    message = pod.refused("--shape=5x5")
    named = [word.strip(",.;:") for word in message.split() if
             "x" in word and word.strip(",.;:").replace("x", "").isdigit()]
    offers = [name for name in named if name not in ("5x5", "4x4x4")]
    assert offers, message
    for shape in offers:
        pod.run(["sbatch", "--test-only", "--shape=" + shape, "--wrap", "true"])


def test_contradicting_node_count(pod):
    message = pod.refused("--shape=4x4x4", "-N3")
    assert "16" in message and "-N" in message


def test_bad_conn_type(pod):
    assert "torus" in pod.refused("--shape=4x4", "--conn-type=ring")
    assert "conn" in pod.refused("--shape=4x4x4", "--conn-type=torus,mesh").lower()


def test_conn_type_without_shape(pod):
    assert "--shape" in pod.refused("--conn-type=mesh")


def test_static_shape_in_a_plain_partition(pod):
    message = pod.refused("--shape=4x4", "-p", "plain")
    assert "plain" in message
