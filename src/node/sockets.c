/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The folder for the sockets of a job's controller: the user's, as the controller is, and in /tmp, where users
 * may fill the disk anyway.  The controller is killed with its step and leaves it; root takes it
 * away, with the user's rights only. */

#include "src/node/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#define VARIABLE "SLURM_OCS_MOE_SOCKETS="
#define PREFIX "/tmp/ocs-moe-"
#define HEX 16		 /* characters of the name that follow from the key */
#define ENV_MAX 65536	 /* of file env that are read: its owner may change it */
#define ENTRIES_MAX 8192 /* of the folder that are looked at */
#define LIMIT_S 2
#define PAUSE_US 1000

void ocs_node_sockets_name(const struct ocs_node_request *request, const char *key,
			   struct ocs_text *env)
{
	char mac[OCS_MAC_HEX + 1];

	/* another one on each node, whose /tmp may be the same */
	ocs_key_prove(key, strcspn(key, "\n"), mac, "sockets of job", request->node, NULL);
	ocs_text_add(env, VARIABLE PREFIX "%lu.%" PRIu64 "-%.*s\n", request->job, request->epoch,
		     HEX, mac);
}

/* The value of VARIABLE in TEXT, a folder with our name, or NULL. */
static char *name_find(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *name = line + strlen(VARIABLE);

		if (strncmp(line, VARIABLE, strlen(VARIABLE)) == 0)
			return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
					       !strchr(name + strlen(PREFIX), '/') ?
				       ocs_strdup(name) :
				       NULL;
	}
	return NULL;
}

char *ocs_node_sockets_find(int fd, uid_t *uid)
{
	int file = openat(fd, ocs_node_names[OCS_NODE_ENV],
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text, *name = NULL;
	struct stat info;
	ssize_t length;

	if (file < 0)
		return NULL;
	text = ocs_calloc(1, ENV_MAX + 1);
	length = read(file, text, ENV_MAX);
	if (length > 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
		*uid = info.st_uid;
		name = name_find(text);
	}
	free(text);
	close(file);
	return name;
}

/* "gate.0" or "plan.12". */
static bool socket_name(const char *name)
{
	unsigned int group;
	int end = 0;

	if (strncmp(name, "gate.", 5) != 0 && strncmp(name, "plan.", 5) != 0)
		return false;
	return sscanf(name + 5, "%9u%n", &group, &end) == 1 && !name[5 + end];
}

/* In a process that has no more rights than the user. */
static void folder_remove(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	for (int i = 0; list && i < ENTRIES_MAX && (entry = readdir(list)); i++)
		if (socket_name(entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	if (!list)
		return;
	closedir(list);
	rmdir(folder);
}

/* Waits for CHILD, and kills it when its time is over.  It has the user's rights, so that the user may stop it, and a
 * stopped process would not notice an alarm. */
static void child_wait(pid_t child)
{
	int64_t end = ocs_now_ns() + LIMIT_S * INT64_C(1000000000);
	pid_t rc;

	while ((rc = waitpid(child, NULL, WNOHANG)) == 0 || (rc < 0 && errno == EINTR)) {
		if (ocs_now_ns() >= end) {
			kill(child, SIGKILL);
			while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
				;
			return;
		}
		usleep(PAUSE_US);
	}
}

void ocs_node_sockets_remove(const char *folder, uid_t uid)
{
	pid_t child = fork();

	if (child == 0) {
		if (geteuid() != 0 ||
		    (setgroups(0, NULL) == 0 && setresgid((gid_t)-2, (gid_t)-2, (gid_t)-2) == 0 &&
		     setresuid(uid, uid, uid) == 0))
			folder_remove(folder);
		_exit(0);
	}
	if (child > 0)
		child_wait(child);
}
