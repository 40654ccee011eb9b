/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Users who ask too much: they are told to wait, and nobody else waits for them. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define OTHER_USER 65534
#define CONNECTIONS 4
#define PER_SECOND 2
#define BURST 5
#define PATIENCE_NS (20 * INT64_C(1000000000))

struct counts {
	_Atomic long served, busy, failed;
};

static int setup(void **state)
{
	return rig_setup_with(state, NULL,
			      "limits: {requests_per_second: 2, burst: 5, "
			      "connections: 4}\n",
			      0);
}

static int setup_default(void **state)
{
	return rig_setup_with(state, NULL, "limits: {connections: 4}\n", 0);
}

/* Becomes a user who may only look. */
static void become_other_user(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(OTHER_USER) || setuid(OTHER_USER))
		_exit(99);
}

static void may_connect(struct rig *rig)
{
	assert_int_equal(chmod(rig->emulator.folder, 0755), 0);
}

/* Writes what there is room for, reads what there is, for ever. */
static void flood(const char *address, struct counts *counts)
{
	static const char line[] = "{\"op\":\"show\",\"what\":\"job\",\"id\":1}\n";
	struct ocs_client *clients[CONNECTIONS];
	struct ocs_error err;
	char lines[sizeof(line) * 64];

	for (size_t i = 0; i < 64; i++)
		memcpy(lines + i * (sizeof(line) - 1), line, sizeof(line) - 1);
	for (int i = 0; i < CONNECTIONS; i++) {
		clients[i] = ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err);
		if (!clients[i])
			_exit(98);
	}
	for (;;) {
		for (int i = 0; i < CONNECTIONS; i++) {
			struct json_object *reply, *ok = NULL;

			/* half a line is no request: only whole bundles count, and a socket
			 * that is full takes none */
			if (write(ocs_client_fd(clients[i]), lines, 64 * (sizeof(line) - 1)) == 0)
				_exit(97);
			while ((reply = ocs_client_next(clients[i], 0, &err))) {
				json_object_object_get_ex(reply, "ok", &ok);
				if (json_object_get_boolean(ok))
					counts->served++;
				else if (strstr(rig_text(reply, "error"), "busy, try again in "))
					counts->busy++;
				else
					counts->failed++;
				json_object_put(reply);
			}
			if (err.code != OCS_OK)
				_exit(96);
		}
		usleep(1000);
	}
}

/* While one user asks as fast as he can, another's circuits take the same two batches,
 * and he is served no more than his share meanwhile. */
static void flooded(void **state)
{
	struct rig *rig = *state;
	struct counts *counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ocs_client *client = rig_client(rig);
	int64_t begin, elapsed;
	long served;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	may_connect(rig);
	pid = fork();
	if (pid == 0) {
		become_other_user();
		flood(rig->address, counts);
	}
	begin = ocs_now_ns();
	while (counts->busy < 2 * CONNECTIONS && ocs_now_ns() - begin < PATIENCE_NS)
		usleep(1000);
	assert_true(counts->busy >= 2 * CONNECTIONS);
	served = counts->served;
	begin = ocs_now_ns();
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':1,'uid':1000,"
					"'user':'alice','section':'ring','nodes':'d[0-3]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d0'}"));
	/* the prolog's side and slurmctld's: as much as they like */
	for (int i = 0; i < 20 * BURST; i++)
		json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d1'}"));
	elapsed = ocs_now_ns() - begin;
	served = counts->served - served;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* what was in the bucket, what came in meanwhile, and one under way */
	if (served > BURST + (elapsed * PER_SECOND) / 1000000000 + 1)
		fail_msg("%ld requests of the flood were served in %lld ms", served,
			 (long long)elapsed / 1000000);
	assert_int_equal(counts->failed, 0);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), 2);
	assert_int_equal(rig_patches(rig), 8);
	munmap(counts, sizeof(*counts));
	ocs_client_close(client);
}

static int ask(struct ocs_client *client, struct json_object **refusal, struct ocs_error *err)
{
	struct json_object *request = rig_json("{'op':'show','what':'job'}");
	struct json_object *reply = ocs_client_call(client, request, 20000, refusal, err);

	json_object_put(request);
	json_object_put(reply);
	return reply ? 0 : -1;
}

/* Who waits as long as he is told is served; other connections spend the same bucket. */
static int patient(const char *address)
{
	struct ocs_error err = { 0 };
	struct ocs_client *one = ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err);
	struct ocs_client *two = ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err);
	struct json_object *refusal = NULL;
	char *sentence;
	int asked = 0;
	long ms;

	while (!ask(asked % 2 ? one : two, &refusal, &err) && asked < 1000)
		asked++;
	if (asked < BURST || !refusal || err.code != OCS_NOT_NOW)
		return 1;
	ms = (long)rig_number(refusal, "retry_ms");
	sentence = ocs_asprintf("busy, try again in %ld ms", ms);
	if (ms < 1 || ms > 1000 / PER_SECOND || strcmp(err.text, sentence) != 0)
		return 2;
	free(sentence);
	json_object_put(refusal);
	usleep((useconds_t)ms * 1000 + 20000);
	if (ask(one, NULL, &err))
		return 3;
	ocs_client_close(one);
	ocs_client_close(two);
	return 0;
}

/* One connection too many is told so, and ends; when one is closed there is room. */
static int lines_fill(const char *address)
{
	struct ocs_client *clients[2 * CONNECTIONS + 1];
	struct ocs_error err = { 0 };

	for (int i = 0; i < 2 * CONNECTIONS + 1; i++) {
		clients[i] = ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err);
		if (!clients[i])
			return 1;
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (ask(clients[i], NULL, &err))
			return 2;
	if (!ask(clients[CONNECTIONS], NULL, &err) || err.code != OCS_NOT_NOW ||
	    !strstr(err.text, "more than 4 connections"))
		return 3;
	if (!ask(clients[CONNECTIONS], NULL, &err) || err.code != OCS_UNREACHABLE)
		return 4;
	/* beyond twice as many there is not even an answer */
	if (!ask(clients[2 * CONNECTIONS], NULL, &err) || err.code != OCS_UNREACHABLE)
		return 5;
	for (int i = 0; i < 2 * CONNECTIONS + 1; i++)
		ocs_client_close(clients[i]);
	for (int i = 0; i < 1000; i++) {
		clients[0] = ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err);
		if (!ask(clients[0], NULL, &err))
			return 0;
		ocs_client_close(clients[0]);
		usleep(20000);
	}
	return 6;
}

static int as_other_user(struct rig *rig, int (*run)(const char *address))
{
	int status = -1;
	pid_t pid;

	may_connect(rig);
	pid = fork();
	if (pid == 0) {
		become_other_user();
		_exit(run(rig->address));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void told_to_wait(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(as_other_user(*state, patient), 0);
}

static void lines_at_the_limit(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(as_other_user(*state, lines_fill), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(flooded, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(told_to_wait, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(lines_at_the_limit, setup_default, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: limits", tests, NULL, NULL);
}
