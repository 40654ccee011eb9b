# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# Sourced by tests in bash: what they say on stdout is TAP, and ends with "1..$number".
# $complaints, if set, is a file that is shown as stderr where a test fails.

number=0

result() { # CODE NAME [WHAT WAS SEEN]
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		printf '%s\n' "${3:-}" | head -n 60 | sed 's/^/# /'
		[ ! -s "${complaints:-}" ] || sed 's/^/# stderr: /' "$complaints"
	fi
}
