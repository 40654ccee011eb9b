/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_NODE_H
#define OCS_NODE_NODE_H

/* ocs-node: what a node needs for a job beyond a message to ocsd. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct json_object;
struct ocs_error;
struct ocs_client;
struct ocs_config;
struct ocs_fabric;
struct ocs_placement;
struct ocs_region_layout;
struct ocs_section;
struct ocs_text;

struct ocs_node_request {
	const char *fabric; /* path of ocs.yaml, or a synthetic line */
	const char *dir;
	unsigned long job;
	uint64_t epoch;
	const char *node;    /* this node's name */
	const char *nodes;   /* host list of the job, servers in rank order */
	const char *section; /* NULL: the only one */
	const char *shape, *conn;
	const char *phases;    /* of --ocs-phases, or NULL */
	const char *moe;       /* of --ocs-moe, or NULL */
	const char *placement; /* compact; torus and static sections */
	const char *reply;     /* path of ocsd's reply to apply, or NULL */
	const char *ocsd;      /* address, or NULL: as ocs.yaml says */
	const char *key;       /* path of the key for remote lines, or NULL: the same */
	const char *user;      /* account of ocsd, or NULL: the same */
	bool has_uid, has_gid;
	uid_t uid; /* the job's: its files are for no other user */
	gid_t gid;
};

/* The files of a job's directory, by index; NULL: not for this job. */
enum ocs_node_file {
	OCS_NODE_EPOCH,
	OCS_NODE_PLACEMENT,
	OCS_NODE_PLAN,
	OCS_NODE_TOPOLOGY,
	OCS_NODE_GRAPH,
	OCS_NODE_SUBNETS,
	OCS_NODE_HOSTFILE,
	OCS_NODE_RANKS,
	OCS_NODE_ADDRESSES,
	OCS_NODE_RAILS_KEY, /* of the job's controller, on its first node; for OWNER only */
	OCS_NODE_REGION,    /* groups of experts in a region */
	OCS_NODE_MOE_KEY,   /* likewise, of one in a region */
	OCS_NODE_AGENT_KEY, /* likewise, of the agents of a job on rails, on each of its nodes */
	OCS_NODE_RELAY_KEY, /* likewise, of relays of a job with experts, on all nodes but the first */
	OCS_NODE_MOE_PLAN, /* of the circuits of this node's group, where they stay */
	OCS_NODE_ENV,
	OCS_NODE_WARNINGS, /* sentences for the job and the log, one a line */
	OCS_NODE_FILES
};
extern const char *const ocs_node_names[OCS_NODE_FILES];

/* The graph file for one line of a torus job, "graph-DIMENSION-NUMBER.xml". */
struct ocs_node_graph {
	char *name, *text;
};

struct ocs_node_contents {
	char *text[OCS_NODE_FILES];
	struct ocs_node_graph *graphs;
	int ngraphs;
	bool owned; /* only OWNER (and root) may read them */
	uid_t owner;
	gid_t group;	    /* of OWNER, or -1; may list the directory */
	uint32_t subnets;   /* range of the circuits' addresses, */
	int subnets_prefix; /* and the length of its prefix; 0: none */
};

/* Computes everything before anything is written.  0, or -1 with ERR (the code of
 * the fault).  Free with ocs_node_contents_free either way. */
int ocs_node_contents(const struct ocs_node_request *request, struct ocs_node_contents *contents,
		      struct ocs_error *err);
void ocs_node_contents_free(struct ocs_node_contents *contents);
/* Adds the warning "WHAT: WHY"; with WHAT "note" it is for the job alone, not for the log. */
#define OCS_NODE_NOTE "note"
void ocs_node_warn(struct ocs_node_contents *contents, const char *what, const char *why);

/* nccl.c: fills in what is for NCCL and adds the NCCL_* variables to ENV.  PLAN or PLACEMENT is that
 * of the job, or NULL.  0, or -1 with ERR (the plan is malformed); what the machine lacks
 * is a warning. */
int ocs_node_nccl(const struct ocs_config *config, const struct ocs_section *section,
		  const struct ocs_node_request *request, struct json_object *plan,
		  const struct ocs_placement *placement, struct ocs_node_contents *contents,
		  struct ocs_text *env, struct ocs_error *err);

/* The same for a job whose plan was repaired: NCCL's files, the variables and the
 * addresses of the circuits follow PLAN.  0, or -1 with ERR. */
int ocs_node_nccl_follow(const struct ocs_config *config, const struct ocs_section *section,
			 const struct ocs_node_request *request, struct json_object *plan,
			 struct ocs_error *err);

/* links.c: waits until the interfaces of this node (fabric, dir, node) that hold circuits of the job
 * have a link, and their RDMA ports are active; up to TIMEOUT_S and `timeouts: link`.  What this
 * machine does not have is not waited for.  0, or -1 with ERR (OCS_NOT_NOW: which one has none). */
int ocs_node_links(const struct ocs_node_request *request, int timeout_s, struct ocs_error *err);

/* The same for the interfaces of SECTION that HOLDS has, until DEADLINE (of ocs_now_ns), which is
 * TIMEOUT_MS after the circuits. */
int ocs_node_links_wait(const struct ocs_section *section, const bool *holds, int64_t deadline,
			int timeout_ms, struct ocs_error *err);

/* subnets.c: gives this host the addresses of file `subnets` in CONTENTS (lines "DEVICE
 * ADDRESS/31") and takes others of the range away.  Needs root.  0, or -1 with ERR. */
int ocs_node_subnets_apply(const struct ocs_node_contents *contents, struct ocs_error *err);
/* Takes the addresses of file `subnets` in the job's directory PATH away; fine if there
 * are none. */
void ocs_node_subnets_remove(const char *path);

/* Writes CONTENTS into the directory PATH, each file atomically, and removes the
 * files of an older epoch.  Refused: a symbolic link, another owner, a newer
 * epoch.  0, or -1 with ERR. */
int ocs_node_directory_write(const char *path, uint64_t epoch,
			     const struct ocs_node_contents *contents, struct ocs_error *err);
/* Removes the known files and the directory; fine if it does not exist.  0, or -1
 * with ERR (a link, another owner, files that are not ours). */
int ocs_node_directory_remove(const char *path, struct ocs_error *err);

/* Writes what is for NCCL in CONTENTS into the job's directory PATH and removes what
 * is not there any more, unless the directory is gone.  0, or -1 with ERR. */
int ocs_node_directory_update(const char *path, const struct ocs_node_contents *contents,
			      struct ocs_error *err);

/* Adds the list of routes to a PLAN of up to 128 servers that has none. */
void ocs_node_plan_routes(struct json_object *plan);

/* Replaces plan.json in the job's directory PATH by PLAN, where there is one. */
void ocs_node_plan_write(const char *path, struct json_object *plan);

/* forward.c.  A connection to ocsd, as REQUEST says, and CONFIG for what it leaves open.  NULL with
 * ERR; see ocs_client_open. */
struct ocs_client *ocs_node_connect(const struct ocs_node_request *request,
				    const struct ocs_config *config, int timeout_ms,
				    struct ocs_error *err);

/* What a host forwards is noted in the folder that the jobs' directories lie in.
 *
 * Forwarding for the job of REQUEST (fabric, dir, job, epoch, node), where ocsd's reply to
 * apply says that its hosts forward: tells ocsd this
 * host's MACs, waits up to TIMEOUT_S for circuits and for the other hosts, applies the
 * plan, and leaves a process behind that applies repaired ones.  If this host cannot,
 * ocsd is notified, so that the job fails.  Returns an exit code after a message. */
int ocs_node_forward(const struct ocs_node_request *request, int timeout_s);
/* Takes it away (dir, job, epoch); fine if there is nothing.  0, or -1 with ERR. */
int ocs_node_unforward(const struct ocs_node_request *request, struct ocs_error *err);
/* Takes away what a job has left that ocsd no longer knows (fabric, node; dir: the folder
 * that the jobs' directories lie in).  For a living job it sees that its plan is
 * followed.  Returns an exit code after a message. */
int ocs_node_sweep(const struct ocs_node_request *request);

/* present.c: tells ocsd that this node (fabric, node) has a slurmd with spank_ocs: leaves a
 * process behind that tries for TIMEOUT_S.  Returns an exit code. */
int ocs_node_present(const struct ocs_node_request *request, int timeout_s);

/* sockets.c: adds SLURM_OCS_MOE_SOCKETS to ENV, the folder in which the controller of a job with experts has
 * its sockets.  No other user can guess its name, which follows from KEY, and take it first. */
void ocs_node_sockets_name(const struct ocs_node_request *request, const char *key,
			   struct ocs_text *env);
/* The folder that file `env` in the job's directory FD (of an open directory) names, and its owner in *UID;
 * NULL: none.  The caller frees it. */
char *ocs_node_sockets_find(int fd, uid_t *uid);
/* Removes the sockets in FOLDER and FOLDER itself, as user UID may: what else is there stays, and so does
 * what cannot be removed within two seconds. */
void ocs_node_sockets_remove(const char *folder, uid_t uid);

/* Can UID and GID read FILE of directory PATH?  True if that cannot be found out. */
bool ocs_node_readable(const char *path, const char *file, uid_t uid, gid_t gid);

/* The text of region.json of a job whose NODES, in their order, are groups of LAYOUT; REPLY: of ocsd, or NULL.
 * The caller puts it. */
struct json_object *ocs_node_region(const struct ocs_node_request *request,
				    const struct ocs_fabric *fabric,
				    const struct ocs_section *section, char *const *nodes,
				    const struct ocs_region_layout *layout,
				    struct json_object *reply);

/* The plan of group GROUP of that for ocs_moe_plan (src/moe/job/ocs_moe.h): what two servers with a circuit send
 * each other takes circuits.  The caller frees it. */
char *ocs_node_region_plan(struct json_object *region, int group);

#endif
