/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs_placement_verify refuses every fault that can be put into a sound placement. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "src/config/config.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "tests/unit/place/place_random.h"

static struct ocs_fabric *fabric;
static const struct ocs_section *section;
static struct ocs_placer *placer;
static struct ocs_occupancy *occupancy;

static void open_line(const char *line)
{
	struct ocs_error err = { 0 };

	fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	assert_non_null(fabric);
	section = &fabric->sections[0];
	placer = ocs_placer_create(fabric, section);
	occupancy = ocs_occupancy_create(section);
}

static void close_line(void)
{
	ocs_occupancy_destroy(occupancy);
	ocs_placer_destroy(placer);
	ocs_fabric_destroy(fabric);
}

static struct ocs_placement *shape_place(const char *text, const char *conn)
{
	struct ocs_error err = { 0 };
	struct ocs_placement *p;
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, conn, &shape, &err), 0);
	p = ocs_place(placer, occupancy, &shape, 0, &err);
	if (!p)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(ocs_placement_verify(fabric, occupancy, p, &err), 0);
	return p;
}

/* Refused, with these words. */
static void assert_refused(struct ocs_placement *p, const char *says)
{
	struct ocs_error err = { 0 };

	assert_int_equal(ocs_placement_verify(fabric, occupancy, p, &err), -1);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	ocs_placement_destroy(p);
}

static void test_xpus(void **state)
{
	struct ocs_placement *p;
	struct ocs_xpu x;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	p = shape_place("8x4x4", NULL);
	p->xpus[5] = p->xpus[6];
	assert_refused(p, "is used twice");
	p = shape_place("8x4x4", NULL);
	p->xpus[0].cube = 4;
	assert_refused(p, "does not exist");
	p = shape_place("8x4x4", NULL);
	p->xpus[0].at[1] = -1;
	assert_refused(p, "outside its cube");
	p = shape_place("8x4x4", NULL);
	x = p->xpus[17];
	p->xpus[17] = p->xpus[90];
	p->xpus[90] = x;
	assert_refused(p, "no link of its own joins");
	p = shape_place("8x4x4", NULL);
	p->shape.xpus--;
	assert_refused(p, "product");
	p = shape_place("8x4x4", NULL);
	p->shape.extent[0] = 0;
	assert_refused(p, "out of range");
	p = shape_place("8x4x4", NULL);
	p->shape.ndim = 7;
	assert_refused(p, "dimensions");
	p = shape_place("8x4x4", NULL);
	ocs_occupancy_node_set(occupancy, fabric, p->nodes[3], false);
	assert_refused(p, "not free");
	close_line();
}

static void test_circuits(void **state)
{
	struct ocs_placement *p;
	int i;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	/* each single circuit is needed */
	for (i = 0; i < 96; i++) {
		p = shape_place("8x4x4", NULL);
		assert_int_equal(p->ncircuits, 96);
		p->circuits[i] = p->circuits[--p->ncircuits];
		assert_refused(p, "edge (");
	}
	p = shape_place("8x4x4", NULL);
	p->circuits[0] = p->circuits[1];
	assert_refused(p, "is used twice");
	p = shape_place("8x4x4", NULL);
	p->circuits[9].to = 3;
	assert_refused(p, "no link of its own");
	p = shape_place("8x4x4", NULL);
	p->circuits[9].from = -1;
	assert_refused(p, "does not exist");
	p = shape_place("8x4x4", NULL);
	p->circuits[9].to = 77;
	assert_refused(p, "does not exist");
	p = shape_place("8x4x4", NULL);
	p->circuits[9].dim = 3;
	assert_refused(p, "dimension 3 does not exist");
	p = shape_place("8x4x4", NULL);
	p->circuits[9].pos[1] = 4;
	assert_refused(p, "outside the face");
	p = shape_place("8x4x4", NULL);
	p->ncircuits = -1;
	assert_refused(p, "negative");
	/* one too many */
	p = shape_place("4x4x2", "mesh");
	assert_int_equal(p->ncircuits, 0);
	p->circuits[0].dim = 2;
	p->circuits[0].pos[0] = p->circuits[0].pos[1] = 0;
	p->circuits[0].from = p->circuits[0].to = 0;
	p->ncircuits = 1;
	assert_refused(p, "serves no edge");
	/* a failed port */
	p = shape_place("8x4x4", NULL);
	((uint64_t *)(uintptr_t)ocs_occupancy_blocked(occupancy, p->circuits[7].to,
						      p->circuits[7].dim, OCS_MINUS))[0] |=
		1ULL << (p->circuits[7].pos[0] * 4 + p->circuits[7].pos[1]);
	occupancy->any_blocked = true;
	assert_refused(p, "failed or drained");
	close_line();
}

/* A ring laid as a line lacks its closing edge. */
static void test_rings(void **state)
{
	struct ocs_placement *p;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	p = shape_place("4x4x2", "mesh");
	p->shape.mesh[0] = false;
	assert_refused(p, "edge (3,0,0)-(0,0,0)");
	p = shape_place("5", "mesh");
	p->shape.mesh[0] = false;
	assert_refused(p, "edge (4)-(0)");
	close_line();
	open_line("static:8x8x4 tile:2x2x1");
	p = shape_place("8x2", NULL);
	p->circuits[0].dim = 0;
	p->ncircuits = 1;
	assert_refused(p, "static torus has no circuits");
	p = shape_place("4x2x2", "mesh,torus,torus");
	p->shape.mesh[0] = false;
	assert_refused(p, "no link of its own");
	close_line();
}

static void test_lists(void **state)
{
	struct ocs_placement *p;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	p = shape_place("8x4x4", NULL);
	p->nnodes--;
	assert_refused(p, "list of nodes");
	p = shape_place("8x4x4", NULL);
	p->nodes[0] = 63;
	assert_refused(p, "list of nodes");
	p = shape_place("8x4x4", NULL);
	p->nodes[1] = p->nodes[0];
	assert_refused(p, "list of nodes");
	p = shape_place("8x4x4", NULL);
	p->ncubes--;
	assert_refused(p, "list of cubes");
	p = shape_place("8x4x4", NULL);
	p->cubes[0] = 3;
	assert_refused(p, "list of cubes");
	close_line();
}

/* Any change of one number of a placement without slack is refused. */
static void test_random_faults(void **state)
{
	struct ocs_placement *p;
	struct ocs_error err;
	int i;

	(void)state;
	random_state = 11;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:1x1x1");
	for (i = 0; i < 3000; i++) {
		int *number, old;

		p = shape_place(i % 2 ? "8x4x4" : "4x8x2", NULL);
		if (random_next(2)) {
			struct ocs_xpu *x = &p->xpus[random_next((uint32_t)p->shape.xpus)];

			number = random_next(4) ? &x->at[random_next(3)] : &x->cube;
		} else {
			struct ocs_circuit *c = &p->circuits[random_next((uint32_t)p->ncircuits)];

			number = random_next(2) ? &c->pos[random_next(2)] :
				 random_next(2) ? &c->from :
				 random_next(2) ? &c->to :
						  &c->dim;
		}
		old = *number;
		*number = (int)random_next(6) - 1;
		assert_int_equal(ocs_placement_verify(fabric, NULL, p, &err),
				 *number == old ? 0 : -1);
		ocs_placement_destroy(p);
	}
	close_line();
}

/* A twisted torus made by hand: 4x4x8 on two cubes, where the wraps of the first two
 * dimensions move to the other cube. */
static void test_twisted(void **state)
{
	struct ocs_placement *p;
	struct ocs_error err;
	int i;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	p = shape_place("4x4x8", NULL);
	assert_int_equal(p->ncubes, 2);
	/* the engine lays 8 along some axis; relabel from scratch: x, y, z plain */
	for (i = 0; i < p->shape.xpus; i++) {
		p->xpus[i].at[0] = i / 32;
		p->xpus[i].at[1] = i / 8 % 4;
		p->xpus[i].at[2] = i % 4;
		p->xpus[i].cube = p->cubes[i / 4 % 2];
	}
	for (i = 0; i < 96; i++) {
		struct ocs_circuit *c = &p->circuits[i];

		c->dim = i / 32;
		c->from = p->cubes[i / 16 % 2];
		c->to = p->cubes[1 - i / 16 % 2];
		c->pos[0] = i / 4 % 4;
		c->pos[1] = i % 4;
	}
	p->shape.twisted = true;
	if (ocs_placement_verify(fabric, occupancy, p, &err))
		fail_msg("%s", err.text);
	p->shape.twisted = false;
	assert_refused(p, "edge (");
	close_line();
}

/* The compact form: nothing malformed gets through, whatever is cut or changed. */
static void test_compact_faults(void **state)
{
	static const char *const bad[] = {
		"",
		"p1",
		"p2:1:t:-:0:0.1,0.1,0.1:0",
		"p1:1:t:-:0:0.1,0.1,0.1:",
		"p1:1:t:-:0:0.1,0.1,0.1:00",
		"p1:1:t:-:8:0.1,0.1,0.1:0",
		"p1:1:t:-:0:4.1,0.1,0.1:0",
		"p1:1:t:-:0:0.0,0.1,0.1:0",
		"p1:1:t:-:0:0.1,0.1,0.1:8",
		"p1:1:t:-:0:0.1,0.1,0.1:zz",
		"p1:2:t:-:0:0.1,0.1,0.1:0",
		"p1:2:t:xp3:0:0.1,0.1,0.1:0",
		"p1:4:t:xp4:0:0.1,0.1,0.1:0",
		"p1:4:t:xr4:0:1.1,0.1,0.1:0",
		"p1:4:t:xp2.xp2:0:0.1,0.1,0.1:0",
		"p1:6:t:xr6:0:0.2,0.1,0.1:00",
		"p1:8x4x4:ttt:xr8,yr4,zr4:0:0.2,0.1,0.1:01",
		"p1:8x4x4:ttt:xr8,yr4,zr4:0:0.2,0.1,0.1:0",
		"p1:999999x999999:tt:xp1,-:0:0.1,0.1,0.1:0",
		"p1:4x4x8_twisted:ttt:-:0:0.1,0.1,0.1:0",
		"p1:2:t:xp2:0:0.4,0.4,0.4:0",
		"p1:02:t:xp2:0:0.1,0.1,0.1:0",
		"p1:2:t:xp99999999999:0:0.1,0.1,0.1:0",
		"p1:8:t:xb.xc.xb.xc.xb.xc.xb:0:0.1,0.1,0.1:0",
	};
	struct ocs_placement *p, *again;
	struct ocs_error err;
	size_t i, length, at;
	char *text;

	(void)state;
	random_state = 12;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.code = 0;
		assert_null(ocs_placement_decode(placer, bad[i], &err));
		assert_int_not_equal(err.code, 0);
	}
	p = shape_place("8x6x2", "torus,torus,mesh");
	length = strlen(p->compact);
	text = strdup(p->compact);
	for (i = 0; i < length; i++) {
		text[i] = '\0';
		assert_null(ocs_placement_decode(placer, text, &err));
		text[i] = p->compact[i];
	}
	for (i = 0; i < 20000; i++) {
		at = random_next((uint32_t)length);
		text[at] = p->compact[random_next((uint32_t)length)];
		again = ocs_placement_decode(placer, text, &err);
		/* what gets through is sound */
		if (again)
			assert_int_equal(ocs_placement_verify(fabric, NULL, again, &err), 0);
		ocs_placement_destroy(again);
		if (random_next(3))
			memcpy(text, p->compact, length + 1);
	}
	free(text);
	ocs_placement_destroy(p);
	close_line();
}

static void test_json_faults(void **state)
{
	static const char *const drop[] = { "shape", "conn", "cubes", "xpus", "circuits" };
	struct json_object *json, *wrong;
	struct ocs_placement *p;
	struct ocs_error err;
	size_t i;

	(void)state;
	open_line("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	p = shape_place("4x8x2", NULL);
	for (i = 0; i < sizeof(drop) / sizeof(drop[0]); i++) {
		json = ocs_placement_to_json(fabric, p);
		json_object_object_del(json, drop[i]);
		assert_null(ocs_placement_from_json(fabric, json, &err));
		json_object_put(json);
		json = ocs_placement_to_json(fabric, p);
		json_object_object_add(json, drop[i], json_object_new_string("x"));
		assert_null(ocs_placement_from_json(fabric, json, &err));
		json_object_put(json);
	}
	json = ocs_placement_to_json(fabric, p);
	wrong = json_object_array_get_idx(json_object_object_get(json, "xpus"), 5);
	json_object_object_add(wrong, "node", json_object_new_string("n63"));
	assert_null(ocs_placement_from_json(fabric, json, &err));
	json_object_put(json);
	json = ocs_placement_to_json(fabric, p);
	wrong = json_object_array_get_idx(json_object_object_get(json, "xpus"), 5);
	json_object_object_add(wrong, "at", json_tokener_parse("[9,0,0]"));
	assert_null(ocs_placement_from_json(fabric, json, &err));
	json_object_put(json);
	json = ocs_placement_to_json(fabric, p);
	wrong = json_object_array_get_idx(json_object_object_get(json, "circuits"), 0);
	json_object_object_add(wrong, "dim", json_object_new_string("w"));
	assert_null(ocs_placement_from_json(fabric, json, &err));
	json_object_put(json);
	assert_null(ocs_placement_from_json(fabric, NULL, &err));
	ocs_placement_destroy(p);
	close_line();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xpus),	       cmocka_unit_test(test_circuits),
		cmocka_unit_test(test_rings),	       cmocka_unit_test(test_lists),
		cmocka_unit_test(test_random_faults),  cmocka_unit_test(test_twisted),
		cmocka_unit_test(test_compact_faults), cmocka_unit_test(test_json_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
