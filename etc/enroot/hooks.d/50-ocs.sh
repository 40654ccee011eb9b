#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# For /etc/enroot/hooks.d: what a job with circuits has in its environment, inside the
# container too.  A file in environ.d could not do it: it would set what is not set to
# nothing, and NCCL fails with an empty NCCL_GRAPH_FILE.
set -euo pipefail

[ -n "${SLURM_OCS_DIR-}" ] || exit 0
for name in $(compgen -e SLURM_OCS_) $(compgen -e NCCL_); do
    printf '%s=%s\n' "$name" "${!name}" >>"$ENROOT_ENVIRON"
done
