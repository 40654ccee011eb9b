# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A training of a mixture of experts by PyTorch between network namespaces: packets alone, circuits that stay, and
circuits that follow the gates."""

import json
import os
import pathlib
import statistics
import subprocess

import pytest

import moe_steer
import moe_texts
import moelab
import netlab

SERVERS = int(os.environ.get("OCS_MOE_SERVERS", "6"))
ALPHA, LAYERS = 2, 3
TOKEN = 256 * 4    # bytes
MBIT = int(os.environ.get("OCS_MOE_MBIT", "40"))
PASSES = int(os.environ.get("OCS_MOE_PASSES", "3"))
MODES = os.environ.get("OCS_MOE_MODES", "packets static following").split()
PYTHON = "/usr/bin/python3"
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def torch_there():
    return subprocess.run([PYTHON, "-c", "import torch.nn"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def stage(monkeypatch):
    why = netlab.possible(rates=True)
    if why:
        pytest.skip(why)
    folder = pathlib.Path(os.environ.get("OCS_STAGE", "/nonexistent"))
    library = folder / "libexec/slurm-ocs/libocsmoe.so"
    if not library.exists():
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")
    monkeypatch.setenv("OCS_MOE_LIBRARY", str(library))
    return folder


def test_training(stage, tmp_path):
    """The loss is the same to the last bit whatever carries the tokens; circuits carry most of them."""
    if not torch_there():
        pytest.skip("PyTorch is not installed")
    region = moelab.OpticalRegion(stage, tmp_path, SERVERS, ALPHA, MBIT)
    try:
        steers = {m: moe_steer.Steer(region, LAYERS, m, record=lambda: steers["packets"].trace, name=m) for m in MODES}
        config = tmp_path / "train.json"
        config.write_text(json.dumps({
            "addresses": [region.packets(s, 7000) for s in range(SERVERS)], "key": "k" * 32, "out": str(tmp_path),
            "texts": moe_texts.texts(SERVERS), "layers": LAYERS, "passes": PASSES, "runs": [{"name": m, "agent": s.agent_path, "ask": s.ask_path} for m, s in steers.items()],
            "namespaces": [region.host(s) for s in range(SERVERS)]}))
        done = subprocess.run([PYTHON, SOURCE / "tests/net/moe_train.py", config], capture_output=True, text=True,
                              timeout=500, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        region.close()
    lines = [[json.loads(line) for line in (tmp_path / str(r)).read_text().splitlines()] for r in range(SERVERS)]
    losses = {m: [[p["loss"] for p in rank if p["run"] == m] for rank in lines] for m in MODES}
    assert len(losses["packets"][0]) == PASSES
    assert all(rank == losses["packets"][0] for m in MODES for rank in losses[m])
    assert float.fromhex(losses["packets"][0][-1]) < float.fromhex(losses["packets"][0][0])
    # the same gates, recorded three times; what was dropped is not there
    for m, steer in steers.items():
        assert all(a == b for a, b in zip(sum(steer.trace, []), sum(steers["packets"].trace, [])) if a and b), m

    def median(mode, what):
        return statistics.median(p[what] for p in lines[0] if p["run"] == mode and p["pass"])

    # a frame of 1514 bytes carries 1448
    ratios = {m: [t[3] / (t[4] * TOKEN * 8 * 1514 / 1448 / 1e6 / MBIT) for t in steers[m].took if t[0] and t[4]]
              for m in MODES}
    for what in ("seconds", "sending"):
        print(what, *("%s %.3f (%.2f)" % (m, median(m, what), median(m, what) / median("packets", what)) for m in MODES))
    print("losses", [p["about"] for p in lines[0] if p["run"] == "packets"], "exchanged", region.exchanges)
    for m in MODES:
        print(m, "took %.2f of the time planned (median of %d all-to-alls)" % (
            statistics.median(ratios[m]), len(ratios[m])))
    last = {m: [p for p in rank if p["run"] == m][-1] for m in MODES for rank in lines[:1]}
    assert last["packets"]["circuits"] == 0 and last["static"]["circuits"] > 0
    assert last["following"]["circuits"] > 0 and region.exchanges > LAYERS
    # circuits of a plan may be cut when its all-to-all is over: sums of gradients do not wait for them
    assert all(p["outside"] == 0 for rank in lines for p in rank if p["run"] == "following")
    # not how long it took: other programs use these cores, too
    sums = {m: [sum([p for p in rank if p["run"] == m][-1][what] for rank in lines) for what in ("packets", "circuits")]
            for m in MODES}
    busiest = {m: statistics.median(t[4] for t in steers[m].took if t[0] and t[4]) for m in MODES}
    print("bytes by packets and by circuits", sums, "tokens of the busiest NIC", busiest)
    assert sums["following"][0] < sums["packets"][0] * 3 / 4, sums
    assert busiest["following"] < busiest["packets"], busiest
