/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_DRIVER_H
#define OCS_SWITCH_DRIVER_H

/* The house side of switch.h: what a driver is.  A driver is one ops structure and
 * one line of OCS_SWITCH_DRIVERS.  Only src/switch and its tests include this. */

#include <stdbool.h>

#include "ocs_config.h"
#include "src/switch/switch.h"

#define OCS_DRIVER_ABI 2

/* What a denial is about, as far as the reply tells. */
enum ocs_switch_blame {
	OCS_BLAME_UNKNOWN,
	OCS_BLAME_PORT,	  /* a port that the command names */
	OCS_BLAME_SWITCH, /* the login, the command itself, the whole switch */
};

struct ocs_switch_connection {
	const struct ocs_switch_driver *driver;
	const struct ocs_switch *description;
	int timeout_ms; /* bounds one command */
	ocs_switch_notice notice;
	void *context;
	int fd;	     /* to poll; -1 once lost */
	void *state; /* of the driver */
	/* Of the last OCS_SWITCH_DENIED; the port may stay 0. */
	enum ocs_switch_blame blame;
	int blamed_port;
	struct ocs_table known;	      /* as it was read last; no entries: not known */
	struct ocs_refusal *refusals; /* of the last apply */
	size_t nrefusals;
	struct ocs_withheld *withheld; /* withhold.c; NULL: no secrets */
};

/* Every operation blocks for at most the connection's timeout, returns enum
 * ocs_switch_result and fills ERR unless OK, without the switch's name.
 *   OCS_SWITCH_DENIED    the switch answered that it will not; sets `blame` and,
 *			  if the answer says so, `blamed_port`
 *   OCS_SWITCH_UNKNOWN   no answer, half an answer, one that is not understood;
 *			  where later answers could be mistaken for this one, the
 *			  driver closes the connection (fd -1), and with it takes
 *			  back what the switch has not got yet
 *   OCS_SWITCH_REJECTED  refused by the driver before a byte was sent */
struct ocs_switch_driver {
	int abi;	  /* OCS_DRIVER_ABI */
	const char *name; /* as ocs.yaml writes it */
	/* Connects and logs in; `close` is called afterwards even if it failed. */
	int (*open)(struct ocs_switch_connection *connection, struct ocs_error *err);
	void (*close)(struct ocs_switch_connection *connection);
	int (*read_size)(struct ocs_switch_connection *connection, int *size,
			 struct ocs_error *err);
	/* TABLE is initialised and empty. */
	int (*read_table)(struct ocs_switch_connection *connection, struct ocs_table *table,
			  struct ocs_error *err);
	/* Apply.  One command: the first patches of COUNT, as many as it can name,
	 * go or are made; *USED says how many it named (also after a failure).
	 * Every patch is named; none of the others may be touched by it, whatever
	 * the list.  COUNT 0 and ports that do not exist are OCS_SWITCH_REJECTED. */
	int (*remove)(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		      size_t count, size_t *used, struct ocs_error *err);
	int (*add)(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		   size_t count, size_t *used, struct ocs_error *err);
	/* Fill what the switch tells of HEALTH (all unknown before).  NULL: it
	 * cannot be asked. */
	int (*read_status)(struct ocs_switch_connection *connection, struct ocs_health *health,
			   struct ocs_error *err);
	int (*read_power)(struct ocs_switch_connection *connection, struct ocs_health *health,
			  struct ocs_error *err);
	/* Delivers the notices that arrive within WAIT_MS. */
	int (*listen)(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err);
};

/* One line a driver: D(name) registers `ocs_<name>_driver` (registry.c). */
#define OCS_SWITCH_DRIVERS(D) \
	D(tl1)                \
	D(scpi)               \
	OCS_SWITCH_DRIVERS_SSH(D)
#ifdef HAVE_LIBSSH
#define OCS_SWITCH_DRIVERS_SSH(D) D(netconf)
#else
#define OCS_SWITCH_DRIVERS_SSH(D)
#endif

#define OCS_SWITCH_DRIVER_DECLARE(name) extern const struct ocs_switch_driver ocs_##name##_driver;
OCS_SWITCH_DRIVERS(OCS_SWITCH_DRIVER_DECLARE)

/* The driver of that name, or NULL. */
const struct ocs_switch_driver *ocs_switch_driver_find(const char *name);
/* Their names, joined with ", ", for sentences; static. */
const char *ocs_switch_driver_names(void);

/* The first port of PATCHES that TEXT, of a denial, names by its number, or 0. */
int ocs_switch_names_port(const char *text, const struct ocs_patch *patches, size_t count);

/* What switch.c and apply.c share: a full table (empty unless OK), which is known then. */
int ocs_switch_read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
			  struct ocs_error *err);

/* The credentials file: lines `user=...` and `password=...`; for SSH instead of the
 * password, or besides it as its passphrase, `key=/...`, the path of a private key. */
struct ocs_credentials {
	char user[128];
	char password[128];
	char key[256];
};

/* Reads PATH.  Refuses (-1 with ERR, code OCS_USAGE) a file that others can read
 * or change: its owner must be root or the caller, no one else may write it, and
 * only the caller's own group may read a file of root's.  Wipe the result with
 * ocs_credentials_wipe. */
int ocs_credentials_read(const char *path, struct ocs_credentials *credentials,
			 struct ocs_error *err);
/* The same for a login by SSH: a key may stand for the password. */
int ocs_credentials_read_ssh(const char *path, struct ocs_credentials *credentials,
			     struct ocs_error *err);
/* The contents of a file with the same checks, shorter than LIMIT bytes and
 * NUL-terminated; the caller wipes and frees it.  NULL with ERR. */
char *ocs_credentials_secret(const char *path, size_t limit, struct ocs_error *err);
void ocs_credentials_wipe(struct ocs_credentials *credentials);

/* What a switch says (withhold.c).  A driver names the credentials that it gives to the
 * switch before it does so, has every text of the switch heard that it may quote, whole and
 * decoded, and hands autonomous messages over by notify.  Of a refused login it quotes
 * nothing. */
void ocs_switch_guard(struct ocs_switch_connection *connection,
		      const struct ocs_credentials *credentials);
void ocs_switch_unguard(struct ocs_switch_connection *connection);
/* TEXT may be NULL. */
void ocs_switch_hear(struct ocs_switch_connection *connection, const char *text);
/* Nothing of what was heard so far is quoted. */
void ocs_switch_forget(struct ocs_switch_connection *connection);
void ocs_switch_notify(struct ocs_switch_connection *connection, const char *text);
/* Ends an operation: if RC is a failure, the name of the switch comes before the sentence in
 * ERR, and if what was heard shows a piece of the credentials, another sentence takes its
 * place.  Returns RC. */
int ocs_switch_fail(struct ocs_switch_connection *connection, int rc, struct ocs_error *err);

#endif
