/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/switch/yuma_peer.h"

#define NETCONFD "/usr/sbin/netconfd"
#define SUBSYSTEM "/usr/sbin/netconf-subsystem"
#define SSHD "/usr/sbin/sshd"

bool yuma_peer_exists(void)
{
	return access(NETCONFD, X_OK) == 0 && access(SUBSYSTEM, X_OK) == 0 &&
	       access(SSHD, X_OK) == 0;
}

static void write_text(const struct yuma_peer *peer, const char *name, unsigned int mode,
		       const char *text)
{
	char *path = ocs_asprintf("%s/%s", peer->folder, name);
	struct ocs_error err;

	if (ocs_file_write(path, text, strlen(text), mode, &err))
		fail_msg("%s", err.text);
	free(path);
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
	char command[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static void write_start_file(const struct yuma_peer *peer)
{
	static const char ns[] = "xmlns=\"http://www.polatis.com/yang/optical-switch\"";
	struct ocs_text text = { 0 };

	ocs_text_add(&text,
		     "<config xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">"
		     "<cross-connects %s><pair><ingress>9</ingress><egress>60</egress>"
		     "</pair></cross-connects><port-config %s>",
		     ns, ns);
	for (int port = 1; port <= 64; port++)
		ocs_text_add(&text, "<port><port-id>%d</port-id><status>%s</status></port>", port,
			     port == 7 ? "FAILED" : "ENABLED");
	ocs_text_add(&text, "</port-config><opm-power %s>", ns);
	for (int port = 1; port <= 64; port++)
		ocs_text_add(&text, "<port><port-id>%d</port-id><power>-%d.%02d</power></port>",
			     port, 2, port);
	ocs_text_add(&text, "</opm-power></config>\n");
	write_text(peer, "start.xml", 0644, text.data);
	ocs_text_free(&text);
}

/* One sshd for each connection, as inetd would start it. */
static void *serve(void *context)
{
	struct yuma_peer *peer = context;
	char *configuration = ocs_asprintf("%s/sshd_config", peer->folder);
	char *log = ocs_asprintf("%s/sshd.log", peer->folder);
	struct pollfd entry = { .fd = peer->listener, .events = POLLIN };

	for (;;) {
		int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid;

		if (fd < 0 && (errno == EAGAIN || errno == EINTR)) {
			poll(&entry, 1, 100);
			continue;
		}
		if (fd < 0)
			break;
		pid = fork();
		if (!pid) {
			dup2(fd, 0);
			dup2(fd, 1);
			execl(SSHD, SSHD, "-i", "-f", configuration, "-E", log, NULL);
			_exit(127);
		}
		close(fd);
	}
	free(configuration);
	free(log);
	return NULL;
}

static void write_ssh_files(struct yuma_peer *peer, int port)
{
	const struct passwd *user = getpwuid(geteuid());
	const char *folder = peer->folder;
	char *text;

	assert_non_null(user);
	shell("ssh-keygen -q -t ed25519 -N '' -f %s/host && ssh-keygen -q -t ed25519 -N '' -f %s/key",
	      folder, folder);
	shell("cp %s/key.pub %s/authorized && { printf '[127.0.0.1]:%d '; cut -d' ' -f1,2 %s/host.pub; } >%s/known",
	      folder, folder, port, folder, folder);
	text = ocs_asprintf(
		"HostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\n"
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
		"PermitRootLogin prohibit-password\n"
		"Subsystem netconf " SUBSYSTEM " --ncxserver-sockname=%d@%s/ncx\n",
		folder, folder, port, folder);
	write_text(peer, "sshd_config", 0600, text);
	free(text);
	text = ocs_asprintf("user=%s\nkey=%s/key\n", user->pw_name, folder);
	write_text(peer, "login", 0600, text);
	free(text);
	if (geteuid() == 0)
		shell("mkdir -p -m 755 /run/sshd");
}

static void start_netconfd(struct yuma_peer *peer, const char *protocol)
{
	const struct passwd *user = getpwuid(geteuid());
	char *log = ocs_asprintf("%s/netconfd.log", peer->folder);
	/* The subsystem tells it by which port the client came. */
	char *options[6] = {
		ocs_asprintf("--modpath=" TEST_SOURCE_DIR "/tests/data:/usr/share/yuma/modules"),
		ocs_asprintf("--startup=%s/start.xml", peer->folder),
		ocs_asprintf("--ncxserver-sockname=%s/ncx", peer->folder),
		ocs_asprintf("--superuser=%s", user->pw_name),
		ocs_asprintf("--protocols=%s", protocol),
		ocs_asprintf("--port=%s", strchr(peer->address, ':') + 1),
	};
	char *ready = ocs_asprintf("%s/ncx", peer->folder);
	int tries = 0;

	peer->server = fork();
	if (!peer->server) {
		int fd = open(log, O_WRONLY | O_CREAT, 0644);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, 1);
		dup2(fd, 2);
		setenv("HOME", peer->folder, 1);
		if (chdir(peer->folder) == 0)
			execl(NETCONFD, NETCONFD, "--module=optical-switch", "--target=running",
			      options[0], options[1], options[2], options[3], options[4],
			      options[5], NULL);
		_exit(127);
	}
	while (access(ready, F_OK) != 0) {
		if (tries++ > 600 || waitpid(peer->server, NULL, WNOHANG) != 0)
			fail_msg("netconfd does not come up; see %s", log);
		usleep(50000);
	}
	for (int i = 0; i < 6; i++)
		free(options[i]);
	free(ready);
	free(log);
}

void yuma_peer_start(struct yuma_peer *peer, const char *protocol)
{
	struct sockaddr_in bound;
	socklen_t length = sizeof(bound);
	struct ocs_error err;

	memset(peer, 0, sizeof(*peer));
	strcpy(peer->folder, "/tmp/ocs-yuma-XXXXXX");
	assert_non_null(mkdtemp(peer->folder));
	peer->listener = ocs_net_listen("127.0.0.1:0", &err);
	assert_true(peer->listener >= 0);
	assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&bound, &length), 0);
	snprintf(peer->address, sizeof(peer->address), "127.0.0.1:%d", ntohs(bound.sin_port));
	snprintf(peer->login, sizeof(peer->login), "%s/login", peer->folder);
	snprintf(peer->known_hosts, sizeof(peer->known_hosts), "%s/known", peer->folder);
	write_start_file(peer);
	write_ssh_files(peer, ntohs(bound.sin_port));
	start_netconfd(peer, protocol);
	assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
}

void yuma_peer_stop(struct yuma_peer *peer)
{
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	kill(peer->server, SIGTERM);
	waitpid(peer->server, NULL, 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	shell("rm -r '%s'", peer->folder);
}
