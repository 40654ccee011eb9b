#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Names of static functions have two words at least, what it is about and what is done with it, in
the folders of CLEAN.  TAP on stdout.  With --count: how many there are of one word, by folder."""
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CLEAN = ("advice", "config", "emulator", "fabric", "fold", "forward", "layout", "model", "moe", "nccl", "netsim", "node",
         "ocsctl", "ocsd", "optimise", "place", "plan", "plugins", "policy", "protocol", "rails", "scheduler", "sim", "switch", "util")
STATIC = re.compile(r"^static\s[^;={}()]*?[\s*](\w+)\(", re.M)


def one_word(folder):
    """FILE: NAME of each, and the number of all static functions."""
    found, count = set(), 0
    for path in glob.glob(os.path.join(TOP, "src", folder, "**", "*.[ch]"), recursive=True):
        with open(path) as handle:
            names = set(STATIC.findall(handle.read())) - {"__attribute__"}
        count += len(names)
        found |= {"%s: %s" % (os.path.relpath(path, TOP), name) for name in names if "_" not in name}
    return sorted(found), count


folders = sorted(os.path.basename(path.rstrip("/")) for path in glob.glob(os.path.join(TOP, "src", "*", "")))
if sys.argv[1:] == ["--count"]:
    for folder in folders:
        print("src/%-12s %4d of %4d" % (folder, len(one_word(folder)[0]), one_word(folder)[1]))
    sys.exit()
print("1..%d" % len(CLEAN))
for number, folder in enumerate(CLEAN, 1):
    found, count = one_word(folder)
    good = count and not found
    print("%sok %d - src/%s" % ("" if good else "not ", number, folder))
    for line in found:
        print("# " + line)
