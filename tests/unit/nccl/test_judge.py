#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Where NCCL sends with the files of jobs, by the judge of tests/nccl.  TAP on stdout."""

import os
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ.get("OCS_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests/nccl"))
import cases  # noqa: E402

cases.main(sys.argv[1:])
