/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_sizes.c - the existing chunks of one variable, and their sizes. To find the sizes of
 * chunks that the view encodes, all of them are encoded.
 *
 * Existence is stored as runs of neighbours, or as one bit for each position of the grid if that
 * is smaller: almost nothing if all exist, at most 1.2 bits a position. Sizes are stored as
 * offsets from the smallest, in as few bytes as the largest offset needs - none if all are equal -
 * with the file offset of every 64th chunk: the sum of the sizes before a chunk has at most 63
 * terms.
 *
 * Chunks without filters are not queried: they all have the size of a whole chunk, which libhdf5
 * takes for granted, whatever the index states.
 *
 * A chunk that exists is in the file even if its size cannot be determined, or cannot be stated in
 * an HDF5 index (0, or 4 GiB and more): leaving it out would present fill values for data. It gets
 * the size NC_SIZE_UNKNOWN, and reading it fails with the reason (file_layout.c). */
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>

#include "base/core/endian.h"

#define BLOCK 64     /* chunks between two sums */
#define RANK_WORDS 8 /* words of the bitmap between two ranks */
#define WINDOW 4096  /* chunks whose sizes all threads determine at a time */

/* sizes_run - chunks [linear, linear + m) are number i and the following ones; the next run,
 * or n, says how many. */
struct sizes_run {
	uint64_t linear, i;
};

struct nc_chunks {
	uint64_t n;       /* existing chunks */
	uint64_t bytes;   /* total size */
	uint64_t grid;    /* positions */
	struct sizes_run *runs; /* ascending; NULL: bits */
	size_t n_runs, c_runs;
	uint64_t *bits;  /* one a position */
	uint64_t *ranks; /* chunks before every RANK_WORDS words of bits */
	uint64_t least;  /* size of the smallest */
	uint32_t width;  /* bytes of an excess; 0: all have the same size */
	uint8_t *excess; /* n * width, little-endian */
	uint64_t *sums;  /* offset of every BLOCK-th chunk */
};

/* sizes_making - state of counting the chunks. */
struct sizes_making {
	struct nc_chunks *c;
	struct nc_budget *budget;
	uint64_t next;   /* the position after the last chunk */
	uint32_t *sizes; /* NULL: all the same */
	size_t c_sizes;
};

/* ---- making ---- */

static int sizes_take_memory(struct sizes_making *m, uint64_t bytes, struct err *e)
{
	if (m->budget->used > m->budget->max || bytes > m->budget->max - m->budget->used)
		return err_set(
			e, -ERANGE,
			"the list of existing chunks and their sizes does not fit %llu bytes",
			(unsigned long long)m->budget->max);
	m->budget->used += bytes;
	return 0;
}

/* sizes_grow - make room for one more element after n, charged to the budget. */
static int sizes_grow(struct sizes_making *m, void *p, size_t *cap, size_t n, size_t size,
		      struct err *e)
{
	size_t had = *cap, want = had < 1 ? 1 : 2 * had; /* had elements are in memory */
	int rc;

	if (n < had)
		return 0;
	rc = sizes_take_memory(m, (want - had) * (uint64_t)size, e);
	if (rc < 0)
		return rc;
	if (grow_array(p, cap, want, size) < 0)
		return err_nomem(e);
	m->budget->used += (*cap - want) * (uint64_t)size;
	return 0;
}

static uint64_t sizes_words(uint64_t bits)
{
	return bits / 64 + 1;
}

static void set_bits(struct nc_chunks *c, uint64_t from, uint64_t count)
{
	for (; count > 0; from++, count--)
		c->bits[from / 64] |= (uint64_t)1 << from % 64;
}

/* to_bits - convert runs, which became too many, to bits. */
static int to_bits(struct sizes_making *m, struct err *e)
{
	struct nc_chunks *c = m->c;
	uint64_t n = sizes_words(c->grid);
	int rc = sizes_take_memory(m, (n + n / RANK_WORDS + 1) * 8, e);

	if (rc < 0)
		return rc;
	c->bits = alloc_array((size_t)n, sizeof(*c->bits));
	if (!c->bits)
		return err_nomem(e);
	for (size_t r = 0; r < c->n_runs; r++)
		set_bits(c, c->runs[r].linear,
			 (r + 1 < c->n_runs ? c->runs[r + 1].i : c->n) - c->runs[r].i);
	free(c->runs);
	m->budget->used -= c->c_runs * sizeof(*c->runs);
	c->runs = NULL;
	c->n_runs = c->c_runs = 0;
	return 0;
}

/* add_place - add the next existing chunk. */
static int add_place(struct sizes_making *m, uint64_t linear, struct err *e)
{
	struct nc_chunks *c = m->c;
	int rc = 0;

	if (!c->bits && (c->n == 0 || linear != m->next)) {
		if ((c->n_runs + 1) * sizeof(*c->runs) > sizes_words(c->grid) * 9 + 4096)
			rc = to_bits(m, e);
		else
			rc = sizes_grow(m, &c->runs, &c->c_runs, c->n_runs, sizeof(*c->runs),
					e);
		if (rc == 0 && !c->bits)
			c->runs[c->n_runs++] = (struct sizes_run){.linear = linear, .i = c->n};
	}
	if (rc < 0)
		return rc;
	if (c->bits)
		set_bits(c, linear, 1);
	c->n++;
	m->next = linear + 1;
	return 0;
}

/* sizes_size_of - the index's size of an existing chunk. -ENOENT: it no longer exists. */
static int sizes_size_of(struct chunkio *io, uint32_t array, uint64_t linear, uint32_t *ret,
			 struct err *e)
{
	struct err why = ERR_INIT;
	uint64_t size = 0;
	int rc = chunkio_stat(io, array, linear, &size, &why);

	/* these errors are not the chunk's */
	if (rc == -ENOENT || rc == -ESTALE || err_is_transient(rc) || rc == -ETIMEDOUT ||
	    rc == -ECANCELED)
		return err_set(e, rc, "%s", why.msg);
	if (rc < 0 || size == 0 || size > UINT32_MAX)
		size = NC_SIZE_UNKNOWN;
	*ret = (uint32_t)size;
	return 0;
}

/* sizes_count - charge one passed chunk. */
static int sizes_count(struct sizes_making *m, struct err *e)
{
	uint64_t most = m->budget->max / NC_LOOKED;

	if (m->budget->looked++ < most)
		return 0;
	return err_set(e, -ERANGE,
		       "more than %llu chunks have to be searched for: the file is damaged, or "
		       "needs a larger -o memory",
		       (unsigned long long)most);
}

/* sizes_each - one pass over the chunks. */
static int sizes_each(struct sizes_making *m, struct chunkio *io, uint32_t array, bool sized,
		      struct err *e)
{
	struct nc_chunks *c = m->c;
	struct err why = ERR_INIT;
	uint64_t at, measured = 0;
	uint32_t size = 0;
	int rc;

	for (at = 0; at < c->grid; at++) {
		rc = chunkio_next(io, array, at, &at, &why);
		if (rc == -ENOENT)
			return 0;
		if (rc < 0)
			return err_set(e, rc, "%s", why.msg);
		if (!sized && at >= measured) {
			chunkio_measure(io, array, at, WINDOW);
			measured = at + u64_min(WINDOW, c->grid - at);
		}
		if (!sized) {
			rc = sizes_size_of(io, array, at, &size, e);
			if (rc == -ENOENT)
				continue;
			rc = rc ? rc
				: sizes_grow(m, &m->sizes, &m->c_sizes, (size_t)c->n,
					     sizeof(*m->sizes), e);
			if (rc < 0)
				return rc;
			m->sizes[c->n] = size;
		}
		rc = sizes_count(m, e);
		rc = rc ? rc : add_place(m, at, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* rank_bits - count the chunks before each group of words. Its memory was charged with the
 * bits'. */
static int rank_bits(struct nc_chunks *c, struct err *e)
{
	uint64_t n = sizes_words(c->grid), sum = 0;

	c->ranks = alloc_array((size_t)(n / RANK_WORDS + 1), sizeof(*c->ranks));
	if (!c->ranks)
		return err_nomem(e);
	for (size_t w = 0; w < n; w++) {
		if (w % RANK_WORDS == 0)
			c->ranks[w / RANK_WORDS] = sum;
		sum += (uint64_t)__builtin_popcountll(c->bits[w]);
	}
	return 0;
}

/* sizes_pack - convert the sizes to their stored form, in place. */
static int sizes_pack(struct sizes_making *m, struct err *e)
{
	struct nc_chunks *c = m->c;
	uint32_t least = UINT32_MAX, most = 0;
	uint8_t *out = (uint8_t *)m->sizes;
	uint64_t sum = 0;
	int rc;

	for (size_t i = 0; i < c->n; i++) {
		least = m->sizes[i] < least ? m->sizes[i] : least;
		most = m->sizes[i] > most ? m->sizes[i] : most;
	}
	c->least = least;
	while (c->width < 4 && (uint64_t)(most - least) >> 8 * c->width != 0)
		c->width++;
	if (c->width == 0)
		return 0;
	rc = sizes_take_memory(m, (c->n / BLOCK + 1) * sizeof(*c->sums), e);
	if (rc < 0)
		return rc;
	c->sums = alloc_array((size_t)(c->n / BLOCK + 1), sizeof(*c->sums));
	if (!c->sums)
		return err_nomem(e);
	for (size_t i = 0; i < c->n; i++) {
		uint32_t size = m->sizes[i], over = size - least;

		if (i % BLOCK == 0)
			c->sums[i / BLOCK] = sum;
		sum += size; /* n sizes below 2^32 that are in memory */
		put_le(out, over, c->width);
		out += c->width;
	}
	c->bytes = sum;
	out = realloc(m->sizes, (size_t)c->n * c->width);
	c->excess = out ? out : (uint8_t *)m->sizes;
	m->sizes = NULL;
	m->budget->used -= m->c_sizes * sizeof(*m->sizes);
	m->budget->used += c->n * c->width;
	return 0;
}

/* sizes_finish - compute the totals once all chunks are known. */
static int sizes_finish(struct sizes_making *m, struct err *e)
{
	struct nc_chunks *c = m->c;
	int rc = c->bits ? rank_bits(c, e) : 0;
	struct sizes_run *less =
		c->n_runs > 0 ? realloc(c->runs, c->n_runs * sizeof(*c->runs)) : NULL;

	if (less) { /* no more runs follow */
		m->budget->used -= (c->c_runs - c->n_runs) * sizeof(*c->runs);
		c->runs = less;
		c->c_runs = c->n_runs;
	}
	if (rc == 0 && m->sizes)
		rc = sizes_pack(m, e);
	if (rc == 0 && c->width == 0 && ckd_mul(&c->bytes, c->n, c->least))
		rc = err_set(e, -ERANGE, "%llu chunks of %llu bytes are too many for one file",
			     (unsigned long long)c->n, (unsigned long long)c->least);
	return rc;
}

int nc_chunks_make(struct chunkio *io, const struct ds_array *a, uint32_t array,
		   const struct plan *p, struct nc_budget *budget, struct nc_chunks **ret,
		   struct err *e)
{
	struct nc_chunks *c = alloc_array(1, sizeof(*c));
	struct sizes_making m = {.c = c, .budget = budget};
	bool sized = p->kind != PLAN_VLEN && p->kind != PLAN_FIXED && p->chain.n == 0;
	int rc;

	if (!c)
		return err_nomem(e);
	c->grid = a->n_chunks;
	c->least = a->chunk_bytes;
	rc = sizes_take_memory(&m, sizeof(*c), e);
	if (rc == 0 && sized && c->least == 0)
		rc = err_set(e, -EBADMSG,
			     "elements without a fixed size have no stored chunks");
	if (rc == 0 && sized && !p->fill_declared && p->kind != PLAN_HIDE && c->grid > 0) {
		rc = add_place(&m, 0, e); /* every chunk is presented: one run */
		c->n = c->grid;
	} else if (rc == 0) {
		rc = sizes_each(&m, io, array, sized, e);
	}
	rc = rc ? rc : sizes_finish(&m, e);
	if (m.sizes)
		budget->used -= m.c_sizes * sizeof(*m.sizes);
	free(m.sizes);
	if (rc < 0)
		nc_chunks_free(c);
	else
		*ret = c;
	return rc;
}

void nc_chunks_free(struct nc_chunks *c)
{
	if (!c)
		return;
	free(c->runs);
	free(c->bits);
	free(c->ranks);
	free(c->excess);
	free(c->sums);
	free(c);
}

/* ---- queries ---- */

uint64_t nc_chunks_n(const struct nc_chunks *c)
{
	return c->n;
}

uint64_t nc_chunks_bytes(const struct nc_chunks *c)
{
	return c->bytes;
}

/* place_in_runs - the position of chunk i: in the last run that does not begin after it. */
static uint64_t place_in_runs(const struct nc_chunks *c, uint64_t i)
{
	size_t next = 1;

	BISECT(next, c->n_runs, mid, c->runs[mid].i <= i);
	return c->runs[next - 1].linear + (i - c->runs[next - 1].i);
}

static uint64_t place_in_bits(const struct nc_chunks *c, uint64_t i)
{
	const size_t n = (size_t)((sizes_words(c->grid) + RANK_WORDS - 1) / RANK_WORDS);
	size_t next = 1, w;
	uint64_t left, word, here;

	BISECT(next, n, mid, c->ranks[mid] <= i);
	left = i - c->ranks[next - 1];
	for (w = (next - 1) * RANK_WORDS;; w++) {
		here = (uint64_t)__builtin_popcountll(c->bits[w]);
		if (left < here)
			break;
		left -= here;
	}
	for (word = c->bits[w]; left > 0; left--)
		word &= word - 1; /* without its lowest bit */
	return (uint64_t)w * 64 + (uint64_t)__builtin_ctzll(word);
}

static uint64_t size_at(const struct nc_chunks *c, uint64_t i)
{
	return c->least + get_le(c->excess + i * c->width, c->width);
}

void nc_chunks_nth(const struct nc_chunks *c, uint64_t i, uint64_t *ret_linear,
		   uint64_t *ret_off, uint64_t *ret_size)
{
	uint64_t off;

	*ret_linear = c->bits ? place_in_bits(c, i) : place_in_runs(c, i);
	if (c->width == 0) {
		*ret_off = i * c->least;
		*ret_size = c->least;
		return;
	}
	off = c->sums[i / BLOCK];
	for (uint64_t j = i - i % BLOCK; j < i; j++)
		off += size_at(c, j);
	*ret_off = off;
	*ret_size = size_at(c, i);
}

uint64_t nc_chunks_at(const struct nc_chunks *c, uint64_t off)
{
	const uint64_t n = c->n / BLOCK + (c->n % BLOCK != 0);
	uint64_t next = 1, i, size;

	if (c->width == 0)
		return off / c->least;
	BISECT(next, n, mid, c->sums[mid] <= off);
	off -= c->sums[next - 1];
	for (i = (next - 1) * BLOCK; off >= (size = size_at(c, i)); i++)
		off -= size;
	return i;
}
