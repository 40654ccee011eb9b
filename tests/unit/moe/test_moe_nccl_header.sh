#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# ocs_moe_nccl.h compiles with the nccl.h of this machine, as C and as C++.

top=${OCS_SOURCE_DIR:-.}
cc=${CC:-cc}
include=
for folder in /usr/include /usr/local/include /usr/local/cuda*/include; do
	[ -e "$folder/nccl.h" ] && [ -e "$folder/cuda_runtime.h" ] && include=$folder
done
if [ -z "$include" ]; then
	echo "1..0 # SKIP there is no nccl.h with its cuda_runtime.h"
	exit
fi
number=0
for language in c c++; do
	number=$((number + 1))
	if ! echo 'int main() { return 0; }' | $cc -x $language -fsyntax-only - 2>/dev/null; then
		echo "ok $number # SKIP no compiler for $language"
		continue
	fi
	if why=$(printf '#include "ocs_moe_nccl.h"\nint main() { return ocs_moe_nccl_scratch(0, 0, 0) != 0; }\n' |
		$cc -x $language -Wall -Wextra -Werror -fsyntax-only -I"$top/src/moe/job" -isystem "$include" - 2>&1); then
		echo "ok $number - $language"
	else
		echo "not ok $number - $language"
		echo "$why" | sed 's/^/# /'
	fi
done
echo "1..$number"
