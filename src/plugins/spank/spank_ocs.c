/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* spank_ocs.so: the options of sbatch, salloc and srun, the prolog and epilog
 * that have circuits made and broken, and the environment of jobs and tasks. */

#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>

#include "src/plugins/spank/job_program.h"
#include "src/plugins/spank/nodeside.h"
#include "src/scheduler/submit_options.h"
#include "src/plugins/spank/settings.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define EXPORT __attribute__((visibility("default")))
#pragma GCC visibility push(default)
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(spank_ocs, 1)
#pragma GCC visibility pop

/* The options of this client process, per component of a heterogeneous job.  Slurm
 * itself hands the options of one component on to the next. */
static struct ocs_request typed;  /* this component */
static char *preset[OCS_OPTIONS]; /* from the environment, for all of them */
static bool inside;		  /* of an allocation: a step */

static void option_keep(enum ocs_option option, const char *value)
{
	char *copy = ocs_strdup(value);

	free(typed.value[option]);
	typed.value[option] = copy;
	if (option == OCS_OPTION_SHAPE)
		setenv(OCS_ENV_ASKED, value, 1);
	if (option == OCS_OPTION_MODEL)
		setenv(OCS_ENV_MODEL, value, 1);
}

/* Ends the client.  Returning an error would do the same, after a second line of
 * Slurm's that says less. */
static void __attribute__((noreturn)) refuse(const struct ocs_error *err)
{
	slurm_error("%s", err->text);
	exit(1);
}

/* Called by Slurm for #SBATCH lines, then for the environment, then for the command
 * line; the last one counts. */
static int option_given(int val, const char *argument, int remote)
{
	enum ocs_option option = (enum ocs_option)val;
	struct ocs_error err = { 0 };
	enum ocs_phases phases;
	struct ocs_shape shape;
	int wish;

	if (remote)
		return 0;
	/* From the environment: only what was there at the start.  The rest is
	 * the previous component's, left there by sbatch and salloc. */
	if (argument && argument == getenv(ocs_option_variable(option, true))) {
		if (preset[option])
			option_keep(option, preset[option]);
		return 0;
	}
	if (option == OCS_OPTION_SHAPE && ocs_shape_parse(argument, NULL, &shape, &err) < 0)
		refuse(&err);
	if (option == OCS_OPTION_PHASES && ocs_phases_parse(argument, &phases, &err) < 0)
		refuse(&err);
	if (option == OCS_OPTION_MOE && ocs_moe_wish_parse(argument, &wish, &err) < 0)
		refuse(&err);
	if (option == OCS_OPTION_RINGS && ocs_rings_check(argument, &err) < 0)
		refuse(&err);
	if (option == OCS_OPTION_DEMAND) {
		char *demand = ocs_demand_load(argument, &err);

		if (!demand)
			refuse(&err);
		option_keep(option, demand);
		free(demand);
	} else {
		option_keep(option, argument ? argument : "yes");
	}
	return 0;
}

static struct spank_option table[OCS_OPTIONS] = {
	[OCS_OPTION_SHAPE] = { NULL, (char *)"AxBxC",
			       (char *)"extents of the job in accelerators, such as 4x8x2 or, with names, pp:4,dp:8,tp:2; sets the number of nodes",
			       1, OCS_OPTION_SHAPE, option_given },
	[OCS_OPTION_CONN] = { NULL, (char *)"torus|mesh",
			      (char *)"rings (default) or lines along the dimensions of --shape; one word, or one per dimension",
			      1, OCS_OPTION_CONN, option_given },
	[OCS_OPTION_NO_ROTATE] = { NULL, NULL,
				   (char *)"lay the dimensions of --shape on x, y and z in the order given",
				   0, OCS_OPTION_NO_ROTATE, option_given },
	[OCS_OPTION_NO_FOLD] = { NULL, NULL,
				 (char *)"lay every dimension of --shape straight on one axis", 0,
				 OCS_OPTION_NO_FOLD, option_given },
	[OCS_OPTION_DEMAND] = { NULL, (char *)"FILE",
				(char *)"traffic (JSON) to plan the circuits of a direct fabric for",
				1, OCS_OPTION_DEMAND, option_given },
	[OCS_OPTION_PHASES] = { NULL, (char *)"MODE",
				(char *)"on rails, circuits follow the phases of the job: provisioned, on-demand or off (default)",
				1, OCS_OPTION_PHASES, option_given },
	[OCS_OPTION_MOE] = { NULL, (char *)"OPTIONS",
			     (char *)"in a region, circuits follow what the experts are sent: follow (default) or static, then no-predict, no-relay, balanced",
			     2, OCS_OPTION_MOE, option_given },
	[OCS_OPTION_RINGS] = { NULL, (char *)"KIND",
			       (char *)"rings of a direct fabric: stock, parallel ones for one communicator, or permuted",
			       1, OCS_OPTION_RINGS, option_given },
	[OCS_OPTION_MODEL] = { NULL, (char *)"FILE",
			       (char *)"model of a training to spread over the -N nodes of the job: gives the shape, or the demand of a direct fabric",
			       1, OCS_OPTION_MODEL, option_given },
};

/* OCS_SHAPE, OCS_CONN_TYPE, OCS_PHASES and OCS_MOE take the place that Slurm gives to environment variables:
 * above #SBATCH lines, below the command line. */
static void client_start(bool submits)
{
	static const struct {
		enum ocs_option option;
		const char *name;
	} forms[] = {
		{ OCS_OPTION_SHAPE, OCS_ENV_SHAPE },
		{ OCS_OPTION_CONN, OCS_ENV_CONN },
		{ OCS_OPTION_PHASES, OCS_ENV_PHASES },
		{ OCS_OPTION_MOE, OCS_ENV_MOE },
	};

	unsetenv(OCS_ENV_ASKED);
	unsetenv(OCS_ENV_MODEL);
	unsetenv(OCS_ENV_MODEL_SHAPE);
	unsetenv(OCS_ENV_MODEL_DEMAND);
	inside = getenv("SLURM_JOB_ID") != NULL;
	if (inside)
		ocs_inherited_drop(submits);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const char *value = getenv(forms[i].name);

		if (value && *value)
			setenv(ocs_option_variable(forms[i].option, true), value, 1);
	}
	for (int i = 0; i < OCS_OPTIONS; i++) {
		const char *value = getenv(ocs_option_variable(i, true));

		preset[i] = value ? ocs_strdup(value) : NULL;
	}
}

EXPORT int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	spank_context_t context = spank_context();
	struct ocs_settings settings;
	struct ocs_error err;

	if (ocs_settings_parse(argc, argv, &settings, &err) < 0) {
		slurm_error("spank_ocs: %s", err.text);
		return ESPANK_ERROR;
	}
	if (context == S_CTX_REMOTE)
		ocs_job_programs_init();
	if (context == S_CTX_SLURMD)
		ocs_node_start(&settings);
	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return ESPANK_SUCCESS;
	for (int i = 0; i < OCS_OPTIONS; i++) {
		spank_err_t rc;

		table[i].name = (char *)ocs_option_name(i);
		rc = spank_option_register(spank, &table[i]);
		if (rc != ESPANK_SUCCESS) {
			slurm_error("spank_ocs: cannot register --%s: %s", table[i].name,
				    spank_strerror(rc));
			return ESPANK_ERROR;
		}
	}
	if (context != S_CTX_REMOTE)
		client_start(context == S_CTX_ALLOCATOR);
	return ESPANK_SUCCESS;
}

/* A step may repeat the shape of its job, nothing else.  0, or -1 with ERR. */
static int step_check(uint32_t job, const struct ocs_shape *asked, struct ocs_error *err)
{
	struct ocs_shape held;
	job_info_msg_t *reply = NULL;
	char want[OCS_SHAPE_TEXT], have[OCS_SHAPE_TEXT];
	char *extra = NULL;
	int rc = 0;

	if (ocs_slurm_load_job(&reply, job))
		return ocs_error_set(err, OCS_ERROR,
				     "--shape: cannot ask for the shape of job %u: %s", job,
				     slurm_strerror(errno));
	for (uint32_t i = 0; i < reply->record_count; i++)
		if (reply->job_array[i].job_id == job)
			extra = reply->job_array[i].extra;
	if (ocs_shape_extra_parse(extra ? extra : "", &held, NULL) <= 0)
		rc = ocs_error_set(
			err, OCS_USAGE,
			"--shape: job %u has no shape, and a step cannot get one; submit a job with --shape=%s",
			job, ocs_shape_format(asked, want));
	else if (held.ndim != asked->ndim ||
		 memcmp(held.extent, asked->extent, sizeof(int) * held.ndim))
		rc = ocs_error_set(
			err, OCS_USAGE,
			"--shape=%s: job %u has the shape %s, and a step cannot have another; leave --shape out",
			ocs_shape_format(asked, want), job, ocs_shape_format(&held, have));
	slurm_free_job_info_msg(reply);
	return rc;
}

/* OCS_CONN_TYPE, OCS_PHASES and OCS_MOE may stand in the profile of a user who now asks for no shape. */
static void preset_drop(enum ocs_option option)
{
	if (!preset[option] || !typed.value[option] || strcmp(typed.value[option], preset[option]))
		return;
	free(typed.value[option]);
	typed.value[option] = NULL;
}

/* What cli_filter/ocs made of --ocs-model takes its place. */
static void model_take(void)
{
	static const struct {
		enum ocs_option option;
		const char *variable;
	} answers[] = {
		{ OCS_OPTION_SHAPE, OCS_ENV_MODEL_SHAPE },
		{ OCS_OPTION_DEMAND, OCS_ENV_MODEL_DEMAND },
	};
	struct ocs_error err;
	bool answered = false;

	unsetenv(OCS_ENV_MODEL);
	if (typed.value[OCS_OPTION_MODEL] && typed.value[OCS_OPTION_DEMAND]) {
		ocs_error_set(
			&err, OCS_USAGE,
			"--ocs-model: the demand follows from the model; leave --ocs-demand out");
		refuse(&err);
	}
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		const char *value = getenv(answers[i].variable);

		if (typed.value[OCS_OPTION_MODEL] && value) {
			option_keep(answers[i].option, value);
			answered = true;
		}
		unsetenv(answers[i].variable);
	}
	if (typed.value[OCS_OPTION_MODEL] && !answered) {
		ocs_error_set(
			&err, OCS_USAGE,
			"--ocs-model is worked out by cli_filter/ocs, which did not run: CliFilterPlugins=ocs is missing in slurm.conf");
		refuse(&err);
	}
	free(typed.value[OCS_OPTION_MODEL]);
	typed.value[OCS_OPTION_MODEL] = NULL;
}

/* After the options of one component: checks them together and writes into the
 * job's SPANK environment what was given for this component, no more. */
EXPORT int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	spank_context_t context = spank_context();
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	const char *job;
	int has;

	(void)argc, (void)argv;
	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR)
		return ESPANK_SUCCESS;
	model_take();
	unsetenv(OCS_ENV_ASKED);
	if (!typed.value[OCS_OPTION_SHAPE]) {
		preset_drop(OCS_OPTION_CONN);
		preset_drop(OCS_OPTION_PHASES);
		preset_drop(OCS_OPTION_MOE);
	}
	has = ocs_request_shape(&typed, &shape, &err);
	if (has < 0)
		refuse(&err);
	job = getenv("SLURM_JOB_ID");
	if (has && job && context == S_CTX_LOCAL &&
	    step_check(strtoul(job, NULL, 10), &shape, &err) < 0)
		refuse(&err);
	for (int i = 0; i < OCS_OPTIONS; i++) {
		const char *name = ocs_option_variable(i, false);
		bool step = inside && context == S_CTX_LOCAL;

		if (typed.value[i] && !step) {
			spank_job_control_setenv(spank, name, typed.value[i], 1);
			continue;
		}
		spank_job_control_unsetenv(spank, name);
		unsetenv(name);
		if (!preset[i])
			unsetenv(ocs_option_variable(i, true));
	}
	ocs_request_free(&typed);
	return ESPANK_SUCCESS;
}

static int with_settings(spank_t spank, int argc, char **argv,
			 int (*hook)(spank_t, const struct ocs_settings *))
{
	struct ocs_settings settings;
	struct ocs_error err;

	if (ocs_settings_parse(argc, argv, &settings, &err) < 0) {
		slurm_error("spank_ocs: %s", err.text);
		return ESPANK_ERROR;
	}
	return hook(spank, &settings);
}

EXPORT int slurm_spank_job_prolog(spank_t spank, int argc, char **argv)
{
	/* Jobs without circuits are not to suffer from a mistake in plugstack.conf. */
	if (!getenv("SPANK_OCS_EPOCH"))
		return ESPANK_SUCCESS;
	/* The codes of spank.h are positive, which Slurm 24.11 takes for success here. */
	return with_settings(spank, argc, argv, ocs_job_prolog) == ESPANK_SUCCESS ? 0 : -1;
}

EXPORT int slurm_spank_job_epilog(spank_t spank, int argc, char **argv)
{
	return with_settings(spank, argc, argv, ocs_job_epilog);
}

EXPORT int slurm_spank_user_init(spank_t spank, int argc, char **argv)
{
	if (spank_remote(spank) != 1)
		return ESPANK_SUCCESS;
	return with_settings(spank, argc, argv, ocs_user_init);
}

EXPORT int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	if (spank_remote(spank) != 1)
		return ESPANK_SUCCESS;
	return with_settings(spank, argc, argv, ocs_task_init);
}

/* Slurm begins the next step on these resources after this. */
EXPORT int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
	(void)argc, (void)argv;
	if (spank_context() == S_CTX_REMOTE && spank_remote(spank) == 1)
		ocs_job_programs_end();
	return ESPANK_SUCCESS;
}
