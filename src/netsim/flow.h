/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_FLOW_H
#define OCS_NETSIM_FLOW_H

/* A network as fluid: flows over links share each link's rate max-min fair, and keep their rates
 * from one event to the next.  Times in ms, sizes in bytes, rates in bytes per ms.
 *
 * The caller starts flows, changes links, asks for the time of the next event, goes there, and
 * takes what has ended.  Everything done at one time counts as simultaneous.
 *
 * Tolerance: rate that ended flows leave is shared out TOLERANCE times the mean duration of the
 * flows around them later, in the mean, and at the latest twice that.  No link ever carries more
 * than its rate and every byte is carried; flows end late in the mean, by about the tolerance.
 * 0: at once. */

#include <stdbool.h>

struct ocs_error;
struct ocs_flownet;

#define OCS_FLOW_LINKS_MAX 64

/* What has ended. */
struct ocs_flow_end {
	int flow; /* its number is free for others */
	int tag;
	double time;
};

/* A network without links.  The caller destroys it. */
struct ocs_flownet *ocs_flownet_create(double tolerance);
void ocs_flownet_destroy(struct ocs_flownet *net);

/* Adds a link of RATE; returns its number, from 0 on. */
int ocs_flownet_link_add(struct ocs_flownet *net, double rate);
/* Changes a link's rate now.  0: nothing passes, its flows wait. */
void ocs_flownet_link_change(struct ocs_flownet *net, int link, double rate);
int ocs_flownet_links(const struct ocs_flownet *net);
double ocs_flownet_link_rate(const struct ocs_flownet *net, int link);
/* Bytes that have passed the link until now. */
double ocs_flownet_link_carried(const struct ocs_flownet *net, int link);

/* Starts COUNT equal flows of BYTES each over N different LINKS, 1 to OCS_FLOW_LINKS_MAX, now; they
 * share as COUNT flows do and end as one.  TAG comes back when they end.  Returns a number. */
int ocs_flownet_start(struct ocs_flownet *net, const int *links, int n, double bytes, int count,
		      int tag);
/* Bytes that are left of each. */
double ocs_flownet_left(const struct ocs_flownet *net, int flow);
double ocs_flownet_flow_rate(const struct ocs_flownet *net, int flow);
/* Takes the flow off the network, and puts it back with what was left.  Twice is once. */
void ocs_flownet_pause(struct ocs_flownet *net, int flow);
void ocs_flownet_resume(struct ocs_flownet *net, int flow);
/* What is left goes over other links.  A paused flow stays paused. */
void ocs_flownet_reroute(struct ocs_flownet *net, int flow, const int *links, int n);

double ocs_flownet_now(const struct ocs_flownet *net);
/* The time of the next event, INFINITY where no flow will ever end.  Shares rates out. */
double ocs_flownet_next(struct ocs_flownet *net);
/* Goes on to TIME, not before now and not after the next event. */
void ocs_flownet_advance(struct ocs_flownet *net, double time);
/* What has ended since this was last asked, in the order in which it ended; valid until the next
 * call of any function. */
const struct ocs_flow_end *ocs_flownet_ended(struct ocs_flownet *net, int *count);

/* How often rates were shared out, and over how many paths in all: what a run costs. */
void ocs_flownet_effort(const struct ocs_flownet *net, long *solves, double *paths);

/* Whether no link carries more than its rate, and (with FAIR, right after ocs_flownet_next at
 * tolerance 0) each flow has a full link on which none is faster.  0, or -1 with ERR. */
int ocs_flownet_check(const struct ocs_flownet *net, bool fair, struct ocs_error *err);

#endif
