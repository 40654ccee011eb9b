/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/site.h"
#include "src/advice/nearest_shape.h"
#include "src/advice/reason.h"
#include "src/config/config.h"
#include "src/plugins/compat/compat.h"
#include "src/plugins/compat/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/fabric/fabric.h"
#include "src/place/place.h"
#include "src/place/region_groups.h"
#include "src/rails/layout.h"
#include "src/util/error.h"
#include "src/util/text.h"

static struct {
	char *path;
	struct stat seen;
	struct ocs_fabric *fabric;
	struct ocs_placer **placers; /* one per section, made when asked for */
	struct ocs_error fault;	     /* why there is no fabric */
} site;

void ocs_site_close(void)
{
	for (int i = 0; site.fabric && i < site.fabric->nsections; i++)
		if (site.placers[i])
			ocs_placer_destroy(site.placers[i]);
	free(site.placers);
	if (site.fabric)
		ocs_fabric_destroy(site.fabric);
	xfree(site.path);
	memset(&site, 0, sizeof(site));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void fabric_take(struct ocs_fabric *fabric, const struct stat *seen)
{
	char *path = site.path;

	site.path = NULL;
	ocs_site_close();
	site.path = path;
	site.seen = *seen;
	site.fabric = fabric;
	site.placers = ocs_calloc(fabric->nsections ? fabric->nsections : 1, sizeof(*site.placers));
}

/* A slurmctld that found a broken file when it started goes by the copy of the last one that
 * it took. */
static void take_accepted(const struct stat *seen)
{
	char *copy = ocs_conf_accepted();
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_kept(copy, NULL));

	if (fabric)
		fabric_take(fabric, seen);
	xfree(copy);
}

/* Reads ocs.yaml if it is new.  0 if there is one to use, else -1 with ERR. */
static int fabric_refresh(struct ocs_error *err)
{
	struct ocs_error fault = { 0 };
	struct ocs_fabric *fabric;
	struct stat now;

	if (!site.path)
		site.path = get_extra_conf_path("ocs.yaml");
	if (stat(site.path, &now) < 0) {
		ocs_error_set(&fault, OCS_ERROR, "%s: %s", site.path, strerror(errno));
		if (!site.fabric)
			take_accepted(&(struct stat){ 0 });
	} else if (same_file(&now, &site.seen)) {
		fault = site.fault;
	} else {
		site.seen = now;
		fabric = ocs_config_take_fabric(ocs_config_open(site.path, &fault));
		if (fabric) {
			fabric_take(fabric, &now);
		} else {
			if (!site.fabric)
				take_accepted(&now);
			ocs_slurm_error(
				"%s%s", fault.text,
				site.fabric ? "; the description read before stays in force" : "");
			site.fault = fault;
		}
	}
	if (site.fabric)
		return 0;
	*err = fault;
	return -1;
}

/* The one section that serves all of PARTITIONS; NULL with ERR. */
static const struct ocs_section *find_section(const char *partitions, struct ocs_error *err)
{
	const struct ocs_section *found = NULL;
	char *copy = ocs_strdup(partitions ? partitions : ""), *save = NULL;
	char *name = strtok_r(copy, ",", &save);

	do {
		const struct ocs_section *section = ocs_fabric_section(site.fabric, name);

		if (!section) {
			ocs_error_set(
				err, OCS_USAGE,
				"partition %s has no optical circuit switches in ocs.yaml, so no --shape; choose another with -p",
				name ? name : "(none)");
			found = NULL;
			break;
		}
		if (found && found != section) {
			ocs_error_set(
				err, OCS_USAGE,
				"-p %s: the partitions belong to different fabrics (%s and %s), on which shapes mean different things; name one",
				partitions, found->name, section->name);
			found = NULL;
			break;
		}
		found = section;
		name = name ? strtok_r(NULL, ",", &save) : NULL;
	} while (name);
	free(copy);
	return found;
}

static int ask_torus(const struct ocs_section *section, const struct ocs_shape *shape,
		     struct ocs_answer *answer, struct ocs_error *err)
{
	struct ocs_placer **placer = &site.placers[section->index];

	answer->node_xpus = section->tile[0] * section->tile[1] * section->tile[2];
	if (!shape)
		return 0;
	if (!*placer)
		*placer = ocs_placer_create(site.fabric, section);
	answer->nodes = ocs_reason_node_count(*placer, shape, err);
	return answer->nodes < 0 ? -1 : 0;
}

/* What rails can join, and how many nodes that are. */
static int ask_rails(const struct ocs_section *section, const struct ocs_shape *shape,
		     struct ocs_answer *answer, struct ocs_error *err)
{
	struct ocs_rails_layout layout;
	char text[OCS_SHAPE_TEXT];

	if (ocs_rails_layout_make(shape, section->server_xpus, section->nic_ports, &layout, err) <
	    0)
		return -1;
	answer->nodes = ocs_rails_layout_nodes(&layout);
	if (section->server_xpus)
		answer->node_xpus = (int)(shape->xpus / answer->nodes);
	if (answer->nodes > section->nservers)
		return ocs_error_set(
			err, OCS_NEVER,
			"--shape=%s is %d servers%s, %s has %d; shorten the dimensions that are over nodes",
			ocs_shape_named_format(shape, text), answer->nodes,
			section->server_xpus ? " with the dimensions that fit inside a node" : "",
			section->name, section->nservers);
	return 0;
}

static int phases_check(const struct ocs_section *section, const struct ocs_shape *shape,
			struct ocs_error *err)
{
	if (section->kind == OCS_RAILS || !shape || !shape->phases)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"--ocs-phases=%s is for partitions on rails, and %s is not one; leave it out here",
		ocs_phases_name(shape->phases), section->name);
}

static int moe_check(const struct ocs_section *section, const struct ocs_shape *shape,
		     struct ocs_error *err)
{
	if (section->kind == OCS_REGION || !shape || !shape->moe)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"--ocs-moe is for partitions of regions, and %s is not one; leave it out here",
		section->name);
}

/* How many servers the shape is, and with --ocs-moe whether its groups fit into regions. */
static int ask_region(const struct ocs_section *section, const struct ocs_shape *shape,
		      struct ocs_answer *answer, struct ocs_error *err)
{
	struct ocs_region_layout layout;

	answer->node_xpus = section->server_xpus;
	if (!shape->moe) {
		answer->nodes = ocs_region_servers(section, shape, err);
		return answer->nodes < 0 ? -1 : 0;
	}
	if (ocs_region_layout_make(section, shape, &layout, err) < 0)
		return -1;
	answer->nodes = layout.groups * layout.servers;
	return ocs_region_possible(section, &layout, err);
}

static int ask_servers(const struct ocs_section *section, const struct ocs_shape *shape,
		       struct ocs_answer *answer, struct ocs_error *err)
{
	char text[OCS_SHAPE_TEXT];

	answer->planned = section->kind == OCS_DIRECT;
	answer->rails = section->kind == OCS_RAILS || section->kind == OCS_REGION;
	if (!shape)
		return 0;
	if (section->kind == OCS_REGION)
		return ask_region(section, shape, answer, err);
	if (section->kind == OCS_RAILS)
		return ask_rails(section, shape, answer, err);
	if (shape->xpus > section->nservers)
		return ocs_error_set(err, OCS_NEVER,
				     "--shape=%s is %ld servers, %s has %d; --shape=%d would fit",
				     ocs_shape_format(shape, text), shape->xpus, section->name,
				     section->nservers, section->nservers);
	answer->nodes = (int)shape->xpus;
	return 0;
}

int ocs_site_ask(const char *partition, const struct ocs_shape *shape, struct ocs_answer *answer,
		 struct ocs_error *err)
{
	const struct ocs_section *section;

	memset(answer, 0, sizeof(*answer));
	if (fabric_refresh(err) < 0)
		return ocs_error_prefix(err, "shapes cannot be served");
	section = find_section(partition, err);
	if (!section)
		return shape ? -1 : 0;
	answer->section_nodes = section->nnodes;
	if (phases_check(section, shape, err) < 0 || moe_check(section, shape, err) < 0)
		return -1;
	if (section->nnodes)
		answer->some_node = site.fabric->nodes[section->first_node].name;
	if (section->kind == OCS_TORUS || section->kind == OCS_STATIC)
		return ask_torus(section, shape, answer, err);
	return ask_servers(section, shape, answer, err);
}

static bool partition_has_ports(const char *name, const char *kept)
{
	const struct ocs_section *section;

	if (kept)
		return ocs_config_partitions_have(kept, name);
	section = ocs_fabric_section(site.fabric, name);
	return section && (section->kind == OCS_DIRECT || section->kind == OCS_RAILS ||
			   section->kind == OCS_REGION);
}

int ocs_site_ports(const char *partitions, struct ocs_error *err)
{
	char *copy = ocs_strdup(partitions), *names, *save = NULL, *kept = NULL;
	bool known = fabric_refresh(err) == 0, found = false;

	if (!known) {
		names = ocs_conf_partitions();
		kept = ocs_config_partitions_kept(names, NULL);
		xfree(names);
	}
	for (char *name = strtok_r(copy, ",", &save); (known || kept) && name && !found;
	     name = strtok_r(NULL, ",", &save))
		found = partition_has_ports(name, kept);
	known |= kept != NULL;
	free(kept);
	free(copy);
	return known ? found : -1;
}

bool ocs_site_serves(const char *partition, const char *node)
{
	const struct ocs_section *section = find_section(partition, NULL);
	const struct ocs_node *found = section ? ocs_fabric_node(site.fabric, node) : NULL;

	return found && found->section == section->index;
}

int ocs_site_fits(const char *partition, const struct ocs_shape *shape,
		  bool (*may)(const char *node, void *arg), void *arg, struct ocs_error *err)
{
	const struct ocs_section *section = find_section(partition, err);
	struct ocs_occupancy *occupancy;
	struct ocs_placement *placement;
	struct ocs_error reason;
	char *near;

	if (!section)
		return -1;
	if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
		return 0;
	occupancy = ocs_occupancy_create(section);
	for (int i = section->first_node; i < section->first_node + section->nnodes; i++) {
		if (!may(site.fabric->nodes[i].name, arg))
			ocs_occupancy_node_set(occupancy, site.fabric, i, false);
	}
	placement = ocs_reason_place(site.placers[section->index], occupancy, shape, 0, &reason);
	if (!placement) {
		near = ocs_nearest_shapes_text(site.placers[section->index], occupancy, shape,
					       "; would fit there: ");
		ocs_error_set(err, OCS_NEVER, "%s%s", reason.text, near);
		free(near);
	}
	ocs_occupancy_destroy(occupancy);
	ocs_placement_destroy(placement);
	return placement ? 0 : -1;
}
