/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The gate of a task against an agent that is written here, from the protocol's text: good ones, and
 * ones that lie, die or say nothing.  Each case is a process of its own: a process has one gate. */

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/rails/shim/gate.h"
#include "tests/unit/rails/gate_agent.h"

/* In the task's process, which ends if WHAT is not so. */
#define NEED(WHAT)                                                                    \
	do {                                                                          \
		if (!(WHAT)) {                                                        \
			fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #WHAT, \
				ocs_gate_error());                                    \
			_exit(1);                                                     \
		}                                                                     \
	} while (0)

/* -- operations in order --------------------------------------------------- */

static const int32_t four[] = { 6, 3, 0, 1 };

static void good_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	uint64_t idx = 99;
	int group, again, pair;

	NEED(gate && gate == ocs_gate_get());
	NEED(ocs_gate_rank(gate) == 3 && ocs_gate_ranks(gate) == 8);
	group = ocs_gate_group(gate, four, 4);
	NEED(group >= 0);
	NEED(ocs_gate_group(gate, four, 2) == OCS_GATE_FREE);
	again = ocs_gate_group(gate, four, 4);
	NEED(again >= 0 && again != group);
	NEED(ocs_gate_enter(gate, group, &idx) == 0 && idx == 0);
	ocs_gate_leave(gate, group, idx, NULL, 0);
	ocs_gate_wish(gate, again);
	NEED(ocs_gate_enter(gate, group, &idx) == 0 && idx == 1);
	ocs_gate_leave(gate, group, idx, NULL, 0);
	NEED(ocs_gate_enter(gate, group, &idx) < 0);
	NEED(strstr(ocs_gate_error(), "rank") != NULL);
	/* An error is of one operation. */
	NEED(ocs_gate_enter(gate, again, &idx) == 0 && idx == 0);
	pair = ocs_gate_pair(gate, 3, 5, 1);
	NEED(pair >= 0 && pair == ocs_gate_pair(gate, 3, 5, 1));
	NEED(pair != ocs_gate_pair(gate, 5, 3, 1));
	NEED(ocs_gate_pair(gate, 3, 3, 1) == OCS_GATE_FREE);
}

static void good_agent(struct agent *agent)
{
	uint64_t group, again;

	agent_welcome(agent);
	group = group_serve(agent, 0, 0);
	group_serve(agent, 1, 0);
	again = group_serve(agent, 0, 0);
	/* FNV-1a of 0 1 3 6 and the instance, as in the protocol: by another program. */
	assert_true(group == UINT64_C(0xc571c5dff104de41));
	assert_true(again == UINT64_C(0x257719d79acf21b0));
	letter_expect(agent, ARRIVE, group, 0);
	/* What nobody waits for changes nothing. */
	letter_put(agent, GRANT, group, 1, 0);
	letter_put(agent, GRANT, again, 0, 0);
	letter_put(agent, 77, group, 0, 0);
	letter_put(agent, GRANT, group, 0, 0);
	letter_expect(agent, END, group, 0);
	letter_expect(agent, WISH, again, 0);
	letter_expect(agent, ARRIVE, group, 1);
	letter_put(agent, GRANT, group, 1, 0);
	letter_expect(agent, END, group, 1);
	letter_expect(agent, ARRIVE, group, 2);
	letter_put(agent, GRANT, group, 2, 1);
	letter_expect(agent, ARRIVE, again, 0);
	letter_put(agent, GRANT, again, 0, 0);
	assert_true(group_serve(agent, 0, 0) == UINT64_C(0x4cc0b35700dbdbd2));
	assert_true(group_serve(agent, 0, 0) == UINT64_C(0x4cc0735700db6f12));
	words_expect(agent, GOODBYE);
}

static void good_case(void **state)
{
	(void)state;
	case_run(good_rank, good_agent);
	agent_abstract = true;
	case_run(good_rank, good_agent);
	agent_abstract = false;
}

/* Reserved is not arrived, and words are told in the order of grants. */
static void word_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	int group = ocs_gate_group(gate, four, 4);
	_Atomic uint32_t first = 0, second = 0;
	uint64_t one, two;

	NEED(ocs_gate_reserve(gate, group, &one) == 0 && one == 0);
	NEED(ocs_gate_reserve(gate, group, &two) == 0 && two == 1);
	ocs_gate_wish(gate, group);
	NEED(ocs_gate_arrive_now(gate, group, one, &first) == 0);
	NEED(ocs_gate_arrive_now(gate, group, two, &second) == 0);
	while (!atomic_load(&second))
		usleep(1000);
	NEED(atomic_load(&first) == 0 && atomic_load(&second) == 1);
	ocs_gate_leave(gate, group, two, NULL, 0);
	while (!atomic_load(&first))
		usleep(1000);
	NEED(atomic_load(&first) == 2);
	NEED(ocs_gate_reserve(gate, 99, &one) < 0 && ocs_gate_reserve(gate, -1, &one) < 0);
}

static void word_agent(struct agent *agent)
{
	uint64_t group;

	agent_welcome(agent);
	group = group_serve(agent, 0, 0);
	letter_expect(agent, WISH, group, 0);
	letter_expect(agent, ARRIVE, group, 0);
	letter_expect(agent, ARRIVE, group, 1);
	letter_put(agent, GRANT, group, 1, 0);
	letter_expect(agent, END, group, 1);
	letter_put(agent, GRANT, group, 0, 2);
	words_expect(agent, GOODBYE);
}

static void word_case(void **state)
{
	(void)state;
	case_run(word_rank, word_agent);
}

/* -- drain ----------------------------------------------------------------- */

static _Atomic int reading;

static void *socket_read(void *data)
{
	int fd = *(int *)data;
	char bytes[65536];

	usleep(50000);
	atomic_store(&reading, 1);
	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

static void drain_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	int group = ocs_gate_group(gate, four, 4);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0), in;
	static char bytes[65536];
	pthread_t thread;
	uint64_t idx;

	NEED(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&address, &size));
	NEED(!connect(out, (struct sockaddr *)&address, size));
	in = accept(listener, NULL, NULL);
	NEED(in >= 0 && !fcntl(out, F_SETFL, O_NONBLOCK));
	NEED(!ocs_gate_enter(gate, group, &idx));
	while (write(out, bytes, sizeof(bytes)) > 0)
		;
	/* More than the other side has room for, until it reads. */
	NEED(!pthread_create(&thread, NULL, socket_read, &in));
	ocs_gate_leave(gate, group, idx, (int[]){ out, 0, -1, listener, 9999 }, 5);
	NEED(atomic_load(&reading));
	close(out);
	pthread_join(thread, NULL);
}

static void drain_agent(struct agent *agent)
{
	uint64_t group;

	agent_welcome(agent);
	group = group_serve(agent, 0, 0);
	letter_expect(agent, ARRIVE, group, 0);
	letter_put(agent, GRANT, group, 0, 0);
	letter_expect(agent, END, group, 0);
	words_expect(agent, GOODBYE);
}

static void drain_case(void **state)
{
	(void)state;
	case_run(drain_rank, drain_agent);
}

/* -- threads --------------------------------------------------------------- */

#define THREADS 6
#define ROUNDS 300

static void *thread_enter(void *data)
{
	struct ocs_gate *gate = ocs_gate_get();
	int own = *(int *)data, group = own % 2 ? ocs_gate_pair(gate, 3, own, 0) : own;
	_Atomic uint32_t word[ROUNDS] = { 0 };
	uint64_t idx;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		NEED(!ocs_gate_enter(gate, group, &idx));
		ocs_gate_leave(gate, group, idx, NULL, 0);
	}
	/* All at once: more letters than the ring has room for. */
	for (uint64_t i = 0; i < ROUNDS; i++) {
		NEED(!ocs_gate_reserve(gate, group, &idx));
		NEED(!ocs_gate_arrive_now(gate, group, idx, &word[i]));
	}
	for (uint64_t i = 0; i < ROUNDS; i++)
		while (!atomic_load(&word[i]))
			sched_yield();
	return NULL;
}

static void threads_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	pthread_t thread[THREADS];
	int own[THREADS];

	for (int i = 0; i < THREADS; i++) {
		/* 5 and 7: pairs; others: groups of their own */
		own[i] = i < 2 ? 5 + 2 * i : ocs_gate_group(gate, four, 4);
		while (i >= 2 && own[i] % 2)
			own[i] = ocs_gate_group(gate, four, 4);
		NEED(own[i] >= 0);
		NEED(!pthread_create(&thread[i], NULL, thread_enter, &own[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Groups and letters in any order, until the rank says goodbye. */
static void any_agent(struct agent *agent)
{
	struct word word, known = { .kind = KNOWN };
	struct letter letter;
	uint64_t ended = 0, rung;

	agent_welcome(agent);
	for (;;) {
		struct pollfd wait[2] = { { agent->sock, POLLIN, 0 }, { agent->bell, POLLIN, 0 } };

		assert_true(poll(wait, 2, 60000) > 0);
		if (atomic_load(agent_number(agent, 0, HEAD)) == agent->read && wait[1].revents) {
			assert_int_equal(read(agent->bell, &rung, sizeof(rung)), sizeof(rung));
			if (atomic_load(agent_number(agent, 0, HEAD)) == agent->read)
				continue;
		}
		if (atomic_load(agent_number(agent, 0, HEAD)) != agent->read) {
			letter = letter_get(agent);
			ended += letter.kind == END;
			/* The rank reads as fast as it can; an agent looks for room. */
			while (agent->written - atomic_load(agent_number(agent, 1, TAIL)) >= ROOM)
				sched_yield();
			if (letter.kind == ARRIVE)
				letter_put(agent, GRANT, letter.group, letter.idx, 0);
			continue;
		}
		assert_true(recv(agent->sock, &word, sizeof(word), 0) >= (ssize_t)WORD);
		if (word.kind == GOODBYE)
			break;
		assert_int_equal(word.kind, GROUP);
		known.group = word.group;
		assert_int_equal(send(agent->sock, &known, WORD, MSG_NOSIGNAL), WORD);
	}
	while (agent->read != atomic_load(agent_number(agent, 0, HEAD)))
		ended += letter_get(agent).kind == END;
	assert_int_equal(ended, THREADS * ROUNDS);
}

static void threads_case(void **state)
{
	(void)state;
	case_run(threads_rank, any_agent);
}

/* -- fork ------------------------------------------------------------------ */

static int hold[2]; /* a child lives until the test closes it */

/* A thread of the rank may have been allocating when it forked: in the child the leak check at exit would
 * wait for the locks of the sanitizer for ever. */
static int is_child;

int __lsan_is_turned_off(void);

__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return is_child;
}

static void fork_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	int group = ocs_gate_group(gate, four, 4), status;
	uint64_t idx;
	pid_t child;
	char byte;

	NEED(group >= 0);
	child = fork();
	if (!child) {
		is_child = 1;
		NEED(!ocs_gate_get());
		/* Who kept the pointer is refused, and dies of nothing. */
		NEED(ocs_gate_enter(gate, group, &idx) < 0);
		NEED(ocs_gate_group(gate, four, 4) == OCS_GATE_ERROR);
		ocs_gate_leave(gate, group, 0, NULL, 0);
		if (fork() == 0) {
			/* Outlives the rank: its connection must not. */
			NEED(!ocs_gate_get());
			close(hold[1]);
			NEED(read(hold[0], &byte, 1) == 0);
			_exit(0);
		}
		exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && !status);
	NEED(!ocs_gate_enter(gate, group, &idx) && idx == 0);
	kill(getpid(), SIGKILL);
}

static void fork_agent(struct agent *agent)
{
	struct word word;
	uint64_t group;
	int status;

	agent_welcome(agent);
	group = group_serve(agent, 0, 0);
	letter_expect(agent, ARRIVE, group, 0);
	letter_put(agent, GRANT, group, 0, 0);
	assert_int_equal(word_get(agent, &word), 0);
	assert_int_equal(waitpid(agent->rank, &status, 0), agent->rank);
	assert_true(WIFSIGNALED(status));
	/* What case_run waits for. */
	agent->rank = fork();
	if (!agent->rank)
		_exit(0);
}

static void fork_case(void **state)
{
	(void)state;
	assert_int_equal(pipe(hold), 0);
	case_run(fork_rank, fork_agent);
	close(hold[0]);
	close(hold[1]);
}

/* -- agents that end ------------------------------------------------------- */

static void left_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	int group = ocs_gate_group(gate, four, 4);
	uint64_t idx;

	NEED(gate && group >= 0);
	NEED(ocs_gate_enter(gate, group, &idx) < 0);
	NEED(*ocs_gate_error());
	NEED(ocs_gate_enter(gate, group, &idx) < 0);
	NEED(ocs_gate_reserve(gate, group, &idx) < 0);
	NEED(ocs_gate_group(gate, four, 4) == OCS_GATE_ERROR);
	NEED(ocs_gate_pair(gate, 3, 4, 0) == OCS_GATE_ERROR);
	ocs_gate_leave(gate, group, 0, NULL, 0);
}

static void dying_agent(struct agent *agent)
{
	agent_welcome(agent);
	letter_expect(agent, ARRIVE, group_serve(agent, 0, 0), 0);
	close(agent->sock);
	agent->sock = -1;
}

static void lost_agent(struct agent *agent)
{
	agent_welcome(agent);
	letter_expect(agent, ARRIVE, group_serve(agent, 0, 0), 0);
	letter_put(agent, LOST, 0, 0, 3);
}

/* Letters that were never written. */
static void lying_agent(struct agent *agent)
{
	agent_welcome(agent);
	letter_expect(agent, ARRIVE, group_serve(agent, 0, 0), 0);
	atomic_store(agent_number(agent, 1, HEAD), 0x80000000u);
	syscall(SYS_futex, agent_number(agent, 1, HEAD), FUTEX_WAKE, 99, NULL, NULL, 0);
}

static void end_case(void **state)
{
	(void)state;
	case_run(left_rank, dying_agent);
	case_run(left_rank, lost_agent);
	case_run(left_rank, lying_agent);
}

/* The agent says to have read what was not written: an error of each call. */
static void tail_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	int group = ocs_gate_group(gate, four, 4);
	uint64_t idx;

	NEED(group >= 0);
	NEED(ocs_gate_enter(gate, group, &idx) < 0);
	NEED(ocs_gate_enter(gate, group, &idx) < 0);
	NEED(ocs_gate_group(gate, four, 4) == OCS_GATE_ERROR);
}

static void tail_agent(struct agent *agent)
{
	agent_welcome(agent);
	atomic_store(agent_number(agent, 0, TAIL), 5);
	group_serve(agent, 0, 0);
	group_serve(agent, 0, 101);
}

static void tail_case(void **state)
{
	(void)state;
	case_run(tail_rank, tail_agent);
}

/* -- agents that begin badly ------------------------------------------------ */

static int fault;

static void refused_rank(void)
{
	struct ocs_gate *gate;
	uint64_t idx;

	/* One that is silent, or not there: */
	if (fault == 9)
		setenv("OCS_RAILS_TIMEOUT", "2", 1);
	freopen("/dev/null", "w", stderr);
	gate = ocs_gate_get();
	NEED(gate);
	NEED(ocs_gate_group(gate, four, 4) == OCS_GATE_ERROR);
	NEED(ocs_gate_enter(gate, 0, &idx) < 0);
	ocs_gate_leave(gate, 0, 0, NULL, 0);
	ocs_gate_wish(gate, 0);
}

static void faulty_agent(struct agent *agent)
{
	struct word word = { .kind = WELCOME, .version = 1 };
	size_t bytes = WORD;
	int count = 2;

	words_expect(agent, HELLO);
	box_make(agent, fault == 0 ? RING : 2 * RING, fault == 1 ? 0 : F_SEAL_SHRINK);
	word.version += fault == 2;
	word.error = fault == 3 ? 101 : 0;
	word.kind += fault == 4;
	count -= fault == 5 ? 1 : fault == 6 ? 2 : 0;
	bytes -= fault == 7 ? 4 : 0;
	if (fault < 8)
		welcome_send(agent, &word, bytes, count);
	else if (fault == 8) {
		close(agent->sock);
		agent->sock = -1;
	} /* 9: says nothing */
}

static void begin_case(void **state)
{
	(void)state;
	for (fault = 0; fault < 10; fault++)
		case_run(refused_rank, faulty_agent);
}

static void absent_rank(void)
{
	char *path = getenv("OCS_RAILS_AGENT");

	path[strlen(path) - 1] = 'x';
	fault = 9;
	refused_rank();
}

static void ungated_rank(void)
{
	setenv("SLURM_PROCID", "8", 1);
	NEED(!ocs_gate_get() && !ocs_gate_get());
}

static void nowhere_rank(void)
{
	unsetenv("OCS_RAILS_AGENT");
	NEED(!ocs_gate_get());
}

static void absent_case(void **state)
{
	(void)state;
	case_run(absent_rank, NULL);
	case_run(ungated_rank, NULL);
	case_run(nowhere_rank, NULL);
}

/* -- groups that are none --------------------------------------------------- */

static void groups_rank(void)
{
	struct ocs_gate *gate = ocs_gate_get();

	NEED(ocs_gate_group(gate, four, 0) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, four, 100000) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, (int32_t[]){ 3, 8 }, 2) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, (int32_t[]){ 3, -1 }, 2) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, (int32_t[]){ 3, 4, 3 }, 3) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, (int32_t[]){ 1, 2 }, 2) == OCS_GATE_ERROR);
	NEED(ocs_gate_pair(gate, 1, 2, 0) == OCS_GATE_ERROR);
	NEED(ocs_gate_group(gate, (int32_t[]){ 3 }, 1) == OCS_GATE_FREE);
	NEED(ocs_gate_group(gate, four, 4) == OCS_GATE_ERROR); /* the agent says so */
}

static void groups_agent(struct agent *agent)
{
	agent_welcome(agent);
	group_serve(agent, 0, 101);
	words_expect(agent, GOODBYE);
}

static void groups_case(void **state)
{
	(void)state;
	case_run(groups_rank, groups_agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_case),   cmocka_unit_test(word_case),
		cmocka_unit_test(drain_case),  cmocka_unit_test(threads_case),
		cmocka_unit_test(fork_case),   cmocka_unit_test(end_case),
		cmocka_unit_test(tail_case),   cmocka_unit_test(begin_case),
		cmocka_unit_test(absent_case), cmocka_unit_test(groups_case),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
