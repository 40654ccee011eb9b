# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Circuits of a moelab.Wiring for a training, and its record: rows come as datagrams of ocs_moe_gate.h, and rank 0 asks over a
stream before each all-to-all, when the one before is over, so that nothing is in flight while circuits change."""

import json
import os
import socket
import struct
import threading
import time

HEAD = struct.Struct("=IHHiiiiqQ")
MAGIC, ROW, BEGIN, END = 0x6f6d6731, 1, 2, 3
STEPS = ("tokens to experts", "results back", "gradients to experts", "gradients back")


class Steer:
    """MODE: "packets"; "static", one set of circuits, for the mean of all matrices of RECORD (a list as `trace`, or a function that
    returns it when the training begins); "following": those for the layer, from its last gate; with "+relays" plans may
    use two hops.  Shares are for the layer in both.  STATE: a file for `ocsctl region show`, written anew after each
    all-to-all, of tokens of TOKEN_BYTES.  NAME: of its sockets."""

    def __init__(self, region, layers, mode, record=None, state=None, token_bytes=0, name=""):
        self.region, self.layers = region, layers
        self.mode, self.relays = mode.split("+")[0], mode.endswith("+relays")
        self.record, self.state, self.token_bytes = record, state, token_bytes
        self.lock = threading.Lock()
        self.rows, self.plans, self.steps, self.matrices = {}, {}, {}, {}
        self.begun, self.stays, self.kept = False, [], None
        self.trace = []         # [pass][layer][rank][expert]
        self.took = []          # (microbatch, layer, step, seconds, tokens by the busiest NIC as planned)
        self.agent_path = f"{region.folder}/{region.prefix}{name}.agent"
        self.ask_path = f"{region.folder}/{region.prefix}{name}.ask"
        self.agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.agent.bind(self.agent_path)
        self.ask = socket.socket(socket.AF_UNIX)
        self.ask.bind(self.ask_path)
        self.ask.listen(8)
        for target in (self._read, self._accept):
            threading.Thread(target=target, daemon=True).start()

    def _begin(self):
        """The training begins; nothing is in flight."""
        n, self.begun = self.region.n, True
        if self.mode == "static":
            record = self.record() if callable(self.record) else self.record
            self.stays = self._plan([[sum(sum(m[i][j * len(m[i]) // n:(j + 1) * len(m[i]) // n]) for layers in record
                                          for m in layers if m) for j in range(n)] for i in range(n)])["circuits"]
            self.kept = self.region.kept(self.stays)
        self.region.wire(self.stays)

    def _plan(self, matrix, *options):
        return self.region.plan([[0 if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)],
                                *(["--relay"] if self.relays else []), *options)

    def _choose(self, layer, matrix):
        if self.mode == "static" and not self.kept:
            return
        options = ["--keep", self.kept, "--change", "0"] if self.mode == "static" else []
        made = self._plan(matrix, *options)
        with self.lock:
            self.plans[layer] = made["circuits"], made["shares"]

    def _read(self):
        while True:
            data = self.agent.recv(65536)
            if len(data) < HEAD.size:
                continue
            magic, kind, counts, rank, ranks, layer, step, microbatch, _ = HEAD.unpack_from(data)
            if magic == MAGIC and kind in (BEGIN, END):
                self._timed(kind, rank, (layer, microbatch, step))
            if magic != MAGIC or kind != ROW:
                continue
            row = struct.unpack_from(f"={counts}q", data, HEAD.size)
            with self.lock:
                rows = self.rows.setdefault((microbatch, layer), {})
                rows[rank] = row
                if len(rows) < ranks:
                    continue
                each = counts // ranks
                while len(self.trace) <= microbatch:
                    self.trace.append([None] * self.layers)
                self.trace[microbatch][layer] = [list(rows[r]) for r in range(ranks)]
                matrix = [[sum(rows[r][j * each:(j + 1) * each]) for j in range(ranks)] for r in range(ranks)]
            self.matrices[layer] = matrix
            if self.mode != "packets":
                threading.Thread(target=self._choose, args=(layer, matrix), daemon=True).start()

    def _timed(self, kind, rank, key):
        """From the last rank's beginning to the last one's end; what was dropped is not shown."""
        began, ended = self.steps.setdefault(key, ({}, {}))
        (began if kind == BEGIN else ended)[rank] = time.monotonic()
        if len(ended) < self.region.n:
            return
        del self.steps[key]
        layer, microbatch, step = key
        matrix = self.matrices.get(layer)
        if not matrix or not began:
            return
        took = max(ended.values()) - max(began.values())
        self.took.append((microbatch, layer, step, took, self._expected(layer, matrix)))
        if not self.state:
            return
        rate = self.region.mbit * 1e6 / 8 / self.token_bytes
        if step % 2:
            matrix = [list(column) for column in zip(*matrix)]
        with self.lock:
            circuits = {}
            for a, b in self.region.circuits.values():
                pair = min(a[0], b[0]), max(a[0], b[0])
                circuits[pair] = circuits.get(pair, 0) + 1
        new = self.state + ".new"
        with open(new, "w", encoding="ascii") as handle:
            json.dump({"tokens": matrix, "circuits": [[i, j, c] for (i, j), c in sorted(circuits.items())],
                       "achieved": [[0 if i == j else x / took / rate for j, x in enumerate(row)]
                                    for i, row in enumerate(matrix)],
                       "step": "%s: pass %d, layer %d, %s, %.0f ms" % (self.mode, microbatch, layer, STEPS[step],
                                                                       1000 * took)}, handle)
        os.replace(new, self.state)

    def _expected(self, layer, matrix):
        """Tokens of the busiest NIC if MATRIX goes as the plan for LAYER has it."""
        n = self.region.n
        load, into = {}, {}
        parts = {}
        for i, j, k, first, second, share in self.plans.get(layer, ([], []))[1]:
            parts.setdefault((i, j), []).append((k, first, second, share))
        count = {}
        for a, b in self.region.circuits.values():
            for pair in ((a[0], b[0]), (b[0], a[0])):
                count[pair] = count.get(pair, 0) + 1

        def leg(i, j, circuit, tokens):
            if circuit and count.get((i, j)):
                load[i, j] = load.get((i, j), 0) + tokens / count[i, j]
            else:
                load[i] = load.get(i, 0) + tokens
                into[j] = into.get(j, 0) + tokens

        for i in range(n):
            for j in range(n):
                left = 1.0
                for k, first, second, share in parts.get((i, j), []) if i != j else []:
                    left -= share
                    leg(i, j if k < 0 else k, first, matrix[i][j] * share)
                    if k >= 0:
                        leg(k, j, second, matrix[i][j] * share)
                if i != j:
                    leg(i, j, 0, matrix[i][j] * left)
        return max([0, *load.values(), *into.values()])

    def _accept(self):
        while True:
            conn, _ = self.ask.accept()
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        """Lines as ocs_moe_mpi.c and ocs_moe.Controller write them."""
        with conn, conn.makefile("rw") as lines:
            for line in lines:
                with self.lock:
                    if not self.begun:
                        self._begin()
                    links, shares = self._decide(*map(int, line.split()[1:]))
                lines.write("".join("link %s %s %s %s %s\n" % tuple(link) for link in links) +
                            "".join("share %d %d %d %d %d %.6f\n" % tuple(share) for share in shares) + "end\n")
                lines.flush()

    def _decide(self, layer, _microbatch, _backward, second):
        """(links, shares)."""
        circuits, shares = self.plans.get(layer, (self.stays, []))
        if self.mode == "following":
            self.region.wire(circuits)
        if second:      # the transposed matrix: the same ways, from the other end
            shares = [[j, i, k, last if k >= 0 else first, first if k >= 0 else 0, share]
                      for i, j, k, first, last, share in shares]
        return self.region.table(), shares
