/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FORWARD_FORWARD_H
#define OCS_FORWARD_FORWARD_H

/* Host-based forwarding: the routes of a plan as neighbour entries, kernel routes
 * and filters of every host.  doc/forwarding.md explains the three backends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/fabric/fabric.h"
#include "src/plan/plan.h"

struct ocs_error;
struct json_object;

#define OCS_FORWARD_NONE 0xff /* no port */

/* An interface.  A NIC port may be split in two functions: `name` carries the
 * host's own traffic, `forward` that of others.  Where it is not split both are
 * the same. */
struct ocs_forward_port {
	char name[16], forward[16];
	uint8_t mac[6], forward_mac[6];
	char address[16]; /* its own, in a region; else "" */
};

struct ocs_forward_host {
	char *node;
	char address[16];		/* dotted IPv4; the same on all its ports; "" in a region */
	struct ocs_forward_port *ports; /* `degree` of them */
};

struct ocs_forward_hosts {
	int servers, degree;
	struct ocs_forward_host *host; /* by server number of the plan */
};

/* The hosts of PLAN when no file describes them: ports ocs0, ocs1 ..., addresses
 * from 10.192.0.1 on, MACs 02:6f:63:SS:SS:PP (server, port).  Never fails. */
struct ocs_forward_hosts *ocs_forward_hosts_rule(const struct ocs_plan *plan);
/* Reads {"hosts":[{"node":"n0","address":"10.0.0.1","ports":[{"name":"eth2",
 * "mac":"...","forward":"eth2f1","forward_mac":"..."}]}]}; forward and forward_mac
 * may be left out.  Hosts are found by name when PLAN names its servers, else they
 * stand in the order of the plan.  NULL with ERR (OCS_USAGE). */
struct ocs_forward_hosts *ocs_forward_hosts_parse(const char *text, const struct ocs_plan *plan,
						  struct ocs_error *err);
/* The hosts of PLAN, whose servers are named, as the keys `interfaces` and `forwarding` of
 * SECTION describe them.  MACS: [{"node":"n0","macs":[...],"forward_macs":[...]}] as
 * ocsd tells them, with a row for every server; NULL: MACs by the rule above.  NULL with
 * ERR (OCS_USAGE). */
struct ocs_forward_hosts *ocs_forward_hosts_fabric(const struct ocs_fabric *fabric,
						   const struct ocs_section *section,
						   const struct ocs_plan *plan,
						   struct json_object *macs, struct ocs_error *err);
/* The hosts of a job on rails or in a region, in the order of ROWS, which are as MACS above.  Ports are devices:
 * port P of interface I is number I * nic_ports + P.  NULL with ERR (OCS_USAGE). */
struct ocs_forward_hosts *ocs_forward_hosts_rails(const struct ocs_fabric *fabric,
						  const struct ocs_section *section,
						  struct json_object *rows, struct ocs_error *err);
void ocs_forward_hosts_destroy(struct ocs_forward_hosts *hosts);

/* One circuit seen from one end. */
struct ocs_forward_link {
	int server, port; /* the far end; server -1: nothing is joined */
};

struct ocs_forward {
	int servers, degree;
	struct ocs_forward_link *link; /* [server * degree + port]: where it sends to */
	/* [(server * (degree + 1) + in) * servers + dst]: the port that a packet for
	 * DST leaves by; `in` is the port it came by, or `degree` for the host's own.
	 * OCS_FORWARD_NONE where no route comes past. */
	uint8_t *out;
	long *load;   /* [server * degree + port]: routes over it */
	int adjusted; /* pairs whose path is none of the plan's */
};

/* Chooses one path for each ordered pair of PLAN, so that whatever comes to a host
 * by one port for one destination goes on the same way (a filter cannot see the
 * source): a path of the plan if one agrees with those chosen before, the one that
 * loads its links least; else the shortest that agrees, counted in `adjusted`.
 * FAILED, or NULL, says for [server * degree + port] that nothing may use the
 * circuit there.  PLAN must be one that ocs_plan_verify accepts; it is not needed
 * afterwards.  NULL with ERR: OCS_USAGE (the plan has no routes), OCS_NEVER (no path
 * between two servers). */
struct ocs_forward *ocs_forward_make(const struct ocs_plan *plan, const bool *failed,
				     struct ocs_error *err);
void ocs_forward_destroy(struct ocs_forward *forward);

/* The port by which SERVER sends what came by IN (degree: its own) for DST. */
uint8_t ocs_forward_out(const struct ocs_forward *forward, int server, int in, int dst);
/* Walks from SRC to DST.  PATH and PORTS (the ports left by) have room for MAX
 * servers.  Returns the number of servers, both ends included, or -1: it does not
 * arrive within MAX. */
int ocs_forward_path(const struct ocs_forward *forward, int src, int dst, int max, int *path,
		     int *ports);
/* {"adjusted":n,"hosts":[{"node","address","ports":[...]}],"paths":[{"src","dst",
 * "path":[...],"ports":[...]}]}; the caller puts it. */
struct json_object *ocs_forward_to_json(const struct ocs_forward *forward,
					const struct ocs_forward_hosts *hosts);

enum ocs_forward_backend { OCS_FORWARD_FLOWER, OCS_FORWARD_BPF, OCS_FORWARD_ROUTES };

/* NAME: "flower", "bpf" or "routes"; 0, or -1: none of them. */
int ocs_forward_backend_parse(const char *name, enum ocs_forward_backend *backend);
/* The first backend that this kernel can do, tried in a network namespace of its
 * own.  Needs root; without it: routes. */
enum ocs_forward_backend ocs_forward_backend_choose(void);

enum ocs_forward_tool {
	OCS_FORWARD_IP,
	OCS_FORWARD_TC,	    /* text: arguments of ip or tc */
	OCS_FORWARD_SYSCTL, /* text: net/ipv4/...=value, or =default */
	OCS_FORWARD_LOAD,   /* text: the entries of the bpf map, for humans */
};

struct ocs_forward_command {
	enum ocs_forward_tool tool;
	bool may_fail; /* what it removes or makes may be so already */
	char *text;    /* "": another command makes the thing */
	char *undo;    /* of the same tool: takes the thing away.  It tells things
				 * apart: two commands with the same undo make the same
				 * thing.  NULL: makes nothing that lasts */
	bool kept;     /* was there before: never undone */
};

struct ocs_forward_commands {
	struct ocs_forward_command *list;
	size_t count;
};

/* What HOST has to do.  Both replace whatever an earlier plan or backend left.
 * Free with ocs_forward_commands_free. */
void ocs_forward_apply_commands(const struct ocs_forward *forward,
				const struct ocs_forward_hosts *hosts, int host,
				enum ocs_forward_backend backend,
				struct ocs_forward_commands *commands);
void ocs_forward_remove_commands(const struct ocs_forward_hosts *hosts, int host,
				 struct ocs_forward_commands *commands);
void ocs_forward_commands_free(struct ocs_forward_commands *commands);
/* Prints them for a shell. */
void ocs_forward_commands_print(const struct ocs_forward_commands *commands, FILE *out);

/* Do it here.  Return 0, or -1 with ERR: OCS_USAGE (an interface of HOST does not
 * exist here; nothing was done), OCS_ERROR (what the kernel refused; what was
 * made is removed again). */
int ocs_forward_apply(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		      int host, enum ocs_forward_backend backend, struct ocs_error *err);
int ocs_forward_remove(const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err);

/* For whom a host forwards, and by which revision of the plan. */
struct ocs_forward_owner {
	unsigned long job;
	uint64_t epoch;
	long revision;
};

/* The same as apply and remove, with a memory: FOLDER/forward.json says what was made for
 * whom and what was there before, and is written before anything is done.  So whatever
 * dies midway, the next call finds what it left.
 *
 * ocs_forward_hold makes this host what the plan of OWNER says.  What another owner left is
 * taken away first; what the same owner has already is changed by difference, new things
 * before old ones go.  CHANGED (may be NULL): commands run.  If it fails nothing is left.
 * ocs_forward_follow is the same for a host that forwards for this job and epoch already;
 * else (its epilog was quicker) it does nothing and returns 1.
 * ocs_forward_drop takes away what a job has of this epoch or an older one (OWNER NULL:
 * whatever job's); fine if there is nothing.  The interfaces get back what they had before.
 * ocs_forward_owner_read: 1 and OWNER, or 0: no job.  All return -1 with ERR. */
int ocs_forward_hold(const char *folder, const struct ocs_forward_owner *owner,
		     const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		     int host, enum ocs_forward_backend backend, size_t *changed,
		     struct ocs_error *err);
int ocs_forward_follow(const char *folder, const struct ocs_forward_owner *owner,
		       const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
		       int host, enum ocs_forward_backend backend, size_t *changed,
		       struct ocs_error *err);
int ocs_forward_drop(const char *folder, const struct ocs_forward_owner *owner,
		     struct ocs_error *err);

/* A circuit that a job on rails may have, seen from one of its hosts. */
struct ocs_forward_neighbour {
	int host;      /* the other end, */
	int own, port; /* the ports of this host and of that one */
};

/* What a host of a job on rails has while the job runs: permanent neighbours for all circuits that it
 * may have, and routes to all other hosts that lead over MANAGEMENT, a device, to VIA[host], an
 * address there.  They are in a table of their own (ocs_forward_rails_table): ocs_route_batch
 * changes them when circuits come and go. */
struct ocs_forward_rails {
	const struct ocs_forward_neighbour *neighbours;
	size_t count;
	const char *management;
	const char *const *via;
};

/* As ocs_forward_hold, for a job on rails. */
int ocs_forward_hold_rails(const char *folder, const struct ocs_forward_owner *owner,
			   const struct ocs_forward_rails *rails,
			   const struct ocs_forward_hosts *hosts, int host, struct ocs_error *err);
/* What a host of a job with experts has while the job runs: the address of each optical NIC, which leads over that NIC only,
 * and permanent neighbours for all NICs of the other servers of its group, hosts FIRST to FIRST + SERVERS - 1:
 * any of them may be at the other end.  As ocs_forward_hold. */
int ocs_forward_hold_region(const char *folder, const struct ocs_forward_owner *owner,
			    const struct ocs_forward_hosts *hosts, int host, int first, int servers,
			    struct ocs_error *err);
/* Whether what FOLDER remembers is OWNER's: a descriptor that keeps it so until it is closed, or -1.
 * SEEN is zero at first; the file is read again only when it is another one. */
struct ocs_forward_seen {
	uint64_t inode;
	int64_t changed_s, changed_ns;
};
int ocs_forward_keep(const char *folder, const struct ocs_forward_owner *owner,
		     struct ocs_forward_seen *seen);
/* The routing table of a host with that many DEVICES. */
int ocs_forward_rails_table(int devices);
/* The mark of our routes (rtm_protocol). */
#define OCS_FORWARD_PROTOCOL 77
int ocs_forward_owner_read(const char *folder, struct ocs_forward_owner *owner,
			   struct ocs_error *err);
/* One process may follow the plan of the allocation EPOCH: a descriptor that says so until it
 * is closed, or -1: there is one already. */
int ocs_forward_watch_alone(const char *folder, uint64_t epoch);
/* Waits until every interface of HOST that has a circuit has a carrier: NICs take seconds
 * to see new light.  0, or -1 with ERR, which names the interface and the far end. */
int ocs_forward_carrier(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			int host, int timeout_ms, struct ocs_error *err);

#endif
