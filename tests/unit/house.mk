# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

dist_check_SCRIPTS += test_arrows.py test_protocol.py
