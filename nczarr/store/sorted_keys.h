/* SPDX-License-Identifier: BSD-3-Clause */
/* sorted_keys.h - what the stores of this module share; private to nczarr.
 *
 * A store that holds all its names keeps them sorted, as a sorted_keys, with '/' before every other
 * byte: then a folder stands right before everything below it, and what is below it is one
 * stretch, so that looking up and listing are binary searches. */
#ifndef NCZARR_STORE_SORTED_KEYS_H
#define NCZARR_STORE_SORTED_KEYS_H

#include "nczarr/store/store.h"

/* sorted_keys - sorted names, each once, none of them "" and none with a NUL. */
struct sorted_keys {
	const void *arg;
	size_t n;
	const char *(*name)(const void *arg, size_t i, size_t *ret_len);  /* need not end in NUL */
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

/* sorted_keys_emit - one name below a key. i: which name of the table is exactly that one, or
 * SORTED_KEYS_NONE; has_below: others are below it. Returns false to stop. */
typedef bool sorted_keys_emit(void *arg, const char *part, size_t len, size_t i,
			      bool has_below);

/* sorted_keys_list - what is below a key ("" is the root), one level. Costs a binary search, and
 * for each entry with others below it one of its own. Returns whether there was anything. */
bool sorted_keys_list(const struct sorted_keys *t, const char *key, size_t len,
		      sorted_keys_emit *emit, void *arg);

/* store_mix - one more number for a version. Start with 0; store_version of the result is the
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

/* store_mix_file - what tells one state of a file from the next: where it is, its size, when its
 * bytes and when its inode changed. */
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
