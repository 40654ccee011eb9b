# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One rank of test_moe.py: CONFIG (a file of JSON) and the rank.  Prints a line of JSON a call."""

import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src/moe/job"))
import ocs_moe


def block(call, source, target, size):
    return random.Random(call * 10007 + source * 101 + target).randbytes(size)


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        config = json.load(handle)
    rank = int(sys.argv[2])
    ranks = len(config["addresses"])
    try:
        moe = ocs_moe.Moe(rank, config["addresses"], b"k" * 32, open_ms=60000, idle_ms=config["idle_ms"],
                          dark_ms=config["dark_ms"])
        up = moe.plan(config["links"], [tuple(s) for s in config["shares"]], config["each"])
        print(json.dumps({"up": up}), flush=True)
        for call, sizes in enumerate(config["calls"]):
            send = [block(call, rank, j, sizes[rank][j]) for j in range(ranks)]
            moe.alltoall([b"x"] * ranks, [1] * ranks)
            got = moe.alltoall(send, [sizes[j][rank] for j in range(ranks)])
            right = all(got[j] == block(call, j, rank, sizes[j][rank]) for j in range(ranks))
            print(json.dumps({"call": call, "seconds": moe.seconds, "right": right, **moe.stats()}), flush=True)
        moe.close()
    except ocs_moe.Error as error:
        print(json.dumps({"error": str(error)}), flush=True)


main()
