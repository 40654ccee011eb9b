/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ocs_config.h"
#include "src/rails/controller/controller.h"
#include "src/rails/rails_log.h"
#include "src/util/net.h"
#include "src/util/options.h"
#include "src/util/text.h"

#define EVENTS 512
#define KEY_FD 3
#define TURN_MS 200
#define SECOND INT64_C(1000000000)
#define MILLION INT64_C(1000000)

enum {
	JOB = 256,
	EPOCH,
	OCSD,
	OCSD_USER,
	PORTS,
	KEY,
	TIMEOUT,
	DRAIN,
	GATHER,
	STALL,
	SYSLOG,
	PARENT
};

static const struct option options[] = {
	{ "job", required_argument, NULL, JOB },
	{ "epoch", required_argument, NULL, EPOCH },
	{ "ocsd", required_argument, NULL, OCSD },
	{ "ocsd-user", required_argument, NULL, OCSD_USER },
	{ "ports", required_argument, NULL, PORTS },
	{ "key-fd", required_argument, NULL, KEY },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "drain", required_argument, NULL, DRAIN },
	{ "gather", required_argument, NULL, GATHER },
	{ "stall", required_argument, NULL, STALL },
	{ "syslog", no_argument, NULL, SYSLOG },
	{ "parent-fd", required_argument, NULL, PARENT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"Usage: ocs-rails-controller OPTION...\n\n"
	"Changes the circuits of one job on rails as the phases of its ranks want them.\n\n"
	"spank_ocs.so starts it on the first node; the job's key is read from descriptor 3.\n\n"
	"      --job N           of Slurm\n"
	"      --epoch N         of its allocation\n"
	"      --ocsd ADDRESS    unix:/path or host:port\n"
	"      --ocsd-user NAME  the account of ocsd (ocsd, or root)\n"
	"      --ports LOW-HIGH  one of these is for agents (" OCS_RENDEZVOUS_PORTS ")\n"
	"      --key-fd N        the descriptor of the key (3)\n"
	"      --timeout S       until a topology is asked for again (10)\n"
	"      --drain S         a rail in trouble waits for operations at most (30)\n"
	"      --gather S        agents of a step have to come within (60)\n"
	"      --stall S         a rank that keeps others waiting is named after (300; 0: never)\n"
	"      --syslog          faults go to the system's log, too\n"
	"      --parent-fd N     a descriptor of the process with which this one ends\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

int controller_watch(struct controller *controller, int fd, uint32_t events,
		     enum controller_event kind, struct link *link)
{
	struct epoll_event event = { .events = events };

	/* No struct lies at an address as small as a kind. */
	if (kind == EVENT_LINK)
		event.data.ptr = link;
	else
		event.data.u64 = kind;
	return epoll_ctl(controller->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int option_take(struct controller *controller, int option, long *key, struct ocs_error *err)
{
	long value = 0, max = option == EPOCH ? LONG_MAX : option == JOB ? UINT32_MAX : 86400;

	if (option == OCSD) {
		controller->address = optarg;
		return ocs_net_address_check(optarg, err);
	}
	if (option == OCSD_USER)
		controller->user = optarg;
	else if (option == SYSLOG)
		controller->syslog = true;
	else if (option == PORTS)
		return ocs_rendezvous_ports(&controller->meet, optarg, err);
	else if (ocs_number_parse(optarg, 0, max, &value))
		return ocs_error_set(err, OCS_USAGE, "--%s %s: give a number from 0 to %ld",
				     ocs_options_name(options, option), optarg, max);
	else if (option == JOB)
		controller->meet.job = (uint32_t)value;
	else if (option == EPOCH)
		controller->meet.epoch = (uint64_t)value;
	else if (option == TIMEOUT)
		controller->timeout = value * SECOND;
	else if (option == DRAIN)
		controller->drain = value * SECOND;
	else if (option == GATHER)
		controller->gather = value * SECOND;
	else if (option == STALL)
		controller->stall = value * SECOND;
	else if (option == PARENT)
		controller->parent = (int)value;
	else
		*key = value;
	return 0;
}

static int options_parse(struct controller *controller, int argc, char **argv,
			 struct ocs_error *err)
{
	static const struct ocs_options line = { "ocs-rails-controller", "", options, usage };
	long key = KEY_FD;
	int option;

	while ((option = ocs_options_next(&line, argc, argv, err)) > 0)
		if (option_take(controller, option, &key, err))
			return -1;
	if (option == OCS_OPTIONS_SAID)
		exit(0);
	if (option)
		return -1;
	if (optind < argc)
		return ocs_error_set(err, OCS_USAGE, "%s: no such argument", argv[optind]);
	if (!controller->address || !controller->meet.job || !controller->meet.epoch)
		return ocs_error_set(err, OCS_USAGE, "--ocsd, --job and --epoch are needed");
	if (ocs_rendezvous_secret((int)key, controller->key, sizeof(controller->key), err))
		return -1;
	controller->key_fd = (int)key;
	ocs_rendezvous_derive(&controller->meet, controller->key);
	return 0;
}

/* A descriptor for each node: more than sessions of users often have. */
static void files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int controller_open(struct controller *controller, struct ocs_error *err)
{
	sigset_t stop;

	files_raise();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	controller->epoll = epoll_create1(EPOLL_CLOEXEC);
	controller->stop = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	controller->found = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (controller->epoll < 0 || controller->stop < 0 || controller->found < 0)
		return ocs_error_set(err, OCS_ERROR, "no epoll: %s", strerror(errno));
	controller->listener = ocs_rendezvous_listen(&controller->meet, err);
	if (controller->listener < 0)
		return -1;
	if (controller_watch(controller, controller->stop, EPOLLIN, EVENT_STOP, NULL) < 0 ||
	    (controller->parent >= 0 &&
	     controller_watch(controller, controller->parent, EPOLLIN, EVENT_STOP, NULL) < 0) ||
	    controller_watch(controller, controller->found, EPOLLIN, EVENT_FOUND, NULL) < 0 ||
	    controller_watch(controller, controller->listener, EPOLLIN, EVENT_LISTENER, NULL) < 0)
		return ocs_error_set(err, OCS_ERROR, "epoll: %s", strerror(errno));
	return 0;
}

/* How long nothing has to be done, as epoll_wait takes it. */
static int idle_ms(const struct controller *controller, int64_t now)
{
	int64_t next = step_deadline(controller), other = ocsd_deadline(controller);
	int64_t fault = faults_deadline(controller);

	if (other < next)
		next = other;
	if (fault < next)
		next = fault;
	for (const struct link *link = controller->links; link; link = link->next)
		if (!link->proven && link->deadline < next)
			next = link->deadline;
	if (controller->again)
		return 0;
	if (next == INT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	return next - now > 60000 * MILLION ? 60000 : (int)((next - now) / MILLION) + 1;
}

/* False: it is to end. */
static bool event_take(struct controller *controller, const struct epoll_event *event)
{
	if (event->data.u64 == EVENT_STOP)
		return false;
	if (event->data.u64 == EVENT_LISTENER)
		links_accept(controller);
	else if (event->data.u64 == EVENT_FOUND)
		ocsd_found(controller);
	else if (event->data.u64 == EVENT_OCSD)
		ocsd_read(controller);
	else
		link_read(controller, event->data.ptr);
	return true;
}

static void controller_serve(struct controller *controller)
{
	struct epoll_event events[EVENTS];
	bool goes_on = true;

	while (goes_on) {
		int64_t now = ocs_now_ns();
		int count;

		controller->again = false;
		step_tick(controller, now);
		faults_tick(controller, now);
		step_outputs(controller);
		ocsd_flush(controller, now);
		links_flush(controller);
		count = epoll_wait(controller->epoll, events, EVENTS, idle_ms(controller, now));
		for (int i = 0; i < count && goes_on; i++)
			goes_on = event_take(controller, &events[i]);
	}
}

/* The user may want to know sooner. */
static void stall_default(struct controller *controller)
{
	const char *text = getenv("OCS_RAILS_STALL");
	long value;

	if (text && ocs_number_parse(text, 0, 86400, &value) == 0)
		controller->stall = value * SECOND;
}

/* The descriptor of the key is locked by the controller of this job that serves: others wait until it has ended. */
static int turn_await(const struct controller *controller, struct ocs_error *err)
{
	struct pollfd parent = { .fd = controller->parent, .events = POLLIN };

	if (controller->parent < 0) {
		while (flock(controller->key_fd, LOCK_EX) < 0 && errno == EINTR)
			;
		return 0;
	}
	while (flock(controller->key_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		if (poll(&parent, 1, TURN_MS) > 0)
			return ocs_error_set(err, OCS_ERROR, "the step has ended");
	return 0;
}

int main(int argc, char **argv)
{
	struct controller controller = {
		.timeout = 10 * SECOND,
		.drain = 30 * SECOND,
		.gather = 60 * SECOND,
		.stall = 300 * SECOND,
		.parent = -1,
		.spare = -1,
	};
	struct ocs_error err = { 0 };
	int rc;

	signal(SIGPIPE, SIG_IGN);
	ocs_rendezvous_ports(&controller.meet, OCS_RENDEZVOUS_PORTS, NULL);
	stall_default(&controller);
	rc = options_parse(&controller, argc, argv, &err);
	if (rc == 0)
		rc = turn_await(&controller, &err);
	ocs_rails_log_open("ocs-rails-controller", controller.meet.job, controller.syslog);
	if (rc == 0)
		rc = controller_open(&controller, &err);
	if (rc < 0) {
		ocs_rails_log("%s", err.text);
		return err.code ? err.code : OCS_ERROR;
	}
	controller.senders = senders_create();
	controller_serve(&controller);
	senders_destroy(controller.senders);
	steps_free(&controller);
	links_free(&controller);
	ocsd_close(&controller);
	close(controller.listener);
	explicit_bzero(controller.key, sizeof(controller.key));
	explicit_bzero(controller.meet.secret, sizeof(controller.meet.secret));
	return 0;
}
