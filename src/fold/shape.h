/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FOLD_SHAPE_H
#define OCS_FOLD_SHAPE_H

#include <stdbool.h>

struct ocs_error;

#define OCS_SHAPE_DIMS 6
#define OCS_SHAPE_NAME 12 /* characters of the name of a dimension */
#define OCS_SHAPE_EXTENT_MAX (1 << 20)

/* Whether the circuits of rails follow the phases of the job: not; or they are changed when a phase
 * ends, for the next one; or when its first operation comes. */
enum ocs_phases { OCS_PHASES_OFF, OCS_PHASES_PROVISIONED, OCS_PHASES_ON_DEMAND };
/* "off", "provisioned", "on-demand", and back: 0, or -1 with ERR (OCS_USAGE). */
const char *ocs_phases_name(enum ocs_phases phases);
int ocs_phases_parse(const char *text, enum ocs_phases *phases, struct ocs_error *err);

/* How the circuits of a mixture of experts are treated, as --ocs-moe says: bits, 0 without it. */
enum ocs_moe_wish {
	OCS_MOE_WISH = 1, /* its expert-parallel groups get circuits, which follow its gates */
	OCS_MOE_WISH_STATIC = 2,     /* they stay as they are at first */
	OCS_MOE_WISH_NO_PREDICT = 4, /* and are not changed on a prediction */
	OCS_MOE_WISH_NO_RELAY = 8,   /* no tokens take two hops */
	OCS_MOE_WISH_BALANCED = 16,  /* the first ones are balanced, whatever an earlier run had */
};
/* "follow" or "static", and behind it ",no-predict", ",no-relay", ",balanced"; BUFFER has OCS_MOE_WISH_TEXT
 * bytes.  Back: such words in any order, each once; "", NULL and "follow" are the default.  0, or -1 with
 * ERR (OCS_USAGE). */
#define OCS_MOE_WISH_TEXT 48
char *ocs_moe_wish_format(int wish, char *buffer);
int ocs_moe_wish_parse(const char *text, int *wish, struct ocs_error *err);

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
	/* Names of the dimensions, "" where they have none: all have one, or none.  They are labels
	 * of the job's own; only rails look for the dimension of pipeline stages. */
	char name[OCS_SHAPE_DIMS][OCS_SHAPE_NAME + 1];
	enum ocs_phases phases;
	int moe;    /* enum ocs_moe_wish */
	int marked; /* 1 + the dimension that the user marked as the one of the stages, or 0 */
};

/* Parses TEXT ("4x8x2", "18", "4x4x8_twisted", X is as good as x; or with a name for each dimension
 * "pp:3,dp:2,tp:8", where + behind one name marks the stages: "deep+:3,dp:2") and CONN ("torus", "mesh", or
 * one per dimension, comma separated; NULL: torus).  Returns 0, or -1 with ERR
 * (code OCS_USAGE): one line that names the fault and shows a correct form. */
int ocs_shape_parse(const char *text, const char *conn, struct ocs_shape *shape,
		    struct ocs_error *err);

/* "4x8x2" and "torus,torus,mesh"; BUFFER is at least OCS_SHAPE_TEXT bytes. */
#define OCS_SHAPE_TEXT 160
char *ocs_shape_format(const struct ocs_shape *shape, char *buffer);
char *ocs_shape_conn_format(const struct ocs_shape *shape, char *buffer);
/* As the user writes it: "pp:3,dp:2,tp:8" where the dimensions have names, else as
 * ocs_shape_format. */
char *ocs_shape_named_format(const struct ocs_shape *shape, char *buffer);

bool ocs_shape_named(const struct ocs_shape *shape);
/* TO, of the same extents, gets the names of FROM. */
void ocs_shape_names_copy(const struct ocs_shape *from, struct ocs_shape *to);
/* The dimension whose coordinates are the stages of a pipeline: the marked one, else the one named
 * pp (or PP), else -1. */
int ocs_shape_stages(const struct ocs_shape *shape);
/* The dimension of the experts, the one named ep (or EP), or -1. */
int ocs_shape_experts(const struct ocs_shape *shape);

/* Whether the wrap of dimension DIM of a twisted shape shifts others, and by how
 * much it shifts dimension OTHER (0: not): k of kxkx2k and kx2kx2k. */
bool ocs_shape_shifts(const struct ocs_shape *shape, int dim);
int ocs_shape_shift(const struct ocs_shape *shape, int dim, int other);

/* Whether A and B lie alike: all but names, phases and moe is the same. */
bool ocs_shape_same(const struct ocs_shape *a, const struct ocs_shape *b);

/* Row-major rank of COORD and back. */
long ocs_shape_rank(const struct ocs_shape *shape, const int *coord);
void ocs_shape_coord(const struct ocs_shape *shape, long rank, int *coord);

/* The request as it travels in a job's Extra: "shape=4x8x2
 * conn=torus,torus,torus no-rotate no-fold phases=provisioned moe=follow" (words only where they differ from
 * the defaults, shape first, with its names).  Returns a string the caller frees. */
char *ocs_shape_extra_format(const struct ocs_shape *shape);
/* Finds those words in EXTRA (other words are left alone, the last shape=
 * counts).  Returns 1 if there is a shape, 0 if none, -1 with ERR. */
int ocs_shape_extra_parse(const char *extra, struct ocs_shape *shape, struct ocs_error *err);

#endif
