# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Circuits of an OpticalRegion for a training, and its record: rows come as datagrams of ocs_moe_gate.h, and
each rank asks over a stream before each of its all-to-alls.  All ranks ask before one is answered, so that nothing is
in flight while circuits change."""

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
    """MODES of one training after the other: "packets"; "static", one set of circuits, for the mean of all matrices of the
    training before; "following": those
    for the layer, from its last gate; with "+relays" plans may use two hops.  Shares are for the layer in both."""

    def __init__(self, region, layers, modes, record=None, state=None, token_bytes=0, name=""):
        """RECORD: one for static circuits of the first training.  STATE: a file for `ocsctl region show`, written anew
        after each all-to-all, of tokens of TOKEN_BYTES.  NAME: of its sockets."""
        self.region, self.layers, self.modes = region, layers, modes
        self.record, self.state, self.token_bytes = record, state, token_bytes
        self.steps, self.matrices = {}, {}
        self.took = []          # (mode, microbatch, layer, step, seconds, tokens by the busiest NIC as planned)
        self.lock = threading.Condition()
        self.asked, self.answers = {}, {}
        self.done = False
        self.traces = []        # of each training: [pass][layer][rank][expert]
        self._begin(None)
        self.agent_path = f"{region.folder}/{region.prefix}{name}.agent"
        self.ask_path = f"{region.folder}/{region.prefix}{name}.ask"
        self.agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.agent.bind(self.agent_path)
        self.ask = socket.socket(socket.AF_UNIX)
        self.ask.bind(self.ask_path)
        self.ask.listen(region.n)
        for target in (self._read, self._accept):
            threading.Thread(target=target, daemon=True).start()

    def _begin(self, mode):
        """A training begins; nothing is in flight."""
        n, before = self.region.n, self.traces[-1] if self.traces else self.record or []
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
                while len(self.traces[-1]) <= microbatch:
                    self.traces[-1].append([None] * self.layers)
                self.traces[-1][microbatch][layer] = [list(rows[r]) for r in range(ranks)]
                matrix = [[sum(rows[r][j * each:(j + 1) * each]) for j in range(ranks)] for r in range(ranks)]
            self.matrices[layer] = matrix
            if self.mode in ("static", "following"):
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
        self.took.append((self.mode, microbatch, layer, step, took, self._expected(layer, matrix)))
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
        while not self.done:
            conn, _ = self.ask.accept()
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn, conn.makefile("rw") as lines:
            for line in lines:
                if line.startswith("plan "):        # of a program that asks by one rank (ocs_moe_mpi.c)
                    with self.lock:
                        if self.mode is None:
                            self._begin(self.modes[0])
                        links, shares = self._decide(0, *map(int, line.split()[1:]))
                    lines.write("".join("link %s %s %s %s %s\n" % tuple(link) for link in links) +
                                "".join("share %d %d %d %d %d %.6f\n" % tuple(share) for share in shares) + "end\n")
                    lines.flush()
                    continue
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
