#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""TopoOpt's figures 10 to 17, 27 and 28 with ocs-netsim, beside what the paper says, as the tables of
doc/netsim-published.md; assumptions: what does not agree, and what else must be assumed so that it does.

    netsim_published.py [--netsim PROGRAM] [--ocsctl PROGRAM] [--graphs FOLDER] [FIGURE ...]

FOLDER has the published task graphs (100vgg_16.fbuf ...), which figure 16 is made of; without it the
figure is left out."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

SERVERS = 128
GPUS = 4                    # of a server
EQUAL_COST = 1 / 3.2        # rate of a fat-tree's interface for the price of TopoOpt's: published
RATES = (10, 25, 40, 100, 200)
RATE_100 = 12.5e6         # bytes per ms of 100 Gb/s
REDUCE = 50e6               # bytes per ms that a server reduces in itself
TOLERANCE = "0.001"
ARGS = None


class Graph:
    """A step of N servers with one device each."""

    def __init__(self, n):
        self.n, self.tasks, self.groups, self.matrices = n, [], [list(range(n))], []

    def add(self, **task):
        self.tasks.append(task)
        return len(self.tasks) - 1

    def compute(self, ms, after):
        """The same on all servers; AFTER: a list of lists, by server."""
        return [self.add(kind="compute", server=s, device=0, ms=ms, after=after[s]) for s in range(self.n)]

    def chain(self, layers, first=None):
        """Forward, backward, and an AllReduce of each layer after its backward pass.  LAYERS: (forward
        ms, backward ms, bytes)."""
        last = first or [[] for _ in range(self.n)]
        for forward, _, _ in layers:
            last = [[task] for task in self.compute(forward, last)]
        for _, backward, size in reversed(layers):
            last = [[task] for task in self.compute(backward, last)]
            if size:
                self.add(kind="allreduce", group=0, bytes=size, ms=size / REDUCE, after=[t for row in last for t in row])
        return last

    def alltoall(self, matrix, after):
        self.matrices.append(matrix)
        return self.add(kind="alltoall", group=0, matrix=len(self.matrices) - 1, after=after)

    def write(self, path):
        with open(path, "w") as handle:
            json.dump({"servers": self.n, "devices": 1, "groups": self.groups, "matrices": self.matrices,
                       "tasks": self.tasks}, handle)
        return path


def uniform(graph, layers, ms, size):
    """LAYERS equal layers: a third of the time forward."""
    graph.chain([(ms / 3 / layers, ms * 2 / 3 / layers, size / layers)] * layers)
    return graph


def tables(graph, holders, row_bytes, samples, table_ms, dense_ms, dense_layers, dense_bytes):
    """A recommendation model: HOLDERS[s] tables on server s, looked up for all servers, then dense layers
    with data parallelism; gradients go back the same way."""
    n = graph.n
    out = [[holders[i] * row_bytes * samples if i != j else 0 for j in range(n)] for i in range(n)]
    back = [[out[j][i] for j in range(n)] for i in range(n)]
    look = [graph.add(kind="compute", server=s, device=0, ms=table_ms * holders[s] / 3, after=[])
            for s in range(n) if holders[s]]
    there = graph.alltoall(out, look)
    last = graph.chain([(dense_ms / 3 / dense_layers, dense_ms * 2 / 3 / dense_layers, dense_bytes / dense_layers)] *
                       dense_layers, [[there]] * n)
    home = graph.alltoall(back, [t for row in last for t in row])
    for s in range(n):
        if holders[s]:
            graph.add(kind="compute", server=s, device=0, ms=table_ms * holders[s] * 2 / 3, after=[home])
    return graph


def model(name, batch=128, n=SERVERS, all_tables=False):
    """The models of section 5.3.  Bytes from their layers; times where published, else as the document
    says."""
    graph = Graph(n)
    if name == "CANDLE":
        return uniform(graph, 16, 690 + 1321, 23.6e9 * 4)
    if name == "VGG16":
        return uniform(graph, 16, 100.5, 1157.4e6)
    if name == "BERT":
        return uniform(graph, 12, 21.6, 12 * 6 * 1024 * 1024 * 4)
    if name == "ResNet50":
        return uniform(graph, 50, 300, 102e6)
    if name == "NCF":       # 64 tables of width 64 and 64 of width 128
        holders = [2 if s < 64 else 0 for s in range(n)]
        return tables(graph, holders, (64 + 128) / 2 * 4, GPUS * batch, 1, 8, 8, (8192 * 4096 + 7 * 4096 ** 2) * 4)
    if all_tables:      # section 5.4: one of 128 tables on each server
        size = (7 * 2048 ** 2 + 18432 * 4096 + 15 * 4096 ** 2) * 4
        return tables(graph, [1] * n, 128 * 4, GPUS * batch, 12.9 * batch / 128, 17.6 * batch / 128, 16, size)
    holders = [1 if s < 64 else 0 for s in range(n)]
    return tables(graph, holders, 128 * 4, GPUS * batch, 12.9, 17.6, 16, 323e6 * 4)


def run(paths, fabric, *options):
    words = [ARGS.netsim, "--fabric", fabric, "--json", "--tolerance", TOLERANCE, *options]
    for path in paths:
        words += ["--graph", path]
    done = subprocess.run(words, text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def fabric(kind, degree, rate):
    if kind == "fat-tree":
        return "fat-tree degree:%d rate:%gG leaf:16" % (degree, rate * EQUAL_COST)
    if kind == "no forwarding":
        return "ocs-reconfig degree:%d rate:%gG forward:no" % (degree, rate)
    return "%s degree:%d rate:%gG" % (kind, degree, rate)


def dedicated(folder, degree, published):
    kinds = ("topoopt", "ideal", "fat-tree", "expander", "ocs-reconfig", "sip-ml")
    print("| model | rate | " + " | ".join(kinds) + " | fat-tree/topoopt | topoopt/ideal |\n" + "|---" * 10 + "|")
    for name in ("CANDLE", "VGG16", "BERT", "DLRM", "NCF", "ResNet50"):
        path = model(name).write(os.path.join(folder, name))
        ratios, over = [], []
        for rate in RATES:
            some = kinds if rate == 100 else kinds[:3]      # sip-ml takes minutes at low rates
            ms = {kind: run([path], fabric(kind, degree, rate))["step_ms"] for kind in some}
            ratios.append(ms["fat-tree"] / ms["topoopt"])
            over.append(ms["topoopt"] / ms["ideal"])
            print("| %s | %dG | %s | %.2f | %.2f |" % (name, rate, " | ".join(
                "%.4g ms" % ms[kind] if kind in ms else "" for kind in kinds), ratios[-1], over[-1]))
        print("| %s | mean | | | | | | | **%.2f** (%s) | **%.2f** (%s) |" % (
            (name, sum(ratios) / len(ratios), published[name][0], sum(over) / len(over), published[name][1])))
        sys.stdout.flush()


# A transceiver, an interface at half of its list price, a switch port: table 2 of the paper
PRICES = {10: (20, 92.5, 94), 25: (39, 92.5, 144), 40: (39, 177, 144), 100: (99, 339, 187), 200: (198, 407.5, 374)}


def costs(folder, interface, fibre):
    """{rate: {fabric: times as dear as planned circuits on patch panels}} at 4394 servers.  INTERFACE: times the
    price of above; FIBRE: fibres of an interface that has no packet switch."""
    path, found = os.path.join(folder, "costs.yaml"), {}
    with open(path, "w") as handle:
        handle.write("costs: paper\nassumptions: []\nprices: {ocs_port: 520, patch_port: 100, splitter: 25, fibre: 150}\nrates:\n")
        for rate, (transceiver, nic, port) in PRICES.items():
            handle.write("- {rate: %dG, prices: {nic: %g, transceiver: %g, port_transceiver: %g, switch_port: %g}}\n" % (
                rate, nic * interface, transceiver, transceiver, port))
        handle.write("fabrics:\n")
        for name, parts in (("ideal", "port_transceiver: 5, switch_port: 5, fibre: 3"),
                            ("oversubscribed", "port_transceiver: 3, switch_port: 3, fibre: 2"),
                            ("ocs", "ocs_port: 1, fibre: %g" % fibre),
                            ("patch", "patch_port: 2, splitter: 1, fibre: %g" % fibre), ("expander", "fibre: %g" % fibre)):
            handle.write("- {name: %s, parts: [{nic: 1, transceiver: 1, %s}]}\n" % (name, parts))
    for rate in PRICES:
        done = subprocess.run([ARGS.ocsctl, "advise", "costs", "--costs", path, "--servers", "4394", "--degree", "4", "--rate",
                               "%dG" % rate, "--json"], text=True, capture_output=True, check=True)
        dollars = {row["fabric"]: row["dollars"] for row in json.loads(done.stdout)["fabrics"]}
        found[rate] = {name: cost / dollars["patch"] for name, cost in dollars.items()}
    return found


def figure_10(folder):
    print("| costs over planned circuits on patch panels | 10G | 25G | 40G | 100G | 200G | mean |\n" + "|---" * 7 + "|")
    for words, interface, fibre in (("", 1, 1), (", half a fibre", 1, .5), (", interfaces at list price", 2, 1)):
        found = costs(folder, interface, fibre)
        for name, published in (("ideal", "3.2"), ("oversubscribed", ""), ("ocs", "1.33"), ("expander", "")):
            row = [found[rate][name] for rate in PRICES]
            known = ["%.2f (3.0)" % cell if name == "ideal" and rate == 100 else "%.2f" % cell for rate, cell in zip(PRICES, row)]
            print("| %s%s | %s | **%.2f**%s |" % (name, words, " | ".join(known), sum(row) / len(row),
                                                " (%s)" % published if published else ""))


def figure_11(folder):
    dedicated(folder, 4, {"CANDLE": ("2.8", "1"), "VGG16": ("2.8", "1"), "BERT": ("3.0", "1"), "DLRM": ("2.8", "1.3"),
                          "NCF": ("2.1", "1.7"), "ResNet50": ("1", "1")})


def figure_27(folder):
    dedicated(folder, 8, dict.fromkeys(("CANDLE", "VGG16", "BERT", "DLRM", "NCF", "ResNet50"), ("similar", "similar")))


def figure_12(folder):
    """And 13 and 15, which are of the same runs."""
    tax = {(64, 4): "1.11", (64, 8): "1.05", (2048, 4): "3.03"}
    ratio = {(128, 4): "2.7", (2048, 4): "0.91"}
    load = {(128, 4): "39 %", (128, 8): "59 %"}
    print("| d | batch | topoopt | one path | ideal | fat-tree | fat-tree/topoopt | one path | tax | least loaded link "
          "below most | of the all-to-alls alone |\n" + "|---" * 11 + "|")
    for degree in (4, 8):
        for batch in (64, 128, 256, 512, 1024, 2048):
            graph = model("DLRM", batch, all_tables=True)
            path = graph.write(os.path.join(folder, "all"))
            rings = sum(task["bytes"] for task in graph.tasks if task["kind"] == "allreduce")
            rings *= 2 * (SERVERS - 1) / SERVERS / degree       # of each circuit: those of the plan are alike
            answer, single = (run([path], fabric("topoopt", degree, 100) + word) for word in ("", " paths:1"))
            tree = run([path], fabric("fat-tree", degree, 100))["step_ms"]
            loads = [link["bytes"] / max(1, round(link["gbps"] / 100)) for link in answer["links"]]
            spread = ["%.0f %%" % (100 * (1 - (min(loads) - part) / (max(loads) - part))) if min(loads) > part else ""
                      for part in (0, rings)]       # some circuits are in no ring: then it is not known
            key = (batch, degree)
            print("| %d | %d | %.4g ms | %.4g ms | %.4g ms | %.4g ms | %.2f%s | %.2f | %.2f%s | %s | %s |" % (
                degree, batch, answer["step_ms"], single["step_ms"],
                run([path], fabric("ideal", degree, 100))["step_ms"], tree, tree / answer["step_ms"],
                " (%s)" % ratio[key] if key in ratio else "", tree / single["step_ms"], answer["bandwidth_tax"],
                " (%s)" % tax[key] if key in tax else "", spread[0],
                spread[1] + (" (%s)" % load[key] if key in load else "")))
            sys.stdout.flush()


def figure_14(_):
    print("| d | mean path | published |\n|---|---|---|")
    for degree, wanted in ((4, "5.7"), (8, "3")):
        done = subprocess.run([ARGS.ocsctl, "plan", "--servers", str(SERVERS), "--degree", str(degree), "--strategy=paper",
                               "--json"], text=True, capture_output=True, check=True)
        print("| %d | %.2f | %s |" % (degree, json.loads(done.stdout)["average_hops"], wanted))


def job_of_16(name, folder, degree):
    """A job of section 5.6 on 16 servers.  BERT and VGG16: the published graphs.  CANDLE: computation and
    bytes that give its published times, 131.55 ms at degree 8 and 225.22 at degree 4 (the 99 % of figure
    16).  DLRM: one of 16 tables of width 256 a server, dense layers 8 x 1024 and 16 x 2048, batch 256."""
    if name in ("transformer", "vgg"):
        return os.path.join(ARGS.graphs, "100%s_16.fbuf" % name)
    graph = Graph(16)
    if name == "candle":
        wire = (225.22 - 131.55) * 8 * RATE_100 / (15 / 8)      # an AllReduce of k sends 2 (k - 1) / k of it
        graph.add(kind="allreduce", group=0, bytes=wire, after=graph.compute(2 * 131.55 - 225.22, [[]] * 16))
    else:
        tables(graph, [1] * 16, 256 * 4, GPUS * 256, 2, 17, 16, (8 * 1024 ** 2 + 16 * 2048 ** 2) * 4)
    return graph.write(os.path.join(folder, name))


def figure_16(folder):
    if not ARGS.graphs:
        print("(left out: --graphs is not given)")
        return
    published = {5: 64.41, 10: 70.63, 15: 63.13, 20: 61.43, 27: 60.41}
    print("| jobs | topoopt | published | fat-tree | oversubscribed | fat-tree/topoopt | oversubscribed/topoopt | slowest "
          "job, same ratios |\n" + "|---" * 8 + "|")
    for jobs in (5, 10, 15, 20, 27):
        paths = mix_of_27(folder)[:jobs]
        mean, tail = {}, {}
        for kind in ("topoopt", "fat-tree", "oversubscribed"):
            answer = run(paths, fabric(kind, 8, 100) + " servers:432", "--placement", "scattered")
            steps = [job["step_ms"] for job in answer["jobs"]]
            mean[kind], tail[kind] = sum(steps) / jobs, max(steps)
        print("| %d | %.4g ms | %.4g | %.4g ms | %.4g ms | %.2f (1.7) | %.2f (1.15) | %.2f, %.2f |" % (
            jobs, mean["topoopt"], published[jobs], mean["fat-tree"], mean["oversubscribed"],
            mean["fat-tree"] / mean["topoopt"], mean["oversubscribed"] / mean["topoopt"],
            tail["fat-tree"] / tail["topoopt"], tail["oversubscribed"] / tail["topoopt"]))
        sys.stdout.flush()


def figure_17(folder):
    print("| model | pause | topoopt | ocs-reconfig | without forwarding | with/without |\n" + "|---" * 6 + "|")
    for name in ("DLRM", "BERT"):
        path = model(name, n=32).write(os.path.join(folder, name))      # changes among 128 take minutes
        static = run([path], fabric("topoopt", 8, 100))["step_ms"]
        for pause in ("1us", "100us", "1ms", "10ms"):
            both = [run([path], fabric(kind, 8, 100) + " pause:" + pause)["step_ms"]
                    for kind in ("ocs-reconfig", "no forwarding")]
            print("| %s | %s | %.4g ms | %.4g ms | %.4g ms | %.2f |" % (name, pause, static, both[0], both[1],
                                                                       both[0] / both[1]))
            sys.stdout.flush()


def figure_28(folder):
    print("| model | rate | d 4 | d 6 | d 8 | d 10 | d 4 / d 10 |\n" + "|---" * 7 + "|")
    for name in ("CANDLE", "VGG16", "BERT", "DLRM", "NCF", "ResNet50"):
        path = model(name).write(os.path.join(folder, name))
        for rate in (40, 100):
            ms = [run([path], fabric("topoopt", degree, rate))["step_ms"] for degree in (4, 6, 8, 10)]
            print("| %s | %dG | %s | %.2f |" % (name, rate, " | ".join("%.4g ms" % step for step in ms), ms[0] / ms[3]))
            sys.stdout.flush()


def mix_of_27(folder):
    mix = random.Random(1).choices(("dlrm", "transformer", "candle", "vgg"), (.35, .42, .205, .02), k=27)
    return [job_of_16(name, folder, 8) for name in mix]


def rings_plan(folder, degree, strategy="best", seed=None):
    """A plan that has all interfaces in rings of all servers, as the authors' program makes it.  SEED: every pair
    takes one of its shortest ways by chance; loads are not balanced."""
    demand, path = os.path.join(folder, "demand"), os.path.join(folder, "plan")
    with open(demand, "w") as handle:
        json.dump({"allreduce": [{"members": list(range(SERVERS)), "bytes": 1e9}]}, handle)
    done = subprocess.run([ARGS.ocsctl, "plan", "--servers", str(SERVERS), "--degree", str(degree), "--demand", demand,
                           "--strategy", strategy, "--json", "--routes"], text=True, capture_output=True, check=True)
    plan = json.loads(done.stdout)
    if seed:
        routes_draw(plan, random.Random(seed))
    with open(path, "w") as handle:
        json.dump(plan, handle)
    return fabric("topoopt", degree, 100) + " plan:" + path


def routes_draw(plan, rng):
    near, load = [set() for _ in range(plan["servers"])], {}
    for circuit in plan["circuits"]:
        a, b = circuit["a"][0], circuit["b"][0]
        near[a].add(b)
        near[b].add(a)
    for route in plan["routes"]:
        route["paths"], route["weights"] = [[route["src"]]], [1]
    for target in range(plan["servers"]):
        hops, front = {target: 0}, [target]
        for at in front:
            for to in sorted(near[at] - hops.keys()):
                hops[to] = hops[at] + 1
                front.append(to)
        for route in plan["routes"]:
            path = route["paths"][0]
            while route["dst"] == target and path[-1] != target:
                path.append(rng.choice([to for to in sorted(near[path[-1]]) if hops[to] < hops[path[-1]]]))
                load[path[-2], path[-1]] = load.get((path[-2], path[-1]), 0) + 1
    plan["max_link_load"] = max(load.values())


def tax_once(graph, answer):
    """The bandwidth tax if an AllReduce counts with its bytes, not with what a ring sends of them."""
    reduced = sum(task["bytes"] for task in graph.tasks if task["kind"] == "allreduce") * graph.n
    pairs = sum(sum(row) for matrix in graph.matrices for row in matrix)
    carried = sum(link["bytes"] for link in answer["links"]) - 2 * (graph.n - 1) / graph.n * reduced
    return (carried + reduced) / (pairs + reduced), pairs / reduced


def imbalance(links):
    """How much less the least loaded link carries than the most loaded one, in per cent."""
    loads = [link["bytes"] / max(1, round(link["gbps"] / 100)) for link in links]
    return 100 * (1 - min(loads) / max(loads))


def figure_13_and_15(folder, line):
    for degree, batch, published in ((4, 64, "1.11"), (8, 64, "1.05"), (4, 2048, "3.03")):
        graph = model("DLRM", batch, all_tables=True)
        path = graph.write(os.path.join(folder, "all"))
        answers = [run([path], words) for words in (fabric("topoopt", degree, 100), rings_plan(folder, degree, "paper"))]
        once, share = tax_once(graph, answers[1])
        line("13", "batch %d, d %d, tax" % (batch, degree), published, answers[0]["bandwidth_tax"],
             "the paper's rings on all interfaces, an AllReduce counts once", once)
    line("12", "batch 2048, all-to-all over AllReduce", "0.8", share * SERVERS / 2 / (SERVERS - 1),
         "an AllReduce counts once", share)
    graph = Graph(SERVERS)
    graph.alltoall([[i != j for j in range(SERVERS)] for i in range(SERVERS)], [])
    graph.matrices[0] = [[128 * 4 * GPUS * 128 * cell for cell in row] for row in graph.matrices[0]]
    path = graph.write(os.path.join(folder, "pairs"))
    for degree, published in ((4, "39 %"), (8, "59 %")):
        planned = imbalance(run([path], rings_plan(folder, degree))["links"])
        drawn = [imbalance(run([path], rings_plan(folder, degree, "paper", seed))["links"]) for seed in (1, 2, 3)]
        line("15", "d %d, least loaded link below most, per cent" % degree, published, planned,
             "the paper's rings, each pair one of its shortest ways by chance (mean of 3)", sum(drawn) / 3)


def figure_assumptions(folder):
    def line(figure, what, published, here, assumption, then):
        print("| %s | %s | %s | %.2f | %s | %.2f |" % (figure, what, published, here, assumption, then), flush=True)

    print("| figure | what | published | here | assumed instead | then |\n" + "|---" * 6 + "|")
    for name, published in (("VGG16", "2.8"), ("BERT", "3.0")):
        path = model(name).write(os.path.join(folder, name))
        mean = [sum(run([path], fabric("fat-tree", 4, rate), "--speed", speed)["step_ms"] /
                    run([path], fabric("topoopt", 4, rate), "--speed", speed)["step_ms"] for rate in RATES) / len(RATES)
                for speed in ("1", "3")]
        line("11", name + ", fat-tree/topoopt", published, mean[0], "computation 3 times as fast", mean[1])
    for degree, batch, published, tax in ((4, 64, None, "1.11"), (4, 128, "2.7", None), (4, 2048, "0.91", "3.03"),
                                          (8, 64, None, "1.05")):
        path = model("DLRM", batch, all_tables=True).write(os.path.join(folder, "all"))
        tree = run([path], fabric("fat-tree", degree, 100))["step_ms"]
        both = [run([path], words) for words in (fabric("topoopt", degree, 100), rings_plan(folder, degree))]
        if published:
            line("12", "batch %d, d %d, fat-tree/topoopt" % (batch, degree), published, tree / both[0]["step_ms"],
                 "all interfaces in rings", tree / both[1]["step_ms"])
        if tax:
            line("13", "batch %d, d %d, tax" % (batch, degree), tax, both[0]["bandwidth_tax"], "all interfaces in rings",
                 both[1]["bandwidth_tax"])
        if batch == 2048:
            best = run([path], fabric("topoopt", degree, 100) + " strategy:best")
            line("12", "batch 2048, d 4, fat-tree/topoopt", published, tree / both[0]["step_ms"],
                 "this project's planner (strategy:best)", tree / best["step_ms"])
    figure_13_and_15(folder, line)
    if ARGS.graphs:
        paths = mix_of_27(folder)
        steps = [[job["step_ms"] for job in run(paths, words + " servers:432", "--placement", "scattered")["jobs"]]
                 for words in [fabric("topoopt", 8, 100)] + ["oversubscribed degree:8 rate:100G oversub:" + over
                                                             for over in "24"]]
        for what, published, of in (("mean", "1.15", sum), ("tail", "1.4", max)):
            line("16", what + ", oversubscribed/topoopt, 27 jobs", published, of(steps[1]) / of(steps[0]),
                 "collisions leave half of the uplinks", of(steps[2]) / of(steps[0]))
    figure_17_assumptions(folder, line)


def figure_17_assumptions(folder, line):
    follows = fabric("no forwarding", 8, 100) + " pause:1us interval:"
    for part, words in ((1, ""), (.5, ", half of the tables' backward pass hidden"), (0, ", all of it hidden")):
        graph = model("DLRM", n=32)
        for task in graph.tasks[-graph.n:]:     # the tables' backward pass, last of all
            task["ms"] *= part
        path = graph.write(os.path.join(folder, "DLRM"))
        static, slow, fast = (run([path], circuits)["step_ms"] for circuits in (fabric("topoopt", 8, 100),
                                                                              follows + "50ms", follows + "100us"))
        line("17", "DLRM, no forwarding at 1 us, over topoopt", "1", slow / static, "circuits follow every 100 us" + words,
             fast / static)
    for name, n, published, interval in (("BERT", 16, "1.4", 50), ("BERT", 32, "1.4", 50), ("BERT", 64, "1.4", 30),
                                         ("DLRM", 32, "below 1", 50)):
        path = model(name, n=n).write(os.path.join(folder, name))
        for pause in ("1us", "10ms"):
            circuits = "ocs-reconfig degree:8 rate:100G pause:%s interval:%dms " % (pause, interval)
            without, here, then = (run([path], circuits + way, "--steps", "40")["step_ms"]
                                   for way in ("forward:no", "", "estimate:clock"))
            line("17", "%s, %d servers, with over without forwarding at %s" % (name, n, pause), published, here / without,
                 "with forwarding, circuits follow the clock" + (", every %d ms" % interval if interval != 50 else ""),
                 then / without)


FIGURES = {"10": figure_10, "11": figure_11, "12": figure_12, "14": figure_14, "16": figure_16, "17": figure_17, "27": figure_27,
           "28": figure_28, "assumptions": figure_assumptions}


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--netsim", default="ocs-netsim")
    parser.add_argument("--ocsctl", default="ocsctl")
    parser.add_argument("--graphs")
    parser.add_argument("figure", nargs="*", choices=[[], *FIGURES])
    ARGS = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for figure in ARGS.figure or FIGURES:
            print("\n%s\n" % (figure.capitalize() if figure.isalpha() else "Figure " + figure))
            FIGURES[figure](folder)


if __name__ == "__main__":
    main()
