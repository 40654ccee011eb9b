/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/settings.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/rendezvous.h"
#include "src/util/error.h"
#include "src/util/text.h"

static int seconds_parse(const char *argument, const char *value, int *target,
			 struct ocs_error *err)
{
	long number;

	if (ocs_number_parse(value, 1, 86400, &number) < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "plugstack argument %s: give seconds from 1 to 86400",
				     argument);
	*target = (int)number;
	return 0;
}

static int yes_or_no(const char *argument, const char *value, bool *target, struct ocs_error *err)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return ocs_error_set(err, OCS_USAGE, "plugstack argument %s: give yes or no",
				     argument);
	*target = !strcmp(value, "yes");
	return 0;
}

/* "no" starts none, "yes" the one that is installed with this plugin. */
static const char *program_chosen(const char *value, const char *own)
{
	if (!strcmp(value, "yes"))
		return own;
	return strcmp(value, "no") ? value : NULL;
}

static int ports_check(const char *argument, const char *value, struct ocs_error *err)
{
	struct ocs_rendezvous meet;

	return ocs_rendezvous_ports(&meet, value, err) ?
		       ocs_error_prefix(err, "plugstack argument %s", argument) :
		       0;
}

int ocs_settings_parse(int argc, char **argv, struct ocs_settings *settings, struct ocs_error *err)
{
	*settings = (struct ocs_settings){
		.helper = OCS_HELPER,
		.controller = OCS_LIBEXEC "/ocs-rails-controller",
		.moe_controller = OCS_LIBEXEC "/ocs-moe-controller",
		.agent = OCS_LIBEXEC "/ocs-rails-agent",
		.dir = "/run/ocs",
		.prolog = true,
		.epilog_s = 60,
		.helper_s = 60,
	};
	for (int i = 0; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		size_t length = value ? (size_t)(value - argv[i]) : 0;
		int rc = 0;

#define IS(name) (length == strlen(name) && !strncmp(argv[i], name, length))
		value = value && value[1] ? value + 1 : NULL;
		if (value && IS("ocsd"))
			settings->ocsd = value;
		else if (value && IS("ocsd_key"))
			settings->ocsd_key = value;
		else if (value && IS("ocsd_user"))
			settings->ocsd_user = value;
		else if (value && IS("conf"))
			settings->conf = value;
		else if (value && IS("controller"))
			settings->controller = program_chosen(value, settings->controller);
		else if (value && IS("agent"))
			settings->agent = program_chosen(value, settings->agent);
		else if (value && IS("moe_controller"))
			settings->moe_controller = program_chosen(value, settings->moe_controller);
		else if (value && IS("controller_ports"))
			rc = ports_check(argv[i], settings->ports = value, err);
		else if (value && IS("shims"))
			settings->shims = value;
		else if (value && IS("helper"))
			settings->helper = value;
		else if (value && IS("dir"))
			settings->dir = value;
		else if (value && IS("prolog"))
			rc = yes_or_no(argv[i], value, &settings->prolog, err);
		else if (value && IS("prolog_timeout"))
			rc = seconds_parse(argv[i], value, &settings->prolog_s, err);
		else if (value && IS("epilog_timeout"))
			rc = seconds_parse(argv[i], value, &settings->epilog_s, err);
		else if (value && IS("helper_timeout"))
			rc = seconds_parse(argv[i], value, &settings->helper_s, err);
		else
			rc = ocs_error_set(
				err, OCS_USAGE,
				"plugstack argument %s: unknown; spank_ocs.so takes ocsd=, ocsd_key=, ocsd_user=, conf=, helper=, controller=, moe_controller=, agent=, controller_ports=, shims=, dir=, prolog=, prolog_timeout=, epilog_timeout= and helper_timeout=",
				argv[i]);
#undef IS
		if (rc < 0)
			return -1;
	}
	return 0;
}

char *ocs_settings_job_dir(const struct ocs_settings *settings, const char *node, uint32_t job)
{
	struct ocs_text text = { 0 };

	for (const char *at = settings->dir; *at; at++) {
		if (at[0] == '%' && at[1] == 'n') {
			ocs_text_add(&text, "%s", node ? node : "");
			at++;
		} else {
			ocs_text_add(&text, "%c", *at);
		}
	}
	ocs_text_add(&text, "/%u", job);
	return ocs_text_take(&text);
}

char *ocs_settings_fabric(const struct ocs_settings *settings)
{
	const char *conf = getenv("SLURM_CONF"), *slash;
	char *(*extra)(char *);

	if (settings->conf)
		return ocs_strdup(settings->conf);
	slash = conf ? strrchr(conf, '/') : NULL;
	if (slash)
		return ocs_asprintf("%.*s/ocs.yaml", (int)(slash - conf), conf);
	/* Where this Slurm was built to look; not in its public headers. */
	*(void **)&extra = dlsym(RTLD_DEFAULT, "slurm_get_extra_conf_path");
	if (!extra)
		*(void **)&extra = dlsym(RTLD_DEFAULT, "get_extra_conf_path");
	if (extra) {
		/* The result is Slurm's xmalloc memory: kept, once per process. */
		char *path = extra((char *)"ocs.yaml");

		if (path)
			return ocs_strdup(path);
	}
	return ocs_strdup("/etc/slurm/ocs.yaml");
}
