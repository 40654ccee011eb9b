/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_GLOO_LIBRARY_H
#define OCS_RAILS_SHIM_GLOO_LIBRARY_H

/* Gloo's library, for shims that interpose its functions by their C++ names: that of rails, and that of src/moe.
 * Compiled so that exceptions may pass. */

#include <stdatomic.h>
#include <stddef.h>

#define GLOO_NAME(TEXT) __asm__(TEXT) __attribute__((visibility("default")))

/* The function of Gloo of this name; ends the process where there is none: nobody can call it. */
void *ocs_gloo_real(const char *name);
#define REAL(TEXT)                                                 \
	({                                                         \
		static _Atomic(void *) found;                      \
                                                                   \
		if (!atomic_load(&found))                          \
			atomic_store(&found, ocs_gloo_real(TEXT)); \
		atomic_load(&found);                               \
	})

/* Throws std::runtime_error. */
_Noreturn void ocs_gloo_throw(const char *text);

/* What a user may do where Gloo is not as it is known: of the shim. */
extern const char ocs_gloo_advice[];

#define GLOO_CONNECT                                                                     \
	"_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_ptrINS_9" \
	"transport6DeviceEE"

/* gloo::rendezvous::Store of a context: what its members tell each other while it connects. */
struct gloo_store;

/* SIZE bytes of member RANK about WHAT. */
void ocs_gloo_store_set(struct gloo_store *store, const char *what, int rank, const void *value,
			size_t size);
/* Waits for them; of another size they leave VALUE alone. */
void ocs_gloo_store_get(struct gloo_store *store, const char *what, int rank, void *value,
			size_t size);

#endif
