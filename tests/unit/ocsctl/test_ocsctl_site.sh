#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# ocsctl check beside slurm.conf and plugstack.conf, and ocsctl migrate.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
PATH=/usr/bin:/bin		# no scontrol: what is live is not compared here

cp "${OCS_SOURCE_DIR:?}/examples/ocs-torus.yaml" "$work/ocs.yaml"
sed "s|/etc/slurm/plugstack.conf|$work/plugstack.conf|" "$OCS_SOURCE_DIR/examples/slurm.conf" >"$work/good.conf"
mkdir "$work/plugstack.conf.d"
sed 's/^#required/required/' "$OCS_SOURCE_DIR/examples/plugstack.conf.d/ocs.conf" >"$work/plugstack.conf.d/ocs.conf"
echo "include $work/plugstack.conf.d/*.conf" >"$work/plugstack.conf"

check() { # NAME CODE
	exits "$2" "$1" check "$work/ocs.yaml" --slurm-conf "$work/slurm.conf"
}
# wrong NAME SED-COMMAND TEXT...: the example with one fault
wrong() {
	name=$1
	sed "$2" "$work/good.conf" >"$work/slurm.conf"
	shift 2
	check "$name" 1
	for text; do
		prints "$name is told" "$text"
	done
	says "how many there are" "1 thing contradicts"
}

cp "$work/good.conf" "$work/slurm.conf"
check "the examples agree" 0
prints "with one word" ": all agree"
prints "both files were read" "$work/plugstack.conf.d/ocs.conf"

wrong "another select plugin" 's/cons_tres_ocs/cons_tres/' \
	"slurm.conf:10: SelectType=select/cons_tres: placing shapes needs SelectType=select/cons_tres_ocs"
wrong "no topology plugin" '/^TopologyPlugin/d' "there is no TopologyPlugin"
wrong "no job_submit" 's/^JobSubmitPlugins=.*/JobSubmitPlugins=lua/' "JobSubmitPlugins=lua lacks ocs"
wrong "scripts before circuits" 's/Alloc,DeferBatch/Alloc/' "PrologFlags=Alloc lacks DeferBatch"
sed 's/Alloc,DeferBatch/Contain,DeferBatch/' "$work/good.conf" >"$work/slurm.conf"
check "a flag that means Alloc, too" 0
wrong "a prolog cut short" 's/Timeout=600/Timeout=299/' "PrologEpilogTimeout=299 ends a prolog before"
wrong "Extra taken by Slurm" 's/bf_continue/bf_continue,extra_constraints/' "will not start"
wrong "whole nodes" 's/CR_Core/CR_Memory/' "SelectTypeParameters=CR_Memory: slurmctld will not start"
wrong "SlurmUser without rights" 's/SlurmUser=slurm/SlurmUser=alice/' "SlurmUser=alice is not in ocsd.admins"
wrong "GPUs of another tile" 's/gpu:4/gpu:h100:8/' "Gres=gpu:h100:8, but a node of section pod has 4 XPUs"
wrong "nodes of another cube" 's/^NodeName=n\[0-63\]/& Topology=default:c9/' \
	"slurm.conf:43: Topology=default:c9, but n0 is in c0 of $work/ocs.yaml"
wrong "nodes without a line" 's/NodeName=n\[0-63\]/NodeName=n[0-59]/;s/Nodes=n\[0-63\]/Nodes=n[0-59]/' \
	"4 of 64 nodes of $work/ocs.yaml have no NodeName line (the first is n60)"
wrong "a plugstack.conf that is not there" "s|^PlugStackConfig=.*|PlugStackConfig=$work/absent|" \
	"$work/absent: cannot be read"

sed 's/^JobSubmitPlugins=.*/JobSubmitPlugins=require_timelimit,ocs,throttle,lua/' "$work/good.conf" >"$work/slurm.conf"
check "plugins behind ocs" 0
prints "that change jobs" "note: JobSubmitPlugins=require_timelimit,ocs,throttle,lua: what lua makes of a job"
omits "those that change none" "what throttle"
sed 's/^JobSubmitPlugins=.*/JobSubmitPlugins=lua,all_partitions,ocs,logging/' "$work/good.conf" >"$work/slurm.conf"
check "plugins before ocs" 0
omits "have no note" "JobSubmitPlugins="

sed 's/CPUs=64/Sockets=1 CoresPerSocket=2/;s/^JobRequeue=1/jobrequeue=0 # why not/;s/^PrologFlags=.*/&,NoHold/' "$work/good.conf" >"$work/slurm.conf"
check "notes are no contradictions" 0
prints "few CPUs" "note: n[0-63] have 2 CPUs for 4 XPUs"
prints "no requeue" "note: JobRequeue=0"
prints "no hold" "note: PrologFlags holds NoHold: scripts start before"
echo "- topology: default" >"$work/topology.yaml"
check "a topology.yaml is noted" 0
prints "with what it does" "$work/topology.yaml: note: Slurm from 25.05 on reads this instead of TopologyPlugin"
rm "$work/topology.yaml"

sed 's/^  - name: pod/&\n    partitions: [tpu, gold]/' "$OCS_SOURCE_DIR/examples/ocs-torus.yaml" >"$work/ocs.yaml"
cp "$work/good.conf" "$work/slurm.conf"
check "a partition of ocs.yaml only" 1
prints "is named" "there is no PartitionName=gold"
echo 'PartitionName=gold Nodes=login[1-2]' >>"$work/slurm.conf"
check "a partition of other nodes" 1
prints "is told" "no node of partition gold is in section pod"
sed -i '$d' "$work/slurm.conf"
printf 'NodeSet=some Nodes=n[0-3],login1\nPartitionName=gold \\\n Nodes=some\n' >>"$work/slurm.conf"
check "a node set, a continued line" 0
prints "nodes outside are noted" "1 of 5 nodes of partition gold are not in section pod"
printf 'NodeSet=far Nodes=n[60-61,63]\nPartitionName=gold Nodes=some,n9,far\n' >>"$work/slurm.conf"
check "a list of node sets and nodes" 0
prints "all of them are looked at" "1 of 9 nodes of partition gold are not in section pod"
printf 'NodeSet=fast Feature=fast\nPartitionName=gold Nodes=far,fast\n' >>"$work/slurm.conf"
check "a node set by feature is not guessed" 0
cp "$OCS_SOURCE_DIR/examples/ocs-torus.yaml" "$work/ocs.yaml"

cp "$work/good.conf" "$work/slurm.conf"
echo "optional spank_ocs.so" >"$work/plugstack.conf"
check "optional" 1
prints "is told with its line" "$work/plugstack.conf:1: spank_ocs.so is optional"
echo "required spank_ocs.so prolog=no" >"$work/plugstack.conf"
check "scripts that are not there" 1
prints "are told" "slurm.conf names no Prolog= and Epilog="
echo "# required spank_ocs.so" >"$work/plugstack.conf"
check "a comment" 1
prints "is no plugin" "holds no 'required spank_ocs.so'"
echo "required spank_ocs.so" >"$work/plugstack.conf"

# What is included, and what is not there to be included.
echo "include plugstack.conf.d/*.conf" >"$work/plugstack.conf"
check "an include beside the file" 0
prints "is read" "$work/plugstack.conf.d/ocs.conf"
printf 'required spank_ocs.so\ninclude %s/absent.d/*.conf\n' "$work" >"$work/plugstack.conf"
check "an include of nothing is a note" 0
prints "with its line" "plugstack.conf:2: note: includes $work/absent.d/*.conf, and there is no such file here"
echo "include $work/absent.d/*.conf" >"$work/plugstack.conf"
check "where the line was to be" 1
prints "both are told" "there is no such file here"
prints "that the line is missing, too" "holds no 'required spank_ocs.so'"
echo "include $work/plugstack.conf.d/*.conf" >"$work/plugstack.conf"
echo "SlurmctldParameters=enable_configless" >>"$work/slurm.conf"
check "nodes that get plugstack.conf from slurmctld" 1
prints "get nothing that it includes" "plugstack.conf:1: spank_ocs.so is in a file that this includes"
echo "required spank_ocs.so" >"$work/plugstack.conf"
check "unless it is there" 0
cp "$work/good.conf" "$work/slurm.conf"

# Secrets of an ocsd that is on this machine: its socket is.
sed "s|/etc/slurm/ocs.cred|$work/cred|;s|unix:/run/ocsd/ocsd.sock|unix:$work/sock|;s|^ocsd:|&\n  user: root|" \
	"$OCS_SOURCE_DIR/examples/ocs-torus.yaml" >"$work/ocs.yaml"
secret() { # NAME TEXT
	check "credentials $1" 1
	prints "$1, are told" "credentials: ocsd, uid 0, does not take $work/cred: $2"
	prints "$1, once" "$2"
	[ "$(printf '%s\n' "$out" | grep -c "$work/cred:")" = 1 ]
	result $? "$1, in one line" "$out"
}
check "credentials of another machine" 0
: >"$work/sock"
secret "that are not there" "No such file"
printf 'user=a\npassword=secret\n' >"$work/cred"
chmod 644 "$work/cred"
secret "that all may read" "mode 0644 lets others use it"
omits "but not what they are" "password"
chmod 620 "$work/cred"
secret "that the group may write" "mode 0620"
if [ "$(id -u)" = 0 ]; then
	chmod 600 "$work/cred"
	chown 65534 "$work/cred"
	secret "of somebody else" "belongs to uid 65534"
	chown 0 "$work/cred"
	sed -i 's/  user: root/  user: "65534"/' "$work/ocs.yaml"
	check "credentials that ocsd cannot read" 1
	prints "are told" "does not let it read"
	sed -i 's/  user: "65534"/  user: root/' "$work/ocs.yaml"
fi
chmod 600 "$work/cred"
[ "$(id -u)" != 0 ] || check "credentials that are right" 0
cp "$OCS_SOURCE_DIR/examples/ocs-torus.yaml" "$work/ocs.yaml"

echo "Include more.conf" >>"$work/slurm.conf"
check "an included file that is not there" 1
says "is named with the line that wants it" "slurm.conf:"
echo "TopologyPlugin=topology/tree" >"$work/more.conf"
check "an included file counts" 1
prints "with its own line" "more.conf:1: TopologyPlugin=topology/tree"
echo "Include slurm.conf" >"$work/more.conf"
exits 2 "files that include each other" check "$work/ocs.yaml" --slurm-conf "$work/slurm.conf"
echo "this is no line" >"$work/more.conf"
exits 2 "a line that is none" check "$work/ocs.yaml" --slurm-conf "$work/slurm.conf"
says "with its number" "more.conf:1: 'this' is not Key=Value"
cp "$work/good.conf" "$work/slurm.conf"

OCS_CONF=$work/ocs.yaml
export OCS_CONF
exits 0 "the site's own" check
prints "with the slurm.conf beside it" "compared with $work/slurm.conf"
prints "what does not answer is a note" "slurmctld: note: not compared"
exits 0 "as JSON" check --json
prints "with the findings" '"findings":['
mkdir "$work/bin"
cat >"$work/bin/scontrol" <<'SH'
#!/bin/sh
case " $* " in *" show node "*)
	echo 'NodeName=n0 Arch=x86_64 Topology=default:c0 OS=Linux'
	echo 'NodeName=n1 Arch=x86_64 Topology=other:x,default:far:c3 OS=Linux'
	echo 'NodeName=login1 Topology=default:c3'
	echo 'NodeName=n2 Arch=x86_64 OS=Linux' ;;
esac
SH
chmod +x "$work/bin/scontrol"
PATH=$work/bin:$PATH
exits 1 "nodes that Slurm was told are elsewhere" check
prints "one of them" "slurmctld: 1 node has a Topology= that contradicts"
prints "and which" "(the first is n1, Topology=other:x,default:far:c3)"
rm "$work/bin/scontrol"
unset OCS_CONF

printf '# blocks\nBlockName=b0 Nodes=n[0-15]\nBlockName=b1 \\\n Nodes=n[16-31]\nBlockSizes=16\n' >"$work/topology.conf"
exits 0 "blocks become cubes" migrate "$work/topology.conf" --cube 4x4x4 --tile 2x2x1
prints "with their nodes" '{name: b1, nodes: "n[16-31]"}'
printf '%s\n' "$out" >"$work/made.yaml"
exits 0 "check takes what migrate made" check "$work/made.yaml"
prints "as it was meant" "2 cubes of 4x4x4 XPUs (b0 ... b1), tile 2x2x1"
printf 'SwitchName=s0 Nodes=n[0-63]\nSwitchName=s1 Nodes=n[64-127]\nSwitchName=top Switches=s[0-1]\n' >"$work/topology.conf"
exits 0 "leaf switches become cubes" migrate "$work/topology.conf" --cube 4x4x4
prints "all of them, and no other" '{name: s1, nodes: "n[64-127]"}
    ports'
exits 2 "nodes that make no cube" migrate "$work/topology.conf" --cube 4x4x4 --tile 2x2x1
says "are counted" "topology.conf:1: s0 has 64 nodes; a cube of 64 has 16 of 2x2x1 XPUs"
exits 2 "no size" migrate "$work/topology.conf"
exits 2 "two extents" migrate "$work/topology.conf" --cube 4x4
exits 2 "no cube" migrate "$work/topology.conf" --cube 4x4x2
exits 2 "tiles that do not fit" migrate "$work/topology.conf" --cube 4x4x4 --tile 3x1x1
exits 1 "no file" migrate "$work/absent" --cube 4x4x4
: >"$work/topology.conf"
exits 2 "an empty file" migrate "$work/topology.conf" --cube 4x4x4

finish
