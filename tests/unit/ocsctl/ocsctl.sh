# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# Sourced by the tests that drive the real ocsctl.  TAP on stdout.

unset OCS_CONF SLURM_CONF
ocsctl=${OCS_BUILD_DIR:?}/src/ocsctl/ocsctl
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
complaints=$work/err
. "${srcdir:-.}/tap.sh" || exit 99

# Runs ocsctl; $out, $work/err and $code are what it did.
run() {
	out=$("$ocsctl" "$@" 2>"$work/err" </dev/null)
	code=$?
}

# exits CODE NAME ARGUMENT...: and prints one error line exactly when CODE is not 0
exits() {
	want=$1 name=$2
	shift 2
	run "$@"
	lines=$(wc -l <"$work/err")
	if [ "$want" = 0 ]; then
		[ "$code" = 0 ] && [ "$lines" -eq 0 ]
	else
		[ "$code" = "$want" ] && [ "$lines" -eq 1 ] && grep -q '^ocsctl: .' "$work/err"
	fi
	result $? "$name (exit $want)" "exit $code
$out"
}

# says NAME TEXT: the error line holds TEXT
says() {
	grep -qF -- "$2" "$work/err"
	result $? "$1" "wanted: $2"
}

# prints NAME TEXT: the output holds TEXT
prints() {
	case $out in
	*"$2"*) result 0 "$1" ;;
	*) result 1 "$1" "wanted: $2
got: $out" ;;
	esac
}

# omits NAME TEXT: the output does not hold TEXT
omits() {
	case $out in
	*"$2"*) result 1 "$1" "not wanted: $2
got: $out" ;;
	*) result 0 "$1" ;;
	esac
}

# equals NAME TEXT: the output is TEXT
equals() {
	[ "$out" = "$2" ]
	result $? "$1" "wanted: $2
got: $out"
}

finish() {
	echo "1..$number"
}
