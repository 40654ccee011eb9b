# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""./demo tour: cubes, rails, a region and the buyer's advice in two minutes, with pictures in build/tour."""

import json
import os
import random
import shutil
import sys

import stage
from stage import show, title

PICTURES = os.path.join(stage.SOURCE, "build", "tour")


def picture(name):
    return os.path.join(PICTURES, name)


def submit(cluster, *words, script="srun true; sleep 600"):
    print("$ sbatch %s train.sh" % " ".join(words))
    job = cluster.sbatch(*words, "--chdir=" + cluster.path("out"), script=script)
    print("Submitted batch job %d" % job, flush=True)
    cluster.running(job)
    return job


def cubes(cluster):
    title("Shapes on cubes: each keeps its rings, no two share a link")
    show(cluster, "ocsctl fold 4x8x2 --svg %s" % picture("fold.svg"), head=4)
    for shape in ("4x8x2", "8x4x4", "4x4x2"):
        submit(cluster, "--shape=" + shape)
    show(cluster, "ocsctl map")


def rails(cluster):
    title("Rails: what the ports of a job serve; ./demo rails shows a training that changes it")
    job = submit(cluster, "-p", "rails", "--shape=pp:2,dp:2,tp:2", "--ocs-phases=on-demand")
    show(cluster, "ocsctl show phases %d" % job)


def traffic(servers):
    """What a skewed gate sends: experts differ much in their load."""
    draw = random.Random(7)
    load = [1 / (rank + 1) for rank in range(servers)]
    draw.shuffle(load)
    return [[0 if to == of else round(4096 * load[to] * draw.uniform(0.8, 1.2)) for to in range(servers)]
            for of in range(servers)]


def region(cluster):
    title("A region: circuits where a mixture of experts sends most")
    cluster.write("out/gate.json", json.dumps(traffic(8)))
    show(cluster, "ocsctl region plan --matrix %s --alpha 4 --beta 2 --relay --svg %s" %
         (cluster.path("out", "gate.json"), picture("region.svg")), head=16)


def advice(cluster):
    title("What would pay: a step of training on fabrics of equal servers")
    show(cluster, "ocs-netsim --model vgg16 --fabric 'topoopt servers:16 degree:4 rate:100G' --svg %s" %
         picture("step"), head=12)
    show(cluster, "ocsctl advise fabric dlrm --servers 16 --html %s" % picture("advice.html"), head=14)


def tell(cluster):
    shutil.rmtree(PICTURES, ignore_errors=True)
    os.makedirs(PICTURES)
    cubes(cluster)
    rails(cluster)
    region(cluster)
    advice(cluster)
    title("All of it on one page")
    show(cluster, "ocsctl report --html %s" % picture("report.html"))
    print("Pictures in build/tour: %s" % ", ".join(sorted(os.listdir(PICTURES))))


if __name__ == "__main__":
    sys.exit(stage.run("Starting a cluster with four cubes, four servers on rails, and ocsd", tell, end="",
                       rails=4, nrails=2, nic_ports=2, rail_xpus=2))
