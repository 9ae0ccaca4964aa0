/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_index.c - the table of one dataset's chunks: collects the chunks from the index readers,
 * sorts them, and answers look-ups. It reads the two index types without nodes itself (single
 * chunk, implicit).
 *
 * The table has two forms: dense, an array by linear position, if about half the grid or more is
 * stored; else sparse, entries sorted by position. Chunk addresses are not checked here: one bad
 * chunk must not hide the others.
 *
 * Spec: HDF5 File Format 3.0, VII.A single chunk, VII.B implicit. */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

#include "base/observe/metrics.h"

#define BLOCK 64 /* dense slots that share one entry of `ahead` */

struct h5_index {
	uint64_t total;           /* positions in the grid */
	uint64_t n;               /* stored chunks */
	struct h5_chunk *slots;   /* dense: total of them; NULL: sparse */
	uint64_t *ahead;          /* dense: for each block the first stored position in it or
				   * after it; one more at the end */
	struct h5_entry *entries; /* sparse: n, ascending by linear */
	bool counted;             /* counted in the metrics */
};

static const struct h5_chunk absent = {.addr = HDF5_ABSENT};

int index_builder_spend(struct index_builder *b, uint64_t n, struct err *e)
{
	if (n > b->budget)
		return err_set(e, -EBADMSG,
			       "chunk index: its nodes overlap: together they are larger than "
			       "the file");
	b->budget -= n;
	return 0;
}

int index_builder_read(struct index_builder *b, uint64_t addr, void *out, size_t n,
		       const char *what, struct err *e)
{
	int rc = index_builder_spend(b, n, e);

	return rc < 0 ? rc : h5_pread(b->f, addr, out, n, what, e);
}

int index_builder_node(struct index_builder *b, uint64_t addr, uint8_t **buf, size_t *cap,
		       uint64_t n, const char *signature, struct err *e)
{
	int rc;

	if (n < 10 || !h5_in_file(b->f, addr, n))
		return err_set(e, -EBADMSG,
			       "chunk index: node %s of %llu bytes is outside the file",
			       signature, (unsigned long long)n);
	if (n > b->max_bytes)
		return err_set(e, -ERANGE,
			       "chunk index: node of %llu bytes exceeds %llu bytes (a quarter "
			       "of -o memory): use a larger -o memory",
			       (unsigned long long)n, (unsigned long long)b->max_bytes);
	if (grow_array(buf, cap, (size_t)n, 1) < 0)
		return err_nomem(e);
	rc = index_builder_read(b, addr, *buf, (size_t)n, "chunk index", e);
	if (rc < 0)
		return rc;
	if (memcmp(*buf, signature, 4) != 0)
		return err_set(e, -EBADMSG, "chunk index: no node %s at %llu", signature,
			       (unsigned long long)addr);
	if ((*buf)[4] != 0)
		return err_set(e, -EOPNOTSUPP,
			       "chunk index: node %s has the unknown version %u", signature,
			       (*buf)[4]);
	if (!h5_sum_ok(*buf, (size_t)n))
		return err_set(e, -EBADMSG, "chunk index: wrong checksum in node %s at %llu",
			       signature, (unsigned long long)addr);
	return 0;
}

static int grow_entries(struct index_builder *b, struct err *e)
{
	size_t max = (size_t)u64_min(b->max_bytes / sizeof(*b->entries), SIZE_MAX / 64);
	size_t cap = b->cap ? b->cap * 2 : 64;
	struct h5_entry *p;

	if (b->cap >= max)
		return err_set(e, -ERANGE,
			       "chunk index: more than %zu chunks exceed %llu bytes (a quarter "
			       "of -o memory): use a larger -o memory",
			       max, (unsigned long long)b->max_bytes);
	cap = cap < max ? cap : max;
	p = realloc(b->entries, cap * sizeof(*p));
	if (!p)
		return err_nomem(e);
	b->entries = p;
	b->cap = cap;
	return 0;
}

/* chunk_partial - whether a chunk extends beyond its dataset. */
static bool chunk_partial(const struct index_builder *b, const uint64_t *coords)
{
	for (size_t d = 0; d < b->rank; d++)
		if (coords[d] >= b->l->dims[d] / b->l->chunk[d])
			return true;
	return false;
}

int index_builder_add(struct index_builder *b, const uint64_t *coords, uint64_t addr,
		      uint64_t size, uint32_t mask, struct err *e)
{
	struct h5_entry *p;
	uint64_t linear = 0;

	for (size_t d = 0; d < b->rank; d++) {
		if (coords[d] >= b->limit[d])
			return 0;
		linear += coords[d] * b->stride[d];
	}
	if (!b->l->filtered || (b->l->edges_unfiltered && chunk_partial(b, coords))) {
		size = b->chunk_bytes;
		mask = b->l->filtered ? CODEC_ALL_SKIPPED : 0;
	}
	if (size >
	    UINT32_MAX) { /* damaged: no chunk can be that large, the range check says so */
		addr = HDF5_NOWHERE;
		size = UINT32_MAX;
	}
	if (b->n == b->cap) {
		int rc = grow_entries(b, e);

		if (rc < 0)
			return rc;
	}
	if (b->n > 0 && linear <= b->entries[b->n - 1].linear)
		b->sorted = false;
	p = &b->entries[b->n++];
	p->linear = linear;
	p->c = (struct h5_chunk){.addr = addr, .size = (uint32_t)size, .mask = mask};
	return 0;
}

/* All chunks of the maximum extent lie one after the other. Only those of the grid are visited,
 * because the maximum may be anything. */
static int load_implicit(struct index_builder *b, struct err *e)
{
	uint64_t coords[DS_RANK_MAX] = {0}, idx = 0, off, addr;
	struct chunk_iter w;
	int rc;

	if (b->l->filtered)
		return err_set(e, -EBADMSG, "an implicit chunk index cannot have filters");
	rc = chunk_iter_init(&w, b, false, e);
	if (rc < 0 || w.count == 0)
		return rc;
	for (size_t d = 0; rc == 0;) {
		idx = 0;
		for (size_t i = 0; i < b->rank; i++)
			idx = idx * w.n[i] + coords[i]; /* < w.count */
		if (ckd_mul(&off, idx, (uint64_t)b->chunk_bytes) ||
		    ckd_add(&addr, b->l->addr, off) || addr == HDF5_ABSENT)
			addr = HDF5_NOWHERE;
		rc = index_builder_add(b, coords, addr, 0, 0, e);
		for (d = b->rank; d-- > 0; coords[d] = 0)
			if (++coords[d] < u64_min(b->limit[d], w.n[d]))
				break;
		if (d == SIZE_MAX)
			break;
	}
	return rc;
}

static int load_kind(struct index_builder *b, struct err *e)
{
	static const uint64_t origin[DS_RANK_MAX];

	if (b->l->addr == HDF5_ABSENT || b->total == 0)
		return 0;
	switch (b->l->index) {
	case HDF5_INDEX_BTREE1:
		return h5_btree1_load(b, e);
	case HDF5_INDEX_SINGLE:
		if (b->l->filtered && b->l->single_size == 0)
			return err_set(e, -EBADMSG, "single chunk: its stored size is missing");
		return index_builder_add(b, origin, b->l->addr, b->l->single_size,
					 b->l->single_mask, e);
	case HDF5_INDEX_IMPLICIT:
		return load_implicit(b, e);
	case HDF5_INDEX_FARRAY:
		return h5_farray_load(b, e);
	case HDF5_INDEX_EARRAY:
		return h5_earray_load(b, e);
	case HDF5_INDEX_BTREE2:
		return h5_btree2_load(b, e);
	}
	return err_set(e, -EOPNOTSUPP, "chunk index: unknown kind %d", (int)b->l->index);
}

static int build_init(struct index_builder *b, const uint64_t *grid, struct err *e)
{
	const struct h5_layout *l = b->l;
	uint64_t bytes = l->elem_size;

	if (l->cls != HDF5_LAYOUT_CHUNKED || l->rank < 1 || l->rank > DS_RANK_MAX || bytes == 0)
		return err_set(e, -EBADMSG, "not a chunked layout");
	b->rank = l->rank;
	b->total = 1;
	for (size_t d = b->rank; d-- > 0;) {
		b->stride[d] = b->total;
		if (ckd_mul(&b->total, b->total, grid[d]) || b->total == UINT64_MAX)
			return err_set(e, -ERANGE, "chunk grid has more than 2^64 positions");
		if (l->chunk[d] == 0)
			return err_set(e, -EBADMSG, "layout: chunk length is 0 or missing");
		b->limit[d] = u64_min(grid[d], l->dims[d] / l->chunk[d] +
						       (l->dims[d] % l->chunk[d] != 0));
		if (ckd_mul(&bytes, bytes, l->chunk[d]) || bytes > UINT32_MAX)
			return err_set(e, -EOPNOTSUPP,
				       "chunks of 4 GiB or more are not supported");
	}
	b->chunk_bytes = (uint32_t)bytes;
	b->budget = b->f->size;
	b->sorted = true;
	return 0;
}

/* Small grids and full ones; both tables exist for a moment, so both count. */
static bool want_dense(const struct index_builder *b)
{
	uint64_t room = b->max_bytes - b->n * sizeof(struct h5_entry);

	return b->total <= 2 * (uint64_t)b->n + 1024 &&
	       b->total < room / (sizeof(struct h5_chunk) + 1);
}

static int duplicate(uint64_t linear, struct err *e)
{
	return err_set(e, -EBADMSG, "chunk index: chunk %llu appears twice",
		       (unsigned long long)linear);
}

static int make_dense(struct h5_index *x, const struct index_builder *b, struct err *e)
{
	size_t total = (size_t)b->total, blocks = total / BLOCK + 1;
	uint64_t next = UINT64_MAX;

	x->slots = malloc((total ? total : 1) * sizeof(*x->slots));
	x->ahead = alloc_array(blocks + 1, sizeof(*x->ahead));
	if (!x->slots || !x->ahead)
		return err_nomem(e);
	if (!b->sorted || b->n < total)
		for (size_t i = 0; i < total; i++)
			x->slots[i] = absent;
	for (size_t i = 0; i < b->n; i++) {
		const struct h5_entry *p = &b->entries[i];

		if (!b->sorted && x->slots[p->linear].addr != HDF5_ABSENT)
			return duplicate(p->linear, e);
		x->slots[p->linear] = p->c;
	}
	x->ahead[blocks] = UINT64_MAX;
	for (size_t k = blocks; k-- > 0;) {
		size_t end = (k + 1) * BLOCK < total ? (k + 1) * BLOCK : total;

		for (size_t i = k * BLOCK; i < end; i++) {
			if (x->slots[i].addr != HDF5_ABSENT) {
				next = i;
				break;
			}
		}
		x->ahead[k] = next;
	}
	return 0;
}

static int chunk_index_by_linear(const void *a, const void *b)
{
	uint64_t x = ((const struct h5_entry *)a)->linear;
	uint64_t y = ((const struct h5_entry *)b)->linear;

	return x < y ? -1 : x > y;
}

static int make_sparse(struct h5_index *x, struct index_builder *b, struct err *e)
{
	struct h5_entry *p;

	if (!b->sorted) {
		qsort(b->entries, b->n, sizeof(*b->entries), chunk_index_by_linear);
		for (size_t i = 1; i < b->n; i++)
			if (b->entries[i].linear == b->entries[i - 1].linear)
				return duplicate(b->entries[i].linear, e);
	}
	p = realloc(b->entries, (b->n ? b->n : 1) * sizeof(*p));
	x->entries = p ? p : b->entries;
	b->entries = NULL;
	return 0;
}

/* chunk_index_bytes_of - its memory, except for a few words. */
static uint64_t chunk_index_bytes_of(const struct h5_index *x)
{
	return x->slots ? x->total * sizeof(*x->slots) : x->n * sizeof(*x->entries);
}

int h5_index_load(const struct h5_file *f, const struct h5_layout *l, const uint64_t *grid,
		  uint64_t max_bytes, struct h5_index **ret, struct err *e)
{
	struct index_builder b = {.f = f, .l = l, .max_bytes = max_bytes};
	struct h5_index *x = NULL;
	int rc = build_init(&b, grid, e);

	rc = rc ? rc : load_kind(&b, e);
	if (rc == 0) {
		x = calloc(1, sizeof(*x));
		rc = x ? 0 : err_nomem(e);
	}
	if (rc == 0) {
		x->total = b.total;
		x->n = b.n;
		rc = want_dense(&b) ? make_dense(x, &b, e) : make_sparse(x, &b, e);
	}
	free(b.entries);
	if (rc < 0) {
		h5_index_free(x);
		return rc;
	}
	metrics_gauge_add(G_MEM_INDEX, (int64_t)chunk_index_bytes_of(x));
	x->counted = true;
	*ret = x;
	return 0;
}

void h5_index_free(struct h5_index *x)
{
	if (!x)
		return;
	if (x->counted)
		metrics_gauge_add(G_MEM_INDEX, -(int64_t)chunk_index_bytes_of(x));
	free(x->slots);
	free(x->ahead);
	free(x->entries);
	free(x);
}

/* First entry at or after a position; n when there is none. */
static size_t lower_bound(const struct h5_index *x, uint64_t linear)
{
	size_t lo = 0;

	BISECT(lo, (size_t)x->n, mid, x->entries[mid].linear < linear);
	return lo;
}

struct h5_chunk h5_index_get(const struct h5_index *x, uint64_t linear)
{
	size_t i;

	if (linear >= x->total)
		return absent;
	if (x->slots)
		return x->slots[linear];
	i = lower_bound(x, linear);
	return i < x->n && x->entries[i].linear == linear ? x->entries[i].c : absent;
}

uint64_t h5_index_next(const struct h5_index *x, uint64_t from)
{
	size_t i;

	if (from >= x->total)
		return UINT64_MAX;
	if (!x->slots) {
		i = lower_bound(x, from);
		return i < x->n ? x->entries[i].linear : UINT64_MAX;
	}
	for (i = (size_t)from; i < x->total; i++) {
		if (x->slots[i].addr != HDF5_ABSENT)
			return i;
		if (i % BLOCK == BLOCK - 1)
			return x->ahead[i / BLOCK + 1];
	}
	return UINT64_MAX;
}

uint64_t h5_index_count(const struct h5_index *x)
{
	return x->n;
}
