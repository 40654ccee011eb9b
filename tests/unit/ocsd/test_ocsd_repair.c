/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ports that fail before and under jobs on a direct fabric: eight servers q0..q7
 * with four interfaces, one switch for each interface. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define SIZE 16

/* The plan that NODE of JOB gets; AFTER: a later one than that revision. */
static struct ocs_plan *apply(struct ocs_client *client, unsigned int job, const char *node,
			      int after)
{
	struct json_object *reply, *json;
	struct ocs_plan *plan;
	struct ocs_error err;

	reply = rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'%s','after':%d}", job,
			job * 10, node, after);
	json = json_object_object_get(reply, "plan");
	plan = ocs_plan_from_json(json, &err);
	if (!plan || ocs_plan_verify(plan, &err))
		fail_msg("%s", err.text);
	json_object_put(reply);
	return plan;
}

/* Number of the port of SERVER of PLAN: that of its name. */
static int port_of(const struct ocs_plan *plan, int server)
{
	return atoi(plan->nodes[server] + 1) + 1;
}

static bool holds(struct json_object *tables, int sw, int in, int out)
{
	char name[16];
	struct json_object *table;

	snprintf(name, sizeof(name), "quad-%d", sw);
	table = json_object_object_get(tables, name);
	for (size_t i = 0; i < json_object_array_length(table); i++) {
		struct json_object *pair = json_object_array_get_idx(table, i);

		if (json_object_get_int(json_object_array_get_idx(pair, 0)) == in &&
		    json_object_get_int(json_object_array_get_idx(pair, 1)) == out)
			return true;
	}
	return false;
}

/* The emulator holds exactly the circuits of these plans. */
static void assert_made(struct rig *rig, const struct ocs_plan *one, const struct ocs_plan *two)
{
	char *text = emulator_control(&rig->emulator, "table");
	struct json_object *tables = json_tokener_parse(text);
	const struct ocs_plan *plans[] = { one, two };
	int count = 0;

	for (int p = 0; p < 2 && plans[p]; p++)
		for (int i = 0; i < plans[p]->ncircuits; i++) {
			const struct ocs_plan_circuit *c = &plans[p]->circuits[i];
			int a = port_of(plans[p], c->a), b = port_of(plans[p], c->b);

			assert_int_equal(c->a_port, c->b_port);
			assert_true(holds(tables, c->ocs, a, SIZE + b));
			assert_true(holds(tables, c->ocs, b, SIZE + a));
			count += 2;
		}
	assert_int_equal(rig_patches(rig), count);
	json_object_put(tables);
	free(text);
}

static bool uses(const struct ocs_plan *plan, int server, int port)
{
	for (int i = 0; i < plan->ncircuits; i++)
		if ((plan->circuits[i].a == server && plan->circuits[i].a_port == port) ||
		    (plan->circuits[i].b == server && plan->circuits[i].b_port == port))
			return true;
	return false;
}

/* Circuits of OLD that NEW has not. */
static int changed(const struct ocs_plan *old, const struct ocs_plan *new)
{
	int count = 0;

	for (int i = 0; i < old->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &old->circuits[i];
		bool kept = false;

		for (int k = 0; k < new->ncircuits; k++) {
			const struct ocs_plan_circuit *n = &new->circuits[k];

			kept |= n->ocs == c->ocs &&
				((n->a == c->a && n->b == c->b) || (n->a == c->b && n->b == c->a));
		}
		count += !kept;
	}
	return count;
}

static void drained_before(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *plan;

	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'quad-1:3',"
					"'reason':'dirty'}"));
	rig_commit(client, 1, "quad", "q[0-7]");
	plan = apply(client, 1, "q0", 0);
	assert_int_equal(plan->revision, 1);
	assert_false(uses(plan, 2, 1));
	assert_true(uses(plan, 2, 0));
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_made(rig, plan, NULL);
	ocs_plan_destroy(plan);
	ocs_client_close(client);
}

static void failed_while_running(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *node = rig_client(rig);
	struct ocs_plan *first, *other, *repaired;
	struct json_object *event, *reply, *list;
	int before;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_commit(client, 1, "quad", "q[0-5]");
	rig_commit(client, 2, "quad", "q[6-7]");
	first = apply(client, 1, "q0", 0);
	other = apply(client, 2, "q6", 0);
	assert_made(rig, first, other);
	assert_true(uses(first, 0, 0));
	before = rig_log_lines(rig, "\"break\"", NULL);
	rig_send(node, "{'op':'apply','id':5,'job':1,'epoch':10,'node':'q1','after':1}");
	/* Drained alone, a port keeps what it has. */
	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'quad-0:1',"
					"'reason':'dirty'}"));
	rig_silence(node, 200);
	json_object_put(rig_refused(client, 2, "drain it",
				    "{'op':'fail','kind':'switch',"
				    "'name':'quad-0','reason':'x'}"));
	json_object_put(rig_ask(client, "{'op':'fail','kind':'port','name':'quad-0:1',"
					"'reason':'no light'}"));
	event = rig_event(client, "plan");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_int_equal(rig_number(event, "revision"), 2);
	json_object_put(event);
	/* The node that waited has it, and so has one that asks now. */
	reply = rig_reply(node);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
	assert_int_equal(rig_number(json_object_object_get(reply, "plan"), "revision"), 2);
	json_object_put(reply);
	repaired = apply(client, 1, "q1", 1);
	assert_int_equal(repaired->revision, 2);
	assert_false(uses(repaired, 0, 0));
	assert_int_equal(repaired->groups[0].nrings, 1);
	assert_true(changed(first, repaired) <= 3);
	assert_made(rig, repaired, other);
	/* The second job's circuits were never touched. */
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - before,
			 2 * changed(first, repaired));
	assert_string_equal(rig_job_state(client, 1), "realised");
	reply = rig_ask(client, "{'op':'show','what':'job','name':'1'}");
	json_object_object_get_ex(reply, "jobs", &list);
	assert_int_equal(rig_number(json_object_array_get_idx(list, 0), "revision"), 2);
	assert_int_equal(rig_number(json_object_array_get_idx(list, 0), "circuits"),
			 repaired->ncircuits);
	json_object_put(reply);
	/* The same port again: nothing is left to do. */
	json_object_put(rig_ask(client, "{'op':'fail','kind':'port','name':'quad-0:1',"
					"'reason':'no light'}"));
	rig_silence(node, 200);
	assert_made(rig, repaired, other);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20}"));
	assert_int_equal(rig_patches(rig), 0);
	ocs_plan_destroy(first);
	ocs_plan_destroy(other);
	ocs_plan_destroy(repaired);
	ocs_client_close(node);
	ocs_client_close(client);
}

/* Every interface of a server: no plan joins it. */
static void impossible(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event, *reply, *list;
	struct ocs_plan *plan;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_commit(client, 1, "quad", "q[0-3]");
	ocs_plan_destroy(apply(client, 1, "q0", 0));
	for (int i = 0; i < 3; i++) {
		json_object_put(rig_ask(client,
					"{'op':'fail','kind':'port','name':'quad-%d:1',"
					"'reason':'no light'}",
					i));
		json_object_put(rig_event(client, "plan"));
	}
	plan = apply(client, 1, "q0", 3);
	assert_int_equal(plan->revision, 4);
	assert_made(rig, plan, NULL);
	json_object_put(rig_ask(client, "{'op':'fail','kind':'port','name':'quad-3:1',"
					"'reason':'no light'}"));
	event = rig_event(client, "degraded");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_non_null(strstr(rig_text(event, "error"), "quad-3:1 failed: no light"));
	json_object_put(event);
	/* It keeps what it has, and says so. */
	assert_string_equal(rig_job_state(client, 1), "degraded");
	reply = rig_ask(client, "{'op':'show','what':'job','name':'1'}");
	json_object_object_get_ex(reply, "jobs", &list);
	assert_non_null(strstr(rig_text(json_object_array_get_idx(list, 0), "error"),
			       "cannot be repaired"));
	json_object_put(reply);
	assert_made(rig, plan, NULL);
	/* A new job on these servers is refused, for a reason. */
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	json_object_put(rig_refused(client, 4, "port quad-0:1 is drained: failed: no light",
				    "{'op':'commit','job':2,'epoch':20,'uid':1000,"
				    "'user':'alice','section':'quad','nodes':'q[0-1]'}"));
	ocs_plan_destroy(plan);
	ocs_client_close(client);
}

/* Somebody takes a port of a running job: its plan does without. */
static void stolen(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *first, *repaired;

	rig_commit(client, 1, "quad", "q[0-5]");
	first = apply(client, 1, "q0", 0);
	assert_true(uses(first, 0, 0));
	/* Ingress 1 of quad-0 is q0's: joined by hand to what belongs to q7. */
	rig_emulate(rig, "patch quad-0 1 24");
	rig_send(client, "{'op':'reconcile','id':7}");
	repaired = apply(client, 1, "q1", 1);
	assert_false(uses(repaired, 0, 0));
	assert_true(changed(first, repaired) <= 3);
	assert_string_equal(rig_job_state(client, 1), "realised");
	rig_emulate(rig, "unpatch quad-0 1");
	assert_made(rig, repaired, NULL);
	ocs_plan_destroy(first);
	ocs_plan_destroy(repaired);
	ocs_client_close(client);
}

static int setup_polling(void **state)
{
	return rig_setup_with(state, rig_quad_switches, rig_quad_fabrics, 100);
}

/* Nobody says a word: the polls miss the light of a circuit. */
static void goes_dark(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *first, *other, *repaired;
	struct json_object *event;
	int peer = -1;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_commit(client, 1, "quad", "q[0-5]");
	rig_commit(client, 2, "quad", "q[6-7]");
	first = apply(client, 1, "q0", 0);
	other = apply(client, 2, "q6", 0);
	for (int i = 0; i < first->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &first->circuits[i];

		if (c->ocs == 0 && (c->a == 0 || c->b == 0))
			peer = c->a == 0 ? c->b : c->a;
	}
	assert_true(peer > 0);
	/* Two polls must have seen it lit. */
	for (int i = 0; i < 2; i++)
		json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_emulate(rig, "port quad-0 %d fail", SIZE + port_of(first, 0));
	event = rig_event(client, "plan");
	assert_int_equal(rig_number(event, "job"), 1);
	json_object_put(event);
	repaired = apply(client, 1, "q1", 1);
	/* TL1 does not say which end it was: both are left alone. */
	assert_false(uses(repaired, 0, 0));
	assert_false(uses(repaired, peer, 0));
	assert_true(changed(first, repaired) <= 5);
	assert_made(rig, repaired, other);
	assert_string_equal(rig_job_state(client, 1), "realised");
	assert_string_equal(rig_job_state(client, 2), "realised");
	ocs_plan_destroy(first);
	ocs_plan_destroy(other);
	ocs_plan_destroy(repaired);
	ocs_client_close(client);
}

/* The light is lost before any poll has seen it: light that comes in and does not come out,
 * where an earlier job's did, is enough. */
static void dark_at_once(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *first, *second, *repaired;

	rig_commit(client, 1, "quad", "q[0-5]");
	first = apply(client, 1, "q0", 0);
	usleep(1300000); /* read-outs lag: what is read sooner is no measure */
	for (int i = 0; i < 2; i++)
		json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_commit(client, 2, "quad", "q[0-5]");
	second = apply(client, 2, "q0", 0);
	assert_int_equal(changed(first, second), 0);
	rig_emulate(rig, "port quad-0 %d fail", SIZE + port_of(second, 0));
	repaired = apply(client, 2, "q1", 1);
	assert_false(uses(repaired, 0, 0));
	assert_string_equal(rig_job_state(client, 2), "realised");
	ocs_plan_destroy(first);
	ocs_plan_destroy(second);
	ocs_plan_destroy(repaired);
	ocs_client_close(client);
}

/* A host's laser dies and comes back: its port is out of use meanwhile. */
static void host_dark(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *first, *repaired;
	struct json_object *event;
	int server = 1;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_commit(client, 1, "quad", "q[0-5]");
	first = apply(client, 1, "q0", 0);
	for (int i = 0; i < 2; i++)
		json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_emulate(rig, "port quad-0 1 lossy 70");
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "name"), "quad-0:1");
	assert_string_equal(rig_text(event, "reason"), "failed: no light comes in");
	json_object_put(event);
	repaired = apply(client, 1, "q1", 1);
	assert_false(uses(repaired, 0, 0));
	assert_true(changed(first, repaired) <= 3);
	rig_emulate(rig, "port quad-0 1 good");
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "name"), "quad-0:1");
	assert_false(json_object_get_boolean(json_object_object_get(event, "drained")));
	json_object_put(event);
	/* The job stays as it is. */
	assert_made(rig, repaired, NULL);
	/* One that somebody had drained does not come back by itself. */
	while (!uses(repaired, server, 0))
		server++;
	json_object_put(rig_ask(client,
				"{'op':'drain','kind':'port','name':'quad-0:%d',"
				"'reason':'dust'}",
				server + 1));
	json_object_put(rig_event(client, "drain"));
	rig_emulate(rig, "port quad-0 %d lossy 70", server + 1);
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "reason"),
			    "failed: no light comes in (drained before: dust)");
	json_object_put(event);
	rig_emulate(rig, "port quad-0 %d good", server + 1);
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "reason"), "dust");
	json_object_put(event);
	event = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_int_equal(json_object_array_length(json_object_object_get(event, "drains")), 1);
	json_object_put(event);
	ocs_plan_destroy(first);
	ocs_plan_destroy(repaired);
	ocs_client_close(client);
}

/* A circuit is lost, and its port will not be joined again. */
static void refuses(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *first, *repaired;

	rig_commit(client, 1, "quad", "q[0-5]");
	first = apply(client, 1, "q0", 0);
	assert_true(uses(first, 0, 0));
	rig_emulate(rig, "port quad-0 1 refuse");
	rig_emulate(rig, "unpatch quad-0 1");
	rig_send(client, "{'op':'reconcile','id':7}");
	repaired = apply(client, 1, "q1", 1);
	assert_false(uses(repaired, 0, 0));
	assert_string_equal(rig_job_state(client, 1), "realised");
	assert_made(rig, repaired, NULL);
	ocs_plan_destroy(first);
	ocs_plan_destroy(repaired);
	ocs_client_close(client);
}

/* Killed at ever later moments of a repair. */
static void killed_anywhere(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *plan;

	rig_emulate(rig, "delay 10");
	rig_commit(client, 1, "quad", "q[0-7]");
	plan = apply(client, 1, "q0", 0);
	for (int i = 0; i < 6; i++) {
		int revision = plan->revision;

		ocs_plan_destroy(plan);
		rig_send(client,
			 "{'op':'fail','id':3,'kind':'port','name':'quad-0:%d','reason':'x'}",
			 i + 1);
		usleep((unsigned int)i * 9000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		/* Asked again, as whoever got no answer does. */
		json_object_put(rig_ask(client,
					"{'op':'fail','kind':'port','name':'quad-0:%d',"
					"'reason':'x'}",
					i + 1));
		/* A port without a circuit needs no repair. */
		plan = apply(client, 1, "q0", 0);
		for (int k = 0; k < 200 && uses(plan, i, 0); k++) {
			ocs_plan_destroy(plan);
			usleep(20000);
			plan = apply(client, 1, "q0", 0);
		}
		assert_false(uses(plan, i, 0));
		assert_true(plan->revision >= revision);
		assert_made(rig, plan, NULL);
		assert_string_equal(rig_job_state(client, 1), "realised");
	}
	ocs_plan_destroy(plan);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
}

/* Killed while a circuit that the repair cuts is on a switch that does not answer.  The
 * next repair wants it back, and the job ends: it is cut all the same. */
static void wanted_back(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *plan;
	char *log;

	rig_commit(client, 1, "quad", "q[0-1]");
	plan = apply(client, 1, "q0", 0);
	assert_true(uses(plan, 0, 0));
	ocs_plan_destroy(plan);
	rig_emulate(rig, "fault quad-0 silent");
	json_object_put(
		rig_ask(client, "{'op':'fail','kind':'port','name':'quad-0:1','reason':'x'}"));
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'quad-0:1'}"));
	for (int i = 1; i < 4; i++)
		json_object_put(rig_ask(client,
					"{'op':'fail','kind':'port','name':'quad-%d:1',"
					"'reason':'x'}",
					i));
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	rig_until_switch(client, "quad-0", "failed");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_emulate(rig, "fault quad-0 none");
	rig_until_switch(client, "quad-0", "up");
	rig_until_patches(rig, 0);
	log = rig_daemon_log(rig);
	assert_null(strstr(log, "not ours"));
	free(log);
	ocs_client_close(client);
}

/* A port that a repair joins turns out to be bad: the next repair does without. */
static void not_made(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct ocs_plan *plan;

	rig_commit(client, 1, "quad", "q[0-5]");
	ocs_plan_destroy(apply(client, 1, "q0", 0));
	rig_emulate(rig, "delay quad-2 300");
	json_object_put(
		rig_ask(client, "{'op':'fail','kind':'port','name':'quad-0:1','reason':'x'}"));
	/* Two circuits of quad-2 are cut; none of their ports will be joined again. */
	for (int i = 0;
	     i < 20000 && !rig_log_lines(rig, "\"command\"", "DLT-PATCH", "quad-2", NULL); i++)
		usleep(5000);
	kill(rig->daemon, SIGSTOP);
	for (int port = 1; port <= 6; port++)
		rig_emulate(rig, "port quad-2 %d refuse", port);
	kill(rig->daemon, SIGCONT);
	plan = apply(client, 1, "q1", 2);
	assert_string_equal(rig_job_state(client, 1), "realised");
	assert_made(rig, plan, NULL);
	ocs_plan_destroy(plan);
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(drained_before, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(failed_while_running, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(impossible, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(stolen, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(goes_dark, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(dark_at_once, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(host_dark, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(refuses, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(killed_anywhere, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(wanted_back, rig_setup_quad, rig_teardown),
	cmocka_unit_test_setup_teardown(not_made, rig_setup_quad, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: repair", tests, NULL, NULL);
}
