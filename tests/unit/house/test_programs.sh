#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# --help, --version and what is wrong on the command line, alike in all programs; and
# --help of the scripts.

build=${OCS_BUILD_DIR:?} source=${OCS_SOURCE_DIR:?}
version=
# Defaults name folders of the prefix, which may be long.
prefix=$(sed -n 's/^S\["prefix"\]="\(.*\)"$/\1/p' "$build/config.status")

. "$source/tests/unit/tap.sh"

for program in ocsd/ocsd ocsctl/ocsctl sim/ocs-sim rails/ocs-replay emulator/ocs-emulator node/ocs-node \
	rails/ocs-rails-agent rails/ocs-rails-controller netsim/ocs-netsim moe/ocs-moe-controller; do
	path=$build/src/$program name=${program#*/}
	[ -n "$version" ] || version=$("$path" --version)
	for option in --version -V; do
		seen=$("$path" $option 2>&1) && [ "$seen" = "$version" ] && [[ $seen == "slurm-ocs "[0-9]* ]]
		result $? "$name $option" "$seen"
	done
	long=$("$path" --help 2>&1) && [[ $long == "Usage: $name "* && $long == *$'\n\n'[A-Z]*.$'\n'* ]]
	result $? "$name --help begins with the usage, and says what it does" "$long"
	[[ $long == *$'\n'"  -h, --help"*"this text"$'\n'"  -V, --version"*"the version"* ]]
	result $? "and has these two options" "$long"
	[ -n "$prefix" ] && [ -z "$(printf '%s\n' "${long//"$prefix"//usr}" | awk 'length > 100')" ]
	result $? "in lines that a terminal holds" "$long"
	seen=$("$path" -h 2>&1) && [ "$seen" = "$long" ]
	result $? "$name -h is the same" "$seen"
	for word in --no-such-option -%; do
		seen=$("$path" $word 2>&1 >/dev/null)
		code=$?
		[ $code = 2 ] && [[ $seen == "$name: "*"$word"* && $seen != *$'\n'* ]]
		result $? "$name $word: one line, exit status 2" "exit $code: $seen"
	done
	[ "$name" != ocsctl ] || continue # its options come after a command
	seen=$("$path" --versoin 2>&1 >/dev/null)
	[ $? = 2 ] && [[ $seen == "$name: "*"did you mean --version?" && $seen != *$'\n'* ]]
	result $? "$name: the option that was meant" "$seen"
	seen=$("$path" --help=all 2>&1 >/dev/null)
	[ $? = 2 ] && [[ $seen == "$name: "*"takes no value"* && $seen != *$'\n'* ]]
	result $? "$name: an option without a value has none" "$seen"
done

for script in check demo scripts/build scripts/deps scripts/package scripts/slurm-build scripts/source; do
	[ -e "$source/$script" ] || continue
	seen=$(cd "$source" && timeout 10 "./$script" --help 2>&1) && [[ $seen == [A-Z]*"${script##*/}"* && $seen != *'#'* ]]
	result $? "$script --help" "$seen"
	seen=$(cd "$source" && timeout 10 "./$script" --no-such-option 2>&1)
	code=$?
	[ $code = 2 ] && [[ $seen == *usage:* && $seen != *$'\n'* ]]
	result $? "$script --no-such-option: one line, exit status 2" "exit $code: $seen"
done
echo "1..$number"
