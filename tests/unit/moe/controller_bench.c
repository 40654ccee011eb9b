/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/moe/controller_bench.h"

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

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

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

char *bench_path(const struct bench *b, const char *name)
{
	return ocs_asprintf("%s/%s", b->rig->emulator.folder, name);
}

static void file_write(const struct bench *b, const char *name, const char *text)
{
	char *path = bench_path(b, name);

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

/* Starts the program with WORDS, a list that NULL ends; READY: until it says that it is.  */
static pid_t program_start(const char *const *words, bool ready)
{
	const char *build = getenv("OCS_BUILD_DIR");
	char *program =
		     ocs_asprintf("%s/src/moe/ocs-moe-controller", build ? build : TEST_BUILD_DIR),
	     text[16] = "";
	int out[2];
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		execv(program, (char *const *)(uintptr_t)words);
		_exit(127);
	}
	close(out[1]);
	if (ready) {
		assert_true(read(out[0], text, sizeof(text) - 1) > 0);
		assert_string_equal(text, "ready\n");
	}
	close(out[0]);
	free(program);
	return child;
}

/* Other runs of this test have other ports, and another secret. */
const char *bench_ports(void)
{
	static char text[32];

	for (int low = 16000 + getpid() % 700 * 16; !*text; low = 16000 + (low - 15984) % 11200) {
		char *address = ocs_asprintf("127.0.0.1:%d", low + 7);
		int fd = ocs_net_listen(address, NULL);

		if (fd >= 0) {
			snprintf(text, sizeof(text), "%d-%d", low, low + 15);
			close(fd);
		}
		free(address);
	}
	return text;
}

void controller_run(struct bench *b)
{
	char *region = bench_path(b, "region.json"), *key = bench_path(b, "moe.key");
	char *sockets = bench_path(b, "sockets"), *parent = ocs_asprintf("%d", b->parent);

	b->controller = program_start((const char *const[]){ "ocs-moe-controller",
							     "--region",
							     region,
							     "--key",
							     key,
							     "--ocsd",
							     b->rig->address,
							     "--sockets",
							     sockets,
							     "--layers",
							     "2",
							     "--switching",
							     "0.001,0",
							     "--timeout",
							     "20",
							     "--ports",
							     bench_ports(),
							     b->parent ? "--parent-fd" : NULL,
							     parent,
							     NULL },
				      true);
	free(region);
	free(key);
	free(sockets);
	free(parent);
}

pid_t relay_run(struct bench *b, const char *name, bool ready)
{
	char *region = bench_path(b, "region.json"), *key = bench_path(b, "relay.key");
	char *sockets = bench_path(b, name);
	pid_t relay = program_start((const char *const[]){ "ocs-moe-controller", "--region", region,
							   "--key", key, "--relay", "127.0.0.1",
							   "--node", "1", "--sockets", sockets,
							   "--ports", bench_ports(), NULL },
				    ready);

	free(region);
	free(key);
	free(sockets);
	return relay;
}

void ranks_connect(struct bench *b, int group, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char *folder = bench_path(b, name), *gate = ocs_asprintf("%s/gate.%d", folder, group);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/plan.%d", folder, group);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	b->plan[group] = fdopen(fd, "r+");
	for (int s = 0; s < SERVERS; s++)
		b->gate[group][s] = ocs_moe_gate_open(gate, s, SERVERS);
	free(gate);
	free(folder);
}

void controller_start(struct bench *b)
{
	controller_run(b);
	for (int g = 0; g < GROUPS; g++)
		ranks_connect(b, g, "sockets");
}

void process_end(pid_t child, int number)
{
	kill(child, number);
	waitpid(child, NULL, 0);
}

void ranks_leave(struct bench *b)
{
	for (int g = 0; g < GROUPS; g++) {
		fclose(b->plan[g]);
		for (int s = 0; s < SERVERS; s++)
			ocs_moe_gate_close(b->gate[g][s]);
	}
}

void controller_stop(struct bench *b, int number)
{
	ranks_leave(b);
	process_end(b->controller, number);
	if (number == SIGTERM) {
		char *sockets = bench_path(b, "sockets");

		assert_int_equal(access(sockets, F_OK), -1);
		free(sockets);
	}
}

struct ocs_client *job_start(struct bench *b)
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
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'g1'}");
	assert_null(json_object_object_get(reply, "key"));
	file_write(b, "relay.key",
		   json_object_get_string(json_object_object_get(reply, "agent_key")));
	json_object_put(reply);
	return client;
}

int circuits_between(struct bench *b, int group, int one, int other)
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

void rows_say(struct bench *b, int group, int layer, int microbatch, const int *partner)
{
	for (int s = 0; s < SERVERS; s++) {
		int64_t row[SERVERS] = { 10, 10, 10, 10 };

		row[partner[s]] = 1000000;
		ocs_moe_gate(b->gate[group][s], layer, microbatch, row, SERVERS);
	}
}

int plan_ask(struct bench *b, int group, int layer, int microbatch, int backward, int second,
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
int pass_go(struct bench *b, int group, int microbatch, const int *partner)
{
	int all, count;

	plan_ask(b, group, 0, microbatch, 0, 0, 0, partner[0], &all);
	rows_say(b, group, 0, microbatch, partner);
	step_over(b, group, 0, microbatch, 0, 0);
	usleep(b->pause_us);
	count = plan_ask(b, group, 0, microbatch, 0, 1, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 0, 1);
	plan_ask(b, group, 0, microbatch, 1, 0, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 1, 0);
	plan_ask(b, group, 0, microbatch, 1, 1, 0, partner[0], &all);
	step_over(b, group, 0, microbatch, 1, 1);
	return count;
}

const int bench_far[SERVERS] = { 2, 3, 0, 1 }, bench_near[SERVERS] = { 1, 0, 3, 2 };

/* Passes until the plan has both circuits of the pair; what comes next is learnt in the first ones.  A
 * controller that has to find ocsd first may be late: after 30 passes there is a pause before each. */
int passes_go(struct bench *b, int group, int microbatch, const int *partner)
{
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);

	for (int i = 0; i < 30 || ocs_now_ns() < deadline; i++, microbatch++) {
		if (i >= 30)
			usleep(20000);
		/* all-to-alls take their time, in which rows come in also where there is a relay */
		b->pause_us = i < 100 ? (unsigned int)i * 1000 : 100000;
		if (pass_go(b, group, microbatch, partner) == NICS)
			return microbatch + 1;
	}
	fail_msg("group %d: a minute of passes until %d, and no circuits for %d", group, microbatch,
		 partner[0]);
	return 0;
}

int bench_setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}
