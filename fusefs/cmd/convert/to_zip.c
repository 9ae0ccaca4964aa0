/* SPDX-License-Identifier: BSD-3-Clause */
/* to_zip.c - a copy as a zip archive, its entries stored uncompressed, so that a chunk is a range
 * of the archive (PKWARE APPNOTE.TXT 6.3.10; section numbers refer to it).
 *
 * A thread reads a whole file of the view, with as many in memory at a time as cache_size allows,
 * at least one; it gets a position after all other entries, and writes header and bytes there, in
 * parallel with other threads. The central directory is written last, sorted by name, so that
 * archives of the same source have the same directory except for positions. */
#include "fusefs/cmd/convert/convert_int.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <string.h>
#include <unistd.h>

#include "base/os/io.h"
#include "base/os/lock.h"
#include "base/os/open_beneath.h"
#include "fusefs/app/workers.h"

#define LOCAL_SIG 0x04034b50u   /* 4.3.7 */
#define ENTRY_SIG 0x02014b50u   /* 4.3.12 */
#define END64_SIG 0x06064b50u   /* 4.3.14 */
#define LOC64_SIG 0x07064b50u   /* 4.3.15 */
#define END_SIG 0x06054b50u     /* 4.3.16 */
#define VERSION 45u             /* 4.4.3: with zip64 */
#define MADE_BY (3u << 8 | 45u) /* 4.4.2: Unix, for the mode */
#define UTF8 0x0800u            /* 4.4.4: names are UTF-8 */
#define DATE 0x0021u            /* 1 January 1980: the same source gives the same entries */
#define MODE (0100644u << 16)
#define BIG 0xffffffffu
#define DIRECTORY_MAX ((size_t)8 << 30)
#define FILE_LONGEST ((size_t)4 << 30)

struct zipped {
	char *path; /* owned */
	uint64_t at, size;
	uint32_t crc;
};

struct zip_out {
	struct convert_out base;
	struct convert *c;
	struct convert_place place;
	int fd;
	struct room room;     /* for files that are read whole */
	pthread_mutex_t lock; /* of all fields below */
	uint64_t end;
	struct zipped *v;
	size_t n, cap;
};

static struct zip_out *to_zip_of(struct convert_out *o)
{
	return CONTAINER_OF(o, struct zip_out, base);
}

static void put16(struct buf *b, unsigned v)
{
	buf_put_le(b, v, 2);
}

static int zip_begin(struct convert_out *o, uint64_t *done, struct err *e)
{
	struct zip_out *z = to_zip_of(o);

	*done = 0; /* without the directory it is unknown which entries are complete */
	remove_beneath(z->place.parent, z->place.tmp);
	z->fd = openat(z->place.parent, z->place.tmp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return z->fd < 0 ? err_sys(e, errno, "'%s'", z->c->setup->cfg->out) : 0;
}

/* to_zip_read_all - read a file of the view, of `size` bytes. */
static int to_zip_read_all(struct convert *c, const struct convert_unit *u, uint8_t *out,
			   uint64_t size, struct err *e)
{
	uint64_t off = 0;
	size_t n = 0;
	int rc;

	do {
		rc = convert_read(c, u->id, off, out + off,
				  (size_t)u64_min(CONVERT_PIECE, size - off), &n, e);
		off += rc == 0 ? n : 0;
	} while (rc == 0 && n > 0 && off < size);
	if (rc == 0 && off != size)
		rc = err_set(e, -EIO, "'%.200s' is shorter than its stated size", u->path);
	return rc;
}

/* extra_of - bytes of the zip64 field of a local header (4.5.3). */
static unsigned extra_of(uint64_t size)
{
	return size >= BIG ? 20 : 0;
}

static void local_header(const struct zipped *x, struct buf *out)
{
	const bool big = x->size >= BIG;

	buf_put_le32(out, LOCAL_SIG);
	put16(out, VERSION);
	put16(out, UTF8);
	put16(out, 0); /* stored */
	put16(out, 0);
	put16(out, DATE);
	buf_put_le32(out, x->crc);
	buf_put_le32(out, big ? BIG : (uint32_t)x->size);
	buf_put_le32(out, big ? BIG : (uint32_t)x->size);
	put16(out, (unsigned)strlen(x->path));
	put16(out, extra_of(x->size));
	buf_puts(out, x->path);
	if (big) {
		put16(out, 1);
		put16(out, 16);
		buf_put_le(out, x->size, 8);
		buf_put_le(out, x->size, 8);
	}
}

/* to_zip_add - add an entry: *ret_at is the offset of its header. */
static int to_zip_add(struct zip_out *z, const char *path, uint64_t size, uint32_t crc,
		      struct zipped *ret, struct err *e)
{
	LOCK_SCOPE(&z->lock);

	*ret = (struct zipped){.path = strdup(path), .at = z->end, .size = size, .crc = crc};
	if (!ret->path || grow_array(&z->v, &z->cap, z->n + 1, sizeof(*z->v)) < 0) {
		free(ret->path);
		return err_nomem(e);
	}
	z->end += 30 + strlen(path) + extra_of(size) + size;
	z->v[z->n++] = *ret;
	return 0;
}

/* write_entry - write a file's size bytes, which are in `data`. */
static int write_entry(struct zip_out *z, const char *path, const uint8_t *data, uint64_t size,
		       struct err *e)
{
	struct zipped x = {0};
	auto_buf head = buf_of(2 * UINT16_MAX);
	int rc = to_zip_add(z, path, size, libdeflate_crc32(0, data, (size_t)size), &x, e);

	if (rc < 0)
		return rc;
	local_header(&x, &head);
	rc = buf_ok(&head) ? io_pwrite(z->fd, head.data, head.len, x.at, e) : err_nomem(e);
	if (rc == 0 && size)
		rc = io_pwrite(z->fd, data, (size_t)size, x.at + head.len, e);
	return rc;
}

static int zip_write(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		     uint8_t *room, uint64_t *ret, struct err *e)
{
	struct zip_out *z = to_zip_of(o);
	struct view_attr attr;
	uint8_t *data;
	int rc;

	if (strlen(u->path) > UINT16_MAX)
		return err_set(e, -ENAMETOOLONG, "'%.200s' is too long for an archive",
			       u->path);
	rc = c->view->ops->getattr(c->view, u->id, &attr, e);
	if (rc < 0)
		return rc;
	if (attr.unknown) { /* reading it gives the error */
		rc = convert_read(c, u->id, 0, room, CONVERT_PIECE, &(size_t){0}, e);
		return rc ? rc : err_set(e, -EIO, "'%.200s' has no known size", u->path);
	}
	if (attr.size > FILE_LONGEST)
		return err_set(e, -ERANGE, "'%.200s' is too long", u->path);
	room_hold(&z->room, attr.size);
	data = malloc(attr.size ? (size_t)attr.size : 1);
	rc = data ? to_zip_read_all(c, u, data, attr.size, e) : err_nomem(e);
	rc = rc ? rc : write_entry(z, u->path, data, attr.size, e);
	free(data);
	room_give(&z->room, attr.size);
	*ret = rc == 0 ? attr.size : 0;
	return rc;
}

static int to_zip_by_name(const void *p, const void *q)
{
	return strcmp(((const struct zipped *)p)->path, ((const struct zipped *)q)->path);
}

static void to_zip_entry(const struct zipped *x, struct buf *out)
{
	const bool size = x->size >= BIG, at = x->at >= BIG;
	unsigned extra = (size ? 16u : 0u) + (at ? 8u : 0u);

	buf_put_le32(out, ENTRY_SIG);
	put16(out, MADE_BY);
	put16(out, VERSION);
	put16(out, UTF8);
	put16(out, 0);
	put16(out, 0);
	put16(out, DATE);
	buf_put_le32(out, x->crc);
	buf_put_le32(out, size ? BIG : (uint32_t)x->size);
	buf_put_le32(out, size ? BIG : (uint32_t)x->size);
	put16(out, (unsigned)strlen(x->path));
	put16(out, extra ? extra + 4 : 0);
	put16(out, 0); /* comment */
	put16(out, 0); /* disk */
	put16(out, 0);
	buf_put_le32(out, MODE);
	buf_put_le32(out, at ? BIG : (uint32_t)x->at);
	buf_puts(out, x->path);
	if (!extra)
		return;
	put16(out, 1);
	put16(out, extra);
	if (size) {
		buf_put_le(out, x->size, 8);
		buf_put_le(out, x->size, 8);
	}
	if (at)
		buf_put_le(out, x->at, 8);
}

/* the_end - append the records after the central directory of `len` bytes at `at`. */
static void the_end(uint64_t n, uint64_t at, uint64_t len, struct buf *out)
{
	if (n >= UINT16_MAX || at >= BIG || len >= BIG) {
		buf_put_le32(out, END64_SIG);
		buf_put_le(out, 44, 8);
		put16(out, MADE_BY);
		put16(out, VERSION);
		buf_put_le32(out, 0);
		buf_put_le32(out, 0);
		buf_put_le(out, n, 8);
		buf_put_le(out, n, 8);
		buf_put_le(out, len, 8);
		buf_put_le(out, at, 8);
		buf_put_le32(out, LOC64_SIG);
		buf_put_le32(out, 0);
		buf_put_le(out, at + len, 8);
		buf_put_le32(out, 1);
	}
	buf_put_le32(out, END_SIG);
	put16(out, 0);
	put16(out, 0);
	put16(out, n >= UINT16_MAX ? UINT16_MAX : (unsigned)n);
	put16(out, n >= UINT16_MAX ? UINT16_MAX : (unsigned)n);
	buf_put_le32(out, len >= BIG ? BIG : (uint32_t)len);
	buf_put_le32(out, at >= BIG ? BIG : (uint32_t)at);
	put16(out, 0);
}

static int zip_finish(struct convert_out *o, struct err *e)
{
	struct zip_out *z = to_zip_of(o);
	auto_buf dir = buf_of(DIRECTORY_MAX);
	int rc;

	if (z->n)
		qsort(z->v, z->n, sizeof(*z->v), to_zip_by_name);
	for (size_t i = 0; i < z->n; i++)
		to_zip_entry(&z->v[i], &dir);
	the_end(z->n, z->end, dir.len, &dir);
	rc = buf_ok(&dir) ? io_pwrite(z->fd, dir.data, dir.len, z->end, e) : err_nomem(e);
	rc = rc ? rc : io_sync(z->fd, true, e);
	return rc ? rc : convert_place_appear(&z->place, e);
}

static void to_zip_zip_close(struct convert_out *o, bool keep NZ_UNUSED)
{
	struct zip_out *z = to_zip_of(o);

	close_fd(&z->fd);
	convert_place_close(&z->place, false);
	for (size_t i = 0; i < z->n; i++)
		free(z->v[i].path);
	free(z->v);
	(void)pthread_mutex_destroy(&z->lock);
	room_end(&z->room);
	free(z);
}

static const struct convert_out_ops zip_ops = {
	.begin = zip_begin,
	.write = zip_write,
	.finish = zip_finish,
	.close = to_zip_zip_close,
};

int convert_zip(struct convert *c, struct convert_out **ret, struct err *e)
{
	const struct cfg *cfg = c->setup->cfg;
	struct zip_out *z = alloc_array(1, sizeof(*z));
	int rc;

	if (!z)
		return err_nomem(e);
	*z = (struct zip_out){.base.ops = &zip_ops, .c = c, .fd = -1};
	rc = convert_place_open(cfg->out, cfg->convert.force, &z->place, e);
	if (rc < 0) {
		free(z);
		return rc;
	}
	(void)pthread_mutex_init(&z->lock, NULL); /* cannot fail without attributes */
	room_init(&z->room, cfg->limits.cache_size);
	*ret = &z->base;
	return 0;
}
