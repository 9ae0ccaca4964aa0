/* SPDX-License-Identifier: BSD-3-Clause */
/* commit.c - commits a written file to the dataset.
 *
 * The first commit of an overlay compares it with its snapshot; a later one, of a file that was
 * kept open, with the state of the commit before. Either way unchanged data has the same locations
 * in both, whatever the layout of the snapshot's own file after a commit. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <string.h>

#include "base/observe/metrics.h"

/* older_file - an open file that may need chunks of the dataset later. */
struct older_file {
	struct rw_file *f; /* with a reference */
	uint32_t *like; /* owned: its snapshot's array for each of the latest; NULL: unknown */
};

/* commit_committing - the state of a commit's callbacks. */
struct commit_committing {
	struct nc_rw *v;
	struct rw_file *f;
	struct snapshot *latest; /* about to be replaced; held */
	struct older_file *older;
	size_t n_older;
};

/* ---- callbacks ---- */

static bool written(void *arg, uint64_t off, uint64_t len)
{
	struct commit_committing *c = arg;

	return rw_copy_differs(&c->f->copy, c->f->commits > 0 ? c->f->was_fd : -1, off, len);
}

static int commit_fill(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	struct commit_committing *c = arg;

	return rw_copy_fill(&c->f->copy, off, len, e);
}

/* commit_like - the chunk of the latest dataset as one of an older file's; *linear UINT64_MAX: that
 * has none. */
static int commit_like(const struct commit_committing *c, struct older_file *o, uint32_t *array,
		       uint64_t *linear, struct err *e)
{
	const struct dataset *ds = &c->latest->view->source->ds;
	const struct dataset *old = &o->f->snapshot->view->source->ds;
	const struct ds_array *a = &ds->arrays[*array];
	int rc = 0;

	if (o->f->snapshot->number == c->latest->number)
		return 0;
	if (!o->like) {
		auto_free uint32_t *like = alloc_array(ds->n_arrays, sizeof(*like));

		rc = like ? ds_match(ds, old, NULL, like, NULL, e) : err_nomem(e);
		if (rc < 0)
			return rc;
		o->like = steal(&like);
	}
	*array = o->like[*array];
	*linear =
		*array == DS_NONE ? UINT64_MAX : ds_chunk_in(a, *linear, &old->arrays[*array]);
	return 0;
}

/* commit_keep - save the bytes of a chunk for handles on an older state. A chunk that cannot be
 * read now could not be read later either. */
static int commit_keep(struct nc_rw *v, struct rw_file *f, uint32_t array, uint64_t linear,
		       struct err *e)
{
	const struct nc_layout *l;
	struct err why = ERR_INIT;
	uint64_t off, len;
	int rc = 0, fd;

	if (nc_view_layout(f->snapshot->view, &l, NULL) < 0 ||
	    !nc_layout_chunk(l, array, linear, &off, &len) || off >= f->copy.base_end)
		return 0;
	if (f->copy.fd < 0) {
		fd = rw_work_open(v, f, "now", e);
		if (fd < 0)
			return fd;
		(void)pthread_rwlock_wrlock(&f->copy.map);
		f->copy.fd = fd;
		(void)pthread_rwlock_unlock(&f->copy.map);
	}
	rc = rw_copy_fill(&f->copy, off, len, &why);
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -ENOMEM || rc == -EFBIG)
		return err_set(
			e, rc,
			"the content of '%s' that other programs have open cannot be kept: %s",
			v->opts.name, why.msg);
	return 0;
}

static int commit_replaced(void *arg, uint32_t array, uint64_t linear, struct err *e)
{
	struct commit_committing *c = arg;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_older; i++) {
		struct rw_file *f = c->older[i].f;
		uint32_t a = array;
		uint64_t l = linear;

		rc = commit_like(c, &c->older[i], &a, &l, e);
		if (rc < 0 || l == UINT64_MAX)
			continue;
		/* a first write to it may begin its overlay at the same time; the file being
		 * committed is locked already */
		if (f != c->f)
			(void)pthread_mutex_lock(&f->write);
		rc = commit_keep(c->v, f, a, l, e);
		if (f != c->f)
			(void)pthread_mutex_unlock(&f->write);
	}
	return rc;
}

/* ---- one commit ---- */

/* older - open files with a snapshot. */
static int older(struct commit_committing *c, struct err *e)
{
	size_t n = 0;
	LOCK_SCOPE(&c->v->lock);

	for (struct rw_file *f = c->v->files; f; f = f->next)
		n++;
	c->older = alloc_array(n, sizeof(*c->older));
	for (struct rw_file *f = c->v->files; c->older && f; f = f->next)
		if (f->handles > 0 && f->snapshot && atomic_load(&f->ready)) {
			f->refs++;
			c->older[c->n_older++].f = f;
		}
	return c->older ? 0 : err_nomem(e);
}

/* make_was - make a file with the old state. For a new file, or one without any old content, that
 * is the current dataset: then everything that is missing in the new file is recognized as
 * removed. *ret NULL: the old state is unknown. */
static int make_was(struct commit_committing *c, char **ret, struct err *e)
{
	struct rw_file *f = c->f;
	bool fresh = f->copy.all || f->copy.cut == 0;
	auto_fd int fd = -1;
	int rc = 0;

	*ret = NULL;
	if (fresh || f->commits == 0) {
		fd = rw_work_open(c->v, f, "was", e);
		rc = fd < 0 ? fd : rw_structure(fresh ? c->latest : f->snapshot, fd, e);
		if (rc < 0 && fd >= 0 && fresh && rc != -ENOSPC && rc != -EDQUOT &&
		    !err_is_transient(rc))
			return 0;
	}
	if (rc == 0)
		*ret = rw_work_path(c->v, f, "was");
	return rc < 0 || *ret ? rc : err_nomem(e);
}

/* renew - open the changed dataset, so that new look-ups find its file; but not while the file is
 * open for writing, because all its writers and locks need the same file. The old source is no
 * longer checked for changes: the chunks that its readers need were kept. */
static void renew(struct commit_committing *c)
{
	struct nc_rw *v = c->v;
	struct err e = ERR_INIT;
	int rc = snapshots_reopen(v->snapshots, &e);
	bool stays;

	(void)pthread_mutex_lock(&v->lock);
	stays = c->f == v->now && c->f->writers > 0;
	(void)pthread_mutex_unlock(&v->lock);
	if (rc == 0 && !stays)
		rc = rw_epoch(v, &e);
	if (rc < 0)
		log_error("'%s' was written, but cannot be reopened: %s", v->opts.name, e.msg);
	c->f->follows = rw_latest(v);
	c->f->follows_any = false;
}

/* clean - mark the file's content as the dataset's. */
static void clean(struct commit_committing *c)
{
	struct rw_file *f = c->f;

	(void)pthread_rwlock_wrlock(&f->copy.map);
	rw_copy_clean(&f->copy);
	(void)pthread_rwlock_unlock(&f->copy.map);
	f->commits++;
	f->orphan = f->was = f->kept = false;
	close_fd(&f->was_fd); /* it is not read any more */
	rw_work_remove(c->v, f, "was");
	rw_work_remove(c->v, f, "map");
	(void)pthread_mutex_lock(&c->v->lock);
	for (struct rw_handle *h = c->v->handles; h; h = h->next)
		if (h->file == f)
			h->wrote = false;
	(void)pthread_mutex_unlock(&c->v->lock);
}

/* commit_decided - the commit is decided, and only a part of it is in the dataset yet. The dataset
 * then has neither the old nor the new state, so all readers continue with the written file. */
static int commit_decided(struct commit_committing *c, struct err *e)
{
	struct nc_rw *v = c->v;

	clean(c);
	(void)pthread_mutex_lock(&v->lock);
	c->f->refs++;
	v->behind = c->f;
	(void)pthread_mutex_unlock(&v->lock);
	if (e)
		e->code = -EIO; /* the message stays */
	return -EIO;
}

int rw_catch_up(struct nc_rw *v, struct err *e)
{
	struct commit_committing c = {.v = v, .f = v->behind};
	int rc;

	if (!v->behind)
		return 0;
	rc = v->opts.end ? v->opts.end(v->opts.arg, e) : 0;
	if (rc < 0)
		return rc;
	v->behind = NULL;
	renew(&c);
	rw_file_put(v, c.f);
	return 0;
}

static int commit(struct commit_committing *c, struct err *e)
{
	struct nc_rw *v = c->v;
	struct rw_file *f = c->f;
	auto_free char *now = rw_work_path(v, f, "now"), *was = NULL;
	struct file_rw_change change = {.now = now,
					.view = c->latest->view,
					.source = c->latest->view->source,
					.written = written,
					.fill = commit_fill,
					.replaced = commit_replaced,
					.arg = c};
	int rc = now ? make_was(c, &was, e) : err_nomem(e);

	if (rc < 0)
		return rc;
	change.was = was;
	rc = older(c, e);
	source_hold(c->latest->view->source, true);
	rc = rc ? rc : v->opts.commit(v->opts.arg, &change, e);
	if (rc == -EINPROGRESS)
		return commit_decided(c, e);
	if (rc < 0)
		source_hold(c->latest->view->source, false);
	if (rc == 0) {
		clean(c);
		renew(c);
	} else if (!f->was) {
		rw_work_remove(v, f, "was");
	}
	return rc;
}

/* current - whether the dataset is the one that the file was made from, or that does not
 * matter. */
static int current(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	bool any = f->follows_any || f->copy.all;
	int rc = snapshots_check(v->snapshots, e);

	if (rc == -ESTALE && any) { /* changes by other programs are replaced as well */
		rc = snapshots_reopen(v->snapshots, e);
		return rc < 0 || f == v->now ? rc : rw_epoch(v, e);
	}
	if (rc < 0)
		return err_wrap(e, rc,
				"'%s' was changed by another program since it was opened",
				v->opts.name);
	if (!any && f->follows != rw_latest(v))
		rc = err_set(e, -ESTALE, "another program has written '%s' in the meantime",
			     v->opts.name);
	return rc;
}

/* being_written - whether libhdf5 has marked the file as open for writing, which it does since
 * 1.10. Spec: HDF5 File Format 3.0, II.A, file consistency flags. */
static bool being_written(struct rw_file *f)
{
	uint8_t head[24];
	size_t n = 0;

	if (rw_copy_read(&f->copy, 0, sizeof(head), head, &n, NULL) < 0 || n < sizeof(head) ||
	    memcmp(head, HDF5_SIGNATURE, HDF5_SIGNATURE_LEN) != 0)
		return false; /* its reader reports the error */
	return head[head[8] < 2 ? 20 : 11] & 1;
}

int rw_commit(struct nc_rw *v, struct rw_file *f, bool synced, struct err *e)
{
	struct commit_committing c = {.v = v, .f = f};
	int rc;

	rc = rw_catch_up(v, e);
	if (rc < 0)
		return rc;
	if (f->removed)
		return 0;
	if (f->failed)
		return err_set(e, f->failed, "a write to it failed: nothing is committed");
	if (!f->copy.dirty || f->copy.size == 0)
		return 0;
	if (!synced && being_written(f))
		return err_set(e, -EBADMSG,
			       "the program that writes it has not closed it through HDF5 (if "
			       "it has ended: h5clear -s)");
	rc = current(v, f, e);
	if (rc < 0)
		return rc;
	c.latest = snapshots_get(v->snapshots);
	rc = commit(&c, e);
	metrics_count(rc < 0 ? M_COMMITS_FAILED : M_COMMITS_DONE);
	for (size_t i = 0; i < c.n_older; i++) {
		rw_file_put(v, c.older[i].f);
		free(c.older[i].like);
	}
	free(c.older);
	snapshot_put(v->snapshots, c.latest);
	return rc;
}

int rw_commit_locking(struct nc_rw *v, struct rw_file *f, bool synced, struct err *e)
{
	LOCK_SCOPE(&v->commit);
	LOCK_SCOPE(&f->write);

	return f->name ? 0 : rw_commit(v, f, synced, e);
}
