/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery.c - keeps uncommitted changes for a later mount.
 *
 * Next to the sparse file is a map: the pages that are valid, the pages that were written, and the
 * structure of the file that the others come from. It is written under another name and renamed,
 * so it is complete or missing. A sparse file without a map is ignored: its writer was never told
 * that it is kept.
 *
 * The map: "NCRWMAP1", then numbers of 64 bits, little-endian: size, base_end, cut, flags (1: all
 * of it is new), identity of the old structure, number of runs that are in, number of runs
 * written; for each run its first page and length; a sum (FNV-1a) of everything before. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#include "base/core/buf.h"
#include "base/os/io.h"
#define LOG_COMPONENT LOG_WRITE
#include "base/core/hash.h"
#include "base/observe/log.h"
#include "base/core/cursor.h"
#include "base/core/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC "NCRWMAP1"
#define MAP_MAX ((uint64_t)1 << 30) /* bytes of a map */
#define FLAG_ALL 1

/* ---- writing ---- */

static uint64_t runs(const struct rw_map *m)
{
	uint64_t page = 0, n = 0, count = 0;

	for (; rw_map_next(m, page, &page, &n); page += n)
		count++;
	return count;
}

static void put_runs(struct buf *b, const struct rw_map *m)
{
	uint64_t page = 0, n = 0;

	for (; rw_map_next(m, page, &page, &n); page += n) {
		buf_put_le(b, page, 8);
		buf_put_le(b, n, 8);
	}
}

static void map_text(const struct rw_copy *c, uint64_t identity, struct buf *b)
{
	buf_puts(b, MAGIC);
	buf_put_le(b, c->size, 8);
	buf_put_le(b, c->base_end, 8);
	buf_put_le(b, c->cut, 8);
	buf_put_le(b, c->all ? FLAG_ALL : 0, 8);
	buf_put_le(b, identity, 8);
	buf_put_le(b, runs(&c->in), 8);
	buf_put_le(b, runs(&c->written), 8);
	put_runs(b, &c->in);
	put_runs(b, &c->written);
	if (buf_ok(b))
		buf_put_le(b, hash_bytes(HASH_SEED, b->data, b->len), 8);
}

static int write_map(struct nc_rw *v, struct rw_file *f, const struct buf *b, struct err *e)
{
	char name[RW_NAME_ROOM], temp[RW_NAME_ROOM];
	auto_fd int fd = rw_work_open(v, f, "new", e);
	int rc = fd < 0 ? fd : io_pwrite(fd, b->data, b->len, 0, e);

	rc = rc ? rc : io_sync(fd, true, e);
	rw_work_name(f, "new", temp);
	rw_work_name(f, "map", name);
	if (rc == 0 && renameat(v->opts.dir_fd, temp, v->opts.dir_fd, name) < 0)
		rc = err_sys(e, errno, "'%s/%s'", v->opts.dir, name);
	return rc < 0 ? rc : io_sync(v->opts.dir_fd, true, e);
}

/* recovery_whole - copy the whole content to the file: after a commit it is based on a state of
 * the dataset that no longer exists. */
static int recovery_whole(struct rw_file *f, struct err *e)
{
	int rc = f->copy.base_end > 0 ? rw_copy_fill(&f->copy, 0, f->copy.base_end, e) : 0;

	if (rc < 0)
		return rc;
	(void)pthread_rwlock_wrlock(&f->copy.map);
	f->copy.base_end = 0;
	f->copy.all = true;
	rw_map_release(&f->copy.in);
	(void)pthread_rwlock_unlock(&f->copy.map);
	return 0;
}

/* identity_of - the identity of the state that the file was to replace; 0: it is not the latest
 * any more. */
static int identity_of(struct nc_rw *v, const struct rw_file *f, uint64_t *ret, struct err *e)
{
	struct snapshot *x;
	int rc = 0;

	*ret = 0;
	if (f->copy.base_end > 0)
		return rw_identity(f->snapshot, ret, e);
	x = snapshots_get(v->snapshots);
	if (f->follows_any || f->follows == x->number)
		rc = rw_identity(x, ret, e);
	snapshot_put(v->snapshots, x);
	return rc;
}

int rw_keep(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	uint64_t identity = 0;
	struct buf b;
	int rc = 0;

	if (!f->copy.dirty || !f->copy.working)
		return 0;
	if (f->commits > 0)
		rc = recovery_whole(f, e);
	rc = rc ? rc : identity_of(v, f, &identity, e);
	rc = rc ? rc : io_sync(f->copy.fd, true, e);
	if (rc < 0)
		return rc;
	buf_init(&b, MAP_MAX);
	map_text(&f->copy, identity, &b);
	rc = buf_ok(&b) ? write_map(v, f, &b, e) : err_nomem(e);
	buf_release(&b);
	f->kept = f->kept || rc == 0;
	return rc;
}

/* ---- reading ---- */

static int take_runs(struct slice *s, struct rw_map *m, uint64_t n, uint64_t size,
		     struct err *e)
{
	uint64_t pages = rw_pages(0, size), page, len;
	int rc = 0;

	for (; rc == 0 && n > 0; n--) {
		page = rd_uint(s, 8);
		len = rd_uint(s, 8);
		if (!slice_ok(s) || page >= pages || len > pages - page)
			return err_set(e, -EBADMSG, "a run of pages is outside the file");
		rc = rw_map_reserve(m, page, len, e);
		if (rc == 0)
			rw_map_add(m, page, len);
	}
	return rc;
}

/* take_map - load a map into an empty overlay. */
static int take_map(const uint8_t *p, size_t n, struct rw_copy *c, uint64_t *ret_identity,
		    struct err *e)
{
	struct slice s = slice_of(p, n), tail;
	const uint8_t *magic = rd_bytes(&s, strlen(MAGIC));
	uint64_t n_in, n_written;
	int rc;

	if (n < 8 + strlen(MAGIC) || !magic || memcmp(magic, MAGIC, strlen(MAGIC)) != 0)
		return err_set(e, -EBADMSG, "not a page map");
	tail = slice_of(p + n - 8, 8);
	if (rd_uint(&tail, 8) != hash_bytes(HASH_SEED, p, n - 8))
		return err_set(e, -EBADMSG, "its checksum is wrong");
	s.len -= 8;
	c->size = rd_uint(&s, 8);
	c->base_end = rd_uint(&s, 8);
	c->cut = rd_uint(&s, 8);
	c->all = rd_uint(&s, 8) & FLAG_ALL;
	*ret_identity = rd_uint(&s, 8);
	n_in = rd_uint(&s, 8);
	n_written = rd_uint(&s, 8);
	if (!slice_ok(&s) || c->size > INT64_MAX || c->base_end > c->size)
		return err_set(e, -EBADMSG, "its numbers are inconsistent");
	rc = take_runs(&s, &c->in, n_in, c->size, e);
	return rc < 0 ? rc : take_runs(&s, &c->written, n_written, c->size, e);
}

static int read_map(struct nc_rw *v, const char *name, struct rw_copy *c,
		    uint64_t *ret_identity, struct err *e)
{
	auto_fd int fd = openat(v->opts.dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_free uint8_t *p = NULL;
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s/%s'", v->opts.dir, name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAP_MAX)
		return err_set(e, -EBADMSG, "not a page map");
	p = malloc((size_t)st.st_size + 1);
	rc = p ? io_pread(fd, p, (size_t)st.st_size, 0, e) : err_nomem(e);
	return rc < 0 ? rc : take_map(p, (size_t)st.st_size, c, ret_identity, e);
}

/* ---- trying again ---- */

/* recovery_fits - whether the dataset is the state that the kept file is based on: missing pages
 * come from it. */
static int recovery_fits(struct nc_rw *v, struct rw_file *f, uint64_t identity, struct err *e)
{
	struct snapshot *x;
	uint64_t here;
	int rc;

	x = snapshots_get(v->snapshots);
	rc = rw_identity(x, &here, e);
	if (rc == 0 && here != identity)
		rc = err_set(e, -ESTALE, "the dataset has been changed since then");
	if (rc < 0) {
		snapshot_put(v->snapshots, x);
		return rc;
	}
	f->snapshot = x;
	f->copy.base = x;
	f->follows = x->number;
	f->follows_any = false;
	return 0;
}

/* restore - make the file from its kept state. */
static int restore(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	char now[RW_NAME_ROOM], map[RW_NAME_ROOM];
	uint64_t identity = 0;
	struct stat st;
	int rc;

	rw_work_name(f, "now", now);
	rw_work_name(f, "map", map);
	rc = read_map(v, map, &f->copy, &identity, e);
	if (rc < 0)
		return rc;
	f->copy.fd = openat(v->opts.dir_fd, now, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (f->copy.fd < 0 || fstat(f->copy.fd, &st) < 0)
		return err_sys(e, errno, "'%s/%s'", v->opts.dir, now);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->copy.size)
		return err_set(e, -EBADMSG, "the size of '%s' has changed", now);
	f->copy.working = f->copy.dirty = true;
	return recovery_fits(v, f, identity, e);
}

/* recovery_say - log, and report to the mounting user: the log of libraries is not shown during a
 * mount. */
static void NZ_PRINTF(2, 3) recovery_say(struct nc_rw *v, const char *fmt, ...)
{
	size_t n = v->base.n_notes;
	char text[900], *line;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a truncated note is still valid */
	va_end(ap);
	log_warn("%s", text);
	line = strdup(text);
	if (!line || grow_array(&v->notes, &v->c_notes, n + 1, sizeof(*v->notes)) < 0) {
		free(line);
		return;
	}
	v->notes[n] = line;
	v->base.notes = (const char *const *)v->notes;
	v->base.n_notes++;
}

/* recovery_again - commit the file that was kept under a number. */
static void recovery_again(struct nc_rw *v, uint64_t work)
{
	struct err e = ERR_INIT;
	struct rw_file *f;
	int rc;

	(void)pthread_mutex_lock(&v->lock);
	f = rw_file_new(v, NULL, &e);
	(void)pthread_mutex_unlock(&v->lock);
	if (!f) {
		recovery_say(v, "'%s': %s", v->opts.dir, e.msg);
		return;
	}
	f->work = work;
	f->kept = true;
	rc = restore(v, f, &e);
	rc = rc ? rc : rw_commit_locking(v, f, false, &e);
	if (rc == 0)
		recovery_say(v,
			     "'%s': changes that an earlier mount could not commit are now in "
			     "the dataset",
			     v->opts.name);
	else
		recovery_say(
			v,
			"changes to '%s' from an earlier mount could not be committed: %s; "
			"they stay in '%s/nc-%llu.now' and .map: remove both to discard them",
			v->opts.name, e.msg, v->opts.dir, (unsigned long long)work);
	rw_file_put(v, f);
}

/* recovery_number_of - parse "nc-NUMBER.what"; false if it is another name. */
static bool recovery_number_of(const char *name, const char *what, uint64_t *ret)
{
	const char *dot = strrchr(name, '.');
	size_t n = dot ? (size_t)(dot - name) : 0;

	return n > 3 && strncmp(name, "nc-", 3) == 0 && (!what || strcmp(dot + 1, what) == 0) &&
	       str_u64(name + 3, n - 3, UINT64_MAX - 1, ret) == 0;
}

static DIR *recovery_list(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	int errnum = errno;

	if (!d && fd >= 0)
		(void)close(fd);
	errno = errnum;
	return d;
}

/* recovery_next - the next name of a listing; NULL at its end, and with *rc set if it failed. */
static const struct dirent *recovery_next(const struct nc_rw *v, DIR *d, int *rc, struct err *e)
{
	const struct dirent *x;

	errno = 0;
	x = readdir(d);
	if (!x && errno)
		*rc = err_sys(e, errno, "cannot list '%s'", v->opts.dir);
	return x;
}

/* has_map - whether a map may exist for a number. */
static bool has_map(struct nc_rw *v, uint64_t work)
{
	struct rw_file f = {.work = work};
	char name[RW_NAME_ROOM];

	rw_work_name(&f, "map", name);
	return faccessat(v->opts.dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

static int recovery_by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* resume_copies - resume the kept files in the order of their making. If they cannot be listed,
 * fail without touching any: the next number could be that of a kept file. */
static int resume_copies(struct nc_rw *v, struct err *e)
{
	DIR *d = recovery_list(v->opts.dir_fd);
	uint64_t *kept = NULL, work;
	const struct dirent *x;
	size_t n = 0, cap = 0;
	int rc = 0;

	if (!d)
		return err_sys(e, errno, "cannot list '%s'", v->opts.dir);
	while (rc == 0 && (x = recovery_next(v, d, &rc, e))) {
		if (!recovery_number_of(x->d_name, NULL, &work))
			continue;
		v->next_work = u64_max(v->next_work, work + 1);
		if (!has_map(v, work)) /* its writer was never told that it is kept */
			(void)unlinkat(v->opts.dir_fd, x->d_name, 0);
		else if (!recovery_number_of(x->d_name, "map", &work))
			continue;
		else if (grow_array(&kept, &cap, n + 1, sizeof(*kept)) < 0)
			rc = err_nomem(e);
		else
			kept[n++] = work;
	}
	(void)closedir(d);
	if (n > 1)
		qsort(kept, n, sizeof(*kept), recovery_by_number);
	for (size_t i = 0; rc == 0 && i < n; i++)
		recovery_again(v, kept[i]);
	free(kept);
	return rc;
}

/* recovery_show - add an existing scratch file. */
static void recovery_show(struct nc_rw *v, const char *name)
{
	int fd = openat(v->scratch, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *own = strdup(name);
	struct rw_file *f = NULL;
	struct stat st;

	(void)pthread_mutex_lock(&v->lock);
	if (fd >= 0 && own && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		f = rw_file_new(v, NULL, NULL);
	if (f) {
		f->name = own;
		f->named = true;
		f->mtime = st.st_mtim;
		rw_begin_new(f, fd, (uint64_t)st.st_size);
	}
	(void)pthread_mutex_unlock(&v->lock);
	if (f) {
		recovery_say(v, "'%s' was left next to '%s' by an earlier mount", name,
			     v->opts.name);
		return;
	}
	free(own);
	close_fd(&fd); /* nothing was written */
}

static void resume_scratch(struct nc_rw *v)
{
	int fd = openat(v->opts.dir_fd, RW_SCRATCH,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	const struct dirent *x;
	DIR *d;

	if (fd < 0)
		return; /* there is none */
	v->scratch = fd;
	d = recovery_list(fd);
	while (d && (x = readdir(d)))
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
			recovery_show(v, x->d_name);
	if (d)
		(void)closedir(d);
}

int rw_resume(struct nc_rw *v, struct err *e)
{
	resume_scratch(v);
	return resume_copies(v, e);
}
