# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A training that knows nothing of circuits: a pipeline of stages, each of them data parallel (PyTorch, Gloo).
Rank 0 prints losses and a digest of all weights.  With MS each backward pass computes as long before it begins, and the
seconds of a step are printed, too.

    rails_train.py STAGES STEPS [MS]"""

import hashlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH, MICRO = 96, 16, 2


def forward(layers, held, stage, stages, replicas, rank, targets):
    """All micro batches: data from the stage before, to the stage after; the last one has losses."""
    results, sent = [], []
    for micro in range(MICRO):
        if stage == 0:
            data = torch.randn(BATCH, WIDTH)
        else:
            data = torch.empty(BATCH, WIDTH)
            dist.recv(data, rank - replicas)
            data.requires_grad_()
        out = layers(data)
        if stage == stages - 1:
            loss = ((out - targets[micro]) ** 2).mean()
            results.append(loss)
        else:
            results.append(out)
            sent.append(dist.isend(out.detach(), rank + replicas))
        held.append(data)
    for work in sent:
        work.wait()
    return results


def main():
    stages, steps = int(sys.argv[1]), int(sys.argv[2])
    window = int(sys.argv[3]) / 1e3 if len(sys.argv) > 3 else 0
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    replicas = ranks // stages
    stage = rank // replicas
    groups = [dist.new_group(range(s * replicas, (s + 1) * replicas)) for s in range(stages)]
    torch.manual_seed(stage)
    layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH))
    model = DistributedDataParallel(layers, process_group=groups[stage])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1000 + rank)
    targets = [torch.randn(BATCH, WIDTH) for _ in range(MICRO)]
    for step in range(steps):
        held, began = [], time.monotonic()
        optimizer.zero_grad()
        results = forward(model, held, stage, stages, replicas, rank, targets)
        for micro in reversed(range(MICRO)):
            time.sleep(window)
            if stage == stages - 1:
                results[micro].backward()
            else:
                gradient = torch.empty(BATCH, WIDTH)
                dist.recv(gradient, rank + replicas, tag=1)
                results[micro].backward(gradient)
            if stage > 0:
                dist.send(held[micro].grad, rank - replicas, tag=1)
        optimizer.step()
        loss = sum(results).detach() if stage == stages - 1 else torch.zeros(())
        dist.all_reduce(loss)
        # experts: what goes to whom depends on the rank
        given = torch.arange(ranks, dtype=torch.float32) + 100 * rank + step
        taken = torch.empty(ranks)
        dist.all_to_all_single(taken, given)
        assert taken.tolist() == [100 * r + rank + step for r in range(ranks)]
        if rank == 0:
            print("loss %.9f" % loss.item())
            if window:
                print("step %.2f s" % (time.monotonic() - began))
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).digest()
    digests = [torch.empty(32, dtype=torch.uint8) for _ in range(ranks)]
    dist.all_gather(digests, torch.frombuffer(bytearray(digest), dtype=torch.uint8))
    if rank == 0:
        print("weights", hashlib.sha256(b"".join(bytes(d.tolist()) for d in digests)).hexdigest())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
