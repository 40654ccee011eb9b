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

import moe_texts                                # noqa: E402
from regioncluster import RegionCluster         # noqa: E402

SERVERS, DEGREE, MBIT, LAYERS, PASSES = 6, 2, 20, 3, 4
TOKEN = 256 * 4
MODES = ("packets", "static", "following", "controller")
WHAT = {"packets": "packets alone", "static": "circuits for the mean of what the first run recorded",
        "following": "circuits that follow the gates, layer by layer",
        "controller": "circuits that follow, by ocs-moe-controller"}
# Optical NICs have the addresses that tests/net/moelab.py gives them.
NICS = "    interfaces: [%s]\n" % ", ".join("{name: ocs%d, speed: %d, address: \"10.78.{server + 1}.%d/16\"}" % (p, MBIT, p + 1)
                                          for p in range(DEGREE))


def live(cluster, job, state):
    """The heat map until the job has ended; on paper, once.  Of a job with ocs-moe-controller (STATE None) ocsd has it."""
    words = ["ocsctl", "region", "show", "--matrix", state] if state else ["ocsctl", "show", "region", str(job)]

    def ready():
        return os.path.exists(state) if state else \
            "achieved" in cluster.out(words, env={"OCS_CONF": cluster.yaml}, check=False)
    cluster.until(lambda: ready() or cluster.job(job)["JobState"] != "RUNNING", 120, "the first layer")
    if not sys.stdout.isatty():
        if ready():
            show(cluster, " ".join(words))
        cluster.wait(job, seconds=120)
        return
    watch = subprocess.Popen(cluster.enter([*words, "--watch", "1"]), env=cluster.environment({"OCS_CONF": cluster.yaml}))
    try:
        cluster.wait(job, seconds=120)
    finally:
        watch.send_signal(signal.SIGINT)
        cluster.run(["pkill", "-INT", "-x", "ocsctl"], check=False)
        watch.wait()


TRAIN = """export OCS_MOE_LIBRARY={stage}/libexec/slurm-ocs/libocsmoe.so PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 {net}/moe_controller.py {config} > {config}.said &
until [ -S {folder}/{mode}.ask ]; do kill -0 $! || exit; sleep 0.1; done
srun --ntasks-per-node=1 bash -c '/usr/bin/python3 {net}/moe_train.py {config} $SLURM_PROCID'
rc=$?
kill $!; wait
exit $rc
"""
CONTROLLER = """export OCS_MOE_LIBRARY={stage}/libexec/slurm-ocs/libocsmoe.so PYTHONDONTWRITEBYTECODE=1
{stage}/libexec/slurm-ocs/ocs-moe-controller --region $SLURM_OCS_DIR/region.json --key $SLURM_OCS_DIR/moe.key \\
    --ocsd unix:{folder}/ocsd.sock --sockets {folder}/{mode}.sockets --layers %d --token-bytes %d --switching 0.02,0.001 &
until [ -S {folder}/{mode}.sockets/plan.0 ]; do kill -0 $! || exit; sleep 0.1; done
srun --ntasks-per-node=1 bash -c '/usr/bin/python3 {net}/moe_train.py {config} $SLURM_PROCID'
rc=$?
kill $!; wait
exit $rc
""" % (LAYERS, TOKEN)


def train(cluster, mode, record):
    """A job; its lines by rank, and what its controller did."""
    out, state = cluster.path("out", mode), cluster.path(mode + ".state")
    os.makedirs(out)
    os.chmod(out, 0o777)
    own = mode == "controller"
    cluster.write(mode + ".json", json.dumps({
        "addresses": ["10.77.0.%d:7000" % (s + 1) for s in range(SERVERS)], "key": os.urandom(16).hex(), "out": out,
        "texts": moe_texts.texts(SERVERS), "layers": LAYERS, "passes": PASSES,
        "runs": [{"name": mode, "agent": cluster.path(mode + (".sockets/gate.0" if own else ".agent")),
                  "ask": cluster.path(mode + (".sockets/plan.0" if own else ".ask")), "record": cluster.path(mode + ".record")}],
        "socket": cluster.path("ocsd.sock"), "servers": SERVERS, "degree": DEGREE, "mbit": MBIT, "mode": mode,
        "folder": cluster.dir, "name": mode, "stage": str(cluster.stage), "state": state, "record": record,
        "token_bytes": TOKEN}))
    words = ["-p", "moe", "--shape=ep:%d" % (SERVERS * cluster.region_xpus), "--ocs-moe", "--job-name=" + mode,
             "--ntasks-per-node=1"]
    print("$ sbatch %s train.sh" % " ".join(words))
    job = cluster.sbatch(*words, "--chdir=" + cluster.path("out"), script=(CONTROLLER if own else TRAIN).format(
        stage=cluster.stage, net=os.path.join(stage.SOURCE, "tests", "net"), config=cluster.path(mode + ".json"),
        folder=cluster.dir, mode=mode))
    print("Submitted batch job %d: %s" % (job, WHAT[mode]), flush=True)
    cluster.running(job)
    live(cluster, job, None if own else state)
    ended = cluster.wait(job)
    lines = [[json.loads(line) for line in open(os.path.join(out, str(r)), encoding="ascii")] for r in range(SERVERS)] \
        if os.path.exists(os.path.join(out, "0")) else []
    if any(len(rank) != PASSES for rank in lines) or not lines:
        raise stage.ClusterError("job %d: %s\n%s" % (job, ended, cluster.output(job)))
    cluster.wait_idle()
    if own:
        return lines, None
    with open(cluster.path(mode + ".json.said"), encoding="ascii") as handle:
        return lines, json.load(handle)


def tell(cluster):
    results, record = {}, None
    print("\nEach NIC is shaped to %d Mb/s.  A controller in each job has ocsd change the job's own circuits: one of the\n"
          "tests, which draws the heat map, and last ocs-moe-controller." % MBIT)
    for mode in MODES:
        title("A layer's experts are on %d servers: %s" % (SERVERS, WHAT[mode]))
        results[mode], said = train(cluster, mode, record)
        record = record or cluster.path(mode + ".record")
        print("loss after each pass: " + "  ".join("%.4f" % p["about"] for p in results[mode][0]))
        if said:
            print("ocsd changed circuits %d times (%d cut) in %.1f s" % (said["changes"], said["cut"], said["waited"]))

    title("The same training four times: only who carries the tokens differs")

    def median(mode, what):
        return statistics.median(p[what] for p in results[mode][0][1:])

    print("%-12s %-28s %-22s %s" % ("circuits", "all-to-alls (of packets)", "iteration (of packets)", "bytes by circuits"))
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
    if subprocess.run(["/usr/bin/python3", "-c", "import torch.nn"], capture_output=True, check=False).returncode:
        print("demo: PyTorch is missing: scripts/deps moe installs it", file=sys.stderr)
        return 1
    return stage.run("Starting slurmctld, %d slurmds in network namespaces, ocsd and an emulated switch" % SERVERS, tell,
                     kind=RegionCluster, end="", cubes=1, edge=2, tile=(2, 2, 2), servers=SERVERS, degree=DEGREE, mbit=MBIT,
                     region_xpus=1, delay_ms=2, region_yaml=NICS, more_yaml="limits: {topologies_per_second: 200}\n")


if __name__ == "__main__":
    sys.exit(main())
