#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# The gates of NCCL against stand-ins for NCCL, the CUDA driver and the gate: symbols, ways to load it,
# and the order of what happens on streams.  TAP on stdout.

top=${OCS_SOURCE_DIR:-.}
build=${OCS_BUILD_DIR:-build/gcc}
here=$top/tests/unit/rails/nccl_shim
shim=$build/src/rails/libocs-rails-nccl.so
if [ ! -e "$shim" ]; then
	echo "1..0 # SKIP there are no forwarders for this processor"
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
of() { sed -n "s/^$1 = //p" "$build/Makefile"; }
cc="$(of CC) $(of CFLAGS) -D_GNU_SOURCE -I$top -I$here -I$work"
. "$top/tests/unit/tap.sh"

# Apart from programs, so that the loader finds it by the program's RUNPATH alone.
mkdir "$work/real"
# The stand-in of NCCL has functions of its own for some that the shim forwards.
grep -v -e 'ncclCommInitAll,' "$build/src/rails/nccl_symbols.h" >"$work/nccl_symbols.h"
seen=$({ $cc -fPIC -shared -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" "$here/stand_in_cuda.c" &&
	$cc -fPIC -shared -Wl,-soname,libnccl.so.2 -Wno-missing-prototypes -o "$work/real/libnccl.so.2" "$here/stand_in_nccl.c" &&
	$cc -rdynamic -o "$work/cases" "$here/cases.c" "$here/gate_stand_in.c" -Wl,-rpath,"$work:$work/real" \
		-Wl,--enable-new-dtags "$work/real/libnccl.so.2" "$work/libcuda.so.1" -lpthread &&
	$cc -rdynamic -o "$work/loads" "$here/loads.c" "$here/gate_stand_in.c" "$work/libcuda.so.1" \
		-Wl,-rpath,"$work" -ldl -lpthread &&
	echo 'int torch;' | $cc -x c -shared -fPIC -o "$work/real/libtorch.so" - -Wl,-rpath,"\$ORIGIN"; } 2>&1)
result $? "the stand-ins are built" "$seen"

seen=$(objdump -p "$shim" | grep -E 'SONAME|NEEDED')
[ "$(echo "$seen" | grep SONAME | awk '{ print $2 }')" = libnccl.so.2 ] &&
	! echo "$seen" | grep NEEDED | grep -v -e 'libc\.so' -e 'ld-linux' -e 'libpthread' -e 'libdl' -e san >/dev/null
result $? "the library has NCCL's name and needs the C library alone" "$seen"

nm -D --defined-only "$shim" | awk '{ print $3 }' | sort >"$work/exported"
awk '/^(gate|forward|refuse) / { print "nccl" $2; print "pnccl" $2 }' "$top/src/rails/shim/nccl_symbols.txt" | sort >"$work/listed"
seen=$(comm -13 "$work/exported" "$work/listed")
[ -z "$seen" ] && [ -s "$work/listed" ]
result $? "every function of the list is exported, under both names" "$seen"
for header in /usr/include/nccl.h /usr/local/include/nccl.h /usr/local/cuda*/include/nccl.h; do
	[ -e "$header" ] || continue
	# Another pattern than the build's: whatever is declared.
	$(of CC) -x c -E -I"${header%/*}" "$header" 2>/dev/null | tr '\n' ' ' |
		grep -oE '\bp?nccl[A-Z][A-Za-z0-9]* *\(' | tr -d '( ' | sort -u >"$work/declared"
	seen=$(comm -13 "$work/exported" "$work/declared")
	[ -z "$seen" ] && [ -s "$work/declared" ]
	result $? "and every function of $header" "$seen"
	real=$(ls "${header%/include/nccl.h}"/lib*/libnccl.so.2 2>/dev/null | head -n 1)
	[ -n "$real" ] || continue
	seen=$(nm -D --defined-only "$real" | awk '{ print $3 }' | grep -E '^p?nccl' |
		grep -v Internal | sort | comm -13 "$work/exported" -)
	result $? "and every function of $real" "$seen"
done
# A function that this build has never heard of.
printf 'ncclResult_t  ncclFromTheFuture(int a);\nNCCL_EXTERN_C __host__ ncclTeam_t ncclTeamNew(int a);\n' >"$work/nccl.h"
seen=$(awk -f "$top/src/rails/shim/nccl_symbols.awk" "$top/src/rails/shim/nccl_symbols.txt" "$work/nccl.h" | tail -n 4 | tr '\n' ' ')
[ "$seen" = "OCS_NCCL_SYMBOL(ncclFromTheFuture, false) OCS_NCCL_SYMBOL(pncclFromTheFuture, false) OCS_NCCL_SYMBOL(ncclTeamNew, false) OCS_NCCL_SYMBOL(pncclTeamNew, false) " ]
result $? "a newer header's functions are added" "$seen"

for case in order groups uneven early refused lost refusals plain; do
	seen=$(LD_PRELOAD=$shim "$work/cases" $case 2>&1)
	result $? "$case" "$seen"
done
# Each refusal is one line.
seen=$(LD_PRELOAD=$shim "$work/cases" refused 2>&1)
[ "$(echo "$seen" | grep -c 'slurm-ocs: NCCL on photonic rails: ')" = 4 ]
result $? "a failure is one line of each rank" "$seen"

# From here on two files have a variable of the same name: copies of one library; program, plugin and the next one.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_odr_violation=0"

for way in runpath local path chosen; do
	seen=$(LD_PRELOAD=$shim "$work/loads" $way "$work/real/libnccl.so.2" "$top/src/rails/shim/nccl_symbols.txt" 2>&1)
	result $? "loaded: $way" "$seen"
done
# By a path and with dlsym in that handle, whatever its name is.
cp "$work/real/libnccl.so.2" "$work/real/site-collectives.so"
for file in libnccl.so.2 site-collectives.so; do
	seen=$(LD_PRELOAD=$shim "$work/loads" handle "$work/real/$file" "$top/src/rails/shim/nccl_symbols.txt" 2>&1)
	result $? "looked up in $file" "$seen"
done
seen=$(LD_PRELOAD=$shim "$work/loads" handle "$work/real/libnccl.so.2" "$top/src/rails/shim/nccl_symbols.txt" "$work/real/site-collectives.so" 2>&1)
code=$?
[ $code = 0 ] && [ "$(echo "$seen" | grep -c "site-collectives.so, too, beside .*libnccl.so.2; nothing holds")" = 1 ]
result $? "of two the second is not held, which is said once" "exit $code: $seen"
if ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2 '; then
	seen=$(LD_PRELOAD=$shim "$work/loads" cache "$work/real/libnccl.so.2" "$work/list" 2>&1)
	result $? "loaded: this machine's NCCL" "$seen"
else
	seen=$(LD_PRELOAD=$shim "$work/loads" none "$work/real/libnccl.so.2" "$work/list" 2>&1)
	code=$?
	case $seen in
	*"there is no libnccl.so.2 beside this one; name the real one in OCS_RAILS_NCCL"*) [ $code = 0 ] ;;
	*) false ;;
	esac
	result $? "where there is no NCCL, that is said" "$seen"
fi
for file in "$work/none" "$work/list" "$shim"; do
	: >"$work/list"
	seen=$(OCS_RAILS_NCCL=$file LD_PRELOAD=$shim "$work/loads" none "$work/real/libnccl.so.2" "$work/list" 2>&1)
	code=$?
	case $seen in
	*"OCS_RAILS_NCCL=$file: "*) [ $code = 0 ] ;;
	*) false ;;
	esac
	result $? "OCS_RAILS_NCCL that is ${file##*/}" "exit $code: $seen"
done

# The profiler.
plugin=$build/src/rails/.libs/libocs-rails-profiler.so
seen=$($cc -rdynamic -o "$work/profiles" "$here/profiles.c" "$here/gate_stand_in.c" "$work/libcuda.so.1" -Wl,-rpath,"$work" -ldl -lpthread 2>&1 &&
	$cc -fPIC -shared -o "$work/libnccl-profiler-next.so" "$here/profiles.c" 2>&1)
result $? "a program that calls profilers is built" "$seen"
for case in pair four; do
	seen=$("$work/profiles" $case "$plugin" 2>&1)
	result $? "launches of a profiled communicator: $case" "$seen"
done
seen=$(OCS_RAILS_NCCL_PROFILER=$work/libnccl-profiler-next.so "$work/profiles" four "$plugin" 2>&1)
result $? "another profiler behind it" "$seen"
seen=$(LD_LIBRARY_PATH=$work OCS_RAILS_NCCL_PROFILER=next CHAINED_LAUNCHES=1 "$work/profiles" four "$plugin" 2>&1)
result $? "which wants launches, too, and has a short name" "$seen"
# Where the preloaded library holds the NCCL that loads the profiler, that stands back.
seen=$(LD_PRELOAD=$shim "$work/profiles" held "$plugin" "$work/real/libnccl.so.2" 2>&1)
code=$?
[ $code = 0 ] && [ "$(echo "$seen" | grep -c "older than 2.28")" = 1 ]
result $? "an NCCL before 2.28 in the program is named, one that is held is left alone" "exit $code: $seen"
ended() { # CASE KERNELS TEXT
	seen=$("$work/profiles" "$1" "$plugin" 2>&1)
	code=$?
	case $seen in
	*"$3"*"this task ends"*"ended, $2 kernels"*) [ $code = 0 ] ;;
	*) false ;;
	esac
	result $? "a task that cannot be gated ends: $1" "exit $code: $seen"
}
ended send 0 "a send or receive in a communicator of 4 tasks"
ended part 0 "a communicator of 3 of 4 tasks"
ended graph 0 "a CUDA graph is being captured"
ended refused 8 "has refused an operation"
echo "1..$number"
