/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs-moe-controller: runs on the first node of a job with experts, as its user. */

#include "ocs_config.h"

#include "src/moe/controller/controller.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/util/text.h"

#define TICK_MS 200
#define KEY_MAX 256

static const char usage[] =
	"Usage: ocs-moe-controller --region FILE --key FILE --ocsd ADDRESS --sockets DIR [OPTION...]\n"
	"\n"
	"Changes the circuits of one job with experts as its gates choose.\n"
	"\n"
	"Gates report at DIR/gate.GROUP, and rank 0 of a group gets its plans at DIR/plan.GROUP; see\n"
	"doc/moe.md.\n"
	"\n"
	"      --region FILE     region.json of the job's directory\n"
	"      --key FILE        moe.key there\n"
	"      --ocsd ADDRESS    unix:/path or host:port\n"
	"      --ocsd-key FILE   key of remote lines; default: MUNGE\n"
	"      --ocsd-user USER  account of ocsd\n"
	"      --sockets DIR     a folder of this user, made if it is not there\n"
	"      --layers N        of the model ($OCS_MOE_LAYERS, else 64)\n"
	"      --token-bytes N   that an all-to-all sends for a token ($OCS_MOE_TOKEN_BYTES, else 8192)\n"
	"      --switching FIRST,EACH  seconds until one exchanged circuit carries, and for each further\n"
	"                        one (0.05,0.001)\n"
	"      --port PORT       at which ranks listen on optical NICs (7100)\n"
	"      --timeout SECONDS after which an exchange is given up (10)\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static volatile sig_atomic_t stop;

static void stop_note(int number)
{
	(void)number;
	stop = 1;
}

double controller_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct command {
	const char *region, *key, *sockets;
};

static int number_take(const char *name, const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end != text && !*end && *value > 0 && *value < 1e12)
		return 0;
	fprintf(stderr, "ocs-moe-controller: --%s takes a number above 0, not %s\n", name, text);
	return -1;
}

static int switching_take(struct controller *controller, const char *text)
{
	if (sscanf(text, "%lf,%lf", &controller->first, &controller->each) == 2 &&
	    controller->first >= 0 && controller->each >= 0)
		return 0;
	fprintf(stderr, "ocs-moe-controller: --switching takes two times such as 0.05,0.001\n");
	return -1;
}

static int command_read(struct controller *controller, struct command *command, int argc,
			char **argv)
{
	static const struct option options[] = {
		{ "region", 1, NULL, 'r' },    { "key", 1, NULL, 'k' },
		{ "ocsd", 1, NULL, 'o' },      { "ocsd-key", 1, NULL, 'K' },
		{ "ocsd-user", 1, NULL, 'u' }, { "sockets", 1, NULL, 's' },
		{ "layers", 1, NULL, 'l' },    { "token-bytes", 1, NULL, 'b' },
		{ "switching", 1, NULL, 'w' }, { "port", 1, NULL, 'p' },
		{ "timeout", 1, NULL, 't' },   { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' },   { NULL, 0, NULL, 0 },
	};
	const char *chosen = getenv("OCS_MOE_LAYERS"), *bytes = getenv("OCS_MOE_TOKEN_BYTES");
	double layers = 64, port = 7100;
	int option, rc = 0;

	if (chosen)
		rc |= number_take("layers", chosen, &layers);
	if (bytes)
		rc |= number_take("token-bytes", bytes, &controller->token_bytes);

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
		switch (option) {
		case 'r':
			command->region = optarg;
			break;
		case 'k':
			command->key = optarg;
			break;
		case 's':
			command->sockets = optarg;
			break;
		case 'o':
			controller->address = optarg;
			break;
		case 'K':
			controller->ocsd_key = optarg;
			break;
		case 'u':
			controller->user = optarg;
			break;
		case 'l':
			rc |= number_take("layers", optarg, &layers);
			break;
		case 'p':
			rc |= number_take("port", optarg, &port);
			break;
		case 'b':
			rc |= number_take("token-bytes", optarg, &controller->token_bytes);
			break;
		case 't':
			rc |= number_take("timeout", optarg, &controller->timeout);
			break;
		case 'w':
			rc |= switching_take(controller, optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("slurm-ocs " PACKAGE_VERSION);
			exit(0);
		default:
			fprintf(stderr, "ocs-moe-controller: %s: %s\n", argv[optind - 1],
				option == ':' ? "needs a value" : "no such option");
			return -1;
		}
	}
	controller->layers = layers > 1024 ? 1024 : layers < 1 ? 1 : (int)layers;
	controller->port = port >= 1 && port < 65536 ? (int)port : 7100;
	if (rc)
		return -1;
	if (optind == argc && command->region && command->key && command->sockets &&
	    controller->address)
		return 0;
	fputs("ocs-moe-controller: --region, --key, --ocsd and --sockets are needed, and nothing but "
	      "options; see ocs-moe-controller --help\n",
	      stderr);
	return -1;
}

/* The folder is this user's alone. */
static int folder_make(const char *path, struct ocs_error *err)
{
	struct stat found;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	if (lstat(path, &found) < 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
	    (found.st_mode & 077))
		return ocs_error_set(err, OCS_ERROR, "%s is not a folder of this user alone", path);
	return 0;
}

static int sockets_open(struct controller *controller, const char *folder, struct ocs_error *err)
{
	int rc = folder_make(folder, err);

	for (int g = 0; g < controller->ngroups && rc == 0; g++) {
		struct group *group = &controller->groups[g];
		char *gate = ocs_asprintf("%s/gate.%d", folder, g);
		char *plan = ocs_asprintf("%s/plan.%d", folder, g);

		group->gate = ocs_moe_gate_listen(gate);
		if (group->gate < 0)
			rc = ocs_error_set(err, OCS_ERROR, "%s: %s", gate, strerror(errno));
		else
			rc = askers_listen(group, plan, err);
		free(gate);
		free(plan);
	}
	return rc;
}

/* What sockets_open made: on SIGTERM, as at the end of a job that is cancelled.  A controller that is killed
 * leaves it, and the next one takes it over. */
static void sockets_remove(const struct controller *controller, const char *folder)
{
	for (int g = 0; g < controller->ngroups; g++) {
		char *gate = ocs_asprintf("%s/gate.%d", folder, g);
		char *plan = ocs_asprintf("%s/plan.%d", folder, g);

		unlink(gate);
		unlink(plan);
		free(gate);
		free(plan);
	}
	rmdir(folder); /* unless there is something else */
}

static void pollfd_set(struct pollfd *polls, int fd)
{
	*polls = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Waits until one of all sockets has something, or a tick has passed. */
static void sockets_wait(struct controller *controller, struct pollfd *polls)
{
	int n = 0;

	pollfd_set(&polls[n++], controller->client ? ocs_client_fd(controller->client) : -1);
	for (int g = 0; g < controller->ngroups; g++) {
		const struct group *group = &controller->groups[g];

		pollfd_set(&polls[n++], group->gate);
		pollfd_set(&polls[n++], group->listener);
		for (int i = 0; i < ASKERS; i++)
			pollfd_set(&polls[n++], group->asker[i].fd);
	}
	poll(polls, (nfds_t)n, TICK_MS);
}

static void group_serve(struct group *group, const struct pollfd *polls, double now)
{
	if (polls[0].revents)
		group_gates(group, now);
	for (int i = 0; i < ASKERS; i++)
		if (polls[2 + i].revents && group->asker[i].fd >= 0) {
			/* what ranks said before they asked */
			group_gates(group, now);
			asker_read(group, &group->asker[i], now);
		}
	if (polls[1].revents)
		asker_accept(group);
	group_tick(group, now);
}

static void controller_run(struct controller *controller)
{
	size_t each = 2 + ASKERS;
	struct pollfd *polls = ocs_calloc(1 + (size_t)controller->ngroups * each, sizeof(*polls));

	while (!stop) {
		double now;

		ocsd_seek(controller, controller_now());
		sockets_wait(controller, polls);
		now = controller_now();
		if (polls[0].revents)
			ocsd_read(controller, now);
		for (int g = 0; g < controller->ngroups; g++) {
			struct group *group = &controller->groups[g];

			group_serve(group, &polls[1 + (size_t)g * each], now);
			group_orders(group, now);
			askers_answer(group, now);
		}
	}
	free(polls);
}

static char *key_read(const char *path, struct ocs_error *err)
{
	char *key = ocs_file_read(path, KEY_MAX, NULL, err);

	if (key)
		key[strcspn(key, "\n")] = '\0';
	return key;
}

int main(int argc, char **argv)
{
	struct controller controller = {
		.token_bytes = 8192, .first = 0.05, .each = 0.001, .timeout = 10
	};
	struct command command = { 0 };
	struct ocs_error err;
	int rc = 1;

	if (command_read(&controller, &command, argc, argv) < 0)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, stop_note);
	signal(SIGINT, stop_note);
	if (region_read(&controller, command.region, &err) == 0 &&
	    (controller.key = key_read(command.key, &err)) &&
	    sockets_open(&controller, command.sockets, &err) == 0) {
		puts("ready");
		fflush(stdout);
		controller_run(&controller);
		sockets_remove(&controller, command.sockets);
		rc = 0;
	} else {
		fprintf(stderr, "ocs-moe-controller: %s\n", err.text);
	}
	ocs_client_close(controller.client);
	region_free(&controller);
	free(controller.key);
	return rc;
}
