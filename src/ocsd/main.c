/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "ocs_config.h"

#include "src/config/config.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/protocol/log_limit.h"
#include "src/ocsd/protocol/connection_quota.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/protocol/handshake.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/restore.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/protocol/rate_limit.h"
#include "src/ocsd/metrics/exporter.h"
#include "src/ocsd/reload.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/queue.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/settle.h"
#include "src/ocsd/systemd.h"
#include "src/ocsd/degraded_mode.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/switches/worker.h"

#include "src/place/place.h"
#include "src/util/net.h"
#include "src/util/options.h"
#include "src/util/text.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libgen.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_WANTED 65536
#define LOCK_WAIT_MS 2000 /* for others who hold the database */
#define LIFE_S 60	  /* one that ends sooner has lost the database again */
#define DELAY_MS 250	  /* before the database is tried again */
#define DELAY_MAX_MS 1000 /* however often it is lost again */

struct options {
	const char *fabric, *socket, *state;
	bool foreground;
};

static const char usage[] =
	"Usage: ocsd [--fabric FILE] [--socket ADDRESS] [--state DIR] [--foreground]\n"
	"            [--log-level error|warning|info|debug]\n"
	"\n"
	"Makes, checks and cuts the optical circuits of Slurm jobs.\n"
	"\n"
	"  --fabric FILE     description of the fabric [" OCS_SYSCONFDIR "/slurm/ocs.yaml]\n"
	"  --socket ADDRESS  unix:/PATH or HOST:PORT instead of ocsd.socket of FILE\n"
	"  --state DIR       database folder instead of ocsd.state of FILE\n"
	"  --foreground      stay attached; log to stderr\n"
	"  --log-level L     what is logged [info]\n"
	"  -h, --help        this text\n"
	"  -V, --version     the version\n";

/* Exits for --help, --version and usage errors. */
static void read_options(int argc, char **argv, struct options *options)
{
	static const struct option longs[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "socket", required_argument, NULL, 's' },
		{ "state", required_argument, NULL, 'd' },
		{ "foreground", no_argument, NULL, 'F' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static const struct ocs_options line = { "ocsd", "", longs, usage };
	enum ocs_log_level level;
	struct ocs_error err;
	int c;

	while ((c = ocs_options_next(&line, argc, argv, &err)) > 0) {
		switch (c) {
		case 'f':
			options->fabric = optarg;
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'd':
			options->state = optarg;
			break;
		case 'F':
			options->foreground = true;
			break;
		default:
			if (ocs_log_level_parse(optarg, &level)) {
				fprintf(stderr,
					"ocsd: --log-level is error, warning, info or debug, not %s\n",
					optarg);
				exit(OCS_USAGE);
			}
			ocs_log_level_set(level);
		}
	}
	if (c == OCS_OPTIONS_SAID)
		exit(OCS_OK);
	if (c == OCS_OPTIONS_WRONG) {
		fprintf(stderr, "ocsd: %s\n", err.text);
		exit(OCS_USAGE);
	}
	if (optind < argc) {
		fprintf(stderr, "ocsd: %s is not an option; see ocsd --help\n", argv[optind]);
		exit(OCS_USAGE);
	}
}

/* Waits in the parent until the child is ready.  Returns the descriptor on
 * which the child says so. */
static int go_to_background(void)
{
	int ends[2], null;
	char byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC)) {
		perror("ocsd: pipe");
		exit(OCS_ERROR);
	}
	pid = fork();
	if (pid < 0) {
		perror("ocsd: fork");
		exit(OCS_ERROR);
	}
	if (pid > 0) {
		close(ends[1]);
		exit(read(ends[0], &byte, 1) == 1 ? OCS_OK : OCS_ERROR);
	}
	close(ends[0]);
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	return ends[1];
}

static void add_admin(struct ocsd *d, uid_t uid)
{
	struct ocsd_server *server = &d->server;

	server->admins =
		ocs_realloc(server->admins, (server->nadmins + 1) * sizeof(*server->admins));
	server->admins[server->nadmins++] = uid;
}

static int find_admins(struct ocsd *d, struct ocs_error *err)
{
	add_admin(d, 0);
	add_admin(d, geteuid());
	for (size_t i = 0; i < d->config->ocsd.nadmins; i++) {
		const struct passwd *entry = getpwnam(d->config->ocsd.admins[i]);

		if (!entry)
			return ocs_error_set(
				err, OCS_USAGE,
				"%s: ocsd.admins names user %s, who does not exist here",
				d->fabric->source, d->config->ocsd.admins[i]);
		add_admin(d, entry->pw_uid);
	}
	return 0;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	/* Waking up is enough: every pass ends in ocsd_settle(). */
	(void)fd;
	(void)what;
	(void)context;
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
	struct ocsd *d = context;

	(void)what;
	ocs_log(OCS_LOG_INFO, "stopping on signal %d; circuits stay as they are", (int)number);
	d->life.stopping = true;
	event_base_loopbreak(d->loop.base);
}

/* A new ocs.yaml is taken by starting over, as after a crash: only then is there one
 * way in which state meets description.  What cannot be taken changes nothing. */
static void on_reload(evutil_socket_t number, short what, void *context)
{
	struct ocsd *d = context;
	struct ocs_config *config;
	struct ocs_error err;

	(void)number;
	(void)what;
	config = ocs_config_open(d->yaml.path, &err);
	free(d->yaml.fault);
	d->yaml.fault = NULL;
	if (!config || ocsd_reload_check(d, config, &err)) {
		d->yaml.fault = ocs_strdup(err.text);
		ocs_log(OCS_LOG_ERROR, "the new description is not taken, the old one stays: %s",
			err.text);
		ocs_config_destroy(config);
		return;
	}
	ocs_config_destroy(config);
	ocs_log(OCS_LOG_INFO, "starting over with the new %s; circuits stay as they are",
		d->yaml.path);
	ocsd_service_tell("RELOADING=1");
	d->life.reload = d->life.stopping = true;
	event_base_loopbreak(d->loop.base);
}

static void make_switches(struct ocsd *d)
{
	d->switches = ocs_calloc((size_t)d->fabric->nswitches + 1, sizeof(*d->switches));
	for (int i = 0; i < d->fabric->nswitches; i++) {
		struct ocsd_switch *sw = &d->switches[i];

		sw->description = &d->fabric->switches[i];
		sw->index = i;
		sw->ports = ocs_calloc(2 * (size_t)sw->description->size + 1, sizeof(*sw->ports));
		sw->by_in = ocs_calloc((size_t)sw->description->size + 1,
				       sizeof(struct ocsd_circuit *));
		sw->leaving = ocs_calloc((size_t)sw->description->size + 1,
					 sizeof(struct ocsd_circuit *));
	}
	d->placers = ocs_calloc((size_t)d->fabric->nsections + 1, sizeof(struct ocs_placer *));
}

/* Clients, switches and the database all hold descriptors. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FILES_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		ocs_log(OCS_LOG_WARNING, "RLIMIT_NOFILE: %s", strerror(errno));
}

static void make_socket_folder(const char *address)
{
	char *path, *folder;

	if (strncmp(address, "unix:", 5) != 0)
		return;
	path = ocs_strdup(address + 5);
	folder = dirname(path);
	if (mkdir(folder, 0755) && errno != EEXIST)
		ocs_log(OCS_LOG_WARNING, "%s: %s", folder, strerror(errno));
	else if (errno != EEXIST && chmod(folder, 0755))
		ocs_log(OCS_LOG_WARNING, "%s: %s", folder, strerror(errno));
	free(path);
}

/* What does not need the database. */
static int service_prepare(struct ocsd *d, const struct options *options, struct ocs_error *err)
{
	d->yaml.path = options->fabric;
	if (!d->config && ocsd_reload_open(d, options->state, err))
		return -1;
	d->socket = options->socket ? options->socket : d->config->ocsd.socket;
	if (find_admins(d, err) || ocsd_hello_account(d->config, err))
		return -1;
	make_switches(d);
	raise_limits();
	make_socket_folder(d->socket);
	d->loop.base = event_base_new();
	if (!d->loop.base)
		return ocs_error_set(err, OCS_ERROR, "libevent does not start");
	d->server.operations = ocsd_operations;
	return 0;
}

static const char *state_folder(const struct ocsd *d, const struct options *options)
{
	return options->state ? options->state : d->config->ocsd.state;
}

static int service_start(struct ocsd *d, const struct options *options, struct ocs_error *err)
{
	if (service_prepare(d, options, err))
		return -1;
	d->store = ocsd_store_open(state_folder(d, options), LOCK_WAIT_MS, err);
	if (!d->store || ocsd_jobs_load(d, err))
		return -1;
	ocsd_reload_keep(d, state_folder(d, options));
	d->loop.timer = evtimer_new(d->loop.base, on_timer, d);
	return ocsd_workers_start(d, err);
}

static void loop_run(struct ocsd *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct event *events[3], *watchdog = ocsd_service_watchdog(d->loop.base);

	ocsd_audit_prune(d);
	for (size_t i = 0; i < 3; i++) {
		events[i] = evsignal_new(d->loop.base, signals[i],
					 signals[i] == SIGHUP ? on_reload : on_signal, d);
		event_add(events[i], NULL);
	}
	while (!d->life.stopping) {
		ocsd_settle(d);
		if (!d->life.stopping && event_base_loop(d->loop.base, EVLOOP_ONCE) < 0) {
			ocs_log(OCS_LOG_ERROR, "the event loop failed: %s", strerror(errno));
			d->life.failed = true;
			break;
		}
	}
	for (size_t i = 0; i < 3; i++)
		event_free(events[i]);
	if (watchdog) {
		/* What is on its way to the switches may take its time now. */
		ocsd_service_tell("WATCHDOG=1");
		event_free(watchdog);
	}
	event_free(d->loop.pruner);
	ocsd_heard_save(d);
}

static void free_switches(struct ocsd *d)
{
	for (int i = 0; d->switches && i < d->fabric->nswitches; i++) {
		free(d->switches[i].status.reason);
		free(d->switches[i].status.said);
		free(d->switches[i].status.drain_reason);
		free(d->switches[i].ports);
		free(d->switches[i].by_in);
		free(d->switches[i].leaving);
		ocs_health_free(&d->switches[i].health);
		free(d->switches[i].suspect_since);
		ocsd_selftests_free(&d->switches[i]);
		free(d->switches[i].batch.adding);
		free(d->switches[i].batch.removing);
	}
	free(d->switches);
	for (int i = 0; d->placers && i < d->fabric->nsections; i++)
		if (d->placers[i])
			ocs_placer_destroy(d->placers[i]);
	free(d->placers);
	ocsd_counters_free(&d->counters);
	free(d->heard);
}

static void free_lists(struct ocsd *d)
{
	while (d->jobs) {
		struct ocsd_job *job = d->jobs;

		d->jobs = job->next;
		ocsd_transitions_end(job);
		ocsd_job_free(job);
	}
	while (d->drains)
		ocsd_drain_set(d, d->drains->kind, d->drains->name, NULL);
	ocsd_pending_clear(d);
	ocsd_selftest_results_forget(d);
	json_object_put(d->replies.events);
	json_object_put(d->replies.to_controllers);
	ocsd_limited_users_free(d);
	ocsd_quota_free(d->server.users);
	ocsd_quota_free(d->server.unidentified);
	json_object_put(d->slurmctld.nodes);
	json_object_put(d->slurmctld.yaml);
	free(d->slurmctld.unknown);
	free(d->server.admins);
}

/* Leaves D with its fabric and what it counts. */
static void service_stop(struct ocsd *d)
{
	struct ocsd kept = { .config = d->config,
			     .fabric = d->fabric,
			     .life = { .store_losses = d->life.store_losses,
				       .reload = d->life.reload,
				       .ready_fd = d->life.ready_fd },
			     .yaml = { .fault = d->yaml.fault } };

	if (d->fabric && d->switches)
		ocsd_workers_stop(d);
	if (d->loop.base)
		ocsd_server_close(d);
	ocsd_store_close(d->store);
	ocsd_metrics_close(d);
	ocsd_log_limit_end(d);
	if (d->loop.timer)
		event_free(d->loop.timer);
	if (d->loop.base)
		event_base_free(d->loop.base);
	if (d->fabric) {
		free_lists(d);
		free_switches(d);
	}
	*d = kept;
}

/* From the database to the end, or (*WHY: a sentence, to be freed) to its loss. */
static int life_run(struct ocsd *d, const struct options *options, char **why)
{
	struct ocs_error err;
	int rc;

	*why = NULL;
	if (service_start(d, options, &err)) {
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
		rc = err.code ? err.code : OCS_ERROR;
	} else {
		loop_run(d);
		rc = d->life.failed ? OCS_ERROR : OCS_OK;
		if (!d->life.reload && ocsd_store_lost(d->store))
			*why = ocs_strdup(ocsd_store_lost(d->store));
	}
	service_stop(d);
	return rc;
}

/* Whether the database can be used again; if not, *RC is how the daemon ends. */
static bool stand_by(struct ocsd *d, const struct options *options, const char *why, int delay_ms,
		     int *rc)
{
	struct ocs_error err;
	bool back = false;

	*rc = OCS_ERROR;
	d->life.store_losses++;
	if (service_prepare(d, options, &err)) {
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
	} else {
		d->life.standby = why;
		ocsd_standby(d, state_folder(d, options), delay_ms);
		back = !d->life.standby;
		*rc = d->life.failed ? OCS_ERROR : OCS_OK;
	}
	service_stop(d);
	return back;
}

/* One life after the other, as long as only the database stands in the way. */
static int lives_run(struct ocsd *d, const struct options *options)
{
	int delay_ms = DELAY_MS, rc;
	char *why;

	for (;;) {
		int64_t born_ns = ocs_now_ns();
		bool back;

		rc = life_run(d, options, &why);
		if (!why)
			return rc;
		if (ocs_now_ns() - born_ns > LIFE_S * INT64_C(1000000000))
			delay_ms = DELAY_MS;
		ocs_log(OCS_LOG_ERROR, "standing by until the database can be used");
		back = stand_by(d, options, why, delay_ms, &rc);
		free(why);
		if (!back)
			return rc;
		ocs_log(OCS_LOG_INFO, "the database can be used again; starting over");
		ocsd_service_tell("STATUS=");
		delay_ms = delay_ms < DELAY_MAX_MS ? 2 * delay_ms : delay_ms;
	}
}

/* The same process, for its service manager, with nothing of the old one. */
static int start_over(int argc, char **argv)
{
	char **again = ocs_calloc((size_t)argc + 2, sizeof(*again));

	memcpy(again, argv, (size_t)argc * sizeof(*again));
	again[argc] = "--foreground";
	execv("/proc/self/exe", again);
	ocs_log(OCS_LOG_ERROR, "starting over: %s", strerror(errno));
	free(again);
	return OCS_ERROR;
}

int main(int argc, char **argv)
{
	struct options options = { .fabric = OCS_SYSCONFDIR "/slurm/ocs.yaml" };
	struct ocsd d = { .life.ready_fd = -1 };
	int rc;

	/* After starting over it would be called "exe". */
	prctl(PR_SET_NAME, "ocsd");
	read_options(argc, argv, &options);
	signal(SIGPIPE, SIG_IGN);
	/* Until the loop turns, and while it starts over. */
	signal(SIGHUP, SIG_IGN);
	/* A file that may not grow is an error like a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	umask(0077);
	if (!options.foreground)
		d.life.ready_fd = go_to_background();
	rc = lives_run(&d, &options);
	ocs_config_destroy(d.config);
	free(d.yaml.fault);
	return d.life.reload ? start_over(argc, argv) : rc;
}
