/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_SWITCH_H
#define OCS_SWITCH_SWITCH_H

/* Talking to one optical circuit switch.  Drivers are ops structures (driver.h);
 * device knowledge is data (TL1 dialect tables).  Blocking, with deadlines; one thread
 * per connection.  Dangerous commands (delete all, reset) cannot be produced. */

#include <stddef.h>
#include <stdint.h>

#include "src/fabric/fabric.h"

struct ocs_error;

/* The cross-connects of a switch: egress of each ingress.  `out` has entries
 * 1..size; out[i] is the egress port (size+1..2*size) or 0. */
struct ocs_table {
	int size;
	int *out;
};
/* An empty table for a switch with SIZE ports on a side. */
void ocs_table_init(struct ocs_table *table, int size);
void ocs_table_free(struct ocs_table *table);
/* COPY, which is empty, becomes equal to TABLE. */
void ocs_table_copy(struct ocs_table *copy, const struct ocs_table *table);

/* An autonomous message seen on the way, as one line of printable text.  Called
 * by the thread that uses the connection; it must not use the connection. */
typedef void (*ocs_switch_notice)(void *context, const char *text);

/* The kind of failure, in addition to ERR: */
enum ocs_switch_result {
	OCS_SWITCH_OK = 0,
	OCS_SWITCH_DENIED,   /* the switch refused some patches, each by itself;
				 * the others are done, and the read-back shows
				 * which */
	OCS_SWITCH_REFUSED,  /* the switch refuses whatever is asked: the login,
				 * the command, its state */
	OCS_SWITCH_UNKNOWN,  /* timeout, lost connection, partial, or a table that
				 * is not what was asked for: reconnect and read back.
				 * After a timeout the connection is closed and every
				 * further call on it is UNKNOWN */
	OCS_SWITCH_REJECTED, /* refused here before a byte was sent */
};

/* A port as the switch sees it; the names are those of the OCP model. */
enum ocs_port_status {
	OCS_PORT_UNKNOWN,
	OCS_PORT_TUNED, /* its path, if any, is aligned */
	OCS_PORT_TUNING,
	OCS_PORT_BLOCKED, /* taken out of use: shutter closed, disabled */
	OCS_PORT_FAILED,
};
const char *ocs_port_status_name(enum ocs_port_status status);

/* What a switch tells of its ports; entries 1..ports (twice the size). */
struct ocs_port_health {
	enum ocs_port_status status;
	double dbm; /* optical power there; NAN: not measured */
};
struct ocs_health {
	int ports;
	struct ocs_port_health *port;
};
void ocs_health_init(struct ocs_health *health, int size);
void ocs_health_free(struct ocs_health *health);

struct ocs_switch_connection;

/* Connects, logs in, reads the size and refuses one that contradicts the
 * description.  TIMEOUT_MS bounds every command.  NOTICE may be NULL.  The
 * DESCRIPTION must outlive the connection.  NULL with ERR: OCS_UNREACHABLE if
 * the switch does not answer, OCS_ERROR if the switch refuses or is not the one described,
 * OCS_USAGE for an unknown driver or dialect or a bad credentials file. */
struct ocs_switch_connection *ocs_switch_open(const struct ocs_switch *description, int timeout_ms,
					      ocs_switch_notice notice, void *context,
					      struct ocs_error *err);
void ocs_switch_close(struct ocs_switch_connection *connection);

/* All return enum ocs_switch_result and fill ERR unless OK.  The caller frees
 * TABLE with ocs_table_free (it is empty unless OK). */
int ocs_switch_read(struct ocs_switch_connection *connection, struct ocs_table *table,
		    struct ocs_error *err);

/* Status and optical power of every port, as far as the switch can be asked.  The
 * caller frees HEALTH with ocs_health_free (it is empty unless OK). */
int ocs_switch_health(struct ocs_switch_connection *connection, struct ocs_health *health,
		      struct ocs_error *err);

/* For the time between commands: a descriptor to poll (-1 once the connection is
 * lost), and the call that delivers the notices that are there or arrive within
 * WAIT_MS (0: only what is there). */
int ocs_switch_descriptor(const struct ocs_switch_connection *connection);
int ocs_switch_listen(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err);

/* What has to be done so that every patch of REMOVE is gone and every patch of
 * ADD is there, given ACTUAL: only real differences, each list free of
 * duplicates.  An ADD whose ingress or egress is taken by a patch that is not in
 * REMOVE is a conflict: returns -1 with ERR naming both (nothing may be sent).
 * So are two ADDs that share a port, and a port that the switch does not have.
 * A patch in both lists stays or is made.
 * The caller frees the arrays in DIFF with ocs_switch_diff_free. */
struct ocs_switch_diff {
	struct ocs_patch *remove, *add;
	size_t nremove, nadd;
};
int ocs_switch_diff(const struct ocs_table *actual, const struct ocs_patch *remove, size_t nremove,
		    const struct ocs_patch *add, size_t nadd, struct ocs_switch_diff *diff,
		    struct ocs_error *err);
void ocs_switch_diff_free(struct ocs_switch_diff *diff);

/* A patch that the switch refused, and the port that its reply names (0: none). */
struct ocs_refusal {
	struct ocs_patch patch;
	int port;
};
/* Those of the last ocs_switch_apply; valid until the next call. */
const struct ocs_refusal *ocs_switch_refusals(const struct ocs_switch_connection *connection,
					      size_t *count);

/* Reads, diffs, one delete batch, then one add batch, reads back the whole table
 * into AFTER and compares every entry; sends nothing if nothing differs.  On a switch with
 * `moves` or `replace` a patch whose place a new one takes is not deleted first.
 * OCS_SWITCH_OK only if the read-back shows exactly what was asked and nothing
 * else changed.  A conflict is OCS_SWITCH_REJECTED.  Where a batch is refused it
 * is divided until the patches that are refused stand alone: OCS_SWITCH_DENIED if
 * they were, and the read-back shows all the rest (a patch whose port a refused
 * delete still holds is not even tried).  AFTER (may be NULL; free with
 * ocs_table_free) holds the last table that was read, also after a refusal or a
 * partial answer; AFTER->out is NULL if none could be read.  A circuit of a duplex
 * switch is two patches: pass both (ocs_switch_patches). */
int ocs_switch_apply(struct ocs_switch_connection *connection, const struct ocs_patch *remove,
		     size_t nremove, const struct ocs_patch *add, size_t nadd,
		     struct ocs_table *after, struct ocs_error *err);

/* The same, but without the read before it where the table that was read last on this connection is
 * still known: delete, add and read-back only.  Nothing but the ports of REMOVE and ADD is touched
 * either way; what somebody else changed since that read shows in the read-back, as UNKNOWN or
 * DENIED, and the next call reads first. */
int ocs_switch_change(struct ocs_switch_connection *connection, const struct ocs_patch *remove,
		      size_t nremove, const struct ocs_patch *add, size_t nadd,
		      struct ocs_table *after, struct ocs_error *err);

#endif
