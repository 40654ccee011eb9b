/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Two slurmctlds, of which one has ocsd. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "tests/unit/ocsd/ocsd_rig.h"

static uint64_t term_of(struct json_object *reply)
{
	uint64_t term = (uint64_t)rig_number(reply, "term");

	json_object_put(reply);
	return term;
}

static void run_job_7(struct ocs_client *slurmctld)
{
	json_object_put(rig_ask(slurmctld,
				"{'op':'commit','job':7,'epoch':70,'uid':1000,'user':'alice',"
				"'section':'ring','nodes':'d[0-3]'}"));
	json_object_put(rig_ask(slurmctld, "{'op':'apply','job':7,'epoch':70,'node':'d0'}"));
}

/* Two slurmctlds: the one that took charge last has ocsd, the one before is dropped and
 * refused as long as its successor is there; who only watches is not concerned. */
static void one_slurmctld_at_a_time(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *first = rig_client(rig), *second = rig_client(rig), *late;
	struct ocs_client *watcher = rig_client(rig);
	struct json_object *reply;
	struct ocs_error err = { 0 };
	uint64_t one, two;

	one = term_of(rig_ask(first, "{'op':'subscribe','jobs':[],'term':0}"));
	reply = rig_ask(watcher, "{'op':'subscribe'}");
	assert_false(json_object_object_get_ex(reply, "term", NULL));
	json_object_put(reply);
	json_object_put(rig_ask(first, "{'op':'pending','job':5,'reason':'needs more'}"));
	reply = rig_ask(second, "{'op':'subscribe','jobs':[],'term':0}");
	/* it hears which jobs wait as far as ocsd knows */
	assert_string_equal(json_object_to_json_string_ext(json_object_object_get(reply, "pending"),
							   JSON_C_TO_STRING_PLAIN),
			    "[5]");
	two = term_of(reply);
	assert_true(one && two > one);
	/* the first finds its connection closed */
	while (err.code == OCS_OK)
		json_object_put(ocs_client_next(first, RIG_PATIENCE_MS, &err));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	late = rig_client(rig);
	rig_send(late, "{'op':'subscribe','jobs':[],'term':%llu}", (unsigned long long)one);
	reply = rig_reply(late);
	assert_non_null(strstr(rig_text(reply, "error"), "another slurmctld has taken over"));
	json_object_put(reply);
	/* Its successor is away: a try that failed must not leave ocsd without anybody. */
	ocs_client_close(second);
	for (int i = 0; i < 6000; i++) {
		rig_send(late, "{'op':'subscribe','jobs':[],'term':%llu}", (unsigned long long)one);
		reply = rig_reply(late);
		if (term_of(reply) == one)
			break;
		usleep(20000);
	}
	second = rig_client(rig);
	assert_true(two == term_of(rig_ask(second, "{'op':'subscribe','jobs':[],'term':%llu}",
					   (unsigned long long)two)));
	json_object_put(rig_ask(watcher, "{'op':'show','what':'fabric'}"));
	ocs_client_close(watcher);
	ocs_client_close(second);
	ocs_client_close(late);
	ocs_client_close(first);
}

/* The first of two slurmctlds hangs and wakes when the second has taken over: it is told,
 * and refused for good, whether or not the second is there at that moment. */
static void late_slurmctld(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *first = rig_client(rig), *second = rig_client(rig), *late;
	struct json_object *reply, *list;
	struct ocs_error err = { 0 };
	uint64_t one, two;

	one = term_of(rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'controller':0}"));
	two = term_of(rig_ask(second, "{'op':'subscribe','jobs':[],'term':0,'controller':1}"));
	run_job_7(second);
	reply = rig_event(first, "superseded");
	assert_int_equal(rig_number(reply, "controller"), 1);
	json_object_put(reply);
	assert_null(ocs_client_next(first, RIG_PATIENCE_MS, &err));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	for (int i = 0; i < 3; i++) {
		late = rig_client(rig);
		/* with the list of jobs that it had: nothing of the second's is taken from it */
		reply = rig_refused(late, OCS_ERROR, "another slurmctld has taken over",
				    "{'op':'subscribe','jobs':[],'term':%llu,'controller':0}",
				    (unsigned long long)one);
		assert_true(json_object_get_boolean(json_object_object_get(reply, "superseded")));
		json_object_put(reply);
		assert_string_equal(rig_job_state(late, 7), "realised");
		ocs_client_close(late);
		if (i == 0)
			ocs_client_close(second);
		if (i == 1) {
			rig_stop_daemon(rig, SIGKILL);
			rig_start_daemon(rig);
		}
	}
	second = rig_client(rig);
	assert_true(two == term_of(rig_ask(second,
					   "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],"
					   "'term':%llu,'controller':1}",
					   (unsigned long long)two)));
	/* who starts anew gets a new one */
	ocs_client_close(first);
	first = rig_client(rig);
	assert_true(two < term_of(rig_ask(first, "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],"
						 "'term':0,'controller':0}")));
	json_object_put(rig_event(second, "superseded"));
	assert_string_equal(rig_job_state(first, 7), "realised");
	/* and may have died before it had saved that the job has started */
	reply = rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'controller':0}");
	assert_int_equal(rig_number(reply, "max_job"), 7);
	list = json_object_object_get(reply, "forgotten");
	assert_int_equal(json_object_array_length(list), 1);
	assert_int_equal(rig_number(json_object_array_get_idx(list, 0), "job"), 7);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 0), "nodes"), "d[0-3]");
	json_object_put(reply);
	/* again, if that answer was lost */
	reply = rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'controller':0}");
	assert_int_equal(json_object_array_length(json_object_object_get(reply, "forgotten")), 1);
	assert_int_equal(json_object_array_length(json_object_object_get(reply, "held")), 1);
	json_object_put(reply);
	json_object_put(rig_ask(first, "{'op':'gone','job':7,'epoch':70}"));
	json_object_put(rig_event(first, "released"));
	reply = rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'controller':0}");
	assert_int_equal(rig_number(reply, "max_job"), 7);
	assert_int_equal(json_object_array_length(json_object_object_get(reply, "forgotten")), 0);
	json_object_put(reply);
	ocs_client_close(first);
	ocs_client_close(second);
}

/* A slurmctld that could not ask for its term at once, since ocsd was down or it hung: it has
 * the jobs that it read then, and whoever has read them since is in charge. */
static void first_term_asked_late(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *first = rig_client(rig), *second = rig_client(rig);
	uint64_t one, two;

	/* Both took charge while ocsd was down; the one before asks first. */
	one = term_of(rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'controller':0,"
				     "'age_ms':60000}"));
	two = term_of(rig_ask(second, "{'op':'subscribe','jobs':[],'term':0,'controller':1,"
				      "'age_ms':30000}"));
	assert_true(two > one);
	run_job_7(second);
	json_object_put(rig_event(first, "superseded"));
	ocs_client_close(first);
	/* It never heard of its term, so it asks for the first again. */
	for (int i = 0; i < 2; i++) {
		struct json_object *reply;

		first = rig_client(rig);
		reply = rig_refused(first, OCS_ERROR, "another slurmctld has taken over",
				    "{'op':'subscribe','jobs':[],'term':0,'controller':0,"
				    "'age_ms':90000}");
		assert_true(json_object_get_boolean(json_object_object_get(reply, "superseded")));
		json_object_put(reply);
		assert_string_equal(rig_job_state(first, 7), "realised");
		ocs_client_close(first);
		if (i)
			break;
		rig_stop_daemon(rig, SIGKILL);
		rig_start_daemon(rig);
	}
	/* The one in charge may lose its answer as well. */
	ocs_client_close(second);
	second = rig_client(rig);
	assert_true(two < term_of(rig_ask(second, "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],"
						  "'term':0,'controller':1,'age_ms':40000}")));
	/* Started anew the first has read what the second saved. */
	first = rig_client(rig);
	json_object_put(rig_ask(first, "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],'term':0,"
				       "'controller':0,'age_ms':20}"));
	json_object_put(rig_event(second, "superseded"));
	assert_string_equal(rig_job_state(first, 7), "realised");
	ocs_client_close(first);
	ocs_client_close(second);
}

/* The only slurmctld of a cluster is moved to another machine while the one before hangs: when
 * that goes on it is refused as a primary is whose backup has taken charge.  On the same
 * machine it is a start that failed, and the one before goes on. */
static void moved_slurmctld(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *first = rig_client(rig), *second = rig_client(rig), *late;
	struct json_object *reply;
	uint64_t one, two;

	one = term_of(rig_ask(first, "{'op':'subscribe','jobs':[],'term':0,'boot':'b1'}"));
	two = term_of(rig_ask(second, "{'op':'subscribe','jobs':[],'term':0,'boot':'b2'}"));
	run_job_7(second);
	json_object_put(rig_event(first, "superseded"));
	ocs_client_close(first);
	/* its successor is away for a moment, as is everybody */
	rig_stop_daemon(rig, SIGKILL);
	rig_start_daemon(rig);
	late = rig_client(rig);
	reply = rig_refused(late, OCS_ERROR, "another slurmctld has taken over",
			    "{'op':'subscribe','jobs':[],'term':%llu,'boot':'b1'}",
			    (unsigned long long)one);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "superseded")));
	json_object_put(reply);
	assert_string_equal(rig_job_state(late, 7), "realised");
	ocs_client_close(late);
	ocs_client_close(second);
	/* A slurmctld of the second machine that takes charge and ends at once. */
	late = rig_client(rig);
	json_object_put(rig_ask(late, "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],'term':0,"
				      "'boot':'b2'}"));
	ocs_client_close(late);
	second = rig_client(rig);
	for (int i = 0; i < 6000; i++) {
		rig_send(second,
			 "{'op':'subscribe','jobs':[{'job':7,'epoch':70}],'term':%llu,"
			 "'boot':'b2'}",
			 (unsigned long long)two);
		if (term_of(rig_reply(second)) == two)
			break;
		usleep(20000);
	}
	assert_string_equal(rig_job_state(second, 7), "realised");
	ocs_client_close(second);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(one_slurmctld_at_a_time, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(late_slurmctld, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(first_term_asked_late, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(moved_slurmctld, rig_setup, rig_teardown),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: two slurmctlds", tests, NULL, NULL);
}
