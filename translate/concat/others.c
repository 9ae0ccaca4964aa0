/* SPDX-License-Identifier: BSD-3-Clause */
/* others.c - variables without the joined dimension: the first member's, or, when that is
 * asked for, equal in all. A digest of their values is kept for each member, that does not depend
 * on chunks, filters and byte order. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/hash.h"
#include "translate/chunkio/fill_chunk.h"
#include "translate/model/grid.h"

/* others_element - one of them, at its place in the array; the sum over all does not depend on
 * order. */
static uint64_t others_element(uint64_t at, const void *p, size_t n)
{
	uint64_t h = hash_bytes(hash_bytes(HASH_SEED, &at, sizeof(at)), p, n);

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* others_walk - the elements of one chunk that are inside the array: fn gets the place in the chunk
 * and that in the array. */
static void others_walk(const struct ds_array *a, uint64_t linear, void *arg,
			void (*fn)(void *arg, uint64_t in_chunk, uint64_t in_array))
{
	uint64_t at[DS_RANK_MAX] = {0}, in[DS_RANK_MAX] = {0};
	struct grid_box box;

	ds_chunk_coords(a, linear, at);
	grid_chunk(a->rank, a->shape, a->chunk, at, &box);
	memcpy(at, box.lo, a->rank * sizeof(*at));
	do {
		for (uint32_t d = 0; d < a->rank; d++)
			in[d] = at[d] - box.lo[d];
		fn(arg, grid_linear(a->rank, a->chunk, in), grid_linear(a->rank, a->shape, at));
	} while (grid_next(a->rank, &box, at));
}

/* summing - one chunk. */
struct summing {
	const uint8_t *fixed;        /* elements of `size` bytes, in host order; or */
	size_t size;
	const struct ds_text *strings; /* those without */
	uint64_t sum;
};

static void others_add(void *arg, uint64_t in_chunk, uint64_t in_array)
{
	struct summing *s = arg;

	if (s->strings)
		s->sum += others_element(in_array, s->strings[in_chunk].s,
					 s->strings[in_chunk].len);
	else
		s->sum += others_element(in_array, s->fixed + in_chunk * s->size, s->size);
}

/* one_zero - zeros that are equal are so whatever their sign. */
static void one_zero(const struct dtype *t, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && t->kind == DT_FLOAT; i++, p += t->size) {
		double d = 1;
		float f = 1;

		if (t->size == 8)
			memcpy(&d, p, sizeof(d));
		else if (t->size == 4)
			memcpy(&f, p, sizeof(f));
		if (d == 0 || f == 0)
			memset(p, 0, t->size);
	}
}

static int sum_fixed(struct source *s, struct chunkio *io, uint32_t array, uint64_t *ret,
		     struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	auto_free uint8_t *one = alloc_array((size_t)a->chunk_bytes, 1);
	struct summing sum = {.fixed = one, .size = a->type.size};
	int rc = one ? 0 : err_nomem(e);

	for (uint64_t k = 0; k < a->n_chunks && rc == 0; k++) {
		rc = chunkio_read_whole(io, array, k, one, e);
		if (rc < 0)
			break;
		dt_swap_to_host(&a->type, one, (size_t)(a->chunk_bytes / a->type.size));
		one_zero(&a->type, one, (size_t)(a->chunk_bytes / a->type.size));
		others_walk(a, k, &sum, others_add);
	}
	*ret = sum.sum;
	return rc;
}

static int sum_strings(struct source *s, uint32_t array, uint64_t *ret, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct summing sum = {.sum = 0};
	auto_buf body = buf_of(FRAME_BYTES_MAX);
	uint64_t n = 0;
	int rc = frame_count(a, &n, e);

	for (uint64_t k = 0; k < a->n_chunks && rc == 0; k++) {
		auto_free struct ds_text *strings = NULL;

		rc = chunkio_read_vlen(s, array, k, n, &body, NULL, e);
		rc = rc ? rc : frame_texts(&body, n, &strings, e);
		if (rc < 0)
			break;
		sum.strings = strings;
		others_walk(a, k, &sum, others_add);
	}
	*ret = sum.sum;
	return rc;
}

/* mix_attr - one that says what numbers mean; numbers of any byte order are the same. */
static uint64_t mix_attr(uint64_t h, const struct ds_attr *a)
{
	h = hash_bytes(h, a->name, strlen(a->name) + 1);
	for (uint64_t i = 0; a->strings && i < a->n; i++)
		h = hash_bytes(hash_bytes(h, a->strings[i].s, a->strings[i].len), "", 1);
	if (a->strings || !a->data)
		return h;
	h = hash_bytes(h, &a->type.kind, sizeof(a->type.kind));
	for (uint64_t i = 0; i < a->n; i++) {
		const uint8_t *p = a->data + i * a->type.size;
		uint8_t one[8];

		if (a->type.size > sizeof(one)) {
			h = hash_bytes(h, p, a->type.size);
			continue;
		}
		memcpy(one, p, a->type.size);
		dt_swap_to_host(&a->type, one, 1);
		h = hash_bytes(h, one, a->type.size);
	}
	return h;
}

/* mix_attrs - the same values in other units, or packed in another way, are others. */
static uint64_t mix_attrs(uint64_t h, const struct ds_array *a)
{
	for (size_t i = 0; i < CONCAT_OF_NUMBERS; i++) {
		const struct ds_attr *t =
			ds_attr_find(a->attrs, a->n_attrs, concat_of_numbers[i]);

		if (t)
			h = mix_attr(h, t);
	}
	return h;
}

/* others_of_array - name, shape, type, values, and the attributes that say what these mean. */
static int others_of_array(struct source *s, struct chunkio *io, uint32_t array, uint64_t *ret,
			   struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t h = HASH_SEED, sum = 0;
	auto_buf path = buf_of((size_t)1 << 20);
	int rc;

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "'%s': %s", a->name, a->unreadable);
	rc = dt_is_vlen(&a->type) ? sum_strings(s, array, &sum, e)
				  : sum_fixed(s, io, array, &sum, e);
	if (rc < 0)
		return rc;
	ds_array_path(&s->ds, array, &path);
	if (!buf_ok(&path))
		return err_nomem(e);
	h = hash_bytes(h, path.data, path.len);
	h = hash_bytes(h, a->shape, a->rank * sizeof(*a->shape));
	h = hash_bytes(h, &a->type.kind, sizeof(a->type.kind));
	h = hash_bytes(h, &a->type.size, sizeof(a->type.size));
	h = mix_attrs(h, a);
	*ret = hash_bytes(h, &sum, sizeof(sum));
	return 0;
}

/* others_each - of all variables without the dimension; out: of each, or NULL. */
static int others_each(const struct concat *j, struct source *s, uint64_t *out, uint64_t *ret,
		       struct err *e)
{
	auto_free struct plan *plans = NULL;
	struct chunkio *io = NULL;
	int rc = concat_io(j, s, CONCAT_NONE, 0, &plans, &io, e);

	*ret = 0;
	for (uint32_t i = 0; i < s->ds.n_arrays && rc == 0; i++) {
		uint64_t h = 0;

		if (concat_has_dim(&s->ds, i, j->dim))
			continue;
		rc = others_of_array(s, io, i, &h, e);
		if (out)
			out[i] = h;
		*ret += h;
	}
	chunkio_free(io);
	return rc;
}

int concat_others_of(const struct concat *j, struct source *s, uint64_t *ret, struct err *e)
{
	return others_each(j, s, NULL, ret, e);
}

static bool others_has(const uint64_t *v, uint32_t n, uint64_t h)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i] == h)
			return true;
	return false;
}

/* differing - the name of a variable of a that b does not have alike; "" when there is none. */
static int differing(const struct concat *j, struct source *a, struct source *b,
		     struct buf *name, struct err *e)
{
	auto_free uint64_t *x = alloc_array(a->ds.n_arrays, sizeof(*x));
	auto_free uint64_t *y = alloc_array(b->ds.n_arrays, sizeof(*y));
	uint64_t sum;
	int rc = x && y ? others_each(j, a, x, &sum, e) : err_nomem(e);

	rc = rc ? rc : others_each(j, b, y, &sum, e);
	for (uint32_t i = 0; rc == 0 && name->len == 0 && i < a->ds.n_arrays; i++)
		if (x[i] != 0 && !others_has(y, b->ds.n_arrays, x[i]))
			ds_array_path(&a->ds, i, name);
	for (uint32_t i = 0; rc == 0 && name->len == 0 && i < b->ds.n_arrays; i++)
		if (y[i] != 0 && !others_has(x, a->ds.n_arrays, y[i]))
			ds_array_path(&b->ds, i, name);
	buf_putc(name, '\0');
	return rc;
}

/* others_refuse - two members whose other variables differ: say which one. */
static int others_refuse(const struct concat *j, const struct concat_member *m, struct err *e)
{
	const struct concat_member *first = &j->members[0];
	struct source *a = NULL, *b = NULL;
	auto_buf name = buf_of((size_t)1 << 16);
	int rc = source_open(j->formats, j->n_formats, first->path, &j->source_opts, &a, e);

	rc = rc ? rc : source_open(j->formats, j->n_formats, m->path, &j->source_opts, &b, e);
	rc = rc ? rc : differing(j, a, b, &name, e);
	if (rc == 0)
		rc = err_set(e, -EINVAL,
			     "variable '%s', which has no dimension '%s', differs in values, "
			     "units or packing between '%s' and '%s': leave out "
			     "concat_compat=equals, or the file",
			     buf_ok(&name) && name.len > 1 ? (const char *)name.data : "?",
			     j->dim, concat_name(m->path), concat_name(first->path));
	source_close(a);
	source_close(b);
	return rc;
}

int concat_others_check(struct concat *j, struct err *e)
{
	for (size_t i = 1; j->opts.equal && i < j->n_members; i++)
		if (j->members[i].others != j->members[0].others)
			return others_refuse(j, &j->members[i], e);
	return 0;
}
