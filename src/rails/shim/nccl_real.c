/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The real libnccl.so.2.  This library has its name, so the loader takes it for NCCL and loads no other:
 * the real one is opened by its path.  In this order: OCS_RAILS_NCCL; one in which the program looks up its
 * functions; one that is loaded already, be it RTLD_LOCAL; the folders in which the loaded objects' own libraries are searched (LD_LIBRARY_PATH,
 * RPATH and RUNPATH, the system's); the loader's cache. */

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/rails/shim/lookup.h"
#include "src/rails/shim/nccl_internal.h"

#define NCCL_SONAME "libnccl.so.2"
#define PATH_BYTES 4096

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static void *real_library;
static char *_Atomic real_wanted; /* the program's own */
static char real_path[PATH_BYTES] = NCCL_SONAME;
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char text_last[OCS_STREAM_WHY + 80];
static atomic_bool text_there, text_fatal;
static _Thread_local int depth_inside;

void ocs_nccl_say(bool fatal, const char *format, ...)
{
	va_list list;

	pthread_mutex_lock(&text_lock);
	va_start(list, format);
	vsnprintf(text_last, sizeof(text_last), format, list);
	va_end(list);
	atomic_store(&text_there, true);
	/* One line of each failure: after the first fatal one the rest are its consequences. */
	if (!atomic_load(&text_fatal))
		fprintf(stderr, "slurm-ocs: NCCL on photonic rails: %s\n", text_last);
	if (fatal)
		atomic_store(&text_fatal, true);
	pthread_mutex_unlock(&text_lock);
}

const char *ocs_nccl_said(void)
{
	return atomic_load(&text_there) ? text_last : NULL;
}

bool ocs_nccl_failed(void)
{
	if (!atomic_load(&text_fatal) && ocs_stream_refused())
		ocs_nccl_say(
			true,
			"the agent of this node has refused an operation that a stream had "
			"reached; that stream stays held, so that nothing is sent without circuits");
	return atomic_load(&text_fatal);
}

void ocs_nccl_inside(int step)
{
	depth_inside += step;
}

struct ocs_gate *ocs_nccl_gate(void)
{
	return depth_inside ? NULL : ocs_gate_get();
}

/* A file of this library, under whatever name. */
static bool path_own(const char *path)
{
	struct stat own, there;
	Dl_info info;

	return dladdr((void *)path_own, &info) && !stat(info.dli_fname, &own) &&
	       !stat(path, &there) && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

static bool library_open(const char *path, int flags)
{
	if (access(path, R_OK) || path_own(path))
		return false;
	/* Global, so that functions which this build does not know are found by programs that bind late. */
	real_library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | flags);
	if (real_library)
		snprintf(real_path, sizeof(real_path), "%s", path);
	return real_library != NULL;
}

static bool name_fits(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && !strncmp(base + 1, "libnccl.so", strlen("libnccl.so"));
}

/* One that is loaded, or one in the search folders of what is loaded. */
static bool loaded_search(bool folders)
{
	struct link_map *map;
	void *program = dlopen(NULL, RTLD_LAZY);
	bool found = false;

	if (!program || dlinfo(program, RTLD_DI_LINKMAP, &map)) {
		if (program)
			dlclose(program);
		return false;
	}
	for (; map && !found; map = map->l_next) {
		Dl_serinfo size, *search;
		void *object;

		if (!folders) {
			found = name_fits(map->l_name) && library_open(map->l_name, RTLD_NOLOAD);
			continue;
		}
		object = dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
		if (!object)
			continue;
		search = NULL;
		if (!dlinfo(object, RTLD_DI_SERINFOSIZE, &size))
			search = malloc(size.dls_size);
		if (search && !dlinfo(object, RTLD_DI_SERINFOSIZE, search) &&
		    !dlinfo(object, RTLD_DI_SERINFO, search)) {
			for (unsigned k = 0; k < search->dls_cnt && !found; k++) {
				char path[PATH_BYTES];

				snprintf(path, sizeof(path), "%s/" NCCL_SONAME,
					 search->dls_serpath[k].dls_name);
				found = library_open(path, 0);
			}
		}
		free(search);
		dlclose(object);
	}
	dlclose(program);
	return found;
}

/* The loader's cache: a header, COUNT entries, then strings; places count from the header on. */
static bool cache_search(void)
{
	struct entry {
		int32_t flags;
		uint32_t key, value, os;
		uint64_t hardware;
	} entry;
	static const char magic[] = "glibc-ld.so.cache1.1";
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	struct stat status;
	bool found = false;
	size_t size;
	char *cache;
	uint32_t count;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) || status.st_size < 48) {
		close(fd);
		return false;
	}
	size = (size_t)status.st_size;
	cache = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (cache == MAP_FAILED)
		return false;
	memcpy(&count, cache + 20, sizeof(count));
	for (uint32_t k = 0; !memcmp(cache, magic, sizeof(magic) - 1) && k < count && !found; k++) {
		size_t at = 48 + (size_t)k * sizeof(entry);
		char path[PATH_BYTES];

		if (at + sizeof(entry) > size)
			break;
		memcpy(&entry, cache + at, sizeof(entry));
		if (entry.key >= size || entry.value >= size ||
		    strncmp(cache + entry.key, NCCL_SONAME, size - entry.key))
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)(size - entry.value),
			 cache + entry.value);
		found = library_open(path, 0); /* fails for another machine's */
	}
	munmap(cache, size);
	return found;
}

static void real_load(void)
{
	const char *chosen = getenv("OCS_RAILS_NCCL"), *wanted = atomic_load(&real_wanted);
	char text[OCS_STREAM_WHY];

	if (chosen && chosen[0]) {
		if (library_open(chosen, 0))
			return;
		snprintf(text, sizeof(text), "%s",
			 access(chosen, R_OK) ? "no such file" : "not NCCL");
		ocs_nccl_say(true, "OCS_RAILS_NCCL=%.160s: %.60s", chosen, text);
		return;
	}
	if (wanted && library_open(wanted, RTLD_NOLOAD))
		return;
	if (!loaded_search(false) && !loaded_search(true) && !cache_search())
		ocs_nccl_say(true, "there is no " NCCL_SONAME
				   " beside this one; name the real one in OCS_RAILS_NCCL");
}

void *ocs_nccl_find(const char *name)
{
	void *function;

	pthread_once(&loaded, real_load);
	if (!real_library)
		return NULL;
	function = ocs_shim_dlsym(real_library, name);
	if (!function)
		ocs_nccl_say(false, "%s has no %s", real_path, name);
	return function;
}

bool ocs_shim_lookup_name(const char *name)
{
	name += *name == 'p';
	return !strncmp(name, "nccl", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

bool ocs_shim_lookup_take(void *found)
{
	static atomic_bool said;
	char *none = NULL, *path;
	Dl_info there, real;

	if (!dladdr(found, &there) || !there.dli_fname)
		return false;
	path = strdup(there.dli_fname);
	if (path && !atomic_compare_exchange_strong(&real_wanted, &none, path))
		free(path);
	pthread_once(&loaded, real_load);
	if (!real_library || !dladdr(ocs_shim_dlsym(real_library, "ncclGetVersion"), &real))
		return false;
	if (real.dli_fbase != there.dli_fbase && ocs_gate_get() && !atomic_exchange(&said, true))
		ocs_nccl_say(false,
			     "this program calls %s, too, beside %s; nothing holds what that one "
			     "sends: use one, or run the job with --ocs-phases=off",
			     there.dli_fname, real_path);
	return real.dli_fbase == there.dli_fbase;
}

/* By the profiler: an address in the library whose calls pass here; NULL: there is none so far. */
extern const void *ocs_rails_nccl_real(void);
__attribute__((visibility("default"))) const void *ocs_rails_nccl_real(void)
{
	return real_library ? ocs_shim_dlsym(real_library, "ncclGetVersion") : NULL;
}

/* In the place of a function that is refused or not there; arguments are the caller's affair. */
static int symbol_refused(void)
{
	return OCS_NCCL_INVALID_USAGE;
}

void *ocs_nccl_resolve(struct ocs_nccl_slot *slot)
{
	void *function = NULL;

	if (slot->refused && ocs_gate_get())
		ocs_nccl_say(false,
			     "%s is not for jobs whose circuits follow their phases: what it sends "
			     "passes no gate; do without it, or run the job with --ocs-phases=off",
			     slot->name);
	else
		function = ocs_nccl_find(slot->name);
	if (!function)
		function = (void *)symbol_refused;
	atomic_store_explicit(&slot->real, function, memory_order_release);
	return function;
}
