/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Shapes, connection types and the words of a job's Extra. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/fold/shape.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void extra_check(const struct ocs_shape *shape)
{
	char *extra = ocs_shape_extra_format(shape);
	struct ocs_shape again;
	struct ocs_error err;

	memset(&again, 0, sizeof(again));
	if (ocs_shape_extra_parse(extra, &again, &err) != 1 || again.xpus != shape->xpus ||
	    memcmp(again.extent, shape->extent, sizeof(again.extent)) ||
	    memcmp(again.mesh, shape->mesh, sizeof(again.mesh)) ||
	    memcmp(again.name, shape->name, sizeof(again.name)) || again.marked != shape->marked ||
	    again.phases != shape->phases || ocs_shape_stages(shape) >= shape->ndim)
		abort();
	free(extra);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	char *text, *conn;

	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (ocs_shape_extra_parse(text, &shape, &err) == 1)
		extra_check(&shape);
	conn = strchr(text, '\n');
	if (conn)
		*conn++ = '\0';
	if (!ocs_shape_parse(text, conn, &shape, &err))
		extra_check(&shape);
	else if (!err.code || strchr(err.text, '\n'))
		abort();
	free(text);
	return 0;
}
