/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Many links that are sent to at once, by several threads: what each is to get comes whole and in
 * order, and each hears what became of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/rails/controller/controller.h"
#include "src/util/text.h"

#define LINKS 200
#define ROUNDS 100
#define LONG (1 << 18) /* more than a socket takes at once */

static struct link links[LINKS];
static int ends[LINKS];
static struct senders *senders;

static int links_open(void **state)
{
	(void)state;
	senders = senders_create();
	for (int i = 0; i < LINKS; i++) {
		int pair[2];

		assert_int_equal(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			0);
		links[i] = (struct link){ .fd = pair[0] };
		ends[i] = pair[1];
	}
	return 0;
}

static int links_close(void **state)
{
	(void)state;
	senders_destroy(senders);
	for (int i = 0; i < LINKS; i++) {
		close(links[i].fd);
		if (ends[i] >= 0)
			close(ends[i]);
		ocs_outbox_free(&links[i].outbox);
	}
	return 0;
}

static void record_put(int link, uint64_t round)
{
	struct ocs_frame_grant grant = { .group = (uint64_t)link, .idx = round };

	ocs_outbox_record(&links[link].outbox, OCS_FRAME_GRANTS, &grant, sizeof(grant));
	senders_add(senders, &links[link]);
}

/* Each round another share of the links, from none to all. */
static void whole_and_in_order(void **state)
{
	uint64_t said[LINKS] = { 0 };

	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		int every = (int)(round % 7) + 1;

		for (int i = 0; i < LINKS; i++)
			if (i % every == 0 && round % 11)
				record_put(i, said[i]++);
		senders_run(senders);
		for (int i = 0; i < LINKS; i++)
			if (i % every == 0 && round % 11)
				assert_int_equal(links[i].sent, 1);
	}
	for (int i = 0; i < LINKS; i++) {
		struct ocs_inbox inbox = { 0 };
		struct ocs_frame frame;
		struct ocs_frame_grant grant;
		uint64_t came = 0;

		while (ocs_inbox_fill(&inbox, ends[i], SIZE_MAX) > 0)
			while (ocs_inbox_next(&inbox, &frame) > 0) {
				assert_int_equal(ocs_frame_records(&frame, OCS_FRAME_GRANTS), 1);
				ocs_frame_grant_at(&frame, 0, &grant);
				assert_int_equal(grant.group, i);
				assert_int_equal(grant.idx, came++);
			}
		assert_int_equal(came, said[i]);
		ocs_inbox_free(&inbox);
	}
}

/* A link that is full, and one whose other end is gone, are told apart from the others. */
static void full_and_gone(void **state)
{
	uint8_t *body = ocs_calloc(1, LONG);

	(void)state;
	close(ends[LINKS - 1]);
	ends[LINKS - 1] = -1;
	for (int i = 0; i < 8; i++)
		ocs_outbox_frame(&links[0].outbox, OCS_FRAME_NOTE, body, LONG, NULL, 0);
	for (int i = 0; i < LINKS; i++)
		record_put(i, 0);
	senders_run(senders);
	assert_int_equal(links[0].sent, 0);
	assert_true(links[0].outbox.used > 0);
	assert_int_equal(links[LINKS - 1].sent, -1);
	for (int i = 1; i < LINKS - 1; i++) {
		assert_int_equal(links[i].sent, 1);
		assert_int_equal(links[i].outbox.used, 0);
	}
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole_and_in_order, links_open, links_close),
		cmocka_unit_test_setup_teardown(full_and_gone, links_open, links_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
