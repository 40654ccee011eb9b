/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The circuits of a region and the one order about them that is under way. */

#include <stdlib.h>
#include <string.h>

#include "src/moe/control_state.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct ocs_moe_circuits *ocs_moe_control_circuits(const struct ocs_moe_control *c, bool making)
{
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(c->n);

	for (int k = 0; k < c->wires; k++) {
		const struct ocs_moe_standing *wire = &c->wire[k];

		if (wire->state == OCS_MOE_STANDS || (making && wire->state == OCS_MOE_MAKING))
			ocs_moe_circuits_add(circuits, wire->wire.a, wire->wire.b, 1);
	}
	return circuits;
}

static bool wire_same(const struct ocs_moe_wire *x, const struct ocs_moe_wire *y)
{
	return (x->a == y->a && x->a_port == y->a_port && x->b == y->b && x->b_port == y->b_port) ||
	       (x->a == y->b && x->a_port == y->b_port && x->b == y->a && x->b_port == y->a_port);
}

static bool wire_among(const struct ocs_moe_wire *wire, const struct ocs_moe_wire *list, int n)
{
	for (int k = 0; k < n; k++)
		if (wire_same(wire, &list[k]))
			return true;
	return false;
}

/* The wires that stand, those with a lease first: they are the last of their pair to be cut. */
static int wires_usable(struct ocs_moe_control *c)
{
	int found = 0;

	for (int leased = 1; leased >= 0; leased--)
		for (int k = 0; k < c->wires; k++)
			if (c->wire[k].state == OCS_MOE_STANDS &&
			    (c->wire[k].leases > 0) == (leased == 1))
				c->usable[found++] = c->wire[k].wire;
	return found;
}

int ocs_moe_control_wires(const struct ocs_moe_control *control, const struct ocs_moe_wire **wires)
{
	struct ocs_moe_control *c = (struct ocs_moe_control *)control;

	*wires = c->usable; /* scratch, whose contents no one else keeps */
	return wires_usable(c);
}

static void wire_add(struct ocs_moe_control *c, const struct ocs_moe_wire *wire,
		     enum ocs_moe_wire_state state)
{
	c->wire[c->wires++] = (struct ocs_moe_standing){ .wire = *wire, .state = state };
}

int ocs_moe_control_adopt(struct ocs_moe_control *c, const struct ocs_moe_wire *wires, int n,
			  struct ocs_error *err)
{
	struct ocs_moe_circuits *circuits;
	struct ocs_moe_wire *checked;
	int rc;

	if (c->order_open || c->flights)
		return ocs_error_set(
			err, OCS_USAGE, "region: circuits are adopted while %s; wait for its end",
			c->order_open ? "an exchange is under way" : "an all-to-all is in flight");
	circuits = ocs_moe_circuits_create(c->n);
	for (int k = 0; k < n; k++) {
		const struct ocs_moe_wire *w = &wires[k];

		if (w->a >= 0 && w->b >= 0 && w->a < c->n && w->b < c->n && w->a != w->b)
			ocs_moe_circuits_add(circuits, w->a, w->b, 1);
	}
	checked = ocs_calloc((size_t)c->n * c->numa.ports + 1, sizeof(*checked));
	rc = ocs_moe_wires_make(circuits, &c->numa, wires, n, checked, err) < 0 ? -1 : 0;
	if (!rc) {
		c->wires = 0;
		for (int k = 0; k < n; k++)
			wire_add(c, &wires[k], OCS_MOE_STANDS);
	}
	free(checked);
	ocs_moe_circuits_destroy(circuits);
	return rc;
}

/* What has to be cut and made for WANT; -1: a lease is on one of these. */
static int order_fill(struct ocs_moe_control *c, const struct ocs_moe_wire *want, int nwant)
{
	int nuse = wires_usable(c);

	c->order.ncut = c->order.nmake = 0;
	for (int k = 0; k < c->wires; k++) {
		if (c->wire[k].state != OCS_MOE_STANDS || wire_among(&c->wire[k].wire, want, nwant))
			continue;
		if (c->wire[k].leases)
			return -1;
		c->cut[c->order.ncut++] = c->wire[k].wire;
	}
	for (int k = 0; k < nwant; k++)
		if (!wire_among(&want[k], c->usable, nuse))
			c->make[c->order.nmake++] = want[k];
	return 0;
}

bool ocs_moe_control_exchange(struct ocs_moe_control *c, const struct ocs_moe_circuits *circuits,
			      double now)
{
	struct ocs_moe_wire *want = ocs_calloc((size_t)c->n * c->numa.ports + 1, sizeof(*want));
	int nuse = wires_usable(c), nwant, most, rc;
	struct ocs_error err;

	nwant = ocs_moe_wires_make(circuits, &c->numa, c->usable, nuse, want, &err);
	rc = nwant < 0 ? -1 : order_fill(c, want, nwant);
	if (rc < 0)
		c->count.leased++;
	if (rc < 0 || !(c->order.ncut || c->order.nmake)) {
		free(want);
		return false;
	}
	for (int k = 0; k < c->wires; k++)
		if (!wire_among(&c->wire[k].wire, want, nwant))
			c->wire[k].state = OCS_MOE_CUTTING;
	for (int k = 0; k < c->order.nmake; k++)
		wire_add(c, &c->make[k], OCS_MOE_MAKING);
	free(want);
	c->order.seq++;
	c->order.cut = c->cut;
	c->order.make = c->make;
	c->order_open = true;
	c->order_given = false;
	most = c->order.ncut > c->order.nmake ? c->order.ncut : c->order.nmake;
	c->order_end = now + c->setup.first + (most - 1) * c->setup.each;
	c->order_deadline = c->order_end + c->setup.timeout;
	c->count.exchanges++;
	c->count.cut += c->order.ncut;
	c->count.made += c->order.nmake;
	return true;
}

const struct ocs_moe_order *ocs_moe_control_order(struct ocs_moe_control *c)
{
	if (!c->order_open || c->order_given)
		return NULL;
	c->order_given = true;
	return &c->order;
}

/* Of the order's wires those in STAND stand, and the others are not there. */
static void order_close(struct ocs_moe_control *c, const struct ocs_moe_wire *stand, int n)
{
	int kept = 0;

	for (int k = 0; k < c->wires; k++) {
		struct ocs_moe_standing wire = c->wire[k];

		if (wire.state != OCS_MOE_STANDS && !wire_among(&wire.wire, stand, n))
			continue;
		wire.state = OCS_MOE_STANDS;
		c->wire[kept++] = wire;
	}
	c->wires = kept;
	c->order_open = false;
	ocs_moe_control_release(c);
}

/* No one knows what becomes of this NIC. */
static void port_break(struct ocs_moe_control *c, int server, int port)
{
	int *node = &c->numa.node[(size_t)server * c->numa.ports + port];

	if (*node >= 0)
		c->region->ports[server]--;
	*node = -1;
}

static void order_break(struct ocs_moe_control *c)
{
	for (int k = 0; k < c->wires; k++) {
		if (c->wire[k].state == OCS_MOE_STANDS)
			continue;
		port_break(c, c->wire[k].wire.a, c->wire[k].wire.a_port);
		port_break(c, c->wire[k].wire.b, c->wire[k].wire.b_port);
	}
	order_close(c, NULL, 0);
}

static bool order_is(struct ocs_moe_control *c, long seq)
{
	if (c->order_open && c->order_given && seq == c->order.seq)
		return true;
	c->count.stray++;
	return false;
}

void ocs_moe_control_done(struct ocs_moe_control *c, long seq, double now)
{
	(void)now;
	if (order_is(c, seq))
		order_close(c, c->make, c->order.nmake);
}

void ocs_moe_control_failed(struct ocs_moe_control *c, long seq, const struct ocs_moe_wire *stand,
			    int n, double now)
{
	(void)now;
	if (!order_is(c, seq))
		return;
	c->count.failed++;
	if (stand)
		order_close(c, stand, n);
	else
		order_break(c);
}

void ocs_moe_control_tick(struct ocs_moe_control *c, double now)
{
	if (!c->order_open || now <= c->order_deadline)
		return;
	c->count.timeouts++;
	c->frozen = true;
	order_break(c);
}
