/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Routes of this kernel change while threads send: what leaves by an interface that no route leads to any
 * more.  The kernel counts, by interface.  With a number: how often that happens in so many changes without
 * and with ocs_route_cache_renew, and how long this takes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/node/route_batch.h"
#include "src/node/route_cache.h"
#include "src/util/error.h"
#include "tests/unit/sanitizer.h"

#define SENDERS 32
#define MAIN_TABLE 254
#define DESTINATION "10.98.0.2"

static const char *const links =
	"ip link add x type veth peer name x1 && ip link add y type veth peer name y1 &&"
	" for d in x y; do"
	" sysctl -qw net.ipv6.conf.$d.disable_ipv6=1 net.ipv6.conf.${d}1.disable_ipv6=1;"
	" ip link set $d up && ip link set ${d}1 up &&"
	" ip neigh replace " DESTINATION " lladdr 02:00:00:00:00:01 dev $d nud permanent ||"
	" exit 1; done; ip address add 10.98.0.1/32 dev x";

static atomic_bool stop;
static atomic_uint pause_us; /* of a sender between two datagrams */

static uint32_t address(const char *text)
{
	struct in_addr parsed;

	assert_int_equal(inet_pton(AF_INET, text, &parsed), 1);
	return parsed.s_addr;
}

static void *sender(void *unused)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9000),
				  .sin_addr.s_addr = address(DESTINATION) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	while (!stop) {
		send(fd, "hello", 5, 0);
		usleep(pause_us);
	}
	close(fd);
	return unused;
}

/* Frames that have left by the interface. */
static unsigned long long left_by(const char *device)
{
	FILE *file = fopen("/proc/thread-self/net/dev", "r");
	unsigned long long frames = 0;
	char line[512], name[16];
	bool found = false;

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, " %15[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", name,
			       &frames) == 2 &&
			strcmp(name, device) == 0;
	fclose(file);
	assert_true(found);
	return frames;
}

static void route_set(struct ocs_route_batch *batch, const char *device)
{
	unsigned int index = if_nametoindex(device);
	struct ocs_error err;

	ocs_route_batch_add(batch, address(DESTINATION), &index, 1, 0);
	assert_int_equal(ocs_route_batch_run(batch, &err), 0);
}

/* Whether something still leaves by DEVICE, to which no route leads.  One frame may have been under way. */
static bool is_used(const char *device)
{
	unsigned long long before = 0;
	int with = 0;

	for (int look = 0; look < 4; look++) {
		unsigned long long now = left_by(device);

		with += look && now != before;
		before = now;
		usleep(700);
	}
	return with > 1;
}

/* Routes lead over X for a moment, COUNT times, and back over Y; with CACHE it is renewed then.  Returns after
 * how many a socket still used X. */
static int changes(int count, struct ocs_route_cache *cache)
{
	struct ocs_error err;
	struct ocs_route_batch *batch =
		ocs_route_batch_create(MAIN_TABLE, 99, address("10.98.0.1"), &err);
	pthread_t threads[SENDERS];
	int used = 0;

	assert_non_null(batch);
	route_set(batch, "y");
	stop = false;
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sender, NULL), 0);
	for (int i = 0; i < count; i++) {
		pause_us = 0;
		usleep(500);
		route_set(batch, "x");
		route_set(batch, "y");
		if (cache)
			assert_int_equal(ocs_route_cache_renew(cache, &err), 0);
		pause_us = 500;
		used += is_used("x");
	}
	stop = true;
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	ocs_route_batch_destroy(batch);
	return used;
}

/* In a network namespace of this process. */
static bool links_make(void)
{
	if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0 && system(links) == 0)
		return true;
	fprintf(stderr, "# this needs root, ip and veth\n");
	return false;
}

static void no_socket_keeps_an_old_route(void **state)
{
	struct stat before, after;
	struct ocs_error err;
	struct ocs_route_cache *cache;

	(void)state;
	if (!links_make())
		skip();
	/* Tests of daemons run beside it. */
	assert_int_equal(setpriority(PRIO_PROCESS, 0, 10), 0);
	assert_int_equal(stat("/proc/thread-self/ns/net", &before), 0);
	cache = ocs_route_cache_create(&err);
	assert_non_null(cache);
	assert_int_equal(stat("/proc/thread-self/ns/net", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(changes(cases_here(500), cache), 0);
	ocs_route_cache_destroy(cache);
}

/* In a child: a user who is not root may neither have a namespace nor flush routes. */
static int not_root(void)
{
	struct ocs_error err = { 0 };
	struct ocs_route_cache *cache;

	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		return 2;
	cache = ocs_route_cache_create(&err);
	if (!cache)
		return strstr(err.text, "no network namespace") ? 0 : 3;
	if (ocs_route_cache_renew(cache, &err) == 0)
		return 4;
	ocs_route_cache_destroy(cache);
	return strcmp(err.text, "sockets may still use the routes from before: Permission denied") ?
		       5 :
		       0;
}

static void who_is_not_root_is_told(void **state)
{
	int status = -1;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(not_root());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* How long a renewal takes on average, in us. */
static double renewal_us(struct ocs_route_cache *cache, int count)
{
	struct ocs_error err;
	int64_t begin = now_ns();

	for (int i = 0; i < count; i++)
		assert_int_equal(ocs_route_cache_renew(cache, &err), 0);
	return (double)(now_ns() - begin) / 1e3 / count;
}

static int measure(int count)
{
	struct ocs_error err;
	struct ocs_route_cache *cache = links_make() ? ocs_route_cache_create(&err) : NULL;

	if (count < 1 || !cache)
		return 1;
	printf("a renewal takes %.0f us\n", renewal_us(cache, count));
	printf("a socket kept an old route after %d of %d changes,", changes(count, NULL), count);
	printf(" with renewals after %d\n", changes(count, cache));
	ocs_route_cache_destroy(cache);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_root_is_told),
		cmocka_unit_test(no_socket_keeps_an_old_route),
	};

	if (argc > 1)
		return measure(atoi(argv[1]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
