/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_EMULATOR_PEER_H
#define TESTS_EMULATOR_PEER_H

/* The real emulator as a child process, in a folder of its own. */

#include <stdbool.h>
#include <sys/types.h>

#define EMULATOR_OK "{\"ok\":true}"

struct emulator {
	char folder[64];      /* log, ctl (control socket) and what tests put there */
	char control[96];     /* address of the control socket */
	char addresses[4096]; /* what it printed: "NAME ADDRESS" lines */
	pid_t pid;
};

/* The program: $OCS_BUILD_DIR/src/emulator/ocs-emulator. */
const char *emulator_program(void);

void emulator_folder(struct emulator *emulator);
/* Starts it with --log, --control and ARGUMENTS (NULL-terminated; %s in one is
 * the folder) and waits until it is ready. */
void emulator_start(struct emulator *emulator, const char *const *arguments);
/* Ends it with SIGNAL and returns its exit status, or -1 if a signal ended it. */
int emulator_stop(struct emulator *emulator, int signal);
void emulator_remove(struct emulator *emulator);

/* The address of switch NAME. */
const char *emulator_address(struct emulator *emulator, const char *name);
/* The answer to a control command; the caller frees it. */
char *emulator_control(struct emulator *emulator, const char *command);
/* Fails the test unless the answer is WANTED. */
void emulator_says(struct emulator *emulator, const char *command, const char *wanted);
/* Runs the program with one option and its value; exit status; stdout to OUTPUT
 * (the caller frees it), which may be NULL. */
int emulator_run(const char *option, const char *value, char **output);
char *emulator_log(struct emulator *emulator);

/* Raw TL1.  Connects to switch NAME. */
int emulator_dial(struct emulator *emulator, const char *name);
/* Sends COMMAND, waits for COUNT messages (a ';' on a line of its own), and
 * returns them without carriage returns, empty lines and blanks at line starts. */
char *emulator_ask(int fd, const char *command, int count);
/* Fails the test unless the answer below its SID line is WANTED. */
void emulator_answers(int fd, const char *command, const char *wanted);
void emulator_denies(int fd, const char *command, const char *ctag, const char *code,
		     const char *comment);

#endif
