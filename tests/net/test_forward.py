# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The routes of plans carry packets of the real kernel."""

import pytest

import netlab


def check_all_pairs(net, backend, *options):
    """Every pair, one packet: it leaves by the ports of its path and by no others."""
    paths, adjusted = net.paths(*options)
    assert len(paths) == net.servers * (net.servers - 1)
    planned = {(r["src"], r["dst"]): r["paths"] for r in net.plan["routes"]}
    strayed = 0
    for (src, dst), route in paths.items():
        arrived, ports = net.walk(src, dst)
        hops = len(route["ports"])
        assert arrived, f"{src} to {dst} is lost; it left by {ports}"
        # the kernel's routing counts down, bpf does not
        ttl = 64 - (hops - 1) if backend == "routes" else 64
        assert arrived == (ttl, net.address(src)), f"{src} to {dst}"
        assert ports == {(s, p): 1 for s, p in zip(route["path"], route["ports"])}, f"{src} to {dst}"
        strayed += route["path"] not in planned[src, dst]
    assert strayed == adjusted


@pytest.mark.parametrize("backend", ["bpf", "routes"])
@pytest.mark.parametrize("servers, degree, options", [
    (12, 4, ()), (12, 4, ("--directed",)), (7, 5, ()), (24, 4, ("--strategy", "best")),
])
def test_all_pairs(lab, backend, servers, degree, options):
    net = lab(servers, degree, *options)
    before = [net.snapshot(s) for s in range(servers)]
    assert net.packet(0, 1, 0.05) is None, "nobody has been told a route"
    net.forward_all("--backend", backend)
    once = net.snapshot(1)
    net.forward(1, "--backend", backend)
    assert net.snapshot(1) == once, "applying twice is applying once"
    assert once != before[1]
    check_all_pairs(net, backend)
    for _ in range(2):
        net.forward_all("--remove")
    for s in range(servers):
        assert net.snapshot(s) == before[s], "something is left"
    assert net.packet(0, 1, 0.05) is None


def test_backends_change(lab):
    """One backend replaces the other on the fly."""
    net = lab(12, 4)
    before = [net.snapshot(s) for s in range(12)]
    for backend in ("routes", "bpf", "routes"):
        net.forward_all("--backend", backend)
        check_all_pairs(net, backend)
    net.forward_all("--remove")
    assert [net.snapshot(s) for s in range(12)] == before


@pytest.mark.parametrize("backend", ["bpf", "routes"])
def test_cut(lab, backend):
    """A circuit goes dark: what went over it is lost, and nothing else; the hosts go
    around it; it comes back and everything is as planned."""
    net = lab(12, 4)
    net.forward_all("--backend", backend)
    dead = net.plan["circuits"][5]
    ends = {tuple(dead["a"]), tuple(dead["b"])}
    paths, _ = net.paths()
    hit = {pair for pair, r in paths.items() if ends & set(zip(r["path"], r["ports"]))}
    assert 2 <= len(hit) < len(paths) / 2
    net.cut(dead)
    for pair in hit:
        assert net.packet(*pair, 0.02) is None, f"{pair} crossed a dark circuit"
    for pair in set(paths) - hit:
        assert net.packet(*pair), f"{pair} is lost"
    around = ("--failed", f"{dead['a'][0]}:{dead['a'][1]}")
    net.forward_all("--backend", backend, *around)
    check_all_pairs(net, backend, *around)
    net.patch(dead)
    net.forward_all("--backend", backend)
    check_all_pairs(net, backend)


def test_refusals(lab):
    """A host without the interfaces is told so, and is left as it was."""
    net = lab(4, 2)
    before = net.snapshot(2)
    net.plan_file.write_text(netlab.run(net.ocsctl, "plan", "--servers", 12, "--degree", 4, "--json"))
    with pytest.raises(RuntimeError, match="no interface ocs2"):
        net.forward(2, "--backend", "routes")
    assert net.snapshot(2) == before


def test_auto(lab):
    """What auto chooses works here, whatever it is."""
    net = lab(4, 2)
    net.forward_all()
    for src in range(4):
        for dst in range(4):
            assert src == dst or net.packet(src, dst)
