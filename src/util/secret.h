/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_SECRET_H
#define OCS_UTIL_SECRET_H

/* Secrets in files, and lines that carry a proof of who sent them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ocs_error;

/* Reads at most SIZE bytes of the file PATH into DATA, *LENGTH of them (SIZE: there may
 * be more).  It must be a regular file of root or of this account that no one else can
 * use, except by this account's group to read.  0, or -1 with ERR (OCS_USAGE), which
 * names the mode that would work; DATA is wiped then.  Wipe it after use. */
int ocs_secret_read(const char *path, void *data, size_t size, size_t *length,
		    struct ocs_error *err);

/* Whether the account UID, whose group is GID, could read the file PATH so.  0, or -1 with ERR. */
int ocs_secret_check(const char *path, uid_t uid, gid_t gid, struct ocs_error *err);

#define OCS_MAC_BYTES 32
#define OCS_MAC_HEX (2 * OCS_MAC_BYTES)

/* A key shared by the hosts of a cluster. */
struct ocs_key {
	unsigned char bytes[1024];
	size_t length; /* 32 to 1024 */
};

/* Reads the file PATH whole.  0, or -1 with ERR (OCS_USAGE): it cannot be read,
 * others could, or its length is wrong.  Wipe KEY after use. */
int ocs_key_read(const char *path, struct ocs_key *key, struct ocs_error *err);
void ocs_key_wipe(struct ocs_key *key);

/* HMAC with SHA-256 (RFC 2104) of DATA. */
void ocs_mac(const void *key, size_t key_length, const void *data, size_t length,
	     unsigned char mac[OCS_MAC_BYTES]);
/* COUNT random bytes as hex, 2 * COUNT characters and a NUL.  0, or -1 with ERR. */
int ocs_random_hex(char *hex, size_t count, struct ocs_error *err);
/* The MAC of the text "LABEL FIELD FIELD..." (NULL ends the fields) as hex; says who
 * holds the key in a hello, and makes the key of a session. */
void ocs_key_prove(const void *key, size_t key_length, char hex[OCS_MAC_HEX + 1], const char *label,
		   ...) __attribute__((sentinel));
/* In constant time. */
bool ocs_same_secret(const char *a, const char *b);

/* One connection after its hello: every line is its MAC in hex, a blank, and the
 * text.  The MAC covers the direction and the number of the line, so that no line
 * can be changed, repeated, left out or sent back. */
struct ocs_seal {
	char key[OCS_MAC_HEX + 1]; /* of the session */
	uint64_t sent, received;
	bool daemon; /* this side is ocsd */
	bool on;
};

/* KEY: as hex, OCS_MAC_HEX characters. */
void ocs_seal_start(struct ocs_seal *seal, const char *key, bool daemon);
/* Writes the prefix of the next line with TEXT to send, OCS_MAC_HEX + 1 characters
 * and a NUL. */
void ocs_seal_prefix(struct ocs_seal *seal, const char *text, size_t length,
		     char prefix[OCS_MAC_HEX + 2]);
/* The text of the next LINE received, or NULL: it is not what the peer sent. */
const char *ocs_seal_open(struct ocs_seal *seal, const char *line);

#endif
