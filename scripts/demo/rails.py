# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""./demo rails: PyTorch trains a pipeline with data parallel stages; one pair of optical ports serves both, phase by phase."""

import json
import os
import socket
import subprocess
import sys
import time

import stage
from stage import title

from netcluster import RailsCluster     # noqa: E402

NODES, STAGES, STEPS, DELAY_MS = 4, 2, 6, 20
SCRIPT = os.path.join(stage.SOURCE, "tests", "net", "rails_train.py")
MODES = {"": "packets alone, no circuits", "on-demand": "circuits that change when all ranks of a phase wait for them",
         "provisioned": "circuits that change as soon as the phase before is over"}
WIDTH = 100


class Topology:
    """What stands on the rail of a job, as ocsd says when asked."""

    def __init__(self, cluster, job):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(cluster.path("ocsd.sock"))
        self.file = self.socket.makefile("rw")
        self.job = job

    def ask(self):
        self.file.write(json.dumps({"op": "show", "id": 1, "what": "phases", "name": str(self.job)}) + "\n")
        self.file.flush()
        said = json.loads(self.file.readline())
        return said["phases"][0] if said.get("phases") else None


class Picture:
    """A row for each stage, time to the right: what its ports serve."""

    SIGNS = {"0": "=", "1": "#", "r": "o"}

    def __init__(self):
        self.rows, self.live = [""] * STAGES, sys.stdout.isatty()
        if self.live:
            print("\n" * STAGES, end="")

    def add(self, stands):
        for number in range(STAGES):
            sign = self.SIGNS.get("r" if stands == "ring" else stands[number], "?") if stands else "."
            self.rows[number] += sign
        if self.live:
            print("\033[%dA" % STAGES + "".join("\033[Kstage %d  %s\n" % (number, row[-WIDTH:])
                                                for number, row in enumerate(self.rows)), end="", flush=True)

    def end(self):
        if self.live:
            return
        # before the first change ranks start and connect
        first = min(len(row) - len(row.lstrip(row[:1])) for row in self.rows)
        self.rows = [row[max(0, first - 5):] for row in self.rows]
        for at in range(0, min(len(self.rows[0]), 3 * WIDTH), WIDTH):
            for number, row in enumerate(self.rows):
                print("stage %d  %s" % (number, row[at:at + WIDTH]))
            print()


def draw(cluster, job):
    """Until the job has ended."""
    topology, picture, last = Topology(cluster, job), Picture(), None
    print("= pipeline, # data parallel, o one ring through all, . in change; a column is 10 ms or a change")
    next_look = 0
    while True:
        said = topology.ask()
        if said:
            last = said
            picture.add(said["rails"][0]["stands"])
        if time.monotonic() > next_look:
            next_look = time.monotonic() + 1
            if cluster.job(job)["JobState"] not in ("RUNNING", "COMPLETING"):
                break
        time.sleep(0.01)
    picture.end()
    return last


def frames(cluster, what):
    return sum(row[what] for row in cluster.frames().values())


def train(cluster, mode):
    """The lines of rank 0."""
    words = ["-p", "rails", "-N%d" % NODES, "--ntasks-per-node=1"]
    words += ["--shape=pp:%d,dp:%d" % (STAGES, NODES // STAGES), "--ocs-phases=" + mode] if mode else []
    before = {what: frames(cluster, what) for what in ("passed", "changing", "dark")}
    print("$ sbatch %s train.sh" % " ".join(words))
    job = cluster.sbatch(*words, script="""
export MASTER_ADDR=%s MASTER_PORT=29500 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 WORLD_SIZE=%d
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-eth0}
srun --ntasks-per-node=1 bash -c 'RANK=$SLURM_PROCID exec /usr/bin/python3 %s %d %d'
""" % ("r0", NODES, SCRIPT, STAGES, STEPS))
    print("Submitted batch job %d: %s" % (job, MODES[mode]), flush=True)
    cluster.running(job)
    begin, last = time.monotonic(), None
    if mode:
        last = draw(cluster, job)
    state = cluster.wait(job, seconds=180)
    text = cluster.output(job)
    if state != "COMPLETED":
        raise stage.ClusterError("job %d: %s\n%s" % (job, state, text))
    cluster.wait_idle()
    lines = [line for line in text.splitlines() if line.startswith(("loss", "weights"))]
    print("%s ... %s" % ("  ".join(line.split()[1] for line in lines[:-1]), lines[-1][:24]))
    counts = {what: frames(cluster, what) - before[what] for what in before}
    print("%.1f s; frames over circuits %d, into a port in change %d, into a dark port %d" % (
        time.monotonic() - begin, counts["passed"], counts["changing"], counts["dark"]))
    if last:
        print("%d changes of topology, %d circuits cut and made, %d refused; ranks waited %.3f s" % (
            last["changes"], last["circuits"], last["refused"], last["waited_ms"] / 1000))
    return lines, counts, last


def tell(cluster):
    print("\nEach node has one pair of optical ports, on a switch of %d ms, and a management network.\n"
          "The script (tests/net/rails_train.py) knows nothing of circuits." % DELAY_MS)
    results = {}
    for mode, what in MODES.items():
        title("%d stages, %d replicas: %s" % (STAGES, NODES // STAGES, what))
        results[mode] = train(cluster, mode)
    title("The same training three times")
    same = all(lines == results[""][0] for lines, _, _ in results.values())
    bad = sum(counts["changing"] for _, counts, _ in results.values())
    print("losses and weights are %s; %d frames met a port in change" % (
        "the same to the last bit" if same else "NOT the same", bad))
    if not same or bad or not all(last and last["changes"] > STEPS for mode, (_, _, last) in results.items() if mode):
        raise stage.ClusterError("that is not what was to be shown")


def main():
    if subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True, check=False).returncode:
        print("demo: PyTorch is missing: scripts/deps moe installs it", file=sys.stderr)
        return 1
    return stage.run("Starting slurmctld, slurmds in %d network namespaces, ocsd and an emulated switch" % NODES, tell,
                     kind=RailsCluster, end="", cubes=1, edge=2, tile=(2, 2, 2), rails=NODES, nrails=1, nic_ports=2,
                     rail_xpus=1, delay_ms=DELAY_MS)


if __name__ == "__main__":
    sys.exit(main())
