/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLAN_GRAPH_LIBRARY_H
#define OCS_PLAN_GRAPH_LIBRARY_H

#include <igraph.h>

struct ocs_error;

/* What plans use of igraph.  It is loaded with the first plan, since it brings a dozen libraries
 * along, one of which makes every printf of the process slower. */
struct ocs_graph_library {
	__typeof__(igraph_average_path_length) *average_path_length;
	__typeof__(igraph_create) *create;
	__typeof__(igraph_destroy) *destroy;
	__typeof__(igraph_diameter) *diameter;
	__typeof__(igraph_error_handler_ignore) *error_handler_ignore;
	__typeof__(igraph_get_k_shortest_paths) *get_k_shortest_paths;
	__typeof__(igraph_is_connected) *is_connected;
	__typeof__(igraph_set_error_handler) *set_error_handler;
	__typeof__(igraph_simplify) *simplify;
	__typeof__(igraph_vector_int_destroy) *vector_int_destroy;
	__typeof__(igraph_vector_int_init) *vector_int_init;
	__typeof__(igraph_vector_int_list_destroy) *vector_int_list_destroy;
	__typeof__(igraph_vector_int_list_get_ptr) *vector_int_list_get_ptr;
	__typeof__(igraph_vector_int_list_init) *vector_int_list_init;
	__typeof__(igraph_vector_int_list_size) *vector_int_list_size;
	__typeof__(igraph_vector_int_size) *vector_int_size;
};

/* Loads igraph and fills LIBRARY.  Returns 0, or -1 with ERR. */
int ocs_graph_library_load(struct ocs_graph_library *library, struct ocs_error *err);

#endif
