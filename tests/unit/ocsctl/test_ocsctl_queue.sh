#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# explain and reserve with commands of Slurm that say what the test wants: every reason, and
# nonsense.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
F="torus cubes:2x1x1 cube:4x4x4 tile:4x4x1"
mkdir "$work/bin"
export work
cat >"$work/bin/squeue" <<'SH'
#!/bin/sh
[ -z "$SQUEUE_FORMAT$SQUEUE_STATES" ] || exit 3
[ "$SLURM_TIME_FORMAT" = %s ] || exit 4
case " $* " in
*" -j 12_3 "*" %A "*) echo 7; exit ;;
*" %A "*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
esac
case " $* " in *" -j "*) cat "$work/one" ;; *) cat "$work/all" ;; esac
SH
cat >"$work/bin/sinfo" <<'SH'
#!/bin/sh
case " $* " in *" %f|%N "*) cat "$work/features" ;; *) cat "$work/nodes" ;; esac
SH
cat >"$work/bin/scontrol" <<'SH'
#!/bin/sh
case " $* " in
*" show job "*) cat "$work/job" ;;
*" show topology "*) cat "$work/topology" ;;
*" show reservation "*) cat "$work/reservations" ;;
*" show partition "*) cat "$work/partition" ;;
*" create "*) printf '%s\n' "$@" >"$work/created"; cat "$work/answer"; [ ! -s "$work/refusal" ] || { cat "$work/refusal" >&2; exit 1; } ;;
esac
SH
chmod +x "$work/bin/"*
PATH=$work/bin:$PATH
SQUEUE_FORMAT=%i SQUEUE_STATES=CG
export PATH SQUEUE_FORMAT SQUEUE_STATES

# job state user partition priority start end nodes dependency reservation wanted excluded
# planned count limit licences reason
pending() { # reason [dependency [reservation [licences]]]
	printf '7|PENDING|ann|tpu|5|1795309200|0||%s|%s||(null)||4|1:00:00|%s|%s\n' "${2:-(null)}" \
		"${3:-(null)}" "${4:-(null)}" "$1"
}
running() { # job nodes end [user]
	printf '%s|RUNNING|%s|tpu|9|1795300000|%s|%s|(null)|(null)|||(null)|4|1:00:00|(null)|None\n' \
		"$1" "${4:-bob}" "$3" "$2"
}
quiet() {
	pending "$1" "$2" "$3" "$4" >"$work/one"
	cp "$work/one" "$work/all"
	echo 'idle|n[0-7]|none' >"$work/nodes"
	printf 'JobId=7 JobName=x\n   UserId=ann\n   Extra=shape=8x4x4\n' >"$work/job"
	: >"$work/topology"
	: >"$work/features"
	: >"$work/reservations"
	echo 'PartitionName=tpu Nodes=n[0-7]' >"$work/partition"
}
explain() {
	exits 5 "$1" explain 7 --fabric "$F" --ocsd "unix:$work/nobody.sock"
}
tell() { # reason words [dependency [reservation [licences]]]
	quiet "$1" "$3" "$4" "$5"
	explain "a job that waits for $1"
	prints "is told so" "$2"
}

tell JobHeldUser "its user holds it; scontrol release 7"
tell JobHeldAdmin "an administrator holds it"
tell Dependency "it depends on other jobs: afterok:3(unfulfilled)" "afterok:3(unfulfilled)"
tell DependencyNeverSatisfied "can never start: what it depends on (afterok:3) did not happen" afterok:3
tell BeginTime "it is not to start before 20"
tell QOSMaxCpuPerUserLimit "a limit of its account, QOS or user: QOSMaxCpuPerUserLimit"
tell AssocGrpNodeLimit "a limit of its account, QOS or user: AssocGrpNodeLimit"
tell MaxJobsPerAccount "a limit of its account, QOS or user: MaxJobsPerAccount"
tell PartitionTimeLimit "its time limit is beyond that of partition tpu"
tell PartitionDown "partition tpu starts no jobs"
tell Reservation "its reservation night has not begun" "" night
tell Licenses "it waits for licences: matlab:2" "" "" matlab:2
tell Licenses "slurmctld has not tried to place it yet"
tell Resources "there was no room when slurmctld tried last"
tell BadConstraints "Slurm's reason is BadConstraints"
tell "ReqNodeNotAvail, UnavailableNodes:n3" "nodes that it asks for are not available"
tell "needs 2 cubes that are wholly free; 1 is free" "waits: needs 2 cubes that are wholly free; 1 is free"
tell "needs a | b; c" "waits: needs a | b; c"

# Held jobs have no priority, whatever the reason says.
held() { # reason, state
	quiet "$1"
	sed -i "s/|PENDING|ann|tpu|5|/|${2:-PENDING}|ann|tpu|0|/" "$work/one"
	cp "$work/one" "$work/all"
	explain "a job that is held: ${2:-$1}"
	prints "is told so" "it is held ($1); scontrol release 7"
	omits "and of no room" "room:"
}
held "launch failed requeued held"
held "ocs failure: switch x failed (attempt 3 of 3, held)"
held "Reservation night was deleted" RESV_DEL_HOLD
held "None" SPECIAL_EXIT

# Resources that Slurm counts elsewhere: what nodes are free says nothing of them.
for reason in Resources Priority "needs 2 cubes that are wholly free; 1 is free"; do
	quiet "$reason" "" "" "power(node):100"
	explain "hierarchical resources and $reason"
	prints "are named" "its nodes are free now; what it asks for besides (power(node):100) Slurm counts"
	omits "and no room is promised" "there is room"
done
for reason in ResourcesOfANewKind HresUnavailable NoneOfThese; do
	tell "$reason" "Slurm's reason is $reason"
	omits "$reason promises no room" "room:"
done
quiet Resources
explain "nothing in the way"
prints "but the next try" "there is room for it now; slurmctld will try it again shortly"

quiet Resources
{ pending Resources; running 3 'n[0-1]' 1795310000; running 4 n5 1795320000 carl; } >"$work/all"
explain "two jobs in the way"
prints "the one" "job 3  bob "
prints "and the other" "job 4  carl "
quiet Priority
{
	echo 'PartitionName=tpu PriorityTier=2 Nodes=n[0-3]'
	echo 'PartitionName=urgent PriorityTier=9 Nodes=n[3-9]'
	echo 'PartitionName=idlers PriorityTier=1 Nodes=n[0-9]'
	echo 'PartitionName=others PriorityTier=9 Nodes=n[4-9]'
} >"$work/partition"
pending Priority >"$work/all"
for other in "20 tpu 4" "6 tpu 5" "30 urgent 1" "31 idlers 99" "32 others 99" "8 tpu 9"; do
	set -- $other
	pending Priority | sed "s/^7|PENDING|ann|tpu|5/$1|PENDING|eve|$2|$3/" >>"$work/all"
done
explain "partitions that share nodes"
prints "jobs ahead by tier, priority and age" "ahead:    3 jobs: 30 8 6
"

quiet Resources
echo 'allocated|n[4-5]|none' >>"$work/nodes"
explain "jobs that squeue hides"
prints "have no names" "jobs not shown to you"
quiet Resources
echo 'drained*|n6|fan|belt' >>"$work/nodes"
echo 'Cube=c0 Section=torus Nodes=n[0-3] State=DRAINED Reason="new | fibres"' >"$work/topology"
explain "drains"
prints "of a node" "nodes n6 (not responding: fan|belt)"
quiet Resources
printf 'ReservationName=r StartTime=1795300000 EndTime=4000000000 Nodes=n[0-7] Users=x Flags=MAINT\n' \
	>"$work/reservations"
explain "a reservation"
prints "by name" "reservation r"

# --nodelist: all of its nodes, or too few to say more
for names in 'n[0-3]' n0; do
	quiet Resources
	printf 'JobId=7 JobName=x\n   Extra=shape=4x4x4\n' >"$work/job"
	sed -i "s/||(null)||4/|$names|(null)||4/" "$work/one"
	{ cat "$work/one"; running 3 'n[0-1]' 1795310000; } >"$work/all"
	explain "a job with --nodelist=$names"
	omits "has no room elsewhere" "there is room for it now"
	[ "$names" = n0 ] || prints "and waits for who has them" "job 3  bob "
done
# the leader of a heterogeneous job has no shape, its second part has
quiet Resources
printf 'JobId=7 JobName=x\n   UserId=ann\n\nJobId=8 JobName=y\n   Extra=shape=8x4x4\n' >"$work/job"
explain "a part without a shape"
prints "is not given that of another" "job 7 of ann, without a shape"

wants() { # features
	quiet Resources
	printf 'JobId=7 JobName=x\n   Features=%s DelayBoot=0\n   Extra=shape=4x4x4\n' "$1" >"$work/job"
	{ pending Resources; running 3 'n[0-1]' 1795310000; running 4 n4 1795320000 carl; } >"$work/all"
	printf '(null)|n[8-9]\nold,a|n[0-3]\nnew,a|n[4-6]\nnew|n7\n' >"$work/features"
	explain "a job with features"
}
wants old
prints "that one cube has" "held up:  by 1 that must end"
prints "waits for that one" "job 3  bob "
wants "[new|old]"
prints "of alternatives waits for the one that ends first" "job 3  bob "
wants "a&new"
prints "that too few nodes have" "room:     none, even if all jobs ended"
wants "old*2"
prints "that are counted is not said to want them" "held up:  by 1"
wants "((("
prints "that are nonsense is not said to want them" "held up:  by 1"

quiet Resources
running 7 'n[0-1]' 1795310000 >"$work/one"
explain "a job that runs while ocsd does not answer"
prints "is not said to hold no circuits" "job 7 of bob: RUNNING on n[0-1] until 20"

# What no Slurm prints.
for nonsense in "" "7" "7|PENDING" "||||||||||||||||" "x|y|z||||||||||||||" \
	"7|PENDING|a||-1|99999999999999999999|x|n[|||n]|n[9-1]|(null)|x|y||z"; do
	quiet Resources
	{ pending Resources; printf '%s\n' "$nonsense"; } >"$work/all"
	printf '%s\n' "$nonsense" "|" >>"$work/nodes"
	printf '%s\n' "$nonsense" "Cube=" "Switch= State=FAILED" 'Cube=c0 Reason="' >"$work/topology"
	printf '%s\n' "ReservationName=" "ReservationName=x Nodes=n[3" "$nonsense" >"$work/reservations"
	explain "nonsense '$nonsense'"
done

# reserve: no shell reads what was typed, and nothing is made when Slurm refuses.
quiet Resources
: >"$work/all"
echo "Reservation created: r1" >"$work/answer"
: >"$work/refusal"
exits 0 "reserve" reserve 8x4x4 --duration 30 --users 'ann;touch $HOME' --name r1 --fabric "$F"
prints "its name" "reservation: r1"
printf '%s' "create
reservation
ReservationName=r1
StartTime=now
Duration=30
Nodes=n[0-7]
Users=ann;touch \$HOME
" >"$work/wanted"
cmp -s "$work/wanted" "$work/created"
result $? "the words of scontrol are those, each whole" "$(cat "$work/created")"
rm "$work/created"
exits 0 "reserve --dry-run" reserve 4x4x4 --duration 30 --users ann --dry-run --fabric "$F"
[ ! -e "$work/created" ]
result $? "makes nothing"
running 3 n5 4000000000 >"$work/all"
exits 0 "around a job" reserve --cubes 1 --duration 30 --users ann --dry-run --fabric "$F"
prints "the other cube" "nodes: n[0-3]"
exits 4 "a cube that is in use" reserve --cube c1 --duration 30 --users ann --fabric "$F"
says "by whom" "cube c1: job 3 may run on n5 until"
exits 0 "ignoring jobs" reserve --cube c1 --duration 30 --flags maint,IGNORE_JOBS --dry-run --fabric "$F"
[ ! -e "$work/created" ]
result $? "still nothing is made"
: >"$work/all"
: >"$work/answer"
echo "scontrol: error: Requested nodes are busy" >"$work/refusal"
exits 1 "a refusal of Slurm" reserve 8x4x4 --duration 30 --users ann --fabric "$F"
says "in its words" "Requested nodes are busy"
: >"$work/refusal"
exits 1 "an answer without a name" reserve 8x4x4 --duration 30 --users ann --fabric "$F"
for n in 0 1 2 3 4 5; do
	running 2$n n$n 189531000$n
done >"$work/all"
exits 4 "six jobs in the way" reserve 8x4x4 --duration 30 --users ann --fabric "$F"
says "four of them are named, the rest counted" "job 23 may run on n3 until 2030-01-22"
says "and the start is not cut off" "; and 2 more; --start=2030-01-22T"
: >"$work/all"
echo 'idle|n[4-7]|none' >"$work/nodes"
exits 0 "nodes that slurm.conf lacks" reserve --cubes 1 --duration 30 --users ann --dry-run --fabric "$F"
prints "are not reserved" "nodes: n[4-7]"
quiet Resources
: >"$work/all"
printf 'ReservationName=d StartTime=%s EndTime=%s Nodes=n[0-3] Users=x Flags=DAILY\n' \
	$(($(date +%s) - 600)) $(($(date +%s) + 600)) >"$work/reservations"
exits 0 "a reservation of every day" reserve 4x4x4 --start "$(date -d '+1 day' +%Y-%m-%dT%H:%M)" --duration 5 \
	--users ann --dry-run --fabric "$F"
prints "is there tomorrow, too" "nodes: n[4-7]"
quiet Resources
: >"$work/all"
chmod -x "$work/bin/squeue"
exits 1 "no squeue" reserve 8x4x4 --duration 30 --users ann --fabric "$F"
says "by name" "cannot run squeue"
chmod +x "$work/bin/squeue"
quiet Resources
exits 5 "an element of an array as squeue shows it" explain 12_3 --fabric "$F" --ocsd "unix:$work/nobody.sock"
prints "is the job that it is" "job 7 of ann"
for none in 12_9 12+0; do
	exits 1 "no such job: $none" explain "$none" --fabric "$F" --ocsd "unix:$work/nobody.sock"
	says "it says so" "there is no job $none"
done
finish
