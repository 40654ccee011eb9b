/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TESTS_UNIT_SCHEDULER_CONTROLLER_PEER_H
#define OCS_TESTS_UNIT_SCHEDULER_CONTROLLER_PEER_H

/* A peer that plays ocsd for the tests of src/scheduler, and a fabric of two
 * 4x4x4 cubes (n0 to n31) and six direct servers (d0 to d5).  Everything fails the
 * running test rather than return an error. */

#include "src/scheduler/scheduler.h"

struct json_object;

/* Setups: with the fabric open; with the link up as well.  And the teardown. */
int start(void **state);
int start_joined(void **state);
int finish(void **state);

/* The connection: waits for the next one; ends it; with MEMBERS as the answer to
 * the subscription. */
void peer_accept(void);
void peer_hang_up(void);
void peer_join(const char *members);
/* The next request OP (put it); pictures and signs of life on the way are answered. */
struct json_object *peer_hear(const char *op);
void peer_answer(struct json_object *request, const char *members);
/* Hears OP and says ok. */
void peer_confirm(const char *op);
void peer_say(const char *text);
const char *text_in(struct json_object *object, const char *key);

/* Waits until CONDITION holds. */
void until(bool (*condition)(void));
bool is_up(void);
bool is_down(void);

struct ocs_controller_request ask(uint32_t job, const char *partition, const char *extra);
void mark(uint64_t *usable, int first, int count);
/* All nodes are usable. */
int choose(const struct ocs_controller_request *request, enum ocs_controller_mode mode, int *chosen,
	   bool *help, struct ocs_error *err);
/* Starts JOB on some of the 16 nodes of CUBE (or of the first). */
struct ocs_controller_allocation *begin_in(uint32_t job, const char *shape, int cube);
struct ocs_controller_allocation *begin(uint32_t job, const char *shape);
/* 1: JOB has an allocation, 2: one that has ended, 0: none. */
int held(uint32_t job);

#endif
