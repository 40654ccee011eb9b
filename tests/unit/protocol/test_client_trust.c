/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A client against a process of another account where ocsd should answer: it is told
 * nothing that it can read, and nothing that it says is believed. */

#include <ctype.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>

#include <json-c/json.h>
#include <netinet/in.h>

#include "src/protocol/account.h"
#include "src/protocol/client.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"
#include "tests/unit/protocol/munge_peer.h"

#define STRANGER 65534
#define STRANGER_TEXT "65534"
#define PATIENCE_NS INT64_C(5000000000)
#define CHALLENGE "00112233445566778899aabbccddeeff"
#define CLAIM(uid) "{\"challenge\":\"" CHALLENGE "\",\"uid\":" uid ",\"key\":false}\n"
#define OLD_SEAL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef "

/* What the other side learned. */
enum { TOLD_NOTHING = 40, TOLD_SEALED, TOLD_ALL };

struct attack {
	const char *greeting; /* sent at once */
	const char *answer;   /* to the hello */
	const char *says;     /* part of the client's error; NULL: it believes */
	const char *user;     /* of ocs.yaml */
	int told;
};

/* Seals an answer with the key of the session, which it has read. */
static void answer_sealed(int fd, const char *payload, int64_t deadline)
{
	static const char text[] = "{\"id\":1,\"ok\":true,\"uid\":0}";
	const char *key = strchr(payload, ' ');
	char prefix[OCS_MAC_HEX + 2];
	struct ocs_seal seal;
	struct ocs_error err;
	char *line;

	ocs_seal_start(&seal, key ? key + 1 : "", true);
	ocs_seal_prefix(&seal, text, strlen(text), prefix);
	line = ocs_asprintf("%s%s\n", prefix, text);
	ocs_net_write(fd, line, strlen(line), deadline, &err);
	free(line);
}

/* The stranger's life: one connection. */
static int deceive(const struct attack *attack, int listener)
{
	int64_t deadline = ocs_now_ns() + PATIENCE_NS;
	struct pollfd wait = { .fd = listener, .events = POLLIN };
	struct json_object *hello, *credential;
	struct ocs_lines lines = { 0 };
	int told = TOLD_NOTHING;
	struct ocs_error err;
	char *line, *payload;

	if (poll(&wait, 1, 5000) != 1 || (lines.fd = accept(listener, NULL, NULL)) < 0)
		return 1;
	if (*attack->greeting)
		ocs_net_write(lines.fd, attack->greeting, strlen(attack->greeting), deadline, &err);
	while ((line = ocs_lines_next(&lines, 1 << 20, deadline, &err))) {
		told = TOLD_SEALED;
		hello = json_tokener_parse(line);
		payload = json_object_object_get_ex(hello, "credential", &credential) ?
				  munge_payload(json_object_get_string(credential)) :
				  NULL;
		if (payload) {
			told = TOLD_ALL;
			answer_sealed(lines.fd, payload, deadline);
		} else if (attack->answer) {
			ocs_net_write(lines.fd, attack->answer, strlen(attack->answer), deadline,
				      &err);
		}
		free(payload);
		json_object_put(hello);
		free(line);
	}
	return told;
}

static pid_t start_stranger(const struct attack *attack, int listener)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgid(STRANGER) || setuid(STRANGER))
			_exit(99);
		_exit(deceive(attack, listener));
	}
	return pid;
}

static void meet(const struct attack *attack, const char *key, const char *address, int listener)
{
	pid_t stranger = start_stranger(attack, listener);
	struct ocs_client *client;
	struct ocs_error err = { 0 };
	int status;

	client = ocs_client_open(address, key, attack->user, 1000, &err);
	if (!client != (attack->says != NULL))
		fail_msg("%s: %s", attack->greeting, client ? "believed" : err.text);
	if (attack->says) {
		assert_int_equal(err.code, OCS_UNREACHABLE);
		if (!strstr(err.text, attack->says))
			fail_msg("%s: %s", attack->greeting, err.text);
		for (const char *c = err.text; *c; c++)
			assert_true(isprint((unsigned char)*c));
	}
	ocs_client_close(client);
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != attack->told)
		fail_msg("%s, then %s: %d", attack->greeting, attack->answer, WEXITSTATUS(status));
}

static int listen_somewhere(char *address, size_t size)
{
	struct sockaddr_in bound;
	socklen_t length = sizeof(bound);
	struct ocs_error err;
	int listener = ocs_net_listen("127.0.0.1:0", &err);

	assert_true(listener >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&bound, &length), 0);
	snprintf(address, size, "127.0.0.1:%d", ntohs(bound.sin_port));
	return listener;
}

static void over_tcp(void **state)
{
	static const char lie[] = CLAIM("0"), ours[] = "does not come from this ocsd",
			  bare[] = "nothing proves", not_ocsd[] = "is not ocsd",
			  quiet[] = "within 1000 ms";
	const struct attack attacks[] = {
		/* Who is known to be ocsd can do all: the stranger knows how. */
		{ CLAIM(STRANGER_TEXT), NULL, NULL, STRANGER_TEXT, TOLD_ALL },
		{ CLAIM(STRANGER_TEXT), NULL, "runs as uid 65534", "0", TOLD_NOTHING },
		{ CLAIM(STRANGER_TEXT), NULL, "runs as uid 65534", NULL, TOLD_NOTHING },
		{ CLAIM(STRANGER_TEXT), NULL, "no account nosuch-account", "nosuch-account",
		  TOLD_NOTHING },
		{ CLAIM("-1"), NULL, not_ocsd, "0", TOLD_NOTHING },
		{ CLAIM("4294967295"), NULL, not_ocsd, "0", TOLD_NOTHING },
		{ CLAIM("4294967296"), NULL, not_ocsd, "0", TOLD_NOTHING },
		{ CLAIM("\"0\""), NULL, not_ocsd, "0", TOLD_NOTHING },
		{ CLAIM("null"), NULL, not_ocsd, "0", TOLD_NOTHING },
		{ "{\"challenge\":\"a 0\",\"uid\":0,\"key\":false}\n", NULL, not_ocsd, "0",
		  TOLD_NOTHING },
		{ "{\"challenge\":\"\",\"uid\":0,\"key\":false}\n", NULL, not_ocsd, "0",
		  TOLD_NOTHING },
		{ "{\"challenge\":\"" CHALLENGE "\",\"uid\":0,\"key\":true}\n", NULL, "shared key",
		  "0", TOLD_NOTHING },
		{ "{\"ok\":false,\"code\":1,\"error\":\"x\",\"superseded\":true}\n", NULL, not_ocsd,
		  "0", TOLD_NOTHING },
		{ "[]\n", NULL, "not a JSON object", "0", TOLD_NOTHING },
		{ "", NULL, quiet, "0", TOLD_NOTHING },
		{ "{\"challenge\":\"" CHALLENGE, NULL, quiet, "0", TOLD_NOTHING },
		/* It names an account that is not its own. */
		{ lie, NULL, quiet, "0", TOLD_SEALED },
		{ lie, "{\"id\":1,\"ok\":true,\"uid\":0}\n", ours, "0", TOLD_SEALED },
		{ lie, "{\"id\":1,\"ok\":fal", quiet, "0", TOLD_SEALED },
		{ lie,
		  "{\"id\":1,\"ok\":false,\"code\":1,\"superseded\":true,"
		  "\"error\":\"gone\\u001b[2J\\n\xff now\"}\n",
		  bare, "0", TOLD_SEALED },
		{ lie, "{\"id\":1,\"ok\":false,\"superseded\":true}\n", ours, "0", TOLD_SEALED },
		{ lie, "{\"event\":\"superseded\",\"controller\":0}\n", ours, "0", TOLD_SEALED },
		{ lie, "{\"event\":\"job_failed\",\"job\":1,\"epoch\":1}\n", ours, "0",
		  TOLD_SEALED },
		{ lie, OLD_SEAL "{\"id\":1,\"ok\":true,\"uid\":0}\n", ours, "0", TOLD_SEALED },
		{ lie, "\n\n\n", ours, "0", TOLD_SEALED },
	};
	pid_t munged = 0;
	char address[32];
	int listener;

	(void)state;
	if (geteuid() != 0 || (!munge_works() && !(munged = munge_start())))
		skip();
	listener = listen_somewhere(address, sizeof(address));
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		meet(&attacks[i], NULL, address, listener);
	close(listener);
	munge_stop(munged);
}

/* With a shared key the seal says who is there; the stranger has none. */
static void over_tcp_with_key(void **state)
{
	static const char *const answers[] = {
		"{\"id\":1,\"ok\":true,\"uid\":0}\n",
		"{\"id\":1,\"ok\":false,\"superseded\":true,\"error\":\"another key\"}\n",
		"{\"event\":\"superseded\",\"controller\":0}\n",
		OLD_SEAL "{\"id\":1,\"ok\":true,\"uid\":0}\n",
	};
	char folder[] = "/tmp/ocs-trust-XXXXXX", address[32], *key;
	struct ocs_error err;
	char bytes[64];
	int listener;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	key = ocs_asprintf("%s/key", folder);
	memset(bytes, 'k', sizeof(bytes));
	assert_int_equal(ocs_file_write(key, bytes, sizeof(bytes), 0600, &err), 0);
	listener = listen_somewhere(address, sizeof(address));
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const struct attack attack = {
			"{\"challenge\":\"" CHALLENGE "\",\"uid\":65534,\"key\":true}\n",
			answers[i],
			i == 1 ? "nothing proves" : "does not come from this ocsd",
			NULL,
			TOLD_SEALED,
		};

		meet(&attack, key, address, listener);
	}
	close(listener);
	unlink(key);
	rmdir(folder);
	free(key);
}

/* More than a greeting, and no end. */
static void flood(void **state)
{
	char *text = ocs_calloc(1, (1 << 20) + 1);
	struct attack attack = { text, NULL, "longer than", "0", TOLD_NOTHING };
	char address[32];
	int listener;

	(void)state;
	if (geteuid() != 0)
		skip();
	memset(text, 'x', 1 << 20);
	listener = listen_somewhere(address, sizeof(address));
	meet(&attack, NULL, address, listener);
	close(listener);
	free(text);
}

/* On a UNIX socket it is known who listens, before anything is said. */
static void over_unix(void **state)
{
	const struct attack attacks[] = {
		{ "{\"event\":\"superseded\"}\n", NULL, "runs as uid 65534", "0", TOLD_NOTHING },
		{ "", NULL, "runs as uid 65534", NULL, TOLD_NOTHING },
		{ "", NULL, NULL, STRANGER_TEXT, TOLD_NOTHING },
	};
	char folder[] = "/tmp/ocs-trust-XXXXXX", address[64];
	struct ocs_error err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0777), 0);
	snprintf(address, sizeof(address), "unix:%s/socket", folder);
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		int listener;

		/* The socket is of who listens, not of who made the folder. */
		assert_int_equal(seteuid(STRANGER), 0);
		listener = ocs_net_listen(address, &err);
		assert_int_equal(seteuid(0), 0);
		assert_true(listener >= 0);
		meet(&attacks[i], NULL, address, listener);
		close(listener);
		unlink(address + 5);
	}
	rmdir(folder);
}

static void accounts(void **state)
{
	struct ocs_error err;
	uid_t uid = 77;

	(void)state;
	assert_int_equal(ocs_account_uid("root", &uid, &err), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(ocs_account_uid("4294967294", &uid, &err), 0);
	assert_int_equal(uid, 4294967294U);
	assert_int_equal(ocs_account_uid(NULL, &uid, &err), 0);
	assert_int_equal(ocs_account_uid("nosuch-account", &uid, &err), -1);
	assert_non_null(strstr(err.text, "write its number"));
	assert_int_equal(ocs_account_check("4294967294", 4294967294U, &err), 0);
	assert_int_equal(ocs_account_check("4294967294", 0, &err), 0);
	assert_int_equal(ocs_account_check("4294967294", geteuid(), &err), 0);
	assert_int_equal(ocs_account_check("4294967294", 4294967293U, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(accounts),	     cmocka_unit_test(over_unix), cmocka_unit_test(flood),
	cmocka_unit_test(over_tcp_with_key), cmocka_unit_test(over_tcp),
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("client: trust", tests, NULL, NULL);
}
