/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation commit: a new allocation. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/ops/commit.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/region.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/ops/apply.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/state/out_of_service.h"

#include "src/fold/shape.h"
#include "src/place/place.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/rails/layout.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1 << 18)

static char *field_copy(struct json_object *request, const char *name)
{
	const char *text = ocs_field_text(request, name, NULL);

	return text ? ocs_strdup(text) : NULL;
}

/* The nodes exist, are of this section, and each is named once. */
static int read_nodes(struct ocsd *d, struct ocsd_job *job, const char *text, struct ocs_error *err)
{
	bool *seen;
	int count, rc = 0;

	if (!text)
		return ocs_error_set(err, OCS_USAGE, "commit needs nodes");
	count = ocs_hostlist_expand(text, NODES_MAX, &job->nodes.names, err);
	if (count < 0)
		return -1;
	job->nodes.count = (size_t)count;
	job->nodes.released = ocs_calloc(job->nodes.count + 1, sizeof(*job->nodes.released));
	if (count == 0)
		return ocs_error_set(err, OCS_USAGE, "commit needs at least one node");
	seen = ocs_calloc((size_t)d->fabric->nnodes + 1, sizeof(*seen));
	for (size_t i = 0; i < job->nodes.count && !rc; i++) {
		const struct ocs_node *node = ocs_fabric_node(d->fabric, job->nodes.names[i]);

		if (!node || node->section != job->section->index) {
			rc = ocs_error_set(err, OCS_USAGE, "node %s is not in section %s",
					   job->nodes.names[i], job->section->name);
			break;
		}
		if (seen[node - d->fabric->nodes])
			rc = ocs_error_set(err, OCS_USAGE, "node %s is named twice",
					   job->nodes.names[i]);
		seen[node - d->fabric->nodes] = true;
	}
	free(seen);
	return rc;
}

static int same_nodes(struct ocsd *d, const struct ocsd_job *job,
		      const struct ocs_placement *placement, struct ocs_error *err)
{
	if ((size_t)placement->nnodes != job->nodes.count)
		return ocs_error_set(err, OCS_USAGE,
				     "the placement covers %d nodes, the allocation has %zu",
				     placement->nnodes, job->nodes.count);
	/* Both name each node once, so inclusion is equality. */
	for (size_t i = 0; i < job->nodes.count; i++) {
		int node =
			(int)(ocs_fabric_node(d->fabric, job->nodes.names[i]) - d->fabric->nodes);
		int low = 0, high = placement->nnodes - 1;

		while (low < high) {
			int middle = (low + high) / 2;

			if (placement->nodes[middle] < node)
				low = middle + 1;
			else
				high = middle;
		}
		if (placement->nodes[low] != node)
			return ocs_error_set(err, OCS_USAGE,
					     "node %s of the allocation is not in the placement",
					     job->nodes.names[i]);
	}
	return 0;
}

static int add_circuit(struct ocsd *d, struct ocsd_job *job, const struct ocs_circuit *circuit,
		       struct ocs_error *err)
{
	const struct ocs_section *section = job->section;
	struct ocs_port plus, minus;

	if (ocs_section_torus_port(d->fabric, section, circuit->from, circuit->dim, circuit->pos[0],
				   circuit->pos[1], OCS_PLUS, &plus) ||
	    ocs_section_torus_port(d->fabric, section, circuit->to, circuit->dim, circuit->pos[0],
				   circuit->pos[1], OCS_MINUS, &minus))
		return ocs_error_set(err, OCS_ERROR,
				     "section %s has no port for dimension %c "
				     "position %d,%d",
				     section->name, "xyz"[circuit->dim], circuit -> pos[0],
				     circuit -> pos[1]);
	if (plus.sw != minus.sw)
		return ocs_error_set(
			err, OCS_ERROR,
			"dimension %c position %d,%d of cubes %s and %s are on different switches",
			"xyz"[circuit->dim], circuit -> pos[0], circuit -> pos[1],
			section -> cube_names[circuit->from], section -> cube_names[circuit->to]);
	if (ocsd_job_circuit(d, job, plus.sw, plus.port, minus.port, false, OCSD_PLANNED, err))
		return -1;
	ocsd_job_port(job, plus);
	ocsd_job_port(job, minus);
	return 0;
}

static int read_placement(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	struct ocs_placement *placement;
	char buffer[OCS_SHAPE_TEXT];
	int rc = -1;

	if (!job->request.placement)
		return ocs_error_set(err, OCS_USAGE, "commit needs a placement in section %s",
				     job->section->name);
	placement = ocs_placement_decode(ocsd_placer(d, job->section), job->request.placement, err);
	if (!placement)
		return -1;
	if (ocs_placement_verify(d->fabric, NULL, placement, err) ||
	    same_nodes(d, job, placement, err))
		goto out;
	if (!job->request.shape)
		job->request.shape = ocs_strdup(ocs_shape_format(&placement->shape, buffer));
	if (!job->request.conn)
		job->request.conn = ocs_strdup(ocs_shape_conn_format(&placement->shape, buffer));
	job->ncubes = placement->ncubes;
	job->cubes = ocs_calloc((size_t)placement->ncubes + 1, sizeof(int));
	memcpy(job->cubes, placement->cubes, (size_t)placement->ncubes * sizeof(int));
	for (int i = 0; i < placement->ncircuits && job->section->ports; i++)
		if (add_circuit(d, job, &placement->circuits[i], err))
			goto out;
	rc = 0;
out:
	ocs_placement_destroy(placement);
	return rc;
}

static int server_ports(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	if (ocsd_ahead_has(job))
		ocsd_ahead_choose(d, job);
	for (size_t i = 0; i < job->nodes.count && job->section->ports; i++) {
		const struct ocs_node *node = ocs_fabric_node(d->fabric, job->nodes.names[i]);

		for (int interface = 0; interface < job->section->degree; interface++) {
			struct ocs_port port;

			if (ocsd_direct_port(d, job, (int)i, interface, &port, err))
				return -1;
			ocsd_job_port(job, port);
			/* port 0 of a NIC is the one above */
			for (int p = 1; p < job->section->nic_ports; p++)
				if (!ocs_section_nic_port(job->section, node->server, interface, p,
							  &port))
					ocsd_job_port(job, port);
			if (!ocs_section_select_port(job->section, node->server, interface, &port))
				ocsd_job_port(job, port);
		}
	}
	return 0;
}

/* The menu of a job on rails that has a shape. */
static int read_menu(struct ocsd *d, struct ocsd_job *job, struct json_object *request,
		     struct ocs_error *err)
{
	const char *text = ocs_field_text(request, OCS_FIELD_PHASES, "off");
	enum ocs_phases phases;
	struct ocs_rails_layout layout;
	struct ocs_shape shape;

	if (job->section->kind != OCS_RAILS || !job->section->ports || !job->request.shape)
		return 0;
	if (ocs_phases_parse(text, &phases, err) ||
	    ocs_shape_parse(job->request.shape, NULL, &shape, err) ||
	    ocs_rails_layout_make(&shape, job->section->server_xpus, job->section->nic_ports,
				  &layout, err))
		return -1;
	return ocsd_menu_create(d, job, &layout, phases, err);
}

/* The same of a job in a region that has groups of experts. */
static int read_region(struct ocsd *d, struct ocsd_job *job, struct json_object *request,
		       struct ocs_error *err)
{
	const char *text = ocs_field_text(request, OCS_FIELD_MOE, NULL);
	const char *name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	struct ocs_region_layout layout;
	struct ocs_shape shape;
	char *earlier;
	int wish, rc;

	if (job->section->kind != OCS_REGION || !job->section->ports || !job->request.shape ||
	    !text)
		return 0;
	if (ocs_moe_wish_parse(text, &wish, err) ||
	    ocs_shape_parse(job->request.shape, NULL, &shape, err) ||
	    ocs_region_layout_make(job->section, &shape, &layout, err))
		return -1;
	earlier = name ? ocsd_store_region_run(d, job, name) : NULL;
	rc = ocsd_region_create(d, job, &layout, ocs_region_wish(job->section, wish), name, earlier,
				err);
	free(earlier);
	return rc;
}

/* Whether port WHERE is out of service: -1 with ERR. */
static int port_drained(struct ocsd *d, struct ocs_port where, struct ocs_error *err)
{
	const struct ocsd_switch *sw = &d->switches[where.sw];
	const struct ocsd_drain *drain = NULL;
	bool foreign = sw->ports[where.port].foreign;
	char *name;

	if (!d->drains && !foreign)
		return 0;
	name = ocs_asprintf("%s:%d", sw->description->name, where.port);
	drain = ocsd_drain_find(d, "port", name);
	if (drain || foreign)
		ocs_error_set(err, OCS_NOT_NOW, "port %s is drained: %s", name,
			      drain ? drain->reason : "a patch that is not ours");
	free(name);
	return drain || foreign ? -1 : 0;
}

/* Whether an XPU of JOB's nodes is drained: -1 with ERR.  The shape may leave just that one
 * idle, but no shape gets its node. */
static int xpu_drained(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next) {
		int node = strcmp(drain->kind, "xpu") == 0 ?
				   ocs_fabric_xpu_node(d->fabric, drain->name) :
				   -1;

		if (node >= 0 && ocsd_job_node(job, d->fabric->nodes[node].name) >= 0)
			return ocs_error_set(err, OCS_NOT_NOW, "xpu %s (node %s) is drained: %s",
					     drain->name, d->fabric->nodes[node].name,
					     drain->reason);
	}
	return 0;
}

/* Whether a node of JOB is drained: -1 with ERR. */
static int node_drained(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next)
		if (strcmp(drain->kind, "node") == 0 && ocsd_job_node(job, drain->name) >= 0)
			return ocs_error_set(err, OCS_NOT_NOW, "node %s is drained: %s",
					     drain->name, drain->reason);
	return 0;
}

int ocsd_commit_drained(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	for (size_t i = 0; i < job->ports.count; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports.list[i].sw];

		if (sw->status.drained)
			return ocs_error_set(err, OCS_NOT_NOW, "switch %s is drained: %s",
					     sw->description->name, sw->status.drain_reason);
		/* A plan leaves drained ports out. */
		if (job->section->kind != OCS_DIRECT && port_drained(d, job->ports.list[i], err))
			return -1;
	}
	for (int i = 0; i < job->ncubes; i++) {
		const char *cube = job->section->cube_names[job->cubes[i]];
		const struct ocsd_drain *drain = ocsd_drain_find(d, "cube", cube);

		if (drain)
			return ocs_error_set(err, OCS_NOT_NOW, "cube %s is drained: %s", cube,
					     drain->reason);
	}
	if (xpu_drained(d, job, err) || node_drained(d, job, err))
		return -1;
	return job->section->kind == OCS_DIRECT ? ocsd_direct_possible(d, job, err) : 0;
}

static bool port_taken(const struct ocsd_job *other, const struct ocsd_job *job)
{
	return other && ocsd_job_living(other) && !ocsd_job_prepared(other) &&
	       other->job != job->job;
}

static int ports_owned(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err)
{
	for (size_t i = 0; i < job->ports.count; i++) {
		const struct ocsd_port *port =
			&d->switches[job->ports.list[i].sw].ports[job->ports.list[i].port];
		const struct ocsd_job *other = port_taken(port->owner, job) ? port->owner :
					       port_taken(port->next, job)  ? port->next :
									      NULL;

		if (other)
			return ocs_error_set(
				err, OCS_NOT_NOW, "port %d of switch %s belongs to job %u",
				job->ports.list[i].port,
				d->fabric->switches[job->ports.list[i].sw].name, other->job);
	}
	return 0;
}

static bool was_running(struct ocsd *d, uint32_t job)
{
	for (size_t i = 0; i < d->slurmctld.nunknown; i++)
		if (d->slurmctld.unknown[i] == job) {
			d->slurmctld.unknown[i] = d->slurmctld.unknown[--d->slurmctld.nunknown];
			return true;
		}
	return false;
}

/* Everything that REQUEST says about a new allocation; NULL with ERR. */
struct ocsd_job *ocsd_commit_read(struct ocsd *d, struct json_object *request, uint32_t number,
				  uint64_t epoch, struct ocs_error *err)
{
	struct ocsd_job *job = ocs_calloc(1, sizeof(*job));
	struct json_object *value;
	int rc;

	job->job = number;
	job->epoch = epoch;
	job->uid = (uid_t)-1;
	if (json_object_object_get_ex(request, OCS_FIELD_UID, &value))
		job->uid = (uid_t)json_object_get_int64(value);
	job->request.user = field_copy(request, OCS_FIELD_USER);
	job->request.partition = field_copy(request, OCS_FIELD_PARTITION);
	job->request.shape = field_copy(request, OCS_FIELD_SHAPE);
	job->request.conn = field_copy(request, OCS_FIELD_CONN);
	job->request.placement = field_copy(request, OCS_FIELD_PLACEMENT);
	if (json_object_object_get_ex(request, OCS_FIELD_DEMAND, &value) && value)
		job->request.demand =
			ocs_strdup(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
	job->request.section = field_copy(request, OCS_FIELD_SECTION);
	if (job->request.section)
		job->section = ocs_fabric_section_named(d->fabric, job->request.section);
	if (!job->section) {
		ocs_error_set(err, OCS_USAGE, "ocs.yaml has no section %s",
			      job->request.section ? job->request.section : "(none given)");
		goto fail;
	}
	if (read_nodes(d, job, ocs_field_text(request, OCS_FIELD_NODES, NULL), err))
		goto fail;
	if (job->section->kind == OCS_TORUS || job->section->kind == OCS_STATIC)
		rc = read_placement(d, job, err);
	else
		rc = server_ports(d, job, err) || read_menu(d, job, request, err) ||
				     read_region(d, job, request, err) ?
			     -1 :
			     0;
	if (!rc)
		return job;
fail:
	ocsd_job_free(job);
	return NULL;
}

static void accept_job(struct ocsd *d, struct ocsd_client *client, struct ocsd_job *job)
{
	struct ocsd_job *prepared = ocsd_ahead_adopt(d, job);

	for (struct ocsd_job *old = d->jobs; old; old = old->next)
		if (old->job == job->job && old->state != OCSD_JOB_CLOSED && old != prepared)
			ocsd_job_gone(d, old, "the job has a newer allocation");
	if (prepared) {
		ocsd_job_free(job);
		job = prepared;
	} else {
		ocsd_ahead_give_way(d, job);
		ocsd_job_enter(d, job);
		ocsd_store_job_add(d, job);
		ocsd_menu_store(d, job);
	}
	ocsd_store_max_epoch(d);
	ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
					    .job = job,
					    .what = "commit",
					    .after = job->request.placement });
	ocs_log(OCS_LOG_INFO, "job %u of %s committed: %s on %zu nodes, %zu circuits (epoch %llu)",
		job->job, job->request.user ? job->request.user : "?",
		job->request.shape ? job->request.shape : "no shape", job->nodes.count,
		job->circuits.count, (unsigned long long)job->epoch);
	job->prolog.committed_ns = job->adopt_running ? 0 : ocs_now_ns();
	ocsd_apply_bind(d, job);
	ocsd_job_progress(d, job);
	ocsd_realised_answer(d, job);
	/* nobody was told while it was prepared */
	if (prepared && ocsd_job_running(job))
		ocsd_realised_tell(d, job);
}

void ocsd_op_commit(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	struct ocsd_job *job, *newest;
	struct ocs_error err;
	uint32_t number;
	uint64_t epoch, last;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	if (ocsd_job_find(d, number, epoch)) {
		ocsd_reply(client, id, NULL);
		return;
	}
	newest = ocsd_job_newest(d, number);
	last = newest ? newest->epoch : 0;
	if (last < ocsd_store_last_epoch(d, number))
		last = ocsd_store_last_epoch(d, number);
	if (epoch == 0 || epoch <= last) {
		ocsd_refuse(client, id, OCS_ERROR, NULL,
			    "epoch %llu of job %u is not newer than %llu, which is known",
			    (unsigned long long)epoch, number, (unsigned long long)last);
		return;
	}
	job = ocsd_commit_read(d, request, number, epoch, &err);
	if (!job) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	job->adopt_running = was_running(d, number);
	if (ports_owned(d, job, &err) ||
	    (!job->adopt_running && ocsd_commit_drained(d, job, &err))) {
		ocsd_job_free(job);
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	accept_job(d, client, job);
	ocsd_reply(client, id, NULL);
}
