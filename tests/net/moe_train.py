# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A small language model with experts, trained by PyTorch over ocs_moe_torch.py: the next byte of texts of several
kinds, a kind for each rank, with two experts of each layer on every rank.

    moe_train.py CONFIG [RANK]

CONFIG (JSON): addresses, out (a folder), texts (a list of files for each rank), layers, passes, runs, and what each
run of the training takes: ask (socket of a controller, for plans) and agent (socket for gates), or plan (file with
"links" and "shares"), record (file for what all gates chose: passes, layers, ranks, experts).  Without RANK it forks one process for each rank, in namespaces[rank] if there are such.
A rank writes a line of JSON for each pass to OUT/RANK."""

import json
import os
import pathlib
import sys
import time

import torch

for folder in (os.environ.get("OCS_MOE_PYTHON"), pathlib.Path(__file__).resolve().parents[2] / "src/moe/job"):
    if folder:
        sys.path.insert(0, str(folder))
import ocs_moe        # noqa: E402
import ocs_moe_torch  # noqa: E402

CONTEXT, SMALL, WIDE, INNER, EACH, TOKENS = 6, 32, 256, 128, 2, 256
BALANCE = 0.02


class Experts(torch.nn.Module):
    """A layer: the gate picks one expert for each token."""

    def __init__(self, layer, group, seed):
        super().__init__()
        self.layer, self.group, self.record = layer, group, []
        self.gate = torch.nn.Linear(WIDE, EACH * group.ranks, bias=False)
        # what a gate of a trained model sees of the kind of text
        self.kind = torch.nn.Parameter(3 * torch.randn(group.ranks, WIDE))
        torch.manual_seed(seed + 1000 * group.rank + layer + 1)
        self.experts = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(WIDE, INNER), torch.nn.ReLU(), torch.nn.Linear(INNER, WIDE))
            for _ in range(EACH))
        torch.manual_seed(seed + layer + 1)

    def forward(self, x):
        group, total = self.group, EACH * self.group.ranks
        shares = torch.softmax(self.gate(x + self.kind[group.rank]), 1)
        weight, expert = shares.max(1)
        counts = torch.bincount(expert, minlength=total)
        table = group.gate(self.layer, counts)
        self.record.append(table.tolist())
        order = torch.argsort(expert, stable=True)
        there = group.dispatch(x[order], self.layer, table)
        mine = table[:, group.rank * EACH:(group.rank + 1) * EACH]
        parts = list(there.split(mine.flatten().tolist()))     # of each rank, of each expert
        for e, module in enumerate(self.experts):
            sizes = [len(p) for p in parts[e::EACH]]
            parts[e::EACH] = module(torch.cat(parts[e::EACH])).split(sizes)
        back = group.combine(torch.cat(parts), self.layer, table)
        # experts that have much to do cost more, as in Switch Transformer
        used = table.sum(0).to(x.dtype) / table.sum()
        return torch.zeros_like(x).index_copy(0, order, back) * weight[:, None], total * (used * shares.mean(0)).sum()


class Model(torch.nn.Module):
    def __init__(self, group, layers, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.letters = torch.nn.Embedding(256, SMALL)
        self.enter = torch.nn.Linear(CONTEXT * SMALL, WIDE)
        self.layers = torch.nn.ModuleList(Experts(layer, group, seed) for layer in range(layers))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDE) for _ in range(layers))
        self.leave = torch.nn.Linear(WIDE, SMALL)

    def shared(self):
        """What all ranks have alike."""
        return [p for name, p in self.named_parameters() if ".experts." not in name]

    def forward(self, context):
        x, balance = torch.tanh(self.enter(self.letters(context).flatten(1))), 0.0
        for norm, layer in zip(self.norms, self.layers):
            y, cost = layer(norm(x))
            x, balance = x + y, balance + cost
        return self.leave(x) @ self.letters.weight.t(), balance


def train(config, group, run, out):
    text = b"".join(pathlib.Path(f).read_bytes() for f in config["texts"][group.rank])
    text = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    model = Model(group, config["layers"], seed=7)
    shared = model.shared()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    pick = torch.Generator().manual_seed(group.rank)
    for number in range(config["passes"]):
        group.next_microbatch()
        group.seconds = 0.0
        start = time.monotonic()
        at = torch.randint(0, len(text) - CONTEXT - 1, (TOKENS,), generator=pick)
        window = text[at[:, None] + torch.arange(CONTEXT + 1)]
        scores, balance = model(window[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores, window[:, -1])
        optimiser.zero_grad()
        (loss + BALANCE * balance).backward()
        experts = group.moe.stats()["circuits"]
        gradient = group.all_reduce(torch.cat([p.grad.flatten() for p in shared])) / group.ranks
        for p, part in zip(shared, gradient.split([p.numel() for p in shared])):
            p.grad.copy_(part.view_as(p))
        optimiser.step()
        mean = group.all_gather(loss.detach()).sum().item() / group.ranks
        # what went by circuits although no plan was for it
        outside = group.moe.stats()["circuits"] - experts
        print(json.dumps({"run": run, "pass": number, "outside": outside, "loss": mean.hex(), "about": round(mean, 4),
                          "seconds": time.monotonic() - start, "sending": group.seconds, **group.moe.stats()}),
              file=out, flush=True)
    return list(zip(*(layer.record for layer in model.layers)))


def rank_run(config, rank):
    torch.set_num_threads(1)
    ranks = len(config["addresses"])
    with open(os.path.join(config["out"], str(rank)), "w", encoding="ascii") as out:
        for run in config["runs"]:
            moe = ocs_moe.Moe(rank, config["addresses"], config["key"].encode(), open_ms=60000, dark_ms=5000)
            gate = ocs_moe.Gate(rank, ranks, run.get("agent"))
            if run.get("plan"):
                plan = json.loads(pathlib.Path(run["plan"]).read_text(encoding="ascii"))
                moe.plan(plan["links"], plan["shares"])
            group = ocs_moe_torch.Group(moe, gate, ocs_moe.Controller(moe, run.get("ask")))
            passes = train(config, group, run["name"], out)
            if run.get("record") and not rank:
                pathlib.Path(run["record"]).write_text(json.dumps({"passes": passes}), encoding="ascii")
            moe.alltoall([b"x"] * ranks, [1] * ranks)
            moe.close()
            gate.close()


def main():
    config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="ascii"))
    if len(sys.argv) > 2:
        rank_run(config, int(sys.argv[2]))
        return 0
    children = []
    for rank in range(len(config["addresses"])):
        child = os.fork()
        if not child:
            if config.get("namespaces"):
                sys.path.insert(0, str(pathlib.Path(__file__).parent))
                import netlab
                netlab.libc.setns(os.open(f"/run/netns/{config['namespaces'][rank]}", os.O_RDONLY),
                                  netlab.CLONE_NEWNET)
            try:
                rank_run(config, rank)
                os._exit(0)
            except BaseException as error:
                print(f"rank {rank}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(main())
