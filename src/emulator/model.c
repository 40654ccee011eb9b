/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A switch without a protocol: what commands do to its ports. */

#include <stdlib.h>

#include "src/emulator/emulator.h"

bool ocs_emu_refused(const struct ocs_emu_command *command)
{
	return command->verdict >= OCS_EMU_BUSY;
}

static bool command_refuse(struct ocs_emu_command *command, enum ocs_emu_verdict verdict, long port)
{
	command->verdict = verdict;
	command->port = port;
	return false;
}

bool ocs_emu_check_port(const struct ocs_emu_switch *sw, struct ocs_emu_command *command, long port)
{
	return (port >= 1 && port <= 2 * sw->size) ||
	       command_refuse(command, OCS_EMU_NO_PORT, port);
}

/* What stands in the way of a patch: a port that has another peer. */
static long taken_port(const struct ocs_emu_switch *sw, const struct ocs_patch *patch)
{
	int peer = ocs_emu_peer(sw, patch->in);

	if (peer && peer != patch->out)
		return patch->in;
	peer = ocs_emu_peer(sw, patch->out);
	return peer && peer != patch->in ? patch->out : 0;
}

/* Every port once, ingress left and egress right, and none out of order. */
static bool pair_up(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const int *in,
		    const int *out, int count)
{
	bool *seen = ocs_calloc(2 * (size_t)sw->size + 1, sizeof(*seen));
	bool good = true;

	free(command->patches);
	command->npatches = 0;
	command->patches = ocs_calloc((size_t)count + 1, sizeof(*command->patches));
	for (int i = 0; i < count && good; i++) {
		good = ocs_emu_check_port(sw, command, in[i]) &&
		       ocs_emu_check_port(sw, command, out[i]);
		if (!good)
			break;
		if (in[i] > sw->size || out[i] <= sw->size)
			good = command_refuse(command, OCS_EMU_WRONG_SIDE,
					      in[i] > sw->size ? in[i] : out[i]);
		else if (seen[in[i]] || seen[out[i]])
			good = command_refuse(command, OCS_EMU_TWICE, seen[in[i]] ? in[i] : out[i]);
		else if (sw->ports[in[i]].refuses || sw->ports[out[i]].refuses)
			good = command_refuse(command, OCS_EMU_BAD_PORT,
					      sw->ports[in[i]].refuses ? in[i] : out[i]);
		seen[in[i]] = seen[out[i]] = true;
		command->patches[i] = (struct ocs_patch){ in[i], out[i] };
	}
	free(seen);
	if (good)
		command->npatches = (size_t)count;
	return good;
}

static bool ports_are_free(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for (size_t i = 0; !sw->emu->replace && !sw->moves && i < command->npatches; i++) {
		long port = taken_port(sw, &command->patches[i]);

		if (port)
			return command_refuse(command, OCS_EMU_TAKEN, port);
	}
	return true;
}

void ocs_emu_begin_make(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const int *in,
			const int *out, int count)
{
	if (ocs_emu_refused(command) || !pair_up(sw, command, in, out, count) ||
	    !ports_are_free(sw, command))
		return;
	if (command->verdict == OCS_EMU_PART)
		command->npatches /= 2;
	for (size_t i = 0; i < command->npatches; i++) {
		ocs_emu_plane_change(sw, command->patches[i].in);
		ocs_emu_plane_change(sw, command->patches[i].out);
	}
	command->delay_ms += ocs_emu_delay(sw, command->npatches);
}

/* A patch by hand may have come meanwhile. */
void ocs_emu_finish_make(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (ocs_emu_refused(command) || !command->npatches || !ports_are_free(sw, command))
		return;
	ocs_emu_log_hold(sw->emu);
	for (size_t i = 0; i < command->npatches; i++)
		ocs_emu_make(sw, command->patches[i].in, command->patches[i].out, "command");
	ocs_emu_log_release(sw->emu);
	ocs_emu_save(sw);
}

void ocs_emu_begin_break(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			 const int *ports, int count)
{
	int peer;

	if (ocs_emu_refused(command))
		return;
	for (int i = 0; i < count; i++) {
		if (!ocs_emu_check_port(sw, command, ports[i]))
			return;
		peer = ocs_emu_peer(sw, ports[i]);
		if (sw->ports[ports[i]].refuses || (peer && sw->ports[peer].refuses)) {
			command_refuse(command, OCS_EMU_BAD_PORT,
				       sw->ports[ports[i]].refuses ? ports[i] : peer);
			return;
		}
	}
	if (command->verdict == OCS_EMU_PART)
		count /= 2;
	ocs_emu_log_hold(sw->emu);
	for (int i = 0; i < count; i++) {
		int in = ports[i] <= sw->size ? ports[i] : ocs_emu_peer(sw, ports[i]);

		if (!in)
			continue;
		ocs_emu_plane_change(sw, in);
		ocs_emu_plane_change(sw, sw->out[in]);
		ocs_emu_break(sw, in, "command");
	}
	ocs_emu_log_release(sw->emu);
	ocs_emu_save(sw);
	command->delay_ms += ocs_emu_delay(sw, (size_t)count);
}

void ocs_emu_break_all(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *what)
{
	if (ocs_emu_refused(command))
		return;
	ocs_emu_log(sw->emu, sw->name, "deleted-all", 0, 0, "command", what);
	for (int in = 1; in <= sw->size; in++)
		ocs_emu_break(sw, in, "command");
	ocs_emu_save(sw);
	command->delay_ms += ocs_emu_delay(sw, (size_t)sw->size);
}

void ocs_emu_shutter(struct ocs_emu_switch *sw, int port, bool closed)
{
	sw->ports[port].closed = closed;
	ocs_emu_plane_shutter(sw, port);
}

/* What a laser and the way lose. */
double ocs_emu_power(const struct ocs_emu_switch *sw, int port)
{
	const struct ocs_emu_port *state = &sw->ports[port];
	int peer = ocs_emu_peer(sw, port);

	if (port <= sw->size)
		return -1.0 - (double)(port * 37 % 100) / 100 - state->loss_db;
	if (!peer || state->closed || state->failed || sw->ports[peer].closed ||
	    sw->ports[peer].failed)
		return -60.0;
	return ocs_emu_power(sw, peer) - 1.0 - (double)(port * 53 % 50) / 100 - state->loss_db;
}
