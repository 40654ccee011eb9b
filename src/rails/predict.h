/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_PREDICT_H
#define OCS_RAILS_PREDICT_H

/* Which digit a stage will want next.  A step of a training job repeats itself: after the same phases
 * of the same lengths the same phase follows.  What followed is remembered with a confidence for the
 * last phases of a stage, many and few; the longest memory that is sure decides.  A wrong answer
 * costs a needless change, never more. */

#include <stdint.h>

struct ocs_rails_predict;

/* For STAGES stages.  Freed by ocs_rails_predict_destroy, which takes NULL, too. */
struct ocs_rails_predict *ocs_rails_predict_create(int stages);
void ocs_rails_predict_destroy(struct ocs_rails_predict *predict);

/* An operation that wants DIGIT in STAGE was served. */
void ocs_rails_predict_learn(struct ocs_rails_predict *predict, int stage, int digit);
/* A rank announces that the next operation in STAGE wants DIGIT. */
void ocs_rails_predict_wish(struct ocs_rails_predict *predict, int stage, int digit);
/* The digit that STAGE will want next, or -1: not known well enough. */
int ocs_rails_predict_next(const struct ocs_rails_predict *predict, int stage);

#endif
