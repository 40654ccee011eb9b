#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# place, fold and verify, offline: the JSON of doc/placement.md to the letter, round trips, and
# every way to be told no.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
F="torus cubes:2x2x1 cube:4x4x4 tile:2x2x1"
ONE="torus cubes:1x1x1 cube:4x4x4 tile:2x2x1"

# One node, no folding to choose: all of it is determined.
exits 0 "a line of two" place 2 --conn mesh --no-rotate --fabric \
	"torus cubes:1x1x1 cube:2x2x2 tile:2x2x2" --json
equals "literal JSON" '{"shape":[2],"conn":["mesh"],"cubes":["c0"],"xpus":[{"coord":[0],"cube":"c0","at":[0,0,0],"node":"n0"},{"coord":[1],"cube":"c0","at":[1,0,0],"node":"n0"}],"circuits":[],"ocs_links":0}'

# A whole cube wrapped on itself: 3 dimensions x 16 positions.
exits 0 "a whole cube" place 4x4x4 --no-rotate --no-fold --fabric "$ONE" --json
prints "literal head" '{"shape":[4,4,4],"conn":["torus","torus","torus"],"cubes":["c0"],"xpus":[{"coord":[0,0,0],"cube":"c0","at":['
prints "literal circuit" '{"dim":"x","position":[0,1],"from":"c0","to":"c0"}'
prints "literal tail" '],"ocs_links":48}'
printf '%s\n' "$out" >"$work/cube.json"
[ "$(grep -o '"coord"' "$work/cube.json" | wc -l)" = 64 ]
result $? "64 coordinates"
[ "$(grep -o '"dim"' "$work/cube.json" | wc -l)" = 48 ]
result $? "48 circuits"
grep -o '"coord":\[[0-9,]*\]' "$work/cube.json" | tr -dc '0-9\n' | sort -c
result $? "in row-major order"
exits 0 "verify it" verify "$work/cube.json" --fabric "$ONE"
equals "valid" valid
exits 0 "verify --json" verify "$work/cube.json" --fabric "$ONE" --json
equals "valid in JSON" '{"valid":true}'

for shape in 1 2 18 6x4 4x4 4x8x2 8x8x4 4x4x4 8x4x4; do
	run place $shape --fabric "$F" --json
	verdict=$(printf '%s\n' "$out" | "$ocsctl" verify - --fabric "$F" 2>&1)
	[ "$code" = 0 ] && [ "$verdict" = valid ]
	result $? "round trip of $shape" "$verdict
$out"
done
run place 3x5 --conn mesh --fabric "$F" --json
verdict=$(printf '%s\n' "$out" | "$ocsctl" verify - --fabric "$F" 2>&1)
[ "$code" = 0 ] && [ "$verdict" = valid ]
result $? "round trip of a mesh" "$verdict"

# Damage one circuit, one coordinate, one name.
sed 's/{"dim":"x","position":\[0,1\],"from":"c0","to":"c0"},//; s/"ocs_links":48/"ocs_links":47/' \
	"$work/cube.json" >"$work/cut.json"
exits 1 "a missing circuit" verify "$work/cut.json" --fabric "$ONE"
says "names an edge" edge
sed 's/"at":\[3,3,3\],"node":"n15"/"at":[0,0,0],"node":"n0"/' "$work/cube.json" >"$work/twice.json"
exits 1 "an XPU used twice" verify "$work/twice.json" --fabric "$ONE"
sed 's/"cube":"c0"/"cube":"c9"/' "$work/cube.json" >"$work/alien.json"
run verify "$work/alien.json" --fabric "$ONE"
[ "$code" = 1 ] || [ "$code" = 2 ]
result $? "an unknown cube" "exit $code"
says "is named" c9
echo '{"shape":[4' >"$work/short.json"
echo '{"shape":[4]}' >"$work/other.json"
exits 2 "JSON of something else" verify "$work/other.json" --fabric "$ONE"
exits 2 "JSON that ends early" verify "$work/short.json" --fabric "$ONE"
exits 1 "a file that is not there" verify "$work/absent.json" --fabric "$ONE"
echo "c0 3 3 3" >"$work/busy"
exits 1 "an XPU that is busy" verify "$work/cube.json" --fabric "$ONE" --busy "$work/busy"

# Whole nodes: one busy XPU takes the tile with it.
exits 4 "a busy node is in the way" place 4x4x4 --fabric "$ONE" --busy "$work/busy"
exits 0 "the rest is still there" place 2x2x2 --fabric "$ONE" --busy "$work/busy"
prints "and drawn as taken" '*'
echo "c0 0 0 0 0" >"$work/wrong"
exits 2 "a busy file that is wrong" place 2x2 --fabric "$ONE" --busy "$work/wrong"
says "with its line" "wrong:1"
echo "c0 0 0 0" >"$work/first"
run place 4x4x4 --fabric "$F" --busy "$work/first" --json
prints "another cube is taken" '"cubes":["c1"]'

exits 3 "larger than the machine" place 64x64x64 --fabric "$ONE"
exits 3 "a ring that cannot close" place 3x3 --fabric "$ONE"
for shape in 0x4x4 4x4x axb x 4x4x4x4x4x4x4 99999999999999999999 4xx4; do
	exits 2 "shape $shape" place $shape --fabric "$ONE"
done
exits 2 "a negative shape" place -- -4x4 --fabric "$ONE"
exits 2 "conn that does not exist" place 4x4 --conn tours --fabric "$ONE"
exits 2 "conn of another length" place 4x4 --conn torus,torus,mesh --fabric "$ONE"
exits 2 "no cubes in the fabric" place 4x4 --fabric "direct servers:12 degree:4"

exits 0 "text" place 4x4x4 --no-fold --fabric "$F"
prints "totals" "4x4x4 (torus,torus,torus): 64 XPUs on 16 nodes in 1 cube, 48 circuits"
prints "cubes" "cubes: c0"
prints "nodes" "nodes: n[0-15]"
prints "picture" "AAAA"
exits 0 "idle XPUs" place 1 --fabric "$F"
prints "are counted" "idle:  3 XPUs of these nodes"
exits 0 "node list" place 4x4x4 --fabric "$F" --nodes
equals "alone" "n[0-15]"
exits 0 "many cubes" place 4x4x4 --fabric "torus cubes:8x8x8 cube:4x4x4 tile:2x2x1" \
	--svg "$work/many.svg" --busy "$work/first"
prints "what is used is drawn, the rest counted" "cubes not drawn: 510 free, 1 partly in use"
[ "$(printf '%s\n' "$out" | wc -l)" -lt 20 ]
result $? "no endless picture"
grep -q '<svg' "$work/many.svg"
result $? "but SVG"
exits 1 "SVG that cannot be written" place 2x2 --fabric "$ONE" --svg /nowhere/x.svg
exits 0 "static torus" place 16x16x16 --fabric "static:16x16x16 tile:1x1x1" --json
prints "needs no circuits" '"ocs_links":0}'

cat >"$work/names.yaml" <<'YAML'
version: 1
switches: [{name: "o-[x,y,z]-[0-1]-[0-1]", driver: scpi, address: "h:{index + 1}", size: 16}]
fabrics:
- {name: pod, kind: torus, cube: 2x2x2, cubes: {names: "hall-[0-1]-cube", nodes: "n[0-15]"},
   ports: {switch: "o-{dim}-{a}-{b}", port: 2*cube + sign + 1}}
YAML
exits 0 "cubes with long names" place 4x2x2 --fabric "$work/names.yaml"
prints "are named in full above their layers" "
hall-0-cube   hall-1-cube
AA AA         AA AA
AA AA         AA AA
"

exits 0 "fold" fold 4x4x4 --no-rotate --no-fold --fabric "$ONE" --svg "$work/fold.svg"
prints "coordinates are drawn" "0,0,0 0,1,0 0,2,0 0,3,0"
prints "circuits are listed" "x    c0      c0          16  0,0 0,1 0,2 0,3 1,0"
grep -q '<svg' "$work/fold.svg" && grep -q '</svg>' "$work/fold.svg"
result $? "SVG is written"
exits 0 "fold --json" fold 18 --fabric "$ONE" --json
prints "is a placement" '{"shape":[18],"conn":["torus"],"cubes":["c0"],"xpus":['
exits 3 "fold that cannot be" fold 5 --fabric "$ONE"

# Names of dimensions are labels.
exits 0 "named dimensions" place a:4,b:4,c:4 --no-rotate --no-fold --fabric "$ONE" --json
prints "are in the placement" '"dimensions":["a","b","c"]'
printf '%s\n' "$out" | sed 's/"dimensions":\["a","b","c"\],//' >"$work/plain.json"
cmp -s "$work/plain.json" "$work/cube.json"
result $? "and change nothing else"
exits 2 "a name twice" place a:4,A:4 --fabric "$ONE"

# On rails: what a shape means there.
R="rails servers:16 rails:8 ports:2 xpus:8"
exits 0 "a shape on rails" place pp:3,dp:2,cp:2,tp:8 --fabric "$R"
equals "is described" "pp:3,dp:2,cp:2,tp:8 on rails: 96 XPUs on 12 nodes, 8 rails
over nodes: pp:3 (stages, digit 0), dp:2 (digit 1), cp:2 (digit 2)
in a node:  tp:8
circuits:   per rail 12 (topology ring), with --ocs-phases at first 12 (topology 222) of 42 in all"
exits 0 "the same as JSON" place dp:3,cp:3,tp:4 --fabric "$R" --json
equals "to the letter" '{"shape":"dp:3,cp:3,tp:4","section":"rails","xpus":36,"nodes":9,"node_xpus":4,"rails":8,"dimensions":[{"name":"dp","extent":3,"digit":1},{"name":"cp","extent":3,"digit":2},{"name":"tp","extent":4}],"stays":{"topology":"ring","circuits":9},"first":{"topology":"2","circuits":9},"menu_circuits":21}'
exits 3 "one port per NIC" place dp:3,tp:8 --fabric "rails servers:16 rails:8 xpus:8"
says "names two" "two ports per NIC"
exits 3 "too many servers" place dp:20,tp:8 --fabric "$R"
exits 3 "half a node" place dp:2,tp:16 --fabric "$R"
says "says how to write it" "of which the last stays inside a node, with 8"
exits 2 "no nodes to list" place dp:2,tp:8 --fabric "$R" --nodes

# In regions: the servers of every group.
G="region servers:16 degree:6 xpus:8 region:8"
exits 0 "groups in regions" place pp:2,ep:8,tp:4 --fabric "$G"
equals "are named" "pp:2,ep:8,tp:4 on region: 64 XPUs on 8 nodes, 2 groups of 4, 6 optical and 2 packet NICs each
group 0: n[0-3] (region.0)
group 1: n[4-7] (region.0)"
printf 'n[1,3-4]\nn14 # down\n' >"$work/taken"
exits 0 "beside what is taken" place pp:2,ep:8,tp:4 --fabric "$G" --busy "$work/taken" --json
equals "fills the fuller region first" '{"shape":"pp:2,ep:8,tp:4","section":"region","xpus":64,"nodes":8,"groups":[{"region":0,"nodes":["n0","n2","n5","n6"]},{"region":1,"nodes":["n8","n9","n10","n11"]}]}'
exits 0 "one more taken" place ep:8,tp:4 --fabric "$G" --busy "$work/taken" --nodes
equals "as a host list" "n[0,2,5-6]"
exits 4 "no room" place pp:3,ep:8,tp:4 --fabric "$G" --busy "$work/taken"
says "counts what is free" "room for 2 (free servers of the regions: 5 and 7)"
exits 3 "groups larger than regions" place ep:32,tp:4 --fabric "$G"
exits 2 "no experts" place pp:2,tp:8 --fabric "$G"
exits 2 "a node that is not there" place ep:8,tp:4 --fabric "$G" --busy /dev/fd/3 3<<'END'
n99
END

exits 3 "too few of very many cubes" place 258x1014 --fabric "torus cubes:16x16x16 cube:4x4x4 tile:2x2x1"
says "how many it needs" "it needs 4191 cubes, 4096 exist"
exits 1 "a line of 32772 layers" place 4x4x32772 --fabric "torus cubes:16384 cube:4x4x4 tile:2x2x1"
says "is too long for a job's text" "the placement needs 8243 bytes"
# slurmctld says the same at submit, and stands still meanwhile: seconds of CPU at the most.
ulimit -t 4
exits 3 "a long ring that cannot close" place 262143 --fabric "torus cubes:16x16x16 cube:4x4x4 tile:2x2x1"
says "what would fit" "nearest shapes that fit: 262142, 262140, 262138"
exits 3 "a ring longer than the machine" place 1048575 \
	--fabric "torus cubes:16x16x16 cube:4x4x4 tile:2x2x1"
says "what would fit, too" "nearest shapes that fit: 262144, 262142"
finish
