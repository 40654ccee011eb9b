/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What would fit instead of a shape that waits.  The scheduling path only notes what it
 * saw; a thread that holds no lock tries other shapes on that. */

#include "src/advice/nearest_shape.h"
#include "src/scheduler/state.h"
#include "src/util/net.h"
#include "src/util/hash.h"
#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

#define QUESTIONS 64	  /* waiting for an answer; more are asked at the next test */
#define SPEND_NS 20000000 /* no more answers are begun then: the thread has more to do */

struct ocs_question {
	uint32_t job;
	uint64_t seen;
	struct ocs_shape shape;
	const struct ocs_section *section;
	struct ocs_occupancy *occupancy;
	struct ocs_question *next;
};

static uint64_t mix_words(uint64_t hash, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/* Stands for a shape and what is free; never 0. */
static uint64_t seen_of(const struct ocs_shape *shape, const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *section = occupancy->section;
	char extents[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];
	size_t cubes = (size_t)section->ncubes;
	uint64_t hash = OCS_HASH_START;

	ocs_shape_format(shape, extents);
	ocs_shape_conn_format(shape, conn);
	hash = ocs_hash(hash, extents, strlen(extents));
	hash = ocs_hash(hash, conn, strlen(conn));
	hash = ocs_hash(hash, (char[2]){ shape->no_rotate, shape->no_fold }, 2);
	hash = mix_words(hash, occupancy->free, cubes * (size_t)section->words);
	if (occupancy->any_blocked)
		hash = mix_words(hash, occupancy->blocked,
				 cubes * 6 * (size_t)occupancy->face_words);
	return hash ? hash : 1;
}

static void question_free(struct ocs_question *question)
{
	ocs_occupancy_destroy(question->occupancy);
	free(question);
}

void ocs_near_ask(uint32_t job, const struct ocs_shape *shape,
		  const struct ocs_occupancy *occupancy)
{
	struct ocs_waiting *waiting = ocs_waiting_find(job, true);
	uint64_t seen = seen_of(shape, occupancy);
	struct ocs_question **at, *question;
	int count = 0;

	if (waiting->near_seen == seen)
		return;
	for (at = &ocs_state.questions; *at && (*at)->job != job; at = &(*at)->next)
		count++;
	if (!*at) {
		if (count >= QUESTIONS)
			return;
		*at = ocs_calloc(1, sizeof(**at));
		(*at)->occupancy = ocs_occupancy_create(occupancy->section);
	}
	question = *at;
	if (question->section && question->section != occupancy->section) {
		ocs_occupancy_destroy(question->occupancy);
		question->occupancy = ocs_occupancy_create(occupancy->section);
	}
	question->job = job;
	question->seen = waiting->near_seen = seen;
	question->shape = *shape;
	question->section = occupancy->section;
	ocs_occupancy_copy(question->occupancy, occupancy);
}

void ocs_near_drop(uint32_t job)
{
	struct ocs_waiting *waiting = ocs_waiting_find(job, false);

	if (!waiting)
		return;
	waiting->near_seen = 0;
	free(waiting->near);
	waiting->near = NULL;
}

void ocs_near_clear_all(void)
{
	while (ocs_state.questions) {
		struct ocs_question *question = ocs_state.questions;

		ocs_state.questions = question->next;
		question_free(question);
	}
}

/* TEXT (taken over) is the answer, unless there is a newer question by now. */
static void question_answer(const struct ocs_question *question, char *text)
{
	struct ocs_waiting *waiting = ocs_waiting_find(question->job, false);

	if (!waiting || waiting->near_seen != question->seen ||
	    (waiting->near && !strcmp(waiting->near, text))) {
		free(text);
		return;
	}
	free(waiting->near);
	waiting->near = text;
	if (waiting->reason)
		ocs_waiting_push(waiting);
}

void ocs_controller_near(void)
{
	struct ocs_state *s = &ocs_state;
	int64_t began = ocs_now_ns();

	do {
		struct ocs_section_state *section;
		struct ocs_question *question;
		char *text;

		pthread_mutex_lock(&s->lock);
		question = s->questions;
		if (question)
			s->questions = question->next;
		pthread_mutex_unlock(&s->lock);
		if (!question)
			return;
		section = &s->sections[question->section->index];
		if (!section->near)
			section->near = ocs_placer_create(s->fabric, question->section);
		text = ocs_nearest_shapes_text(section->near, question->occupancy, &question->shape,
					       "; would fit now: ");
		pthread_mutex_lock(&s->lock);
		question_answer(question, text);
		pthread_mutex_unlock(&s->lock);
		question_free(question);
	} while (ocs_now_ns() - began < SPEND_NS);
}
