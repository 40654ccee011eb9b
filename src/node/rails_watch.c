/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The process that stays on a node while a TCP job on rails runs: it makes the node's routes what ocsd
 * says, and says when that is done.  While ocsd is away nothing changes. */

#include "src/node/rails.h"

#include <arpa/inet.h>
#include <errno.h>
#include <json-c/json.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/node/port_queues.h"
#include "src/node/route_batch.h"
#include "src/node/route_cache.h"
#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define CONNECT_MS 5000
#define WORD_MS 3600000 /* one question */
#define PAUSE_MS 50
#define PAUSE_MAX_MS 2000

/* What the kernel has, and where it comes from. */
struct watch {
	struct ocs_node_work *work;
	struct ocs_route_batch *batch;
	struct ocs_route_cache *cache;
	struct ocs_port_queues *queues;
	unsigned int *indices; /* of the devices */
	uint32_t *addresses;   /* of the hosts, network order */
	uint32_t *via;
	uint64_t *devices; /* by which each host is reached, a bit each; 0: by none */
	bool known;	   /* DEVICES is what the kernel has */
	uint64_t draining; /* devices to which no route leads now, and which may have to send */
	bool late;	   /* that it takes long was said */
	struct ocs_forward_seen seen;
};

static uint32_t address_parse(const char *text)
{
	struct in_addr address = { 0 };

	inet_pton(AF_INET, text, &address);
	return address.s_addr;
}

static struct ocs_port_queues *queues_open(const struct watch *watch, struct ocs_error *err)
{
	const struct ocs_forward_hosts *hosts = watch->work->rails->hosts;
	const struct ocs_forward_port *ports = hosts->host[watch->work->rails->self].ports;
	const char *names[64];
	size_t count = hosts->degree < 64 ? (size_t)hosts->degree : 64;

	for (size_t d = 0; d < count; d++)
		names[d] = ports[d].name;
	return ocs_port_queues_create(names, watch->indices, count, err);
}

static int watch_open(struct watch *watch, struct ocs_node_work *work, struct ocs_error *err)
{
	const struct ocs_node_rails *rails = work->rails;
	const struct ocs_forward_hosts *hosts = rails->hosts;
	size_t servers = (size_t)hosts->servers;

	*watch = (struct watch){ .work = work };
	watch->indices = ocs_calloc((size_t)hosts->degree, sizeof(*watch->indices));
	for (int d = 0; d < hosts->degree; d++)
		watch->indices[d] = if_nametoindex(hosts->host[rails->self].ports[d].name);
	watch->addresses = ocs_calloc(servers, sizeof(*watch->addresses));
	watch->via = ocs_calloc(servers, sizeof(*watch->via));
	watch->devices = ocs_calloc(servers, sizeof(*watch->devices));
	for (int h = 0; h < hosts->servers; h++) {
		watch->addresses[h] = address_parse(hosts->host[h].address);
		watch->via[h] = address_parse(rails->via[h]);
	}
	watch->batch =
		ocs_route_batch_create((uint32_t)ocs_forward_rails_table(hosts->degree),
				       OCS_FORWARD_PROTOCOL, watch->addresses[rails->self], err);
	watch->cache = ocs_route_cache_create(err);
	watch->queues = queues_open(watch, err);
	return watch->batch && watch->cache && watch->queues ? 0 : -1;
}

static void watch_close(struct watch *watch)
{
	ocs_port_queues_destroy(watch->queues);
	ocs_route_cache_destroy(watch->cache);
	ocs_route_batch_destroy(watch->batch);
	free(watch->indices);
	free(watch->addresses);
	free(watch->via);
	free(watch->devices);
}

/* Adds to WANTED the circuits of this host that TOPO and NEXT both have on RAIL. */
static int rail_devices(const struct ocs_node_rails *rails, int rail, const char *topo,
			const char *next, uint64_t *wanted, struct ocs_error *err)
{
	struct ocs_rails_pairs cut, make, pairs;
	int ports = rails->layout.ports;

	if (!*topo)
		return 0;
	if (ocs_rails_topology_pairs(&rails->layout, topo, &pairs, err))
		return -1;
	for (size_t i = 0; i < pairs.count; i++) {
		const struct ocs_rails_pair *pair = &pairs.items[i];

		if (pair->a == rails->self)
			wanted[pair->b] |= UINT64_C(1) << (rail * ports + pair->a_port);
		if (pair->b == rails->self)
			wanted[pair->a] |= UINT64_C(1) << (rail * ports + pair->b_port);
	}
	ocs_rails_pairs_free(&pairs);
	if (strcmp(topo, next) == 0)
		return 0;
	if (ocs_rails_change(&rails->layout, topo, next, &cut, &make, err))
		return -1;
	for (size_t i = 0; i < cut.count; i++) {
		const struct ocs_rails_pair *pair = &cut.items[i];

		if (pair->a == rails->self)
			wanted[pair->b] &= ~(UINT64_C(1) << (rail * ports + pair->a_port));
		if (pair->b == rails->self)
			wanted[pair->a] &= ~(UINT64_C(1) << (rail * ports + pair->b_port));
	}
	ocs_rails_pairs_free(&cut);
	ocs_rails_pairs_free(&make);
	return 0;
}

/* The route to host H leads over DEVICES. */
static void route_add(struct watch *watch, int h, uint64_t devices)
{
	const struct ocs_forward_hosts *hosts = watch->work->rails->hosts;
	unsigned int list[64];
	size_t count = 0;

	for (int d = 0; d < hosts->degree && d < 64; d++)
		if (devices >> d & 1)
			list[count++] = watch->indices[d];
	if (!count)
		list[0] = if_nametoindex(watch->work->section->management);
	ocs_route_batch_add(watch->batch, watch->addresses[h], list, count ? count : 1,
			    count ? 0 : watch->via[h]);
}

/* The kernel has the routes WANTED now: ports that none leads to may still have to send. */
static void devices_note(struct watch *watch, const uint64_t *wanted)
{
	const struct ocs_node_rails *rails = watch->work->rails;
	uint64_t all =
		rails->hosts->degree < 64 ? (UINT64_C(1) << rails->hosts->degree) - 1 : UINT64_MAX;
	uint64_t before = watch->known ? 0 : all, now = 0;

	for (int h = 0; h < rails->hosts->servers; h++) {
		before |= watch->devices[h];
		now |= wanted[h];
		watch->devices[h] = wanted[h];
	}
	watch->draining = (watch->draining | before) & ~now;
	watch->known = true;
}

/* Makes the routes what WORD says. */
static int word_apply(struct watch *watch, struct json_object *word, struct ocs_error *err)
{
	const struct ocs_node_rails *rails = watch->work->rails;
	uint64_t *wanted = ocs_calloc((size_t)rails->hosts->servers, sizeof(*wanted));
	size_t count;
	struct json_object *rows = ocs_field_array(word, OCS_FIELD_RAILS, &count);
	bool changes = false;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		int64_t rail = 0;

		if (!ocs_field_within(row, OCS_FIELD_RAIL, rails->nrails - 1, &rail))
			rc = ocs_error_set(err, OCS_ERROR, "ocsd names a rail that is none");
		else
			rc = rail_devices(rails, (int)rail, ocs_field_text(row, OCS_FIELD_TOPO, ""),
					  ocs_field_text(row, OCS_FIELD_NEXT, ""), wanted, err);
	}
	for (int h = 0; h < rails->hosts->servers && !rc; h++)
		if (h != rails->self && (!watch->known || wanted[h] != watch->devices[h])) {
			route_add(watch, h, wanted[h]);
			changes = true;
		}
	if (changes)
		rc = ocs_route_batch_run(watch->batch, err) ||
				     ocs_route_cache_renew(watch->cache, err) ?
			     -1 :
			     0;
	if (rc)
		watch->known = false;
	else
		devices_note(watch, wanted);
	free(wanted);
	return rc;
}

/* Waits until what was sent by routes that are gone has left, as long as ocsd waits for this node.  0, or
 * -1 with ERR: ocsd is not to be told that it is done. */
static int ports_drain(struct watch *watch, struct ocs_error *err)
{
	const struct ocs_node_rails *rails = watch->work->rails;
	int limit_ms = watch->work->config->timeouts.routes_ms, port, rc;

	rc = ocs_port_queues_wait(watch->queues, watch->cache, &watch->draining,
				  ocs_now_ns() + limit_ms * INT64_C(1000000), err);
	if (rc <= 0)
		return rc;
	port = __builtin_ctzll(watch->draining);
	return ocs_error_set(err, OCS_NOT_NOW,
			     "%s still has %lld bytes to send, %d ms after its routes were taken"
			     " off: its circuit stays",
			     rails->hosts->host[rails->self].ports[port].name,
			     (long long)ocs_port_queues_held(watch->queues, (size_t)port, NULL),
			     limit_ms);
}

/* The same, unless the epilog was here.  1: it was. */
static int word_take(struct watch *watch, struct json_object *word, struct ocs_error *err)
{
	const struct ocs_node_work *work = watch->work;
	const struct ocs_forward_owner owner = { .job = work->request->job,
						 .epoch = work->request->epoch };
	int lock = ocs_forward_keep(work->folder, &owner, &watch->seen), rc;

	if (lock < 0)
		return 1;
	rc = word_apply(watch, word, err);
	close(lock);
	return rc;
}

/* Follows ocsd on one connection.  True: the job is over. */
static bool words_follow(struct watch *watch, struct ocs_client *client, int *pause_ms)
{
	struct ocs_node_work *work = watch->work;
	bool gone = false, first = true;
	int64_t revision = 0;
	long kept;
	int rc;

	for (;;) {
		struct json_object *question = ocs_node_work_question(work, OCS_OP_ROUTES);
		struct json_object *word, *refusal = NULL;
		struct ocs_error err = { 0 };

		ocs_field_add_number(question, OCS_FIELD_AFTER, revision);
		if (first)
			ocs_node_work_announce(work, question);
		word = ocs_client_call(client, question, WORD_MS, &refusal, &err);
		json_object_put(question);
		gone = ocs_field_true(refusal, OCS_FIELD_GONE);
		json_object_put(refusal);
		if (!word)
			return gone;
		first = false;
		rc = word_take(watch, word, &err);
		if (rc) {
			/* It is not done, and ocsd is not told that it is. */
			if (rc < 0)
				syslog(LOG_ERR, "job %lu: %s", work->request->job, err.text);
			json_object_put(word);
			return rc > 0 && !ocs_node_work_current(work, &kept);
		}
		*pause_ms = PAUSE_MS;
		rc = ports_drain(watch, &err);
		if (rc == 0)
			ocs_field_within(word, OCS_FIELD_REVISION, INT64_MAX, &revision);
		json_object_put(word);
		if (rc < 0 && err.code != OCS_NOT_NOW) {
			syslog(LOG_ERR, "job %lu: %s", work->request->job, err.text);
			return false;
		}
		if (rc < 0 && !watch->late)
			syslog(LOG_WARNING, "job %lu: %s", work->request->job, err.text);
		watch->late = rc < 0;
	}
}

/* Reads again what is known of the job: after slurmd was started anew. */
static bool job_learn(struct ocs_node_work *work)
{
	int pause_ms = PAUSE_MS;
	bool gone = false;
	long revision;

	while (!work->rails && ocs_node_work_current(work, &revision)) {
		struct ocs_error err = { 0 };
		struct json_object *reply = ocs_node_work_meet(work, 0, WORD_MS, &gone, &err);

		if (gone)
			return false;
		if (reply && ocs_node_rails_read(work, reply, &err)) {
			syslog(LOG_ERR, "job %lu: %s", work->request->job, err.text);
			ocs_node_rails_free(work->rails);
			work->rails = NULL;
		}
		json_object_put(reply);
		if (!work->rails)
			ocs_node_work_rest(&pause_ms);
	}
	return work->rails;
}

static void watch_rest(int *pause_ms)
{
	if (*pause_ms > PAUSE_MAX_MS)
		*pause_ms = PAUSE_MAX_MS;
	ocs_node_work_rest(pause_ms);
}

/* The work of the process; returns when the job is over.  False: it has to begin anew. */
static bool routes_watch(struct ocs_node_work *work)
{
	struct ocs_error err = { 0 };
	int pause_ms = PAUSE_MS;
	struct watch watch;
	bool over = false;
	long revision;

	if (!job_learn(work))
		return true;
	if (watch_open(&watch, work, &err)) {
		syslog(LOG_ERR, "job %lu: %s", work->request->job, err.text);
		watch_close(&watch);
		return false;
	}
	while (!over && ocs_node_work_current(work, &revision)) {
		struct ocs_client *client =
			ocs_node_connect(work->request, work->config, CONNECT_MS, &err);

		if (client)
			over = words_follow(&watch, client, &pause_ms);
		ocs_client_close(client);
		if (over)
			break;
		watch_rest(&pause_ms);
	}
	watch_close(&watch);
	return true;
}

/* The caller waits, and begins anew if the process that does the work is killed, or could not begin. */
void ocs_node_rails_watch(struct ocs_node_work *work)
{
	int pause_ms = PAUSE_MS, status;
	long revision;

	do {
		pid_t child = fork();

		if (child == 0)
			_exit(routes_watch(work) ? 0 : 1);
		if (child < 0 && routes_watch(work))
			return;
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return;
		if (child > 0 && WIFSIGNALED(status))
			syslog(LOG_WARNING, "job %lu: the process that changes routes was killed",
			       work->request->job);
		watch_rest(&pause_ms);
	} while (ocs_node_work_current(work, &revision));
}
