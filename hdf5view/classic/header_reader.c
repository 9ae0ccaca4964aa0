/* SPDX-License-Identifier: BSD-3-Clause */
/* header_reader.c - reads the header through a small window: never mapped, never read as a
 * whole. */
#include "hdf5view/classic/classic_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endian.h"

#define PREFETCH_LEAST ((uint64_t)64 << 10)
#define PREFETCH_MOST ((uint64_t)8 << 20)

void cdf_reader_init(struct cdf_reader *in, struct blob *b)
{
	in->blob = b;
	in->at = 0;
	in->pos = in->len = 0;
	in->wanted = 0;
	in->ahead = PREFETCH_LEAST;
	in->rc = 0;
	in->why = (struct err)ERR_INIT;
}

int cdf_reader_fail(struct cdf_reader *in, int code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (in->rc < 0)
		return in->rc;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	in->rc = err_set(&in->why, code, "%s", text);
	return in->rc;
}

/* header_reader_ends - the file ends before the next element. */
static void header_reader_ends(struct cdf_reader *in, uint64_t n, const char *what)
{
	(void)cdf_reader_fail(in, -EBADMSG,
			      "the file ends at byte %" PRIu64
			      ", inside its header: %s at byte %" PRIu64 " takes %" PRIu64
			      " more; was it copied or written completely?",
			      in->blob->size, what, cdf_reader_at(in), n);
}

/* header_reader_want_on - prefetch a long header in a few pieces that grow. */
static void header_reader_want_on(struct cdf_reader *in, uint64_t at)
{
	struct blob_part p = {.off = at};

	if (in->blob->fd >= 0 || at + sizeof(in->window) <= in->wanted)
		return;
	p.len = u64_min(in->ahead, in->blob->size - at);
	blob_want(in->blob, &p, 1);
	in->wanted = at + p.len;
	in->ahead = u64_min(2 * in->ahead, PREFETCH_MOST);
}

/* header_reader_fill - move the window to the next byte and fill it. */
static bool header_reader_fill(struct cdf_reader *in)
{
	uint64_t at = cdf_reader_at(in);
	size_t n = (size_t)u64_min(sizeof(in->window), in->blob->size - at);
	int rc;

	header_reader_want_on(in, at);
	rc = blob_read(in->blob, at, in->window, n, &in->why);

	in->at = at;
	in->pos = 0;
	in->len = 0;
	if (rc < 0) {
		in->rc = rc;
		return false;
	}
	in->len = n;
	return true;
}

bool cdf_reader_bytes(struct cdf_reader *in, void *out, size_t n, const char *what)
{
	uint8_t *p = out;
	size_t part;

	if (in->rc < 0)
		return false;
	if (n > cdf_reader_left(in)) {
		header_reader_ends(in, n, what);
		return false;
	}
	while (n > 0) {
		if (in->pos == in->len && n >= sizeof(in->window)) {
			/* more than a window: read directly */
			in->rc = blob_read(in->blob, cdf_reader_at(in), p, n, &in->why);
			in->at += in->len + n;
			in->pos = in->len = 0;
			return in->rc == 0;
		}
		if (in->pos == in->len && !header_reader_fill(in))
			return false;
		part = (size_t)u64_min(n, in->len - in->pos);
		memcpy(p, in->window + in->pos, part);
		in->pos += part;
		p += part;
		n -= part;
	}
	return true;
}

uint64_t cdf_reader_uint(struct cdf_reader *in, size_t bytes, const char *what)
{
	uint8_t raw[8] = {0};

	if (bytes > sizeof(raw) || !cdf_reader_bytes(in, raw, bytes, what))
		return 0;
	return get_be(raw, bytes);
}
