#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# The program ocs-sim: what it refuses, what it prints, what it writes.

sim=${OCS_BUILD_DIR:?}/src/sim/ocs-sim
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
number=0
F="torus cubes:2x2x1 cube:4x4x4 tile:1x1x1"

result() {
	number=$((number + 1))
	[ "$1" = 0 ] && echo "ok $number - $2" || echo "not ok $number - $2"
}
exits() {
	want=$1 name=$2
	shift 2
	out=$("$sim" "$@" 2>"$work/err" </dev/null)
	[ $? = "$want" ]
	result $? "$name"
}
says() {
	grep -q -- "$2" "$work/err"
	result $? "$1"
}
holds() {
	printf '%s\n' "$out" | grep -q -- "$2"
	result $? "$1"
}

exits 2 "nothing asked"
says "what is needed" "--policy and --fabric"
exits 2 "no jobs" -p best -f "$F"
says "where jobs come from" "--trace FILE or --workload NAME"
exits 2 "two sources" -p best -f "$F" --trace x --workload tpu-v4
exits 2 "unknown option" -p best -f "$F" --workload tpu-v4 --fast
says "which one" "there is no option --fast; see ocs-sim --help"
exits 2 "a slip of the finger" -p best -f "$F" --worklaod tpu-v4
says "what was meant" "did you mean --workload?"
exits 2 "unknown short option" -x
says "it is named" "there is no option -x"
exits 2 "no value" -p best -f
says "of which option" "ocs-sim: -f needs a value"
exits 2 "a value too much" --lenient=1
says "and where" "ocs-sim: --lenient=1 takes no value"
exits 2 "unknown policy" -p worst -f "$F" --workload tpu-v4
says "the policies" "use best, best-effort, firstfit"
exits 2 "unknown workload" -p best -f "$F" --workload tpu
exits 2 "unknown order" -p best -f "$F" --workload tpu-v4 --order random
exits 2 "hours below zero" -p best -f "$F" --workload tpu-v4 --hours -1
exits 2 "hours that are none" -p best -f "$F" --workload tpu-v4 --hours nan
exits 2 "policy of other machines" -p firstfit -f "$F" --workload tpu-v4
exits 2 "runs of a trace" -p best -f "$F" --trace x --runs 2
exits 2 "a warm-up longer than the run" -p best -f "$F" --workload tpu-v4 --hours 20 --warmup 20
says "what is left" "leaves nothing of 20 hours"
exits 2 "a section that is not there" -p best -f "$F" --workload tpu-v4 --section pod
says "which there are" "it has: torus"
exits 2 "a day but no picture" -p best -f "$F" --workload tpu-v4 --day 3
says "what draws it" "give --svg too"
exits 2 "restarts under another policy" -p rfold -f "$F" --workload tpu-v4 --defragment 2
says "why" "needs --policy best"
exits 2 "more than all of the time" -p best-effort -f "$F" --workload tpu-v4 --communication 1.5
says "a share" "from 0 to 1"
exits 2 "faster than alone" -p best-effort -f "$F" --workload tpu-v4 --slowdown-limit 0.5
exits 1 "trace that is not there" -p best -f "$F" --trace "$work/none"
exits 0 "help" --help
holds "options" "--backfill"

printf '0,0,T3D_NT,4x4x4,64,3600\n1,60,T3D_NT,8x4,32,60\n2,61,T3D_NT,6x6x6,216,60\n' >"$work/trace"
exits 0 "trace" -p best -f "$F" --trace "$work/trace" --json --jobs "$work/jobs" --svg "$work/p"
holds "JCR" '"jcr_percent":66.67'
holds "all verified" '"placements_verified":2'
printf '%s\n' "$out" | python3 -c '
import json, sys
o = json.load(sys.stdin)
work = o["decision_work"]
for name in ("candidates", "words"):
    assert 0 < work[name]["p50"] <= work[name]["p99"] <= work[name]["max"] <= work[name]["total"], work
assert o["first_decision_us"]["count"] == 3 <= o["decision_us"]["count"]
assert o["decision_us"]["p50"] <= o["decision_us"]["p99"] <= o["decision_us"]["max"]
assert 0 < o["verification_us"]["p50"] <= o["verification_us"]["max"]
assert work["bounded"] == work["searched"] == 0
'
result $? "times and work of decisions"
exits 0 "as text" -p best -f "$F" --trace "$work/trace"
for line in "decision us    p50 .* p99 .* max" "decision work  candidates p50" "proof us       p50"; do
	holds "$line" "^$line"
done
exits 0 "without proofs" -p best -f "$F" --trace "$work/trace" --no-verify --json
holds "none timed" '"verification_us":{"p50":0.0,"p99":0.0,"max":0.0}'
[ "$(grep -c '"state":"done"' "$work/jobs")" = 2 ] && [ "$(wc -l <"$work/jobs")" = 3 ]
result $? "a line per job"
for f in p-utilisation.svg p-jct.svg p-jcr.svg p-cubes.svg p-day.svg; do
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$work/$f"
	result $? "$f is a document"
done

# The hour that the trace lasts: 4x4x4 all the time, 8x4 in its second minute.
python3 - "$work/p-day.svg" <<'PY'
import re, sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
jobs = {}
for path in tree.parse(sys.argv[1]).getroot().iter(svg + "path"):
    title = path.find(svg + "title")
    if title is None:
        continue
    boxes = re.findall(r"M\d+,\d+h(\d+)v(\d+)h-\d+z", path.get("d"))
    change = path.find(svg + "animate")
    jobs[title.text] = (sum(int(w) * int(h) for w, h in boxes) / int(boxes[0][1]) ** 2,
                        path.get("visibility"),
                        change if change is None else (change.get("values"), change.get("keyTimes")))
assert jobs == {
    "job 0, 4x4x4, 64 XPUs, 1.00 h from hour 0.00": (64, "visible", None),
    "job 1, 8x4, 32 XPUs, 0.02 h from hour 0.02":
        (32, "hidden", ("hidden;visible;hidden", "0;0.01667;0.03333"))}, jobs
PY
result $? "who had which XPUs when"
exits 2 "a day after the end" -p best -f "$F" --trace "$work/trace" --svg "$work/q" --day 2
says "when it ended" "the run ended at hour 1.0"
printf '0,0,T3D_NT,6x6x2,72,3600\n' >"$work/trace"
exits 0 "best effort" -p best-effort -f "$F" --trace "$work/trace" --json --jobs "$work/jobs"
holds "predicted" '"predicted_slowdown":{"mean":2.0,"max":2.0}'
grep -q '"end":7200.000.*"link_load":2,"predicted_slowdown":2.000' "$work/jobs"
result $? "twice as long"
exits 0 "best effort within a limit" -p best-effort -f "$F" --trace "$work/trace" --json --slowdown-limit 1.2
holds "never" '"never":1'
printf '0,0,T3D_NT,72x1x1,72,60\n1,5,T3D_NT,1x4x6,24,0\n2,5,T3D_NT,1x4x6,24,60\n' >"$work/trace"
for policy in rfold best; do
	exits 0 "$policy: extents of 1" -p $policy -f "$F" --trace "$work/trace" --json
	holds "are no dimensions" '"never":0,"done":2'
	says "what takes no time" "ocs-sim: $work/trace: jobs of zero seconds, left out: 1"
	holds "is counted" '"left_out":1'
done
exits 0 "in peace" -p rfold -f "$F" --trace "$work/trace" --quiet
[ ! -s "$work/err" ]
result $? "not a word"
printf '%s\n' '0,0,T3D_NT,2x2x17,68,60' '1,5,T3D_NT,4x4x4,64,60' >"$work/trace"
exits 0 "published rules" -p published-reconfig -f "$F" --trace "$work/trace" --json
holds "what never fits is dropped" '"never":1,"done":1'
printf '%s\n' '0,0,T3D_NT,4x4x4,64,4001' '1,5,T3D_NT,4x4x4,64,1111' >"$work/trace"
exits 0 "figures" -p best -f "$F" --trace "$work/trace" --json
[ "$(printf '%s' "$out" | grep -cE '[0-9]\.[0-9]{6}')" = 0 ]
result $? "no digits that say nothing"
printf '%s\n' '0,0,T3D_NT,4x4x4,64,60' '1,5,CLOS,4x4x4,64,60' >"$work/trace"
exits 1 "unknown topology" -p best -f "$F" --trace "$work/trace"
says "where, and what would work" "trace:2: topology 'CLOS' is unknown; T3D_NT (a torus) and T3D_T"
printf '%s\n' '3,0,T3D_NT,4x4x4,64,60' '3,5,T3D_NT,4x4x4,64,60' >"$work/trace"
exits 1 "doubled id" -p best -f "$F" --trace "$work/trace"
says "where" "trace:2: a line above has the job id 3 already"
# The catalogues of 1446 shapes took 1 GB once, and a terminal saw nothing meanwhile.
cat >"$work/watch.py" <<'PY'
import os, pty, resource, subprocess, sys
master, slave = pty.openpty()
sim = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=slave)
os.close(slave)
seen = b""
try:
    while part := os.read(master, 4096):
        seen += part
except OSError:
    pass
out = sim.communicate()[0].decode()
assert sim.returncode == 0, seen
print(out, end="")
print(seen.decode(), end="", file=sys.stderr)
print("MiB", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
PY
F64="torus cubes:4x4x4 cube:4x4x4 tile:1x1x1"
little() {
	out=$(python3 "$work/watch.py" "$sim" -p best -f "$F64" --workload rfold-2025 --lenient "$@" \
		2>"$work/err")
	result $? "$*"
	# a sanitizer needs more
	nm -D "$sim" | grep -q "__[at]san_init" || [ "$(printf '%s\n' "$out" | sed -n 's/^MiB //p')" -lt 200 ]
	result $? "in little memory"
}
little --possible
holds "all fit" "^1446 of 1446 shapes fit the empty machine: 100.00 %"
says "how far it is" "shapes looked at"
little --runs 2 --produce-hours 1000 --hours 500
says "how far they are" "of 2 runs"
exits 0 "workload" -p best -f "$F" --workload tpu-v4 --saturated --hours 20 --write-trace "$work/t"
says "fitted distributions are named" "durations and gaps come from fitted distributions"
exits 0 "what was written can be read" -p best -f "$F" --trace "$work/t" --json
exits 0 "a budget" -p best -f "$F" --workload rfold-2025 --saturated --hours 200 --budget 1 --json
budget=$out
exits 0 "no budget" -p best -f "$F" --workload rfold-2025 --saturated --hours 200 --json
python3 -c '
import json, sys
budget, none = (json.loads(text) for text in sys.argv[1:])
assert budget["decision_work"] == none["decision_work"], none
' "$budget" "$out"
result $? "it changes nothing"
exits 2 "a budget that is none" -p best -f "$F" --workload tpu-v4 --budget much
exits 0 "possible" -p best -f "$F" --workload tpu-v4 --possible --json
holds "counts" '"shapes":30,"possible":1'
echo "1..$number"
