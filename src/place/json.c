/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/place/orders.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "src/util/text.h"

static struct json_object *ints_json(const int *values, int n)
{
	struct json_object *array = json_object_new_array_ext(n);
	int i;

	for (i = 0; i < n; i++)
		json_object_array_add(array, json_object_new_int(values[i]));
	return array;
}

static struct json_object *circuit_json(const struct ocs_section *s, const struct ocs_circuit *c)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "dim", json_object_new_string_len(&"xyz"[c->dim], 1));
	json_object_object_add(object, "position", ints_json(c->pos, 2));
	json_object_object_add(object, "from", json_object_new_string(s->cube_names[c->from]));
	json_object_object_add(object, "to", json_object_new_string(s->cube_names[c->to]));
	return object;
}

/* Per wrapped dimension a shift vector, as doc/placement.md defines the two twists. */
static struct json_object *twist_json(const struct ocs_shape *shape)
{
	struct json_object *twist = json_object_new_array();
	int d, e;

	for (d = 0; d < shape->ndim; d++) {
		int shift[OCS_SHAPE_DIMS] = { 0 };

		for (e = 0; e < shape->ndim; e++)
			shift[e] = ocs_shape_shift(shape, d, e);
		json_object_array_add(twist, ints_json(shift, shape->ndim));
	}
	return twist;
}

/* Per dimension longer than 1 the orders of ranks along its rings or lines. */
static struct json_object *orders_json(const struct ocs_shape *shape)
{
	struct json_object *array = json_object_new_array();

	for (int d = 0; d < shape->ndim; d++) {
		struct json_object *one, *lists;
		struct ocs_orders orders;

		if (shape->extent[d] < 2)
			continue;
		ocs_orders_find(shape, d, &orders);
		one = json_object_new_object();
		lists = json_object_new_array_ext(orders.count);
		for (int i = 0; i < orders.count; i++) {
			const long *ranks = orders.ranks + (long)i * orders.length;
			struct json_object *list = json_object_new_array_ext(orders.length);

			for (int k = 0; k < orders.length; k++)
				json_object_array_add(list, json_object_new_int64(ranks[k]));
			json_object_array_add(lists, list);
		}
		json_object_object_add(one, "dim", json_object_new_int(d));
		json_object_object_add(one, "ring", json_object_new_boolean(orders.ring));
		json_object_object_add(one, "ranks", lists);
		json_object_array_add(array, one);
		ocs_orders_free(&orders);
	}
	return array;
}

struct json_object *ocs_placement_to_json(const struct ocs_fabric *fabric,
					  const struct ocs_placement *p)
{
	struct json_object *object = json_object_new_object(), *array, *one;
	const struct ocs_section *s = p->section;
	int coord[OCS_SHAPE_DIMS], i;
	long r;

	json_object_object_add(object, "shape", ints_json(p->shape.extent, p->shape.ndim));
	array = json_object_new_array_ext(p->shape.ndim);
	for (i = 0; i < p->shape.ndim; i++)
		json_object_array_add(array,
				      json_object_new_string(p->shape.mesh[i] ? "mesh" : "torus"));
	json_object_object_add(object, "conn", array);
	if (ocs_shape_named(&p->shape)) {
		array = json_object_new_array_ext(p->shape.ndim);
		for (i = 0; i < p->shape.ndim; i++)
			json_object_array_add(array, json_object_new_string(p->shape.name[i]));
		json_object_object_add(object, "dimensions", array);
	}
	if (p->shape.twisted)
		json_object_object_add(object, "twist", twist_json(&p->shape));
	array = json_object_new_array_ext(p->ncubes);
	for (i = 0; i < p->ncubes; i++)
		json_object_array_add(array, json_object_new_string(s->cube_names[p->cubes[i]]));
	json_object_object_add(object, "cubes", array);
	array = json_object_new_array_ext((int)p->shape.xpus);
	for (r = 0; r < p->shape.xpus; r++) {
		const struct ocs_xpu *x = &p->xpus[r];
		int node = ocs_section_node_at(s, x->cube, x->at);

		one = json_object_new_object();
		ocs_shape_coord(&p->shape, r, coord);
		json_object_object_add(one, "coord", ints_json(coord, p->shape.ndim));
		json_object_object_add(one, "cube", json_object_new_string(s->cube_names[x->cube]));
		json_object_object_add(one, "at", ints_json(x->at, OCS_AXES));
		json_object_object_add(one, "node",
				       json_object_new_string(fabric->nodes[node].name));
		json_object_array_add(array, one);
	}
	json_object_object_add(object, "xpus", array);
	array = json_object_new_array_ext(p->ncircuits);
	for (i = 0; i < p->ncircuits; i++)
		json_object_array_add(array, circuit_json(s, &p->circuits[i]));
	json_object_object_add(object, "circuits", array);
	json_object_object_add(object, "ocs_links", json_object_new_int(p->ncircuits));
	return object;
}

void ocs_placement_orders_add(struct json_object *json, const struct ocs_placement *p)
{
	json_object_object_add(json, "orders", orders_json(&p->shape));
}

/* Reads as many numbers as expected. */
static int ints_read(struct json_object *array, const char *what, int *values, int n,
		     struct ocs_error *err)
{
	int i;

	if (!json_object_is_type(array, json_type_array) ||
	    (int)json_object_array_length(array) != n)
		return ocs_error_set(err, OCS_USAGE, "placement: %s is not a list of %d numbers",
				     what, n);
	for (i = 0; i < n; i++) {
		struct json_object *value = json_object_array_get_idx(array, (size_t)i);
		int64_t number = json_object_get_int64(value);

		if (!json_object_is_type(value, json_type_int) || number < -OCS_SHAPE_EXTENT_MAX ||
		    number > OCS_SHAPE_EXTENT_MAX)
			return ocs_error_set(err, OCS_USAGE,
					     "placement: %s is not a list of %d "
					     "numbers",
					     what, n);
		values[i] = (int)number;
	}
	return 0;
}

static struct json_object *list_get(struct json_object *object, const char *name,
				    struct ocs_error *err)
{
	struct json_object *array = NULL;

	if (!json_object_object_get_ex(object, name, &array) ||
	    !json_object_is_type(array, json_type_array)) {
		ocs_error_set(err, OCS_USAGE, "placement: '%s' is missing or not a list", name);
		return NULL;
	}
	return array;
}

static const char *string_get(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, name, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

/* Only the twists that pods admit exist, so the vectors can but repeat the shape. */
static int twist_check(struct json_object *twist, const struct ocs_shape *shape,
		       struct ocs_error *err)
{
	struct json_object *own = twist_json(shape);
	bool same = json_object_equal(twist, own);

	json_object_put(own);
	return same ? 0 :
		      ocs_error_set(err, OCS_USAGE,
				    "placement: 'twist' is not the one of its "
				    "shape");
}

static int shape_read(struct json_object *json, struct ocs_shape *shape, struct ocs_error *err)
{
	struct json_object *extents = list_get(json, "shape", err),
			   *conn = list_get(json, "conn", err);
	struct json_object *twist = NULL;
	struct ocs_text text = { 0 }, types = { 0 };
	int extent[OCS_SHAPE_DIMS], n, i, result;

	if (!extents || !conn)
		return -1;
	n = (int)json_object_array_length(extents);
	if (n < 1 || n > OCS_SHAPE_DIMS || (int)json_object_array_length(conn) != n)
		return ocs_error_set(err, OCS_USAGE,
				     "placement: 'shape' and 'conn' must have the same "
				     "1 to %d members",
				     OCS_SHAPE_DIMS);
	if (ints_read(extents, "'shape'", extent, n, err))
		return -1;
	for (i = 0; i < n; i++) {
		struct json_object *type = json_object_array_get_idx(conn, (size_t)i);

		ocs_text_add(&text, "%s%d", i ? "x" : "", extent[i]);
		ocs_text_add(&types, "%s%.40s", i ? "," : "",
			     json_object_is_type(type, json_type_string) ?
				     json_object_get_string(type) :
				     "?");
	}
	if (json_object_object_get_ex(json, "twist", &twist))
		ocs_text_add(&text, "_twisted");
	result = ocs_shape_parse(text.data, types.data, shape, err);
	if (!result && twist)
		result = twist_check(twist, shape, err);
	ocs_text_free(&text);
	ocs_text_free(&types);
	return result;
}

static const struct ocs_section *section_of(const struct ocs_fabric *fabric, const char *cube)
{
	int i;

	for (i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *s = &fabric->sections[i];

		if ((s->kind == OCS_TORUS || s->kind == OCS_STATIC) &&
		    ocs_section_cube(s, cube) >= 0)
			return s;
	}
	return NULL;
}

static int xpus_read(const struct ocs_fabric *fabric, struct json_object *array,
		     struct ocs_placement *p, struct ocs_error *err)
{
	int coord[OCS_SHAPE_DIMS], want[OCS_SHAPE_DIMS], n = p->shape.ndim;
	long r;

	if ((long)json_object_array_length(array) != p->shape.xpus)
		return ocs_error_set(err, OCS_USAGE,
				     "placement: 'xpus' has %zu members, the shape "
				     "needs %ld",
				     json_object_array_length(array), p->shape.xpus);
	for (r = 0; r < p->shape.xpus; r++) {
		struct json_object *one = json_object_array_get_idx(array, (size_t)r);
		const char *cube = string_get(one, "cube");
		struct ocs_xpu *x = &p->xpus[r];

		if (!cube)
			return ocs_error_set(err, OCS_USAGE, "placement: XPU %ld has no cube", r);
		if (!p->section)
			p->section = section_of(fabric, cube);
		x->cube = p->section ? ocs_section_cube(p->section, cube) : -1;
		if (x->cube < 0)
			return ocs_error_set(err, OCS_USAGE,
					     "placement: XPU %ld: cube '%.60s' is "
					     "unknown",
					     r, cube);
		if (ints_read(json_object_object_get(one, "coord"), "'coord'", coord, n, err) ||
		    ints_read(json_object_object_get(one, "at"), "'at'", x->at, OCS_AXES, err))
			return -1;
		ocs_shape_coord(&p->shape, r, want);
		if (memcmp(coord, want, sizeof(int) * (size_t)n))
			return ocs_error_set(err, OCS_USAGE,
					     "placement: 'xpus' is not in row-major "
					     "order at member %ld",
					     r);
	}
	return 0;
}

/* Says whether every 'node' is where the fabric has it; needs sound XPUs. */
static int nodes_read(const struct ocs_fabric *fabric, struct json_object *array,
		      struct ocs_placement *p, struct ocs_error *err)
{
	unsigned char *seen = ocs_calloc((size_t)fabric->nnodes, 1);
	unsigned char *cubes = ocs_calloc((size_t)p->section->ncubes, 1);
	int node, result = 0, a;
	long r;

	p->nodes = ocs_calloc((size_t)p->shape.xpus, sizeof(int));
	p->cubes = ocs_calloc((size_t)p->shape.xpus, sizeof(int));
	for (r = 0; r < p->shape.xpus && !result; r++) {
		const struct ocs_xpu *x = &p->xpus[r];
		const char *name = string_get(json_object_array_get_idx(array, (size_t)r), "node");

		for (a = 0; a < OCS_AXES; a++) {
			if (x->at[a] < 0 || x->at[a] >= p->section->edge[a])
				break;
		}
		if (a < OCS_AXES) {
			result = ocs_error_set(err, OCS_USAGE,
					       "placement: XPU %ld: %d,%d,%d is outside "
					       "its cube",
					       r, x->at[0], x->at[1], x->at[2]);
			break;
		}
		node = ocs_section_node_at(p->section, x->cube, x->at);
		if (!name || strcmp(name, fabric->nodes[node].name))
			result = ocs_error_set(err, OCS_USAGE,
					       "placement: XPU %ld: node is '%.60s', but "
					       "%s holds it",
					       r, name ? name : "", fabric->nodes[node].name);
		seen[node] = cubes[x->cube] = 1;
	}
	for (node = 0; node < fabric->nnodes; node++) {
		if (seen[node])
			p->nodes[p->nnodes++] = node;
	}
	for (a = 0; a < p->section->ncubes; a++) {
		if (cubes[a])
			p->cubes[p->ncubes++] = a;
	}
	free(seen);
	free(cubes);
	return result;
}

static int circuits_read(struct json_object *array, struct ocs_placement *p, struct ocs_error *err)
{
	int n = (int)json_object_array_length(array), i;

	p->circuits = ocs_calloc((size_t)n + 1, sizeof(*p->circuits));
	for (i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(array, (size_t)i);
		const char *dim = string_get(one, "dim"), *from = string_get(one, "from");
		const char *to = string_get(one, "to");
		struct ocs_circuit *c = &p->circuits[i];

		if (!dim || !from || !to || strlen(dim) != 1 || !strchr("xyz", dim[0]))
			return ocs_error_set(err, OCS_USAGE,
					     "placement: circuit %d has no dim (x, y or "
					     "z), from or to",
					     i);
		c->dim = dim[0] - 'x';
		c->from = ocs_section_cube(p->section, from);
		c->to = ocs_section_cube(p->section, to);
		if (c->from < 0 || c->to < 0)
			return ocs_error_set(err, OCS_USAGE,
					     "placement: circuit %d: cube '%.60s' is "
					     "unknown",
					     i, c->from < 0 ? from : to);
		if (ints_read(json_object_object_get(one, "position"), "'position'", c->pos, 2,
			      err))
			return -1;
	}
	p->ncircuits = n;
	return 0;
}

/* The members that repeat what the others say. */
static int repeats_check(struct json_object *json, const struct ocs_placement *p,
			 struct ocs_error *err)
{
	struct json_object *cubes = list_get(json, "cubes", err), *links = NULL, *orders = NULL;
	int i;

	if (!cubes)
		return -1;
	if (json_object_object_get_ex(json, "orders", &orders)) {
		struct json_object *own = orders_json(&p->shape);
		bool same = json_object_equal(orders, own);

		json_object_put(own);
		if (!same)
			return ocs_error_set(err, OCS_USAGE,
					     "placement: 'orders' are not those of its shape");
	}
	if (json_object_object_get_ex(json, "ocs_links", &links) &&
	    (!json_object_is_type(links, json_type_int) ||
	     json_object_get_int64(links) != p->ncircuits))
		return ocs_error_set(err, OCS_USAGE,
				     "placement: 'ocs_links' is not the number of "
				     "circuits");
	if ((int)json_object_array_length(cubes) != p->ncubes)
		return ocs_error_set(err, OCS_USAGE, "placement: 'cubes' does not match the XPUs");
	for (i = 0; i < p->ncubes; i++) {
		struct json_object *name = json_object_array_get_idx(cubes, (size_t)i);

		if (!json_object_is_type(name, json_type_string) ||
		    strcmp(json_object_get_string(name), p->section->cube_names[p->cubes[i]]))
			return ocs_error_set(err, OCS_USAGE,
					     "placement: 'cubes' does not match the "
					     "XPUs");
	}
	return 0;
}

struct ocs_placement *ocs_placement_from_json(const struct ocs_fabric *fabric,
					      struct json_object *json, struct ocs_error *err)
{
	struct json_object *xpus, *circuits;
	struct ocs_placement *p;

	if (!json_object_is_type(json, json_type_object)) {
		ocs_error_set(err, OCS_USAGE, "placement: it is not a JSON object");
		return NULL;
	}
	xpus = list_get(json, "xpus", err);
	circuits = xpus ? list_get(json, "circuits", err) : NULL;
	if (!circuits)
		return NULL;
	p = ocs_calloc(1, sizeof(*p));
	if (shape_read(json, &p->shape, err))
		goto bad;
	if ((long)json_object_array_length(xpus) == p->shape.xpus)
		p->xpus = ocs_calloc((size_t)p->shape.xpus, sizeof(*p->xpus));
	if (xpus_read(fabric, xpus, p, err) || nodes_read(fabric, xpus, p, err) ||
	    circuits_read(circuits, p, err) || repeats_check(json, p, err))
		goto bad;
	return p;
bad:
	ocs_placement_destroy(p);
	return NULL;
}
