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
#include "tests/unit/place/place_check.h"

struct boxes {
	const struct ocs_section *section;
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
	b->cat = ocs_catalogue_create(b->section, &shape, 0);
	while (ocs_catalogue_more(b->cat))
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
		close_fabric(&s);
	}
}

/* What a catalogue says that it takes, by which a placer limits all of them together, is what it
 * takes: a hundred of them, none of which has all its candidates. */
static void test_bytes(void **state)
{
	enum { COUNT = 100 };
	struct ocs_catalogue *cats[COUNT];
	struct ocs_error err = { 0 };
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
		cats[i] = ocs_catalogue_create(s.section, &shape, 0);
		assert_true(cats[i]->ncandidates > 0);
		said += cats[i]->bytes;
	}
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
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
