/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_NETCONF_SSH_H
#define OCS_SWITCH_NETCONF_SSH_H

/* One subsystem on one SSH session, by libssh, with deadlines everywhere.  Every
 * failure fills ERR with code OCS_UNREACHABLE, unless it says otherwise. */

#include <stddef.h>
#include <stdint.h>

struct ocs_error;
struct ocs_credentials;
struct ocs_switch_connection;
struct ocs_ssh;

struct ocs_ssh_target {
	const char *address;	 /* as for ocs_net_connect */
	const char *name;	 /* stands for the host of a UNIX socket */
	const char *host_key;	 /* "SHA256:...", or NULL */
	const char *known_hosts; /* path, or NULL; used without host_key */
	const struct ocs_credentials *credentials;
	const char *subsystem;
	struct ocs_switch_connection *connection; /* hears what libssh quotes of the peer */
};

/* Connects, checks the host key, logs in and starts the subsystem.  TIMEOUT_MS
 * bounds the connection, and again what follows.  NULL with ERR: OCS_ERROR for a
 * host key that is not the one expected and for a refused login, OCS_USAGE for
 * files that cannot be used. */
struct ocs_ssh *ocs_ssh_open(const struct ocs_ssh_target *target, int timeout_ms,
			     struct ocs_error *err);
void ocs_ssh_close(struct ocs_ssh *ssh);

/* To poll; what was read may hold more than one message. */
int ocs_ssh_descriptor(const struct ocs_ssh *ssh);

/* Sends all of DATA before DEADLINE_NS.  0, or -1 with ERR. */
int ocs_ssh_write(struct ocs_ssh *ssh, const char *data, size_t length, int64_t deadline_ns,
		  struct ocs_error *err);

/* Returns what is there, at most SIZE bytes, 0 at the end of the stream, or -1 with
 * ERR; errno is ETIMEDOUT after a timeout and 0 otherwise. */
long ocs_ssh_read(struct ocs_ssh *ssh, char *data, size_t size, int64_t deadline_ns,
		  struct ocs_error *err);

#endif
