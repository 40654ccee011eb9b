/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/emulator/plane_map.h"
#include "src/util/bpf.h"
#include "src/util/error.h"

#define NAME "ocs_emulator"

_Static_assert(sizeof(struct ocs_emu_beam) == 32, "the program knows this");

/* One more in the 64-bit counter at D + O. */
#define COUNT(d, s, o) OCS_BPF(BPF_STX | BPF_ATOMIC | BPF_DW, d, s, o, BPF_ADD)
#define JUMP(op, d, o) OCS_BPF(BPF_JMP | (op) | BPF_K, d, 0, o, 0)
#define FIELD(field) ((int)offsetof(struct ocs_emu_beam, field))

/* Returns the descriptor, or -1 with errno. */
static int program_load(int map)
{
	const struct bpf_insn program[] = {
		/*  0 */ OCS_BPF_LOAD(BPF_W, BPF_REG_2, BPF_REG_1,
				      (int)offsetof(struct __sk_buff, ifindex)),
		/*  1 */ OCS_BPF_STORE(BPF_W, BPF_REG_10, BPF_REG_2, -4),
		/*  2 */ OCS_BPF(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		/*  3 */ OCS_BPF(0, 0, 0, 0, 0),
		/*  4 */ OCS_BPF_MOV(BPF_REG_2, BPF_REG_10),
		/*  5 */ OCS_BPF_ADD_K(BPF_REG_2, -4),
		/*  6 */ OCS_BPF_CALL(BPF_FUNC_map_lookup_elem),
		/*  7 */ JUMP(BPF_JEQ, BPF_REG_0, 21 - 8),
		/*  8 */ OCS_BPF_MOV_K(BPF_REG_3, 1),
		/*  9 */ OCS_BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_0, FIELD(changing)),
		/* 10 */ JUMP(BPF_JNE, BPF_REG_1, 19 - 11),
		/* 11 */ OCS_BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_0, FIELD(target)),
		/* 12 */ JUMP(BPF_JEQ, BPF_REG_1, 17 - 13),
		/* 13 */ COUNT(BPF_REG_0, BPF_REG_3, FIELD(passed)),
		/* 14 */ OCS_BPF_MOV_K(BPF_REG_2, 0),
		/* 15 */ OCS_BPF_CALL(BPF_FUNC_redirect),
		/* 16 */ OCS_BPF_EXIT,
		/* 17 */ COUNT(BPF_REG_0, BPF_REG_3, FIELD(dark)),
		/* 18 */ OCS_BPF(BPF_JMP | BPF_JA, 0, 0, 21 - 19, 0),
		/* 19 */ COUNT(BPF_REG_0, BPF_REG_3, FIELD(lost_in_change)),
		/* 20 */ OCS_BPF(BPF_JMP | BPF_JA, 0, 0, 21 - 21, 0),
		/* 21 */ OCS_BPF_MOV_K(BPF_REG_0, TC_ACT_SHOT),
		/* 22 */ OCS_BPF_EXIT,
	};

	return ocs_bpf_load(program, sizeof(program) / sizeof(program[0]), NAME);
}

int ocs_emu_map_open(struct ocs_emu_map *map, uint32_t count, struct ocs_error *err)
{
	void *memory;

	*map = (struct ocs_emu_map){ .map = -1, .program = -1, .count = count };
	map->map = ocs_bpf_map_create(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
				      sizeof(struct ocs_emu_beam), count, BPF_F_MMAPABLE, NAME);
	if (map->map < 0)
		return ocs_error_set(err, OCS_ERROR,
				     "the kernel makes no BPF map (this needs root): %s",
				     strerror(errno));
	memory = mmap(NULL, count * sizeof(*map->beams), PROT_READ | PROT_WRITE, MAP_SHARED,
		      map->map, 0);
	if (memory == MAP_FAILED)
		return ocs_error_set(err, OCS_ERROR, "the BPF map cannot be mapped: %s",
				     strerror(errno));
	map->beams = memory;
	map->program = program_load(map->map);
	if (map->program < 0)
		return ocs_error_set(err, OCS_ERROR, "the kernel takes no BPF program: %s",
				     strerror(errno));
	return 0;
}

void ocs_emu_map_close(struct ocs_emu_map *map)
{
	if (map->beams)
		munmap(map->beams, map->count * sizeof(*map->beams));
	if (map->program >= 0)
		close(map->program);
	if (map->map >= 0)
		close(map->map);
	*map = (struct ocs_emu_map){ .map = -1, .program = -1 };
}

int ocs_emu_map_attach(const struct ocs_emu_map *map, unsigned int ifindex, struct ocs_error *err)
{
	struct ocs_bpf_filter filter = { .program = map->program,
					 .name = NAME,
					 .preference = 1,
					 .protocol = ETH_P_ALL,
					 .exclusive = true };
	int rc = ocs_bpf_filter_attach(&filter, ifindex);

	return rc ? ocs_error_set(err, OCS_ERROR,
				  "the kernel puts no BPF filter on interface %u: %s", ifindex,
				  strerror(rc)) :
		    0;
}
