/* SPDX-License-Identifier: BSD-3-Clause */
/* vlen.c - the framing of vlen-utf8, vlen-bytes and vlen-array: a count of four bytes, then the
 * neutral body. Everything is checked before it is used. */
#include "codecs/vlen/vlen.h"

#include <errno.h>
#include <inttypes.h>

#include "base/core/str.h"
#include "base/core/utf8.h"
#include "codecs/core/codec_impl.h"
#include "codecs/vlen/json2_int.h"

static const char *const ids[] = {
	[CODEC_VLEN_NONE] = "",
	[CODEC_VLEN_UTF8] = "vlen-utf8",
	[CODEC_VLEN_BYTES] = "vlen-bytes",
	[CODEC_VLEN_ARRAY] = "vlen-array",
	[CODEC_VLEN_JSON2] = "json2",
};

enum codec_vlen codec_vlen_find(const char *id, size_t n)
{
	for (size_t i = CODEC_VLEN_UTF8; i < ARRAY_LEN(ids); i++)
		if (str_is(ids[i], id, n))
			return (enum codec_vlen)i;
	return CODEC_VLEN_NONE;
}

const char *codec_vlen_id(enum codec_vlen v)
{
	return ids[v];
}

int codec_vlen_check(enum codec_vlen v, uint32_t size, const uint8_t *p, size_t len, uint64_t i,
		     struct err *e)
{
	if ((v == CODEC_VLEN_UTF8 || v == CODEC_VLEN_JSON2) && !utf8_ok(p, len))
		return err_set(e, -EBADMSG, "element %" PRIu64 " is not valid UTF-8", i);
	if (size > 1 && len % size != 0)
		return err_set(e, -EBADMSG,
			       "element %" PRIu64
			       " has %zu bytes, which is not a multiple of %" PRIu32,
			       i, len, size);
	if (len > UINT32_MAX)
		return err_set(e, -ERANGE, "element %" PRIu64 " is too large: %zu bytes", i,
			       len);
	return 0;
}

void codec_vlen_put(const uint8_t *p, size_t len, struct buf *out)
{
	buf_put_le32(out, (uint32_t)len);
	if (len > 0)
		buf_put(out, p, len);
}

const uint8_t *codec_vlen_next(struct slice *body, uint32_t *ret_len)
{
	*ret_len = rd_le32(body);
	return rd_bytes(body, *ret_len);
}

/* check_body - check that it is a body of n such elements. */
static int check_body(enum codec_vlen v, uint32_t size, const uint8_t *body, size_t len,
		      uint64_t n, struct err *e)
{
	struct slice s = slice_of(body, len);

	for (uint64_t i = 0; i < n; i++) {
		uint32_t k;
		const uint8_t *p = codec_vlen_next(&s, &k);
		int rc;

		if (!slice_ok(&s))
			return err_set(e, -EBADMSG,
				       "element %" PRIu64 " of %" PRIu64 " has %" PRIu32
				       " bytes, but only %zu are left",
				       i, n, k, s.len);
		rc = codec_vlen_check(v, size, p, k, i, e);
		if (rc)
			return rc;
	}
	if (s.len > 0)
		return err_set(e, -EBADMSG, "%zu bytes follow the last element", s.len);
	return 0;
}

static int unframe(enum codec_vlen v, uint32_t size, const uint8_t *in, size_t len, uint64_t n,
		   const uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct slice s = slice_of(in, len);
	uint32_t count = rd_le32(&s);

	if (!slice_ok(&s) || count != n)
		return err_set(e, -EBADMSG,
			       "%" PRIu32 " elements are stored, the chunk has %" PRIu64, count,
			       n);
	*ret = s.p;
	*ret_len = s.len;
	return check_body(v, size, s.p, s.len, n, e);
}

int codec_vlen_decode(enum codec_vlen v, uint32_t size, const uint8_t *in, size_t len,
		      uint64_t n, struct buf *room, const uint8_t **ret, size_t *ret_len,
		      struct err *e)
{
	int rc;

	if (v != CODEC_VLEN_JSON2)
		return unframe(v, size, in, len, n, ret, ret_len, e);
	buf_clear(room);
	rc = codec_json2_decode(in, len, n, room, e);
	if (rc)
		return rc;
	*ret = room->data;
	*ret_len = room->len;
	return 0;
}

int codec_vlen_encode(enum codec_vlen v, uint32_t size, const uint8_t *body, size_t len,
		      uint32_t rank, const uint64_t *shape, struct buf *out, struct err *e)
{
	const size_t start = out->len;
	uint64_t n = 1;
	int rc;

	if (!u64_product(&n, shape, rank, UINT32_MAX))
		return err_set(e, -ERANGE, "a chunk has more than %" PRIu32 " elements",
			       UINT32_MAX);
	rc = check_body(v, size, body, len, n, e);
	if (!rc && v == CODEC_VLEN_JSON2 && rank == 0)
		rc = err_set(e, -EOPNOTSUPP, "json2: scalar arrays are not supported");
	if (rc)
		return rc;
	if (v == CODEC_VLEN_JSON2) {
		codec_json2_encode(body, len, rank, shape, out);
	} else {
		buf_put_le32(out, (uint32_t)n);
		if (len > 0)
			buf_put(out, body, len);
	}
	if (buf_ok(out))
		return 0;
	out->len = start;
	return buf_full(out, e, -ERANGE, "the elements need more than %zu bytes", out->max);
}
