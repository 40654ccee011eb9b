/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_BENCH_DAEMONS_H
#define OCS_BENCH_DAEMONS_H

/* The real ocsd and the real emulator of a build, talking over sockets in a folder.
 * What goes wrong ends the program with a line. */

#include <json-c/json.h>
#include <sys/types.h>

#include "src/protocol/client.h"
#include "src/place/place.h"
#include "src/util/error.h"

#define PATIENCE_MS 120000

struct daemons {
	const char *build, *folder;
	char *yaml, *control; /* ocs.yaml; the address of the emulator's control */
	pid_t emulator, ocsd;
	struct ocs_fabric *fabric;
	struct ocs_placer *placer; /* of its first section */
	struct ocs_client *client;
};

void daemons_die(const struct ocs_error *err, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* Writes YAML, in which TL1 and NETCONF switches find credentials and known_hosts in the
 * folder, and starts the emulator, with DELAY milliseconds a patch.  Database and log of
 * an earlier run in the folder go. */
void daemons_start(struct daemons *d, const char *yaml, const char *delay);
/* Starts ocsd and connects to it, again after it was killed. */
void daemons_start_ocsd(struct daemons *d);
void daemons_stop(struct daemons *d);

/* The answer to a request, which must be "ok"; json_object_put. */
struct json_object *daemons_ask(struct daemons *d, const char *request);

/* The request to commit P as job NUMBER with epoch NUMBER; the caller frees it. */
char *daemons_commit(const struct daemons *d, const struct ocs_placement *p, unsigned int number);

#endif
