#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# A short run of tests/bench/soak: random jobs on 48 switches that fail in every way,
# and ocsd killed meanwhile; the judge reads the emulator's log.  All benchmarks are built.

build=${OCS_BUILD_DIR:?}
judge=${OCS_SOURCE_DIR:?}/tests/bench/soak_judge.py
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

echo 1..3
make -C "$build/tests/bench" all-bench >"$work/make" 2>&1 && echo "ok 1 - built" || {
	sed 's/^/# /' "$work/make"
	echo "not ok 1 - built"
}
mkdir "$work/run"
if "$build/tests/bench/soak" "$build" "$work/run" 300 3 25 >"$work/out" 2>&1; then
	echo "ok 2 - tables, database and living jobs agree at every checkpoint"
else
	sed 's/^/# /' "$work/out"
	tail -n 5 "$work/run/ocsd.log" | sed 's/^/# /'
	echo "not ok 2 - tables, database and living jobs agree at every checkpoint"
fi
if "$judge" "$work/run" >"$work/out"; then
	echo "ok 3 - no circuit of a living job was cut by ocsd"
else
	sed 's/^/# /' "$work/out"
	echo "not ok 3 - no circuit of a living job was cut by ocsd"
fi
sed 's/^/# /' "$work/out" | tail -n 1
