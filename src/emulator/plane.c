/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The light: fibres end in network interfaces of this network namespace, and a
 * patch is an entry of a table that moves every frame from one to the other. */

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/emulator/plane_map.h"
#include "src/util/error.h"
#include "src/util/log.h"

#define WORDS_MAX 24
#define IFINDEX_MAX (1 << 22)
#define IFINDEX_MORE 4096 /* interfaces that may be made anew while it runs */

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
	char *command = ocs_asprintf("tc qdisc %s dev %s clsact", verb, device);
	int status = command_run(command, true);

	free(command);
	return status;
}

/* Frames that come in by the interface of FIBRE go where the table says. */
static int device_open(struct ocs_emu_switch *sw, int fibre, struct ocs_error *err)
{
	const char *device = sw->fibres[fibre].device;
	char *up = ocs_asprintf("ip link set dev %s up", device);
	int status;

	qdisc_change("del", device);
	status = qdisc_change("add", device) || command_run(up, true);
	free(up);
	if (status)
		return ocs_error_set(err, OCS_ERROR,
				     "the kernel takes no clsact queue on %s"
				     " (this needs root, ip and tc)",
				     device);
	if (ocs_emu_map_attach(sw->emu->plane, sw->fibres[fibre].ifindex, err))
		return ocs_error_prefix(err, "%s", device);
	return 0;
}

/* An interface may have been made anew under the same name since, as when its host has booted. */
static void fibre_refresh(struct ocs_emu_switch *sw, int fibre)
{
	struct ocs_emu_fibre *at = &sw->fibres[fibre];
	unsigned int now = if_nametoindex(at->device), before = at->ifindex;
	struct ocs_error err;

	if (!now || now == before)
		return;
	if (now >= sw->emu->plane->count) {
		ocs_log(OCS_LOG_ERROR,
			"interface %s has number %u now, and the table ends at %u: start the emulator again",
			at->device, now, sw->emu->plane->count);
		return;
	}
	for (int f = 1; f <= 2 * sw->size; f++)
		if (sw->fibres[f].device && sw->fibres[f].ifindex == before)
			sw->fibres[f].ifindex = now;
	if (device_open(sw, fibre, &err))
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
}

static struct ocs_emu_beam *beam_of(const struct ocs_emu_switch *sw, int fibre)
{
	return &sw->emu->plane->beams[sw->fibres[fibre].ifindex];
}

/* Light from one fibre to another, or no more. */
static void beam_set(const struct ocs_emu_switch *sw, int from, int to, bool lit)
{
	__atomic_store_n(&beam_of(sw, from)->target, lit ? sw->fibres[to].ifindex : 0,
			 __ATOMIC_RELEASE);
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
	if (lit) {
		fibre_refresh(sw, in);
		fibre_refresh(sw, out);
	}
	beam_set(sw, in, out, lit);
	if (a->both_ways && b->both_ways)
		beam_set(sw, out, in, lit);
}

void ocs_emu_plane_change(struct ocs_emu_switch *sw, int fibre)
{
	/* What comes to an interface enters by its ingress. */
	if (!sw->fibres || !sw->fibres[fibre].device ||
	    (fibre > sw->size && !sw->fibres[fibre].both_ways))
		return;
	sw->changing = true;
	__atomic_store_n(&beam_of(sw, fibre)->changing, 1, __ATOMIC_RELEASE);
}

void ocs_emu_plane_settle(struct ocs_emu_switch *sw)
{
	for (int f = 1; sw->changing && f <= 2 * sw->size; f++)
		if (sw->fibres[f].device)
			__atomic_store_n(&beam_of(sw, f)->changing, 0, __ATOMIC_RELEASE);
	sw->changing = false;
}

static void count_add(struct json_object *object, const char *name, const uint64_t *counter)
{
	json_object_object_add(
		object, name,
		json_object_new_int64((int64_t)__atomic_load_n(counter, __ATOMIC_RELAXED)));
}

struct json_object *ocs_emu_plane_frames(const struct ocs_emu_switch *sw)
{
	struct json_object *ports = json_object_new_object();

	for (int f = 1; sw->fibres && f <= 2 * sw->size; f++) {
		struct json_object *one;
		char number[16];

		if (!sw->fibres[f].device || (f > sw->size && !sw->fibres[f].both_ways))
			continue;
		one = json_object_new_object();
		snprintf(number, sizeof(number), "%d", f);
		json_object_object_add(one, "device", json_object_new_string(sw->fibres[f].device));
		count_add(one, "passed", &beam_of(sw, f)->passed);
		count_add(one, "dark", &beam_of(sw, f)->dark);
		count_add(one, "changing", &beam_of(sw, f)->lost_in_change);
		json_object_object_add(ports, number, one);
	}
	return ports;
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
	sw->fibres[fibre].ifindex = if_nametoindex(device);
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

		if (!device || (f > sw->size && !sw->fibres[f].both_ways))
			continue;
		if (!strcmp(how, "del"))
			qdisc_change("del", device);
		else if (device_open(sw, f, err))
			return -1;
	}
	return 0;
}

/* Interface numbers of this namespace are small, but need not be. */
static int map_open(struct ocs_emu *emu, struct ocs_error *err)
{
	unsigned int last = 0;

	for (int i = 0; i < emu->nswitches; i++)
		for (int f = 1; emu->switches[i].fibres && f <= 2 * emu->switches[i].size; f++)
			if (emu->switches[i].fibres[f].ifindex > last)
				last = emu->switches[i].fibres[f].ifindex;
	if (last >= IFINDEX_MAX)
		return ocs_error_set(err, OCS_ERROR,
				     "interface number %u is above %d: use a new network namespace",
				     last, IFINDEX_MAX);
	emu->plane = ocs_calloc(1, sizeof(*emu->plane));
	return ocs_emu_map_open(emu->plane, last + 1 + IFINDEX_MORE, err);
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
	if (map_open(emu, err))
		return -1;
	for (int i = 0; i < emu->nswitches; i++)
		if (for_devices(&emu->switches[i], "add", err))
			return -1;
	return 0;
}

void ocs_emu_plane_close(struct ocs_emu *emu)
{
	for (int i = 0; i < emu->nswitches; i++) {
		struct ocs_emu_switch *sw = &emu->switches[i];

		if (emu->plane)
			for_devices(sw, "del", NULL);
		for (int f = 1; sw->fibres && f <= 2 * sw->size; f++)
			free(sw->fibres[f].device);
		free(sw->fibres);
		free(sw->lit);
		sw->fibres = NULL;
		sw->lit = NULL;
	}
	if (emu->plane)
		ocs_emu_map_close(emu->plane);
	free(emu->plane);
	emu->plane = NULL;
}
