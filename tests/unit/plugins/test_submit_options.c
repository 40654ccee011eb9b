/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What spank_ocs, job_submit/ocs and cli_filter/ocs share, without a Slurm. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/plugins/cli_filter/model.h"
#include "src/plugins/job_submit/extra.h"
#include "src/plugins/job_submit/script.h"
#include "src/util/base64.h"
#include "src/plugins/spank/subprocess.h"
#include "src/scheduler/submit_options.h"
#include "src/plugins/spank/settings.h"
#include "src/util/error.h"
#include "src/util/net.h"

static void test_read_takes_both_prefixes(void **state)
{
	char *env[] = {
		"_SLURM_SPANK_OPTION_spank_ocs_shape=4x4",
		"SPANK__SLURM_SPANK_OPTION_spank_ocs_conn_type=torus,mesh",
		"SPANK__SLURM_SPANK_OPTION_spank_ocs_no_fold=(null)",
		"_SLURM_SPANK_OPTION_spank_ocs_shapes=9x9",
		NULL,
		"_SLURM_SPANK_OPTION_spank_other_shape=8x8",
	};
	struct ocs_request request;
	struct ocs_shape shape;
	struct ocs_error err;

	(void)state;
	ocs_request_read(env, 6, &request);
	assert_string_equal(request.value[OCS_OPTION_SHAPE], "4x4");
	assert_null(request.value[OCS_OPTION_NO_ROTATE]);
	assert_int_equal(ocs_request_shape(&request, &shape, &err), 1);
	assert_true(shape.no_fold && !shape.no_rotate);
	assert_true(!shape.mesh[0] && shape.mesh[1]);
	ocs_request_free(&request);
}

static void test_options_need_a_shape(void **state)
{
	char *env[] = { "_SLURM_SPANK_OPTION_spank_ocs_no_rotate=" };
	struct ocs_request request;
	struct ocs_shape shape;
	struct ocs_error err;

	(void)state;
	ocs_request_read(env, 1, &request);
	assert_int_equal(ocs_request_shape(&request, &shape, &err), -1);
	assert_non_null(strstr(err.text, "--shape"));
	ocs_request_free(&request);
	ocs_request_read(env, 0, &request);
	assert_int_equal(ocs_request_shape(&request, &shape, &err), 0);
}

static void test_phases(void **state)
{
	static const struct {
		const char *shape, *phases;
		int rc, mode;
		const char *says;
	} cases[] = {
		{ "pp:2,dp:2", "provisioned", 1, OCS_PHASES_PROVISIONED, NULL },
		{ "pp:2,dp:2", "on-demand", 1, OCS_PHASES_ON_DEMAND, NULL },
		{ "pp:2,dp:2", "off", 1, OCS_PHASES_OFF, NULL },
		{ "pp:2,dp:2", NULL, 1, OCS_PHASES_OFF, NULL },
		{ NULL, "off", 0, 0, NULL },
		{ NULL, "provisioned", -1, 0, "--ocs-phases=provisioned needs a shape" },
		{ "2x2", "Off", -1, 0, "write provisioned, on-demand or off" },
		{ "2x2", "", -1, 0, "--ocs-phases= is unknown" },
		{ NULL, "on\ndemand", -1, 0, "--ocs-phases=on?demand is unknown" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ocs_request request = { 0 };
		struct ocs_error err = { 0 };
		struct ocs_shape shape;

		request.value[OCS_OPTION_SHAPE] = (char *)cases[i].shape;
		request.value[OCS_OPTION_PHASES] = (char *)cases[i].phases;
		assert_int_equal(ocs_request_shape(&request, &shape, &err), cases[i].rc);
		if (cases[i].rc > 0)
			assert_int_equal(shape.phases, cases[i].mode);
		if (cases[i].says)
			assert_non_null(strstr(err.text, cases[i].says));
	}
	assert_string_equal(ocs_option_variable(OCS_OPTION_PHASES, false),
			    "_SLURM_SPANK_OPTION_spank_ocs_ocs_phases");
	assert_true(ocs_request_reserved("OCS_PHASES=on-demand"));
}

static void test_moe(void **state)
{
	static const struct {
		const char *shape, *moe;
		int rc;
		const char *extra, *says;
	} cases[] = {
		{ "pp:2,ep:4", "(null)", 1, "shape=pp:2,ep:4 moe=follow", NULL },
		{ "pp:2,ep:4", "yes", 1, "shape=pp:2,ep:4 moe=follow", NULL },
		{ "pp:2,ep:4", "", 1, "shape=pp:2,ep:4 moe=follow", NULL },
		{ "pp:2,ep:4", "balanced,static", 1, "shape=pp:2,ep:4 moe=static,balanced", NULL },
		{ "pp:2,ep:4", "no-relay,no-predict", 1,
		  "shape=pp:2,ep:4 moe=follow,no-predict,no-relay", NULL },
		{ "pp:2,ep:4", NULL, 1, "shape=pp:2,ep:4", NULL },
		{ NULL, "yes", -1, NULL, "--ocs-moe needs a shape" },
		{ "ep:4", "fast", -1, NULL, "\"fast\" is unknown" },
		{ "ep:4", "static,follow", -1, NULL, "\"follow\" does not go with" },
		{ "ep:4", "balanced,balanced", -1, NULL, "\"balanced\" does not go with" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ocs_request request = { 0 };
		struct ocs_error err = { 0 };
		struct ocs_shape shape, back;

		request.value[OCS_OPTION_SHAPE] = (char *)cases[i].shape;
		request.value[OCS_OPTION_MOE] = (char *)cases[i].moe;
		assert_int_equal(ocs_request_shape(&request, &shape, &err), cases[i].rc);
		if (cases[i].extra) {
			char *extra = ocs_shape_extra_format(&shape);

			assert_string_equal(extra, cases[i].extra);
			assert_int_equal(ocs_shape_extra_parse(extra, &back, &err), 1);
			assert_int_equal(back.moe, shape.moe);
			free(extra);
		}
		if (cases[i].says)
			assert_non_null(strstr(err.text, cases[i].says));
	}
}

static void test_rings(void **state)
{
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_rings_check("stock", &err), 0);
	assert_int_equal(ocs_rings_check("permuted", &err), 0);
	assert_int_equal(ocs_rings_check("", &err), -1);
	assert_int_equal(ocs_rings_check("stock ", &err), -1);
	assert_non_null(strstr(err.text, "--ocs-rings=stock  is unknown"));
	assert_string_equal(ocs_option_variable(OCS_OPTION_RINGS, true),
			    "SLURM_SPANK__SLURM_SPANK_OPTION_spank_ocs_ocs_rings");
}

static void test_reserved(void **state)
{
	(void)state;
	assert_true(ocs_request_reserved("OCS_EPOCH=3"));
	assert_true(ocs_request_reserved("SPANK_OCS_PLACEMENT=x"));
	assert_false(ocs_request_reserved("SPANK__SLURM_SPANK_OPTION_spank_ocs_shape=4"));
	assert_false(ocs_request_reserved("FOCS_EPOCH=3"));
}

static char *demand_of(const char *text, size_t length, struct ocs_error *err)
{
	char path[] = "/tmp/ocs-demand-XXXXXX", *coded;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	close(fd);
	coded = ocs_demand_load(path, err);
	unlink(path);
	return coded;
}

#define GROUP "{\"allreduce\":[{\"members\":[0,1],\"bytes\":8}]}"
#define GROUP_OF(members, bytes) "{\"allreduce\":[{\"members\":[" members "],\"bytes\":" bytes "}]}"

static void test_demand_travels(void **state)
{
	static const char *const texts[] = {
		GROUP,
		(GROUP "\n"),
		(" " GROUP),
		"{\"mp\":[[0,1],[2,0]]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct ocs_error err;
		char *coded = demand_of(texts[i], strlen(texts[i]), &err), *text;

		assert_non_null(coded);
		assert_int_equal(strlen(coded) % 4, 0);
		text = ocs_base64_decode(coded);
		assert_string_equal(text, texts[i]);
		assert_int_equal(ocs_demand_check(coded, 0, &err), 0);
		assert_int_equal(ocs_demand_check(coded, 2, &err), 0);
		free(text);
		free(coded);
	}
}

static void test_demand_refused(void **state)
{
	char *large = calloc(1, OCS_DEMAND_MAX + 16);
	struct ocs_error err;

	(void)state;
	assert_null(demand_of("{\"a\":", 5, &err));
	assert_non_null(strstr(err.text, "JSON"));
	assert_null(demand_of("[1]", 3, &err));
	assert_null(demand_of(GROUP "\0x", sizeof(GROUP) + 1, &err));
	assert_null(demand_of("", 0, &err));
	memset(large, ' ', OCS_DEMAND_MAX + 8);
	memcpy(large, GROUP, strlen(GROUP));
	assert_null(demand_of(large, OCS_DEMAND_MAX + 8, &err));
	free(large);
	assert_null(ocs_demand_load("/nowhere/demand.json", &err));
	assert_non_null(strstr(err.text, "/nowhere/demand.json"));
	assert_null(ocs_base64_decode("abc"));
	assert_null(ocs_base64_decode("ab=c"));
	assert_null(ocs_base64_decode("a==="));
	assert_null(ocs_base64_decode("ab!="));
	assert_null(ocs_base64_decode("ab==abcd"));
}

/* What no plan could be made for is refused when it is read, with the place of the fault. */
static void test_demand_nonsense(void **state)
{
	static const struct {
		const char *text;
		int nodes;
		const char *says;
	} cases[] = {
		{ "{}", 0,
		  "neither an allreduce group nor mp bytes; an example is {\"allreduce\":" },
		{ "{\"allreduce\":[]}", 0, "neither" },
		{ "{\"trees\":1,\"rings\":\"stock\"}", 0, "neither" },
		{ "{\"rings\":\"none\"}", 0, "rings is \"stock\" or" },
		{ "{\"mp\":[]}", 0, "mp" },
		{ "{\"mp\":[[0,0],[0,0]]}", 0, "neither" },
		{ GROUP_OF("0,1", "-8"), 0,
		  "bytes of allreduce group 0 is not a whole number of at least 0" },
		{ GROUP_OF("0,1", "1e400"), 0, "bytes of allreduce group 0" },
		{ GROUP_OF("0,1", "NaN"), 0, "bytes of allreduce group 0" },
		{ GROUP_OF("0,1", "Infinity"), 0, "bytes of allreduce group 0" },
		{ GROUP_OF("0,1", "1.5"), 0, "whole number" },
		{ GROUP_OF("0,1", "\"8\""), 0, "whole number" },
		{ GROUP_OF("0,1,0", "8"), 0,
		  "member 2 of allreduce group 0 is not a server number" },
		{ GROUP_OF("0,-1", "8"), 0, "member 1 of allreduce group 0" },
		{ GROUP_OF("0,99999", "8"), 0, "member 1 of allreduce group 0" },
		{ GROUP_OF("0,4", "8"), 4, "a server number from 0 to 3 that occurs once" },
		{ GROUP_OF("", "8"), 0, "needs a list of members" },
		{ "{\"allreduce\":[{\"members\":[0,1]}]}", 0, "group 0 lacks bytes" },
		{ "{\"allreduce\":[{\"members\":[0,1],\"bytes\":8,\"colour\":1}]}", 0,
		  "unknown key 'colour'" },
		{ "{\"mp\":[[0,1],[1]]}", 0, "row 1 of mp is not a list of 2 numbers" },
		{ "{\"mp\":[[0,1],[1,0],[1,0]]}", 0, "row 0 of mp is not a list of 3 numbers" },
		{ "{\"mp\":[[0,1],[1,0]]}", 4, "mp is not a list of 4 rows, one for each server" },
		{ "{\"mp\":[[0,-1],[1,0]]}", 0, "mp[0][1] is not a whole number" },
		{ "{\"mp\":[[0,1],[1e999,0]]}", 2, "mp[1][0] is not a whole number" },
		{ "{\"mp\":[[0,1],[1,0]],\"allreduce\":[{\"members\":[0,2],\"bytes\":8}]}", 0,
		  "a server number from 0 to 1" },
		{ "{\"a\":1}", 0, "unknown key 'a' (known: allreduce, mp, rings, trees)" },
	};
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *coded = ocs_base64_encode(cases[i].text, strlen(cases[i].text));

		assert_int_equal(ocs_demand_check(coded, cases[i].nodes, &err), -1);
		if (strncmp(err.text, "--ocs-demand: ", 14) || !strstr(err.text, cases[i].says))
			fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.text,
				 cases[i].says);
		free(coded);
		if (cases[i].nodes)
			continue;
		assert_null(demand_of(cases[i].text, strlen(cases[i].text), &err));
		assert_true(!strncmp(err.text, "/tmp/ocs-demand-", 16) &&
			    strstr(err.text, cases[i].says));
	}
}

/* From somebody who does not submit with sbatch. */
static void test_demand_from_others(void **state)
{
	static const char *const wrong[] = { "", "***", "abc", "W10=", "eyJh", "e30AeA==" };
	char *large = calloc(1, 2 * OCS_DEMAND_MAX + 1), *coded;
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(ocs_demand_check(wrong[i], 0, &err), -1);
	memset(large, ' ', 2 * OCS_DEMAND_MAX);
	memcpy(large, GROUP, strlen(GROUP));
	large[OCS_DEMAND_MAX] = '\0';
	coded = ocs_base64_encode(large, strlen(large));
	assert_int_equal(ocs_demand_check(coded, 0, &err), 0);
	free(coded);
	large[OCS_DEMAND_MAX] = ' ';
	coded = ocs_base64_encode(large, strlen(large));
	assert_int_equal(ocs_demand_check(coded, 0, &err), -1);
	assert_non_null(strstr(err.text, "larger"));
	free(coded);
	free(large);
}

static void test_exported_list(void **state)
{
	static const char *const pairs[][2] = {
		{ "NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1" },
		{ "NCCL_X", "a;b%3Bc%" },
		{ "E", "" },
	};
	char *list = NULL, *name, *value;
	const char *rest;

	(void)state;
	for (int i = 0; i < 3; i++)
		list = ocs_exported_add(list, pairs[i][0], pairs[i][1]);
	rest = list;
	for (int i = 0; i < 3; i++) {
		assert_true(ocs_exported_next(&rest, &name, &value));
		assert_string_equal(name, pairs[i][0]);
		assert_string_equal(value, pairs[i][1]);
		free(name);
		free(value);
	}
	assert_false(ocs_exported_next(&rest, &name, &value));
	rest = ";=x;novalue;";
	assert_false(ocs_exported_next(&rest, &name, &value));
	free(list);
}

static void test_inherited_is_dropped(void **state)
{
	(void)state;
	setenv("OCS_SHAPE", "4", 1);
	setenv("OCS_PHASES", "off", 1);
	setenv("SLURM_OCS_DIR", "/run/ocs/1", 1);
	setenv("SLURM_OCS_RANK", "1", 1);
	setenv("SLURM_OCS_EXPORTED", "NCCL_ALGO=Ring;NCCL_P=a%3Bb;NCCL_U=1", 1);
	setenv("NCCL_ALGO", "Ring", 1);
	setenv("NCCL_P", "a;b", 1);
	setenv("NCCL_U", "2", 1);
	setenv("SLURM_SPANK__SLURM_SPANK_OPTION_spank_ocs_shape", "4", 1);
	setenv("_SLURM_SPANK_OPTION_spank_ocs_ocs_demand", "e30=", 1);
	ocs_inherited_drop(false);
	assert_null(getenv("OCS_SHAPE"));
	assert_null(getenv("OCS_PHASES"));
	assert_null(getenv("SLURM_SPANK__SLURM_SPANK_OPTION_spank_ocs_shape"));
	assert_null(getenv("_SLURM_SPANK_OPTION_spank_ocs_ocs_demand"));
	assert_non_null(getenv("SLURM_OCS_DIR"));
	assert_non_null(getenv("NCCL_ALGO"));
	ocs_inherited_drop(true);
	assert_null(getenv("SLURM_OCS_DIR"));
	assert_null(getenv("SLURM_OCS_RANK"));
	assert_null(getenv("SLURM_OCS_EXPORTED"));
	assert_null(getenv("NCCL_ALGO"));
	assert_null(getenv("NCCL_P"));
	/* The user changed it: the user's. */
	assert_string_equal(getenv("NCCL_U"), "2");
}

static void test_extra(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ NULL, "shape=4x4" },
		{ "", "shape=4x4" },
		{ "mine  and yours", "mine  and yours shape=4x4" },
		{ "mine shape=2x2 conn=mesh,mesh no-fold", "mine shape=4x4" },
		{ "shape=a:2,b:2 phases=on-demand mine", "mine shape=4x4" },
		{ "shape=ep:4 moe=static mine", "mine shape=4x4" },
		{ "shape=2x2 reshape=1 no-rotate more", "reshape=1 more shape=4x4" },
	};
	struct ocs_shape shape;

	(void)state;
	assert_int_equal(ocs_shape_parse("4x4", NULL, &shape, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = ocs_extra_with(cases[i].before, &shape);

		assert_string_equal(text, cases[i].after);
		free(text);
	}
}

static void test_settings(void **state)
{
	char *good[] = { "ocsd=unix:/run/x", "dir=/run/ocs/%n", "prolog_timeout=7" };
	char *bad[] = { "prolog_timeout=0" }, *unknown[] = { "dri=/run" }, *empty[] = { "dir=" };
	char *scripts[] = { "prolog=no", "controller=/opt/rails" }, *maybe[] = { "prolog=maybe" };
	char *none[] = { "controller=no", "agent=no", "controller_ports=700-799" };
	char *ports[] = { "controller_ports=7-" };
	struct ocs_settings settings;
	struct ocs_error err;
	char *dir;

	(void)state;
	assert_int_equal(ocs_settings_parse(3, good, &settings, &err), 0);
	assert_string_equal(settings.ocsd, "unix:/run/x");
	assert_int_equal(settings.prolog_s, 7);
	assert_int_equal(settings.epilog_s, 60);
	dir = ocs_settings_job_dir(&settings, "n5", 12);
	assert_string_equal(dir, "/run/ocs/n5/12");
	free(dir);
	setenv("SLURM_CONF", "/etc/there/slurm.conf", 1);
	dir = ocs_settings_fabric(&settings);
	assert_string_equal(dir, "/etc/there/ocs.yaml");
	free(dir);
	assert_int_equal(ocs_settings_parse(1, bad, &settings, &err), -1);
	assert_int_equal(ocs_settings_parse(1, unknown, &settings, &err), -1);
	assert_non_null(strstr(err.text, "dri=/run"));
	assert_int_equal(ocs_settings_parse(1, empty, &settings, &err), -1);
	assert_true(settings.prolog);
	assert_string_equal(settings.controller, "/usr/libexec/slurm-ocs/ocs-rails-controller");
	assert_int_equal(ocs_settings_parse(2, scripts, &settings, &err), 0);
	assert_false(settings.prolog);
	assert_string_equal(settings.controller, "/opt/rails");
	assert_int_equal(ocs_settings_parse(3, none, &settings, &err), 0);
	assert_null(settings.controller);
	assert_null(settings.agent);
	assert_string_equal(settings.ports, "700-799");
	assert_int_equal(ocs_settings_parse(1, ports, &settings, &err), -1);
	assert_non_null(strstr(err.text, "controller_ports=7-"));
	assert_int_equal(ocs_settings_parse(1, maybe, &settings, &err), -1);
	assert_non_null(strstr(err.text, "yes or no"));
}

static char heard[4096];

static void hear(const char *text)
{
	strncat(heard, text, sizeof(heard) - strlen(heard) - 2);
	strcat(heard, "|");
}

static void test_child(void **state)
{
	char *speak[] = { "/bin/sh", "-c", "echo one; echo two >&2; printf three", NULL };
	char *fail[] = { "/bin/sh", "-c", "echo the reason; exit 3", NULL };
	char *missing[] = { "/nowhere/helper", NULL };
	char *hang[] = { "/bin/sh", "-c", "sleep 60 & sleep 60", NULL };
	char *silent[] = { "/bin/sh", "-c", "exec >/dev/null 2>&1; sleep 60", NULL };
	struct ocs_error err;
	int64_t start;

	(void)state;
	setenv("SECRET", "x", 1);
	assert_int_equal(ocs_child_run(speak, 5000, hear, &err), 0);
	assert_string_equal(heard, "one|two|three|");
	assert_int_equal(ocs_child_run(fail, 5000, NULL, &err), -1);
	assert_non_null(strstr(err.text, "the reason"));
	assert_int_equal(ocs_child_run(missing, 5000, NULL, &err), -1);
	assert_non_null(strstr(err.text, "No such file"));
	start = ocs_now_ns();
	assert_int_equal(ocs_child_run(hang, 300, NULL, &err), -1);
	assert_int_equal(ocs_child_run(silent, 300, NULL, &err), -1);
	assert_true(ocs_now_ns() - start < 10 * 1000000000LL);
}

/* The lines that sbatch would read, and no others. */
static void test_script(void **state)
{
	static const struct {
		const char *script, *says;
	} scripts[] = {
		{ "#!/bin/sh\n#SBATCH --shape=4x4\ntrue\n",
		  "line 2 of the script, #SBATCH --shape: only sbatch reads such lines" },
		{ "#!/bin/sh\n#SBATCH --shape 4x4", "_SLURM_SPANK_OPTION_spank_ocs_shape=..." },
		{ "#!/bin/sh\n# words\n\n  # more\n#SBATCH -N2 -n \"4 #\" --no-fold",
		  "line 5 of the script" },
		{ "#!/bin/sh\r\n#SBATCH --conn-type=mesh\r\n", "--conn-type" },
		{ "#!/bin/sh\n#SBATCH\t--ocs-demand=x\n", "--ocs-demand" },
		{ "#!/bin/sh\n#SBATCH --shape=2x2\n#SBATCH hetjob\n", "line 2" },
		{ "#!/bin/sh\ntrue\n#SBATCH --shape=4x4\n", NULL },
		{ "#!/bin/sh\ncat <<E\n#SBATCH --shape=4x4\nE\n", NULL },
		{ "#!/bin/sh\n#SBATCH -N2 # not --shape=4x4\n", NULL },
		{ "#!/bin/sh\n#SBATCH --comment=\"a --shape=4x4\"\n", NULL },
		{ "#!/bin/sh\n#SBATCH --comment='a --shape=4x4' -N2\n", NULL },
		{ "#!/bin/sh\n##SBATCH --shape=4x4\n # SBATCH --shape=4x4\n", NULL },
		{ "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH --shape=4x4\n", NULL },
		{ "#!/bin/sh\n#SBATCH --shapes=4x4 --shap --shape-of=x x--shape=4x4\n", NULL },
		{ "#!/bin/sh\n#SBATCH", NULL },
		{ "#SBATCH \"--shape=4x4", NULL },
		{ "", NULL },
		{ NULL, NULL },
	};
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(ocs_script_check(scripts[i].script, &err),
				 scripts[i].says ? -1 : 0);
		if (scripts[i].says && !strstr(err.text, scripts[i].says))
			fail_msg("%s: %s", scripts[i].script, err.text);
	}
}

/* On rails whole dimensions fill a node from the last one on. */
static void test_model_shapes_fit_nodes(void **state)
{
	static const struct {
		const char *shape, *fitted;
		int xpus;
	} cases[] = {
		{ "pp:2,dp:4,tp:8", "pp:2,dp:4,tp:8", 8 },
		{ "dp:8,cp:2,tp:2", "dp:4,local:2,cp:2,tp:2", 8 },
		{ "dp:32", "dp:4,local:8", 8 },
		{ "dp:8", "dp:8", 8 },
		{ "pp:3,tp:16", "pp:3,tp:2,local:8", 8 },
		{ "dp:2,tp:2", "dp:2,tp:2", 1 },
		{ "tp:2", "tp:2", 4 },
		{ "dp:3,tp:4", NULL, 8 }, /* twelve, a node and a half */
		{ "dp:4,tp:3", NULL, 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ocs_error err = { 0 };
		char *fitted = ocs_model_shape_fit(cases[i].shape, cases[i].xpus, &err);

		if (cases[i].fitted)
			assert_string_equal(fitted, cases[i].fitted);
		else
			assert_true(!fitted && strstr(err.text, cases[i].shape));
		free(fitted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_takes_both_prefixes),
		cmocka_unit_test(test_model_shapes_fit_nodes),
		cmocka_unit_test(test_options_need_a_shape),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_moe),
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_demand_travels),
		cmocka_unit_test(test_demand_refused),
		cmocka_unit_test(test_demand_nonsense),
		cmocka_unit_test(test_demand_from_others),
		cmocka_unit_test(test_exported_list),
		cmocka_unit_test(test_inherited_is_dropped),
		cmocka_unit_test(test_extra),
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
