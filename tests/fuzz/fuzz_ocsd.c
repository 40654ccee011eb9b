/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Lines to ocsd, from the socket to the switches and back: the whole daemon, with
 * switches that do what they are told at once.  The first byte chooses who sends: an
 * administrator, a user, or a remote client before or after its hello.  Whatever is
 * sent, no port gets two peers, every answer is a line of JSON, and when all jobs are
 * gone no circuit is left. */

#define main ocsd_main
#include "src/config/config.h"
#include "src/ocsd/main.c"
#undef main
#include "src/ocsd/protocol/handshake.c"
#include "src/ocsd/protocol/connection.c"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/restore.h"
#include "src/ocsd/protocol/rate_limit.h"
#include "src/ocsd/switches/scheduler.h"
#include "src/ocsd/metrics/exporter.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/switches/worker.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)
#define SESSION "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define STRANGER 65534
#define JOB_KEY "00000000000000000000000000000000"
#define ONE_BY_ONE 4 /* in the first byte: each line is dealt with before the next one */
#define ROUNDS 40
#define ANSWERS (1 << 24)

static const char description[] = "version: 1\n"
				  "switches:\n"
				  "  - {name: \"t-[x,y,z]-[0-1]-[0-1]\", driver: tl1, "
				  "address: \"unix:/x/{name}\", credentials: /x/c, size: 8}\n"
				  "  - {name: \"direct-[0-1]\", driver: tl1, "
				  "address: \"unix:/x/{name}\", credentials: /x/c, size: 8}\n"
				  "  - {name: \"rail-[0-1]\", driver: tl1, "
				  "address: \"unix:/x/{name}\", credentials: /x/c, size: 8}\n"
				  "  - {name: \"rg-0\", driver: tl1, "
				  "address: \"unix:/x/{name}\", credentials: /x/c, size: 16}\n"
				  "fabrics:\n"
				  "  - name: pod\n"
				  "    kind: torus\n"
				  "    partitions: [tpu]\n"
				  "    cube: 2x2x2\n"
				  "    tile: 1x1x2\n"
				  "    cubes:\n"
				  "      - {name: c0, nodes: \"n[0-3]\"}\n"
				  "      - {name: c1, nodes: \"n[4-7]\"}\n"
				  "    ports: {switch: \"t-{dim}-{a}-{b}\", port: 2*cube+sign+1}\n"
				  "  - name: ring\n"
				  "    kind: direct\n"
				  "    partitions: [ring]\n"
				  "    nodes: d[0-5]\n"
				  "    degree: 2\n"
				  "    ports: {switch: \"direct-{interface}\", port: server+1}\n"
				  "  - name: rails\n"
				  "    kind: rails\n"
				  "    partitions: [rails]\n"
				  "    nodes: r[0-3]\n"
				  "    rails: 2\n"
				  "    ports: {switch: \"rail-{interface}\", port: server+1}\n"
				  "  - name: moe\n"
				  "    kind: region\n"
				  "    partitions: [moe]\n"
				  "    nodes: g[0-3]\n"
				  "    region_servers: 4\n"
				  "    degree: 3\n"
				  "    packet_nics: 1\n"
				  "    ports: {switch: \"rg-{region}\", "
				  "port: server * degree + interface + 1}\n";

/* ---- switches that obey ---- */

static struct ocs_table *tables;

int ocsd_workers_start(struct ocsd *d, struct ocs_error *err)
{
	(void)err;
	tables = ocs_calloc((size_t)d->fabric->nswitches, sizeof(*tables));
	for (int i = 0; i < d->fabric->nswitches; i++)
		ocs_table_init(&tables[i], d->fabric->switches[i].size);
	return 0;
}

void ocsd_workers_stop(struct ocsd *d)
{
	(void)d;
}

void ocsd_worker_read(struct ocsd *d, struct ocsd_switch *sw)
{
	(void)d;
	(void)sw;
}

void ocsd_worker_test(struct ocsd *d, struct ocsd_switch *sw, const struct ocsd_test *test)
{
	(void)d;
	(void)sw;
	(void)test;
	abort(); /* there are no loop ports */
}

void ocsd_worker_apply(struct ocsd *d, struct ocsd_switch *sw, struct ocs_patch *remove,
		       size_t nremove, struct ocs_patch *add, size_t nadd, bool quick)
{
	struct ocs_table *table = &tables[sw->index];

	(void)d;
	(void)quick;
	for (size_t i = 0; i < nremove; i++)
		if (table->out[remove[i].in] == remove[i].out)
			table->out[remove[i].in] = 0;
	for (size_t i = 0; i < nadd; i++) {
		for (int in = 1; in <= table->size; in++)
			CHECK(table->out[in] != add[i].out || in == add[i].in);
		CHECK(!table->out[add[i].in] || table->out[add[i].in] == add[i].out);
		table->out[add[i].in] = add[i].out;
	}
	free(remove);
	free(add);
}

/* Hands the results over; false: there were none. */
static bool deliver(struct ocsd *d)
{
	bool any = false;

	for (int i = 0; i < d->fabric->nswitches; i++) {
		struct ocs_error err = { 0 };

		if (d->switches[i].busy == OCSD_IDLE || d->switches[i].prepared)
			continue;
		any = true;
		ocsd_switch_result(d, &d->switches[i], OCS_SWITCH_OK, &tables[i], &err);
	}
	return any;
}

/* Inputs cannot know what is drawn. */
static void keys_set(struct ocsd *d)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (job->menu && job->menu->key[0])
			strcpy(job->menu->key, JOB_KEY);
}

static void work(struct ocsd *d)
{
	for (int i = 0; i < ROUNDS; i++) {
		keys_set(d);
		event_base_loop(d->loop.base, EVLOOP_NONBLOCK);
		ocsd_settle(d);
		CHECK(!ocsd_store_lost(d->store));
		if (!deliver(d) && i > 2)
			return;
	}
}

/* ---- the daemon ---- */

static char folder[] = "/dev/shm/fuzz-ocsd-XXXXXX";

static void remove_folder(void)
{
	static const char *const names[] = { "ocsd.db", "ocsd.db-wal", "ocsd.db-shm", "ocsd.lock" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = ocs_asprintf("%s/%s", folder, names[i]);

		unlink(path);
		free(path);
	}
	rmdir(folder);
}

static struct ocsd *daemon_start(void)
{
	static struct ocsd d = { .life.ready_fd = -1, .life.ready = true };
	struct ocs_error err;

	ocs_log_level_set(OCS_LOG_ERROR);
	/* as main does: a client may be gone before it is answered */
	signal(SIGPIPE, SIG_IGN);
	d.config = ocs_config_parse(description, strlen(description), "f", &err);
	CHECK(d.config && mkdtemp(folder));
	d.fabric = d.config->fabric;
	atexit(remove_folder);
	CHECK(!find_admins(&d, &err));
	make_switches(&d);
	d.store = ocsd_store_open(folder, 1000, &err);
	CHECK(d.store);
	ocsd_store_script(d.store, "DROP TRIGGER audit_delete");
	ocsd_store_commit(d.store);
	CHECK(sqlite3_exec(d.store->db, "PRAGMA synchronous=OFF", NULL, NULL, NULL) == SQLITE_OK);
	d.loop.base = event_base_new();
	d.loop.timer = evtimer_new(d.loop.base, on_timer, &d);
	d.server.operations = ocsd_operations;
	d.server.key = ocs_calloc(1, sizeof(*d.server.key));
	d.server.key->length = 32;
	CHECK(!ocsd_workers_start(&d, &err));
	work(&d);
	return &d;
}

/* As if nothing had been asked. */
static void forget_all(struct ocsd *d)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (job->state != OCSD_JOB_CLOSED)
			ocsd_job_gone(d, job, "the next input comes");
	work(d);
	CHECK(!d->jobs && !d->replies.first && !d->server.clients && !d->server.transactions);
	for (int i = 0; i < d->fabric->nswitches; i++)
		for (int in = 1; in <= tables[i].size; in++)
			CHECK(!tables[i].out[in]);
	while (d->drains) {
		char *kind = ocs_strdup(d->drains->kind), *name = ocs_strdup(d->drains->name);

		ocsd_resume(d, kind, name, 0);
		free(kind);
		free(name);
	}
	ocsd_pending_clear(d);
	json_object_put(d->slurmctld.nodes);
	d->slurmctld.nodes = NULL;
	d->slurmctld.nunknown = 0;
	d->slurmctld.max_epoch = 0;
	ocsd_limited_users_free(d);
	ocsd_log_limit_end(d);
	ocsd_store_script(d->store, "DELETE FROM history; DELETE FROM transactions;"
				    "DELETE FROM audit; UPDATE meta SET value=0");
	ocsd_store_commit(d->store);
	d->store->revision = d->store->stored = 0;
}

/* ---- a client ---- */

enum sender { ADMIN, USER, SEALED, REMOTE };

static void connect_client(struct ocsd *d, int fd, enum sender sender)
{
	evutil_make_socket_nonblocking(fd);
	if (sender == SEALED || sender == REMOTE)
		on_remote(NULL, fd, NULL, 0, d);
	else
		on_local(NULL, fd, NULL, 0, d);
	CHECK(d->server.clients);
	if (sender == USER) {
		d->server.clients->uid = STRANGER;
		d->server.clients->limited_user = ocsd_limited_user_enter(d, STRANGER);
	}
	if (sender == SEALED)
		client_welcome(d->server.clients, 0, SESSION);
}

/* The lines of the input, sealed if they have to be. */
static void send_lines(int fd, const uint8_t *data, size_t size, struct ocs_seal *seal)
{
	struct ocs_text text = { 0 };
	size_t done = 0;

	while (seal && done < size) {
		const uint8_t *end = memchr(data + done, '\n', size - done);
		size_t length = end ? (size_t)(end - data) - done : size - done;
		char prefix[OCS_MAC_HEX + 2];

		/* what follows a zero byte is no part of a line */
		length = strnlen((const char *)data + done, length);
		ocs_seal_prefix(seal, (const char *)data + done, length, prefix);
		ocs_text_add(&text, "%s%.*s\n", prefix, (int)length, (const char *)data + done);
		done = end ? (size_t)(end - data) + 1 : size;
	}
	if (!seal)
		CHECK(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
	else if (text.length)
		CHECK(send(fd, text.data, text.length, MSG_NOSIGNAL) == (ssize_t)text.length);
	ocs_text_free(&text);
}

static void check_line(const char *line, struct ocs_seal *seal)
{
	struct json_object *object;

	if (seal && strncmp(line, "{\"challenge\"", 12) != 0) {
		line = ocs_seal_open(seal, line);
		CHECK(line);
	}
	object = json_tokener_parse(line);
	CHECK(json_object_is_type(object, json_type_object));
	CHECK(json_object_object_get_ex(object, "ok", NULL) ||
	      json_object_object_get_ex(object, "event", NULL) ||
	      json_object_object_get_ex(object, "challenge", NULL));
	json_object_put(object);
}

static void check_answers(int fd, struct ocs_seal *seal)
{
	static char answers[ANSWERS];
	ssize_t length = recv(fd, answers, sizeof(answers) - 1, MSG_DONTWAIT);
	char *rest = answers, *line;

	if (length <= 0)
		return;
	answers[length] = '\0';
	while ((line = strsep(&rest, "\n")) && rest)
		check_line(line, seal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ocsd *d;
	struct ocs_seal seal = { 0 };
	enum sender sender;
	int ends[2];

	if (!d)
		d = daemon_start();
	if (size < 1 || size > 1 << 15)
		return 0;
	sender = (enum sender)(data[0] % 4);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	connect_client(d, ends[1], sender);
	ocs_seal_start(&seal, SESSION, false);
	for (size_t done = 1; done < size;) {
		const uint8_t *end =
			data[0] & ONE_BY_ONE ? memchr(data + done, '\n', size - done) : NULL;
		size_t length = end ? (size_t)(end - data) + 1 - done : size - done;

		if (d->server.clients && !d->server.clients->lost)
			send_lines(ends[0], data + done, length, sender == SEALED ? &seal : NULL);
		done += length;
		if (done < size)
			work(d);
	}
	work(d);
	check_answers(ends[0], sender == SEALED ? &seal : NULL);
	close(ends[0]);
	work(d);
	forget_all(d);
	return 0;
}
