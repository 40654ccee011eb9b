# SPDX-License-Identifier: LGPL-2.1-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""PyTorch over ocs_moe.py: the two all-to-alls of a layer with experts, forward and backward, as autograd
functions on tensors in host memory.

    group = ocs_moe_torch.Group(ocs_moe.Moe(rank, addresses, key), ocs_moe.Gate(rank, ranks))
    group.next_microbatch()
    table = group.gate(layer, counts)               # tokens for each expert; all ranks' counts come back
    there = group.dispatch(tokens, layer, table)    # tokens sorted by expert
    back = group.combine(expert(there), layer, table)

Backward, the gradient of `combine` takes the way of `dispatch`, and that of `dispatch` the way back, so that one
matrix describes all four.  Before each all-to-all `steer(layer, microbatch, backward, second)` is called, which may be an
ocs_moe.Controller; if it returns true, circuits are for this all-to-all only, and everything else goes by packets.  All ranks call everything in the same order."""

import torch


class Group:
    def __init__(self, moe, gate=None, steer=None):
        self.moe, self.gates, self.steer = moe, gate, steer
        self.rank, self.ranks = moe.rank, moe.ranks
        self.microbatch = -1
        self.seconds = 0.0      # in all-to-alls of experts, since it was set to 0

    def next_microbatch(self):
        self.microbatch += 1

    def _exchange(self, tensor, send, receive):
        """Rows of TENSOR: SEND[j] to rank j; RECEIVE[j] come from it."""
        tensor = tensor.contiguous()
        out = tensor.new_empty((sum(receive), *tensor.shape[1:]))
        row = tensor.element_size()
        for extent in tensor.shape[1:]:
            row *= extent
        self.moe.alltoallv(tensor.data_ptr(), [n * row for n in send], out.data_ptr(), [n * row for n in receive])
        return out

    def all_to_all_single(self, output, input, output_split_sizes=None, input_split_sizes=None):
        """As torch.distributed's, without a step of a training."""
        def split(tensor, sizes):
            return list(sizes) if sizes else [tensor.shape[0] // self.ranks] * self.ranks

        output.copy_(self._exchange(input, split(input, input_split_sizes), split(output, output_split_sizes)))

    def all_gather(self, tensor):
        """[ranks, ...] of equal tensors."""
        one = tensor.contiguous().unsqueeze(0)
        return self._exchange(one.expand(self.ranks, *tensor.shape), [1] * self.ranks, [1] * self.ranks)

    def all_reduce(self, tensor):
        """The sum over all ranks in their order, so that it is the same everywhere, whatever way it takes."""
        flat = tensor.flatten()
        each = -(-flat.numel() // self.ranks)
        padded = torch.cat([flat, flat.new_zeros(each * self.ranks - flat.numel())])
        own = self._exchange(padded.view(self.ranks, each), [1] * self.ranks, [1] * self.ranks).sum(0)
        return self.all_gather(own).flatten()[:flat.numel()].view(tensor.shape)

    def gate(self, layer, counts):
        """COUNTS: tokens of this rank for each expert.  Tells the agent, and returns [ranks, experts]."""
        if self.gates:
            self.gates.row(layer, self.microbatch, counts.tolist())
        return self.all_gather(counts)

    def _step(self, tensor, send, receive, layer, microbatch, backward, second):
        planned = self.steer and self.steer(layer, microbatch, backward, second)
        if self.gates:
            self.gates.begin(layer, microbatch, backward, second)
        out = self._exchange(tensor, send, receive)
        if self.gates:
            self.gates.end(layer, microbatch, backward, second)
        if planned:
            # from now on its circuits may be cut, and sums and gates of all ranks would wait for them
            self.moe.packets()
        self.seconds += self.moe.seconds
        return out

    def _sizes(self, table):
        each = table.shape[1] // self.ranks
        matrix = table.view(self.ranks, self.ranks, each).sum(2)
        return matrix[self.rank].tolist(), matrix[:, self.rank].tolist()

    def dispatch(self, tokens, layer, table):
        """TOKENS sorted by expert: what all ranks send to this one's experts, by rank, then expert."""
        send, receive = self._sizes(table)
        return _AllToAll.apply(tokens, self, send, receive, layer, self.microbatch, 0)

    def combine(self, results, layer, table):
        """The way back: RESULTS in the order of dispatch's, out in that of its tokens."""
        send, receive = self._sizes(table)
        return _AllToAll.apply(results, self, receive, send, layer, self.microbatch, 1)


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, group, send, receive, layer, microbatch, second):
        ctx.call = group, send, receive, layer, microbatch, second
        return group._step(tensor, send, receive, layer, microbatch, 0, second)

    @staticmethod
    def backward(ctx, gradient):
        group, send, receive, layer, microbatch, second = ctx.call
        return (group._step(gradient, receive, send, layer, microbatch, 1, 1 - second),) + (None,) * 6
