/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"
#include "src/util/log.h"

#define ENTRY(name) &ocs_emu_##name,
#define NAME(name) ", " #name

static const struct ocs_emu_protocol *const protocols[] = { OCS_EMU_PROTOCOLS(ENTRY) };

const struct ocs_emu_protocol *ocs_emu_protocol_find(const char *name)
{
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (!strcmp(protocols[i]->name, name))
			return protocols[i];
	return NULL;
}

const char *ocs_emu_protocol_names(void)
{
	static const char names[] = OCS_EMU_PROTOCOLS(NAME);

	return names + 2;
}

struct ocs_emu_switch *ocs_emu_add(struct ocs_emu *emu, const char *name, const char *address,
				   int size, const struct ocs_emu_protocol *protocol,
				   const char *dialect)
{
	struct ocs_emu_switch *sw;

	emu->switches =
		ocs_realloc(emu->switches, (size_t)(emu->nswitches + 1) * sizeof(*emu->switches));
	sw = &emu->switches[emu->nswitches++];
	memset(sw, 0, sizeof(*sw));
	sw->emu = emu;
	sw->name = ocs_strdup(name);
	sw->address = ocs_strdup(address);
	sw->protocol = protocol;
	sw->dialect = dialect ? ocs_strdup(dialect) : NULL;
	sw->size = size;
	sw->out = ocs_calloc((size_t)size + 1, sizeof(*sw->out));
	sw->in = ocs_calloc((size_t)size + 1, sizeof(*sw->in));
	sw->ports = ocs_calloc(2 * (size_t)size + 1, sizeof(*sw->ports));
	sw->delay_ms = OCS_EMU_INHERIT;
	sw->fault_count = -1;
	return sw;
}

struct ocs_emu_switch *ocs_emu_find(struct ocs_emu *emu, const char *name)
{
	for (int i = 0; i < emu->nswitches; i++)
		if (!strcmp(emu->switches[i].name, name))
			return &emu->switches[i];
	return NULL;
}

void ocs_emu_free(struct ocs_emu *emu)
{
	for (int i = 0; i < emu->nswitches; i++) {
		struct ocs_emu_switch *sw = &emu->switches[i];

		free(sw->name);
		free(sw->address);
		free(sw->out);
		free(sw->in);
		free(sw->ports);
		free(sw->dialect);
		free(sw->state);
		free(sw->user);
		free(sw->password);
		free(sw->says);
	}
	free(emu->switches);
	free(emu->state);
	free(emu->control_address);
}

int ocs_emu_peer(const struct ocs_emu_switch *sw, int port)
{
	return port <= sw->size ? sw->out[port] : sw->in[port - sw->size];
}

void ocs_emu_break(struct ocs_emu_switch *sw, int in, const char *by)
{
	int out = sw->out[in];

	if (!out)
		return;
	sw->out[in] = 0;
	sw->in[out - sw->size] = 0;
	ocs_emu_plane_set(sw, in, out);
	ocs_emu_log(sw->emu, sw->name, "break", in, out, by, NULL);
}

void ocs_emu_make(struct ocs_emu_switch *sw, int in, int out, const char *by)
{
	if (sw->out[in] == out)
		return;
	ocs_emu_break(sw, in, by);
	if (sw->in[out - sw->size])
		ocs_emu_break(sw, sw->in[out - sw->size], by);
	sw->out[in] = out;
	sw->in[out - sw->size] = in;
	ocs_emu_plane_set(sw, in, out);
	ocs_emu_log(sw->emu, sw->name, "make", in, out, by, NULL);
}

/* xorshift64*: repeatable with --seed. */
static double random_unit(struct ocs_emu *emu)
{
	emu->random ^= emu->random >> 12;
	emu->random ^= emu->random << 25;
	emu->random ^= emu->random >> 27;
	return ((double)((emu->random * 0x2545F4914F6CDD1DULL) >> 11) + 0.5) * 0x1p-53;
}

double ocs_emu_delay(struct ocs_emu_switch *sw, size_t count)
{
	double delay = sw->delay_ms == OCS_EMU_INHERIT ? sw->emu->delay_ms : sw->delay_ms;
	double normal;

	if (delay >= 0)
		return delay;
	/* Published for 1, 4 and 16 pairs: mean 41.4, 42.4, 46.8 ms and p99 60, 62,
	 * 68 ms: 0.36 ms more for each pair, a deviation of 8.5 ms. */
	normal = sqrt(-2 * log(random_unit(sw->emu))) * cos(2 * M_PI * random_unit(sw->emu));
	delay = 41.4 + 0.36 * (double)(count ? count - 1 : 0) + 8.5 * normal;
	return delay < 10 ? 10 : delay;
}

static char *state_path(const struct ocs_emu_switch *sw)
{
	return ocs_asprintf("%s/%s.patches", sw->emu->state, sw->name);
}

void ocs_emu_save(const struct ocs_emu_switch *sw)
{
	struct ocs_text text = { 0 };
	struct ocs_error err;
	char *path;

	if (!sw->emu->state)
		return;
	for (int in = 1; in <= sw->size; in++)
		if (sw->out[in])
			ocs_text_add(&text, "%d %d\n", in, sw->out[in]);
	path = state_path(sw);
	if (ocs_file_write(path, text.data ? text.data : "", text.length, 0644, &err))
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
	free(path);
	ocs_text_free(&text);
}

static int load_line(struct ocs_emu_switch *sw, const char *path, const char *line,
		     struct ocs_error *err)
{
	int in, out, end = 0;

	if (sscanf(line, "%9d %9d%n", &in, &out, &end) != 2 || line[end] || in < 1 ||
	    in > sw->size || out <= sw->size || out > 2 * sw->size || sw->out[in] ||
	    sw->in[out - sw->size])
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: '%.40s' is no patch of a %dx%d switch, or takes a port twice", path,
			line, sw->size, sw->size);
	ocs_emu_make(sw, in, out, "state");
	return 0;
}

int ocs_emu_load(struct ocs_emu_switch *sw, struct ocs_error *err)
{
	char *path, *data, *rest, *line;
	int rc = 0;

	if (!sw->emu->state)
		return 0;
	path = state_path(sw);
	if (access(path, F_OK) == 0) {
		data = ocs_file_read(path, 1 << 20, NULL, err);
		rest = data;
		rc = data ? 0 : -1;
		while (!rc && (line = strsep(&rest, "\n")))
			if (*line)
				rc = load_line(sw, path, line, err);
		free(data);
	}
	free(path);
	return rc;
}
