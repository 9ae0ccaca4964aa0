/* SPDX-License-Identifier: BSD-3-Clause */
/* sorted_keys.h - shared by the stores of this module; private to nczarr.
 *
 * A store with all its names in memory sorts them, with '/' before every other byte: then a folder
 * immediately precedes the names below it, and these are contiguous, so that look-ups and listings
 * are binary searches. */
#ifndef NCZARR_STORE_SORTED_KEYS_H
#define NCZARR_STORE_SORTED_KEYS_H

#include "nczarr/store/store.h"

/* sorted_keys - sorted names without duplicates, none of them "" and none with a NUL. */
struct sorted_keys {
	const void *arg;
	size_t n;
	const char *(*name)(const void *arg, size_t i, size_t *ret_len);  /* need not be
									   * NUL-terminated */
};

#define SORTED_KEYS_NONE SIZE_MAX

/* sorted_keys_cmp - the order described above. */
int sorted_keys_cmp(const char *a, size_t a_len, const char *b, size_t b_len);

/* sorted_keys_find - the first name that is not before key. */
size_t sorted_keys_find(const struct sorted_keys *t, const char *key, size_t len);
/* sorted_keys_is - whether name i is the key. i may be n. */
bool sorted_keys_is(const struct sorted_keys *t, size_t i, const char *key, size_t len);
/* sorted_keys_below - whether name i lies below the key, at any depth. i may be n. */
bool sorted_keys_below(const struct sorted_keys *t, size_t i, const char *key, size_t len);

/* sorted_keys_emit - one name below a key. i: the index of exactly this name, or SORTED_KEYS_NONE;
 * has_below: there are names below it. Returns false to stop. */
typedef bool sorted_keys_emit(void *arg, const char *part, size_t len, size_t i,
			      bool has_below);

/* sorted_keys_list - emit one level below a key ("" is the root). Costs a binary search, and
 * another one for each entry with names below it. Returns whether there was any. */
bool sorted_keys_list(const struct sorted_keys *t, const char *key, size_t len,
		      sorted_keys_emit *emit, void *arg);

/* store_mix - mix a number into a version. Start with 0; store_version() of the result is the
 * version, which is never 0. */
static inline uint64_t store_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 29;
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

static inline uint64_t store_version(uint64_t h)
{
	return h ? h : 1;
}

/* store_mix_file - mix the identity and state of a file: device, inode, size, mtime and ctime. */
static inline uint64_t store_mix_file(const struct stat *st)
{
	uint64_t h = store_mix(0, (uint64_t)st->st_dev);

	h = store_mix(h, (uint64_t)st->st_ino);
	h = store_mix(h, (uint64_t)st->st_size);
	h = store_mix(h, (uint64_t)st->st_mtim.tv_sec);
	h = store_mix(h, (uint64_t)st->st_ctim.tv_sec);
	return store_mix(h, (uint64_t)st->st_mtim.tv_nsec << 32 | (uint64_t)st->st_ctim.tv_nsec);
}

#endif
