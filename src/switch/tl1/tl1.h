/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_TL1_TL1_H
#define OCS_SWITCH_TL1_TL1_H

/* TL1 in three pieces: what a make of switch wants to hear (dialect tables), the
 * commands made from them, and the parser of what comes back.  No I/O here. */

#include <stdbool.h>
#include <stddef.h>

#include "src/switch/switch.h"
#include "src/util/text.h"

struct ocs_error;
struct ocs_credentials;

/* One make of switch.  Commands are templates:
 *   %t ctag   %u user   %p password
 *   %i list of ingress ports   %e list of egress ports, in the same order
 *   %n ingress>egress of a patch, where a dialect has one patch in a command
 *   %x number of the last port
 * A change may need two commands, one after the other.  If the second of `add` is
 * refused, `undo` takes the first back; if the first is, it takes away what an
 * interrupted change left on the ports in question (TUNING by the status key, and
 * `ours` in its line).  A refusal of the first of `remove` does not matter (what
 * is not active cannot be made inactive). */
struct ocs_tl1_dialect {
	const char *name;
	const char *login, *logout;
	const char *size;		/* asks for the number of ports; NULL: cannot be asked */
	const char *size_key;		/* its answer holds this, followed by "NxN" */
	const char *read;		/* asks for all cross-connects */
	const char *remove[2], *add[2]; /* the second may be NULL */
	const char *undo, *ours;
	const char *list; /* between the ports of a list */
	size_t batch;	  /* most patches in one command, 0: no limit */
	size_t line;	  /* most bytes of one command */
	/* How ports are called: a switch with N ports on a side names its ingress
	 * ports ingress_first.., its egress ports egress_first.. (0: from N+1). */
	int ingress_first, egress_first;
	/* {0}: names are numbers; else SHELF.SLOT.PORT, each from 1, with radix[0]
	 * slots in a shelf and radix[1] ports in a slot. */
	int radix[2];
	/* A line of a cross-connect: its ports stand behind in_key and out_key
	 * (0: none), or, where these are NULL, at its beginning, one character of
	 * `between` (one way) or `both` (both ways; may be NULL) between them. */
	const char *between, *both;
	const char *in_key, *out_key;
	/* Ask for the state of ports, and for their optical power; NULL: cannot be
	 * asked.  The lines are cross-connects, or begin with one port and a colon.
	 * Values stand behind the keys, or, where these are NULL, behind the first
	 * colon.  A word that is not in the list is an unknown state. */
	const char *status, *status_key;
	struct {
		const char *word;
		enum ocs_port_status status;
	} words[4];
	const char *power, *in_power_key, *out_power_key;
};

/* The dialect of that name (NULL: the default, polatis), or NULL. */
const struct ocs_tl1_dialect *ocs_tl1_dialect_find(const char *name);
/* Dialect number INDEX, or NULL behind the last. */
const struct ocs_tl1_dialect *ocs_tl1_dialect(size_t index);

/* A command without ports (login, logout, size, read, status, power) from TEMPLATE
 * for a switch of SIZE.  CREDENTIALS may be NULL if the template does not ask for them.  The caller
 * frees it. */
char *ocs_tl1_format(const char *template, unsigned int ctag, int size,
		     const struct ocs_credentials *credentials);

/* The next command of a batch from TEMPLATE (one of remove, add, undo): as many
 * of PATCHES as the dialect allows in one command, *USED of them (at least one).
 * Refuses (NULL with ERR, code OCS_USAGE) an empty batch and any port that a
 * switch of SIZE does not have: an empty or wild list must never be written.
 * The caller frees it. */
char *ocs_tl1_format_batch(const struct ocs_tl1_dialect *dialect, const char *template,
			   unsigned int ctag, int size, const struct ocs_patch *patches,
			   size_t count, size_t *used, struct ocs_error *err);

/* The first port of PATCHES that TEXT (of a denial) names, as the dialect calls it,
 * or 0. */
int ocs_tl1_names_port(const struct ocs_tl1_dialect *dialect, int size, const char *text,
		       const struct ocs_patch *patches, size_t count);

/* The last look at a command before it is sent: whether it is one that could
 * disturb more than named ports (a reset; a delete without ports or of ALL). */
bool ocs_tl1_dangerous(const char *command);

/* A complete answer or autonomous message. */
struct ocs_tl1_message {
	bool autonomous;
	char ctag[24];		 /* of an answer */
	char code[12];		 /* COMPLD, DENY, PRTL, RTRV, ... of an answer */
	char error[8];		 /* IDNV, ... or empty */
	struct ocs_text body;	 /* quoted strings, one a line; autonomous: header
				 * and body in one line */
	struct ocs_text comment; /* comments and other text, joined with blanks */
};
void ocs_tl1_message_free(struct ocs_tl1_message *message);

/* Zero-initialise; eats one byte at a time, whatever it is. */
struct ocs_tl1_parser {
	char *line;
	size_t used, size;
	bool quote, escape, comment;
	size_t comment_at;	 /* where in the line the comment starts */
	bool answering, telling; /* an answer, an autonomous message is open */
	bool between_pages;
	struct ocs_tl1_message answer, notice;
};

/* Returns 1 with a complete MESSAGE (the caller frees its contents), 0 if more
 * bytes are needed, or -1 if the peer sends lines or messages without end.
 * Continuation pages are joined; autonomous messages may stand anywhere, also
 * within an answer. */
int ocs_tl1_parser_byte(struct ocs_tl1_parser *parser, char byte, struct ocs_tl1_message *message);
void ocs_tl1_parser_free(struct ocs_tl1_parser *parser);

/* Reads the body of an answer into TABLE (initialised, of the switch's size, all
 * 0).  What the status key calls TUNING is not joined yet.  -1 with ERR if a line is no patch, a port does not exist or has two peers. */
int ocs_tl1_parse_table(const struct ocs_tl1_dialect *dialect, const char *body,
			struct ocs_table *table, struct ocs_error *err);
/* The same for what is entered in our name (`ours`), but not joined. */
int ocs_tl1_parse_idle(const struct ocs_tl1_dialect *dialect, const char *body,
		       struct ocs_table *table, struct ocs_error *err);
/* The states and powers that the body of an answer tells, into HEALTH; lines about
 * something else are passed over.  -1 with ERR: a port that does not exist. */
int ocs_tl1_parse_status(const struct ocs_tl1_dialect *dialect, const char *body,
			 struct ocs_health *health, struct ocs_error *err);
int ocs_tl1_parse_power(const struct ocs_tl1_dialect *dialect, const char *body,
			struct ocs_health *health, struct ocs_error *err);
/* Ports on one side.  -1 with ERR. */
int ocs_tl1_parse_size(const struct ocs_tl1_dialect *dialect, const char *body, int *size,
		       struct ocs_error *err);

#endif
