# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs side by side: no port and no link is ever shared."""

import json

from rings import broken_edges


def makes(pod):
    """The make and break events of the emulator's own log, in order."""
    with open(pod.path("emulator.log")) as handle:
        for line in handle:
            event = json.loads(line)
            if event["event"] in ("make", "break"):
                yield event


def test_two_shaped_jobs_and_unshaped_ones(pod):
    with open(pod.path("emulator.log")) as handle:
        before = len(handle.readlines())
    jobs = [pod.sbatch("--shape=8x4x4"), pod.sbatch("--shape=4x4x4")]
    plain = [pod.sbatch("-N2", "-n4"), pod.sbatch("-N1", "-n1", "-p", "plain")]
    for job in jobs + plain:
        pod.running(job)
    patches = pod.patches()
    parts = []
    for job in jobs:
        placement = pod.placement(job)
        assert not broken_edges(placement, patches, pod.switch_size())
        parts.append(pod.circuit_patches(placement))
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == patches
    ports = [{(s, i) for s, i, _ in part} | {(s, o) for s, _, o in part} for part in parts]
    assert not ports[0] & ports[1]
    # The jobs end one after the other; the other one's circuits never blink.
    pod.run(["scancel", str(jobs[1])])
    pod.until(lambda: pod.patches() == parts[0], 20, "only the first job's circuits")
    pod.run(["scancel", str(jobs[0])])
    pod.until(lambda: not pod.patches(), 20, "dark switches")
    cut = {}
    with open(pod.path("emulator.log")) as handle:
        for line in handle.readlines()[before:]:
            event = json.loads(line)
            if event["event"] == "break":
                key = (event["switch"], event["in"], event["out"])
                cut[key] = cut.get(key, 0) + 1
    assert set(cut) == parts[0] | parts[1]
    assert set(cut.values()) == {1}, "a circuit was cut more than once"


def test_stream_of_jobs_leaves_a_clean_log(pod):
    shapes = ["4x4", "4x4x4", "18", "2x2x2", "8x4x4", "6x4", "8", "4x8x2"]
    jobs = [pod.sbatch("--shape=" + shapes[i % len(shapes)], script="sleep 1")
            for i in range(16)]
    jobs += [pod.sbatch("-N1", "-n1", script="sleep 1") for _ in range(6)]
    for job in jobs:
        pod.wait(job, "COMPLETED", 120)
    pod.until(lambda: not pod.patches(), 20, "dark switches")
    # The emulator's own judge: at no moment had a port two peers.
    pod.run(["ocs-emulator", "--check-log", pod.path("emulator.log")])


def news(pod, name, since=0):
    with open(pod.path(name), errors="replace") as handle:
        return handle.read()[since:]


def test_shaped_jobs_of_one_cube_share_it(pod):
    since = {name: len(news(pod, name)) for name in ("slurmctld.log", "ocsd.log")}
    jobs = [pod.sbatch("--shape=4x4") for _ in range(4)]
    for job in jobs:
        pod.running(job)
    placements = [pod.placement(job) for job in jobs]
    assert len({cube for p in placements for cube in p["cubes"]}) == 1, "\n".join(
        ["four quarters of a cube broke more than one"] +
        [str(pod.job(job)) for job in jobs] + [news(pod, *log) for log in since.items()])
    seen = [(x["cube"], tuple(x["at"])) for p in placements for x in p["xpus"]]
    assert len(seen) == len(set(seen)) == 64
    patches = pod.patches()
    for placement in placements:
        assert not broken_edges(placement, patches, pod.switch_size())
