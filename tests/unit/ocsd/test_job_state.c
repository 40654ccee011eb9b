/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Every event in every state of an allocation: doc/architecture.md has the same table, and this
 * one is compared with it.  What the database and the switches learn is counted by stand-ins. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"
#include "src/util/text.h"

static int written, removed, abandoned, kept;

void ocsd_store_job_update(struct ocsd *d, const struct ocsd_job *job)
{
	(void)d;
	(void)job;
	written++;
}

void ocsd_store_job_remove(struct ocsd *d, const struct ocsd_job *job)
{
	(void)d;
	(void)job;
	removed++;
}

void ocsd_transition_abandon(struct ocsd *d, struct ocsd_job *job)
{
	(void)d;
	(void)job;
	abandoned++;
}

void ocsd_transitions_end(struct ocsd_job *job)
{
	(void)job;
	kept++;
}

/* A row for each state, as many words as there are events: the next state, "-" where the event is
 * refused; then "+" if its row is written, "!" if its circuits are cut, "=" if they stay as they are,
 * "x" if its row is removed. */
static const char *const table[] = {
	/* from        START     VERIFIED   DEGRADE    RESTORE   REPAIR      REPAIRED  FAIL
	   END       RELEASED  GONE      CUT      CLOSE */
	"COMMITTED    APPLYING+  -          -          -         -           -         ROLLED_BACK+!"
	" CUT_DUE+  -         CUT_DUE+  -        -",
	"APPLYING     -          REALISED+  -          -         -           -         ROLLED_BACK+!"
	" CUT_DUE+  -         CUT_DUE+  -        -",
	"REALISED     -          -          DEGRADED+  -         REPAIRING+  -         FAILED+="
	" LEAVING+= -         CUT_DUE+  -        -",
	"DEGRADED     -          -          DEGRADED+  REALISED+ REPAIRING+  -         FAILED+="
	" LEAVING+= -         CUT_DUE+  -        -",
	"REPAIRING    -          -          -          -         -           REALISED  FAILED+="
	" LEAVING+= -         CUT_DUE+  -        -",
	"FAILED       -          -          -          -         -           -         -"
	" LEAVING+= -         CUT_DUE+  -        -",
	"ROLLED_BACK  -          -          -          -         -           -         -"
	" CUT_DUE+  -         CUT_DUE+  -        -",
	"LEAVING      -          -          -          -         -           -         -"
	" -         CUT_DUE   CUT_DUE+  -        -",
	"CUT_DUE      -          -          -          -         -           -         -"
	" -         -         CUT_DUE+  CUTTING! -",
	"CUTTING      -          -          -          -         -           -         -"
	" -         -         CUTTING+  -        CLOSEDx",
	"CLOSED       -          -          -          -         -           -         -"
	" -         -         -         -        -",
};

static const char *state_name(const struct ocsd_job *job)
{
	return ocsd_job_state_entry(job->state)->name;
}

static enum ocsd_job_state state_named(const char *name)
{
	for (int state = 0; state < OCSD_JOB_STATES; state++)
		if (strcmp(ocsd_job_state_entry((enum ocsd_job_state)state)->name, name) == 0)
			return (enum ocsd_job_state)state;
	fail_msg("there is no state %s", name);
	return OCSD_JOB_STATES;
}

/* One pair; WORD as in the table. */
static void check_pair(enum ocsd_job_state from, enum ocsd_job_event event, const char *word)
{
	struct ocsd_job job, before;
	size_t length = strcspn(word, "+!=x");
	char *to = ocs_strdup(word);

	memset(&job, 0, sizeof(job));
	job.job = 7;
	job.epoch = 70;
	job.state = from;
	before = job;
	written = removed = abandoned = kept = 0;
	to[length] = '\0';
	assert_int_equal(ocsd_job_may(&job, event), strcmp(to, "-") != 0);
	assert_memory_equal(&job, &before, sizeof(job));
	if (strcmp(to, "-") == 0) {
		assert_false(ocsd_job_move(NULL, &job, event));
		assert_memory_equal(&job, &before, sizeof(job));
	} else {
		assert_true(ocsd_job_move(NULL, &job, event));
		if (strcmp(state_name(&job), to) != 0)
			fail_msg("%s in %s leads to %s", ocsd_job_event_name(event),
				 ocsd_job_state_entry(from)->name, state_name(&job));
		before.state = job.state;
		assert_memory_equal(&job, &before, sizeof(job));
	}
	assert_int_equal(written, strchr(word, '+') ? 1 : 0);
	assert_int_equal(abandoned, strchr(word, '!') ? 1 : 0);
	assert_int_equal(kept, strchr(word, '=') ? 1 : 0);
	assert_int_equal(removed, strchr(word, 'x') ? 1 : 0);
	free(to);
}

static void every_pair(void **state)
{
	bool seen[OCSD_JOB_STATES] = { false };

	(void)state;
	assert_int_equal(sizeof(table) / sizeof(*table), OCSD_JOB_STATES);
	for (size_t i = 0; i < OCSD_JOB_STATES; i++) {
		char *line = ocs_strdup(table[i]), *rest = line, *name = strtok_r(rest, " ", &rest);
		enum ocsd_job_state from = state_named(name);

		assert_false(seen[from]);
		seen[from] = true;
		for (int event = 0; event < OCSD_JOB_EVENTS; event++) {
			const char *word = strtok_r(rest, " ", &rest);

			assert_non_null(word);
			check_pair(from, (enum ocsd_job_event)event, word);
		}
		assert_null(strtok_r(rest, " ", &rest));
		free(line);
	}
}

/* ---- what each state is called outside ---- */

static void words(void **state)
{
	static const struct {
		const char *name, *word, *gauge;
		int stored, rolled_back, over;
	} rows[] = {
		{ "COMMITTED", "committed", "committed", 0, 0, 0 },
		{ "APPLYING", "applying", "applying", 1, 0, 0 },
		{ "REALISED", "realised", "realised", 2, 0, 0 },
		{ "DEGRADED", "degraded", "realised", 2, 0, 0 },
		{ "REPAIRING", "repairing", "realised", 2, 0, 0 },
		{ "FAILED", "failed", "failed", 3, 0, 0 },
		{ "ROLLED_BACK", "failed", "failed", 3, 1, 0 },
		{ "LEAVING", "ended", "ended", -1, -1, 1 },
		{ "CUT_DUE", "ended", "ended", -1, -1, 1 },
		{ "CUTTING", "ended", "ended", -1, -1, 1 },
		{ "CLOSED", "ended", "ended", -1, -1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ocsd_job job = { .epoch = 1, .state = state_named(rows[i].name) };
		const struct ocsd_job_state_entry *entry = ocsd_job_state_entry(job.state);

		assert_string_equal(ocsd_job_state_name(&job), rows[i].word);
		assert_string_equal(entry->gauge, rows[i].gauge);
		assert_int_equal(entry->stored, rows[i].stored);
		assert_int_equal(entry->rolled_back, rows[i].rolled_back);
		assert_int_equal(entry->over, rows[i].over);
		assert_int_equal(ocsd_job_living(&job), !rows[i].over);
		/* A job that waits for its nodes is "prepared", whatever its circuits are. */
		job.epoch = 0;
		assert_string_equal(ocsd_job_state_name(&job), rows[i].over ? "ended" : "prepared");
	}
}

/* stored, ended, gone, rolled_back, with an error: the state after a start. */
static void restored(void **state)
{
	static const struct {
		int stored;
		bool ended, gone, rolled_back, error;
		enum ocsd_job_state to;
	} rows[] = {
		{ 0, 0, 0, 0, 0, OCSD_JOB_COMMITTED }, { 1, 0, 0, 0, 0, OCSD_JOB_COMMITTED },
		{ 2, 0, 0, 0, 0, OCSD_JOB_REALISED },  { 2, 0, 0, 0, 1, OCSD_JOB_DEGRADED },
		{ 3, 0, 0, 0, 1, OCSD_JOB_FAILED },    { 3, 0, 0, 1, 1, OCSD_JOB_ROLLED_BACK },
		{ 0, 1, 0, 0, 0, OCSD_JOB_CUT_DUE },   { 1, 1, 0, 0, 0, OCSD_JOB_CUT_DUE },
		{ 2, 1, 0, 0, 0, OCSD_JOB_LEAVING },   { 2, 1, 1, 0, 0, OCSD_JOB_CUT_DUE },
		{ 3, 1, 0, 0, 1, OCSD_JOB_LEAVING },   { 3, 1, 0, 1, 1, OCSD_JOB_CUT_DUE },
		{ 3, 1, 1, 0, 1, OCSD_JOB_CUT_DUE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(ocsd_job_state_restore(rows[i].stored, rows[i].ended, rows[i].gone,
							rows[i].rolled_back, rows[i].error),
				 rows[i].to);
}

/* What a state that is left says in the database brings it back after a kill: APPLYING asks again,
 * a repair is seen from its circuits. */
static void stored_and_restored(void **state)
{
	(void)state;
	for (int from = 0; from < OCSD_JOB_LEAVING; from++) {
		const struct ocsd_job_state_entry *entry =
			ocsd_job_state_entry((enum ocsd_job_state)from);
		enum ocsd_job_state to = ocsd_job_state_restore(
			entry->stored, entry->over, false, entry->rolled_back,
			from == OCSD_JOB_DEGRADED || entry->stored == 3);

		assert_int_equal(to, from == OCSD_JOB_APPLYING	? OCSD_JOB_COMMITTED :
				     from == OCSD_JOB_REPAIRING ? OCSD_JOB_REALISED :
								  (enum ocsd_job_state)from);
	}
}

/* ---- the document ---- */

/* Takes the cells of a line "| a | b |" out of *TEXT; returns how many. */
static int row_cells(char *line, char **cells, int room)
{
	int count = 0;

	for (char *cell = strtok_r(line + 1, "|", &line); cell && count < room;
	     cell = strtok_r(NULL, "|", &line)) {
		while (*cell == ' ' || *cell == '`')
			cell++;
		cell[strcspn(cell, " `")] = '\0';
		cells[count++] = cell;
	}
	return count;
}

static void document(void **state)
{
	FILE *file = fopen(TEST_SOURCE_DIR "/doc/architecture.md", "r");
	char line[1024];
	int rows = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && !strstr(line, "## States of an allocation"))
		;
	while (fgets(line, sizeof(line), file) && strncmp(line, "## ", 3) != 0) {
		char *cells[OCSD_JOB_EVENTS + 2];
		enum ocsd_job_state from;
		int count;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "| `", 3) != 0 || strstr(line, "CIRCUIT"))
			continue;
		count = row_cells(line, cells, OCSD_JOB_EVENTS + 2);
		if (count != OCSD_JOB_EVENTS + 1)
			continue;
		from = state_named(cells[0]);
		rows++;
		for (int event = 0; event < OCSD_JOB_EVENTS; event++) {
			struct ocsd_job job = { .job = 7, .epoch = 70, .state = from };

			if (!ocsd_job_may(&job, (enum ocsd_job_event)event)) {
				assert_string_equal(cells[event + 1], "");
				continue;
			}
			ocsd_job_move(NULL, &job, (enum ocsd_job_event)event);
			assert_string_equal(cells[event + 1], state_name(&job));
		}
	}
	fclose(file);
	/* CLOSED has no transition and no row. */
	assert_int_equal(rows, OCSD_JOB_STATES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair), cmocka_unit_test(words),
		cmocka_unit_test(restored),   cmocka_unit_test(stored_and_restored),
		cmocka_unit_test(document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
