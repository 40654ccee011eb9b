#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# What bash offers behind each program.

number=0
bin=$(mktemp -d) || exit 99
trap 'rm -rf "$bin"' EXIT
cat >"$bin/ocsctl" <<'SH'
#!/bin/sh
case "$1 $2" in
"show cube") printf 'CUBE  SECTION\nc0    pod\nc1    pod\n' ;;
"show switch") printf 'SWITCH  STATE\nocs-x  up\nocs-y  up\n' ;;
"show job") printf 'JOB  USER\n12   ann\n' ;;
"check ") printf 'fabric x\nsection pod: torus\nsection ring: direct\n' ;;
*) exec "$REAL/src/ocsctl/ocsctl" "$@" ;;
esac
SH
printf '#!/bin/sh\nexec "$REAL/src/sim/ocs-sim" "$@"\n' >"$bin/ocs-sim"
printf '#!/bin/sh\nexec "$REAL/src/ocsd/ocsd" "$@"\n' >"$bin/ocsd"
printf '#!/bin/sh\nexec "$REAL/src/emulator/ocs-emulator" "$@"\n' >"$bin/ocs-emulator"
printf '#!/bin/sh\nexec "$REAL/src/node/ocs-node" "$@"\n' >"$bin/ocs-node"
printf '#!/bin/sh\necho 13\n' >"$bin/squeue"
chmod +x "$bin"/*
export REAL=${OCS_BUILD_DIR:?} PATH=$bin:$PATH
. "${OCS_SOURCE_DIR:?}/etc/bash-completion/ocsctl"
. "$OCS_SOURCE_DIR/etc/bash-completion/ocs-sim"
. "$OCS_SOURCE_DIR/etc/bash-completion/program"

# offers WANTED WORD...: the last of the words is being typed
offers() {
	local want=$1 got
	shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	case $1 in
	ocsctl) _ocsctl ;;
	ocsd | ocs-emulator | ocs-node) _ocs_program ;;
	*) _ocs_sim ;;
	esac
	got=${COMPREPLY[*]}
	number=$((number + 1))
	if [ "$got" = "$want" ]; then
		echo "ok $number - $*"
	else
		echo "not ok $number - $*"
		echo "# wanted '$want', got '$got'"
	fi
}

offers "--fabric --foreground" ocsd --f
offers "warning" ocsd --log-level w
offers "warning" ocsd --log-level = w
offers "$bin/ocsd" ocsd --state "$bin/ocsd"
offers "" ocsd --socket x
offers "prepare" ocs-node prepa
offers "--section --shape" ocs-node prepare --s
offers "" ocs-node prepare --epoch ""
offers "--log --login" ocs-emulator --log
offers "patch" ocs-emulator --control x pa
offers "place plan" ocsctl pl
offers "--help --version" ocsctl --
offers "fabric cube port switch job circuit phases region" ocsctl show ""
offers "cube node port switch xpu" ocsctl drain ""
offers "port" ocsctl fail ""
offers "c0 c1" ocsctl drain cube ""
offers "c0: c1:" ocsctl drain xpu ""
offers "ocs-x: ocs-y:" ocsctl fail port ""
offers "12 ocs-x ocs-y" ocsctl show circuit ""
offers "ocs-y" ocsctl resume switch ocs-y
offers "12 13" ocsctl explain 1
offers "pod ring" ocsctl map --section ""
offers "pod" ocsctl map --section = p
offers "torus" ocsctl place 4x4 --conn-type = to
offers "c0 c1" ocsctl reserve --cube ""
offers "" ocsctl migrate --cube ""
offers "--no-rotate --no-fold --nodes" ocsctl place --n
offers "advise" ocsctl help ad
offers "best best-effort" ocs-sim --policy be
offers "firstfit" ocs-sim --produce-policy = firstf
offers "rfold-2025 rfold-2025b tpu-v4" ocs-sim --workload ""
offers "smallest shortest" ocs-sim --order s
offers "--produce-policy --produce-fabric --produce-hours" ocs-sim --produce
echo "1..$number"
