/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_NETCONF_SESSION_H
#define OCS_SWITCH_NETCONF_SESSION_H

/* One NETCONF session of the driver: one request at a time on an SSH channel, its
 * reply found by message-id, notifications passed on.  All return enum
 * ocs_switch_result and fill ERR unless OK. */

#include <stdint.h>

#include "src/switch/driver.h"
#include "src/switch/netconf/netconf.h"

struct ocs_ssh;

/* The driver's state of a connection. */
struct ocs_netconf {
	const struct ocs_netconf_dialect *dialect;
	struct ocs_ssh *ssh;
	struct ocs_netconf_framer framer;
	struct ocs_netconf_hello hello;
	unsigned int id; /* of the last request */
	bool no_locks;	 /* the switch knows none */
};

/* In the connection's timeout from now. */
int64_t ocs_netconf_deadline(const struct ocs_switch_connection *connection);

/* Exchanges hellos, agrees on the framing, subscribes to notifications. */
int ocs_netconf_begin(struct ocs_switch_connection *connection, struct ocs_error *err);
/* Closes the connection: after this it is not known what the switch does with what it
 * was sent.  Returns OCS_SWITCH_UNKNOWN. */
int ocs_netconf_lose(struct ocs_switch_connection *connection);

/* Sends MESSAGE (freed here), which carries the id given out last, and waits for
 * its reply; the caller frees REPLY, whatever the result.  OPERATION is for
 * sentences. */
int ocs_netconf_execute(struct ocs_switch_connection *connection, const char *operation,
			char *message, struct ocs_netconf_message *reply, struct ocs_error *err);
/* An operation of ocs_netconf_make_plain; FAULT (may be NULL) is its error. */
int ocs_netconf_plain(struct ocs_switch_connection *connection, const char *operation,
		      struct ocs_netconf_fault *fault, struct ocs_error *err);
/* ocs_switch_driver.listen */
int ocs_netconf_listen(struct ocs_switch_connection *connection, int wait_ms,
		       struct ocs_error *err);

#endif
