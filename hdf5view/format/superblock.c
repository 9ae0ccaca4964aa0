/* SPDX-License-Identifier: BSD-3-Clause */
/* superblock.c - finds and parses an HDF5 file's superblock, and has the primitives that all
 * readers of raw structures share: checked reads, addresses, checksums.
 *
 * Spec: HDF5 File Format 3.0, II.A. The free-space, driver and root group fields are left to
 * libhdf5. */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

#define REMOTE_SEARCH ((uint64_t)1 << 20) /* of a remote file, for its superblock */
#define SUPERBLOCK_MAX 96              /* enough of version 1 with 8-byte addresses */

uint64_t h5_rd_addr(const struct h5_file *f, struct slice *s)
{
	const uint8_t *p = rd_bytes(s, f->offset_size);

	return p ? h5_addr(f, p) : HDF5_NOWHERE;
}

uint64_t h5_rd_length(const struct h5_file *f, struct slice *s)
{
	uint64_t v = rd_uint(s, f->length_size);

	return v == UINT64_MAX >> (64 - 8 * f->length_size) ? UINT64_MAX : v;
}

int h5_pread(const struct h5_file *f, uint64_t addr, void *out, size_t n, const char *what,
	     struct err *e)
{
	int rc;

	if (!h5_in_file(f, addr, n))
		return err_set(e, -EBADMSG,
			       "%s: %zu bytes at %llu lie outside the file of %llu bytes", what,
			       n, (unsigned long long)addr, (unsigned long long)f->size);
	rc = blob_read(f->blob, addr, out, n, e);
	/* an invalid reply of a server does not prove damage, and damage is remembered: use
	 * -EIO */
	if (rc == -EBADMSG && e)
		e->code = -EIO;
	return rc == -EBADMSG ? -EIO : rc;
}

static inline uint32_t rotl(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

uint32_t h5_lookup3(const uint8_t *p, size_t n)
{
	uint32_t a = 0xdeadbeefU + (uint32_t)n, b = a, c = a;
	uint8_t tail[12] = {0};

	if (n == 0)
		return c;
	for (; n > 12; n -= 12, p += 12) {
		a += get_le32(p);
		b += get_le32(p + 4);
		c += get_le32(p + 8);
		a = (a - c) ^ rotl(c, 4), c += b;
		b = (b - a) ^ rotl(a, 6), a += c;
		c = (c - b) ^ rotl(b, 8), b += a;
		a = (a - c) ^ rotl(c, 16), c += b;
		b = (b - a) ^ rotl(a, 19), a += c;
		c = (c - b) ^ rotl(b, 4), b += a;
	}
	memcpy(tail, p, n);
	a += get_le32(tail);
	b += get_le32(tail + 4);
	c += get_le32(tail + 8);
	c = (c ^ b) - rotl(b, 14);
	a = (a ^ c) - rotl(c, 11);
	b = (b ^ a) - rotl(a, 25);
	c = (c ^ b) - rotl(b, 16);
	a = (a ^ c) - rotl(c, 4);
	b = (b ^ a) - rotl(a, 14);
	c = (c ^ b) - rotl(b, 24);
	return c;
}

int h5_file_find(struct blob *b, uint64_t *ret_offset, struct err *e)
{
	uint64_t at = 0, end = b->fd < 0 ? u64_min(b->size, REMOTE_SEARCH) : b->size;
	uint8_t got[HDF5_SIGNATURE_LEN];

	while (at <= end && end - at >= HDF5_SIGNATURE_LEN) {
		int rc = blob_read(b, at, got, sizeof(got), e);

		if (rc < 0)
			return rc;
		if (memcmp(got, HDF5_SIGNATURE, sizeof(got)) == 0) {
			*ret_offset = at;
			return 0;
		}
		at = at ? at * 2 : 512;
		if (at == 0) /* the doubling wrapped */
			break;
	}
	return err_set(e, -EBADMSG, "no HDF5 signature");
}

static bool width_ok(unsigned n)
{
	return n == 2 || n == 4 || n == 8;
}

/* Fields up to the end-of-file address; stated_base and stated_eof are as in the file. */
static int parse_superblock(struct h5_file *f, const uint8_t *buf, size_t n,
			    uint64_t *stated_base, uint64_t *stated_eof, struct err *e)
{
	struct slice s = slice_of(buf, n);
	unsigned version;

	rd_skip(&s, HDF5_SIGNATURE_LEN);
	version = rd_u8(&s);
	if (version > 3)
		return err_set(e, -EOPNOTSUPP, "superblock version %u is not known", version);
	if (version < 2)
		rd_skip(&s, 4);
	f->offset_size = rd_u8(&s);
	f->length_size = rd_u8(&s);
	if (!slice_ok(&s) || !width_ok(f->offset_size) || !width_ok(f->length_size))
		return err_set(
			e, -EBADMSG,
			"superblock: offsets of %u and lengths of %u bytes are not supported",
			f->offset_size, f->length_size);
	/* 0 and 1: reserved, two group B-tree ranks, flags; 1 adds the chunk B-tree rank */
	rd_skip(&s, version == 0 ? 9 : version == 1 ? 13 : 1);
	*stated_base = rd_uint(&s, f->offset_size);
	rd_skip(&s, f->offset_size); /* free-space info, or superblock extension */
	*stated_eof = rd_uint(&s, f->offset_size);
	rd_skip(&s, version < 2 ? f->offset_size : f->offset_size + 4U);
	if (!slice_ok(&s))
		return err_set(e, -EBADMSG, "superblock is truncated");
	if (version >= 2 && !h5_sum_ok(buf, n - s.len))
		return err_set(e, -EBADMSG, "superblock: wrong checksum");
	return 0;
}

int h5_file_read(struct blob *b, struct h5_file *ret, struct err *e)
{
	const uint64_t size = b->size;
	struct h5_file f = {.blob = b, .size = size};
	uint8_t buf[SUPERBLOCK_MAX];
	uint64_t base = 0, eof = 0;
	size_t n;
	int rc = h5_file_find(b, &f.base, e);

	if (rc < 0)
		return rc;
	n = (size_t)u64_min(sizeof(buf), size - f.base);
	rc = blob_read(b, f.base, buf, n, e);
	rc = rc ? rc : parse_superblock(&f, buf, n, &base, &eof, e);
	if (rc < 0)
		return rc;

	/* A user block that was added or removed later moves everything; addresses count from
	 * where the superblock is now, and the end of file moves along. */
	if (eof < base || ckd_add(&f.eof, eof - base, f.base))
		return err_set(e, -EBADMSG,
			       "superblock: end of file %llu does not fit base address %llu",
			       (unsigned long long)eof, (unsigned long long)base);
	if (f.eof > size)
		return err_set(e, -EBADMSG, "truncated: the file has %llu of %llu bytes",
			       (unsigned long long)size, (unsigned long long)f.eof);
	*ret = f;
	return 0;
}
