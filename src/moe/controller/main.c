/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs-moe-controller: runs on the first node of a job with experts, as its user. */

#include "ocs_config.h"

#include "src/moe/controller/controller.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/util/options.h"
#include "src/util/text.h"

#define TICK_MS 200
#define KEY_MAX 256

static const char usage[] =
	"Usage: ocs-moe-controller --region FILE --key FILE --ocsd ADDRESS --sockets DIR [OPTION...]\n"
	"       ocs-moe-controller --region FILE --key FILE --relay HOST --node N --sockets DIR [OPTION]\n"
	"\n"
	"Changes the circuits of one job with experts as its gates choose.\n"
	"\n"
	"Gates report at DIR/gate.GROUP, and rank 0 of a group gets its plans at DIR/plan.GROUP; see\n"
	"doc/moe.md.  On a node without the controller a relay offers the same sockets.\n"
	"\n"
	"      --region FILE     region.json of the job's directory\n"
	"      --key FILE        moe.key there; of a relay, relay.key\n"
	"      --ocsd ADDRESS    unix:/path or host:port\n"
	"      --ocsd-key FILE   key of remote lines; default: MUNGE\n"
	"      --ocsd-user USER  account of ocsd\n"
	"      --sockets DIR     a folder of this user, made if it is not there\n"
	"      --layers N        of the model ($OCS_MOE_LAYERS, else 64)\n"
	"      --token-bytes N   that an all-to-all sends for a token ($OCS_MOE_TOKEN_BYTES, else 8192)\n"
	"      --switching FIRST,EACH  seconds until one exchanged circuit carries, and for each further\n"
	"                        one (what region.json has, else 0.05,0.001)\n"
	"      --port PORT       at which ranks listen on optical NICs (7100)\n"
	"      --timeout SECONDS after which an exchange, or a question of a relay, is given up (10)\n"
	"      --relay HOST      be a relay to the controller on HOST, a name or an address\n"
	"      --node N          of a relay: which node of the job this is, from 1\n"
	"      --ports LOW-HIGH  at which relays find the controller (" OCS_RENDEZVOUS_PORTS ")\n"
	"      --parent-fd N     a descriptor of the process with which this one ends\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static volatile sig_atomic_t stop;
static int stop_parent = -1; /* pidfd */

static void stop_note(int number)
{
	(void)number;
	stop = 1;
}

void stop_catch(void)
{
	signal(SIGTERM, stop_note);
	signal(SIGINT, stop_note);
}

bool stop_wanted(void)
{
	struct pollfd parent = { .fd = stop_parent, .events = POLLIN };

	return stop || poll(&parent, 1, 0) > 0;
}

double controller_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct command {
	const char *region, *key, *sockets, *relay, *ports;
	double node, layers, port, parent;
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

static int text_take(struct controller *controller, struct command *command, int option)
{
	const char **place = option == 'r' ? &command->region :
			     option == 'k' ? &command->key :
			     option == 's' ? &command->sockets :
			     option == 'R' ? &command->relay :
			     option == 'P' ? &command->ports :
			     option == 'o' ? &controller->address :
			     option == 'K' ? &controller->ocsd_key :
			     option == 'u' ? &controller->user :
					     NULL;

	if (place)
		*place = optarg;
	return place ? 0 : -1;
}

/* 0, or -1 after a line. */
static int option_take(struct controller *controller, struct command *command, int option)
{
	switch (option) {
	case 'l':
		return number_take("layers", optarg, &command->layers);
	case 'p':
		return number_take("port", optarg, &command->port);
	case 'n':
		return number_take("node", optarg, &command->node);
	case 'F':
		return number_take("parent-fd", optarg, &command->parent);
	case 'b':
		return number_take("token-bytes", optarg, &controller->token_bytes);
	case 't':
		return number_take("timeout", optarg, &controller->timeout);
	case 'w':
		return switching_take(controller, optarg);
	default:
		return text_take(controller, command, option);
	}
}

static const struct option options[] = {
	{ "region", 1, NULL, 'r' },    { "key", 1, NULL, 'k' },
	{ "ocsd", 1, NULL, 'o' },      { "ocsd-key", 1, NULL, 'K' },
	{ "ocsd-user", 1, NULL, 'u' }, { "sockets", 1, NULL, 's' },
	{ "layers", 1, NULL, 'l' },    { "token-bytes", 1, NULL, 'b' },
	{ "switching", 1, NULL, 'w' }, { "port", 1, NULL, 'p' },
	{ "timeout", 1, NULL, 't' },   { "relay", 1, NULL, 'R' },
	{ "node", 1, NULL, 'n' },      { "ports", 1, NULL, 'P' },
	{ "parent-fd", 1, NULL, 'F' }, { "help", 0, NULL, 'h' },
	{ "version", 0, NULL, 'V' },   { NULL, 0, NULL, 0 },
};

/* Whether all is there that a relay needs, or a controller. */
static int command_check(const struct controller *controller, const struct command *command)
{
	bool both = command->region && command->key && command->sockets;

	if (command->relay && (!both || command->node < 1 || controller->address))
		fputs("ocs-moe-controller: a relay needs --region, --key, --sockets and --node, and no "
		      "--ocsd; see ocs-moe-controller --help\n",
		      stderr);
	else if (!command->relay && !(both && controller->address))
		fputs("ocs-moe-controller: --region, --key, --ocsd and --sockets are needed; see "
		      "ocs-moe-controller --help\n",
		      stderr);
	else
		return 0;
	return -1;
}

static int command_read(struct controller *controller, struct command *command, int argc,
			char **argv)
{
	static const struct ocs_options line = { "ocs-moe-controller", "", options, usage };
	const char *chosen = getenv("OCS_MOE_LAYERS"), *bytes = getenv("OCS_MOE_TOKEN_BYTES");
	struct ocs_error err;
	int option, rc = 0;

	if (chosen)
		rc |= number_take("layers", chosen, &command->layers);
	if (bytes)
		rc |= number_take("token-bytes", bytes, &controller->token_bytes);

	while ((option = ocs_options_next(&line, argc, argv, &err)) > 0)
		rc |= option_take(controller, command, option);
	if (option == OCS_OPTIONS_SAID)
		exit(0);
	if (option) {
		fprintf(stderr, "ocs-moe-controller: %s\n", err.text);
		exit(2);
	}
	if (optind < argc) {
		fprintf(stderr, "ocs-moe-controller: %s: no such argument\n", argv[optind]);
		return -1;
	}
	if (ocs_rendezvous_ports(&controller->meet, command->ports, &err) < 0) {
		fprintf(stderr, "ocs-moe-controller: --ports: %s\n", err.text);
		return -1;
	}
	controller->layers = command->layers > 1024 ? 1024 :
			     command->layers < 1    ? 1 :
						      (int)command->layers;
	controller->port =
		command->port >= 1 && command->port < 65536 ? (int)command->port : OCS_REGION_PORT;
	return rc ? -1 : command_check(controller, command);
}

static int folder_open(struct controller *controller, const char *folder, struct ocs_error *err)
{
	int rc = sockets_folder(folder, err);

	for (int g = 0; g < controller->ngroups && rc == 0; g++)
		rc = sockets_open(&controller->groups[g].sockets, folder, g, err);
	return rc;
}

/* Waits until one of all sockets has something, or a tick has passed. */
static void sockets_wait(struct controller *controller, struct pollfd *polls)
{
	int n = 1;

	polls[0] =
		(struct pollfd){ .fd = controller->client ? ocs_client_fd(controller->client) : -1,
				 .events = POLLIN };
	for (int g = 0; g < controller->ngroups; g++, n += SOCKETS_POLLS)
		sockets_poll(&controller->groups[g].sockets, &polls[n]);
	n += relays_poll(controller, &polls[n], controller_now());
	poll(polls, (nfds_t)n, TICK_MS);
}

static void group_serve(struct group *group, const struct pollfd *polls, double now)
{
	if (polls[0].revents)
		group_gates(group, now);
	for (int i = 0; i < ASKERS; i++) {
		struct asker *asker = &group->sockets.asker[i];

		if (!polls[2 + i].revents || asker->fd < 0)
			continue;
		/* what ranks said before they asked */
		group_gates(group, now);
		if (asker_read(asker, now))
			group_ask(group, &asker->step, now);
	}
	if (polls[1].revents)
		asker_accept(&group->sockets);
	group_tick(group, now);
}

/* Answers those of this node whose plan is there, or who have waited too long. */
static void askers_answer(struct group *group, double now)
{
	for (int i = 0; i < ASKERS; i++) {
		struct asker *asker = &group->sockets.asker[i];
		struct ocs_text text = { 0 };

		if (asker->fd >= 0 && asker->waits &&
		    group_answer(group, &asker->step, asker->since, now, &text))
			asker_answer(asker, text.length ? text.data : "", text.length);
		ocs_text_free(&text);
	}
}

static void controller_run(struct controller *controller)
{
	size_t groups = (size_t)controller->ngroups * SOCKETS_POLLS;
	struct pollfd *polls = ocs_calloc(1 + groups + RELAYS_POLLS, sizeof(*polls));

	while (!stop_wanted()) {
		double now;

		ocsd_seek(controller, controller_now());
		sockets_wait(controller, polls);
		now = controller_now();
		if (polls[0].revents)
			ocsd_read(controller, now);
		relays_read(controller, &polls[1 + groups], now);
		for (int g = 0; g < controller->ngroups; g++) {
			struct group *group = &controller->groups[g];

			group_serve(group, &polls[1 + g * SOCKETS_POLLS], now);
			group_orders(group, now);
			askers_answer(group, now);
		}
		report_send(controller, now);
		relays_flush(controller, now);
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

static int controller_main(struct controller *controller, const struct command *command,
			   struct ocs_error *err)
{
	controller->key = key_read(command->key, err);
	if (!controller->key || folder_open(controller, command->sockets, err) < 0)
		return -1;
	relays_listen(controller);
	stop_catch();
	puts("ready");
	fflush(stdout);
	controller_run(controller);
	sockets_remove(command->sockets, controller->ngroups);
	return 0;
}

int main(int argc, char **argv)
{
	struct controller controller = {
		.token_bytes = 8192, .first = -1, .timeout = 10, .listener = -1
	};
	struct command command = {
		.layers = 64, .port = OCS_REGION_PORT, .ports = OCS_RENDEZVOUS_PORTS, .parent = -1
	};
	struct ocs_error err;
	int rc;

	if (command_read(&controller, &command, argc, argv) < 0)
		return 2;
	stop_parent = (int)command.parent;
	signal(SIGPIPE, SIG_IGN);
	rc = region_read(&controller, command.region, &err);
	if (rc == 0 && command.relay)
		rc = relay_run(&controller, command.relay, (int)command.node, command.key,
			       command.sockets, &err);
	else if (rc == 0)
		rc = controller_main(&controller, &command, &err);
	if (rc < 0)
		fprintf(stderr, "ocs-moe-controller: %s\n", err.text);
	ocs_client_close(controller.client);
	relays_free(&controller);
	region_free(&controller);
	free(controller.key);
	return rc ? 1 : 0;
}
