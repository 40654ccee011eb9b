# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Daemons killed at random moments under a stream of jobs."""

import random
import threading
import time

import pytest

SHAPES = ["4x4x2", "4x8x2", "2x2x1", "4x4x4", "18", "8x8x4", "6x4"]


@pytest.mark.parametrize("daemon", ["slurmctld", "ocsd"])
def test_killed_again_and_again(pod, daemon):
    """Exact circuits afterwards: none, once the last job is gone."""
    chance = random.Random(daemon)
    start = {"slurmctld": pod.start_slurmctld, "ocsd": pod.start_ocsd}[daemon]
    over = threading.Event()

    def stream():
        while not over.is_set():
            pod.run(["sbatch", "-o", "/dev/null", "--shape=" + chance.choice(SHAPES)], check=False,
                    stdin="#!/bin/bash\nsleep %d\n" % chance.choice([0, 1, 3]))
            over.wait(chance.random())

    thread = threading.Thread(target=stream)
    thread.start()
    try:
        for _ in range(4):
            time.sleep(1 + 3 * chance.random())
            pod.kill(daemon)
            time.sleep(chance.random() / 2)
            start()
    finally:
        over.set()
        thread.join()
    # Jobs that slurmctld lost before it had saved them count as gone, too.
    pod.run("squeue -h -o %A | xargs -r scancel", check=False)
    pod.until(lambda: not pod.out(["squeue", "-h"]).strip(), 60, "the queue to be empty")
    pod.until(lambda: not pod.patches() and not pod.ocsctl("show", "job")["jobs"], 60,
              lambda: "dark switches: %s" % pod.ocsctl("show", "job"))
    checked = pod.run(["ocs-emulator", "--fabric", pod.yaml, "--check-log",
                       pod.path("emulator.log")], check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with open(pod.path("emulator.log")) as log:
        assert "deleted-all" not in log.read()
    # slurmctld may die once more before the nodes have stopped what it forgot, and one that
    # is told to start that again is drained: that is Slurm's way.  One more job: everything
    # still works.
    pod.run("sinfo -h -N -t drain -o %N | xargs -r -I@ scontrol update NodeName=@ State=RESUME",
            check=False)
    job = pod.sbatch("--shape=4x4x4")
    placement = pod.placement(job, pod.running(job)["BatchHost"])
    assert pod.circuit_patches(placement) == pod.patches()
