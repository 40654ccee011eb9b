/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A job's directory.  It lies where users may look, and this runs as root: links
 * are never followed, and what is not ours is left alone.
 *
 * The directory is root's, so that no other user puts anything there; files are the job's user's
 * and closed to others, except those by which root finds its way when the job is gone. */

#include "src/node/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define EPOCH_TEXT 64
#define NOBODY ((uid_t)-1)
/* Folders can be passed by all users, and seen only by root; a job's by its group as well. */
#define FOLDER_MODE 0711
#define OWNED_MODE 0751

const char *const ocs_node_names[OCS_NODE_FILES] = {
	"epoch",     "placement.json", "plan.json", "topo.xml",	 "graph.xml",	"subnets",
	"hostfile",  "ranks",	       "addresses", "rails.key", "region.json", "moe.key",
	"agent.key", "relay.key",      "moe.plan",  "env",	 "warnings",
};

/* "graph-0-12.xml", or its temporary name. */
static bool graph_name(const char *name)
{
	unsigned int dim, number;
	int end = 0;

	name += name[0] == '.';
	return sscanf(name, "graph-%2u-%9u.xml%n", &dim, &number, &end) == 2 && end &&
	       (!name[end] || strcmp(name + end, ".new") == 0);
}

/* Ours: a file above, one of its temporary names, or a reply of ocsd that the
 * prolog left beside them. */
static bool name_known(const char *name)
{
	for (int i = 0; i < OCS_NODE_FILES; i++) {
		size_t length = strlen(ocs_node_names[i]);

		if (strcmp(name, ocs_node_names[i]) == 0)
			return true;
		if (name[0] == '.' && strncmp(name + 1, ocs_node_names[i], length) == 0 &&
		    name[length + 1] == '.')
			return true;
	}
	if (graph_name(name))
		return true;
	/* "epoch." and more: of a prolog that was killed while it wrote it */
	return strncmp(name, "reply.", 6) == 0 || strncmp(name, ".reply.", 7) == 0 ||
	       strncmp(name, "epoch.", 6) == 0;
}

/* Opens PATH.  A descriptor, or -1 with ERR; with ERR untouched and errno ENOENT
 * where there is nothing. */
static int directory_open(const char *path, struct ocs_error *err)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		int code = errno;

		if (code == ENOTDIR || code == ELOOP)
			ocs_error_set(err, OCS_ERROR,
				      "%s is not a directory; it may be a link, "
				      "which is never followed",
				      path);
		else if (code != ENOENT)
			ocs_error_set(err, OCS_ERROR, "cannot open %s: %s", path, strerror(code));
		errno = code;
		return -1;
	}
	if (fstat(fd, &info) < 0 || info.st_uid != geteuid()) {
		close(fd);
		errno = EPERM;
		return ocs_error_set(err, OCS_ERROR, "%s belongs to another account, remove it",
				     path);
	}
	return fd;
}

/* PATH and what is missing above it. */
static int directory_make(const char *path, struct ocs_error *err)
{
	char *copy = ocs_strdup(path);
	int rc = 0;

	for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(copy, FOLDER_MODE) < 0 && errno != EEXIST) {
			rc = ocs_error_set(err, OCS_ERROR, "cannot make %s: %s", copy,
					   strerror(errno));
			break;
		}
		if (!slash)
			break;
		*slash = '/';
	}
	free(copy);
	return rc;
}

/* The epoch in an existing directory, 0 if none. */
static uint64_t epoch_read(int fd)
{
	char text[EPOCH_TEXT] = "";
	int file = openat(fd, "epoch", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t length;

	if (file < 0)
		return 0;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	return length > 0 && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
}

/* Root acts on what these say; they tell others nothing that the host does not. */
static bool kept_by_root(const char *name)
{
	return strcmp(name, ocs_node_names[OCS_NODE_EPOCH]) == 0 ||
	       strcmp(name, ocs_node_names[OCS_NODE_SUBNETS]) == 0;
}

/* FILE, of the name NAME, becomes OWNER's alone (NOBODY: all may read it).  0, or -1 with
 * errno. */
static int file_give(int file, const char *name, uid_t owner)
{
	/* whatever the umask was */
	if (owner == NOBODY || kept_by_root(name))
		return fchmod(file, 0644);
	if (geteuid() == 0 && fchown(file, owner, (gid_t)-1) < 0)
		return -1;
	/* tasks add what their step lacks */
	return fchmod(file, strcmp(name, ocs_node_names[OCS_NODE_WARNINGS]) == 0 ? 0600 : 0400);
}

static int file_write(int fd, const char *dir, const char *name, const char *text, uid_t owner,
		      struct ocs_error *err)
{
	char *temporary = ocs_asprintf(".%s.new", name);
	size_t length = strlen(text), done = 0;
	int file, rc = -1;

	unlinkat(fd, temporary, 0);
	file = openat(fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file >= 0) {
		while (done < length) {
			ssize_t n = write(file, text + done, length - done);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			done += (size_t)n;
		}
		if (done == length && file_give(file, name, owner) == 0 &&
		    renameat(fd, temporary, fd, name) == 0)
			rc = 0;
	}
	if (rc < 0) {
		ocs_error_set(err, OCS_ERROR, "cannot write %s/%s: %s", dir, name, strerror(errno));
		unlinkat(fd, temporary, 0);
	}
	if (file >= 0)
		close(file);
	free(temporary);
	return rc;
}

/* The graph files of lines: those of CONTENTS, and no others. */
static int graphs_write(int fd, const char *path, const struct ocs_node_contents *contents,
			struct ocs_error *err)
{
	int copy = dup(fd), rc = 0;
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!list) {
		if (copy >= 0)
			close(copy);
		return ocs_error_set(err, OCS_ERROR, "cannot read %s: %s", path, strerror(errno));
	}
	rewinddir(list);
	while ((entry = readdir(list)))
		if (graph_name(entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	closedir(list);
	for (int i = 0; i < contents->ngraphs && rc == 0; i++)
		rc = file_write(fd, path, contents->graphs[i].name, contents->graphs[i].text,
				contents->owned ? contents->owner : NOBODY, err);
	return rc;
}

int ocs_node_directory_write(const char *path, uint64_t epoch,
			     const struct ocs_node_contents *contents, struct ocs_error *err)
{
	uint64_t there;
	int fd, rc = 0;

	fd = directory_open(path, err);
	if (fd < 0 && errno == ENOENT) {
		if (directory_make(path, err) < 0)
			return -1;
		fd = directory_open(path, err);
		if (fd < 0 && errno == ENOENT)
			return ocs_error_set(err, OCS_ERROR, "%s vanished while it was made", path);
	}
	if (fd < 0)
		return -1;
	there = epoch_read(fd);
	if (there > epoch) {
		close(fd);
		return ocs_error_set(err, OCS_ERROR,
				     "%s is of epoch %" PRIu64 ", newer than %" PRIu64, path, there,
				     epoch);
	}
	if (contents->owned && contents->group != (gid_t)-1 && geteuid() == 0 &&
	    fchown(fd, (uid_t)-1, contents->group) < 0)
		rc = ocs_error_set(err, OCS_ERROR, "cannot give %s to group %u: %s", path,
				   (unsigned int)contents->group, strerror(errno));
	if (rc == 0 && fchmod(fd, contents->owned ? OWNED_MODE : 0755) < 0)
		rc = ocs_error_set(err, OCS_ERROR, "cannot set the mode of %s: %s", path,
				   strerror(errno));
	/* the epoch comes first: whatever happens after, the epilog can release it */
	for (int i = 0; i < OCS_NODE_FILES && rc == 0; i++) {
		if (contents->text[i])
			rc = file_write(fd, path, ocs_node_names[i], contents->text[i],
					contents->owned ? contents->owner : NOBODY, err);
		else if (unlinkat(fd, ocs_node_names[i], 0) < 0 && errno != ENOENT)
			rc = ocs_error_set(err, OCS_ERROR, "cannot remove the old %s/%s: %s", path,
					   ocs_node_names[i], strerror(errno));
	}
	if (rc == 0)
		rc = graphs_write(fd, path, contents, err);
	close(fd);
	return rc;
}

int ocs_node_directory_update(const char *path, const struct ocs_node_contents *contents,
			      struct ocs_error *err)
{
	static const enum ocs_node_file files[] = { OCS_NODE_SUBNETS, OCS_NODE_TOPOLOGY,
						    OCS_NODE_GRAPH, OCS_NODE_ENV,
						    OCS_NODE_WARNINGS };
	int fd = directory_open(path, err), rc = 0;
	struct stat info;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	/* an epilog may be taking the files away */
	if (fstatat(fd, ocs_node_names[OCS_NODE_ENV], &info, AT_SYMLINK_NOFOLLOW) == 0)
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++) {
			const char *name = ocs_node_names[files[i]];

			if (contents->text[files[i]])
				rc = file_write(fd, path, name, contents->text[files[i]],
						info.st_mode & S_IROTH ? NOBODY : info.st_uid, err);
			else if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
				rc = ocs_error_set(err, OCS_ERROR,
						   "cannot remove the old %s/%s: %s", path, name,
						   strerror(errno));
		}
	close(fd);
	return rc;
}

void ocs_node_plan_write(const char *path, struct json_object *plan)
{
	const char *text = json_object_to_json_string_ext(
		plan, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	int fd = directory_open(path, NULL);
	struct stat info;

	if (fd < 0)
		return;
	if (fstatat(fd, ocs_node_names[OCS_NODE_PLAN], &info, AT_SYMLINK_NOFOLLOW) == 0) {
		char *line = ocs_asprintf("%s\n", text);

		file_write(fd, path, ocs_node_names[OCS_NODE_PLAN], line,
			   info.st_mode & S_IROTH ? NOBODY : info.st_uid, NULL);
		free(line);
	}
	close(fd);
}

int ocs_node_directory_remove(const char *path, struct ocs_error *err)
{
	struct ocs_error why = { 0 };
	struct dirent *entry;
	char foreign[256] = "";
	char *sockets;
	uid_t user;
	DIR *list;
	int fd = directory_open(path, &why), rc = 0;

	if (fd < 0) {
		if (errno == ENOENT)
			return 0;
		if (err)
			*err = why;
		return -1;
	}
	sockets = ocs_node_sockets_find(fd, &user);
	list = fdopendir(fd);
	if (!list) {
		close(fd);
		free(sockets);
		return ocs_error_set(err, OCS_ERROR, "cannot read %s: %s", path, strerror(errno));
	}
	while (rc == 0 && (entry = readdir(list))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!name_known(entry->d_name))
			snprintf(foreign, sizeof(foreign), "%.200s", entry->d_name);
		else if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
			rc = ocs_error_set(err, OCS_ERROR, "cannot remove %s/%s: %s", path,
					   entry->d_name, strerror(errno));
	}
	closedir(list);
	if (rc == 0 && sockets)
		ocs_node_sockets_remove(sockets, user);
	free(sockets);
	if (rc == 0 && foreign[0])
		return ocs_error_set(err, OCS_ERROR,
				     "%s holds %s, which is not ours: left in place", path,
				     foreign);
	if (rc == 0 && rmdir(path) < 0 && errno != ENOENT)
		rc = ocs_error_set(err, OCS_ERROR, "cannot remove %s: %s", path, strerror(errno));
	return rc;
}

bool ocs_node_readable(const char *path, const char *file, uid_t uid, gid_t gid)
{
	int status = 0;
	pid_t child;

	if (geteuid() != 0)
		return true;
	child = fork();
	if (child < 0)
		return true;
	if (child == 0) {
		char *full = ocs_asprintf("%s/%s", path, file);

		if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(0);
		_exit(access(full, R_OK) == 0 ? 0 : 1);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return true;
	return !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}
