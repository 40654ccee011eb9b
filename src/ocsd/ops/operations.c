/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/ops/operations.h"

#include "src/protocol/names.h"

const struct ocsd_operation_entry ocsd_operations[] = {
	{ OCS_OP_APPLY, ocsd_op_apply, false, OCSD_CHANGES },
	{ OCS_OP_RELEASE, ocsd_op_release, false, OCSD_CHANGES },
	{ OCS_OP_UNABLE, ocsd_op_unable, false, OCSD_CHANGES },
	{ OCS_OP_PRESENT, ocsd_op_present, false, OCSD_LOOKS },
	{ OCS_OP_UNHEARD, ocsd_op_unheard, false, OCSD_LOOKS },
	{ OCS_OP_COMMIT, ocsd_op_commit, false, OCSD_CHANGES },
	{ OCS_OP_PREPARE, ocsd_op_prepare, false, OCSD_TELLS },
	{ OCS_OP_END, ocsd_op_end, false, OCSD_CHANGES },
	{ OCS_OP_GONE, ocsd_op_gone, false, OCSD_CHANGES },
	{ OCS_OP_SUBSCRIBE, ocsd_op_subscribe, false, OCSD_LOOKS },
	{ OCS_OP_PENDING, ocsd_op_pending, false, OCSD_LOOKS },
	{ OCS_OP_NODES, ocsd_op_nodes, false, OCSD_LOOKS },
	{ OCS_OP_SHOW, ocsd_op_show, true, OCSD_LOOKS },
	{ OCS_OP_DRAIN, ocsd_op_drain, false, OCSD_TELLS },
	{ OCS_OP_FAIL, ocsd_op_fail, false, OCSD_TELLS },
	{ OCS_OP_RESUME, ocsd_op_resume, false, OCSD_TELLS },
	{ OCS_OP_RECONCILE, ocsd_op_reconcile, false, OCSD_TELLS },
	{ NULL, NULL, false, OCSD_LOOKS },
};
