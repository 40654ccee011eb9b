/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/piece_classes.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/bits.h"
#include "src/place/catalogue_scratch.h"
#include "src/util/text.h"

/* Bounds on the work for one shape.  Candidates are met in the order of their
 * cubes, so what is cut off are the sprawling ones. */
#define CANDIDATES_MAX 8192
#define WORK_MAX 3000000L /* vertices laid */
#define CLASSES_MAX (1 << 14)

/* Adds a use of CLASS to the candidate whose uses start at FIRST, kept sorted. */
static void use_add(struct ocs_catalogue_rest *b, int first, int class)
{
	struct ocs_catalogue *cat = b->cat;
	int i, at;

	for (at = first; at < cat->nuses && cat->uses[at].class < class; at++)
		;
	if (at < cat->nuses && cat->uses[at].class == class) {
		cat->uses[at].count++;
		return;
	}
	OCS_GROW(cat->uses, cat->nuses, b->use_room);
	for (i = cat->nuses++; i > at; i--)
		cat->uses[i] = cat->uses[i - 1];
	cat->uses[at].class = class;
	cat->uses[at].count = 1;
}

/* True if a candidate with the same pieces is known: then this one is never
 * better. */
static bool candidate_known(struct ocs_catalogue_rest *b, const struct ocs_candidate *now)
{
	struct ocs_catalogue *cat = b->cat;
	const struct ocs_class_use *uses = cat->uses + now->first_use;
	struct ocs_place_index *index = &b->use_index;
	size_t size = (size_t)now->nuses * sizeof(*uses);
	unsigned int slot, hash = ocs_words_hash(uses, size);

	ocs_place_index_grow(index);
	for (slot = hash & (index->size - 1); index->slots[slot].item;
	     slot = (slot + 1) & (index->size - 1)) {
		const struct ocs_candidate *c = &cat->candidates[index->slots[slot].item - 1];

		if (index->slots[slot].hash == hash && c->nuses == now->nuses &&
		    c->circuits == now->circuits && !memcmp(cat->uses + c->first_use, uses, size))
			return true;
	}
	index->slots[slot] = (struct ocs_place_slot){ hash, (unsigned int)cat->ncandidates + 1 };
	index->count++;
	return false;
}

/* Adds the classes of all pieces of LIGHT; returns its circuits. */
static int pieces_add(struct ocs_catalogue_rest *b, const struct ocs_light *light)
{
	struct ocs_catalogue *cat = b->cat;
	bool gaps = !cat->foldings[light->folding].filled;
	int first = cat->npieces, circuits, piece;

	b->work += cat->shape.xpus;
	if (gaps && ocs_piece_mirrors_add(b, light, &circuits))
		return circuits;
	ocs_candidate_masks_fill(&b->pieces, light->folding, &light->lay);
	circuits = ocs_candidate_masks_ports(&b->pieces);
	for (piece = 0; piece < light->cubes; piece++) {
		int class = ocs_piece_class_get(b, ocs_candidate_masks_piece(&b->pieces, piece));

		OCS_GROW(cat->pieces, cat->npieces, b->piece_room);
		cat->pieces[cat->npieces++] = class;
	}
	if (gaps)
		ocs_piece_mirrors_note(b, light, first, circuits);
	return circuits;
}

static void candidate_add(struct ocs_catalogue_rest *b, const struct ocs_light *light)
{
	struct ocs_catalogue *cat = b->cat;
	struct ocs_candidate now = { .folding = light->folding,
				     .lay = light->lay,
				     .grid = light->cubes,
				     .batch = b->batch,
				     .first_use = cat->nuses,
				     .first_piece = cat->npieces };
	int piece;

	/* in a static torus every offset is tried when it is time: no pieces are kept */
	if (!light->nodes && ocs_lights_nodes(b, light) != cat->nodes)
		return;
	if (!b->host.fixed)
		now.circuits = pieces_add(b, light);
	for (piece = now.first_piece; piece < cat->npieces; piece++) {
		if (cat->pieces[piece] < 0)
			continue;
		now.cubes++;
		use_add(b, now.first_use, cat->pieces[piece]);
	}
	now.nuses = cat->nuses - now.first_use;
	if (b->host.fixed) {
		now.cubes = 1;
	} else if (candidate_known(b, &now)) {
		cat->nuses = now.first_use;
		cat->npieces = now.first_piece;
		return;
	}
	OCS_GROW(cat->candidates, cat->ncandidates, b->candidate_room);
	cat->candidates[cat->ncandidates++] = now;
}

/* The gate of a candidate: most pieces of a class, the largest. */
static int gate_get(struct ocs_catalogue_rest *b, const struct ocs_candidate *c)
{
	struct ocs_catalogue *cat = b->cat;
	const struct ocs_class_use *most = cat->uses + c->first_use, *use = most;
	int *head, i;

	for (; use < cat->uses + c->first_use + c->nuses; use++) {
		if (use->count > most->count ||
		    (use->count == most->count &&
		     cat->classes[use->class].xpus > cat->classes[most->class].xpus))
			most = use;
	}
	head = &cat->classes[most->class].gate;
	for (i = *head; i >= 0; i = cat->gates[i].next) {
		if (cat->gates[i].count == most->count)
			return i;
	}
	OCS_GROW(cat->gates, cat->ngates, b->gate_room);
	cat->gates[cat->ngates] = (struct ocs_gate){ most->class, most->count, *head };
	return *head = cat->ngates++;
}

static void gates_make(struct ocs_catalogue_rest *b, int from)
{
	struct ocs_catalogue *cat = b->cat;
	int i;

	cat->gate_of = ocs_realloc(cat->gate_of, ((size_t)cat->ncandidates + 1) * sizeof(int));
	for (i = from; i < cat->ncandidates; i++)
		cat->gate_of[i] = b->host.fixed ? 0 : gate_get(b, &cat->candidates[i]);
}

/* Counts the nodes of the lights with gaps, as far as the work allows, until it is known
 * what the fewest are, on how many cubes; the others are counted when they are laid out. */
static void nodes_count(struct ocs_catalogue_rest *b)
{
	int tile = b->host.tile[0] * b->host.tile[1] * b->host.tile[2], i;
	int least = b->least_nodes;

	for (i = 0; i < b->nlights && b->work < WORK_MAX / 2; i++) {
		struct ocs_light *light = &b->lights[i];

		if (light->nodes)
			continue;
		if (b->cat->min_nodes == least && light->cubes > b->best_cubes + OCS_GAPS_MORE)
			break;
		if (tile == 1) {
			light->nodes = least;
			b->work += least;
		} else if (b->cat->min_nodes == least && light->cubes >= b->best_cubes) {
			b->work += b->cat->shape.xpus; /* as if it were laid here */
			continue;
		} else {
			light->nodes = ocs_lights_nodes(b, light);
		}
		ocs_lights_note(b, light);
	}
	b->counted = i;
}

static int candidate_compare(const void *a, const void *b)
{
	const struct ocs_candidate *p = a, *q = b;

	if (p->cubes != q->cubes)
		return p->cubes - q->cubes;
	if (p->circuits != q->circuits)
		return p->circuits - q->circuits;
	if (p->first_use != q->first_use)
		return p->first_use - q->first_use;
	if (p->folding != q->folding)
		return p->folding - q->folding;
	return memcmp(&p->lay, &q->lay, sizeof(p->lay));
}

/* Of one table. */
static size_t entries_bytes(const struct ocs_catalogue *cat)
{
	size_t entries = 0;
	int d;

	for (d = 0; d < cat->shape.ndim; d++)
		entries += (size_t)cat->shape.extent[d];
	return entries * sizeof(struct ocs_fold_entry);
}

const struct ocs_fold_table *ocs_catalogue_table(struct ocs_catalogue *cat, int folding)
{
	struct ocs_fold_table *table = &cat->tables[folding];
	struct ocs_lattice host;
	int other = cat->rest ? cat->rest->mirror_of[folding] : folding;

	if (table->ndim)
		return table;
	if (cat->tables[other].ndim) {
		ocs_fold_table_mirror(&cat->tables[other], cat->foldings[folding].flip, table);
		cat->bytes += entries_bytes(cat);
		return table;
	}
	ocs_lattice_of(cat->section, &host);
	if (ocs_fold_table_make(&cat->foldings[folding], &cat->shape, &host, table, NULL))
		abort(); /* the family makes only foldings that are sound */
	cat->bytes += entries_bytes(cat);
	return table;
}

/* Folding FROM is folding TO now, and the one before TO was a mirror of GROUP.  Returns what FROM was
 * a mirror of; the first of them that is kept stands for it. */
static int mirror_move(struct ocs_catalogue_rest *b, int from, int to, int group)
{
	int original = b->mirror_of[from];

	b->gap_nodes[to] = original == group ? b->gap_nodes[to - 1] : b->gap_nodes[original];
	b->mirror_of[to] = original == group ? b->mirror_of[to - 1] : to;
	return original;
}

/* Keeps the foldings that candidates use, and those that lights may still. */
static void foldings_keep(struct ocs_catalogue *cat)
{
	int *kept = ocs_calloc((size_t)cat->nfoldings + 1, sizeof(int)), n = 0, group = -1, i;
	struct ocs_catalogue_rest *b = cat->rest;

	for (i = 0; i < cat->ncandidates; i++)
		kept[cat->candidates[i].folding] = 1;
	for (i = b ? b->next : 0; b && i < b->nlights; i++)
		kept[b->lights[i].folding] = 1;
	for (i = 0; i < cat->nfoldings; i++) {
		if (!kept[i]) {
			ocs_fold_table_free(&cat->tables[i]);
			continue;
		}
		cat->foldings[n] = cat->foldings[i];
		cat->tables[n] = cat->tables[i];
		if (b)
			group = mirror_move(b, i, n, group);
		kept[i] = n++;
	}
	for (i = 0; i < cat->ncandidates; i++)
		cat->candidates[i].folding = kept[cat->candidates[i].folding];
	for (i = b ? b->next : 0; b && i < b->nlights; i++)
		b->lights[i].folding = kept[b->lights[i].folding];
	free(kept);
	cat->nfoldings = n;
}

/* What it takes, with the rest and the tables that are made. */
static void bytes_count(struct ocs_catalogue *cat)
{
	const struct ocs_catalogue_rest *b = cat->rest;
	size_t piece_words = (size_t)(cat->mask_words + 6 * cat->face_words);
	int i, tables = 0;

	for (i = 0; i < cat->nfoldings; i++)
		tables += cat->tables[i].ndim > 0;
	cat->bytes = (size_t)cat->ncandidates * (sizeof(*cat->candidates) + sizeof(int)) +
		     (size_t)cat->ngates * sizeof(*cat->gates) +
		     (size_t)cat->nuses * sizeof(*cat->uses) +
		     (size_t)cat->npieces * sizeof(*cat->pieces) +
		     (size_t)cat->nclasses *
			     (sizeof(*cat->classes) + piece_words * sizeof(*cat->words)) +
		     (size_t)cat->nfoldings * (sizeof(*cat->foldings) + sizeof(*cat->tables)) +
		     (size_t)tables * entries_bytes(cat);
	if (b)
		cat->bytes += sizeof(*b) + (size_t)b->nlights * sizeof(*b->lights) +
			      (size_t)cat->nfoldings * 2 * sizeof(*b->mirror_of) +
			      (size_t)(b->class_index.size + b->use_index.size) *
				      sizeof(*b->class_index.slots);
}

static void rest_free(struct ocs_catalogue *cat)
{
	struct ocs_catalogue_rest *b = cat->rest;

	if (!b)
		return;
	free(b->lights);
	free(b->mirror_of);
	free(b->gap_nodes);
	free(b->class_index.slots);
	free(b->use_index.slots);
	free(b);
	cat->rest = NULL;
}

/* All candidates are there. */
static void catalogue_finish(struct ocs_catalogue *cat)
{
	bool fixed = cat->rest->host.fixed;
	int i;

	rest_free(cat);
	foldings_keep(cat);
	cat->foldings =
		ocs_realloc(cat->foldings, ((size_t)cat->nfoldings + 1) * sizeof(*cat->foldings));
	cat->tables = ocs_realloc(cat->tables, ((size_t)cat->nfoldings + 1) * sizeof(*cat->tables));
	for (i = 0; i < cat->nfoldings && fixed; i++)
		ocs_catalogue_table(cat, i); /* nothing was laid out, and the scan wants all */
}

/* Cubes want only the tables of foldings that are chosen, again then: the others take most of the
 * memory of a catalogue. */
static void tables_drop(struct ocs_catalogue *cat)
{
	int i;

	for (i = 0; i < cat->nfoldings; i++)
		ocs_fold_table_free(&cat->tables[i]);
}

static int face_words(const struct ocs_section *s)
{
	int most = s->edge[0] * s->edge[1];

	most = s->edge[0] * s->edge[2] > most ? s->edge[0] * s->edge[2] : most;
	most = s->edge[1] * s->edge[2] > most ? s->edge[1] * s->edge[2] : most;
	return (most + 63) / 64;
}

/* Foldings that leave gaps are many: they are made at once only where the others need more
 * nodes or cubes than the XPUs do, else when these find no room. */
static bool gaps_pay(const struct ocs_catalogue_rest *b, int nodes)
{
	const struct ocs_section *s = b->section;
	long xpus = b->cat->shape.xpus;

	return !b->cat->min_nodes || b->cat->min_nodes > b->least_nodes ||
	       b->best_cubes > (xpus + s->cube_xpus - 1) / s->cube_xpus ||
	       (nodes && nodes != b->cat->min_nodes);
}

/* Boxes with gaps on many more cubes than others are too many, and rings are made of whatever
 * is free there. */
static void gaps_limit(struct ocs_catalogue_rest *b)
{
	for (b->counted = b->next; b->counted < b->nlights; b->counted++) {
		if (b->lights[b->counted].cubes > b->best_cubes + OCS_GAPS_MORE)
			break;
	}
}

/* Whether a light can be a candidate, as far as its nodes are known. */
static bool light_good(const struct ocs_catalogue_rest *b, int i)
{
	const struct ocs_light *light = &b->lights[i];

	return b->cat->nodes && (light->nodes ? light->nodes == b->cat->nodes : i < b->counted);
}

/* Forgets the lights that cannot be candidates, and foldings of no other use: of thousands a few
 * hundred stay. */
static void rest_shrink(struct ocs_catalogue *cat)
{
	struct ocs_catalogue_rest *b = cat->rest;
	int n = b->next, i;

	for (i = b->next; i < b->nlights; i++) {
		if (light_good(b, i))
			b->lights[n++] = b->lights[i];
	}
	b->nlights = b->counted = n;
	foldings_keep(cat);
}

bool ocs_catalogue_more(struct ocs_catalogue *cat, struct ocs_catalogue_scratch *scratch)
{
	struct ocs_catalogue_rest *b = cat->rest;
	int from = cat->ncandidates, cubes = 0;

	if (!b)
		return false;
	b->batch = from;
	if (from && !b->gaps) {
		ocs_catalogue_scratch_lights_lend(scratch, b);
		ocs_lights_all(b, true);
		ocs_lights_sort(b);
		gaps_limit(b);
		rest_shrink(cat);
		ocs_catalogue_scratch_lights_return(scratch, b);
	}
	if (!b->host.fixed)
		ocs_candidate_masks_create(&b->pieces, cat->section, cat);
	ocs_piece_mirrors_create(&b->mirrors);
	ocs_catalogue_scratch_batch_lend(scratch, b);
	for (; b->next < b->nlights; b->next++) {
		if (!light_good(b, b->next))
			continue;
		if (cat->ncandidates && (b->work > WORK_MAX || cat->ncandidates == CANDIDATES_MAX ||
					 cat->nclasses > CLASSES_MAX)) {
			b->next = b->nlights;
			break;
		}
		if (cat->ncandidates > from && b->lights[b->next].cubes != cubes)
			break;
		cubes = b->lights[b->next].cubes;
		candidate_add(b, &b->lights[b->next]);
	}
	if (cat->ncandidates > from)
		qsort(cat->candidates + from, (size_t)(cat->ncandidates - from),
		      sizeof(*cat->candidates), candidate_compare);
	gates_make(b, from);
	ocs_catalogue_scratch_batch_return(scratch, b);
	/* they are large, and most catalogues never grow again */
	ocs_candidate_masks_free(&b->pieces);
	ocs_piece_mirrors_free(&b->mirrors);
	if (b->next == b->nlights && b->gaps)
		catalogue_finish(cat);
	if (cat->section->kind != OCS_STATIC)
		tables_drop(cat);
	bytes_count(cat);
	return cat->ncandidates > from;
}

/* Foldings at offsets, fewest cubes first, and the node count. */
static void rest_make(struct ocs_catalogue *cat, int nodes, struct ocs_catalogue_scratch *scratch)
{
	struct ocs_catalogue_rest *b = cat->rest;

	ocs_catalogue_scratch_lights_lend(scratch, b);
	ocs_lights_all(b, false);
	if (gaps_pay(b, nodes))
		ocs_lights_all(b, true);
	b->gaps |= b->host.fixed || ocs_lone_ring(&cat->shape);
	ocs_lights_sort(b);
	nodes_count(b);
	cat->nodes = nodes ? nodes : cat->min_nodes;
	rest_shrink(cat);
	ocs_catalogue_scratch_lights_return(scratch, b);
}

struct ocs_catalogue *ocs_catalogue_create(const struct ocs_section *section,
					   const struct ocs_shape *shape, int nodes,
					   struct ocs_catalogue_scratch *scratch)
{
	struct ocs_catalogue *cat = ocs_calloc(1, sizeof(*cat));
	struct ocs_catalogue_rest *b;
	int tile;

	cat->section = section;
	cat->shape = *shape;
	cat->mask_words = section->words;
	cat->face_words = face_words(section);
	if (shape->xpus > (long)section->ncubes * section->cube_xpus)
		return cat;
	b = cat->rest = ocs_calloc(1, sizeof(*b));
	b->section = section;
	b->cat = cat;
	b->want = nodes;
	ocs_lattice_of(section, &b->host);
	tile = section->tile[0] * section->tile[1] * section->tile[2];
	b->least_nodes = (int)((shape->xpus + tile - 1) / tile);
	rest_make(cat, nodes, scratch);
	ocs_catalogue_more(cat, scratch);
	return cat;
}

void ocs_catalogue_destroy(struct ocs_catalogue *cat)
{
	int i;

	if (!cat)
		return;
	rest_free(cat);
	for (i = 0; i < cat->nfoldings; i++)
		ocs_fold_table_free(&cat->tables[i]);
	free(cat->foldings);
	free(cat->tables);
	free(cat->candidates);
	free(cat->gate_of);
	free(cat->gates);
	free(cat->uses);
	free(cat->pieces);
	free(cat->classes);
	free(cat->words);
	free(cat);
}

static bool folding_found(const struct ocs_folding *folding, void *arg)
{
	(void)folding;
	*(bool *)arg = true;
	return false;
}

bool ocs_catalogue_possible(const struct ocs_section *section, const struct ocs_shape *shape)
{
	struct ocs_lattice host;
	bool any = false;

	ocs_lattice_of(section, &host);
	if (shape->xpus > (long)section->ncubes * section->cube_xpus)
		return false;
	ocs_fold_family(shape, &host, false, folding_found, &any);
	if (!any)
		ocs_fold_family(shape, &host, true, folding_found, &any);
	return any;
}
