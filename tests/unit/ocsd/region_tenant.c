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

#include "src/place/region_circuits.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/region_tenant.h"

const char *const tenant_turns[TENANT_TURNS] = {
	"0.0-1.0,0.1-1.1,0.2-1.2,2.0-3.0,2.1-3.1,2.2-3.2",
	"0.0-2.0,0.1-1.1,0.2-3.2,1.0-3.0",
	"",
	"0.2-3.1",
	"0.0-3.0,0.1-3.1,0.2-3.2,1.0-2.2,1.1-2.1,1.2-2.0",
	"0.0-1.0,0.1-2.1,0.2-3.2,1.1-2.2,1.2-3.0,2.0-3.1",
};

static const char switches[] = "  - name: rg-[0-1]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 24\n";
static const char fabrics[] =
	"  - name: moe\n"
	"    kind: region\n"
	"    partitions: [moe]\n"
	"    nodes: g[0-15]\n"
	"    region_servers: 8\n"
	"    degree: 3\n"
	"    packet_nics: 1\n"
	"    ports: {switch: \"rg-{region}\", port: server % region_servers * degree + interface + 1}\n";

int tenant_setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

int tenant_setup_replace(void **state)
{
	static char replacing[sizeof(switches) + 32];

	snprintf(replacing, sizeof(replacing), "%s    replace: true\n", switches);
	return rig_setup_with(state, replacing, fabrics, 0);
}

struct json_object *tenant_start(struct ocs_client *client, struct tenant *t, const char *moe)
{
	struct json_object *reply;
	const char *key;

	json_object_put(rig_ask(
		client,
		"{'op':'commit','job':%u,'epoch':%u,'uid':1234,'user':'alice','section':'moe',"
		"'nodes':'g[%d-%d]','shape':'pp:%d,ep:%d','moe':'%s','name':'train'}",
		t->job, t->job * 10, t->first, t->first + t->groups * SERVERS - 1, t->groups,
		SERVERS, moe));
	reply = rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'g%d'}", t->job,
			t->job * 10, t->first);
	key = json_object_get_string(json_object_object_get(reply, "key"));
	snprintf(t->key, sizeof(t->key), "%s", key ? key : "");
	return reply;
}

void tenant_end(struct ocs_client *client, const struct tenant *t)
{
	json_object_put(rig_ask(client, "{'op':'end','job':%u,'epoch':%u}", t->job, t->job * 10));
	json_object_put(rig_ask(client, "{'op':'gone','job':%u,'epoch':%u}", t->job, t->job * 10));
	rig_until_forgotten(client, t->job);
}

int tenant_port(const struct tenant *t, int group, int server, int nic)
{
	return (t->first + group * SERVERS + server) % REGION * NICS + nic + 1;
}

static int switch_of(const struct tenant *t, int group)
{
	return (t->first + group * SERVERS) / REGION;
}

void tenant_add(const struct tenant *t, int group, const char *text, int out[2][SIZE + 1])
{
	struct ocs_region_circuits circuits;
	int sw = switch_of(t, group);

	if (strcmp(text, BALANCED) == 0)
		ocs_region_circuits_balanced(SERVERS, NICS, &circuits);
	else
		assert_int_equal(ocs_region_circuits_parse(text, strlen(text), SERVERS, NICS,
							   &circuits, NULL),
				 0);
	for (size_t i = 0; i < circuits.count; i++) {
		const struct ocs_region_circuit *one = &circuits.items[i];
		int a = tenant_port(t, group, one->a, one->a_nic);
		int b = tenant_port(t, group, one->b, one->b_nic);

		assert_int_equal(out[sw][a] + out[sw][b], 0);
		out[sw][a] = SIZE + b;
		out[sw][b] = SIZE + a;
	}
	ocs_region_circuits_free(&circuits);
}

static void tables(struct rig *rig, int out[2][SIZE + 1])
{
	char *text = emulator_control(&rig->emulator, "table");
	struct json_object *json = json_tokener_parse(text);

	memset(out, 0, 2 * (SIZE + 1) * sizeof(int));
	for (int sw = 0; sw < 2; sw++) {
		struct json_object *list = json_object_object_get(json, sw ? "rg-1" : "rg-0");

		for (size_t i = 0; i < json_object_array_length(list); i++) {
			struct json_object *pair = json_object_array_get_idx(list, i);

			out[sw][json_object_get_int(json_object_array_get_idx(pair, 0))] =
				json_object_get_int(json_object_array_get_idx(pair, 1));
		}
	}
	json_object_put(json);
	free(text);
}

void tenant_tables_are(struct rig *rig, int wanted[2][SIZE + 1])
{
	int out[2][SIZE + 1];

	tables(rig, out);
	for (int sw = 0; sw < 2; sw++)
		for (int in = 1; in <= SIZE; in++)
			if (out[sw][in] != wanted[sw][in])
				fail_msg("switch rg-%d: ingress %d has egress %d instead of %d", sw,
					 in, out[sw][in], wanted[sw][in]);
}

char *tenant_group_json(int group, const char *text)
{
	struct ocs_region_circuits circuits;
	struct ocs_text out = { 0 };

	assert_int_equal(
		ocs_region_circuits_parse(text, strlen(text), SERVERS, NICS, &circuits, NULL), 0);
	ocs_text_add(&out, "{'group':%d,'circuits':[", group);
	for (size_t i = 0; i < circuits.count; i++)
		ocs_text_add(&out, "%s[%d,%d,%d,%d]", i ? "," : "", circuits.items[i].b,
			     circuits.items[i].b_nic, circuits.items[i].a, circuits.items[i].a_nic);
	ocs_text_add(&out, "]}");
	ocs_region_circuits_free(&circuits);
	return ocs_text_take(&out);
}

struct json_object *tenant_row(struct json_object *reply, size_t index)
{
	struct json_object *rows = json_object_object_get(reply, "groups");

	assert_true(index < json_object_array_length(rows));
	return json_object_array_get_idx(rows, index);
}

void tenant_change(struct ocs_client *client, const struct tenant *t, int group, int seq,
		   const char *text)
{
	char *entry = tenant_group_json(group, text);
	struct json_object *reply = rig_ask(client, ASK, t->job, t->job * 10, seq, t->key, entry);
	struct json_object *row = tenant_row(reply, 0);

	assert_int_equal(rig_number(row, "group"), group);
	assert_int_equal(rig_number(row, "seq"), seq);
	assert_string_equal(rig_text(row, "stage"), "verified");
	assert_null(json_object_object_get(row, "error"));
	json_object_put(reply);
	free(entry);
}
