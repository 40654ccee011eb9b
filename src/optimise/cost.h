/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OPTIMISE_COST_H
#define OCS_OPTIMISE_COST_H

/* What a fabric costs and draws: a file of prices of components and of what an interface of
 * each fabric needs of them.  doc/buying.md describes the file. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

enum ocs_cost_component {
	OCS_COST_NIC,
	OCS_COST_TRANSCEIVER,	   /* on a NIC */
	OCS_COST_PORT_TRANSCEIVER, /* on a port of a packet switch */
	OCS_COST_SWITCH_PORT,
	OCS_COST_OCS_PORT,
	OCS_COST_PATCH_PORT,
	OCS_COST_SPLITTER, /* a 1x2 switch */
	OCS_COST_FIBRE,
	OCS_COST_CABLE, /* copper or active optical, with both of its ends: in place of two
			 * transceivers and a fibre */
	OCS_COST_COMPONENTS,
};

/* Prices in $ and power in W of components for interfaces of one rate. */
struct ocs_cost_rate {
	double rate; /* bytes per second */
	double price[OCS_COST_COMPONENTS];
	double power[OCS_COST_COMPONENTS];
};

/* What SHARE of the interfaces of a fabric need of each component. */
struct ocs_cost_part {
	double share;
	double count[OCS_COST_COMPONENTS];
	bool clos; /* the ports of a two-layer Clos for as many servers and rails, and a
		    * transceiver on each; else those counted */
};

struct ocs_cost_fabric {
	char *name;
	struct ocs_cost_part *parts;
	int nparts;
};

struct ocs_cost_table {
	char *name, *source, *about;
	char **assumptions;
	int nassumptions;
	bool powers; /* the file has powers */
	struct ocs_cost_rate *rates;
	int nrates;
	struct ocs_cost_fabric *fabrics;
	int nfabrics;
};

/* Reads the file at SPEC; without '/' it is the name of one that comes with the project.  NULL
 * with ERR: FILE:LINE.  The caller destroys it. */
struct ocs_cost_table *ocs_cost_open(const char *spec, struct ocs_error *err);
struct ocs_cost_table *ocs_cost_parse(const char *text, size_t length, const char *source,
				      struct ocs_error *err);
void ocs_cost_destroy(struct ocs_cost_table *table);

/* The prices for RATE (bytes per second), or NULL. */
const struct ocs_cost_rate *ocs_cost_rate_find(const struct ocs_cost_table *table, double rate);
/* -1 with ERR (OCS_USAGE): TABLE has no prices for RATE, and which it has. */
int ocs_cost_rate_refuse(const struct ocs_cost_table *table, double rate, struct ocs_error *err);
const struct ocs_cost_fabric *ocs_cost_fabric_find(const struct ocs_cost_table *table,
						   const char *name);
/* $ and W of FABRIC for SERVERS of them with INTERFACES each, at RATE. */
void ocs_cost_total(const struct ocs_cost_fabric *fabric, const struct ocs_cost_rate *rate,
		    int servers, int interfaces, double *dollars, double *watts);

#endif
