/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The NETCONF driver against netconfd behind sshd, which nobody here wrote. */

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "tests/unit/switch/yuma_peer.h"

struct rig {
	struct yuma_peer peer;
	struct ocs_switch sw;
	struct ocs_switch_connection *connection;
	struct ocs_error err;
};

#define ATTEMPTS 3

static const char *const protocols[] = { "netconf1.1", "netconf1.0" };

/* A netconfd that gets no time for longer than the driver's pause behind its hello still
 * reads the first request together with it and never answers; ocsd tries again, too. */
static struct ocs_switch_connection *dial(struct rig *rig)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		struct ocs_switch_connection *connection =
			ocs_switch_open(&rig->sw, 20000, NULL, NULL, &rig->err);

		if (connection)
			return connection;
		printf("# attempt %d: %s\n", attempt, rig->err.text);
		if (!strstr(rig->err.text, "did not answer create-subscription"))
			break;
	}
	fail_msg("%s", rig->err.text);
	return NULL;
}

static void begin(struct rig *rig, const char *protocol)
{
	memset(rig, 0, sizeof(*rig));
	yuma_peer_start(&rig->peer, protocol);
	rig->sw = (struct ocs_switch){
		.name = (char *)"yuma",
		.driver = (char *)"netconf",
		.address = rig->peer.address,
		.credentials = rig->peer.login,
		.known_hosts = rig->peer.known_hosts,
		.size = 32,
	};
	rig->connection = dial(rig);
}

static void end(struct rig *rig)
{
	ocs_switch_close(rig->connection);
	yuma_peer_stop(&rig->peer);
}

static void apply(struct rig *rig, const struct ocs_patch *remove, size_t nremove,
		  const struct ocs_patch *add, size_t nadd, int wanted)
{
	int rc = ocs_switch_apply(rig->connection, remove, nremove, add, nadd, NULL, &rig->err);

	if (rc != wanted)
		fail_msg("%d instead of %d: %s", rc, wanted, rig->err.text);
}

/* COUNT patches, and the one that is somebody else's. */
static void table_is(struct rig *rig, const struct ocs_patch *patches, size_t count)
{
	struct ocs_table table, wanted;

	ocs_table_init(&wanted, 32);
	wanted.out[9] = 60;
	for (size_t i = 0; i < count; i++)
		wanted.out[patches[i].in] = patches[i].out;
	assert_int_equal(ocs_switch_read(rig->connection, &table, &rig->err), OCS_SWITCH_OK);
	for (int in = 1; in <= 32; in++)
		assert_int_equal(table.out[in], wanted.out[in]);
	ocs_table_free(&table);
	ocs_table_free(&wanted);
}

static const struct ocs_patch straight[] = { { 1, 33 }, { 2, 34 }, { 3, 35 } };
static const struct ocs_patch shifted[] = { { 1, 34 }, { 2, 35 }, { 3, 33 } };

/* Both framings: chunks, and end-of-message throughout. */
static void test_circuits(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ocs_patch all[31];
		struct rig rig;

		begin(&rig, protocols[i]);
		table_is(&rig, NULL, 0);
		apply(&rig, NULL, 0, straight, 3, OCS_SWITCH_OK);
		table_is(&rig, straight, 3);
		apply(&rig, straight, 3, shifted, 3, OCS_SWITCH_OK);
		table_is(&rig, shifted, 3);
		/* another connection sees the same */
		ocs_switch_close(rig.connection);
		rig.connection = dial(&rig);
		table_is(&rig, shifted, 3);
		apply(&rig, shifted, 3, NULL, 0, OCS_SWITCH_OK);
		/* everything that is left */
		for (int in = 1, n = 0; in <= 32; in++)
			if (in != 9)
				all[n++] = (struct ocs_patch){ in, in == 28 ? 41 : 32 + in };
		apply(&rig, NULL, 0, all, 27, OCS_SWITCH_OK);
		table_is(&rig, all, 27);
		apply(&rig, all, 27, NULL, 0, OCS_SWITCH_OK);
		table_is(&rig, NULL, 0);
		end(&rig);
	}
}

static void test_health(void **state)
{
	struct ocs_health health;
	struct rig rig;

	(void)state;
	begin(&rig, protocols[0]);
	assert_int_equal(ocs_switch_health(rig.connection, &health, &rig.err), OCS_SWITCH_OK);
	assert_int_equal(health.port[7].status, OCS_PORT_FAILED);
	assert_int_equal(health.port[8].status, OCS_PORT_TUNED);
	assert_true(fabs(health.port[36].dbm + 2.36) < 1e-9);
	ocs_health_free(&health);
	/* a description that lies */
	rig.sw.size = 16;
	assert_null(ocs_switch_open(&rig.sw, 20000, NULL, NULL, &rig.err));
	assert_string_equal(rig.err.text, "switch yuma: is 32x32, but its description says 16x16");
	rig.sw.size = 32;
	rig.sw.dialect = (char *)"ocp";
	assert_null(ocs_switch_open(&rig.sw, 20000, NULL, NULL, &rig.err));
	assert_non_null(strstr(rig.err.text, "tells of no ports in ports of the model urn:ocp"));
	end(&rig);
}

/* What the driver does if the table changed after it was read. */
static void test_refusals(void **state)
{
	const struct ocs_patch taken = { 9, 61 }, free_port = { 5, 40 },
			       both[] = { free_port, taken };
	const struct ocs_patch gone[] = { { 5, 40 }, { 9, 60 } };
	const struct ocs_switch_driver *driver;
	struct rig rig;
	size_t used;

	(void)state;
	begin(&rig, protocols[0]);
	driver = rig.connection->driver;
	/* an ingress that has a pair is not moved, and nothing else of the batch is done */
	assert_int_equal(driver->add(rig.connection, both, 2, &used, &rig.err), OCS_SWITCH_DENIED);
	if (!strstr(rig.err.text, "refused edit-config: data-exists"))
		fail_msg("%s", rig.err.text);
	assert_int_equal(rig.connection->blame, OCS_BLAME_PORT);
	table_is(&rig, NULL, 0);
	assert_int_equal(driver->add(rig.connection, &taken, 1, &used, &rig.err),
			 OCS_SWITCH_DENIED);
	assert_int_equal(rig.connection->blamed_port, 9);
	/* one that has none is gone already; within a batch it holds the others up */
	assert_int_equal(driver->remove(rig.connection, &free_port, 1, &used, &rig.err),
			 OCS_SWITCH_OK);
	assert_int_equal(driver->remove(rig.connection, gone, 2, &used, &rig.err),
			 OCS_SWITCH_DENIED);
	assert_non_null(strstr(rig.err.text, "data-missing"));
	table_is(&rig, NULL, 0);
	end(&rig);
}

/* Two managers at once: the lock keeps each edit whole, and a table in which an
 * egress has two peers, which this server lets pass, is noticed. */
static void test_two_managers(void **state)
{
	const struct ocs_patch second = { 10, 60 };
	struct ocs_switch_connection *other;
	struct ocs_table table;
	struct rig rig;
	size_t used;

	(void)state;
	begin(&rig, protocols[0]);
	other = dial(&rig);
	apply(&rig, NULL, 0, straight, 3, OCS_SWITCH_OK);
	assert_int_equal(ocs_switch_apply(other, straight, 3, shifted, 3, NULL, &rig.err),
			 OCS_SWITCH_OK);
	table_is(&rig, shifted, 3);
	assert_int_equal(other->driver->add(other, &second, 1, &used, &rig.err), OCS_SWITCH_OK);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_UNKNOWN);
	assert_string_equal(
		rig.err.text,
		"switch yuma: reports the patch 10>60 for a port that has another peer");
	ocs_switch_close(other);
	end(&rig);
}

/* The server dies under the connection, and is not there for the next. */
static void test_lost(void **state)
{
	struct ocs_table table;
	struct rig rig;

	(void)state;
	begin(&rig, protocols[0]);
	kill(rig.peer.server, SIGKILL);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_UNKNOWN);
	assert_null(ocs_switch_open(&rig.sw, 5000, NULL, NULL, &rig.err));
	assert_int_equal(rig.err.code, OCS_UNREACHABLE);
	end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circuits), cmocka_unit_test(test_health),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_two_managers),
		cmocka_unit_test(test_lost),
	};

	signal(SIGPIPE, SIG_IGN);
	if (!yuma_peer_exists()) {
		puts("1..0 # SKIP netconfd or sshd is not installed (scripts/deps installs both)");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
