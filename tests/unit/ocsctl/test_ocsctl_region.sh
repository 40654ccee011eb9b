#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# region plan.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1

# Six servers in a ring of large transfers, and a little to everybody.
echo '[[0,900,9,9,9,900],[900,0,900,9,9,9],[9,900,0,900,9,9],[9,9,900,0,900,9],[9,9,9,900,0,900],[900,9,9,9,900,0]]' >"$work/ring.json"
exits 0 "two ports" region plan --matrix "$work/ring.json" --alpha 2 --beta 1 --json
prints "time first" '{"time":'
prints "the ring gets the circuits" '"circuits":[[0,1,1],[0,5,1],[1,2,1],[2,3,1],[3,4,1],[4,5,1]]'
prints "nothing is relayed" '"relayed":0'
prints "bounds" '"bounds":{"ports":609,"server":609,"linear":609}'
printf '%s\n' "$out" >"$work/kept.json"
exits 0 "ways" region plan --matrix "$work/ring.json" --alpha 2 --beta 1 --routes --json
printf '%s\n' "$out" | python3 -c '
import json, sys
ways = json.load(sys.stdin)["shares"]
pairs = {}
for a, b, relay, first, second, share in ways:
    pairs[a, b] = pairs.get((a, b), 0) + share
sys.exit(not (len(pairs) == 30 and all(abs(s - 1) < 1e-4 for s in pairs.values()) and
              all(w[2] == -1 and not w[4] for w in ways) and any(w[3] for w in ways)))'
result $? "the ways of a pair carry all that it sends"
exits 2 "ways as text" region plan --matrix "$work/ring.json" --routes
exits 0 "text" region plan --matrix "$work/ring.json" --alpha 2 --beta 1
prints "a summary" "6 servers: done after 609 tokens per NIC rate, 1.000 of the bound"
prints "a table" "     0       1         1     900   900"

exits 0 "a picture" region plan --matrix "$work/ring.json" --alpha 2 --beta 1 --svg "$work/ring.svg" --json
python3 -c '
import re, sys, xml.dom.minidom
text = open(sys.argv[1]).read()
xml.dom.minidom.parseString(text)
cells = re.findall(r"<rect x=.*?/>", text)
numbers = [int(n) for n in re.findall(r"<text [^>]*>(\d+)</text>", text)]
sys.exit(not (len(cells) == 36 and numbers[:12] == [n for n in range(6) for _ in "rc"] and sum("stroke" in c for c in cells) == 12 and
              sum("rgb(80,80,255)" in c for c in cells) == 12))' "$work/ring.svg"
result $? "a cell a pair, a frame for each circuit, the darkest where most is sent"

echo '{"tokens":[[5,1,1,1],[1,5,1,1],[900,1,5,1],[1,900,1,5]]}' >"$work/ranks.json"
exits 0 "ranks of a server" region plan --matrix "$work/ranks.json" --servers 2 --alpha 2 --beta 1 --json
prints "two servers" '"circuits":[[0,1,2]]'
exits 2 "no even servers" region plan --matrix "$work/ranks.json" --servers 3
says "why" "4 ranks do not fill 3 servers evenly"

# What exists is kept, unless changing it pays.
echo '[[0,9,9,900,9,900],[9,0,900,9,900,9],[9,900,0,9,9,900],[900,9,9,0,900,9],[9,900,9,900,0,9],[900,9,900,9,9,0]]' >"$work/other.json"
exits 0 "keep all" region plan --matrix "$work/other.json" --alpha 2 --beta 1 --keep "$work/kept.json" --change 0 --json
prints "nothing cut" '"cut":0'
prints "the same circuits" '"circuits":[[0,1,1],[0,5,1],[1,2,1],[2,3,1],[3,4,1],[4,5,1]]'
exits 0 "a slow switch" region plan --matrix "$work/other.json" --alpha 2 --beta 1 --keep "$work/kept.json" --switching 1e9 --json
prints "nothing cut" '"cut":0'
exits 0 "a fast switch" region plan --matrix "$work/other.json" --alpha 2 --beta 1 --keep "$work/kept.json" --switching 10,1 --json
prints "all that helps" '"time":609'
exits 0 "a slow switch, and much to send" region plan --matrix "$work/other.json" --alpha 2 --beta 1 --keep "$work/kept.json" \
	--switching 1e6 --remaining 1000000 --json
prints "all that helps" '"time":609'
exits 0 "a slow switch behind a long computation" region plan --matrix "$work/other.json" --alpha 2 --beta 1 \
	--keep "$work/kept.json" --switching 1e6 --window 1000000 --json
prints "all that helps" '"time":609'

# One server that all want: circuits to it go round over others.
echo '[[0,0,0,0,0,0],[600,0,0,0,0,0],[600,0,0,0,0,0],[600,0,0,0,0,0],[600,0,0,0,0,0],[600,0,0,0,0,0]]' >"$work/popular.json"
exits 0 "without relays" region plan --matrix "$work/popular.json" --alpha 3 --beta 1 --json
prints "two of five have packets only" '"time":1200'
exits 0 "with relays" region plan --matrix "$work/popular.json" --alpha 3 --beta 1 --relay --json
printf '%s' "$out" | python3 -c 'import json, sys; p = json.load(sys.stdin); sys.exit(not (p["time"] <= 1.05 * p["bound"] and p["relayed"] > 0))'
result $? "near the bound" "$out"

exits 2 "no operand" region
exits 2 "another operand" region chekc
says "what there is" "'chekc' is none of check, plan, predict, replay and show"
exits 2 "no matrix" region plan
says "an example" "such as [[0,5],[7,0]]"
exits 1 "no such file" region plan --matrix "$work/none"
echo '[[0,1],[1]]' >"$work/bad.json"
exits 2 "a short row" region plan --matrix "$work/bad.json"
says "which" "row 1 is not a list of 2 numbers"
echo '[[0,-1],[1,0]]' >"$work/bad.json"
exits 2 "a negative number" region plan --matrix "$work/bad.json"
says "where" "row 0, column 1"
exits 2 "an unknown policy" region plan --matrix "$work/ring.json" --policy fast
says "which there are" "paper, greedy and best"
exits 2 "change without keep" region plan --matrix "$work/ring.json" --change 2
says "what is missing" "--change needs --keep"
exits 2 "keep without a limit" region plan --matrix "$work/ring.json" --keep "$work/kept.json"
exits 2 "keep with greedy" region plan --matrix "$work/ring.json" --keep "$work/kept.json" --change 1 --policy greedy
exits 2 "more circuits than ports" region plan --matrix "$work/ring.json" --alpha 1 --keep "$work/kept.json" --change 1
says "whose" "server 0 has 2 circuits and 1 ports"
echo '[[0,1,1],[1,0,1]]' >"$work/bad.json"
exits 2 "a pair twice" region plan --matrix "$work/ring.json" --keep "$work/bad.json" --change 1
exits 2 "a switching time that is none" region plan --matrix "$work/ring.json" --keep "$work/kept.json" --switching soon
says "what it is" "FIRST or FIRST,EACH"

# Two layers of three experts that take turns: the last pass is always wrong, the layer before right.
python3 -c '
import json
turn = [[8, 1, 1], [1, 8, 1], [1, 1, 8]]
print(json.dumps([[turn[p % 3], turn[p % 3]] for p in range(90)]))' >"$work/trace.json"
exits 0 "predict" region predict --trace "$work/trace.json" --json
printf '%s' "$out" | python3 -c '
import json, sys
m = {x["method"]: x for x in json.load(sys.stdin)["methods"]}
right = m["previous"]["by_layer"][1] == [0, 1] and m["previous"]["top_by_layer"][1] == [1, 1, 1, 1] and m["innovation"]["by_layer"][1][1] > 0.9
sys.exit(not (right and m["last"]["by_layer"][1] == [1.4, 0] and m["chosen"]["by_layer"][1][0] < 0.1))'
result $? "the layer before tells" "$out"
exits 0 "predict, text" region predict --trace "$work/trace.json"
prints "what was counted" "90 passes of 2 layers of 3 experts; the first 10 are not counted"
prints "shares and the largest experts" "METHOD         L1  TOP 1  TOP 2  TOP 4"
prints "each layer" "LAYER     L1  TOP 1  TOP 2  TOP 4"
python3 -c '
import json, random, sys
random.seed(4)
# two ranks, of which one always chooses the same and the other anything
print(json.dumps([[[[90, 5, 3, 2], [random.randrange(100) for _ in range(4)]]] for _ in range(60)]))' >"$work/gates.json"
exits 0 "predict for each rank" region predict --trace "$work/gates.json" --json
printf '%s\n' "$out" | python3 -c '
import json, sys
last = [m for m in json.load(sys.stdin)["methods"]][2]
sys.exit(not (last["method"] == "last" and 0.5 < last["hit"] < 0.9))'
result $? "half of the ranks are foretold"
exits 0 "replay a record of gates" region replay --trace "$work/gates.json" --alpha 1 --beta 1
exits 0 "show a record" region show --trace "$work/gates.json" --alpha 1 --beta 1
prints "each layer" "pass 59, layer 0"
exits 0 "show a matrix" region show --matrix "$work/ring.json" --alpha 2 --beta 1
prints "its numbers" "  0       900    9    9    9  900"
prints "its circuits" "  0         1    .    .    .    1"
echo '{"tokens":[[0,5],[2000,0]],"circuits":[[0,1,3]],"achieved":[[0,0.25],[2.5,0]],"step":"layer 1 of 7"}' >"$work/state.json"
exits 0 "show a state" region show --matrix "$work/state.json" --svg "$work/state.svg"
exits 0 "show a state as text" region show --matrix "$work/state.json"
prints "when" "layer 1 of 7"
prints "amounts, circuits and rates" "  1 2.0k           1    3           1 2.50"
python3 -c '
import re, sys, xml.dom.minidom
text = open(sys.argv[1]).read()
xml.dom.minidom.parseString(text)
sys.exit(not (len(re.findall(r"<rect x=", text)) == 12 and text.count("layer 1 of 7") == 1))' "$work/state.svg"
result $? "three maps of four cells"
echo '{"tokens":[[0,5],[2000,0]],"achieved":[[0,1,2],[2,0,2],[1,1,1]]}' >"$work/bad.json"
exits 2 "other servers" region show --matrix "$work/bad.json"
exits 2 "nothing to show" region show
exits 2 "both" region show --matrix "$work/state.json" --trace "$work/gates.json"
exits 2 "a picture of switches" show switch --svg "$work/switch.svg"
says "what is drawn" "only 'ocsctl show region' draws"
exits 2 "no trace" region predict
echo '[[[1,2],[1,2]],[[1,2]]]' >"$work/bad.json"
exits 2 "a pass without a layer" region predict --trace "$work/bad.json"
says "which" "pass 1 has not 2 layers"
echo '[[[1,2],[1,-2]]]' >"$work/bad.json"
exits 2 "a negative load" region predict --trace "$work/bad.json"
says "which" "expert 1 of layer 1 of pass 0"
echo '[[[1,2],[1,2]]]' >"$work/bad.json"
exits 2 "too few passes" region predict --trace "$work/bad.json"
exits 2 "no list" region predict --trace "$work/kept.json"

# Two layers that want one ring and another one: 609 with their own circuits, 1827 by packets alone.
python3 -c '
import json
ring = json.load(open("'"$work"'/ring.json")), json.load(open("'"$work"'/other.json"))
print(json.dumps([[ring[0], ring[1]]] * 24))' >"$work/rings.json"
exits 0 "replay" region replay --trace "$work/rings.json" --alpha 2 --beta 1 --window 100 --switching 50,1 --json
printf '%s' "$out" | python3 -c '
import json, sys
m = {x["mode"]: x for x in json.load(sys.stdin)["modes"]}
computing = 2 * 2 * 100 + 2 * 2 * 200
right = m["packets"]["time"] == 8 * 1827 + computing and m["packets"]["exchanges"] == m["static"]["exchanges"] == 0
right = right and m["following"]["time"] == 8 * 609 + computing and m["following"]["predicted"] > 0
sys.exit(not (right and m["static"]["time"] > m["following"]["time"]))'
result $? "a fast switch is not seen" "$out"
exits 0 "replay, slow switch" region replay --trace "$work/rings.json" --alpha 2 --beta 1 --window 100 --switching 1e9 --json
printf '%s' "$out" | python3 -c '
import json, sys
m = {x["mode"]: x for x in json.load(sys.stdin)["modes"]}
sys.exit(not (m["following"]["time"] == m["packets"]["time"] and m["following"]["exchanges"] == 0))'
result $? "a switch of a thousand years is left alone" "$out"
exits 0 "replay, text" region replay --trace "$work/rings.json" --alpha 2 --beta 1
prints "a table" "packets    14616"
exits 2 "no trace to replay" region replay
echo '[[[[0,1],[1,0]]],[[[0,1],[1]]]]' >"$work/bad.json"
exits 2 "a bad matrix" region replay --trace "$work/bad.json"
says "which" "layer 0 of pass 1"
echo '[[[[0,1],[1,0]]],[]]' >"$work/bad.json"
exits 2 "a pass without layers" region replay --trace "$work/bad.json"
says "which" "pass 1 has not 1 layers"

echo "1..$number"
