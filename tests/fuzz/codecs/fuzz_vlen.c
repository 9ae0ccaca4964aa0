/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_vlen.c - object arrays as numcodecs stores them, over arbitrary bytes.
 *
 * Property: what decodes to a body is encoded again, and then decodes to the same body; the frames
 * to the same bytes. Input: one byte each for the filter, the bytes of a base element, and the
 * number of elements, then the stored bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/core/cursor.h"
#include "codecs/vlen/vlen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	enum codec_vlen v = (enum codec_vlen)(CODEC_VLEN_UTF8 + rd_u8(&s) % CODEC_VLEN_JSON2);
	uint32_t base = v == CODEC_VLEN_ARRAY ? 1u << rd_u8(&s) % 4 : rd_u8(&s) * 0u + 1;
	uint64_t n = rd_u8(&s);
	const uint8_t *body, *again;
	struct buf room, more, out;
	size_t len, again_len;

	if (!slice_ok(&s))
		return 0;
	buf_init(&room, 1 << 16);
	buf_init(&more, 1 << 16);
	buf_init(&out, 1 << 20);
	if (codec_vlen_decode(v, base, s.p, s.len, n, &room, &body, &len, NULL) == 0) {
		require(codec_vlen_encode(v, base, body, len, 1, &n, &out, NULL) == 0);
		require(v == CODEC_VLEN_JSON2 ||
			(out.len == s.len && memcmp(out.data, s.p, s.len) == 0));
		require(codec_vlen_decode(v, base, out.data, out.len, n, &more, &again,
					  &again_len, NULL) == 0);
		require(again_len == len && (len == 0 || memcmp(again, body, len) == 0));
	}
	buf_release(&room);
	buf_release(&more);
	buf_release(&out);
	return 0;
}
