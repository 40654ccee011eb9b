/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_CONFIG_CONFIG_H
#define OCS_CONFIG_CONFIG_H

/* An ocs.yaml, or a one-line description: the fabric, and the settings of ocsd, the
 * plugins and nodes.  Settings are named as the keys of ocs.yaml, timeouts.prolog is
 * timeouts.prolog_ms; a one-line description has the defaults. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/fabric/fabric.h"

#define OCS_STATE_DEFAULT "/var/lib/ocsd"

/* Where ocsd is, and who it is. */
struct ocs_config_ocsd {
	char *socket;  /* "unix:/run/ocsd/ocsd.sock" */
	char *listen;  /* "host:port" for remote nodes, or NULL */
	char *address; /* where nodes and slurmctld reach ocsd; defaults to
				 * listen, else socket */
	char *key;     /* path of the key of remote clients, or NULL: MUNGE */
	char *metrics; /* "host:port" for Prometheus, or NULL */
	char *state;   /* folder of database and audit log, OCS_STATE_DEFAULT */
	char *user;    /* its account, a name or a number, or NULL: ocsd, else
				 * root */
	char **admins; /* user names besides root and ocsd's own */
	size_t nadmins;
	int audit_days; /* how long the audit log remembers, 400 */
};

/* Of one user who is no administrator. */
struct ocs_config_limits {
	int requests_per_second;   /* 20 */
	int burst;		   /* requests at once, 60 */
	int connections;	   /* 64 */
	int topologies_per_second; /* that the controller of one job may ask for, 200 */
};

struct ocs_config_timeouts {
	int switch_ms;	  /* one command, 5000 */
	int retry_ms;	  /* pause before a failed switch is tried again, 5000 */
	int poll_ms;	  /* full read-back of every switch, 30000 */
	int prolog_ms;	  /* a node waits for its circuits, 300000 */
	int ocsd_down_ms; /* after this without ocsd, jobs still in their prolog are
				 * requeued, 60000 */
	int dark_ms;	  /* a circuit without a plan is dark this long before its
				 * running job is announced, 10000 */
	int link_ms;	  /* a node waits for the links of its ports; 0: it does not, 30000 */
	int routes_ms;	  /* rails: a node takes its routes off circuits that are to change, 1000 */
};

/* What becomes of a running job that is hit. */
enum ocs_on_failure {
	OCS_ON_FAILURE_REQUEUE,
	OCS_ON_FAILURE_CANCEL,
	OCS_ON_FAILURE_SIGNAL,
	OCS_ON_FAILURE_IGNORE,
};

struct ocs_config_policies {
	int requeue_limit;     /* switch failures before a job is held, 3 */
	bool keep_cubes_whole; /* jobs without a shape go to broken cubes first, true */
	enum ocs_on_failure circuit_failed; /* under a running job, requeue */
	enum ocs_on_failure switch_failed;  /* with circuits of one, ignore */
	int signal;			    /* what OCS_ON_FAILURE_SIGNAL sends, SIGUSR1 */
	bool signal_batch;		    /* the batch shell gets it as well */
};

enum ocs_graph_file {
	OCS_GRAPH_FILE_AUTO, /* for steps with all GPUs of their nodes */
	OCS_GRAPH_FILE_NEVER,
	OCS_GRAPH_FILE_ALWAYS,
};

struct ocs_config_nccl {
	char *hwloc_xml;		/* machine description for nodes, or NULL: the real one */
	char *management;		/* network device that reaches every node, or NULL */
	enum ocs_graph_file graph_file; /* which jobs get NCCL_GRAPH_FILE */
	bool stock_rings;		/* plans have parallel rings +1 (plan.h) */
	int release; /* of the NCCL that jobs load (release.h), or 0: not known */
	char **env;  /* "NAME=VALUE" additions for jobs */
	size_t nenv;
};

struct ocs_config {
	struct ocs_fabric *fabric;
	uint64_t text_digest; /* ocs_config_text_digest of what was read; 0: a line */
	struct ocs_config_ocsd ocsd;
	struct ocs_config_limits limits;
	struct ocs_config_timeouts timeouts;
	struct ocs_config_policies policies;
	struct ocs_config_nccl nccl;
};

/* Opens SPEC: the path of an ocs.yaml (it holds a '/' or ends in .yaml or .yml),
 * or a synthetic line:
 *   torus cubes:4x4x4 cube:4x4x4 tile:2x2x1      (64 cubes c0..c63)
 *   static:16x16x16 tile:1x1x1
 *   direct servers:12 degree:4
 *   rails servers:16 rails:8
 *   region servers:16 degree:6 packets:2 xpus:8 region:8
 * Nodes are n0, n1, ...  Returns NULL with ERR (code OCS_USAGE; for a file the sentence
 * starts with "FILE:LINE: "; OCS_ERROR if the file cannot be read).  Free with
 * ocs_config_destroy. */
struct ocs_config *ocs_config_open(const char *spec, struct ocs_error *err);
/* The same for TEXT, LENGTH bytes of an ocs.yaml; SOURCE names it in errors. */
struct ocs_config *ocs_config_parse(const char *text, size_t length, const char *source,
				    struct ocs_error *err);
void ocs_config_destroy(struct ocs_config *config);
/* Destroys CONFIG except for its fabric, which is the caller's then (ocs_fabric_destroy):
 * for who needs no settings.  NULL for NULL. */
struct ocs_fabric *ocs_config_take_fabric(struct ocs_config *config);

/* Keeps the text that CONFIG was read from as the file PATH, whole or not at all.  0, or -1
 * with ERR (the file has changed meanwhile, too). */
int ocs_config_keep(const struct ocs_config *config, const char *path, struct ocs_error *err);
/* Opens such a copy.  NULL with ERR: there is none, it is not whole, or no description. */
struct ocs_config *ocs_config_kept(const char *path, struct ocs_error *err);
/* Keeps the names of the partitions whose jobs all get circuits, those of rail and direct sections,
 * as the file PATH; reads that, which is freed (NULL with ERR: there is none, it is not whole); and
 * whether PARTITION (NULL: unknown) is one of them by TEXT, what was read. */
int ocs_config_partitions_keep(const struct ocs_fabric *fabric, const char *path,
			       struct ocs_error *err);
char *ocs_config_partitions_kept(const char *path, struct ocs_error *err);
bool ocs_config_partitions_have(const char *text, const char *partition);
/* How many of the LENGTH bytes of TEXT are the description: of such a copy, the original's. */
size_t ocs_config_text_length(const char *text, size_t length);
/* Whether it is the same file to the letter: LENGTH bytes of TEXT, as a number. */
uint64_t ocs_config_text_digest(const char *text, size_t length);

/* What `ocsctl check` prints: the fabric and, where it has switches, where ocsd is.  The
 * caller frees it. */
char *ocs_config_describe(const struct ocs_config *config);

#endif
