/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/check.h"
#include "src/ocsctl/ocsctl.h"
#include "src/util/text.h"

#define FILE_MAX (16 << 20)

static const char *kind_name(const struct ocs_nccl_report *report)
{
	return report->kind == OCS_NCCL_GRAPH ? "graph" : "topology";
}

static void print_json(const char *file, const struct ocs_nccl_report *report)
{
	struct json_object *out = json_object_new_object(), *faults = json_object_new_array();

	json_object_object_add(out, "file", json_object_new_string(file));
	json_object_object_add(out, "kind", json_object_new_string(kind_name(report)));
	json_object_object_add(out, "valid", json_object_new_boolean(!report->faults.errors));
	json_object_object_add(out, "elements", json_object_new_int(report->elements));
	for (int i = 0; i < report->faults.count; i++) {
		const struct ocs_nccl_fault *fault = &report->faults.list[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "line", json_object_new_int(fault->line));
		json_object_object_add(one, "error", json_object_new_boolean(fault->error));
		json_object_object_add(one, "fatal", json_object_new_boolean(fault->fatal));
		json_object_object_add(one, "text", json_object_new_string(fault->text));
		json_object_array_add(faults, one);
	}
	json_object_object_add(out, "faults", faults);
	ocs_ctl_print_json(out);
	json_object_put(out);
}

static void print_text(const char *file, const struct ocs_nccl_report *report)
{
	for (int i = 0; i < report->faults.count; i++) {
		const struct ocs_nccl_fault *fault = &report->faults.list[i];

		printf("%s:%d: %s: %s\n", file, fault->line, fault->error ? "error" : "note",
		       fault->text);
	}
	if (report->faults.dropped)
		printf("%s: %d more faults\n", file, report->faults.dropped);
	if (!report->faults.errors)
		printf("%s: NCCL reads this %s file as it is written, %d elements\n", file,
		       kind_name(report), report->elements);
}

static int check_file(const char *file, bool json, int *errors, struct ocs_error *err)
{
	struct ocs_nccl_report report;
	size_t length = 0;
	char *text;

	if (strcmp(file, "-") == 0) {
		text = ocs_ctl_read(file, err);
		length = text ? strlen(text) : 0;
	} else {
		text = ocs_file_read(file, FILE_MAX, &length, err);
	}
	if (!text)
		return -1;
	*errors += ocs_nccl_check(text, length, &report);
	if (json)
		print_json(file, &report);
	else
		print_text(file, &report);
	ocs_nccl_report_free(&report);
	free(text);
	return 0;
}

int ocs_ctl_nccl_check(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	int errors = 0;

	for (int i = 0; i < args->count; i++)
		if (check_file(args->operands[i], args->json, &errors, err) < 0)
			return -1;
	if (errors)
		return ocs_error_set(err, OCS_ERROR, "nccl-check: %d error%s", errors,
				     errors == 1 ? "" : "s");
	return 0;
}
