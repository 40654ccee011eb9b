/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_BITS_H
#define OCS_PLACE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets as words of 64 bits. */

/* As __builtin_popcountll, which calls a function where the processor is not known to have an
 * instruction for it. */
static inline int ocs_bits_count(uint64_t word)
{
	word -= word >> 1 & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (int)(word * 0x0101010101010101ULL >> 56);
}

/* The bits of WORD in opposite order. */
static inline uint64_t ocs_bits_turn(uint64_t word)
{
	word = (word >> 1 & 0x5555555555555555ULL) | (word & 0x5555555555555555ULL) << 1;
	word = (word >> 2 & 0x3333333333333333ULL) | (word & 0x3333333333333333ULL) << 2;
	word = (word >> 4 & 0x0f0f0f0f0f0f0f0fULL) | (word & 0x0f0f0f0f0f0f0f0fULL) << 4;
	return __builtin_bswap64(word);
}

/* BIT is not below 0: unsigned, as that divides by a shift alone. */
static inline bool ocs_bits_has(const uint64_t *set, int bit)
{
	return set[(unsigned int)bit / 64] >> (unsigned int)bit % 64 & 1;
}

static inline void ocs_bits_add(uint64_t *set, int bit)
{
	set[(unsigned int)bit / 64] |= 1ULL << (unsigned int)bit % 64;
}

static inline void ocs_bits_drop(uint64_t *set, int bit)
{
	set[(unsigned int)bit / 64] &= ~(1ULL << (unsigned int)bit % 64);
}

/* The COUNT bits of SET from FROM on; fewer than 64. */
static inline uint64_t ocs_bits_cut(const uint64_t *set, int from, int count)
{
	unsigned int word = (unsigned int)from / 64, shift = (unsigned int)from % 64;
	uint64_t bits = set[word] >> shift;

	if (shift + (unsigned int)count > 64)
		bits |= set[word + 1] << (64 - shift);
	return bits & ((1ULL << count) - 1);
}

/* Adds to SET, from FROM on, what is in BITS. */
static inline void ocs_bits_join(uint64_t *set, int from, uint64_t bits)
{
	unsigned int word = (unsigned int)from / 64, shift = (unsigned int)from % 64;

	set[word] |= bits << shift;
	if (shift && bits >> (64 - shift))
		set[word + 1] |= bits >> (64 - shift);
}

/* Word W of the set of WORDS words whose members are those of SET less BY. */
static inline uint64_t ocs_bits_down(const uint64_t *set, int words, int w, int by)
{
	int from = w + by / 64, shift = by % 64;
	uint64_t low, high;

	if (words == 1)
		return set[0] >> by;
	low = from < words ? set[from] : 0;
	high = from + 1 < words ? set[from + 1] : 0;
	return shift ? low >> shift | high << (64 - shift) : low;
}

/* The same for those of SET plus BY. */
static inline uint64_t ocs_bits_up(const uint64_t *set, int words, int w, int by)
{
	int from = w - by / 64, shift = by % 64;
	uint64_t high, low;

	if (words == 1)
		return set[0] << by;
	high = from >= 0 ? set[from] : 0;
	low = from >= 1 ? set[from - 1] : 0;
	return shift ? high << shift | low >> (64 - shift) : high;
}

#endif
