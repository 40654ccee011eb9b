#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""doc/buying.md, its commands run as they stand there; published ratios; refusals of advise fabric
and advise costs.  TAP on stdout."""
import difflib
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["OCS_SOURCE_DIR"], os.environ["OCS_BUILD_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/unit"))
from tap import end, result  # noqa: E402



work = tempfile.TemporaryDirectory()
environment = dict(os.environ, OCS_DATADIR=os.path.join(SOURCE, "share"),
                   PATH=os.path.join(BUILD, "src/ocsctl") + ":" + os.path.join(BUILD, "src/netsim") + ":" + os.environ["PATH"])
environment.pop("OCS_CONF", None)


def run(command):
    return subprocess.run(command, shell=True, cwd=work.name, env=environment, text=True, capture_output=True)


def got(command):
    done = run(command + " --json")
    return json.loads(done.stdout) if done.returncode == 0 else {"fabrics": [], "said": done.stderr}


def tutorial():
    with open(os.path.join(SOURCE, "doc/buying.md"), encoding="utf-8") as handle:
        page = handle.read()
    with open(os.path.join(work.name, "quote.yaml"), "w", encoding="utf-8") as handle:
        handle.write(re.search(r"```yaml\n(.*?)```", page, re.S).group(1))
    commands = dict(re.findall(r"```sh\n([^\n]*)\n```\n\n```text\n(.*?)```", page, re.S))
    result("the tutorial has its commands", len(commands) == page.count("```sh") == 10, commands)
    said = {}
    for command, shown in commands.items():
        done = run(command)
        said[command] = done.stdout
        result(command, done.returncode == 0 and done.stdout and not done.stderr, done.stderr)
        more = shown.endswith("\n...\n")
        lines, seen = shown.splitlines()[:-1 if more else None], done.stdout.splitlines()
        result("prints what the page says", seen[:len(lines)] == lines and more == (len(seen) > len(lines)),
               "\n".join(difflib.unified_diff(lines, seen, "page", "now", lineterm="")))
    bert = next(text for command, text in said.items() if " bert " in command)
    resnet = next(text for command, text in said.items() if " resnet50 " in command)
    result("circuits pay for bert", bert.startswith("circuits pay: "), bert)
    result("none pays for resnet50", resnet.startswith("no circuit switch pays here"), resnet)
    result("the budget counts", re.search(r"^ideal .* above$", resnet, re.M) and
           re.search(r"^topoopt .* within$", resnet, re.M), resnet)
    done = run("%s dollars" % os.path.join(SOURCE, "tests/bench/mfabric_published.py"))
    result("mFabric's cost ratios and performance per dollar, all as published",
           done.returncode == 0 and done.stdout.count("\n| ") == 17, done.stdout + done.stderr)
    result("1.524 and 1.441", re.search(r"^mfabric +\d+ +1\.524 .* 1\.441$", "".join(said.values()), re.M), said)


def pictures():
    """Those in the page are what its commands write: the same bars, as long as these are within 1 %."""
    for name in ("buying-bert.svg", "buying-resnet50.svg"):
        texts = []
        for folder in (work.name, os.path.join(SOURCE, "doc")):
            with open(os.path.join(folder, name), encoding="utf-8") as handle:
                texts.append(handle.read())
        words = [re.sub(r"[0-9.]+", "#", text) for text in texts]
        numbers = [[float(n) for n in re.findall(r"[0-9]+\.[0-9]+", text)] for text in texts]
        result("%s is current" % name, words[0] == words[1] and len(numbers[0]) > 6 and
               all(abs(a - b) <= 0.01 * b + 0.06 for a, b in zip(*numbers)), texts)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.faults, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("meta",):
            self.open.append(tag)
        self.faults += ["%s=%s" % pair for pair in attrs if pair[0] in ("src", "href")]

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def report():
    with open(os.path.join(work.name, "report.html"), encoding="utf-8") as handle:
        text = handle.read()
    page = Page()
    page.feed(text)
    result("the report is one page that needs nothing else", not page.faults and not page.open and
           "script" not in page.tags and {"table", "svg", "rect"} <= page.tags, (page.faults, page.open))
    result("light and dark", "prefers-color-scheme:dark" in text)


# Cost ratios and performance per dollar: times of a step in figure 15 of the mFabric paper, per model
# for 100, 200, 400 and 800 Gb/s: fat-tree, mFabric; and what the paper's prices then give.
FIGURE15 = {
    "8x22B": [(1.374, 1.454, 1.44), (1.194, 1.201, 1.78), (1.082, 1.114, 2.22), (1.024, 1.013, 2.36)],
    "8x7B": [(1.210, 1.249, 1.48), (1.079, 1.098, 1.76), (1.030, 1.031, 2.29), (1.000, 1.001, 2.33)],
    "LLaMA": [(3.932, 5.010, 1.20), (2.188, 2.727, 1.44), (1.346, 1.599, 1.93), (1.000, 1.192, 1.96)],
    "Qwen": [(5.094, 6.174, 1.26), (2.730, 3.205, 1.52), (1.563, 1.764, 2.03), (1.000, 1.053, 2.21)],
}


def ratios():
    for model, rows in FIGURE15.items():
        values = []
        for rate, (tree, fabric, _) in zip((100, 200, 400, 800), rows):
            table = got("ocsctl advise costs --costs mfabric --servers 128 --degree 8 --rate %dG --step-times "
                        "ideal=%g,mfabric=%g" % (rate, tree, fabric))
            row = [row for row in table["fabrics"] if row["fabric"] == "mfabric"]
            values += [row[0]["value"] if row else 0]
        result("performance per dollar of %s" % model,
               all(abs(value - row[2]) <= 0.0055 for value, row in zip(values, rows)), values)
    for costs, rails, gpus, cost, power in (("opus-h200", 8, 128, 4.267, 23.855), ("opus-h200", 8, 256, 4.353, 24.375),
                                            ("opus-gb200", 32, 512, 3.171, 15.437), ("opus-gb200", 32, 1024, 3.238, 15.796)):
        table = got("ocsctl advise costs --costs %s --servers %d --degree %d" % (costs, gpus // rails, rails))
        row = [row for row in table["fabrics"] if row["fabric"] == "opus"]
        result("%s, %d GPUs" % (costs, gpus), row and abs(row[0]["cheaper"] - cost) < 6e-4 and
               abs(row[0]["power_saved"] - power) < 6e-4, table)


def published():
    """Figure 11 of TopoOpt: DLRM is 2.8 times as fast as on a fat-tree of equal cost, in the mean of all rates."""
    answer = got("ocsctl advise fabric dlrm --servers 16 --degree 4 --rate 100G")
    step = {row["fabric"]: row["step_ms"] for row in answer["fabrics"]}
    rates = [point["packets_ms"] / point["circuits_ms"] for point in answer.get("rates", [])]
    result("dlrm on circuits is as fast as on an ideal switch", step.get("topoopt", 9) < 1.05 * step.get("ideal", 1), step)
    result("and 2.8 times as fast as at equal cost", rates and abs(sum(rates) / len(rates) / 2.8 - 1) < 0.2, rates)


def budgets():
    """What a budget leaves: nothing, an expander alone, or all."""
    for dollars, says in (
            (100, "nothing is to be had for $100: the cheapest fabric, expander, costs $11712"),
            (18000, "no circuit switch is to be had for $18000: circuits cost $18912, where a step is "),
            (18912, "circuits pay: a step is ")):
        answer = got("ocsctl advise fabric bert --servers 8 --rate 40G --budget %d" % dollars)
        within = [row["fabric"] for row in answer["fabrics"] if row["dollars"] <= dollars]
        result("$%d" % dollars, answer.get("verdict", "").startswith(says) and answer["pays"] == ("topoopt" in within),
               (answer.get("verdict"), within))


def nothing_sent():
    """A step that sends nothing needs no circuits, and the answer says so."""
    for ms in (5, 0):
        with open(os.path.join(work.name, "silent%d.json" % ms), "w", encoding="utf-8") as handle:
            json.dump({"servers": 4, "devices": 1, "tasks": [{"kind": "compute", "server": 0, "device": 0, "ms": ms}]}, handle)
    answer = got("ocsctl advise fabric silent5.json --rate 40G")
    result("a step that sends nothing", answer.get("pays") is False and
           answer["verdict"].startswith("no circuit switch pays here") and answer["fabrics"][0]["step_ms"] == 5, answer)
    answer = got("ocsctl advise fabric silent0.json --rate 40G")
    result("a step of nothing", "the step takes no time" in answer.get("said", ""), answer)


def claims():
    """What the page says of rates, gains and measured times besides."""
    with open(os.path.join(SOURCE, "doc/buying.md"), encoding="utf-8") as handle:
        page = " ".join(handle.read().split())
    rates = [point["packets_ms"] / point["circuits_ms"]
             for point in got("ocsctl advise fabric dlrm --servers 16 --degree 4 --rate 100G").get("rates", [])]
    result("dlrm at all rates", rates and "circuits are %.1f to %.1f times as fast as packets of equal cost at 10 to 200 Gb/s, %.1f in the mean" % (
        min(rates), max(rates), sum(rates) / len(rates)) in page, rates)
    answer = got("ocsctl advise fabric mixtral-8x7b --servers 16 --rate 400G --costs mfabric")
    gain = {row["fabric"]: row["gain"] for row in answer["fabrics"]}
    result("mixtral", gain and "circuits that stay gain %.0f %% and those of a region lose %.0f %%" % (
        100 * (gain["topoopt"] - 1), 100 * (1 - gain["mfabric"])) in page, gain)
    shown = run("ocsctl advise fabric mixtral-8x7b --servers 16 --rate 400G --costs mfabric").stdout
    result("where a decision turns", "of these rates circuits pay at 400, 800 Gb/s only\n" in shown and
           "planned circuits would not pay with: price of circuits x 2\n" in shown, shown)


def circuits_that_change():
    """The rows of Opus and mFabric: what ocs-netsim says of the same step."""
    answer = got("ocsctl advise fabric mixtral-8x7b --servers 16 --rate 400G --costs mfabric")
    rows = {row["fabric"]: row for row in answer["fabrics"]}
    region, packets, equal = (rows.get(name, {}) for name in ("mfabric", "ideal", "fat-tree"))
    result("a region of the interfaces that the table has on circuits", region.get("simulated") == "region optical:6", rows)
    result("it is between an ideal switch and a quarter of its rate", packets.get("step_ms", 9) <= region.get("step_ms", 0) <
           1.3 * packets.get("step_ms", 0), rows)
    result("and gains what its own price buys", region.get("gain", 0) > 0 and equal and region["gain"] < rows["topoopt"]["gain"], rows)
    done = run("ocsctl advise fabric llama-3-8b --servers 4 --rate 400G --costs opus-h200")
    result("rails of Opus", re.search(r"^opus +50 +\d+\.\d+ ", done.stdout, re.M) and
           "opus is simulated as: opus phases:provisioned" in done.stdout, done)
    with open(os.path.join(work.name, "dear.yaml"), "w", encoding="utf-8") as handle:
        handle.write("costs: dear\nassumptions: []\nprices: {nic: 100, switch_port: 100, ocs_port: 100}\nrates:\n- {rate: 10G, prices: {}}\n"
                     "fabrics:\n- {name: ideal, parts: [{nic: 1, switch_port: 5}]}\n- {name: topoopt, parts: [{nic: 1, ocs_port: 40}]}\n"
                     "- {name: opus, parts: [{nic: 1, ocs_port: 1}]}\n")
    answer = got("ocsctl advise fabric vgg16 --servers 8 --degree 4 --rate 10G --costs ./dear.yaml")
    result("where planned circuits are dear, others may pay", answer.get("pays") and " on opus is " in answer["verdict"], answer)


def simulator():
    done = run("ocs-netsim --model bert --fabric 'ideal servers:4 degree:4' --json")
    # 16 samples per GPU; three passes of 2 FLOPs per weight and token, and of attention, at 17.6 TFLOPS
    least = 3 * 16 * (2 * 64 * (12 * 6 * 1024 ** 2 + 1024) + 12 * 4 * 64 ** 2 * 1024) / 17.6e9
    result("ocs-netsim takes a model", done.returncode == 0 and least <= json.loads(done.stdout)["step_ms"] < 1.5 * least,
           (least, done.stdout[:300], done.stderr))
    done = run("ocs-netsim --model bert --fabric ideal")
    result("which needs servers", done.returncode == 2 and "the fabric of a model needs servers:N" in done.stderr, done.stderr)


def refusals():
    with open(os.path.join(work.name, "bad.yaml"), "w", encoding="utf-8") as handle:
        handle.write("costs: c\nassumptions: []\nrates:\n- {rate: 100}\nfabrics: []\n")
    for command, wanted in (
            ("advise fabric", "one of MODEL, a recorded step and --graph FILE is needed"),
            ("advise fabric bert --servers 2 --rate 30G", "has no prices for 30 Gb/s, but for 10, 25, 40, 100, 200; give --rate or --costs"),
            ("advise costs --servers 2 --degree 2 --rate 30G", "has no prices for 30 Gb/s, but for 10, 25"),
            ("advise fabric bert --servers 2 --budget 1e999", "--budget=1e999 is no amount of dollars"),
            ("advise fabric bert --servers 2 --budget much", "is no amount of dollars"),
            ("advise fabric bert --servers 2 --costs ./bad.yaml", 'bad.yaml:4: a rate needs the key "prices"'),
            ("advise costs --servers 2 --degree 2 --costs none", "there are no costs 'none'"),
            ("advise fabric bert --servers 1", "give --servers 2 or more"),
            ("advise costs --servers 2 --degree 2 --step-times ideal=1,nosuch=2", '"nosuch=2" is no FABRIC=TIME of a fabric of'),
            ("advise costs --servers 2 --degree 2 --step-times ideal", '"ideal" is no FABRIC=TIME'),
            ("advise costs --servers 2 --degree 2 --step-times ideal=1,topoopt=", '--step-times: "" is no positive number'),
            ("advise costs --servers 2 --degree 2 --step-times ideal=1x", '--step-times: "1x" is no positive number'),
            ("optimise bert --servers 2 --tflops 1e-300", "--tflops=1e-300 is not between 1e-6 and 1e9"),
            ("advise costs", "--servers N and --degree D are needed"),
            ("advise 4x4 more", "'more' is too much")):
        done = run("ocsctl " + command)
        result(command + ": " + wanted, done.returncode == 2 and wanted in done.stderr and
               done.stderr.count("\n") == 1, done.stderr)


tutorial()
pictures()
report()
ratios()
published()
budgets()
nothing_sent()
claims()
circuits_that_change()
simulator()
refusals()
sys.exit(end())
