/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/ocsctl/ocsctl.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

const char *ocs_ctl_string(struct json_object *object, const char *name, const char *otherwise)
{
	struct json_object *value = ocs_field(object, name);

	if (!value)
		return otherwise;
	/* Numbers print as they are; what people or switches wrote must not move a cursor. */
	if (json_object_is_type(value, json_type_string) &&
	    !ocs_text_is_clean(json_object_get_string(value))) {
		char *clean = ocs_text_clean(ocs_strdup(json_object_get_string(value)));

		json_object_set_string(value, clean);
		free(clean);
	}
	return json_object_get_string(value);
}

size_t ocs_ctl_length(struct json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

void ocs_ctl_print_json(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
}

void ocs_ctl_print_reply(struct json_object *reply)
{
	json_object_object_del(reply, OCS_FIELD_ID);
	json_object_object_del(reply, OCS_FIELD_OK);
	ocs_ctl_print_json(reply);
}
