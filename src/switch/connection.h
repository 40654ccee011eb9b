/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_CONNECTION_H
#define OCS_SWITCH_CONNECTION_H

/* What drivers and switch.c share; nobody else includes it. */

#include "src/switch/switch.h"

struct ocs_switch_connection {
	const struct ocs_switch_driver *driver;
	const struct ocs_switch *description;
	int timeout_ms;		/* bounds one command */
	ocs_switch_notice notice;
	void *context;
	int fd;			/* -1 once lost */
	void *state;		/* of the driver */
};

extern const struct ocs_switch_driver ocs_tl1_driver;

/* The credentials file: lines `user=...` and `password=...`. */
struct ocs_credentials {
	char user[128];
	char password[128];
};

/* Reads PATH.  Refuses (-1 with ERR, code OCS_USAGE) a file that others can read
 * or change: its owner must be root or the caller, nobody else may write it, and
 * only the caller's own group may read a file of root's.  Wipe the result with
 * ocs_credentials_wipe. */
int ocs_credentials_read(const char *path, struct ocs_credentials *credentials,
			 struct ocs_error *err);
void ocs_credentials_wipe(struct ocs_credentials *credentials);

#endif
