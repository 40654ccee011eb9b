/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FORWARD_INTERNAL_H
#define OCS_FORWARD_INTERNAL_H

#include "src/forward/forward.h"

/* Routing tables and the rules that lead there have this number plus the port they
 * came by; filters of tc have it as their preference. */
#define OCS_FORWARD_BASE 7700
/* Rules from here on lead from a port to the routes of the host itself. */
#define OCS_FORWARD_BACK (OCS_FORWARD_BASE + OCS_PLAN_DEGREE_MAX + 1)

/* The MAC that a frame for DST needs to go over LINK. */
const uint8_t *ocs_forward_mac(const struct ocs_forward_hosts *hosts,
			       const struct ocs_forward_link *link, int dst);
char *ocs_forward_mac_text(const uint8_t mac[6], char text[18]);

/* bpf.c: puts one program with the host's map on the ingress of every forwarding
 * interface; replaces one that is there.  0, or -1 with ERR. */
int ocs_forward_bpf_attach(const struct ocs_forward *forward,
			   const struct ocs_forward_hosts *hosts, int host,
			   struct ocs_error *err);
/* Whether the kernel takes the program and a filter on interface lo of this
 * network namespace. */
bool ocs_forward_bpf_works(void);

#endif
