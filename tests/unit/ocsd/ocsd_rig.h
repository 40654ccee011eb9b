/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_OCSD_RIG_H
#define TESTS_OCSD_RIG_H

/* The real ocsd in front of the real emulator: a torus of four 2x2x2 cubes
 * (tile 1x1x2; nodes n0..n15), a direct section (d0..d5, degree 2), a rail
 * section (r0..r3, 2 rails).  All sockets are in a temporary folder. */

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/protocol/client.h"
#include "src/fabric/fabric.h"
#include "tests/unit/switch/emulator_peer.h"
#include "tests/unit/ocsd/ocsd_talk.h"
#include "tests/unit/sanitizer.h"

/* A sanitizer has functions of its own in the program, which come before those of a
 * library that is loaded first. */
#define RIG_PRELOADS (!SANITIZED)

struct rig {
	struct emulator emulator;
	struct ocs_fabric *fabric;
	pid_t daemon;
	char yaml[128];	   /* path of ocs.yaml */
	char address[128]; /* of ocsd */
	char listen[64];   /* host:port with MUNGE, or "" */
	bool netconf;	   /* the switches speak it, over SSH */
	int timeout_ms;	   /* of a command to a switch */
	int retry_ms;	   /* pause before a failed switch is tried again */
	int poll_ms;
	const char *switches; /* more entries of ocs.yaml (%1$s: the folder), or NULL */
	const char *fabrics;
	const char *state; /* --state of ocsd, or NULL */
};

/* How long switches may take in the rigs to come.  On a busy machine an emulator stands still for a while now and
 * then: patient is for tests that never wait for the end of it. */
#define RIG_PATIENT_MS 10000
extern int rig_timeout_ms;

/* A rig with defaults; change members before rig_start(). */
void rig_prepare(struct rig *rig);
/* Writes ocs.yaml, starts the emulator and ocsd. */
void rig_start(struct rig *rig);
/* ocsd only.  rig_stop_daemon returns the exit status (or -signal). */
void rig_start_daemon(struct rig *rig);
/* The same for one that may end while it starts: false, and it is gone. */
bool rig_try_daemon(struct rig *rig);
/* Waits for the end of one that is to be killed by itself. */
void rig_reap_daemon(struct rig *rig);
int rig_stop_daemon(struct rig *rig, int number);
/* Runs ocsd until it exits by itself; what it said goes to *OUTPUT. */
int rig_run_daemon(struct rig *rig, char **output);
/* Starts ocsd again with trouble_preload, which reads the rig's folder. */
void rig_restart_with_trouble(struct rig *rig);
/* A printf-like text into NAME of the rig's folder, at once as a whole; NULL: removes it. */
void rig_put(struct rig *rig, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The log of ocsd so far; the caller frees it. */
char *rig_daemon_log(struct rig *rig);
/* Waits (20 s) until it has PART behind its first FROM bytes. */
void rig_until_log(struct rig *rig, size_t from, const char *part);
/* Ends everything; the emulator's own judgement of its log must be good. */
void rig_end(struct rig *rig);
/* cmocka set-up and tear-down around one test. */
int rig_setup(void **state);
/* With more switches and fabrics in ocs.yaml (as in struct rig; NULL: none), and polls
 * every POLL_MS (0: as rig_prepare has it). */
int rig_setup_with(void **state, const char *switches, const char *fabrics, int poll_ms);
int rig_teardown(void **state);
/* With one direct fabric more: eight servers q[0-7] of degree 4 on the switches quad-[0-3] of 16 ports. */
extern const char rig_quad_switches[], rig_quad_fabrics[];
int rig_setup_quad(void **state);

/* Commits JOB of alice with epoch 10 * JOB on NODES of SECTION, and the prolog of NODE. */
void rig_commit(struct ocs_client *client, unsigned int job, const char *section,
		const char *nodes);
void rig_apply(struct ocs_client *client, unsigned int job, const char *node);

/* A printf-like command to the emulator, which must take it. */
void rig_emulate(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A TCP port of the loopback interface that was free a moment ago. */
int rig_free_port(void);
/* Starts the daemon anew, with metrics; their address, the caller frees it. */
char *rig_metrics_on(struct rig *rig);

/* Two jobs' worth of torus placements: 2x2x4 on the free nodes beside BUSY (a
 * host list, or NULL).  Returns the compact text and sets *NODES (a host list);
 * the caller frees both. */
char *rig_place(struct rig *rig, const char *shape, const char *busy, char **nodes);

/* Number of patches on all switches, from the emulator itself. */
int rig_patches(struct rig *rig);
/* Waits (20 s) until there are COUNT. */
void rig_until_patches(struct rig *rig, int count);
/* Lines of the emulator's log that contain all given parts (NULL ends). */
int rig_log_lines(struct rig *rig, ...);

#endif
