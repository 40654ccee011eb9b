/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_NETCONF_NETCONF_H
#define OCS_SWITCH_NETCONF_NETCONF_H

/* NETCONF (RFC 6241, framing of RFC 6242) in pieces without I/O: how messages are
 * cut out of a stream, how a make of switch calls things (dialect tables), the
 * messages made from them, and what is read from those that come back. */

#include <stdbool.h>
#include <stddef.h>

#include "src/switch/switch.h"

struct ocs_error;

#define OCS_NETCONF_NS "urn:ietf:params:xml:ns:netconf:base:1.0"
#define OCS_NETCONF_NOTIFICATION_NS "urn:ietf:params:xml:ns:netconf:notification:1.0"
#define OCS_NETCONF_MESSAGE_LIMIT (8 * 1024 * 1024)

/* Cuts a stream into messages.  Zero-initialise: end-of-message framing, as for
 * hello; set `chunked` between two messages. */
struct ocs_netconf_framer {
	bool chunked;
	char *data; /* of the message so far */
	size_t used, size;
	int state;     /* of the chunk header, or matched of ]]>]]> */
	size_t left;   /* bytes still to come of this chunk */
	size_t chunks; /* of this message */
};
/* Eats bytes of *DATA up to the end of a message.  Returns 1 with MESSAGE (the
 * caller frees it; NUL-terminated, LENGTH bytes without NUL), 0 if all bytes are
 * eaten, or -1 with ERR: not the framing that was agreed on, or a message without
 * end. */
int ocs_netconf_framer_take(struct ocs_netconf_framer *framer, const char **data, size_t *length,
			    char **message, size_t *message_length, struct ocs_error *err);
void ocs_netconf_framer_free(struct ocs_netconf_framer *framer);
/* MESSAGE with its frame, *LENGTH bytes; the caller frees it. */
char *ocs_netconf_frame(bool chunked, const char *message, size_t *length);

/* A list of the model: a container, its list, and the names of the leaves. */
struct ocs_netconf_list {
	const char *container, *list;
	const char *key;   /* ingress, or number of the port */
	const char *value; /* egress, status, or power in dBm */
	const char *state; /* of a cross-connect, NULL: not said */
};

/* One make of switch: how its YANG model calls what every switch has. */
struct ocs_netconf_dialect {
	const char *name;
	const char *ns; /* of the model */
	struct ocs_netconf_list patches, status, power;
	/* What a status may say, and what it means; ends with NULL. */
	const struct ocs_netconf_word {
		const char *word;
		enum ocs_port_status status;
	} * words;
};
/* The dialect of that name (NULL: the default, polatis), or NULL. */
const struct ocs_netconf_dialect *ocs_netconf_dialect_find(const char *name);

/* What the other side said in its hello. */
struct ocs_netconf_hello {
	bool base_1_0, base_1_1;
	bool writable_running; /* edits of the running configuration */
	bool rollback;	       /* an edit is done as a whole or not at all */
	bool notifications;    /* may come between replies */
	bool model;	       /* announces the dialect's namespace */
	unsigned long session;
};

/* Messages; the caller frees them. */
char *ocs_netconf_make_hello(void);
/* lock, unlock, create-subscription, close-session */
char *ocs_netconf_make_plain(unsigned int id, const char *operation);
/* Asks for one of the dialect's lists.  VALUES false: its keys only. */
char *ocs_netconf_make_read(unsigned int id, const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_list *list, bool values);
/* How one edit treats each pair. */
enum ocs_netconf_edit {
	OCS_NETCONF_CREATE, /* refused if the ingress has a pair */
	OCS_NETCONF_MERGE,  /* may be repeated */
	OCS_NETCONF_DELETE, /* refused if the ingress has none */
	OCS_NETCONF_REMOVE, /* may be repeated */
};
/* Names every pair by its ingress, and touches nothing else.  ROLLBACK asks for
 * all or nothing.  NULL with ERR (code OCS_USAGE) for an empty batch and for ports
 * that a switch of SIZE does not have. */
char *ocs_netconf_make_edit(unsigned int id, const struct ocs_netconf_dialect *dialect,
			    enum ocs_netconf_edit edit, bool rollback, int size,
			    const struct ocs_patch *patches, size_t count, struct ocs_error *err);

/* The last look at a message before it is sent: whether it is anything but the
 * harmless operations above and edits of pairs that are named, each by one
 * ingress.  So no replace, no removal of a container, no copy-config,
 * delete-config, kill-session or RPC of the vendor. */
bool ocs_netconf_dangerous(const char *message, size_t length);

/* -1 with ERR if it is no hello, or one that offers no base that we speak. */
int ocs_netconf_parse_hello(const struct ocs_netconf_dialect *dialect, const char *message,
			    size_t length, struct ocs_netconf_hello *hello, struct ocs_error *err);

enum ocs_netconf_kind {
	OCS_NETCONF_OTHER,
	OCS_NETCONF_REPLY,
	OCS_NETCONF_NOTIFICATION,
};

/* The first rpc-error of severity error.  Strings are empty if not said; all are
 * printable. */
struct ocs_netconf_fault {
	char tag[40]; /* data-exists, lock-denied ... */
	char message[160];
	char path[160];
	unsigned long session; /* that holds the lock, 0: not said */
};

struct ocs_netconf_message {
	enum ocs_netconf_kind kind;
	void *document; /* of libxml2 */
	bool has_id, ok, failed;
	unsigned long id;
	struct ocs_netconf_fault fault; /* if failed */
	char *notice;			/* of a notification, one printable line */
};
/* -1 with ERR if it is not well-formed, holds a document type, or exceeds limits.
 * Free with ocs_netconf_message_free (also after a failure). */
int ocs_netconf_parse(const char *data, size_t length, struct ocs_netconf_message *message,
		      struct ocs_error *err);
void ocs_netconf_message_free(struct ocs_netconf_message *message);

/* From a reply with data.  -1 with ERR: a pair without ports, a port that does not
 * exist or has two peers.  TABLE is initialised, of the switch's size and empty.
 * *PENDING counts pairs that are about to come or go. */
int ocs_netconf_parse_table(const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_message *message, struct ocs_table *table,
			    int *pending, struct ocs_error *err);
/* Ports on one side: the numbers of all ports must be 1..2N. */
int ocs_netconf_parse_size(const struct ocs_netconf_dialect *dialect,
			   const struct ocs_netconf_message *message, int *size,
			   struct ocs_error *err);
/* Fill what the answer has of HEALTH; ports that the switch does not have are an error. */
int ocs_netconf_parse_status(const struct ocs_netconf_dialect *dialect,
			     const struct ocs_netconf_message *message, struct ocs_health *health,
			     struct ocs_error *err);
int ocs_netconf_parse_power(const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_message *message, struct ocs_health *health,
			    struct ocs_error *err);

#endif
