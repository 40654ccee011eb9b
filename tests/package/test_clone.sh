#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# scripts/build and scripts/source in clones that have seen other things before: what is
# built must follow from what is there now.  TAP on stdout; configure, make and autoreconf
# are stand-ins that note their calls.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$top/tests/unit/tap.sh"

mkdir -p "$work/bin" "$work/clone/scripts" "$work/clone/src"
cp "$top/scripts/build" "$top/scripts/source" "$work/clone/scripts/"
cp "$top/configure.ac" "$top/.gitignore" "$work/clone/"
cd "$work/clone" || exit 1
printf '#!/bin/sh\necho /slurm\n' >scripts/slurm-build
echo 'SUBDIRS = src' >Makefile.am
touch src/Makefile.am src/a.c
cat >"$work/bin/autoreconf" <<'END'
#!/bin/sh
echo autoreconf >>"$CALLS"
touch ocs_config.h.in Makefile.in src/Makefile.in
[ ! -e "$STOP" ] || { rm Makefile.in; exit 1; }
printf '# by aclocal 1.16 -*-\n' >aclocal.m4
printf '#!/bin/sh\necho "configure in ${0%%/*}" >>"$CALLS"\n' >configure
chmod +x configure
END
cat >"$work/bin/make" <<'END'
#!/bin/sh
case "$*" in
*install*) echo "install" >>"$CALLS"; mkdir -p stage; touch stage/file ;;
*) echo "make" >>"$CALLS"; [ ! -e "$STOP" ] || kill -9 $PPID; [ ! -e "$BREAK" ] ;;
esac
END
printf '#!/bin/sh\necho "aclocal (GNU automake) $(cat "$AUTOMAKE")"\n' >"$work/bin/aclocal"
cat >"$work/bin/pkg-config" <<'END'
#!/bin/sh
case "$*" in *cmocka*) [ ! -e "$LACKS" ] || exit 1 ;; esac
echo 1.0
END
chmod +x "$work"/bin/* scripts/slurm-build
export PATH=$work/bin:$PATH CALLS=$work/calls STOP=$work/stop BREAK=$work/break LACKS=$work/lacks AUTOMAKE=$work/automake
unset PKG_CONFIG
echo 1.16 >"$AUTOMAKE"
git -c init.defaultBranch=main init -q . && git add . &&
    git -c user.name=t -c user.email=t@localhost commit -qm one

calls() { # EXPECTED NAME: builds and compares what was called
    local seen
    : >"$CALLS"
    scripts/build gcc --enable-werror >"$work/out" 2>&1
    seen=$(tr '\n' ';' <"$CALLS")
    [ "$seen" = "$1" ]
    result $? "$2" "wanted $1, seen $seen
$(cat "$work/out" build/gcc.log)"
}

here="configure in $work/clone"
calls "autoreconf;$here;make;install;" "a fresh clone is configured and built"
calls "make;install;" "a second build configures nothing"
touch "$LACKS"
calls "$here;make;install;" "a library that is gone is noticed"
rm "$LACKS"
calls "$here;make;install;" "a library that came is noticed"
touch "$STOP"
(scripts/build gcc --enable-werror; true) >/dev/null 2>&1
rm "$STOP"
touch build/gcc/half
calls "$here;make;install;" "a build that was killed is begun anew"
[ ! -e build/gcc/half ]
result $? "and nothing of it is left"
touch "$BREAK"
scripts/build gcc --enable-werror >/dev/null 2>&1
code=$?
rm "$BREAK"
calls "make;install;" "a build that failed goes on where it was"
[ $code = 1 ]
result $? "and had exit status 1" "exit status $code"
touch build/gcc/stage/older
calls "make;install;" "a build over an older one"
[ ! -e build/gcc/stage/older ] && [ -e build/gcc/stage/file ]
result $? "leaves nothing installed that this tree does not install" "$(ls build/gcc/stage)"
sleep 0.02
touch configure.ac
calls "autoreconf;make;install;" "autoreconf runs after a change of configure.ac"
rm src/Makefile.in
calls "autoreconf;make;install;" "autoreconf that was cut off runs again"
echo 1.17 >"$AUTOMAKE"
sed -i 's/aclocal 1.16/aclocal 1.17/' "$work/bin/autoreconf"
calls "autoreconf;make;install;" "another automake runs autoreconf"

touch src/a.o config.status Makefile src/Makefile ocs_config.h
echo new >src/b.c
there="configure in $work/clone/build/source"
calls "autoreconf;$there;make;install;" "a clone that was configured in place is built from a copy"
[ -e build/source/src/b.c ] && [ ! -e build/source/src/a.o ] && [ ! -e build/source/config.status ] && [ -e src/a.o ]
result $? "which has every file but what was built" "$(find . -path ./.git -prune -o -type f -print)"
rm -r src/a.c
echo newer >src/b.c
calls "make;install;" "and follows changes"
[ "$(cat build/source/src/b.c)" = newer ]
result $? "of files" "$(cat build/source/src/b.c)"
mv "$work/clone" "$work/moved" && cd "$work/moved" || exit 1
calls "configure in $work/moved/build/source;make;install;" "a clone that was moved is configured again"
rm -rf .git
scripts/build gcc --enable-werror >/dev/null 2>"$work/out"
grep -q "run 'make distclean'" "$work/out"
result $? "without git there is a clear line" "$(cat "$work/out")"

# scripts/slurm-build with a release from elsewhere
mkdir -p "$work/slurm/src" "$work/slurm/slurm"
cd "$work/slurm" || exit 1
touch src/a.c slurm/slurm.h
printf '  Name:\tslurm\n  Version:\t26.05.3\n' >META
cat >configure <<'END'
#!/bin/sh
echo 'install-pkgincludeHEADERS: ; mkdir -p prefix' >Makefile
printf 'all: ; sleep 11\ninstall: ; touch ../installed\n' >src/Makefile
END
chmod +x configure
export SLURM_OCS_CACHE=$work/cache
release() { # CODE NAME WORDS ARGUMENT ...
    local wanted=$1 name=$2 words=$3 code
    shift 3
    PATH=${PATH#*:} "$top/scripts/slurm-build" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code = "$wanted" ] && grep -q -e "$words" "$work/out" "$work/err"
    result $? "$name" "exit status $code
$(cat "$work/out" "$work/err")"
}
release 0 "the headers of a release from elsewhere" "$work/cache/slurm-26.05.3-" --headers .
[ ! -e "$(cat "$work/out")/src/installed" ]
result $? "come without building it"
release 0 "a release is built with a line every ten seconds" " % after 10 s" "$work/slurm"
[ -e "$(cat "$work/out")/src/installed" ] && [ -e "$(cat "$work/out")/ready" ]
result $? "and installed" "$(ls "$(cat "$work/out")")"
tar cf "$work/slurm.tar" -C "$work" slurm
release 0 "the same one as a tarball is there already" "$work/cache/slurm-26.05.3-" "$work/slurm.tar"
[ ! -s "$work/err" ]
result $? "at once" "$(cat "$work/err")"
echo change >>src/a.c
release 0 "one that was changed is another" "configuring" --headers "$work/slurm"
sed -i s/26.05.3/23.11.10/ META
release 1 "an older one is refused" "is Slurm 23.11.10; the plugins know releases from 24.11 on" "$work/slurm"
rm META
release 1 "what is no Slurm is refused" "is no source tree of Slurm" "$work/slurm"
release 1 "so is what is no archive" "neither a folder nor an archive" "$top/README.md"
release 1 "and what is not there" "there is no /none" /none
[ -z "$(ls -d "$work"/cache/unpack.* 2>/dev/null)" ]
result $? "nothing unpacked is left behind"
echo "1..$number"
