/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Before a port returns from quarantine it is joined with a loop port and measured.
 * Loop ports belong to ocsd alone: what is found on them is cut. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/ports/selftest.h"

#include "src/util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ocsd_selftest {
	struct ocsd_selftest *next;
	int port; /* 0: something is left on a loop port */
	uid_t who;
	struct ocs_patch left;
};

static char *name_of(const struct ocsd_switch *sw, int port)
{
	return ocs_asprintf("%s:%d", sw->description->name, port);
}

static bool is_free(const struct ocsd_switch *sw, int port)
{
	int size = sw->description->size;

	if (sw->ports[port].owner || sw->ports[port].foreign)
		return false;
	for (int in = 1; in <= size; in++)
		if (sw->by_in[in] && (sw->by_in[in]->a == port || sw->by_in[in]->b == port))
			return false;
	return true;
}

/* A loop port that PORT can be joined with, or 0. */
static int partner_find(const struct ocsd_switch *sw, int port)
{
	const struct ocs_switch *description = sw->description;

	for (int i = 0; i < description->nloop_ports; i++) {
		int loop = description->loop_ports[i];

		if (loop != port && is_free(sw, loop) &&
		    (!description->bidi ||
		     (loop <= description->size) != (port <= description->size)))
			return loop;
	}
	return 0;
}

bool ocsd_selftest_needed(struct ocsd *d, const struct ocsd_switch *sw, int port)
{
	char *name = name_of(sw, port);
	const struct ocsd_drain *drain = ocsd_drain_find(d, "port", name);

	free(name);
	return drain && sw->description->nloop_ports &&
	       !strncmp(drain->reason, OCSD_QUARANTINE, strlen(OCSD_QUARANTINE));
}

static void test_append(struct ocsd_switch *sw, struct ocsd_selftest *test)
{
	struct ocsd_selftest **at = &sw->selftest.queue;

	while (*at)
		at = &(*at)->next;
	*at = test;
}

int ocsd_selftest_start(struct ocsd *d, struct ocsd_switch *sw, int port, uid_t who,
			struct ocs_error *err)
{
	const char *name = sw->description->name;
	struct ocsd_selftest *test;

	(void)d;
	if (sw->status.state != OCSD_UP)
		return ocs_error_set(err, OCS_NOT_NOW,
				     "port %s:%d needs a self-test, and switch %s "
				     "does not answer",
				     name, port, name);
	if (!is_free(sw, port))
		return ocs_error_set(err, OCS_NOT_NOW,
				     "port %s:%d needs a self-test, and is in use%s", name, port,
				     sw->ports[port].foreign ? " by a patch that is not ours" : "");
	if (!partner_find(sw, port))
		return ocs_error_set(err, OCS_NOT_NOW,
				     "port %s:%d needs a self-test, and no loop port "
				     "of switch %s is free for it",
				     name, port, name);
	test = ocs_calloc(1, sizeof(*test));
	test->port = port;
	test->who = who;
	test_append(sw, test);
	return 0;
}

void ocsd_selftest_leftover(struct ocsd_switch *sw, int in, int out)
{
	struct ocsd_selftest *test;

	if (sw->selftest.over)
		return;
	for (test = sw->selftest.queue; test; test = test->next)
		if (!test->port && test->left.in == in && test->left.out == out)
			return;
	test = ocs_calloc(1, sizeof(*test));
	test->left = (struct ocs_patch){ in, out };
	test_append(sw, test);
}

static struct ocsd_selftest *take_first(struct ocsd_switch *sw)
{
	struct ocsd_selftest *test = sw->selftest.queue;

	sw->selftest.queue = test->next;
	return test;
}

bool ocsd_selftest_next(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_test *test)
{
	struct ocs_error err;
	int loop;

	memset(test, 0, sizeof(*test));
	while (sw->selftest.queue) {
		int port = sw->selftest.queue->port;

		if (!port) {
			test->remove[test->nremove++] = sw->selftest.queue->left;
			ocs_log(OCS_LOG_INFO, "switch %s: the patch %d>%d on a loop port is cut",
				sw->description->name, sw->selftest.queue->left.in,
				sw->selftest.queue->left.out);
			break;
		}
		/* A job may have taken the port meanwhile. */
		loop = is_free(sw, port) ? partner_find(sw, port) : 0;
		if (loop) {
			test->npatches = ocs_switch_patches(sw->description, port, loop,
							    test->patches, &err);
			if (test->npatches > 0)
				break;
		}
		ocsd_selftest_done(d, sw, OCS_SWITCH_REJECTED,
				   "the port or the loop port is in use");
	}
	if (!sw->selftest.queue)
		return false;
	for (int i = 0; i < test->npatches; i++) {
		test->limit[i] = ocsd_power_limit(d, sw, test->patches[i].in, test->patches[i].out);
		test->remove[test->nremove++] = test->patches[i];
	}
	for (int i = 0; i < test->nremove; i++) {
		char *text = ocs_asprintf("%d>%d", test->remove[i].in, test->remove[i].out);

		ocsd_audit(d, &(struct ocsd_audit){ .sw = sw,
						    .before = text,
						    .what = test->npatches ? "selftest" :
									     "loop_cleared" });
		free(text);
	}
	return true;
}

/* Keeps the end of a test for those who wait for it. */
static void result_keep(struct ocsd *d, const char *name, bool passed, const char *text)
{
	struct ocsd_test_result *result = ocs_calloc(1, sizeof(*result));

	result->number = ++d->replies.ntested;
	result->name = ocs_strdup(name);
	result->passed = passed;
	result->text = ocs_strdup(text);
	result->next = d->replies.test_results;
	d->replies.test_results = result;
	d->replies.due = true;
}

const struct ocsd_test_result *ocsd_selftest_result(const struct ocsd *d, const char *name,
						    uint64_t after)
{
	const struct ocsd_test_result *first = NULL;

	for (const struct ocsd_test_result *at = d->replies.test_results; at; at = at->next)
		if (at->number > after && strcmp(at->name, name) == 0)
			first = at;
	return first;
}

void ocsd_selftest_results_forget(struct ocsd *d)
{
	while (d->replies.test_results) {
		struct ocsd_test_result *result = d->replies.test_results;

		d->replies.test_results = result->next;
		free(result->name);
		free(result->text);
		free(result);
	}
}

void ocsd_selftest_done(struct ocsd *d, struct ocsd_switch *sw, int result, const char *text)
{
	struct ocsd_selftest *test = take_first(sw);
	char *name;

	if (test->port) {
		name = name_of(sw, test->port);
		ocsd_audit(d, &(struct ocsd_audit){ .sw = sw,
						    .what = "selftest_outcome",
						    .before = name,
						    .reply = text });
		if (result == OCS_SWITCH_OK) {
			ocs_log(OCS_LOG_INFO,
				"port %s passed its self-test (%s) and is back in service", name,
				text);
			ocsd_resume(d, "port", name, test->who);
		} else {
			ocs_log(OCS_LOG_ERROR, "port %s stays in quarantine: %s", name, text);
		}
		result_keep(d, name, result == OCS_SWITCH_OK, text);
		free(name);
	}
	free(test);
}

void ocsd_selftests_free(struct ocsd_switch *sw)
{
	while (sw->selftest.queue)
		free(take_first(sw));
}
