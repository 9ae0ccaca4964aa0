/* SPDX-License-Identifier: BSD-3-Clause */
/* hash.h - FNV-1a, 64 bits: the hash function of tables and of stored fingerprints.
 *
 * The values are the same on every machine and in every version. FNV-1a has no defence against
 * chosen collisions: a caller that hashes untrusted bytes begins with its own seed. */
#ifndef BASE_CORE_HASH_H
#define BASE_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_SEED UINT64_C(0xcbf29ce484222325)

/* hash_bytes - continue the hash h (HASH_SEED at first) with n bytes. */
static inline uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const uint8_t *s = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* hash_text - continue with a string, without its NUL. */
static inline uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s));
}

/* hash_u64 - mix the bits of a number, so that a table may use the low ones. */
static inline uint64_t hash_u64(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

#endif
