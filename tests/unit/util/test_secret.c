/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Keys in files, and sealed lines. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/secret.h"
#include "src/util/text.h"

static void hex_of(const unsigned char *bytes, char *hex)
{
	for (int i = 0; i < OCS_MAC_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

/* The cases of RFC 4231 that say all 256 bits. */
static void test_vectors(void **state)
{
	unsigned char key[131], data[50], mac[OCS_MAC_BYTES];
	char hex[OCS_MAC_HEX + 1];

	(void)state;
	memset(key, 0x0b, 20);
	ocs_mac(key, 20, "Hi There", 8, mac);
	hex_of(mac, hex);
	assert_string_equal(hex,
			    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	ocs_mac("Jefe", 4, "what do ya want for nothing?", 28, mac);
	hex_of(mac, hex);
	assert_string_equal(hex,
			    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	ocs_mac(key, 20, data, 50, mac);
	hex_of(mac, hex);
	assert_string_equal(hex,
			    "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	ocs_mac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
	hex_of(mac, hex);
	assert_string_equal(hex,
			    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static char *sealed(struct ocs_seal *seal, const char *text)
{
	char prefix[OCS_MAC_HEX + 2];

	ocs_seal_prefix(seal, text, strlen(text), prefix);
	return ocs_asprintf("%s%s", prefix, text);
}

static void test_seal(void **state)
{
	static const char key[] =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	struct ocs_seal client, daemon, other;
	char *one, *two, *reply;

	(void)state;
	ocs_seal_start(&client, key, false);
	ocs_seal_start(&daemon, key, true);
	one = sealed(&client, "{\"op\":\"apply\"}");
	two = sealed(&client, "{\"op\":\"apply\"}");
	assert_string_not_equal(one, two);
	assert_null(ocs_seal_open(&daemon, two)); /* out of turn */
	assert_string_equal(ocs_seal_open(&daemon, one), "{\"op\":\"apply\"}");
	assert_null(ocs_seal_open(&daemon, one)); /* repeated */
	assert_string_equal(ocs_seal_open(&daemon, two), "{\"op\":\"apply\"}");
	assert_null(ocs_seal_open(&client, one)); /* sent back */
	reply = sealed(&daemon, "{\"ok\":true}");
	reply[strlen(reply) - 2] = 'f'; /* changed */
	assert_null(ocs_seal_open(&client, reply));
	reply[strlen(reply) - 2] = 'e';
	assert_string_equal(ocs_seal_open(&client, reply), "{\"ok\":true}");
	ocs_seal_start(&other, "another key", true);
	assert_null(ocs_seal_open(&other, one));
	assert_null(ocs_seal_open(&daemon, ""));
	assert_null(ocs_seal_open(&daemon, "{}"));
	one[10] = '\0';
	assert_null(ocs_seal_open(&daemon, one));
	free(one);
	free(two);
	free(reply);
}

static void put(const char *path, size_t count, mode_t mode)
{
	char *data = ocs_calloc(count + 1, 1);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(data, 'k', count);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, count), count);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	free(data);
}

static void refused(const char *path, const char *part)
{
	struct ocs_error err = { 0 };
	struct ocs_key key;

	assert_int_equal(ocs_key_read(path, &key, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	if (!strstr(err.text, part))
		fail_msg("no \"%s\" in \"%s\"", part, err.text);
	assert_int_equal(key.length, 0);
}

static void test_files(void **state)
{
	char path[] = "/tmp/test_secret.XXXXXX";
	struct ocs_error err = { 0 };
	struct ocs_key key;

	(void)state;
	close(mkstemp(path));
	put(path, 32, 0600);
	assert_int_equal(ocs_key_read(path, &key, &err), 0);
	assert_int_equal(key.length, 32);
	put(path, 1024, 0400);
	assert_int_equal(ocs_key_read(path, &key, &err), 0);
	assert_int_equal(key.length, 1024);
	unlink(path);
	put(path, 31, 0600);
	refused(path, "32 to 1024 bytes");
	put(path, 1025, 0600);
	refused(path, "32 to 1024 bytes");
	put(path, 64, 0644);
	refused(path, "mode 0644");
	unlink(path);
	refused(path, "No such file");
	refused("/tmp", "not a regular file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_seal),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
