/* SPDX-License-Identifier: BSD-3-Clause */
/* zip_build.h - archives made byte by byte, honest or not, for tests of the zip store. */
#ifndef TESTS_UNIT_NCZARR_ZIP_BUILD_H
#define TESTS_UNIT_NCZARR_ZIP_BUILD_H

#include <libdeflate.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/buf.h"

struct zb {
	struct buf file, dir;
	uint64_t n;
	uint64_t before; /* bytes of the file before what offsets count from */
};

/* zb_entry - what is 0 is what an honest writer would write. */
struct zb_entry {
	const char *name;
	size_t name_len;
	const void *data;
	size_t len;
	bool deflate, zip64, descriptor;
	unsigned flags, made_on;
	uint32_t attrs, disk, crc_wrong;
	/* lies: in the directory, unless "local" says otherwise */
	const char *local_name;
	unsigned method, local_method, local_sig; /* method: in both; local_method + 1 */
	const uint64_t *size, *stored, *at;
	size_t local_extra;
};

static inline void zb_init(struct zb *z)
{
	*z = (struct zb){0};
	buf_init(&z->file, (size_t)64 << 20);
	buf_init(&z->dir, (size_t)64 << 20);
}

static inline void zb_le(struct buf *b, uint64_t v, unsigned n)
{
	for (; n > 0; n--, v >>= 8)
		buf_putc(b, (char)(v & 0xff));
}

/* zb_fields - what the local header and the directory have in common. */
static inline void zb_fields(struct buf *b, const struct zb_entry *x, unsigned method,
			     uint32_t crc, uint64_t stored, uint64_t size, size_t name_len,
			     size_t extra)
{
	zb_le(b, x->zip64 ? 45 : 20, 2);
	zb_le(b, x->flags | (x->descriptor ? 8u : 0u), 2);
	zb_le(b, method, 2);
	zb_le(b, 0, 4);
	zb_le(b, crc, 4);
	zb_le(b, stored, 4);
	zb_le(b, size, 4);
	zb_le(b, name_len, 2);
	zb_le(b, extra, 2);
}

static inline size_t zb_deflate(const void *data, size_t len, uint8_t *out, size_t cap)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	size_t n = libdeflate_deflate_compress(c, data, len, out, cap);

	libdeflate_free_compressor(c);
	return n;
}

static inline void zb_add(struct zb *z, const struct zb_entry *x)
{
	size_t cap = x->len + x->len / 8 + 64,
	       name_len = x->name_len ? x->name_len : strlen(x->name);
	const char *local_name = x->local_name ? x->local_name : x->name;
	size_t local_len = x->local_name ? strlen(x->local_name) : name_len;
	uint8_t *packed = alloc_array(cap, 1);
	uint64_t n = x->len, stored, size, at = z->file.len - z->before;
	unsigned method = x->method ? x->method : x->deflate ? 8u : 0u;
	uint32_t crc = libdeflate_crc32(0, x->data, x->len);

	if (x->deflate)
		n = zb_deflate(x->data, x->len, packed, cap);
	zb_le(&z->file, x->local_sig ? x->local_sig : 0x04034b50, 4);
	zb_fields(&z->file, x, x->local_method ? x->local_method - 1 : method,
		  x->descriptor ? 0 : crc, x->descriptor ? 0 : n, x->descriptor ? 0 : x->len,
		  local_len, x->local_extra);
	buf_put(&z->file, local_name, local_len);
	for (size_t i = 0; i < x->local_extra; i++)
		buf_putc(&z->file, 'x');
	buf_put(&z->file, x->deflate ? packed : x->data, (size_t)n);
	if (x->descriptor) {
		zb_le(&z->file, 0x08074b50, 4);
		zb_le(&z->file, crc, 4);
		zb_le(&z->file, n, 4);
		zb_le(&z->file, x->len, 4);
	}
	free(packed);

	stored = x->stored ? *x->stored : n;
	size = x->size ? *x->size : x->len;
	at = x->at ? *x->at : at;
	zb_le(&z->dir, 0x02014b50, 4);
	zb_le(&z->dir, 45, 1);
	zb_le(&z->dir, x->made_on, 1);
	zb_fields(&z->dir, x, method, crc ^ x->crc_wrong, x->zip64 ? UINT32_MAX : stored,
		  x->zip64 ? UINT32_MAX : size, name_len, x->zip64 ? 4 + 4 + 24 : 0);
	zb_le(&z->dir, 3, 2); /* length of its comment */
	zb_le(&z->dir, x->disk, 2);
	zb_le(&z->dir, 0, 2);
	zb_le(&z->dir, x->attrs, 4);
	zb_le(&z->dir, x->zip64 ? UINT32_MAX : at, 4);
	buf_put(&z->dir, x->name, name_len);
	if (x->zip64) {
		zb_le(&z->dir, 0x5455, 2); /* another field before it, empty */
		zb_le(&z->dir, 0, 2);
		zb_le(&z->dir, 1, 2);
		zb_le(&z->dir, 24, 2);
		zb_le(&z->dir, size, 8);
		zb_le(&z->dir, stored, 8);
		zb_le(&z->dir, at, 8);
	}
	buf_puts(&z->dir, "hey");
	z->n++;
}

/* zb_put - a stored (or deflated) entry with a text. */
static inline void zb_put(struct zb *z, const char *name, const char *text, bool deflate)
{
	zb_add(z, &(struct zb_entry){
			  .name = name, .data = text, .len = strlen(text), .deflate = deflate});
}

struct zb_end {
	bool zip64;
	const char *comment;
	size_t comment_len;
	const uint64_t *n, *dir, *dir_len; /* lies of the end record that holds */
	const uint64_t *old_n;             /* with zip64: what the old record says */
	const uint64_t *n_here;            /* entries in this file of several */
	unsigned disk;
};

static inline void zb_end_record(struct buf *b, unsigned disk, uint64_t n_here, uint64_t n,
				 uint64_t dir_len, uint64_t dir, const char *comment,
				 size_t comment_len)
{
	zb_le(b, 0x06054b50, 4);
	zb_le(b, disk, 2);
	zb_le(b, 0, 2);
	zb_le(b, n_here, 2);
	zb_le(b, n, 2);
	zb_le(b, dir_len, 4);
	zb_le(b, dir, 4);
	zb_le(b, comment_len, 2);
	buf_put(b, comment, comment_len);
}

/* zb_finish - directory and end record behind the entries, all into one buffer. */
static inline void zb_finish(struct zb *z, const struct zb_end *how)
{
	const struct zb_end plain = {0};
	uint64_t n, dir, dir_len, at;

	how = how ? how : &plain;
	n = how->n ? *how->n : z->n;
	dir = how->dir ? *how->dir : z->file.len - z->before;
	dir_len = how->dir_len ? *how->dir_len : z->dir.len;
	buf_put(&z->file, z->dir.data, z->dir.len);
	at = z->file.len - z->before;
	if (how->zip64) {
		zb_le(&z->file, 0x06064b50, 4);
		zb_le(&z->file, 44, 8);
		zb_le(&z->file, 45, 2);
		zb_le(&z->file, 45, 2);
		zb_le(&z->file, 0, 8);
		zb_le(&z->file, n, 8);
		zb_le(&z->file, n, 8);
		zb_le(&z->file, dir_len, 8);
		zb_le(&z->file, dir, 8);
		zb_le(&z->file, 0x07064b50, 4);
		zb_le(&z->file, 0, 4);
		zb_le(&z->file, at, 8);
		zb_le(&z->file, 1, 4);
		n = how->old_n ? *how->old_n : UINT16_MAX;
		dir = dir_len = UINT32_MAX;
	}
	zb_end_record(&z->file, how->disk, how->n_here ? *how->n_here : n, n, dir_len, dir,
		      how->comment, how->comment_len);
}

static inline int zb_fd(const void *data, size_t len)
{
	int fd = memfd_create("zip", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	return fd;
}

/* zb_done - finish as told, and give the archive as a file; z is released. */
static inline int zb_done(struct zb *z, const struct zb_end *how)
{
	int fd;

	zb_finish(z, how);
	fd = zb_fd(z->file.data, z->file.len);
	buf_release(&z->file);
	buf_release(&z->dir);
	return fd;
}

#endif
