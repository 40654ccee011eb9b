/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The bpf backend: one small program for all ports of a host, written here as
 * instructions so that neither a compiler nor a loader is needed on the nodes.
 * A filter holds the program and the program holds the map: nothing is pinned, and
 * all of it goes with the filters. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "src/forward/internal.h"
#include "src/util/bpf.h"
#include "src/util/error.h"

/* flower's preference is the one before */
#define PREFERENCE (OCS_FORWARD_BASE + 1)

struct key {
	uint32_t ifindex; /* it came by */
	uint32_t address; /* it goes to, network order */
};

struct value {
	uint32_t ifindex;
	uint8_t destination[6], source[6];
};

_Static_assert(sizeof(struct key) == 8 && sizeof(struct value) == 16, "the program knows these");

#define AT(field) ((int)offsetof(struct __sk_buff, field))
#define HEADERS 34 /* of Ethernet and the fixed part of IPv4 */

/* Returns the descriptor, or -1 with errno. */
static int load_program(int map)
{
	/* Jumps to instruction 34, which passes, count from the instruction after them. */
	const struct bpf_insn program[] = {
		/*  0 */ OCS_BPF_MOV(BPF_REG_6, BPF_REG_1),
		/*  1 */ OCS_BPF_MOV_K(BPF_REG_2, HEADERS),
		/*  2 */ OCS_BPF_CALL(BPF_FUNC_skb_pull_data),
		/*  3 */ OCS_BPF_LOAD(BPF_W, BPF_REG_7, BPF_REG_6, AT(data)),
		/*  4 */ OCS_BPF_LOAD(BPF_W, BPF_REG_3, BPF_REG_6, AT(data_end)),
		/*  5 */ OCS_BPF_MOV(BPF_REG_4, BPF_REG_7),
		/*  6 */ OCS_BPF_ADD_K(BPF_REG_4, HEADERS),
		/*  7 */ OCS_BPF(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, 34 - 8, 0),
		/*  8 */ OCS_BPF_LOAD(BPF_H, BPF_REG_4, BPF_REG_7, 12),
		/*  9 */ OCS_BPF(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_4, 0, 34 - 10, htons(ETH_P_IP)),
		/* key: the interface, the destination */
		/* 10 */ OCS_BPF_LOAD(BPF_W, BPF_REG_4, BPF_REG_6, AT(ifindex)),
		/* 11 */ OCS_BPF_STORE(BPF_W, BPF_REG_10, BPF_REG_4, -8),
		/* 12 */ OCS_BPF_LOAD(BPF_W, BPF_REG_4, BPF_REG_7, 30),
		/* 13 */ OCS_BPF_STORE(BPF_W, BPF_REG_10, BPF_REG_4, -4),
		/* 14 */ OCS_BPF(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		/* 15 */ OCS_BPF(0, 0, 0, 0, 0),
		/* 16 */ OCS_BPF_MOV(BPF_REG_2, BPF_REG_10),
		/* 17 */ OCS_BPF_ADD_K(BPF_REG_2, -8),
		/* 18 */ OCS_BPF_CALL(BPF_FUNC_map_lookup_elem),
		/* 19 */ OCS_BPF(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 34 - 20, 0),
		/* both MACs */
		/* 20 */ OCS_BPF_LOAD(BPF_W, BPF_REG_4, BPF_REG_0, 4),
		/* 21 */ OCS_BPF_STORE(BPF_W, BPF_REG_7, BPF_REG_4, 0),
		/* 22 */ OCS_BPF_LOAD(BPF_H, BPF_REG_4, BPF_REG_0, 8),
		/* 23 */ OCS_BPF_STORE(BPF_H, BPF_REG_7, BPF_REG_4, 4),
		/* 24 */ OCS_BPF_LOAD(BPF_H, BPF_REG_4, BPF_REG_0, 10),
		/* 25 */ OCS_BPF_STORE(BPF_H, BPF_REG_7, BPF_REG_4, 6),
		/* 26 */ OCS_BPF_LOAD(BPF_H, BPF_REG_4, BPF_REG_0, 12),
		/* 27 */ OCS_BPF_STORE(BPF_H, BPF_REG_7, BPF_REG_4, 8),
		/* 28 */ OCS_BPF_LOAD(BPF_H, BPF_REG_4, BPF_REG_0, 14),
		/* 29 */ OCS_BPF_STORE(BPF_H, BPF_REG_7, BPF_REG_4, 10),
		/* 30 */ OCS_BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_0, 0),
		/* 31 */ OCS_BPF_MOV_K(BPF_REG_2, 0),
		/* 32 */ OCS_BPF_CALL(BPF_FUNC_redirect),
		/* 33 */ OCS_BPF_EXIT,
		/* 34 */ OCS_BPF_MOV_K(BPF_REG_0, TC_ACT_UNSPEC),
		/* 35 */ OCS_BPF_EXIT,
	};

	return ocs_bpf_load(program, sizeof(program) / sizeof(program[0]), "ocs_forward");
}

static int make_map(uint32_t entries)
{
	return ocs_bpf_map_create(BPF_MAP_TYPE_HASH, sizeof(struct key), sizeof(struct value),
				  entries ? entries : 1, 0, "ocs_forward");
}

static int add_entry(int map, const struct key *key, const struct value *value)
{
	union bpf_attr attr = { 0 };

	attr.map_fd = (uint32_t)map;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	return ocs_bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

/* Returns 0, or an errno. */
static int filter_attach(int program, unsigned int ifindex)
{
	struct ocs_bpf_filter filter = { .program = program,
					 .name = "ocs_forward",
					 .preference = PREFERENCE,
					 .protocol = ETH_P_IP };

	return ocs_bpf_filter_attach(&filter, ifindex);
}

static int fill_map(int map, const struct ocs_forward *f, const struct ocs_forward_hosts *hosts,
		    int host)
{
	const struct ocs_forward_port *ports = hosts->host[host].ports;

	for (int in = 0; in < f->degree; in++)
		for (int t = 0; t < f->servers; t++) {
			uint8_t out = ocs_forward_out(f, host, in, t);
			struct value value;
			struct key key;

			if (out == OCS_FORWARD_NONE)
				continue;
			key.ifindex = if_nametoindex(ports[in].forward);
			inet_pton(AF_INET, hosts->host[t].address, &key.address);
			value.ifindex = if_nametoindex(ports[out].forward);
			memcpy(value.destination,
			       ocs_forward_mac(hosts, &f->link[host * f->degree + out], t), 6);
			memcpy(value.source, ports[out].forward_mac, 6);
			if (add_entry(map, &key, &value))
				return -1;
		}
	return 0;
}

int ocs_forward_bpf_attach(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			   int host, struct ocs_error *err)
{
	int map = make_map((uint32_t)(forward->degree * forward->servers)), program = -1, rc = 0;

	if (map < 0 || fill_map(map, forward, hosts, host))
		rc = ocs_error_set(err, OCS_ERROR, "the kernel makes no bpf map: %s",
				   strerror(errno));
	if (!rc && (program = load_program(map)) < 0)
		rc = ocs_error_set(err, OCS_ERROR, "the kernel takes no bpf program: %s",
				   strerror(errno));
	for (int p = 0; p < forward->degree && !rc; p++) {
		const char *device = hosts->host[host].ports[p].forward;
		int number = filter_attach(program, if_nametoindex(device));

		if (number)
			rc = ocs_error_set(err, OCS_ERROR,
					   "the kernel puts no bpf filter on %s: %s", device,
					   strerror(number));
	}
	if (program >= 0)
		close(program);
	if (map >= 0)
		close(map);
	return rc;
}

bool ocs_forward_bpf_works(void)
{
	int map = make_map(1), program = map < 0 ? -1 : load_program(map);

	return program >= 0 && filter_attach(program, if_nametoindex("lo")) == 0;
}
