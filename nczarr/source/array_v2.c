/* array_v2.c - a Zarr v2 array's document .zarray. Spec: Zarr storage specification version 2.
 *
 * Members that writers forget (order, filters, compressor, fill_value, dimension_separator) have
 * defaults; what is there must be right. */
#include "nczarr/source/source_int.h"

#include <errno.h>
#include <inttypes.h>

#define PRODUCT_MAX ((uint64_t)1 << 62)

static int format_two(const json_t *doc, struct err *e)
{
	const json_t *v = json_get(doc, "zarr_format");
	uint64_t n;

	if (json_u64(v, &n) < 0)
		return err_set(e, -EBADMSG, "zarr_format is missing or no number");
	if (n != 2)
		return err_set(e, n > 3 ? -EOPNOTSUPP : -EBADMSG,
			       "zarr_format is %" PRIu64 ", not 2", n);
	return 0;
}

/* lengths - a list of lengths. */
static int lengths(struct arena *a, const json_t *doc, const char *member, uint64_t **ret,
		   uint32_t *ret_n, struct err *e)
{
	const json_t *v = json_get(doc, member);
	size_t n = json_array_size(v);
	uint64_t *p;

	if (json_kind(v) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "%s is missing or no list", member);
	if (n > DS_RANK_MAX)
		return err_set(e, -ERANGE, "%s has %zu dimensions, more than %d", member, n,
			       DS_RANK_MAX);
	p = arena_alloc(a, n, sizeof(*p));
	if (!p)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++)
		if (json_u64(json_array_get(v, i), &p[i]) < 0 || p[i] > INT64_MAX)
			return err_set(e, -EBADMSG,
				       "%s: dimension %zu is no length (a number from 0 on)",
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
	int rc = lengths(a, doc, "shape", &shape, &rank, e);

	if (rc == 0)
		rc = lengths(a, doc, "chunks", &chunk, &n, e);
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

/* product_ok - whether lengths times bytes is a number that can be calculated with. */
static bool product_ok(const uint64_t *lens, uint32_t rank, uint64_t bytes)
{
	uint64_t n = bytes;

	for (uint32_t i = 0; i < rank; i++)
		if (lens[i] == 0)
			return true;
	for (uint32_t i = 0; i < rank; i++)
		if (ckd_mul(&n, n, lens[i]) || n > PRODUCT_MAX)
			return false;
	return true;
}

static int products(const struct zr_meta *m, struct err *e)
{
	/* an element without a fixed size takes at least its length */
	uint64_t bytes = m->dtype.stored ? m->dtype.stored : 4;

	if (m->dtype.type.size > bytes)
		bytes = m->dtype.type.size;
	if (!product_ok(m->chunk, m->rank, bytes))
		return err_set(e, -ERANGE, "chunks: a chunk has more than 2^62 bytes");
	if (!product_ok(m->shape, m->rank, bytes))
		return err_set(e, -ERANGE, "shape: the array has more than 2^62 bytes");
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

static int separator(const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *v = json_get(doc, "dimension_separator");

	m->separator = '.';
	if (json_kind(v) == JSON_IS_NULL || json_is(v, "."))
		return 0;
	if (!json_is(v, "/"))
		return err_set(e, -EBADMSG, "dimension_separator is neither '.' nor '/'");
	m->separator = '/';
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
	int rc = format_two(doc, e);

	if (rc == 0)
		rc = shape_and_chunks(a, doc, &m, e);
	if (rc == 0)
		rc = axes(a, doc, &m, e);
	if (rc == 0)
		rc = separator(doc, &m, e);
	if (rc == 0 && json_kind(dtype) == JSON_IS_NULL)
		rc = err_set(e, -EBADMSG, "dtype is missing");
	if (rc == 0)
		rc = zr_dtype_v2(a, dtype, old_char, &m.dtype, e);
	if (rc == 0)
		rc = codecs(a, doc, &m, e);
	if (rc == 0)
		rc = products(&m, e);
	if (rc < 0)
		return rc;
	m.fill = json_get(doc, "fill_value");
	*ret = m;
	return 0;
}
