/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/config/config.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

static const char config[] = "version: 1\n"
			     "ocsd:\n"
			     "  socket: unix:%1$s/ocsd.sock\n"
			     "  state: %1$s/state\n"
			     "%2$s"
			     "timeouts: {switch: %6$dms, retry: %3$dms, poll: %4$dms, dark: 1s}\n"
			     "switches:\n"
			     "  - name: t-[x,y,z]-[0-1]-[0-1]\n"
			     "    driver: %5$s\n"
			     "    address: \"unix:%1$s/{name}\"\n"
			     "    credentials: %1$s/credentials\n"
			     "    size: 16\n"
			     "  - name: direct-[0-1]\n"
			     "    driver: %5$s\n"
			     "    address: \"unix:%1$s/{name}\"\n"
			     "    credentials: %1$s/credentials\n"
			     "    size: 16\n"
			     "  - name: rail-[0-1]\n"
			     "    driver: %5$s\n"
			     "    address: \"unix:%1$s/{name}\"\n"
			     "    credentials: %1$s/credentials\n"
			     "    size: 8\n";

static const char config_fabrics[] =
	"fabrics:\n"
	"  - name: pod\n"
	"    kind: torus\n"
	"    partitions: [tpu]\n"
	"    cube: 2x2x2\n"
	"    tile: 1x1x2\n"
	"    cubes:\n"
	"      - {name: c0, nodes: \"n[0-3]\"}\n"
	"      - {name: c1, nodes: \"n[4-7]\"}\n"
	"      - {name: c2, nodes: \"n[8-11]\"}\n"
	"      - {name: c3, nodes: \"n[12-15]\"}\n"
	"    ports: {switch: \"t-{dim}-{a}-{b}\", port: 2*cube+sign+1}\n"
	"  - name: ring\n"
	"    kind: direct\n"
	"    partitions: [ring]\n"
	"    nodes: d[0-5]\n"
	"    degree: 2\n"
	"    ports: {switch: \"direct-{interface}\", port: server+1}\n"
	"  - name: rails\n"
	"    kind: rails\n"
	"    partitions: [rails]\n"
	"    nodes: r[0-3]\n"
	"    rails: 2\n"
	"    ports: {switch: \"rail-{interface}\", port: server+1}\n";

static void write_file(const struct rig *rig, const char *name, const char *text)
{
	char *path = ocs_asprintf("%s/%s", rig->emulator.folder, name);
	struct ocs_error err;

	if (ocs_file_write(path, text, strlen(text), 0600, &err))
		fail_msg("%s", err.text);
	free(path);
}

int rig_timeout_ms = 1000;

void rig_prepare(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rig->timeout_ms = rig_timeout_ms;
	rig->retry_ms = 200;
	rig->poll_ms = 60000;
	emulator_folder(&rig->emulator);
	snprintf(rig->yaml, sizeof(rig->yaml), "%s/ocs.yaml", rig->emulator.folder);
	snprintf(rig->address, sizeof(rig->address), "unix:%s/ocsd.sock", rig->emulator.folder);
}

void rig_start(struct rig *rig)
{
	const char *const arguments[] = { "--fabric",
					  "%s/ocs.yaml",
					  "--delay",
					  "2",
					  rig->netconf ? "--known-hosts" : NULL,
					  "%s/known_hosts",
					  NULL };
	char *driver = rig->netconf ? ocs_asprintf("netconf\n    known_hosts: %s/known_hosts",
						   rig->emulator.folder) :
				      ocs_strdup("tl1");
	char *listen = *rig->listen ? ocs_asprintf("  listen: %s\n", rig->listen) : ocs_strdup("");
	char *head = ocs_asprintf(config, rig->emulator.folder, listen, rig->retry_ms, rig->poll_ms,
				  driver, rig->timeout_ms);
	char *more = ocs_asprintf(rig->switches ? rig->switches : "%.0s", rig->emulator.folder);
	char *text = ocs_asprintf("%s%s%s%s", head, more, config_fabrics,
				  rig->fabrics ? rig->fabrics : "");
	struct ocs_error err;

	write_file(rig, "ocs.yaml", text);
	write_file(rig, "credentials", "user=admin\npassword=root\n");
	free(text);
	free(more);
	free(head);
	free(driver);
	free(listen);
	rig->fabric = ocs_config_take_fabric(ocs_config_open(rig->yaml, &err));
	if (!rig->fabric)
		fail_msg("%s", err.text);
	emulator_start(&rig->emulator, arguments);
	rig_start_daemon(rig);
}

static void become_daemon(struct rig *rig)
{
	const char *build = getenv("OCS_BUILD_DIR");
	char *program = ocs_asprintf("%s/src/ocsd/ocsd", build ? build : TEST_BUILD_DIR);
	char *log = ocs_asprintf("%s/ocsd.log", rig->emulator.folder);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsetenv("JOURNAL_STREAM");
	dup2(fd, 1);
	dup2(fd, 2);
	execl(program, "ocsd", "--foreground", "--log-level", "debug", "--fabric", rig->yaml,
	      rig->state ? "--state" : (char *)NULL, rig->state, (char *)NULL);
	_exit(127);
}

static void fork_daemon(struct rig *rig)
{
	rig->daemon = fork();
	assert_true(rig->daemon >= 0);
	if (rig->daemon == 0)
		become_daemon(rig);
}

char *rig_daemon_log(struct rig *rig)
{
	char *path = ocs_asprintf("%s/ocsd.log", rig->emulator.folder);
	struct ocs_error err;
	char *text = ocs_file_read(path, 1 << 24, NULL, &err);

	free(path);
	return text ? text : ocs_strdup(err.text);
}

bool rig_try_daemon(struct rig *rig)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);
	struct ocs_error err;

	fork_daemon(rig);
	while (ocs_now_ns() < deadline) {
		struct ocs_client *client = ocs_client_open(rig->address, NULL, NULL, 1000, &err);
		int status;

		if (client) {
			ocs_client_close(client);
			return true;
		}
		if (waitpid(rig->daemon, &status, WNOHANG) == rig->daemon) {
			rig->daemon = 0;
			return false;
		}
		usleep(10000);
	}
	fail_msg("ocsd does not come up: %s", rig_daemon_log(rig));
	return false;
}

void rig_start_daemon(struct rig *rig)
{
	if (!rig_try_daemon(rig))
		fail_msg("ocsd ended: %s", rig_daemon_log(rig));
}

void rig_reap_daemon(struct rig *rig)
{
	int status = 0;

	assert_int_equal(waitpid(rig->daemon, &status, 0), rig->daemon);
	rig->daemon = 0;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void rig_restart_with_trouble(struct rig *rig)
{
	if (rig->daemon)
		rig_stop_daemon(rig, SIGTERM);
	setenv("OCS_TROUBLE", rig->emulator.folder, 1);
	setenv("LD_PRELOAD", TEST_BUILD_DIR "/tests/unit/.libs/trouble_preload.so", 1);
	rig_start_daemon(rig);
	unsetenv("LD_PRELOAD");
	unsetenv("OCS_TROUBLE");
}

void rig_put(struct rig *rig, const char *name, const char *format, ...)
{
	char *path = ocs_asprintf("%s/%s", rig->emulator.folder, name), *text = NULL;
	struct ocs_error err;
	va_list args;

	if (!format) {
		unlink(path);
	} else {
		va_start(args, format);
		assert_true(vasprintf(&text, format, args) >= 0);
		va_end(args);
		assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
	}
	free(text);
	free(path);
}

void rig_until_log(struct rig *rig, size_t from, const char *part)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);

	for (;;) {
		char *log = rig_daemon_log(rig);
		bool found = strlen(log) > from && strstr(log + from, part);

		if (!found && ocs_now_ns() > deadline)
			fail_msg("no \"%s\" in %s", part, log);
		free(log);
		if (found)
			return;
		usleep(10000);
	}
}

int rig_stop_daemon(struct rig *rig, int number)
{
	int status = 0;

	kill(rig->daemon, number);
	assert_int_equal(waitpid(rig->daemon, &status, 0), rig->daemon);
	rig->daemon = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int rig_run_daemon(struct rig *rig, char **output)
{
	int status = 0;

	fork_daemon(rig);
	assert_int_equal(waitpid(rig->daemon, &status, 0), rig->daemon);
	rig->daemon = 0;
	*output = rig_daemon_log(rig);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void rig_end(struct rig *rig)
{
	char *path = ocs_asprintf("%s/log", rig->emulator.folder);

	if (rig->daemon)
		assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
	emulator_stop(&rig->emulator, SIGTERM);
	assert_int_equal(emulator_run("--check-log", path, NULL), 0);
	/* Nothing may ever have been deleted wholesale. */
	assert_int_equal(rig_log_lines(rig, "deleted-all", NULL), 0);
	free(path);
	ocs_fabric_destroy(rig->fabric);
	emulator_remove(&rig->emulator);
}

int rig_setup_with(void **state, const char *switches, const char *fabrics, int poll_ms)
{
	struct rig *rig = ocs_calloc(1, sizeof(*rig));

	rig_prepare(rig);
	rig->switches = switches;
	rig->fabrics = fabrics;
	rig->poll_ms = poll_ms ? poll_ms : rig->poll_ms;
	rig_start(rig);
	*state = rig;
	return 0;
}

int rig_setup(void **state)
{
	return rig_setup_with(state, NULL, NULL, 0);
}

const char rig_quad_switches[] = "  - name: \"quad-[0-3]\"\n"
				 "    driver: tl1\n"
				 "    address: \"unix:%1$s/{name}\"\n"
				 "    credentials: %1$s/credentials\n"
				 "    size: 16\n";

const char rig_quad_fabrics[] = "  - name: quad\n"
				"    kind: direct\n"
				"    partitions: [quad]\n"
				"    nodes: q[0-7]\n"
				"    degree: 4\n"
				"    ports: {switch: \"quad-{interface}\", port: server+1}\n";

int rig_setup_quad(void **state)
{
	return rig_setup_with(state, rig_quad_switches, rig_quad_fabrics, 0);
}

void rig_commit(struct ocs_client *client, unsigned int job, const char *section, const char *nodes)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'%s','nodes':'%s'}",
				job, job * 10, section, nodes));
}

void rig_apply(struct ocs_client *client, unsigned int job, const char *node)
{
	json_object_put(rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'%s'}", job,
				job * 10, node));
}

int rig_teardown(void **state)
{
	rig_end(*state);
	free(*state);
	return 0;
}

void rig_emulate(struct rig *rig, const char *format, ...)
{
	char *command = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&command, format, args) >= 0);
	va_end(args);
	emulator_says(&rig->emulator, command, EMULATOR_OK);
	free(command);
}

int rig_free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

char *rig_place(struct rig *rig, const char *shape_text, const char *busy, char **nodes)
{
	const struct ocs_section *section = ocs_fabric_section_named(rig->fabric, "pod");
	struct ocs_placer *placer = ocs_placer_create(rig->fabric, section);
	struct ocs_occupancy *occupancy = ocs_occupancy_create(section);
	struct ocs_placement *placement;
	struct ocs_shape shape;
	struct ocs_error err;
	char **names, *compact;

	assert_int_equal(ocs_shape_parse(shape_text, NULL, &shape, &err), 0);
	if (busy) {
		int count = ocs_hostlist_expand(busy, 1000, &names, &err);

		assert_true(count >= 0);
		for (int i = 0; i < count; i++)
			ocs_occupancy_node_set(
				occupancy, rig->fabric,
				(int)(ocs_fabric_node(rig->fabric, names[i]) - rig->fabric->nodes),
				false);
		ocs_names_free(names, (size_t)count);
	}
	placement = ocs_place(placer, occupancy, &shape, 0, &err);
	if (!placement)
		fail_msg("%s: %s", shape_text, err.text);
	names = ocs_calloc((size_t)placement->nnodes, sizeof(*names));
	for (int i = 0; i < placement->nnodes; i++)
		names[i] = rig->fabric->nodes[placement->nodes[i]].name;
	*nodes = ocs_hostlist_compress(names, (size_t)placement->nnodes);
	free(names);
	compact = ocs_strdup(placement->compact);
	ocs_placement_destroy(placement);
	ocs_occupancy_destroy(occupancy);
	ocs_placer_destroy(placer);
	return compact;
}

int rig_patches(struct rig *rig)
{
	char *text = emulator_control(&rig->emulator, "status");
	struct json_object *all = json_tokener_parse(text);
	int count = 0;

	assert_non_null(all);
	json_object_object_foreach (all, name, status) {
		(void)name;
		count += (int)rig_number(status, "patches");
	}
	json_object_put(all);
	free(text);
	return count;
}

void rig_until_patches(struct rig *rig, int count)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);

	while (rig_patches(rig) != count) {
		if (ocs_now_ns() > deadline)
			fail_msg("%d patches, wanted %d", rig_patches(rig), count);
		usleep(20000);
	}
}

int rig_log_lines(struct rig *rig, ...)
{
	char *log = emulator_log(&rig->emulator), *rest = log, *line;
	int count = 0;

	while ((line = strsep(&rest, "\n"))) {
		bool all = *line != '\0';
		const char *part;
		va_list args;

		va_start(args, rig);
		while ((part = va_arg(args, const char *)))
			all = all && strstr(line, part);
		va_end(args);
		count += all;
	}
	free(log);
	return count;
}

char *rig_metrics_on(struct rig *rig)
{
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port()), *text, *at, *edited;
	struct ocs_error err;

	rig_stop_daemon(rig, SIGTERM);
	text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err);
	assert_non_null(text);
	at = strstr(text, "/state\n");
	assert_non_null(at);
	at += strlen("/state\n");
	edited = ocs_asprintf("%.*s  metrics: %s\n%s", (int)(at - text), text, address, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
	rig_start_daemon(rig);
	return address;
}
