#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""advise fabric for recorded steps (task graphs, phase tables) whose answers are known on paper, and measured
times of operators.  TAP on stdout."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE, BUILD = os.environ["OCS_SOURCE_DIR"], os.environ["OCS_BUILD_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/unit"))
sys.path.insert(0, os.path.join(SOURCE, "tests/unit/netsim"))
from tap import end, result  # noqa: E402
from test_netsim import flatbuffer  # noqa: E402

PUBLISHED = os.path.join(SOURCE, "../shared/data/optimise")
OPUS = os.path.join(SOURCE, "../shared/data/opus/llama-3-3d-16-latency")
RATE = 4 * 12.5e6  # bytes per ms of four interfaces of 100 Gb/s
US = .001
work = tempfile.TemporaryDirectory()


def ocsctl(*words):
    return subprocess.run([os.path.join(BUILD, "src/ocsctl/ocsctl"), *words], cwd=work.name, text=True, capture_output=True,
                          env=dict(os.environ, OCS_DATADIR=os.path.join(SOURCE, "share")))


def advised(*words):
    done = ocsctl("advise", "fabric", *words, "--json")
    answer = json.loads(done.stdout) if done.returncode == 0 else {"fabrics": [], "verdict": done.stderr}
    answer["steps"] = {row["fabric"]: row["step_ms"] for row in answer["fabrics"]}
    return answer


def written(name, data):
    path = os.path.join(work.name, name)
    with open(path, "wb") as handle:
        handle.write(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def near(seen, wanted, part=1e-3):
    return seen is not None and abs(seen - wanted) <= part * wanted


def ring(ms, bytes_, servers=8):
    """Everyone computes, then all reduce."""
    tasks = [{"kind": "compute", "server": s, "device": 0, "ms": ms} for s in range(servers)]
    tasks.append({"kind": "allreduce", "group": 0, "bytes": bytes_, "after": list(range(servers))})
    return {"servers": servers, "devices": 4, "groups": [list(range(servers))], "tasks": tasks}


def outcomes():
    """Circuits carry an AllReduce as the ideal switch does; a fat-tree of equal cost is 2.85 times as slow."""
    send = 40.0  # ms at the rate of a server
    path = written("sends.json", ring(1, RATE * send / (2 * 7 / 8)))
    answer = advised(path)
    step = 1 + send + 14 * US
    result("a graph of JSON, on paper", near(answer["steps"].get("ideal"), step) and near(answer["steps"].get("topoopt"), step),
           answer)
    cost = {row["fabric"]: row["dollars"] for row in answer["fabrics"]}
    slower = cost.get("ideal", 1) / cost.get("topoopt", 1)
    result("a fat-tree of equal cost", near(answer["steps"].get("fat-tree"), 1 + send * slower, .01), answer["steps"])
    result("circuits pay", answer.get("pays") and answer["verdict"].startswith("circuits pay: "), answer["verdict"])
    result("at every rate: the break-even is the highest", answer.get("break_even_gbps") == 200, answer)
    turns = {(c["what"], c["factor"]): c["packets_ms"] / c["circuits_ms"] for c in answer.get("sensitivity", [])}
    result("circuits at twice the price gain half as much", turns and near(turns["price of circuits", 2], slower / 2, .05) and
           near(turns["price of circuits", .5], slower * 2, .05), turns)
    computes = advised(written("computes.json", ring(40000, RATE * send)))
    result("no circuit switch pays", computes.get("pays") is False and
           computes["verdict"].startswith("no circuit switch pays here"), computes["verdict"])
    # 40 s of computing, 70 ms of sending at 100 Gb/s: packets are 1.4 % slower at 25 Gb/s and 0.7 % at 40
    result("where circuits break even", computes.get("break_even_gbps") == 25, computes)
    between = advised(written("between.json", ring(4 * send, RATE * send)))
    rates = [point["packets_ms"] / point["circuits_ms"] for point in between["rates"]]
    result("the faster the network, the less circuits gain", rates[0] > 1.3 * rates[-1] > 1.3, rates)
    done = ocsctl("advise", "fabric", path, "--budget", "10")
    result("nothing is to be had for $10", done.returncode == 0 and done.stdout.startswith("nothing is to be had for $10"), done)
    poor = advised(path, "--budget", str(cost.get("topoopt", 0) + 1))
    result("within a budget that the switch exceeds", "; fastest within the budget: topoopt" in poor["verdict"] and poor.get("pays"), poor)


def flatbuffers():
    devices = [(0, 100 + s, s, s) for s in range(8)]
    size = RATE * 40 / (2 * 7 / 8)
    tasks = [(0, s + 1, 100 + s, 1, 0, [9]) for s in range(8)]
    tasks.append((6, 9, 0, 0, int(size), list(range(8))))
    path = written("step.fbuf", flatbuffer(8, devices, tasks))
    answer = advised(path)
    result("a FlatBuffer", near(answer["steps"].get("topoopt"), 41), answer)
    same = advised("--graph", path)
    result("--graph is the same", same["steps"] == answer["steps"] and same["verdict"] == answer["verdict"], same)
    with open(path, "rb") as handle:
        half = written("half.fbuf", handle.read()[:200])
    done = ocsctl("advise", "fabric", half)
    result("half of one is refused", done.returncode == 2 and "half.fbuf" in done.stderr and done.stderr.count("\n") == 1, done)
    if os.path.isdir(PUBLISHED):
        vgg = advised(os.path.join(PUBLISHED, "taskgraphs/100vgg_16.fbuf"), "--servers", "16")
        result("the published VGG16 at 4 x 100 Gb/s", near(vgg["steps"].get("ideal"), 100.559, .005), vgg)


def tables(folder, nodes, rows):
    os.makedirs(os.path.join(work.name, folder))
    for node in range(nodes):
        written("%s/comm_pattern_%d_rank0.txt" % (folder, node),
                ("\n".join(["Node: %d, Rank: 0, Tid: 1" % node] + rows) + "\n").encode())
    return os.path.join(work.name, folder)


def traces():
    """Two nodes reduce 3 and 2 times, and compute before each phase."""
    folder = tables("ring", 2, ["DP start_backend: 5 start_idx: 0 end_backend: 5 end_idx: 2 len: 3",
                                "DP start_backend: 5 start_idx: 3 end_backend: 5 end_idx: 4 len: 2"])
    answer = advised(folder, "--operation", "100M", "--between", "7")
    # the group's numbers are one phase after the other: each a ring of two, which sends the whole buffer
    wanted = 2 * 7 + 5 * (100e6 / RATE + 2 * US)
    result("phase tables, on paper", near(answer["steps"].get("ideal"), wanted), (answer["steps"], wanted))
    done = ocsctl("advise", "fabric", folder)
    result("what tables do not say is printed", "phase tables have no sizes: 64 MB an operation, 10 ms of computing" in done.stdout,
           done.stdout)
    if os.path.isdir(OPUS):
        done = ocsctl("advise", "fabric", OPUS, "--operation", "200M", "--costs", "opus-h200", "--rate", "400G", "--degree", "8")
        result("the published tables of Llama-3", done.returncode == 0 and "the 4 servers of" in done.stdout, done)


def measured():
    model = written("small.yaml", b"model: small\nprecision: fp32\nbatch: {gpu: 64}\nlayers:\n"
                    b"- {name: tables, kind: embedding, rows: 1000, columns: 64, lookups: 1}\n"
                    b"- {name: first, kind: dense, inputs: 64, outputs: 512}\n- {name: last, kind: dense, inputs: 512, outputs: 10}\n")
    rows = [{"name": "Embed_1000x64", "pc_str": "2-1-1", "fw_time": 1.0, "bw_time": 3.0},
            {"name": "Dense_64_512", "pc_str": "2-1-4", "fw_time": 5.0, "bw_time": 10.0},
            # of twice the samples, and divided where no replica is
            {"name": "Dense_512_10", "pc_str": "2-1-2", "fw_time": 4.0, "bw_time": 8.0},
            {"name": "Dense_512_10", "pc_str": "2-2-4", "fw_time": 4000.0, "bw_time": 8000.0}]
    good = {"batch_size": 4 * 4 * 64, "ngpus": 4, "measurements": rows[:3]}
    table = written("measured.json", good)

    def got(*words):
        done = ocsctl("optimise", model, "--servers", "4", "--json", *words)
        return json.loads(done.stdout) if done.returncode == 0 else {"said": done.stderr}

    answer = got("--measured", table)
    # 16 GPUs share the embedding's 4 ms; 15 ms of the first, half of 12 of the last
    result("measured times, on paper", answer.get("measured_operators") == 3 and near(answer["compute_ms"], 4 / 16 + 15 + 6), answer)
    fast = got("--measured", table, "--tflops", "35.2")
    result("GPUs that are twice as fast", near(fast.get("compute_ms"), (4 / 16 + 15 + 6) / 2), fast)
    done = ocsctl("advise", "fabric", model, "--servers", "4", "--measured", table)
    result("advise fabric takes them", done.returncode == 0, done)
    for text, wanted in (({}, "batch_size and measurements are needed"), (b"[1", "not valid JSON"),
                         (dict(good, measurements=rows), "measurement 3: name, pc_str"),
                         (dict(good, measurements=[dict(rows[0], fw_time="x")]), "measurement 0"),
                         (dict(good, measurements=[dict(rows[0], fw_time=-1)]), "measurement 0"),
                         (dict(good, measurements=[dict(rows[0], name="Conv")]), "knows none of the operators of small")):
        said = got("--measured", written("wrong.json", text)).get("said", "accepted")
        result("wrong.json: " + wanted, wanted in said and said.count("\n") == 1, said)
    said = ocsctl("optimise", "llama-3-8b", "--servers", "4", "--measured", table).stderr
    result("not for models with the batch of a step", 'are for models with "batch: {gpu: N}"' in said, said)
    if os.path.isdir(PUBLISHED):
        vgg = json.loads(ocsctl("optimise", "vgg16", "--servers", "16", "--json", "--measured",
                                os.path.join(PUBLISHED, "measured/vgg16.json")).stdout)
        result("the published table of VGG16 knows all operators", vgg["measured_operators"] == 17 and vgg["compute_ms"] < 160, vgg)


def refusals():
    one = written("one.json", ring(1, 1e6))
    for words, wanted in (
            ((one, "--servers", "4"), "is for 8 servers: give --servers 8"),
            ((one, "--graph", one), "one of MODEL, a recorded step and --graph FILE is needed"),
            ((one, "--measured", one), "--measured is for models"),
            ((one, "--operation", "many"), "--operation=many is no number of bytes"),
            ((one, "--between", "-1"), "--between=-1 is no positive number"),
            ((work.name,), "comm_pattern"),
            (("./nothing",), "nothing")):
        done = ocsctl("advise", "fabric", *words)
        result(" ".join(words[1:] or ["folder"]) + ": " + wanted, done.returncode in (1, 2) and wanted in done.stderr and
               done.stderr.count("\n") == 1, done)


outcomes()
flatbuffers()
traces()
measured()
refusals()
sys.exit(end())
