/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/model/model.h"

double ocs_model_parameters(const struct ocs_model *model)
{
	double sum = 0;

	for (int i = 0; i < model->noperators; i++)
		sum += model->operators[i].parameters;
	return sum;
}

double ocs_model_active_parameters(const struct ocs_model *model)
{
	double sum = 0;

	for (int i = 0; i < model->noperators; i++) {
		const struct ocs_model_operator *op = &model->operators[i];

		sum += op->parameters - op->expert_parameters;
		sum += op->expert_flops / 2 / model->sequence;
	}
	return sum;
}

double ocs_model_dense_parameters(const struct ocs_model *model)
{
	double sum = 0;

	for (int i = 0; i < model->noperators; i++)
		if (model->operators[i].kind != OCS_MODEL_EMBEDDING)
			sum += model->operators[i].parameters;
	return sum;
}

double ocs_model_flops(const struct ocs_model *model)
{
	double sum = 0;

	for (int i = 0; i < model->noperators; i++)
		sum += model->operators[i].flops;
	return sum;
}

double ocs_model_samples(const struct ocs_model *model, int gpus)
{
	return model->step_batch ? model->step_batch : (double)model->batch * gpus;
}

double ocs_model_state_bytes(const struct ocs_model *model, double parameters)
{
	return parameters * (2 * model->precision + model->state);
}
