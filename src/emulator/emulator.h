/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_EMULATOR_H
#define OCS_EMULATOR_EMULATOR_H

/* A bank of optical circuit switches in one process and one thread: tables in
 * memory (bank.c), what commands do to them (model.c), connections and queues in
 * front (server.c), one file per protocol between the two (tl1.c, ...), a control
 * socket beside (control.c), and a log from which every moment can be judged
 * afterwards (log.c, check.c). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ocs_config.h"
#include "src/fabric/fabric.h"
#include "src/util/text.h"

struct event;
struct event_base;
struct evconnlistener;
struct bufferevent;
struct json_object;
struct ocs_emu_map;
struct ocs_error;

enum ocs_emu_fault {
	OCS_EMU_NONE,
	OCS_EMU_SILENT,	   /* takes commands, neither obeys nor answers */
	OCS_EMU_DROP,	   /* closes the connection on a command */
	OCS_EMU_DENY,	   /* refuses changes */
	OCS_EMU_PARTIAL,   /* does half of a change, answers PRTL */
	OCS_EMU_LOST,	   /* does a change but does not answer */
	OCS_EMU_LATE,	   /* does a change later, without an answer; others go on */
	OCS_EMU_SLOW,	   /* takes longer for everything */
	OCS_EMU_REFUSE,	   /* does not listen */
	OCS_EMU_LOGIN,	   /* refuses every login */
	OCS_EMU_DUPLICATE, /* answers twice */
};

/* What an autonomous message is. */
enum ocs_emu_notice { OCS_EMU_EVENT, OCS_EMU_ALARM, OCS_EMU_CLEARED };

#define OCS_EMU_PUBLISHED (-1.0) /* delay: the published distribution */
#define OCS_EMU_INHERIT (-2.0)	 /* delay of a switch: that of the bank */

struct ocs_emu;
struct ocs_emu_switch;

struct ocs_emu_client {
	struct ocs_emu_client *next;
	struct ocs_emu_switch *sw;
	struct bufferevent *events;
	struct ocs_text line; /* the command so far */
	bool logged_in, muted;
	void *state;   /* of the protocol */
	int pending;   /* commands queued or running */
	bool finished; /* sent its last byte; answers may be due */
};

/* What the switch says to a change, in no protocol's words. */
enum ocs_emu_verdict {
	OCS_EMU_DONE,
	OCS_EMU_PART, /* half of it is done */
	/* Nothing is done: */
	OCS_EMU_BUSY,	    /* the switch cannot now */
	OCS_EMU_NO_PORT,    /* `port` does not exist */
	OCS_EMU_WRONG_SIDE, /* `port` is an egress for an ingress, or the reverse */
	OCS_EMU_TWICE,	    /* `port` is named twice */
	OCS_EMU_TAKEN,	    /* `port` has another peer */
	OCS_EMU_BAD_PORT,   /* `port` is out of order */
};

struct ocs_emu_command {
	struct ocs_emu_command *next;
	struct ocs_emu_client *client; /* NULL: gone meanwhile */
	struct ocs_emu_switch *sw;
	struct event *late;	      /* done when this is due, or NULL */
	char *text;		      /* as received */
	void *state;		      /* of the protocol */
	enum ocs_emu_verdict verdict; /* BUSY and PART may stand before `begin` */
	long port;		      /* that the verdict is about */
	struct ocs_patch *patches;    /* to make at the end of the delay */
	size_t npatches;
	bool lost;  /* no answer */
	bool twice; /* the answer comes twice */
	double delay_ms;
};

/* A protocol: how bytes become commands, and commands answers.  What a command
 * does to the light is asked of the model (model.c). */
struct ocs_emu_protocol {
	const char *name; /* of the driver in ocs.yaml */
	/* Whether it has the switch's dialect; NULL: it has none at all. */
	bool (*speaks)(const struct ocs_emu_switch *sw);
	/* Takes over the descriptor FD of a new connection and returns one that
	 * carries its plain bytes, or -1.  NULL: FD itself. */
	int (*secure)(struct ocs_emu_switch *sw, int fd);
	/* A connection begins (a greeting may be sent) and ends; may be NULL. */
	void (*open)(struct ocs_emu_client *client);
	void (*close)(struct ocs_emu_client *client);
	/* Bytes came; calls ocs_emu_queue for every complete command. */
	void (*bytes)(struct ocs_emu_client *client, const char *data, size_t length);
	/* Whether it changes patches, judged before `begin`. */
	bool (*changes)(const struct ocs_emu_switch *sw, const struct ocs_emu_command *command);
	/* The part of the work that comes before the delay, and the part after it;
	 * the switch executes one command at a time. */
	void (*begin)(struct ocs_emu_switch *sw, struct ocs_emu_command *command);
	void (*finish)(struct ocs_emu_switch *sw, struct ocs_emu_command *command);
	/* Appends the answer, if there is one, to BYTES. */
	void (*answer)(struct ocs_emu_switch *sw, const struct ocs_emu_command *command,
		       struct ocs_text *bytes);
	/* For the log: the command without passwords, and the answer in a line. */
	char *(*masked)(const struct ocs_emu_command *command);
	char *(*summary)(const struct ocs_emu_command *command);
	/* Frees `state` of a command; may be NULL. */
	void (*forget)(struct ocs_emu_command *command);
	/* An autonomous message for this client; NULL: the protocol has none. */
	char *(*notice)(struct ocs_emu_client *client, enum ocs_emu_notice kind, const char *text);
};

/* One line a protocol: P(name) registers `ocs_emu_<name>`. */
#define OCS_EMU_PROTOCOLS(P) \
	P(tl1)               \
	P(scpi)              \
	OCS_EMU_PROTOCOLS_SSH(P)
#ifdef HAVE_LIBSSH
#define OCS_EMU_PROTOCOLS_SSH(P) P(netconf)
#else
#define OCS_EMU_PROTOCOLS_SSH(P)
#endif

#define OCS_EMU_DECLARE(name) extern const struct ocs_emu_protocol ocs_emu_##name;
OCS_EMU_PROTOCOLS(OCS_EMU_DECLARE)

/* What a fibre leads to: an interface, or nothing. */
struct ocs_emu_fibre {
	char *device;
	unsigned int ifindex;
	bool both_ways; /* sends and receives on this one fibre */
};

struct ocs_emu_port {
	bool closed;	/* shutter */
	bool refuses;	/* changes that name it are refused */
	bool failed;	/* says so, and passes no light */
	double loss_db; /* more than it should lose */
};

struct ocs_emu_switch {
	struct ocs_emu *emu;
	char *name;
	char *address; /* once bound, with the real port */
	const struct ocs_emu_protocol *protocol;
	char *dialect; /* of the protocol; NULL: its default */
	bool moves;    /* a new patch takes taken ports: `moves` or `replace` of ocs.yaml */
	int size;
	int *out;		      /* entries 1..size: egress of an ingress, or 0 */
	int *in;		      /* entries 1..size: ingress of egress size+i, or 0 */
	struct ocs_emu_port *ports;   /* entries 1..2*size */
	struct ocs_emu_fibre *fibres; /* entries 1..2*size; NULL: no data plane */
	bool *lit;		      /* entries 1..size: frames pass from this ingress */
	bool changing;		      /* some fibre of it is, in a command that is executed */
	char *user, *password;	      /* NULL: no login needed */
	char *says;		      /* more words in every refusal, or NULL */
	double delay_ms;
	enum ocs_emu_fault fault;
	double fault_ms;
	long fault_count; /* commands it still hits; -1: all */
	struct evconnlistener *listener;
	struct ocs_emu_client *clients;
	struct ocs_emu_command *queue, **queue_end, *running;
	struct ocs_emu_command *later; /* to be done beside the queue */
	struct event *timer;	       /* of the running command */
	struct event *boot;	       /* end of a reboot */
	unsigned int notices;	       /* atag */
	void *state;		       /* of the protocol; freed with the switch */
};

struct ocs_emu {
	struct event_base *base;
	struct ocs_emu_switch *switches;
	int nswitches;
	int log; /* descriptor or -1 */
	bool log_held;
	struct ocs_text lines; /* of the log, not written yet */
	char *state;	       /* folder or NULL */
	double delay_ms;
	bool replace; /* a new patch silently takes a taken port */
	bool nil_sid;
	int page; /* lines of a page of an answer; 0: all */
	size_t line_limit;
	int notice_ms; /* period of autonomous messages; 0: none */
	uint64_t random;
	struct evconnlistener *control;
	char *control_address;
	struct ocs_emu_map *plane; /* plane_map.h; NULL: no data plane */
	struct ocs_emu_ssh *ssh;   /* ssh.h; NULL: no switch speaks it */
};

/* bank.c */
/* Adds a switch without login (set user and password).  Pointers to switches are
 * valid only until the next is added. */
struct ocs_emu_switch *ocs_emu_add(struct ocs_emu *emu, const char *name, const char *address,
				   int size, const struct ocs_emu_protocol *protocol,
				   const char *dialect);
const struct ocs_emu_protocol *ocs_emu_protocol_find(const char *name);
/* Their names, joined with ", "; static. */
const char *ocs_emu_protocol_names(void);
struct ocs_emu_switch *ocs_emu_find(struct ocs_emu *emu, const char *name);
void ocs_emu_free(struct ocs_emu *emu);
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

/* model.c: what commands do, in no protocol's words.  The light of a patch goes
 * when its command begins (the mirrors move), and comes when its delay is over. */
/* Whether the COUNT pairs may be made: every port exists, on its side, once, is in
 * order, and free or to be replaced.  Sets the verdict, the patches (half of them
 * for PART) and the delay. */
void ocs_emu_begin_make(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const int *in,
			const int *out, int count);
/* Makes them, unless a port was taken meanwhile. */
void ocs_emu_finish_make(struct ocs_emu_switch *sw, struct ocs_emu_command *command);
/* Breaks whatever is on the COUNT ports of either side. */
void ocs_emu_begin_break(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			 const int *ports, int count);
/* As dangerous as on a real switch; WHAT goes to the log. */
void ocs_emu_break_all(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		       const char *what);
/* Sets the verdict if PORT does not exist; returns whether it does. */
bool ocs_emu_check_port(const struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			long port);
bool ocs_emu_refused(const struct ocs_emu_command *command);
void ocs_emu_shutter(struct ocs_emu_switch *sw, int port, bool closed);
/* A made-up but steady optical power in dBm, -60 in the dark: at an ingress what
 * comes in, at an egress what goes out. */
double ocs_emu_power(const struct ocs_emu_switch *sw, int port);

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
/* A command moves the mirror of FIBRE, until the command of its switch is done: frames that come in
 * meanwhile are lost, and counted as such. */
void ocs_emu_plane_change(struct ocs_emu_switch *sw, int fibre);
void ocs_emu_plane_settle(struct ocs_emu_switch *sw);
/* What has come in by each port that has an interface; json_object_put. */
struct json_object *ocs_emu_plane_frames(const struct ocs_emu_switch *sw);

/* log.c: one line of JSON, written at once.  SWITCH and TEXT may be NULL, IN and
 * OUT 0. */
void ocs_emu_log(struct ocs_emu *emu, const char *sw, const char *event, int in, int out,
		 const char *by, const char *text);
/* The lines of a change of many patches, until the release, are written together. */
void ocs_emu_log_hold(struct ocs_emu *emu);
void ocs_emu_log_release(struct ocs_emu *emu);

/* server.c */
int ocs_emu_listen(struct ocs_emu_switch *sw, struct ocs_error *err);
void ocs_emu_unlisten(struct ocs_emu_switch *sw);
/* Closes all connections and forgets their commands. */
void ocs_emu_disconnect(struct ocs_emu_switch *sw);
/* An autonomous message to every client that is logged in and not muted. */
void ocs_emu_notice(struct ocs_emu_switch *sw, enum ocs_emu_notice kind, const char *text);
/* Off and on again after DOWN_MS, dark or with the patches it had. */
void ocs_emu_reboot(struct ocs_emu_switch *sw, bool dark, double down_ms);
/* Queues a whole command; STATE is the protocol's, TEXT becomes the command's. */
void ocs_emu_queue(struct ocs_emu_client *client, char *text, void *state);
void ocs_emu_send(struct ocs_emu_client *client, const char *data, size_t length);

/* control.c */
int ocs_emu_control_listen(struct ocs_emu *emu, const char *address, struct ocs_error *err);
/* The client: sends the words as a line, prints the answer; the exit status. */
int ocs_emu_control_client(const char *address, char *const *words, int count);

/* check.c: replays a log, prints violations and the final tables; the exit
 * status (0: at no moment had a port two peers). */
int ocs_emu_check_log(const char *path);

#endif
