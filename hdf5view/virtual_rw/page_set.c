/* SPDX-License-Identifier: BSD-3-Clause */
/* page_set.c - sets of pages: leaves of bits, found by binary search. A full leaf has no bits; an
 * empty one does not exist, except just before it is filled. */
#include "hdf5view/virtual_rw/page_set_int.h"

#include <string.h>

#define LEAF ((uint64_t)32768) /* pages of a leaf */
#define WORD 64
#define LEAF_WORDS (LEAF / WORD)

struct rw_leaf {
	uint64_t at;    /* its first page is LEAF times this */
	uint64_t count; /* pages in the set */
	uint64_t *bits; /* owned; NULL: all pages */
};

/* leaf_at - the first leaf at or after number `at`; n: none. */
static size_t leaf_at(const struct rw_map *m, uint64_t at)
{
	size_t low = 0;

	BISECT(low, m->n, mid, m->leaves[mid].at < at);
	return low;
}

static const struct rw_leaf *leaf_find(const struct rw_map *m, uint64_t at)
{
	size_t i = leaf_at(m, at);

	return i < m->n && m->leaves[i].at == at ? &m->leaves[i] : NULL;
}

int rw_map_reserve(struct rw_map *m, uint64_t page, uint64_t n, struct err *e)
{
	uint64_t last = n ? (page + n - 1) / LEAF : 0;

	for (uint64_t at = page / LEAF; n > 0 && at <= last; at++) {
		size_t i = leaf_at(m, at);
		uint64_t *bits;

		if (i < m->n && m->leaves[i].at == at)
			continue;
		bits = alloc_array(LEAF_WORDS, sizeof(*bits));
		if (!bits ||
		    grow_array(&m->leaves, &m->cap, m->n + 1, sizeof(*m->leaves)) < 0) {
			free(bits);
			return err_nomem(e);
		}
		memmove(&m->leaves[i + 1], &m->leaves[i], (m->n - i) * sizeof(*m->leaves));
		m->leaves[i] = (struct rw_leaf){.at = at, .bits = bits};
		m->n++;
	}
	return 0;
}

/* add_here - add pages [from, to) of one leaf. */
static void add_here(struct rw_leaf *l, uint64_t from, uint64_t to)
{
	if (!l->bits)
		return;
	for (uint64_t i = from; i < to; i++) {
		uint64_t bit = (uint64_t)1 << i % WORD;

		l->count += !(l->bits[i / WORD] & bit);
		l->bits[i / WORD] |= bit;
	}
	if (l->count == LEAF) {
		free(l->bits);
		l->bits = NULL;
	}
}

void rw_map_add(struct rw_map *m, uint64_t page, uint64_t n)
{
	while (n > 0) {
		size_t i = leaf_at(m, page / LEAF);
		uint64_t from = page % LEAF, part = u64_min(n, LEAF - from);

		if (i < m->n && m->leaves[i].at == page / LEAF) /* reserved */
			add_here(&m->leaves[i], from, from + part);
		page += part;
		n -= part;
	}
}

/* run_here - the number of the leaf's pages from `from` on, at most n, that are like the first
 * one. */
static uint64_t run_here(const struct rw_leaf *l, uint64_t from, uint64_t n, bool in)
{
	uint64_t i = from, end = u64_min(LEAF, from + n);

	if (!l || !l->bits)
		return end - from;
	while (i < end) {
		uint64_t word = l->bits[i / WORD];

		if (i % WORD == 0 && word == (in ? UINT64_MAX : 0))
			i += WORD;
		else if ((word >> i % WORD & 1) == in)
			i++;
		else
			break;
	}
	return u64_min(i, end) - from;
}

static bool in_leaf(const struct rw_leaf *l, uint64_t i)
{
	return l && (!l->bits || (l->bits[i / WORD] >> i % WORD & 1));
}

uint64_t rw_map_run(const struct rw_map *m, uint64_t page, uint64_t n, bool *ret_in)
{
	uint64_t done = 0, step, here;
	bool in = in_leaf(leaf_find(m, page / LEAF), page % LEAF);

	*ret_in = in;
	while (done < n) {
		uint64_t p = page + done;
		size_t i = leaf_at(m, p / LEAF);
		const struct rw_leaf *l = NULL;

		if (i < m->n && m->leaves[i].at == p / LEAF)
			l = &m->leaves[i];
		if (!l && in)
			break;
		if (!l) { /* up to the next leaf nothing is in the set */
			step = i < m->n ? m->leaves[i].at * LEAF - p : n - done;
			done += u64_min(step, n - done);
			continue;
		}
		if (in_leaf(l, p % LEAF) != in)
			break;
		here = u64_min(n - done, LEAF - p % LEAF);
		step = run_here(l, p % LEAF, here, in);
		done += step;
		if (step < here)
			break;
	}
	return done;
}

bool rw_map_any(const struct rw_map *m, uint64_t page, uint64_t n)
{
	bool in;

	return n > 0 && (rw_map_run(m, page, n, &in) < n || in);
}

bool rw_map_next(const struct rw_map *m, uint64_t page, uint64_t *ret_page, uint64_t *ret_n)
{
	uint64_t end = m->n ? (m->leaves[m->n - 1].at + 1) * LEAF : 0;
	bool in;
	uint64_t n = page < end ? rw_map_run(m, page, end - page, &in) : 0;

	if (n == 0)
		return false;
	if (!in) {
		page += n;
		n = page < end ? rw_map_run(m, page, end - page, &in) : 0;
	}
	*ret_page = page;
	*ret_n = n;
	return n > 0;
}

/* cut_here - remove pages of one leaf from `from` > 0 on. */
static int cut_here(struct rw_leaf *l, uint64_t from, struct err *e)
{
	if (!l->bits) {
		l->bits = alloc_array(LEAF_WORDS, sizeof(*l->bits));
		if (!l->bits)
			return err_nomem(e);
		memset(l->bits, 0xff, LEAF_WORDS * sizeof(*l->bits));
	}
	for (uint64_t i = from; i < LEAF; i++) {
		uint64_t bit = (uint64_t)1 << i % WORD;

		l->count -= (l->bits[i / WORD] & bit) != 0;
		l->bits[i / WORD] &= ~bit;
	}
	return 0;
}

int rw_map_cut(struct rw_map *m, uint64_t page, struct err *e)
{
	size_t i = leaf_at(m, page / LEAF);

	if (i < m->n && m->leaves[i].at == page / LEAF && page % LEAF > 0) {
		int rc = cut_here(&m->leaves[i], page % LEAF, e);

		if (rc < 0)
			return rc;
		i++;
	}
	for (size_t k = i; k < m->n; k++)
		free(m->leaves[k].bits);
	m->n = i < m->n ? i : m->n;
	return 0;
}

void rw_map_release(struct rw_map *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->leaves[i].bits);
	free(m->leaves);
	*m = (struct rw_map){0};
}
