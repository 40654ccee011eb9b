/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_OCSD_REGION_TENANT_H
#define TESTS_OCSD_REGION_TENANT_H

/* Jobs with groups of experts in a section of two regions, and the circuits that they are to have. */

#include "tests/unit/ocsd/ocsd_rig.h"

#define SIZE 24
#define NICS 3
#define SERVERS 4 /* of a group */
#define REGION 8  /* servers of a region */

#define ASK "{'op':'region','job':%u,'epoch':%u,'seq':%d,'key':'%s','groups':[%s]}"
#define BALANCED "balanced"

/* A job with groups of four servers in a row; the first node is g<FIRST>. */
struct tenant {
	unsigned int job;
	int first, groups;
	char key[64];
};

/* Circuits of a group that have little in common. */
#define TENANT_TURNS 6
extern const char *const tenant_turns[TENANT_TURNS];

/* For cmocka: two switches of TL1, and the same that replace what stands on a port. */
int tenant_setup(void **state);
int tenant_setup_replace(void **state);

/* Commits T and applies it on its first node: the reply, which the caller puts. */
struct json_object *tenant_start(struct ocs_client *client, struct tenant *t, const char *moe);
void tenant_end(struct ocs_client *client, const struct tenant *t);

int tenant_port(const struct tenant *t, int group, int server, int nic);

/* Enters the circuits of TEXT ("0.0-1.0,...", or BALANCED) of GROUP into OUT of its switch. */
void tenant_add(const struct tenant *t, int group, const char *text, int out[2][SIZE + 1]);
/* The switches have WANTED and nothing else. */
void tenant_tables_are(struct rig *rig, int wanted[2][SIZE + 1]);

/* "{'group':0,'circuits':[[0,0,1,0]...]}" of TEXT; the caller frees it. */
char *tenant_group_json(int group, const char *text);
/* Row INDEX of the groups of REPLY; borrowed. */
struct json_object *tenant_row(struct json_object *reply, size_t index);
/* GROUP goes to the circuits of TEXT, and the answer says that they are there. */
void tenant_change(struct ocs_client *client, const struct tenant *t, int group, int seq,
		   const char *text);

#endif
