/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Two jobs on the same switches, each of which asks for the next change as soon as it has the last: neither keeps the
 * other waiting, also where a port of one does not obey. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/ocsd/topo_rig.h"

#define ANSWERS 40
#define SECOND \
	1000000 /* sequence numbers of the second job begin here: its answers are told by them */

static void next_send(struct ocs_client *client, const struct tenant *t, int seq)
{
	rig_send(client, TOPO_REQUEST, t->job, t->job * 10, seq, t->key,
		 seq % 2 ? "{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}" :
			   "{'rail':0,'topo':'111'},{'rail':1,'topo':'111'}");
}

/* Takes ANSWERS answers, and counts those of each job; the greatest number that one had while the other waited. */
static int answers_take(struct ocs_client *client, const struct tenant *t[2], int seq[2],
			int good[2])
{
	int in_turn = 0, most = 0, before = -1;

	for (int j = 0; j < 2; j++)
		next_send(client, t[j], ++seq[j]);
	for (int i = 0; i < ANSWERS; i++) {
		struct json_object *reply = rig_reply(client);
		int j = rig_number(topo_row(reply, 0), "seq") >= SECOND;

		good[j] += !json_object_object_get(topo_row(reply, 0), "error");
		in_turn = j == before ? in_turn + 1 : 1;
		most = in_turn > most ? in_turn : most;
		before = j;
		json_object_put(reply);
		next_send(client, t[j], ++seq[j]);
	}
	for (int j = 0; j < 2; j++)
		json_object_put(rig_reply(client));
	return most;
}

static void in_turn(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	const struct tenant *both[2] = { &a, &b };
	int seq[2] = { 0, SECOND }, good[2] = { 0, 0 }, most;

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	rig_emulate(rig, "delay 10");
	most = answers_take(client, both, seq, good);
	assert_int_equal(good[0] + good[1], ANSWERS);
	assert_true(most <= 3);
	assert_true(good[0] >= ANSWERS / 2 - 3 && good[1] >= ANSWERS / 2 - 3);
	/* A job whose changes fail and which asks again at once gets no more of the switch than the other. */
	rig_emulate(rig, "port ph-0 4 refuse");
	good[0] = good[1] = 0;
	answers_take(client, both, seq, good);
	print_message("# where a port of the first does not obey: %d and %d changes\n", good[0],
		      good[1]);
	assert_true(good[0] < good[1]);
	assert_true(good[1] >= ANSWERS / 3);
	rig_emulate(rig, "port ph-0 4 good");
	rig_emulate(rig, "delay 2");
	/* what the port refused to cut is tried again at the next poll */
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	topo_end(client, &a);
	topo_end(client, &b);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_turn, topo_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
