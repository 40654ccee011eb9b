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


def offers(message, before="nearest shapes that fit: "):
    """The shapes that a line names after BEFORE."""
    assert before in message, message
    return message.split(before)[1].split("\n")[0].split(";")[0].split(", ")


@pytest.mark.parametrize("shape,arguments,first", [
    ("5x5", [], "6x4"), ("5x5x5", [], "8x4x4"), ("7", [], "8"), ("6x5", [], "6x6"),
    ("16x16x16", [], "8x8x4"), ("4x4x4x4", [], "8x8x2x2"), ("6x4", ["--no-fold"], "12x2"),
    ("2x2x4_twisted", [], "4x4x8_twisted"), ("3", ["--no-rotate"], "4"),
    ("9x9x9", ["--conn-type=mesh"], "8x8x4")])
def test_nearest_shapes_are_named_and_fit(pod, shape, arguments, first):
    message = pod.refused("--shape=" + shape, *arguments)
    named = offers(message)
    assert named[0] == first and len(set(named)) == len(named) <= 3, message
    for name in named:
        pod.run(["sbatch", "--test-only", "--shape=" + name, "--wrap", "true"] + arguments)


@pytest.mark.parametrize("shape,arguments,instead", [
    ("6x5", [], ["--conn-type=torus,mesh"]), ("5x5", [], ["--conn-type=mesh"]),
    ("6x4", ["--no-fold"], [])])
def test_what_else_would_work_works(pod, shape, arguments, instead):
    message = pod.refused("--shape=" + shape, *arguments)
    for word in instead or arguments:
        assert word in message, message
    pod.run(["sbatch", "--test-only", "--shape=" + shape, "--wrap", "true"] + instead)


@pytest.mark.parametrize("command", [
    ["salloc", "--shape=5x5", "true"], ["srun", "--shape=5x5", "true"],
    ["sbatch", "--test-only", "--shape=5x5", "--wrap", "true"],
    ["sbatch", "--shape=4x4", "--wrap", "true", ":", "--shape=5x5"]])
def test_every_command_says_so(pod, command):
    done = pod.run(command, check=False)
    assert done.returncode and done.stderr.count("a ring of 5 cannot close") == 1, done.stderr
    assert offers(done.stderr)[0] == "6x4"
    assert not pod.out(["squeue", "-h"]).strip()


def test_waiting_job_names_what_would_fit_now(pod):
    first = pod.sbatch("--shape=8x8x3", "--conn-type=torus,torus,mesh")
    pod.running(first)
    plain = [pod.sbatch("-N1", "-n1", "-w", "n%d" % n) for n in (0, 16, 32, 48)
             if "n%d" % n not in pod.out(["scontrol", "show", "hostnames",
                                          pod.job(first)["NodeList"]]).split()]
    for job in plain:
        pod.running(job)
    job = pod.sbatch("--shape=4x4x4")

    def reason():
        text = pod.job(job)["Reason"].replace("_", " ")     # as scontrol writes it
        return text if "would fit now" in text else None
    text = pod.until(reason, 30, lambda: "a reason that names shapes: %s" % pod.job(job))
    assert "\n" not in text and len(text) < 300
    explained = pod.out(["ocsctl", "explain", str(job), "--fabric", pod.yaml])
    assert "would fit now" in explained
    named = offers(text, "would fit now: ")
    pod.run(["scancel", str(job)])
    for shape in named:
        # One after the other: each alone fits.
        job = pod.sbatch("--shape=" + shape)
        pod.running(job)
        pod.run(["scancel", str(job)])
        pod.wait(job)
        pod.until(lambda: "COMPLETING" not in pod.state(job), 20, "its end")


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
