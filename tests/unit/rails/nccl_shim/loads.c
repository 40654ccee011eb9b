/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A program that opens NCCL itself, as JAX and vLLM do: `loads WAY REAL LIST`. */

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

typedef long any_t(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
		   long k);

static int fail(const char *why)
{
	printf("# %s: %s\n", why, dlerror());
	return 1;
}

/* All that is forwarded gets its eleven arguments, by both names. */
static int forwards_check(void *library, const char *list)
{
	FILE *file = fopen(list, "r");
	char line[200], kind[20], name[100];
	int count = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%19s %99s", kind, name) != 2 ||
		    (strcmp(kind, "forward") && strcmp(kind, "refuse")) ||
		    !strcmp(name, "CommInitAll"))
			continue;
		for (int p = 0; p < 2; p++) {
			char full[120];
			any_t *function;
			long got, want;

			snprintf(full, sizeof(full), "%snccl%s", p ? "p" : "", name);
			function = (any_t *)dlsym(library, full);
			if (!function)
				return fail(full);
			want = 1 + 2 * 2 + 3 * 3 + 5 * 4 + 7 * 5 + 11 * 6 + 13 * 7 + 17 * 8 +
			       19 * 9 + 23 * 10 + 29 * 11 + (long)strlen(full) + 1;
			for (int again = 0; again < 2; again++) {
				got = function(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
				if (got != want) {
					printf("# %s: %ld instead of %ld\n", full, got, want);
					return 1;
				}
			}
			count++;
		}
	}
	if (file)
		fclose(file);
	return count > 80 ? 0 : fail("too few functions");
}

/* Of how many files there are copies of the stand-in in this process. */
static const char *copy_name;

static int copy_count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(int *)data += strstr(info->dlpi_name, copy_name) != NULL;
	return 0;
}

/* A second one is found where it is, and that nothing holds it is said once. */
static int second_check(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	Dl_info found;

	/* A rank with a gate: others may use as many as they want. */
	record = calloc(1, sizeof(*record));
	all_ranks = 1;
	for (int i = 0; library && i < 2; i++)
		if (!dladdr(dlsym(library, "ncclCommCount"), &found) ||
		    strcmp(found.dli_fname, path) != 0)
			return fail("the second one's function");
	return library ? 0 : fail("a second one");
}

int main(int argc, char **argv)
{
	void *real = NULL, *library;
	int copies = 0, number = 0, *loads;
	any_t *version;
	char folder[4096];
	Dl_info found;

	if (argc < 4)
		return 2;
	snprintf(folder, sizeof(folder), "%s", argv[2]);
	copy_name = strstr(argv[2], "real/");
	if (!strcmp(argv[1], "local")) {
		real = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
		if (!real)
			return fail("the real one");
	} else if (!strcmp(argv[1], "chosen")) {
		setenv("OCS_RAILS_NCCL", argv[2], 1);
	} else if (!strcmp(argv[1], "path")) {
		*strrchr(folder, '/') = 0;
		setenv("LD_LIBRARY_PATH", folder, 1);
		if (!getenv("LOADS_AGAIN")) {
			setenv("LOADS_AGAIN", "1", 1);
			execv("/proc/self/exe", argv);
		}
	} else if (!strcmp(argv[1], "runpath")) {
		/* Another library's RUNPATH leads to it: what pip's torch looks like. */
		strcpy(strrchr(folder, '/'), "/libtorch.so");
		if (!dlopen(folder, RTLD_NOW | RTLD_LOCAL))
			return fail("a library with a RUNPATH");
	}
	/* "handle": what ctypes does with a path. */
	library =
		dlopen(strcmp(argv[1], "handle") ? "libnccl.so.2" : argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return fail("libnccl.so.2");
	version = (any_t *)dlsym(library, "ncclGetVersion");
	if (!version || !dladdr((void *)version, &found) ||
	    !strstr(found.dli_fname, "libocs-rails-nccl"))
		return fail("libnccl.so.2 is not the shim");
	if (!strcmp(argv[1], "none"))
		return ((int (*)(int *))(void *)version)(&number) == 5 ? 0 : 1;
	if (!strcmp(argv[1], "cache"))
		return ((int (*)(int *))(void *)version)(&number) || number < 20000;
	if (forwards_check(library, argv[3]))
		return 1;
	dl_iterate_phdr(copy_count, &copies);
	real = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
	loads = real ? dlsym(real, "nccl_loads") : NULL;
	if (!loads || *loads != 1 || copies != 1)
		return fail("the real one is not there once");
	return argc > 4 ? second_check(argv[4]) : 0;
}
