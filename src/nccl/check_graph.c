/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL makes of the elements of a graph file.  It trusts them: most of what is
 * wrong here makes it write where it should not. */

#include <stdlib.h>
#include <string.h>

#include "src/nccl/xml.h"

#define CHANNELS_MAX 64
#define GRAPHS 5 /* ring, tree, collnet chain, NVLS, collnet direct */
#define RING 0
#define PATTERN_RING 4

#define FAULT(severity, ...) ocs_nccl_fault(faults, element->line, OCS_NCCL_##severity, __VA_ARGS__)

static bool number_valid(const struct ocs_nccl_element *element, const char *key, long *value,
			 struct ocs_nccl_faults *faults)
{
	return ocs_nccl_check_number(element, key, 0, true, value, faults);
}

/* GB/s, a decimal fraction. */
static void speed_check(const struct ocs_nccl_element *element, const char *key,
			struct ocs_nccl_faults *faults)
{
	const char *text = ocs_nccl_attribute(element, key);
	char *end;
	float speed;

	if (!text) {
		if (!element->broken)
			FAULT(FATAL, "<graph> needs %s, in GB/s", key);
		return;
	}
	speed = strtof(text, &end);
	if (end == text || *end || !(speed > 0))
		FAULT(MISREAD, "%s=\"%.40s\" is no speed in GB/s: NCCL reads %g", key, text,
		      (double)speed);
}

static void type_check(const struct ocs_nccl_element *element, const char *key,
		       struct ocs_nccl_faults *faults)
{
	static const char *const types[] = { "LOC", "NVL", "NVB", "PIX", "PXB",
					     "P2C", "PXN", "PHB", "SYS" };
	const char *text = ocs_nccl_attribute(element, key);

	if (!text) {
		if (!element->broken)
			FAULT(FATAL,
			      "<graph> needs %s, one of LOC NVL NVB PIX PXB P2C PXN PHB SYS; NCCL "
			      "crashes without",
			      key);
		return;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(text, types[i], strlen(types[i])) == 0)
			return;
	FAULT(MISREAD,
	      "%s=\"%.40s\" is none of LOC NVL NVB PIX PXB P2C PXN PHB SYS: NCCL reads LOC", key,
	      text);
}

/* Are the two nets of the channel two? */
static bool nets_differ(const struct ocs_nccl_element *element)
{
	const char *first = NULL, *dev;

	for (int i = 0; i < element->nchildren; i++) {
		dev = ocs_nccl_attribute(element->children[i], "dev");
		if (!dev || strcmp(element->children[i]->name, "net") != 0)
			continue;
		if (first && strtol(first, NULL, 16) != strtol(dev, NULL, 16))
			return true;
		first = dev;
	}
	return false;
}

/* Nets and GPUs of one channel; GPUS is the number in the channel before, or -1. */
static int channel_check(const struct ocs_nccl_element *element, int gpus, long id,
			 struct ocs_nccl_faults *faults)
{
	static const char *const known[] = { "dev", "rank", NULL }, *const none[] = { NULL };
	int nets = 0, count = 0;

	ocs_nccl_check_attributes(element, none, 0, faults);
	for (int i = 0; i < element->nchildren; i++) {
		const struct ocs_nccl_element *member = element->children[i];
		bool gpu = strcmp(member->name, "gpu") == 0;
		const char *dev = ocs_nccl_attribute(member, "dev");

		ocs_nccl_check_attributes(member, known, 0, faults);
		ocs_nccl_check_number(member, "dev", 16, true, NULL, faults);
		ocs_nccl_check_number(member, "rank", 0, false, NULL, faults);
		nets += !gpu;
		count += gpu;
		for (int j = 0; gpu && dev && j < i; j++) {
			const char *other = ocs_nccl_attribute(element->children[j], "dev");

			if (strcmp(element->children[j]->name, "gpu") == 0 && other &&
			    strtol(other, NULL, 16) == strtol(dev, NULL, 16))
				ocs_nccl_fault(faults, member->line, OCS_NCCL_MISREAD,
					       "GPU %.40s twice in one channel", dev);
		}
	}
	if (nets > 2)
		FAULT(FATAL, "%d nets in a channel; NCCL has room for two, in and out", nets);
	if (nets == 1)
		FAULT(MISREAD,
		      "one net in a channel; give in and out, the same port twice if need be");
	if (count == 1 && nets == 2 && id == RING && nets_differ(element))
		FAULT(MISREAD, "one GPU between two nets: NCCL uses the first in both directions");
	if (count == 0)
		FAULT(MISREAD, "a channel without a GPU");
	if (gpus >= 0 && count != gpus && id == RING)
		FAULT(FATAL,
		      "%d GPUs in this channel, %d in the one before; every channel holds every "
		      "GPU of the node",
		      count, gpus);
	return count;
}

/* Returns the graph's id, or -1. */
static long graph_check(const struct ocs_nccl_element *element, struct ocs_nccl_faults *faults)
{
	static const char *const known[] = { "id",	     "pattern",	   "crossnic",
					     "nchannels",    "speedintra", "speedinter",
					     "latencyinter", "typeintra",  "typeinter",
					     "samechannels", NULL };
	long id, pattern, crossnic, channels;
	bool has_id = number_valid(element, "id", &id, faults);
	int gpus = -1;

	ocs_nccl_check_attributes(element, known, 0, faults);
	if (has_id && (id < 0 || id >= GRAPHS))
		FAULT(NOTE,
		      "NCCL has no graph %ld (0 ring, 1 tree, 2 collnet chain, 3 NVLS, 4 collnet "
		      "direct) and ignores it",
		      id);
	if (number_valid(element, "pattern", &pattern, faults) &&
	    (pattern < 1 || pattern > 6 || (has_id && id == RING && pattern != PATTERN_RING)))
		FAULT(MISREAD, "pattern %ld of graph %ld; a ring's is 4, others are 1 to 6",
		      pattern, id);
	if (number_valid(element, "crossnic", &crossnic, faults) && crossnic)
		FAULT(NOTE, "crossnic=\"%ld\": NCCL ignores this graph when NCCL_CROSS_NIC is 0",
		      crossnic);
	if (number_valid(element, "nchannels", &channels, faults) && channels != element->nchildren)
		FAULT(MISREAD, "nchannels is %ld, but the graph holds %d <channel>", channels,
		      element->nchildren);
	if (element->nchildren == 0)
		FAULT(NOTE, "a graph without channels: NCCL searches one itself");
	if (element->nchildren > CHANNELS_MAX)
		FAULT(FATAL, "%d channels; NCCL has room for %d", element->nchildren, CHANNELS_MAX);
	speed_check(element, "speedintra", faults);
	speed_check(element, "speedinter", faults);
	type_check(element, "typeintra", faults);
	type_check(element, "typeinter", faults);
	number_valid(element, "samechannels", NULL, faults);
	for (int i = 0; i < element->nchildren; i++)
		gpus = channel_check(element->children[i], gpus, id, faults);
	return has_id ? id : -1;
}

void ocs_nccl_check_graph(const struct ocs_nccl_element *root, struct ocs_nccl_faults *faults)
{
	static const char *const known[] = { "version", "name", NULL };
	bool seen[GRAPHS] = { false };

	for (int i = 0; i < root->nchildren; i++) {
		const struct ocs_nccl_element *element = root->children[i];
		long version;

		if (i > 0)
			FAULT(MISREAD, "a second <graphs>, which NCCL ignores");
		ocs_nccl_check_attributes(element, known, 0, faults);
		if (number_valid(element, "version", &version, faults) && version != 1)
			FAULT(FATAL, "version %ld; NCCL reads version=\"1\" only", version);
		if (element->nchildren == 0)
			FAULT(MISREAD, "<graphs> without a <graph> says nothing");
		for (int j = 0; j < element->nchildren; j++) {
			long id = graph_check(element->children[j], faults);

			if (id < 0 || id >= GRAPHS)
				continue;
			if (seen[id])
				ocs_nccl_fault(faults, element->children[j]->line, OCS_NCCL_MISREAD,
					       "graph %ld twice; NCCL mixes the two", id);
			seen[id] = true;
		}
	}
}
