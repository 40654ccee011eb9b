#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# plan, and verify of plans.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1

exits 0 "twelve servers" plan --servers 12 --degree 4 --strategy paper --json
prints "literal head" '{"servers":12,"degree":4,"directed":false,'
prints "literal group" '"groups":[{"members":[0,1,2,3,4,5,6,7,8,9,10,11],'
prints "rings are lists of servers" '"rings":[[0,1,2,3,4,5,6,7,8,9,10,11],['
prints "steps" '"steps":[1,5]}]'
prints "circuits" '"circuits":[{"a":['
prints "switch of a circuit" '],"ocs":'
prints "routes up to 128 servers" '"routes":[{"src":0,"dst":1,"paths":[[0,'
prints "published diameter and hops" '"diameter":3,"average_hops":1.8'
keys=$(printf '%s' "$out" | grep -o '"\(servers\|degree\|directed\|groups\|circuits\|nodes\|routes\|diameter\|average_hops\|max_link_load\)":' | uniq | tr -d '":\n')
case $keys in
serversdegreedirectedgroupscircuits*routesdiameteraverage_hopsmax_link_load*) result 0 "keys in order" ;;
*) result 1 "keys in order" "$keys" ;;
esac
printf '%s\n' "$out" >"$work/plan.json"
exits 0 "verify a plan" verify "$work/plan.json"
equals "valid" valid
sed 's/"circuits":\[{[^}]*},/"circuits":[/' "$work/plan.json" >"$work/cut.json"
exits 1 "a missing circuit" verify "$work/cut.json"

exits 0 "best" plan --servers 64 --degree 4 --strategy best --json
prints "one ring and an expander" 'form an expander'
best=$out
exits 0 "best is the default" plan --servers 64 --degree 4 --json
equals "the same plan" "$best"
exits 0 "directed" plan --servers 16 --degree 4 --directed --json
prints "says so" '"directed":true'
exits 0 "many servers" plan --servers 130 --degree 4 --json
case $out in
*'"paths"'*) result 1 "no routes above 128 servers" ;;
*) result 0 "no routes above 128 servers" ;;
esac
exits 0 "a fabric" plan --fabric "direct servers:12 degree:4" --json
prints "with names" '"nodes":["n0","n1","n2"'
exits 0 "text" plan --servers 12 --degree 4 --strategy paper
prints "totals" "12 servers, degree 4, duplex: 24 circuits"
prints "quality" "diameter 3, average hops 1.8"
prints "rings" "group 0: servers 0-11; ring steps"
exits 0 "text with names" plan --fabric "direct servers:12 degree:4"
prints "of nodes" n11

exits 0 "a picture" plan --servers 12 --degree 4 --directed --svg "$work/plan.svg"
prints "and the text" "12 servers, degree 4, directed: 48 circuits"
if test "$(grep -c '<line' "$work/plan.svg")" = 48 && test "$(grep -c '<circle' "$work/plan.svg")" = 12 &&
	tail -n 1 "$work/plan.svg" | grep -q '^</svg>$'; then
	result 0 "a line for each circuit, a dot for each server"
else
	result 1 "a line for each circuit, a dot for each server"
fi
exits 1 "a picture that cannot be written" plan --servers 12 --degree 4 --svg "$work/none/plan.svg"
printf '{"allreduce":[{"members":[0,2,4,6],"bytes":1000}]}' >"$work/demand"
exits 0 "demand" plan --servers 8 --degree 4 --demand "$work/demand" --json
prints "its group" '"members":[0,2,4,6]'
printf '{"allreduce":[{"members":[0,1,2,3],"bytes":10}],"mp":[[0,0,90,0],[0,0,0,90],[0,0,0,0],[0,0,0,0]]}' >"$work/demand"
exits 0 "traffic between pairs" plan --servers 4 --degree 3 --demand "$work/demand" --strategy paper
prints "has circuits" "2 circuits join pairs with much traffic"
prints "and a tax" "bandwidth tax of the demand 1.000"
printf '{"allreduce":[{"members":[0,99],"bytes":1}]}' >"$work/demand"
exits 2 "demand for servers that are not there" plan --servers 8 --degree 4 --demand "$work/demand"
printf '{"allreduce":' >"$work/demand"
exits 2 "demand that is no JSON" plan --servers 8 --degree 4 --demand "$work/demand"
exits 2 "nothing to plan for" plan
exits 2 "servers alone" plan --servers 12
exits 2 "a strategy that does not exist" plan --servers 12 --degree 4 --strategy fast
exits 2 "no direct section" plan --fabric "static:4x4x4 tile:1x1x1"
exits 3 "more than the fabric has" plan --fabric "direct servers:12 degree:4" --servers 13

exits 0 "a failed interface" plan --servers 20 --degree 4 --failed 3:0 --json
case $out in
*'[3,0]'*) result 1 "is in no circuit" ;;
*) result 0 "is in no circuit" ;;
esac
exits 0 "a plan to repair" plan --servers 20 --degree 4 --json
printf '%s\n' "$out" >"$work/plan.json"
exits 0 "repaired" plan --repair "$work/plan.json" --failed 3:0,4:1 --json
prints "says so" "; repaired: "
case $out in
*'[3,0]'* | *'[4,1]'*) result 1 "without what failed" ;;
*) result 0 "without what failed" ;;
esac
printf '%s\n' "$out" >"$work/repaired.json"
exits 0 "and right" verify "$work/repaired.json"
exits 2 "a repair of nothing" plan --repair "$work/plan.json"
exits 2 "a repair for other servers" plan --repair "$work/plan.json" --failed 3:0 --servers 4
says "what goes with it" "only --json and --svg go with it"
printf '{"servers":2}' >"$work/none.json"
exits 2 "a repair of what is no plan" plan --repair "$work/none.json" --failed 3:0
says "which file that is" "none.json is no plan to repair: "
exits 2 "no such server" plan --repair "$work/plan.json" --failed 20:0
exits 2 "no such interface" plan --servers 20 --degree 4 --failed 3:4
for bad in '' 3 3: :1 3:0, 3:0x '3:0,,4:1' -1:0; do
	exits 2 "failed '$bad'" plan --servers 20 --degree 4 --failed "$bad"
done
printf '{"allreduce":[{"members":[0,1,2,3,4,5],"bytes":10}],"mp":[[0,0,90,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0]]}' >"$work/demand"
exits 0 "three paths" plan --servers 6 --degree 4 --demand "$work/demand" --paths 3 --json
prints "with equal shares" '"weights":[0.333333'
finish
