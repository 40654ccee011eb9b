/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_BOX_SEARCH_H
#define OCS_PLACE_BOX_SEARCH_H

/* The decision: which candidate of a catalogue, on which cubes. */

#include "src/place/candidates.h"

struct ocs_box_search {
	const struct ocs_section *section;
	/* cubes with free XPUs, fullest first: broken cubes are used up before
	 * whole ones */
	int n;
	long xpus; /* free */
	int *cube;
	int *count;	 /* free XPUs */
	int *with;	 /* per number of XPUs: the first one that has so many */
	uint64_t *words; /* section->words each */
	const struct ocs_occupancy *blocked; /* NULL: no port is blocked */

	uint64_t *firsts;  /* the first XPU of each node */
	uint64_t *free_in; /* per XPU, of which the first one of a node counts: the loaded
				 * cubes where it is free; filled when first asked for */
	bool free_in_filled;
	bool free_in_turned; /* how that takes less, */
	long free_in_work;   /* and how much: in words */
	long scanned;	     /* words looked at because it was not */
	int tile_xpus;

	/* per class, filled when first asked for: bit i, cube[i] has room */
	int set_words; /* words of a set of cubes */
	int live;      /* of these, in which loaded cubes are */
	int class_room;
	uint64_t *sets;
	int *set_count; /* -1: not filled yet */
	const struct ocs_catalogue *sets_of;
	signed char *gates; /* 1: there are as many cubes, 0: not, -1: not asked yet */
	int gate_room;

	/* the answer */
	int candidate;
	int first; /* candidate that fits: none before it does */
	struct ocs_box_layout lay;
	int *piece_cube; /* cube of each piece of the grid, or -1 */
	int piece_room;

	/* since the caller last cleared them (ocs_place_work) */
	long candidates_seen, words_compared;
	bool bounded; /* candidates were left out for having been compared enough */

	/* scratch of the assignment of unlike pieces */
	int *owner, *seated, *tally, nseated;
	uint64_t *own;
	int use_room;
	uint64_t *members;
	int *by_cube;	    /* per cube of the section */
	uint64_t *narrowed; /* words of the cubes of the answer */

	/* static sections: scratch of ocs_static_search */
	void *scan;
	struct ocs_xpu *scan_xpus;
};

struct ocs_box_search *ocs_box_search_create(const struct ocs_section *section);
void ocs_box_search_destroy(struct ocs_box_search *fit);
/* Makes room for what deciding on CAT needs. */
void ocs_box_search_prepare(struct ocs_box_search *fit, const struct ocs_catalogue *cat);

/* Sets the free XPUs. */
void ocs_cube_sets_load(struct ocs_box_search *fit, const struct ocs_occupancy *occupancy);
/* Sets them to WORDS (section->words each) of the N cubes CUBES; blocked ports stay. */
void ocs_cube_sets_load_cubes(struct ocs_box_search *fit, const uint64_t *words, const int *cubes,
			      int n);
/* Leaves only the nodes of the answer free. */
void ocs_box_search_narrow(struct ocs_box_search *fit, const struct ocs_catalogue *cat);

/* Fills the answer with the best candidate of a torus section from index FROM on; false:
 * none fits. */
bool ocs_box_search_best(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int from);
/* Fewest loaded cubes that hold XPUS free ones; more than there are: all hold fewer. */
int ocs_box_search_cubes_holding(const struct ocs_box_search *fit, long xpus);
/* First loaded cube with at least XPUS free; all after it have as many. */
static inline int ocs_cube_sets_first_with(const struct ocs_box_search *fit, int xpus)
{
	return fit->with[xpus];
}

/* FREE_IN, filled. */
const uint64_t *ocs_cube_sets_free_in(struct ocs_box_search *fit);
/* Forgets the sets of another catalogue, or of other cubes: first of all. */
void ocs_cube_sets_reset(struct ocs_box_search *fit, const struct ocs_catalogue *cat);
/* How many loaded cubes have room for a piece of CLASS: looked up, where that is known. */
int ocs_cube_sets_fill(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int class);
static inline int ocs_cube_sets_class_count(struct ocs_box_search *fit,
					    const struct ocs_catalogue *cat, int class)
{
	return fit->set_count[class] < 0 ? ocs_cube_sets_fill(fit, cat, class) :
					   fit->set_count[class];
}
/* How many pieces of a candidate find a loaded cube each, at once; when that cannot be more
 * than THAN, a bound on it. */
int ocs_box_search_seats(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int candidate,
			 int than);
/* These cubes, after ocs_cube_sets_class_count. */
static inline const uint64_t *ocs_cube_sets_class(const struct ocs_box_search *fit, int class)
{
	return fit->sets + (size_t) class * (size_t)fit->set_words;
}

/* The sum of the free XPUs of the cheapest loaded cubes that the unlike pieces of C find, or
 * -1: there are none, or (as far as it is easy to tell) none below LIMIT.  seated[] holds
 * them, or those of as many pieces as find one. */
long ocs_seats_cost(struct ocs_box_search *fit, const struct ocs_candidate *c,
		    const struct ocs_class_use *uses, long limit);
/* The same for a candidate that fits; owner[] says which use each of them has. */
void ocs_seats_assign(struct ocs_box_search *fit, const struct ocs_candidate *c,
		      const struct ocs_class_use *uses);

/* The same for a static section (one cube with wraps): the first candidate that
 * fits at the first offset. */
bool ocs_static_search(struct ocs_box_search *fit, const struct ocs_catalogue *cat,
		       const struct ocs_occupancy *occupancy);
size_t ocs_static_search_size(void);

#endif
