/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Queues of this kernel: datagrams that wait for their turn at a port that is slow, and are counted at the
 * other end.  With a number: how long one look at ports with nothing to send takes, of so many. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/node/port_queues.h"
#include "src/node/route_cache.h"
#include "src/util/error.h"
#include "src/util/net.h"

#define PORTS 5
#define DATAGRAMS 64
#define SECOND INT64_C(1000000000)

/* One slow queue; four of which two are slow; as the kernel makes it; none at all; gone. */
static const char *const names[PORTS] = { "slow", "many", "usual", "none", "gone" };
static const char *const links =
	"add() { ip link add $1 ${2:-} type veth peer name ${1}1 &&"
	" sysctl -qw net.ipv6.conf.$1.disable_ipv6=1 net.ipv6.conf.${1}1.disable_ipv6=1 &&"
	" ip link set $1 up && ip link set ${1}1 up &&"
	" ip neigh replace $3 lladdr 02:00:00:00:00:01 dev $1 nud permanent &&"
	" ip route replace $3 dev $1; };"
	" limit='tbf rate 4mbit burst 1600 limit 1000000';"
	" add slow '' 10.97.0.1 && add many 'numtxqueues 4' 10.97.0.2 && add usual '' 10.97.0.3 &&"
	" add none '' 10.97.0.4 && add gone '' 10.97.0.5 && ip address add 10.97.0.9/32 dev slow &&"
	" tc qdisc add dev slow root $limit && tc qdisc add dev many root handle 1: mq &&"
	" tc qdisc add dev many parent 1:1 $limit && tc qdisc add dev many parent 1:2 $limit &&"
	" tc qdisc add dev many parent 1:3 $limit && tc qdisc add dev many parent 1:4 $limit &&"
	" tc qdisc add dev usual root pfifo_fast";

struct setup {
	struct ocs_port_queues *queues;
	struct ocs_route_cache *cache;
};

/* Frames that have come to the other end of PORT. */
static unsigned long long arrived(int port)
{
	FILE *file = fopen("/proc/thread-self/net/dev", "r");
	unsigned long long frames = 0;
	char line[512], name[16], end[16];
	bool found = false;

	assert_non_null(file);
	snprintf(end, sizeof(end), "%s1", names[port]);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, " %15[^:]: %*u %llu", name, &frames) == 2 &&
			strcmp(name, end) == 0;
	fclose(file);
	assert_true(found);
	return frames;
}

/* Sends datagrams of 1000 bytes by PORT, each from a socket of its own: they spread over its queues. */
static void datagrams_send(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9000) };
	static const char data[1000];

	to.sin_addr.s_addr = htonl(0x0a610001U + (uint32_t)port);
	for (int i = 0; i < DATAGRAMS; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		assert_int_equal(sendto(fd, data, sizeof(data), 0,
					(const struct sockaddr *)(const void *)&to, sizeof(to)),
				 sizeof(data));
		close(fd);
	}
}

/* In a network namespace of this process. */
static bool setup_make(struct setup *s)
{
	unsigned int indices[PORTS];
	struct ocs_error err;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) || system(links)) {
		fprintf(stderr, "# this needs root, ip, tc and veth\n");
		return false;
	}
	for (int p = 0; p < PORTS; p++)
		indices[p] = if_nametoindex(names[p]);
	assert_int_equal(system("ip link del gone"), 0);
	s->cache = ocs_route_cache_create(&err);
	s->queues = ocs_port_queues_create(names, indices, PORTS, &err);
	assert_non_null(s->cache);
	assert_non_null(s->queues);
	return true;
}

static void setup_free(struct setup *s)
{
	ocs_port_queues_destroy(s->queues);
	ocs_route_cache_destroy(s->cache);
}

static int queues_wait(struct setup *s, uint64_t *ports, int64_t ns)
{
	struct ocs_error err;

	return ocs_port_queues_wait(s->queues, s->cache, ports, ocs_now_ns() + ns, &err);
}

/* What was sent by PORT is seen while it waits, and there when the wait is over. */
static void slow_check(struct setup *s, int port)
{
	unsigned long long before = arrived(port);
	uint64_t ports = (UINT64_C(1) << PORTS) - 1;
	struct ocs_error err;
	int64_t held;

	datagrams_send(port);
	held = ocs_port_queues_held(s->queues, (size_t)port, &err);
	assert_in_range(held, 1000, DATAGRAMS * 1042);
	/* the others have nothing to send */
	assert_int_equal(queues_wait(s, &ports, 0), 1);
	assert_int_equal(ports, UINT64_C(1) << port);
	assert_true(arrived(port) - before < DATAGRAMS);
	assert_int_equal(queues_wait(s, &ports, 60 * SECOND), 0);
	assert_int_equal(ports, 0);
	assert_int_equal(arrived(port) - before, DATAGRAMS);
	assert_int_equal(ocs_port_queues_held(s->queues, (size_t)port, &err), 0);
}

static void what_waits_is_awaited(void **state)
{
	struct setup s;
	uint64_t ports = 0;

	(void)state;
	if (!setup_make(&s))
		skip();
	assert_int_equal(queues_wait(&s, &ports, 0), 0);
	ports = (UINT64_C(1) << PORTS) - 1;
	assert_int_equal(queues_wait(&s, &ports, 0), 0);
	for (int round = 0; round < 3; round++) {
		slow_check(&s, 0);
		slow_check(&s, 1);
	}
	for (int p = 2; p < 4; p++) {
		unsigned long long before = arrived(p);

		datagrams_send(p);
		ports = UINT64_C(1) << p;
		assert_int_equal(queues_wait(&s, &ports, 60 * SECOND), 0);
		assert_int_equal(arrived(p) - before, DATAGRAMS);
	}
	setup_free(&s);
}

static int measure(int count)
{
	struct setup s;
	int64_t begin;

	if (count < 1 || !setup_make(&s))
		return 1;
	begin = ocs_now_ns();
	for (int i = 0; i < count; i++) {
		uint64_t ports = (UINT64_C(1) << PORTS) - 1;

		if (queues_wait(&s, &ports, SECOND))
			return 1;
	}
	printf("a look at %d ports with nothing to send takes %.0f us\n", PORTS,
	       (double)(ocs_now_ns() - begin) / 1e3 / count);
	setup_free(&s);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_awaited),
	};

	if (argc > 1)
		return measure(atoi(argv[1]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
