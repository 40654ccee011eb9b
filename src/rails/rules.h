/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_RULES_H
#define OCS_RAILS_RULES_H

/* The rules of the protocol between the ranks of a job, its controller and ocsd (doc/rails.md).  Each
 * stands in the code as OCS_RAILS_RULE(name); a test compiles the code once more and takes one rule
 * after the other away, which its judge must notice. */

enum ocs_rails_rule {
	OCS_RAILS_RULE_ALL_ARRIVED = 1, /* a lease opens when all members have arrived */
	OCS_RAILS_RULE_LEASES,		/* no circuit under a lease is cut */
	OCS_RAILS_RULE_DRAINED,		/* a lease closes after the drain at all members */
	OCS_RAILS_RULE_WISH,		/* what is provisioned holds nothing */
	OCS_RAILS_RULE_STALE,		/* a stale ACK is dropped */
	OCS_RAILS_RULE_TIMEOUT,		/* no answer is an error */
	OCS_RAILS_RULE_ABSOLUTE,	/* a request names a whole topology */
	OCS_RAILS_RULE_TABLE,		/* the phase table is a hint */
	OCS_RAILS_RULE_FROZEN,		/* nothing changes below packets that may take circuits */
	OCS_RAILS_RULES
};

#ifdef OCS_RAILS_MUTANTS
extern int ocs_rails_without;
#define OCS_RAILS_RULE(name) (ocs_rails_without != OCS_RAILS_RULE_##name)
#else
#define OCS_RAILS_RULE(name) 1
#endif

#endif
