#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""ocs-replay: what it counts and how long a step takes, against sums made by hand; and the published
tables, where they lie beside the tree.  TAP on stdout."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["OCS_SOURCE_DIR"], "tests/unit"))
from tap import end, result  # noqa: E402

REPLAY = os.path.join(os.environ["OCS_BUILD_DIR"], "src/rails/ocs-replay")
PUBLISHED = os.environ.get("OCS_OPUS_TABLES", os.path.join(os.environ["OCS_SOURCE_DIR"], "../shared/data/opus"))


def replay(folder, *words):
    done = subprocess.run([REPLAY, folder, "--json", *words], text=True, capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def row(kind, start, first, end, last, length):
    return "%s start_backend: %d start_idx: %d end_backend: %d end_idx: %d len: %d" % (kind, start, first, end, last, length)


def tables(folder, *ranks):
    """A file per node, of these rows."""
    for node, rows in enumerate(ranks):
        with open(os.path.join(folder, "comm_pattern_%d_rank0.txt" % node), "w", encoding="ascii") as handle:
            handle.write("\n".join(["Node: %d, Rank: 0, Tid: 1" % node, *rows]) + "\n")


def pipeline(folder):
    """Three stages whose pipelines are numbered for the whole job: the middle one alternates."""
    tables(folder, [row("PP", 11, 1000, 11, 1003, 4)],
           [line for k in range(4) for line in (row("PP", 11, 1000 + k, 11, 1000 + k, 1), row("PP", 21, 2000 + k, 21, 2000 + k, 1))],
           [row("PP", 21, 2000, 21, 2003, 4)])
    code, seen = replay(folder, "--switch-ms", "50", "--operation-ms", "1")
    result("a pipeline alone needs no change", code == 0 and seen["barriers"] == 8 and seen["topology_changes"] == 0
           and seen["outside_phases"] == 0 and seen["violations"] == [] and seen["stages"] == 3, seen)
    result("and takes the operations of its middle stage", seen["step_ms"] == 8, seen)


def rings(steps, hole=0):
    """pp:2,dp:2 with numbers of each node: an operation of the pipeline, then three of the ring, HOLE left out before."""
    rows, idx = [], 0
    for step in range(steps):
        rows.append(row("PP", 1, step, 1, step, 1))
        idx += hole if step else 0
        rows.append(row("DP", 5, idx, 5, idx + 2, 3))
        idx += 3
    return rows


def phases(folder):
    tables(folder, *[rings(6)] * 4)
    code, seen = replay(folder, "--switch-ms", "20", "--operation-ms", "2", "--window-ms", "30")
    # both pipelines, both rings; every phase is a change, and all but the first one come after a window
    native = 6 * (1 + 3) * 2 + 11 * 30
    result("two dimensions: a change per phase", code == 0 and seen["barriers"] == 6 * 2 + 18 * 2 and seen["topology_changes"] == 12
           and seen["stages"] == 2 and not seen["violations"], seen)
    result("on demand a step takes T_native + n T", seen["step_ms"] == native + 12 * 20, seen)
    code, seen = replay(folder, "--switch-ms", "20", "--operation-ms", "2", "--window-ms", "30", "--mode", "provisioned")
    # after the last ring the pipeline has always followed: that change is one that nothing uses
    result("provisioned, windows hide all but the first", code == 0 and seen["step_ms"] == native + 20 and seen["provisioned"] == 12
           and seen["topology_changes"] == 13 and not seen["violations"], seen)
    code, seen = replay(folder, "--switch-ms", "50", "--operation-ms", "2", "--window-ms", "30", "--mode", "provisioned")
    result("and what they cannot hide is max(0, T - window)", seen["step_ms"] == native + 50 + 11 * 20, seen)


def holes(folder):
    tables(folder, *[rings(4, hole=5)] * 4)
    code, seen = replay(folder, "--switch-ms", "1")
    skipped = [(one["group"], one["nodes"], one["operations"]) for one in seen["skipped"]]
    result("operations that no phase has are served, and counted", code == 0 and not seen["violations"] and
           seen["outside_phases"] == 2 * 15 and seen["barriers"] == 2 * (4 + 12 + 15), seen)
    result("and named", sorted(skipped) == [(5, [0, 1], 15), (5, [2, 3], 15)], seen)
    # a phase that begins in a group and ends in another
    mixed = [row("PP", 1, 0, 1, 0, 1), row("DP", 5, 0, 5, 1, 2), row("DP", 6, 0, 5, 4, 5), row("PP", 1, 1, 1, 1, 1)]
    tables(folder, *[mixed] * 4)
    code, seen = replay(folder)
    result("a phase of two groups", code == 0 and seen["barriers"] == 2 * (2 + 2 + 5) and seen["outside_phases"] == 0, seen)


def faults(folder):
    good = rings(2)
    for name, rows, wanted in (
            ("a line that is none", ["DP 1 2 3"], "line 2: not a phase"),
            ("a kind that there is not", [row("EP", 1, 0, 1, 0, 1)], "phases are PP or DP, not EP"),
            ("a length that is wrong", [row("DP", 5, 0, 5, 1, 7)], "0 to 1 are not 7 operations"),
            ("operations that go back", [row("DP", 5, 4, 5, 5, 2), row("DP", 5, 0, 5, 1, 2)], "do not follow 5"),
            ("a number that is too large", [row("DP", 5, 0, 5, 10**15, 10**15 + 1)], "out of range")):
        tables(folder, rows, *[good] * 3)
        code, seen = replay(folder, "--stages", "2")
        result(name, code == 2 and wanted in seen, seen)
    tables(folder, *[good] * 4)
    code, seen = replay(folder, "--stages", "3")
    result("stages that do not divide the nodes", code == 2 and "give --stages" in seen, seen)
    tables(folder, good, good, good, good[:-1])
    code, seen = replay(folder, "--stages", "2")
    result("a rank that does not come is a violation", code == 1 and any("no progress" in line for line in seen["violations"]), seen)
    tables(folder, [row("PP", 1, 0, 1, 0, 1)], [row("PP", 2, 0, 2, 0, 1)], [row("PP", 1, 0, 1, 0, 1)], [row("PP", 2, 0, 2, 0, 1)])
    code, seen = replay(folder)
    result("a pipeline that skips a stage", code == 2 and "neither neighbouring stages nor a ring" in seen, seen)
    os.remove(os.path.join(folder, "comm_pattern_2_rank0.txt"))
    code, seen = replay(folder)
    result("a missing file", code == 2 and "some are missing" in seen, seen)


def published():
    for name, barriers, changes, skipped in (("deepseek_v3_16b-2d-16-latency", 252, 0, []),
                                             ("llama-3-3d-16-latency", None, None, [([0, 1], 170), ([2, 3], 340)])):
        folder = os.path.join(PUBLISHED, name)
        if not os.path.isdir(folder):
            result("%s # SKIP the published tables are not here" % name, True)
            continue
        code, seen = replay(folder, "--switch-ms", "10", "--mode", "provisioned")
        got = [(one["nodes"], one["operations"]) for one in seen["skipped"]]
        result(name, code == 0 and seen["violations"] == [] and barriers in (None, seen["barriers"]) and
               changes in (None, seen["topology_changes"]) and got == skipped and
               seen["outside_phases"] == sum(count for _, count in skipped), seen)


for case in (pipeline, phases, holes, faults):
    with tempfile.TemporaryDirectory() as place:
        case(place)
published()
sys.exit(end())
