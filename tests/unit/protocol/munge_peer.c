/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/protocol/munge_peer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/text.h"

#define FOLDER "/run/munge"

bool munge_works(void)
{
	int (*encode)(char **, void *, const void *, int) = NULL;
	void *library = dlopen("libmunge.so.2", RTLD_NOW);
	char *credential = NULL;
	int rc = -1;

	if (library)
		*(void **)&encode = dlsym(library, "munge_encode");
	if (encode)
		rc = encode(&credential, NULL, "x", 1);
	free(credential);
	return rc == 0;
}

char *munge_payload(const char *credential)
{
	int (*decode)(const char *, void *, void **, int *, uid_t *, gid_t *) = NULL;
	void *library = dlopen("libmunge.so.2", RTLD_NOW), *data = NULL;
	char *text = NULL;
	int length = 0;
	uid_t uid;
	gid_t gid;

	if (library)
		*(void **)&decode = dlsym(library, "munge_decode");
	if (decode && decode(credential, NULL, &data, &length, &uid, &gid) == 0) {
		text = ocs_calloc((size_t)length + 1, 1);
		memcpy(text, data, (size_t)length);
	}
	free(data);
	return text;
}

static void become_munged(void)
{
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 1);
	dup2(null, 2);
	execl("/usr/sbin/munged", "munged", "--foreground", "--force", "--key-file", FOLDER "/key",
	      "--log-file", FOLDER "/log", "--pid-file", FOLDER "/pid", "--seed-file",
	      FOLDER "/seed", (char *)NULL);
	_exit(127);
}

pid_t munge_start(void)
{
	char key[256];
	pid_t pid;
	int fd;

	if (geteuid() != 0 || access("/usr/sbin/munged", X_OK) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 0;
	if ((mkdir(FOLDER, 0755) && access(FOLDER, F_OK)) ||
	    mount("tmpfs", FOLDER, "tmpfs", 0, "mode=0755"))
		return 0;
	memset(key, 'k', sizeof(key));
	fd = open(FOLDER "/key", O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || write(fd, key, sizeof(key)) != sizeof(key))
		return 0;
	close(fd);
	pid = fork();
	if (pid == 0)
		become_munged();
	for (int i = 0; i < 200; i++) {
		if (munge_works())
			return pid;
		usleep(50000);
	}
	munge_stop(pid);
	return 0;
}

void munge_stop(pid_t munged)
{
	if (munged <= 0)
		return;
	kill(munged, SIGTERM);
	waitpid(munged, NULL, 0);
}
