/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What is applied on this host, for whom, and how it is undone: a file that is written
 * before the kernel changes, so that it is found after a crash.  The
 * locks are on a file beside it that only root can open: who may read a file or a
 * folder may lock it, too. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/forward/internal.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define FILE_NAME "forward.json"
#define LOCK_NAME "forward.lock"
#define FILE_LIMIT (64u << 20)

struct state {
	int lock; /* the file of locks, or -1 */
	char *path;
	bool there;
	bool settled; /* false: a change was begun, who knows how far it got */
	struct ocs_forward_owner owner;
	struct ocs_forward_commands things;
};

static const char *const tools[] = {
	[OCS_FORWARD_IP] = "ip",
	[OCS_FORWARD_TC] = "tc",
	[OCS_FORWARD_SYSCTL] = "sysctl",
	[OCS_FORWARD_LOAD] = "load",
};

static void commands_append(struct ocs_forward_commands *commands,
			    const struct ocs_forward_command *one)
{
	struct ocs_forward_command *copy;

	if (!(commands->count & (commands->count - 1)))
		commands->list =
			ocs_realloc(commands->list, (commands->count ? 2 * commands->count : 1) *
							    sizeof(*commands->list));
	copy = &commands->list[commands->count++];
	*copy = *one;
	copy->text = ocs_strdup(one->text);
	copy->undo = one->undo ? ocs_strdup(one->undo) : NULL;
}

static struct json_object *to_json(const struct state *state)
{
	struct json_object *json = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(json, "job", json_object_new_int64((int64_t)state->owner.job));
	json_object_object_add(json, "epoch", json_object_new_int64((int64_t)state->owner.epoch));
	json_object_object_add(json, "revision", json_object_new_int64(state->owner.revision));
	json_object_object_add(json, "settled", json_object_new_boolean(state->settled));
	for (size_t i = 0; i < state->things.count; i++) {
		const struct ocs_forward_command *thing = &state->things.list[i];
		struct json_object *row = json_object_new_object();

		json_object_object_add(row, "tool", json_object_new_string(tools[thing->tool]));
		json_object_object_add(row, "do", json_object_new_string(thing->text));
		if (thing->undo)
			json_object_object_add(row, "undo", json_object_new_string(thing->undo));
		if (thing->kept)
			json_object_object_add(row, "kept", json_object_new_boolean(true));
		json_object_array_add(list, row);
	}
	json_object_object_add(json, "things", list);
	return json;
}

static int row_read(struct state *state, struct json_object *row)
{
	struct json_object *tool = json_object_object_get(row, "tool");
	struct json_object *text = json_object_object_get(row, "do");
	struct json_object *undo = json_object_object_get(row, "undo");
	struct ocs_forward_command thing = { 0 };

	if (!json_object_is_type(tool, json_type_string) ||
	    !json_object_is_type(text, json_type_string) ||
	    (undo && !json_object_is_type(undo, json_type_string)))
		return -1;
	while (strcmp(tools[thing.tool], json_object_get_string(tool)))
		if (++thing.tool > OCS_FORWARD_LOAD)
			return -1;
	thing.text = (char *)json_object_get_string(text);
	thing.undo = (char *)json_object_get_string(undo);
	thing.kept = json_object_get_boolean(json_object_object_get(row, "kept"));
	commands_append(&state->things, &thing);
	return 0;
}

static int from_text(struct state *state, const char *text)
{
	struct json_object *json = json_tokener_parse(text);
	struct json_object *list = json_object_object_get(json, "things");
	int rc = json_object_is_type(list, json_type_array) ? 0 : -1;

	for (size_t i = 0; !rc && i < json_object_array_length(list); i++)
		rc = row_read(state, json_object_array_get_idx(list, i));
	state->owner.job =
		(unsigned long)json_object_get_int64(json_object_object_get(json, "job"));
	state->owner.epoch = (uint64_t)json_object_get_int64(json_object_object_get(json, "epoch"));
	state->owner.revision =
		(long)json_object_get_int64(json_object_object_get(json, "revision"));
	state->settled = json_object_get_boolean(json_object_object_get(json, "settled"));
	json_object_put(json);
	return rc;
}

static void state_close(struct state *state)
{
	ocs_forward_commands_free(&state->things);
	free(state->path);
	if (state->lock >= 0)
		close(state->lock);
}

/* The file of locks in FOLDER, or -1 with ERR; with errno ENOENT where there is no folder. */
static int lock_open(const char *folder, struct ocs_error *err)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, saved;
	struct stat info;

	if (dir < 0) {
		saved = errno;
		ocs_error_set(err, OCS_ERROR, "cannot open %s: %s", folder, strerror(saved));
		errno = saved;
		return -1;
	}
	/* the file beside the locks holds commands */
	if (fstat(dir, &info) < 0 || info.st_uid != geteuid() || (info.st_mode & 022))
		ocs_error_set(err, OCS_ERROR,
			      "%s belongs to another account, or others may"
			      " write to it",
			      folder);
	else if ((fd = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		ocs_error_set(err, OCS_ERROR, "cannot open %s/" LOCK_NAME ": %s", folder,
			      strerror(errno));
	close(dir);
	errno = EACCES;
	return fd;
}

/* Locks what FOLDER has and reads it.  A file that cannot be read is an error: no one
 * else may write it.  state_close either way. */
static int state_open(struct state *state, const char *folder, bool make, struct ocs_error *err)
{
	char *text;
	int rc;

	memset(state, 0, sizeof(*state));
	if (make && mkdir(folder, 0755) < 0 && errno != EEXIST) {
		state->lock = -1;
		return ocs_error_set(err, OCS_ERROR, "cannot make %s: %s", folder, strerror(errno));
	}
	state->path = ocs_asprintf("%s/" FILE_NAME, folder);
	state->lock = lock_open(folder, err);
	if (state->lock < 0)
		return errno == ENOENT && !make ? 0 : -1;
	if (flock(state->lock, LOCK_EX) < 0)
		return ocs_error_set(err, OCS_ERROR, "cannot lock %s/" LOCK_NAME ": %s", folder,
				     strerror(errno));
	if (access(state->path, F_OK) < 0 && errno == ENOENT)
		return 0;
	text = ocs_file_read(state->path, FILE_LIMIT, NULL, err);
	if (!text)
		return -1;
	rc = from_text(state, text);
	free(text);
	if (rc)
		return ocs_error_set(err, OCS_ERROR,
				     "%s is damaged; ocsctl forward --remove clears what"
				     " it stood for, then remove the file",
				     state->path);
	state->there = true;
	return 0;
}

static int state_write(struct state *state, struct ocs_error *err)
{
	struct json_object *json = to_json(state);
	const char *text = json_object_to_json_string_ext(
		json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	int rc = ocs_file_write(state->path, text, strlen(text), 0644, err);

	json_object_put(json);
	state->there = rc == 0;
	return rc;
}

static bool same_thing(const struct ocs_forward_command *a, const struct ocs_forward_command *b)
{
	if (a->tool != b->tool)
		return false;
	if (a->tool == OCS_FORWARD_SYSCTL) /* the undo holds the value that was there */
		return strcspn(a->text, "=") == strcspn(b->text, "=") &&
		       !strncmp(a->text, b->text, strcspn(a->text, "="));
	if (!a->undo || !b->undo)
		return !a->undo && !b->undo; /* the program of bpf: there is one */
	return !strcmp(a->undo, b->undo);
}

/* A hash of things by what same_thing compares. */
struct index {
	const struct ocs_forward_commands *things;
	size_t size, *slot; /* number of the thing + 1, or 0 */
};

static size_t hash_of(const struct ocs_forward_command *thing)
{
	const char *text = thing->tool == OCS_FORWARD_SYSCTL ? thing->text :
			   thing->undo			     ? thing->undo :
							       "";
	size_t hash = 5381;

	for (; *text && *text != '='; text++)
		hash = hash * 33 + (unsigned char)*text;
	return hash;
}

static void index_make(struct index *index, const struct ocs_forward_commands *things)
{
	index->things = things;
	for (index->size = 16; index->size < 2 * things->count; index->size *= 2)
		;
	index->slot = ocs_calloc(index->size, sizeof(*index->slot));
	for (size_t i = 0; i < things->count; i++) {
		size_t at = hash_of(&things->list[i]) % index->size;

		while (index->slot[at])
			at = (at + 1) % index->size;
		index->slot[at] = i + 1;
	}
}

static const struct ocs_forward_command *index_find(const struct index *index,
						    const struct ocs_forward_command *thing)
{
	for (size_t at = hash_of(thing) % index->size; index->slot[at]; at = (at + 1) % index->size)
		if (same_thing(&index->things->list[index->slot[at] - 1], thing))
			return &index->things->list[index->slot[at] - 1];
	return NULL;
}

/* Undoes THINGS that NEWER does not have, the last first. */
static void undo_rest(const struct ocs_forward_commands *things,
		      const struct ocs_forward_commands *newer, size_t *count)
{
	struct ocs_forward_commands commands = { 0 };
	struct index index;

	index_make(&index, newer);
	for (size_t i = things->count; i-- > 0;) {
		struct ocs_forward_command undo = { .tool = things->list[i].tool,
						    .may_fail = true,
						    .text = things->list[i].undo };

		if (undo.text && !things->list[i].kept && !index_find(&index, &things->list[i]))
			commands_append(&commands, &undo);
	}
	if (count)
		*count += commands.count;
	ocs_forward_run(&commands, NULL, NULL, 0, NULL);
	ocs_forward_commands_free(&commands);
	free(index.slot);
}

/* Notes how THING is now, so that undoing it brings that back. */
static void command_remember(struct ocs_forward_command *thing)
{
	char device[16], address[16], value[16] = "";
	size_t name = strcspn(thing->text, "=");

	if (sscanf(thing->text, "link set dev %15s up", device) == 1) {
		thing->kept = ocs_forward_device_flags(device) & IFF_UP;
	} else if (sscanf(thing->text, "addr replace %15[0-9.]/32 dev %15s", address, device) ==
		   2) {
		thing->kept = ocs_forward_address_there(address, device);
	} else if (sscanf(thing->text, "qdisc add dev %15s clsact", device) == 1) {
		thing->kept = ocs_forward_clsact_there(device);
	} else if (thing->tool == OCS_FORWARD_SYSCTL) {
		char *path = ocs_asprintf("/proc/sys/%.*s", (int)name, thing->text), *text;

		/* a file of /proc has no size */
		text = ocs_file_read(path, sizeof(value), NULL, NULL);
		if (text && strcspn(text, "\n") < sizeof(value)) {
			free(thing->undo);
			thing->undo = ocs_asprintf("%.*s=%.*s", (int)name, thing->text,
						   (int)strcspn(text, "\n"), text);
		}
		free(text);
		free(path);
	}
}

/* WANTED gets the memory of what STATE has already; returns what there is to do. */
static void state_difference(const struct state *state, struct ocs_forward_commands *wanted,
			     bool all, struct ocs_forward_commands *todo)
{
	struct index index;

	index_make(&index, &state->things);
	for (size_t i = 0; i < wanted->count; i++) {
		struct ocs_forward_command *thing = &wanted->list[i];
		const struct ocs_forward_command *old = index_find(&index, thing);

		if (old) {
			thing->kept = old->kept;
			if (old->undo && thing->undo) {
				free(thing->undo);
				thing->undo = ocs_strdup(old->undo);
			}
		} else {
			command_remember(thing);
		}
		if (all || !old || strcmp(old->text, thing->text))
			commands_append(todo, thing);
	}
	free(index.slot);
}

/* The intent: WANTED and what is still there besides. */
static int intent_write(struct state *state, const struct ocs_forward_owner *owner,
			const struct ocs_forward_commands *wanted, struct ocs_error *err)
{
	struct state both = { .path = state->path, .owner = *owner };
	struct index index;
	int rc;

	index_make(&index, wanted);
	for (size_t i = 0; i < state->things.count; i++)
		if (!index_find(&index, &state->things.list[i]))
			commands_append(&both.things, &state->things.list[i]);
	for (size_t i = 0; i < wanted->count; i++)
		commands_append(&both.things, &wanted->list[i]);
	rc = state_write(&both, err);
	ocs_forward_commands_free(&both.things);
	free(index.slot);
	return rc;
}

/* Takes away all that STATE lists, and the file. */
static int take_away(struct state *state, struct ocs_error *err)
{
	const struct ocs_forward_commands none = { 0 };

	undo_rest(&state->things, &none, NULL);
	if (ocs_forward_rules_there())
		return ocs_error_set(err, OCS_ERROR,
				     "the forwarding of job %lu could not be taken away: ip rule"
				     " still shows rules of protocol %d",
				     state->owner.job, OCS_FORWARD_PROTOCOL);
	if (unlink(state->path) < 0 && errno != ENOENT)
		return ocs_error_set(err, OCS_ERROR, "cannot remove %s: %s", state->path,
				     strerror(errno));
	state->there = false;
	ocs_forward_commands_free(&state->things);
	return 0;
}

/* Makes this host what WANTED says; the caller has the lock. */
static int state_change(struct state *state, const struct ocs_forward_owner *owner,
			struct ocs_forward_commands *wanted, const struct ocs_forward *forward,
			const struct ocs_forward_hosts *hosts, int host, size_t *changed,
			struct ocs_error *err)
{
	bool all = !state->there || !state->settled || !ocs_forward_rules_there();
	struct ocs_forward_commands todo = { 0 };
	int rc;

	if (all) {
		struct ocs_forward_command flush = { .tool = OCS_FORWARD_IP, .may_fail = true };

		/* the only things that cannot be made twice */
		flush.text = ocs_asprintf("rule flush protocol %d", OCS_FORWARD_PROTOCOL);
		commands_append(&todo, &flush);
		free(flush.text);
	}
	state_difference(state, wanted, all, &todo);
	rc = intent_write(state, owner, wanted, err);
	if (!rc)
		rc = ocs_forward_run(&todo, forward, hosts, host, err);
	if (rc) {
		/* both what was there and what has come so far */
		const struct ocs_forward_commands none = { 0 };

		undo_rest(wanted, &none, NULL);
		undo_rest(&state->things, wanted, NULL);
		unlink(state->path);
	} else {
		*changed = todo.count - all;
		undo_rest(&state->things, wanted, changed);
		state->owner = *owner;
		ocs_forward_commands_free(&state->things);
		state->things = *wanted;
		memset(wanted, 0, sizeof(*wanted));
		state->settled = true;
		rc = state_write(state, err);
	}
	ocs_forward_commands_free(&todo);
	return rc;
}

static bool state_holds(const struct state *state, const struct ocs_forward_owner *owner)
{
	return state->there && state->owner.job == owner->job && state->owner.epoch == owner->epoch;
}

/* The caller has the lock; what others left is taken away. */
static int make_room(struct state *state, const struct ocs_forward_owner *owner,
		     const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err)
{
	if (state->there && !state_holds(state, owner) && take_away(state, err))
		return -1;
	/* a crash and a lost file: what is ours is known by its mark */
	if (!state->there && ocs_forward_rules_there())
		return ocs_forward_remove(hosts, host, err);
	return 0;
}

/* WANTED is taken over. */
static int state_hold(const char *folder, const struct ocs_forward_owner *owner, bool follow,
		      struct ocs_forward_commands *wanted, const struct ocs_forward *forward,
		      const struct ocs_forward_hosts *hosts, int host, size_t *changed,
		      struct ocs_error *err)
{
	struct state state;
	size_t count = 0;
	int rc = ocs_forward_interfaces_check(hosts, host, err);

	if (rc) {
		ocs_forward_commands_free(wanted);
		return -1;
	}
	rc = state_open(&state, folder, !follow, err);
	if (!rc && follow && !state_holds(&state, owner)) {
		ocs_forward_commands_free(wanted);
		state_close(&state);
		return 1;
	}
	if (!rc)
		rc = make_room(&state, owner, hosts, host, err);
	if (!rc)
		rc = state_change(&state, owner, wanted, forward, hosts, host, &count, err);
	ocs_forward_commands_free(wanted);
	if (changed)
		*changed = count;
	state_close(&state);
	return rc;
}

int ocs_forward_hold(const char *folder, const struct ocs_forward_owner *owner,
		     const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		     int host, enum ocs_forward_backend backend, size_t *changed,
		     struct ocs_error *err)
{
	struct ocs_forward_commands wanted = { 0 };

	ocs_forward_things(forward, hosts, host, backend, &wanted);
	return state_hold(folder, owner, false, &wanted, forward, hosts, host, changed, err);
}

int ocs_forward_hold_rails(const char *folder, const struct ocs_forward_owner *owner,
			   const struct ocs_forward_rails *rails,
			   const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err)
{
	struct ocs_forward_commands wanted = { 0 };

	ocs_forward_rails_things(rails, hosts, host, &wanted);
	return state_hold(folder, owner, false, &wanted, NULL, hosts, host, NULL, err);
}

int ocs_forward_hold_region(const char *folder, const struct ocs_forward_owner *owner,
			    const struct ocs_forward_hosts *hosts, int host, int first, int servers,
			    struct ocs_error *err)
{
	struct ocs_forward_commands wanted = { 0 };

	ocs_forward_region_things(hosts, host, first, servers, &wanted);
	return state_hold(folder, owner, false, &wanted, NULL, hosts, host, NULL, err);
}

int ocs_forward_follow(const char *folder, const struct ocs_forward_owner *owner,
		       const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		       int host, enum ocs_forward_backend backend, size_t *changed,
		       struct ocs_error *err)
{
	struct ocs_forward_commands wanted = { 0 };

	ocs_forward_things(forward, hosts, host, backend, &wanted);
	return state_hold(folder, owner, true, &wanted, forward, hosts, host, changed, err);
}

int ocs_forward_drop(const char *folder, const struct ocs_forward_owner *owner,
		     struct ocs_error *err)
{
	struct state state;
	int rc = state_open(&state, folder, false, err);

	if (!rc && state.there &&
	    (!owner || (state.owner.job == owner->job && state.owner.epoch <= owner->epoch)))
		rc = take_away(&state, err);
	state_close(&state);
	return rc;
}

int ocs_forward_owner_read(const char *folder, struct ocs_forward_owner *owner,
			   struct ocs_error *err)
{
	struct state state;
	int rc = state_open(&state, folder, false, err);

	if (!rc)
		*owner = state.owner;
	rc = rc ? -1 : state.there;
	state_close(&state);
	return rc;
}

int ocs_forward_keep(const char *folder, const struct ocs_forward_owner *owner,
		     struct ocs_forward_seen *seen)
{
	char *path = ocs_asprintf("%s/" FILE_NAME, folder);
	struct ocs_forward_owner noted;
	int fd = lock_open(folder, NULL);
	struct stat info;

	if (fd >= 0 && (flock(fd, LOCK_EX) < 0 || stat(path, &info) < 0)) {
		close(fd);
		fd = -1;
	}
	free(path);
	if (fd < 0)
		return -1;
	if (info.st_ino == seen->inode && info.st_mtim.tv_sec == seen->changed_s &&
	    info.st_mtim.tv_nsec == seen->changed_ns)
		return fd;
	close(fd);
	if (ocs_forward_owner_read(folder, &noted, NULL) != 1 || noted.job != owner->job ||
	    noted.epoch != owner->epoch)
		return -1;
	seen->inode = info.st_ino;
	seen->changed_s = info.st_mtim.tv_sec;
	seen->changed_ns = info.st_mtim.tv_nsec;
	return ocs_forward_keep(folder, owner, seen);
}

int ocs_forward_watch_alone(const char *folder, uint64_t epoch)
{
	struct flock place = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)epoch, .l_len = 1
	};
	int fd = lock_open(folder, NULL);

	/* a lock of the open file: it lives as long as the descriptor */
	if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &place) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}
