#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# etc/prolog and etc/epilog with programs that do as they are told and write down how
# they were called.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1

mkdir -p "$work/bin" "$work/slurm-ocs" "$work/etc" "$work/run"
for script in prolog epilog; do
	sed -e "s|@bindir@|$work/bin|g" -e "s|@libexecdir@|$work|g" \
		-e "s|@sysconfdir@|/nowhere|g" -e "s|@slurm_path@||g" \
		"${OCS_SOURCE_DIR:?}/etc/$script.in" >"$work/$script"
done
touch "$work/etc/ocs.yaml"
echo "dir=$work/run/%n" >"$work/etc/ocs-prolog.conf"

# Each program takes its next answer from a file: "CODE OUTPUT", the last one stays.
cat >"$work/program" <<'END'
#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>"$WORK/calls"
answers=$WORK/answer.$name
[ -s "$answers" ] || exit 0
answer=$(head -n 1 "$answers")
[ "$(wc -l <"$answers")" -le 1 ] || sed -i 1d "$answers"
code=${answer%% *}
case $code in
0 | 1) [ "$answer" = "$code" ] || printf '%s\n' "${answer#* }" ;;
esac
[ "$code" = 0 ] || echo "$name: refused" >&2
exit "$code"
END
chmod +x "$work/program"
for name in ocsctl squeue scontrol scancel logger; do
	ln -s ../program "$work/bin/$name"
done
ln -s ../program "$work/slurm-ocs/ocs-node"

# script NAME [VARIABLE=VALUE...]: runs it as slurmd does
script() {
	name=$1
	shift
	out=$(env -i WORK="$work" SLURM_CONF="$work/etc/slurm.conf" SLURM_JOB_ID=42 \
		SLURMD_NODENAME=n3 SLURM_JOB_UID=1000 SLURM_JOB_GID=100 "$@" \
		sh "$work/$name" 2>"$work/err")
	code=$?
}

# answers PROGRAM LINE...
answers() {
	name=$1
	shift
	printf '%s\n' "$@" >"$work/answer.$name"
}

fresh() {
	rm -rf "$work"/answer.* "$work/calls" "$work/run"/*
	: >"$work/calls"
}

# expect CODE NAME: the exit status
expect() {
	[ "$code" = "$1" ]
	result $? "$2 (exit $1)" "exit $code
$(cat "$work/calls")"
}

# called NAME TEXT, uncalled NAME TEXT: a line of the calls begins with TEXT
called() {
	grep -qF -- "$2" "$work/calls"
	result $? "$1" "wanted: $2
$(cat "$work/calls")"
}
uncalled() {
	! grep -qF -- "$2" "$work/calls"
	result $? "$1" "not wanted: $2
$(cat "$work/calls")"
}

E="SPANK_OCS_EPOCH=7"
fresh
script prolog
expect 0 "a job without a shape"
[ ! -s "$work/calls" ] && [ -z "$(ls "$work/run")" ]
result $? "is left alone" "$(cat "$work/calls")"

fresh
answers ocsctl '0 {"id":1,"ok":true,"circuits":64}'
script prolog $E SPANK_OCS_SECTION=pod SPANK_OCS_SHAPE=4x8x2 \
	SPANK_OCS_CONN=torus,torus,torus SPANK_OCS_PLACEMENT=abc SPANK_OCS_NODES='n[0-15]'
expect 0 "circuits at once"
called "apply names job, epoch and node" \
	"ocsctl apply 42 --epoch 7 --node n3 --json --fabric $work/etc/ocs.yaml"
called "files are written" "ocs-node prepare --fabric $work/etc/ocs.yaml --dir $work/run/n3/42 --job 42 --epoch 7 --node n3 --nodes n[0-15] --section pod --shape 4x8x2 --conn torus,torus,torus --placement abc --reply $work/run/n3/42/reply.n3 --uid 1000 --gid 100"
[ "$(cat "$work/run/n3/42/epoch")" = 7 ]
result $? "the epoch is noted"
grep -q '"circuits":64' "$work/run/n3/42/reply.n3"
result $? "the reply is handed on" "$(cat "$work/run/n3/42/reply.n3")"

script epilog $E
expect 0 "epilog"
called "release" "ocsctl release 42 --epoch 7 --node n3 --wait 60"
called "files are removed" "ocs-node remove --dir $work/run/n3/42"
[ "$(grep -c release "$work/calls")" = 1 ]
result $? "once" "$(cat "$work/calls")"

: >"$work/calls"
script epilog
expect 0 "epilog without slurmctld's word"
called "goes by the note" "ocsctl release 42 --epoch 7"
: >"$work/calls"
script epilog SPANK_OCS_EPOCH=9
called "two epochs: this one" "ocsctl release 42 --epoch 9"
called "and the noted one" "ocsctl release 42 --epoch 7"
answers ocsctl 5
script epilog $E
expect 0 "epilog without ocsd does not drain the node"
called "but is logged" "logger -t ocs-epilog"
fresh
script epilog
expect 0 "epilog of a job without a shape"
[ ! -s "$work/calls" ]
result $? "does nothing" "$(cat "$work/calls")"

fresh
answers ocsctl '1 {"id":1,"ok":false,"code":1,"error":"gone","gone":true}'
answers squeue '0 42 RUNNING'
script prolog $E
expect 0 "a job that has left its allocation"
uncalled "no files" "ocs-node"
uncalled "nothing is requeued" "scontrol"

fresh
answers ocsctl 5 4 '0 {"ok":true}'
answers squeue '0 42 RUNNING'
script prolog $E
expect 0 "ocsd away, then not ready, then there"
called "files are written then" "ocs-node prepare"
uncalled "nothing is requeued" "scontrol"

fresh
answers ocsctl 5
answers squeue '0 42 COMPLETING'
script prolog $E
expect 0 "cancelled while ocsd is away"
uncalled "no files" "ocs-node"

fresh
answers ocsctl 5
answers squeue '1 slurm_load_jobs error: Invalid job id specified'
script prolog $E
expect 0 "a job that slurmctld has forgotten"

fresh
answers ocsctl 1
answers squeue '0 42 RUNNING' '0 42 RUNNING' '0 42 RUNNING' '0 42 RUNNING' '0 42 PENDING'
script prolog $E
expect 0 "a refusal that stays"
called "the job is requeued and held" "scontrol requeuehold 42"
uncalled "no files" "ocs-node"

fresh
answers ocsctl 1
answers scontrol 1
answers squeue '0 42 RUNNING' '0 42 RUNNING' '0 42 RUNNING' '0 42 RUNNING' '0 43 RUNNING'
script prolog $E
expect 0 "one that cannot be requeued"
called "is cancelled" "scancel 42"

fresh
for left in 3:5 8:7 9:0 10: x:1 3.1:5 5:6; do
	mkdir -p "$work/run/n3/${left%%:*}"
	echo "${left#*:}" >"$work/run/n3/${left%%:*}/epoch"
done
answers ocsctl '0 {"ok":true}'
answers squeue '1 slurm_load_jobs error: Invalid job id specified' '0 5 RUNNING'
script prolog $E
expect 0 "folders of other jobs on this node"
called "that of one that slurmctld has forgotten goes" "ocs-node remove --dir $work/run/n3/3"
[ "$(grep -c "ocs-node remove" "$work/calls")" = 1 ]
result $? "one that runs, is as new, or has no epoch stays" "$(cat "$work/calls")"

fresh
echo "limit=0" >>"$work/etc/ocs-prolog.conf"
answers ocsctl 5
answers squeue '0 42 RUNNING' '0 42 CONFIGURING' '0 42 COMPLETING'
script prolog $E
expect 0 "ocsd away for too long"
called "the job is taken away" "scontrol requeuehold 42"

fresh
answers ocsctl '0 {"ok":true}'
answers ocs-node 1
script prolog $E
expect 1 "files that cannot be written"
# slurmd was started with an open umask
fresh
answers ocsctl '0 {"id":1,"ok":true,"circuits":64}'
umask 000
script prolog "$E"
umask 022
expect 0 "prolog with an open umask"
[ -z "$(find "$work/run/n3" -perm -0002)" ]
result $? "nobody else may write below the folder of jobs" "$(ls -lR "$work/run")"
finish
