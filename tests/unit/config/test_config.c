/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What is read from each ocs.yaml in tests/data/config is what FILE.txt has beside it.
 * Those were printed by the tree of November 2026: sites have such files, and a digest
 * is compared with the one of another release. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define FOLDER TEST_SOURCE_DIR "/tests/data/config/"
#define FILES 6 /* that there are at least */

static void list_print(struct ocs_text *text, const char *key, char *const *names, size_t count)
{
	ocs_text_add(text, "%s:", key);
	for (size_t i = 0; i < count; i++)
		ocs_text_add(text, " [%s]", names[i]);
	ocs_text_add(text, "\n");
}

static const char *or_none(const char *value)
{
	return value ? value : "-";
}

static void settings_print(struct ocs_text *text, const struct ocs_config *config)
{
	ocs_text_add(text, "ocsd: %s %s %s %s %s %s %s %d\n", config->ocsd.socket,
		     or_none(config->ocsd.listen), config->ocsd.address, or_none(config->ocsd.key),
		     or_none(config->ocsd.metrics), config->ocsd.state, or_none(config->ocsd.user),
		     config->ocsd.audit_days);
	list_print(text, "admins", config->ocsd.admins, config->ocsd.nadmins);
	ocs_text_add(text, "limits: %d %d %d\n", config->limits.requests_per_second,
		     config->limits.burst, config->limits.connections);
	ocs_text_add(text, "timeouts: %d %d %d %d %d %d\n", config->timeouts.switch_ms,
		     config->timeouts.retry_ms, config->timeouts.poll_ms,
		     config->timeouts.prolog_ms, config->timeouts.ocsd_down_ms,
		     config->timeouts.dark_ms);
	ocs_text_add(text, "policies: %d %d %d %d %d %d\n", config->policies.requeue_limit,
		     (int)config->policies.circuit_failed, (int)config->policies.switch_failed,
		     config->policies.signal, config->policies.signal_batch,
		     config->policies.keep_cubes_whole);
	ocs_text_add(text, "nccl: %s %s %d\n", or_none(config->nccl.hwloc_xml),
		     or_none(config->nccl.management),
		     config->nccl.graph_file == OCS_GRAPH_FILE_ALWAYS);
	list_print(text, "env", config->nccl.env, config->nccl.nenv);
}

static void switches_print(struct ocs_text *text, const struct ocs_fabric *fabric)
{
	for (int i = 0; i < fabric->nswitches; i++) {
		const struct ocs_switch *sw = &fabric->switches[i];

		ocs_text_add(text, "switch %s: %s %s %s %s %s %s %d %d %d %.2f %.2f %d used, loops",
			     sw->name, sw->driver, or_none(sw->dialect), sw->address,
			     or_none(sw->credentials), or_none(sw->host_key),
			     or_none(sw->known_hosts), sw->size, sw->moves, sw->bidi,
			     sw->loss_budget, sw->loss_max, ocs_switch_used(fabric, i));
		for (int j = 0; j < sw->nloop_ports; j++)
			ocs_text_add(text, " %d", sw->loop_ports[j]);
		ocs_text_add(text, "\n");
	}
}

static void sections_print(struct ocs_text *text, const struct ocs_fabric *fabric)
{
	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *s = &fabric->sections[i];
		char address[OCS_ADDRESS_TEXT];

		ocs_text_add(text,
			     "section %s: kind %d edge %dx%dx%d tile %dx%dx%d cubes %d tpu %d "
			     "threading %d servers %d degree %d xpus %d directed %d forwarding %d "
			     "subnets %08" PRIx32 "/%d nodes %d+%d\n",
			     s->name, (int)s->kind, s->edge[0], s->edge[1], s->edge[2], s->tile[0],
			     s->tile[1], s->tile[2], s->ncubes, s->tpu, s->threading, s->nservers,
			     s->degree, s->server_xpus, s->directed, (int)s->forwarding, s->subnets,
			     s->subnets_prefix, s->first_node, s->nnodes);
		for (int server = 0; server < s->nservers; server++) {
			if (ocs_section_host_address(s, server, address) == 0)
				ocs_text_add(text, "  server %d forwards at %s\n", server, address);
			for (int k = 0; k < s->degree; k++)
				if (ocs_section_interface_address(s, server, k, address) >= 0)
					ocs_text_add(text, "  server %d interface %d: %s\n", server,
						     k, address);
		}
	}
}

/* Every node with its switch ports is in the digest. */
static char *config_print(const struct ocs_config *config)
{
	char digest[OCS_DIGEST_TEXT], *words = ocs_config_describe(config);
	struct ocs_text text = { 0 };

	ocs_fabric_digest(config->fabric, digest);
	ocs_text_add(&text, "digest %s of the text %016" PRIx64 "\n", digest, config->text_digest);
	settings_print(&text, config);
	switches_print(&text, config->fabric);
	sections_print(&text, config->fabric);
	ocs_text_add(&text, "%s", words);
	free(words);
	return ocs_text_take(&text);
}

static void reads_as_it_did(void **state)
{
	size_t wrong = 0;
	glob_t files;

	(void)state;
	assert_int_equal(glob(FOLDER "*.yaml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= FILES);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct ocs_error err = { 0 };
		size_t length;
		char *yaml = ocs_file_read(files.gl_pathv[i], 1 << 20, &length, &err);
		char *path = ocs_asprintf("%s.txt", files.gl_pathv[i]);
		char *wanted = ocs_file_read(path, 1 << 20, NULL, &err), *read;
		struct ocs_config *config;

		if (!yaml || !wanted)
			fail_msg("%s", err.text);
		config = ocs_config_parse(yaml, length, "ocs.yaml", &err);
		if (!config)
			fail_msg("%s: %s", files.gl_pathv[i], err.text);
		read = config_print(config);
		if (strcmp(read, wanted) != 0) {
			print_error("%s is not what is read:\n%s", path, read);
			wrong++;
		}
		free(read);
		ocs_config_destroy(config);
		free(wanted);
		free(path);
		free(yaml);
	}
	globfree(&files);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_as_it_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
