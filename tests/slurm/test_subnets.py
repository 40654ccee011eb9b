# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One IP subnet per circuit, on hosts with network namespaces of their own: the two ends of
each circuit reach each other, no two circuits share a subnet, and a repair moves only what
it has to."""

import json
import os
import socket

import pytest

from conftest import places
from netcluster import PORT, NetCluster

SERVERS = 6


class SubnetCluster(NetCluster):
    backend = "routes"

    def ocs_yaml(self):
        return super().ocs_yaml().replace("    forwarding:", "    subnets: 10.128.0.0/24\n    forwarding:")


@pytest.fixture(autouse=True)
def idle(net):
    yield
    net.cancel_all()


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    stage, slurm = places()
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    cluster = SubnetCluster(tmp_path_factory.mktemp("subnets"), stage, slurm, cubes=1, edge=2,
                            tile=(2, 2, 2), direct=SERVERS, spank=("prolog_timeout=60",))
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def addresses(net, name):
    """{interface: address} of a host, in the range of the circuits."""
    found = {}
    for line in net.host(name, "ip", "-o", "-4", "address").splitlines():
        words = line.split()
        if words[3].startswith("10.128."):
            assert words[1] not in found and words[3].endswith("/31")
            found[words[1]] = words[3][:-3]
    return found


def plan_of(net, job):
    return json.loads(net.out(["cat", net.plan(job)]))


def talk(net, one, other):
    """A packet each way between the two ends of a circuit."""
    sockets = []
    for name, address in (one, other):
        with net.inside(name):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((address, PORT))
        sock.settimeout(10)
        sockets.append(sock)
    try:
        for a, b, peer in ((0, 1, other), (1, 0, one)):
            sockets[a].sendto(b"light", (peer[1], PORT))
            assert sockets[b].recvfrom(100) == (b"light", ((one, other)[a][1], PORT))
    finally:
        for sock in sockets:
            sock.close()


def check(net, plans):
    """Every circuit of every plan has a subnet of its own, over which packets pass, and no
    other address of the range exists."""
    now = {name: addresses(net, name) for name in net.direct_nodes}
    expected, subnets = {name: set() for name in net.direct_nodes}, set()
    for plan in plans:
        for circuit in plan["circuits"]:
            ends = [(plan["nodes"][circuit[end][0]], "ocs%d" % circuit[end][1]) for end in "ab"]
            a, b = (now[name][interface] for name, interface in ends)
            last = [int(address.rpartition(".")[2]) for address in (a, b)]
            assert last[0] ^ last[1] == 1, (a, b)
            assert last[0] // 2 not in subnets
            subnets.add(last[0] // 2)
            for name, interface in ends:
                expected[name].add(interface)
            talk(net, (ends[0][0], a), (ends[1][0], b))
    assert {name: set(found) for name, found in now.items()} == expected


def test_circuits_of_two_jobs(net):
    first = net.sbatch("-p", "direct", "-N4")
    net.running(first)
    second = net.sbatch("-p", "direct", "-N2")
    net.running(second)
    check(net, [plan_of(net, first), plan_of(net, second)])
    net.cancel_all()
    net.until(lambda: not any(addresses(net, name) for name in net.direct_nodes), 30,
              "no address of the range anywhere")


def test_a_repair_moves_only_what_it_must(net):
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    plan = plan_of(net, job)
    before = {name: addresses(net, name) for name in net.direct_nodes}
    circuit = plan["circuits"][0]
    server, port = int(plan["nodes"][circuit["a"][0]][1:]), circuit["a"][1]
    for name in net.direct_nodes:
        net.run("nohup ip netns exec %s ip -o monitor address > %s 2>&1 & echo $! > %s" % (
            name, net.path("out", "monitor." + name), net.path("out", "pid." + name)))
    net.run(["ocsctl", "fail", "port", "direct-%d:%d" % (port, server + 1), "--reason", "test",
             "--fabric", net.yaml])

    def followed():
        """What is written for the job has come to the new plan on every host."""
        new = plan_of(net, job)
        if new["revision"] != 2:
            return False
        for name in net.direct_nodes:
            number = new["nodes"].index(name)
            held = {"ocs%d" % c[end][1] for c in new["circuits"] for end in "ab"
                    if c[end][0] == number}
            if set(addresses(net, name)) != held:
                return False
        return True
    net.until(followed, 60, "the addresses to follow the plan")
    check(net, [plan_of(net, job)])
    after = {name: addresses(net, name) for name in net.direct_nodes}
    assert "ocs%d" % port not in after["d%d" % server]
    kept = 0
    for name in net.direct_nodes:
        net.run("kill $(cat %s)" % net.path("out", "pid." + name))
        said = net.out(["cat", net.path("out", "monitor." + name)])
        for interface, address in before[name].items():
            if after[name].get(interface) == address:
                kept += 1
                assert " %s/" % address not in said, (name, said)
        # what the epilog will take away
        listed = net.out(["cat", "%s/subnets" % net.job_dir(name, job)]).split()
        assert dict(zip(listed[::2], (a[:-3] for a in listed[1::2]))) == after[name]
    assert kept
    net.run(["ocsctl", "resume", "port", "direct-%d:%d" % (port, server + 1), "--fabric", net.yaml])
    net.cancel_all()
    net.until(lambda: not any(addresses(net, name) for name in net.direct_nodes), 30,
              "no address of the range anywhere")
