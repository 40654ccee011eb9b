# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Texts of several kinds that this tree has, for moe_train.py."""

import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KINDS = ["src/place/*.c", "doc/*.md", "tests/slurm/*.py", "doc/man*/*.[158]", "src/*/Makefile.am", "src/*/*.h",
         "tests/unit/*/*.sh", "src/ocsd/*/*.c"]


def texts(ranks):
    """Files for each rank."""
    return [sorted(str(f) for f in SOURCE.glob(KINDS[r % len(KINDS)]))[:8] for r in range(ranks)]
