/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/role.h"

bool ocsd_admin(const struct ocsd *d, uid_t uid)
{
	for (size_t i = 0; i < d->server.nadmins; i++)
		if (d->server.admins[i] == uid)
			return true;
	return false;
}

bool ocsd_role_has(const struct ocsd *d, uid_t uid, enum ocsd_role role)
{
	return role != OCSD_ADMINISTRATOR || ocsd_admin(d, uid);
}

bool ocsd_role_owns(const struct ocsd *d, uid_t uid, int64_t owner)
{
	return owner == (int64_t)uid || ocsd_admin(d, uid);
}
