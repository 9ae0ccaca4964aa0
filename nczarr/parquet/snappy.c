/* SPDX-License-Identifier: BSD-3-Clause */
/* snappy.c - snappy's raw format. Spec: "Snappy compressed format description". */
#include "nczarr/parquet/parquet.h"

#include <errno.h>
#include <string.h>

struct snappy_reader {
	const uint8_t *p, *end;
};

static bool snappy_take(struct snappy_reader *r, unsigned n, uint32_t *ret)
{
	*ret = 0;
	if ((size_t)(r->end - r->p) < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		*ret |= (uint32_t)*r->p++ << 8 * i;
	return true;
}

static bool length(struct snappy_reader *r, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint32_t c;

		if (!snappy_take(r, 1, &c))
			return false;
		*ret |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

/* copy_back - copy n earlier output bytes; source and destination may overlap. */
static bool copy_back(uint8_t *out, size_t *at, size_t n_out, size_t back, size_t n)
{
	if (back == 0 || back > *at || n > n_out - *at)
		return false;
	for (; n > 0; n--, (*at)++)
		out[*at] = out[*at - back];
	return true;
}

static bool literal(struct snappy_reader *r, uint32_t tag, uint8_t *out, size_t *at,
		    size_t n_out)
{
	uint32_t n = tag >> 2;

	if (n >= 60 && !snappy_take(r, n - 59, &n))
		return false;
	if (n >= n_out - *at || n >= (size_t)(r->end - r->p))
		return false;
	memcpy(out + *at, r->p, (size_t)n + 1);
	r->p += (size_t)n + 1;
	*at += (size_t)n + 1;
	return true;
}

static bool snappy_element(struct snappy_reader *r, uint8_t *out, size_t *at, size_t n_out)
{
	uint32_t tag, back;

	if (!snappy_take(r, 1, &tag))
		return false;
	switch (tag & 3) {
	case 0:
		return *at < n_out && literal(r, tag, out, at, n_out);
	case 1:
		return snappy_take(r, 1, &back) &&
		       copy_back(out, at, n_out, (tag >> 5) << 8 | back, (tag >> 2 & 7) + 4);
	case 2:
		return snappy_take(r, 2, &back) &&
		       copy_back(out, at, n_out, back, (tag >> 2) + 1);
	default:
		return snappy_take(r, 4, &back) &&
		       copy_back(out, at, n_out, back, (tag >> 2) + 1);
	}
}

int pq_snappy(const uint8_t *in, size_t n_in, uint8_t *out, size_t n, struct err *e)
{
	struct snappy_reader r = {in, in + n_in};
	uint64_t says;
	size_t at = 0;
	bool ok = length(&r, &says) && says == n;

	while (ok && at < n)
		ok = snappy_element(&r, out, &at, n);
	if (!ok || r.p != r.end)
		return err_set(e, -EBADMSG, "snappy: the data is damaged");
	return 0;
}
