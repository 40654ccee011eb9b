/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fabric/occupancy.h"

#include <stdlib.h>
#include <string.h>

#include "src/fabric/builder.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define BUSY_FILE_MAX (64u << 20)

static size_t free_words(const struct ocs_section *section)
{
	return (size_t)section->ncubes * (size_t)section->words;
}

static size_t blocked_words(const struct ocs_occupancy *occupancy)
{
	return (size_t)occupancy->section->ncubes * OCS_AXES * 2 * (size_t)occupancy->face_words;
}

struct ocs_occupancy *ocs_occupancy_create(const struct ocs_section *section)
{
	struct ocs_occupancy *occupancy = ocs_calloc(1, sizeof(*occupancy));
	int face = 0;

	for (int dim = 0; dim < OCS_AXES; dim++) {
		int other[2], ports;

		ocs_axes_other(dim, other);
		ports = section->edge[other[0]] * section->edge[other[1]];
		face = ports > face ? ports : face;
	}
	occupancy->section = section;
	occupancy->face_words = (face + 63) / 64;
	occupancy->free = ocs_calloc(free_words(section), sizeof(uint64_t));
	occupancy->blocked = ocs_calloc(blocked_words(occupancy), sizeof(uint64_t));
	occupancy->drained = ocs_calloc((size_t)section->ncubes, sizeof(bool));
	ocs_occupancy_reset(occupancy);
	return occupancy;
}

void ocs_occupancy_destroy(struct ocs_occupancy *occupancy)
{
	if (!occupancy)
		return;
	free(occupancy->free);
	free(occupancy->blocked);
	free(occupancy->drained);
	free(occupancy);
}

void ocs_occupancy_copy(struct ocs_occupancy *to, const struct ocs_occupancy *from)
{
	memcpy(to->free, from->free, free_words(from->section) * sizeof(uint64_t));
	/* Without any blocked port both sides are zero already or become so. */
	if (from->any_blocked || to->any_blocked)
		memcpy(to->blocked, from->blocked, blocked_words(from) * sizeof(uint64_t));
	memcpy(to->drained, from->drained, (size_t)from->section->ncubes * sizeof(bool));
	to->any_blocked = from->any_blocked;
}

void ocs_occupancy_reset(struct ocs_occupancy *occupancy)
{
	const struct ocs_section *section = occupancy->section;
	uint64_t *word = occupancy->free;

	for (int cube = 0; cube < section->ncubes; cube++) {
		int left = section->cube_xpus;

		for (int i = 0; i < section->words; i++, left -= 64)
			*word++ = left >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
	}
	memset(occupancy->blocked, 0, blocked_words(occupancy) * sizeof(uint64_t));
	memset(occupancy->drained, 0, (size_t)section->ncubes * sizeof(bool));
	occupancy->any_blocked = false;
}

void ocs_occupancy_fill(struct ocs_occupancy *occupancy)
{
	memset(occupancy->free, 0, free_words(occupancy->section) * sizeof(uint64_t));
}

void ocs_occupancy_node_set(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
			    int node, bool is_free)
{
	const struct ocs_section *section = occupancy->section;
	const struct ocs_node *n = &fabric->nodes[node];
	uint64_t *words = occupancy->free + (size_t)n->cube * (size_t)section->words;
	int at[OCS_AXES];

	if (is_free && occupancy->drained[n->cube])
		return;
	for (int x = 0; x < section->tile[0]; x++) {
		for (int y = 0; y < section->tile[1]; y++) {
			for (int z = 0; z < section->tile[2]; z++) {
				uint64_t mask;
				int bit;

				at[0] = n->origin[0] + x;
				at[1] = n->origin[1] + y;
				at[2] = n->origin[2] + z;
				bit = ocs_section_bit(section, at);
				mask = UINT64_C(1) << (bit % 64);
				if (is_free)
					words[bit / 64] |= mask;
				else
					words[bit / 64] &= ~mask;
			}
		}
	}
}

bool ocs_occupancy_xpu_free(const struct ocs_occupancy *occupancy, int cube, const int at[OCS_AXES])
{
	int bit = ocs_section_bit(occupancy->section, at);

	return occupancy->free[cube * occupancy->section->words + bit / 64] >> (bit % 64) & 1;
}

int ocs_occupancy_cube_free(const struct ocs_occupancy *occupancy, int cube)
{
	const uint64_t *word = occupancy->free + cube * occupancy->section->words;
	int count = 0;

	for (int i = 0; i < occupancy->section->words; i++)
		count += __builtin_popcountll(word[i]);
	return count;
}

void ocs_occupancy_cube_drain(struct ocs_occupancy *occupancy, int cube)
{
	int words = occupancy->section->words;

	occupancy->drained[cube] = true;
	memset(occupancy->free + cube * words, 0, (size_t)words * sizeof(uint64_t));
}

static uint64_t *face_index(const struct ocs_occupancy *occupancy, int cube, int dim, int sign)
{
	return occupancy->blocked + ((cube * OCS_AXES + dim) * 2 + sign) * occupancy->face_words;
}

const uint64_t *ocs_occupancy_blocked(const struct ocs_occupancy *occupancy, int cube, int dim,
				      int sign)
{
	return face_index(occupancy, cube, dim, sign);
}

static int face_bit(const struct ocs_section *section, int dim, int a, int b)
{
	int other[2];

	ocs_axes_other(dim, other);
	return a * section->edge[other[1]] + b;
}

void ocs_occupancy_switch_block(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
				int sw, int port)
{
	const struct ocs_section *section = occupancy->section;
	int ports;

	if (sw < 0 || sw >= fabric->nswitches)
		return;
	ports = ocs_switch_ports(&fabric->switches[sw]);
	for (int i = port ? port : 1; i <= (port ? port : ports); i++) {
		struct ocs_port_item at;
		const struct ocs_port_use *use;
		int bit;

		if (i < 1 || i > ports)
			return;
		use = &fabric->index->uses[sw][i - 1];
		if (use->section != section->index)
			continue;
		ocs_ports_item(section, use->item, &at);
		bit = face_bit(section, at.dim, at.a, at.b);
		face_index(occupancy, at.cube, at.dim, at.sign)[bit / 64] |= UINT64_C(1)
									     << (bit % 64);
		occupancy->any_blocked = true;
	}
}

bool ocs_occupancy_port_blocked(const struct ocs_occupancy *occupancy, int cube, int dim, int a,
				int b, int sign)
{
	int bit = face_bit(occupancy->section, dim, a, b);

	return face_index(occupancy, cube, dim, sign)[bit / 64] >> (bit % 64) & 1;
}

/* One line `cube x y z`; comments and empty lines were taken off. */
static int busy_line(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric, char *line,
		     struct ocs_error *err)
{
	const struct ocs_section *section = occupancy->section;
	char *rest = NULL, *word = strtok_r(line, " \t\r", &rest);
	int cube, at[OCS_AXES];

	if (!word)
		return 0;
	cube = ocs_section_cube(section, word);
	if (cube < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "there is no cube \"%.100s\" in %s; the first one is %s", word,
				     section->name, section->cube_names[0]);
	for (int axis = 0; axis < OCS_AXES; axis++) {
		long value;

		word = strtok_r(NULL, " \t\r", &rest);
		if (!word)
			return ocs_error_set(
				err, OCS_USAGE,
				"a line needs a cube and three coordinates, like \"%s 0 1 2\"",
				section->cube_names[cube]);
		if (ocs_number_parse(word, 0, section->edge[axis] - 1, &value) < 0)
			return ocs_error_set(err, OCS_USAGE,
					     "\"%.40s\" is not a coordinate: %c runs from 0 to %d",
					     word, "xyz"[axis], section -> edge[axis] - 1);
		at[axis] = (int)value;
	}
	if (strtok_r(NULL, " \t\r", &rest))
		return ocs_error_set(err, OCS_USAGE,
				     "there is something after the three coordinates");
	ocs_occupancy_node_set(occupancy, fabric, ocs_section_node_at(section, cube, at), false);
	return 0;
}

int ocs_occupancy_read_busy(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
			    const char *path, struct ocs_error *err)
{
	struct ocs_occupancy *copy;
	char *text = ocs_file_read(path, BUSY_FILE_MAX, NULL, err);
	int number = 0, rc = 0;

	if (!text)
		return -1;
	/* Work on a copy: a bad line must not leave half of the file applied. */
	copy = ocs_occupancy_create(occupancy->section);
	ocs_occupancy_copy(copy, occupancy);
	for (char *line = text; line && rc == 0; number++) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = '\0';
		line[strcspn(line, "#")] = '\0';
		rc = busy_line(copy, fabric, line, err);
		line = next;
	}
	if (rc == 0)
		ocs_occupancy_copy(occupancy, copy);
	else
		ocs_error_prefix(err, "%s:%d", path, number);
	ocs_occupancy_destroy(copy);
	free(text);
	return rc;
}
