/* SPDX-License-Identifier: BSD-3-Clause */
/* write_buffer.c - content of files that are open for writing: in memory up to a limit, then in a
 * file without a name, which vanishes when the process dies. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/os/io.h"
#include "translate/tree/tree_int.h"

struct dirty_file *work_new(void)
{
	struct dirty_file *w = alloc_array(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = -1;
	(void)pthread_mutex_init(&w->lock, NULL); /* cannot fail without attributes */
	return w;
}

static void drop_memory(struct tree *t, struct dirty_file *w)
{
	atomic_fetch_sub(&t->buffered, w->cap);
	free(w->mem);
	w->mem = NULL;
	w->cap = 0;
}

void work_drop(struct tree *t, struct dirty_file *w)
{
	drop_memory(t, w);
	close_fd(&w->fd);
	w->size = 0;
	w->run = 0;
	w->loaded = w->dirty = w->cut = w->elsewhere = false;
}

void work_free(struct tree *t, struct dirty_file *w)
{
	if (!w)
		return;
	work_drop(t, w);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

/* write_buffer_unnamed - make a file that is removed when it is closed. */
static int write_buffer_unnamed(struct tree *t, struct err *e)
{
	static _Atomic uint64_t number;
	char name[64];
	int fd = openat(t->o.dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	(void)snprintf(name, sizeof(name), "tmp.%ld.%llu", (long)getpid(),
		       (unsigned long long)atomic_fetch_add(&number, 1));
	fd = openat(t->o.dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "cannot create a file in '%s'", t->o.dir);
	(void)unlinkat(t->o.dir_fd, name, 0); /* one that stays is as good */
	return fd;
}

static int write_buffer_spill(struct tree *t, struct dirty_file *w, struct err *e)
{
	auto_fd int fd = write_buffer_unnamed(t, e);
	int rc = fd >= 0 && w->size ? io_pwrite(fd, w->mem, (size_t)w->size, 0, e) : 0;

	if (fd < 0 || rc)
		return fd < 0 ? fd : rc;
	drop_memory(t, w);
	w->fd = fd;
	fd = -1;
	return 0;
}

/* reserve - room for `size` bytes in memory, or the content in a file. */
static int reserve(struct tree *t, struct dirty_file *w, uint64_t size, struct err *e)
{
	uint64_t want = size, more;
	uint8_t *p = NULL;

	if (w->fd >= 0 || size <= w->cap)
		return 0;
	if (size > SIZE_MAX / 2)
		return write_buffer_spill(t, w, e);
	if (w->cap) /* it grows, and will go on */
		want = u64_max(size, w->cap + w->cap / 2);
	more = want - w->cap;
	if (atomic_fetch_add(&t->buffered, more) + more <= t->o.max_buffer)
		p = realloc(w->mem, (size_t)want);
	if (!p) {
		atomic_fetch_sub(&t->buffered, more);
		return write_buffer_spill(t, w, e);
	}
	w->mem = p;
	w->cap = (size_t)want;
	return 0;
}

static void write_buffer_touch(struct dirty_file *w)
{
	const struct timespec now = clock_wall();

	w->changed = clock_ns_of(&now);
}

int work_resize(struct tree *t, struct dirty_file *w, uint64_t size, struct err *e)
{
	int rc = size > INT64_MAX ? err_set(e, -EFBIG, "a file of %llu bytes is too large",
					    (unsigned long long)size)
				  : reserve(t, w, size, e);

	if (rc)
		return rc;
	if (w->fd >= 0) {
		if (ftruncate(w->fd, (off_t)size) < 0)
			return err_sys(e, errno, "cannot resize a file in '%s'", t->o.dir);
	} else if (size > w->size) {
		memset(w->mem + w->size, 0, (size_t)(size - w->size));
	}
	w->size = size;
	write_buffer_touch(w);
	return 0;
}

int work_write(struct tree *t, struct dirty_file *w, uint64_t off, const uint8_t *data,
	       size_t len, struct err *e)
{
	uint64_t end;
	int rc;

	if (ckd_add(&end, off, (uint64_t)len) || end > INT64_MAX)
		return err_set(e, -EFBIG, "a write at %llu is too large",
			       (unsigned long long)off);
	if (!len)
		return 0;
	rc = off > w->size ? work_resize(t, w, off, e) : 0;
	rc = rc ? rc : reserve(t, w, end, e);
	if (!rc && w->fd >= 0)
		rc = io_pwrite(w->fd, data, len, off, e);
	else if (!rc)
		memcpy(w->mem + off, data, len);
	if (rc)
		return rc;
	w->size = u64_max(w->size, end);
	write_buffer_touch(w);
	return 0;
}

int work_read(const struct dirty_file *w, uint64_t off, uint8_t *out, size_t len, size_t *ret,
	      struct err *e)
{
	*ret = off < w->size ? (size_t)u64_min(len, w->size - off) : 0;
	if (!*ret)
		return 0;
	if (w->fd >= 0)
		return io_pread(w->fd, out, *ret, off, e);
	memcpy(out, w->mem + off, *ret);
	return 0;
}

int work_stage(struct tree *t, const struct dirty_file *w, const char *key, struct err *e)
{
	return w->fd >= 0 ? stage_put_file(t->stage, key, w->fd, w->size, e)
			  : stage_put(t->stage, key, w->mem, (size_t)w->size, e);
}

/* ---- content for options.check ---- */

struct pending_change {
	struct tree_change pub;
	const struct dirty_file *w; /* its content; NULL: that of `source` */
	const char *source;
};

static int pending_content(const struct tree_change *c, struct buf *out, struct err *e)
{
	const struct pending_change *p =
		CONTAINER_OF((uintptr_t)c, const struct pending_change, pub);
	struct store_io io = {.out = out, .before = out->len};
	size_t n;
	int rc;

	if (!p->w)
		return store_get(c->tree, p->source, out, NULL, e);
	rc = store_io_size(&io, c->key, p->w->size, e);
	rc = rc ? rc : work_read(p->w, 0, io.to, io.len, &n, e);
	if (rc)
		out->len = io.before;
	return rc;
}

int check_moved(struct tree *t, const char *key, const char *from, const struct dirty_file *w,
		bool stays, struct err *e)
{
	const struct pending_change p = {
		.pub = {.tree = t->content,
			.key = key,
			.from = stays ? NULL : from,
			.content = pending_content},
		.w = w,
		.source = from,
	};

	return t->o.check ? t->o.check(t->o.arg, &p.pub, e) : 0;
}

int check_work(struct tree *t, const char *key, const struct dirty_file *w, struct err *e)
{
	return check_moved(t, key, NULL, w, false, e);
}
