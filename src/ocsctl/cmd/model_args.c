/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/model_args.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/util/text.h"

int ocs_ctl_rate_parse(const char *text, double *rate, struct ocs_error *err)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || !(value > 0) || !isfinite(value) || value > 1e6 ||
	    (strcmp(end, "G") != 0 && strcmp(end, "T") != 0))
		return ocs_error_set(err, OCS_USAGE,
				     "'%.40s' is no rate; 100G or 1.6T (bits per second) is", text);
	*rate = value * (*end == 'G' ? 1e9 : 1e12) / 8;
	return 0;
}

int ocs_ctl_real_take(const char *name, const char *text, double unit, double *value,
		      struct ocs_error *err)
{
	double number;
	char *end;

	if (!text)
		return 0;
	number = strtod(text, &end);
	if (end == text || *end || !(number > 0))
		return ocs_error_set(err, OCS_USAGE, "--%s=%.40s is no positive number", name,
				     text);
	/* beyond these, a step takes no time or for ever */
	if (number < 1e-6 || number > 1e9)
		return ocs_error_set(err, OCS_USAGE, "--%s=%.40s is not between 1e-6 and 1e9", name,
				     text);
	*value = number * unit;
	return 0;
}

static int method_take(const char *text, struct ocs_optimise_request *request,
		       struct ocs_error *err)
{
	if (!text || !strcmp(text, "descent"))
		request->method = OCS_OPTIMISE_DESCENT;
	else if (!strcmp(text, "mcmc"))
		request->method = OCS_OPTIMISE_MCMC;
	else if (!strcmp(text, "exhaustive"))
		request->method = OCS_OPTIMISE_EXHAUSTIVE;
	else
		return ocs_error_set(err, OCS_USAGE,
				     "there is no method '%.40s'; there are descent, mcmc and "
				     "exhaustive",
				     text);
	return 0;
}

/* Measured on the default machine; one that is said to be faster is so in each operator. */
static int measured_take(const struct ocs_ctl_args *args, double default_tflops,
			 struct ocs_optimise_request *request,
			 struct ocs_optimise_measured *measured, struct ocs_error *err)
{
	struct ocs_model_machine *machine = &request->machine;

	if (!args->measured)
		return 0;
	if (ocs_optimise_measured_read(args->measured, request->model,
				       machine->tflops / default_tflops, measured, err))
		return -1;
	machine->forward_ms = measured->forward_ms;
	machine->backward_ms = measured->backward_ms;
	return 0;
}

int ocs_ctl_optimise_request(const struct ocs_ctl_args *args, const struct ocs_model *model,
			     struct ocs_optimise_request *request,
			     struct ocs_optimise_measured *measured, struct ocs_error *err)
{
	struct ocs_model_machine *machine = &request->machine;
	double tflops;

	memset(measured, 0, sizeof(*measured));
	memset(request, 0, sizeof(*request));
	ocs_model_machine_default(model, (int)args->servers, machine);
	tflops = machine->tflops;
	if (args->gpus)
		machine->gpus = (int)args->gpus;
	request->model = model;
	request->degree = args->degree ? (int)args->degree : model->precision == 4 ? 4 : 8;
	request->seed = args->seed > 0 ? (unsigned)args->seed : 1;
	request->budget = args->evaluations;
	if (!machine->servers)
		return ocs_error_set(err, OCS_USAGE, "--servers N is needed");
	if (machine->servers > 1024)
		return ocs_error_set(err, OCS_USAGE,
				     "%d servers are more than the 1024 that routes are made for",
				     machine->servers);
	if (ocs_ctl_rate_parse(args->rate ? args->rate : "100G", &request->rate, err) ||
	    ocs_ctl_real_take("tflops", args->tflops, 1, &machine->tflops, err) ||
	    ocs_ctl_real_take("memory", args->memory, 1e9, &machine->memory, err) ||
	    method_take(args->method, request, err) ||
	    measured_take(args, tflops, request, measured, err))
		return -1;
	return 0;
}

struct json_object *ocs_ctl_machine_json(const struct ocs_optimise_request *request)
{
	const struct ocs_model_machine *m = &request->machine;
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "servers", json_object_new_int(m->servers));
	json_object_object_add(json, "gpus", json_object_new_int(m->gpus));
	json_object_object_add(json, "degree", json_object_new_int(request->degree));
	json_object_object_add(json, "rate_gbps", json_object_new_double(request->rate * 8 / 1e9));
	json_object_object_add(json, "tflops", json_object_new_double(m->tflops));
	json_object_object_add(json, "memory_gb", json_object_new_double(m->memory / 1e9));
	json_object_object_add(json, "memory_gbs", json_object_new_double(m->memory_rate / 1e9));
	json_object_object_add(json, "scale_up_gbs", json_object_new_double(m->scale_up / 1e9));
	return json;
}

char *ocs_ctl_machine_text(const struct ocs_optimise_request *request)
{
	const struct ocs_model_machine *m = &request->machine;

	return ocs_asprintf(
		"%d servers of %d GPUs with %g TFLOPS, %g GB and %g GB/s to each other, "
		"%d interfaces of %g Gb/s per server",
		m->servers, m->gpus, m->tflops, m->memory / 1e9, m->scale_up / 1e9, request->degree,
		request->rate * 8 / 1e9);
}
