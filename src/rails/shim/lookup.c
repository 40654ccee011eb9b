/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* dlsym searches from its caller on where it is asked for RTLD_NEXT or RTLD_DEFAULT.  So what is not answered here is not
 * called but jumped to, with the caller's registers and stack as they are. */

#include "src/rails/shim/lookup.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

typedef void *lookup_t(void *, const char *);

/* A sanitizer of the program looks functions up before its shadow memory is there. */
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))

/* In two registers: the function that is the answer, or the dlsym that has it. */
struct lookup_answer {
	void *found;
	lookup_t *next;
};

EARLY static lookup_t *library_lookup(void)
{
	/* The version that each architecture began with, and the one since it is part of libc.so. */
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	static lookup_t *_Atomic found;
	lookup_t *lookup = atomic_load(&found);

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions) && !lookup; i++)
		lookup = (lookup_t *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store(&found, lookup);
	return lookup;
}

EARLY void *ocs_shim_dlsym(void *handle, const char *name)
{
	return library_lookup()(handle, name);
}

/* The function NAME of this library. */
static void *own_find(const char *name)
{
	static void *_Atomic own;
	void *handle = atomic_load(&own);
	Dl_info info;

	if (!handle && dladdr((void *)own_find, &info))
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	atomic_store(&own, handle);
	return handle ? ocs_shim_dlsym(handle, name) : NULL;
}

/* Called below by its name. */
__attribute__((visibility("hidden"), used)) struct lookup_answer ocs_shim_lookup(void *handle,
										 const char *name);

EARLY struct lookup_answer ocs_shim_lookup(void *handle, const char *name)
{
	static lookup_t *_Atomic behind;
	struct lookup_answer answer = { NULL, atomic_load(&behind) };
	void *own, *found;

	if (!answer.next) {
		/* Another library that is preloaded may have one, too. */
		answer.next = (lookup_t *)ocs_shim_dlsym(RTLD_NEXT, "dlsym");
		atomic_store(&behind, answer.next);
	}
	if (!name || handle == RTLD_NEXT || handle == RTLD_DEFAULT || !ocs_shim_lookup_name(name))
		return answer;
	own = own_find(name);
	found = own ? ocs_shim_dlsym(handle, name) : NULL;
	if (found && found != own && ocs_shim_lookup_take(found))
		answer.found = own;
	return answer;
}

#if defined(__x86_64__)

__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym,@function\n"
	".p2align 4\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	subq $24, %rsp\n"
	".cfi_adjust_cfa_offset 24\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	call ocs_shim_lookup\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	addq $24, %rsp\n"
	".cfi_adjust_cfa_offset -24\n"
	"	testq %rax, %rax\n"
	"	jnz 1f\n"
	"	jmp *%rdx\n"
	"1:	ret\n"
	".cfi_endproc\n"
	".size dlsym, .-dlsym\n");

#elif defined(__aarch64__)

__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym,%function\n"
	".p2align 4\n"
	"dlsym:\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl ocs_shim_lookup\n"
	"	cbnz x0, 1f\n"
	"	mov x17, x1\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	br x17\n"
	"1:	ldp x29, x30, [sp], #32\n"
	"	ret\n"
	".size dlsym, .-dlsym\n");

#endif
