/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/shim/gloo_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/shim/loaded.h"

/* As libstdc++ has them. */
struct cxx_string {
	const char *text;
	size_t length;
	char own[16];
};

struct cxx_vector {
	char *begin, *end, *room;
};

/* gloo::rendezvous::Store: two destructors, then these. */
struct gloo_store {
	const struct {
		void *destroy, *remove;
		void (*set)(struct gloo_store *, const struct cxx_string *,
			    const struct cxx_vector *);
		struct cxx_vector (*get)(struct gloo_store *, const struct cxx_string *);
	} * table;
};

static void *library_find(const char *name)
{
	static _Atomic(void *) library;
	void *found = dlsym(RTLD_NEXT, name), *handle = atomic_load(&library);

	if (found)
		return found;
	if (!handle) {
		handle = ocs_shim_loaded("libgloo.so");
		atomic_store(&library, handle);
	}
	return handle ? dlsym(handle, name) : NULL;
}

void *ocs_gloo_real(const char *name)
{
	void *found = library_find(name);

	if (!found) {
		fprintf(stderr, "slurm-ocs: Gloo has no %s; %s\n", name, ocs_gloo_advice);
		_Exit(1);
	}
	return found;
}

void ocs_gloo_throw(const char *text)
{
	static const char name[] = "_ZSt21__throw_runtime_errorPKc";
	void (*raise)(const char *) = (void (*)(const char *))library_find(name);
	char whole[320];

	snprintf(whole, sizeof(whole), "slurm-ocs: %s", text);
	if (raise)
		raise(whole);
	fprintf(stderr, "%s\n", whole);
	abort();
}

static struct cxx_string key_make(char *text, size_t size, const char *what, int rank)
{
	int length = snprintf(text, size, "slurm-ocs/%s/%d", what, rank);

	return (struct cxx_string){ text, (size_t)length, "" };
}

void ocs_gloo_store_set(struct gloo_store *store, const char *what, int rank, const void *value,
			size_t size)
{
	char text[64], *data = (char *)value;
	struct cxx_string key = key_make(text, sizeof(text), what, rank);
	struct cxx_vector bytes = { data, data + size, data + size };

	store->table->set(store, &key, &bytes);
}

void ocs_gloo_store_get(struct gloo_store *store, const char *what, int rank, void *value,
			size_t size)
{
	void (*release)(void *) = (void (*)(void *))library_find("_ZdlPv");
	char text[64];
	struct cxx_string key = key_make(text, sizeof(text), what, rank);
	struct cxx_vector bytes = store->table->get(store, &key);

	if (bytes.end - bytes.begin == (ptrdiff_t)size)
		memcpy(value, bytes.begin, size);
	if (release)
		release(bytes.begin);
}
