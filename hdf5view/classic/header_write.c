/* SPDX-License-Identifier: BSD-3-Clause */
/* header_write.c - the bytes of a header; header_parse.c has the grammar. */
#include "hdf5view/classic/classic.h"

#include <string.h>

#include "base/core/endian.h"

/* The size of a variable with more bytes, in the four bytes that CDF-1 and CDF-2 have for it. */
#define VSIZE_MAX ((uint64_t)UINT32_MAX)

struct writing {
	struct buf *out;
	size_t number; /* bytes of a count */
};

static void header_write_uint(struct writing *w, uint64_t v, size_t n)
{
	uint8_t *p = buf_grow(w->out, n);

	if (p)
		put_be(p, v, n);
}

/* header_write_bytes - n bytes, padded with zeros. */
static void header_write_bytes(struct writing *w, const void *data, size_t n)
{
	static const uint8_t zeros[4];

	buf_put(w->out, data, n);
	buf_put(w->out, zeros, (size_t)cdf_padding(n));
}

static void header_write_name(struct writing *w, const struct ds_text *name)
{
	header_write_uint(w, name->len, w->number);
	header_write_bytes(w, name->s, name->len);
}

/* header_write_list - the start of a list. */
static void header_write_list(struct writing *w, uint32_t tag, uint32_t n)
{
	header_write_uint(w, n ? tag : 0, 4);
	header_write_uint(w, n, w->number);
}

static void header_write_attrs(struct writing *w, const struct cdf_attr *attrs, uint32_t n)
{
	header_write_list(w, CDF_TAG_ATTR, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct cdf_attr *a = &attrs[i];

		header_write_name(w, &a->name);
		header_write_uint(w, a->type, 4);
		header_write_uint(w, a->n, w->number);
		header_write_bytes(w, a->data, (size_t)(a->n * cdf_type_bytes(a->type)));
	}
}

static void header_write_var(struct writing *w, const struct cdf_header *h,
			     const struct cdf_var *v)
{
	uint64_t bytes = 0;

	header_write_name(w, &v->name);
	header_write_uint(w, v->rank, w->number);
	for (uint32_t d = 0; d < v->rank; d++)
		header_write_uint(w, v->dims[d], w->number);
	header_write_attrs(w, v->attrs, v->n_attrs);
	header_write_uint(w, v->type, 4);
	(void)cdf_slab_bytes(h, v, &bytes); /* it fits: see the contract */
	bytes += cdf_padding(bytes);
	header_write_uint(w, w->number == 4 ? u64_min(bytes, VSIZE_MAX) : bytes, w->number);
	header_write_uint(w, v->begin, cdf_offset_bytes(h->version));
}

bool cdf_slab_bytes(const struct cdf_header *h, const struct cdf_var *v, uint64_t *ret)
{
	uint64_t n = cdf_type_bytes(v->type);

	for (uint32_t d = cdf_is_record(h, v); d < v->rank; d++)
		if (ckd_mul(&n, n, h->dims[v->dims[d]].len) || n > INT64_MAX / 2)
			return false;
	*ret = n;
	return true;
}

void cdf_header_write(const struct cdf_header *h, struct buf *out)
{
	struct writing w = {.out = out, .number = cdf_number_bytes(h->version)};

	buf_put(out, "CDF", 3);
	buf_putc(out, (char)h->version);
	header_write_uint(&w, h->numrecs, w.number);
	header_write_list(&w, CDF_TAG_DIM, h->n_dims);
	for (uint32_t i = 0; i < h->n_dims && buf_ok(out); i++) {
		header_write_name(&w, &h->dims[i].name);
		header_write_uint(&w, h->dims[i].len, w.number);
	}
	header_write_attrs(&w, h->attrs, h->n_attrs);
	header_write_list(&w, CDF_TAG_VAR, h->n_vars);
	for (uint32_t i = 0; i < h->n_vars && buf_ok(out); i++)
		header_write_var(&w, h, &h->vars[i]);
}
