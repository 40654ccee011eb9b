/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_SSH_H
#define OCS_EMULATOR_SSH_H

/* SSH in front of a switch: each connection gets a front that turns the subsystem
 * "netconf" into plain bytes on a socket, so that server.c needs to know nothing of
 * it.  All fronts live in the event loop of the emulator. */

#include "ocs_config.h"
#include "src/util/error.h"

struct ocs_emu;
struct ocs_emu_switch;

#ifdef HAVE_LIBSSH

/* One host key for the whole bank: from the file HOST_KEY, which is made if it does
 * not exist, or made for this run (NULL).  Does nothing if no switch speaks SSH.  0,
 * or -1 with ERR.  Free with ocs_emu_ssh_close. */
int ocs_emu_ssh_open(struct ocs_emu *emu, const char *host_key, struct ocs_error *err);
void ocs_emu_ssh_close(struct ocs_emu *emu);

/* Writes a known_hosts file for the addresses of all switches that speak SSH; a
 * switch on a UNIX socket goes by its name.  0, or -1 with ERR. */
int ocs_emu_ssh_known_hosts(const struct ocs_emu *emu, const char *path, struct ocs_error *err);

/* ocs_emu_protocol.secure */
int ocs_emu_ssh_secure(struct ocs_emu_switch *sw, int fd);

#else /* no switch can speak it */

static inline int ocs_emu_ssh_open(struct ocs_emu *emu, const char *host_key, struct ocs_error *err)
{
	(void)emu;
	(void)host_key;
	(void)err;
	return 0;
}

static inline void ocs_emu_ssh_close(struct ocs_emu *emu)
{
	(void)emu;
}

static inline int ocs_emu_ssh_known_hosts(const struct ocs_emu *emu, const char *path,
					  struct ocs_error *err)
{
	(void)emu;
	return ocs_error_set(err, OCS_USAGE, "%s: built without libssh", path);
}

#endif

#endif
