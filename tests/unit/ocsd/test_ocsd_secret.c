/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The password of a switch is in its file and in the conversation with the switch,
 * and nowhere else: not in a log, the database, an answer, an argument or the
 * environment.  A file that others can use is not used. */

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define SECRET "X7-hush:quietly;1"

static const char switches[] = "  - name: vault-[0-1]\n"
			       "    driver: tl1\n"
			       "    dialect: calient\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/{name}.secret\n"
			       "    size: 16\n";

/* Bytes may be binary: no string functions. */
static bool holds(const char *path, const char *what)
{
	size_t length = strlen(what), used = 0, size = 1 << 22;
	char *data = ocs_calloc(1, size);
	FILE *file = fopen(path, "r");
	bool found = false;

	assert_non_null(file);
	used = fread(data, 1, size, file);
	fclose(file);
	for (size_t i = 0; !found && i + length <= used; i++)
		found = memcmp(data + i, what, length) == 0;
	free(data);
	return found;
}

static void search_process(pid_t pid)
{
	static const char *const files[] = { "cmdline", "environ" };

	for (int i = 0; i < 2; i++) {
		char *path = ocs_asprintf("/proc/%d/%s", (int)pid, files[i]);

		if (holds(path, "X7-hush"))
			fail_msg("%s holds the password", path);
		free(path);
	}
}

/* Every file below FOLDER but the secrets themselves; returns how many. */
static int search_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char *path = ocs_asprintf("%s/%s", folder, entry->d_name);
		struct stat st;

		assert_int_equal(lstat(path, &st), 0);
		if (S_ISDIR(st.st_mode) && entry->d_name[0] != '.')
			count += search_folder(path);
		if (S_ISREG(st.st_mode) && !strstr(path, ".secret")) {
			if (holds(path, "X7-hush") || holds(path, "quietly"))
				fail_msg("%s holds the password", path);
			count++;
		}
		free(path);
	}
	closedir(dir);
	return count;
}

static void search(struct rig *rig)
{
	char *log = ocs_asprintf("%s/ocsd.log", rig->emulator.folder);

	search_process(rig->daemon);
	search_process(rig->emulator.pid);
	/* ocs.yaml, two logs, the database at least; and the search can find */
	assert_in_range(search_folder(rig->emulator.folder), 4, 1000);
	assert_true(holds(log, "vault-0"));
	free(log);
}

static char *secret_path(struct rig *rig, int i)
{
	return ocs_asprintf("%s/vault-%d.secret", rig->emulator.folder, i);
}

static void write_secret(struct rig *rig, int i, const char *password)
{
	char *path = secret_path(rig, i);
	char *text = ocs_asprintf("user=admin\npassword=%s\n", password);
	struct ocs_error err;

	assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
	free(text);
	free(path);
}

/* What show says about a switch; the caller frees it. */
static char *shown(struct ocs_client *client, const char *name)
{
	struct json_object *reply =
		rig_ask(client, "{'op':'show','what':'switch','name':'%s'}", name);
	char *text = ocs_strdup(json_object_to_json_string(reply));

	json_object_put(reply);
	assert_null(strstr(text, "X7-hush"));
	return text;
}

static void expect(struct ocs_client *client, const char *name, const char *part)
{
	char *text = shown(client, name);

	if (!strstr(text, part))
		fail_msg("'%s' does not say '%s'", text, part);
	free(text);
}

static void nowhere_else(void **state)
{
	struct rig rig;
	struct ocs_client *client;
	char *path;

	(void)state;
	rig_prepare(&rig);
	rig.switches = switches;
	write_secret(&rig, 0, SECRET);
	write_secret(&rig, 1, SECRET);
	rig_start(&rig);
	client = rig_client(&rig);
	rig_until_switch(client, "vault-0", "up");
	search(&rig);
	/* the wrong password, and one that an error could quote */
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(&rig, SIGTERM), 0);
	write_secret(&rig, 0, SECRET "-not");
	path = secret_path(&rig, 1);
	assert_int_equal(ocs_file_write(path, "user=admin\n" SECRET "\n", 29, 0600,
					&(struct ocs_error){ 0 }),
			 0);
	rig_start_daemon(&rig);
	client = rig_client(&rig);
	rig_until_switch(client, "vault-0", "failed");
	expect(client, "vault-0", "PICC, not permitted");
	expect(client, "vault-1", "vault-1.secret:2: expected a line user=... or password=...");
	search(&rig);
	ocs_client_close(client);
	free(path);
	rig_end(&rig);
}

static void permissions(void **state)
{
	static const struct {
		mode_t mode;
		const char *says; /* NULL: good */
	} cases[] = {
		{ 0600, NULL },
		{ 0400, NULL },
		{ 0644, "mode 0644 lets others use it" },
		{ 0660, "mode 0660 lets others use it" },
		{ 0602, "lets others use it" },
		{ 0604, "lets others use it" },
		{ 0601, "lets others use it" },
	};
	struct rig rig;
	char *path;

	(void)state;
	rig_prepare(&rig);
	rig.switches = switches;
	write_secret(&rig, 0, SECRET);
	write_secret(&rig, 1, SECRET);
	rig_start(&rig);
	path = secret_path(&rig, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_client *client;

		assert_int_equal(rig_stop_daemon(&rig, SIGTERM), 0);
		assert_int_equal(chmod(path, cases[i].mode), 0);
		rig_start_daemon(&rig);
		client = rig_client(&rig);
		rig_until_switch(client, "vault-0", cases[i].says ? "failed" : "up");
		if (cases[i].says)
			expect(client, "vault-0", cases[i].says);
		ocs_client_close(client);
	}
	/* somebody else's file, and no file */
	if (geteuid() == 0) {
		struct ocs_client *client;

		assert_int_equal(rig_stop_daemon(&rig, SIGTERM), 0);
		assert_int_equal(chmod(path, 0600) + chown(path, 65534, 65534), 0);
		rig_start_daemon(&rig);
		client = rig_client(&rig);
		rig_until_switch(client, "vault-0", "failed");
		expect(client, "vault-0", "belongs to uid 65534");
		ocs_client_close(client);
	}
	search(&rig);
	free(path);
	rig_end(&rig);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(nowhere_else),
	cmocka_unit_test(permissions),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: secrets", tests, NULL, NULL);
}
