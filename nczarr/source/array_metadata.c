/* SPDX-License-Identifier: BSD-3-Clause */
/* array_metadata.c - an array's zarr.json or .zarray. In Zarr v3 an unknown member is an error,
 * unless the document marks it as optional (must_understand). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "nczarr/source/array_metadata.h"
#include "nczarr/source/source_int.h"

#define BYTES_MAX ((uint64_t)1 << 62)

/* check_members - that this file or others read all members. */
static int check_members(const json_t *doc, struct err *e)
{
	static const char *const names[] = {
		"zarr_format",     "node_type",           "shape",
		"data_type",       "chunk_grid",          "codecs",
		"fill_value",      "chunk_key_encoding",  "attributes",
		"dimension_names", "storage_transformers"};
	json_t *o = (json_t *)(uintptr_t)doc; /* jansson's iterators are not const */

	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const json_t *v = json_object_iter_value(it);
		size_t i = 0;

		while (i < ARRAY_LEN(names) && strcmp(names[i], json_object_iter_key(it)) != 0)
			i++;
		if (i < ARRAY_LEN(names) || json_kind(v) == JSON_IS_NULL ||
		    json_is_false(json_get(v, "must_understand")))
			continue;
		return err_set(e, -EOPNOTSUPP, "unknown member '%.80s'",
			       json_object_iter_key(it));
	}
	return 0;
}

static int check_kind(const json_t *doc, struct err *e)
{
	const json_t *format = json_get(doc, "zarr_format");
	const json_t *transformers = json_get(doc, "storage_transformers");
	uint64_t version;

	if (json_kind(doc) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "not an object");
	if (json_u64(format, &version) < 0)
		return err_set(e, -EBADMSG, "zarr_format is not a number");
	if (version != 3)
		return err_set(e, -EOPNOTSUPP, "zarr_format is %" PRIu64 ", not 3", version);
	if (!json_is(json_get(doc, "node_type"), "array"))
		return err_set(e, -EBADMSG, "node_type is not 'array'");
	if (json_kind(transformers) != JSON_IS_NULL && json_kind(transformers) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "storage_transformers is not a list");
	if (json_array_size(transformers))
		return err_set(e, -EOPNOTSUPP, "storage_transformers are not supported");
	if (!json_get(doc, "fill_value"))
		return err_set(e, -EBADMSG, "fill_value is missing");
	return check_members(doc, e);
}

static int read_shape(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *shape = json_get(doc, "shape");
	size_t rank = json_array_size(shape);
	uint64_t *lens = NULL;
	int rc;

	if (rank > DS_RANK_MAX)
		return err_set(e, -ERANGE, "shape has %zu dimensions, which exceeds %d", rank,
			       DS_RANK_MAX);
	rc = zr_lengths(a, shape, "shape", (uint32_t)rank, 0, &lens, e);
	m->rank = (uint32_t)rank;
	m->shape = lens;
	return rc;
}

/* least_bytes - what an element takes: without a fixed size, at least its length. */
static uint64_t least_bytes(const struct zr_meta *m)
{
	return m->dtype.stored ? m->dtype.stored : 4;
}

/* countable - whether elements of this size along all these axes have a countable size. */
static bool countable(const uint64_t *lens, uint32_t rank, uint64_t bytes)
{
	for (uint32_t i = 0; i < rank; i++)
		if (lens[i] == 0)
			return true;
	return u64_product(&bytes, lens, rank, BYTES_MAX);
}

static int read_grid(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	struct zr_named grid;
	uint64_t *lens = NULL;
	int rc = zr_named_of(json_get(doc, "chunk_grid"), "chunk_grid", &grid, e);

	if (rc < 0)
		return rc;
	if (strcmp(grid.name, "regular") != 0)
		return err_set(e, -EOPNOTSUPP, "chunk_grid '%.80s' is not supported",
			       grid.name);
	rc = zr_lengths(a, json_get(grid.config, "chunk_shape"), "chunk_shape", m->rank, 1,
			&lens, e);
	if (rc < 0)
		return rc;
	m->chunk = lens;
	if (!countable(m->chunk, m->rank, least_bytes(m)))
		return err_set(e, -ERANGE, "a chunk has more than 2^62 bytes");
	if (!countable(m->shape, m->rank, least_bytes(m)))
		return err_set(e, -ERANGE, "the array has more than 2^62 bytes");
	return 0;
}

static int read_keys(const json_t *doc, struct zr_meta *m, struct err *e)
{
	struct zr_named keys;
	const json_t *separator;
	int rc = zr_named_of(json_get(doc, "chunk_key_encoding"), "chunk_key_encoding", &keys,
			     e);

	if (rc < 0)
		return rc;
	m->prefixed = strcmp(keys.name, "default") == 0;
	if (!m->prefixed && strcmp(keys.name, "v2") != 0)
		return err_set(e, -EOPNOTSUPP, "chunk_key_encoding '%.80s' is not supported",
			       keys.name);
	separator = json_get(keys.config, "separator");
	if (json_is(separator, "/") || json_is(separator, "."))
		m->separator = json_is(separator, "/") ? '/' : '.';
	else if (json_kind(separator) == JSON_IS_NULL)
		m->separator = m->prefixed ? '/' : '.';
	else
		return err_set(e, -EBADMSG, "separator is neither '/' nor '.'");
	return 0;
}

static int read_names(const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *names = json_get(doc, "dimension_names");
	size_t n = json_array_size(names);

	if (json_kind(names) == JSON_IS_NULL)
		return 0;
	if (json_kind(names) != JSON_IS_LIST || n != m->rank)
		return err_set(e, -EBADMSG, "dimension_names is not a list of %" PRIu32,
			       m->rank);
	for (size_t i = 0; i < n; i++) {
		enum json_kind kind = json_kind(json_array_get(names, i));

		if (kind != JSON_IS_NULL && kind != JSON_IS_TEXT)
			return err_set(e, -EBADMSG, "dimension_names contains an invalid name");
	}
	m->dim_names = names;
	return 0;
}

int zr_v3_meta(struct arena *a, const json_t *doc, struct zr_meta *ret, struct err *e)
{
	struct zr_meta m = {.format = 3, .key = ""};
	const json_t *type = json_get(doc, "data_type"), *attrs = json_get(doc, "attributes");
	int rc = check_kind(doc, e);

	if (rc < 0)
		return rc;
	if (json_kind(attrs) != JSON_IS_NULL && json_kind(attrs) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "attributes is not an object");
	rc = read_shape(a, doc, &m, e);
	rc = rc ? rc : zr_dtype_v3(a, type, &m.dtype, e);
	rc = rc ? rc : read_grid(a, doc, &m, e);
	rc = rc ? rc : read_keys(doc, &m, e);
	rc = rc ? rc : read_names(doc, &m, e);
	rc = rc ? rc : zr_codecs_v3(a, json_get(doc, "codecs"), &m, e);
	if (rc < 0)
		return rc;
	m.fill = json_get(doc, "fill_value");
	m.attrs = json_kind(attrs) == JSON_IS_OBJECT ? attrs : NULL;
	rc = zr_bytes_meaning(a, &m, e);
	if (rc == 0)
		*ret = m;
	return rc;
}

/* A Zarr v2 array's document .zarray. Spec: Zarr storage specification version 2.
 *
 * Members that writers omit (order, filters, compressor, fill_value, dimension_separator) have
 * defaults; those that exist must be valid. */

/* meta_lengths - a list of lengths. */
static int meta_lengths(struct arena *a, const json_t *doc, const char *member, uint64_t **ret,
			uint32_t *ret_n, struct err *e)
{
	const json_t *v = json_get(doc, member);
	size_t n = json_array_size(v);
	uint64_t *p;

	if (json_kind(v) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "%s is missing or not a list", member);
	if (n > DS_RANK_MAX)
		return err_set(e, -ERANGE, "%s has %zu dimensions, more than %d", member, n,
			       DS_RANK_MAX);
	p = arena_alloc(a, n, sizeof(*p));
	if (!p)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++)
		if (json_u64(json_array_get(v, i), &p[i]) < 0 || p[i] > INT64_MAX)
			return err_set(
				e, -EBADMSG,
				"%s: dimension %zu is not a length (a whole number, 0 or more)",
				member, i);
	*ret = p;
	*ret_n = (uint32_t)n;
	return 0;
}

static int shape_and_chunks(struct arena *a, const json_t *doc, struct zr_meta *m,
			    struct err *e)
{
	uint64_t *shape, *chunk;
	uint32_t rank, n;
	int rc = meta_lengths(a, doc, "shape", &shape, &rank, e);

	rc = rc ? rc : meta_lengths(a, doc, "chunks", &chunk, &n, e);
	if (rc < 0)
		return rc;
	if (n != rank)
		return err_set(e, -EBADMSG,
			       "chunks has %" PRIu32 " dimensions, shape has %" PRIu32, n,
			       rank);
	for (uint32_t i = 0; i < rank; i++) {
		if (chunk[i] == 0 && shape[i] == 0)
			chunk[i] = 1; /* numpy's writers do so for empty arrays */
		if (chunk[i] == 0)
			return err_set(e, -EBADMSG, "chunks: dimension %" PRIu32 " is 0", i);
	}
	m->rank = rank;
	m->shape = shape;
	m->chunk = chunk;
	return 0;
}

/* axes - order: F is the reverse of C. */
static int axes(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *v = json_get(doc, "order");
	uint32_t *order;

	if (json_kind(v) == JSON_IS_NULL || json_is(v, "C"))
		return 0;
	if (!json_is(v, "F"))
		return err_set(e, -EBADMSG, "order is neither 'C' nor 'F'");
	if (m->rank < 2)
		return 0; /* the same */
	order = arena_alloc(a, m->rank, sizeof(*order));
	if (!order)
		return err_nomem(e);
	for (uint32_t i = 0; i < m->rank; i++)
		order[i] = m->rank - 1 - i;
	m->order = order;
	return 0;
}

static int codecs(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *filters = json_get(doc, "filters"), *c = json_get(doc, "compressor");

	if (json_kind(filters) != JSON_IS_NULL && json_kind(filters) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "filters is neither a list nor null");
	if (json_kind(c) != JSON_IS_NULL && json_kind(c) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "compressor is neither an object nor null");
	return zr_codecs_v2(a, filters, c, m, e);
}

int zr_v2_meta(struct arena *a, const json_t *doc, bool old_char, struct zr_meta *ret,
	       struct err *e)
{
	struct zr_meta m = {.format = 2, .key = ""};
	const json_t *dtype = json_get(doc, "dtype");
	const json_t *separator = json_get(doc, "dimension_separator");
	uint64_t bytes;
	int rc = zr_format_is(doc, 2, e);

	rc = rc ? rc : shape_and_chunks(a, doc, &m, e);
	rc = rc ? rc : axes(a, doc, &m, e);
	m.separator = json_is(separator, "/") ? '/' : '.';
	if (rc == 0 && m.separator == '.' && json_kind(separator) != JSON_IS_NULL &&
	    !json_is(separator, "."))
		rc = err_set(e, -EBADMSG, "dimension_separator is neither '.' nor '/'");
	if (rc == 0 && json_kind(dtype) == JSON_IS_NULL)
		rc = err_set(e, -EBADMSG, "dtype is missing");
	rc = rc ? rc : zr_dtype_v2(a, dtype, old_char, &m.dtype, e);
	rc = rc ? rc : codecs(a, doc, &m, e);
	if (rc < 0)
		return rc;
	bytes = u64_max(least_bytes(&m), m.dtype.type.size);
	if (!countable(m.chunk, m.rank, bytes))
		return err_set(e, -ERANGE, "chunks: a chunk has more than 2^62 bytes");
	if (!countable(m.shape, m.rank, bytes))
		return err_set(e, -ERANGE, "shape: the array has more than 2^62 bytes");
	m.fill = json_get(doc, "fill_value");
	*ret = m;
	return 0;
}
