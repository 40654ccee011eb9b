/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What goes into a job's directory. */

#include "src/config/config.h"
#include "src/node/node.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/place/place.h"
#include "src/place/region_groups.h"
#include "src/layout/task_map.h"
#include "src/layout/tpu.h"
#include "src/plan/plan.h"
#include "src/rails/layout.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define REPLY_MAX (64 << 20)
#define NODES_MAX 1000000
#define ROUTES_SERVERS 128 /* up to which plan.json lists routes */

/* Everything that is known about the job on the way. */
struct job {
	const struct ocs_node_request *request; /* OWN, */
	struct ocs_node_request own;		/* with what becomes of --ocs-moe */
	char moe[OCS_MOE_WISH_TEXT];
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	const struct ocs_section *section;
	char **nodes; /* host list, expanded */
	int nnodes;
	int group_servers; /* of a job with experts */
	bool shaped;
	struct ocs_shape shape;
	struct ocs_placer *placer;
	struct ocs_placement *placement;
	struct ocs_ranks *ranks;
	struct json_object *plan; /* of ocsd's reply, or NULL */
};

static void job_free(struct job *job)
{
	json_object_put(job->plan);
	ocs_ranks_destroy(job->ranks);
	ocs_placement_destroy(job->placement);
	ocs_placer_destroy(job->placer);
	if (job->nodes)
		ocs_names_free(job->nodes, job->nnodes);
	ocs_config_destroy(job->config);
}

static bool has_cubes(const struct job *job)
{
	return job->section->kind == OCS_TORUS || job->section->kind == OCS_STATIC;
}

static int job_open(struct job *job, struct ocs_error *err)
{
	const struct ocs_node_request *request = job->request;
	const struct ocs_node *node;

	job->config = ocs_config_open(request->fabric, err);
	if (!job->config)
		return -1;
	job->fabric = job->config->fabric;
	node = ocs_fabric_node(job->fabric, request->node);
	if (!node)
		return ocs_error_set(err, OCS_USAGE, "%s knows no node %s", request->fabric,
				     request->node);
	job->section = request->section ? ocs_fabric_section_named(job->fabric, request->section) :
					  &job->fabric->sections[node->section];
	if (!job->section)
		return ocs_error_set(err, OCS_USAGE, "%s has no section %s", request->fabric,
				     request->section);
	if (job->section->index != node->section)
		return ocs_error_set(err, OCS_USAGE, "node %s is not in section %s", request->node,
				     job->section->name);
	if (request->nodes) {
		job->nnodes = ocs_hostlist_expand(request->nodes, NODES_MAX, &job->nodes, err);
		if (job->nnodes < 0) {
			job->nodes = NULL;
			return ocs_error_prefix(err, "--nodes");
		}
	}
	if (request->shape) {
		if (ocs_shape_parse(request->shape, request->conn, &job->shape, err) < 0)
			return -1;
		job->shaped = true;
	}
	return 0;
}

/* Is NAME among the job's nodes? */
static bool name_among(char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Do placement and host list speak of the same nodes? */
static bool same_nodes(const struct job *job)
{
	char **a, **b;
	bool same;

	if (!job->nodes)
		return true;
	if (job->nnodes != job->ranks->nnodes)
		return false;
	a = ocs_calloc(job->nnodes + 1, sizeof(*a));
	b = ocs_calloc(job->nnodes + 1, sizeof(*b));
	memcpy(a, job->nodes, job->nnodes * sizeof(*a));
	memcpy(b, job->ranks->nodes, job->nnodes * sizeof(*b));
	qsort(a, job->nnodes, sizeof(*a), names_compare);
	qsort(b, job->nnodes, sizeof(*b), names_compare);
	same = true;
	for (int i = 0; i < job->nnodes && same; i++)
		same = strcmp(a[i], b[i]) == 0;
	free(a);
	free(b);
	return same;
}

static bool same_shape(const struct ocs_shape *a, const struct ocs_shape *b)
{
	if (a->ndim != b->ndim || a->twisted != b->twisted)
		return false;
	for (int i = 0; i < a->ndim; i++)
		if (a->extent[i] != b->extent[i] || a->mesh[i] != b->mesh[i])
			return false;
	return true;
}

static int placement_open(struct job *job, struct ocs_error *err)
{
	if (!job->request->placement)
		return ocs_error_set(err, OCS_USAGE,
				     "section %s places jobs on cubes: --placement is "
				     "needed",
				     job->section->name);
	job->placer = ocs_placer_create(job->fabric, job->section);
	job->placement = ocs_placement_decode(job->placer, job->request->placement, err);
	if (!job->placement)
		return ocs_error_prefix(err, "--placement");
	if (ocs_placement_verify(job->fabric, NULL, job->placement, err) < 0)
		return ocs_error_prefix(err, "--placement");
	if (job->shaped && !same_shape(&job->shape, &job->placement->shape))
		return ocs_error_set(err, OCS_USAGE, "--placement is of another shape than %s",
				     job->request->shape);
	if (job->shaped) /* which the placement does not have */
		ocs_shape_names_copy(&job->shape, &job->placement->shape);
	job->shape = job->placement->shape;
	job->shaped = true;
	job->ranks = ocs_ranks_from_placement(job->fabric, job->placement);
	if (!same_nodes(job))
		return ocs_error_set(err, OCS_USAGE,
				     "--placement and --nodes name different nodes");
	return 0;
}

/* Servers in the order of the host list are the vertices; on rails each may have several. */
static int servers_open(struct job *job, struct ocs_error *err)
{
	char extent[32];
	long servers;

	if (!job->nodes)
		return ocs_error_set(err, OCS_USAGE, "--nodes is needed");
	if (!job->shaped) {
		snprintf(extent, sizeof(extent), "%d", job->nnodes);
		if (ocs_shape_parse(extent, NULL, &job->shape, err) < 0)
			return -1;
	}
	servers = !job->shaped ?
			  job->shape.xpus :
		  job->section->kind == OCS_RAILS ?
			  ocs_rails_shape_nodes(&job->shape, job->section->server_xpus, err) :
		  job->section->kind == OCS_REGION ?
			  ocs_region_servers(job->section, &job->shape, err) :
			  job->shape.xpus;
	if (servers < 0)
		return -1;
	if (servers != job->nnodes)
		return ocs_error_set(err, OCS_USAGE, "shape %s is for %ld nodes, the job has %d",
				     job->request->shape, servers, job->nnodes);
	job->ranks = ocs_ranks_from_nodes(&job->shape, job->nodes, job->nnodes);
	return 0;
}

static char *json_text(struct json_object *json)
{
	return ocs_asprintf("%s\n",
			    json_object_to_json_string_ext(
				    json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* The list of routes that ocsd does not send, where it is not too long. */
void ocs_node_plan_routes(struct json_object *json)
{
	struct ocs_plan *plan =
		json_object_object_get(json, "routes") ? NULL : ocs_plan_from_json(json, NULL);

	if (plan && plan->servers <= ROUTES_SERVERS && !ocs_plan_route(plan, NULL)) {
		struct json_object *whole = ocs_plan_to_json(plan);
		struct json_object *routes = json_object_object_get(whole, "routes");

		if (routes)
			json_object_object_add(json, "routes", json_object_get(routes));
		json_object_put(whole);
	}
	ocs_plan_destroy(plan);
}

/* The member "plan" of ocsd's reply.  A server alone needs none, and a section whose
 * interfaces are on no switch gets none. */
static int plan_text(struct job *job, char **text, struct ocs_error *err)
{
	bool optional = job->nnodes == 1 || !job->section->ports;
	struct json_object *reply, *plan;
	char *data;

	if (!job->request->reply)
		return optional ? 0 :
				  ocs_error_set(err, OCS_USAGE,
						"section %s plans its circuits: --reply is needed",
						job->section->name);
	data = ocs_file_read(job->request->reply, REPLY_MAX, NULL, err);
	if (!data)
		return -1;
	reply = json_tokener_parse(data);
	free(data);
	plan = ocs_field(reply, OCS_FIELD_PLAN);
	if (json_object_is_type(plan, json_type_object)) {
		ocs_node_plan_routes(plan);
		*text = json_text(plan);
		job->plan = json_object_get(plan);
		json_object_put(reply);
		return 0;
	}
	json_object_put(reply);
	if (optional)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "%s: the reply of ocsd holds no plan",
			     job->request->reply);
}

/* The key that ocsd gave to the first node of a job whose circuits follow its phases.  A file that all
 * could read is none: without the job's user there is no key. */
/* Member NAME of ocsd's reply, a key, as the text of a file. */
static char *key_text(const struct job *job, const char *name)
{
	char *data = job->request->reply && job->request->has_uid ?
			     ocs_file_read(job->request->reply, REPLY_MAX, NULL, NULL) :
			     NULL;
	struct json_object *reply = data ? json_tokener_parse(data) : NULL;
	const char *key = ocs_field_text(reply, name, NULL);
	char *text = key && *key ? ocs_asprintf("%s\n", key) : NULL;

	json_object_put(reply);
	free(data);
	return text;
}

/* With which its circuits change; NULL: they stay. */
static const char *moe_key(const struct ocs_node_contents *contents)
{
	const char *own = contents->text[OCS_NODE_MOE_KEY];

	return own ? own : contents->text[OCS_NODE_RELAY_KEY];
}

/* Which node of the job this is. */
static int node_number(const struct job *job)
{
	for (int i = 0; i < job->nnodes; i++)
		if (strcmp(job->nodes[i], job->request->node) == 0)
			return i;
	return 0;
}

/* The files of a job with experts in a region. */
static int region_text(struct job *job, struct ocs_node_contents *contents, struct ocs_error *err)
{
	char *data = job->request->reply ?
			     ocs_file_read(job->request->reply, REPLY_MAX, NULL, NULL) :
			     NULL;
	struct json_object *reply = data ? json_tokener_parse(data) : NULL, *json;
	struct ocs_region_layout layout;
	int rc = ocs_region_layout_make(job->section, &job->shape, &layout, err);

	if (rc == 0) {
		job->group_servers = layout.servers;
		json = ocs_node_region(job->request, job->fabric, job->section, job->nodes, &layout,
				       reply);
		contents->text[OCS_NODE_REGION] = json_text(json);
		contents->text[OCS_NODE_MOE_KEY] = key_text(job, OCS_FIELD_KEY);
		if (!contents->text[OCS_NODE_MOE_KEY])
			contents->text[OCS_NODE_RELAY_KEY] = key_text(job, OCS_FIELD_AGENT_KEY);
		if (!moe_key(contents))
			contents->text[OCS_NODE_MOE_PLAN] =
				ocs_node_region_plan(json, node_number(job) / layout.servers);
		json_object_put(json);
	}
	json_object_put(reply);
	free(data);
	return rc;
}

static char *hostfile_text(const struct ocs_ranks *ranks)
{
	struct ocs_text text = { 0 };

	for (int r = 0; r < ranks->nxpus; r++)
		ocs_text_add(&text, "%s\n", ranks->nodes[ranks->node[r]]);
	return ocs_text_take(&text);
}

void ocs_node_warn(struct ocs_node_contents *contents, const char *what, const char *why)
{
	char *before = contents->text[OCS_NODE_WARNINGS];

	contents->text[OCS_NODE_WARNINGS] =
		ocs_asprintf("%s%s: %s\n", before ? before : "", what, why);
	free(before);
}

/* Where the job's hosts forward for each other, or speak TCP over rails: who has which address, as in /etc/hosts. */
static char *addresses_text(const struct job *job)
{
	struct ocs_text text = { 0 };
	char address[OCS_ADDRESS_TEXT];

	for (int i = 0; i < job->nnodes; i++) {
		const struct ocs_node *node = ocs_fabric_node(job->fabric, job->nodes[i]);

		if (node && ocs_section_host_address(job->section, node->server, address) == 0)
			ocs_text_add(&text, "%s %s\n", address, node->name);
	}
	return ocs_text_take(&text);
}

/* A job that they cannot describe does without them. */
static void tpu_variables(const struct job *job, struct ocs_node_contents *contents,
			  struct ocs_text *text)
{
	struct ocs_error err = { 0 };
	char *lines = ocs_tpu_environment(job->ranks, job->request->node, &err);

	if (lines)
		ocs_text_add(text, "%s", lines);
	else
		ocs_node_warn(contents, "no TPU_* variables", err.text);
	free(lines);
}

/* Libraries that would take the address of the machine's name take that of the rails.  What the user
 * has set stays. */
static void tcp_variables(const struct job *job, struct ocs_text *text)
{
	const char *device = ocs_section_interface_name(job->section, 0);

	if (!job->section->management || !job->shaped || job->nnodes < 2)
		return;
	ocs_text_add(text, "GLOO_SOCKET_IFNAME=%s\n", device);
	ocs_text_add(text, "OMPI_MCA_btl_tcp_if_include=%s\n", device);
}

/* Where tasks of this node find the controller of their group, if it has one, and which of its servers they are on. */
static void moe_variables(const struct job *job, const struct ocs_node_contents *contents,
			  struct ocs_text *text)
{
	int number = node_number(job);

	if (moe_key(contents))
		ocs_node_sockets_name(job->request, moe_key(contents), text);
	ocs_text_add(text,
		     "SLURM_OCS_MOE_GROUP=%d\nSLURM_OCS_MOE_SERVER=%d\nSLURM_OCS_MOE_SERVERS=%d\n",
		     number / job->group_servers, number % job->group_servers, job->group_servers);
}

static int env_text(const struct job *job, struct ocs_node_contents *contents,
		    struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	char buffer[OCS_SHAPE_TEXT];
	int rc;

	if (job->shaped) {
		ocs_text_add(&text, "SLURM_OCS_SHAPE=%s\n", ocs_shape_format(&job->shape, buffer));
		ocs_text_add(&text, "SLURM_OCS_CONN=%s\n",
			     ocs_shape_conn_format(&job->shape, buffer));
	}
	if (ocs_shape_named(&job->shape))
		ocs_text_add(&text, "SLURM_OCS_DIMENSIONS=%s\n",
			     ocs_shape_named_format(&job->shape, buffer));
	if (job->request->phases)
		ocs_text_add(&text, "SLURM_OCS_PHASES=%s\n", job->request->phases);
	if (job->request->moe)
		ocs_text_add(&text, "SLURM_OCS_MOE=%s\n", job->request->moe);
	if (job->section->kind == OCS_TORUS) {
		ocs_text_add(&text, "SLURM_OCS_CUBES=");
		for (int i = 0; i < job->placement->ncubes; i++)
			ocs_text_add(&text, "%s%s", i ? "," : "",
				     job->section->cube_names[job->placement->cubes[i]]);
		ocs_text_add(&text, "\n");
	}
	ocs_text_add(&text, "SLURM_OCS_DIR=%s\n", job->request->dir);
	if (contents->text[OCS_NODE_REGION])
		moe_variables(job, contents, &text);
	tcp_variables(job, &text);
	if (job->section->tpu)
		tpu_variables(job, contents, &text);
	rc = ocs_node_nccl(job->config, job->section, job->request, job->plan, job->placement,
			   contents, &text, err);
	contents->text[OCS_NODE_ENV] = ocs_text_take(&text);
	return rc;
}

/* Where changes of circuits take too long, those of a job with experts stay: ocsd does the same. */
static int wish_settle(struct job *job, struct ocs_node_contents *contents, struct ocs_error *err)
{
	const struct ocs_section *section = job->section;
	char text[160];
	int wish, settled;

	if (section->kind != OCS_REGION || !job->request->moe)
		return 0;
	if (ocs_moe_wish_parse(job->request->moe, &wish, err) < 0)
		return ocs_error_prefix(err, "--moe");
	settled = ocs_region_wish(section, wish);
	if (settled == wish)
		return 0;
	job->own.moe = ocs_moe_wish_format(settled, job->moe);
	snprintf(text, sizeof(text),
		 "a change takes %d ms in %.60s, circuits are changed up to %d ms; they stay",
		 section->change_ms, section->name, section->change_limit_ms);
	ocs_node_warn(contents, "--ocs-moe", text);
	return 0;
}

static int contents_fill(struct job *job, struct ocs_node_contents *contents, struct ocs_error *err)
{
	if (job_open(job, err) < 0 || wish_settle(job, contents, err) < 0)
		return -1;
	if ((has_cubes(job) ? placement_open(job, err) : servers_open(job, err)) < 0)
		return -1;
	if (!name_among(job->ranks->nodes, job->ranks->nnodes, job->request->node))
		return ocs_error_set(err, OCS_USAGE, "node %s is not one of job %lu",
				     job->request->node, job->request->job);
	if (job->placement) {
		struct json_object *json = ocs_placement_to_json(job->fabric, job->placement);

		ocs_placement_orders_add(json, job->placement);
		contents->text[OCS_NODE_PLACEMENT] = json_text(json);
		json_object_put(json);
	}
	if (job->section->kind == OCS_DIRECT &&
	    plan_text(job, &contents->text[OCS_NODE_PLAN], err) < 0)
		return -1;
	if (job->section->kind == OCS_RAILS && job->request->phases) {
		contents->text[OCS_NODE_RAILS_KEY] = key_text(job, OCS_FIELD_KEY);
		contents->text[OCS_NODE_AGENT_KEY] = key_text(job, OCS_FIELD_AGENT_KEY);
	}
	if (job->section->kind == OCS_REGION && job->request->moe && job->shaped &&
	    region_text(job, contents, err) < 0)
		return -1;
	contents->text[OCS_NODE_EPOCH] = ocs_asprintf("%" PRIu64 "\n", job->request->epoch);
	if ((job->section->forwarding != OCS_FORWARDING_NONE ||
	     (job->section->management && job->shaped)) &&
	    job->nnodes > 1)
		contents->text[OCS_NODE_ADDRESSES] = addresses_text(job);
	contents->text[OCS_NODE_HOSTFILE] = hostfile_text(job->ranks);
	/* without a shape there are no coordinates to give out */
	if (job->shaped)
		contents->text[OCS_NODE_RANKS] = ocs_ranks_format(job->ranks);
	return env_text(job, contents, err);
}

int ocs_node_contents(const struct ocs_node_request *request, struct ocs_node_contents *contents,
		      struct ocs_error *err)
{
	struct job job = { .own = *request };
	int rc;

	job.request = &job.own;

	memset(contents, 0, sizeof(*contents));
	contents->owned = request->has_uid;
	contents->owner = request->uid;
	contents->group = request->has_gid ? request->gid : (gid_t)-1;
	rc = contents_fill(&job, contents, err);
	job_free(&job);
	return rc;
}

void ocs_node_contents_free(struct ocs_node_contents *contents)
{
	for (int i = 0; i < OCS_NODE_FILES; i++)
		free(contents->text[i]);
	for (int i = 0; i < contents->ngraphs; i++) {
		free(contents->graphs[i].name);
		free(contents->graphs[i].text);
	}
	free(contents->graphs);
}
