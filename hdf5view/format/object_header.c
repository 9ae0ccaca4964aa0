/* SPDX-License-Identifier: BSD-3-Clause */
/* object_header.c - walks the messages of one object header, versions 1 and 2.
 *
 * Knows blocks and message envelopes, not what messages mean. Blocks are read one at a time; a
 * header may name further ones (continuations) anywhere, so their number and their bytes are
 * limited, which also ends cycles.
 *
 * Spec: HDF5 File Format 3.0, IV.A.1. */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

#define BLOCKS_MAX 65536
#define BYTES_MAX ((uint64_t)256 << 20) /* all blocks of one header */

#define MSG_SHARED 0x02U
#define OHDR_TRACKED 0x04U
#define OHDR_PHASE 0x10U
#define OHDR_TIMES 0x20U

struct object_header_block {
	uint64_t addr, len; /* absolute; all bytes of it, with signature and checksum */
};

struct object_header_header {
	const struct h5_file *f;
	unsigned version;
	bool tracked; /* version 2: each message has its creation order */
	struct object_header_block *blocks;
	size_t n, cap;
	uint64_t bytes; /* of all blocks */
	int (*fn)(void *arg, const struct h5_message *m, struct err *e);
	void *arg;
};

static int object_header_add_block(struct object_header_header *h, uint64_t addr, uint64_t len,
				   struct err *e)
{
	if (len == 0 || !h5_in_file(h->f, addr, len))
		return err_set(e, -EBADMSG,
			       "object header: block of %llu bytes at %llu is outside the file",
			       (unsigned long long)len, (unsigned long long)addr);
	if (h->n >= BLOCKS_MAX || len > BYTES_MAX - h->bytes)
		return err_set(e, -ERANGE, "object header: too many or too large blocks");
	if (grow_array(&h->blocks, &h->cap, h->n + 1, sizeof(*h->blocks)) < 0)
		return err_nomem(e);
	h->blocks[h->n++] = (struct object_header_block){.addr = addr, .len = len};
	h->bytes += len;
	return 0;
}

static int object_header_continuation(struct object_header_header *h, struct h5_message *m,
				      struct err *e)
{
	uint64_t addr = h5_rd_addr(h->f, &m->body);
	uint64_t len = h5_rd_length(h->f, &m->body);

	if (m->shared || !slice_ok(&m->body))
		return err_set(e, -EBADMSG, "object header: damaged continuation message");
	return object_header_add_block(h, addr, len, e);
}

/* Parse the messages in buf[at..end), which is at `addr` in the file. Bytes left after the last
 * message are fewer than an envelope: a gap (version 2) or none. */
static int messages(struct object_header_header *h, uint64_t addr, const uint8_t *buf,
		    size_t at, size_t end, struct err *e)
{
	size_t envelope = h->version == 1 ? 8 : h->tracked ? 6 : 4;
	int rc = 0;

	while (rc == 0 && end - at >= envelope) {
		struct slice s = slice_of(buf + at, end - at);
		struct h5_message m;
		size_t len;
		unsigned flags;

		m.type = h->version == 1 ? rd_le16(&s) : rd_u8(&s);
		len = rd_le16(&s);
		flags = rd_u8(&s);
		rd_skip(&s, envelope - (h->version == 1 ? 5 : 4));
		at += envelope;
		m.shared = flags & MSG_SHARED;
		m.addr = addr + at;
		m.block = addr;
		m.sum = h->version == 2 ? addr + end : 0;
		m.body = slice_of(s.p, len);
		if (len > end - at)
			return err_set(e, -EBADMSG,
				       "object header: a message has %zu bytes, but only %zu "
				       "bytes are left",
				       len, end - at);
		at += len;
		if (m.type == HDF5_MSG_CONTINUATION)
			rc = object_header_continuation(h, &m, e);
		else
			rc = h->fn(h->arg, &m, e);
	}
	return rc;
}

/* Version 1: 12 bytes, 4 of padding, messages. */
static int open_v1(struct object_header_header *h, uint64_t addr, size_t *ret_at, struct err *e)
{
	uint8_t buf[12];
	int rc = h5_pread(h->f, addr, buf, sizeof(buf), "object header", e);

	if (rc < 0)
		return rc;
	h->version = 1;
	*ret_at = 16;
	return object_header_add_block(h, addr, 16 + (uint64_t)get_le32(buf + 8), e);
}

/* Version 2: "OHDR", version, flags, optional times and phase change values, size of the
 * messages in 1 to 8 bytes, messages, checksum. */
static int open_v2(struct object_header_header *h, uint64_t addr, size_t *ret_at, struct err *e)
{
	uint8_t buf[6 + 16 + 4 + 8];
	size_t n = (size_t)u64_min(sizeof(buf), h->f->size - addr);
	int rc = h5_pread(h->f, addr, buf, n, "object header", e);
	struct slice s = slice_of(buf, n);
	uint64_t len, total;
	unsigned flags;

	if (rc < 0)
		return rc;
	rd_skip(&s, 4);
	h->version = rd_u8(&s);
	flags = rd_u8(&s);
	if (slice_ok(&s) && h->version != 2)
		return err_set(e, -EOPNOTSUPP, "object header version %u is not known",
			       h->version);
	h->tracked = flags & OHDR_TRACKED;
	rd_skip(&s, (flags & OHDR_TIMES ? 16 : 0) + (flags & OHDR_PHASE ? 4 : 0));
	len = rd_uint(&s, (size_t)1 << (flags & 3));
	*ret_at = n - s.len;
	if (!slice_ok(&s) || ckd_add(&total, len, (uint64_t)*ret_at + 4))
		return err_set(e, -EBADMSG, "object header is truncated");
	return object_header_add_block(h, addr, total, e);
}

static int walk_block(struct object_header_header *h, struct object_header_block b, size_t at,
		      bool first, struct err *e)
{
	auto_free uint8_t *buf = malloc((size_t)b.len);
	size_t end = (size_t)b.len;
	int rc;

	if (!buf)
		return err_nomem(e);
	rc = h5_pread(h->f, b.addr, buf, (size_t)b.len, "object header", e);
	if (rc < 0)
		return rc;
	if (h->version == 2) {
		if (!first) {
			if (b.len < 8 || memcmp(buf, "OCHK", 4) != 0)
				return err_set(e, -EBADMSG,
					       "object header: no continuation block at %llu",
					       (unsigned long long)b.addr);
			at = 4;
		}
		if (!h5_sum_ok(buf, end))
			return err_set(e, -EBADMSG, "object header: wrong checksum");
		end -= 4;
	}
	return messages(h, b.addr, buf, at, end, e);
}

int h5_header_walk(const struct h5_file *f, uint64_t header,
		   int (*fn)(void *arg, const struct h5_message *m, struct err *e), void *arg,
		   struct err *e)
{
	struct object_header_header h = {.f = f, .fn = fn, .arg = arg};
	uint8_t start[4];
	size_t at = 0;
	int rc = h5_pread(f, header, start, sizeof(start), "object header", e);

	if (rc < 0)
		return rc;
	if (memcmp(start, "OHDR", 4) == 0)
		rc = open_v2(&h, header, &at, e);
	else if (start[0] == 1)
		rc = open_v1(&h, header, &at, e);
	else
		rc = err_set(e, -EBADMSG, "no object header at %llu",
			     (unsigned long long)header);
	for (size_t i = 0; rc == 0 && i < h.n; i++)
		rc = walk_block(&h, h.blocks[i], i == 0 ? at : 0, i == 0, e);
	free(h.blocks);
	return rc;
}
