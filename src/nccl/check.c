/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What topology and graph files have in common. */

#include "src/nccl/check.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/xml.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FAULTS_MAX 100
#define FAULT_TEXT 400
#define ROOM 17 /* attributes of an element before NCCL overwrites memory */

void ocs_nccl_fault(struct ocs_nccl_faults *faults, int line, enum ocs_nccl_severity severity,
		    const char *format, ...)
{
	char text[FAULT_TEXT];
	va_list list;

	faults->errors += severity != OCS_NCCL_NOTE;
	faults->fatal += severity == OCS_NCCL_FATAL;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	/* what a file holds may be anything: one line that a terminal survives */
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c) || (unsigned char)*c > 0x7e)
			*c = '?';
	if (faults->count && faults->list[faults->count - 1].line == line &&
	    strcmp(faults->list[faults->count - 1].text, text) == 0)
		return;
	if (faults->count == FAULTS_MAX) {
		faults->dropped++;
		return;
	}
	if (!faults->list)
		faults->list = ocs_calloc(FAULTS_MAX, sizeof(*faults->list));
	faults->list[faults->count++] = (struct ocs_nccl_fault){
		.line = line,
		.error = severity != OCS_NCCL_NOTE,
		.fatal = severity == OCS_NCCL_FATAL,
		.text = ocs_strdup(text),
	};
}

/* Lines ascend; what was found first on a line stays first. */
static void faults_sort(struct ocs_nccl_faults *faults)
{
	for (int i = 1; i < faults->count; i++) {
		struct ocs_nccl_fault fault = faults->list[i];
		int at = i;

		for (; at > 0 && faults->list[at - 1].line > fault.line; at--)
			faults->list[at] = faults->list[at - 1];
		faults->list[at] = fault;
	}
}

static bool name_listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

void ocs_nccl_check_attributes(const struct ocs_nccl_element *element, const char *const *known,
			       int own, struct ocs_nccl_faults *faults)
{
	int foreign = 0;

	for (int i = 0; i < element->nattributes; i++) {
		const char *key = element->attributes[i].key;
		bool again = false;

		for (int j = 0; j < i && *key; j++)
			again |= strcmp(element->attributes[j].key, key) == 0;
		foreign += again || !name_listed(known, key);
		if (again)
			ocs_nccl_fault(faults, element->line, OCS_NCCL_MISREAD,
				       "%.40s twice in one "
				       "<%s>: NCCL reads the first only",
				       key, element->name);
		else if (*key && !name_listed(known, key) && strcmp(key, "keep") != 0)
			ocs_nccl_fault(faults, element->line, OCS_NCCL_NOTE,
				       "NCCL knows no attribute "
				       "%.40s of <%s> and ignores it",
				       key, element->name);
		if (strchr(element->attributes[i].value, '&'))
			ocs_nccl_fault(faults, element->line, OCS_NCCL_NOTE,
				       "'&' in %.40s stands for "
				       "itself: NCCL knows no XML entities",
				       key);
	}
	if (foreign + own > ROOM)
		ocs_nccl_fault(
			faults, element->line, OCS_NCCL_FATAL,
			"%d attributes NCCL does not use "
			"in one <%s>: with its own it writes past its table of %d; at most %d",
			foreign, element->name, ROOM, ROOM - own);
}

bool ocs_nccl_check_number(const struct ocs_nccl_element *element, const char *key, int base,
			   bool needed, long *value, struct ocs_nccl_faults *faults)
{
	const char *text = ocs_nccl_attribute(element, key);
	char *end;
	long number;

	if (value)
		*value = 0;
	if (!text) {
		if (needed && !element->broken)
			ocs_nccl_fault(faults, element->line, OCS_NCCL_FATAL,
				       "<%s> needs %s, a %s"
				       "number",
				       element->name, key, base == 16 ? "hexadecimal " : "");
		return false;
	}
	number = strtol(text, &end, base);
	if (value)
		*value = number;
	if (end != text && *end == '\0' && !isspace((unsigned char)*text))
		return true;
	ocs_nccl_fault(faults, element->line, OCS_NCCL_MISREAD,
		       "%s=\"%.40s\" of <%s> is no %snumber: "
		       "NCCL reads %ld",
		       key, text, element->name, base == 16 ? "hexadecimal " : "", number);
	return false;
}

/* The outermost element tells the kinds apart. */
static enum ocs_nccl_kind kind_find(const char *text, size_t length)
{
	const char *graphs = memmem(text, length, "<graphs", 7);
	const char *system = memmem(text, length, "<system", 7);

	return graphs && (!system || graphs < system) ? OCS_NCCL_GRAPH : OCS_NCCL_TOPOLOGY;
}

int ocs_nccl_check(const char *text, size_t length, struct ocs_nccl_report *report)
{
	struct ocs_nccl_element *root;

	memset(report, 0, sizeof(*report));
	report->kind = kind_find(text, length);
	root = ocs_nccl_xml_read(text, length, report->kind, &report->elements, &report->faults);
	if (report->kind == OCS_NCCL_GRAPH)
		ocs_nccl_check_graph(root, &report->faults);
	else
		ocs_nccl_check_topology(root, report->elements, &report->faults);
	ocs_nccl_xml_free(root);
	faults_sort(&report->faults);
	return report->faults.errors;
}

void ocs_nccl_report_free(struct ocs_nccl_report *report)
{
	for (int i = 0; i < report->faults.count; i++)
		free(report->faults.list[i].text);
	free(report->faults.list);
	memset(report, 0, sizeof(*report));
}

int ocs_nccl_check_text(const char *text, struct ocs_error *err)
{
	struct ocs_nccl_report report;
	int rc = 0;

	if (ocs_nccl_check(text, strlen(text), &report))
		for (int i = 0; i < report.faults.count && rc == 0; i++)
			if (report.faults.list[i].error)
				rc = ocs_error_set(err, OCS_USAGE, "line %d: %s",
						   report.faults.list[i].line,
						   report.faults.list[i].text);
	if (report.faults.errors && rc == 0)
		rc = ocs_error_set(err, OCS_USAGE, "more than %d faults", FAULTS_MAX);
	ocs_nccl_report_free(&report);
	return rc;
}
