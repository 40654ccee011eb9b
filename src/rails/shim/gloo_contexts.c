/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Contexts of Gloo: PyTorch makes one for each process group. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/mailbox.h"
#include "src/rails/shim/gloo_shim.h"

/* gloo::Context and gloo::transport::Context begin alike. */
struct ranks {
	void *table;
	int rank, size;
};

#define TRANSPORT_OFFSET 40 /* of transportContext_ in gloo::Context */

const char ocs_gloo_advice[] = "run the program with --ocs-phases=off";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gloo_context *_Atomic contexts; /* entries stay, their pointers change */

/* -- the gate ---------------------------------------------------------------- */

const struct gloo_context *ocs_gloo_context(const void *gloo, const void *transport)
{
	struct gloo_context *context = atomic_load(&contexts);

	if (!context || !ocs_gate_get())
		return NULL;
	pthread_mutex_lock(&lock);
	while (context && (gloo ? context->gloo != gloo : context->transport != transport))
		context = context->next;
	pthread_mutex_unlock(&lock);
	return context && context->group != OCS_GATE_FREE ? context : NULL;
}

static void number_set(struct gloo_store *store, int rank, int32_t world)
{
	ocs_gloo_store_set(store, "rank", rank, &world, sizeof(world));
}

static int32_t number_get(struct gloo_store *store, int rank)
{
	int32_t world = -1;

	ocs_gloo_store_get(store, "rank", rank, &world, sizeof(world));
	return world;
}

/* All members make contexts of the same members in the same order: a number that they share. */
static uint32_t identity_make(const int32_t *world, int size)
{
	uint64_t name = ocs_rails_group_name(world, (uint32_t)size, 0);
	uint32_t instance = 0;

	for (const struct gloo_context *other = atomic_load(&contexts); other; other = other->next)
		instance += other->size == size &&
			    !memcmp(other->world, world, (size_t)size * sizeof(*world));
	name = ocs_rails_group_name(world, (uint32_t)size, instance);
	return (uint32_t)(name ^ name >> 32);
}

/* The context of GLOO, whose members are known by what each one writes into STORE. */
static struct gloo_context *context_learn(struct ocs_gate *gate, struct ranks *gloo,
					  struct gloo_store *store)
{
	struct gloo_context *context = calloc(1, sizeof(*context));
	int32_t *world = calloc((size_t)gloo->size, sizeof(*world));

	if (!context || !world)
		ocs_gloo_throw("no memory");
	number_set(store, gloo->rank, ocs_gate_rank(gate));
	for (int i = 0; i < gloo->size; i++)
		world[i] = number_get(store, i);
	context->world = world;
	context->rank = gloo->rank;
	context->size = gloo->size;
	context->group = ocs_gate_group(gate, world, (size_t)gloo->size);
	if (context->group == OCS_GATE_ERROR)
		ocs_gloo_throw(ocs_gate_error());
	return context;
}

static void context_add(struct gloo_context *context, struct ranks *gloo)
{
	struct ranks *transport;

	memcpy(&transport, (const char *)gloo + TRANSPORT_OFFSET, sizeof(void *));
	if (!transport || transport->rank != gloo->rank || transport->size != gloo->size)
		ocs_gloo_throw("this version of Gloo cannot be gated; run the program with "
			       "--ocs-phases=off");
	pthread_mutex_lock(&lock);
	/* An older context that was at the same place is gone. */
	for (struct gloo_context *old = atomic_load(&contexts); old; old = old->next) {
		if (old->gloo == gloo)
			old->gloo = NULL;
		if (old->transport == transport)
			old->transport = NULL;
	}
	context->identity = identity_make(context->world, context->size);
	context->gloo = gloo;
	context->transport = transport;
	context->next = atomic_load(&contexts);
	atomic_store(&contexts, context);
	pthread_mutex_unlock(&lock);
}

void context_connect(struct ranks *gloo, struct gloo_store *store, void *device)
	GLOO_NAME(GLOO_CONNECT);

/* Connections are made at once between all members, as one operation of them. */
void context_connect(struct ranks *gloo, struct gloo_store *store, void *device)
{
	void (*real)(struct ranks *, struct gloo_store *, void *) = REAL(GLOO_CONNECT);
	struct ocs_gate *gate = ocs_gate_get();
	struct gloo_context *context;
	GLOO_PASS pass = { OCS_GATE_FREE, 0 };

	if (!gate || gloo->size < 2) {
		real(gloo, store, device);
		return;
	}
	context = context_learn(gate, gloo, store);
	ocs_gloo_enter(context->group, &pass);
	real(gloo, store, device);
	context_add(context, gloo);
}
