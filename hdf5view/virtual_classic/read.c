/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - bytes of the file: a piece of the header, of variables, of records.
 *
 * A range of values is a few boxes, since values are in C order. The rows of each box are copied
 * from the chunks that it overlaps straight to their place in the answer, and their byte order is
 * changed there. Of whole small records, each chunk is read once for all of them. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/half.h"
#include "translate/model/grid.h"
#include "translate/model/value.h"

/* Half floats that are converted at a time. */
#define HALF_VALUES 2048
/* Slabs of at least this size are read one by one. */
#define SLAB_BYTES ((uint64_t)16 << 10)

/* reading - one request. */
struct reading {
	const struct cdf_file *f;
	struct buf room; /* for elements of a chunk that is not in memory */
	bool raw;        /* bytes of the source's descriptor were read */
	struct err *e;
};

/* ---- chunks ---- */

/* part - the elements that a chunk and a box have in common. */
struct part {
	uint64_t linear; /* the chunk */
	struct grid_box box;
	uint64_t first,
		n; /* elements of the chunk, in C order, that include those of the box */
};

/* read_part_range - where in its chunk, which begins at `origin`, a part is. */
static void read_part_range(const struct cdf_place *p, const uint64_t *origin, struct part *x)
{
	uint64_t first = 0, last = 0;

	for (uint32_t d = 0; d < p->rank; d++) {
		first = first * p->chunk[d] + (x->box.lo[d] - origin[d]);
		last = last * p->chunk[d] + (x->box.hi[d] - 1 - origin[d]);
	}
	x->first = first;
	x->n = last - first + 1;
}

/* read_elements - the elements of a part's range, in *ret until span_done(s). */
static int read_elements(struct reading *r, const struct cdf_place *p, const struct part *x,
			 uint8_t *room, struct span *s, const uint8_t **ret)
{
	const size_t bytes = (size_t)(x->n * p->elem); /* of one chunk */
	size_t got = 0;
	int rc = chunkio_read(r->f->io, p->array, x->linear, x->first * p->elem, bytes, room, s,
			      r->e);

	r->raw |= rc == 0 && !s->mem && s->len > 0;
	if (rc == 0 && (!s->mem || s->zeros)) {
		rc = span_fetch(s, room, bytes, &got, r->e);
		*ret = room;
	} else if (rc == 0) {
		got = s->len;
		*ret = s->mem;
	}
	if (rc == 0 && got != bytes) {
		span_done(s);
		rc = err_set(r->e, -EIO, "a chunk has %zu bytes where %zu were expected", got,
			     bytes);
	}
	return rc;
}

/* read_room - room for a part's range; NULL when memory is short. */
static uint8_t *read_room(struct reading *r, const struct cdf_place *p, const struct part *x)
{
	uint8_t *room;

	buf_clear(&r->room);
	room = buf_grow(&r->room, (size_t)(x->n * p->elem));
	if (!room)
		(void)err_nomem(r->e);
	return room;
}

/* read_part - copy a part into a block of elements. */
static int read_part(struct reading *r, const struct cdf_place *p, const struct part *x,
		     const struct grid_block *to, uint8_t *out)
{
	const struct grid_block from = {x->box.lo, p->chunk};
	uint8_t *room = read_room(r, p, x);
	struct span s = {.fd = -1};
	const uint8_t *in;
	int rc = room ? read_elements(r, p, x, room, &s, &in) : -ENOMEM;

	if (rc < 0)
		return rc;
	grid_copy(p->rank, p->elem, &x->box, &from, in, to, out);
	span_done(&s);
	return 0;
}

/* read_parts - call `each` for every chunk that a box overlaps. */
typedef int read_part_fn(struct reading *r, const struct cdf_place *p, const struct part *x,
			 const struct grid_block *to, uint8_t *out);

static int read_parts(struct reading *r, const struct cdf_place *p, const struct grid_box *box,
		      read_part_fn *each, const struct grid_block *to, uint8_t *out)
{
	const struct ds_array *a = &r->f->model->ds->arrays[p->array];
	struct grid_box have = {0}, some, chunks, one;
	uint64_t at[DS_RANK_MAX];
	struct part x;
	int rc = 0;

	for (uint32_t d = 0; d < p->rank; d++)
		have.hi[d] = p->have[d];
	if (!grid_both(p->rank, box, &have, &some))
		return 0;
	grid_chunks(p->rank, &some, p->chunk, &chunks);
	memcpy(at, chunks.lo, sizeof(at));
	do {
		grid_chunk(p->rank, p->have, p->chunk, at, &one);
		(void)grid_both(p->rank, &some, &one, &x.box);
		x.linear = ds_chunk_linear(a, at);
		read_part_range(p, one.lo, &x);
		rc = each(r, p, &x, to, out);
	} while (rc == 0 && grid_next(p->rank, &chunks, at));
	return rc;
}

/* ---- values ---- */

/* read_fill - n bytes of fill values, from byte `at` of all elements on. Those of strings have
 * several characters. */
static void read_fill(const struct cdf_place *p, uint64_t at, size_t n, uint8_t *out)
{
	const size_t skip = (size_t)(at % p->fill_size), k = skip ? p->fill_size - skip : 0;

	if (k >= n) {
		memcpy(out, p->fill + skip, n);
		return;
	}
	memcpy(out, p->fill + skip, k);
	value_repeat(out + k, n - k, p->fill, p->fill_size);
}

/* read_box_at - the largest box of elements that begins at element `from`, and whose elements in C
 * order are some of n. Returns how many it has. */
static uint64_t read_box_at(const struct cdf_place *p, uint64_t from, uint64_t n,
			    struct grid_box *ret)
{
	uint64_t block = 1, k;
	uint32_t d = p->rank;

	grid_coords(p->rank, p->shape, from, ret->lo);
	if (p->rank == 0)
		return 1;
	for (d = p->rank - 1; d > 0 && ret->lo[d] == 0 && block * p->shape[d] <= n; d--)
		block *= p->shape[d];
	k = u64_min(n / block, p->shape[d] - ret->lo[d]);
	for (uint32_t i = 0; i < p->rank; i++)
		ret->hi[i] = i < d ? ret->lo[i] + 1 : p->shape[i];
	ret->hi[d] = ret->lo[d] + k;
	return k * block;
}

/* read_range - elements [from, from + n) of a variable, as chunks have them. */
static int read_range(struct reading *r, const struct cdf_place *p, uint64_t from, uint64_t n,
		      uint8_t *out)
{
	int rc = 0;

	if (p->grown)
		read_fill(p, from * p->elem, (size_t)(n * p->elem), out);
	while (n > 0 && rc == 0) {
		struct grid_box box;
		uint64_t dims[DS_RANK_MAX];
		const uint64_t k = read_box_at(p, from, n, &box);
		const struct grid_block to = {box.lo, dims};

		for (uint32_t d = 0; d < p->rank; d++)
			dims[d] = box.hi[d] - box.lo[d];
		rc = read_parts(r, p, &box, read_part, &to, out);
		out += k * p->elem;
		from += k;
		n -= k;
	}
	return rc;
}

/* read_halves - the same of half floats, as floats of the file. */
static int read_halves(struct reading *r, const struct cdf_place *p, uint64_t from, uint64_t n,
		       uint8_t *out)
{
	const bool big = r->f->model->ds->arrays[p->array].type.big_endian;
	uint8_t some[2 * HALF_VALUES];
	int rc = 0;

	for (uint64_t k; n > 0 && rc == 0; n -= k, from += k) {
		k = u64_min(n, HALF_VALUES);
		rc = read_range(r, p, from, k, some);
		for (uint64_t i = 0; i < k && rc == 0; i++, out += 4) {
			const uint64_t h = get_uint(some + 2 * i, 2, big);

			put_be(out, f32_bits((float)half_to_double((uint16_t)h)), 4);
		}
	}
	return rc;
}

/* read_values - values [from, from + n) in the file's form. */
static int read_values(struct reading *r, const struct cdf_place *p, uint64_t from, uint64_t n,
		       uint8_t *out)
{
	int rc;

	if (n == 0)
		return 0;
	if (p->half)
		return read_halves(r, p, from, n, out);
	rc = read_range(r, p, from, n, out);
	if (rc == 0 && p->swap)
		dt_swap_numbers(out, p->size, (size_t)n);
	return rc;
}

/* read_bytes - bytes [at, at + n) of all values. Values of which only a part is wanted are the
 * first and the last. */
static int read_bytes(struct reading *r, const struct cdf_place *p, uint64_t at, size_t n,
		      uint8_t *out)
{
	int rc = 0;

	while (n > 0 && rc == 0) {
		const size_t skip = (size_t)(at % p->size);
		size_t k;

		if (skip == 0 && n >= p->size) {
			k = n - n % p->size;
			rc = read_values(r, p, at / p->size, k / p->size, out);
		} else {
			uint8_t one[8];

			k = (size_t)u64_min(p->size - skip, n);
			rc = read_values(r, p, at / p->size, 1, one);
			if (rc == 0)
				memcpy(out, one + skip, k);
		}
		out += k;
		at += k;
		n -= k;
	}
	return rc;
}

/* ---- slabs ---- */

/* read_padding - n bytes of a slab's padding from byte `at` of it on. */
static void read_padding(const struct cdf_place *p, uint64_t at, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = p->pad[(at + i) % p->size];
}

/* read_slab - bytes [at, at + n) of a slab, padding included. */
static int read_slab(struct reading *r, const struct cdf_place *p, uint64_t record, uint64_t at,
		     size_t n, uint8_t *out)
{
	const size_t k = at < p->bytes ? (size_t)u64_min(n, p->bytes - at) : 0;

	read_padding(p, u64_max(at, p->bytes) - p->bytes, n - k, out + k);
	return read_bytes(r, p, record * p->bytes + at, k, out);
}

/* read_find - the last place that begins at or before `at`, of n > 0 ascending ones. */
static uint32_t read_find(const struct cdf_place *places, uint32_t n, uint64_t at)
{
	uint32_t next = 1;

	BISECT(next, n, mid, places[mid].begin <= at);
	return next - 1;
}

/* read_slabs - bytes from `at` of slabs that follow one another; at is the offset as if it were the
 * first record. end: of the last slab. Returns the error, or 0. */
static int read_slabs(struct reading *r, const struct cdf_place *places, uint32_t n_places,
		      uint64_t record, uint64_t at, size_t n, uint64_t end, uint8_t *out)
{
	int rc = 0;

	for (uint32_t i = read_find(places, n_places, at); n > 0 && rc == 0; i++) {
		const uint64_t next = i + 1 < n_places ? places[i + 1].begin : end;
		const size_t k = (size_t)u64_min(n, next - at);

		rc = read_slab(r, &places[i], record, at - places[i].begin, k, out);
		out += k;
		at += k;
		n -= k;
	}
	return rc;
}

/* ---- whole records ---- */

/* read_rows - copy the records of a part to their places: out is that of record to->origin[0], and
 * records are recsize bytes apart. */
static int read_rows(struct reading *r, const struct cdf_place *p, const struct part *x,
		     const struct grid_block *to, uint8_t *out)
{
	const struct grid_block from = {x->box.lo, p->chunk};
	uint64_t origin[DS_RANK_MAX] = {0}, row = p->elem;
	const struct grid_block one = {origin, to->dims};
	uint8_t *room = read_room(r, p, x);
	struct span s = {.fd = -1};
	struct grid_box box = x->box;
	const uint8_t *in;
	int rc = room ? read_elements(r, p, x, room, &s, &in) : -ENOMEM;

	if (rc < 0)
		return rc;
	for (uint32_t d = 1; d < p->rank; d++)
		row *= p->chunk[d];
	out += (x->box.lo[0] - to->origin[0]) * r->f->at.recsize;
	for (uint64_t i = x->box.lo[0]; i < x->box.hi[0]; i++, out += r->f->at.recsize) {
		if (p->values == 1) {
			memcpy(out, in + (i - x->box.lo[0]) * row, p->elem);
			continue;
		}
		origin[0] = box.lo[0] = i;
		box.hi[0] = i + 1;
		grid_copy(p->rank, p->elem, &box, &from, in, &one, out);
	}
	span_done(&s);
	return 0;
}

/* read_records_of - the slabs of one variable in n whole records from `record` on; out is the first
 * of these records. */
static int read_records_of(struct reading *r, const struct cdf_place *p, uint64_t record,
			   uint64_t n, uint8_t *out)
{
	const struct cdf_layout *l = &r->f->at;
	const size_t pad = (size_t)(r->f->n_records > 1 ? cdf_padding(p->bytes) : 0);
	uint64_t dims[DS_RANK_MAX];
	struct grid_box box = {.lo = {record}};
	const struct grid_block to = {box.lo, dims};
	int rc = 0;

	out += p->begin - l->records;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		uint8_t *slab = out + i * l->recsize;

		if (p->half || p->bytes >= SLAB_BYTES)
			rc = read_bytes(r, p, (record + i) * p->bytes, (size_t)p->bytes, slab);
		else if (p->grown)
			read_fill(p, 0, (size_t)p->bytes, slab);
		read_padding(p, 0, pad, slab + p->bytes);
	}
	if (rc < 0 || p->half || p->bytes >= SLAB_BYTES)
		return rc;
	memcpy(dims, p->shape, p->rank * sizeof(*dims));
	memcpy(box.hi, p->shape, p->rank * sizeof(*dims));
	dims[0] = 1;
	box.hi[0] = record + n;
	rc = read_parts(r, p, &box, read_rows, &to, out);
	for (uint64_t i = 0; i < n && rc == 0 && p->swap; i++)
		dt_swap_numbers(out + i * l->recsize, p->size, (size_t)p->values);
	return rc;
}

/* read_records - bytes from `at` on, counted from the first record. */
static int read_records(struct reading *r, uint64_t at, size_t n, uint8_t *out)
{
	const struct cdf_file *f = r->f;
	const struct cdf_layout *l = &f->at;
	int rc = 0;

	while (n > 0 && rc == 0) {
		const uint64_t record = at / l->recsize, into = at % l->recsize;
		const uint64_t whole = into == 0 ? n / l->recsize : 0;
		size_t k;

		if (whole > 1) {
			k = (size_t)(whole * l->recsize);
			for (uint32_t i = 0; i < f->n_records && rc == 0; i++)
				rc = read_records_of(r, &f->records[i], record, whole, out);
		} else {
			k = (size_t)u64_min(n, l->recsize - into);
			rc = read_slabs(r, f->records, f->n_records, record, l->records + into,
					k, l->records + l->recsize, out);
		}
		out += k;
		at += k;
		n -= k;
	}
	return rc;
}

int cdf_file_read(const struct cdf_file *f, uint64_t off, size_t len, uint8_t *out,
		  struct err *e)
{
	const uint64_t ends[] = {f->at.header, f->at.records, f->at.size};
	struct reading r = {.f = f, .e = e};
	int rc = 0;

	buf_init(&r.room, PTRDIFF_MAX);
	for (size_t i = 0; i < ARRAY_LEN(ends) && rc == 0; i++) {
		const size_t n = off < ends[i] ? (size_t)u64_min(len, ends[i] - off) : 0;

		if (n == 0)
			continue;
		if (i == 0)
			memcpy(out, f->header.data + off, n);
		else if (i == 1)
			rc = read_slabs(&r, f->fixed, f->n_fixed, 0, off, n, f->at.records,
					out);
		else
			rc = read_records(&r, off - f->at.records, n, out);
		out += n;
		off += n;
		len -= n;
	}
	buf_release(&r.room);
	return rc < 0 || !r.raw ? rc : source_check(f->source, e);
}
