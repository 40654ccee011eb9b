/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Runs the commands of a host. */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/forward/internal.h"
#include "src/util/error.h"
#include "src/util/program.h"
#include "src/util/text.h"

char *ocs_forward_ask(char *const *words)
{
	const struct ocs_program program = { .words = words, .path = OCS_PROGRAM_PATH };
	char *said;

	if (ocs_program_run(&program, &said, NULL) == 0)
		return said;
	free(said);
	return NULL;
}

/* Runs ip or tc on a batch of commands.  Returns 0, or -1 with what it said first in
 * SAID (freed by the caller). */
static int run_batch(enum ocs_forward_tool tool, bool force, const char *batch, size_t length,
		     char **said)
{
	char *const words[] = { tool == OCS_FORWARD_IP ? "ip" : "tc", force ? "-force" : "-batch",
				force ? "-batch" : "-", force ? "-" : NULL, NULL };
	const struct ocs_program program = {
		.words = words, .path = OCS_PROGRAM_PATH, .input = batch, .length = length
	};
	int status = ocs_program_run(&program, said, NULL);

	/* one line: what it says of the first command that it refused */
	(*said)[strcspn(*said, "\n")] = '\0';
	if (!**said) {
		free(*said);
		*said = ocs_strdup("it says nothing");
	}
	return status == 0 ? 0 : -1;
}

/* "net/ipv4/conf/NAME/KEY=VALUE"; "default" is what a new interface would get. */
static int write_sysctl(const char *text, struct ocs_error *err)
{
	const char *value = strrchr(text, '=') + 1, *key = strrchr(text, '/') + 1;
	char *path = ocs_asprintf("/proc/sys/%.*s", (int)(value - 1 - text), text);
	char *from =
		ocs_asprintf("/proc/sys/net/ipv4/conf/default/%.*s", (int)(value - 1 - key), key);
	char digit[16];
	ssize_t length = (ssize_t)strlen(value);
	int fd, rc = 0;

	snprintf(digit, sizeof(digit), "%s", value);
	if (!strcmp(value, "default")) {
		fd = open(from, O_RDONLY | O_CLOEXEC);
		length = fd < 0 ? -1 : read(fd, digit, sizeof(digit));
		if (fd >= 0)
			close(fd);
	}
	fd = length < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, digit, (size_t)length) != length)
		rc = ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(path);
	free(from);
	return rc;
}

/* Whether no filter is left on DEVICE. */
static bool device_unused(char *device)
{
	char *const sides[] = { "ingress", "egress" };
	bool empty = true;

	for (int i = 0; i < 2; i++) {
		char *const words[] = { "tc", "filter", "show", "dev", device, sides[i], NULL };
		char *said = ocs_forward_ask(words);

		empty = empty && said && !*said;
		free(said);
	}
	return empty;
}

/* Whether NEXT goes into the batch that FIRST begins. */
static bool commands_join(const struct ocs_forward_command *first,
			  const struct ocs_forward_command *next)
{
	char device[16];

	return next->tool == first->tool && next->may_fail == first->may_fail &&
	       !ocs_forward_conditional(next, device);
}

/* Runs the commands from *AT on that belong together, and moves *AT behind them. */
static int run_some(const struct ocs_forward_commands *commands, size_t *at, struct ocs_error *err)
{
	const struct ocs_forward_command *list = commands->list, *first = &list[*at];
	struct ocs_text batch = { 0 };
	char *said, device[16];
	int rc;

	if (first->tool == OCS_FORWARD_SYSCTL) {
		++*at;
		rc = write_sysctl(first->text, first->may_fail ? NULL : err);
		return first->may_fail ? 0 : rc;
	}
	if (ocs_forward_conditional(first, device)) {
		++*at;
		if (!device_unused(device))
			return 0;
		ocs_text_add(&batch, "%s\n", first->text);
	} else {
		do {
			if (*list[*at].text)
				ocs_text_add(&batch, "%s\n", list[*at].text);
		} while (++*at < commands->count && commands_join(first, &list[*at]));
		if (!batch.length)
			return 0;
	}
	rc = run_batch(first->tool, first->may_fail, batch.data, batch.length, &said);
	if (rc && !first->may_fail)
		ocs_error_set(err, OCS_ERROR, "%s: %s", first->tool == OCS_FORWARD_IP ? "ip" : "tc",
			      said);
	free(said);
	ocs_text_free(&batch);
	return first->may_fail ? 0 : rc;
}

int ocs_forward_interfaces_check(const struct ocs_forward_hosts *hosts, int host,
				 struct ocs_error *err)
{
	const struct ocs_forward_host *self = &hosts->host[host];

	for (int p = 0; p < hosts->degree; p++) {
		const struct ocs_forward_port *port = &self->ports[p];
		const char *missing = !if_nametoindex(port->name)    ? port->name :
				      !if_nametoindex(port->forward) ? port->forward :
								       NULL;

		if (missing)
			return ocs_error_set(err, OCS_USAGE,
					     "%s has no interface %s, which is port"
					     " %d of the plan",
					     self->node, missing, p);
	}
	return 0;
}

int ocs_forward_run(const struct ocs_forward_commands *commands, const struct ocs_forward *forward,
		    const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && at < commands->count) {
		if (commands->list[at].tool == OCS_FORWARD_LOAD) {
			rc = ocs_forward_bpf_attach(forward, hosts, host, err);
			at++;
		} else {
			rc = run_some(commands, &at, err);
		}
	}
	return rc;
}

int ocs_forward_apply(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		      int host, enum ocs_forward_backend backend, struct ocs_error *err)
{
	struct ocs_forward_commands commands = { 0 };
	int rc;

	if (ocs_forward_interfaces_check(hosts, host, err))
		return -1;
	ocs_forward_apply_commands(forward, hosts, host, backend, &commands);
	rc = ocs_forward_run(&commands, forward, hosts, host, err);
	ocs_forward_commands_free(&commands);
	if (rc)
		ocs_forward_remove(hosts, host, NULL);
	return rc;
}

int ocs_forward_remove(const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err)
{
	struct ocs_forward_commands commands = { 0 };
	int rc;

	ocs_forward_remove_commands(hosts, host, &commands);
	rc = ocs_forward_run(&commands, NULL, hosts, host, err);
	ocs_forward_commands_free(&commands);
	return rc;
}

/* In a child, in a network namespace of its own: 0 flower, 1 bpf, 2 routes. */
static int try_backends(void)
{
	static const char up[] = "qdisc add dev lo clsact\n";
	static const char flower[] =
		"filter add dev lo ingress protocol ip pref 1 flower dst_ip 192.0.2.1/32"
		" action pedit ex munge eth dst set 02:00:00:00:00:01 pipe"
		" action mirred egress redirect dev lo\n";
	char *said;

	if (unshare(CLONE_NEWNET))
		return OCS_FORWARD_ROUTES;
	if (run_batch(OCS_FORWARD_TC, false, up, sizeof(up) - 1, &said))
		return OCS_FORWARD_ROUTES;
	free(said);
	if (!run_batch(OCS_FORWARD_TC, false, flower, sizeof(flower) - 1, &said))
		return OCS_FORWARD_FLOWER;
	return ocs_forward_bpf_works() ? OCS_FORWARD_BPF : OCS_FORWARD_ROUTES;
}

enum ocs_forward_backend ocs_forward_backend_choose(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(try_backends());
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > OCS_FORWARD_ROUTES)
		return OCS_FORWARD_ROUTES;
	return (enum ocs_forward_backend)WEXITSTATUS(status);
}
