/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_ERROR_H
#define OCS_UTIL_ERROR_H

/* Codes double as the exit status of every program. */
enum ocs_code {
	OCS_OK = 0,
	OCS_ERROR = 1,	     /* something failed */
	OCS_USAGE = 2,	     /* the request itself is malformed */
	OCS_NEVER = 3,	     /* no healthy, empty machine could satisfy it */
	OCS_NOT_NOW = 4,     /* it fits the machine but not at this moment */
	OCS_UNREACHABLE = 5, /* the daemon cannot be reached */
};

#define OCS_ERROR_TEXT 1024

/* What went wrong: a code and one sentence for a human, without newline. */
struct ocs_error {
	int code;
	char text[OCS_ERROR_TEXT];
};

/* Fills ERR (which may be NULL) with CODE and the formatted sentence.
 * Returns -1 always, so that callers can write `return ocs_error_set(...)`. */
int ocs_error_set(struct ocs_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the sentence already in ERR; keeps the code.
 * Returns -1 always. */
int ocs_error_prefix(struct ocs_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The sentence TEXT without "SUBJECT: " or "SUBJECT failed: " in front, for sentences that
 * name SUBJECT themselves.  Points into TEXT. */
const char *ocs_error_cause(const char *text, const char *subject);

#endif
