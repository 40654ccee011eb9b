/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* region.json: it is refused with a sentence, or every circuit and number of it is of the region that it describes. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/controller/controller.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static char path[] = "/tmp/fuzz_moe_region-XXXXXX";

/* Of the program, which is not linked here. */
double controller_now(void)
{
	return 0;
}

static void file_remove(void)
{
	unlink(path);
}

static void file_write(const uint8_t *data, size_t length)
{
	static int fd = -1;

	if (fd < 0) {
		fd = mkstemp(path);
		if (fd < 0)
			abort();
		atexit(file_remove);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, length, 0) != (ssize_t)length)
		abort();
}

static void group_check(const struct controller *controller, const struct group *group)
{
	int ends = controller->servers * controller->nics;
	char *used = calloc((size_t)ends, 1);

	for (int e = 0; e < ends; e++)
		if (!group->address[e])
			abort();
	for (size_t i = 0; i < group->stand.count; i++) {
		const struct ocs_region_circuit *one = &group->stand.items[i];
		int a = one->a * controller->nics + one->a_nic;
		int b = one->b * controller->nics + one->b_nic;

		if (one->a < 0 || one->a >= controller->servers || one->b <= one->a ||
		    one->b >= controller->servers || one->a_nic < 0 || one->b_nic < 0 ||
		    one->a_nic >= controller->nics || one->b_nic >= controller->nics || used[a]++ ||
		    used[b]++)
			abort();
	}
	free(used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct controller controller = { 0 };
	struct ocs_error err = { 0 };

	file_write(data, length);
	if (region_read(&controller, path, &err) == 0) {
		if (controller.servers < 1 || controller.nics < 1 || controller.ngroups < 1 ||
		    !controller.job)
			abort();
		for (int i = 0; i < controller.nics; i++)
			if (controller.numa[i] < 0)
				abort();
		for (int g = 0; g < controller.ngroups; g++)
			group_check(&controller, &controller.groups[g]);
	} else if (!err.code || !err.text[0] || strchr(err.text, '\n')) {
		abort();
	}
	region_free(&controller);
	return 0;
}
