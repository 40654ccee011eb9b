/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plan/graph_library.h"

#include "ocs_config.h"
#include "src/util/library.h"

int ocs_graph_library_load(struct ocs_graph_library *library, struct ocs_error *err)
{
#define SYMBOL(name)                             \
	{                                        \
		"igraph_" #name, &library->name, \
	}
	const struct ocs_library_symbol symbols[] = {
		SYMBOL(average_path_length),
		SYMBOL(create),
		SYMBOL(destroy),
		SYMBOL(diameter),
		SYMBOL(error_handler_ignore),
		SYMBOL(get_k_shortest_paths),
		SYMBOL(is_connected),
		SYMBOL(set_error_handler),
		SYMBOL(simplify),
		SYMBOL(vector_int_destroy),
		SYMBOL(vector_int_init),
		SYMBOL(vector_int_list_destroy),
		SYMBOL(vector_int_list_get_ptr),
		SYMBOL(vector_int_list_init),
		SYMBOL(vector_int_list_size),
		SYMBOL(vector_int_size),
	};
#undef SYMBOL

	return ocs_library_load(IGRAPH_SONAME, symbols, sizeof(symbols) / sizeof(*symbols), err);
}
