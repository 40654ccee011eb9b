/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The installed program as the prolog and the epilog run it. */

#include <fcntl.h>
#include <grp.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/fabric/occupancy.h"
#include "src/nccl/check.h"
#include "src/place/place.h"
#include "src/layout/task_map.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/node/node_rig.h"

#define TORUS "torus cubes:2x1x1 cube:4x4x4 tile:2x2x1"

/* A compact placement on the empty torus. */
static char *place(const char *text)
{
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(TORUS, &err));
	const struct ocs_section *section = ocs_fabric_section(fabric, NULL);
	struct ocs_occupancy *occupancy = ocs_occupancy_create(section);
	struct ocs_placer *placer = ocs_placer_create(fabric, section);
	struct ocs_placement *placement;
	struct ocs_shape shape;
	char *compact;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
	placement = ocs_place(placer, occupancy, &shape, 0, &err);
	if (!placement)
		fail_msg("%s: %s", text, err.text);
	compact = ocs_strdup(placement->compact);
	ocs_placement_destroy(placement);
	ocs_placer_destroy(placer);
	ocs_occupancy_destroy(occupancy);
	ocs_fabric_destroy(fabric);
	return compact;
}

/* Prepares job 7; no PLACEMENT and no OPTION with its VALUE where they are NULL. */
static int prepare(const char *epoch, const char *node, const char *placement, const char *option,
		   const char *value)
{
	return node_run("prepare", "--fabric", TORUS, "--dir", node_dir, "--job", "7", "--epoch",
			epoch, "--node", node, placement ? "--placement" : NULL, placement, option,
			value, NULL);
}

static void test_torus(void **state)
{
	char *compact = place("4x8x2"), *text, *expected;
	struct ocs_ranks *ranks;
	struct ocs_error err = { 0 };
	struct json_object *json;
	struct stat info;
	int lines = 0;

	(void)state;
	if (prepare("12", "n0", compact, "--shape", "4x8x2") != 0)
		fail_msg("%s", node_output);
	assert_int_equal(stat(node_dir, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0755); /* it was not said whose it is */

	text = node_file("epoch");
	assert_string_equal(text, "12\n");
	free(text);

	text = node_file("placement.json");
	json = json_tokener_parse(text);
	assert_int_equal(json_object_array_length(json_object_object_get(json, "xpus")), 64);
	json_object_put(json);
	free(text);

	text = node_file("ranks");
	ranks = ocs_ranks_parse(text, &err);
	assert_non_null(ranks);
	assert_int_equal(ranks->nxpus, 64);
	free(text);
	text = node_file("hostfile");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_string_equal(line, ranks->nodes[ranks->node[lines++]]);
	assert_int_equal(lines, 64);
	free(text);
	ocs_ranks_destroy(ranks);

	text = node_file("env");
	node_has_line(text, "SLURM_OCS_SHAPE=4x8x2");
	node_has_line(text, "SLURM_OCS_CONN=torus,torus,torus");
	node_has_line(text, "NCCL_ALGO=Ring");
	expected = ocs_asprintf("SLURM_OCS_DIR=%s", node_dir);
	node_has_line(text, expected);
	free(expected);
	assert_non_null(strstr(text, "SLURM_OCS_CUBES=c"));
	expected = ocs_asprintf("NCCL_TOPO_FILE=%s/topo.xml", node_dir);
	if (access(expected + strlen("NCCL_TOPO_FILE="), R_OK) == 0)
		node_has_line(text, expected);
	else /* a machine that cannot be described: said, and left out */
		assert_non_null(strstr(node_output, "no NCCL topology file"));
	free(expected);
	free(text);
	text = node_file("topo.xml");
	if (text)
		assert_int_equal(ocs_nccl_check_text(text, &err), 0);
	free(text);
	assert_null(node_file("plan.json"));

	/* every file can be read by the job's user, whatever the umask */
	text = ocs_asprintf("%s/env", node_dir);
	assert_int_equal(stat(text, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0644);
	free(text);

	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(access(node_dir, F_OK), -1);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(compact);
}

/* Names of dimensions are labels: all else is as without. */
static void test_names(void **state)
{
	char *compact = place("4x8x2"), *text;
	struct json_object *json, *names;

	(void)state;
	if (prepare("12", "n0", compact, "--shape", "pp:4,dp:8,tp:2") != 0)
		fail_msg("%s", node_output);
	text = node_file("env");
	node_has_line(text, "SLURM_OCS_SHAPE=4x8x2");
	node_has_line(text, "SLURM_OCS_DIMENSIONS=pp:4,dp:8,tp:2");
	node_absent(text, "SLURM_OCS_PHASES");
	free(text);
	text = node_file("placement.json");
	json = json_tokener_parse(text);
	names = json_object_object_get(json, "dimensions");
	assert_string_equal(json_object_to_json_string_ext(names, JSON_C_TO_STRING_PLAIN),
			    "[\"pp\",\"dp\",\"tp\"]");
	json_object_put(json);
	free(text);
	text = node_file("ranks");
	assert_int_equal(strncmp(text, "shape 4x8x2 conn torus,torus,torus\n", 35), 0);
	free(text);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(compact);
}

/* The key in ocsd's reply is for the job's user only. */
static void key_check(const char *fabric, const char *option, bool wanted)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), uid[16];
	char *path = ocs_asprintf("%s/rails.key", node_dir), *text;
	struct stat info;

	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	node_put(reply, "{\"ok\":true,\"key\":\"0123456789abcdef\",\"agent_key\":\"fedcba\"}");
	if (node_run("prepare", "--fabric", fabric, "--dir", node_dir, "--job", "7", "--epoch", "4",
		     "--node", "n1", "--nodes", "n[1-2]", "--shape", "pp:2,tp:4", "--phases",
		     "provisioned", "--reply", reply, option, uid, NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("rails.key");
	assert_int_equal(text != NULL, wanted);
	if (wanted) {
		assert_string_equal(text, "0123456789abcdef\n");
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 07777, 0400);
	}
	free(text);
	text = node_file("agent.key");
	assert_int_equal(text != NULL, wanted);
	if (wanted)
		assert_string_equal(text, "fedcba\n");
	free(text);
	free(path);
	free(reply);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(access(node_dir, F_OK), -1);
}

/* On rails each node has the XPUs of the last dimensions, and nodes follow their list. */
static void test_rails(void **state)
{
	static const char fabric[] = "rails servers:8 rails:4 xpus:4 ports:2";
	struct ocs_error err = { 0 };
	struct ocs_ranks *ranks;
	char *text;

	(void)state;
	if (node_run("prepare", "--fabric", fabric, "--dir", node_dir, "--job", "7", "--epoch", "3",
		     "--node", "n6", "--nodes", "n[1,6,2-5]", "--shape", "pp:3,dp:2,tp:4",
		     "--phases", "on-demand", NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("env");
	node_has_line(text, "SLURM_OCS_SHAPE=3x2x4");
	node_has_line(text, "SLURM_OCS_DIMENSIONS=pp:3,dp:2,tp:4");
	node_has_line(text, "SLURM_OCS_PHASES=on-demand");
	free(text);
	text = node_file("ranks");
	ranks = ocs_ranks_parse(text, &err);
	free(text);
	assert_int_equal(ranks->nxpus, 24);
	assert_int_equal(ranks->nnodes, 6);
	for (int r = 0; r < 24; r++) {
		static const char *const nodes[] = { "n1", "n6", "n2", "n3", "n4", "n5" };

		assert_string_equal(ranks->nodes[ranks->node[r]], nodes[r / 4]);
		assert_int_equal(ranks->device[r], r % 4);
	}
	ocs_ranks_destroy(ranks);
	assert_null(node_file("rails.key"));
	key_check(fabric, "--uid", true);
	key_check(fabric, NULL, false); /* it is not said whose it is */
	assert_int_equal(node_run("prepare", "--fabric", fabric, "--dir", node_dir, "--job", "7",
				  "--epoch", "3", "--node", "n1", "--nodes", "n[1-2]", "--shape",
				  "pp:3,dp:2,tp:4", NULL),
			 2);
	assert_non_null(strstr(node_output, "is for 6 nodes, the job has 2"));
}

static void test_epochs(void **state)
{
	char *compact = place("2x2x2"), *text, *path = ocs_asprintf("%s/plan.json", node_dir);

	(void)state;
	assert_int_equal(prepare("5", "n0", compact, NULL, NULL), 0);
	/* what an older job left, of a kind this one does not have */
	node_put(path, "{}");
	assert_int_equal(prepare("6", "n0", compact, NULL, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(prepare("6", "n0", compact, NULL, NULL), 0);
	assert_int_equal(prepare("5", "n0", compact, NULL, NULL), 1);
	assert_non_null(strstr(node_output, "newer"));
	text = node_file("epoch");
	assert_string_equal(text, "6\n");
	free(text);
	free(path);

	/* a reply beside them is ours, anything else is not */
	path = ocs_asprintf("%s/reply.n0", node_dir);
	node_put(path, "{}");
	free(path);
	path = ocs_asprintf("%s/notes", node_dir);
	node_put(path, "mine");
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 1);
	assert_non_null(strstr(node_output, "notes"));
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(path);
	free(compact);
}

static void test_links(void **state)
{
	char *compact = place("2x2x2"), *target = ocs_asprintf("%s/target", node_base);
	char *victim = ocs_asprintf("%s/env", target);

	(void)state;
	assert_int_equal(prepare("1", "n0", compact, NULL, NULL), 0);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(mkdir(target, 0755), 0);
	node_put(victim, "precious");
	assert_int_equal(symlink(target, node_dir), 0);
	assert_int_equal(prepare("1", "n0", compact, NULL, NULL), 1);
	assert_non_null(strstr(node_output, "link"));
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 1);
	assert_int_equal(access(victim, F_OK), 0);
	unlink(node_dir);

	/* a link in the place of a file is replaced, not followed */
	assert_int_equal(mkdir(node_dir, 0755), 0);
	free(target);
	target = ocs_asprintf("%s/env", node_dir);
	assert_int_equal(symlink(victim, target), 0);
	assert_int_equal(prepare("1", "n0", compact, NULL, NULL), 0);
	free(target);
	target = ocs_file_read(victim, 100, NULL, NULL);
	assert_string_equal(target, "precious");
	free(target);
	unlink(victim);
	*strrchr(victim, '/') = '\0';
	rmdir(victim);
	free(victim);
	if (geteuid() == 0) {
		assert_int_equal(chown(node_dir, 65534, 65534), 0);
		assert_int_equal(prepare("2", "n0", compact, NULL, NULL), 1);
		assert_non_null(strstr(node_output, "another account"));
		assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 1);
		assert_int_equal(chown(node_dir, 0, 0), 0);
	}
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(compact);
}

/* As UID of group 65533: 0 if it can do WHAT to PATH. */
static int as_user(uid_t uid, const char *what, const char *path)
{
	int status, fd;
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(0, NULL) || setgid(65533) || setuid(uid))
			_exit(99);
		if (strcmp(what, "read") == 0)
			fd = open(path, O_RDONLY);
		else if (strcmp(what, "list") == 0)
			fd = open(path, O_RDONLY | O_DIRECTORY);
		else
			fd = open(path, O_WRONLY | O_CREAT, 0600);
		_exit(fd < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What a job is told is for its user; what root acts on is root's. */
static void test_private(void **state)
{
	static const char *const open_to_user[] = { "env", "placement.json", "hostfile", "ranks" };
	char *compact = place("2x2x2"), *path;
	struct stat info;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(node_base, 0711), 0);
	/* the second time over the files of the first */
	for (int i = 0; i < 2; i++)
		if (node_run("prepare", "--fabric", TORUS, "--dir", node_dir, "--job", "7",
			     "--epoch", i ? "13" : "12", "--node", "n0", "--placement", compact,
			     "--uid", "65534", "--gid", "65533", NULL) != 0)
			fail_msg("%s", node_output);
	assert_null(strstr(node_output, "cannot read"));
	assert_int_equal(stat(node_dir, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0751);
	assert_int_equal(info.st_uid, 0);
	assert_int_equal(info.st_gid, 65533);
	for (size_t i = 0; i < sizeof(open_to_user) / sizeof(open_to_user[0]); i++) {
		path = ocs_asprintf("%s/%s", node_dir, open_to_user[i]);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 07777, 0400);
		assert_int_equal(as_user(65534, "read", path), 0);
		assert_int_equal(as_user(65532, "read", path), 1);
		free(path);
	}
	path = ocs_asprintf("%s/epoch", node_dir);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_uid, 0);
	assert_int_equal(as_user(65534, "write", path), 1);
	free(path);
	path = ocs_asprintf("%s/mine", node_dir);
	assert_int_equal(as_user(65534, "write", path), 1);
	free(path);
	assert_int_equal(as_user(65534, "list", node_dir), 0);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(access(node_dir, F_OK), -1);
	free(compact);
}

/* One clear line, the right code, and nothing written. */
#define REGION "region servers:8 degree:3 packets:1 xpus:2 region:4"

/* Prepares the first node of a job of USER with experts whose key is KEY; the folder of its sockets. */
static char *region_prepare(const char *key, uid_t user)
{
	char *path = ocs_asprintf("%s/reply.json", node_base), uid[16], *text, *at, *folder;
	/* no other run of this test has the same folder */
	char *reply = ocs_asprintf("{\"ok\":true,\"key\":\"%s%s\"}", key, strchr(node_base, '.'));

	snprintf(uid, sizeof(uid), "%u", (unsigned)user);
	node_put(path, reply);
	if (node_run("prepare", "--fabric", REGION, "--dir", node_dir, "--job", "7", "--epoch", "4",
		     "--node", "n0", "--nodes", "n[0-3]", "--shape", "ep:4,tp:2", "--moe", "follow",
		     "--reply", path, "--uid", uid, NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("env");
	at = strstr(text, "\nSLURM_OCS_MOE_SOCKETS=/tmp/ocs-moe-7.4-");
	assert_non_null(at);
	folder = ocs_strdup(strchr(at, '=') + 1);
	folder[strcspn(folder, "\n")] = '\0';
	free(text);
	free(reply);
	free(path);
	return folder;
}

static void inside_put(const char *folder, const char *name)
{
	char *path = ocs_asprintf("%s/%s", folder, name);

	node_put(path, "");
	free(path);
}

static bool inside_has(const char *folder, const char *name)
{
	char *path = ocs_asprintf("%s/%s", folder, name);
	bool there = access(path, F_OK) == 0;

	free(path);
	return there;
}

/* The sockets of the controller: a folder that no other user can guess, which goes with the job; root takes
 * away no more than the user may. */
static void test_region(void **state)
{
	uid_t user = geteuid() ? geteuid() : 65534;
	char *other, *folder, *kept;

	(void)state;
	other = region_prepare("0123456789abcdee", user);
	folder = region_prepare("0123456789abcdef", user);
	assert_string_not_equal(other, folder);
	assert_int_equal(strlen(folder), strlen("/tmp/ocs-moe-7.4-") + 16);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chown(folder, user, (gid_t)-1), 0);
	inside_put(folder, "gate.0");
	inside_put(folder, "plan.12");
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(access(node_dir, F_OK), -1);
	assert_int_equal(access(folder, F_OK), -1);

	free(region_prepare("0123456789abcdef", user));
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chown(folder, user, (gid_t)-1), 0);
	inside_put(folder, "gate.0");
	inside_put(folder, "gate.0.txt");
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_false(inside_has(folder, "gate.0"));
	assert_true(inside_has(folder, "gate.0.txt"));
	if (geteuid() == 0) { /* of another user */
		free(region_prepare("0123456789abcdef", user));
		assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
		inside_put(folder, "gate.0");
		assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
		assert_true(inside_has(folder, "gate.0"));
		kept = ocs_asprintf("%s/gate.0", folder);
		unlink(kept);
		free(kept);
	}
	kept = ocs_asprintf("%s/gate.0.txt", folder);
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(rmdir(folder), 0);
	free(kept);
	free(folder);
	free(other);
}

static void test_refusals(void **state)
{
	char *compact = place("2x2x2");
	static const char *const bad[] = { "",	   "x", "0", ";;;", "\n", "99999999999999999999",
					   "box:9" };

	(void)state;
	assert_int_equal(node_run("prepare", "--dir", node_dir, NULL), 2);
	assert_in_range(node_run("prepare", "--fabric", "/nonexistent/ocs.yaml", "--dir", node_dir,
				 "--job", "7", "--epoch", "1", "--node", "n0", NULL),
			1, 2);
	assert_non_null(strstr(node_output, "/nonexistent/ocs.yaml"));
	assert_int_equal(prepare("1", "nowhere", compact, NULL, NULL), 2);
	assert_int_equal(prepare("1", "n0", NULL, NULL, NULL), 2);
	assert_int_equal(prepare("1", "n0", compact, "--shape", "2x2x4"), 2);
	assert_int_equal(prepare("1", "n0", compact, "--nodes", "n[0-4]"), 2);
	assert_int_equal(prepare("1", "n31", compact, NULL, NULL), 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = prepare("1", "n0", bad[i], NULL, NULL);

		assert_in_range(rc, 1, 3);
		assert_ptr_equal(strchr(node_output, '\n'), node_output + strlen(node_output) - 1);
	}
	assert_int_equal(node_run("prepare", "--fabric", TORUS, "--dir", node_dir, "--job", "-7",
				  "--epoch", "1", "--node", "n0", NULL),
			 2);
	assert_int_equal(node_run("prepare", "--fabric", TORUS, "--dir", "here", "--job", "7",
				  "--epoch", "1", "--node", "n0", NULL),
			 2);
	assert_int_equal(node_run("undo", "--dir", node_dir, NULL), 2);
	assert_int_equal(node_run("remove", NULL), 2);
	assert_int_equal(access(node_dir, F_OK), -1);
	assert_int_equal(node_run("--help", NULL), 0);
	assert_int_equal(node_run("--version", NULL), 0);
	free(compact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torus),	 cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_links),	 cmocka_unit_test(test_private),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_names),
		cmocka_unit_test(test_rails),	 cmocka_unit_test(test_region),
	};

	return cmocka_run_group_tests(tests, node_setup, node_teardown);
}
