/* SPDX-License-Identifier: BSD-3-Clause */
/* patch.c - writes addresses into the structure that libhdf5 made: the data address of a dataset,
 * the end of the file. The process that made the structure is not trusted: a header that leads
 * outside of the image, in circles, or into another header is an error.
 *
 * Spec: HDF5 File Format 3.0, II.A superblock, IV.A.1 object headers, IV.A.2.i layout. */
#include "base/core/cursor.h"
#include "base/core/endian.h"
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <string.h>

#define BLOCKS_MAX 4096
#define MSG_LAYOUT 0x08
#define MSG_CONTINUATION 0x10
#define MSG_SHARED 0x02U
#define OHDR_TRACKED 0x04U
#define OHDR_PHASE 0x10U
#define OHDR_TIMES 0x20U
#define SUM 4 /* bytes of a checksum */

/* patch_block - a block of consecutive messages of an object header. */
struct patch_block {
	uint64_t at, len; /* in the image: all of it, with signature and checksum */
	size_t head;      /* bytes before the first message */
};

struct patch_header {
	uint8_t *image;
	size_t len;
	uint64_t at;
	unsigned version;
	size_t envelope; /* bytes of a message before its body */
	size_t *left;    /* bytes of blocks that may still be parsed */
	struct patch_block *blocks;
	size_t n, cap;
};

static int patch_damaged(const struct patch_header *h, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "structure: object header at %llu %s",
		       (unsigned long long)h->at, what);
}

static int patch_add_block(struct patch_header *h, uint64_t at, uint64_t len, size_t head,
			   struct err *e)
{
	size_t least = head + (h->version == 2 ? SUM : 0);

	if (at > h->len || len > h->len - at || len < least || h->n == BLOCKS_MAX)
		return patch_damaged(h, "leads outside of the structure", e);
	if (len > *h->left)
		return patch_damaged(h, "shares its bytes with others", e);
	*h->left -= (size_t)len;
	if (grow_array(&h->blocks, &h->cap, h->n + 1, sizeof(*h->blocks)) < 0)
		return err_nomem(e);
	h->blocks[h->n++] = (struct patch_block){.at = at, .len = len, .head = head};
	return 0;
}

/* patch_begin - the first block. */
static int patch_begin(struct patch_header *h, struct err *e)
{
	struct slice s = slice_of(h->image, h->len);
	size_t before;
	unsigned flags;
	uint64_t len;

	rd_skip(&s, (size_t)u64_min(h->at, SIZE_MAX));
	before = s.len;
	if (s.len >= 4 && memcmp(s.p, "OHDR", 4) == 0) {
		rd_skip(&s, 4);
		h->version = rd_u8(&s);
		flags = rd_u8(&s);
		h->envelope = flags & OHDR_TRACKED ? 6 : 4;
		rd_skip(&s, (flags & OHDR_TIMES ? 16 : 0) + (flags & OHDR_PHASE ? 4 : 0));
		len = rd_uint(&s, (size_t)1 << (flags & 3));
	} else {
		h->version = rd_u8(&s);
		h->envelope = 8;
		rd_skip(&s, 7);
		len = rd_le32(&s);
		rd_skip(&s, 4);
	}
	if (!slice_ok(&s) || (h->version != 1 && h->version != 2) || len > h->len)
		return patch_damaged(h, "is not valid", e);
	before -= s.len;
	return patch_add_block(h, h->at, before + len + (h->version == 2 ? SUM : 0), before, e);
}

static int patch_continuation(struct patch_header *h, struct slice body, struct err *e)
{
	uint64_t at = rd_le64(&body), len = rd_le64(&body);

	if (!slice_ok(&body))
		return patch_damaged(h, "has a damaged continuation message", e);
	return patch_add_block(h, at, len, h->version == 2 ? 4 : 0, e);
}

/* write_layout - body: the message, len bytes. */
static int write_layout(const struct patch_header *h, uint8_t *body, size_t len, uint64_t addr,
			struct err *e)
{
	size_t at;

	if (len < 2 || body[0] != 3)
		return patch_damaged(h, "has a layout message of an unknown version", e);
	if (body[1] != HDF5_LAYOUT_CONTIGUOUS && body[1] != HDF5_LAYOUT_CHUNKED)
		return patch_damaged(h, "has a layout without an address", e);
	at = body[1] == HDF5_LAYOUT_CHUNKED ? 3 : 2;
	if (len < at + 8)
		return patch_damaged(h, "has a truncated layout message", e);
	put_le64(body + at, addr);
	return 0;
}

/* in_block - search one block for the layout message. Returns 1 if it was found. */
static int in_block(struct patch_header *h, struct patch_block b, uint64_t addr, struct err *e)
{
	uint8_t *p = h->image + b.at;
	size_t at = b.head, end = (size_t)b.len - (h->version == 2 ? SUM : 0), len;
	int rc;

	while (end - at >= h->envelope) {
		unsigned type = h->version == 1 ? p[at] | (unsigned)p[at + 1] << 8 : p[at];
		size_t rest = h->version == 1 ? at + 2 : at + 1;
		bool shared = p[rest + 2] & MSG_SHARED;

		len = p[rest] | (size_t)p[rest + 1] << 8;
		at += h->envelope;
		if (len > end - at)
			return patch_damaged(h, "has a message that does not end", e);
		if ((type == MSG_LAYOUT || type == MSG_CONTINUATION) && shared)
			return patch_damaged(h, "has its layout elsewhere", e);
		if (type == MSG_CONTINUATION) {
			rc = patch_continuation(h, slice_of(p + at, len), e);
			if (rc < 0)
				return rc;
		} else if (type == MSG_LAYOUT) {
			rc = write_layout(h, p + at, len, addr, e);
			if (rc == 0 && h->version == 2)
				put_le32(p + end, h5_lookup3(p, end));
			return rc < 0 ? rc : 1;
		}
		at += len;
	}
	return 0;
}

int nc_patch_address(uint8_t *image, size_t len, size_t *left, uint64_t header, uint64_t addr,
		     struct err *e)
{
	struct patch_header h = {.image = image, .len = len, .at = header, .left = left};
	int rc = patch_begin(&h, e);

	for (size_t i = 0; rc == 0 && i < h.n; i++)
		rc = in_block(&h, h.blocks[i], addr, e);
	free(h.blocks);
	if (rc == 0)
		return patch_damaged(&h, "has no layout message", e);
	return rc < 0 ? rc : 0;
}

int nc_patch_eof(uint8_t *image, size_t len, uint64_t eof, struct err *e)
{
	size_t sizes, at;
	unsigned version;

	if (len < 48 || memcmp(image, HDF5_SIGNATURE, HDF5_SIGNATURE_LEN) != 0)
		return err_set(e, -EBADMSG, "structure: no superblock");
	version = image[8];
	/* version 1 may state another NC_BTREE_K, and the library writes it only then */
	if (version != 0 && version != 2 && version != 3)
		return err_set(e, -EBADMSG, "structure: superblock version %u", version);
	sizes = version == 0 ? 13 : 9;
	at = version == 0 ? 40 : 28;
	if (image[sizes] != 8 || image[sizes + 1] != 8)
		return err_set(e, -EBADMSG, "structure: addresses of %u bytes", image[sizes]);
	put_le64(image + at, eof);
	if (version != 0)
		put_le32(image + 44, h5_lookup3(image, 44));
	return 0;
}
