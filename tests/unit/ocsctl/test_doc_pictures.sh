#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# The pictures of doc/choosing-a-shape.md are what its own commands draw, and what it says
# about shapes is so.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
doc=${srcdir:-.}/../../doc
page=$doc/choosing-a-shape.md
F=$(sed -n 's/^    F="\(.*\)"$/\1/p' "$page")
[ -n "$F" ]
result $? "the page describes its fabric"

# ocsctl fold SHAPE [OPTION...] --fabric "$F" --svg FILE
sed -n 's/^    ocsctl fold \(.*\) --fabric "$F" --svg \(.*\)$/\1|\2/p' "$page" >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 6 ]
result $? "there are commands"
while IFS='|' read -r words file; do
	# shellcheck disable=SC2086 # a shape and options
	exits 0 "fold $words" fold $words --fabric "$F" --svg "$work/$file"
	cmp -s "$work/$file" "$doc/$file"
	result $? "$file is what it draws" "draw it again with: ocsctl fold $words --fabric \"$F\" --svg doc/$file"
	grep -q "^!\[.*\]($file)\$" "$page"
	result $? "$file is shown"
done <"$work/commands"
for file in "$doc"/fold-*.svg; do
	grep -q "|${file##*/}\$" "$work/commands"
	result $? "${file##*/} has its command"
done

# The table of refusals: shapes in the last column fit.
for shape in 6x6 6x4 18x2x2 8x6x2 8x8x2x2; do
	exits 0 "$shape fits" fold $shape --fabric "$F"
done
exits 3 "6x5" fold 6x5 --fabric "$F"
says "why" "a ring of 5 cannot close on 4x4x4 cubes; nearest shapes that fit: 6x6, 6x4"
says "and how" "--conn-type=torus,mesh it fits"
exits 0 "6x5 with a line" fold 6x5 --conn-type=torus,mesh --fabric "$F"
exits 3 "6x6x2" fold 6x6x2 --fabric "$F"
says "why" "its rings cannot all close on 4x4x4 cubes; nearest shapes that fit: 18x2x2, 8x6x2, 8x4x2"
exits 3 "4x4x4x4" fold 4x4x4x4 --fabric "$F"
says "why" "need 8 links at an XPU, which has 6; nearest shapes that fit: 8x8x2x2"
exits 3 "16x16x16 on four cubes" fold 16x16x16 --fabric "torus cubes:1x1x4 cube:4x4x4 tile:2x2x1"
says "what" "nearest shapes that fit: 8x8x4"
exits 0 "idle XPUs" fold 7x3 --conn-type=mesh --fabric "$F"
prints "are 3" "idle:  3 XPUs"

# What a picture holds: every coordinate, every link once, both ends of every circuit.
draw() { # SHAPE FABRIC OPTION...
	shape=$1 fabric=$2
	shift 2
	exits 0 "draw $shape" fold "$shape" --fabric "$fabric" --svg "$work/p.svg" "$@"
	labels=$(grep -c 'font-size="9"' "$work/p.svg")
	plain=$(grep -c '^<path d="M[0-9]* [0-9]*L[^>]*"/>$' "$work/p.svg")
	dashed=$(grep -c '^<path .*dasharray="4 3"/>$' "$work/p.svg")
}
draw 4x8x2 "$F"
[ "$labels" = 64 ] && [ "$dashed" = 48 ] && [ $((plain - dashed + 24)) = 160 ]
result $? "4x8x2: 64 XPUs, 160 links of which 24 are circuits" "$labels $plain $dashed"
draw 3x4 "$F" --conn-type=mesh
[ "$dashed" = 0 ] && [ "$plain" = 17 ]
result $? "3x4 mesh: 17 links" "$labels $plain $dashed"
draw 8x4x8_twisted "torus cubes:1x1x4 cube:4x4x4 tile:2x2x1"
[ "$labels" = 256 ] && [ "$dashed" = 384 ] && [ $((plain - dashed + 192)) = 768 ]
result $? "twisted: 768 links of which 192 are circuits" "$labels $plain $dashed"
draw 2x2x4_twisted "torus cubes:1x1x2 cube:2x2x2 tile:1x1x1"
[ "$labels" = 16 ] && [ "$dashed" = 48 ] && [ $((plain - dashed + 24)) = 48 ]
result $? "twisted on cubes of two: wraps of extents of two" "$labels $plain $dashed"
draw 16x16 "static:16x16x16 tile:1x1x1"
[ "$labels" = 256 ] && [ "$dashed" = 64 ]
result $? "a static torus: its wraps" "$labels $plain $dashed"
draw 2x2x2x2 "torus cubes:8x8x8 cube:4x4x4 tile:4x4x4"
grep -q '>idle<' "$work/p.svg"
result $? "idle XPUs are drawn"
finish
