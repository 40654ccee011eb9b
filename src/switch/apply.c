/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A change, whatever the protocol: read, diff, delete, add, read back, compare.
 * Where the switch refuses a batch, the batch is divided until the patches that it
 * refuses stand alone, so that the others are done. */

#include <stdlib.h>
#include <string.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Denials, without one command that was obeyed, after which it is the switch that
 * refuses and not its ports; one that names a port weighs less. */
#define DENIALS_MAX 64
#define DENIAL_NAMELESS 4

int ocs_switch_names_port(const char *text, const struct ocs_patch *patches, size_t count)
{
	while (*text) {
		size_t digits = strspn(text, "0123456789");
		long port = digits && digits < 7 ? strtol(text, NULL, 10) : 0;

		for (size_t i = 0; port && i < count; i++)
			if (patches[i].in == port || patches[i].out == port)
				return (int)port;
		text += digits ? digits : 1;
	}
	return 0;
}

struct change {
	struct ocs_switch_connection *connection;
	struct ocs_table expected; /* follows what was done */
	size_t obeyed;		   /* commands */
	size_t denials;		   /* weight, until the first that was obeyed */
	bool port_to_blame;	   /* a reply said that it was a port */
	bool replaces;		   /* the switch does, at the ports of a new patch */
	struct ocs_error why;	   /* of the first patch that was refused */
};

typedef int (*operation)(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
			 size_t count, size_t *used, struct ocs_error *err);

/* One patch that the switch will not have, alone. */
static void note_refusal(struct change *change, const struct ocs_patch *patch,
			 const struct ocs_error *err)
{
	struct ocs_switch_connection *connection = change->connection;

	if (!connection->nrefusals && err)
		change->why = *err;
	if (connection->blame == OCS_BLAME_PORT)
		change->port_to_blame = true;
	connection->refusals = ocs_realloc(
		connection->refusals, (connection->nrefusals + 1) * sizeof(*connection->refusals));
	connection->refusals[connection->nrefusals++] =
		(struct ocs_refusal){ *patch, connection->blamed_port };
}

static bool too_many(struct change *change)
{
	change->denials += change->connection->blamed_port ? 1 : DENIAL_NAMELESS;
	return change->denials >= DENIALS_MAX;
}

static int batch_run(struct change *change, bool add, const struct ocs_patch *patches, size_t count,
		     struct ocs_error *err);

/* A batch that was refused, in two parts: the patch whose port the reply names, alone
 * (it may name it for another reason), and the rest; or two halves. */
static int batch_divide(struct change *change, bool add, const struct ocs_patch *patches,
			size_t count, struct ocs_error *err)
{
	int port = change->connection->blamed_port, rc;
	struct ocs_patch *sorted = ocs_calloc(count, sizeof(*sorted));
	size_t first = count / 2;

	memcpy(sorted, patches, count * sizeof(*sorted));
	for (size_t i = 0; i < count; i++) {
		if (!port || (patches[i].in != port && patches[i].out != port))
			continue;
		sorted[i] = patches[0];
		sorted[0] = patches[i];
		first = 1;
		break;
	}
	rc = batch_run(change, add, sorted, first, err);
	if (rc == OCS_SWITCH_OK)
		rc = batch_run(change, add, sorted + first, count - first, err);
	free(sorted);
	return rc;
}

/* PATCH was made (or is gone).  What a new one replaces it replaces at both of its ends. */
static void patch_expect(struct change *change, bool add, const struct ocs_patch *patch)
{
	struct ocs_table *table = &change->expected;

	for (int in = 1; add && change->replaces && in <= table->size; in++)
		if (table->out[in] == patch->out)
			table->out[in] = 0;
	table->out[patch->in] = add ? patch->out : 0;
}

static int batch_run(struct change *change, bool add, const struct ocs_patch *patches, size_t count,
		     struct ocs_error *err)
{
	const struct ocs_switch_driver *driver = change->connection->driver;
	operation operate = add ? driver->add : driver->remove;

	while (count) {
		size_t used = 0;
		int rc;

		change->connection->blame = OCS_BLAME_UNKNOWN;
		change->connection->blamed_port = 0;
		rc = operate(change->connection, patches, count, &used, err);
		if (rc == OCS_SWITCH_OK) {
			change->obeyed++;
			for (size_t i = 0; i < used; i++)
				patch_expect(change, add, &patches[i]);
		} else if (rc != OCS_SWITCH_DENIED) {
			return rc;
		} else if (change->connection->blame == OCS_BLAME_SWITCH ||
			   (!change->obeyed && too_many(change))) {
			return OCS_SWITCH_REFUSED;
		} else if (used <= 1) {
			note_refusal(change, patches, err);
			used = 1;
		} else {
			rc = batch_divide(change, add, patches, used, err);
			if (rc != OCS_SWITCH_OK)
				return rc;
		}
		patches += used;
		count -= used;
	}
	return OCS_SWITCH_OK;
}

/* After a refused delete: only patches whose ports are free may be made. */
static size_t diff_possible(const struct change *change, const struct ocs_switch_diff *diff,
			    struct ocs_patch *patches)
{
	const struct ocs_table *table = &change->expected;
	size_t count = 0;

	for (size_t i = 0; i < diff->nadd; i++) {
		bool free_ports = !table->out[diff->add[i].in];

		for (int in = 1; free_ports && in <= table->size; in++)
			free_ports = table->out[in] != diff->add[i].out;
		if (free_ports)
			patches[count++] = diff->add[i];
	}
	return count;
}

/* Where a new patch takes the place of those on its ports, these need no command: they go to the
 * end of the removals, beyond nremove.  Returns their count. */
static size_t replaced_defer(struct ocs_switch_diff *diff)
{
	size_t kept = 0, count = diff->nremove;

	for (size_t i = 0; i < count; i++) {
		struct ocs_patch patch = diff->remove[i];
		bool replaced = false;

		for (size_t k = 0; k < diff->nadd && !replaced; k++)
			replaced = diff->add[k].in == patch.in || diff->add[k].out == patch.out;
		if (replaced)
			continue;
		diff->remove[i] = diff->remove[kept];
		diff->remove[kept++] = patch;
	}
	diff->nremove = kept;
	return count - kept;
}

/* Of the COUNT removals that were to be replaced: those whose new patches were refused are deleted. */
static int replaced_finish(struct change *change, struct ocs_patch *patches, size_t count,
			   struct ocs_error *err)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		if (change->expected.out[patches[i].in] == patches[i].out)
			patches[left++] = patches[i];
	return left ? batch_run(change, false, patches, left, err) : OCS_SWITCH_OK;
}

static int change_switch(struct change *change, struct ocs_switch_diff *diff, struct ocs_error *err)
{
	const struct ocs_switch *description = change->connection->description;
	size_t deferred = 0;
	int rc;

	change->replaces = description->moves || description->replace;
	if (change->replaces)
		deferred = replaced_defer(diff);
	rc = batch_run(change, false, diff->remove, diff->nremove, err);

	if (rc == OCS_SWITCH_OK && change->connection->nrefusals && !change->replaces) {
		struct ocs_patch *patches = ocs_calloc(diff->nadd + 1, sizeof(*patches));

		rc = batch_run(change, true, patches, diff_possible(change, diff, patches), err);
		free(patches);
	} else if (rc == OCS_SWITCH_OK) {
		rc = batch_run(change, true, diff->add, diff->nadd, err);
	}
	if (rc == OCS_SWITCH_OK && deferred)
		rc = replaced_finish(change, diff->remove + diff->nremove, deferred, err);
	if (rc != OCS_SWITCH_OK || !change->connection->nrefusals)
		return rc;
	if (err)
		*err = change->why;
	/* Nothing went through, and no reply says that it is for the ports. */
	return change->obeyed || change->port_to_blame ? OCS_SWITCH_DENIED : OCS_SWITCH_REFUSED;
}

/* Names the first entry of ACTUAL that is not what EXPECTED says. */
static int tables_compare(const struct ocs_table *expected, const struct ocs_table *actual,
			  struct ocs_error *err)
{
	int differences = 0, first = 0;

	for (int in = 1; in <= expected->size; in++) {
		if (expected->out[in] == actual->out[in])
			continue;
		if (!differences++)
			first = in;
	}
	if (!differences)
		return OCS_SWITCH_OK;
	ocs_error_set(
		err, OCS_ERROR,
		"the read-back differs in %d of %d entries: ingress %d has egress %d instead of %d (0: none)",
		differences, expected->size, first, actual->out[first], expected->out[first]);
	return OCS_SWITCH_UNKNOWN;
}

/* TABLE: as read before; becomes the table as read last, or empty. */
static int change_and_verify(struct ocs_switch_connection *connection, struct ocs_switch_diff *diff,
			     struct ocs_table *table, struct ocs_error *err)
{
	struct change change = { .connection = connection, .expected = *table };
	struct ocs_error why = { 0 };
	int rc, seen;

	rc = change_switch(&change, diff, err);
	table->out = NULL;
	table->size = 0;
	seen = connection->fd < 0 ? OCS_SWITCH_UNKNOWN :
				    ocs_switch_read_table(connection, table, &why);
	if (rc == OCS_SWITCH_OK || rc == OCS_SWITCH_DENIED) {
		if (seen == OCS_SWITCH_OK)
			seen = tables_compare(&change.expected, table, &why);
		if (seen != OCS_SWITCH_OK) {
			rc = OCS_SWITCH_UNKNOWN;
			ocs_error_set(err, why.code, "%s", why.text);
		}
	}
	ocs_table_free(&change.expected);
	return rc;
}

/* FRESH: the table is read first, whatever is known. */
static int patches_apply(struct ocs_switch_connection *connection, bool fresh,
			 const struct ocs_patch *remove, size_t nremove,
			 const struct ocs_patch *add, size_t nadd, struct ocs_table *after,
			 struct ocs_error *err)
{
	struct ocs_table table = { 0 };
	struct ocs_switch_diff diff;
	int rc = OCS_SWITCH_OK;

	connection->nrefusals = 0;
	fresh |= !connection->known.out || connection->fd < 0;
	if (fresh)
		rc = ocs_switch_read_table(connection, &table, err);
	else
		ocs_table_copy(&table, &connection->known);
	if (rc == OCS_SWITCH_OK) {
		if (ocs_switch_diff(&table, remove, nremove, add, nadd, &diff, err)) {
			rc = OCS_SWITCH_REJECTED;
			ocs_table_free(&connection->known);
		} else {
			/* The table just read already is the full read-back if
			 * nothing is to be done. */
			if (diff.nremove || diff.nadd || !fresh)
				rc = change_and_verify(connection, &diff, &table, err);
			ocs_switch_diff_free(&diff);
		}
	}
	if (rc != OCS_SWITCH_OK)
		ocs_table_free(&connection->known);
	if (after)
		*after = table;
	else
		ocs_table_free(&table);
	return ocs_switch_fail(connection, rc, err);
}

int ocs_switch_apply(struct ocs_switch_connection *connection, const struct ocs_patch *remove,
		     size_t nremove, const struct ocs_patch *add, size_t nadd,
		     struct ocs_table *after, struct ocs_error *err)
{
	return patches_apply(connection, true, remove, nremove, add, nadd, after, err);
}

int ocs_switch_change(struct ocs_switch_connection *connection, const struct ocs_patch *remove,
		      size_t nremove, const struct ocs_patch *add, size_t nadd,
		      struct ocs_table *after, struct ocs_error *err)
{
	return patches_apply(connection, false, remove, nremove, add, nadd, after, err);
}
