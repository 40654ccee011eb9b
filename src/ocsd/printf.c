/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* igraph brings libquadmath along (by way of LAPACK), which registers numbers of 128
 * bits with the C library as soon as it is loaded; from then on every printf of the
 * process, JSON's and the TL1 driver's too, takes glibc's slow way.  A tenth of ocsd's
 * time for a large job went there.  Nobody here prints such numbers, so there is no room
 * for the type: libquadmath, which asks for it first, then leaves printf alone. */

#include <errno.h>
#include <printf.h>

/* In the place of glibc's. */
__attribute__((visibility("default"))) int register_printf_type(printf_va_arg_function *take)
{
	(void)take;
	errno = ENOSPC;
	return -1;
}
