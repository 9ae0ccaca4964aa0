/* SPDX-License-Identifier: BSD-3-Clause */
/* deferred_arrays.c - new arrays that a commit during the mount leaves staged.
 *
 * netCDF stores strings of a fixed size as characters, with one more dimension, and strings of any
 * length in one chunk. After a commit the view shows such an array in another form than it was
 * written in. A program that has the array open knows the old form, and would take the chunks under
 * the old keys as absent. Therefore such arrays stay staged as they were written until all writes
 * must be in the file: at unmount, when a directory is synced, in a recovery. */
#include <errno.h>
#include <string.h>

#include "fusefs/write/chunk_set.h"

#define PATH_BYTES ((size_t)1 << 20)

/* wait - a store that hides the keys below some keys of another one. */
struct wait {
	struct store base;
	struct store *over; /* borrowed */
	struct commit_paths keys;
};

static struct wait *wait_of(struct store *s)
{
	return CONTAINER_OF(s, struct wait, base);
}

/* waits - true if a key is a deferred array or lies below one. */
static bool waits(const struct wait *w, const char *key)
{
	return commit_paths_find(&w->keys, key, strlen(key)) ||
	       commit_paths_above(&w->keys, key, &(size_t){0});
}

static int deferred_arrays_absent(const char *key, struct err *e)
{
	return err_set(e, -ENOENT, "'%s' is pending", key);
}

static int wait_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct wait *w = wait_of(s);

	return waits(w, key) ? deferred_arrays_absent(key, e)
			     : store_stat(w->over, key, ret, e);
}

struct deferred_listing {
	const struct wait *w;
	const char *key;
	store_emit *emit;
	void *arg;
	char name[STORE_KEY_MAX + 1];
};

static bool deferred_arrays_list_entry(void *arg, const char *name, bool is_dir,
				       const struct store_stat *st)
{
	struct deferred_listing *l = arg;
	size_t n = strlen(l->key), m = strlen(name), at = n ? n + 1 : 0;

	if (at + m > STORE_KEY_MAX)
		return true; /* no key of the view is that long */
	memcpy(l->name, l->key, n);
	if (n)
		l->name[n] = '/';
	memcpy(l->name + at, name, m + 1);
	return waits(l->w, l->name) || l->emit(l->arg, name, is_dir, st);
}

static int wait_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		     void *arg, struct err *e)
{
	struct deferred_listing l = {.w = wait_of(s), .key = key, .emit = emit, .arg = arg};

	if (waits(l.w, key))
		return deferred_arrays_absent(key, e);
	return store_list(l.w->over, key, want_stat, deferred_arrays_list_entry, &l, e);
}

static int wait_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct wait *w = wait_of(s);

	return waits(w, key) ? deferred_arrays_absent(key, e)
			     : store_read_io(w->over, key, io, e);
}

static int wait_check(struct store *s, struct err *e)
{
	return store_check(wait_of(s)->over, e);
}

static void wait_close(struct store *s)
{
	struct wait *w = wait_of(s);

	commit_paths_release(&w->keys);
	free(w);
}

static const struct store_ops wait_ops = {
	.name = "arrays that are not deferred",
	.close = wait_close,
	.stat = wait_stat,
	.list = wait_list,
	.read = wait_read,
	.check = wait_check,
};

/* changes_form - true if the view shows an array of the file in another form than it was written
 * in. */
static bool changes_form(const struct dtype *t)
{
	return dt_is_vlen(t) || (t->kind == DT_STRING && t->size > 1);
}

/* deferred_arrays_path_of - key of an array, in b. NULL: memory is short. */
static const char *deferred_arrays_path_of(const struct dataset *ds, uint32_t array,
					   struct buf *b)
{
	buf_clear(b);
	ds_array_path(ds, array, b);
	buf_putc(b, '\0');
	return buf_ok(b) ? (const char *)b->data + 1 : NULL;
}

static bool is_array(const struct commit_paths *p, const char *path)
{
	const struct commit_path *x = commit_paths_find(p, path, strlen(path));

	return x && x->array != DS_NONE;
}

static int deferred_arrays_gather(struct wait *w, const struct dataset *was,
				  const struct dataset *now)
{
	struct commit_paths old = {.n = 0};
	struct buf b;
	int rc = 0;

	buf_init(&b, PATH_BYTES);
	for (uint32_t i = 0; i < now->n_arrays && rc == 0; i++) {
		const char *path;

		if (!changes_form(&now->arrays[i].type))
			continue;
		if (!old.v)
			rc = commit_paths_of(&old, was);
		path = rc == 0 ? deferred_arrays_path_of(now, i, &b) : NULL;
		if (!path)
			rc = -ENOMEM;
		else if (*path && !is_array(&old, path))
			rc = commit_paths_add(&w->keys, path, i);
	}
	commit_paths_sort(&w->keys);
	commit_paths_release(&old);
	buf_release(&b);
	return rc;
}

bool commit_waits(struct store *seen, const char *key)
{
	return seen && waits(wait_of(seen), key);
}

int commit_wait_for(const struct dataset *was, const struct dataset *now, struct store *over,
		    struct store **ret, struct err *e)
{
	struct wait *w = alloc_array(1, sizeof(*w));

	*ret = NULL;
	if (!w)
		return err_nomem(e);
	w->base.ops = &wait_ops;
	w->over = over;
	if (deferred_arrays_gather(w, was, now) < 0) {
		wait_close(&w->base);
		return err_nomem(e);
	}
	if (w->keys.n)
		*ret = &w->base;
	else
		wait_close(&w->base);
	return 0;
}
