/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The allocation protocol between slurmctld (with its plugin), ocsd, nodes and a switch,
 * small enough to be searched completely.  doc/model.md says which step stands for which
 * function, what is left out, and which test covers each rule.
 *
 * Two jobs want the same two nodes and the same port of one switch, at most EPOCHS times in
 * all.  Every party may be killed at any step and comes back with what it keeps durable; how
 * often each thing happens is bounded by the figures below, so every run ends, and the judge
 * looks at what is left when nothing can move any more.
 *
 * A name NO_... takes the rule of that name away; tests/model/run shows that each is missed. */

#ifndef EPOCHS
#define EPOCHS 3	/* starts of jobs, requeues included */
#endif
#ifndef OCSD_KILLS
#define OCSD_KILLS 0
#endif
#ifndef CTLD_KILLS
#define CTLD_KILLS 0
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 0	/* slurmctld hangs, the backup takes over, the first one wakes up */
#endif
#ifndef HANGS
#define HANGS 0		/* commands that the switch does not answer, and does later, or never */
#endif
#ifndef REBOOTS
#define REBOOTS 0	/* of the switch, which forgets its circuits */
#endif
#ifndef DEATHS
#define DEATHS 0	/* of nodes */
#endif
#ifndef LOSSES
#define LOSSES 0	/* of the connection between slurmctld and ocsd */
#endif
#ifndef CANCELS
#define CANCELS 0	/* before the tasks were started */
#endif

#define JOBS 2
#define NODES 2
#define ALL_NODES 3		/* a mask: node 0 and node 1 */
#define ROW (EPOCHS + 1)	/* epochs are counted from 1; 0 is none */
#define B(i) (1 << (i))
#define HAS(mask, i) (((mask) >> (i)) & 1)
#define SET(mask, i) mask = mask | B(i)
#define DROP(mask, i) mask = mask & (255 - B(i))

/* ---- the switch ---- */

#define CUT 16			/* a command is CUT + e, or e: make the circuit of e */
#define EPOCH_OF(command) ((command) & 15)
byte patch;			/* whose circuit is on the port, as the hardware has it */
byte late[2];			/* commands that it will do, though nobody waits any more */
byte hangs = HANGS;

/* ---- nodes: what each does for each epoch ---- */

#define NOTHING 0
#define PROLOG 1		/* started, ocsd is still to be asked */
#define ASKED 2			/* waits for the answer of apply */
#define READY 3			/* the prolog is done, circuits were promised */
#define EMPTY 4			/* the prolog is done, without circuits */
#define TASK 5
#define EPILOG 6		/* the task has ended, release is still to be said */
#define LEAVING 7		/* waits for the answer of release */
byte node[NODES * ROW];
#define AT(n, e) node[(n) * ROW + (e)]
#define ANY(e, what) (AT(0, e) == what || AT(1, e) == what)
#define BOTH(e, what) (AT(0, e) == what && AT(1, e) == what)

/* ---- slurmctld: two of them, the primary (0) and the backup (1) ---- */

#define DEAD 0
#define UP 1
#define HUNG 2
byte ctld[2];
byte charge;			/* which one Slurm takes for the one in charge */
byte sequence;			/* takes of charge so far */
byte took[2];			/* the term: when each took charge */

#define PENDING 0
#define RUNNING 1
#define COMPLETING 2
#define DONE 3
byte job_state[2 * JOBS], job_epoch[2 * JOBS];
byte disk_state[JOBS], disk_epoch[JOBS];	/* StateSaveLocation, which both share */
#define STATE(c, j) job_state[(c) * JOBS + (j)]
#define EPOCH(c, j) job_epoch[(c) * JOBS + (j)]

/* the plugin: what it has of each allocation */
#define UNKNOWN 0
#define LIVING 1
#define ENDED 2			/* its nodes are held until ocsd says `released` */
#define GONE 3			/* the same, and ocsd was told that no epilog will come */
byte allocation[2 * ROW];
#define ALLOC(c, e) allocation[(c) * ROW + (e)]
byte listed[2];			/* as they were when the subscription was sent */
byte forgotten[2];		/* jobs of before a kill, whose nodes are held */
byte verified[2];		/* ocsd said that the launch may go on */

byte epochs;			/* given so far */
byte job_of[ROW];
byte launched;			/* tasks were started once */
byte cancels = CANCELS;

/* ---- the link ---- */

#define CLOSED 0
#define OPEN 1			/* subscription sent, messages are queued behind it */
#define SUBSCRIBED 2		/* and answered */
byte link[2];
#define SUBSCRIBE 1		/* with a mask of the living ones */
#define COMMIT 2
#define END 3
#define GO 4			/* gone */
chan to_ocsd[2] = [6] of { byte, byte };
bool answered[2];		/* the reply to subscribe is there: */
byte reply_held[2], reply_forgotten[2], reply_unknown[2];
/* events, and refusals that mean the same */
byte said_released[2], said_failed[2], said_verified[2], said_unknown[2];
bool said_superseded[2];

/* ---- ocsd ---- */

#define STARTING 1		/* reads the switches, does not listen yet */
#define SERVING 2
byte ocsd;			/* or DEAD */

#define NONE 0
#define COMMITTED 1
#define APPLYING 2
#define REALISED 3
#define FAILED 4
byte row[ROW];			/* state of each allocation; NONE: no row in the database */
#define PLANNED 0
#define CONNECTING 1
#define CONNECTED 2
#define DELETING 3
#define AWAY 4
byte circuit[ROW];
byte ended, gone, breaking, rolled_back, wanted, announced, sent;
byte met;			/* `ready` was said: verified, and every node has asked */
byte released[ROW];		/* masks of nodes */
byte heard[ROW];		/* in memory only */
byte newest[JOBS];		/* the history: the newest epoch that a job ever had */
byte term, place;		/* of the slurmctld in charge */
/* in memory only */
byte owner, next;		/* of the port */
byte slot;			/* by_in: the circuit that may be on the port */
byte unsure, postponed, never_known;
byte unknown;			/* jobs that the next commit calls running */
bool subscriber[2];

/* what ocsd thinks of the switch */
byte sw;			/* DEAD: failed; STARTING; SERVING: up */
bool dirty, answers;
byte busy;			/* the batch on its way: READ, or a command */
#define READ 32
bool again;			/* its second attempt */
bool lost;			/* its first had no answer */
#define SURE 0
#define SOON 1			/* it has answered; what is late comes before the time is up */
#define DOUBT 2
byte sure;

byte ocsd_kills = OCSD_KILLS, ctld_kills = CTLD_KILLS, takeovers = TAKEOVERS,
     reboots = REBOOTS, deaths = DEATHS, losses = LOSSES;

/* Scratch of a step; no part of the state. */
hidden byte e, i, turn, op, command;

/* ---- what must hold ---- */

byte seen;			/* a read-back has shown the circuit, really */
byte stray;			/* launched by a slurmctld that was not in charge any more */

#define KNOWN_TO(c, e) ((EPOCH(c, 0) == e && STATE(c, 0) != PENDING && STATE(c, 0) != DONE) || \
			(EPOCH(c, 1) == e && STATE(c, 1) != PENDING && STATE(c, 1) != DONE))
#define ON_DISK(e) ((disk_epoch[0] == e && (disk_state[0] == RUNNING || disk_state[0] == COMPLETING)) || \
		    (disk_epoch[1] == e && (disk_state[1] == RUNNING || disk_state[1] == COMPLETING)))
#define RUNS(c, e) ((EPOCH(c, 0) == e && STATE(c, 0) == RUNNING) || \
		    (EPOCH(c, 1) == e && STATE(c, 1) == RUNNING))
#define COMPLETES(c, e) ((EPOCH(c, 0) == e && STATE(c, 0) == COMPLETING) || \
			 (EPOCH(c, 1) == e && STATE(c, 1) == COMPLETING))
/* Tasks of e run, and slurmctld knows of it (or will, from its disk, when it is back). */
#define LIVES(e) (ANY(e, TASK) && (ctld[charge] == DEAD -> ON_DISK(e) : KNOWN_TO(charge, e)))

/* Whatever a command does to the port, it takes no circuit from a living job. */
inline do_command(which)
{
	command = which;
	if
	:: command >= CUT -> assert(!patch || !LIVES(patch)); patch = 0
	:: else -> assert(!patch || patch == command || !LIVES(patch)); patch = command
	fi
}

/* ---- what ocsd does in one pass ---- */

#define EVENT(mask, e) \
	if :: subscriber[0] -> SET(mask[0], e) :: else fi; \
	if :: subscriber[1] -> SET(mask[1], e) :: else fi

#ifdef NO_VERIFY_EVERY_NODE
#define EVERY_NODE(e) (heard[e] != 0)
#else
#define EVERY_NODE(e) (heard[e] == ALL_NODES)
#endif

/* ocsd/jobs/transition.c:ocsd_transition_abandon */
inline abandon(e)
{
	if
	:: circuit[e] == AWAY || circuit[e] == DELETING
#ifdef NO_SENT
	:: circuit[e] == CONNECTED
#else
	:: circuit[e] != AWAY && circuit[e] != DELETING && HAS(sent, e)
#endif
		-> circuit[e] = DELETING; dirty = true
	:: else ->
		circuit[e] = AWAY;
		if :: slot == e -> slot = 0 :: else fi
	fi
}

/* ocsd/ops/apply.c:apply_due */
inline answer_gone(e)
{
	if :: AT(0, e) == ASKED -> AT(0, e) = EMPTY :: else fi;
	if :: AT(1, e) == ASKED -> AT(1, e) = EMPTY :: else fi
}

inline job_end(e)
{
	SET(ended, e);
	answer_gone(e)
}

inline job_gone(e)
{
	SET(ended, e);
	SET(gone, e);
	answer_gone(e)
}

inline job_fail(e)
{
	if
	:: HAS(ended, e) || HAS(breaking, e) || row[e] == FAILED
	:: else ->
		row[e] = FAILED;
		SET(rolled_back, e);
		abandon(e);
		EVENT(said_failed, e)
	fi
}

#define UNSURE(e) (HAS(unsure, e) && sure != SURE)

#ifdef NO_LAST_NODE
#define RELEASED_BY_ALL(e) (released[e] != 0)
#else
#define RELEASED_BY_ALL(e) (released[e] == ALL_NODES)
#endif
#ifdef NO_WAIT_FOR_EPILOGS
#define BREAK_DUE(e) HAS(ended, e)
#else
#define BREAK_DUE(e) (HAS(gone, e) || RELEASED_BY_ALL(e) || (HAS(ended, e) && \
		      (HAS(rolled_back, e) || row[e] == COMMITTED || row[e] == APPLYING)))
#endif

/* ocsd/jobs/connect.c:ocsd_realise_start, ocsd/jobs/transition.c:planned_send; ports were looked at when the job was entered */
inline start(e)
{
	if
	:: sw == DEAD && !HAS(wanted, e) -> job_fail(e)
#ifndef NO_VERIFIED_CUT
	:: !(sw == DEAD && !HAS(wanted, e)) && slot && slot != e -> job_fail(e)
#endif
	:: else ->
		row[e] = APPLYING;
		if
		:: circuit[e] == PLANNED || circuit[e] == CONNECTING ->
			slot = e;
			if :: HAS(wanted, e) -> SET(sent, e) :: else fi;
			circuit[e] = CONNECTING;
			dirty = true
		:: else
		fi
	fi
}

/* ocsd/jobs/transition.c:transition_step, ocsd/jobs/connect.c:realise_done, ocsd/ops/apply.c:apply_due */
inline check(e)
{
	if
#ifdef NO_READ_BACK
	:: row[e] == APPLYING && !HAS(breaking, e) && (HAS(sent, e) || circuit[e] == CONNECTED)
#else
	:: row[e] == APPLYING && !HAS(breaking, e) && circuit[e] == CONNECTED
#endif
		-> row[e] = REALISED
	:: else
	fi;
	if
	:: row[e] == REALISED && !HAS(ended, e) ->
		if :: AT(0, e) == ASKED -> AT(0, e) = READY :: else fi;
		if :: AT(1, e) == ASKED -> AT(1, e) = READY :: else fi;
		if
		:: EVERY_NODE(e) && !HAS(met, e) -> SET(met, e); EVENT(said_verified, e)
		:: else
		fi
	:: else
	fi
}

/* ocsd/jobs/lifecycle.c: the row is removed */
inline forget(e)
{
	row[e] = NONE;
	circuit[e] = PLANNED;
	released[e] = 0;
	heard[e] = 0;
	DROP(ended, e); DROP(gone, e); DROP(breaking, e); DROP(rolled_back, e); DROP(wanted, e);
	DROP(announced, e); DROP(sent, e); DROP(unsure, e); DROP(postponed, e);
	DROP(met, e); DROP(seen, e)
}

/* ocsd/jobs/lifecycle.c:ocsd_job_progress */
inline progress(e)
{
	if
	:: row[e] == NONE
	:: else ->
		if
		:: !HAS(breaking, e) && BREAK_DUE(e) -> SET(breaking, e); abandon(e)
		:: else
		fi;
		if
#ifdef NO_VERIFIED_CUT
		:: HAS(breaking, e) ->
#else
		/* what is on a failed switch, or postponed, is not waited for */
		:: HAS(breaking, e) && (circuit[e] == AWAY || sw == DEAD || HAS(postponed, e)) ->
#endif
			if :: next == e -> next = 0 :: else fi;
			if
#ifndef NO_VERIFIED_CUT
			:: owner == e && circuit[e] == AWAY
#else
			:: owner == e
#endif
				-> owner = next; next = 0
			:: else
			fi;
			if
			:: !HAS(announced, e) -> SET(announced, e); EVENT(said_released, e)
			:: else
			fi;
			if
			:: circuit[e] == AWAY -> forget(e)
			:: else
			fi
		:: !HAS(breaking, e) && !HAS(ended, e) && row[e] == COMMITTED ->
			if
			:: owner == e && (HAS(wanted, e) || ANY(e, ASKED)) -> start(e)
			/* fail_blocked */
			:: owner != e && !HAS(wanted, e) && ANY(e, ASKED) && sw == DEAD -> job_fail(e)
			:: else
			fi
		:: else
		fi;
		if :: row[e] != NONE -> check(e) :: else fi
	fi
}

#define TO_MAKE(e) (circuit[e] == CONNECTING && (row[e] == APPLYING || row[e] == REALISED))

/* ocsd/switches/scheduler.c:pick: the next batch of the switch; what it was handed is in the database */
inline pick()
{
	if
	:: !busy && ((sw == SERVING && dirty) || answers) ->
		if
		:: slot && !HAS(postponed, slot) && circuit[slot] == DELETING ->
			busy = CUT + slot; again = false; lost = false
		:: slot && !HAS(postponed, slot) && TO_MAKE(slot) ->
			SET(sent, slot);
			busy = slot; again = false; lost = false
		:: else ->
			dirty = false;
			if
			:: sw != SERVING -> sw = SERVING; answers = false
			:: else
			fi
		fi
	:: else
	fi
}

/* The end of a pass.  The port that one gives back another one may have been waiting for, and
 * ocsd listens once it has read the switch. */
inline settle()
{
	for (turn : 1 .. 3) {
		for (i : 1 .. EPOCHS) { progress(i) }
		pick();
		if :: ocsd == STARTING && sw != STARTING -> ocsd = SERVING :: else fi
	}
	skip
}

/* ocsd/switches/scheduler.c:table_read with ocsd/switches/readback.c */
inline table_read()
{
	if :: sure == DOUBT -> sure = SOON :: else fi;
#ifdef NO_TIME_TO_BE_SURE
	sure = SURE;
#endif
	if :: sw != SERVING -> answers = true :: else fi;
	if
	:: slot && circuit[slot] == CONNECTED && patch != slot -> circuit[slot] = CONNECTING; dirty = true
	:: slot && circuit[slot] == CONNECTED && patch == slot -> SET(seen, slot)
	:: else
	fi
}

/* ocsd/jobs/circuits.c:ocsd_circuits_lost */
inline doubt(e)
{
	if :: sure == SURE -> unsure = 0 :: else fi;
	SET(unsure, e);
	sure = DOUBT
}

inline switch_failed()
{
	sw = DEAD;
	answers = false;
	for (i : 1 .. EPOCHS) {
		if
		:: row[i] == APPLYING && !HAS(wanted, i) && circuit[i] == CONNECTING -> job_fail(i)
		:: else
		fi
	}
}

/* ocsd/switches/worker.c:work_perform, ocsd/switches/scheduler.c:ocsd_switch_result: an answer, with a read-back */
inline result_ok()
{
	e = EPOCH_OF(busy);
	if :: lost && e -> doubt(e) :: else fi;
	if
	:: busy == READ ->
		if :: slot && HAS(postponed, slot) -> DROP(postponed, slot); dirty = true :: else fi
	:: busy < READ && busy >= CUT ->
		if :: patch == e -> do_command(CUT + e) :: else fi;
		if
		:: circuit[e] == DELETING && UNSURE(e) -> SET(postponed, e)
		:: circuit[e] == DELETING && !UNSURE(e) ->
			circuit[e] = AWAY;
			if :: slot == e -> slot = 0 :: else fi
		:: else
		fi
	:: busy < CUT ->
		if
		:: !patch || patch == e ->
			patch = e;
#ifdef NO_DOUBT_OF_FIRST_TRY
			DROP(unsure, e);
#endif
			/* one whose job ended meanwhile stays DELETING */
			if
#ifdef NO_STAYS_DELETING
			:: circuit[e] == DELETING -> circuit[e] = AWAY; if :: slot == e -> slot = 0 :: else fi
#endif
			:: circuit[e] == CONNECTING -> circuit[e] = CONNECTED
			:: else
			fi
		/* a patch that is not ours is in the way */
		:: else -> if :: circuit[e] == CONNECTING -> job_fail(e) :: else fi
		fi
	fi;
	busy = 0;
	table_read()
}

inline result_unknown()
{
	e = EPOCH_OF(busy);
	if :: e -> doubt(e); dirty = true :: else fi;
	busy = 0;
	switch_failed()
}

inline put_off(command)
{
	if :: !late[0] -> late[0] = command :: else -> late[1] = command fi
}

/* What the driver sends after it has read the table: nothing where nothing is missing. */
#define SENDS ((busy < CUT && !patch) || (busy > CUT && busy < READ && patch == EPOCH_OF(busy)))

proctype Switch()
{
end:	do
	:: d_step { busy && ocsd != DEAD -> result_ok(); settle() }
	:: atomic {
		busy && ocsd != DEAD && hangs && !(late[0] && late[1]) ->
		hangs--;
		if :: SENDS -> put_off(busy) :: else fi;
		if
		:: !again -> again = true; lost = true
		:: else -> d_step { result_unknown(); settle() }
		fi
	   }
	:: d_step { late[0] -> do_command(late[0]); late[0] = late[1]; late[1] = 0 }
	:: d_step { late[1] -> do_command(late[1]); late[1] = 0 }
	:: d_step { late[0] -> late[0] = late[1]; late[1] = 0 }	/* never done */
	:: d_step { reboots && patch -> reboots--; patch = 0; late[0] = 0; late[1] = 0 }
	od
}

/* ---- what slurmctld says to ocsd ---- */

/* The connection is gone, and what was on its way. */
inline drop(c)
{
	do
	:: len(to_ocsd[c]) > 0 -> to_ocsd[c] ? _, _
	:: else -> break
	od;
	link[c] = CLOSED;
	subscriber[c] = false;
	answered[c] = false;
	said_released[c] = 0;
	said_failed[c] = 0;
	said_verified[c] = 0;
	said_unknown[c] = 0;
	reply_held[c] = 0;
	reply_forgotten[c] = 0;
	reply_unknown[c] = 0
}


inline accept(c, e)
{
	for (i : 1 .. EPOCHS) {
		if
		:: row[i] != NONE && job_of[i] == job_of[e] -> job_gone(i)
		:: else
		fi
	}
	row[e] = COMMITTED;
	circuit[e] = PLANNED;
	if :: HAS(unknown, job_of[e]) -> SET(wanted, e); DROP(unknown, job_of[e]) :: else fi;
	if :: newest[job_of[e]] < e -> newest[job_of[e]] = e :: else fi;
	if :: !owner -> owner = e :: else -> next = e fi
}

#define ALIVE(i, e) (i && !HAS(ended, i) && !HAS(breaking, i) && job_of[i] != job_of[e])

/* ocsd/ops/commit.c:ocsd_op_commit */
inline op_commit(c, e)
{
	if
	:: row[e] != NONE		/* it is known: once more yes */
	:: row[e] == NONE && e <= newest[job_of[e]] -> if :: subscriber[c] -> SET(said_failed[c], e) :: else fi
	:: row[e] == NONE && e > newest[job_of[e]] && (ALIVE(owner, e) || ALIVE(next, e)) ->
		if :: subscriber[c] -> SET(said_failed[c], e) :: else fi
	:: else -> accept(c, e)
	fi
}

/* ocsd/ops/commit.c:ocsd_op_subscribe with ocsd/protocol/fencing.c */
inline op_subscribe(c, list)
{
#ifndef NO_TERM
	if
	:: took[c] < term && c != place -> drop(c); said_superseded[c] = true
	:: else ->
		term = took[c];
		place = c;
		if
		:: subscriber[1 - c] -> drop(1 - c); said_superseded[1 - c] = true
		:: else
		fi;
#endif
		reply_held[c] = 0;
		reply_forgotten[c] = 0;
		reply_unknown[c] = 0;
		unknown = 0;
		for (i : 1 .. EPOCHS) {
			if
			:: row[i] != NONE && !HAS(list, i) ->
#ifndef NO_UNLISTED_IS_GONE
				if
#ifdef NO_FORGOTTEN_AFTER_END
				:: !HAS(ended, i) -> SET(reply_forgotten[c], i)
#else
				:: !HAS(gone, i) && released[i] != ALL_NODES -> SET(reply_forgotten[c], i)
#endif
				:: else
				fi;
#ifdef NO_WORD_FOR_GONE
				job_gone(i)
#else
				/* slurmctld holds its nodes, and says gone then; also of one that is
				 * completing, whose epilogs are still to come */
				job_end(i)
#endif
#endif
			:: row[i] == NONE && HAS(list, i) ->
				SET(reply_unknown[c], i);
				SET(unknown, job_of[i])
			:: else
			fi
		}
		for (i : 1 .. EPOCHS) {
			if
			:: row[i] != NONE && !HAS(announced, i) && (HAS(ended, i) || HAS(breaking, i)) ->
				SET(reply_held[c], i)
			:: else
			fi;
#ifndef NO_TOLD_AGAIN
			if :: row[i] == FAILED && !HAS(ended, i) -> SET(said_failed[c], i) :: else fi;
			if
			:: HAS(met, i) && !HAS(ended, i) -> SET(said_verified[c], i)
			:: else
			fi
#endif
		}
		subscriber[c] = true;
		answered[c] = true
#ifndef NO_TERM
	fi
#endif
}

inline take(c)
{
	to_ocsd[c] ? op, e;
	if
	:: op == SUBSCRIBE -> op_subscribe(c, e)
	:: op == COMMIT -> op_commit(c, e)
	:: op == END ->
		if
		:: row[e] != NONE -> job_end(e)
		:: row[e] == NONE && newest[job_of[e]] < e -> SET(never_known, e)
		:: else
		fi
	:: op == GO ->
		if
		:: row[e] != NONE ->
			job_gone(e);
#ifndef NO_RELEASED_AGAIN
			if :: HAS(announced, e) && subscriber[c] -> SET(said_released[c], e) :: else fi
#endif
		:: else
		fi
	fi;
	settle();
	/* the answer to `show`, which slurmctld asks for after gone */
	if :: op == GO && row[e] == NONE && subscriber[c] -> SET(said_unknown[c], e) :: else fi;

}

proctype Listener(byte me)
{
end:	do
	:: d_step { ocsd == SERVING && link[me] && len(to_ocsd[me]) > 0 -> take(me) }
	od
}

proctype Ocsd()
{
end:	do
	/* a poll; one that would find nothing new is left out */
	:: d_step {
		ocsd != DEAD && !busy && !(sw == SERVING && dirty) && !answers &&
		(sw != SERVING || (slot && HAS(postponed, slot) && !UNSURE(slot)) ||
		 (slot && circuit[slot] == CONNECTED && patch != slot)) ->
		busy = READ; again = false; lost = false
	   }
	/* What was late has come: `switch_timeout` has passed since the switch answered. */
	:: d_step { ocsd != DEAD && sure == SOON && !late[0] && !late[1] -> sure = SURE }
	/* started */
	:: d_step { ocsd == DEAD && sw == STARTING -> ocsd = STARTING }
	od
}

/* ---- nodes ---- */

#define OVER(e) (newest[job_of[e]] >= e)

inline visit(n, e)
{
	if
	/* ocsd/protocol/dispatch.c:op_apply; an answer to what is not committed yet is waited for */
	:: d_step {
		AT(n, e) == PROLOG && ocsd == SERVING && (row[e] != NONE || OVER(e) || HAS(never_known, e)) ->
		if
		:: row[e] == NONE || HAS(ended, e) || HAS(breaking, e) -> AT(n, e) = EMPTY
		:: else ->
			SET(heard[e], n);
			AT(n, e) = ASKED;
			settle()
		fi
	   }
	/* spank/job_context.c:ocs_visit_job_left */
	:: d_step {
		(AT(n, e) == PROLOG || AT(n, e) == ASKED) && ctld[charge] == UP && !RUNS(charge, e) ->
		AT(n, e) = EMPTY
	   }
	/* slurmctld takes the job off the node, or the node has one that it does not know */
	:: d_step {
		(AT(n, e) == READY || AT(n, e) == EMPTY || AT(n, e) == TASK) && ctld[charge] == UP &&
		!RUNS(charge, e) -> AT(n, e) = EPILOG
	   }
	/* ocsd/protocol/dispatch.c:op_release */
	:: d_step {
		AT(n, e) == EPILOG && ocsd == SERVING ->
		if
#ifdef NO_EPOCH_AT_RELEASE
		:: newest[job_of[e]] > e && row[newest[job_of[e]]] != NONE ->
			i = newest[job_of[e]];
			SET(released[i], n);
			if :: RELEASED_BY_ALL(i) && !HAS(ended, i) -> job_end(i) :: else fi;
			AT(n, e) = NOTHING
		:: row[e] != NONE && !(newest[job_of[e]] > e && row[newest[job_of[e]]] != NONE) ->
#else
		:: row[e] != NONE ->
#endif
			SET(released[e], n);
			AT(n, e) = LEAVING;
			if :: RELEASED_BY_ALL(e) && !HAS(ended, e) -> job_end(e) :: else fi
		:: else -> AT(n, e) = NOTHING
		fi;
		settle()
	   }
	:: d_step {
		AT(n, e) == LEAVING && ocsd == SERVING &&
		(row[e] == NONE || !HAS(breaking, e) || HAS(announced, e)) -> AT(n, e) = NOTHING
	   }
	/* its time is up */
	:: d_step { (AT(n, e) == EPILOG || AT(n, e) == LEAVING) && ocsd == DEAD -> AT(n, e) = NOTHING }
	fi
}

proctype Node(byte n; byte epoch)
{
end:	do
	:: visit(n, epoch)
	od
}

/* ---- slurmctld ---- */

inline tell(c, what, e)
{
	if :: link[c] != CLOSED -> to_ocsd[c] ! what, e :: else fi
}

#define ROOM(c) (len(to_ocsd[c]) <= 2)

/* select_p_job_fini */
inline job_leaves(c, j)
{
	STATE(c, j) = COMPLETING;
	ALLOC(c, EPOCH(c, j)) = ENDED;
	DROP(listed[c], EPOCH(c, j));
	DROP(verified[c], EPOCH(c, j));
	tell(c, END, EPOCH(c, j))
}

#ifdef NO_LISTED
#define LISTED(c, e) true
#else
#define LISTED(c, e) HAS(listed[c], e)
#endif

/* scheduler/messages.c:ocs_message_subscribed */
inline subscribed(c)
{
	for (i : 1 .. EPOCHS) {
#ifndef NO_FORGOTTEN
		if
		:: HAS(reply_forgotten[c], i) && ALLOC(c, i) == UNKNOWN -> SET(forgotten[c], i)
		:: else
		fi;
#endif
		if
#ifndef NO_HELD_DROPPED
		:: ALLOC(c, i) >= ENDED && LISTED(c, i) && !HAS(reply_held[c], i) -> ALLOC(c, i) = UNKNOWN
#endif
		:: ALLOC(c, i) == GONE && LISTED(c, i) && HAS(reply_held[c], i) -> tell(c, GO, i)
		:: ALLOC(c, i) == UNKNOWN && HAS(reply_held[c], i) -> ALLOC(c, i) = GONE; tell(c, GO, i)
#ifndef NO_COMMIT_AGAIN
		:: ALLOC(c, i) == LIVING && HAS(reply_unknown[c], i) -> tell(c, COMMIT, i)
#endif
		:: else
		fi
	}
	listed[c] = 0;
	link[c] = SUBSCRIBED;
	answered[c] = false;
	reply_held[c] = 0;
	reply_forgotten[c] = 0;
	reply_unknown[c] = 0
}

#define HOLDS_NONE(c) (ALLOC(c, 1) < ENDED && FREE_2(c) && FREE_3(c))
#if EPOCHS > 1
#define FREE_2(c) (ALLOC(c, 2) < ENDED)
#else
#define FREE_2(c) true
#endif
#if EPOCHS > 2
#define FREE_3(c) (ALLOC(c, 3) < ENDED)
#else
#define FREE_3(c) true
#endif
#define IDLE(c, j) (STATE(c, j) == PENDING || STATE(c, j) == DONE)

/* select_p_job_begin, scheduler/allocation.c:ocs_controller_begin */
inline begin(c, j)
{
	d_step {
		ctld[c] == UP && STATE(c, j) == PENDING && IDLE(c, 1 - j) && ROOM(c) &&
		link[c] == SUBSCRIBED && HOLDS_NONE(c) && !forgotten[c] && epochs < EPOCHS ->
		epochs++;
		job_of[epochs] = j;
		STATE(c, j) = RUNNING;
		EPOCH(c, j) = epochs;
		ALLOC(c, epochs) = LIVING;
		AT(0, epochs) = PROLOG;
		AT(1, epochs) = PROLOG;
#ifdef SILENT_NODE
		AT(1, epochs) = READY;	/* has no plugin: its prolog asks for nothing */
#endif
		to_ocsd[c] ! COMMIT, epochs
	}
}

#ifdef NO_LAUNCH_HELD
#define MAY_LAUNCH(c, e) true
#else
#define MAY_LAUNCH(c, e) HAS(verified[c], e)
#endif

/* hold.c: its prologs have ended, and ocsd, asked who is missing, does not call it ready */
#define PATIENCE_ENDS(e) (ANY(e, EMPTY) || (BOTH(e, READY) && ocsd == SERVING && !HAS(met, e)))

inline serve(c, j)
{
	if
	:: begin(c, j)
	/* the launch: all prologs are done, and ocsd has said that the circuits stand */
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && MAY_LAUNCH(c, EPOCH(c, j)) &&
		BOTH(EPOCH(c, j), READY) ->
		e = EPOCH(c, j);
		if
		:: c == charge ->
			assert(HAS(seen, e));
#ifdef SILENT_NODE
			assert(false);
#endif
			for (i : 1 .. EPOCHS) { assert(!ANY(i, TASK) || HAS(stray, i)) }
		/* It hung, has woken up, and is about to learn that it is not in charge:
		 * Slurm ends what it still starts. */
		:: else -> SET(stray, e)
		fi;
		i = 0;
		AT(0, e) = TASK;
		AT(1, e) = TASK;
		SET(launched, e)
	   }
	/* it ends: by itself, by scancel, because a node has died */
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && HAS(launched, EPOCH(c, j)) && ROOM(c) ->
		job_leaves(c, j);
	   }
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && !HAS(launched, EPOCH(c, j)) && cancels && ROOM(c) ->
		cancels--;
		job_leaves(c, j);
	   }
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && ANY(EPOCH(c, j), NOTHING) && ROOM(c) ->
		job_leaves(c, j);
	   }
#ifndef NO_END_OF_PATIENCE
	/* it is held for circuits that will not come, or a node will not launch it */
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && ROOM(c) && link[c] == SUBSCRIBED &&
		PATIENCE_ENDS(EPOCH(c, j)) ->
		job_leaves(c, j);
	   }
#endif
	/* ... or calls it ready, also if it was told of an end that slurmctld did not save */
	:: d_step {
		ctld[c] == UP && STATE(c, j) == RUNNING && link[c] == SUBSCRIBED && ocsd == SERVING &&
		BOTH(EPOCH(c, j), READY) && HAS(met, EPOCH(c, j)) && !HAS(verified[c], EPOCH(c, j)) ->
		SET(verified[c], EPOCH(c, j))
	   }
	/* failure.c:ocs_select_fail */
	:: d_step {
		ctld[c] == UP && link[c] == SUBSCRIBED && STATE(c, j) == RUNNING &&
		HAS(said_failed[c], EPOCH(c, j)) && ROOM(c) ->
		DROP(said_failed[c], EPOCH(c, j));
		job_leaves(c, j)
	   }
	/* the last node has cleaned up; select/background_thread.c:watch_holders */
	:: atomic {
		ctld[c] == UP && STATE(c, j) == COMPLETING && BOTH(EPOCH(c, j), NOTHING) && ROOM(c) ->
		if
		:: ALLOC(c, EPOCH(c, j)) == ENDED ->
#ifndef NO_GONE
			ALLOC(c, EPOCH(c, j)) = GONE;
			tell(c, GO, EPOCH(c, j))
#endif
		:: else
		fi;
		if
		:: STATE(c, j) = DONE
		:: j == 0 -> STATE(c, j) = PENDING	/* requeued */
		fi;
		EPOCH(c, j) = 0
	   }
	fi
}

#define SAVED(c) (disk_state[0] == STATE(c, 0) && disk_state[1] == STATE(c, 1) && \
		  disk_epoch[0] == EPOCH(c, 0) && disk_epoch[1] == EPOCH(c, 1))

inline die(c)
{
	ctld[c] = DEAD;
	drop(c);
	said_superseded[c] = false;
	listed[c] = 0; forgotten[c] = 0; verified[c] = 0;
	STATE(c, 0) = 0; STATE(c, 1) = 0; EPOCH(c, 0) = 0; EPOCH(c, 1) = 0;
	for (i : 1 .. EPOCHS) { ALLOC(c, i) = UNKNOWN }
	i = 0
}

proctype Slurmctld(byte me)
{
end:	do
	:: serve(me, 0)
	:: serve(me, 1)
	/* scheduler/link.c:subscribe */
	:: d_step {
		ctld[me] == UP && link[me] == CLOSED && ocsd == SERVING && !said_superseded[me] ->
		e = 0;
		for (i : 1 .. EPOCHS) {
			if
			:: ALLOC(me, i) == LIVING -> SET(e, i)
			:: else
			fi;
			if :: ALLOC(me, i) != UNKNOWN -> SET(listed[me], i) :: else fi
		}
		link[me] = OPEN;
		to_ocsd[me] ! SUBSCRIBE, e
	   }
	:: d_step { ctld[me] == UP && link[me] == OPEN && answered[me] && len(to_ocsd[me]) <= 2 -> subscribed(me) }
	/* scheduler/messages.c:ocs_message_event, take_shown */
	:: d_step {
		ctld[me] == UP && link[me] == SUBSCRIBED && (said_released[me] || said_unknown[me]) ->
		for (i : 1 .. EPOCHS) {
			if
			:: (HAS(said_released[me], i) || HAS(said_unknown[me], i)) && ALLOC(me, i) >= ENDED ->
				ALLOC(me, i) = UNKNOWN
			:: else
			fi
		}
		said_released[me] = 0; said_unknown[me] = 0
	   }
	:: d_step {
		ctld[me] == UP && link[me] == SUBSCRIBED && said_verified[me] ->
		for (i : 1 .. EPOCHS) {
			if
			:: HAS(said_verified[me], i) && ALLOC(me, i) == LIVING -> SET(verified[me], i)
			:: else
			fi
		}
		said_verified[me] = 0
	   }
	/* a failure of a job that is not running any more is no news */
	:: d_step {
		ctld[me] == UP && link[me] == SUBSCRIBED && said_failed[me] ->
		for (i : 1 .. EPOCHS) {
			if :: HAS(said_failed[me], i) && !RUNS(me, i) -> DROP(said_failed[me], i) :: else fi
		}
		i = 0;
	   }
	/* scheduler/lost_jobs.c: told to stop, and some seconds have passed */
	:: d_step {
		ctld[me] == UP && forgotten[me] ->
		for (i : 1 .. EPOCHS) {
			if :: HAS(forgotten[me], i) && BOTH(i, NOTHING) -> DROP(forgotten[me], i) :: else fi
		}
		i = 0
	   }
	/* Slurm saves its state some seconds after a change; who is never killed may forget it */
	:: d_step {
		ctld[me] == UP && charge == me && (ctld_kills || takeovers) && !SAVED(me) ->
		disk_state[0] = STATE(me, 0); disk_state[1] = STATE(me, 1);
		disk_epoch[0] = EPOCH(me, 0); disk_epoch[1] = EPOCH(me, 1)
	   }
	/* select/background_thread.c:superseded: it ends without saving */
	:: d_step { ctld[me] == UP && said_superseded[me] -> die(me) }
	od
}

/* select/job_record.c:ocs_select_restore_all */
inline restore(c, j)
{
	STATE(c, j) = disk_state[j];
	EPOCH(c, j) = disk_epoch[j];
	if
	:: disk_state[j] == RUNNING -> ALLOC(c, disk_epoch[j]) = LIVING
	:: disk_state[j] == COMPLETING -> ALLOC(c, disk_epoch[j]) = ENDED
	:: else
	fi
}

inline come_up(c)
{
	ctld[c] = UP;
	charge = c;
	sequence++;
	took[c] = sequence;
#ifdef NO_NEW_EPOCH
	epochs = (disk_epoch[0] > disk_epoch[1] -> disk_epoch[0] : disk_epoch[1]);
#endif
	restore(c, 0);
	restore(c, 1);
	if
	:: ctld_kills || takeovers
	:: else -> disk_state[0] = 0; disk_state[1] = 0; disk_epoch[0] = 0; disk_epoch[1] = 0
	fi
}

inline claim(e)
{
	if :: !owner -> owner = e :: else -> next = e fi
}

/* ocsd/jobs/restore.c, ocsd/jobs/job.c:ocsd_jobs_load: what the database says when ocsd is back */
inline load()
{
	owner = 0; next = 0; slot = 0; postponed = 0; never_known = 0; unknown = 0; breaking = 0; sent = 0;
	for (i : 1 .. EPOCHS) {
		if
		:: row[i] == NONE
		:: else ->
			if
			/* not written before it is realised, nor while it is in doubt */
			:: circuit[i] == CONNECTED && (row[i] == APPLYING || UNSURE(i)) -> circuit[i] = CONNECTING
			:: else
			fi;
			if :: row[i] == APPLYING -> row[i] = COMMITTED :: else fi;
			if
			:: circuit[i] != PLANNED && circuit[i] != AWAY ->
				SET(sent, i);
				if :: !slot || circuit[i] == DELETING -> slot = i :: else fi
			:: else
			fi
		fi
	}
	unsure = 0; sure = SURE;
#ifndef NO_DOUBT_AFTER_RESTART
	for (i : 1 .. EPOCHS) {
		if
		:: row[i] != NONE && (circuit[i] == CONNECTING || circuit[i] == DELETING) ->
			SET(unsure, i);
			sure = DOUBT
		:: else
		fi
	}
#endif
	/* those that have ended first */
	for (i : 1 .. EPOCHS) {
		if
		:: row[i] != NONE && HAS(ended, i) && (circuit[i] != AWAY || !BREAK_DUE(i)) -> claim(i)
		:: else
		fi
	}
	for (i : 1 .. EPOCHS) {
		if :: row[i] != NONE && !HAS(ended, i) -> claim(i) :: else fi
	}
	sw = STARTING; dirty = false; answers = false; busy = 0; again = false; lost = false
}

inline kill_ocsd()
{
	ocsd = DEAD;
	drop(0);
	drop(1);
	for (i : 1 .. EPOCHS) {
		if :: AT(0, i) == ASKED -> AT(0, i) = PROLOG :: AT(0, i) == LEAVING -> AT(0, i) = EPILOG :: else fi;
		if :: AT(1, i) == ASKED -> AT(1, i) = PROLOG :: AT(1, i) == LEAVING -> AT(1, i) = EPILOG :: else fi;
		heard[i] = 0
	}
#ifdef NO_COMMIT_BEFORE_WORDS
	/* what it did last it has said, and not yet written */
	for (i : 1 .. EPOCHS) {
		if :: row[i] == APPLYING -> forget(i) :: else fi
	}
#endif
	load()
}

#if EPOCHS > 1
#define NOTHING_2 (AT(1, 2) == NOTHING)
#else
#define NOTHING_2 true
#endif
#if EPOCHS > 2
#define NOTHING_3 (AT(1, 3) == NOTHING)
#else
#define NOTHING_3 true
#endif

proctype Chaos()
{
end:	do
	/* its batch: never sent, done, or done later */
	:: atomic {
		ocsd != DEAD && ocsd_kills ->
		ocsd_kills--;
		if
		:: busy && SENDS && !(late[0] && late[1]) -> put_off(busy)
		:: true
		fi;
		d_step { kill_ocsd() }
	   }
	/* not twice within the seconds for which the nodes of a forgotten job are held */
	:: d_step { ctld[charge] == UP && ctld_kills && !forgotten[charge] -> ctld_kills--; die(charge) }
	:: d_step { ctld[charge] == DEAD -> come_up(charge) }
	:: d_step {
		ctld[0] == UP && charge == 0 && takeovers ->
		takeovers--;
		ctld[0] = HUNG;
		come_up(1)
	   }
	:: d_step { ctld[0] == HUNG -> ctld[0] = UP }
	:: d_step { losses && link[charge] != CLOSED -> losses--; drop(charge) }
	:: d_step {
		deaths && !(AT(1, 1) == NOTHING && NOTHING_2 && NOTHING_3) ->
		deaths--;
		for (i : 1 .. EPOCHS) { AT(1, i) = NOTHING }
		i = 0
	   }
	od
}
/* When nothing can move any more, nothing is left. */
proctype Judge()
{
	timeout ->
	d_step {
		assert(!patch && !late[0]);
		assert(ocsd == SERVING && ctld[charge] == UP);
		for (i : 1 .. EPOCHS) {
			assert(row[i] == NONE);
			assert(ALLOC(charge, i) == UNKNOWN);
			assert(BOTH(i, NOTHING));
		}
		assert(!owner && !next && !slot && !forgotten[charge]);
		assert(STATE(charge, 0) == DONE || (STATE(charge, 0) == PENDING && epochs == EPOCHS));
		assert(STATE(charge, 1) == DONE || (STATE(charge, 1) == PENDING && epochs == EPOCHS));
	}
}

init {
	atomic {
		ocsd = SERVING;
		sw = SERVING;
		ctld[0] = UP;
#ifdef FAULTS
		/* any FAULTS of these, the same one more than once, too */
		for (i : 1 .. FAULTS) {
			if
			:: ocsd_kills++
			:: ctld_kills++
			:: hangs = hangs + 2
			:: reboots++
			:: deaths++
			:: losses++
			:: cancels++
			fi
		}
#endif
		sequence = 1;
		took[0] = 1;
		run Switch();
		run Ocsd();
		run Listener(0);
#if TAKEOVERS > 0
		run Listener(1);
#endif
		run Node(0, 1); run Node(1, 1);
#if EPOCHS > 1
		run Node(0, 2); run Node(1, 2);
#endif
#if EPOCHS > 2
		run Node(0, 3); run Node(1, 3);
#endif
		run Slurmctld(0);
#if TAKEOVERS > 0
		run Slurmctld(1);
#endif
		run Chaos();
		run Judge()
	}
}
