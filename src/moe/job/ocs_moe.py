# SPDX-License-Identifier: LGPL-2.1-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""libocsmoe.so for Python: the all-to-all of a mixture of experts over circuits, packets and relays,
and rows of gates for the node's agent.  ocs_moe.h and ocs_moe_gate.h have the contracts."""

import ctypes
import os
import socket
import time

HOPS = 6


class Options(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("ranks", ctypes.c_int), ("address", ctypes.POINTER(ctypes.c_char_p)),
                ("key", ctypes.c_char_p), ("open_ms", ctypes.c_int), ("idle_ms", ctypes.c_int),
                ("dark_ms", ctypes.c_int), ("chunk", ctypes.c_int), ("listen_fd", ctypes.c_int)]


class Link(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("a", ctypes.c_int), ("b", ctypes.c_int), ("a_address", ctypes.c_char_p),
                ("b_address", ctypes.c_char_p)]


class Hop(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("link", ctypes.c_uint32)]


class Way(ctypes.Structure):
    _fields_ = [("to", ctypes.c_int), ("share", ctypes.c_double), ("hops", ctypes.c_int), ("hop", Hop * HOPS)]


class Share(ctypes.Structure):
    _fields_ = [("from_", ctypes.c_int), ("to", ctypes.c_int), ("relay", ctypes.c_int), ("first", ctypes.c_int),
                ("second", ctypes.c_int), ("share", ctypes.c_double)]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("packets", "circuits", "relayed", "resent", "dark", "strangers", "memory")]


class Error(RuntimeError):
    pass


def library(path=None):
    """The library at PATH, at $OCS_MOE_LIBRARY, or as the loader finds it."""
    lib = ctypes.CDLL(path or os.environ.get("OCS_MOE_LIBRARY", "libocsmoe.so"))
    lib.ocs_moe_open.restype = lib.ocs_moe_gate_open.restype = ctypes.c_void_p
    lib.ocs_moe_error.restype = ctypes.c_char_p
    lib.ocs_moe_stats.restype = ctypes.POINTER(Stats)
    lib.ocs_moe_ways_make.restype = ctypes.POINTER(Way)
    return lib


class Moe:
    """One rank of an all-to-all.  ADDRESSES: "ip:port" of each rank; KEY: 32 bytes, the same for all."""

    def __init__(self, rank, addresses, key, path=None, **options):
        self.lib, self.ranks, self.rank = library(path), len(addresses), rank
        texts = (ctypes.c_char_p * self.ranks)(*[a.encode() for a in addresses])
        if len(key) != 32:
            raise Error("the key has 32 bytes")
        text = ctypes.create_string_buffer(256)
        wanted = Options(rank=rank, ranks=self.ranks, address=texts, key=key, **options)
        self.moe = self.lib.ocs_moe_open(ctypes.byref(wanted), text, ctypes.c_size_t(256))
        if not self.moe:
            raise Error(text.value.decode())
        self.moe = ctypes.c_void_p(self.moe)
        self.seconds = 0.0      # that the last all-to-all took

    def _check(self, rc):
        if rc < 0:
            raise Error(self.lib.ocs_moe_error(self.moe).decode())
        return rc

    def plan(self, links=(), shares=(), each=1, wait_ms=1000):
        """LINKS: (id, a, b, a's address, b's address) of circuits between ranks.  SHARES: (from, to, relay,
        first, second, share) between servers of EACH ranks.  How many circuits of this rank are up."""
        table = (Link * max(1, len(links)))(*[Link(i, a, b, x.encode(), y.encode()) for i, a, b, x, y in links])
        parts = (Share * max(1, len(shares)))(*[Share(*s) for s in shares])
        count = ctypes.c_int()
        up = self._check(self.lib.ocs_moe_links(self.moe, table, len(links), wait_ms))
        ways = self.lib.ocs_moe_ways_make(self.rank, self.ranks, each, parts, len(shares), table, len(links),
                                          ctypes.byref(count))
        self._check(self.lib.ocs_moe_ways(self.moe, ways, count))
        ctypes.CDLL(None).free(ways)
        return up

    def plan_text(self, text, each=1, wait_ms=1000):
        """The same from the lines of ocs_moe_plan."""
        return self._check(self.lib.ocs_moe_plan(self.moe, text.encode(), each, wait_ms))

    def packets(self):
        """Nothing goes by circuits until the next plan; they stay connected."""
        self._check(self.lib.ocs_moe_ways(self.moe, None, 0))

    def broadcast(self, data=None):
        """Bytes of rank 0, to all; others give nothing."""
        def once(part, size):
            return self.alltoall([part if not self.rank else b""] * self.ranks, [size] + [0] * (self.ranks - 1))[0]

        size = int.from_bytes(once(len(data or b"").to_bytes(8, "little"), 8), "little")
        return once(data, size)

    def alltoallv(self, send, send_bytes, receive, receive_bytes):
        """From memory at SEND, where SEND_BYTES[j] bytes for rank j follow those for rank j - 1, to memory at
        RECEIVE, alike: addresses or ctypes buffers."""
        vector = ctypes.c_size_t * self.ranks

        def begins(lengths):
            return vector(*[sum(lengths[:k]) for k in range(self.ranks)])

        def memory(place):
            return ctypes.c_void_p(place) if isinstance(place, int) else place

        start = time.monotonic()
        self._check(self.lib.ocs_moe_alltoall(self.moe, memory(send), vector(*send_bytes), begins(send_bytes),
                                              memory(receive), vector(*receive_bytes), begins(receive_bytes)))
        self.seconds = time.monotonic() - start

    def alltoall(self, send, receive_bytes):
        """SEND: a bytes-like object for each rank.  What each rank sent, as bytes; RECEIVE_BYTES says how
        many these are."""
        whole = ctypes.create_string_buffer(max(1, sum(receive_bytes)))
        self.alltoallv(b"".join(bytes(s) for s in send), [len(s) for s in send], whole, list(receive_bytes))
        view, at, parts = memoryview(whole), 0, []
        for n in receive_bytes:
            parts.append(bytes(view[at:at + n]))
            at += n
        return parts

    def stats(self):
        found = self.lib.ocs_moe_stats(self.moe).contents
        return {name: getattr(found, name) for name, _ in Stats._fields_}

    def close(self):
        if self.moe:
            self.lib.ocs_moe_close(self.moe)
            self.moe = None


class Controller:
    """Plans of the controller of a job: rank 0 asks it at PATH (None: where spank_ocs has it), all ranks take its
    answer.  All ranks call it before each all-to-all of a training.  While it is gone the last plan is used again; without
    one, all stays as it is.  Returns whether there is a plan.  It is for this all-to-all: afterwards circuits may be cut,
    and what follows has to go by packets (Moe.packets) until the next one."""

    def __init__(self, moe, path=None, each=1):
        self.moe, self.each, self.lines, self.last = moe, each, None, b""
        folder, group = os.environ.get("SLURM_OCS_MOE_SOCKETS"), os.environ.get("SLURM_OCS_MOE_GROUP")
        self.path = path or os.environ.get("OCS_MOE_PLAN") or (folder and group and "%s/plan.%s" % (folder, group))

    def _connect(self):
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(self.path)
                self.lines = sock.makefile("rw")
        except OSError:
            pass

    def __call__(self, layer, microbatch, backward, second):
        text = self._ask(layer, microbatch, backward, second)
        if text or self.last:
            # circuits of the plan before may be gone: the answer itself goes by packets
            self.moe.packets()
        text = self.moe.broadcast(text) or self.last
        if text:
            self.moe.plan_text(text.decode(), self.each)
        self.last = text
        return bool(text)

    def _ask(self, *step):
        """The answer, which begins with "#" so that it is not empty; b"": there is none."""
        if not self.lines and self.path and not self.moe.rank:
            self._connect()
        if not self.lines:
            return b""
        text = "#\n"
        try:
            self.lines.write("plan %d %d %d %d\n" % step)
            self.lines.flush()
            for line in self.lines:
                if line == "end\n":
                    return text.encode()
                text += line
        except OSError:
            pass
        self.lines = None
        return b""


class Gate:
    """Hands what the gate chose to the agent of this node; never waits, never fails."""

    def __init__(self, rank, ranks, socket=None, path=None):
        self.lib = library(path)
        self.gate = ctypes.c_void_p(self.lib.ocs_moe_gate_open(socket.encode() if socket else None, rank, ranks))

    def row(self, layer, microbatch, counts):
        """COUNTS: tokens for each expert, or for each rank."""
        numbers = (ctypes.c_int64 * len(counts))(*[int(c) for c in counts])
        self.lib.ocs_moe_gate(self.gate, layer, ctypes.c_int64(microbatch), numbers, len(counts))

    def begin(self, layer, microbatch, backward, second):
        self.lib.ocs_moe_gate_step(self.gate, layer, ctypes.c_int64(microbatch), int(backward), int(second), 0)

    def end(self, layer, microbatch, backward, second):
        self.lib.ocs_moe_gate_step(self.gate, layer, ctypes.c_int64(microbatch), int(backward), int(second), 1)

    def dropped(self):
        self.lib.ocs_moe_gate_dropped.restype = ctypes.c_uint64
        return self.lib.ocs_moe_gate_dropped(self.gate)

    def close(self):
        self.lib.ocs_moe_gate_close(self.gate)
        self.gate = None
