/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_EMULATOR_H
#define OCS_EMULATOR_EMULATOR_H

/* A bank of optical circuit switches in one process and one thread: tables in
 * memory, TL1 in front (server.c, tl1.c), a control socket beside (control.c), and
 * a log from which every moment can be judged afterwards (log.c, check.c). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/fabric/fabric.h"
#include "src/util/text.h"

struct event;
struct event_base;
struct evconnlistener;
struct bufferevent;
struct ocs_error;

enum ocs_emu_fault {
	OCS_EMU_NONE,
	OCS_EMU_SILENT,		/* takes commands, neither obeys nor answers */
	OCS_EMU_DROP,		/* closes the connection on a command */
	OCS_EMU_DENY,		/* refuses changes */
	OCS_EMU_PARTIAL,	/* does half of a change, answers PRTL */
	OCS_EMU_LOST,		/* does a change but does not answer */
	OCS_EMU_SLOW,		/* takes longer for everything */
	OCS_EMU_REFUSE,		/* does not listen */
};

#define OCS_EMU_PUBLISHED (-1.0)	/* delay: the published distribution */
#define OCS_EMU_INHERIT (-2.0)		/* delay of a switch: that of the bank */

struct ocs_emu;
struct ocs_emu_switch;

struct ocs_emu_client {
	struct ocs_emu_client *next;
	struct ocs_emu_switch *sw;
	struct bufferevent *events;
	struct ocs_text line;	/* the command so far */
	bool quote;		/* within a quoted string of it */
	bool too_long;		/* skip to the next ';' */
	bool logged_in, muted;
	int pending;		/* commands queued or running */
	bool finished;		/* sent its last byte; answers may be due */
};

#define OCS_EMU_FIELDS 12

struct ocs_emu_command {
	struct ocs_emu_command *next;
	struct ocs_emu_client *client;	/* NULL: gone meanwhile */
	bool too_long;
	char *text;		/* as received, without ';' */
	char *copy;		/* what the fields point into */
	char *field[OCS_EMU_FIELDS];	/* verb, tid, aid, ctag, general block, ... */
	int nfields;
	struct ocs_patch *patches;	/* to make at the end of the delay */
	size_t npatches;
	bool lost;		/* no answer */
	double delay_ms;
	/* the answer */
	const char *code;	/* COMPLD, DENY, PRTL */
	const char *error;	/* IDNV, ... or NULL */
	struct ocs_text comment;
	struct ocs_text body;	/* one line each */
};

/* What a fibre leads to: an interface, or nothing. */
struct ocs_emu_fibre {
	char *device;
	bool both_ways;		/* sends and receives on this one fibre */
};

struct ocs_emu_switch {
	struct ocs_emu *emu;
	char *name;
	char *address;		/* once bound, with the real port */
	int size;
	int *out;		/* entries 1..size: egress of an ingress, or 0 */
	int *in;		/* entries 1..size: ingress of egress size+i, or 0 */
	bool *closed;		/* entries 1..2*size: shutter */
	struct ocs_emu_fibre *fibres;	/* entries 1..2*size; NULL: no data plane */
	bool *lit;		/* entries 1..size: frames pass from this ingress */
	char *user, *password;	/* NULL: no login needed */
	double delay_ms;
	enum ocs_emu_fault fault;
	double fault_ms;
	long fault_count;	/* commands it still hits; -1: all */
	struct evconnlistener *listener;
	struct ocs_emu_client *clients;
	struct ocs_emu_command *queue, **queue_end, *running;
	struct event *timer;	/* of the running command */
	struct event *boot;	/* end of a reboot */
	unsigned int notices;	/* atag */
};

struct ocs_emu {
	struct event_base *base;
	struct ocs_emu_switch *switches;
	int nswitches;
	int log;		/* descriptor or -1 */
	char *state;		/* folder or NULL */
	double delay_ms;
	bool replace;		/* a new patch silently takes a taken port */
	bool nil_sid;
	int page;		/* lines of a page of an answer; 0: all */
	size_t line_limit;
	int notice_ms;		/* period of autonomous messages; 0: none */
	uint64_t random;
	struct evconnlistener *control;
	char *control_address;
};

/* bank.c */
/* Adds a switch; USER NULL: no login.  Pointers to switches are valid only after
 * the last one was added. */
void ocs_emu_add(struct ocs_emu *emu, const char *name, const char *address, int size,
		 const char *user, const char *password);
struct ocs_emu_switch *ocs_emu_find(struct ocs_emu *emu, const char *name);
void ocs_emu_free(struct ocs_emu *emu);
bool ocs_emu_port_exists(const struct ocs_emu_switch *sw, int port);
/* The one peer of a port, or 0. */
int ocs_emu_peer(const struct ocs_emu_switch *sw, int port);
/* Both log the event with BY ("command", "hand", ...).  Making a patch whose
 * ports are taken breaks what is there first (the caller decided so). */
void ocs_emu_make(struct ocs_emu_switch *sw, int in, int out, const char *by);
void ocs_emu_break(struct ocs_emu_switch *sw, int in, const char *by);
/* The time that one command of COUNT patches takes, in ms. */
double ocs_emu_delay(struct ocs_emu_switch *sw, size_t count);
/* Writes the table to the state folder, if there is one. */
void ocs_emu_save(const struct ocs_emu_switch *sw);
/* Reads it back.  -1 with ERR. */
int ocs_emu_load(struct ocs_emu_switch *sw, struct ocs_error *err);

/* plane.c */
/* Reads lines SWITCH PORT INTERFACE [duplex|bidi]; the interfaces must be in this
 * network namespace.  Call it before patches are loaded.  0, or -1 with ERR. */
int ocs_emu_plane_open(struct ocs_emu *emu, const char *path, struct ocs_error *err);
/* Takes every rule away. */
void ocs_emu_plane_close(struct ocs_emu *emu);
/* To be called after a patch IN>OUT was made or broken. */
void ocs_emu_plane_set(struct ocs_emu_switch *sw, int in, int out);
/* To be called after the shutter of PORT moved. */
void ocs_emu_plane_shutter(struct ocs_emu_switch *sw, int port);

/* log.c: one line of JSON, written at once.  SWITCH and TEXT may be NULL, IN and
 * OUT 0. */
void ocs_emu_log(const struct ocs_emu *emu, const char *sw, const char *event, int in,
		 int out, const char *by, const char *text);

/* server.c */
int ocs_emu_listen(struct ocs_emu_switch *sw, struct ocs_error *err);
void ocs_emu_unlisten(struct ocs_emu_switch *sw);
/* Closes all connections and forgets their commands. */
void ocs_emu_disconnect(struct ocs_emu_switch *sw);
/* An autonomous message to every client that is logged in and not muted. */
void ocs_emu_notice(struct ocs_emu_switch *sw, const char *text);
/* Off and on again after DOWN_MS, dark or with the patches it had. */
void ocs_emu_reboot(struct ocs_emu_switch *sw, bool dark, double down_ms);
void ocs_emu_bytes(struct ocs_emu_client *client, const char *data, size_t length);

/* tl1.c */
/* Splits the text; then the part of the work that comes before the delay. */
void ocs_emu_tl1_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command);
/* The part that comes after it. */
void ocs_emu_tl1_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command);
/* Whether it is ENT-PATCH, DLT-PATCH or the like. */
bool ocs_emu_tl1_changes(const struct ocs_emu_command *command);
void ocs_emu_tl1_split(struct ocs_emu_command *command);
/* The text for the log: no passwords. */
char *ocs_emu_tl1_masked(const struct ocs_emu_command *command);
/* The answer as bytes. */
char *ocs_emu_tl1_answer(struct ocs_emu_switch *sw, const struct ocs_emu_command *command);
char *ocs_emu_tl1_notice(struct ocs_emu_switch *sw, const char *text);

/* control.c */
int ocs_emu_control_listen(struct ocs_emu *emu, const char *address, struct ocs_error *err);
/* Runs one line; returns the answer, one line of JSON; the caller frees it. */
char *ocs_emu_control(struct ocs_emu *emu, char *line);
/* The client: sends the words as a line, prints the answer; the exit status. */
int ocs_emu_control_client(const char *address, char *const *words, int count);

/* check.c: replays a log, prints violations and the final tables; the exit
 * status (0: at no moment had a port two peers). */
int ocs_emu_check_log(const char *path);

#endif
