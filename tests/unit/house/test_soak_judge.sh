#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
# The judge of tests/bench/soak_slurm.py can fail: it sees each change of a record without faults.
echo 1..1
if said=$(PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$OCS_SOURCE_DIR/tests/bench/soak_slurm_judge.py" --self-test 2>&1); then
	echo "ok 1 - $said"
else
	echo "$said" | sed 's/^/# /'
	echo "not ok 1 - the judge of a soak"
fi
