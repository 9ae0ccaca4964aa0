/* SPDX-License-Identifier: BSD-3-Clause */
/* zip_read.c - the bytes of an entry.
 *
 * Stored entries are read in place. Deflated ones are inflated as a whole; if only a part is read,
 * the whole is cached for a while, so that an entry that is read in pieces is inflated once.
 * Threads that read the same entry wait for one of them. */
#include "nczarr/store/zip_int.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#include "base/core/cursor.h"

#define EXTRA_GUESS 64                      /* bytes of extra fields in a local header */
#define WANT_MOST ((uint64_t)16 << 20)      /* of an entry that are fetched with its header */
#define INFLATE_CEILING ((uint64_t)1 << 30) /* bytes of an entry, stored or inflated */

/* want_entry - prefetch an entry with its local header, whose length is not known yet. */
static void want_entry(struct zip *z, const struct zip_entry *x, uint64_t at)
{
	struct blob_part p = {at, ZIP_LOCAL_BYTES + x->name_len + z->root + EXTRA_GUESS};

	if (z->fd >= 0)
		return;
	p.len = u64_min(p.len + u64_min(x->stored, WANT_MOST), z->dir - at);
	blob_want(z->blob, &p, 1);
}

/* data_of - offset of an entry's bytes: after its local header (4.3.7), which is read once and
 * must agree with the directory. */
static int data_of(struct zip *z, struct zip_entry *x, uint64_t *ret, struct err *e)
{
	uint64_t at = atomic_load_explicit(&x->at, memory_order_relaxed), stop;
	const char *name = zip_name(z, x) - z->root;
	size_t len = x->name_len + z->root, name_len, extra_len;
	uint8_t b[ZIP_LOCAL_BYTES + ZIP_NAME_MAX];
	struct slice s = slice_of(b, ZIP_LOCAL_BYTES + len);
	const uint8_t *p;
	unsigned method;
	int rc;

	if (at & ZIP_AT_DATA) {
		*ret = at & ~ZIP_AT_DATA;
		return 0;
	}
	want_entry(z, x, at);
	rc = blob_read(z->blob, at, b, ZIP_LOCAL_BYTES + len, e);
	if (rc < 0)
		return err_wrap(e, rc, "zip entry '%.*s'", (int)len, name);
	if (rd_le32(&s) != ZIP_LOCAL_SIG)
		return err_set(e, -EBADMSG, "zip entry '%.*s' has no header at offset %" PRIu64,
			       (int)len, name, at);
	rd_skip(&s, 4);
	method = rd_le16(&s);
	rd_skip(&s, 16);
	name_len = rd_le16(&s);
	extra_len = rd_le16(&s);
	p = rd_bytes(&s, len);
	if (name_len != len || !p || memcmp(p, name, len) != 0 || method != x->method)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s': its header at offset %" PRIu64
			       " has another name or compression method",
			       (int)len, name, at);
	at += ZIP_LOCAL_BYTES + len + extra_len;
	if (ckd_add(&stop, at, x->stored) || stop > z->dir)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s': its %" PRIu64 " bytes at offset %" PRIu64
			       " overlap the directory at %" PRIu64,
			       (int)len, name, x->stored, at, z->dir);
	atomic_store_explicit(&x->at, at | ZIP_AT_DATA, memory_order_relaxed);
	*ret = at;
	return 0;
}

int zip_place(struct zip *z, size_t entry, uint64_t *ret, struct err *e)
{
	return data_of(z, &z->entries[entry], ret, e);
}

static int check_crc(const struct zip *z, const struct zip_entry *x, const uint8_t *data,
		     struct err *e)
{
	uint32_t crc = libdeflate_crc32(0, data, (size_t)x->size);

	if (crc == x->crc)
		return 0;
	return err_set(e, -EBADMSG, "zip entry '%.*s': its checksum is %08x instead of %08x",
		       (int)x->name_len, zip_name(z, x), (unsigned int)crc,
		       (unsigned int)x->crc);
}

/* zip_read_inflate - inflate a whole entry into out, x->size bytes. */
static int zip_read_inflate(struct zip *z, struct zip_entry *x, uint8_t *out, struct err *e)
{
	struct libdeflate_decompressor *d;
	auto_free uint8_t *in = NULL;
	enum libdeflate_result got;
	uint64_t at;
	int rc = data_of(z, x, &at, e);

	if (rc < 0)
		return rc;
	if (x->stored > INFLATE_CEILING)
		return err_set(e, -ERANGE,
			       "zip entry '%.*s': %" PRIu64
			       " deflated bytes exceed the limit of %" PRIu64
			       " for a whole read",
			       (int)x->name_len, zip_name(z, x), x->stored, INFLATE_CEILING);
	in = malloc((size_t)x->stored + 1);
	if (!in)
		return err_nomem(e);
	rc = blob_read(z->blob, at, in, (size_t)x->stored, e);
	if (rc < 0)
		return err_wrap(e, rc, "zip entry '%.*s'", (int)x->name_len, zip_name(z, x));
	d = libdeflate_alloc_decompressor();
	if (!d)
		return err_nomem(e);
	got = libdeflate_deflate_decompress(d, in, (size_t)x->stored, out, (size_t)x->size,
					    NULL);
	libdeflate_free_decompressor(d);
	if (got != LIBDEFLATE_SUCCESS)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s': %" PRIu64
			       " bytes do not inflate to exactly %" PRIu64,
			       (int)x->name_len, zip_name(z, x), x->stored, x->size);
	return check_crc(z, x, out, e);
}

/* zip_read_load - inflate an entry into the memory of the cache. */
static int zip_read_load(struct zip *z, struct zip_entry *x, struct cache_entry *to,
			 struct err *e)
{
	uint8_t *data;

	if (x->size > INFLATE_CEILING)
		return err_set(e, -ERANGE,
			       "zip entry '%.*s': %" PRIu64
			       " inflated bytes exceed the limit of %" PRIu64
			       " for reading a part",
			       (int)x->name_len, zip_name(z, x), x->size, INFLATE_CEILING);
	data = cache_alloc(to, (size_t)x->size);
	return data ? zip_read_inflate(z, x, data, e) : err_nomem(e);
}

/* read_part - read a part of a deflated entry through the cache. */
static int read_part(struct zip *z, size_t entry, uint64_t off, uint8_t *out, size_t len,
		     struct err *e)
{
	struct err failed = ERR_INIT;
	struct cache_entry *x;
	size_t size;
	int rc = cache_get(z->inflated, 0, entry, &x, e);

	if (rc < 0)
		return rc;
	if (rc == CACHE_LOAD) {
		rc = zip_read_load(z, &z->entries[entry], x, &failed);
		if (rc < 0) {
			cache_fail(x, &failed);
			return err_set(e, rc, "%s", failed.msg);
		}
		cache_publish(x);
	}
	memcpy(out, cache_data(x, &size) + off, len);
	cache_put(x);
	return 0;
}

int zip_read(struct zip *z, size_t entry, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	struct zip_entry *x = &z->entries[entry];
	bool whole = off == 0 && len == x->size;
	uint64_t at;
	int rc;

	if (len == 0)
		return 0;
	if (x->method == ZIP_DEFLATED)
		return whole ? zip_read_inflate(z, x, out, e)
			     : read_part(z, entry, off, out, len, e);
	rc = data_of(z, x, &at, e);
	if (rc < 0)
		return rc;
	rc = blob_read(z->blob, at + off, out, len, e);
	if (rc < 0)
		return err_wrap(e, rc, "zip entry '%.*s'", (int)x->name_len, zip_name(z, x));
	return whole ? check_crc(z, x, out, e) : 0;
}

void zip_want(struct zip *z, size_t entry, uint64_t off, uint64_t len)
{
	const struct zip_entry *x = &z->entries[entry];
	uint64_t at = atomic_load_explicit(&x->at, memory_order_relaxed);
	struct blob_part p;

	if (!(at & ZIP_AT_DATA)) {
		want_entry(z, x, at);
		return;
	}
	if (x->method == ZIP_DEFLATED) {
		off = 0;
		len = x->stored;
	} else if (off > x->stored) { /* its end */
		off = x->stored - u64_min(len, x->stored);
		len = x->stored - off;
	}
	p = (struct blob_part){(at & ~ZIP_AT_DATA) + off, u64_min(len, x->stored - off)};
	if (p.len > 0)
		blob_want(z->blob, &p, 1);
}
