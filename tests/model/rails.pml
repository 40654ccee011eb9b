/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The protocol of photonic rails (doc/rails.md): four ranks, pp:2 and dp:2, their controller, and
 * ocsd with a switch.  Messages about topologies get lost, come late and twice; timers run out early.
 * -DNO_... takes a rule away, which must come out.
 *
 *   rank 0 --P0-- rank 2      a group per circuit: its two ends
 *     | D0          | D1
 *   rank 1 --P1-- rank 3
 */

#define RINGS 1	/* D0 and D1 stand */
#define PIPES 2	/* P0 and P1 stand */
#define GIANT 3	/* the ring through all: whoever sends reaches whom it wants, and it stays */

#define D0 0
#define D1 1
#define P0 2
#define P1 3
#define CIRCUITS 4

#define BIT(n) (1 << (n))
#define CIRCUITS_OF(t) ((t) == RINGS -> 3 : ((t) == PIPES -> 12 : ((t) == GIANT -> 15 : 0)))
#define HAS(set, n) (((set) >> (n)) & 1)
#define MEMBERS(g) ((g) == D0 -> 3 : ((g) == D1 -> 12 : ((g) == P0 -> 5 : 10)))

#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef DOUBLES
#define DOUBLES 0
#endif
#ifndef EARLY
#define EARLY 0	/* timers that run out though an answer is under way */
#endif
#ifndef WISHES
#define WISHES 0
#endif
#define TRIES 2

/* ranks */
byte arrived[CIRCUITS], granted[CIRCUITS], received[CIRCUITS], ended[CIRCUITS];
byte done;
/* frames under way, and what the switch has: the judge's */
byte frames[CIRCUITS];
byte up = 0;
/* controller */
byte open = 0;		/* leases */
byte view = 0;		/* verified topology */
byte target = 0;
bool changing = false;
byte seq = 0, tries = 0;
bool giving_up = false;
byte held = 0;		/* a wish that holds, without its rule */
byte losses = LOSSES, doubles = DOUBLES, early = EARLY, wishes = WISHES;
/* ocsd and its switch */
byte stands = RINGS, coming = 0, busy = 0, latest = 0;

chan requests = [4] of { byte, byte };	/* topology, seq */
chan answers = [4] of { byte };		/* seq */

/* Rank R takes part in an operation of group G with the rank of bit OTHER. */
inline operation(r, g, other)
{
	/* the operation before of this group is over for the controller, too */
	atomic { !HAS(arrived[g], r) -> arrived[g] = arrived[g] | BIT(r) }
	HAS(granted[g], r);
	d_step {
		assert(HAS(up, g));	/* G1 */
		frames[g]++
	}
	d_step {
		assert(HAS(up, g));	/* G1 */
		frames[g]--;
		received[g] = received[g] | BIT(other)
	}
	HAS(received[g], r);
	ended[g] = ended[g] | BIT(r)
}

/* The same within a phase; without rule 7 a rank then trusts its table. */
inline operation_again(r, g, other)
{
#ifdef NO_HINT
	d_step {
		assert(HAS(up, g));
		frames[g]++
	}
	d_step {
		assert(HAS(up, g));
		frames[g]--
	}
#else
	operation(r, g, other)
#endif
}

proctype Stage0(byte r; byte ring; byte pipe; byte beside; byte across)
{
	operation(r, pipe, across);
	operation(r, ring, beside);
	operation_again(r, ring, beside);
	operation(r, pipe, across);
	done++
}

proctype Stage1(byte r; byte ring; byte pipe; byte beside; byte across)
{
	operation(r, ring, beside);
	operation(r, pipe, across);
	operation(r, pipe, across);
	operation(r, ring, beside);
	done++
}

#define ALL_ARRIVED(g) (arrived[g] == MEMBERS(g))
#define DEMANDED(g) (ALL_ARRIVED(g) && granted[g] != MEMBERS(g))
#define COVERS(t, g) HAS(CIRCUITS_OF(t), g)
#define STANDS(g) (!changing && !giving_up && COVERS(view, g))
#define WANTED(t) ((COVERS(t, 0) && DEMANDED(0) && !COVERS(view, 0)) || \
		   (COVERS(t, 1) && DEMANDED(1) && !COVERS(view, 1)) || \
		   (COVERS(t, 2) && DEMANDED(2) && !COVERS(view, 2)) || \
		   (COVERS(t, 3) && DEMANDED(3) && !COVERS(view, 3)))
/* What stands is used before it is changed: else two demands could undo each other's topology for ever
 * (the code serves the oldest first). */
#define USED(g) (!(DEMANDED(g) && COVERS(view, g)))
#define SERVED (USED(0) && USED(1) && USED(2) && USED(3))
#ifdef NO_LEASE
#define FREE(t) true
#else
#define FREE(t) (!(open & ~CIRCUITS_OF(t)))
#endif
#define QUIET (!busy && len(requests) == 0 && len(answers) == 0)
#ifdef NO_YIELD
#define UNHELD (!held)
#else
#define UNHELD true
#endif

inline request(t)
{
	seq++;
	target = t;
	changing = true;
	resend(t)
}

/* under the same number */
inline resend(t)
{
	tries++;
	if
	:: len(requests) < 4 -> requests ! t, seq
	:: len(requests) == 4	/* lost */
	fi
}

inline serve(g)
{
	if
	/* rule 1 */
	:: d_step {
#ifdef NO_ALL_ARRIVED
		arrived[g] && granted[g] != arrived[g] && STANDS(g) ->
		granted[g] = arrived[g];
#else
		DEMANDED(g) && STANDS(g) ->
		granted[g] = MEMBERS(g);
#endif
		open = open | BIT(g);
		if :: held && COVERS(held, g) -> held = 0 :: else fi
	   }
	/* rule 3 */
#ifdef NO_DRAIN
	:: d_step { HAS(open, g) && ended[g] -> open = open & ~BIT(g) }
#endif
	:: d_step {
		ended[g] == MEMBERS(g) ->
		open = open & ~BIT(g);
		arrived[g] = 0; granted[g] = 0; received[g] = 0; ended[g] = 0
	   }
	fi
}

inline demand(t)
{
	d_step {
		!changing && !giving_up && view != GIANT && view != t && WANTED(t) && SERVED && FREE(t) && UNHELD ->
		tries = 0;
		request(t)
	}
}

inline wish(t)
{
	d_step {
		wishes && !changing && !giving_up && view && view != GIANT && view != t && FREE(t) ->
		wishes--;
		held = t;
		tries = 0;
		request(t)
	}
}

proctype Controller()
{
	byte s;

end:	do
	:: serve(D0)
	:: serve(D1)
	:: serve(P0)
	:: serve(P1)
	:: demand(RINGS)
	:: demand(PIPES)
	:: wish(RINGS)
	:: wish(PIPES)
	:: d_step {
		len(answers) -> answers ? s;
		if
#ifdef NO_STALE
		:: changing ->
#else
		:: changing && s == seq ->
#endif
			view = target;
			changing = false
		:: else	/* dropped */
		fi;
		s = 0
	   }
#ifndef NO_TIMER
	/* a timer runs out: nothing is under way any more, or it is early */
	:: d_step {
		changing && ((QUIET) || early) ->
		if
		:: QUIET -> skip
		:: else -> early--
		fi;
		if
#ifdef NO_ERROR
		:: true ->
			view = target;
			changing = false
#else
		:: tries < TRIES && target != GIANT -> resend(target)
		:: target == GIANT -> resend(GIANT)
		:: else ->
			changing = false;
			giving_up = true
#endif
		fi
	   }
#endif
	/* the giant ring cuts everything else */
	:: d_step {
		giving_up && !open ->
		giving_up = false;
		view = 0;
		request(GIANT)
	   }
	od
}

proctype Ocsd()
{
	byte t, s;

end:	do
	:: atomic {
		!busy && len(requests) -> requests ? t, s;
		if
		:: losses -> losses--
		:: true ->
			d_step {
				if
				:: s < latest
#ifndef NO_ABSOLUTE
				:: s == latest -> busy = s; coming = stands	/* done; it is answered again */
#endif
				:: else ->
					latest = s;
#ifdef NO_ABSOLUTE
					/* a request says that something else is to stand */
					t = (stands == RINGS -> PIPES : RINGS);
#endif
					coming = t;
					busy = s;
					if
					:: t == stands
					:: else ->
						/* G2: no frame, and no operation, on what is cut */
						for (t : 0 .. CIRCUITS - 1) {
							if
							:: HAS(up, t) && (coming == GIANT || !COVERS(coming, t)) ->
								assert(!frames[t]);
								assert(!granted[t])
							:: else
							fi
						}
						up = (coming == GIANT -> 0 : up & CIRCUITS_OF(coming))
					fi
				fi;
				t = 0
			}
		fi;
		s = 0; t = 0
	   }
	:: atomic {
		busy ->
		stands = coming;
		up = CIRCUITS_OF(stands);
		if
		:: losses -> losses--
		:: doubles && len(answers) < 3 -> doubles--; answers ! busy; answers ! busy
		:: len(answers) < 4 -> answers ! busy
		:: len(answers) == 4
		fi;
		busy = 0
	   }
	od
}

/* When nothing can move any more, all operations are over. */
proctype Judge()
{
	timeout -> assert(done == 4)
}

init {
	atomic {
		up = CIRCUITS_OF(RINGS);
		view = RINGS;
		run Stage0(0, D0, P0, 1, 2);
		run Stage0(1, D0, P1, 0, 3);
		run Stage1(2, D1, P0, 3, 0);
		run Stage1(3, D1, P1, 2, 1);
		run Controller();
		run Ocsd();
		run Judge()
	}
}
