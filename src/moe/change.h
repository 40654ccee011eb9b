/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CHANGE_H
#define OCS_MOE_CHANGE_H

#include "src/moe/allocate.h"

/* What a change costs and for how long it pays; all times in tokens per NIC rate. */
struct ocs_moe_change {
	double remaining; /* all-to-alls with this demand before the next change */
	double first;	  /* until one exchanged circuit carries light */
	double each;	  /* what every further one adds */
	double window;	  /* of that is hidden: nothing is to be sent meanwhile */
};

/* How many circuits of request->keep to exchange, and for which: those for which the all-to-alls
 * that remain, and what of the switching is not hidden, end first.  Keeping everything is one of
 * the answers.  request->policy and request->change are not looked at.  The caller destroys
 * them. */
struct ocs_moe_circuits *ocs_moe_change_choose(const struct ocs_moe_request *request,
					       const struct ocs_moe_change *change);

#endif
