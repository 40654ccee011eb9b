/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The controller of a job with experts, in front of a real ocsd and emulated switches: circuits follow what
 * gates say, plans name those that stand, and what dies leaves the circuits as they are. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/moe/job/ocs_moe_gate.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define SERVERS 4
#define NICS 2
#define GROUPS 2
#define SIZE 16

static const char switches[] = "  - name: rg-[0-1]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 16\n";
static const char fabrics[] =
	"  - name: moe\n"
	"    kind: region\n"
	"    partitions: [moe]\n"
	"    nodes: g[0-7]\n"
	"    region_servers: 4\n"
	"    degree: 2\n"
	"    packet_nics: 1\n"
	"    ports: {switch: \"rg-{region}\", port: server % region_servers * degree + interface + 1}\n";

struct bench {
	struct rig *rig;
	pid_t controller;
	struct ocs_moe_gate *gate[GROUPS][SERVERS];
	FILE *plan[GROUPS];
};

static char *path_of(const struct bench *b, const char *name)
{
	return ocs_asprintf("%s/%s", b->rig->emulator.folder, name);
}

static void file_write(const struct bench *b, const char *name, const char *text)
{
	char *path = path_of(b, name);

	assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, NULL), 0);
	free(path);
}

/* What ocs-node writes. */
static void files_write(struct bench *b, struct json_object *reply)
{
	struct json_object *groups =
		json_object_object_get(json_object_object_get(reply, "region"), "groups");
	struct ocs_text text = { 0 };

	ocs_text_add(&text,
		     "{\"job\":1,\"epoch\":10,\"servers\":%d,\"nics\":%d,\"packet_nics\":1,"
		     "\"speed\":1,\"moe\":\"follow,no-relay,no-predict\",\"groups\":[",
		     SERVERS, NICS);
	for (int g = 0; g < GROUPS; g++) {
		ocs_text_add(&text, "%s{\"group\":%d,\"addresses\":[", g ? "," : "", g);
		for (int s = 0; s < SERVERS; s++)
			ocs_text_add(&text, "%s[\"10.%d.%d.0\",\"10.%d.%d.1\"]", s ? "," : "", g, s,
				     g, s);
		ocs_text_add(&text, "],\"circuits\":%s}",
			     json_object_to_json_string(json_object_object_get(
				     json_object_array_get_idx(groups, (size_t)g), "circuits")));
	}
	ocs_text_add(&text, "]}");
	file_write(b, "region.json", text.data);
	file_write(b, "moe.key", json_object_get_string(json_object_object_get(reply, "key")));
	ocs_text_free(&text);
}

static void controller_start(struct bench *b)
{
	char *region = path_of(b, "region.json"), *key = path_of(b, "moe.key");
	char *sockets = path_of(b, "sockets"), ready[16] = "";
	const char *build = getenv("OCS_BUILD_DIR");
	char *program =
		ocs_asprintf("%s/src/moe/ocs-moe-controller", build ? build : TEST_BUILD_DIR);
	int out[2];

	assert_int_equal(pipe(out), 0);
	b->controller = fork();
	if (b->controller == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		execl(program, "ocs-moe-controller", "--region", region, "--key", key, "--ocsd",
		      b->rig->address, "--sockets", sockets, "--layers", "2", "--switching",
		      "0.001,0", "--timeout", "20", NULL);
		_exit(127);
	}
	close(out[1]);
	assert_true(read(out[0], ready, sizeof(ready) - 1) > 0);
	assert_string_equal(ready, "ready\n");
	close(out[0]);
	for (int g = 0; g < GROUPS; g++) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char *gate = ocs_asprintf("%s/gate.%d", sockets, g);

		snprintf(at.sun_path, sizeof(at.sun_path), "%s/plan.%d", sockets, g);
		assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		b->plan[g] = fdopen(fd, "r+");
		for (int s = 0; s < SERVERS; s++)
			b->gate[g][s] = ocs_moe_gate_open(gate, s, SERVERS);
		free(gate);
	}
	free(program);
	free(region);
	free(key);
	free(sockets);
}

static void controller_stop(struct bench *b, int number)
{
	for (int g = 0; g < GROUPS; g++) {
		fclose(b->plan[g]);
		for (int s = 0; s < SERVERS; s++)
			ocs_moe_gate_close(b->gate[g][s]);
	}
	kill(b->controller, number);
	waitpid(b->controller, NULL, 0);
	if (number == SIGTERM) {
		char *sockets = path_of(b, "sockets");

		assert_int_equal(access(sockets, F_OK), -1);
		free(sockets);
	}
}

static struct ocs_client *job_start(struct bench *b)
{
	struct ocs_client *client = rig_client(b->rig);
	struct json_object *reply;

	json_object_put(
		rig_ask(client,
			"{'op':'commit','job':1,'epoch':10,'uid':%d,'user':'alice',"
			"'section':'moe','nodes':'g[0-7]','shape':'pp:2,ep:4','moe':'follow'}",
			(int)getuid()));
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'g0'}");
	files_write(b, reply);
	json_object_put(reply);
	return client;
}

/* Circuits of a pair of servers of GROUP on its switch. */
static int circuits_between(struct bench *b, int group, int one, int other)
{
	char *text = emulator_control(&b->rig->emulator, "table");
	struct json_object *json = json_tokener_parse(text), *list;
	int count = 0;

	list = json_object_object_get(json, group ? "rg-1" : "rg-0");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		int in = json_object_get_int(json_object_array_get_idx(pair, 0));
		int out = json_object_get_int(json_object_array_get_idx(pair, 1)) - SIZE;

		count += (in - 1) / NICS == one && (out - 1) / NICS == other;
	}
	json_object_put(json);
	free(text);
	return count;
}

/* All ranks' rows: server s sends nearly all to PARTNER[s]. */
static void rows_say(struct bench *b, int group, int layer, int microbatch, const int *partner)
{
	for (int s = 0; s < SERVERS; s++) {
		int64_t row[SERVERS] = { 10, 10, 10, 10 };

		row[partner[s]] = 1000000;
		ocs_moe_gate(b->gate[group][s], layer, microbatch, row, SERVERS);
	}
}

/* Rank 0 asks for its plan; its links between servers ONE and OTHER, *ALL: how many in all. */
static int plan_ask(struct bench *b, int group, int layer, int microbatch, int backward, int second,
		    int one, int other, int *all)
{
	char line[256];
	int count = 0;

	*all = 0;
	fprintf(b->plan[group], "plan %d %d %d %d\n", layer, microbatch, backward, second);
	fflush(b->plan[group]);
	for (;;) {
		unsigned int id;
		int from, to;

		assert_non_null(fgets(line, sizeof(line), b->plan[group]));
		if (strcmp(line, "end\n") == 0)
			break;
		if (sscanf(line, "link %u %d %d", &id, &from, &to) == 3) {
			++*all;
			count += (from == one && to == other) || (from == other && to == one);
		}
	}
	fseek(b->plan[group], 0, SEEK_CUR);
	return count;
}

static void step_over(struct bench *b, int group, int layer, int microbatch, int backward,
		      int second)
{
	for (int ended = 0; ended < 2; ended++)
		for (int s = 0; s < SERVERS; s++)
			ocs_moe_gate_step(b->gate[group][s], layer, microbatch, backward, second,
					  ended);
}

/* A pass of one layer, whose circuits are to be for PARTNER.  Circuits of the pair of servers 0 and
 * PARTNER[0] in the plan of the second all-to-all. */
static int pass_go(struct bench *b, int group, int microbatch, const int *partner)
{
	int all, count;

	plan_ask(b, group, 0, microbatch, 0, 0, 0, partner[0], &all);
	rows_say(b, group, 0, microbatch, partner);
	step_over(b, group, 0, microbatch, 0, 0);
	count = plan_ask(b, group, 0, microbatch, 0, 1, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 0, 1);
	plan_ask(b, group, 0, microbatch, 1, 0, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 1, 0);
	plan_ask(b, group, 0, microbatch, 1, 1, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 1, 1);
	return count;
}

static const int far[SERVERS] = { 2, 3, 0, 1 }, near[SERVERS] = { 1, 0, 3, 2 };

/* Passes until the plan has both circuits of the pair; what comes next is learnt in the first ones.  A
 * controller that has to find ocsd first may be late: after 30 passes there is a pause before each. */
static int passes_go(struct bench *b, int group, int microbatch, const int *partner)
{
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);

	for (int i = 0; i < 30 || ocs_now_ns() < deadline; i++, microbatch++) {
		if (i >= 30)
			usleep(20000);
		if (pass_go(b, group, microbatch, partner) == NICS)
			return microbatch + 1;
	}
	fail_msg("group %d: a minute of passes until %d, and no circuits for %d", group, microbatch,
		 partner[0]);
	return 0;
}

static void follows(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch[GROUPS] = { 0, 0 };

	controller_start(&b);
	for (int turn = 0; turn < 3; turn++)
		for (int g = 0; g < GROUPS; g++) {
			const int *partner = (turn + g) % 2 ? near : far;

			microbatch[g] = passes_go(&b, g, microbatch[g], partner);
			assert_int_equal(circuits_between(&b, g, 0, partner[0]), NICS);
		}
	/* what one group wanted last stands while the other one changes */
	assert_int_equal(circuits_between(&b, 0, 0, far[0]), NICS);
	assert_int_equal(circuits_between(&b, 1, 0, near[0]), NICS);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* Without ocsd the circuits stay, and every plan has them; then they follow again. */
static void without_ocsd(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch, all;

	controller_start(&b);
	microbatch = passes_go(&b, 0, 0, far);
	rig_stop_daemon(b.rig, SIGKILL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass_go(&b, 0, microbatch++, near), 0);
	assert_int_equal(plan_ask(&b, 0, 0, microbatch, 0, 0, 0, far[0], &all), NICS);
	assert_int_equal(all, SERVERS * NICS / 2);
	assert_int_equal(circuits_between(&b, 0, 0, far[0]), NICS);
	ocs_client_close(client);
	rig_start_daemon(b.rig);
	passes_go(&b, 0, microbatch + 1, near);
	assert_int_equal(circuits_between(&b, 0, 0, near[0]), NICS);
	controller_stop(&b, SIGKILL);
}

/* A controller that takes the place of one that died finds the circuits that stand. */
static void another_controller(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int breaks, microbatch;

	controller_start(&b);
	passes_go(&b, 0, 0, far);
	controller_stop(&b, SIGKILL);
	assert_int_equal(circuits_between(&b, 0, 0, far[0]), NICS);
	breaks = rig_log_lines(b.rig, "\"break\"", NULL);
	controller_start(&b);
	/* Its plans have them as soon as it has found ocsd. */
	microbatch = passes_go(&b, 0, 100000, far);
	assert_int_equal(rig_log_lines(b.rig, "\"break\"", NULL), breaks);
	passes_go(&b, 0, microbatch, near);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* Datagrams with numbers that no run has leave no mark, also as the first ones. */
static void strange_say(const struct bench *b)
{
	char *path = path_of(b, "sockets/gate.0");
	struct ocs_moe_gate *gate = ocs_moe_gate_open(path, 0, INT32_MAX / SERVERS * SERVERS);

	ocs_moe_gate_step(gate, 0, 0, 0, 0, 0);
	ocs_moe_gate_close(gate);
	ocs_moe_gate_step(b->gate[0][0], 0, INT64_MAX, 0, 0, 0);
	free(path);
}

/* Lost rows, rubbish, and ranks that contradict each other: plans go on. */
static void lost_rows(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), all, microbatch;
	int64_t row[SERVERS] = { 1, 2, 3, 4 };

	controller_start(&b);
	strange_say(&b);
	microbatch = passes_go(&b, 0, 0, far);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/sockets/gate.0", b.rig->emulator.folder);
	for (int i = 0; i < 50; i++) {
		char noise[200];

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (char)(i * 31 + (int)k * 7);
		sendto(fd, noise, (size_t)i * 4, 0, (struct sockaddr *)&at, sizeof(at));
	}
	for (int i = 0; i < 5; i++, microbatch++) {
		/* three rows of four, and one that says something else the second time */
		plan_ask(&b, 0, 0, microbatch, 0, 0, 0, far[0], &all);
		for (int s = 0; s < SERVERS - 1; s++)
			ocs_moe_gate(b.gate[0][s], 0, microbatch, row, SERVERS);
		row[0]++;
		ocs_moe_gate(b.gate[0][0], 0, microbatch, row, SERVERS);
		assert_int_equal(plan_ask(&b, 0, 0, microbatch, 0, 1, 0, far[0], &all), NICS);
	}
	assert_int_equal(circuits_between(&b, 0, 0, far[0]), NICS);
	passes_go(&b, 0, microbatch, near);
	close(fd);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

static int setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(without_ocsd, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(another_controller, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(lost_rows, setup, rig_teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
