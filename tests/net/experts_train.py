# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A training with experts that knows nothing of circuits: PyTorch over Gloo, all_to_all_single with the sizes that each
gate chooses, one expert of each layer on every rank.  Rank 0 prints the loss of each pass, and at the end a digest of all weights.

    experts_train.py LAYERS PASSES [FILE]

Until FILE is there, with it, and PASSES at least."""

import hashlib
import os
import sys

import torch
import torch.distributed as dist

WIDTH, TOKENS = 256, 384


class Exchange(torch.autograd.Function):
    """Rows of TENSOR: SEND[j] to rank j, RECEIVE[j] from it; gradients go back."""

    @staticmethod
    def forward(ctx, tensor, send, receive):
        ctx.sizes = send, receive
        out = tensor.new_empty((sum(receive), WIDTH))
        dist.all_to_all_single(out, tensor.contiguous(), receive, send)
        return out

    @staticmethod
    def backward(ctx, gradient):
        send, receive = ctx.sizes
        return Exchange.apply(gradient, receive, send), None, None


class Layer(torch.nn.Module):
    def __init__(self, layer, rank, ranks):
        super().__init__()
        torch.manual_seed(100 * layer)
        self.gate = torch.nn.Linear(WIDTH, ranks)
        with torch.no_grad():
            # most tokens of a rank go to one expert, those of another layer to another one
            self.gate.bias[(rank + 1 + layer) % ranks] += 1.5
        torch.manual_seed(100 * layer + rank + 1)
        self.expert = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())

    def forward(self, tokens):
        chances, chosen = self.gate(tokens).softmax(1).max(1)
        order = chosen.argsort(stable=True)
        send = torch.bincount(chosen, minlength=dist.get_world_size())
        receive = torch.empty_like(send)
        dist.all_to_all_single(receive, send)
        send, receive = send.tolist(), receive.tolist()
        results = Exchange.apply(self.expert(Exchange.apply(tokens[order], send, receive)), receive, send)
        return tokens + chances.unsqueeze(1) * results[order.argsort()]


def going(number, passes, file):
    """Rank 0 says whether there is another pass."""
    word = torch.tensor([int(number < passes or bool(file and not os.path.exists(file[0])))])
    dist.broadcast(word, 0)
    return bool(word)


def several(rank, ranks):
    """Calls that are under way at once, of which Gloo's threads run two."""
    sizes = [[1 + (i + 2 * j + k) % 3 for j in range(ranks)] for k in range(6) for i in range(ranks)]
    held = []
    for k in range(6):
        matrix = sizes[k * ranks:(k + 1) * ranks]
        receive = [matrix[i][rank] for i in range(ranks)]
        data = torch.cat([torch.full((matrix[rank][j],), 100 * k + 10 * rank + j) for j in range(ranks)])
        wanted = torch.cat([torch.full((receive[i],), 100 * k + 10 * i + rank) for i in range(ranks)])
        out = torch.empty_like(wanted)
        held.append((dist.all_to_all_single(out, data, receive, matrix[rank], async_op=True), out, wanted, data))
    for work, out, wanted, _ in reversed(held):
        work.wait()
        assert torch.equal(out, wanted), (out, wanted)


def main():
    layers, passes, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = torch.nn.Sequential(*[Layer(layer, rank, ranks) for layer in range(layers)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    torch.manual_seed(1000 + rank)
    tokens, targets = torch.randn(TOKENS, WIDTH), torch.randn(TOKENS, WIDTH)
    number = 0
    while going(number, passes, file):
        optimizer.zero_grad()
        loss = ((model(tokens) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).digest()
        both = torch.tensor([int.from_bytes(digest[:6], "little")])
        dist.all_reduce(both)
        if not rank:
            print("pass %d: loss %r\nsum %d %x" % (number, loss.item(), number, both.item()), flush=True)
        number += 1
    several(rank, ranks)
    dist.barrier()
    # left to the end of the process, threads of Gloo may outlive what they work on, which aborts
    dist.destroy_process_group()


main()
