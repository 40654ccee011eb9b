/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_TL1_H
#define OCS_EMULATOR_TL1_H

/* What the TL1 dialects share (tl1.c); each is a table of verbs. */

#include "src/emulator/emulator.h"

#define OCS_EMU_TL1_FIELDS 12

/* State of a command. */
struct ocs_emu_tl1_command {
	bool too_long;
	char *copy;			 /* what the fields point into */
	char *field[OCS_EMU_TL1_FIELDS]; /* verb, tid, aid, ctag, general block, ... */
	int nfields;
	/* the answer */
	const char *code;  /* COMPLD, DENY, PRTL */
	const char *error; /* IDNV, ... or NULL */
	struct ocs_text comment;
	struct ocs_text body; /* one line each */
};

typedef void (*ocs_emu_tl1_function)(struct ocs_emu_switch *sw, struct ocs_emu_command *command);

struct ocs_emu_tl1_verb {
	const char *name; /* NULL: end of the table */
	bool public;	  /* without login */
	bool changes;
	ocs_emu_tl1_function begin, finish; /* before, after the delay */
};

struct ocs_emu_tl1_dialect {
	const char *name;
	const struct ocs_emu_tl1_verb *verbs;
	/* Appends the name of a port. */
	void (*name_port)(const struct ocs_emu_switch *sw, long port, struct ocs_text *text);
};

extern const struct ocs_emu_tl1_dialect ocs_emu_tl1_polatis, ocs_emu_tl1_calient,
	ocs_emu_tl1_glimmerglass;

/* Field I, or "". */
const char *ocs_emu_tl1_field(const struct ocs_emu_command *command, int i);
/* Whether an AID means every port. */
bool ocs_emu_tl1_all(const char *aid);
void ocs_emu_tl1_deny(struct ocs_emu_command *command, const char *error, const char *comment);
/* One line of the answer. */
void ocs_emu_tl1_say(struct ocs_emu_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
