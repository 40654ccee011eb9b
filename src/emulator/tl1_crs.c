/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The verbs of Calient and Glimmerglass switches, which both deal in
 * cross-connects.  On a Calient one is entered (and holds its ports) before it is
 * activated (and passes light), and belongs to a group. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/emulator/tl1.h"

#define SLOTS 8
#define PORTS 8
#define FIRST_IN 10001
#define FIRST_OUT 20001

/* ---- Calient ---- */

/* What was entered: entries 1..size. */
struct entry {
	int out; /* 0: nothing */
	char group[24];
};

/* Whatever passes light was entered by a user, be it by hand or in an earlier
 * life of the emulator; as whose is not known. */
static struct entry *entries_count(struct ocs_emu_switch *sw)
{
	struct entry *list;

	if (!sw->state)
		sw->state = ocs_calloc((size_t)sw->size + 1, sizeof(struct entry));
	list = sw->state;
	for (int in = 1; in <= sw->size; in++) {
		if (!sw->out[in] || list[in].out == sw->out[in])
			continue;
		for (int other = 1; other <= sw->size; other++)
			if (list[other].out == sw->out[in])
				list[other].out = 0;
		list[in] = (struct entry){ .out = sw->out[in], .group = "OCS" };
	}
	return list;
}

static void calient_name(const struct ocs_emu_switch *sw, long port, struct ocs_text *text)
{
	long n = (port > sw->size ? port - sw->size : port) - 1;

	ocs_text_add(text, "%ld.%ld.%ld", n / (SLOTS * PORTS) + 1, n / PORTS % SLOTS + 1,
		     n % PORTS + 1);
}

/* The pair "1.1.1,1.1.2" of the AID; false after a denial. */
static bool take_pair(const struct ocs_emu_switch *sw, struct ocs_emu_command *command, int *in,
		      int *out)
{
	int n[6], end = 0;

	if (sscanf(ocs_emu_tl1_field(command, 2), "%4d.%4d.%4d,%4d.%4d.%4d%n", &n[0], &n[1], &n[2],
		   &n[3], &n[4], &n[5], &end) != 6 ||
	    ocs_emu_tl1_field(command, 2)[end]) {
		ocs_emu_tl1_deny(command, "IICT", "Two ports are needed");
		return false;
	}
	for (int i = 0; i < 6; i++) {
		if (n[i] >= 1 && (i % 3 == 0 || n[i] <= (i % 3 == 1 ? SLOTS : PORTS)))
			continue;
		ocs_emu_tl1_deny(command, "IDNV", "No such port");
		return false;
	}
	*in = ((n[0] - 1) * SLOTS + n[1] - 1) * PORTS + n[2];
	*out = ((n[3] - 1) * SLOTS + n[4] - 1) * PORTS + n[5];
	if (*in > sw->size || *out > sw->size) {
		ocs_emu_tl1_deny(command, "IDNV", "No such port");
		return false;
	}
	*out += sw->size;
	return true;
}

/* Element I of the last block, "GRP,NAME"; the caller frees it. */
static char *element_at(const struct ocs_emu_command *command, int i)
{
	char *copy = ocs_strdup(ocs_emu_tl1_field(command, 5)), *rest = copy, *part = copy;

	while (part && i-- >= 0)
		part = strsep(&rest, ",");
	part = ocs_strdup(part ? part : "");
	free(copy);
	return part;
}

/* The entry that the command names, or NULL after a denial. */
static struct entry *entry_named(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
				 int *in, int *out, int group)
{
	struct entry *entry;
	char *name;
	bool same;

	if (!take_pair(sw, command, in, out))
		return NULL;
	entry = &entries_count(sw)[*in];
	name = element_at(command, group);
	same = entry->out == *out && !strcasecmp(name, entry->group);
	free(name);
	if (same)
		return entry;
	ocs_emu_tl1_deny(command, "SSTP", "No such cross-connect in this group");
	return NULL;
}

static void entry_make(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct entry *list = entries_count(sw);
	int in, out;
	char *group, *type;

	if (!take_pair(sw, command, &in, &out))
		return;
	if (sw->ports[in].refuses || sw->ports[out].refuses) {
		command->verdict = OCS_EMU_BAD_PORT;
		command->port = sw->ports[in].refuses ? in : out;
		return;
	}
	for (int i = 1; i <= sw->size; i++) {
		if (!(i == in && (list[i].out || sw->out[i])) && list[i].out != out &&
		    sw->out[i] != out)
			continue;
		command->verdict = OCS_EMU_TAKEN;
		command->port = i == in ? in : out;
		return;
	}
	group = element_at(command, 0);
	type = element_at(command, 1);
	if (strcasecmp(type, "1WAY") != 0) {
		ocs_emu_tl1_deny(command, "IPNV", "Only 1WAY is emulated");
	} else {
		list[in].out = out;
		snprintf(list[in].group, sizeof(list[in].group), "%s", group);
	}
	free(group);
	free(type);
}

static void entry_activate(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	int in, out;

	if (entry_named(sw, command, &in, &out, 1))
		ocs_emu_begin_make(sw, command, &in, &out, 1);
}

static void entry_cancel(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	int in, out;

	if (!entry_named(sw, command, &in, &out, 1))
		return;
	if (sw->out[in] != out)
		ocs_emu_tl1_deny(command, "SSTP", "Not active");
	else
		ocs_emu_begin_break(sw, command, &in, 1);
}

static void delete (struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct entry *entry;
	int in, out;

	entry = entry_named(sw, command, &in, &out, 1);
	if (!entry)
		return;
	if (sw->out[in] == out)
		ocs_emu_tl1_deny(command, "SSTP", "Still active");
	else
		entry->out = 0;
}

static void delete_all(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_emu_break_all(sw, command, ocs_emu_tl1_field(command, 0));
	memset(entries_count(sw), 0, ((size_t)sw->size + 1) * sizeof(struct entry));
}

static void entries_retrieve(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct entry *list = entries_count(sw);

	for (int in = 1; in <= sw->size; in++) {
		int out = list[in].out;
		bool failed = sw->ports[in].failed || (out && sw->ports[out].failed);
		struct ocs_text a = { 0 }, b = { 0 };

		if (!out)
			continue;
		calient_name(sw, in, &a);
		calient_name(sw, out, &b);
		ocs_emu_tl1_say(command,
				"%s>%s:SRCPORT=%s,DSTPORT=%s,GRPNAME=%s,CONNNAME=%s>%s,"
				"CONNTYPE=1WAY,PS=UPR,OS=RDY,OC=%s",
				a.data, b.data, a.data, b.data, list[in].group, a.data, b.data,
				!sw->out[in] ? "INIT" :
				failed	     ? "FAIL" :
					       "OK");
		ocs_text_free(&a);
		ocs_text_free(&b);
	}
}

static void entries_summarise(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for (int port = 1; port <= sw->size; port++) {
		struct ocs_text name = { 0 };
		double out = ocs_emu_power(sw, port + sw->size);
		char power[16];

		calient_name(sw, port, &name);
		snprintf(power, sizeof(power), "%.2f", out);
		ocs_emu_tl1_say(command, "%s:ALIAS=NONE,INPWR=%.2f,OUTPWR=%s,CONNNAME1=NONE",
				name.data, ocs_emu_power(sw, port), out > -60 ? power : "NONE");
		ocs_text_free(&name);
	}
}

static const struct ocs_emu_tl1_verb calient_verbs[] = {
	{ "ENT-CRS", false, true, entry_make, NULL },
	{ "ACT-CRS", false, true, entry_activate, ocs_emu_finish_make },
	{ "CANC-CRS", false, true, entry_cancel, NULL },
	{ "DLT-CRS", false, true, delete, NULL },
	{ "DLT-CRS-ALL", false, true, delete_all, NULL },
	{ "INIT-SYS", false, true, delete_all, NULL },
	{ "RTRV-CRS", false, false, NULL, entries_retrieve },
	{ "RTRV-PORT-SUM", false, false, NULL, entries_summarise },
	{ NULL, false, false, NULL, NULL },
};

const struct ocs_emu_tl1_dialect ocs_emu_tl1_calient = {
	.name = "calient",
	.verbs = calient_verbs,
	.name_port = calient_name,
};

/* ---- Glimmerglass ---- */

static void fiber_name(const struct ocs_emu_switch *sw, long port, struct ocs_text *text)
{
	ocs_text_add(text, "%ld",
		     port <= sw->size ? port + FIRST_IN - 1 : port - sw->size + FIRST_OUT - 1);
}

/* "10001&10002,20015&20016" into two lists; the count, or -1 after a denial. */
static int take_fibers(const struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		       int **lists)
{
	const char *at = ocs_emu_tl1_field(command, 2);
	int counts[2] = { 0, 0 };

	for (int side = 0; side < 2; side++) {
		lists[side] = ocs_calloc((size_t)sw->size + 1, sizeof(int));
		while (counts[side] < sw->size) {
			char *end;
			long port = strtol(at, &end, 10) - (side ? FIRST_OUT : FIRST_IN) + 1;

			if (end == at || port < 1 || port > sw->size) {
				ocs_emu_tl1_deny(command, "IDNV", "No such fibre");
				return -1;
			}
			lists[side][counts[side]++] = (int)port + (side ? sw->size : 0);
			at = end;
			if (*at != '&')
				break;
			at++;
		}
		if (*at++ != (side ? '\0' : ',')) {
			ocs_emu_tl1_deny(command, "IICT", "Two lists of fibres are needed");
			return -1;
		}
	}
	if (counts[0] == counts[1])
		return counts[0];
	ocs_emu_tl1_deny(command, "IIAC", "The lists differ in length");
	return -1;
}

static void enter_fibers(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	int *lists[2] = { NULL, NULL }, count = take_fibers(sw, command, lists);

	if (count > 0)
		ocs_emu_begin_make(sw, command, lists[0], lists[1], count);
	free(lists[0]);
	free(lists[1]);
}

static void delete_fibers(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	int *lists[2] = { NULL, NULL }, count;

	if (!strncasecmp(ocs_emu_tl1_field(command, 2), "ALL", 3) ||
	    !*ocs_emu_tl1_field(command, 2)) {
		ocs_emu_break_all(sw, command, NULL);
		return;
	}
	count = take_fibers(sw, command, lists);
	for (int i = 0; i < count; i++)
		if (sw->out[lists[0][i]] && sw->out[lists[0][i]] != lists[1][i]) {
			ocs_emu_tl1_deny(command, "SSTP", "No such cross-connect");
			count = 0;
		}
	if (count > 0)
		ocs_emu_begin_break(sw, command, lists[0], count);
	free(lists[0]);
	free(lists[1]);
}

static void retrieve_fibers(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for (int in = 1; in <= sw->size; in++) {
		int out = sw->out[in];

		ocs_emu_tl1_say(command,
				"GGN:IPORTID=%d,IPORTNAME=,OPORTID=%d,OPORTNAME=,CONNID=%d,"
				"CONNSTATE=%s,CONNCAUSE=none,INPWR=%.3f,OUTPWR=%.3f,PWRLOSS=0.000",
				in + FIRST_IN - 1, out ? out - sw->size + FIRST_OUT - 1 : 0,
				out ? in : 0, out ? "steady" : "single", ocs_emu_power(sw, in),
				out ? ocs_emu_power(sw, out) : 0.0);
	}
}

static void system_info(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_emu_tl1_say(command, "GGN:Model=emulator,LicensedPortMatrix=%dx%d,State=up", sw->size,
			sw->size);
}

static const struct ocs_emu_tl1_verb fiber_verbs[] = {
	{ "ENT-CRS-FIBER", false, true, enter_fibers, ocs_emu_finish_make },
	{ "DLT-CRS-FIBER", false, true, delete_fibers, NULL },
	{ "DLT-CRS-ALL", false, true, delete_all, NULL },
	{ "INIT-SYS", false, true, delete_all, NULL },
	{ "RTRV-CRS-FIBER", false, false, NULL, retrieve_fibers },
	{ "RTRV-SYSTEM-INFO", false, false, NULL, system_info },
	{ NULL, false, false, NULL, NULL },
};

const struct ocs_emu_tl1_dialect ocs_emu_tl1_glimmerglass = {
	.name = "glimmerglass",
	.verbs = fiber_verbs,
	.name_port = fiber_name,
};
