# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What tests in Python say: TAP on stdout."""

results = []


def result(name, good, seen=""):
    """One more case; SEEN is told where it is not GOOD."""
    results.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(results), name), flush=True)
    if not good:
        print("# " + str(seen)[:4000].replace("\n", "\n# "), flush=True)


def faultless(name, faults):
    """One more case, good if there are no FAULTS, of which each is told."""
    result(name, not faults, "\n".join(sorted(faults)))


def end():
    """The last line; the exit status of the test."""
    print("1..%d" % len(results))
    return 0 if all(results) else 1
