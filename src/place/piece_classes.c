/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/piece_classes.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/bits.h"
#include "src/util/text.h"

unsigned int ocs_words_hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037ULL, word;

	for (; size; size -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
	}
	return (unsigned int)(h ^ h >> 32);
}

void ocs_place_index_grow(struct ocs_place_index *index)
{
	struct ocs_place_index old = *index;
	unsigned int i, slot;

	if (2 * (index->count + 1) <= index->size)
		return;
	index->size = old.size ? 2 * old.size : 64;
	index->slots = ocs_calloc(index->size, sizeof(*index->slots));
	for (i = 0; i < old.size; i++) {
		if (!old.slots[i].item)
			continue;
		for (slot = old.slots[i].hash & (index->size - 1); index->slots[slot].item;
		     slot = (slot + 1) & (index->size - 1))
			;
		index->slots[slot] = old.slots[i];
	}
	free(old.slots);
}

int ocs_piece_class_get(struct ocs_catalogue_rest *b, const uint64_t *words)
{
	struct ocs_catalogue *cat = b->cat;
	int length = b->pieces.piece_words;
	struct ocs_place_index *index = &b->class_index;
	size_t size = (size_t)length * sizeof(*words);
	unsigned int slot, hash;
	int xpus = 0, w;

	for (w = 0; w < b->section->words; w++)
		xpus += ocs_bits_count(words[w]);
	if (!xpus)
		return -1;
	hash = ocs_words_hash(words, size);
	ocs_place_index_grow(index);
	for (slot = hash & (index->size - 1); index->slots[slot].item;
	     slot = (slot + 1) & (index->size - 1)) {
		int c = (int)index->slots[slot].item - 1;

		if (index->slots[slot].hash == hash &&
		    !memcmp(cat->words + cat->classes[c].first, words, size))
			return c;
	}
	while (cat->nclasses * length + length > b->word_room) {
		b->word_room = b->word_room ? 2 * b->word_room : 64 * length;
		cat->words = ocs_realloc(cat->words, (size_t)b->word_room * sizeof(*cat->words));
	}
	OCS_GROW(cat->classes, cat->nclasses, b->class_room);
	cat->classes[cat->nclasses].first = cat->nclasses * length;
	cat->classes[cat->nclasses].xpus = xpus;
	cat->classes[cat->nclasses].gate = -1;
	memcpy(cat->words + cat->classes[cat->nclasses].first, words, size);
	index->slots[slot] = (struct ocs_place_slot){ hash, (unsigned int)++cat->nclasses };
	index->count++;
	return cat->nclasses - 1;
}

/* A rectangle of bits, row after row, and how its mirror differs. */
struct rectangle {
	int rows, columns;
	bool rows_turn, columns_turn;
};

/* BITS, a rectangle of at most a word, as its mirror has it. */
static uint64_t word_turn(const struct rectangle *r, uint64_t bits)
{
	uint64_t row_bits = (1ULL << r->columns) - 1, turned = 0;
	int size = r->rows * r->columns, row;

	/* backwards both rows and columns are */
	if (r->columns_turn)
		bits = ocs_bits_turn(bits) >> (64 - size);
	if (r->columns_turn == r->rows_turn)
		return bits;
	for (row = 0; row < r->rows; row++, bits >>= r->columns)
		turned = turned << r->columns | (bits & row_bits);
	return turned;
}

/* The rectangle at bit START of FROM as its mirror has it, from bit TARGET of TO on, which is empty. */
static void rectangle_turn(const struct rectangle *r, const uint64_t *from, int start, uint64_t *to,
			   int target)
{
	struct rectangle one = { 1, r->columns, r->columns_turn, r->columns_turn };
	int size = r->rows * r->columns, row;
	uint64_t bits;

	if (size < 64) {
		bits = ocs_bits_cut(from, start, size);
		if (bits)
			ocs_bits_join(to, target, word_turn(r, bits));
		return;
	}
	for (row = 0; row < r->rows; row++, start += r->columns) {
		int other = r->rows_turn ? r->rows - 1 - row : row;

		bits = ocs_bits_cut(from, start, r->columns);
		if (bits)
			ocs_bits_join(to, target + other * r->columns, word_turn(&one, bits));
	}
}

/* TO is what the piece FROM is in mirrors across AXES. */
static void piece_turn(const struct ocs_catalogue_rest *b, const uint64_t *from, unsigned int axes,
		       uint64_t *to)
{
	static const int row_axis[OCS_AXES] = { 1, 0, 0 }, column_axis[OCS_AXES] = { 2, 2, 1 };
	const int *edge = b->section->edge, faces = b->section->words, size = b->cat->face_words;
	struct rectangle face[OCS_AXES];
	int axis, sign, x;

	memset(to, 0, (size_t)b->pieces.piece_words * sizeof(*to));
	for (axis = 0; axis < OCS_AXES; axis++)
		face[axis] = (struct rectangle){ edge[row_axis[axis]], edge[column_axis[axis]],
						 axes & 1u << row_axis[axis],
						 axes & 1u << column_axis[axis] };
	for (x = 0; x < edge[0]; x++)
		rectangle_turn(&face[0], from, x * edge[1] * edge[2], to,
			       (axes & 1 ? edge[0] - 1 - x : x) * edge[1] * edge[2]);
	for (axis = 0; axis < OCS_AXES; axis++) {
		bool swap = axes & 1u << axis; /* what leads up leads down */

		for (sign = 0; sign < 2; sign++)
			rectangle_turn(&face[axis], from + faces + (2 * axis + sign) * size, 0,
				       to + faces + (2 * axis + (swap ? !sign : sign)) * size, 0);
	}
}

/* The class of the mirrors across AXES of the pieces of CLASS. */
static int class_mirror(struct ocs_catalogue_rest *b, int class, unsigned int axes)
{
	struct ocs_piece_mirrors *m = &b->mirrors;
	int *known;

	if (class < 0)
		return -1;
	while (class >= m->nclasses) {
		OCS_GROW(m->class, m->nclasses, m->room);
		memset(m->class[m->nclasses++], 0, sizeof(*m->class));
	}
	known = &m->class[class][axes];
	if (!*known) {
		if (!m->words)
			m->words = ocs_calloc((size_t)b->pieces.piece_words, sizeof(*m->words));
		piece_turn(b, b->cat->words + b->cat->classes[class].first, axes, m->words);
		*known = ocs_piece_class_get(b, m->words) + 1;
	}
	return *known - 1;
}

/* Where LAY, mirrored across AXES of its grid, is noted for FOLDING; NULL: it lies at no offset. */
static struct ocs_laid_pieces *laid_find(const struct ocs_catalogue_rest *b, const int *box,
					 const struct ocs_box_layout *lay, unsigned int axes)
{
	int a, at = 0;

	for (a = 0; a < OCS_AXES; a++) {
		int edge = b->section->edge[a], offset = lay->offset[a];

		if (axes & 1u << a)
			offset = lay->count[a] * edge - box[a] - offset;
		if (offset < 0 || offset >= edge)
			return NULL;
		at = at * edge + offset;
	}
	return &b->mirrors.laid[at];
}

void ocs_piece_mirrors_note(struct ocs_catalogue_rest *b, const struct ocs_light *light, int first,
			    int circuits)
{
	struct ocs_piece_mirrors *m = &b->mirrors;
	struct ocs_laid_pieces *laid;
	int i;

	if (b->mirror_of[light->folding] != light->folding)
		return;
	if (!m->laid)
		m->laid = ocs_calloc((size_t)b->section->cube_xpus, sizeof(*m->laid));
	if (m->folding != light->folding) {
		m->folding = light->folding;
		m->npieces = 0;
		m->turn++;
	}
	laid = laid_find(b, b->cat->foldings[light->folding].box, &light->lay, 0);
	*laid = (struct ocs_laid_pieces){ m->turn, m->npieces, circuits };
	for (i = first; i < b->cat->npieces; i++) {
		OCS_GROW(m->pieces, m->npieces, m->piece_room);
		m->pieces[m->npieces++] = b->cat->pieces[i];
	}
}

bool ocs_piece_mirrors_add(struct ocs_catalogue_rest *b, const struct ocs_light *light,
			   int *circuits)
{
	const struct ocs_folding *foldings = b->cat->foldings;
	int original = b->mirror_of[light->folding], i, j, k;
	unsigned int axes = foldings[light->folding].flip ^ foldings[original].flip;
	const int *count = light->lay.count;
	const struct ocs_laid_pieces *laid;

	if (original == light->folding || original != b->mirrors.folding)
		return false;
	laid = laid_find(b, foldings[original].box, &light->lay, axes);
	if (!laid || laid->turn != b->mirrors.turn)
		return false;
	for (i = 0; i < count[0]; i++) {
		for (j = 0; j < count[1]; j++) {
			for (k = 0; k < count[2]; k++) {
				int x = axes & 1 ? count[0] - 1 - i : i;
				int y = axes & 2 ? count[1] - 1 - j : j;
				int z = axes & 4 ? count[2] - 1 - k : k;
				int piece = laid->first + (x * count[1] + y) * count[2] + z;

				OCS_GROW(b->cat->pieces, b->cat->npieces, b->piece_room);
				b->cat->pieces[b->cat->npieces++] =
					class_mirror(b, b->mirrors.pieces[piece], axes);
			}
		}
	}
	*circuits = laid->circuits;
	return true;
}

void ocs_piece_mirrors_create(struct ocs_piece_mirrors *m)
{
	memset(m, 0, sizeof(*m));
	m->folding = -1;
}

void ocs_piece_mirrors_free(struct ocs_piece_mirrors *m)
{
	free(m->class);
	free(m->laid);
	free(m->pieces);
	free(m->words);
}
