/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/bpf.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int ocs_bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int ocs_bpf_load(const struct bpf_insn *program, size_t count, const char *name)
{
	union bpf_attr attr = { 0 };

	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = (uint32_t)count;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	strcpy(attr.prog_name, name);
	return ocs_bpf_call(BPF_PROG_LOAD, &attr);
}

int ocs_bpf_map_create(enum bpf_map_type type, size_t key, size_t value, uint32_t entries,
		       uint32_t flags, const char *name)
{
	union bpf_attr attr = { 0 };

	attr.map_type = type;
	attr.key_size = (uint32_t)key;
	attr.value_size = (uint32_t)value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	strcpy(attr.map_name, name);
	return ocs_bpf_call(BPF_MAP_CREATE, &attr);
}
