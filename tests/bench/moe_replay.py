#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What a pass takes beyond computation, in ms, with circuits that follow the gates, for switches of all speeds: the table of
doc/benchmarks.md.  Usage: moe_replay.py OCSCTL [--servers N] [--layers L] [--passes P] [--matrix FILE]

Gates are made up: each layer has shares of its own, which drift from pass to pass.  --matrix takes those of a
recorded matrix instead, with the experts in another order in each layer.  32768 tokens of 8 KiB a server; NICs
of 100 Gb/s, 6 optical and 2 on packets; 30 ms of computation before each all-to-all, twice as long backward.
"""
import argparse
import json
import random
import subprocess
import tempfile

TOKENS = 32768
MS = 100e9 / 8 / 8192 / 1000    # tokens that a NIC carries in a millisecond
COMPUTING = 30
SWITCHING = (0, 1, 10, 25, 41, 100, 1000)


def shares(kind, servers, rng, order):
    if kind == "dirichlet":
        row = [rng.gammavariate(0.3, 1) for _ in range(servers)]
    else:
        if kind == "zipf":
            rng.shuffle(order)
        row = [(order[j] + 1) ** -1.2 for j in range(servers)]
    return [x / sum(row) for x in row]


def layer(kind, servers, rng):
    order = list(range(servers))
    rng.shuffle(order)
    return [shares(kind, servers, rng, order) for _ in range(servers)]


def mixed(old, new, part):
    return [[(1 - part) * x + part * y for x, y in zip(a, b)] for a, b in zip(old, new)]


def recorded(matrix, rng):
    order = list(range(len(matrix)))
    rng.shuffle(order)
    return [[row[j] / sum(row) for j in order] for row in matrix]


def trace(args, kind, matrix):
    rng = random.Random(18)
    servers = len(matrix) if matrix else args.servers

    def make():
        return recorded(matrix, rng) if matrix else layer(kind, servers, rng)

    gates = [make() for _ in range(args.layers)]
    passes = []
    for _ in range(args.passes):
        gates = [mixed(g, make(), 0.03) for g in gates]
        passes.append([[[round(TOKENS * x * rng.uniform(0.9, 1.1)) for x in row] for row in g] for g in gates])
    return passes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ocsctl")
    for name, value in (("servers", 16), ("layers", 8), ("passes", 40)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--matrix")
    args = parser.parse_args()
    matrix = None
    if args.matrix:
        with open(args.matrix, encoding="utf-8") as handle:
            matrix = json.load(handle)

    def beyond(mode):
        return mode["time"] / MS - 6 * COMPUTING * args.layers

    print("| gate | packets | static | " + " | ".join("%d ms" % s for s in SWITCHING) + " |")
    print("|---|---|---|" + "---|" * len(SWITCHING))
    for kind in ["recorded"] if matrix else ["zipf", "popular", "dirichlet"]:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as handle:
            json.dump(trace(args, kind, matrix), handle)
            handle.flush()
            row = []
            for switching in SWITCHING:
                done = subprocess.run(
                    [args.ocsctl, "region", "replay", "--trace", handle.name, "--window", str(round(COMPUTING * MS)),
                     "--switching", "%g,%g" % (switching * MS, 0.35 * MS if switching else 0), "--json"],
                    capture_output=True, text=True, check=True)
                modes = {m["mode"]: m for m in json.loads(done.stdout)["modes"]}
                if not row:
                    row = ["%.0f" % beyond(modes[m]) for m in ("packets", "static")]
                row.append("%.0f" % beyond(modes["following"]))
        print("| %s | %s |" % (kind, " | ".join(row)), flush=True)


if __name__ == "__main__":
    main()
