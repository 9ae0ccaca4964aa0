/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.c - offsets of variables and records, and the limits of each version, as netCDF-C has them
 * (NC_begins and NC_check_vlens): what it would refuse to write is not shown either. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <inttypes.h>

/* limits - of one version. */
struct limits {
	uint64_t length; /* of a dimension; records as well */
	uint64_t slab;   /* bytes of a slab that another variable follows */
	uint64_t begin;  /* offset of a variable */
};

static struct limits layout_limits(unsigned version)
{
	static const struct limits v1 = {INT32_MAX - 3, INT32_MAX - 3, INT32_MAX},
				   v2 = {INT32_MAX - 3, UINT32_MAX - 3, INT64_MAX},
				   v5 = {INT64_MAX - 3, INT64_MAX / 2, INT64_MAX};

	return version == 1 ? v1 : version == 2 ? v2 : v5;
}

/* layout_lengths - whether dimensions and numbers of values fit the header's counts. */
static int layout_lengths(const struct cdf_header *h, const struct limits *max, struct err *e)
{
	for (uint32_t i = 0; i < h->n_dims; i++)
		if (h->dims[i].len > max->length)
			return err_set(e, -ERANGE,
				       "dimension '%.80s' has the length %" PRIu64
				       ", more than %" PRIu64,
				       h->dims[i].name.s, h->dims[i].len, max->length);
	return h->numrecs <= max->length
		       ? 0
		       : err_set(e, -ERANGE, "%" PRIu64 " records, more than %" PRIu64,
				 h->numrecs, max->length);
}

/* layout_some - offsets of the variables with records, or of those without, from *at on; the end in
 * *at. A slab that exceeds the limit is allowed only as the last one before the end of the file:
 * more is set if record variables follow. last: the last of these variables. */
static int layout_some(struct cdf_header *h, bool records, bool more, const struct limits *max,
		       uint64_t *at, struct err *e)
{
	const struct cdf_var *large = NULL;

	for (uint32_t i = 0; i < h->n_vars; i++) {
		struct cdf_var *v = &h->vars[i];
		uint64_t bytes;

		if (cdf_is_record(h, v) != records)
			continue;
		if (large || *at > max->begin)
			return err_set(e, -ERANGE,
				       "variable '%.80s' would begin at byte %" PRIu64
				       ", or after a variable that is too large",
				       v->name.s, *at);
		if (!cdf_slab_bytes(h, v, &bytes))
			return err_set(e, -ERANGE, "variable '%.80s' is too large", v->name.s);
		if (bytes > max->slab)
			large = v;
		v->begin = *at;
		if (ckd_add(at, *at, bytes + cdf_padding(bytes)) || *at > INT64_MAX)
			return err_set(e, -ERANGE, "variable '%.80s' ends beyond 2^63 bytes",
				       v->name.s);
	}
	return large && more
		       ? err_set(e, -ERANGE, "variable '%.80s' is too large before records",
				 large->name.s)
		       : 0;
}

/* layout_records - the number of record variables, and the last of them. */
static uint32_t layout_records(const struct cdf_header *h, const struct cdf_var **ret_last)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n_vars; i++)
		if (cdf_is_record(h, &h->vars[i])) {
			n++;
			*ret_last = &h->vars[i];
		}
	return n;
}

/* layout_offsets - everything after the header. */
static int layout_offsets(struct cdf_header *h, const struct limits *max, struct cdf_layout *l,
			  struct err *e)
{
	const struct cdf_var *last = NULL;
	const uint32_t n = layout_records(h, &last);
	uint64_t at = l->header, all;
	int rc = layout_some(h, false, n > 0, max, &at, e);

	if (rc < 0)
		return rc;
	l->records = at;
	rc = layout_some(h, true, false, max, &at, e);
	if (rc < 0)
		return rc;
	l->recsize = at - l->records;
	if (n == 1)
		(void)cdf_slab_bytes(h, last, &l->recsize); /* it was checked */
	if (ckd_mul(&all, l->recsize, h->numrecs) || ckd_add(&l->size, l->records, all) ||
	    l->size > INT64_MAX)
		return err_set(e, -ERANGE, "all records would end beyond 2^63 bytes");
	return 0;
}

static int layout_header(const struct cdf_header *h, struct buf *text, struct err *e)
{
	buf_clear(text);
	cdf_header_write(h, text);
	return buf_ok(text)
		       ? 0
		       : buf_full(text, e, -ERANGE,
				  "the header exceeds %zu bytes (-o memory)", text->max);
}

int cdf_layout_make(struct cdf_header *h, unsigned version, struct cdf_layout *ret,
		    struct buf *text, struct err *e)
{
	const struct limits max = layout_limits(version);
	int rc = layout_lengths(h, &max, e);

	h->version = version;
	*ret = (struct cdf_layout){0};
	if (rc == 0)
		rc = layout_header(h, text, e); /* its length does not depend on offsets */
	if (rc < 0)
		return rc;
	ret->header = h->end = text->len;
	rc = layout_offsets(h, &max, ret, e);
	return rc < 0 ? rc : layout_header(h, text, e);
}
