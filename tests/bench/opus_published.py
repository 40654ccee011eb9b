#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Opus's figures 10 to 14 with ocs-netsim, and their costs, beside what is published, as the tables of
doc/netsim-published.md.

    opus_published.py [--netsim PROGRAM] [--ocsctl PROGRAM] [FIGURE ...]    (10 11 12 13 14 oracle computation assumptions)

Computation: the figures with computation that follows from the published model and accelerators, not fitted.
Assumptions: as many micro-batches as stages, as on the paper's test bed, and changes that nothing hides; one
micro-batch, gradients sent behind the backward pass, and tensor parallelism that takes time.

A server of the graphs is a node of TP GPUs; tensor parallelism stays inside it."""
import argparse
import json
import os
import subprocess
import tempfile

MS = 12.5e6                     # bytes per ms of 100 Gb/s
LAYERS, WIDTH, INNER, HEADS, KV, SEQUENCE, BATCH = 96, 8192, 28672, 64, 8, 4096, 256
PARAMETERS = LAYERS * (2 * WIDTH ** 2 + 2 * WIDTH ** 2 * KV // HEADS + 3 * WIDTH * INNER)
MICRO = 64                      # micro-batches of a step: assumed, the paper does not say
ORACLE = 62241.6                # ms of a step on packets with dp 2, pp 2, tp 2 of H200: all that is known of computation
H200, GB200 = (8, 50, 450, 989), (32, 100, 1800, 1250)      # TP, GB/s out, GB/s up, TFLOPS
ARGS = None
FOLDER = FORWARD = None


def step_graph(dp, pp, forward, transfer, reduce):
    """Micro-batches through the stages, one forward, one backward, then the gradients of each stage.
    FORWARD: ms of a micro-batch in a stage; backward is twice that.  TRANSFER and REDUCE in bytes of a
    node."""
    tasks, groups = [], [[s * dp + d for d in range(dp)] for s in range(pp)]

    def add(**task):
        tasks.append(task)
        return len(tasks) - 1

    order, count = {}, {}
    for s in range(pp):         # one forward, one backward
        ahead, back, rows = 0, 0, []
        while back < MICRO:
            if ahead < MICRO and ahead - back <= min(pp - s - 1, MICRO):
                rows.append((ahead, 0))
                ahead += 1
            else:
                rows.append((back, 1))
                back += 1
        order[s] = rows
    numbers = {}
    for s in range(pp):
        for d in range(dp):
            for m, back in order[s]:
                numbers[s, d, m, back] = add(kind="compute", server=s * dp + d, device=0,
                                             ms=forward * (2 if back else 1), after=[])
    for (s, d, m, back), number in numbers.items():
        to = s - 1 if back else s + 1
        if 0 <= to < pp:
            sent = add(kind="transfer", src=s * dp + d, dst=to * dp + d, bytes=transfer, after=[number])
            tasks[numbers[to, d, m, back]]["after"].append(sent)
    for s in range(pp):
        for d in range(dp):
            rows = [numbers[s, d, m, back] for m, back in order[s]]
            for before, after in zip(rows, rows[1:]):
                tasks[after]["after"].append(before)
            count[s, d] = rows[-1]
    for s in range(pp):
        if dp > 1:
            add(kind="allreduce", group=s, bytes=reduce, after=[count[s, d] for d in range(dp)])
    return {"servers": dp * pp, "devices": 1, "groups": groups, "tasks": tasks}


def traffic(dp, pp):
    """Bytes of a node: of a micro-batch to the next stage, and of gradients (two bytes each)."""
    return BATCH / dp / MICRO * SEQUENCE * WIDTH * 2, PARAMETERS / pp * 2


def run(graph, fabric, *options):
    path = os.path.join(FOLDER, "graph")
    with open(path, "w") as handle:
        json.dump(graph, handle)
    done = subprocess.run([ARGS.netsim, "--graph", path, "--fabric", fabric, "--json", *options], text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)["step_ms"]


def oracle_forward():
    """The ms of a micro-batch's forward pass that makes the oracle's step."""
    transfer, reduce = traffic(2, 2)
    low, high = 0, ORACLE
    while high - low > 1e-9 * ORACLE:
        middle = (low + high) / 2
        step = run(step_graph(2, 2, middle, transfer, reduce), "rail degree:2 rate:400G latency:1us")
        low, high = (middle, high) if step < ORACLE else (low, middle)
    return low


class Cluster:
    def __init__(self, kind, dp, pp=4, out=None):
        self.tp, self.out, self.up, self.tflops = kind
        self.out, self.dp, self.pp = out or self.out, dp, pp
        self.transfer, self.reduce = traffic(dp, pp)
        share = 8 / (dp * pp * self.tp) * 989 / self.tflops     # of what a GPU computes in the oracle's step
        self.graph = step_graph(dp, pp, FORWARD * share, self.transfer, self.reduce)

    def gpus(self):
        return self.tp * self.dp * self.pp

    def line(self, kind, rate=None, **words):
        rate = (rate or self.out) * 8
        return " ".join(["%s degree:%d rate:%gG" % (kind, self.tp, rate)] + ["%s:%s" % item for item in words.items()])

    def packets(self):
        return run(self.graph, self.line("rail"))

    def opus(self, change, phases):
        return run(self.graph, self.line("opus", change="%gms" % change, phases=phases))

    def one_shot(self, wide):
        """Shared out for good in proportion to the root of the bytes: of the rails alone, or (WIDE) of
        scale-up and scale-out links together, as the paper's simulator does."""
        if not wide:
            return run(self.graph, self.line("opus", phases="off"))
        tokens = BATCH / self.dp * SEQUENCE
        tensor = tokens * WIDTH * 2 * 4 * LAYERS / self.pp * 2 * (self.tp - 1) / self.tp
        gradient = self.reduce / self.tp * 2 * (self.dp - 1) / self.dp
        pipeline = 2 * MICRO * self.transfer / self.tp
        outside = gradient ** .5 + pipeline ** .5
        rate = (self.out + self.up) * outside / (outside + tensor ** .5)
        return run(self.graph, self.line("opus", rate, phases="off"))


def batch_graph(dp, pp, buckets, forward, transfer, reduce):
    """One micro-batch through the stages and back; gradients go in BUCKETS of each stage, as soon as its backward
    pass has made them.  FORWARD: ms of a stage."""
    tasks, groups, ends = [], [[s * dp + d for d in range(dp)] for s in range(pp)], [[]] * dp

    def passes(s, d, ms, after):
        for _ in range(buckets):
            tasks.append({"kind": "compute", "server": s * dp + d, "device": 0, "ms": ms / buckets, "after": after})
            after = [len(tasks) - 1]
            yield after[0]

    def send(s, to, ends):
        for d in range(dp):
            tasks.append({"kind": "transfer", "src": s * dp + d, "dst": to * dp + d, "bytes": transfer, "after": ends[d]})
        return [[len(tasks) - dp + d] for d in range(dp)]

    for s in range(pp):
        ends = [list(passes(s, d, forward, ends[d]))[-1:] for d in range(dp)]
        ends = send(s, s + 1, ends) if s < pp - 1 else ends
    for s in reversed(range(pp)):
        rows = [list(passes(s, d, 2 * forward, ends[d])) for d in range(dp)]
        tasks += [{"kind": "allreduce", "group": s, "bytes": reduce / buckets, "after": list(made)} for made in zip(*rows)]
        ends = send(s, s - 1, [row[-1:] for row in rows]) if s else []
    return {"servers": dp * pp, "devices": 1, "groups": groups, "tasks": tasks}


class OneBatch:
    """As the authors' scripts have it: one micro-batch.  A collective of tensor parallelism goes round RINGS rings of
    the links that join all GPUs of a node, gradients one way round theirs or BOTH."""

    def __init__(self, kind, dp, pp, out, tp=None, rings=8, buckets=5, both=False):
        self.tp, self.out, self.up, self.tflops = kind
        self.tp, self.out = tp or self.tp, out or self.out
        self.dp, self.pp, self.rings, self.buckets = dp, pp, min(rings, max(1, self.tp - 1)), buckets
        self.transfer, self.reduce = BATCH / dp * SEQUENCE * WIDTH * 2, PARAMETERS / pp * 2 / (2 if both else 1)
        self.tensor = 2 * LAYERS / pp * self.transfer * 2 * (self.tp - 1) / self.tp     # of a GPU in a forward pass

    def graph(self, compute, up=None):
        forward = compute * 8 / (self.dp * self.pp * self.tp) * 989 / self.tflops
        return batch_graph(self.dp, self.pp, self.buckets, forward + self.tensor / self.rings / ((up or self.up) * 1e6),
                           self.transfer, self.reduce)

    def opus(self, compute, change, phases):
        return run(self.graph(compute), "opus degree:%d rate:%gG change:%gms phases:%s" % (self.tp, self.out * 8, change,
                                                                                        phases))

    def packets(self, compute):
        """All circuits that Opus could make, at once and each at its full rate."""
        n, path = self.dp * self.pp, os.path.join(FOLDER, "circuits")
        groups = [range(s, s + self.dp) for s in range(0, n, self.dp)] + [range(d, n, self.dp) for d in range(self.dp)]
        with open(path + ".demand", "w") as handle:
            json.dump({"allreduce": [{"members": list(group), "bytes": 1000} for group in groups]}, handle)
        with open(path, "w") as handle:
            subprocess.run([ARGS.ocsctl, "plan", "--servers", str(n), "--degree", "4", "--demand", path + ".demand", "--json",
                            "--routes"], stdout=handle, check=True)
        return run(self.graph(compute), "topoopt degree:4 rate:%gG plan:%s" % (self.out * 8 * self.tp, path),
                   "--collective", "ring")

    def one_shot(self, compute):
        """The links that the paper's program counts: two out of each GPU, and one to every other GPU of the node."""
        parts = [part ** .5 for part in (self.reduce / self.tp * 2 * (self.dp - 1) / self.dp,
                                         2 * self.transfer / self.tp * (self.pp - 1) / self.pp, 2 * self.tensor)]
        total = 2 * self.out + (self.tp - 1) * self.up
        rate, up = total * sum(parts[:2]) / sum(parts) / 2, total * parts[2] / sum(parts) / (self.tp - 1)
        return run(self.graph(compute, up), "opus degree:%d rate:%gG phases:off" % (self.tp, rate * 8))

    def fit(self):
        """The ms of computation of the oracle's forward pass in a stage; its packets are Opus without a delay."""
        low, high = 0, ORACLE / 2
        while high - low > .01:
            middle = (low + high) / 2
            low, high = (middle, high) if self.opus(middle, 0, "on-demand") < ORACLE else (low, middle)
        return low


def percent(ms, of):
    return "%+.2f %%" % (100 * (ms / of - 1))


def table(*names):
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def figure_oracle():
    transfer, reduce = traffic(2, 2)
    graph = step_graph(2, 2, FORWARD, transfer, reduce)
    line = "degree:2 rate:400G"
    table("change", "on demand", "published", "provisioned", "published")
    row("packets", "%.4f s" % (run(graph, "rail " + line) / 1e3), "62.2416", "", "")
    for change, demand, ahead in ((1, 62.2436, 62.2415), (10, 62.2616, 62.2505), (50, 62.3416, 62.2905)):
        row("%d ms" % change, "%.4f s" % (run(graph, "opus %s change:%dms" % (line, change)) / 1e3), demand,
            "%.4f s" % (run(graph, "opus %s change:%dms phases:provisioned" % (line, change)) / 1e3), ahead)


def forward_derived(attention, micro):
    """The ms of a micro-batch's forward pass in a stage of the oracle, where all GPUs compute at their published
    989 TFLOPS: two FLOPs per weight and token, and ATTENTION times four for each width and token before."""
    tokens = BATCH / 2 / micro * SEQUENCE
    return tokens * (2 * PARAMETERS + attention * 4 * LAYERS * WIDTH * SEQUENCE) / 2 / 2 / (H200[3] * 1e9)


def figure_computation():
    global FORWARD
    fitted = FORWARD
    points = ((H200, 4, 100), (GB200, 4, 10), (H200, 16, 10), (GB200, 16, 10))
    table("computation", "a step of known length", "published", "weights' TFLOPS of a GPU", "12: 128 H200, 100 ms", "published",
          "13: 512 GB200, 10 ms", "published", "14: 512 H200", "published", "14: 2048 GB200", "published")
    for name, forward in (("fitted", fitted), ("weights alone", forward_derived(0, MICRO)),
                          ("and attention to tokens before", forward_derived(.5, MICRO)),
                          ("and attention to all", forward_derived(1, MICRO))):
        FORWARD = forward
        step = run(step_graph(2, 2, FORWARD, *traffic(2, 2)), "rail degree:2 rate:400G latency:1us")
        clusters = [(Cluster(kind, dp), change) for kind, dp, change in points]
        over = [100 * (cluster.opus(change, "provisioned") / cluster.packets() - 1) for cluster, change in clusters]
        row(name, "%.2f s" % (step / 1e3), "62.24", "%.0f" % (989 * forward_derived(0, MICRO) / forward),
            *(cell for pair in zip(("%+.2f %%" % each for each in over), (5.31, 2.49, 6.62, 11.22)) for cell in pair))
    FORWARD = fitted
    print()
    table("one micro-batch, computation", "a step of known length", "published")
    for name, attention in (("weights alone", 0), ("and attention to tokens before", .5)):
        step = OneBatch(H200, 2, 2, 50, 2).opus(forward_derived(attention, 1), 0, "on-demand")
        row(name, "%.2f s" % (step / 1e3), "62.24")


def alternating(native, changes):
    """A step of an emulation: its phases of pipeline and data parallelism alternate, CHANGES of them,
    with computation between; the last one is followed by the first of the next step."""
    tasks, last = [], [[], [], [], []]
    each = native / (changes + 1)
    for phase in range(changes):
        for s in range(4):
            tasks.append({"kind": "compute", "server": s, "device": 0, "ms": each * (.02 if phase % 2 else 1.98),
                          "after": last[s]})
        at = len(tasks)
        if phase % 2:
            tasks += [{"kind": "allreduce", "group": g, "bytes": 1e9, "after": [at - 4 + 2 * g, at - 3 + 2 * g]}
                      for g in (0, 1)]
            last = [[at], [at], [at + 1], [at + 1]]
        else:
            tasks += [{"kind": "transfer", "src": s, "dst": s + 2, "bytes": 64e6, "after": [at - 4 + s, at - 2 + s]}
                      for s in (0, 1)]
            last = [[at], [at + 1], [at], [at + 1]]
    return {"servers": 4, "devices": 1, "groups": [[0, 1], [2, 3]], "tasks": tasks}


EMULATED = {    # seconds at 0, 10, 50 ... ms, on demand and provisioned
    "1": ([10.442, 10.461, 10.682, 10.904, 11.884, 13.108, 14.157, 15.401],
          [10.222, 10.371, 10.320, 10.614, 11.269, 12.557, 13.954, 15.122]),
    "2": ([14.709, 14.703, 14.933, 14.991, 15.766, 17.235, 18.332, 19.551],
          [13.973, 13.986, 14.093, 14.308, 15.027, 16.173, 17.593, 18.721])}
DELAYS = (0, 10, 50, 100, 250, 500, 750, 1000)


def figure_10():
    table("configuration", "delay", "on demand", "published", "ratio", "provisioned", "published", "ratio")
    for config, (demand, ahead) in EMULATED.items():
        graphs = [alternating(seconds[0] * 1e3, 6) for seconds in (demand, ahead)]
        base = [run(graph, "opus degree:4 rate:200G change:0ms") for graph in graphs]
        for k, delay in enumerate(DELAYS):
            cells = []
            for published, graph, zero, phases in ((demand, graphs[0], base[0], "on-demand"),
                                                   (ahead, graphs[1], base[1], "provisioned")):
                ms = run(graph, "opus degree:4 rate:200G change:%dms phases:%s" % (delay, phases))
                ms = published[0] + (ms - zero) / 1e3
                cells += ["%.3f s" % ms, published[k], "%.2f" % (ms / published[k])]
            row(config, "%d ms" % delay, *cells)


def figure_11():
    """Configuration 3: pipeline parallelism alone changes nothing.  What the control itself costs is no
    part of a simulation of flows."""
    graph = step_graph(1, 4, 10, 64e6, 0)
    table("delay", "step", "changes published", "against 0 ms")
    zero = run(graph, "opus degree:4 rate:200G change:0ms shape:4x1")
    for delay in (0, 100):
        ms = run(graph, "opus degree:4 rate:200G change:%dms shape:4x1" % delay)
        row("%d ms" % delay, "%.2f ms" % ms, "none", percent(ms, zero))


def sweep(kind, name, delay_published, rates_published):
    cluster = Cluster(kind, 4)
    packets, narrow, wide = cluster.packets(), cluster.one_shot(False), cluster.one_shot(True)
    print("\n%s, %d GPUs: packets %.0f ms, one-shot %s (of scale-up and scale-out links together: %s)\n" % (
        name, cluster.gpus(), packets, percent(narrow, packets), percent(wide, packets)))
    table("change", "on demand", "provisioned", "published", "provisioned against one-shot", "published")
    for delay in DELAYS:
        demand, ahead = cluster.opus(delay, "on-demand"), cluster.opus(delay, "provisioned")
        published = delay_published if delay == delay_published[0] else ("", "", "")
        row("%d ms" % delay, percent(demand, packets), percent(ahead, packets), published[1], percent(ahead, narrow),
            published[2])
    print()
    table("rate", "packets", "provisioned, 10 ms", "against packets", "against one-shot of the rails", "of all links",
          "published")
    for rate in (100, 200, 400, 800, 1600):
        cluster = Cluster(kind, 4, out=rate / 8)
        packets, ahead = cluster.packets(), cluster.opus(10, "provisioned")
        row("%dG" % rate, "%.0f ms" % packets, "%.0f ms" % ahead, percent(ahead, packets),
            percent(ahead, cluster.one_shot(False)), percent(ahead, cluster.one_shot(True)),
            rates_published.get(rate, ""))


def figure_12():
    sweep(H200, "H200", (100, "+5.31 %", "+3.32 %"), {100: "+7.73 %", 1600: "+0.72 %"})


def figure_13():
    sweep(GB200, "GB200", (10, "+2.49 %", "+0.93 %"), {100: "+11.63 %", 1600: "+0.34 %"})


def costs(table_name, servers, degree):
    done = subprocess.run([ARGS.ocsctl, "advise", "costs", "--costs", table_name, "--servers", str(servers), "--degree",
                           str(degree), "--json"], text=True, capture_output=True, check=True)
    found = [each for each in json.loads(done.stdout)["fabrics"] if each["fabric"] == "opus"][0]
    return "%.3f" % found["cheaper"], "%.3f" % found["power_saved"]


def figure_14():
    table("GPUs", "packets", "provisioned, 10 ms", "overhead", "published", "cost", "published", "power", "published")
    known = {("H200", 512): "+6.62 %", ("GB200", 2048): "+11.22 %"}
    for name, kind, replicas in (("H200", H200, (2, 4, 8, 16)), ("GB200", GB200, (2, 4, 8, 16))):
        for dp in replicas:
            cluster = Cluster(kind, dp)
            packets, ahead = cluster.packets(), cluster.opus(10, "provisioned")
            cost, power = costs("opus-" + name.lower(), dp * 4, kind[0])
            exact = {"H200": {128: (4.267, 23.855), 256: (4.353, 24.375), 512: (4.267, 23.855)},
                     "GB200": {512: (3.171, 15.437), 1024: (3.238, 15.796), 2048: (3.171, 15.437)}}[name]
            exact = exact.get(cluster.gpus(), ("", ""))
            row("%s %d" % (name, cluster.gpus()), "%.0f ms" % packets, "%.0f ms" % ahead, percent(ahead, packets),
                known.get((name, cluster.gpus()), ""), cost, exact[0], power, exact[1])


def change_fit(cluster, packets, overhead):
    """The ms of a change with which Opus on demand is OVERHEAD slower than packets."""
    low, high = 0, 1000
    while high - low > .05:
        middle = (low + high) / 2
        low, high = (middle, high) if cluster.opus(middle, "on-demand") / packets - 1 < overhead else (low, middle)
    return low


def figure_assumptions():
    global MICRO, FORWARD
    kept, cells = (MICRO, FORWARD), []
    known = (("12", H200, 4, 50, 100, "packets", 5.31), ("12", H200, 4, 50, 100, "one-shot", 3.32),
             ("12", H200, 4, 12.5, 10, "one-shot of all links", 7.73), ("12", H200, 4, 200, 10, "one-shot of all links", .72),
             ("13", GB200, 4, 100, 10, "packets", 2.49), ("13", GB200, 4, 100, 10, "one-shot", .93),
             ("13", GB200, 4, 12.5, 10, "one-shot of all links", 11.63),
             ("13", GB200, 4, 200, 10, "one-shot of all links", .34), ("14", H200, 16, 50, 10, "packets", 6.62),
             ("14", GB200, 16, 100, 10, "packets", 11.22))
    for MICRO, phases in ((64, "provisioned"), (4, "on-demand")):
        FORWARD = oracle_forward()
        for _, kind, dp, out, change, against, _ in known:
            cluster = Cluster(kind, dp, out=out)
            base = cluster.packets() if against == "packets" else cluster.one_shot(against != "one-shot")
            cells.append(percent(cluster.opus(change, phases), base))
    table("figure", "what", "against", "published", "64 micro-batches, provisioned", "4 micro-batches, on demand",
          "4, on demand, would agree at a change of")
    for k, (figure, kind, dp, out, change, against, published) in enumerate(known):
        cluster = Cluster(kind, dp, out=out)
        fitted = "%.0f ms" % change_fit(cluster, cluster.packets(), published / 100) if against == "packets" else ""
        row(figure, "%d %s, %gG, %d ms" % (cluster.gpus(), "H200" if kind is H200 else "GB200", out * 8, change), against,
            "%+.2f %%" % published, cells[k], cells[k + len(known)], fitted)
    MICRO, FORWARD = kept
    print()
    figure_one_batch(known)


def figure_one_batch(known):
    ways = ({"rings": 8, "buckets": 5}, {"rings": 4, "buckets": 3}, {"rings": 2, "buckets": 8, "both": True})
    oracles = [OneBatch(H200, 2, 2, 50, 2, **way) for way in ways]
    computes = [oracle.fit() for oracle in oracles]
    table("figure", "what", "against", "published", *("one micro-batch, %d rings, %d buckets%s" % (
        way["rings"], way["buckets"], ", gradients both ways" if "both" in way else "") for way in ways))
    for change, published in ((10, "+0.0200, +0.0089 s"), (50, "+0.1000, +0.0489 s")):
        row("a step of known length", "%d ms, on demand, provisioned" % change, "packets", published, *(
            ", ".join("%+.4f" % ((oracle.opus(compute, change, phases) - ORACLE) / 1e3) for phases in (
                "on-demand", "provisioned")) + " s" for oracle, compute in zip(oracles, computes)))
    for figure, kind, dp, out, change, against, published in known:
        cells = []
        for way, compute in zip(ways, computes):
            cluster = OneBatch(kind, dp, 4, out, **way)
            base = cluster.packets(compute) if against == "packets" else cluster.one_shot(compute)
            cells.append(percent(cluster.opus(compute, change, "provisioned"), base))
        row(figure, "%d %s, %gG, %d ms" % (cluster.tp * dp * 4, "H200" if kind is H200 else "GB200", out * 8, change),
            against, "%+.2f %%" % published, *cells)


FIGURES = {"oracle": figure_oracle, "computation": figure_computation, "10": figure_10, "11": figure_11, "12": figure_12, "13": figure_13, "14": figure_14,
           "assumptions": figure_assumptions}


def main():
    global ARGS, FOLDER, FORWARD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--netsim", default="ocs-netsim")
    parser.add_argument("--ocsctl", default="ocsctl")
    parser.add_argument("figure", nargs="*", choices=[[], *FIGURES])
    ARGS = parser.parse_args()
    with tempfile.TemporaryDirectory() as FOLDER:
        FORWARD = oracle_forward()
        for figure in ARGS.figure or FIGURES:
            print("\n### %s\n" % {"oracle": "A step of known length"}.get(
                figure, figure.capitalize() if figure.isalpha() else "Figure " + figure))
            FIGURES[figure]()


if __name__ == "__main__":
    main()
