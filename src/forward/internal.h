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

/* The things that HOST needs, each with its undo; nothing is cleared before. */
void ocs_forward_things(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			int host, enum ocs_forward_backend backend,
			struct ocs_forward_commands *commands);
/* The same for a job on rails. */
void ocs_forward_rails_things(const struct ocs_forward_rails *rails,
			      const struct ocs_forward_hosts *hosts, int host,
			      struct ocs_forward_commands *commands);
/* The same for a job in a region. */
void ocs_forward_region_things(const struct ocs_forward_hosts *hosts, int host, int first,
			       int servers, struct ocs_forward_commands *commands);
/* Whether COMMAND removes a qdisc, which may only be done if no filter is left on DEVICE. */
bool ocs_forward_conditional(const struct ocs_forward_command *command, char device[16]);

/* apply.c: does one command after the other.  0, or -1 with ERR at the first that fails. */
int ocs_forward_run(const struct ocs_forward_commands *commands, const struct ocs_forward *forward,
		    const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err);
/* Runs ip or tc with WORDS (NULL-terminated, the program first).  What it prints, freed by
 * the caller; NULL if it fails. */
char *ocs_forward_ask(char *const *words);
/* kernel.c: whether a rule of ours is there.  Rules are the first that go and the last that come:
 * without them nothing of ours has any effect. */
bool ocs_forward_rules_there(void);
/* The flags of DEVICE (IFF_UP, IFF_RUNNING ...); 0 if there is none. */
int ocs_forward_device_flags(const char *device);
/* Whether DEVICE has the IPv4 ADDRESS, a text. */
bool ocs_forward_address_there(const char *address, const char *device);
/* Whether DEVICE has a clsact qdisc; false if tc fails. */
bool ocs_forward_clsact_there(char *device);
/* Whether all interfaces of HOST exist here; -1 with ERR. */
int ocs_forward_interfaces_check(const struct ocs_forward_hosts *hosts, int host,
				 struct ocs_error *err);

/* The MAC that a frame for DST needs to go over LINK. */
const uint8_t *ocs_forward_mac(const struct ocs_forward_hosts *hosts,
			       const struct ocs_forward_link *link, int dst);
char *ocs_forward_mac_text(const uint8_t mac[6], char text[18]);

/* bpf.c: puts one program with the host's map on the ingress of every forwarding
 * interface; replaces one that is there.  0, or -1 with ERR. */
int ocs_forward_bpf_attach(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			   int host, struct ocs_error *err);
/* Whether the kernel takes the program and a filter on interface lo of this
 * network namespace. */
bool ocs_forward_bpf_works(void);

#endif
