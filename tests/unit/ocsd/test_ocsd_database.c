/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Databases that ocsd must not start with: every page damaged in turn, cut short, without
 * the journal, of another version, of somebody else.  Each is refused with one line of
 * advice and left as it is, and the circuits stay. */

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
#include <sqlite3.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define PATCHES 16 /* of one job: 2x2x4 over two cubes */
#define PAGE 4096

struct file {
	char *path, *data;
	size_t length;
};

static void load(struct file *f, const struct rig *rig, const char *name)
{
	struct ocs_error err;

	f->path = ocs_asprintf("%s/state/%s", rig->emulator.folder, name);
	f->data = ocs_file_read(f->path, 1 << 24, &f->length, &err);
	if (!f->data)
		fail_msg("%s", err.text);
}

static void put(const struct file *f, const char *data, size_t length)
{
	FILE *stream = fopen(f->path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(data, 1, length, stream), length);
	assert_int_equal(fclose(stream), 0);
}

static bool same(const struct file *f, const char *data, size_t length)
{
	struct ocs_error err;
	size_t now;
	char *text = ocs_file_read(f->path, 1 << 24, &now, &err);
	bool equal = text && now == length && memcmp(text, data, length) == 0;

	free(text);
	return equal;
}

static void unload(struct file *f)
{
	free(f->data);
	free(f->path);
}

static void empty_log(struct rig *rig)
{
	rig_put(rig, "ocsd.log", "%s", "");
}

/* ocsd does not start, and says PART. */
static void refuses(struct rig *rig, const char *part)
{
	char *output;

	empty_log(rig);
	if (rig_try_daemon(rig))
		fail_msg("ocsd starts instead of saying \"%s\"", part);
	output = rig_daemon_log(rig);
	if (!strstr(output, part))
		fail_msg("no \"%s\" in %s", part, output);
	free(output);
}

/* One job with circuits, some history and a drain; ocsd ends, all is in one file. */
static void prepare(struct rig *rig)
{
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	struct ocs_client *client = rig_client(rig);

	json_object_put(rig_ask(client,
				"{'op':'commit','job':1,'epoch':1,'uid':1000,'user':'alice',"
				"'section':'pod','nodes':'%s','shape':'2x2x4',"
				"'conn':'torus,torus,torus','placement':'%s'}",
				nodes, placement));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'n0'}"));
	json_object_put(rig_ask(client, "{'op':'commit','job':2,'epoch':2,'uid':1000,'user':'bob',"
					"'section':'ring','nodes':'d[0-3]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':2,'node':'d0'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':2}"));
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c3','reason':'x'}"));
	json_object_put(
		rig_ask(client, "{'op':'drain','kind':'xpu','name':'c2:0,1,0','reason':'z'}"));
	ocs_client_close(client);
	rig_until_patches(rig, PATCHES);
	rig_stop_daemon(rig, SIGTERM);
	free(nodes);
	free(placement);
}

/* What ocsd says that it knows. */
static char *state_of(struct rig *rig)
{
	static const char *const whats[] = { "job", "circuit", "port" };
	struct ocs_client *client = rig_client(rig);
	struct ocs_text text = { 0 };

	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
		struct json_object *reply = rig_ask(client, "{'op':'show','what':'%s'}", whats[i]);

		json_object_object_del(reply, "id");
		json_object_object_del(reply, "revision");
		ocs_text_add(&text, "%s\n", json_object_to_json_string(reply));
		json_object_put(reply);
	}
	ocs_client_close(client);
	return ocs_text_take(&text);
}

/* With COUNT bytes inverted from AT on: refused and untouched, or what is known is the
 * same.  Returns whether it was refused. */
static bool damage(struct rig *rig, const struct file *f, size_t at, size_t count,
		   const char *known)
{
	char *bad = ocs_calloc(1, f->length), *state, *output;
	bool refused;

	memcpy(bad, f->data, f->length);
	for (size_t i = at; i < at + count; i++)
		bad[i] = (char)~bad[i];
	put(f, bad, f->length);
	empty_log(rig);
	refused = !rig_try_daemon(rig);
	if (refused) {
		output = rig_daemon_log(rig);
		if (!strstr(output, "ocsd.db is damaged: move it") &&
		    !strstr(output, "ocsd.db has version") && !strstr(output, "ocsd wrote last"))
			fail_msg("byte %zu: %s", at, output);
		free(output);
		assert_true(same(f, bad, f->length));
	} else {
		state = state_of(rig);
		if (strcmp(state, known) != 0)
			fail_msg("byte %zu: %s instead of %s", at, state, known);
		free(state);
		rig_stop_daemon(rig, SIGTERM);
	}
	assert_int_equal(rig_patches(rig), PATCHES);
	put(f, f->data, f->length);
	free(bad);
	return refused;
}

static void every_page(void **state)
{
	struct rig *rig = *state;
	struct file f;
	size_t pages;
	char *known;
	int refused = 0;

	prepare(rig);
	rig_start_daemon(rig);
	known = state_of(rig);
	rig_stop_daemon(rig, SIGTERM);
	load(&f, rig, "ocsd.db");
	pages = f.length / PAGE;
	assert_true(pages > 10);
	for (size_t page = 0; page < pages; page++) {
		/* its kind, how many rows, where they begin; page 1 begins with the file's own */
		bool head = damage(rig, &f, page * PAGE + (page ? 0 : 100), 8, known);
		bool file = !page && damage(rig, &f, 0, 100, known);

		assert_true(head);
		assert_true(page || file);
		refused += head + file;
	}
	/* the last bytes of a page are rows: a whole half of it is never missed */
	for (size_t page = 0; page < pages; page++)
		refused += damage(rig, &f, page * PAGE + PAGE / 2, PAGE / 2, known);
	print_message("# %zu pages: %d of %zu damages refused, the others were in free space\n",
		      pages, refused, 2 * pages + 1);
	assert_true(refused > (int)pages + 5);
	rig_start_daemon(rig);
	free(known);
	unload(&f);
}

/* Cut at each page, and within; nothing; something else. */
static void cut_short(void **state)
{
	static const char noise[] = "#!/bin/sh\necho this is no database at all\n";
	struct rig *rig = *state;
	struct file f;

	prepare(rig);
	load(&f, rig, "ocsd.db");
	for (size_t length = 0; length < f.length; length += PAGE) {
		put(&f, f.data, length);
		refuses(rig, length ? "is damaged: move it" : "is empty: restore a copy");
		assert_true(same(&f, f.data, length));
	}
	put(&f, f.data, f.length - 1000);
	refuses(rig, "is damaged: move it");
	put(&f, noise, strlen(noise));
	refuses(rig, "is damaged: move it");
	assert_true(same(&f, noise, strlen(noise)));
	put(&f, f.data, f.length);
	rig_start_daemon(rig);
	unload(&f);
}

/* The journal of a daemon that was killed is lost, comes from another time, or is all
 * that is left; an old copy of everything. */
static void journal(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client;
	struct file old, db, wal;
	char *lock;

	prepare(rig);
	load(&old, rig, "ocsd.db");
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c2','reason':'y'}"));
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGKILL);
	load(&db, rig, "ocsd.db");
	load(&wal, rig, "ocsd.db-wal");
	assert_true(wal.length > 0);
	/* lost */
	assert_int_equal(unlink(wal.path), 0);
	refuses(rig, "is not what ocsd wrote last");
	assert_true(same(&db, db.data, db.length));
	/* cut in the middle of a frame */
	put(&wal, wal.data, wal.length - 2000);
	refuses(rig, "put its -wal file back");
	assert_true(same(&wal, wal.data, wal.length - 2000));
	/* alone */
	put(&wal, wal.data, wal.length);
	assert_int_equal(unlink(db.path), 0);
	refuses(rig, "is there without the database");
	assert_true(same(&wal, wal.data, wal.length));
	/* an old copy; whoever means it says so */
	assert_int_equal(unlink(wal.path), 0);
	put(&old, old.data, old.length);
	refuses(rig, "to go on with it as it is, remove ocsd.lock");
	lock = ocs_asprintf("%s/state/ocsd.lock", rig->emulator.folder);
	assert_int_equal(unlink(lock), 0);
	rig_start_daemon(rig);
	rig_stop_daemon(rig, SIGKILL);
	assert_int_equal(rig_patches(rig), PATCHES);
	rig_start_daemon(rig);
	free(lock);
	unload(&old);
	unload(&db);
	unload(&wal);
}

static void change(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *wrong = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s: %s", sql, wrong);
	sqlite3_close(db);
}

/* Sound for SQLite, and yet not what ocsd wrote. */
static void strange(void **state)
{
	static const struct {
		const char *sql, *part;
	} cases[] = {
		{ "PRAGMA user_version=7", "has version 7 and this ocsd reads version 1" },
		{ "DROP TABLE releases", "is damaged: move it" },
		{ "DROP TRIGGER audit_delete", "is damaged: move it" },
		{ "ALTER TABLE ports RENAME COLUMN port TO gate", "is damaged: move it" },
		{ "DELETE FROM jobs", "is damaged: move it" },
		{ "UPDATE jobs SET state=9", "is damaged: move it" },
		{ "UPDATE circuits SET a=a+8", "is damaged: move it" },
		{ "UPDATE circuits SET state=-1", "is damaged: move it" },
		{ "DELETE FROM ports WHERE port=1", "is damaged: move it" },
		{ "DELETE FROM meta WHERE name='max_epoch'", "is damaged: move it" },
		{ "UPDATE drains SET kind='cubic'", "is damaged: move it" },
	};
	struct rig *rig = *state;
	struct file f;

	prepare(rig);
	load(&f, rig, "ocsd.db");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		change(f.path, cases[i].sql);
		refuses(rig, cases[i].part);
		put(&f, f.data, f.length);
	}
	/* whose it is */
	assert_int_equal(chmod(f.path, 0666), 0);
	refuses(rig, "may be written by others (mode 0666): chmod");
	assert_int_equal(chmod(f.path, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(f.path, 65534, 65534), 0);
		refuses(rig, "belongs to user 65534, not to the account of ocsd (0): chown");
		assert_int_equal(chown(f.path, 0, 0), 0);
	}
	assert_int_equal(rig_patches(rig), PATCHES);
	rig_start_daemon(rig);
	unload(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_page, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(cut_short, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(journal, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(strange, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("ocsd: database", tests, NULL, NULL);
}
