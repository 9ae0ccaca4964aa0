/* SPDX-License-Identifier: BSD-3-Clause */
/* spec.c - chains of filters as text, and their preparation for an array.
 *
 * Order and redefinition are those of nc_def_var_filter, so that nccopy -F writes the same chain
 * for the same text. */
#include "codecs/spec/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codecs/core/codec_impl.h"
#include "codecs/spec/spec_int.h"

#define ID_MAX 65535 /* HDF5's */
#define NAME_CAP 32
#define REMEDY_CAP 300
#define CHECKSUM 4 /* bytes of fletcher32 */

/* szip's parameters: those of a user, and those in a file; the options that a user may give. */
enum { SZIP_GIVEN = 2, SZIP_STORED = 4, SZIP_MASKS = 2 | 4 | 32 };

/* spec_next - the number of bytes before the next `mark` of n bytes, or n. */
static size_t spec_next(const char *s, size_t n, char mark)
{
	const char *p = n ? memchr(s, mark, n) : NULL;

	return p ? (size_t)(p - s) : n;
}

uint32_t spec_name(const char *s, size_t n)
{
	const struct codec_ops *ops = codec_find_name(s, n);

	return ops ? ops->h5_id : codec_known_id(s, n);
}

/* parse_id - parse "307" or "bzip2". */
static int parse_id(const char *s, size_t n, struct codec_spec *ret, struct err *e)
{
	uint32_t v[SPEC_CONST_MAX], count = 0;

	s = spec_trim(s, &n);
	ret->name = "";
	if (n == 0)
		return err_set(e, -EINVAL, "a filter needs an id or a name");
	if ((s[0] < '0' || s[0] > '9') && s[0] != '-' && s[0] != '+') {
		ret->h5_id = spec_name(s, n);
		if (!ret->h5_id)
			return err_set(e, -EINVAL, "unknown filter '%.*s'", spec_show(n), s);
		return 0;
	}
	if (spec_const(s, n, v, &count, NULL) || count != 1 || s[n - 1] < '0' ||
	    s[n - 1] > '9' || s[0] == '-' || v[0] == 0 || v[0] > ID_MAX)
		return err_set(e, -EINVAL, "'%.*s' is not a filter id: use 1 to %d",
			       spec_show(n), s, ID_MAX);
	ret->h5_id = v[0];
	return 0;
}

/* parse_filter - parse "307,9". */
static int parse_filter(struct arena *a, const char *s, size_t n, struct codec_spec *ret,
			struct err *e)
{
	uint32_t v[CODEC_PARAMS_MAX + SPEC_CONST_MAX], got, count = 0;
	size_t at = spec_next(s, n, ',');
	int rc = parse_id(s, at, ret, e);

	for (unsigned int i = 1; !rc && at < n; i++) {
		size_t len = spec_next(s + at + 1, n - at - 1, ','), m = len;
		const char *one = spec_trim(s + at + 1, &m);

		rc = spec_const(one, m, v + count, &got, e);
		if (rc)
			return err_wrap(e, rc, "parameter %u of filter '%.*s'", i,
					spec_show(spec_next(s, n, ',')), s);
		count += got;
		if (count > CODEC_PARAMS_MAX)
			return err_set(e, -EINVAL, "filter '%.*s' has more than %d parameters",
				       spec_show(spec_next(s, n, ',')), s, CODEC_PARAMS_MAX);
		at += 1 + len;
	}
	if (rc)
		return rc;
	ret->n_params = count;
	ret->params = arena_copy(a, v, count * sizeof(*v));
	return ret->params ? 0 : err_nomem(e);
}

/* spec_place - add a filter to n of a chain, or change the parameters of an existing one. */
static int spec_place(struct codec_spec *specs, uint32_t *n, const struct codec_spec *one,
		      struct err *e)
{
	for (uint32_t i = 0; i < *n; i++)
		if (specs[i].h5_id == one->h5_id) {
			specs[i] = *one;
			return 0;
		}
	if (*n == CODEC_CHAIN_MAX)
		return err_set(e, -EINVAL, "more than %d filters given", CODEC_CHAIN_MAX);
	specs[(*n)++] = *one;
	return 0;
}

/* spec_keep - copy n filters to the arena. */
static int spec_keep(struct arena *a, const struct codec_spec *specs, uint32_t n,
		     struct codec_chain *ret, struct err *e)
{
	ret->n = n;
	ret->specs = arena_copy(a, specs, n * sizeof(*specs));
	return ret->specs ? 0 : err_nomem(e);
}

int codec_spec_parse(struct arena *a, const char *text, size_t n, struct codec_chain *ret,
		     struct err *e)
{
	struct codec_spec specs[CODEC_CHAIN_MAX], one;
	uint32_t count = 0;

	for (size_t at = 0;; at++) {
		size_t len = spec_next(text + at, n - at, '|');
		int rc = parse_filter(a, text + at, len, &one, e);

		rc = rc ? rc : spec_place(specs, &count, &one, e);
		if (rc)
			return rc;
		at += len;
		if (at == n)
			return spec_keep(a, specs, count, ret, e);
	}
}

/* print_params - append the parameters; of szip those that a user gives, without the bits and
 * numbers that the writer adds for the type, as in netCDF-C. */
static void print_params(const struct codec_spec *s, struct buf *out)
{
	const bool szip = s->h5_id == CODEC_SZIP && s->n_params == SZIP_STORED;
	const uint32_t n = szip ? SZIP_GIVEN : s->n_params;

	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, ",%" PRIu32,
			   szip && i == 0 ? s->params[i] & SZIP_MASKS : s->params[i]);
}

void codec_spec_print(const struct codec_chain *chain, struct buf *out)
{
	char tmp[NAME_CAP];

	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];

		if (i > 0)
			buf_putc(out, '|');
		if (s->h5_id > 0 && s->h5_id < CODEC_PRIVATE)
			buf_printf(out, "%" PRIu32, s->h5_id);
		else
			buf_puts(out, codec_name(s, tmp, sizeof(tmp)));
		print_params(s, out);
	}
}

/* pairs - filters with different framing in HDF5 and in Zarr. */
static const struct spec_pair {
	uint32_t hdf5, zarr;
	bool to_hdf5, to_zarr; /* directions of conversion */
	bool params;           /* equal in both */
} pairs[] = {
	{CODEC_LZ4_HDF5, CODEC_LZ4, true, true, false}, /* block size; acceleration */
	{CODEC_DEFLATE, CODEC_GZIP, true, false, true}, /* Zarr has both */
};

int codec_chain_for(struct arena *a, enum codec_format format, const struct codec_chain *chain,
		    struct codec_chain *ret, struct err *e)
{
	const bool hdf5 = format == CODEC_FORMAT_HDF5;
	struct codec_spec specs[CODEC_CHAIN_MAX], one;
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < chain->n; i++) {
		one = chain->specs[i];
		for (size_t p = 0; p < ARRAY_LEN(pairs); p++) {
			const struct spec_pair *t = &pairs[p];

			if (one.h5_id != (hdf5 ? t->zarr : t->hdf5) ||
			    !(hdf5 ? t->to_hdf5 : t->to_zarr))
				continue;
			one.h5_id = hdf5 ? t->hdf5 : t->zarr;
			one.n_params = t->params ? one.n_params : 0;
			break;
		}
		rc = spec_place(specs, &n, &one, e);
	}
	return rc ? rc : spec_keep(a, specs, n, ret, e);
}

/* spec_rank - the order in nc_def_var_filter: fletcher32 first, then shuffle, then all others as
 * they were named. */
static unsigned int spec_rank(uint32_t h5_id)
{
	return h5_id == CODEC_FLETCHER32 ? 0 : h5_id == CODEC_SHUFFLE ? 1 : 2;
}

/* no_codec - the error for a filter that is neither built in nor in a plugin. */
static int no_codec(const struct codec_spec *spec, struct err *e)
{
	auto_buf b = buf_of(REMEDY_CAP);

	codec_missing(spec, &b);
	buf_putc(&b, '\0');
	return err_set(e, -EOPNOTSUPP, "%s",
		       buf_ok(&b) ? (const char *)b.data
				  : "no codec for the filter is available");
}

/* prepare_one - convert the parameters to those that an HDF5 writer stores. */
static int prepare_one(struct arena *a, const struct codec_spec *spec,
		       const struct codec_array *array, struct codec_spec *ret, struct err *e)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	uint32_t params[CODEC_PARAMS_MAX], n = 0;
	int rc;

	*ret = *spec;
	if (!ops)
		return no_codec(spec, e);
	if (!ops->encode)
		return err_set(e, -EOPNOTSUPP, "filter '%s' (id %" PRIu32 ") cannot be encoded",
			       ops->name, spec->h5_id);
	if (!ops->prepare)
		return 0;
	rc = ops->prepare(spec, array, params, &n, e);
	if (rc)
		return rc;
	ret->n_params = n;
	ret->params = arena_copy(a, params, n * sizeof(*params));
	return ret->params ? 0 : err_nomem(e);
}

static bool spec_has(const struct codec_spec *specs, uint32_t n, uint32_t h5_id)
{
	for (uint32_t i = 0; i < n; i++)
		if (specs[i].h5_id == h5_id)
			return true;
	return false;
}

/* beside_szip - netCDF-C rejects deflate with szip. A checksum, which comes first, adds four bytes
 * to szip's input: no whole sample of eight bytes, and libhdf5 loses them. */
static int beside_szip(const struct codec_spec *specs, uint32_t n, uint32_t elem_size,
		       struct err *e)
{
	if (spec_has(specs, n, CODEC_DEFLATE))
		return err_set(e, -EINVAL,
			       "deflate and szip cannot be used for the same variable");
	if (spec_has(specs, n, CODEC_FLETCHER32) && elem_size > CHECKSUM)
		return err_set(e, -EOPNOTSUPP,
			       "szip after fletcher32 with elements of %" PRIu32
			       " bytes would lose the checksum: leave out one of the two",
			       elem_size);
	return 0;
}

int codec_chain_prepare(struct arena *a, const struct codec_chain *chain,
			const struct codec_array *array, struct codec_chain *ret, struct err *e)
{
	struct codec_spec specs[CODEC_CHAIN_MAX];
	uint32_t n = 0;
	int rc = codec_chain_check(chain, -EINVAL, e);

	for (unsigned int r = 0; !rc && r <= 2; r++)
		for (uint32_t i = 0; !rc && i < chain->n; i++)
			if (spec_rank(chain->specs[i].h5_id) == r)
				rc = prepare_one(a, &chain->specs[i], array, &specs[n++], e);
	if (!rc && spec_has(specs, n, CODEC_SZIP))
		rc = beside_szip(specs, n, array->elem_size, e);
	return rc ? rc : spec_keep(a, specs, n, ret, e);
}
