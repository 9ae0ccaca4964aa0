/* SPDX-License-Identifier: BSD-3-Clause */
/* damage.h - changes of datasets that know what they change: numbers where a format has numbers,
 * checksums made right again, tokens of JSON in the place of others. For targets and drivers in
 * this folder; the same dice give the same damage.
 *
 * All work on bytes in place, with room to grow: a hurt. What finds nothing to change changes any
 * byte. */
#ifndef TESTS_FUZZ_DAMAGE_H
#define TESTS_FUZZ_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* dice - numbers that look like chance. */
struct dice {
	uint64_t state;
};

struct dice dice_of(uint64_t seed, uint64_t round);
/* dice_below - 0 <= result < n; 0 for n = 0. */
uint64_t dice_below(struct dice *d, uint64_t n);

/* hurt - n bytes in memory of cap bytes; owned by the caller. */
struct hurt {
	uint8_t *p;
	size_t n, cap;
};

/* damage_bytes - any file: a bit, a byte, a number, a piece in another place, the end cut off. */
void damage_bytes(struct dice *d, struct hurt *h);
/* damage_field - a number of width 1, 2, 4 or 8 at p: an edge, one more, one less, any. */
void damage_field(struct dice *d, uint8_t *p, size_t width, bool big);

/* sums - structures of an HDF5 file that end with a checksum; found in the undamaged file, and made
 * right after damage. */
struct sums {
	struct {
		size_t at, len;  /* the checksum is behind it */
	} *s;
	size_t n, cap;
};

void sums_find(const uint8_t *p, size_t n, struct sums *ret);
void sums_release(struct sums *s);
void damage_hdf5(struct dice *d, struct hurt *h, const struct sums *sums);

/* damage_cdf - the words of a classic header. damage_hdf4 - data descriptors. damage_zip - records
 * of an archive. damage_json - tokens of a document. */
void damage_cdf(struct dice *d, struct hurt *h);
void damage_hdf4(struct dice *d, struct hurt *h);
void damage_zip(struct dice *d, struct hurt *h);
void damage_json(struct dice *d, struct hurt *h);

/* ---- a tree of objects, packed: for each two bytes for the length of its key, four for its own
 * (little-endian), key and bytes ---- */

#define TREE_OBJECTS 400

struct object {
	char key[256];
	struct hurt body;   /* owned */
};

struct tree {
	struct object *o;   /* owned; TREE_OBJECTS of them */
	size_t n;
};

/* tree_unpack - what is cut off is left out. */
void tree_unpack(const uint8_t *p, size_t n, struct tree *ret);
size_t tree_pack(const struct tree *t, uint8_t *out, size_t cap);
void tree_release(struct tree *t);
/* damage_tree - one object: a document's tokens, a chunk's bytes, an index of a shard with its
 * checksum made right; or it is gone, shorter, another's, or elsewhere. */
void damage_tree(struct dice *d, struct tree *t);
/* tree_zip - as an archive of stored or deflated entries. */
void tree_zip(const struct tree *t, bool deflate, struct hurt *ret);

#endif
