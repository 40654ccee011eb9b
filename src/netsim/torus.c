/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Cubes of XPUs whose faces are on circuit switches, and jobs laid on them by this project's
 * placements, folded where that is needed. */

#include "src/netsim/torus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/netsim/fabric_make.h"
#include "src/place/links.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "src/util/text.h"

int ocs_netsim_torus_servers(const struct ocs_netsim_spec *spec, int servers)
{
	int cube = spec->cube * spec->cube * spec->cube;

	return (servers + cube - 1) / cube * cube;
}

/* N as a product of three numbers as near to each other as can be, the largest first. */
static void most_cubic(int n, int *edges)
{
	double best = INFINITY;

	for (int a = 1; a * a <= n; a++) {
		for (int b = a; n % a == 0 && a * b * b <= n; b++) {
			int c = n / a / b;
			double sum = 1.0 / a + 1.0 / b + 1.0 / c;

			if (n / a % b || sum >= best)
				continue;
			best = sum;
			edges[0] = c;
			edges[1] = b;
			edges[2] = a;
		}
	}
}

static int shape_of(const struct ocs_netsim_spec *spec, int job, int servers,
		    struct ocs_shape *shape, struct ocs_error *err)
{
	int edges[3], at = job < spec->nshapes ? job : spec->nshapes - 1;
	char text[64];

	most_cubic(servers, edges);
	snprintf(text, sizeof(text), "%dx%dx%d", edges[0], edges[1], edges[2]);
	if (ocs_shape_parse(at < 0 ? text : spec->shapes[at], NULL, shape, err))
		return ocs_error_prefix(err, "torus");
	if (shape->xpus != servers)
		return ocs_error_set(
			err, OCS_USAGE,
			"torus: the shape %.40s has %ld XPUs, job %d of the graphs has "
			"%d; write shape:%s",
			spec->shapes[at], shape->xpus, job, servers, text);
	return 0;
}

/* A link of each direction between two servers; two of one pair are one of twice the rate. */
static void link_join(struct ocs_netsim_fabric *fabric, int *last, int from, int to)
{
	for (int k = last[from]; k < fabric->nlinks && fabric->links[k].from == from; k++) {
		if (fabric->links[k].to == to) {
			fabric->links[k].rate += fabric->spec.rate;
			return;
		}
	}
	if (last[from] == fabric->nlinks || fabric->links[last[from]].from != from)
		last[from] = fabric->nlinks;
	ocs_netsim_fabric_link(fabric, from, to, fabric->spec.rate);
}

/* The links among the XPUs of PLACEMENT. */
static void placement_links(struct ocs_netsim_fabric *fabric, const struct ocs_placement *placement,
			    const int *servers)
{
	struct ocs_links *links = ocs_links_of(placement);
	int *last = ocs_calloc((size_t)fabric->servers, sizeof(int));

	for (int k = 0; k < fabric->servers; k++)
		last[k] = fabric->nlinks;
	for (long r = 0; r < placement->shape.xpus; r++) {
		last[servers[r]] = fabric->nlinks;
		for (int axis = 0; axis < OCS_AXES; axis++) {
			for (int sign = 0; sign < 2; sign++) {
				long peer = ocs_links_peer(links, r, axis, sign);

				if (peer >= 0 && peer != r)
					link_join(fabric, last, servers[r], servers[peer]);
			}
		}
	}
	free(last);
	ocs_links_destroy(links);
}

/* Lays all jobs on the cubes, one after the other. */
static int jobs_lay(struct ocs_netsim_fabric *fabric, struct ocs_config *config,
		    struct ocs_error *err)
{
	struct ocs_fabric *cubes = config->fabric;
	struct ocs_placer *placer = ocs_placer_create(cubes, &cubes->sections[0]);
	struct ocs_occupancy *occupancy = ocs_occupancy_create(&cubes->sections[0]);
	int rc = 0;

	for (int k = 0; k < fabric->ntorus && !rc; k++) {
		struct ocs_netsim_torus *torus = &fabric->torus[k];
		struct ocs_placement *placement =
			ocs_place(placer, occupancy, &torus->shape, 0, err);
		char text[OCS_SHAPE_TEXT];

		/* nothing was said about the shape: a ring, if nothing else */
		if (!placement && !fabric->spec.nshapes) {
			snprintf(text, sizeof(text), "%ld", torus->shape.xpus);
			placement = ocs_shape_parse(text, NULL, &torus->shape, err) ?
					    NULL :
					    ocs_place(placer, occupancy, &torus->shape, 0, err);
		}
		if (!placement) {
			rc = ocs_error_set(
				err, OCS_NEVER,
				"torus: job %d: no placement of %s on what is left of %d "
				"cubes; write another shape, more servers or "
				"links:shared",
				k, ocs_shape_format(&torus->shape, text),
				cubes->sections[0].ncubes);
			break;
		}
		placement_links(fabric, placement, torus->servers);
		for (int i = 0; i < placement->nnodes; i++)
			ocs_occupancy_node_set(occupancy, cubes, placement->nodes[i], false);
		ocs_placement_destroy(placement);
	}
	ocs_occupancy_destroy(occupancy);
	ocs_placer_destroy(placer);
	return rc;
}

static int dedicated_make(struct ocs_netsim_fabric *fabric, struct ocs_error *err)
{
	int edge = fabric->spec.cube, rc;
	char *line = ocs_asprintf("torus cubes:%dx1x1 cube:%dx%dx%d tile:1x1x1",
				  fabric->servers / (edge * edge * edge), edge, edge, edge);
	struct ocs_config *config = ocs_config_open(line, err);

	free(line);
	rc = config ? jobs_lay(fabric, config, err) : -1;
	ocs_config_destroy(config);
	return rc;
}

/* The server at AT of a torus of EDGES XPUs: cube by cube. */
static int server_at(const int *at, const int *edges, int cube)
{
	int cubes = 0, inside = 0;

	for (int d = 0; d < 3; d++) {
		cubes = cubes * (edges[d] / cube) + at[d] / cube;
		inside = inside * cube + at[d] % cube;
	}
	return cubes * cube * cube * cube + inside;
}

static void shared_make(struct ocs_netsim_fabric *fabric)
{
	int cube = fabric->spec.cube, edges[3];
	int *last = ocs_calloc((size_t)fabric->servers, sizeof(int));

	most_cubic(fabric->servers / (cube * cube * cube), edges);
	for (int d = 0; d < 3; d++)
		edges[d] *= cube;
	for (int k = 0; k < fabric->servers; k++) {
		int at[3] = { k / (edges[1] * edges[2]), k / edges[2] % edges[1], k % edges[2] };
		int from = server_at(at, edges, cube);

		last[from] = fabric->nlinks;
		for (int side = 0; side < 6; side++) {
			int d = side / 2, to[3] = { at[0], at[1], at[2] };

			to[d] = (at[d] + (side % 2 ? edges[d] - 1 : 1)) % edges[d];
			if (to[d] != at[d])
				link_join(fabric, last, from, server_at(to, edges, cube));
		}
	}
	free(last);
}

int ocs_netsim_torus_make(struct ocs_netsim_fabric *fabric,
			  const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			  struct ocs_error *err)
{
	int cube = fabric->spec.cube * fabric->spec.cube * fabric->spec.cube;

	if (fabric->servers % cube)
		return ocs_error_set(err, OCS_USAGE,
				     "torus: %d servers are no whole cubes of %d; write servers:%d",
				     fabric->servers, cube,
				     ocs_netsim_torus_servers(&fabric->spec, fabric->servers));
	fabric->torus = ocs_calloc((size_t)n + 1, sizeof(*fabric->torus));
	for (int k = 0; k < n; k++) {
		struct ocs_netsim_torus *torus = &fabric->torus[fabric->ntorus];

		if (shape_of(&fabric->spec, k, graphs[k]->servers, &torus->shape, err))
			return -1;
		fabric->ntorus++;
		torus->servers = ocs_calloc((size_t)graphs[k]->servers, sizeof(int));
		for (int s = 0; s < graphs[k]->servers; s++)
			torus->servers[s] = places && places[k] ? places[k][s] : s;
	}
	if (!fabric->spec.shared)
		return dedicated_make(fabric, err);
	shared_make(fabric);
	return 0;
}

const struct ocs_netsim_torus *ocs_netsim_torus_of(const struct ocs_netsim_fabric *fabric,
						   const int *members, int count)
{
	for (int k = 0; k < fabric->ntorus; k++) {
		const struct ocs_netsim_torus *torus = &fabric->torus[k];

		if (torus->shape.xpus == count &&
		    !memcmp(torus->servers, members, (size_t)count * sizeof(int)))
			return torus;
	}
	return NULL;
}
