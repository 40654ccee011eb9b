/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/ocsd/topo_rig.h"

#define SWITCHES(more)                        \
	"  - name: ph-[0-1]\n"                \
	"    driver: tl1\n"                   \
	"    address: \"unix:%1$s/{name}\"\n" \
	"    credentials: %1$s/credentials\n" \
	"    size: 32\n" more

static const char fabrics[] =
	"  - name: photon\n"
	"    kind: rails\n"
	"    partitions: [photon]\n"
	"    nodes: p[0-11]\n"
	"    rails: 2\n"
	"    ports_per_nic: 2\n"
	"    ports: {switch: \"ph-{interface}\", port: 2*server+nic_port+1}\n";

int topo_setup(void **state)
{
	return rig_setup_with(state, SWITCHES(""), fabrics, 0);
}

int topo_setup_replace(void **state)
{
	return rig_setup_with(state, SWITCHES("    replace: true\n"), fabrics, 0);
}

int topo_setup_patient(void **state)
{
	struct rig *rig = ocs_calloc(1, sizeof(*rig));

	rig_prepare(rig);
	rig->switches = SWITCHES("");
	rig->fabrics = fabrics;
	rig->timeout_ms = 60000;
	rig_start(rig);
	*state = rig;
	return 0;
}

int topo_setup_tcp(void **state)
{
	static char tcp[sizeof(fabrics) + 200];

	snprintf(tcp, sizeof(tcp),
		 "%s    interfaces: [{name: ocs0}, {name: ocs1}, {name: ocs2}, {name: ocs3}]\n"
		 "    tcp: {address: 10.192.0.0/16, management: eth0}\n",
		 fabrics);
	return rig_setup_with(state, SWITCHES(""), tcp, 0);
}

void topo_commit(struct ocs_client *client, const struct tenant *t, const char *phases)
{
	json_object_put(rig_ask(
		client,
		"{'op':'commit','job':%u,'epoch':%u,'uid':%d,'user':'alice',"
		"'section':'photon','nodes':'p[%d-%d]','shape':'pp:3,dp:2','phases':'%s'}",
		t->job, t->job * 10, TOPO_OWNER, t->first, t->first + TOPO_NODES - 1, phases));
}

void topo_start(struct ocs_client *client, struct tenant *t, const char *phases)
{
	struct json_object *reply;
	const char *key;

	topo_commit(client, t, phases);
	reply = rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'p%d'}", t->job,
			t->job * 10, t->first);
	key = json_object_get_string(json_object_object_get(reply, "key"));
	snprintf(t->key, sizeof(t->key), "%s", key ? key : "");
	json_object_put(reply);
}

/* ---- what has to be there ---- */

int topo_port(const struct tenant *t, int node, int nic_port)
{
	return 2 * (t->first + node) + nic_port + 1;
}

static void join(const struct tenant *t, int *out, int node, int next)
{
	int a = topo_port(t, node, 1), b = topo_port(t, next, 0);

	assert_int_equal(out[a], 0);
	assert_int_equal(out[b], 0);
	out[a] = TOPO_SIZE + b;
	out[b] = TOPO_SIZE + a;
}

/* The circuits of TOPO_REQUEST, by hand: a digit 1 is the ring of a stage, neighbouring zeros (the last
 * stage and the first are neighbours) are lines from stage to stage. */
void topo_add(const struct tenant *t, const char *topo, int *out)
{
	bool ring = strcmp(topo, "ring") == 0;

	for (int node = 0; node < TOPO_NODES; node++) {
		int stage = node / TOPO_WIDTH, next = (stage + 1) % TOPO_STAGES;

		if (ring)
			join(t, out, node, (node + 1) % TOPO_NODES);
		else if (topo[stage] == '1')
			join(t, out, node, stage * TOPO_WIDTH + (node + 1) % TOPO_WIDTH);
		else if (topo[next] == '0')
			join(t, out, node, next * TOPO_WIDTH + node % TOPO_WIDTH);
	}
}

void topo_table(struct rig *rig, int sw, int *out)
{
	char *text = emulator_control(&rig->emulator, "table"), name[16];
	struct json_object *tables = json_tokener_parse(text), *list;

	snprintf(name, sizeof(name), "ph-%d", sw);
	list = json_object_object_get(tables, name);
	memset(out, 0, (TOPO_SIZE + 1) * sizeof(*out));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);

		out[json_object_get_int(json_object_array_get_idx(pair, 0))] =
			json_object_get_int(json_object_array_get_idx(pair, 1));
	}
	json_object_put(tables);
	free(text);
}

void topo_table_is(struct rig *rig, int sw, const struct tenant *one, const char *topo,
		   const struct tenant *two, const char *other)
{
	int wanted[TOPO_SIZE + 1] = { 0 }, out[TOPO_SIZE + 1];

	if (topo)
		topo_add(one, topo, wanted);
	if (other)
		topo_add(two, other, wanted);
	topo_table(rig, sw, out);
	for (int in = 1; in <= TOPO_SIZE; in++)
		if (out[in] != wanted[in])
			fail_msg("switch ph-%d: ingress %d has egress %d instead of %d", sw, in,
				 out[in], wanted[in]);
}

/* ---- asking ---- */

struct json_object *topo_row(struct json_object *reply, size_t index)
{
	struct json_object *rows = json_object_object_get(reply, "rails");

	assert_true(index < json_object_array_length(rows));
	return json_object_array_get_idx(rows, index);
}

/* Both rails of T go to TOPO_REQUEST, and say so. */
void topo_change(struct ocs_client *client, const struct tenant *t, int seq, const char *topo)
{
	char *rails = ocs_asprintf("{'rail':0,'topo':'%s'},{'rail':1,'topo':'%s'}", topo, topo);
	struct json_object *reply =
		rig_ask(client, TOPO_REQUEST, t->job, t->job * 10, seq, t->key, rails);

	for (int r = 0; r < TOPO_RAILS; r++) {
		assert_int_equal(rig_number(topo_row(reply, r), "rail"), r);
		assert_int_equal(rig_number(topo_row(reply, r), "seq"), seq);
		assert_string_equal(rig_text(topo_row(reply, r), "topo"), topo);
		assert_string_equal(rig_text(topo_row(reply, r), "stage"), "verified");
		assert_null(json_object_object_get(topo_row(reply, r), "error"));
	}
	json_object_put(reply);
	free(rails);
}

void topo_end(struct ocs_client *client, const struct tenant *t)
{
	json_object_put(rig_ask(client, "{'op':'end','job':%u,'epoch':%u}", t->job, t->job * 10));
	json_object_put(
		rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", t->job, t->job * 10));
	rig_until_forgotten(client, t->job);
}

int64_t topo_revision(struct ocs_client *client)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'phases'}");
	int64_t number = rig_number(reply, "revision");

	json_object_put(reply);
	return number;
}
