#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The tables of doc/models.md.  usage: optimise_table.py BUILD [FOLDER of measured times]

The search of this project with at most 400 evaluations against the published one with 4000, on the six
models of TopoOpt; and strategy and topology together against strategy first and topology after it."""
import json
import os
import subprocess
import sys

MODELS = ("candle", "vgg16", "resnet50", "bert", "dlrm", "ncf")
MEASURED = {"candle": "candle_128", "vgg16": "vgg128", "resnet50": "resnet128", "bert": "transformer128", "dlrm": "dlrm128",
            "ncf": "ncf128"}
build = os.path.abspath(sys.argv[1])
measured = sys.argv[2] if len(sys.argv) > 2 else None
share = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share")


def found(model, *words):
    done = subprocess.run([build + "/src/ocsctl/ocsctl", "optimise", model, "--json", *words], text=True, check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, OCS_DATADIR=share))
    return json.loads(done.stdout)


def times(model):
    return ["--measured", "%s/%s.json" % (measured, MEASURED[model])] if measured else []


def searches(servers):
    print("| %d servers of 4 GPUs, 4 x 100 Gb/s | data parallel | descent | evaluations | mcmc, 4000 | strategy first, topology after |" %
          servers)
    print("|---|---|---|---|---|---|")
    for model in MODELS:
        words = ["--servers", str(servers)] + times(model)
        descent, walk = found(model, *words), found(model, "--method", "mcmc", *words)
        print("| %s | %s | %.1f | %d | %.1f | %.1f |" % (
            model, "%.1f" % descent["data_parallel_ms"] if descent["data_parallel_fits"] else "does not fit",
            descent["step_ms"], descent["evaluations"], walk["step_ms"], descent["sequential_ms"]))


def together():
    """Where searching both at once finds a faster step."""
    gains, count = [], 0
    for model in MODELS + ("llama-3-8b", "mixtral-8x7b"):
        for servers in (8, 16, 32, 64):
            for degree in (2, 4, 8):
                for rate in ("10G", "100G", "400G"):
                    words = ["--servers", str(servers), "--degree", str(degree), "--rate", rate]
                    try:
                        got = found(model, *words)
                    except subprocess.CalledProcessError:
                        continue    # does not fit so few
                    count += 1
                    gain = got["sequential_ms"] / got["step_ms"] - 1
                    if gain > 5e-4:
                        gains.append((gain, model, servers, degree, rate))
    gains.sort(reverse=True)
    print("\nstrategy and topology together gain in %d of %d cases%s" % (
        len(gains), count, ": most %.1f %%, half of these below %.1f %%" % (
            100 * gains[0][0], 100 * gains[len(gains) // 2][0]) if gains else ""))
    for gain, model, servers, degree, rate in gains[:8]:
        print("  %-12s %d servers, %d x %s: %.1f %%" % (model, servers, degree, rate, 100 * gain))


searches(16)
print()
searches(128)
together()
