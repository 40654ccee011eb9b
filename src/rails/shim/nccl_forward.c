/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Every function of NCCL that has no gate: a jump to the real one, with the caller's registers and stack as
 * they are, so that nothing has to be known of its arguments. */

#include "src/rails/shim/nccl_internal.h"

#define OCS_NCCL_SYMBOL(name, refuse)        \
	__attribute__((visibility("hidden"), \
		       used)) struct ocs_nccl_slot ocs_nccl_slot_##name = { NULL, #name, refuse };
#include "src/rails/nccl_symbols.h"
#undef OCS_NCCL_SYMBOL

/* Called below by its name. */
__attribute__((visibility("hidden"), used)) void *ocs_nccl_resolve(struct ocs_nccl_slot *slot);

#if defined(__x86_64__)

#define OCS_NCCL_SYMBOL(symbol, refuse)                               \
	__asm__(".text\n"                                             \
		".globl " #symbol "\n"                                \
		".type " #symbol ",@function\n"                       \
		".p2align 4\n" #symbol ":\n"                          \
		".cfi_startproc\n"                                    \
		"	endbr64\n"                                          \
		"	leaq ocs_nccl_slot_" #symbol "(%rip), %r11\n" \
		"	movq (%r11), %rax\n"                                \
		"	testq %rax, %rax\n"                                 \
		"	jz ocs_nccl_first\n"                                \
		"	jmp *%rax\n"                                        \
		".cfi_endproc\n"                                      \
		".size " #symbol ", .-" #symbol "\n");

/* The first call of a function: %r11 is its slot. */
__asm__(".text\n"
	".local ocs_nccl_first\n"
	".type ocs_nccl_first,@function\n"
	"ocs_nccl_first:\n"
	".cfi_startproc\n"
	"	subq $200, %rsp\n"
	".cfi_adjust_cfa_offset 200\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	movq %rcx, 24(%rsp)\n"
	"	movq %r8, 32(%rsp)\n"
	"	movq %r9, 40(%rsp)\n"
	"	movups %xmm0, 48(%rsp)\n"
	"	movups %xmm1, 64(%rsp)\n"
	"	movups %xmm2, 80(%rsp)\n"
	"	movups %xmm3, 96(%rsp)\n"
	"	movups %xmm4, 112(%rsp)\n"
	"	movups %xmm5, 128(%rsp)\n"
	"	movups %xmm6, 144(%rsp)\n"
	"	movups %xmm7, 160(%rsp)\n"
	"	movq %r11, %rdi\n"
	"	call ocs_nccl_resolve\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	movq 24(%rsp), %rcx\n"
	"	movq 32(%rsp), %r8\n"
	"	movq 40(%rsp), %r9\n"
	"	movups 48(%rsp), %xmm0\n"
	"	movups 64(%rsp), %xmm1\n"
	"	movups 80(%rsp), %xmm2\n"
	"	movups 96(%rsp), %xmm3\n"
	"	movups 112(%rsp), %xmm4\n"
	"	movups 128(%rsp), %xmm5\n"
	"	movups 144(%rsp), %xmm6\n"
	"	movups 160(%rsp), %xmm7\n"
	"	addq $200, %rsp\n"
	".cfi_adjust_cfa_offset -200\n"
	"	jmp *%rax\n"
	".cfi_endproc\n"
	".size ocs_nccl_first, .-ocs_nccl_first\n");

#elif defined(__aarch64__)

#define OCS_NCCL_SYMBOL(symbol, refuse)                                  \
	__asm__(".text\n"                                                \
		".globl " #symbol "\n"                                   \
		".type " #symbol ",%function\n"                          \
		".p2align 4\n" #symbol ":\n"                             \
		"	hint #34\n" /* bti c */                          \
		"	adrp x16, ocs_nccl_slot_" #symbol "\n"           \
		"	add x16, x16, :lo12:ocs_nccl_slot_" #symbol "\n" \
		"	ldar x17, [x16]\n"                                     \
		"	cbz x17, ocs_nccl_first\n"                             \
		"	br x17\n"                                              \
		".size " #symbol ", .-" #symbol "\n");

/* The first call of a function: x16 is its slot. */
__asm__(".text\n"
	".type ocs_nccl_first,%function\n"
	"ocs_nccl_first:\n"
	"	stp x29, x30, [sp, #-224]!\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	stp x2, x3, [sp, #32]\n"
	"	stp x4, x5, [sp, #48]\n"
	"	stp x6, x7, [sp, #64]\n"
	"	str x8, [sp, #80]\n"
	"	stp q0, q1, [sp, #96]\n"
	"	stp q2, q3, [sp, #128]\n"
	"	stp q4, q5, [sp, #160]\n"
	"	stp q6, q7, [sp, #192]\n"
	"	mov x0, x16\n"
	"	bl ocs_nccl_resolve\n"
	"	mov x17, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x2, x3, [sp, #32]\n"
	"	ldp x4, x5, [sp, #48]\n"
	"	ldp x6, x7, [sp, #64]\n"
	"	ldr x8, [sp, #80]\n"
	"	ldp q0, q1, [sp, #96]\n"
	"	ldp q2, q3, [sp, #128]\n"
	"	ldp q4, q5, [sp, #160]\n"
	"	ldp q6, q7, [sp, #192]\n"
	"	ldp x29, x30, [sp], #224\n"
	"	br x17\n"
	".size ocs_nccl_first, .-ocs_nccl_first\n");

#else
/* cppcheck-suppress preprocessorErrorDirective */
#error "no forwarders for this processor: configure builds no libocs-rails-nccl.so there"
#endif

#include "src/rails/nccl_symbols.h"
