/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/scheduler/submit_options.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/base64.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

extern char **environ;

static const struct {
	const char *name, *plain, *inherited;
} options[OCS_OPTIONS] = {
	[OCS_OPTION_SHAPE] = { "shape", OCS_OPTION_PREFIX "shape", OCS_OPTION_INHERITED "shape" },
	[OCS_OPTION_CONN] = { "conn-type", OCS_OPTION_PREFIX "conn_type",
			      OCS_OPTION_INHERITED "conn_type" },
	[OCS_OPTION_NO_ROTATE] = { "no-rotate", OCS_OPTION_PREFIX "no_rotate",
				   OCS_OPTION_INHERITED "no_rotate" },
	[OCS_OPTION_NO_FOLD] = { "no-fold", OCS_OPTION_PREFIX "no_fold",
				 OCS_OPTION_INHERITED "no_fold" },
	[OCS_OPTION_DEMAND] = { "ocs-demand", OCS_OPTION_PREFIX "ocs_demand",
				OCS_OPTION_INHERITED "ocs_demand" },
	[OCS_OPTION_PHASES] = { "ocs-phases", OCS_OPTION_PREFIX "ocs_phases",
				OCS_OPTION_INHERITED "ocs_phases" },
	[OCS_OPTION_MOE] = { "ocs-moe", OCS_OPTION_PREFIX "ocs_moe",
			     OCS_OPTION_INHERITED "ocs_moe" },
	[OCS_OPTION_RINGS] = { "ocs-rings", OCS_OPTION_PREFIX "ocs_rings",
			       OCS_OPTION_INHERITED "ocs_rings" },
	[OCS_OPTION_MODEL] = { "ocs-model", OCS_OPTION_PREFIX "ocs_model",
			       OCS_OPTION_INHERITED "ocs_model" },
};

const char *ocs_option_name(enum ocs_option option)
{
	return options[option].name;
}

const char *ocs_option_variable(enum ocs_option option, bool inherited)
{
	return inherited ? options[option].inherited : options[option].plain;
}

void ocs_request_free(struct ocs_request *request)
{
	for (int i = 0; i < OCS_OPTIONS; i++) {
		free(request->value[i]);
		request->value[i] = NULL;
	}
}

void ocs_request_read(char *const *env, size_t count, struct ocs_request *request)
{
	memset(request, 0, sizeof(*request));
	for (size_t i = 0; i < count; i++) {
		const char *entry = env[i];

		if (!entry)
			continue;
		if (!strncmp(entry, "SPANK_", 6))
			entry += 6;
		for (int o = 0; o < OCS_OPTIONS; o++) {
			size_t length = strlen(options[o].plain);

			if (strncmp(entry, options[o].plain, length) || entry[length] != '=')
				continue;
			free(request->value[o]);
			request->value[o] = ocs_strdup(entry + length + 1);
		}
	}
}

bool ocs_request_reserved(const char *entry)
{
	if (!strncmp(entry, "SPANK_", 6))
		entry += 6;
	return !strncmp(entry, "OCS_", 4);
}

/* Slurm writes (null), and spank_ocs yes, for an option without a value. */
static int request_moe(const struct ocs_request *request, int *moe, struct ocs_error *err)
{
	const char *text = request->value[OCS_OPTION_MOE];

	if (!text)
		return 0;
	if (strcmp(text, "(null)") == 0 || strcmp(text, "yes") == 0)
		text = NULL;
	return ocs_moe_wish_parse(text, moe, err);
}

int ocs_request_shape(const struct ocs_request *request, struct ocs_shape *shape,
		      struct ocs_error *err)
{
	const char *text = request->value[OCS_OPTION_PHASES];
	enum ocs_phases phases = OCS_PHASES_OFF;
	int moe = 0;

	if (text && ocs_phases_parse(text, &phases, err) < 0)
		return -1;
	if (request_moe(request, &moe, err) < 0)
		return -1;
	if (!request->value[OCS_OPTION_SHAPE]) {
		if (phases)
			return ocs_error_set(
				err, OCS_USAGE,
				"--ocs-phases=%s needs a shape, whose dimensions are the phases: give it with --shape, for example --shape=pp:2,dp:2,tp:8",
				text);
		if (moe)
			return ocs_error_set(
				err, OCS_USAGE,
				"--ocs-moe needs a shape that says where the experts are: give it with --shape, for example --shape=pp:4,ep:8,tp:4");
		for (int i = OCS_OPTION_CONN; i <= OCS_OPTION_NO_FOLD; i++)
			if (request->value[i])
				return ocs_error_set(
					err, OCS_USAGE,
					"--%s says how to lay a shape: give it with --shape, for example --shape=4x4x4",
					options[i].name);
		return 0;
	}
	if (ocs_shape_parse(request->value[OCS_OPTION_SHAPE], request->value[OCS_OPTION_CONN],
			    shape, err) < 0)
		return -1;
	shape->no_rotate = request->value[OCS_OPTION_NO_ROTATE] != NULL;
	shape->no_fold = request->value[OCS_OPTION_NO_FOLD] != NULL;
	shape->phases = phases;
	shape->moe = moe;
	return 1;
}

int ocs_rings_check(const char *value, struct ocs_error *err)
{
	if (strcmp(value, "stock") == 0 || strcmp(value, "permuted") == 0)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"--ocs-rings=%.40s is unknown: write stock (parallel rings +1) or permuted", value);
}

char *ocs_demand_load(const char *path, struct ocs_error *err)
{
	char *data, *text = NULL;
	size_t length;

	data = ocs_file_read(path, OCS_DEMAND_MAX, &length, err);
	if (!data)
		return NULL;
	if (strlen(data) != length)
		ocs_error_set(err, OCS_USAGE, "%s: has a byte 0, which JSON has not", path);
	else if (ocs_plan_demand_check(data, 0, err) < 0)
		ocs_error_prefix(err, "%s", path);
	else
		text = ocs_base64_encode(data, length);
	free(data);
	return text;
}

int ocs_demand_check(const char *coded, int nodes, struct ocs_error *err)
{
	char *data;
	int rc;

	if (strlen(coded) > (OCS_DEMAND_MAX + 2) / 3 * 4)
		return ocs_error_set(err, OCS_USAGE,
				     "--ocs-demand is larger than the %d bytes that are allowed",
				     OCS_DEMAND_MAX);
	data = ocs_base64_decode(coded);
	if (!data)
		return ocs_error_set(err, OCS_USAGE,
				     "--ocs-demand did not arrive as spank_ocs sends it; "
				     "submit with sbatch, salloc or srun");
	rc = ocs_plan_demand_check(data, nodes, err);
	if (rc < 0)
		ocs_error_prefix(err, "--ocs-demand");
	free(data);
	return rc;
}

char *ocs_exported_add(char *list, const char *name, const char *value)
{
	struct ocs_text text = { 0 };

	if (list)
		ocs_text_add(&text, "%s;", list);
	ocs_text_add(&text, "%s=", name);
	for (; *value; value++)
		if (*value == '%' || *value == ';')
			ocs_text_add(&text, "%%%02X", *value);
		else
			ocs_text_add(&text, "%c", *value);
	free(list);
	return ocs_text_take(&text);
}

bool ocs_exported_next(const char **list, char **name, char **value)
{
	while (*list && **list) {
		const char *start = *list, *end = strchrnul(start, ';');
		const char *equals = memchr(start, '=', end - start);
		struct ocs_text text = { 0 };

		*list = *end ? end + 1 : end;
		if (!equals || equals == start)
			continue;
		for (const char *at = equals + 1; at < end; at++) {
			if (end - at > 2 && !strncmp(at, "%25", 3)) {
				ocs_text_add(&text, "%%");
				at += 2;
			} else if (end - at > 2 && !strncmp(at, "%3B", 3)) {
				ocs_text_add(&text, ";");
				at += 2;
			} else {
				ocs_text_add(&text, "%c", *at);
			}
		}
		*name = ocs_asprintf("%.*s", (int)(equals - start), start);
		*value = ocs_text_take(&text);
		return true;
	}
	return false;
}

/* NCCL_* that this project set for the outer job are no wish of the user's. */
static void exported_drop(void)
{
	char *copy, *name, *value;
	const char *list = getenv(OCS_ENV_EXPORTED);

	if (!list)
		return;
	copy = ocs_strdup(list);
	list = copy;
	while (ocs_exported_next(&list, &name, &value)) {
		const char *now = getenv(name);

		if (now && !strcmp(now, value))
			unsetenv(name);
		free(name);
		free(value);
	}
	free(copy);
}

void ocs_inherited_drop(bool all)
{
	for (int i = 0; i < OCS_OPTIONS; i++) {
		unsetenv(options[i].plain);
		unsetenv(options[i].inherited);
	}
	unsetenv(OCS_ENV_SHAPE);
	unsetenv(OCS_ENV_CONN);
	unsetenv(OCS_ENV_PHASES);
	unsetenv(OCS_ENV_MOE);
	if (!all)
		return;
	unsetenv(OCS_ENV_STRATEGY);
	exported_drop();
	for (char **entry = environ; entry && *entry;) {
		const char *equals = strchr(*entry, '=');

		if (equals && !strncmp(*entry, OCS_ENV_PREFIX, strlen(OCS_ENV_PREFIX))) {
			char *name = ocs_asprintf("%.*s", (int)(equals - *entry), *entry);

			unsetenv(name);
			free(name);
			entry = environ;
		} else {
			entry++;
		}
	}
}
