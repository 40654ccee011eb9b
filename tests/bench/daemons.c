/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/bench/daemons.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

void daemons_die(const struct ocs_error *err, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", err->text);
	exit(1);
}

static void write_file(struct daemons *d, const char *name, const char *text)
{
	char *path = ocs_asprintf("%s/%s", d->folder, name);
	struct ocs_error err;

	if (ocs_file_write(path, text, strlen(text), 0600, &err))
		daemons_die(&err, "%s", path);
	free(path);
}

static pid_t start(struct daemons *d, const char *program, const char *log,
		   const char *const *arguments)
{
	char *path = ocs_asprintf("%s/src/%s", d->build, program);
	char *file = ocs_asprintf("%s/%s", d->folder, log);
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen(file, "a", stdout) || !freopen(file, "a", stderr))
			_exit(126);
		execv(path, (char *const *)arguments);
		_exit(127);
	}
	free(path);
	free(file);
	return pid;
}

/* An earlier run in the same folder is no part of this one. */
static void forget(const struct daemons *d)
{
	static const char *const left[] = { "state/ocsd.db",	 "state/ocsd.db-wal",
					    "state/ocsd.db-shm", "state/ocsd.lock",
					    "emulator.log",	 "ctl" };

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		char *path = ocs_asprintf("%s/%s", d->folder, left[i]);

		unlink(path);
		free(path);
	}
}

void daemons_start(struct daemons *d, const char *yaml, const char *delay)
{
	char *known = ocs_asprintf("%s/known_hosts", d->folder);
	char *key = ocs_asprintf("%s/host_key", d->folder);
	char *log = ocs_asprintf("%s/emulator.log", d->folder);
	struct ocs_error err;

	forget(d);
	d->yaml = ocs_asprintf("%s/ocs.yaml", d->folder);
	d->control = ocs_asprintf("unix:%s/ctl", d->folder);
	write_file(d, "ocs.yaml", yaml);
	write_file(d, "credentials", "user=admin\npassword=root\n");
	d->fabric = ocs_config_take_fabric(ocs_config_open(d->yaml, &err));
	if (!d->fabric)
		daemons_die(&err, "%s", d->yaml);
	d->placer = ocs_placer_create(d->fabric, &d->fabric->sections[0]);
	d->emulator =
		start(d, "emulator/ocs-emulator", "emulator.err",
		      (const char *const[]){ "ocs-emulator", "--fabric", d->yaml, "--delay", delay,
					     "--log", log, "--control", d->control, "--host-key",
					     key, "--known-hosts", known, NULL });
	for (int i = 0; i < 400 && access(d->control + strlen("unix:"), F_OK); i++)
		usleep(50000);
	free(known);
	free(key);
	free(log);
}

void daemons_start_ocsd(struct daemons *d)
{
	const char *const arguments[] = { "ocsd",     "--foreground", "--log-level", "warning",
					  "--fabric", d->yaml,	      NULL };
	char *address = ocs_asprintf("unix:%s/ocsd.sock", d->folder);
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);
	struct ocs_error err;

	d->ocsd = start(d, "ocsd/ocsd", "ocsd.log", arguments);
	for (d->client = NULL; !d->client;) {
		d->client = ocs_client_open(address, NULL, NULL, 1000, &err);
		if (!d->client &&
		    (ocs_now_ns() > deadline || waitpid(d->ocsd, NULL, WNOHANG) == d->ocsd))
			daemons_die(&err, "ocsd does not come up");
		if (!d->client)
			usleep(20000);
	}
	free(address);
}

void daemons_stop(struct daemons *d)
{
	ocs_client_close(d->client);
	kill(d->ocsd, SIGTERM);
	waitpid(d->ocsd, NULL, 0);
	kill(d->emulator, SIGTERM);
	waitpid(d->emulator, NULL, 0);
	ocs_placer_destroy(d->placer);
	ocs_fabric_destroy(d->fabric);
	free(d->yaml);
	free(d->control);
}

struct json_object *daemons_ask(struct daemons *d, const char *text)
{
	struct json_object *request = json_tokener_parse(text), *reply;
	struct ocs_error err;

	reply = ocs_client_call(d->client, request, PATIENCE_MS, NULL, &err);
	json_object_put(request);
	if (!reply)
		daemons_die(&err, "%s", text);
	return reply;
}

static char *nodes_of(const struct daemons *d, const struct ocs_placement *p)
{
	char **names = ocs_calloc((size_t)p->nnodes, sizeof(*names)), *text;

	for (int i = 0; i < p->nnodes; i++)
		names[i] = d->fabric->nodes[p->nodes[i]].name;
	text = ocs_hostlist_compress(names, (size_t)p->nnodes);
	free(names);
	return text;
}

char *daemons_commit(const struct daemons *d, const struct ocs_placement *p, unsigned int number)
{
	char *nodes = nodes_of(d, p), shape[OCS_SHAPE_TEXT];
	char *text = ocs_asprintf(
		"{\"op\":\"commit\",\"job\":%u,\"epoch\":%u,\"uid\":0,\"user\":\"root\","
		"\"section\":\"pod\",\"partition\":\"tpu\",\"nodes\":\"%s\",\"shape\":\"%s\","
		"\"conn\":\"torus,torus,torus\",\"placement\":\"%s\"}",
		number, number, nodes, ocs_shape_format(&p->shape, shape), p->compact);

	free(nodes);
	return text;
}
