/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The entry points of a topology plugin in the signatures of every release.
 * What topology/ocs does itself it has in static functions
 *   void ocs_topology_build(void);
 *   int ocs_topology_eval(topology_eval_t *);
 *   bool ocs_topology_get(topology_data_t, void *, int *rc)   (true: answered)
 *   void ocs_topology_report_free(void *), int ..._pack(void *, buf_t *, uint16_t),
 *   int ..._unpack(void **, buf_t *, uint16_t),
 *   int ..._print(void *, char *names, char **out);
 * all else is passed on.  Included once, by that plugin. */

#if OCS_SLURM(25, 5)
#define OCS_CTX_ONLY topology_ctx_t *context
#define OCS_CTX_ONLY_PASS context
#define OCS_CTX , void *context
#define OCS_CTX_PASS , context
#define OCS_PRINT_UNIT , char *unit
OCS_EXPORT const bool supports_exclusive_topo = false;
#else
#define OCS_CTX_ONLY void
#define OCS_CTX_ONLY_PASS
#define OCS_CTX
#define OCS_CTX_PASS
#define OCS_PRINT_UNIT
#endif

#if OCS_SLURM(25, 11)
#define OCS_INFO(what) topology_p_topoinfo_##what
#else
#define OCS_INFO(what) topology_p_topology_##what
#endif

OCS_NEXT(int, topology_p_build_config, (OCS_CTX_ONLY))
OCS_EXPORT int topology_p_build_config(OCS_CTX_ONLY)
{
	int rc = SLURM_SUCCESS;

	if (ocs_next_topology_p_build_config())
		rc = ocs_next_topology_p_build_config()(OCS_CTX_ONLY_PASS);
	ocs_topology_build();
	return rc;
}

OCS_NEXT(int, topology_p_eval_nodes, (topology_eval_t * eval))
OCS_EXPORT int topology_p_eval_nodes(topology_eval_t *eval)
{
	int rc = ocs_topology_eval(eval);

	if (rc == SLURM_SUCCESS)
		rc = ocs_next_topology_p_eval_nodes() ? ocs_next_topology_p_eval_nodes()(eval) :
							SLURM_ERROR;
	return rc;
}

OCS_NEXT(int, topology_p_get, (topology_data_t type, void *data OCS_CTX))
OCS_EXPORT int topology_p_get(topology_data_t type, void *data OCS_CTX)
{
	int rc = SLURM_SUCCESS;

	if (ocs_topology_get(type, data, &rc))
		return rc;
	return ocs_next_topology_p_get() ? ocs_next_topology_p_get()(type, data OCS_CTX_PASS) :
					   SLURM_SUCCESS;
}

OCS_EXPORT int OCS_INFO(free)(void *report)
{
	ocs_topology_report_free(report);
	return SLURM_SUCCESS;
}

OCS_EXPORT int OCS_INFO(pack)(void *report, buf_t *buffer, uint16_t version)
{
	return ocs_topology_report_pack(report, buffer, version);
}

OCS_EXPORT int OCS_INFO(unpack)(void **report, buf_t *buffer, uint16_t version)
{
	return ocs_topology_report_unpack(report, buffer, version);
}

OCS_EXPORT int OCS_INFO(print)(void *report, char *names OCS_PRINT_UNIT, char **out)
{
#if OCS_SLURM(25, 5)
	/* "unit=NAME" asks for one section, cube or switch. */
	if (!names)
		names = unit;
#else
	/* Here "node=NAME" and "unit=NAME" come as they were typed. */
	char *value = names ? strchr(names, '=') : NULL;

	if (value)
		names = value + 1;
#endif
	return ocs_topology_report_print(report, names, out);
}

OCS_FORWARD(int, topology_p_whole_topo, (bitstr_t * nodes OCS_CTX), (nodes OCS_CTX_PASS),
	    SLURM_SUCCESS)
OCS_FORWARD(bitstr_t *, topology_p_get_bitmap, (char *name OCS_CTX), (name OCS_CTX_PASS), NULL)
OCS_FORWARD(bool, topology_p_generate_node_ranking, (OCS_CTX_ONLY), (OCS_CTX_ONLY_PASS), false)
OCS_FORWARD(int, topology_p_get_node_addr, (char *node, char **address, char **pattern OCS_CTX),
	    (node, address, pattern OCS_CTX_PASS), SLURM_ERROR)
OCS_FORWARD(int, topology_p_split_hostlist,
	    (hostlist_t * list, hostlist_t ***parts, int *count, uint16_t width OCS_CTX),
	    (list, parts, count, width OCS_CTX_PASS), SLURM_ERROR)
OCS_FORWARD(uint32_t, topology_p_get_fragmentation, (bitstr_t * nodes OCS_CTX),
	    (nodes OCS_CTX_PASS), 0)

#if OCS_SLURM(25, 5)
OCS_FORWARD(int, topology_p_add_rm_node,
	    (node_record_t * node, char *unit, topology_ctx_t *context), (node, unit, context),
	    SLURM_SUCCESS)
OCS_FORWARD(int, topology_p_destroy_config, (topology_ctx_t * context), (context), SLURM_SUCCESS)
#endif

#if OCS_SLURM(25, 11)
OCS_FORWARD_VOID(topology_p_jobinfo_free, (void *info), (info))
OCS_FORWARD_VOID(topology_p_jobinfo_pack, (void *info, buf_t *buffer, uint16_t version),
		 (info, buffer, version))
OCS_FORWARD(int, topology_p_jobinfo_unpack, (void **info, buf_t *buffer, uint16_t version),
	    (info, buffer, version), SLURM_SUCCESS)
OCS_FORWARD(int, topology_p_jobinfo_get, (topology_jobinfo_type_t type, void *info, void *data),
	    (type, info, data), ESLURM_NOT_SUPPORTED)
OCS_FORWARD_VOID(topology_p_get_topology_str,
		 (node_record_t * node, char **text, topology_ctx_t *context),
		 (node, text, context))
#endif

#if OCS_SLURM(26, 5)
/* A shape of one node still has a placement: never skip the evaluation. */
OCS_EXPORT bool topology_p_allow_one_node(void *context)
{
	(void)context;
	return false;
}

OCS_FORWARD(int, topology_p_eval_node, (topology_eval_t * eval, int node), (eval, node),
	    SLURM_ERROR)
OCS_FORWARD(int, topology_p_get_rank,
	    (bitstr_t * nodes, uint32_t **rank, uint32_t *size, void *context),
	    (nodes, rank, size, context), SLURM_SUCCESS)
#endif
