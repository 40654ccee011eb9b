/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Who may ask for what, and requests that are no requests. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/protocol/munge_peer.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define STRANGER 65534

/* The children report by exit status: cmocka's asserts are for the parent. */
static int in_child(int (*run)(struct rig *rig), struct rig *rig)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(STRANGER) || setuid(STRANGER))
			_exit(99);
		_exit(run(rig));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0: ok, else the code of the refusal. */
static int ask(struct ocs_client *client, const char *text, struct json_object **reply)
{
	struct json_object *request = rig_json("%s", text);
	struct ocs_error err = { 0 };

	*reply = ocs_client_call(client, request, 5000, NULL, &err);
	json_object_put(request);
	return *reply ? 0 : err.code;
}

static size_t rows(struct json_object *reply, const char *member)
{
	struct json_object *list = NULL;

	return json_object_object_get_ex(reply, member, &list) ? json_object_array_length(list) :
								 1000;
}

static int stranger(struct rig *rig)
{
	static const char *const forbidden[] = {
		"{'op':'subscribe','jobs':[]}",
		"{'op':'commit','job':9,'epoch':90,'section':'ring','nodes':'d4'}",
		"{'op':'end','job':1,'epoch':10}",
		"{'op':'gone','job':1,'epoch':10}",
		"{'op':'apply','job':2,'epoch':20,'node':'d2'}",
		"{'op':'release','job':1,'epoch':0}",
		"{'op':'pending','job':1,'reason':null}",
		"{'op':'nodes','nodes':{}}",
		"{'op':'drain','kind':'cube','name':'c0','reason':'x'}",
		"{'op':'resume','kind':'cube','name':'c0'}",
		"{'op':'reconcile'}",
		"{'op':'show','what':'fabric'}",
		"{'op':'show','what':'switch'}",
		"{'op':'show','what':'port'}",
		"{'op':'show','what':'cube'}",
		"{'op':'show','what':'nodes'}",
	};
	struct ocs_client *client;
	struct json_object *reply;
	struct ocs_error err;
	int count = (int)(sizeof(forbidden) / sizeof(forbidden[0]));

	client = ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		return 98;
	for (int i = 0; i < count; i++)
		if (ask(client, forbidden[i], &reply) != OCS_ERROR)
			return 1 + i;
	/* Its own jobs it may see, and nothing else. */
	if (ask(client, "{'op':'show','what':'job'}", &reply) || rows(reply, "jobs") != 1)
		return 50;
	if (rig_number(json_object_array_get_idx(json_object_object_get(reply, "jobs"), 0),
		       "job") != 2)
		return 51;
	json_object_put(reply);
	if (ask(client, "{'op':'show','what':'job','name':'1'}", &reply) ||
	    rows(reply, "jobs") != 0)
		return 52;
	json_object_put(reply);
	if (ask(client, "{'op':'show','what':'circuit'}", &reply) || rows(reply, "circuits") != 0)
		return 53;
	json_object_put(reply);
	if (ask(client, "{'op':'show','what':'pending'}", &reply) || rows(reply, "pending") != 1)
		return 54;
	if (rig_number(json_object_array_get_idx(json_object_object_get(reply, "pending"), 0),
		       "job") != 6)
		return 55;
	json_object_put(reply);
	ocs_client_close(client);
	return 0;
}

static void unprivileged(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client;
	struct json_object *reply, *list;

	if (geteuid() != 0)
		skip();
	client = rig_client(rig);
	assert_int_equal(chmod(rig->emulator.folder, 0711), 0);
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':10,'uid':1000,"
					"'section':'ring','nodes':'d[0-1]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	json_object_put(rig_ask(client,
				"{'op':'commit','job':2,'epoch':20,'uid':%d,"
				"'section':'ring','nodes':'d[2-3]'}",
				STRANGER));
	json_object_put(rig_ask(client, "{'op':'pending','job':5,'user':'root','shape':'4x4',"
					"'reason':'needs more'}"));
	/* whose it is, is the uid; the name is for people */
	json_object_put(rig_ask(client,
				"{'op':'pending','job':6,'uid':%d,'user':'somebody',"
				"'shape':'4x4','reason':'needs more'}",
				STRANGER));
	json_object_put(rig_ask(client, "{'op':'pending','job':7,'uid':0,'user':'nobody',"
					"'shape':'4x4','reason':'needs more'}"));
	assert_int_equal(in_child(stranger, rig), 0);
	assert_string_equal(rig_job_state(client, 1), "realised");
	reply = rig_ask(client, "{'op':'show','what':'pending'}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 3);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 0), "reason"), "needs more");
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'pending','job':5,'reason':null}"));
	json_object_put(rig_ask(client, "{'op':'pending','job':6,'reason':null}"));
	json_object_put(rig_ask(client, "{'op':'pending','job':7,'reason':null}"));
	reply = rig_ask(client, "{'op':'show','what':'pending'}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 0);
	json_object_put(reply);
	ocs_client_close(client);
}

/* ---- doc/protocol.md says who may ask for what ---- */

#define RULES_MAX 64
#define OPERATIONS 21 /* without hello, which comes before any role */
#define VIEWS 11      /* of show */

struct rule {
	char op[32], what[32], role[32];
};

/* Read before there is a child, which may not see the sources. */
static struct rule rules[RULES_MAX];
static int rule_count;

/* The operations of doc/protocol.md, and the replies of show, with the role of each. */
static void rules_read(void)
{
	FILE *in = fopen(TEST_SOURCE_DIR "/doc/protocol.md", "r");
	char line[2048];

	assert_non_null(in);
	rule_count = 0;
	while (fgets(line, sizeof(line), in)) {
		struct rule rule = { .op = "" };

		if (sscanf(line, "### `%31[a-z]` `%31[a-z]`", rule.op, rule.what) > 0) {
			assert_true(rule_count < RULES_MAX);
			rules[rule_count++] = rule;
		} else if (rule_count && !*rules[rule_count - 1].role) {
			sscanf(line, "Role: %31[a-z].", rules[rule_count - 1].role);
		}
	}
	fclose(in);
}

/* Whether ocsd does not let CLIENT ask at all; what it says to an empty request is no matter. */
static bool role_refused(struct ocs_client *client, const struct rule *rule)
{
	struct json_object *request = rig_json("{'op':'%s'}", rule->op), *reply;
	struct ocs_error err = { 0 };
	bool refused;

	if (*rule->what)
		json_object_object_add(request, "what", json_object_new_string(rule->what));
	reply = ocs_client_call(client, request, 5000, NULL, &err);
	refused = !reply && err.code == OCS_ERROR &&
		  strstr(err.text, "only administrators of ocsd may");
	if (!reply && (err.code == OCS_UNREACHABLE || strstr(err.text, "no operation")))
		_exit(97);
	json_object_put(reply);
	json_object_put(request);
	return refused;
}

static int stranger_by_rules(struct rig *rig)
{
	struct ocs_error err;
	struct ocs_client *client =
		ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);

	if (!client)
		return 98;
	for (int i = 0; i < rule_count; i++)
		if (strcmp(rules[i].role, "none") != 0 &&
		    role_refused(client, &rules[i]) != !strcmp(rules[i].role, "administrator"))
			return 1 + i;
	ocs_client_close(client);
	return 0;
}

static void roles_as_documented(void **state)
{
	struct rig *rig = *state;
	int operations = 0, views = 0, wrong;
	struct ocs_client *client = rig_client(rig);

	rules_read();
	for (int i = 0; i < rule_count; i++) {
		if (!strcmp(rules[i].role, "none"))
			continue;
		*(*rules[i].what ? &views : &operations) += 1;
		if (strcmp(rules[i].role, "anyone") != 0 && strcmp(rules[i].role, "owner") != 0 &&
		    strcmp(rules[i].role, "controller") != 0)
			assert_string_equal(rules[i].role, "administrator");
		if (role_refused(client, &rules[i]))
			fail_msg("%s %s is refused to root", rules[i].op, rules[i].what);
	}
	assert_int_equal(operations, OPERATIONS);
	assert_int_equal(views, VIEWS);
	ocs_client_close(client);
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(rig->emulator.folder, 0711), 0);
	wrong = in_child(stranger_by_rules, rig);
	if (wrong > 0 && wrong <= rule_count)
		fail_msg("doc/protocol.md has %s %s for role %s, ocsd does not",
			 rules[wrong - 1].op, rules[wrong - 1].what, rules[wrong - 1].role);
	assert_int_equal(wrong, 0);
}

/* Writes TEXT as it is; the first line that comes back, or NULL. */
static char *raw(struct rig *rig, const char *text, size_t length)
{
	int64_t deadline = ocs_now_ns() + INT64_C(5000000000);
	struct ocs_error err;
	struct ocs_lines lines = { .fd = ocs_net_connect(rig->address, RIG_PATIENCE_MS, &err) };
	char *line;

	assert_true(lines.fd >= 0);
	/* The daemon may hang up before it has taken all. */
	ocs_net_write(lines.fd, text, length, deadline, &err);
	line = ocs_lines_next(&lines, 1 << 20, deadline, &err);
	ocs_lines_free(&lines);
	close(lines.fd);
	return line;
}

static void nonsense(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	static const char *const lines[] = {
		"hello\n",
		"[1,2]\n",
		"{\"op\":\n",
		"{}\n",
		"{\"op\":7,\"id\":1}\n",
		"{\"op\":\"show\"}\n",
		"{\"id\":1}\n",
		"\xff\xfe{}\n",
		"null\n",
		"{\"op\":\"commit\",\"id\":1,\"job\":\"x\",\"epoch\":[]}\n",
		"{\"op\":\"commit\",\"id\":1,\"job\":99999999999,\"epoch\":1}\n",
		"{\"op\":\"subscribe\",\"id\":1,\"jobs\":[1,null,{\"job\":{}}]}\n",
		"{\"op\":\"apply\",\"id\":1,\"job\":1,\"epoch\":1,\"node\":{}}\n",
		"{\"op\":\"nodes\",\"id\":1,\"nodes\":3}\n",
		"{\"op\":\"drain\",\"id\":1,\"kind\":\"port\",\"name\":\":\",\"reason\":\"x\"}\n",
		"{\"op\":\"show\",\"id\":1,\"what\":\"secrets\"}\n",
	};
	char *big, *answer;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		answer = raw(rig, lines[i], strlen(lines[i]));
		if (!answer)
			fail_msg("no answer to %s", lines[i]);
		assert_non_null(
			strstr(answer, strstr(lines[i], "subscribe") ? "true" : "\"code\":2"));
		free(answer);
	}
	/* A line without end is cut off at 1 MiB. */
	big = ocs_calloc(1, 2 << 20);
	memset(big, 'x', 2 << 20);
	assert_null(raw(rig, big, 2 << 20));
	free(big);
	json_object_put(rig_refused(client, 2, "no operation", "{'op':'format'}"));
	json_object_put(rig_ask(client, "{'op':'show','what':'fabric'}"));
	ocs_client_close(client);
}

/* ---- TCP with MUNGE ---- */

static int remote_stranger(struct rig *rig)
{
	struct json_object *reply;
	struct ocs_error err;
	struct ocs_client *client = ocs_client_open(rig->listen, NULL, NULL, RIG_PATIENCE_MS, &err);

	if (!client)
		return 98;
	if (ask(client, "{'op':'release','job':1,'epoch':0}", &reply) != OCS_ERROR)
		return 1;
	if (ask(client, "{'op':'show','what':'job'}", &reply))
		return 2;
	json_object_put(reply);
	ocs_client_close(client);
	return 0;
}

/* Says LINE instead of a proper hello; true if the daemon hangs up or refuses. */
static bool turned_away(struct rig *rig, const char *line)
{
	int64_t deadline = ocs_now_ns() + INT64_C(5000000000);
	struct ocs_error err;
	struct ocs_lines lines = { .fd = ocs_net_connect(rig->listen, RIG_PATIENCE_MS, &err) };
	char *challenge, *answer;
	bool away;

	assert_true(lines.fd >= 0);
	challenge = ocs_lines_next(&lines, 1000, deadline, &err);
	assert_non_null(challenge);
	assert_non_null(strstr(challenge, "challenge"));
	free(challenge);
	assert_int_equal(ocs_net_write(lines.fd, line, strlen(line), deadline, &err), 0);
	answer = ocs_lines_next(&lines, 1 << 20, deadline, &err);
	away = !answer || strstr(answer, "\"ok\":false");
	free(answer);
	ocs_lines_free(&lines);
	close(lines.fd);
	return away;
}

#define FLOOD 300 /* more than the 256 credentials that may wait of one address */

/* From an address of its own; answers the challenge with no credential. */
static int knock(struct rig *rig)
{
	static const char line[] = "{\"op\":\"hello\",\"id\":1,\"credential\":\"MUNGE:none:\"}\n";
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char challenge[1000];

	inet_pton(AF_INET, "127.0.0.9", &from.sin_addr);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	to.sin_port = htons((uint16_t)atoi(strchr(rig->listen, ':') + 1));
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_true(read(fd, challenge, sizeof(challenge)) > 0);
	assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	return fd;
}

/* While MUNGE is slow, one address fills its own queue. */
static void slow_munge(struct rig *rig, pid_t munged)
{
	char answer[1000] = "";
	struct ocs_client *client;
	struct ocs_error err;
	int fds[FLOOD];

	kill(munged, SIGSTOP);
	for (int i = 0; i < FLOOD; i++)
		fds[i] = knock(rig);
	assert_true(read(fds[FLOOD - 1], answer, sizeof(answer) - 1) > 0);
	kill(munged, SIGCONT);
	assert_non_null(strstr(answer, "too many credentials"));
	client = ocs_client_open(rig->listen, NULL, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	ocs_client_close(client);
	/* what waited is answered, too */
	assert_true(read(fds[0], answer, sizeof(answer) - 1) > 0);
	assert_null(strstr(answer, "too many credentials"));
	for (int i = 0; i < FLOOD; i++)
		close(fds[i]);
}

static void remote(void **state)
{
	struct rig rig;
	struct ocs_client *client;
	struct ocs_error err;
	pid_t munged = 0;

	(void)state;
	if (!munge_works() && !(munged = munge_start()))
		skip();
	rig_prepare(&rig);
	snprintf(rig.listen, sizeof(rig.listen), "127.0.0.1:%d", rig_free_port());
	rig_start(&rig);
	client = ocs_client_open(rig.listen, NULL, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':10,'uid':0,"
					"'section':'ring','nodes':'d[0-1]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d1'}"));
	assert_true(turned_away(&rig, "{\"op\":\"show\",\"id\":1,\"what\":\"fabric\"}\n"));
	assert_true(turned_away(&rig, "{\"op\":\"hello\",\"id\":1}\n"));
	assert_true(
		turned_away(&rig, "{\"op\":\"hello\",\"id\":1,\"credential\":\"MUNGE:none:\"}\n"));
	assert_true(turned_away(&rig, "nonsense\n"));
	if (geteuid() == 0)
		assert_int_equal(in_child(remote_stranger, &rig), 0);
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);
	if (munged)
		slow_munge(&rig, munged);
	rig_end(&rig);
	munge_stop(munged);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(unprivileged, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(roles_as_documented, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(nonsense, rig_setup, rig_teardown),
	cmocka_unit_test(remote),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: access", tests, NULL, NULL);
}
