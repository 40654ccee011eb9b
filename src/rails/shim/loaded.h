/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_LOADED_H
#define OCS_RAILS_SHIM_LOADED_H

/* A handle for dlsym of a library of this process that may have been loaded late and privately: the file whose name begins
 * with NAME.  NULL: there is none. */
void *ocs_shim_loaded(const char *name);

#endif
