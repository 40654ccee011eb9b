#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# ocs-sim: several runs side by side give what they give one after the other.

sim=${OCS_BUILD_DIR:?}/src/sim/ocs-sim
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
number=0
F="torus cubes:2x2x1 cube:4x4x4 tile:1x1x1"

result() {
	number=$((number + 1))
	[ "$1" = 0 ] && echo "ok $number - $2" || echo "not ok $number - $2"
}

# All but the times of decisions.
simulate() { # FILE ARGUMENT...
	file=$1
	shift
	"$sim" -q -f "$F" --workload tpu-v4 --seed 7 --json "$@" >"$file.raw" 2>"$work/err" &&
		[ ! -s "$work/err" ] &&
		python3 - "$file.raw" >"$file" <<'PY'
import json, sys
def strip(o):
    if isinstance(o, list):
        return [strip(x) for x in o]
    if isinstance(o, dict):
        return {k: strip(v) for k, v in o.items() if not k.endswith("_us")}
    return o
print(json.dumps(strip(json.load(open(sys.argv[1]))), indent=1))
PY
}

for policy in best best-effort reconfig; do
	simulate "$work/one" -p $policy --runs 6 --saturated --hours 60 --threads 1 &&
		simulate "$work/four" -p $policy --runs 6 --saturated --hours 60 --threads 4
	result $? "$policy runs"
	cmp "$work/one" "$work/four"
	result $? "$policy: the same"
	simulate "$work/one" -p $policy --runs 4 --produce-hours 200 --hours 100 --threads 1 \
		--produce-policy unconstrained --produce-fabric "$F" &&
		simulate "$work/four" -p $policy --runs 4 --produce-hours 200 --hours 100 --threads 3 \
			--produce-policy unconstrained --produce-fabric "$F"
	result $? "$policy replays"
	cmp "$work/one" "$work/four"
	result $? "$policy: the same jobs"
done
simulate "$work/moved" -p best --runs 6 --saturated --hours 60 --defragment 2 --threads 1 &&
	simulate "$work/four" -p best --runs 6 --saturated --hours 60 --defragment 2 --threads 4 &&
	cmp "$work/moved" "$work/four"
result $? "the same with restarts"
python3 - "$work/one" <<'PY'
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert len(runs) == 4 and len({json.dumps(r) for r in runs}) == 4
PY
result $? "seeds differ"
"$sim" -f "$F" -p best --workload tpu-v4 --threads 0 2>"$work/err"
[ $? = 2 ] && grep -q -- "--threads 0" "$work/err"
result $? "no threads"
"$sim" -q -f "$F" -p best --workload tpu-v4 --runs 4 --threads 2 --produce-fabric nonsense 2>"$work/err"
[ $? = 2 ] && [ "$(wc -l <"$work/err")" = 1 ]
result $? "one line when all runs fail"
echo "1..$number"
