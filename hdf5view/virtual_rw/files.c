/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - the files of the writable virtual file, their names, and their files in the state
 * directory.
 *
 * A file exists while it has a name or is open. Its id is never reused. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/observe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLL_MS 1000

/* ---- in the state directory ---- */

void rw_work_name(const struct rw_file *f, const char *what, char *out)
{
	(void)snprintf(out, RW_NAME_ROOM, "nc-%" PRIu64 ".%s", f->work, what);
}

void rw_work_number(struct nc_rw *v, struct rw_file *f)
{
	LOCK_SCOPE(&v->lock);

	if (f->work == 0)
		f->work = v->next_work++;
}

int rw_work_open(struct nc_rw *v, struct rw_file *f, const char *what, struct err *e)
{
	char name[RW_NAME_ROOM];
	int fd;

	rw_work_number(v, f);
	rw_work_name(f, what, name);
	fd = openat(v->opts.dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	return fd < 0 ? err_sys(e, errno, "'%s/%s'", v->opts.dir, name) : fd;
}

void rw_work_remove(const struct nc_rw *v, const struct rw_file *f, const char *what)
{
	char name[RW_NAME_ROOM];

	rw_work_name(f, what, name);
	if (f->work > 0)
		(void)unlinkat(v->opts.dir_fd, name, 0); /* or there is none */
}

char *rw_work_path(const struct nc_rw *v, const struct rw_file *f, const char *what)
{
	char name[RW_NAME_ROOM], *path;
	size_t n;

	rw_work_name(f, what, name);
	n = strlen(v->opts.dir) + strlen(name) + 2;
	path = malloc(n);
	if (path)
		(void)snprintf(path, n, "%s/%s", v->opts.dir, name);
	return path;
}

/* ---- files ---- */

struct rw_file *rw_file_new(struct nc_rw *v, struct snapshot *x, struct err *e)
{
	struct rw_file *f;

	if (v->next_id >= v->opts.id_limit) {
		(void)err_set(e, -ENOSPC, "no more inode numbers: mount it again");
		return NULL;
	}
	f = alloc_array(1, sizeof(*f));
	if (!f) {
		(void)err_nomem(e);
		return NULL;
	}
	f->id = v->next_id++;
	f->refs = 1;
	f->was_fd = -1;
	f->snapshot = x;
	f->follows = x ? x->number : 0;
	f->follows_any = !x;
	atomic_init(&f->ready, !x);
	f->mtime = x ? x->view->source->ds.st.st_mtim : clock_wall();
	(void)pthread_mutex_init(&f->write, NULL); /* cannot fail with default attributes */
	rw_copy_init(&f->copy, x, 0);
	f->next = v->files;
	v->files = f;
	return f;
}

struct rw_file *rw_file_get(struct nc_rw *v, uint64_t id)
{
	struct rw_file *f;
	LOCK_SCOPE(&v->lock);

	for (f = v->files; f && f->id != id; f = f->next)
		;
	if (f)
		f->refs++;
	return f;
}

bool rw_is_virtual(const struct nc_rw *v, const char *name, size_t len)
{
	return strlen(v->opts.name) == len && memcmp(v->opts.name, name, len) == 0;
}

struct rw_file *rw_file_find(struct nc_rw *v, const char *name, size_t len)
{
	if (rw_is_virtual(v, name, len))
		return v->now;
	for (struct rw_file *f = v->files; f; f = f->next)
		if (f->named && f->name && strlen(f->name) == len &&
		    memcmp(f->name, name, len) == 0)
			return f;
	return NULL;
}

struct rw_file *rw_file_hold(struct nc_rw *v, const char *name, size_t len)
{
	struct rw_file *f;
	LOCK_SCOPE(&v->lock);

	f = rw_file_find(v, name, len);
	if (f)
		f->refs++;
	return f;
}

static void file_free(struct nc_rw *v, struct rw_file *f)
{
	if (!f->kept) {
		rw_work_remove(v, f, "map");
		rw_work_remove(v, f, "now");
	}
	rw_work_remove(v, f, "was");
	close_fd(&f->was_fd); /* it is not read any more */
	rw_copy_release(&f->copy);
	if (f->snapshot)
		snapshot_put(v->snapshots, f->snapshot);
	(void)pthread_mutex_destroy(&f->write);
	free(f->name);
	free(f);
}

void rw_file_put(struct nc_rw *v, struct rw_file *f)
{
	struct rw_file **at = &v->files;
	bool last;

	(void)pthread_mutex_lock(&v->lock);
	last = --f->refs == 0;
	while (last && *at != f)
		at = &(*at)->next;
	if (last)
		*at = f->next;
	(void)pthread_mutex_unlock(&v->lock);
	if (last)
		file_free(v, f);
}

int rw_file_ready(struct rw_file *f, struct err *e)
{
	struct view_attr at;
	int rc = 0;

	if (atomic_load(&f->ready))
		return 0;
	(void)pthread_mutex_lock(&f->write);
	if (!atomic_load(&f->ready)) {
		struct view *g = f->snapshot->view;

		rc = g->ops->getattr(g, ONE_FILE_ID, &at, e);
		if (rc == 0 && at.unknown)
			rc = e && e->code < 0
				     ? e->code
				     : err_set(e, -EIO, "its layout cannot be determined");
		if (rc == 0) {
			(void)pthread_rwlock_wrlock(&f->copy.map);
			f->copy.size = f->copy.base_end = at.size;
			(void)pthread_rwlock_unlock(&f->copy.map);
			atomic_store(&f->ready, true);
		}
	}
	(void)pthread_mutex_unlock(&f->write);
	return rc;
}

int rw_epoch(struct nc_rw *v, struct err *e)
{
	struct snapshot *x = snapshots_get(v->snapshots);
	struct rw_file *f, *old = NULL;

	(void)pthread_mutex_lock(&v->lock);
	f = rw_file_new(v, x, e);
	if (f) {
		f->named = true;
		old = v->now;
		v->now = f;
		if (old)
			old->named = false;
	}
	(void)pthread_mutex_unlock(&v->lock);
	if (!f) {
		snapshot_put(v->snapshots, x);
		return e ? e->code : -ENOMEM;
	}
	if (old)
		rw_file_put(v, old);
	return 0;
}

/* idle - whether there is no writer, open or pending. commit is held. */
static bool idle(struct nc_rw *v)
{
	LOCK_SCOPE(&v->lock);

	return v->now && v->now->writers == 0 && !v->now->copy.working;
}

void rw_follow(struct nc_rw *v)
{
	int64_t now = clock_ms(), last = atomic_load(&v->looked);
	struct err e = ERR_INIT;

	if (now - last < POLL_MS || !atomic_compare_exchange_strong(&v->looked, &last, now) ||
	    pthread_mutex_trylock(&v->commit) != 0)
		return;
	if (idle(v) && snapshots_check(v->snapshots, NULL) == -ESTALE) {
		int rc = snapshots_reopen(v->snapshots, &e);

		rc = rc ? rc : rw_epoch(v, &e);
		if (rc < 0)
			log_warn("'%s' was changed by another program, and cannot be reopened: "
				 "%s",
				 v->opts.name, e.msg);
	}
	(void)pthread_mutex_unlock(&v->commit);
}

/* ---- before it changes ---- */

uint64_t rw_latest(struct nc_rw *v)
{
	struct snapshot *x = snapshots_get(v->snapshots);
	uint64_t number = x->number;

	snapshot_put(v->snapshots, x);
	return number;
}

void rw_begin_new(struct rw_file *f, int fd, uint64_t size)
{
	f->copy.fd = fd;
	f->copy.size = size;
	f->copy.working = true;
}

/* up_to_date - whether the file's base is still the dataset. */
static int up_to_date(struct nc_rw *v, const struct rw_file *f, struct err *e)
{
	if (f->follows_any || f->removed || rw_latest(v) == f->follows)
		return 0;
	return err_set(e, -ESTALE,
		       "another program has written '%s' since it was opened: reopen it",
		       v->opts.name);
}

/* files_snapshot - save the state of the last commit before it changes. */
static int files_snapshot(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	int fd = rw_work_open(v, f, "was", e), rc = fd < 0 ? fd : rw_clone(f->copy.fd, fd, e);

	if (rc < 0) {
		close_fd(&fd); /* nothing is in it */
		rw_work_remove(v, f, "was");
		return rc;
	}
	f->was = true;
	f->was_fd = fd;
	return 0;
}

int rw_begin(struct nc_rw *v, struct rw_file *f, bool empty, struct err *e)
{
	int rc = up_to_date(v, f, e), fd = -1;

	if (rc < 0)
		return rc;
	if (f->copy.working)
		return f->commits > 0 && !f->was && !empty ? files_snapshot(v, f, e) : 0;
	if (f->copy.fd < 0) {
		fd = rw_work_open(v, f, "now", e);
		if (fd < 0)
			return fd;
	}
	if (empty)
		rw_copy_forget(&f->copy);
	if (empty)
		f->follows_any = true; /* it replaces any state */
	rc = rw_copy_begin(&f->copy, fd, e);
	if (rc < 0 && fd >= 0) {
		(void)close(fd); /* nothing is in it */
		rw_work_remove(v, f, "now");
	}
	return rc;
}
