#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# advise, offline: from a map to placements that verify agrees with.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
F="torus cubes:2x1x1 cube:4x4x4 tile:2x2x1"

# Two cubes, half of each in use.
for x in 0 1 2 3; do for y in 0 1 2 3; do for z in 0 1 2 3; do
	echo "c0 $x $y $z"
done; done; done >"$work/busy"
one=$("$ocsctl" place 4x4x2 --fabric "$F" --compact)
two=$("$ocsctl" place 4x8 --fabric "$F" --busy "$work/busy" --compact)
nodes() { # every node, those of the two jobs busy
	python3 - "$("$ocsctl" place 4x4x2 --fabric "$F" --nodes)" \
		"$("$ocsctl" place 4x8 --fabric "$F" --busy "$work/busy" --nodes)" <<'PY'
import json, re, sys
busy = set()
for name, inner in re.findall(r"(n)\[?([0-9,-]+)\]?", " ".join(sys.argv[1:])):
    for part in filter(None, inner.split(",")):
        low, _, high = part.partition("-")
        busy.update(range(int(low), int(high or low) + 1))
print(json.dumps([{"node": "n%d" % i, "state": "busy" if i in busy else "idle"} for i in range(32)]))
PY
}
job() { # NUMBER USER PLACEMENT
	printf '{"job":%d,"user":"%s","state":"realised","section":"torus","placement":"%s"}' "$@"
}
printf '{"nodes":%s,"jobs":[%s,%s]}\n' "$(nodes)" "$(job 7 alice "$one")" "$(job 8 bob "$two")" \
	>"$work/map"

exits 0 "a whole cube" advise 4x4x4 --fabric "$F" --map "$work/map"
prints "how many" "if 1 job (32 XPUs) were restarted elsewhere"
prints "the whole truth" "No fewer and no cheaper jobs would do."
exits 0 "in JSON" advise 4x4x4 --fabric "$F" --map "$work/map" --json
printf '%s\n' "$out" >"$work/advice"
for which in 'a["placement"]' 'a["moves"][0]["placement"]'; do
	python3 -c "import json, sys; a = json.load(open(sys.argv[1])); print(json.dumps($which))" \
		"$work/advice" >"$work/p"
	exits 0 "verify $which" verify "$work/p" --fabric "$F"
done
python3 - "$work/advice" <<'PY'
import json, sys
a = json.load(open(sys.argv[1]))
xpus = [(x["cube"], tuple(x["at"])) for p in (a, a["moves"][0]) for x in p["placement"]["xpus"]]
assert len(set(xpus)) == 96 and len(a["moves"]) == 1 and a["complete"] is True
assert a["moves"][0]["from"] != a["moves"][0]["to"] and a["cost_unit"] == "XPUs"
PY
result $? "side by side" "$(cat "$work/advice")"

# Job 7 has run for long: job 8 goes instead, and the other way round.
printf '7 1-00:00:00\n8 10:00\n' >"$work/elapsed"
exits 0 "by hours" advise 4x4x4 --fabric "$F" --map "$work/map" --elapsed "$work/elapsed"
prints "the younger" "8        bob "
prints "XPU hours" "(5.9 XPU hours)"
printf '# squeue\n7 0:59\n8 23:59:59\n99 1:00\n' >"$work/elapsed"
exits 0 "the other" advise 4x4x4 --fabric "$F" --map "$work/map" --elapsed "$work/elapsed"
prints "the younger now" "7        alice "
for bad in '7' '7 x' '7 1:2:3:4' '7 -1:00' 'seven 1:00' '7 5' '7 1-02:00'; do
	printf '8 1:00\n%s\n' "$bad" >"$work/elapsed"
	exits 2 "elapsed '$bad'" advise 4x4x4 --fabric "$F" --map "$work/map" --elapsed "$work/elapsed"
	says "its line" "elapsed:2:"
done

exits 0 "fits already" advise 4x4x2 --fabric "$F" --map "$work/map"
prints "as things are" "4x4x2 fits as things are, on nodes"
exits 4 "no room at all" advise 8x4x4 --fabric "$F" --map "$work/map"
says "why" "needs 32 nodes and 16 are free"
exits 3 "never" advise 6x6x6 --fabric "$F" --map "$work/map"
echo '{"jobs":[]}' >"$work/bad"
exits 2 "no map" advise 4x4x4 --fabric "$F" --map "$work/bad"
says "what it should be" "map --json"
exits 1 "no file" advise 4x4x4 --fabric "$F" --map "$work/none"
exits 2 "standard input twice" advise 4x4x4 --fabric "$F" --map - --elapsed -
exits 2 "two sources" advise 4x4x4 --fabric "$F" --map "$work/map" --ocsd unix:/x
sed 's/"placement":"[^"]*"/"placement":"p1:nonsense"/' "$work/map" >"$work/wrong"
run advise 4x4x4 --fabric "$F" --map "$work/wrong"
[ "$code" != 0 ] && [ "$(wc -l <"$work/err")" = 1 ]
result $? "a placement that is none"
printf '{"nodes":[],"jobs":[%s,%s]}\n' "$(job 7 alice "$one")" "$(job 9 carol "$one")" >"$work/both"
exits 1 "two jobs on one node" advise 4x4x4 --fabric "$F" --map "$work/both"
says "who" "jobs 7 and 9 both hold node n0"
# Of the drained cube nothing is used.
sed 's/}$/,"drains":[{"kind":"cube","name":"c1"}]}/' "$work/map" >"$work/drained"
exits 4 "drained" advise 4x4x4 --fabric "$F" --map "$work/drained"
echo "1..$number"
