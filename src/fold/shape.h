/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FOLD_SHAPE_H
#define OCS_FOLD_SHAPE_H

#include <stdbool.h>

struct ocs_error;

#define OCS_SHAPE_DIMS 6
#define OCS_SHAPE_EXTENT_MAX (1 << 20)

/* What a job asks for.  Vertices are the coordinates; row-major rank, last
 * dimension fastest. */
struct ocs_shape {
	int ndim;		    /* 1..6 */
	int extent[OCS_SHAPE_DIMS]; /* XPUs along each dimension, >= 1 */
	bool mesh[OCS_SHAPE_DIMS];  /* a line instead of a ring */
	bool no_rotate;		    /* dimension i lies on axis i */
	bool no_fold;		    /* every dimension straight on one axis */
	bool twisted;		    /* "_twisted" suffix */
	long xpus;		    /* product of the extents */
};

/* Parses TEXT ("4x8x2", "18", "4x4x8_twisted"; X is as good as x) and CONN ("torus", "mesh", or
 * one per dimension, comma separated; NULL: torus).  Returns 0, or -1 with ERR
 * (code OCS_USAGE): one line that names the fault and shows a correct form. */
int ocs_shape_parse(const char *text, const char *conn, struct ocs_shape *shape,
		    struct ocs_error *err);

/* "4x8x2" and "torus,torus,mesh"; BUFFER is at least OCS_SHAPE_TEXT bytes. */
#define OCS_SHAPE_TEXT 96
char *ocs_shape_format(const struct ocs_shape *shape, char *buffer);
char *ocs_shape_conn_format(const struct ocs_shape *shape, char *buffer);

/* Whether the wrap of dimension DIM of a twisted shape shifts others, and by how
 * much it shifts dimension OTHER (0: not): k of kxkx2k and kx2kx2k. */
bool ocs_shape_shifts(const struct ocs_shape *shape, int dim);
int ocs_shape_shift(const struct ocs_shape *shape, int dim, int other);

/* Row-major rank of COORD and back. */
long ocs_shape_rank(const struct ocs_shape *shape, const int *coord);
void ocs_shape_coord(const struct ocs_shape *shape, long rank, int *coord);

/* The request as it travels in a job's Extra: "shape=4x8x2
 * conn=torus,torus,torus no-rotate no-fold" (words only where they differ from
 * the defaults, shape first).  Returns a string the caller frees. */
char *ocs_shape_extra_format(const struct ocs_shape *shape);
/* Finds those words in EXTRA (other words are left alone, the last shape=
 * counts).  Returns 1 if there is a shape, 0 if none, -1 with ERR. */
int ocs_shape_extra_parse(const char *extra, struct ocs_shape *shape, struct ocs_error *err);

#endif
