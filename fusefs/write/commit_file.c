/* SPDX-License-Identifier: BSD-3-Clause */
/* commit_file.c - commits a virtual file that was written to the Zarr store below it.
 *
 * Both states are read as HDF5 files. The data of unmodified variables is a hole at the same
 * position in both files: such a chunk is never read. */
#include "fusefs/write/chunk_set.h"
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "hdf5view/hdf5view.h"

#define MEMORY ((uint64_t)256 << 20)
#define PAGE_BYTES 4096u /* at least the granularity of `written` */
#define TEXT_BYTES ((size_t)1 << 30)

struct commit_file_file {
	const struct app *setup;
	const struct file_rw_change *c;
	struct source *was, *now;
	struct commit_chunks replaced; /* chunks of c->source that will be replaced */
	bool failed;
};

static int commit_file_open_one(const struct app *setup, const char *path, struct source **ret,
				struct err *e)
{
	struct source_options opts;

	fs_source_options(setup->cfg, &opts);
	opts.keep_going = false; /* an array that is left out would be removed from the store */
	return source_open(setup->formats, setup->n_formats, path, &opts, ret, e);
}

/* ---- changed chunks ---- */

/* strings_differ - compare elements without a fixed size, which may be anywhere in the file. */
static bool strings_differ(struct commit_file_file *f, uint32_t array, uint32_t was_array,
			   uint64_t linear, uint64_t old)
{
	auto_buf a = buf_of(TEXT_BYTES);
	auto_buf b = buf_of(TEXT_BYTES);

	return source_read_vlen(f->now, array, linear, &a, NULL) < 0 ||
	       source_read_vlen(f->was, was_array, old, &b, NULL) < 0 || a.len != b.len ||
	       (a.len > 0 && memcmp(a.data, b.data, a.len) != 0);
}

static bool refs_same(const struct chunk_ref *a, const struct chunk_ref *b)
{
	return a->where == b->where && (a->where != CHUNK_RANGE ||
					(a->off == b->off && a->len == b->len &&
					 a->pad == b->pad && a->filter_mask == b->filter_mask));
}

/* commit_file_ready - fill the pages of a chunk that were not written from the old file. */
static int commit_file_ready(void *arg, uint32_t array, uint64_t linear, struct err *e)
{
	struct commit_file_file *f = arg;
	struct chunk_ref ref;
	int rc = source_locate(f->now, array, linear, &ref, e);

	if (rc < 0 || ref.where != CHUNK_RANGE)
		return rc;
	return f->c->fill(f->c->arg, ref.off, ref.len, e);
}

/* real_array - the array of the store for an array of the file. */
static uint32_t real_array(struct commit_file_file *f, const struct dataset *ds, uint32_t array)
{
	auto_buf b = buf_of((size_t)1 << 20);
	const char *path = ds_array_path_text(ds, array, &b);

	f->failed |= !path;
	return path ? nc_view_array(f->c->view, path) : DS_NONE;
}

/* commit_file_alike - true if an array of the file and one of the store have equal chunk grids and
 * element types. */
static bool commit_file_alike(const struct ds_array *a, const struct ds_array *b)
{
	if (a->rank != b->rank || a->chunk_bytes != b->chunk_bytes ||
	    a->type.kind != b->type.kind || a->type.size != b->type.size ||
	    a->type.big_endian != b->type.big_endian || a->type.kind == DT_COMPOUND ||
	    dt_is_vlen(&a->type) || dt_is_vlen(&b->type))
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (a->chunk[i] != b->chunk[i])
			return false;
	return true;
}

/* elements_same - true if a chunk that shares a page with a write still has the store's
 * elements. */
static bool elements_same(struct commit_file_file *f, uint32_t array, uint64_t linear)
{
	struct source *store = f->c->source;
	const struct ds_array *a = &f->now->ds.arrays[array], *b;
	uint32_t real = real_array(f, &f->now->ds, array);
	size_t n = (size_t)a->chunk_bytes;
	auto_free uint8_t *x = NULL, *y = NULL;
	uint64_t old;

	if (real >= store->ds.n_arrays)
		return false;
	b = &store->ds.arrays[real];
	old = ds_chunk_in(a, linear, b);
	if (!commit_file_alike(a, b) || old == UINT64_MAX)
		return false;
	x = malloc(n ? n : 1);
	y = malloc(n ? n : 1);
	return x && y && commit_file_ready(f, array, linear, NULL) == 0 &&
	       source_read_chunk(f->now, array, linear, x, n, NULL) == 0 &&
	       source_read_chunk(store, real, old, y, n, NULL) == 0 && memcmp(x, y, n) == 0;
}

/* touched - true if the bytes of a chunk were written. The granularity is a page: if a chunk was
 * written only near its ends, its elements are compared. */
static bool touched(struct commit_file_file *f, uint32_t array, uint64_t linear,
		    const struct chunk_ref *r)
{
	const struct file_rw_change *c = f->c;

	if (!c->written(c->arg, r->off, r->len))
		return false;
	if (r->len > 2 * PAGE_BYTES &&
	    c->written(c->arg, r->off + PAGE_BYTES, r->len - 2 * PAGE_BYTES))
		return true;
	return !elements_same(f, array, linear);
}

/* differs - true if the contents of a chunk may have changed. */
static bool differs(struct commit_file_file *f, uint32_t array, uint32_t was_array,
		    uint64_t linear)
{
	const struct ds_array *a = &f->now->ds.arrays[array];
	uint64_t old = ds_chunk_in(a, linear, &f->was->ds.arrays[was_array]);
	struct chunk_ref x, y;

	if (old == UINT64_MAX || source_locate(f->now, array, linear, &x, NULL) < 0 ||
	    source_locate(f->was, was_array, old, &y, NULL) < 0 || !refs_same(&x, &y))
		return true;
	if (dt_is_vlen(&a->type))
		return strings_differ(f, array, was_array, linear, old);
	if (x.where == CHUNK_ABSENT)
		return false;
	return x.where != CHUNK_RANGE || touched(f, array, linear, &x);
}

static int commit_file_changed(void *arg, uint32_t array, uint32_t was_array, uint64_t from,
			       uint64_t *ret, struct err *e NZ_UNUSED)
{
	struct commit_file_file *f = arg;
	uint64_t n = f->now->ds.arrays[array].n_chunks;

	for (; from < n; from++)
		if (differs(f, array, was_array, from)) {
			*ret = from;
			return 0;
		}
	return -ENOENT;
}

/* commit_file_moved - true if all chunks of an array are at the positions of another one's,
 * unmodified. */
static bool commit_file_moved(struct commit_file_file *f, uint32_t array, uint32_t was_array)
{
	const struct ds_array *a = &f->now->ds.arrays[array];
	const struct ds_array *b = &f->was->ds.arrays[was_array];
	uint64_t dummy, first = 0;
	struct chunk_ref x, y;

	if (a->rank != b->rank || a->n_chunks != b->n_chunks || dt_is_vlen(&a->type) ||
	    source_next(f->now, array, 0, &first, NULL) < 0 ||
	    source_locate(f->now, array, first, &x, NULL) < 0 || x.where != CHUNK_RANGE ||
	    source_locate(f->was, was_array, first, &y, NULL) < 0 || !refs_same(&x, &y))
		return false;
	return commit_file_changed(f, array, was_array, 0, &dummy, NULL) == -ENOENT;
}

static uint32_t moved_from(void *arg, uint32_t array)
{
	struct commit_file_file *f = arg;

	for (uint32_t i = 0; i < f->was->ds.n_arrays; i++)
		if (commit_file_moved(f, array, i))
			return i;
	return DS_NONE;
}

/* ---- readers of the old file ---- */

static int observed_put(void *arg, uint32_t array, uint64_t linear, struct err *e NZ_UNUSED)
{
	struct commit_file_file *f = arg;
	uint32_t real = real_array(f, &f->now->ds, array);
	uint64_t old = UINT64_MAX;

	if (real < f->c->source->ds.n_arrays)
		old = ds_chunk_in(&f->now->ds.arrays[array], linear,
				  &f->c->source->ds.arrays[real]);
	if (old != UINT64_MAX)
		commit_chunks_add(&f->replaced, real, old);
	return 0;
}

static int observed_removed(void *arg, uint32_t was, struct err *e NZ_UNUSED)
{
	struct commit_file_file *f = arg;
	uint32_t real = real_array(f, &f->was->ds, was);

	if (real != DS_NONE)
		commit_chunks_all(&f->replaced, real, f->c->source->ds.n_arrays);
	return 0;
}

static int observed_resized(void *arg, uint32_t array, struct err *e NZ_UNUSED)
{
	struct commit_file_file *f = arg;
	const struct ds_array *a = &f->now->ds.arrays[array], *b;
	uint32_t real = real_array(f, &f->now->ds, array);

	if (real == DS_NONE)
		return 0;
	b = &f->c->source->ds.arrays[real];
	for (uint32_t i = 0; i < a->rank && i < b->rank; i++)
		if (a->shape[i] < b->shape[i])
			commit_chunks_all(&f->replaced, real, f->c->source->ds.n_arrays);
	return 0;
}

static const struct diff_observer observer = {
	.put = observed_put,
	.removed = observed_removed,
	.resized = observed_resized,
};

/* commit_file_gate - before chunks of the store change, save them for readers of the old file. */
static int commit_file_gate(void *arg, struct err *e)
{
	struct commit_file_file *f = arg;
	const struct dataset *ds = &f->c->source->ds;
	int rc = commit_chunks_sort(&f->replaced, e);

	if (f->failed)
		rc = err_nomem(e);
	for (uint32_t i = 0; rc == 0 && i < ds->n_arrays; i++) {
		uint64_t linear = 0, there;

		while (rc == 0 && linear < ds->arrays[i].n_chunks &&
		       commit_chunks_next(&f->replaced, i, linear, &linear) == 0) {
			if (f->replaced.whole && f->replaced.whole[i]) {
				if (source_next(f->c->source, i, linear, &there, NULL) < 0)
					break;
				linear = there;
			}
			rc = f->c->replaced(f->c->arg, i, linear, e);
			linear++;
		}
	}
	return rc;
}

/* ---- the commit ---- */

/* commit_file_format_of - an empty store gets the format of cfg. */
static enum plan_format commit_file_format_of(const struct commit_file_file *f)
{
	const struct dataset *ds = &f->c->source->ds;
	bool empty = ds->n_arrays == 0 && ds->n_groups <= 1;
	bool v3 = empty ? f->setup->cfg->zarr.zarr3 : strcmp(ds->format, "Zarr v3") == 0;

	return v3 ? PLAN_ZARR3 : PLAN_ZARR2;
}

static int push_file(struct commit_file_file *f, const char *path, struct store *remote,
		     int dir_fd, struct err *e)
{
	const struct app *setup = f->setup;
	const struct sink_names names = {.array = nc_view_array,
					 .group = nc_view_group,
					 .dim = nc_view_dim,
					 .arg = f->c->view};
	const struct zarr_sink_options opts =
		rw_zarr_options(&setup->cfg->zarr, remote, dir_fd, &names);
	struct diff_job job = {
		.was = f->was,
		.now = f->now,
		.changed = commit_file_changed,
		.ready = commit_file_ready,
		.moved_from = moved_from,
		.observer = &observer,
		.gate = commit_file_gate,
		.arg = f,
		.memory = MEMORY,
	};
	int rc = zarr_sink_open(path, f->c->source, &opts, &job.sink, e);

	return rc ? rc : commit_push(setup, commit_file_format_of(f), &job, e);
}

/* end_begun - a commit failed with rc, perhaps after its manifest was written, so that its changes
 * must be applied in any case. A second attempt may succeed. 0: applied; -EINPROGRESS: they will be
 * applied later; otherwise rc. */
static int end_begun(const char *path, bool remote, int dir_fd, int rc,
		     struct err *e)
{
	if (zarr_sink_pending(dir_fd, NULL) <= 0)
		return rc;
	if (remote || zarr_sink_recover(path, NULL, dir_fd, NULL) < 0)
		return -EINPROGRESS;
	if (e)
		*e = (struct err)ERR_INIT;
	return 0;
}

int commit_file(void *arg, const struct file_rw_change *c, struct err *e)
{
	const struct rw *rw = arg;
	const struct app *setup = rw->setup;
	const char *path = rw->state.shown;
	struct store *remote = rw->remote;
	const int dir_fd = rw->state.dir_fd;
	struct commit_file_file f = {.setup = setup, .c = c};
	/* of an earlier commit: this one fails then */
	bool older = !remote && zarr_sink_pending(dir_fd, NULL) != 0;
	int rc = commit_file_open_one(setup, c->now, &f.now, e);

	if (rc < 0)
		return err_wrap(e, rc, "pending writes");
	source_hold(f.now, true); /* it is filled during reads */
	if (c->was)
		rc = commit_file_open_one(setup, c->was, &f.was, e);
	rc = rc ? rc : push_file(&f, path, remote, dir_fd, e);
	if (rc < 0 && !older)
		rc = end_begun(path, remote != NULL, dir_fd, rc, e);
	source_close(f.now);
	source_close(f.was);
	commit_chunks_release(&f.replaced);
	return rc;
}
