# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Steps of ocs-netsim against packets: TCP between servers over the circuits of the emulator, whose
ports pass a rate that a token bucket keeps.  The last byte of a step arrives within 10 % of the
simulated time; one that is late is tried again, ten times at most, since a busy machine lets senders wait.

Two things that a fluid does not have are named.  An acknowledgement of 66 bytes goes back for every two
segments: it is simulated as a transfer of its own.  Where a link is full in both directions
acknowledgements wait behind data; CUBIC takes that delay for a full queue and leaves slow start long
before the link is full (HyStart), which costs an all-to-all of 1.5 MB a pair 20 to 50 %, and of 6 MB 15 %.
Senders take Reno here, which waits for a loss."""

import json
import socket
import threading
import time

import pytest

import netlab

MBIT = 40
PORT = 7777
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33      # so that the kernel has all to send: a busy machine starves threads
HEADERS = 1514 / 1448   # bytes of a frame of a full segment, over its data
ANSWERS = 66 / 2 / 1448     # bytes of acknowledgements over data


def rate_limit(net):
    for s in range(net.servers):
        for p in range(net.degree):
            netlab.run("ip", "netns", "exec", net.host(s), "tc", "qdisc", "replace", "dev", f"ocs{p}", "root", "tbf",
                       "rate", f"{MBIT}mbit", "burst", "6kb", "latency", "2000ms")


def receive(listener, ends):
    """Reads one connection to its end."""
    peer, _ = listener.accept()
    with peer:
        while peer.recv(1 << 18):
            pass
    ends.append(time.monotonic())


def send(sock, size, start):
    data = memoryview(bytes(size))
    start.wait()
    sock.sendall(data)
    sock.close()


def packets(net, flows):
    """Sends all FLOWS (src, dst, bytes) at once; seconds until the last has arrived."""
    ends, threads, start = [], [], threading.Event()
    for number, (src, dst, size) in enumerate(flows):
        with netlab.inside(net.host(dst)):
            listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20)
        listener.bind((net.address(dst), PORT + number))
        listener.listen(1)
        with netlab.inside(net.host(src)):
            sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        sock.bind((net.address(src), 0))
        sock.connect((net.address(dst), PORT + number))
        threads += [threading.Thread(target=receive, args=(listener, ends)),
                    threading.Thread(target=send, args=(sock, size, start))]
    for thread in threads:
        thread.start()
    begin = time.monotonic()
    start.set()
    for thread in threads:
        thread.join(60)
    assert len(ends) == len(flows)
    return max(ends) - begin


def simulated(bins, net, flows):
    graph = net.folder / "graph.json"
    graph.write_text(json.dumps({"servers": net.servers, "devices": 1, "tasks": [
        {"kind": "transfer", "src": a, "dst": b, "bytes": size * part} for src, dst, size in flows
        for a, b, part in ((src, dst, HEADERS), (dst, src, ANSWERS))]}))
    answer = netlab.run(bins / "ocs-netsim", "--graph", graph, "--json", "--fabric",
                        f"topoopt servers:{net.servers} degree:{net.degree} rate:{MBIT}M plan:{net.plan_file}")
    return json.loads(answer)["step_ms"] / 1000


@pytest.mark.parametrize("name, flows", [
    ("ring", [(s, (s + 1) % 4, 4_000_000) for s in range(4)]),
    ("incast", [(s, 0, 2_000_000) for s in (1, 2, 3)]),
    ("forwarded", [(0, 2, 3_000_000), (0, 3, 2_000_000), (3, 2, 4_000_000)]),
    ("both ways", [(s, (s + way) % 4, 5_000_000) for s in range(4) for way in (1, 3)]),
    ("all-to-all", [(s, d, 2_500_000) for s in range(4) for d in range(4) if s != d]),
    ("uneven all-to-all", [(s, d, (1 + (3 * s + d) % 3) * 1_500_000) for s in range(4) for d in range(4) if s != d]),
    ("uneven", [(0, 1, 5_000_000), (0, 2, 1_000_000), (3, 1, 2_000_000), (2, 3, 4_000_000)]),
])
def test_step(bins, lab, name, flows):
    why = netlab.possible(rates=True)
    if why:
        pytest.skip(why)
    net = lab(4, 2)
    net.forward_all("--backend", "routes")
    rate_limit(net)
    wanted, seen = simulated(bins, net, flows), packets(net, flows)
    for _ in range(9):      # a busy machine lets a sender wait
        if seen / wanted - 1 >= 0.10:
            seen = min(seen, packets(net, flows))
    print(f"{name}: simulated {wanted:.3f} s, packets {seen:.3f} s")
    assert wanted > 0.5
    assert abs(seen / wanted - 1) < 0.10, f"{name}: simulated {wanted:.3f} s, packets {seen:.3f} s"
