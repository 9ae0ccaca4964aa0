/* SPDX-License-Identifier: BSD-3-Clause */
/* overlay.c - the bytes of a written file: a sparse file, the set of its valid pages, and a
 * snapshot for the other pages.
 *
 * A page is added to the set after its data is in the sparse file, so a failed write leaves only
 * bytes that are never read: below base_end, pages outside the set are read from the snapshot,
 * whatever the sparse file contains there. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#include "base/core/hash.h"
#include "base/os/io.h"
#include "hdf5view/virtual/file_layout.h"
#include "translate/stage/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define BLOCK ((size_t)256 << 10)

void rw_copy_init(struct rw_copy *c, const struct snapshot *base, uint64_t size)
{
	*c = (struct rw_copy){.fd = -1, .base = base, .size = size, .cut = UINT64_MAX};
	c->base_end = base ? size : 0;
	c->all = !base;
	(void)pthread_rwlock_init(&c->map, NULL); /* cannot fail with default attributes */
}

void rw_copy_release(struct rw_copy *c)
{
	rw_map_release(&c->in);
	rw_map_release(&c->written);
	close_fd(&c->fd); /* its important data was synced */
	(void)pthread_rwlock_destroy(&c->map);
}

/* ---- the snapshot ---- */

/* base_read - read bytes [off, off + n) of the snapshot's file; zeros from base_end on. */
static int base_read(const struct snapshot *g, uint64_t base_end, uint64_t off, size_t n,
		     uint8_t *out, struct err *e)
{
	size_t have = (size_t)(off < base_end ? u64_min(n, base_end - off) : 0);

	memset(out + have, 0, n - have);
	return view_read(g->view, ONE_FILE_ID, "the virtual file", off, out, have, e);
}

/* overlay_copy_base - the same, into a file. */
static int overlay_copy_base(const struct snapshot *g, uint64_t base_end, uint64_t off,
			     uint64_t n, int fd, struct err *e)
{
	size_t room = (size_t)u64_min(n, BLOCK);
	auto_free uint8_t *block = malloc(room ? room : 1);
	int rc = block ? 0 : err_nomem(e);

	while (rc == 0 && n > 0) {
		size_t part = (size_t)u64_min(n, room);

		rc = base_read(g, base_end, off, part, block, e);
		rc = rc ? rc : io_pwrite(fd, block, part, off, e);
		off += part;
		n -= part;
	}
	return rc;
}

/* bring - copy missing pages below base_end. map is held exclusively. */
static int bring(struct rw_copy *c, uint64_t page, uint64_t n, struct err *e)
{
	uint64_t end = u64_max(c->size, c->base_end), off = page * RW_PAGE;
	int rc = rw_map_reserve(&c->in, page, n, e);

	if (rc == 0)
		rc = overlay_copy_base(c->base, c->base_end, off,
				       u64_min(n * RW_PAGE, end - off), c->fd, e);
	if (rc == 0)
		rw_map_add(&c->in, page, n);
	return rc;
}

/* missing - whether a page is still the snapshot's. */
static bool missing(const struct rw_copy *c, uint64_t page)
{
	return page * RW_PAGE < c->base_end && !rw_map_any(&c->in, page, 1);
}

int rw_copy_fill(struct rw_copy *c, uint64_t off, uint64_t len, struct err *e)
{
	uint64_t end, page, last, run;
	struct err why = ERR_INIT;
	int rc = 0;
	bool in;

	(void)pthread_rwlock_wrlock(&c->map);
	end = off < c->base_end ? off + u64_min(len, c->base_end - off) : off;
	page = rw_page(off);
	last = page + rw_pages(off, end - off);
	for (; rc == 0 && page < last; page += run) {
		run = rw_map_run(&c->in, page, last - page, &in);
		if (in)
			continue;
		rc = bring(c, page, run, &why);
		if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT && rc != -ENOMEM) {
			/* unreadable data on the same page may be the cause */
			uint64_t from = u64_max(off, page * RW_PAGE);
			uint64_t to = u64_min(end, (page + run) * RW_PAGE);

			rc = overlay_copy_base(c->base, c->base_end, from, to - from, c->fd,
					       &why);
		}
	}
	(void)pthread_rwlock_unlock(&c->map);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

/* ---- reading ---- */

/* read_run - read n bytes from one place. */
static int read_run(struct rw_copy *c, bool in, uint64_t off, size_t n, uint8_t *out,
		    struct err *e)
{
	if (!in && off < c->base_end)
		return base_read(c->base, c->base_end, off, n, out, e);
	return io_pread(c->fd, out, n, off, e);
}

int rw_copy_read(struct rw_copy *c, uint64_t off, size_t len, uint8_t *out, size_t *ret_n,
		 struct err *e)
{
	uint64_t page, run, at;
	size_t n, part;
	int rc = 0;
	bool in;

	(void)pthread_rwlock_rdlock(&c->map);
	n = (size_t)(off < c->size ? u64_min(len, c->size - off) : 0);
	*ret_n = n;
	for (; rc == 0 && n > 0; off += part, out += part, n -= part) {
		page = rw_page(off);
		at = rw_page(c->base_end + RW_PAGE - 1); /* from here on no page is missing */
		if (page >= at) {
			part = n;
			in = true;
		} else {
			run = rw_map_run(&c->in, page, u64_min(rw_pages(off, n), at - page),
					 &in);
			part = (size_t)u64_min(n, (page + run) * RW_PAGE - off);
		}
		rc = read_run(c, in, off, part, out, e);
	}
	(void)pthread_rwlock_unlock(&c->map);
	return rc;
}

/* ---- writing ---- */

static int structure(const struct snapshot *g, int fd, struct rw_copy *mark, struct err *e)
{
	const struct nc_layout *l;
	uint64_t off, len;
	int rc = nc_view_layout(g->view, &l, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && nc_layout_structure(l, i, &off, &len); i++) {
		uint64_t first = rw_page(off + RW_PAGE - 1), last = rw_page(off + len);

		rc = overlay_copy_base(g, nc_layout_size(l), off, len, fd, e);
		if (rc < 0 || !mark)
			continue;
		if (last > first) {
			rc = rw_map_reserve(&mark->in, first, last - first, e);
			if (rc == 0)
				rw_map_add(&mark->in, first, last - first);
		}
		/* Pages shared with chunks are copied if they can be read. */
		if (rc == 0 && missing(mark, rw_page(off)))
			(void)bring(mark, rw_page(off), 1, NULL);
		if (rc == 0 && missing(mark, rw_page(off + len - 1)))
			(void)bring(mark, rw_page(off + len - 1), 1, NULL);
	}
	return rc;
}

/* close_empty - ext4 writes all of a file that was truncated to 0 to the disk when one of its
 * descriptors is closed next (its mount option auto_da_alloc). A working copy goes away with its
 * commit: so one is closed while there is nothing to write. */
static void close_empty(int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close_fd(&fd);
}

static int overlay_set_size(int fd, uint64_t size, struct err *e)
{
	if (size > INT64_MAX)
		return err_set(e, -EFBIG, "a file of %llu bytes is too large",
			       (unsigned long long)size);
	if (ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, errno, "ftruncate");
	if (size == 0)
		close_empty(fd);
	return 0;
}

int rw_identity(const struct snapshot *g, uint64_t *ret, struct err *e)
{
	auto_free uint8_t *block = malloc(BLOCK);
	uint64_t sum = HASH_SEED, off, len;
	const struct nc_layout *l;
	int rc = block ? nc_view_layout(g->view, &l, e) : err_nomem(e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; nc_layout_structure(l, i, &off, &len); i++)
		while (len > 0) {
			size_t part = (size_t)u64_min(len, BLOCK);

			rc = base_read(g, nc_layout_size(l), off, part, block, e);
			if (rc < 0)
				return rc;
			sum = hash_bytes(sum, block, part);
			off += part;
			len -= part;
		}
	*ret = sum;
	return 0;
}

int rw_structure(const struct snapshot *g, int fd, struct err *e)
{
	const struct nc_layout *l;
	int rc = nc_view_layout(g->view, &l, e);

	rc = rc ? rc : structure(g, fd, NULL, e);
	return rc < 0 ? rc : overlay_set_size(fd, nc_layout_size(l), e);
}

int rw_copy_begin(struct rw_copy *c, int fd, struct err *e)
{
	int rc = 0;

	(void)pthread_rwlock_wrlock(&c->map);
	if (fd >= 0)
		c->fd = fd;
	if (c->base_end > 0)
		rc = structure(c->base, c->fd, c, e);
	rc = rc ? rc : overlay_set_size(c->fd, c->size, e);
	c->working = rc == 0;
	if (rc < 0 && fd >= 0) { /* still the caller's, and empty */
		rw_map_release(&c->in);
		c->fd = -1;
	}
	(void)pthread_rwlock_unlock(&c->map);
	return rc;
}

void rw_copy_forget(struct rw_copy *c)
{
	(void)pthread_rwlock_wrlock(&c->map);
	rw_map_release(&c->in);
	c->base_end = c->size = c->cut = 0;
	c->dirty = true;
	(void)pthread_rwlock_unlock(&c->map);
}

/* overlay_touch - copy the first and the last page of a write, if they are the snapshot's and only
 * partly overwritten. */
static int overlay_touch(struct rw_copy *c, uint64_t off, uint64_t end, struct err *e)
{
	uint64_t first = rw_page(off), last = rw_page(end - 1);
	bool head = off % RW_PAGE != 0, tail = end % RW_PAGE != 0 && end < c->base_end;
	int rc = 0;

	if ((head || (first == last && tail)) && missing(c, first))
		rc = bring(c, first, 1, e);
	if (rc == 0 && tail && missing(c, last))
		rc = bring(c, last, 1, e);
	return rc;
}

/* overlay_mark - mark the pages of [off, end) as valid. Bytes after base_end need no mark. */
static void overlay_mark(struct rw_copy *c, uint64_t off, uint64_t end)
{
	uint64_t base = rw_page(c->base_end + RW_PAGE - 1), first = rw_page(off);

	if (first < base)
		rw_map_add(&c->in, first, u64_min(rw_pages(off, end - off), base - first));
}

int rw_copy_write(struct rw_copy *c, uint64_t off, const uint8_t *p, size_t len, struct err *e)
{
	uint64_t end, pages = rw_pages(off, len);
	int rc = 0;

	if (len == 0)
		return 0;
	if (ckd_add(&end, off, (uint64_t)len) || end > INT64_MAX)
		return err_set(e, -EFBIG, "a write of %zu bytes at %llu is too large", len,
			       (unsigned long long)off);
	(void)pthread_rwlock_wrlock(&c->map);
	if (!c->all)
		rc = rw_map_reserve(&c->written, rw_page(off), pages, e);
	if (rc == 0 && off < c->base_end)
		rc = rw_map_reserve(&c->in, rw_page(off), pages, e);
	rc = rc ? rc : overlay_touch(c, off, end, e);
	if (rc == 0) {
		c->dirty = true; /* whatever becomes of it */
		if (!c->all)
			rw_map_add(&c->written, rw_page(off), pages);
		rc = io_pwrite(c->fd, p, len, off, e);
	}
	if (rc == 0) {
		overlay_mark(c, off, end);
		c->size = u64_max(c->size, end);
	} else if (end > c->size) { /* bytes after the end read as zeros when it moves */
		(void)overlay_set_size(c->fd, c->size, NULL);
	}
	(void)pthread_rwlock_unlock(&c->map);
	return rc;
}

/* overlay_shrink - truncate; the removed bytes read as zeros when the file grows again. */
static int overlay_shrink(struct rw_copy *c, uint64_t size, struct err *e)
{
	int rc = 0;

	if (size < c->base_end)
		rc = rw_map_cut(&c->in, rw_page(size + RW_PAGE - 1), e);
	rc = rc ? rc : overlay_set_size(c->fd, size, e);
	if (rc < 0)
		return rc;
	c->base_end = u64_min(c->base_end, size);
	c->cut = u64_min(c->cut, size);
	return 0;
}

int rw_copy_resize(struct rw_copy *c, uint64_t size, struct err *e)
{
	int rc = 0;

	(void)pthread_rwlock_wrlock(&c->map);
	if (size < c->size)
		rc = overlay_shrink(c, size, e);
	else if (size > c->size)
		rc = overlay_set_size(c->fd, size, e);
	if (rc == 0) {
		c->dirty = c->dirty || size != c->size;
		c->size = size;
	}
	(void)pthread_rwlock_unlock(&c->map);
	return rc;
}

bool rw_copy_written(const struct rw_copy *c, uint64_t off, uint64_t len)
{
	uint64_t end;

	if (c->all || ckd_add(&end, off, len) || end > c->cut)
		return true;
	return rw_map_any(&c->written, rw_page(off), rw_pages(off, len));
}

/* overlay_same - whether n bytes, of at most two pages, are unchanged. */
static bool overlay_same(struct rw_copy *c, int was, uint64_t off, size_t n)
{
	uint8_t now[RW_PAGE], old[RW_PAGE];
	size_t got = 0;
	int rc = rw_copy_read(c, off, n, now, &got, NULL);

	if (rc < 0 || got < n || (was < 0 && off + n > c->base_end))
		return false;
	rc = was < 0 ? base_read(c->base, c->base_end, off, n, old, NULL)
		     : io_pread(was, old, n, off, NULL);
	return rc == 0 && memcmp(now, old, n) == 0;
}

bool rw_copy_differs(struct rw_copy *c, int was, uint64_t off, uint64_t len)
{
	uint64_t end = off + len, first, last;

	if (!rw_copy_written(c, off, len))
		return false;
	if (c->all || end > c->cut || len == 0)
		return true;
	first = off - off % RW_PAGE +
		(off % RW_PAGE ? RW_PAGE : 0); /* pages that are its own */
	last = end - end % RW_PAGE;
	if (last > first && rw_map_any(&c->written, rw_page(first), (last - first) / RW_PAGE))
		return true;
	if (last < first) /* all of it lies inside a page */
		return !overlay_same(c, was, off, (size_t)len);
	return !overlay_same(c, was, off, (size_t)(first - off)) ||
	       !overlay_same(c, was, last, (size_t)(end - last));
}

void rw_copy_clean(struct rw_copy *c)
{
	rw_map_release(&c->written);
	c->cut = UINT64_MAX;
	c->all = c->dirty = false;
}

/* ---- copies of it ---- */

/* clone_range - copy bytes [off, end). */
static int clone_range(int from, int to, off_t off, off_t end, struct err *e)
{
	auto_free uint8_t *block = NULL;
	off_t in = off, out = off;
	ssize_t n = 0;
	int rc = 0;

	while (in < end &&
	       (n = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0)) > 0)
		;
	if (in >= end)
		return 0;
	block = malloc(BLOCK); /* not supported by this file system */
	if (!block)
		return err_nomem(e);
	while (rc == 0 && in < end) {
		size_t part = (size_t)u64_min((uint64_t)(end - in), BLOCK);

		rc = io_pread(from, block, part, (uint64_t)in, e);
		rc = rc ? rc : io_pwrite(to, block, part, (uint64_t)in, e);
		in += (off_t)part;
	}
	return rc;
}

int rw_clone(int from, int to, struct err *e)
{
	off_t size = lseek(from, 0, SEEK_END), at = 0, end;
	int rc;

	if (size < 0)
		return err_sys(e, errno, "lseek");
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	rc = overlay_set_size(to, (uint64_t)size, e);
	while (rc == 0 && at < size) {
		at = lseek(from, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : err_sys(e, errno, "lseek");
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0)
			return err_sys(e, errno, "lseek");
		rc = clone_range(from, to, at, end, e);
		at = end;
	}
	return rc;
}
