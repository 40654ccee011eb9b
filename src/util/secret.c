/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define KEY_BYTES_MIN 32
#define BLOCK 64 /* of SHA-256 */

static int check_stat(const struct stat *st, const char *path, uid_t uid, gid_t gid,
		      struct ocs_error *err)
{
	if (!S_ISREG(st->st_mode))
		return ocs_error_set(err, OCS_USAGE, "%s: not a regular file", path);
	if (st->st_uid != 0 && st->st_uid != uid)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: belongs to uid %u; credentials must belong to root or to uid %u", path,
			(unsigned int)st->st_uid, (unsigned int)uid);
	if (st->st_mode & (S_IWGRP | S_IRWXO))
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: mode %04o lets others use it; chmod 0600 (or 0640 with the daemon's group) works",
			path, (unsigned int)(st->st_mode & 07777));
	/* root:ocsd 0640 is the usual way to hand a secret to a daemon. */
	if ((st->st_mode & S_IRGRP) && st->st_gid != gid)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: its group (gid %u) may read it; chmod 0600, or give it the daemon's group",
			path, (unsigned int)st->st_gid);
	return 0;
}

static int file_check(int fd, const char *path, struct ocs_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return ocs_error_set(err, OCS_USAGE, "%s: %s", path, strerror(errno));
	return check_stat(&st, path, geteuid(), getegid(), err);
}

int ocs_secret_check(const char *path, uid_t uid, gid_t gid, struct ocs_error *err)
{
	struct stat st;
	bool group;

	if (stat(path, &st) != 0)
		return ocs_error_set(err, OCS_USAGE, "%s: %s", path, strerror(errno));
	if (check_stat(&st, path, uid, gid, err))
		return -1;
	group = st.st_gid == gid && (st.st_mode & S_IRGRP);
	if (uid == 0 || (st.st_uid == uid ? st.st_mode & S_IRUSR : group))
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"%s: mode %04o of uid %u does not let it read; chown it, or chmod 0640 with its group",
		path, (unsigned int)(st.st_mode & 07777), (unsigned int)st.st_uid);
}

int ocs_secret_read(const char *path, void *data, size_t size, size_t *length,
		    struct ocs_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
	ssize_t got = 1;

	*length = 0;
	if (fd < 0)
		return ocs_error_set(err, OCS_USAGE, "%s: %s", path, strerror(errno));
	rc = file_check(fd, path, err);
	while (!rc && got > 0 && *length < size) {
		got = read(fd, (char *)data + *length, size - *length);
		if (got < 0)
			rc = ocs_error_set(err, OCS_USAGE, "%s: %s", path, strerror(errno));
		else
			*length += (size_t)got;
	}
	close(fd);
	if (rc)
		explicit_bzero(data, size);
	return rc;
}

int ocs_key_read(const char *path, struct ocs_key *key, struct ocs_error *err)
{
	unsigned char data[sizeof(key->bytes) + 1];
	size_t length;

	key->length = 0;
	if (ocs_secret_read(path, data, sizeof(data), &length, err))
		return -1;
	if (length >= KEY_BYTES_MIN && length <= sizeof(key->bytes)) {
		memcpy(key->bytes, data, length);
		key->length = length;
	}
	explicit_bzero(data, sizeof(data));
	if (key->length)
		return 0;
	return ocs_error_set(err, OCS_USAGE,
			     "%s: a key has %d to %zu bytes; "
			     "`openssl rand -out %s 1024` makes one",
			     path, KEY_BYTES_MIN, sizeof(key->bytes), path);
}

void ocs_key_wipe(struct ocs_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

/* INNER and OUTER: the two hashes of RFC 2104 after their padded keys. */
static void mac_begin(const void *key, size_t length, SHA2_CTX *inner, SHA2_CTX *outer)
{
	unsigned char block[BLOCK] = { 0 }, pad[BLOCK];
	SHA2_CTX hash;

	if (length > BLOCK) {
		SHA256Init(&hash);
		SHA256Update(&hash, key, length);
		SHA256Final(block, &hash);
	} else {
		memcpy(block, key, length);
	}
	for (int i = 0; i < BLOCK; i++)
		pad[i] = block[i] ^ 0x36;
	SHA256Init(inner);
	SHA256Update(inner, pad, BLOCK);
	for (int i = 0; i < BLOCK; i++)
		pad[i] = block[i] ^ 0x5c;
	SHA256Init(outer);
	SHA256Update(outer, pad, BLOCK);
	explicit_bzero(block, sizeof(block));
	explicit_bzero(pad, sizeof(pad));
}

static void mac_end(SHA2_CTX *inner, SHA2_CTX *outer, unsigned char mac[OCS_MAC_BYTES])
{
	SHA256Final(mac, inner);
	SHA256Update(outer, mac, OCS_MAC_BYTES);
	SHA256Final(mac, outer);
}

void ocs_mac(const void *key, size_t key_length, const void *data, size_t length,
	     unsigned char mac[OCS_MAC_BYTES])
{
	SHA2_CTX inner, outer;

	mac_begin(key, key_length, &inner, &outer);
	SHA256Update(&inner, data, length);
	mac_end(&inner, &outer, mac);
}

static void to_hex(const unsigned char *bytes, size_t count, char *hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * count] = '\0';
}

int ocs_random_hex(char *hex, size_t count, struct ocs_error *err)
{
	unsigned char bytes[256];

	if (count > sizeof(bytes) || getrandom(bytes, count, 0) != (ssize_t)count)
		return ocs_error_set(err, OCS_ERROR, "getrandom: %s", strerror(errno));
	to_hex(bytes, count, hex);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

void ocs_key_prove(const void *key, size_t key_length, char hex[OCS_MAC_HEX + 1], const char *label,
		   ...)
{
	unsigned char mac[OCS_MAC_BYTES];
	struct ocs_text text = { 0 };
	const char *field;
	va_list fields;

	ocs_text_add(&text, "%s", label);
	va_start(fields, label);
	while ((field = va_arg(fields, const char *)))
		ocs_text_add(&text, " %s", field);
	va_end(fields);
	ocs_mac(key, key_length, text.data, text.length, mac);
	to_hex(mac, sizeof(mac), hex);
	ocs_text_free(&text);
}

bool ocs_same_secret(const char *a, const char *b)
{
	size_t length = strlen(a);
	unsigned char differ = 0;

	if (strlen(b) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

void ocs_seal_start(struct ocs_seal *seal, const char *key, bool daemon)
{
	memset(seal, 0, sizeof(*seal));
	snprintf(seal->key, sizeof(seal->key), "%s", key);
	seal->daemon = daemon;
	seal->on = true;
}

static void line_mac(const struct ocs_seal *seal, bool from_daemon, uint64_t number,
		     const char *text, size_t length, char hex[OCS_MAC_HEX + 1])
{
	unsigned char mac[OCS_MAC_BYTES];
	SHA2_CTX inner, outer;
	char head[48];
	int size = snprintf(head, sizeof(head), "%s %" PRIu64 " ", from_daemon ? "ocsd" : "client",
			    number);

	mac_begin(seal->key, strlen(seal->key), &inner, &outer);
	SHA256Update(&inner, (const uint8_t *)head, (size_t)size);
	SHA256Update(&inner, (const uint8_t *)text, length);
	mac_end(&inner, &outer, mac);
	to_hex(mac, sizeof(mac), hex);
}

void ocs_seal_prefix(struct ocs_seal *seal, const char *text, size_t length,
		     char prefix[OCS_MAC_HEX + 2])
{
	line_mac(seal, seal->daemon, seal->sent++, text, length, prefix);
	memcpy(prefix + OCS_MAC_HEX, " ", 2);
}

const char *ocs_seal_open(struct ocs_seal *seal, const char *line)
{
	char said[OCS_MAC_HEX + 1], right[OCS_MAC_HEX + 1];

	if (strlen(line) <= OCS_MAC_HEX || line[OCS_MAC_HEX] != ' ')
		return NULL;
	memcpy(said, line, OCS_MAC_HEX);
	said[OCS_MAC_HEX] = '\0';
	line += OCS_MAC_HEX + 1;
	line_mac(seal, !seal->daemon, seal->received, line, strlen(line), right);
	if (!ocs_same_secret(said, right))
		return NULL;
	seal->received++;
	return line;
}
