#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""mFabric's figures 14 to 19 with ocs-netsim, beside what is published, as the tables of
doc/netsim-published.md; dollars: figures 14 and 16 from published prices and step times alone,
which fails where one of the 20 values differs from the published one; assumptions: what does not agree, and what else must be assumed so that it does.

    mfabric_published.py [--netsim PROGRAM] [--ocsctl PROGRAM] [--matrices FOLDER] [FIGURE ...]

FOLDER has mixtral-8x7b-ep8.txt and synthetic-ep16.txt, tokens from each rank to each expert; without it
matrices are drawn."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

RATES = (100, 200, 400, 800)
# servers of a region, ranks of a server, stages, micro-batches, layers, MB that a rank dispatches, forward
# TFLOP of experts and attention, bytes of gradients of a stage's server, matrix
MODELS = {
    "8x22B": (8, 1, 8, 16, 56, 1611e6, 9.90, 2.27, 141e9 * 2 / 8 / 8, "mixtral-8x7b-ep8.txt"),
    "8x7B": (4, 2, 4, 8, 32, 537e6, 5.77, 1.24, 46.7e9 * 2 / 4 / 4, "mixtral-8x7b-ep8.txt"),
    "LLaMA": (2, 8, 4, 8, 32, 1074e6, 2.22, 6.60, 6.7e9 * 2 / 4 / 2, "synthetic-ep16.txt"),
    "Qwen": (2, 8, 4, 8, 24, 537e6, 2.27, 2.20, 14.3e9 * 2 / 4 / 2, "synthetic-ep16.txt"),
}
PUBLISHED = {   # fat-tree, mFabric, rail, TopoOpt at 100, 200, 400, 800 Gb/s
    "8x22B": ((1.374, 1.194, 1.082, 1.024), (1.454, 1.201, 1.114, 1.013), (1.361, 1.163, 1.096, 1.000),
              (2.697, 1.976, 1.575, 1.267)),
    "8x7B": ((1.210, 1.079, 1.030, 1.000), (1.249, 1.098, 1.031, 1.001), (1.189, 1.057, 1.013, 1.000),
             (2.273, 1.625, 1.268, 1.143)),
    "LLaMA": ((3.932, 2.188, 1.346, 1.000), (5.010, 2.727, 1.599, 1.192), (5.314, 2.932, 1.675, 1.124),
              (9.531, 5.737, 3.981, 2.303)),
    "Qwen": ((5.094, 2.730, 1.563, 1.000), (6.174, 3.205, 1.764, 1.053), (6.110, 3.238, 1.830, 1.155),
             (7.775, 4.553, 2.802, 1.789)),
}
PER_DOLLAR = {  # mFabric over fat-tree, figure 16
    "8x22B": (1.44, 1.78, 2.22, 2.36), "8x7B": (1.48, 1.76, 2.29, 2.33), "LLaMA": (1.20, 1.44, 1.93, 1.96),
    "Qwen": (1.26, 1.52, 2.03, 2.21)}
PORTS = {25: (39, 185, 144), 40: (39, 354, 144), 100: (99, 659, 187)}   # 25 and 40 Gb/s: TopoOpt's table 2
COST = (1.524, 1.790, 2.289, 2.331)
ARGS = FOLDER = None


def matrix_read(name, ranks):
    if ARGS.matrices:
        with open(os.path.join(ARGS.matrices, name)) as handle:
            return json.load(handle)
    rng = random.Random(1)
    return [[rng.paretovariate(1.5) for _ in range(ranks)] for _ in range(ranks)]


def region_matrix(name, rng):
    """Bytes from server to server of a region in one all-to-all: the counts of a layer, whose experts are
    in another order in each layer."""
    servers, each, _, _, _, size = MODELS[name][:6]
    ranks = servers * each
    counts = matrix_read(MODELS[name][9], ranks)
    order = rng.sample(range(ranks), ranks)
    out = [[0] * servers for _ in range(servers)]
    for i in range(ranks):
        total = sum(counts[i])
        for j in range(ranks):
            if i // each != order[j] // each:
                out[i // each][order[j] // each] += size * counts[i][j] / total
    return out


def graph(name, servers, compute, layers):
    """LAYERS layers of one micro-batch in each region, forward and backward, and the gradients' share of a
    micro-batch.  COMPUTE: ms of a layer's forward pass."""
    side, _, stages, micro, all_layers, _, expert, attention, gradients, _ = MODELS[name]
    rng, tasks, groups, matrices = random.Random(7), [], [], []
    expert_ms = compute * expert / (expert + attention)
    attention_ms = compute - expert_ms

    def everywhere(region, ms, after):
        first = region * side
        return [len(tasks) - 1 for s in range(first, first + side)
                if tasks.append({"kind": "compute", "server": s, "device": 0, "ms": ms, "after": after}) is None]

    def exchange(region, matrix, after):
        tasks.append({"kind": "alltoall", "group": region, "matrix": matrix, "after": after})
        return [len(tasks) - 1]

    ends = []
    for region in range(servers // side):
        groups.append(list(range(region * side, (region + 1) * side)))
        last, first = [], len(matrices)
        for _ in range(layers):
            there = region_matrix(name, rng)
            matrices += [there, [list(row) for row in zip(*there)]]
        for k in range(layers):
            last = exchange(region, first + 2 * k, everywhere(region, attention_ms, last))
            last = exchange(region, first + 2 * k + 1, everywhere(region, expert_ms, last))
        for k in reversed(range(layers)):
            last = exchange(region, first + 2 * k, last)
            last = exchange(region, first + 2 * k + 1, everywhere(region, 2 * expert_ms, last))
            last = everywhere(region, 2 * attention_ms, last)
        ends.append(last)
    # replicas of a stage: every STAGES-th region, server by server
    share = gradients / micro * layers / (all_layers / stages)
    for s in range(side * stages):
        members = list(range(s, servers, side * stages))
        if len(members) > 1:
            groups.append(members)
            tasks.append({"kind": "allreduce", "group": len(groups) - 1, "bytes": share,
                          "after": sorted({t for m in members for t in ends[m // side]})})
    return {"servers": servers, "devices": 1, "groups": groups, "matrices": matrices, "tasks": tasks}


def run(step, fabric):
    path = os.path.join(FOLDER, "graph")
    with open(path, "w") as handle:
        json.dump(step, handle)
    done = subprocess.run([ARGS.netsim, "--graph", path, "--fabric", fabric, "--json", "--tolerance", "0.001"],
                          text=True, capture_output=True, check=True)
    return json.loads(done.stdout)["step_ms"]


def tree(rate):
    return "fat-tree degree:8 rate:%gG leaf:16" % rate


def compute_fit(name, servers=128, layers=2):
    """The ms of a layer's forward pass with which a fat-tree's step at 100 Gb/s is as many times as long as
    at 800 Gb/s as published: all of the paper's computation times that is needed."""
    wanted = PUBLISHED[name][0][0] / PUBLISHED[name][0][3]
    low, high = 1e-3, 1e5
    for _ in range(40):
        middle = (low * high) ** .5
        step = graph(name, servers, middle, layers)
        low, high = (middle, high) if run(step, tree(100)) / run(step, tree(800)) > wanted else (low, middle)
    return low


def table(*names):
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


KINDS = (("fat-tree", tree), ("mFabric, as published", "region degree:8 rate:%gG policy:paper when:always change:0"),
         ("25 ms not hidden", "region degree:8 rate:%gG policy:paper when:always change:25ms"),
         ("ours", "region degree:8 rate:%gG relays:no when:ahead"),
         ("ours, relays", "region degree:8 rate:%gG relays:yes when:ahead"),
         ("TopoOpt", "topoopt degree:8 rate:%gG"))


def steps_find():
    """The ms of a step of each model and rate on each of KINDS."""
    for name in MODELS:
        step = graph(name, 128, COMPUTE[name], 2)
        for rate in RATES:
            if (name, rate) not in STEPS:
                STEPS[name, rate] = [run(step, line(rate) if callable(line) else line % rate) for _, line in KINDS]


def figure_15():
    steps_find()
    table("model", "rate", "fat-tree", "published", *(name for name, _ in KINDS[1:]),
          "mFabric/fat-tree", "published", "TopoOpt/fat-tree", "published")
    for name in MODELS:
        base = STEPS[name, 800][0] / PUBLISHED[name][0][3]
        for k, rate in enumerate(RATES):
            ms, published = STEPS[name, rate], [column[k] for column in PUBLISHED[name]]
            row(name, "%dG" % rate, "%.3f" % (ms[0] / base), published[0], *("%.3f" % (each / base) for each in ms[1:]),
                "%.2f" % (ms[1] / ms[0]), "%.2f" % (published[1] / published[0]),
                "%.2f" % (ms[5] / ms[0]), "%.2f" % (published[3] / published[0]))
    print("\nForward pass of a layer, fitted: " + ", ".join("%s %.1f ms" % item for item in COMPUTE.items()))


def advised_costs(rate, *options, servers=128, costs="mfabric"):
    """How many times cheaper than a fat-tree mFabric is, and, with --step-times, its performance per dollar."""
    done = subprocess.run([ARGS.ocsctl, "advise", "costs", "--costs", costs, "--servers", str(servers), "--degree",
                           "8", "--rate", "%dG" % rate, "--json", *options], text=True, capture_output=True, check=True)
    one, = (each for each in json.loads(done.stdout)["fabrics"] if each["fabric"] == "mfabric")
    return one["cheaper"], one["value"]


def cost_ratio(rate, servers=128, costs="mfabric"):
    return advised_costs(rate, servers=servers, costs=costs)[0]


def figure_14():
    table("rate", "fat-tree / mFabric, $", "published")
    for rate, wanted in zip(RATES, COST):
        row("%dG" % rate, "%.3f" % cost_ratio(rate), wanted)


def figure_dollars():
    """Exact prices times published step times: nothing is simulated."""
    table("model", "rate", "fat-tree / mFabric, $", "published", "performance per dollar over fat-tree", "published")
    for k, rate in enumerate(RATES):
        for name in MODELS:
            fat_tree, mfabric = PUBLISHED[name][0][k], PUBLISHED[name][1][k]
            cost, better = advised_costs(rate, "--step-times", "ideal=%g,mfabric=%g" % (fat_tree, mfabric))
            row(name, "%dG" % rate, "%.3f" % cost, COST[k], "%.3f" % better, PER_DOLLAR[name][k])
            # published values have two decimals, and come from step times before these were rounded
            if abs(cost - COST[k]) > 0.0005 or abs(better - PER_DOLLAR[name][k]) > 0.006:
                sys.exit("%s at %dG: not as published" % (name, rate))


def figure_16():
    steps_find()
    table("model", "rate", "performance per dollar over fat-tree", "published", "ratio", "ours with relays")
    for name in MODELS:
        for k, rate in enumerate(RATES):
            ms, cost = STEPS[name, rate], cost_ratio(rate)
            here = cost * ms[0] / ms[1]
            row(name, "%dG" % rate, "%.2f" % here, PER_DOLLAR[name][k], "%.2f" % (here / PER_DOLLAR[name][k]),
                "%.2f" % (cost * ms[0] / ms[4]))


def figure_17():
    """Optical degree at equal cost: packet interfaces get slower as they become more."""
    packet, optical = 659 + 5 * 187 + 6 * 99 + 3 * 150, 659 + 99 + 520 + 150
    step = graph("8x22B", 128, COMPUTE["8x22B"], 2)
    table("optical interfaces", "packet interfaces", "rate of these", "step, as published", "step, ours")
    for alpha in range(1, 8):
        rate = 100 * (2 * packet + 6 * optical - alpha * optical) / (8 - alpha) / packet
        line = "region degree:8 rate:100G optical:%d packets:%gG " % (alpha, rate)
        row(alpha, 8 - alpha, "%.0fG" % rate, "%.0f ms" % run(step, line + "policy:paper when:always change:0"),
            "%.0f ms" % run(step, line + "when:ahead"))


def figure_18():
    cost = cost_ratio(100)
    table("servers", "mFabric", "rail of equal cost, %.0fG" % (100 / cost), "tokens per second, ratio", "published mean")
    for servers in (128, 256, 512, 1024):
        step = graph("8x7B", servers, COMPUTE["8x7B"], 1)
        here, rail = run(step, KINDS[1][1] % 100), run(step, "rail degree:8 rate:%gG" % (100 / cost))
        row(servers, "%.0f ms" % here, "%.0f ms" % rail, "%.2f" % (rail / here), 1.8)


def cost_of_cables(price, rate=400, servers=512):
    """The fat-tree's cost over mFabric's where cables of PRICE join servers to their switches."""
    path = os.path.join(FOLDER, "cables.yaml")
    packets = "nic: 1, cable: 1, port_transceiver: 4, switch_port: 5, fibre: 2"
    with open(path, "w") as handle:
        handle.write("costs: cables\nassumptions: []\nprices: {ocs_port: 520, fibre: 150, cable: %g}\nrates:\n"
                     "- {rate: %dG, prices: {nic: 1499, transceiver: 659, port_transceiver: 659, switch_port: 1090}}\n"
                     "fabrics:\n- {name: ideal, parts: [{%s}]}\n- name: mfabric\n  parts:\n  - {share: 1/4, %s}\n"
                     "  - {share: 3/4, nic: 1, transceiver: 1, ocs_port: 1, fibre: 1}\n" % (price, rate, packets, packets))
    return cost_ratio(rate, servers, path)


def figure_19():
    """Prices of cables are not published: from none to that of the two transceivers and the fibre that a cable
    replaces."""
    table("a cable of 400 Gb/s, $", "fat-tree / mFabric, $", "published, copper")
    for price in (0, 200, 484, 800, 2 * 659 + 150):
        row(price, "%.3f" % cost_of_cables(price), 2.2)
    row("transceivers", "%.3f" % cost_ratio(400, 512), "")


def regions_plan(servers, side):
    """A plan for pairs of SERVERS that are all alike inside of each SIDE neighbours, and a little AllReduce."""
    demand, path = os.path.join(FOLDER, "demand"), os.path.join(FOLDER, "plan%d" % side)
    with open(demand, "w") as handle:
        json.dump({"allreduce": [{"members": list(range(servers)), "bytes": 1e6}],
                   "mp": [[1e9 if i != j and i // side == j // side else 0 for j in range(servers)]
                          for i in range(servers)]}, handle)
    done = subprocess.run([ARGS.ocsctl, "plan", "--servers", str(servers), "--degree", "8", "--demand", demand, "--json",
                           "--routes"], text=True, capture_output=True, check=True)
    with open(path, "w") as handle:
        handle.write(done.stdout)
    return path


def figure_assumptions():
    table("figure 15: TopoOpt/fat-tree", "rate", "published", "planned for each region", "for pairs of two regions alike",
          "of three regions alike", "V / 100G from the rate above to this, published", "two regions", "three")
    for name in MODELS:
        step, before = graph(name, 128, COMPUTE[name], 2), None
        unit = run(step, tree(800)) / PUBLISHED[name][0][3]
        plans = [""] + [" plan:" + regions_plan(128, regions * MODELS[name][0]) for regions in (2, 3)]
        for k, rate in enumerate(RATES):
            fat, ms = run(step, tree(rate)), [run(step, KINDS[5][1] % rate + plan) for plan in plans]
            steps = [PUBLISHED[name][3][k]] + [each / unit for each in ms[1:]]
            row(name, "%dG" % rate, "%.2f" % (PUBLISHED[name][3][k] / PUBLISHED[name][0][k]),
                *("%.2f" % (each / fat) for each in ms),
                *("%.2f" % ((b - a) / (100 / rate)) if before else "" for a, b in zip(steps, before or steps)))
            before = steps
    print()
    table("figure 15: mFabric/fat-tree", "published", "the algorithm to the letter", "passing over saturated servers")
    step = graph("8x22B", 128, COMPUTE["8x22B"], 2)
    row("8x22B, 100G", "1.06", *("%.2f" % (run(step, "region degree:8 rate:100G when:always change:0 " + words) /
                                           run(step, tree(100))) for words in ("policy:paper", "policy:greedy relays:no")))
    print()
    table("figure 18: computation of 8x7B", "mFabric over a rail of equal cost", "ours with relays",
          "ours would have 1.8 over rails of")
    for part in (1, .5, .25, .1, 0):
        step = graph("8x7B", 128, max(COMPUTE["8x7B"] * part, 1e-3), 1)
        here, ours = run(step, KINDS[1][1] % 100), run(step, KINDS[4][1] % 100)
        low, high = 1, 100
        while high - low > .05:
            middle = (low + high) / 2
            low, high = (middle, high) if run(step, "rail degree:8 rate:%gG" % middle) / ours > 1.8 else (low, middle)
        rail = run(step, "rail degree:8 rate:%gG" % (100 / cost_ratio(100)))
        row("x %g" % part, "%.2f" % (rail / here), "%.2f" % (rail / ours), "%.0fG" % low)
    print()
    table("figure 18: rails of ports that are sold", "cost of a GPU's network, $", "mFabric over it", "ours with relays",
          "published")
    step = graph("8x7B", 128, COMPUTE["8x7B"], 1)
    here, ours = run(step, KINDS[1][1] % 100), run(step, KINDS[4][1] % 100)
    row("(mFabric, 100G)", "%.0f" % (rail_cost(100) / cost_ratio(100)), "", "", "")
    for rate in PORTS:
        rail = run(step, "rail degree:8 rate:%gG" % rate)
        row("%dG" % rate, "%.0f" % rail_cost(rate), "%.2f" % (rail / here), "%.2f" % (rail / ours), 1.8)


def rail_cost(rate):
    """An interface on packets: itself, five ports of switches, six transceivers, three fibres."""
    transceiver, interface, port = PORTS[rate]
    return interface + 5 * port + 6 * transceiver + 3 * 150


FIGURES = {"14": figure_14, "15": figure_15, "16": figure_16, "17": figure_17, "18": figure_18, "19": figure_19,
           "dollars": figure_dollars, "assumptions": figure_assumptions}
COMPUTE, STEPS = {}, {}


def main():
    global ARGS, FOLDER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--netsim", default="ocs-netsim")
    parser.add_argument("--ocsctl", default="ocsctl")
    parser.add_argument("--matrices")
    parser.add_argument("figure", nargs="*", choices=[[], *FIGURES])
    ARGS = parser.parse_args()
    with tempfile.TemporaryDirectory() as FOLDER:
        figures = ARGS.figure or list(FIGURES)
        if not set(figures) <= {"14", "19", "dollars"}:
            COMPUTE.update({name: compute_fit(name) for name in MODELS})
        for figure in figures:
            print("\n### %s\n" % (figure.capitalize() if figure.isalpha() else "Figure " + figure))
            FIGURES[figure]()


if __name__ == "__main__":
    main()
