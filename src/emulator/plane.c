/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The light: fibres end in network interfaces of this network namespace, and a
 * patch is a rule of tc that moves every frame from one to the other. */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"
#include "src/util/log.h"

#define WORDS_MAX 24

/* Runs a command of words separated by blanks (interface names hold none).
 * Returns its exit status. */
static int command_run(const char *command, bool quiet)
{
	char *copy = ocs_strdup(command), *rest = copy, *words[WORDS_MAX + 1];
	int count = 0, status = -1;
	pid_t child;

	while (count < WORDS_MAX && (words[count] = strsep(&rest, " ")))
		count++;
	words[count] = NULL;
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		if (quiet)
			dup2(null, 2);
		setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
		execvp(words[0], words);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	free(copy);
	return status;
}

static int qdisc_change(const char *verb, const char *device)
{
	char *command = ocs_asprintf("tc qdisc %s dev %s ingress", verb, device);
	int status = command_run(command, true);

	free(command);
	return status;
}

/* Light from one interface to another, or no more. */
static void beam_set(const struct ocs_emu_switch *sw, const char *from, const char *to, bool lit)
{
	char *command = lit ? ocs_asprintf("tc filter add dev %s ingress protocol all pref 1 u32"
					   " match u32 0 0 action mirred egress redirect dev %s",
					   from, to) :
			      ocs_asprintf("tc filter del dev %s ingress pref 1", from);

	if (command_run(command, false))
		ocs_log(OCS_LOG_ERROR, "switch %s: '%s' failed", sw->name, command);
	free(command);
}

static bool port_dark(const struct ocs_emu_switch *sw, int port)
{
	return sw->ports[port].closed || sw->ports[port].failed;
}

void ocs_emu_plane_set(struct ocs_emu_switch *sw, int in, int out)
{
	bool lit = sw->out[in] == out && !port_dark(sw, in) && !port_dark(sw, out);
	const struct ocs_emu_fibre *a, *b;

	if (!sw->fibres || sw->lit[in] == lit)
		return;
	a = &sw->fibres[in];
	b = &sw->fibres[out];
	if (!a->device || !b->device)
		return;
	sw->lit[in] = lit;
	beam_set(sw, a->device, b->device, lit);
	if (a->both_ways && b->both_ways)
		beam_set(sw, b->device, a->device, lit);
}

void ocs_emu_plane_shutter(struct ocs_emu_switch *sw, int port)
{
	int peer = ocs_emu_peer(sw, port);

	if (peer)
		ocs_emu_plane_set(sw, port <= sw->size ? port : peer,
				  port <= sw->size ? peer : port);
}

/* Joins a fibre to a device.  Returns 0 or -1: there is one already. */
static int fibre_join(struct ocs_emu_switch *sw, int fibre, const char *device, bool both_ways)
{
	if (sw->fibres[fibre].device)
		return -1;
	sw->fibres[fibre].device = ocs_strdup(device);
	sw->fibres[fibre].both_ways = both_ways;
	return 0;
}

static bool device_taken(const struct ocs_emu *emu, const char *device)
{
	for (int i = 0; i < emu->nswitches; i++) {
		const struct ocs_emu_switch *sw = &emu->switches[i];

		for (int f = 1; sw->fibres && f <= 2 * sw->size; f++)
			if (sw->fibres[f].device && !strcmp(sw->fibres[f].device, device))
				return true;
	}
	return false;
}

/* SWITCH PORT INTERFACE [duplex|bidi] */
static int read_line(struct ocs_emu *emu, const char *line, struct ocs_error *err)
{
	char name[256], device[16], kind[8] = "duplex";
	struct ocs_emu_switch *sw;
	int port, end = 0, count;
	bool bidi;

	count = sscanf(line, "%255s %9d %15s %n%7s %n", name, &port, device, &end, kind, &end);
	bidi = !strcmp(kind, "bidi");
	if (count < 3 || line[end] || (!bidi && strcmp(kind, "duplex") != 0))
		return ocs_error_set(err, OCS_USAGE,
				     "'%.60s' is not SWITCH PORT INTERFACE [duplex|bidi]", line);
	sw = ocs_emu_find(emu, name);
	if (!sw)
		return ocs_error_set(err, OCS_USAGE, "there is no switch %s", name);
	if (port < 1 || port > (bidi ? 2 : 1) * sw->size)
		return ocs_error_set(err, OCS_USAGE, "switch %s has no %s port %d", name, kind,
				     port);
	if (!if_nametoindex(device))
		return ocs_error_set(err, OCS_USAGE, "there is no interface %s here", device);
	if (device_taken(emu, device))
		return ocs_error_set(err, OCS_USAGE, "interface %s is joined twice", device);
	if (!sw->fibres) {
		sw->fibres = ocs_calloc(2 * (size_t)sw->size + 1, sizeof(*sw->fibres));
		sw->lit = ocs_calloc((size_t)sw->size + 1, sizeof(*sw->lit));
	}
	if (fibre_join(sw, port, device, bidi) ||
	    (!bidi && fibre_join(sw, sw->size + port, device, false)))
		return ocs_error_set(err, OCS_USAGE, "port %d of switch %s is joined twice", port,
				     name);
	return 0;
}

/* The interfaces of a switch, each once: HOW is "add" or "del". */
static int for_devices(struct ocs_emu_switch *sw, const char *how, struct ocs_error *err)
{
	for (int f = 1; sw->fibres && f <= 2 * sw->size; f++) {
		const char *device = sw->fibres[f].device;
		char *up;
		int status;

		if (!device || (f > sw->size && !sw->fibres[f].both_ways))
			continue;
		status = qdisc_change("del", device);
		if (!strcmp(how, "del"))
			continue;
		up = ocs_asprintf("ip link set dev %s up", device);
		status = qdisc_change("add", device) || command_run(up, true);
		free(up);
		if (status)
			return ocs_error_set(err, OCS_ERROR,
					     "the kernel takes no ingress queue on %s"
					     " (this needs root, ip and tc)",
					     device);
	}
	return 0;
}

int ocs_emu_plane_open(struct ocs_emu *emu, const char *path, struct ocs_error *err)
{
	char *data = ocs_file_read(path, 1 << 20, NULL, err), *rest = data, *line;
	int number = 0;

	if (!data)
		return -1;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		if (read_line(emu, line, err)) {
			free(data);
			return ocs_error_prefix(err, "%s:%d", path, number);
		}
	}
	free(data);
	for (int i = 0; i < emu->nswitches; i++)
		if (for_devices(&emu->switches[i], "add", err))
			return -1;
	return 0;
}

void ocs_emu_plane_close(struct ocs_emu *emu)
{
	for (int i = 0; i < emu->nswitches; i++) {
		struct ocs_emu_switch *sw = &emu->switches[i];

		for_devices(sw, "del", NULL);
		for (int f = 1; sw->fibres && f <= 2 * sw->size; f++)
			free(sw->fibres[f].device);
		free(sw->fibres);
		free(sw->lit);
		sw->fibres = NULL;
		sw->lit = NULL;
	}
}
