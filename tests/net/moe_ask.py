# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A rank's side of moe_steer.py."""

import json
import socket


def asking(path, rank, run):
    """A function for ocs_moe_torch.Group: what all ranks have to ask before each all-to-all.  None: the controller is
    gone, and all stays as it is."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    lines = sock.makefile("rw")

    def ask(layer, microbatch, backward, second):
        try:
            lines.write(json.dumps([rank, run, layer, microbatch, backward, second]) + "\n")
            lines.flush()
            return json.loads(lines.readline())
        except (OSError, ValueError):
            return None

    return ask
