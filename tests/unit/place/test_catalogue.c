/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The pieces of all candidates of a catalogue against the box laid out vertex by vertex: the XPUs of
 * the nodes that it touches, and both ports of each of its circuits. */

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/place/bits.h"
#include "src/place/candidates.h"
#include "src/place/catalogue_scratch.h"
#include "tests/unit/place/place_check.h"

struct boxes {
	const struct ocs_section *section;
	struct ocs_catalogue_scratch scratch;
	struct ocs_catalogue *cat;
	struct ocs_xpu *xpus;
	struct ocs_circuit *circuits;
	uint64_t *words; /* of all pieces */
	int piece_words;
	int checked;
	int mirrored; /* candidates whose folding is one that mirrors another */
};

static void node_add(const struct boxes *b, const struct ocs_xpu *xpu)
{
	const int *tile = b->section->tile;
	int in[OCS_AXES], at[OCS_AXES], a;

	for (in[0] = 0; in[0] < tile[0]; in[0]++) {
		for (in[1] = 0; in[1] < tile[1]; in[1]++) {
			for (in[2] = 0; in[2] < tile[2]; in[2]++) {
				for (a = 0; a < OCS_AXES; a++)
					at[a] = xpu->at[a] - xpu->at[a] % tile[a] + in[a];
				ocs_bits_add(b->words + xpu->cube * b->piece_words,
					     ocs_section_bit(b->section, at));
			}
		}
	}
}

static void port_add(const struct boxes *b, const struct ocs_circuit *circuit, int piece, int sign)
{
	int columns = b->section->edge[circuit->dim == 2 ? 1 : 2];
	uint64_t *ports = b->words + piece * b->piece_words + b->cat->mask_words +
			  (circuit->dim * 2 + sign) * b->cat->face_words;

	ocs_bits_add(ports, circuit->pos[0] * columns + circuit->pos[1]);
}

static void candidate_check(struct boxes *b, const struct ocs_candidate *candidate)
{
	const struct ocs_fold_table *table = ocs_catalogue_table(b->cat, candidate->folding);
	const struct ocs_piece_class *class;
	long i;
	int n, piece;

	memset(b->words, 0, (size_t)candidate->grid * (size_t)b->piece_words * sizeof(*b->words));
	ocs_box_layout_xpus(b->section, table, &candidate->lay, b->xpus);
	for (i = 0; i < b->cat->shape.xpus; i++)
		node_add(b, &b->xpus[i]);
	n = ocs_box_layout_circuits(b->section, &b->cat->shape, table, &candidate->lay, b->xpus,
				    b->circuits);
	assert_int_equal(n, candidate->circuits);
	for (i = 0; i < n; i++) {
		port_add(b, &b->circuits[i], b->circuits[i].from, OCS_PLUS);
		port_add(b, &b->circuits[i], b->circuits[i].to, OCS_MINUS);
	}
	for (piece = 0, n = 0; piece < candidate->grid; piece++) {
		int c = b->cat->pieces[candidate->first_piece + piece];

		if (c < 0)
			continue;
		class = &b->cat->classes[c];
		assert_memory_equal(b->cat->words + class->first, b->words + piece * b->piece_words,
				    (size_t)b->piece_words * sizeof(*b->words));
		n += class->xpus;
	}
	assert_int_equal(n, b->cat->nodes * b->section->tile[0] * b->section->tile[1] *
				    b->section->tile[2]);
	b->mirrored += table->flip != 0;
}

static void catalogue_check(struct boxes *b, const char *text)
{
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	int i;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
	b->cat = ocs_catalogue_create(b->section, &shape, 0, &b->scratch);
	while (ocs_catalogue_more(b->cat, &b->scratch))
		;
	b->piece_words = b->cat->mask_words + 6 * b->cat->face_words;
	b->xpus = calloc((size_t)shape.xpus, sizeof(*b->xpus));
	b->circuits = calloc((size_t)shape.xpus * OCS_AXES, sizeof(*b->circuits));
	b->words = calloc((size_t)b->section->ncubes * (size_t)b->piece_words, sizeof(*b->words));
	for (i = 0; i < b->cat->ncandidates; i++)
		candidate_check(b, &b->cat->candidates[i]);
	b->checked += b->cat->ncandidates;
	ocs_catalogue_destroy(b->cat);
	free(b->xpus);
	free(b->circuits);
	free(b->words);
}

static void test_pieces(void **state)
{
	static const char *const fabrics[] = {
		"torus cubes:4x4x2 cube:4x4x4 tile:1x1x1",
		"torus cubes:4x4x2 cube:4x4x4 tile:2x2x1",
		"torus cubes:4x4x2 cube:4x4x4 tile:4x1x2",
		"torus cubes:4x4x4 cube:2x2x2 tile:2x1x1",
		"torus cubes:2x2x2 cube:8x8x8 tile:2x2x2",
	};
	static const char *const shapes[] = { "22",   "58",    "2x38", "2x2x26",
					      "6x10", "4x4x4", "4x46", "2x2x2x2x2" };
	struct setup s;
	size_t f, i;

	(void)state;
	for (f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
		struct boxes boxes = { 0 };

		open_fabric(&s, fabrics[f]);
		boxes.section = s.section;
		for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
			catalogue_check(&boxes, shapes[i]);
		assert_true(boxes.checked > 200);
		assert_true(boxes.mirrored > boxes.checked / 8);
		ocs_catalogue_scratch_free(&boxes.scratch);
		close_fabric(&s);
	}
}

/* What others have left there is no part of a catalogue. */
static void scratch_soil(struct ocs_catalogue_scratch *scratch)
{
	struct ocs_spare *spares[] = {
		&scratch->lights,    &scratch->foldings, &scratch->tables,     &scratch->mirror_of,
		&scratch->gap_nodes, &scratch->gates,	 &scratch->candidates, &scratch->uses,
		&scratch->pieces,    &scratch->classes,	 &scratch->words,      &scratch->mirrors
	};
	size_t i;

	assert_int_equal(sizeof(spares) / sizeof(spares[0]), sizeof(*scratch) / sizeof(**spares));
	for (i = 0; i < sizeof(spares) / sizeof(spares[0]); i++) {
		if (spares[i]->bytes)
			memset(spares[i]->memory, 0xa5, spares[i]->bytes);
	}
}

static void catalogues_same(const struct ocs_catalogue *p, const struct ocs_catalogue *q)
{
	size_t words = (size_t)p->nclasses * (size_t)(p->mask_words + 6 * p->face_words);
	int i;

	assert_int_equal(p->nodes, q->nodes);
	assert_int_equal(p->ncandidates, q->ncandidates);
	assert_int_equal(p->nuses, q->nuses);
	assert_int_equal(p->npieces, q->npieces);
	assert_int_equal(p->nclasses, q->nclasses);
	assert_int_equal(p->bytes, q->bytes);
	for (i = 0; i < p->ncandidates; i++) {
		const struct ocs_candidate *c = &p->candidates[i], *d = &q->candidates[i];

		assert_memory_equal(c, d, sizeof(*c));
		assert_memory_equal(p->foldings[c->folding].box, q->foldings[d->folding].box,
				    sizeof(p->foldings->box));
	}
	if (p->nuses)
		assert_memory_equal(p->uses, q->uses, (size_t)p->nuses * sizeof(*p->uses));
	if (p->npieces)
		assert_memory_equal(p->pieces, q->pieces, (size_t)p->npieces * sizeof(int));
	if (words)
		assert_memory_equal(p->words, q->words, words * sizeof(*p->words));
}

/* Catalogues that are made and grow in turn, in the memory of each other, are those that each is by
 * itself. */
static void test_scratch(void **state)
{
	static const char *const shapes[] = { "22",  "2x38",  "206", "4x4x4", "2x2x26", "452",
					      "8x8", "2x166", "102", "16x16", "4x46",	"2" };
	enum { COUNT = sizeof(shapes) / sizeof(shapes[0]) };
	struct ocs_catalogue_scratch shared = { 0 };
	struct ocs_catalogue *alone[COUNT], *cats[COUNT];
	struct ocs_error err = { 0 };
	struct setup s;
	bool more = true;
	int i;

	(void)state;
	open_fabric(&s, "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1");
	for (i = 0; i < COUNT; i++) {
		struct ocs_catalogue_scratch own = { 0 };
		struct ocs_shape shape;

		assert_int_equal(ocs_shape_parse(shapes[i], NULL, &shape, &err), 0);
		alone[i] = ocs_catalogue_create(s.section, &shape, 0, &own);
		scratch_soil(&shared);
		cats[i] = ocs_catalogue_create(s.section, &shape, 0, &shared);
		catalogues_same(alone[i], cats[i]);
		ocs_catalogue_scratch_free(&own);
	}
	while (more) {
		more = false;
		for (i = 0; i < COUNT; i++) {
			struct ocs_catalogue_scratch own = { 0 };
			bool grown = ocs_catalogue_more(alone[i], &own);

			scratch_soil(&shared);
			assert_int_equal(ocs_catalogue_more(cats[i], &shared), grown);
			catalogues_same(alone[i], cats[i]);
			ocs_catalogue_scratch_free(&own);
			more |= grown;
		}
	}
	for (i = 0; i < COUNT; i++) {
		ocs_catalogue_destroy(alone[i]);
		ocs_catalogue_destroy(cats[i]);
	}
	ocs_catalogue_scratch_free(&shared);
	close_fabric(&s);
}

/* What a catalogue says that it takes, by which a placer limits all of them together, is what it
 * takes: a hundred of them, none of which has all its candidates. */
static void test_bytes(void **state)
{
	enum { COUNT = 100 };
	struct ocs_catalogue *cats[COUNT];
	struct ocs_error err = { 0 };
	struct ocs_catalogue_scratch scratch = { 0 };
	size_t before, said = 0, taken;
	struct ocs_shape shape;
	struct setup s;
	char text[16];
	int i;

	(void)state;
	open_fabric(&s, "torus cubes:8x8x8 cube:2x2x2 tile:1x1x1");
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text), "2x%d", 40 + 2 * i);
		assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
		cats[i] = ocs_catalogue_create(s.section, &shape, 0, &scratch);
		assert_true(cats[i]->ncandidates > 0);
		said += cats[i]->bytes;
	}
	ocs_catalogue_scratch_free(&scratch);
	taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	print_message("%zu bytes, %zu said\n", taken, said);
	assert_true(taken < said + said / 10); /* other allocators tell nothing: 0 */
	for (i = 0; i < COUNT; i++)
		ocs_catalogue_destroy(cats[i]);
	close_fabric(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_scratch),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
