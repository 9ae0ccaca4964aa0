/* SPDX-License-Identifier: BSD-3-Clause */
/* index_btree_v1.c - chunk index of type B-tree version 1: the one nearly every netCDF-4 file has.
 *
 * Level by level, each node with one pread: the size of a node depends on a rank that newer
 * superblocks do not state, so the first read takes what the default rank would need and later
 * ones what the largest node so far needed. Nodes of a level are visited in key order, so
 * chunks come out in C order. Siblings are not followed: the parent's list says the same.
 *
 * Spec: HDF5 File Format 3.0, III.A.1, node type 1. */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_ENTRIES 64 /* twice the library's default rank for chunks */

struct btree1_nodes {
	uint64_t *addr;
	size_t n, cap;
};

struct btree1_tree {
	struct index_builder *b;
	size_t head; /* bytes before the first key */
	size_t key;  /* bytes of a key */
	size_t step; /* bytes of a key and its child */
	uint8_t *buf;
	size_t cap;                   /* bytes of buf */
	size_t guess;                 /* bytes that a node probably has in use */
	uint64_t off[DS_RANK_MAX];    /* element offsets of the last key */
	uint64_t coords[DS_RANK_MAX]; /* the same in chunks */
};

/* Read the node at addr; t->buf then holds head + *ret_n * step bytes of it. want_level < 0:
 * any. */
static int btree1_read_node(struct btree1_tree *t, uint64_t addr, int want_level,
			    unsigned *ret_level, size_t *ret_n, struct err *e)
{
	const struct h5_file *f = t->b->f;
	size_t got, need, n;
	int rc;

	if (!h5_in_file(f, addr, t->head))
		return err_set(e, -EBADMSG, "chunk B-tree: node at %llu is outside the file",
			       (unsigned long long)addr);
	if (grow_array(&t->buf, &t->cap, t->guess, 1) < 0)
		return err_nomem(e);
	got = (size_t)u64_min(t->guess, f->size - addr);
	rc = h5_pread(f, addr, t->buf, got, "chunk B-tree", e);
	if (rc < 0)
		return rc;
	if (memcmp(t->buf, "TREE", 4) != 0 || t->buf[4] != 1)
		return err_set(e, -EBADMSG, "chunk B-tree: no node at %llu",
			       (unsigned long long)addr);
	*ret_level = t->buf[5];
	if (want_level >= 0 && *ret_level != (unsigned)want_level)
		return err_set(e, -EBADMSG, "chunk B-tree: level %u, expected %d", *ret_level,
			       want_level);
	n = (size_t)t->buf[6] | (size_t)t->buf[7] << 8;
	need = t->head + n * t->step;
	rc = index_builder_spend(t->b, need, e);
	if (rc == 0 && need > got) {
		if (grow_array(&t->buf, &t->cap, need, 1) < 0)
			return err_nomem(e);
		rc = h5_pread(f, addr + got, t->buf + got, need - got, "chunk B-tree", e);
		t->guess = need;
	}
	*ret_n = n;
	return rc;
}

/* Offsets of one key to chunk coordinates. Neighbours mostly differ in one dimension, by one
 * chunk: division is the exception. */
static inline bool key_coords(struct btree1_tree *t, const uint8_t *p)
{
	const struct h5_layout *l = t->b->l;

	for (size_t d = 0; d < t->b->rank; d++, p += 8) {
		uint64_t off = get_le64(p);

		if (off == t->off[d])
			continue;
		if (off == t->off[d] + l->chunk[d]) {
			t->coords[d]++;
		} else {
			t->coords[d] = off / l->chunk[d];
			if (off % l->chunk[d] != 0)
				return false;
		}
		t->off[d] = off;
	}
	return true;
}

static int leaf(struct btree1_tree *t, size_t n, struct err *e)
{
	const uint8_t *p = t->buf + t->head;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++, p += t->step) {
		uint64_t addr = h5_addr(t->b->f, p + t->key);

		if (addr == HDF5_ABSENT)
			continue;
		if (!key_coords(t, p + 8))
			return err_set(e, -EBADMSG,
				       "chunk B-tree: a key lies between two chunks");
		rc = index_builder_add(t->b, t->coords, addr, get_le32(p), get_le32(p + 4), e);
	}
	return rc;
}

static int inner(struct btree1_tree *t, size_t n, struct btree1_nodes *next, struct err *e)
{
	const uint8_t *p = t->buf + t->head + t->key;

	if (next->n + n > t->b->max_bytes / sizeof(*next->addr))
		return err_set(e, -ERANGE, "chunk B-tree: too many nodes for %llu bytes",
			       (unsigned long long)t->b->max_bytes);
	if (grow_array(&next->addr, &next->cap, next->n + n, sizeof(*next->addr)) < 0)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++, p += t->step)
		next->addr[next->n++] = h5_addr(t->b->f, p);
	return 0;
}

static int btree1_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Two parents with one child would multiply work level by level. */
static int check_distinct(const struct btree1_nodes *v, struct err *e)
{
	auto_free uint64_t *copy = alloc_array(v->n, sizeof(*copy));

	if (!copy)
		return err_nomem(e);
	if (v->n > 0)
		memcpy(copy, v->addr, v->n * sizeof(*copy));
	qsort(copy, v->n, sizeof(*copy), btree1_by_value);
	for (size_t i = 1; i < v->n; i++)
		if (copy[i] == copy[i - 1])
			return err_set(e, -EBADMSG, "chunk B-tree: node at %llu appears twice",
				       (unsigned long long)copy[i]);
	return 0;
}

static uint64_t node_at(const void *arg, size_t i)
{
	return ((const struct btree1_nodes *)arg)->addr[i];
}

/* One level: leaves give chunks, others the nodes of the next level. */
static int btree1_level(struct btree1_tree *t, const struct btree1_nodes *now, int want,
			struct btree1_nodes *next, struct err *e)
{
	struct readahead ra = {.f = t->b->f};
	int rc = 0;

	next->n = 0;
	for (size_t i = 0; rc == 0 && i < now->n; i++) {
		unsigned at;
		size_t n;

		readahead_nodes(&ra, i, now->n, t->guess, node_at, now);
		rc = btree1_read_node(t, now->addr[i], want, &at, &n, e);
		rc = rc ? rc : at == 0 ? leaf(t, n, e) : inner(t, n, next, e);
	}
	return rc < 0 || want == 0 ? rc : check_distinct(next, e);
}

int h5_btree1_load(struct index_builder *b, struct err *e)
{
	struct btree1_tree t = {.b = b,
				.head = 8 + 2 * (size_t)b->f->offset_size,
				.key = 8 + 8 * ((size_t)b->rank + 1)};
	struct btree1_nodes now = {0}, next = {0};
	unsigned depth = 0;
	size_t n;
	int rc;

	t.step = t.key + b->f->offset_size;
	t.guess = t.head + DEFAULT_ENTRIES * t.step;
	rc = btree1_read_node(&t, b->l->addr, -1, &depth, &n, e);
	if (rc == 0 && depth > FORMAT_DEPTH_MAX)
		rc = err_set(e, -EBADMSG, "chunk B-tree: depth %u exceeds %u", depth,
			     FORMAT_DEPTH_MAX);
	rc = rc ? rc : depth == 0 ? leaf(&t, n, e) : inner(&t, n, &next, e);
	rc = rc ? rc : check_distinct(&next, e);
	for (int want = (int)depth - 1; rc == 0 && want >= 0; want--) {
		struct btree1_nodes swap = now;

		now = next;
		next = swap;
		rc = btree1_level(&t, &now, want, &next, e);
	}
	free(now.addr);
	free(next.addr);
	free(t.buf);
	return rc;
}
