#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""doc/netsim-published.md has what its commands print: those of a few seconds here, all of them with
tests/bench/published_document.py.  TAP on stdout."""
import os
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["OCS_SOURCE_DIR"], os.environ["OCS_BUILD_DIR"]
GRAPHS = os.path.join(SOURCE, "../shared/data/optimise/taskgraphs")
PAGE = os.path.join(SOURCE, "doc/netsim-published.md")
QUICK = ("netsim:10", "netsim:14", "opus:oracle", "opus:10", "opus:11", "opus:14", "mfabric:14", "mfabric:19")
results = []


def result(name, good, seen=""):
    results.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(results), name), flush=True)
    if not good:
        print("# " + str(seen)[:3000].replace("\n", "\n# "))


def compare(page, *words):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tests/bench/published_document.py"), "--build", BUILD, "--page",
                           page, *words], text=True, capture_output=True, env=dict(os.environ, OCS_DATADIR=SOURCE + "/share"))


def pages(folder):
    with open(PAGE, encoding="utf-8") as handle:
        page = handle.read()
    wrong = os.path.join(folder, "page.md")
    with open(wrong, "w", encoding="utf-8") as handle:
        handle.write(page.replace("| 1.524 |", "| 1.534 |", 1))
    done = compare(wrong, "mfabric:14")
    result("a wrong number is seen", done.returncode == 1 and "-| 100G | 1.534 | 1.524 |" in done.stdout, done)
    done = compare(wrong, "--write", "mfabric:14")
    with open(wrong, encoding="utf-8") as handle:
        result("and put right", done.returncode == 0 and handle.read() == page, done)
    counted = re.sub(r"(\| `mfabric_published.py 14` \|) 4 \| 4 \|", r"\1 4 | 3 |", page)
    with open(wrong, "w", encoding="utf-8") as handle:
        handle.write(counted)
    result("points are counted", counted != page and compare(wrong, "mfabric:14").returncode == 1, counted)


def main():
    for figure in QUICK:
        done = compare(PAGE, figure)
        result(figure, done.returncode == 0, done.stdout + done.stderr)
    if os.path.isdir(GRAPHS):
        done = compare(PAGE, "--graphs", GRAPHS, "netsim:16")
        result("netsim:16", done.returncode == 0, done.stdout + done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        pages(folder)
    print("1..%d" % len(results))
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
