/* SPDX-License-Identifier: BSD-3-Clause */
/* commit_tree.c - commits the staged writes of a Zarr store to the HDF5 file below it. */
#include "fusefs/write/chunk_set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "hdf5view/hdf5view.h"

#define MEMORY ((uint64_t)256 << 20) /* bytes for chunks that are being assembled */
#define CHAINS_BYTES ((size_t)64 << 20)

/* refusal - a chunk that could not be read. */
struct refusal {
	uint32_t array;
	uint64_t linear;
	char *why;
};

/* commit_tree_tree - one commit. */
struct commit_tree_tree {
	const struct app *setup;
	struct source *was, *now;
	struct view *view; /* of the file */
	struct store *base, *over; /* `over` does not have the deferred arrays */
	struct commit_paths deferred;
	struct stage *stage;
	uint64_t generation;
	struct commit_chunks changed;
	struct commit_paths paths; /* of `now` */
	struct refusal *refused;
	size_t n_refused, refused_cap;
	struct buf *left;
	struct buf chains; /* of commit_chains_note */
	int dir_fd;
	bool kept;         /* chains and layouts are in the state directory */
	int (*gate)(void *arg, struct err *e);
	void (*say)(void *arg, const char *text);
	void *arg;
	bool failed;     /* an allocation failed in a walk */
	const char *key; /* of the walk */
};

/* ---- opening ---- */

static int commit_tree_open_file(struct commit_tree_tree *t, const char *path,
				 const struct source_model *model, int dir_fd, struct err *e)
{
	const struct app *setup = t->setup;
	struct view_request want = {.name = setup->file_name,
				    .id_limit = VIEW_ID_LIMIT,
				    .rules = setup->rules,
				    .writable = true,
				    .share = 1};
	struct source_options opts;
	struct source *source;
	int rc;

	fs_source_options(setup->cfg, &opts);
	opts.model = model;
	rc = source_open(setup->formats, setup->n_formats, path, &opts, &source, e);
	if (rc == 0) {
		source_hold(source, true);
		rc = commit_tree_view(setup, source, &want, dir_fd, &t->view, e);
	}
	return rc ? rc : view_store(t->view, &t->base, e);
}

/* leave_strings - deferred arrays are not in `now`. */
static int leave_strings(struct commit_tree_tree *t, const struct source_options *opts,
			 struct err *e)
{
	if (commit_deferred(&t->was->ds, &t->now->ds, &t->deferred) < 0)
		return err_nomem(e);
	if (t->deferred.n == 0)
		return 0;
	source_close(t->now);
	t->now = NULL;
	stage_store_hide(t->over, commit_waits, &t->deferred);
	return zarr_store_open(t->over, "pending writes", opts, &t->now, e);
}

static int open_trees(struct commit_tree_tree *t, int dir_fd, bool all, struct err *e)
{
	const struct app *setup = t->setup;
	struct source_options opts;
	int rc = stage_open(dir_fd, true, &t->stage, e);

	fs_source_options(setup->cfg, &opts);
	opts.keep_going = false; /* an array that is left out would be removed from the file */
	rc = rc ? rc : stage_store(t->stage, t->generation, t->base, &t->over, e);
	rc = rc ? rc : zarr_store_open(t->base, "the file", &opts, &t->was, e);
	rc = rc ? rc : zarr_store_open(t->over, "pending writes", &opts, &t->now, e);
	if (rc == 0 && !all)
		rc = leave_strings(t, &opts, e);
	if (rc == 0 && commit_paths_of(&t->paths, &t->now->ds) < 0)
		rc = err_nomem(e);
	return rc;
}

static void commit_tree_release(struct commit_tree_tree *t)
{
	source_close(t->now);
	source_close(t->was);
	store_close(t->over);
	stage_close(t->stage);
	store_close(t->base);
	view_close(t->view);
	commit_chunks_release(&t->changed);
	commit_paths_release(&t->paths);
	commit_paths_release(&t->deferred);
	for (size_t i = 0; i < t->n_refused; i++)
		free(t->refused[i].why);
	free(t->refused);
	buf_release(&t->chains);
}

/* ---- staged keys ---- */

/* commit_tree_leave - record that a key stays staged. */
static void commit_tree_leave(struct commit_tree_tree *t, const char *key, const char *why)
{
	buf_puts(t->left, key);
	buf_putc(t->left, '\t');
	buf_put(t->left, why, strlen(why) + 1);
	t->failed |= !buf_ok(t->left);
}

static bool commit_tree_add_chunk(void *arg, uint32_t array, uint64_t linear)
{
	struct commit_tree_tree *t = arg;

	commit_chunks_add(&t->changed, array, linear);
	return true;
}

/* commit_tree_gone - a key and everything below it was removed, which may include chunks of arrays
 * that still exist. */
static void commit_tree_gone(struct commit_tree_tree *t, const char *key)
{
	const struct commit_paths *p = &t->paths;
	const struct commit_path *x = commit_paths_find(p, key, strlen(key));
	const uint32_t n_arrays = t->now->ds.n_arrays;
	size_t at = 0, n, from = commit_paths_below(p, key, &n);

	if (x && x->array != DS_NONE)
		commit_chunks_all(&t->changed, x->array, n_arrays);
	for (size_t i = from; i < from + n; i++)
		if (p->v[i].array != DS_NONE)
			commit_chunks_all(&t->changed, p->v[i].array, n_arrays);
	/* the key may be a directory of chunks */
	while ((x = commit_paths_above(p, key, &at)) != NULL)
		if (x->array != DS_NONE)
			commit_chunks_all(&t->changed, x->array, n_arrays);
}

/* holds_dir - true if a directory belongs to the dataset: it is a group or array, above one, or
 * inside an array. */
static bool holds_dir(const struct commit_tree_tree *t, const char *key)
{
	const struct commit_paths *p = &t->paths;
	const struct commit_path *x;
	size_t at = 0, n;

	(void)commit_paths_below(p, key, &n);
	if (n > 0 || commit_paths_find(p, key, strlen(key)))
		return true;
	while ((x = commit_paths_above(p, key, &at)) != NULL)
		if (x->array != DS_NONE)
			return true;
	return false;
}

/* consolidates - true if a key has the metadata of all arrays. The view generates it from the file,
 * which lacks deferred arrays: readers of consolidated metadata would take those as absent. */
static bool consolidates(const char *key)
{
	return strcmp(key, ".zmetadata") == 0 || strcmp(key, "zarr.json") == 0;
}

/* commit_tree_look - process one staged key. */
static bool commit_tree_look(void *arg, const char *key, const struct stage_entry *x)
{
	struct commit_tree_tree *t = arg;
	struct store_stat st;
	enum zarr_key_kind what;

	if (commit_waits(&t->deferred, key)) {
		if (x->kind != STAGE_GONE)
			commit_tree_leave(
				t, key,
				"the array of strings is committed at the unmount");
		return !t->failed;
	}
	if (x->kind == STAGE_DIR) {
		if (!holds_dir(t, key))
			commit_tree_leave(t, key, "a directory without metadata");
		return !t->failed;
	}
	what = zarr_source_key(t->now, key, commit_tree_add_chunk, t);
	if (x->kind == STAGE_GONE) {
		/* most of these are temporary names of files */
		if (what == ZARR_KEY_OTHER && store_stat(t->base, key, &st, NULL) == 0 &&
		    st.is_dir)
			commit_tree_gone(t, key);
		return !t->failed;
	}
	if (what == ZARR_KEY_OTHER)
		commit_tree_leave(t, key, "it is not part of any array or group");
	else if (t->deferred.n > 0 && consolidates(key))
		commit_tree_leave(t, key,
				  "it has the metadata of arrays that are not in the file yet");
	return !t->failed;
}

/* ---- the job ---- */

static int commit_tree_changed(void *arg, uint32_t array, uint32_t was_array NZ_UNUSED,
			       uint64_t from, uint64_t *ret, struct err *e NZ_UNUSED)
{
	const struct commit_tree_tree *t = arg;

	return commit_chunks_next(&t->changed, array, from, ret);
}

/* commit_tree_refused - a written chunk that cannot be decoded stays staged. If the chunk is in the
 * file itself and would have to be stored again, the commit fails and leaves the file unchanged. */
static int commit_tree_refused(void *arg, uint32_t array, uint64_t linear,
			       const struct err *why)
{
	struct commit_tree_tree *t = arg;
	struct refusal *r;
	uint64_t next;

	if ((t->changed.whole && t->changed.whole[array]) ||
	    commit_chunks_next(&t->changed, array, linear, &next) < 0 || next != linear)
		return -EBADMSG;
	if (grow_array(&t->refused, &t->refused_cap, t->n_refused + 1, sizeof(*t->refused)) < 0)
		return -ENOMEM;
	r = &t->refused[t->n_refused];
	*r = (struct refusal){array, linear, strdup(why->msg)};
	t->n_refused += r->why != NULL;
	return r->why ? 0 : -ENOMEM;
}

static bool find_refused(void *arg, uint32_t array, uint64_t linear)
{
	struct commit_tree_tree *t = arg;

	for (size_t i = 0; i < t->n_refused; i++)
		if (t->refused[i].array == array && t->refused[i].linear == linear) {
			commit_tree_leave(t, t->key, t->refused[i].why);
			return false;
		}
	return true;
}

/* look_refused - check whether a staged key contains a chunk that could not be stored. */
static bool look_refused(void *arg, const char *key, const struct stage_entry *x)
{
	struct commit_tree_tree *t = arg;

	t->key = key;
	if (x->kind == STAGE_DATA || x->kind == STAGE_ALIAS)
		(void)zarr_source_key(t->now, key, find_refused, t);
	return !t->failed;
}

/* added - a new array will be created: record the filters that its writer requested. */
static int added(void *arg, uint32_t array, const struct sink_new *how, struct err *e)
{
	struct commit_tree_tree *t = arg;
	int rc = commit_chains_note(&t->chains, &t->now->ds, array, &how->chain,
				    strcmp(t->now->ds.format, "Zarr v3") == 0);

	return rc ? err_nomem(e) : 0;
}

static const struct diff_observer observer = {.added = added};

static int commit_tree_gate(void *arg, struct err *e)
{
	struct commit_tree_tree *t = arg;
	int rc = commit_chains_keep(t->dir_fd, &t->chains, e);

	rc = rc ? rc : commit_layouts_keep(t->setup->cfg, t->dir_fd, t->now, e);
	if (rc < 0)
		return rc;
	t->kept = true;
	return t->gate ? t->gate(t->arg, e) : 0;
}

static int push_tree(struct commit_tree_tree *t, const char *path, int dir_fd, struct err *e)
{
	const struct app *setup = t->setup;
	struct diff_job job = {
		.was = t->was,
		.now = t->now,
		.changed = commit_tree_changed,
		.refused = commit_tree_refused,
		.observer = &observer,
		.gate = commit_tree_gate,
		.arg = t,
		.memory = MEMORY,
	};
	int rc = hdf5_sink_open(path, t->view->source, dir_fd, &job.sink, e);

	rc = rc ? rc : commit_push(setup, PLAN_HDF5, &job, e);
	if (rc == 0 && !t->kept) /* metadata may differ in the layout alone */
		rc = commit_layouts_keep(setup->cfg, dir_fd, t->now, e);
	return rc;
}

/* commit_tree_say - send a message for the server's log, as a committing process has no log. */
NZ_PRINTF(2, 3) static void commit_tree_say(struct commit_tree_tree *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (t->say)
		t->say(t->arg, text);
}

/* grows - true if the file has an unlimited dimension of this name. */
static bool grows(const struct commit_tree_tree *t, const char *name)
{
	const struct dataset *ds = &t->view->source->ds;

	for (uint32_t i = 0; i < ds->n_dims; i++)
		if (ds->dims[i].unlimited && strcmp(ds->dims[i].name, name) == 0)
			return true;
	return false;
}

/* say_beyond - report variables that are longer than their dimension's variable, c. */
static void say_beyond(struct commit_tree_tree *t, const struct ds_array *c)
{
	const struct dataset *ds = &t->now->ds;

	for (uint32_t k = 0; k < ds->n_arrays; k++) {
		const struct ds_array *a = &ds->arrays[k];

		for (uint32_t x = 0; x < a->rank; x++)
			if (a->dims[x] == c->dims[0] && a->shape[x] > c->shape[0])
				commit_tree_say(t,
						"variable '%.100s' has length %llu along "
						"dimension '%.100s', which has the fixed length "
						"%llu: netCDF programs see the rest after "
						"'%.100s' is resized as well",
						a->name, (unsigned long long)a->shape[x],
						c->name, (unsigned long long)c->shape[0],
						c->name);
	}
}

/* say_longer - a writer that writes array by array may not have extended a dimension's variable
 * yet, or may have forgotten it. */
static void say_longer(struct commit_tree_tree *t)
{
	const struct dataset *ds = &t->now->ds;

	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *c = &ds->arrays[i];
		const struct ds_dim *d = c->rank == 1 ? &ds->dims[c->dims[0]] : NULL;

		if (d && strcmp(d->name, c->name) == 0 && d->group == c->group &&
		    c->shape[0] < d->len && !grows(t, d->name))
			say_beyond(t, c);
	}
}

int commit_tree(const struct app *setup, const char *path, const struct source_model *model,
		int dir_fd, uint64_t generation, bool all,
		int (*gate_fn)(void *arg, struct err *e),
		void (*say_fn)(void *arg, const char *text), void *arg, struct buf *left,
		struct err *e)
{
	struct commit_tree_tree t = {.setup = setup,
				     .dir_fd = dir_fd,
				     .generation = generation,
				     .left = left,
				     .gate = gate_fn,
				     .say = say_fn,
				     .arg = arg};
	int rc;

	buf_init(&t.chains, CHAINS_BYTES);
	rc = commit_tree_open_file(&t, path, model, dir_fd, e);

	rc = rc ? rc : open_trees(&t, dir_fd, all, e);
	if (rc == 0) {
		if (stage_each(t.stage, generation, commit_tree_look, &t) < 0)
			t.failed = true;
		rc = t.failed ? err_nomem(e) : commit_chunks_sort(&t.changed, e);
	}
	rc = rc ? rc : push_tree(&t, path, dir_fd, e);
	if (rc == 0)
		say_longer(&t);
	if (rc == 0 && t.n_refused > 0 && stage_each(t.stage, generation, look_refused, &t) < 0)
		t.failed = true;
	if (rc == 0 && t.failed)
		rc = err_nomem(e);
	commit_tree_release(&t);
	return rc;
}
