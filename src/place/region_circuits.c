/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/region_circuits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/hash.h"
#include "src/util/text.h"

void ocs_region_circuits_free(struct ocs_region_circuits *circuits)
{
	free(circuits->items);
	memset(circuits, 0, sizeof(*circuits));
}

void ocs_region_circuits_add(struct ocs_region_circuits *circuits, int a, int a_nic, int b,
			     int b_nic)
{
	if ((circuits->count & (circuits->count + 1)) == 0)
		circuits->items = ocs_realloc(circuits->items,
					      (circuits->count + 1) * 2 * sizeof(*circuits->items));
	circuits->items[circuits->count++] = (struct ocs_region_circuit){ a, a_nic, b, b_nic };
}

static int circuits_compare(const void *left, const void *right)
{
	const struct ocs_region_circuit *one = left, *other = right;

	if (one->a != other->a)
		return one->a < other->a ? -1 : 1;
	return one->a_nic < other->a_nic ? -1 : one->a_nic > other->a_nic;
}

/* Server S and NIC of it exist, and the NIC is not USED; from now on it is. */
static int end_take(int server, int nic, int servers, int nics, bool *used, struct ocs_error *err)
{
	if (server < 0 || server >= servers || nic < 0 || nic >= nics)
		return ocs_error_set(
			err, OCS_USAGE,
			"the group has the servers 0 to %d with the optical NICs 0 to %d, no NIC %d of server %d",
			servers - 1, nics - 1, nic, server);
	if (used[server * nics + nic])
		return ocs_error_set(err, OCS_USAGE, "NIC %d of server %d stands twice", nic,
				     server);
	used[server * nics + nic] = true;
	return 0;
}

int ocs_region_circuits_check(struct ocs_region_circuits *circuits, int servers, int nics,
			      struct ocs_error *err)
{
	bool *used = ocs_calloc((size_t)servers * (size_t)nics + 1, sizeof(*used));
	int rc = 0;

	for (size_t i = 0; i < circuits->count && rc == 0; i++) {
		struct ocs_region_circuit *one = &circuits->items[i];

		if (one->a == one->b)
			rc = ocs_error_set(err, OCS_USAGE, "server %d is joined with itself",
					   one->a);
		else if (end_take(one->a, one->a_nic, servers, nics, used, err) < 0 ||
			 end_take(one->b, one->b_nic, servers, nics, used, err) < 0)
			rc = -1;
		else if (one->a > one->b)
			*one = (struct ocs_region_circuit){ one->b, one->b_nic, one->a,
							    one->a_nic };
	}
	free(used);
	if (rc == 0 && circuits->count)
		qsort(circuits->items, circuits->count, sizeof(*circuits->items), circuits_compare);
	return rc;
}

/* NIC i of all servers follows round i of a tournament.  With an odd number of servers one has no
 * partner in each round: the servers of neighbouring rounds that have none are joined. */
void ocs_region_circuits_balanced(int servers, int nics, struct ocs_region_circuits *circuits)
{
	int even = servers + servers % 2, rounds = even - 1, lone = -1, lone_nic = 0;

	memset(circuits, 0, sizeof(*circuits));
	for (int nic = 0; servers > 1 && nic < nics; nic++) {
		int round = nic % rounds;

		for (int i = 0; i < even / 2; i++) {
			int a = i ? (round + i) % rounds : even - 1;
			int b = (round + rounds - i) % rounds;

			if (a < servers && b < servers) {
				ocs_region_circuits_add(circuits, a, nic, b, nic);
				continue;
			}
			if (lone < 0 || lone == b) {
				lone = b;
				lone_nic = nic;
				continue;
			}
			ocs_region_circuits_add(circuits, lone, lone_nic, b, nic);
			lone = -1;
		}
	}
	ocs_region_circuits_check(circuits, servers, nics, NULL);
}

char *ocs_region_circuits_format(const struct ocs_region_circuits *circuits)
{
	struct ocs_text text = { 0 };

	for (size_t i = 0; i < circuits->count; i++) {
		const struct ocs_region_circuit *one = &circuits->items[i];

		ocs_text_add(&text, "%s%d.%d-%d.%d", i ? "," : "", one->a, one->a_nic, one->b,
			     one->b_nic);
	}
	return text.data ? ocs_text_take(&text) : ocs_strdup("");
}

int ocs_region_circuits_parse(const char *text, size_t length, int servers, int nics,
			      struct ocs_region_circuits *circuits, struct ocs_error *err)
{
	char *copy = ocs_asprintf("%.*s", (int)length, text), *save = NULL;
	int rc = 0;

	memset(circuits, 0, sizeof(*circuits));
	for (char *word = strtok_r(copy, ",", &save); word && rc == 0;
	     word = strtok_r(NULL, ",", &save)) {
		int a, a_nic, b, b_nic, used = 0;

		if (sscanf(word, "%9d.%9d-%9d.%9d%n", &a, &a_nic, &b, &b_nic, &used) != 4 ||
		    word[used])
			rc = ocs_error_set(err, OCS_USAGE,
					   "\"%.40s\" is not a circuit such as 0.0-1.2", word);
		else
			ocs_region_circuits_add(circuits, a, a_nic, b, b_nic);
	}
	free(copy);
	if (rc == 0)
		rc = ocs_region_circuits_check(circuits, servers, nics, err);
	if (rc < 0)
		ocs_region_circuits_free(circuits);
	return rc;
}

void ocs_region_circuits_digest(const struct ocs_region_circuits *circuits,
				char digest[OCS_REGION_DIGEST])
{
	uint64_t hash = OCS_HASH_START;

	if (circuits->count)
		hash = ocs_hash(hash, circuits->items, circuits->count * sizeof(*circuits->items));
	snprintf(digest, OCS_REGION_DIGEST, "%016" PRIx64, hash);
}
