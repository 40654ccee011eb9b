# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors

dist_check_SCRIPTS += house/test_arrows.py house/test_names.py house/test_documents.py protocol/test_protocol.py
