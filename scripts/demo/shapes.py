# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""./demo: two jobs with shapes on four cubes, from submission to teardown."""

import os
import subprocess
import sys

import stage
from stage import show, title

# A server with GPUs, which this machine may not be.
MACHINE = os.path.join(stage.SOURCE, "tests", "data", "server-8gpu-4nic.xml")

TASK = """srun -l bash -c 'echo "at ($SLURM_OCS_COORD) on $SLURMD_NODENAME, device $SLURM_OCS_DEVICES"' | sort -n
touch "$SLURM_JOB_ID.told"
sleep 600"""


def submit(cluster, shape, name="train"):
    print("$ sbatch --shape=%s %s.sh" % (shape, name))
    job = cluster.sbatch("--shape=" + shape, "--job-name=" + name,
                         "--chdir=" + cluster.path("out"), script=TASK)
    print("Submitted batch job %d" % job, flush=True)
    return job


def tell(cluster):
    title("A user asks for a shape, nothing else")
    jobs = [submit(cluster, "4x8x2"), submit(cluster, "8x4x4", "tune")]
    for job in jobs:
        cluster.running(job)
    for job in jobs:
        cluster.until(lambda j=job: os.path.exists(cluster.path("out", "%d.told" % j)), 60,
                      "the tasks of job %d" % job)
    show(cluster, "squeue -o '%.6i %.10j %.8T %.6D %R'")

    title("Where the jobs lie: every cube layer by layer, a letter per job")
    show(cluster, "ocsctl map")

    title("The circuits that the switches hold for them")
    show(cluster, "ocsctl show circuit", head=9)
    print("Read back from the switches: %d cross-connects, two (one per fibre) for a circuit." %
          len(cluster.patches()))

    title("Inside the first job: task, coordinate, node, device")
    with open(cluster.path("out", "%d.out" % jobs[0])) as handle:
        lines = handle.read().splitlines()
    print("\n".join(lines[:6] + ["... (%d more tasks)" % (len(lines) - 6)]))

    title("Inside the first job: the topology file NCCL reads, and its environment")
    node = cluster.job(jobs[0])["BatchHost"]
    show(cluster, "cat %s/topo.xml" % cluster.job_dir(node, jobs[0]), head=8)
    show(cluster, "cat %s/env" % cluster.job_dir(node, jobs[0]))

    title("What slurmctld knows")
    show(cluster, "scontrol show topology", head=8)

    title("A job that has to wait says why")
    waiting = submit(cluster, "8x8x4", "next")
    cluster.until(lambda: "cube" in cluster.job(waiting)["Reason"], 20, "the reason")
    show(cluster, "squeue -t PD -o '%.6i %.10j %.8T %R'")

    title("A shape that can never work is refused at once")
    print("$ sbatch --shape=5x5 train.sh")
    print(cluster.refused("--shape=5x5").strip())

    title("The end: circuits go with their jobs")
    print("$ scancel %s" % " ".join(map(str, jobs + [waiting])))
    cluster.run(["scancel"] + [str(job) for job in jobs + [waiting]])
    cluster.until(lambda: not cluster.patches(), 30, "dark switches")
    cluster.wait_idle()
    show(cluster, "ocsctl show circuit")
    print("Read back from the switches: %d cross-connects." % len(cluster.patches()))


def shell(cluster):
    title("The cluster stays up: sbatch, squeue, scontrol and ocsctl work here; exit ends it")
    print("Try: srun --shape=4x4 -l bash -c 'echo $SLURM_OCS_COORD'    ocsctl fold 18\n     ocsctl map "
          "--watch    ocsctl show fabric    ocsctl drain switch ocs-x-0-0 --reason test    ocsctl explain JOBID\n"
          "The examples of doc/users-guide.md run here as they stand there.\n"
          "Logs and configuration: %s" % cluster.dir, flush=True)
    # in a folder that goes with the cluster: jobs write their output where they are submitted
    cluster.write("bashrc", "PS1='ocs-demo# '\ncd %s\n. %s/share/bash-completion/completions/ocsctl\n" %
                  (cluster.path("out"), cluster.stage))
    env = cluster.environment({"OCS_CONF": cluster.yaml})
    subprocess.run(cluster.enter(["bash", "--rcfile", cluster.path("bashrc"), "-i"]), env=env,
                   cwd="/tmp", check=False)


def main():
    return stage.run("Starting slurmctld, 64 slurmds, ocsd and 48 emulated switches", tell,
                     then=shell if "--keep" in sys.argv[1:] else None,
                     more_yaml="nccl:\n  hwloc_xml: %s\n" % MACHINE)


if __name__ == "__main__":
    sys.exit(main())
