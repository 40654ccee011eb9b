/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_PLANE_MAP_H
#define OCS_EMULATOR_PLANE_MAP_H

/* Where frames go: a table in memory that the kernel reads for every frame, so that a beam is moved
 * by a store and not by a process or a system call.  One BPF program at the ingress of each
 * interface looks up its interface number there. */

#include <stdint.h>

struct ocs_error;

/* Of one interface; the program knows this layout. */
struct ocs_emu_beam {
	uint32_t target;	 /* interface number that frames leave by; 0: dark */
	uint32_t changing;	 /* not 0: mirrors move, nothing passes */
	uint64_t passed;	 /* frames, counted by the kernel: sent on, */
	uint64_t dark;		 /* lost where no light goes, */
	uint64_t lost_in_change; /* lost while mirrors moved */
};

struct ocs_emu_map {
	struct ocs_emu_beam *beams; /* by interface number */
	uint32_t count;
	int map, program;
};

/* A table for the interface numbers below COUNT.  0, or -1 with ERR; ocs_emu_map_close either way. */
int ocs_emu_map_open(struct ocs_emu_map *map, uint32_t count, struct ocs_error *err);

/* From now on frames that come in by IFINDEX, which has a clsact queue, go where the table says.
 * 0, or -1 with ERR. */
int ocs_emu_map_attach(const struct ocs_emu_map *map, unsigned int ifindex, struct ocs_error *err);

void ocs_emu_map_close(struct ocs_emu_map *map);

#endif
