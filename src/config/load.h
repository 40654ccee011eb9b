/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_CONFIG_LOAD_H
#define OCS_CONFIG_LOAD_H

/* The parts of the loader of ocs.yaml.  All return 0, or -1 with the error set. */

#include "src/config/config.h"
#include "src/config/document.h"
#include "src/fabric/builder.h"

/* An empty fabric and the default of every setting. */
struct ocs_config *ocs_config_new(const char *source);

/* The one-line descriptions. */
struct ocs_config *ocs_synthetic_open(const char *line, struct ocs_error *err);
/* Parses "4x4x4" into three numbers of 1..MAX.  Returns 0 or -1. */
int ocs_extents_parse(const char *text, int max, int extents[OCS_AXES]);

struct ocs_loader {
	struct ocs_yaml yaml;
	struct ocs_config *config;
	struct ocs_fabric *fabric;    /* of config */
	struct ocs_names *cubes;      /* all cube names -> section */
	struct ocs_names *partitions; /* all partitions -> section */
	struct ocs_names *addresses;  /* all addresses -> switch */
};

/* load_settings.c: ocsd, timeouts, policies, nccl */
int ocs_load_ocsd(struct ocs_loader *loader, yaml_node_t *node);
int ocs_load_limits(struct ocs_loader *loader, yaml_node_t *node);
int ocs_load_timeouts(struct ocs_loader *loader, yaml_node_t *node);
int ocs_load_policies(struct ocs_loader *loader, yaml_node_t *node);
int ocs_load_nccl(struct ocs_loader *loader, yaml_node_t *node);

/* load_switches.c */
int ocs_load_switches(struct ocs_loader *loader, yaml_node_t *node);

/* load_sections.c: the list `fabrics` */
int ocs_load_sections(struct ocs_loader *loader, yaml_node_t *node);

/* load_ports.c: the key `ports` of a section whose nodes are known */
int ocs_load_ports(struct ocs_loader *loader, int section, yaml_node_t *node);
/* The key `look_ahead` of a direct section whose ports were read. */
int ocs_load_look_ahead(struct ocs_loader *loader, int section, yaml_node_t *node);

/* load_interfaces.c: the keys `interfaces`, `forwarding`, `subnets` and `tcp` (NULL: absent) of a
 * section whose servers are known */
int ocs_load_interfaces(struct ocs_loader *loader, int section, yaml_node_t *interfaces,
			yaml_node_t *forwarding, yaml_node_t *subnets, yaml_node_t *tcp);
/* The name of a network device at NODE, the value of KEY.  0, or -1. */
int ocs_load_device(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
		    char **name);

/* Checks "unix:/path" or "host:port" at NODE. */
int ocs_load_address_check(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
			   const char *address);

#endif
