#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# The packages of scripts/package: every installed file in exactly one of them, and plugins
# that refuse another Slurm.  TAP on stdout.
#
#   tests/package/test_packages.sh STAGE [upgrade [OLD]]
#
# STAGE: what `make install` made; upgrade: under running jobs, too, from the Debian packages in the folder OLD.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
stage=$1
work=$(mktemp -d)
# Four builds: libtool's shell takes half the time of bash.
CONFIG_SHELL=$(command -v dash || command -v bash)
export CONFIG_SHELL
trap 'rm -rf "$work"' EXIT
. "$top/tests/unit/tap.sh"

# Only the last two or three parts of a path are the same below every prefix.
names() { sed -e 's/\.gz$//' -e 's|.*/\(share/.*\)|\1|' -e '/^share/!s|.*/\([^/]*/[^/]*\)$|\1|' | sort; }
wanted() { (cd "$stage" && find . -type f ! -name '*.la') | names; }
# Documents, debugging symbols and what lintian may overlook are not what make install made.
ours() { grep -v -e '/share/doc/' -e '/share/licenses/' -e '/share/lintian/' -e '/debug/' -e '/\.build-id' -e '/$'; }

tracked() { (cd "$top/$1" && git ls-files | grep -v -e '^\.gitignore$' -e '/\.gitkeep$' | sort); } # FOLDER

files_of() { # KIND: the paths in all its packages
    local package
    for package in "$top/build/package/$1"/*."$1"; do
        case $1 in
        deb) dpkg-deb --fsys-tarfile "$package" | tar t ;;
        rpm) rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$package" | sed -n '/^d/!s/^[^ ]* //p' ;;
        esac
    done | ours
}

export PACKAGER="Release Team <releases@slurm-ocs.net>"
"$top/scripts/package" deb quick >"$work/deb.out" 2>&1 &
deb=$!
"$top/scripts/package" rpm quick >"$work/rpm.out" 2>&1
rpm=$?
wait $deb
result $? "Debian packages are built" "$(cat "$work/deb.out")"
result $rpm "RPM packages are built" "$(cat "$work/rpm.out")"

# Once more, from an archive that is made anew, in another folder and with another umask; meanwhile the archive
# alone, unpacked where nothing can be written: built elsewhere, installed, taken away, cleaned.  Both want the
# folder in which archives are made.
cp -a "$top/build/package/deb" "$work/first"
: >"$work/again.out"
(umask 077 && touch "$top/README.md" && "$top/scripts/package" deb quick) >>"$work/again.out" 2>&1 &
deb=$!
until grep -q 'building the packages' "$work/again.out" || ! kill -0 $deb 2>/dev/null; do sleep 1; done
XZ_OPT=-0 make -C "$top/build/package/tree" -j"$(nproc)" distcheck TESTS= check_PROGRAMS= check_LTLIBRARIES= \
    DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0 >"$work/distcheck.out" 2>&1 &
distcheck=$!
lintian --fail-on error --suppress-tags file-in-unusual-dir "$work"/first/*.changes >"$work/lintian.out" 2>&1
lintian=$?

# The same packages as of an older version, if there are no others.
older_make() {
    local package
    mkdir "$work/old"
    for package in "$work"/first/*.deb; do
        [[ $package != *-dbgsym_* ]] || continue
        rm -rf "$work/unpacked"
        dpkg-deb -R "$package" "$work/unpacked" && sed -i 's/^Version: /&0~/' "$work/unpacked/DEBIAN/control" &&
            dpkg-deb -Znone -b "$work/unpacked" "$work/old"
    done >/dev/null
}
# Under running jobs.  Takes minutes, in which slurmctld forgets jobs.
if [ "${2:-}" = upgrade ]; then
    [ -n "${3:-}" ] || older_make
    seen=$(OCS_SLURM=$("$top/scripts/slurm-build")/prefix /usr/bin/python3 "$top/tests/package/upgrade.py" "$(cd "${3:-$work/old}" && pwd)" "$work/first" 2>&1)
    result $? "jobs and their circuits live through an upgrade and a downgrade, and the packages go again" "$seen"
fi

wait $deb
result $? "Debian packages are built again" "$(cat "$work/again.out")"
seen=$(cd "$work/first" && for file in *.tar.xz *.deb; do cmp "$file" "$top/build/package/deb/$file" 2>&1; done)
[ -z "$seen" ] && [ "$(ls "$work"/first/*.deb | wc -l)" -ge 3 ]
result $? "and are the same, byte by byte" "$seen"
result $lintian "lintian finds no error" "$(cat "$work/lintian.out")"
wait $distcheck
result $? "make distcheck" "$(tail -n 30 "$work/distcheck.out")"
seen=$(for package in "$top"/build/package/deb/*.deb; do dpkg-deb -f "$package" Maintainer; done | sort -u
    rpm -qp --qf '%{PACKAGER}\n' "$top"/build/package/rpm/*.rpm | sort -u)
[ "$seen" = "$PACKAGER"$'\n'"$PACKAGER" ]
result $? "PACKAGER maintains them" "$seen"
seen=$(rpm -qp --provides "$top"/build/package/rpm/*.rpm | grep '\.so')
[ -z "$seen" ]
result $? "no RPM offers its private libraries to others, one of which is called as NCCL is" "$seen"

# What is left out of a build (here the unit tests) must still go into the archive.
mkdir "$work/bare" "$work/bare/dist"
seen=$(cd "$work/bare" && sed 's/^S\["HAVE_CMOCKA_TRUE"\]=.*/S["HAVE_CMOCKA_TRUE"]="#"/; s/^S\["HAVE_CMOCKA_FALSE"\]=.*/S["HAVE_CMOCKA_FALSE"]=""/' \
    "$top/build/package/tree/config.status" >config.status && chmod +x config.status &&
    mkdir -p src tests/unit && ./config.status tests/unit/Makefile 2>&1 &&
    make -s -C tests/unit distdir "top_distdir=$work/bare/dist" "distdir=$work/bare/dist" 2>&1 &&
    diff <(tracked tests/unit) <(cd dist && find . -type f ! -name Makefile.in | cut -c3- | sort))
result $? "the archive is whole where cmocka is missing" "$seen"
seen=$(make -s -C "$work/bare/tests/unit" check-local 2>&1)
code=$?
[ $code != 0 ] && [[ $seen == *"no test was run"*libcmocka-dev* ]]
result $? "and make check fails and says why" "exit $code: $seen"
mkdir "$work/lacking"
printf '#!/bin/sh\ncase "$*" in *sqlite3* | *json-c*) exit 1 ;; esac\nexec pkg-config "$@"\n' >"$work/pkg-config"
chmod +x "$work/pkg-config"
seen=$(cd "$work/lacking" && PKG_CONFIG=$work/pkg-config "$("$top/scripts/source")/configure" 2>&1 | tail -n 1)
[[ $seen == *"apt-get install libjson-c-dev libsqlite3-dev" ]]
result $? "configure names the Debian packages of all libraries that are missing" "$seen"
seen=$(comm -23 <(tracked .) <(tar tf "$top"/build/package/deb/slurm-ocs-*.tar.xz | sed 's|^[^/]*/||' | sort))
[ -z "$seen" ] && [ -n "$(tracked .)" ]
result $? "the archive has every file of the tree, the guides too" "$seen"

for kind in deb rpm; do
    seen=$(diff <(wanted) <(files_of $kind | names))
    result $? "every installed file is in exactly one $kind package" "$seen"
done

ocsd=$(ls "$top"/build/package/deb/slurm-ocs-ocsd_*.deb)
seen=$(dpkg-deb -I "$ocsd" postinst prerm)
[[ $seen == *"invoke try-restart ocsd.service"* && $seen != *"= upgrade"* && $seen == *"= remove"* ]]
result $? "an upgrade restarts a running ocsd, and only a removal stops it" "$seen"

plugins=$(ls "$top"/build/package/deb/slurm-ocs-plugins_*.deb)
version=$(dpkg-deb -f "$plugins" Version)
[[ $version == *+slurm2[0-9].[0-9][0-9].* ]]
result $? "the version of the plugins names Slurm's" "$version"

dpkg-deb -e "$plugins" "$work/control"
seen=$(sh "$work/control/preinst" install 2>&1)
result $? "the Slurm they were built for is taken" "$seen"
mkdir -p "$work/slurm/bin"
printf '#!/bin/sh\necho slurm 99.05.1\n' >"$work/slurm/bin/scontrol"
chmod +x "$work/slurm/bin/scontrol"
sed -i "s|[^\"]*/bin/scontrol|$work/slurm/bin/scontrol|" "$work/control/preinst"
seen=$(sh "$work/control/preinst" install 2>&1)
code=$?
[ $code = 1 ] && [[ $seen == *"has Slurm 99.05.1"* ]]
result $? "another Slurm is refused with both numbers" "exit $code: $seen"
rm "$work/slurm/bin/scontrol"
seen=$(sh "$work/control/preinst" install 2>&1)
result $? "a machine without Slurm may have them first" "$seen"

# Slurm dies where its files name plugins that are gone: nothing takes them away meanwhile.
mkdir "$work/etc"
sed -i -e 's|/etc/slurm/|'"$work/none/|g" -e "s|[^ ]*/etc/|$work/etc/|g" "$work/control/prerm"
removal() { # WANTED-CODE NAME FILE LINE [ARGUMENT ...]
    local wanted=$1 name=$2 file=$3 line=$4 seen code
    shift 4
    rm -f "$work"/etc/*
    printf '%s\n' "$line" >"$work/etc/$file"
    seen=$(sh "$work/control/prerm" "${@:-remove}" 2>&1)
    code=$?
    [ $code = "$wanted" ] && { [ $code = 0 ] || [[ $seen == *"/$file names these plugins"* && $seen != *$'\n'* ]]; }
    result $? "$name" "exit $code: $seen"
}
removal 1 "removal is refused while slurm.conf names the select plugin" slurm.conf SelectType=select/cons_tres_ocs
removal 1 "or the topology plugin" slurm.conf "TopologyPlugin = topology/ocs # ours"
removal 1 "or the submit plugin behind another" slurm.conf JobSubmitPlugins=lua,ocs
removal 1 "or the command line's filter" slurm.conf clifilterplugins=cli_filter/ocs,lua
removal 1 "or plugstack.conf the SPANK plugin" plugstack.conf "required spank_ocs.so"
removal 0 "lines that are commented out do not count" slurm.conf "#SelectType=select/cons_tres_ocs"
removal 0 "nor do other plugins" slurm.conf "JobSubmitPlugins=lua,ocsandmore"
removal 0 "an upgrade is not refused" slurm.conf SelectType=select/cons_tres_ocs upgrade 2
SLURM_OCS_REMOVE=yes removal 0 "who insists may" slurm.conf SelectType=select/cons_tres_ocs

# In a mount namespace of its own, with a copy of /etc.
dpkg-deb -e "$ocsd" "$work/ocsd"
dpkg-deb -e "$(ls "$top"/build/package/deb/slurm-ocs-tools_*.deb)" "$work/tools"
cp -a /etc "$work/etc-copy"
mkdir "$work/bin"
printf '#!/bin/sh\nexec useradd --system --user-group ocsd\n' >"$work/bin/systemd-sysusers"
chmod +x "$work/bin/systemd-sysusers"
seen=$(PATH=$work/bin:$PATH WORK=$work unshare --mount sh -c '
    mount --bind "$WORK/etc-copy" /etc && mount -t tmpfs tmpfs /var/lib || exit 9
    getent passwd ocsd >/dev/null && userdel ocsd
    getent group ocsd >/dev/null && groupdel ocsd
    mkdir /var/lib/ocsd /var/lib/ocs-emulator
    sh "$WORK/ocsd/postinst" configure || exit 8
    touch /var/lib/ocsd/ocsd.db /var/lib/ocs-emulator/ocs-x /etc/ocs.cred
    for package in ocsd tools; do sh "$WORK/$package/postrm" remove; done
    [ -e /var/lib/ocsd/ocsd.db ] && getent passwd ocsd >/dev/null || echo "removal took the state"
    for package in ocsd tools; do sh "$WORK/$package/postrm" purge || echo "purging $package failed"; done
    ls -d /var/lib/ocsd /var/lib/ocs-emulator 2>/dev/null
    getent passwd ocsd; getent group ocsd
    [ -e /etc/ocs.cred ] || echo "purging took a file of the administrator"
    useradd --system --user-group ocsd && sh "$WORK/ocsd/postinst" configure && sh "$WORK/ocsd/postrm" purge
    getent passwd ocsd >/dev/null || echo "purging took an account that was there before"' 2>&1)
code=$?
[ $code = 0 ] && [ -z "$seen" ]
result $? "purging removes the account, the database and the state, and removal does not" "exit $code: $seen"

seen=$(rpm -qp --scripts "$top"/build/package/rpm/slurm-ocs-plugins-*.rpm 2>&1)
[[ $seen == *"bin/scontrol"* && $seen == *"build slurm-ocs against that one"* &&
    $seen == *"/etc/slurm.conf "* && $seen == *"names these plugins"* ]]
result $? "the RPM of the plugins asks as well" "$seen"
echo "1..$number"
