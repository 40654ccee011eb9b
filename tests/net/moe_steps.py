# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One rank of a training that computes nothing: gates and all-to-alls as moe_train.py has them, each byte checked, until there is
a file OUT/stop.  Writes a line of JSON for each pass to OUT/RANK.

    moe_steps.py CONFIG RANK"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src/moe/job"))
import ocs_moe          # noqa: E402

UNIT = 60000


def words(layer, source, target, ranks):
    """Most goes to one rank, another one in each layer."""
    return 0 if source == target else UNIT if (target - source) % ranks == 1 + layer % (ranks - 1) else UNIT // 30


def block(layer, number, source, target, ranks):
    return bytes((layer * 7 + number * 3 + source * 11 + target * 17 + k) & 255 for k in range(64)) * (
        words(layer, source, target, ranks) // 64)


def pass_run(config, moe, gate, controller, number):
    """Whether all bytes were right."""
    rank, ranks, right = moe.rank, moe.ranks, True
    steps = [(layer, 0, second) for layer in range(config["layers"]) for second in (0, 1)]
    steps += [(layer, 1, second) for layer in reversed(range(config["layers"])) for second in (0, 1)]
    for layer, backward, second in steps:
        if not backward and not second:
            gate.row(layer, number, [words(layer, rank, j, ranks) for j in range(ranks)])
        controller(layer, number, backward, second)
        gate.begin(layer, number, backward, second)
        pairs = [(j, rank) if second else (rank, j) for j in range(ranks)]
        send = [block(layer, number, *pair, ranks) for pair in pairs]
        wanted = [block(layer, number, *reversed(pair), ranks) for pair in pairs]
        right &= moe.alltoall(send, [len(w) for w in wanted]) == wanted
        gate.end(layer, number, backward, second)
    return right


def main():
    config, rank = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="ascii")), int(sys.argv[2])
    ranks, stop = len(config["addresses"]), os.path.join(config["out"], "stop")
    moe = ocs_moe.Moe(rank, config["addresses"], config["key"].encode(), open_ms=60000, dark_ms=1000, idle_ms=60000)
    gate, controller = ocs_moe.Gate(rank, ranks, config.get("agent")), ocs_moe.Controller(moe, config.get("ask"))
    with open(os.path.join(config["out"], str(rank)), "w", encoding="ascii") as out:
        number, going = 0, True
        while going:
            right = pass_run(config, moe, gate, controller, number)
            print(json.dumps({"pass": number, "right": right, **moe.stats()}), file=out, flush=True)
            number += 1
            # rank 0 says whether it goes on
            word = b"e" if os.path.exists(stop) else b"g"
            going = moe.alltoall([word if not rank else b"x"] * ranks, [1] * ranks)[0] == b"g"
    moe.close()


main()
