/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ocs_config.h"
#include "src/rails/agent/agent.h"
#include "src/rails/rails_log.h"
#include "src/util/options.h"
#include "src/util/text.h"

#define EVENTS 256
#define KEY_FD 3
#define WAIT_S 8 /* less than a gate waits for its agent */

enum { JOB = 256, EPOCH, STEP, NODE, RANKS, TOTAL, HOST, PORTS, SOCKET, KEY, WAIT, SYSLOG, PARENT };

static const struct option options[] = {
	{ "job", required_argument, NULL, JOB },
	{ "epoch", required_argument, NULL, EPOCH },
	{ "step", required_argument, NULL, STEP },
	{ "node", required_argument, NULL, NODE },
	{ "ranks", required_argument, NULL, RANKS },
	{ "total", required_argument, NULL, TOTAL },
	{ "host", required_argument, NULL, HOST },
	{ "ports", required_argument, NULL, PORTS },
	{ "socket", required_argument, NULL, SOCKET },
	{ "key-fd", required_argument, NULL, KEY },
	{ "wait", required_argument, NULL, WAIT },
	{ "syslog", no_argument, NULL, SYSLOG },
	{ "parent-fd", required_argument, NULL, PARENT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"Usage: ocs-rails-agent OPTION...\n\n"
	"Serves the ranks of one node while circuits follow the phases of their job.\n\n"
	"spank_ocs.so starts it in every step; the secret of the job is read from descriptor 3.\n\n"
	"      --job N           of Slurm\n"
	"      --epoch N         of its allocation\n"
	"      --step N          of Slurm\n"
	"      --node N          which node of the job this is, from 0\n"
	"      --ranks LIST      the ranks of the step on this node, such as 0-3,8\n"
	"      --total N         ranks of the step\n"
	"      --host NAME       the first node of the job: its controller is there\n"
	"      --ports LOW-HIGH  of the controller (" OCS_RENDEZVOUS_PORTS ")\n"
	"      --socket PATH     where ranks connect; @NAME is an abstract one\n"
	"      --key-fd N        the descriptor of the secret (3)\n"
	"      --wait SECONDS    for the controller (8)\n"
	"      --syslog          faults go to the system's log, too\n"
	"      --parent-fd N     a descriptor of the process with which this one ends\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

int agent_watch(struct agent *agent, int fd, uint32_t events, enum agent_event kind, int number)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (uint64_t)kind << 32 | (uint32_t)number,
	};

	return epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* "0-3,8", ascending. */
static int ranks_parse(struct agent *agent, const char *text, struct ocs_error *err)
{
	char *copy = ocs_strdup(text), *save = NULL;
	int count = 0, rc = 0;

	for (char *part = strtok_r(copy, ",", &save); part && !rc;
	     part = strtok_r(NULL, ",", &save)) {
		char *dash = strchr(part, '-');
		long low = 0, high = 0;

		if (dash)
			*dash++ = '\0';
		rc = ocs_number_parse(part, count ? agent->numbers[count - 1] + 1 : 0,
				      OCS_STEP_RANKS - 1, &low) ||
		     ocs_number_parse(dash ? dash : part, low, OCS_STEP_RANKS - 1, &high);
		if (rc)
			break;
		agent->numbers = ocs_realloc(agent->numbers, (size_t)(count + high - low + 1) *
								     sizeof(*agent->numbers));
		while (low <= high)
			agent->numbers[count++] = (int)low++;
	}
	free(copy);
	if (rc || !count)
		return ocs_error_set(err, OCS_USAGE, "--ranks %s: write ascending numbers, 0-3,8",
				     text);
	agent->hello.count = (uint32_t)count;
	return 0;
}

static int number_parse(const char *name, const char *text, long max, long *value,
			struct ocs_error *err)
{
	if (ocs_number_parse(text, 0, max, value) == 0)
		return 0;
	return ocs_error_set(err, OCS_USAGE, "--%s %s: give a number from 0 to %ld", name, text,
			     max);
}

static int option_take(struct agent *agent, int option, long *key, struct ocs_error *err)
{
	const char *name = ocs_options_name(options, option);
	long value = 0, max = option == EPOCH ? LONG_MAX : option == WAIT ? 3600 : UINT32_MAX;

	if (option == HOST)
		agent->host = optarg;
	else if (option == SOCKET)
		agent->socket = optarg;
	else if (option == SYSLOG)
		agent->syslog = true;
	else if (option == PORTS)
		return ocs_rendezvous_ports(&agent->meet, optarg, err);
	else if (option == RANKS)
		return ranks_parse(agent, optarg, err);
	else if (number_parse(name, optarg, max, &value, err))
		return -1;
	else if (option == JOB)
		agent->meet.job = (uint32_t)value;
	else if (option == EPOCH)
		agent->meet.epoch = (uint64_t)value;
	else if (option == STEP)
		agent->hello.step = (uint32_t)value;
	else if (option == NODE)
		agent->hello.node = (uint32_t)value;
	else if (option == TOTAL)
		agent->hello.total = (uint32_t)value;
	else if (option == WAIT)
		agent->wait_s = (int)value;
	else if (option == PARENT)
		agent->parent = (int)value;
	else
		*key = value;
	return 0;
}

static int options_parse(struct agent *agent, int argc, char **argv, struct ocs_error *err)
{
	static const struct ocs_options line = { "ocs-rails-agent", "", options, usage };
	long key = KEY_FD;
	int option;

	while ((option = ocs_options_next(&line, argc, argv, err)) > 0)
		if (option_take(agent, option, &key, err))
			return -1;
	if (option == OCS_OPTIONS_SAID)
		exit(0);
	if (option)
		return -1;
	if (optind < argc)
		return ocs_error_set(err, OCS_USAGE, "%s: no such argument", argv[optind]);
	if (!agent->host || !agent->socket || !agent->numbers)
		return ocs_error_set(err, OCS_USAGE, "--host, --socket and --ranks are needed");
	if (agent->hello.total > OCS_STEP_RANKS ||
	    (uint32_t)agent->numbers[agent->hello.count - 1] >= agent->hello.total)
		return ocs_error_set(err, OCS_USAGE, "--total is not more than the last rank");
	return ocs_rendezvous_secret((int)key, agent->meet.secret, sizeof(agent->meet.secret), err);
}

static int agent_open(struct agent *agent, struct ocs_error *err)
{
	sigset_t stop;

	agent->epoll = epoll_create1(EPOLL_CLOEXEC);
	agent->ranks = ocs_calloc(agent->hello.count, sizeof(*agent->ranks));
	for (uint32_t i = 0; i < agent->hello.count; i++)
		agent->ranks[i] = (struct local_rank){ agent->numbers[i], .fd = -1, .bell = -1 };
	agent->npeers = 2 * (int)agent->hello.count + 16;
	agent->peers = ocs_calloc((size_t)agent->npeers, sizeof(*agent->peers));
	for (int i = 0; i < agent->npeers; i++)
		agent->peers[i].fd = -1;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	agent->stop = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	if (agent->epoll < 0 || agent->stop < 0 ||
	    agent_watch(agent, agent->stop, EPOLLIN, EVENT_STOP, 0) < 0 ||
	    (agent->parent >= 0 && agent_watch(agent, agent->parent, EPOLLIN, EVENT_STOP, 0) < 0))
		return ocs_error_set(err, OCS_ERROR, "no epoll: %s", strerror(errno));
	return agent_listen(agent, err) || agent_seek(agent, err) ? -1 : 0;
}

static void event_take(struct agent *agent, uint64_t data)
{
	int number = (int)(uint32_t)data;

	switch ((enum agent_event)(data >> 32)) {
	case EVENT_STOP:
		break;
	case EVENT_LISTENER:
		agent_accept(agent);
		break;
	case EVENT_FOUND:
		agent_found(agent);
		break;
	case EVENT_CONTROLLER:
		agent_controller_read(agent);
		break;
	case EVENT_PEER:
		agent_peer(agent, number);
		break;
	case EVENT_BELL:
		agent_bell(agent, number);
		break;
	}
}

static void agent_serve(struct agent *agent)
{
	struct epoll_event events[EVENTS];

	while (!agent_done(agent)) {
		int count = epoll_wait(agent->epoll, events, EVENTS, agent->nqueued ? 1 : -1);

		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 >> 32 == EVENT_STOP)
				return;
			event_take(agent, events[i].data.u64);
		}
		agent_queue_flush(agent);
		agent_flush(agent);
	}
}

int main(int argc, char **argv)
{
	struct agent agent = {
		.wait_s = WAIT_S, .fd = -1, .listener = -1, .found = -1, .parent = -1, .spare = -1
	};
	struct ocs_error err = { 0 };
	int rc;

	signal(SIGPIPE, SIG_IGN);
	ocs_rendezvous_ports(&agent.meet, OCS_RENDEZVOUS_PORTS, NULL);
	rc = options_parse(&agent, argc, argv, &err);
	ocs_rails_log_open("ocs-rails-agent", agent.meet.job, agent.syslog);
	if (rc == 0)
		rc = agent_open(&agent, &err);
	if (rc < 0) {
		ocs_rails_log("%s", err.text);
		/* A thread that seeks may still use what is here. */
		_exit(err.code ? err.code : OCS_ERROR);
	}
	agent_serve(&agent);
	if (agent.found >= 0)
		_exit(0);
	if (agent.fd >= 0)
		close(agent.fd);
	if (agent.socket[0] != '@')
		unlink(agent.socket);
	agent_ranks_free(&agent);
	agent_groups_free(&agent);
	ocs_inbox_free(&agent.inbox);
	ocs_outbox_free(&agent.outbox);
	free(agent.numbers);
	explicit_bzero(agent.meet.secret, sizeof(agent.meet.secret));
	return 0;
}
