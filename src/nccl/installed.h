/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_INSTALLED_H
#define OCS_NCCL_INSTALLED_H

/* Which release of NCCL a program will load, as far as its environment tells. */

struct ocs_nccl_places {
	const char *root; /* before paths of the system, "" */
	/* The variable NAME, freed by the caller; NULL: not set */
	char *(*variable)(void *arg, const char *name);
	void *arg;
};

/* The lowest release (release.h) of the libraries that are there: of LD_LIBRARY_PATH, of the Python
 * environments that VIRTUAL_ENV, CONDA_PREFIX, PATH, PYTHONPATH, PYTHONUSERBASE and HOME name, in which
 * PyTorch brings its own (nvidia/nccl/lib), and of the system.  Which of them a program takes is its
 * own decision, so that one whose release is not known makes the answer 0, as if there were none.
 * *PATH (may be NULL; caller frees) is the library that decided, or NULL. */
int ocs_nccl_installed(const struct ocs_nccl_places *places, char **path);

#endif
