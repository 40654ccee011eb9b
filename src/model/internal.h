/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MODEL_INTERNAL_H
#define OCS_MODEL_INTERNAL_H

#include "src/config/document.h"
#include "src/model/model.h"

/* In joins while a file is read: all branches that are open. */
#define OCS_MODEL_JOIN_ALL (-1)

/* Reads one operator, a mapping NODE, of a model with SEQUENCE tokens per sample.  Returns 0,
 * or -1 with the error of YAML; the caller frees name either way. */
int ocs_model_operator_read(struct ocs_yaml *yaml, yaml_node_t *node, int sequence,
			    struct ocs_model_operator *op);

#endif
