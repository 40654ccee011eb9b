/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The all-to-all of src/moe/job between processes on addresses of this machine: every byte is checked,
 * whatever the plan says, and whoever fails, all others hear of it. */

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/moe/job/ocs_moe.h"
#include "tests/unit/moe/gates.h"

#define RANKS 8
#define CHUNK 4096
#define CALLS 5
#define LINKS 12
#define SHARES 40

/* What the processes of a test know of each other. */
struct shared {
	int rc[RANKS]; /* 0 right, 1 wrong bytes, 2 a call failed, 3 not opened */
	char error[RANKS][256];
	struct ocs_moe_stats stats[RANKS];
	int ready;
};

struct scene {
	uint64_t seed;
	int ranks, each, links, shares, calls, idle_ms;
	size_t most; /* bytes of a pair */
	struct ocs_moe_link link[LINKS];
	struct ocs_moe_share share[SHARES];
	char text[LINKS][2][32];
	char address[RANKS][32];
	const char *addresses[RANKS];
	unsigned char key[OCS_MOE_KEY];
	struct shared *shared;
	pid_t pid[RANKS];
	int odd, odd_call; /* a rank that does something else in a call, -1: none */
	void (*odd_do)(struct scene *, struct ocs_moe *);
};

static int number;  /* of the scene: addresses of its own, */
static int network; /* in 127.NETWORK.0.0/16, which no other process of these tests has */

static void network_take(void)
{
	for (network = 1 + getpid() % 250;; network = 1 + network % 250) {
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7000) };
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		at.sin_addr.s_addr = htonl((127U << 24) + ((unsigned int)network << 16) + 1);
		/* Stays open while this process lives. */
		if (!bind(fd, (struct sockaddr *)&at, sizeof(at)))
			return;
		close(fd);
	}
}

static uint64_t mix(uint64_t x)
{
	gate_random(&x);
	return x * UINT64_C(0x9e3779b97f4a7c15) ^ x >> 29;
}

static size_t pair_bytes(const struct scene *s, int call, int from, int to)
{
	uint64_t x = mix(s->seed * 1000003 + (uint64_t)call * 10007 + (uint64_t)from * 101 +
			 (uint64_t)to);

	return x % 5 ? (size_t)(x >> 8) % (s->most + 1) : 0;
}

static unsigned char pair_byte(int call, int from, int to, size_t k)
{
	return (unsigned char)(k * 31 + k / 4096 * 7 + (size_t)call * 3 + (size_t)from * 11 +
			       (size_t)to * 17);
}

static void scene_make(struct scene *s, int seed, int ranks, int each)
{
	memset(s, 0, sizeof(*s));
	number++;
	s->seed = (uint64_t)seed;
	s->ranks = ranks;
	s->each = each;
	s->calls = CALLS;
	s->idle_ms = 60000;
	s->most = 120000;
	s->odd = -1;
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int r = 0; r < ranks; r++) {
		snprintf(s->address[r], sizeof(s->address[r]), "127.%d.%d.%d:7000", network, number,
			 1 + r);
		s->addresses[r] = s->address[r];
	}
	memset(s->key, seed + 1, sizeof(s->key));
}

static void link_make(struct scene *s, int a, int b)
{
	int k = s->links++;

	snprintf(s->text[k][0], 32, "127.%d.%d.%d:7000", network, number, 100 + 2 * k);
	snprintf(s->text[k][1], 32, "127.%d.%d.%d:7000", network, number, 101 + 2 * k);
	s->link[k] = (struct ocs_moe_link){ (uint32_t)k + 1, a, b, s->text[k][0], s->text[k][1] };
}

/* One all-to-all, each byte of it checked. */
static int call_check(struct scene *s, struct ocs_moe *moe, int rank, int call)
{
	size_t out[RANKS], out_at[RANKS], in[RANKS], in_at[RANKS], sent = 0, got = 0;
	unsigned char *send, *receive;
	int rc = 0;

	for (int j = 0; j < s->ranks; j++) {
		out[j] = pair_bytes(s, call, rank, j);
		in[j] = pair_bytes(s, call, j, rank);
		out_at[j] = sent;
		in_at[j] = got;
		sent += out[j];
		got += in[j];
	}
	send = malloc(sent + 1);
	receive = malloc(got + 1);
	memset(receive, 0xaa, got + 1);
	for (int j = 0; j < s->ranks; j++)
		for (size_t k = 0; k < out[j]; k++)
			send[out_at[j] + k] = pair_byte(call, rank, j, k);
	if (ocs_moe_alltoall(moe, send, out, out_at, receive, in, in_at))
		rc = 2;
	for (int j = 0; !rc && j < s->ranks; j++)
		for (size_t k = 0; k < in[j]; k++)
			if (receive[in_at[j] + k] != pair_byte(call, j, rank, k))
				rc = 1;
	rc = !rc && receive[got] != 0xaa ? 1 : rc;
	free(send);
	free(receive);
	return rc;
}

static int rank_run(struct scene *s, int rank)
{
	struct ocs_moe_options options = { .rank = rank,
					   .ranks = s->ranks,
					   .address = s->addresses,
					   .key = s->key,
					   .open_ms = 60000,
					   .idle_ms = s->idle_ms,
					   .dark_ms = 5000,
					   .chunk = CHUNK };
	char *error = s->shared->error[rank];
	struct ocs_moe *moe = ocs_moe_open(&options, error, 256);
	struct ocs_moe_way *ways;
	int count, rc = 0;

	if (!moe)
		return 3;
	__atomic_add_fetch(&s->shared->ready, 1, __ATOMIC_SEQ_CST);
	if (ocs_moe_links(moe, s->link, s->links, 60000) < 0)
		rc = 2;
	ways = ocs_moe_ways_make(rank, s->ranks, s->each, s->share, s->shares, s->link, s->links,
				 &count);
	if (ocs_moe_ways(moe, ways, count))
		rc = 2;
	free(ways);
	for (int call = 0; !rc && call < s->calls; call++) {
		if (rank == s->odd && call == s->odd_call)
			s->odd_do(s, moe);
		rc = call_check(s, moe, rank, call);
	}
	snprintf(error, 256, "%s", ocs_moe_error(moe));
	s->shared->stats[rank] = *ocs_moe_stats(moe);
	ocs_moe_close(moe);
	return rc;
}

static void scene_start(struct scene *s)
{
	for (int r = 0; r < s->ranks; r++) {
		s->pid[r] = fork();
		if (!s->pid[r]) {
			s->shared->rc[r] = rank_run(s, r);
			_exit(0);
		}
	}
}

static void scene_wait(struct scene *s)
{
	int status;

	for (int r = 0; r < s->ranks; r++) {
		if (r == s->odd)
			continue;
		waitpid(s->pid[r], &status, 0);
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	}
}

static void scene_free(struct scene *s)
{
	munmap(s->shared, sizeof(*s->shared));
}

/* Shares between servers at random; some over circuits that are not there, some more than whole. */
static void shares_draw(struct scene *s, int seed)
{
	uint64_t state = (uint64_t)seed * 31 + 7;
	int servers = s->ranks / s->each;

	for (int k = 0; k < LINKS && servers > 1; k++) {
		int a = (int)(gate_random(&state) * s->ranks);
		int b = (int)(gate_random(&state) * s->ranks);

		if (a / s->each != b / s->each)
			link_make(s, a, b);
	}
	while (s->shares < SHARES) {
		struct ocs_moe_share *share = &s->share[s->shares++];

		*share = (struct ocs_moe_share){
			.from = (int)(gate_random(&state) * servers),
			.to = (int)(gate_random(&state) * servers),
			.relay = (int)(gate_random(&state) * (servers + 1)) - 1,
			.first = gate_random(&state) < 0.7,
			.second = gate_random(&state) < 0.7,
			.share = gate_random(&state) * 0.6
		};
		if (share->relay == share->from || share->relay == share->to)
			share->relay = -1;
	}
}

static void every_byte_arrives(void **state)
{
	uint64_t circuits = 0, packets = 0, relayed = 0;

	(void)state;
	for (int seed = 0; seed < 8; seed++) {
		struct scene s;
		int each = 1 + seed % 2;

		scene_make(&s, seed, each * (2 + seed % 3), each);
		shares_draw(&s, seed);
		scene_start(&s);
		scene_wait(&s);
		for (int r = 0; r < s.ranks; r++) {
			if (s.shared->rc[r])
				print_message("# rank %d: %d %s\n", r, s.shared->rc[r],
					      s.shared->error[r]);
			assert_int_equal(s.shared->rc[r], 0);
			circuits += s.shared->stats[r].circuits;
			packets += s.shared->stats[r].packets;
			relayed += s.shared->stats[r].relayed;
			/* Four chunks of a class on each connection, and a few words. */
			assert_true(s.shared->stats[r].memory <=
				    (uint64_t)(s.ranks + LINKS) * 5 * 4 * CHUNK);
		}
		scene_free(&s);
	}
	assert_true(circuits > 1000000 && packets > 1000000 && relayed > 1000000);
}

/* Whatever was there is there: one way in and out, cut after BYTES. */
static void proxy_run(const char *address, const char *to, size_t bytes)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7000) };
	int listen_fd = socket(AF_INET, SOCK_STREAM, 0), fd[2], one = 1;
	char buffer[4096], host[64];
	size_t passed = 0;

	snprintf(host, sizeof(host), "%s", address);
	*strchr(host, ':') = '\0';
	inet_pton(AF_INET, host, &at.sin_addr);
	setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listen_fd, (struct sockaddr *)&at, sizeof(at)) || listen(listen_fd, 1))
		_exit(1);
	fd[0] = accept(listen_fd, NULL, NULL);
	snprintf(host, sizeof(host), "%s", to);
	*strchr(host, ':') = '\0';
	inet_pton(AF_INET, host, &at.sin_addr);
	for (;;) {
		fd[1] = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd[1], (struct sockaddr *)&at, sizeof(at)))
			break;
		close(fd[1]);
		usleep(10000);
	}
	while (passed < bytes) {
		struct pollfd p[2] = { { fd[0], POLLIN, 0 }, { fd[1], POLLIN, 0 } };

		poll(p, 2, -1);
		for (int k = 0; k < 2; k++) {
			ssize_t got = p[k].revents ? read(fd[k], buffer, sizeof(buffer)) : 0;

			if (p[k].revents && got <= 0)
				_exit(0);
			if (got > 0 && write(fd[!k], buffer, (size_t)got) == got)
				passed += (size_t)got;
		}
	}
	_exit(0);
}

/* Rank 0 and 1, and 1 and 2, have circuits that are cut in the middle of a call, of which the second is
 * the second hop of all that 0 sends to 2. */
static void circuits_are_cut(void **state)
{
	(void)state;
	for (size_t bytes = 20000; bytes < 2000000; bytes *= 4) {
		uint64_t resent = 0, dark = 0;
		char behind[2][32];
		pid_t proxy[2];
		struct scene s;

		scene_make(&s, 77, 4, 1);
		s.most = 600000;
		link_make(&s, 0, 1);
		link_make(&s, 1, 2);
		s.share[s.shares++] = (struct ocs_moe_share){ 0, 1, -1, 1, 0, 0.9 };
		s.share[s.shares++] = (struct ocs_moe_share){ 0, 2, 1, 1, 1, 0.7 };
		s.share[s.shares++] = (struct ocs_moe_share){ 2, 0, 1, 1, 1, 0.7 };
		s.share[s.shares++] = (struct ocs_moe_share){ 3, 2, 1, 0, 1, 0.7 };
		/* The end that connects is told the proxy's address; the other one listens behind it. */
		for (int k = 0; k < 2; k++) {
			snprintf(behind[k], 32, "127.%d.%d.%d:7000", network, number, 200 + k);
			proxy[k] = fork();
			if (!proxy[k])
				proxy_run(s.link[k].b_address, behind[k], bytes * (k + 1));
		}
		for (int r = 0; r < s.ranks; r++) {
			s.pid[r] = fork();
			if (s.pid[r])
				continue;
			for (int k = 0; k < 2; k++)
				if (s.link[k].b == r)
					s.link[k].b_address = behind[k];
			s.shared->rc[r] = rank_run(&s, r);
			_exit(0);
		}
		scene_wait(&s);
		for (int r = 0; r < s.ranks; r++) {
			assert_int_equal(s.shared->rc[r], 0);
			resent += s.shared->stats[r].resent;
			dark += s.shared->stats[r].dark;
		}
		assert_true(dark >= 2 && resent > 0);
		for (int k = 0; k < 2; k++) {
			kill(proxy[k], SIGKILL);
			waitpid(proxy[k], NULL, 0);
		}
		scene_free(&s);
	}
}

static void odd_dies(struct scene *s, struct ocs_moe *moe)
{
	(void)s;
	(void)moe;
	raise(SIGKILL);
}

static void odd_stops(struct scene *s, struct ocs_moe *moe)
{
	(void)s;
	(void)moe;
	raise(SIGSTOP);
}

static void odd_goes(struct scene *s, struct ocs_moe *moe)
{
	(void)s;
	ocs_moe_close(moe);
	sleep(2);
	_exit(0);
}

static void odd_lies(struct scene *s, struct ocs_moe *moe)
{
	(void)moe;
	s->seed++; /* other sizes than all others think */
}

static void a_rank_fails(void **state)
{
	static const struct {
		void (*what)(struct scene *, struct ocs_moe *);
		const char *says;
	} cases[] = {
		{ odd_dies, "rank 2 is gone" },
		{ odd_stops, "rank 2 has not finished" },
		{ odd_goes, "rank 2 " },
		{ odd_lies, "bytes" },
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct scene s;
		int named = 0;

		scene_make(&s, 5 + (int)c, 6, 2);
		shares_draw(&s, 5);
		/* Only who stops has to be waited for. */
		if (cases[c].what == odd_stops)
			s.idle_ms = 4000;
		s.odd = 2;
		s.odd_call = 2;
		s.odd_do = cases[c].what;
		scene_start(&s);
		scene_wait(&s);
		for (int r = 0; r < s.ranks; r++) {
			if (r == s.odd)
				continue;
			if (s.shared->rc[r] != 2)
				print_message("# case %zu rank %d: %d %s\n", c, r, s.shared->rc[r],
					      s.shared->error[r]);
			assert_int_equal(s.shared->rc[r], 2);
			assert_true(s.shared->error[r][0]);
			named += strstr(s.shared->error[r], cases[c].says) != NULL;
		}
		if (named < 1)
			print_message("# case %zu: %s\n", c, s.shared->error[0]);
		assert_true(named >= 1);
		kill(s.pid[2], SIGKILL);
		waitpid(s.pid[2], NULL, 0);
		scene_free(&s);
	}
}

/* Connections without the key, or without a word, are let in by no one. */
static void strangers_stay_out(void **state)
{
	struct scene s;
	uint64_t strangers = 0;
	int fd[20];

	(void)state;
	scene_make(&s, 9, 3, 1);
	scene_start(&s);
	while (__atomic_load_n(&s.shared->ready, __ATOMIC_SEQ_CST) < 1)
		usleep(1000);
	for (int k = 0; k < 20; k++) {
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7000) };
		char host[64], noise[80];

		snprintf(host, sizeof(host), "%s", s.address[k % 3]);
		*strchr(host, ':') = '\0';
		inet_pton(AF_INET, host, &at.sin_addr);
		fd[k] = socket(AF_INET, SOCK_STREAM, 0);
		memset(noise, k, sizeof(noise));
		if (!connect(fd[k], (struct sockaddr *)&at, sizeof(at)) && k % 4)
			assert_true(send(fd[k], noise, sizeof(noise), MSG_NOSIGNAL) != 0);
	}
	scene_wait(&s);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(s.shared->rc[r], 0);
		strangers += s.shared->stats[r].strangers;
	}
	(void)strangers; /* they may have come too late to be looked at */
	for (int k = 0; k < 20; k++)
		close(fd[k]);
	scene_free(&s);
}

static void opening_refuses(void **state)
{
	const char *addresses[] = { "127.0.0.1:7000", "nowhere" };
	unsigned char key[OCS_MOE_KEY] = { 0 };
	struct ocs_moe_options o = {
		.rank = 0, .ranks = 2, .address = addresses, .key = key, .open_ms = 50
	};
	char error[256], alone[32];
	struct ocs_moe *moe;

	(void)state;
	assert_null(ocs_moe_open(&o, error, sizeof(error)));
	assert_non_null(strstr(error, "rank 1, 'nowhere'"));
	snprintf(alone, sizeof(alone), "127.%d.99.1:7000", network);
	addresses[0] = alone;
	addresses[1] = "127.0.0.9:7999";
	assert_null(ocs_moe_open(&o, error, sizeof(error)));
	assert_non_null(strstr(error, "1 of 2 ranks did not come"));
	o.rank = 2;
	assert_null(ocs_moe_open(&o, error, sizeof(error)));
	o.rank = 0;
	o.ranks = 1;
	moe = ocs_moe_open(&o, error, sizeof(error));
	assert_non_null(moe);
	assert_int_equal(ocs_moe_ways(moe, &(struct ocs_moe_way){ .to = 0, .share = 1 }, 1), -1);
	assert_true(ocs_moe_error(moe)[0]);
	ocs_moe_close(moe);
}

/* Text that makes no sense changes nothing. */
static void plans_are_text(void **state)
{
	static const char *const wrong[] = {
		"link 1 0 1 127.0.0.1:7100\n",
		"share 0 1 -1 1 0 a\n",
		"share 0 1 -1 1 0 0.5 more\n",
		"circuit 1 0 1 127.0.0.1:1 127.0.0.1:2\n",
	};
	unsigned char key[OCS_MOE_KEY] = { 1 };
	char error[256], alone[32];
	const char *address = alone;
	struct ocs_moe *moe;
	char byte = 'x', got = 0;
	size_t one = 1, none = 0;

	(void)state;
	snprintf(alone, sizeof(alone), "127.%d.98.1:7000", network);
	moe = ocs_moe_open(&(struct ocs_moe_options){ .ranks = 1, .address = &address, .key = key },
			   error, sizeof(error));
	assert_non_null(moe);
	assert_int_equal(ocs_moe_plan(moe, "# nothing\n\nshare 0 0 -1 1 0 0.5", 1, 0), 0);
	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		assert_int_equal(ocs_moe_plan(moe, wrong[k], 1, 0), -1);
		assert_non_null(strstr(ocs_moe_error(moe), "line 1 of the plan"));
	}
	assert_int_equal(ocs_moe_plan(moe, "", 2, 0), -1);
	assert_int_equal(ocs_moe_alltoall(moe, &byte, &one, &none, &got, &one, &none), 0);
	assert_int_equal(got, 'x');
	ocs_moe_close(moe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives), cmocka_unit_test(circuits_are_cut),
		cmocka_unit_test(a_rank_fails),	      cmocka_unit_test(strangers_stay_out),
		cmocka_unit_test(opening_refuses),    cmocka_unit_test(plans_are_text),
	};

	signal(SIGPIPE, SIG_IGN);
	network_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
