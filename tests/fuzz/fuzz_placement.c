/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A placement in its compact form, or (beginning with a brace) in JSON: whatever is let
 * through is sound and is written back to the same text. */

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/place/place.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json_check(const struct ocs_fabric *fabric, const char *text)
{
	struct json_object *json = json_tokener_parse(text), *first, *second;
	struct ocs_placement *placement, *again;
	struct ocs_error err = { 0 };

	placement = json ? ocs_placement_from_json(fabric, json, &err) : NULL;
	if (json && !placement && (!err.code || strchr(err.text, '\n')))
		abort();
	json_object_put(json);
	if (placement && ocs_placement_verify(fabric, NULL, placement, &err) == 0) {
		first = ocs_placement_to_json(fabric, placement);
		again = ocs_placement_from_json(fabric, first, &err);
		if (!again || ocs_placement_verify(fabric, NULL, again, &err))
			abort();
		second = ocs_placement_to_json(fabric, again);
		if (strcmp(json_object_to_json_string(first), json_object_to_json_string(second)))
			abort();
		json_object_put(first);
		json_object_put(second);
		ocs_placement_destroy(again);
	}
	ocs_placement_destroy(placement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ocs_fabric *fabric;
	static struct ocs_placer *placer;
	struct ocs_placement *placement;
	struct ocs_error err = { 0 };
	char *text;

	if (!fabric) {
		fabric = ocs_config_take_fabric(
			ocs_config_open("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", &err));
		if (!fabric)
			abort();
		placer = ocs_placer_create(fabric, &fabric->sections[0]);
	}
	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (*text == '{') {
		json_check(fabric, text);
		free(text);
		return 0;
	}
	placement = ocs_placement_decode(placer, text, &err);
	if (!placement && !err.code)
		abort();
	if (placement && (ocs_placement_verify(fabric, NULL, placement, &err) ||
			  strcmp(placement->compact, text)))
		abort();
	ocs_placement_destroy(placement);
	free(text);
	return 0;
}
