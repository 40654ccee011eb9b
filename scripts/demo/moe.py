# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""./demo moe: PyTorch trains a mixture of experts on a region, with packets, with circuits that stay and with ones that follow."""

import json
import os
import signal
import statistics
import subprocess
import sys

import stage
from stage import show, title

sys.path.insert(0, os.path.join(stage.SOURCE, "tests", "net"))

import moe_steer                                # noqa: E402
import moe_texts                                # noqa: E402
from regioncluster import RegionCluster         # noqa: E402

SERVERS, DEGREE, MBIT, LAYERS, PASSES = 6, 2, 20, 3, 4
TOKEN = 256 * 4
MODES = ("packets", "static", "following")
WHAT = {"packets": "packets alone", "static": "circuits for the mean of what the first run recorded",
        "following": "circuits that follow the gates, layer by layer"}


def live(cluster, job, state):
    """The heat map until the job has ended; on paper, once."""
    if not sys.stdout.isatty():
        cluster.until(lambda: os.path.exists(state) or cluster.job(job)["JobState"] != "RUNNING", 60, "the first layer")
        if os.path.exists(state):
            show(cluster, "ocsctl region show --matrix %s" % state)
        cluster.wait(job, seconds=120)
        return
    cluster.until(lambda: os.path.exists(state), 60, "the first layer")
    watch = subprocess.Popen(cluster.enter(["ocsctl", "region", "show", "--matrix", state, "--watch", "1"]),
                             env=cluster.environment())
    try:
        cluster.wait(job, seconds=120)
    finally:
        watch.send_signal(signal.SIGINT)
        cluster.run(["pkill", "-INT", "-x", "ocsctl"], check=False)
        watch.wait()


def train(cluster, mode, record):
    """A job; its lines by rank, and what its gates chose."""
    out, state = cluster.path("out", mode), cluster.path(mode + ".state")
    os.makedirs(out)
    os.chmod(out, 0o777)
    steer = moe_steer.Steer(cluster, LAYERS, [mode], record=record, state=state, token_bytes=TOKEN, name=mode)
    config = cluster.path(mode + ".json")
    cluster.write(mode + ".json", json.dumps({
        "addresses": ["10.77.0.%d:7000" % (s + 1) for s in range(SERVERS)], "key": os.urandom(16).hex(), "out": out,
        "texts": moe_texts.texts(SERVERS), "layers": LAYERS, "passes": PASSES,
        "runs": [{"name": mode, "agent": steer.agent_path, "ask": steer.ask_path}]}))
    words = ["-p", "moe", "--shape=ep:%d" % (SERVERS * cluster.region_xpus), "--ocs-moe", "--job-name=" + mode,
             "--ntasks-per-node=1"]
    print("$ sbatch %s train.sh" % " ".join(words))
    job = cluster.sbatch(*words, "--chdir=" + cluster.path("out"), script="""
export OCS_MOE_LIBRARY=%s/libexec/slurm-ocs/libocsmoe.so PYTHONDONTWRITEBYTECODE=1
srun --ntasks-per-node=1 bash -c '/usr/bin/python3 %s/tests/net/moe_train.py %s $SLURM_PROCID'
""" % (cluster.stage, stage.SOURCE, config))
    print("Submitted batch job %d: %s" % (job, WHAT[mode]), flush=True)
    cluster.running(job)
    live(cluster, job, state)
    ended = cluster.wait(job)
    lines = [[json.loads(line) for line in open(os.path.join(out, str(r)), encoding="ascii")] for r in range(SERVERS)] \
        if os.path.exists(os.path.join(out, "0")) else []
    if any(len(rank) != PASSES for rank in lines) or not lines:
        raise stage.ClusterError("job %d: %s\n%s" % (job, ended, cluster.output(job)))
    cluster.wait_idle()
    return lines, steer.traces[0]


def tell(cluster):
    results, record = {}, None
    print("\nThe controller of this demo makes the circuits at the switch itself; links are shaped to %d Mb/s." % MBIT)
    for mode in MODES:
        title("A layer's experts are on %d servers: %s" % (SERVERS, WHAT[mode]))
        results[mode], trace = train(cluster, mode, record)
        record = record or trace
        print("loss after each pass: " + "  ".join("%.4f" % p["about"] for p in results[mode][0]))

    title("The same training three times: only who carries the tokens differs")

    def median(mode, what):
        return statistics.median(p[what] for p in results[mode][0][1:])

    print("%-12s %-28s %-22s %s" % ("circuits", "all-to-alls (of packets)", "a pass (of packets)", "bytes by circuits"))
    for mode in MODES:
        last = results[mode][0][-1]
        print("%-12s %-28s %-22s %.0f %%" % (
            mode, *("%.2f s (%.2f)" % (median(mode, what), median(mode, what) / median("packets", what))
                    for what in ("sending", "seconds")), 100 * last["circuits"] / (last["circuits"] + last["packets"])))
    same = all(p["loss"] == q["loss"] for mode in MODES for rank in results[mode] for p, q in zip(rank, results["packets"][0]))
    print("losses of all ranks are %s" % ("the same to the last bit" if same else "NOT the same"))
    if not same:
        raise stage.ClusterError("the losses differ")


def main():
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        print("demo: PyTorch is missing: scripts/deps moe installs it", file=sys.stderr)
        return 1
    return stage.run("Starting slurmctld, %d slurmds in network namespaces, ocsd and an emulated switch" % SERVERS, tell,
                     kind=RegionCluster, end="", cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, degree=DEGREE, mbit=MBIT,
                     region_xpus=1)


if __name__ == "__main__":
    sys.exit(main())
