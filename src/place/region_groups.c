/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/region_groups.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/fold/shape.h"
#include "src/util/error.h"
#include "src/util/text.h"

int ocs_region_layout_make(const struct ocs_section *section, const struct ocs_shape *shape,
			   struct ocs_region_layout *layout, struct ocs_error *err)
{
	int experts = ocs_shape_experts(shape),
	    xpus = section->server_xpus ? section->server_xpus : 1;
	long group = 1, servers;
	char text[OCS_SHAPE_TEXT];

	ocs_shape_named_format(shape, text);
	if (experts < 0)
		return ocs_error_set(
			err, OCS_USAGE,
			"--shape=%s: with --ocs-moe one dimension is called ep, for example --shape=pp:4,ep:8,tp:4",
			text);
	for (int d = experts; d < shape->ndim; d++)
		group *= shape->extent[d];
	if (group % xpus)
		return ocs_error_set(
			err, OCS_NEVER,
			"--shape=%s: a group, ep and all behind it, is %ld XPUs, which servers of %d do not divide",
			text, group, xpus);
	servers = group / xpus;
	if (servers > section->region_servers)
		return ocs_error_set(
			err, OCS_NEVER,
			"--shape=%s: a group, ep and all behind it, is %ld servers; a region of %s has %d",
			text, servers, section->name, section->region_servers);
	if (servers * (shape->xpus / group) > section->nservers)
		return ocs_error_set(err, OCS_NEVER, "--shape=%s is %ld servers, %s has %d", text,
				     servers * (shape->xpus / group), section->name,
				     section->nservers);
	layout->groups = (int)(shape->xpus / group);
	layout->servers = (int)servers;
	layout->node_xpus = xpus;
	return 0;
}

int ocs_region_servers(const struct ocs_section *section, const struct ocs_shape *shape,
		       struct ocs_error *err)
{
	int xpus = section->server_xpus ? section->server_xpus : 1;
	char text[OCS_SHAPE_TEXT];

	ocs_shape_named_format(shape, text);
	if (shape->xpus % xpus)
		return ocs_error_set(err, OCS_NEVER,
				     "--shape=%s is %ld XPUs, which servers of %d do not divide",
				     text, shape->xpus, xpus);
	if (shape->xpus / xpus > section->nservers)
		return ocs_error_set(err, OCS_NEVER, "--shape=%s is %ld servers, %s has %d", text,
				     shape->xpus / xpus, section->name, section->nservers);
	return (int)(shape->xpus / xpus);
}

/* A region while it is weighed. */
struct room {
	int region;
	int free;
	int room;  /* groups that fit */
	int least; /* groups that it must have, for required servers */
	int taken;
};

static int rooms_count(const struct ocs_section *section, const struct ocs_region_layout *layout,
		       const bool *idle, const bool *required, struct room *rooms)
{
	int groups = 0;

	for (int r = 0; r < section->nregions; r++) {
		int first = ocs_section_region_first(section, r), wanted = 0;
		struct room *room = &rooms[r];

		room->region = r;
		for (int s = first; s < first + ocs_section_region_size(section, r); s++) {
			room->free += idle[s];
			wanted += required && required[s];
		}
		room->room = room->free / layout->servers;
		room->least = (wanted + layout->servers - 1) / layout->servers;
		groups += room->room;
	}
	return groups;
}

/* "3, 5 and 2": the free servers of the regions, at most a dozen. */
static char *rooms_text(const struct room *rooms, int count)
{
	struct ocs_text text = { 0 };

	for (int r = 0; r < count && r < 12; r++)
		ocs_text_add(&text, "%s%d",
			     r == 0	    ? "" :
			     r == count - 1 ? " and " :
					      ", ",
			     rooms[r].free);
	if (count > 12)
		ocs_text_add(&text, " ...");
	return ocs_text_take(&text);
}

int ocs_region_possible(const struct ocs_section *section, const struct ocs_region_layout *layout,
			struct ocs_error *err)
{
	int whole = 0;

	for (int r = 0; r < section->nregions; r++)
		whole += ocs_section_region_size(section, r) / layout->servers;
	if (whole >= layout->groups)
		return 0;
	return ocs_error_set(
		err, OCS_NEVER,
		"needs %d group%s of %d servers, each inside one region; %s has room for %d when it is empty",
		layout->groups, layout->groups == 1 ? "" : "s", layout->servers, section->name,
		whole);
}

static int room_fail(const struct ocs_section *section, const struct ocs_region_layout *layout,
		     const struct room *rooms, int groups, struct ocs_error *err)
{
	char *text;

	if (ocs_region_possible(section, layout, err) < 0)
		return -1;
	text = rooms_text(rooms, section->nregions);
	ocs_error_set(
		err, OCS_NOT_NOW,
		"needs %d group%s of %d servers, each inside one region; there is room for %d (free servers of the regions: %s)",
		layout->groups, layout->groups == 1 ? "" : "s", layout->servers, groups, text);
	free(text);
	return -1;
}

/* Which of the regions that are not forced are taken, so that they have room for GROUPS and as few free
 * servers as possible, then as few regions.  The leftover is what they have free less what is
 * placed, so the regions with the least free servers together leave the least. */
static void rooms_choose(struct room *rooms, int count, int groups)
{
	size_t width = (size_t)groups + 1;
	long *cost = ocs_calloc(width, sizeof(*cost));
	bool *took = ocs_calloc(width * (size_t)count, sizeof(*took));

	for (int g = 1; g <= groups; g++)
		cost[g] = LONG_MAX / 2;
	for (int r = 0; r < count; r++) {
		long own = (long)rooms[r].free * (count + 1) + 1;

		if (rooms[r].least || !rooms[r].room)
			continue;
		for (int g = groups; g > 0; g--) {
			int rest = g > rooms[r].room ? g - rooms[r].room : 0;

			if (cost[rest] + own >= cost[g])
				continue;
			cost[g] = cost[rest] + own;
			took[(size_t)r * width + (size_t)g] = true;
		}
	}
	for (int r = count - 1, g = groups; r >= 0 && g > 0; r--)
		if (took[(size_t)r * width + (size_t)g]) {
			rooms[r].taken = rooms[r].room;
			g = g > rooms[r].room ? g - rooms[r].room : 0;
		}
	free(took);
	free(cost);
}

/* There is room for SPARE groups more than needed: the region that has the most left gives them up first. */
static void rooms_trim(struct room *rooms, int count, int servers, int spare)
{
	while (spare > 0) {
		struct room *most = NULL;

		for (int r = 0; r < count; r++)
			if (rooms[r].taken > rooms[r].least &&
			    (!most || rooms[r].free - rooms[r].taken * servers >
					      most->free - most->taken * servers))
				most = &rooms[r];
		if (!most)
			return;
		most->taken--;
		spare--;
	}
}

/* Takes the required servers of ROOM, then the first ones. */
static int room_take(const struct ocs_section *section, const struct room *room, int servers,
		     const bool *idle, const bool *required, int *chosen)
{
	int first = ocs_section_region_first(section, room->region);
	int end = first + ocs_section_region_size(section, room->region), count = 0;
	int others = room->taken * servers;

	for (int s = first; required && s < end; s++)
		others -= required[s];
	for (int s = first; s < end; s++) {
		bool wanted = required && required[s];

		if (!wanted && (!idle[s] || others <= 0))
			continue;
		others -= !wanted;
		chosen[count++] = s;
	}
	return count;
}

/* How many groups each region gets: 0, or -1 with ERR. */
static int rooms_fill(const struct ocs_section *section, const struct ocs_region_layout *layout,
		      struct room *rooms, struct ocs_error *err)
{
	int count = section->nregions, least = 0, forced = 0, spare = -layout->groups;

	for (int r = 0; r < count; r++) {
		least += rooms[r].least;
		if (rooms[r].least > rooms[r].room)
			least = layout->groups + 1;
		if (rooms[r].least)
			forced += rooms[r].taken = rooms[r].room;
	}
	if (least > layout->groups)
		return ocs_error_set(
			err, OCS_NOT_NOW,
			"no groups of %d servers, each inside one region, have all nodes that were asked for by name",
			layout->servers);
	if (forced < layout->groups)
		rooms_choose(rooms, count, layout->groups - forced);
	for (int r = 0; r < count; r++)
		spare += rooms[r].taken;
	rooms_trim(rooms, count, layout->servers, spare);
	return 0;
}

int ocs_region_place(const struct ocs_section *section, const struct ocs_region_layout *layout,
		     const bool *idle, const bool *required, int *servers, struct ocs_error *err)
{
	struct room *rooms = ocs_calloc((size_t)section->nregions, sizeof(*rooms));
	int groups = rooms_count(section, layout, idle, required, rooms), count = 0, rc;

	rc = groups < layout->groups ? room_fail(section, layout, rooms, groups, err) :
				       rooms_fill(section, layout, rooms, err);
	for (int r = 0; r < section->nregions && rc == 0; r++)
		if (rooms[r].taken)
			count += room_take(section, &rooms[r], layout->servers, idle, required,
					   servers + count);
	free(rooms);
	return rc < 0 ? -1 : count;
}

int ocs_region_check(const struct ocs_section *section, const struct ocs_region_layout *layout,
		     const int *servers, int count, struct ocs_error *err)
{
	if (count != layout->groups * layout->servers)
		return ocs_error_set(err, OCS_USAGE,
				     "%d groups of %d servers take %d nodes; the allocation has %d",
				     layout->groups, layout->servers,
				     layout->groups * layout->servers, count);
	for (int i = 0; i < count; i++) {
		int first = servers[i - i % layout->servers];

		if (ocs_section_region(section, servers[i]) != ocs_section_region(section, first))
			return ocs_error_set(
				err, OCS_USAGE,
				"servers %d and %d of group %d are in different regions", first,
				servers[i], i / layout->servers);
	}
	return 0;
}

int ocs_region_wish(const struct ocs_section *section, int wish)
{
	return wish && section->change_ms > section->change_limit_ms ? wish | OCS_MOE_WISH_STATIC :
								       wish;
}
