/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The signal that a task asks for (OCS_RAILS_SIGNAL): it comes with each fault, and with nothing else. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/rails/shim/gate.h"
#include "tests/unit/rails/gate_agent.h"

#define NOTE 6
#define AGENT_GONE 100

/* In the task's process, which ends if WHAT is not so. */
#define NEED(WHAT)                                                                      \
	do {                                                                            \
		if (!(WHAT)) {                                                          \
			fprintf(stdout, "# %s:%d: %s; %s\n", __FILE__, __LINE__, #WHAT, \
				ocs_gate_error());                                      \
			fflush(stdout);                                                 \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

static const int32_t pair[] = { 2, 3 };
static volatile sig_atomic_t signals;
static const char *asked; /* OCS_RAILS_SIGNAL */
static int expected;	  /* signal, or 0 */

static void signal_count(int sent)
{
	signals += sent == expected ? 1 : 100;
}

/* COUNT of them so far: the thread that sends them does not wait for their handler. */
static void signals_expect(int count)
{
	for (int i = 0; signals < count && i < 60000; i++)
		usleep(1000);
	NEED(signals == count);
}

static void signal_rank(void)
{
	struct ocs_gate *gate;

	setenv("OCS_RAILS_SIGNAL", asked, 1);
	signal(SIGUSR1, signal_count);
	signal(SIGUSR2, signal_count);
	if (!freopen("/dev/null", "w", stderr))
		_exit(1);
	gate = ocs_gate_get();
	/* The answer comes after a fault, and words are served in order. */
	for (int i = 1; i <= 3; i++) {
		NEED(ocs_gate_group(gate, pair, 2) >= 0);
		signals_expect(expected ? (i < 2 ? i : 2) : 0);
	}
}

/* Before it answers the next group that the task names. */
static void fault_say(struct agent *agent, uint32_t rank, int32_t error)
{
	struct word word = { .kind = NOTE, .rank = rank, .count = 4, .error = error };
	struct word group, answer = { .kind = KNOWN, .version = 1 };

	assert_true(word_get(agent, &group) >= (ssize_t)WORD);
	assert_int_equal(group.kind, GROUP);
	memcpy(word.members, "news", 4);
	assert_int_equal(send(agent->sock, &word, WORD + 4, MSG_NOSIGNAL), WORD + 4);
	answer.group = group.group;
	assert_int_equal(send(agent->sock, &answer, WORD, MSG_NOSIGNAL), WORD);
}

/* A fault that this rank is to write, one that another rank is to write, and a note, which is none. */
static void signal_agent(struct agent *agent)
{
	agent_welcome(agent);
	fault_say(agent, 3, AGENT_GONE);
	fault_say(agent, 0, AGENT_GONE);
	fault_say(agent, 3, 0);
	words_expect(agent, GOODBYE);
}

/* The agent goes without a word, which is a fault, too. */
static void left_rank(void)
{
	struct ocs_gate *gate;
	uint64_t idx;
	int group;

	setenv("OCS_RAILS_SIGNAL", asked, 1);
	signal(expected, signal_count);
	gate = ocs_gate_get();
	group = ocs_gate_group(gate, pair, 2);
	NEED(group >= 0 && ocs_gate_enter(gate, group, &idx) < 0);
	signals_expect(1);
}

static void left_agent(struct agent *agent)
{
	agent_welcome(agent);
	letter_expect(agent, ARRIVE, group_serve(agent, 0, 0), 0);
	close(agent->sock);
	agent->sock = -1;
}

static void signal_case(void **state)
{
	char number[16];
	const struct {
		const char *name;
		int number;
	} names[] = { { "USR1", SIGUSR1 }, { "SIGUSR2", SIGUSR2 }, { number, SIGUSR1 },
		      { "", 0 },	   { "BANG", 0 },	   { "1000", 0 } };

	(void)state;
	snprintf(number, sizeof(number), "%d", SIGUSR1);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		asked = names[i].name;
		expected = names[i].number;
		case_run(signal_rank, signal_agent);
	}
}

static void left_case(void **state)
{
	(void)state;
	asked = "TERM";
	expected = SIGTERM;
	case_run(left_rank, left_agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_case),
		cmocka_unit_test(left_case),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
