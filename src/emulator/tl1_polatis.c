/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The verbs of a Polatis switch. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ocs_config.h"
#include "src/emulator/tl1.h"

/* A list "1&2&5&&8" into PORTS (the caller frees it); the count, or -1 after a
 * denial.  An empty text and ALL are no list. */
static int take_ports(const struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		      const char *at, int **ports)
{
	int count = 0, size = 0;

	*ports = NULL;
	for (;;) {
		long first, last;
		char *end;

		if (!isdigit((unsigned char)*at))
			goto malformed;
		first = last = strtol(at, &end, 10);
		if (end[0] == '&' && end[1] == '&') {
			if (!isdigit((unsigned char)end[2]))
				goto malformed;
			last = strtol(end + 2, &end, 10);
		}
		for (long port = first; port <= last; port++) {
			if (!ocs_emu_check_port(sw, command, port))
				goto failed;
			if (count == size) {
				size = size ? 2 * size : 16;
				*ports = ocs_realloc(*ports, (size_t)size * sizeof(int));
			}
			(*ports)[count++] = (int)port;
			if (count > 2 * sw->size) {
				ocs_emu_tl1_deny(command, "IIAC", "Too many ports");
				goto failed;
			}
		}
		if (first > last)
			goto malformed;
		if (!*end)
			return count;
		if (*end != '&')
			goto malformed;
		at = end + 1;
	}
malformed:
	ocs_emu_tl1_deny(command, "IICT", "Not a list of ports");
failed:
	free(*ports);
	*ports = NULL;
	return -1;
}

static void begin_enter(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	char *aid = ocs_strdup(ocs_emu_tl1_field(command, 2)), *comma = strchr(aid, ',');
	int *in = NULL, *out = NULL, nin, nout;

	if (!comma || strchr(comma + 1, ',')) {
		ocs_emu_tl1_deny(command, "IIAC", "Two lists of ports are needed");
	} else {
		*comma = '\0';
		nin = take_ports(sw, command, aid, &in);
		nout = nin < 0 ? -1 : take_ports(sw, command, comma + 1, &out);
		if (nout >= 0 && nin != nout)
			ocs_emu_tl1_deny(command, "IIAC", "The lists differ in length");
		else if (nout >= 0)
			ocs_emu_begin_make(sw, command, in, out, nin);
	}
	free(in);
	free(out);
	free(aid);
}

static void begin_delete(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = ocs_emu_tl1_field(command, 2);
	int *ports = NULL, count;

	if (ocs_emu_tl1_all(aid)) {
		ocs_emu_break_all(sw, command, NULL);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	if (count >= 0)
		ocs_emu_begin_break(sw, command, ports, count);
	free(ports);
}

static void retrieve_patches(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = ocs_emu_tl1_field(command, 2);
	int *ports = NULL, count;

	if (ocs_emu_tl1_all(aid)) {
		for (int in = 1; in <= sw->size; in++)
			if (sw->out[in])
				ocs_emu_tl1_say(command, "%d,%d", in, sw->out[in]);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	for (int i = 0; i < count; i++) {
		int peer = ocs_emu_peer(sw, ports[i]);
		bool ingress = ports[i] <= sw->size;

		if (peer)
			ocs_emu_tl1_say(command, "%d,%d", ingress ? ports[i] : peer,
					ingress ? peer : ports[i]);
	}
	free(ports);
}

static void for_ports(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		      void (*one)(struct ocs_emu_switch *, struct ocs_emu_command *, int))
{
	const char *aid = ocs_emu_tl1_field(command, 2);
	int *ports = NULL, count;

	if (ocs_emu_tl1_all(aid)) {
		for (int port = 1; port <= 2 * sw->size; port++)
			one(sw, command, port);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	for (int i = 0; i < count; i++)
		one(sw, command, ports[i]);
	free(ports);
}

static void show_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	ocs_emu_tl1_say(command, "%d:%s", port, sw->ports[port].closed ? "CLOSED" : "OPEN");
}

static void close_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	ocs_emu_shutter(sw, port, true);
}

static void open_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	ocs_emu_shutter(sw, port, false);
}

static void show_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	ocs_emu_tl1_say(command, "%d:%.2f", port, ocs_emu_power(sw, port));
}

static void retrieve_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, show_shutter);
}

static void operate_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, close_shutter);
}

static void release_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, open_shutter);
}

static void retrieve_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, show_power);
}

static void retrieve_type(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_emu_tl1_say(command, "slurm-ocs,emulator-%dx%d,OCS,%s", sw->size, sw->size,
			PACKAGE_VERSION);
}

static void retrieve_equipment(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (strcasecmp(ocs_emu_tl1_field(command, 2), "SYSTEM"))
		ocs_emu_tl1_deny(command, "IDNV", "Unknown equipment");
	else if (!*ocs_emu_tl1_field(command, 6))
		ocs_emu_tl1_deny(command, "IPMS", "PARAMETER is missing");
	else if (strcasecmp(ocs_emu_tl1_field(command, 6), "PARAMETER=SIZE"))
		ocs_emu_tl1_deny(command, "IPNV", "Unknown parameter");
	else
		ocs_emu_tl1_say(command, "SYSTEM:SIZE=%dx%d", sw->size, sw->size);
}

static void retrieve_alarms(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw; /* no alarm stands */
	(void)command;
}

static void operate_mute(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw;
	if (strcasecmp(ocs_emu_tl1_field(command, 2), "REPMGR"))
		ocs_emu_tl1_deny(command, "IDNV", "Unknown equipment");
	else if (command->client)
		command->client->muted = true;
}

static void release_mute(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw;
	if (command->client)
		command->client->muted = false;
}

static void switch_initialise(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_emu_break_all(sw, command, "INIT-SYS");
}

static void name_port(const struct ocs_emu_switch *sw, long port, struct ocs_text *text)
{
	(void)sw;
	ocs_text_add(text, "%ld", port);
}

static const struct ocs_emu_tl1_verb verbs[] = {
	{ "RTRV-NETYPE", false, false, NULL, retrieve_type },
	{ "RTRV-EQPT", false, false, NULL, retrieve_equipment },
	{ "ENT-PATCH", false, true, begin_enter, ocs_emu_finish_make },
	{ "DLT-PATCH", false, true, begin_delete, NULL },
	{ "RTRV-PATCH", false, false, NULL, retrieve_patches },
	{ "RTRV-PORT-SHUTTER", false, false, NULL, retrieve_shutters },
	{ "OPR-PORT-SHUTTER", false, false, NULL, operate_shutters },
	{ "RLS-PORT-SHUTTER", false, false, NULL, release_shutters },
	{ "RTRV-PORT-POWER", false, false, NULL, retrieve_power },
	{ "RTRV-ALM-ALL", false, false, NULL, retrieve_alarms },
	{ "OPR-ARC-EQPT", false, false, NULL, operate_mute },
	{ "RLS-ARC-EQPT", false, false, NULL, release_mute },
	{ "INIT-SYS", false, false, switch_initialise, NULL },
	{ NULL, false, false, NULL, NULL },
};

const struct ocs_emu_tl1_dialect ocs_emu_tl1_polatis = {
	.name = "polatis",
	.verbs = verbs,
	.name_port = name_port,
};
