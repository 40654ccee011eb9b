#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# Command lines: what is refused, how, and with which status.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
F="torus cubes:2x1x1 cube:4x4x4 tile:2x2x1"

exits 2 "no command"
says "it tells how to go on" "ocsctl help"
exits 2 "unknown command" shw
says "the nearest command is named" "did you mean 'show'"
exits 2 "far from any command" zzzzzzzz
exits 2 "option before the command" --json show
exits 2 "unknown long option" place 4x4 --sectoin x
says "the nearest option is named" "did you mean --section?"
exits 2 "unknown short option" place 4x4 -x
exits 2 "option of another command" place 4x4 --strategy best
exits 2 "option without its value" place 4x4 --conn
says "which one" "--conn needs a value"
exits 2 "flag with a value" place 4x4 --json=3
exits 2 "number that is none" plan --servers twelve --degree 4
exits 2 "number out of range" plan --servers 0 --degree 4
exits 2 "number too large" plan --servers 99999999999999999999 --degree 4
exits 2 "epoch zero" apply 12 --epoch 0
exits 2 "operand missing" place
says "usage is shown" "usage: ocsctl place SHAPE"
exits 2 "operand too much" place 4x4 5x5
exits 2 "what to show" show
exits 2 "unknown thing to show" show sockets
exits 2 "unknown thing to drain" drain rack r1
exits 2 "port without switch" drain port 17
exits 2 "a switch that fails" fail switch ocs-x-0-0
exits 2 "failed port without switch" fail port 17
exits 2 "nodes to prepare missing" prepare 12
exits 2 "job to prepare is no number" prepare twelve n0
exits 2 "no number of trees" plan --servers 8 --degree 8 --trees none
exits 3 "no room for trees" plan --servers 8 --degree 5 --trees 1
exits 2 "job that is no number" explain 12_x
says "how to find it" "squeue"
exits 1 "an element of an array, without Slurm" explain 12_3 --ocsd "unix:$work/nobody.sock"
says "whom it would ask" "cannot run squeue"
exits 2 "job zero" apply 0 --node n0
exits 2 "apply for no node" apply 1
says "what is missing" "--node"
exits 2 "no ocs.yaml anywhere" place 4x4 --section x
says "where it was looked for" "slurm/ocs.yaml"
exits 2 "two fabrics" check x.yaml --fabric "$F"
exits 2 "json and nodes" place 4x4 --fabric "$F" --json --nodes

exits 0 "help of help" help help
exits 2 "help of two" help place map
says "what is too much" "'map' is too much; usage: ocsctl help"
exits 2 "an address that is none" show job --ocsd nonsense
says "what would be one" "unix:/path, host:port"
exits 2 "a section that is not there" place 4x4 --fabric "$F" --section pod
says "which there are" "has no section 'pod'; it has: torus"
exits 2 "no direct section" plan --fabric "$F"
says "which there are instead" "its sections: torus"
exits 1 "a picture in no folder" fold 4x4 --fabric "$F" --svg "$work/none/x.svg"
says "the file that was named" "cannot write $work/none/x.svg: No such file"

exits 0 "help" help
for command in check migrate show map place verify fold plan forward nccl-check advise reserve explain apply prepare \
	release drain fail resume reconcile version; do
	prints "help lists $command" "
  $command "
done
for command in check migrate show map place verify fold plan forward nccl-check advise reserve explain apply prepare \
	release drain fail resume reconcile version; do
	exits 0 "$command --help" $command --help
	prints "its usage line" "Usage: ocsctl $command"
	exits 0 "help $command" help $command
done
exits 0 "version" version
prints "with a number" "slurm-ocs "
exits 0 "--version" --version

exits 0 "check a synthetic line" check "$F"
prints "sections are described" "2 cubes of 4x4x4"
exits 0 "check --json" check "$F" --json
prints "valid" '{"valid":true,'
exits 0 "check --json of a file" check "$OCS_SOURCE_DIR/examples/ocs-torus.yaml" --json
for fact in '"cube_list":"c[0-' '"node_list":"' '"ports":{"switch":"' '"dialect":"' '"used":' '"ocsd":{"socket":'; do
	prints "has what the text has: $fact" "$fact"
done
exits 0 "check --fabric" check --fabric "$F"
for example in "${OCS_SOURCE_DIR:?}"/examples/*.yaml; do
	exits 0 "check ${example##*/}" check "$example"
	prints "is described" "section "
done
exits 2 "a fabric that is none" check "torus cubes:0x1x1 cube:4x4x4 tile:2x2x1"
exits 1 "a file that is not there" check "$work/absent.yaml"
printf 'nonsense: [1\n' >"$work/bad.yaml"
exits 2 "a file that is no YAML" check "$work/bad.yaml"
says "with its line" "bad.yaml:"
OCS_CONF=$work/absent2.yaml
export OCS_CONF
exits 1 "OCS_CONF is honoured" check
says "by name" absent2.yaml
unset OCS_CONF
mkdir "$work/etc"
printf 'nonsense: [1\n' >"$work/etc/ocs.yaml"
SLURM_CONF=$work/etc/slurm.conf
export SLURM_CONF
exits 2 "ocs.yaml beside slurm.conf" check
says "is the one read" "$work/etc/ocs.yaml:"
unset SLURM_CONF

N=unix:$work/nobody.sock
exits 5 "show without ocsd" show fabric --ocsd "$N"
exits 5 "map without ocsd" map --ocsd "$N" --fabric "$F"
exits 5 "explain without ocsd" explain 1 --ocsd "$N"
exits 5 "apply without ocsd" apply 1 --epoch 1 --node n0 --ocsd "$N"
exits 5 "release without ocsd" release 1 --ocsd "$N"
exits 5 "drain without ocsd" drain cube c0 --ocsd "$N"
exits 5 "reconcile without ocsd" reconcile --ocsd "$N"
exits 5 "place now without ocsd" place 4x4 --fabric "$F" --ocsd "$N"
before=$(date +%s)
exits 5 "apply --wait keeps trying" apply 1 --epoch 1 --node n0 --wait 2 --ocsd "$N"
[ $(($(date +%s) - before)) -ge 1 ]
result $? "as long as it was told" "$before $(date +%s)"

exits 2 "reserve nothing" reserve --duration 5 --users root --fabric "$F"
says "what could be reserved" "one of SHAPE, --cubes, --cube and --switch"
exits 2 "reserve two things" reserve 4x4x4 --cubes 1 --duration 5 --users root --fabric "$F"
exits 2 "reserve without an end" reserve 4x4x4 --users root --fabric "$F"
says "with an example" "--duration=2:00:00"
exits 2 "reserve for nobody" reserve 4x4x4 --duration 5 --fabric "$F"
for bad in "" x 0 -1 1-2-3 1:2:3:4 1- 99999999999 3h; do
	exits 2 "reserve for '$bad'" reserve 4x4x4 --users root --duration="$bad" --fabric "$F"
	says "forms of a duration" "2-12 (days and hours)"
done
for bad in "" soon now+ now-1 now+2years 25:00 2026-13-01 2026-02-31 2026-12-01T now+99999999999; do
	exits 2 "reserve from '$bad'" reserve 4x4x4 --users root --duration=5 --start="$bad" --fabric "$F"
	says "forms of a time" "now+2hours"
done
for bad in "" "a b" "a,b" "a=b" "a/b"; do
	exits 2 "reserve under the name '$bad'" reserve 4x4x4 --users root --duration=5 --name="$bad" --fabric "$F"
done
exits 2 "reserve nodes that Slurm may exchange" reserve 4x4x4 --users root --duration=5 \
	--flags=maint,Replace_Down --fabric "$F"
exits 2 "reserve in the past" reserve 4x4x4 --users root --duration=5 --start=2020-01-01 --fabric "$F"
exits 2 "reserve a shape that is none" reserve 4xx --users root --duration=5 --fabric "$F"
T='<system version="1"><cpu numaid="0" arch="arm64"/></system>'
printf '%s\n' "$T" >"$work/good.xml"
exits 0 "nccl-check of a topology file" nccl-check "$work/good.xml"
prints "says what it is" "topology file"
printf '<?xml version="1.0"?>\n<system version="1">\n<cpu\tnumaid="0"/></system>\n' >"$work/bad.xml"
exits 1 "nccl-check of a bad one" nccl-check "$work/bad.xml"
prints "every fault with its line: the prolog" "bad.xml:1: error: an XML prolog"
prints "and the tab" "bad.xml:3: error: a tab"
says "how many" "2 errors"
exits 1 "nccl-check of both" nccl-check "$work/good.xml" "$work/bad.xml" --json
prints "one line a file" '"kind":"topology","valid":true,"elements":2,"faults":[]}'
prints "with faults" '"line":3,"error":true,"fatal":true,"text":"a tab'
exits 1 "nccl-check of a file that is not there" nccl-check "$work/absent.xml"
says "by name" absent.xml
exits 1 "nccl-check of a folder" nccl-check "$work"
exits 2 "nccl-check of nothing" nccl-check
out=$(printf '%s' "$T" | "$ocsctl" nccl-check - 2>"$work/err")
result $? "nccl-check of standard input" "$out"
"$ocsctl" check "$F" >/dev/full 2>"$work/err"
[ $? = 1 ]
result $? "a full disk is an error"
finish
