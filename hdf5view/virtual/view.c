/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - a dataset as one netCDF-4 file in the root directory.
 *
 * One thread lays out the file at its first use, while others wait; from then on everything is
 * read without a lock. If the layout fails, the caller gets the error, and for a while later calls
 * get the same one: a program that retries in a loop must not read a broken dataset each time.
 * After a transient error that came soon, the next call tries again. */
#include "hdf5view/hdf5view.h"
#include "base/os/cancel.h"

#include "base/core/clock.h"
#include "hdf5view/netcdf4/schema.h"
#include "hdf5view/virtual/file_layout.h"
#include "hdf5view/virtual/one_file.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define RETRY_MS 1000

struct nc_view {
	struct one_file one;
	struct nc_view_options opts;
	struct nc_model *model;
	struct chunkio *io;

	_Atomic(struct nc_layout *) layout; /* published once; owned */
	pthread_mutex_t lock;               /* of busy */
	pthread_cond_t made;                /* busy ended */
	bool busy; /* a thread lays out; what follows is that thread's */
	struct err failure;                 /* of the last attempt */
	int64_t retry;                      /* ms: earliest next attempt; the clock begins above
					     * 0 */
};

static struct nc_view *nc(struct view *v)
{
	return CONTAINER_OF(v, struct nc_view, one.base);
}

static int view_lay_out(struct nc_view *n, struct nc_layout **ret, struct err *e)
{
	struct nc_image image = {0};
	int rc = nc_build(n->model, n->one.base.source, n->opts.max_image_bytes, &image, e);

	rc = rc ? rc
		: nc_layout_new(n->one.base.source, n->one.plans, n->io, &image,
				n->opts.max_index_bytes, ret, e);
	nc_image_release(&image);
	return rc;
}

/* view_passing - whether a failure says nothing about the dataset: the caller gave up,
 * memory is short, bytes did not arrive, or libhdf5 crashed. After a failure that took long, which
 * the next caller would wait for again, a pause is better. */
static bool view_passing(int rc, int64_t took)
{
	return err_is_transient(rc) || ((rc == -EIO || rc == -ETIMEDOUT) && took < RETRY_MS);
}

/* view_attempt - lay out the file, unless that failed a moment ago. lock is held. */
static int view_attempt(struct nc_view *n, struct nc_layout **ret, struct err *e)
{
	int64_t began = clock_ms(), took;
	struct err why = ERR_INIT;
	int rc;

	if (n->failure.code < 0 && began < n->retry)
		return err_set(e, n->failure.code, "%s", n->failure.msg);
	rc = view_lay_out(n, ret, &why);
	if (rc == 0) {
		atomic_store_explicit(&n->layout, *ret, memory_order_release);
		return 0;
	}
	took = clock_ms() - began;
	if (view_passing(rc, took)) /* EAGAIN: the process that made it was killed */
		return err_set(e, rc == -EAGAIN ? -EIO : rc, "'%s': %s", n->opts.name, why.msg);
	if (rc == -ENOENT) /* a resource is missing, not the file */
		rc = -EIO;
	(void)err_set(&n->failure, rc, "'%s': %s", n->opts.name, why.msg);
	n->retry = began + took + (took > RETRY_MS ? took : RETRY_MS);
	return err_set(e, rc, "%s", n->failure.msg);
}

/* layout - the file's layout; borrowed until the view is closed. */
static int layout(struct nc_view *n, const struct nc_layout **ret, struct err *e)
{
	struct nc_layout *l = atomic_load_explicit(&n->layout, memory_order_acquire);
	int rc = 0;

	if (l) {
		*ret = l;
		return 0;
	}
	/* the first layout of a remote dataset takes minutes: waiting threads can be cancelled */
	(void)pthread_mutex_lock(&n->lock);
	while (rc == 0 && !(l = atomic_load(&n->layout)) && n->busy)
		rc = cancel_wait(&n->made, &n->lock);
	if (rc == 0 && !l)
		n->busy = true;
	(void)pthread_mutex_unlock(&n->lock);
	if (rc < 0)
		return err_set(e, rc, "'%s': cancelled while it was laid out", n->opts.name);
	if (!l) {
		rc = view_attempt(n, &l, e);
		(void)pthread_mutex_lock(&n->lock);
		n->busy = false;
		(void)pthread_cond_broadcast(&n->made);
		(void)pthread_mutex_unlock(&n->lock);
	}
	if (rc == 0)
		*ret = l;
	return rc;
}

static void view_size(struct one_file *f, struct view_attr *ret, struct err *e)
{
	const struct nc_layout *l;

	ret->unknown = layout(nc(&f->base), &l, e) < 0;
	ret->size = ret->unknown ? 1 /* the kernel reads an empty file as empty */
				 : nc_layout_size(l);
}

/* view_ready - laying out is not cheap. */
static bool view_ready(struct one_file *f)
{
	return atomic_load(&nc(&f->base)->layout) != NULL;
}

static int view_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
		     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	const struct nc_layout *l;
	int rc = one_file_is(id, e);

	rc = rc ? rc : layout(nc(v), &l, e);
	return rc < 0 ? rc : nc_layout_read(l, off, len, room, ret, e);
}

static void nc_view_close(struct view *v)
{
	struct nc_view *n;

	if (!v)
		return;
	n = nc(v);
	nc_layout_free(atomic_load(&n->layout));
	chunkio_free(n->io);
	nc_model_free(n->model);
	free(n->one.plans);
	(void)pthread_cond_destroy(&n->made);
	(void)pthread_mutex_destroy(&n->lock);
	free(n);
}

static const struct view_ops nc_view_ops = {
	.name = "netcdf",
	.xattr = one_file_xattr,
	.close = nc_view_close,
	.lookup = one_file_lookup,
	.getattr = one_file_getattr,
	.list = one_file_list,
	.read = view_read,
	.parent = one_file_parent,
	.plan = one_file_plan,
};

int nc_view_open(struct source *s, const struct nc_view_options *opts, struct view **ret,
		 struct err *e)
{
	struct nc_view *n = alloc_array(1, sizeof(*n));
	int rc;

	if (!n)
		return err_nomem(e);
	n->one = (struct one_file){.base = {.ops = &nc_view_ops, .source = s},
				   .name = opts->name,
				   .size = view_size,
				   .ready = view_ready};
	n->opts = *opts;
	atomic_init(&n->layout, NULL);
	(void)pthread_mutex_init(&n->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&n->made);
	n->one.plans = alloc_array(s->ds.n_arrays, sizeof(*n->one.plans));
	rc = n->one.plans ? nc_model_new(s, opts, n->one.plans, &n->model, e) : err_nomem(e);
	rc = rc ? rc : chunkio_new(s, n->one.plans, &opts->io, &n->io, e);
	if (rc < 0) {
		nc_view_close(&n->one.base);
		return rc;
	}
	n->one.base.notes = nc_model_notes(n->model, &n->one.base.n_notes);
	*ret = &n->one.base;
	return 0;
}

/* ---- for the writable view ---- */

int nc_view_layout(struct view *v, const struct nc_layout **ret, struct err *e)
{
	if (v->ops != &nc_view_ops)
		return err_set(e, -EINVAL, "not a view of a virtual netCDF file");
	return layout(nc(v), ret, e);
}

/* path_group - the group that the first `len` bytes of a path name; DS_NONE: none. */
static uint32_t path_group(const struct nc_model *m, const char *path, size_t len)
{
	uint32_t g = 0;
	size_t at = 0;

	while (at < len) {
		const struct ds_group *x = &m->ds->groups[g];
		const char *end;
		uint32_t found = DS_NONE;
		size_t n;

		if (path[at] == '/') {
			at++;
			continue;
		}
		end = memchr(path + at, '/', len - at);
		n = end ? (size_t)(end - (path + at)) : len - at;
		for (uint32_t i = 0; i < x->n_groups && found == DS_NONE; i++) {
			const char *name = m->groups[x->groups[i]].name;

			if (name && strlen(name) == n && memcmp(name, path + at, n) == 0)
				found = x->groups[i];
		}
		if (found == DS_NONE)
			return DS_NONE;
		g = found;
		at += n;
	}
	return g;
}

/* view_place_of - split a path into the group of its last component, and that component.
 * DS_NONE: none. */
static uint32_t view_place_of(const struct nc_model *m, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash ? slash + 1 : path;
	return **ret_name ? path_group(m, path, (size_t)(*ret_name - path)) : DS_NONE;
}

/* called - an array's name in netCDF; NULL: it is not shown. */
static const char *called(const struct nc_array *a)
{
	size_t n = strlen(NETCDF_NON_COORD);

	return a->link && strncmp(a->link, NETCDF_NON_COORD, n) == 0 ? a->link + n : a->link;
}

uint32_t nc_view_array(void *v, const char *path)
{
	const struct nc_model *m = nc(v)->model;
	const char *name;
	uint32_t g = view_place_of(m, path, &name);

	for (uint32_t i = 0; g != DS_NONE && i < m->ds->groups[g].n_arrays; i++) {
		uint32_t a = m->ds->groups[g].arrays[i];
		const char *x = called(&m->arrays[a]);

		if (x && strcmp(x, name) == 0)
			return a;
	}
	return DS_NONE;
}

uint32_t nc_view_group(void *v, const char *path)
{
	return path_group(nc(v)->model, path, strlen(path));
}

uint32_t nc_view_dim(void *v, const char *path)
{
	const struct nc_model *m = nc(v)->model;
	const char *name;
	uint32_t g = view_place_of(m, path, &name);

	for (uint32_t i = 0; g != DS_NONE && i < m->ds->groups[g].n_dims; i++) {
		uint32_t d = m->ds->groups[g].dims[i];

		if (m->dims[d].name && strcmp(m->dims[d].name, name) == 0)
			return d;
	}
	return DS_NONE;
}
