# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Circuits of an OpticalRegion for a training, and its record: rows come as datagrams of ocs_moe_gate.h, and
each rank asks over a stream before each of its all-to-alls.  All ranks ask before one is answered, so that nothing is
in flight while circuits change."""

import json
import socket
import struct
import threading

HEAD = struct.Struct("=IHHiiiiqQ")
MAGIC, ROW = 0x6f6d6731, 1


class Steer:
    """MODES of one training after the other: "packets"; "static", one set of circuits, for the mean of all matrices of the
    training before; "following": those
    for the layer, from its last gate; with "+relays" plans may use two hops.  Shares are for the layer in both."""

    def __init__(self, region, layers, modes):
        self.region, self.layers, self.modes = region, layers, modes
        self.lock = threading.Condition()
        self.asked, self.answers = {}, {}
        self.done = False
        self.traces = []        # of each training: [pass][layer][rank][expert]
        self._begin(None)
        self.agent_path = str(region.folder / f"{region.prefix}.agent")
        self.ask_path = str(region.folder / f"{region.prefix}.ask")
        self.agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.agent.bind(self.agent_path)
        self.ask = socket.socket(socket.AF_UNIX)
        self.ask.bind(self.ask_path)
        self.ask.listen(region.n)
        for target in (self._read, self._accept):
            threading.Thread(target=target, daemon=True).start()

    def _begin(self, mode):
        """A training begins; nothing is in flight."""
        n, before = self.region.n, self.traces[-1] if self.traces else []
        self.mode, self.rows, self.plans, self.stays = mode and mode.split("+")[0], {}, {}, []
        self.relays = bool(mode) and mode.endswith("+relays")
        if mode:
            self.traces.append([])
        if self.mode == "static":
            self.stays = self._plan([[sum(sum(m[i][j * len(m[i]) // n:(j + 1) * len(m[i]) // n]) for layers in before
                                          for m in layers if m) for j in range(n)] for i in range(n)])["circuits"]
            self.kept = self.region.kept(self.stays)
        self.region.wire(self.stays)

    def _plan(self, matrix, *options):
        return self.region.plan([[0 if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)],
                                *(["--relay"] if self.relays else []), *options)

    def _choose(self, layer, matrix):
        options = ["--keep", self.kept, "--change", "0"] if self.mode == "static" else []
        made = self._plan(matrix, *options)
        with self.lock:
            self.plans[layer] = made["circuits"], made["shares"]

    def _read(self):
        while not self.done:
            data = self.agent.recv(65536)
            if len(data) < HEAD.size:
                continue
            magic, kind, counts, rank, ranks, layer, _, microbatch, _ = HEAD.unpack_from(data)
            if magic != MAGIC or kind != ROW:
                continue
            row = struct.unpack_from(f"={counts}q", data, HEAD.size)
            with self.lock:
                rows = self.rows.setdefault((microbatch, layer), {})
                rows[rank] = row
                if len(rows) < ranks:
                    continue
                each = counts // ranks
                while len(self.traces[-1]) <= microbatch:
                    self.traces[-1].append([None] * self.layers)
                self.traces[-1][microbatch][layer] = [list(rows[r]) for r in range(ranks)]
                matrix = [[sum(rows[r][j * each:(j + 1) * each]) for j in range(ranks)] for r in range(ranks)]
            if self.mode in ("static", "following"):
                threading.Thread(target=self._choose, args=(layer, matrix), daemon=True).start()

    def _accept(self):
        while not self.done:
            conn, _ = self.ask.accept()
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn, conn.makefile("rw") as lines:
            for line in lines:
                rank, *step = json.loads(line)
                step = tuple(step)
                with self.lock:
                    self.asked.setdefault(step, set()).add(rank)
                    if len(self.asked[step]) == self.region.n:
                        del self.asked[step]
                        self.answers = {step: self._decide(*step)}
                        self.lock.notify_all()
                    self.lock.wait_for(lambda: step in self.answers)
                    answer = self.answers[step]
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    def _decide(self, run, layer, _microbatch, _backward, second):
        """(links, shares).  Layer -1: a training begins."""
        if layer < 0:
            self._begin(self.modes[run])
        circuits, shares = self.plans.get(layer, (self.stays, []))
        if self.mode == "following":
            self.region.wire(circuits)
        if second:      # the transposed matrix: the same ways, from the other end
            shares = [[j, i, k, last if k >= 0 else first, first if k >= 0 else 0, share]
                      for i, j, k, first, last, share in shares]
        return self.region.table(), shares
