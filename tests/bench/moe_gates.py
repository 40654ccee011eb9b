#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""How well gates are foretold, and what circuits that follow them gain, on gates of a real training and on made-up ones:
two tables of doc/benchmarks.md.  Usage: moe_gates.py STAGE [--passes P] [--ranks R] [--trace FILE]

Trains the language model of tests/net/moe_train.py on the loopback of this machine (about 0.3 s of two cores a pass), as
many processes as RANKS, and records what each rank's gate chose; --trace takes a record that is there, or keeps the
new one there."""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests/net"), str(SOURCE / "tests/bench")]

import moe_replay           # noqa: E402
import moe_texts            # noqa: E402

LAYERS = 3
MADE_UP = 60    # passes; after many more the drift has made all shares alike


def record(args, path):
    """The gates of a training."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "train.json"
        config.write_text(json.dumps({
            "addresses": [f"127.0.0.1:{27000 + r}" for r in range(args.ranks)], "key": "k" * 32, "out": folder,
            "texts": moe_texts.texts(args.ranks), "layers": LAYERS, "passes": args.passes,
            "runs": [{"name": "record", "record": str(path)}]}))
        env = {**os.environ, "OCS_MOE_LIBRARY": f"{args.stage}/libexec/slurm-ocs/libocsmoe.so"}
        subprocess.run(["/usr/bin/python3", SOURCE / "tests/net/moe_train.py", config], env=env, check=True)
        lines = [json.loads(line) for line in (pathlib.Path(folder) / "0").read_text().splitlines()]
    print("loss %.2f to %.2f" % (lines[0]["about"], lines[-1]["about"]), file=sys.stderr)


def generated(args, kind, path):
    rng = random.Random(18)
    gates = [moe_replay.layer(kind, args.ranks, rng) for _ in range(LAYERS)]
    passes = []
    for _ in range(MADE_UP):
        gates = [moe_replay.mixed(g, moe_replay.layer(kind, args.ranks, rng), 0.03) for g in gates]
        passes.append([[[round(256 * x * rng.uniform(0.9, 1.1)) for x in row] for row in g] for g in gates])
    path.write_text(json.dumps({"passes": passes}))


def ocsctl(args, *words):
    done = subprocess.run([f"{args.stage}/bin/ocsctl", "region", *words, "--json"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage")
    for name, value in (("passes", 300), ("ranks", 6)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--trace")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(args.trace or f"{folder}/training")
        if not trace.exists():
            record(args, trace)
        kinds = {"training": trace}
        for kind in ("zipf", "popular", "dirichlet"):
            kinds[kind] = pathlib.Path(folder) / kind
            generated(args, kind, kinds[kind])
        foretold = {k: ocsctl(args, "predict", "--trace", str(p))["methods"] for k, p in kinds.items()}
        print("| method | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
        for number, method in enumerate(foretold["training"]):
            print("| %s | %s |" % (method["method"], " | ".join(
                "%.3f/%.2f" % (m[number]["difference"], m[number]["hit"]) for m in foretold.values())))
        print("\n| circuits | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
        for relay in ([], ["--relay"]):
            modes = {k: ocsctl(args, "replay", "--trace", str(p), "--alpha", "2", "--beta", "1", "--window", "300",
                               "--switching", "10,0", *relay)["modes"] for k, p in kinds.items()}
            for number, name in enumerate(("packets", "static", "following")):
                if number or not relay:
                    print("| %s%s | %s |" % (name, ", relays" if relay else "", " | ".join(
                        "%.3f" % (m[number]["sending"] / m[0]["sending"]) for m in modes.values())))


if __name__ == "__main__":
    main()
