/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/catalogue_scratch.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* An array that was larger is not kept: hardly any shape needs it. */
#define SPARE_MAX ((size_t)2 << 20)

/* Puts the COUNT items of ARRAY, which has just room for them, where there is more room; if there
 * is not, it is left.  Returns the array. */
static void *spare_lend(struct ocs_spare *spare, void *array, int count, size_t size, int *room)
{
	size_t bytes = (size_t)count * size;
	void *roomy = spare->memory;

	*room = count;
	if (!roomy || spare->bytes <= bytes)
		return array;
	if (count)
		memcpy(roomy, array, bytes);
	free(array);
	*room = (int)(spare->bytes / size);
	*spare = (struct ocs_spare){ NULL, 0 };
	return roomy;
}

/* Copies the COUNT items of ARRAY, which has ROOM, and takes it.  Returns the copy. */
static void *spare_return(struct ocs_spare *spare, void *array, int count, size_t size, int *room)
{
	size_t bytes = (size_t)*room * size, kept = ((size_t)count + 1) * size;
	void *copy;

	*room = count;
	if (bytes <= spare->bytes || bytes > SPARE_MAX)
		return ocs_realloc(array, kept);
	copy = ocs_realloc(NULL, kept);
	if (count)
		memcpy(copy, array, (size_t)count * size);
	free(spare->memory);
	*spare = (struct ocs_spare){ array, bytes };
	return copy;
}

#define LEND(spare, array, count, room) \
	((array) = spare_lend(&(spare), (array), (count), sizeof(*(array)), &(room)))
#define RETURN(spare, array, count, room) \
	((array) = spare_return(&(spare), (array), (count), sizeof(*(array)), &(room)))

void ocs_catalogue_scratch_free(struct ocs_catalogue_scratch *s)
{
	free(s->lights.memory);
	free(s->foldings.memory);
	free(s->tables.memory);
	free(s->mirror_of.memory);
	free(s->gap_nodes.memory);
	free(s->candidates.memory);
	free(s->gates.memory);
	free(s->uses.memory);
	free(s->pieces.memory);
	free(s->classes.memory);
	free(s->words.memory);
	free(s->mirrors.memory);
}

void ocs_catalogue_scratch_lights_lend(struct ocs_catalogue_scratch *s,
				       struct ocs_catalogue_rest *b)
{
	struct ocs_catalogue *cat = b->cat;
	int room[4], i;

	LEND(s->lights, b->lights, b->nlights, b->light_room);
	LEND(s->foldings, cat->foldings, cat->nfoldings, room[0]);
	LEND(s->tables, cat->tables, cat->nfoldings, room[1]);
	LEND(s->mirror_of, b->mirror_of, cat->nfoldings, room[2]);
	LEND(s->gap_nodes, b->gap_nodes, cat->nfoldings, room[3]);
	b->folding_room = room[0];
	for (i = 1; i < 4; i++)
		b->folding_room = room[i] < b->folding_room ? room[i] : b->folding_room;
}

void ocs_catalogue_scratch_lights_return(struct ocs_catalogue_scratch *s,
					 struct ocs_catalogue_rest *b)
{
	struct ocs_catalogue *cat = b->cat;
	int room[4] = { b->folding_room, b->folding_room, b->folding_room, b->folding_room };

	RETURN(s->lights, b->lights, b->nlights, b->light_room);
	RETURN(s->foldings, cat->foldings, cat->nfoldings, room[0]);
	RETURN(s->tables, cat->tables, cat->nfoldings, room[1]);
	RETURN(s->mirror_of, b->mirror_of, cat->nfoldings, room[2]);
	RETURN(s->gap_nodes, b->gap_nodes, cat->nfoldings, room[3]);
	b->folding_room = cat->nfoldings;
}

/* The arrays of a batch, which are lent and returned together: where room is spare, the array, its items
 * and its room. */
#define BATCH_ARRAYS(X)                                                               \
	X(s->candidates, cat->candidates, cat->ncandidates, b->candidate_room);       \
	X(s->gates, cat->gates, cat->ngates, b->gate_room);                           \
	X(s->uses, cat->uses, cat->nuses, b->use_room);                               \
	X(s->pieces, cat->pieces, cat->npieces, b->piece_room);                       \
	X(s->classes, cat->classes, cat->nclasses, b->class_room);                    \
	X(s->words, cat->words, cat->nclasses * b->pieces.piece_words, b->word_room); \
	X(s->mirrors, b->mirrors.class, 0, b->mirrors.room);

void ocs_catalogue_scratch_batch_lend(struct ocs_catalogue_scratch *s, struct ocs_catalogue_rest *b)
{
	struct ocs_catalogue *cat = b->cat;

	BATCH_ARRAYS(LEND)
}

void ocs_catalogue_scratch_batch_return(struct ocs_catalogue_scratch *s,
					struct ocs_catalogue_rest *b)
{
	struct ocs_catalogue *cat = b->cat;

	BATCH_ARRAYS(RETURN)
}
