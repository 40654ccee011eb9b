# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""--ocs-model: the optimiser spreads a model over the nodes of a job when it is submitted."""

import json

MODEL = """model: small
precision: bf16
batch: {step: 64}
sequence: 512
layers:
- {name: tokens, kind: embedding, rows: 1000, columns: 512}
- repeat: 4
  layers:
  - {kind: attention, hidden: 512, heads: 8}
  - {kind: gated, hidden: 512, inner: 2048}
"""


def written(path):
    """What a job has written by now."""
    try:
        with open(path) as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


def test_demand_of_a_direct_fabric(pod):
    """The plan is the one for what `ocsctl optimise` says is sent; the job knows its strategy."""
    pod.write("model.yaml", MODEL)
    asked = json.loads(pod.out(["ocsctl", "optimise", "--json", "--servers", "4", "--degree", "4",
                                pod.path("model.yaml")]))
    job = pod.sbatch("-p", "direct", "-N4", "--ocs-model=" + pod.path("model.yaml"),
                     script="env | grep ^OCS_STRATEGY; sleep 300")
    fields = pod.running(job)
    assert fields["NumNodes"] == "4"
    plan = json.loads(pod.out(["cat", pod.job_dir(fields["BatchHost"], job) + "/plan.json"]))
    wanted = sorted(sorted(g["members"]) for g in asked["demand"]["allreduce"])
    assert sorted(sorted(g["members"]) for g in plan["groups"]) == wanted
    output = pod.path("out", "%d.out" % job)
    pod.until(lambda: "OCS_STRATEGY=" + asked["shape"] in written(output), 60,
              lambda: written(output))


def test_shape_on_cubes(pod):
    """From a line of the script; -N counts nodes of four accelerators."""
    pod.write("model.yaml", MODEL)
    job = pod.sbatch(script="#SBATCH -p tpu -N4 --ocs-model=%s\nsleep 300" % pod.path("model.yaml"))
    fields = pod.running(job)
    words = dict(w.split("=", 1) for w in fields["Extra"].split() if "=" in w)
    extents = [int(part.split(":")[1]) for part in words["shape"].split(",")]
    count = 1
    for extent in extents:
        count *= extent
    assert count == 16 and fields["NumNodes"] == "4", fields


def test_every_wrong_model(pod):
    pod.write("model.yaml", MODEL)
    pod.write("broken.yaml", MODEL.replace("heads: 8", "heads: many"))
    pod.write("binary.yaml", "\1\2\3")
    pod.write("demand.json", json.dumps({"allreduce": [{"members": [0, 1], "bytes": 1}]}))
    good = "--ocs-model=" + pod.path("model.yaml")
    for words, needles in (
            (["-p", "direct", "-N4", "--ocs-model=nosuch"], ["there is no model 'nosuch'", "llama-3-8b"]),
            (["-p", "direct", "-N4", "--ocs-model=/nowhere/model.yaml"], ["/nowhere/model.yaml"]),
            (["-p", "direct", "-N4", "--ocs-model=/etc"], ["/etc"]),
            (["-p", "direct", "-N4", "--ocs-model="], ["ocs-model"]),
            (["-p", "direct", "-N4", "--ocs-model=" + pod.path("broken.yaml")], ["broken.yaml:9", "heads"]),
            (["-p", "direct", "-N4", "--ocs-model=" + pod.path("binary.yaml")], ["binary.yaml"]),
            (["-p", "direct", "-N2", "--ocs-model=llama-3-405b"], ["llama-3-405b does not fit 80 GB"]),
            (["-p", "direct", good], ["-N 16"]),
            (["-p", "direct", "-N2-4", good], ["-N 16"]),
            (["-p", "plain", "-N2", good], ["partition plain has no circuits"]),
            (["-p", "tpu,direct", "-N2", good], ["one partition"]),
            (["-p", "tpu", "--shape=4x4", good], ["leave --shape out"]),
            (["-p", "direct", "-N4", good, "--ocs-demand=" + pod.path("demand.json")],
             ["leave --ocs-demand out"]),
            # 7 is no divisor of the edge of a cube: no ring of seven nodes closes
            (["-p", "tpu", "-N7", good], ["7"])):
        message = pod.refused(*words)
        assert all(needle in message for needle in needles), (words, message)


def test_srun_and_a_step(pod):
    """srun that allocates takes it; a step inside a job does not."""
    pod.write("model.yaml", MODEL)
    model = "--ocs-model=" + pod.path("model.yaml")
    done = pod.run(["srun", "-p", "direct", "-N4", model, "bash", "-c", "echo $OCS_STRATEGY"])
    assert len(done.stdout.split()) == 4 and "--ocs-model: " in done.stderr, done
    job = pod.sbatch("-p", "direct", "-N2", script="srun %s true; sleep 300" % model)
    pod.running(job)
    output = pod.path("out", "%d.out" % job)
    pod.until(lambda: "a step has the circuits of its job" in written(output), 60,
              lambda: written(output))


def test_strategy_without_environment(pod):
    """--export=NONE keeps the user's variables from the script and from its steps, not the strategy."""
    pod.write("model.yaml", MODEL)
    for export in ("NONE", "OTHER=1", "NIL"):
        job = pod.sbatch("-p", "direct", "-N4", "--export=" + export, "--ocs-model=" + pod.path("model.yaml"),
                         script="echo script $OCS_STRATEGY; %s -n4 /bin/bash -c 'echo step $OCS_STRATEGY'; "
                                "OCS_STRATEGY=mine %s -n1 --export=ALL /bin/bash -c 'echo own $OCS_STRATEGY'; echo end" %
                                ((pod.slurm + "/bin/srun",) * 2))
        output = pod.path("out", "%d.out" % job)
        pod.until(lambda: "end" in written(output), 120, lambda: written(output))
        lines = written(output).split("\n")
        script = [line for line in lines if line.startswith("script ")]
        assert len(script) == 1 and ":" in script[0], (export, lines)
        assert lines.count("step " + script[0].split()[1]) == 4, (export, lines)
        assert "own mine" in lines, (export, lines)
