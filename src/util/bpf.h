/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_BPF_H
#define OCS_UTIL_BPF_H

/* Small BPF programs of queues, written as instructions: neither a compiler nor a loader is needed
 * where they run.  BPF_* are the kernel's. */

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCS_BPF(c, d, s, o, i)                                                      \
	{                                                                           \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) \
	}
#define OCS_BPF_MOV(d, s) OCS_BPF(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define OCS_BPF_MOV_K(d, i) OCS_BPF(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define OCS_BPF_ADD_K(d, i) OCS_BPF(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define OCS_BPF_LOAD(size, d, s, o) OCS_BPF(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define OCS_BPF_STORE(size, d, s, o) OCS_BPF(BPF_STX | BPF_MEM | (size), d, s, o, 0)
#define OCS_BPF_CALL(i) OCS_BPF(BPF_JMP | BPF_CALL, 0, 0, 0, i)
#define OCS_BPF_EXIT OCS_BPF(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* The system call.  What it returns, or -1 with errno. */
int ocs_bpf_call(int command, union bpf_attr *attr);

/* Loads the COUNT instructions of PROGRAM under NAME, shorter than BPF_OBJ_NAME_LEN.  Returns its
 * descriptor, or -1 with errno. */
int ocs_bpf_load(const struct bpf_insn *program, size_t count, const char *name);

/* A map of that type with keys and values of so many bytes, at most ENTRIES.  Returns its descriptor,
 * or -1 with errno. */
int ocs_bpf_map_create(enum bpf_map_type type, size_t key, size_t value, uint32_t entries,
		       uint32_t flags, const char *name);

/* A filter of what an interface receives, which decides what becomes of the packet (direct action). */
struct ocs_bpf_filter {
	int program;	     /* its descriptor; the filter keeps the program */
	const char *name;    /* shorter than BPF_OBJ_NAME_LEN */
	uint16_t preference; /* filters of lower ones come first */
	uint16_t protocol;   /* ETH_P_*, of the host's order */
	bool exclusive;	     /* a filter that is there already is an error; else it is replaced */
};

/* Attaches FILTER to the interface IFINDEX, which has the queue clsact.  Returns 0, or an errno: EEXIST where it
 * is exclusive and one is there. */
int ocs_bpf_filter_attach(const struct ocs_bpf_filter *filter, unsigned int ifindex);

#endif
