/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_CONFIG_CONFIG_H
#define OCS_CONFIG_CONFIG_H

/* From ocs.yaml, or a one-line description, to a fabric. */

#include "src/fabric/fabric.h"

/* Opens SPEC: the path of an ocs.yaml (it holds a '/' or ends in .yaml or .yml),
 * or a synthetic line:
 *   torus cubes:4x4x4 cube:4x4x4 tile:2x2x1      (64 cubes c0..c63)
 *   static:16x16x16 tile:1x1x1
 *   direct servers:12 degree:4
 *   rails servers:16 rails:8
 * Nodes are n0, n1, ...  Returns NULL with ERR (code OCS_USAGE; for a file the
 * sentence starts with "FILE:LINE: "; OCS_ERROR if the file cannot be read).  Free with ocs_fabric_destroy. */
struct ocs_fabric *ocs_fabric_open(const char *spec, struct ocs_error *err);
/* The same for TEXT, LENGTH bytes of an ocs.yaml; SOURCE names it in errors. */
struct ocs_fabric *ocs_fabric_parse(const char *text, size_t length,
				    const char *source, struct ocs_error *err);

/* Keeps the text that FABRIC was read from as the file PATH, whole or not at all.  0, or -1
 * with ERR (the file has changed meanwhile, too). */
int ocs_fabric_keep(const struct ocs_fabric *fabric, const char *path, struct ocs_error *err);
/* Opens such a copy.  NULL with ERR: there is none, it is not whole, or no description. */
struct ocs_fabric *ocs_fabric_kept(const char *path, struct ocs_error *err);
/* Keeps the names of the partitions whose jobs all get circuits, those of rail and direct sections,
 * as the file PATH; reads that, which is freed (NULL with ERR: there is none, it is not whole); and
 * whether PARTITION (NULL: unknown) is one of them by TEXT, what was read. */
int ocs_fabric_partitions_keep(const struct ocs_fabric *fabric, const char *path,
			       struct ocs_error *err);
char *ocs_fabric_partitions_kept(const char *path, struct ocs_error *err);
bool ocs_fabric_partitions_have(const char *text, const char *partition);
/* How many of the LENGTH bytes of TEXT are the description: of such a copy, the original's. */
size_t ocs_fabric_text_length(const char *text, size_t length);

#endif
