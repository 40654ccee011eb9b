/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the ranks of this node hear of faults. */

#include "src/rails/agent/agent.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/rails_log.h"
#include "src/util/text.h"

void agent_fault_tell(struct agent *agent, uint32_t rank, const char *text, size_t length)
{
	struct ocs_rails_word word = {
		.kind = OCS_RAILS_NOTE,
		.rank = rank,
		.count = (uint32_t)length,
		.error = OCS_RAILS_ERROR_AGENT,
	};

	for (uint32_t i = 0; i < agent->hello.count; i++)
		if (agent->ranks[i].state == LOCAL_HERE)
			agent_word_send(&agent->ranks[i], &word, text, length);
}

void agent_fault(struct agent *agent, const char *format, ...)
{
	uint32_t first = 0;
	va_list args;
	char *text;

	va_start(args, format);
	text = ocs_vasprintf(format, args);
	va_end(args);
	ocs_rails_log("node %u, step %u: %s", agent->hello.node, agent->hello.step, text);
	while (first < agent->hello.count && agent->ranks[first].state != LOCAL_HERE)
		first++;
	if (first < agent->hello.count)
		agent_fault_tell(agent, (uint32_t)agent->ranks[first].rank, text, strlen(text));
	free(text);
}
