#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# The fragments for enroot and the files of ocs-node agree: what the job's environment
# names exists at the same path inside a container, and the hook hands over all of it.
# The container is a folder; mount(8) does with the line of fstab what enroot does.

source=${OCS_SOURCE_DIR:?} build=${OCS_BUILD_DIR:?}
fstab=$source/etc/enroot/mounts.d/50-ocs.fstab hook=$source/etc/enroot/hooks.d/50-ocs.sh
. "$source/tests/unit/tap.sh"

finish() {
	echo "1..$number"
	exit 0
}

if [ "${1-}" != inside ]; then
	if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
		echo "1..0 # SKIP needs root, for mounts of its own"
		exit 0
	fi
	work=$(mktemp -d) || exit 99
	trap 'rm -rf "$work"' EXIT
	unshare -m --propagation private "$BASH" "$0" inside "$work"
	exit
fi

work=$2
mount -t tmpfs none /run || exit 99
dir=/run/ocs/7
printf '{"plan":%s}\n' "$("$build/src/ocsctl/ocsctl" plan --servers 2 --degree 4 --json |
	sed 's/"nodes":\[\]/"nodes":["d0","d1"]/')" >"$work/reply"
{
	cat "$source/examples/ocs-direct.yaml"
	printf 'nccl:\n  hwloc_xml: %s\n  graph_file: true\n' "$source/tests/data/server-8gpu-4nic.xml"
} >"$work/ocs.yaml"
said=$("$build/src/node/ocs-node" prepare --fabric "$work/ocs.yaml" --dir $dir --job 7 --epoch 1 \
	--node d0 --nodes 'd[0-1]' --reply "$work/reply" 2>&1)
result $? "ocs-node writes the job's directory" "$said"

# The line as enroot reads it: source, target, type, options.
read -r from to type options rest < <(grep -v '^#' "$fstab")
[ "$(grep -vc '^#' "$fstab")" = 1 ] && [ -z "$rest" ] && [ "$type" = none ]
result $? "one line of fstab" "$from $to $type $options"
[ "$from" = "$to" ] && grep -qF ".dir = \"$from\"" "$source/src/plugins/spank/settings.c"
result $? "the directory is the plugin's default, inside as outside" "$from $to"
case ,$options, in
*,x-create=dir,*bind,*ro,*nofail,*) result 0 "options" ;;
*) result 1 "options" "$options" ;;
esac

root=$work/rootfs
mkdir -p "$root$to"
flags=$(printf '%s' "$options" | tr , '\n' | grep -vE '^(x-create=.*|nofail|silent|bind|private)$' | paste -sd,)
mount --bind "$from" "$root$to" && mount -o "remount,bind,$flags" "$root$to"
result $? "the mount is made" "$flags"
{ : >"$root$dir/x"; } 2>/dev/null
[ $? != 0 ] && [ ! -e $dir/x ]
result $? "nothing can be written through it"

# Every path that the environment names, and NCCL's files as they are in there.
bad=
for path in $(sed -n 's/^[A-Z_]*=\(\/.*\)$/\1/p' $dir/env); do
	[ -e "$root$path" ] || bad="$bad $path"
done
[ -z "$bad" ]
result $? "paths of the environment exist inside" "$bad"
grep -q "^NCCL_TOPO_FILE=$dir/topo.xml\$" $dir/env && grep -q "^NCCL_GRAPH_FILE=" $dir/env
result $? "topology and graph file are among them" "$(cat $dir/env)"
said=$("$build/src/ocsctl/ocsctl" nccl-check "$root$dir/topo.xml" "$root$dir/graph.xml" 2>&1)
result $? "NCCL reads them" "$said"

# The hook, in the environment of the job.
mapfile -t lines <$dir/env
said=$(env -i PATH="$PATH" ENROOT_ENVIRON="$work/environ" "${lines[@]}" "$hook" 2>&1)
result $? "the hook runs" "$said"
diff <(sort $dir/env) <(sort "$work/environ") >"$work/diff"
result $? "and hands over what the job has, no more" "$(cat "$work/diff")"
rm -f "$work/environ"
env -i PATH="$PATH" ENROOT_ENVIRON="$work/environ" NCCL_DEBUG=INFO "$hook" && [ ! -e "$work/environ" ]
result $? "without circuits it does nothing"

"$build/src/node/ocs-node" remove --dir $dir
result $? "the directory goes while a container has it mounted"
umount "$root$to"
finish
