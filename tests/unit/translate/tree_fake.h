/* SPDX-License-Identifier: BSD-3-Clause */
/* tree_fake.h - for tests of the writable tree: a dataset that is a list of files in memory, a view
 * of it as a Zarr store, and a commit that puts staged files into the list. */
#ifndef TESTS_UNIT_TRANSLATE_TREE_FAKE_H
#define TESTS_UNIT_TRANSLATE_TREE_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "translate/stage/stage.h"
#include "translate/tree/tree.h"

/* ---- the dataset ---- */

struct dfile {
	char *key;
	uint8_t *data;
	size_t len;
};

struct data {
	pthread_mutex_t lock;
	struct dfile *v; /* lock */
	size_t n, cap;
	uint64_t state; /* lock: changes when another program changes the dataset */
	atomic_int opened, open_now, commits;
	atomic_int inside; /* requests that look at one of its views */
	/* called once, in the middle of a listing */
	void (*listed)(void *arg);
	void *listed_arg;
	/* called once, by the next poll before it looks */
	void (*polled)(void *arg);
	void *polled_arg;
	/* what a commit is to do */
	atomic_int fail; /* its code; once for each time in fail_times */
	atomic_int fail_times;
	atomic_bool refuse_all; /* everything is left */
	const char *stays; /* a key that no commit can remove: it has the text "stays" then */
	/* one look-up of fail_key fails, after fail_skip that succeed */
	const char *fail_key;
	int fail_skip;
	/* so many look-ups of unsure_key do not find out its size */
	const char *unsure_key;
	int unsure_times;
};

static inline struct dfile *data_find(struct data *d, const char *key)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->v[i].key, key) == 0)
			return &d->v[i];
	return NULL;
}

static inline void data_put(struct data *d, const char *key, const void *p, size_t len)
{
	struct dfile *f = data_find(d, key);

	if (!f) {
		assert_int_equal(grow_array(&d->v, &d->cap, d->n + 1, sizeof(*d->v)), 0);
		f = &d->v[d->n++];
		*f = (struct dfile){.key = strdup(key)};
	}
	free(f->data);
	f->data = malloc(len ? len : 1);
	assert_non_null(f->data);
	if (len)
		memcpy(f->data, p, len);
	f->len = len;
}

static inline void data_text(struct data *d, const char *key, const char *text)
{
	data_put(d, key, text, strlen(text));
}

/* data_clear - all keys. */
static inline void data_clear(struct data *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->v[i].key);
		free(d->v[i].data);
	}
	d->n = 0;
}

static inline void data_free(struct data *d)
{
	data_clear(d);
	free(d->v);
}

/* ---- a view of one state of it: a copy ---- */

struct fsource {
	struct source base;
	struct data *d;
	uint64_t state;
	atomic_bool held;
};

struct fnode {
	char *key; /* files, and directories that come from them */
	bool is_dir;
	uint8_t *data;
	size_t len;
};

struct fview {
	struct view base;
	struct data *d;
	struct fnode *v; /* by id - 1 */
	size_t n, cap;
};

static inline struct fview *fview_of(struct view *v)
{
	return CONTAINER_OF(v, struct fview, base);
}

static inline size_t fview_find(const struct fview *v, const char *key)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->v[i].key, key) == 0)
			return i + 1;
	return 0;
}

static inline void fview_add(struct fview *v, const char *key, bool is_dir, const void *p,
			     size_t len)
{
	struct fnode *n;

	if (fview_find(v, key))
		return;
	assert_int_equal(grow_array(&v->v, &v->cap, v->n + 1, sizeof(*v->v)), 0);
	n = &v->v[v->n++];
	*n = (struct fnode){.key = strdup(key), .is_dir = is_dir, .len = len};
	n->data = malloc(len ? len : 1);
	if (len)
		memcpy(n->data, p, len);
}

static inline int fview_getattr(struct view *v, uint64_t id, struct view_attr *ret,
				struct err *e)
{
	struct fview *f = fview_of(v);

	if (!id || id > f->n)
		return err_set(e, -ESTALE, "no id");
	*ret = (struct view_attr){.id = id,
				  .is_dir = f->v[id - 1].is_dir,
				  .nlink = 1,
				  .size = f->v[id - 1].is_dir ? 0 : f->v[id - 1].len};
	if (strstr(f->v[id - 1].key, "unsure"))
		ret->unknown = true;
	return 0;
}

static inline int fview_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
			       struct view_attr *ret, struct err *e)
{
	struct fview *f = fview_of(v);
	char key[STORE_KEY_MAX + 300];
	uint64_t id;

	assert_true(dir && dir <= f->n);
	if (!f->v[dir - 1].is_dir)
		return err_set(e, -ENOTDIR, "no directory");
	if (len == 7 && memcmp(name, "damaged", 7) == 0)
		return err_set(e, -EIO, "it is damaged");
	atomic_fetch_add(&f->d->inside, 1);
	(void)snprintf(key, sizeof(key), "%s%s%.*s", f->v[dir - 1].key,
		       *f->v[dir - 1].key ? "/" : "", (int)len, name);
	id = fview_find(f, key);
	if (f->d->fail_key && strcmp(key, f->d->fail_key) == 0 && f->d->fail_skip-- == 0) {
		atomic_fetch_sub(&f->d->inside, 1);
		return err_set(e, -EIO, "made up");
	}
	if (f->d->unsure_key && strcmp(key, f->d->unsure_key) == 0 && f->d->unsure_times-- > 0) {
		atomic_fetch_sub(&f->d->inside, 1);
		*ret = (struct view_attr){.id = id, .nlink = 1, .size = 1, .unknown = true};
		(void)err_set(e, -ETIMEDOUT, "made up");
		return 0;
	}
	(void)sched_yield();
	atomic_fetch_sub(&f->d->inside, 1);
	return id ? fview_getattr(v, id, ret, e) : err_set(e, -ENOENT, "no '%s'", key);
}

static inline int fview_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
			     view_emit *emit, void *arg, struct err *e)
{
	struct fview *f = fview_of(v);
	const char *key = f->v[dir - 1].key;
	size_t n = strlen(key);

	if (f->d->listed)
		f->d->listed(f->d->listed_arg);
	f->d->listed = NULL;
	for (uint64_t id = cookie > 1 ? cookie : 2; id <= f->n; id++) {
		const char *k = f->v[id - 1].key;
		const char *name = k + n + (n > 0);
		struct view_attr a;

		if ((n && (strncmp(k, key, n) != 0 || k[n] != '/')) || strchr(name, '/'))
			continue;
		assert_int_equal(fview_getattr(v, id, &a, e), 0);
		if (!emit(arg, name, id, a.is_dir, want_attr ? &a : NULL, id + 1))
			break;
	}
	return 0;
}

/* fview_read - even offsets from memory, odd ones into room, and the last byte as a zero when it is
 * one. */
static inline int fview_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
			     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	struct fview *f = fview_of(v);
	const struct fnode *n = &f->v[id - 1];
	size_t got = off < n->len ? n->len - (size_t)off : 0;
	bool zero;

	(void)e;
	atomic_fetch_add(&f->d->inside, 1);
	got = got < len ? got : len;
	zero = got && n->data[off + got - 1] == 0;
	if (off % 2 && got)
		memcpy(room, n->data + off, got);
	*ret = (struct span){.mem = off % 2 ? room : n->data + off,
			     .fd = -1,
			     .len = got - zero,
			     .zeros = zero};
	(void)sched_yield();
	atomic_fetch_sub(&f->d->inside, 1);
	return 0;
}

static inline uint64_t fview_parent(struct view *v, uint64_t dir)
{
	(void)v;
	return dir;
}

static inline void fview_close(struct view *v)
{
	struct fview *f = fview_of(v);

	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].key);
		free(f->v[i].data);
	}
	atomic_fetch_sub(&f->d->open_now, 1);
	free(f->v);
	free(f);
}

static const struct view_ops fview_ops = {
	.name = "fake",
	.close = fview_close,
	.lookup = fview_lookup,
	.getattr = fview_getattr,
	.list = fview_list,
	.read = fview_read,
	.parent = fview_parent,
};

static inline int fsource_poll(struct source *s, struct err *e)
{
	struct fsource *f = CONTAINER_OF(s, struct fsource, base);
	bool same;

	if (atomic_load(&f->held))
		return 0;
	if (f->d->polled) {
		void (*polled)(void *arg) = f->d->polled;

		f->d->polled = NULL;
		polled(f->d->polled_arg);
	}
	(void)pthread_mutex_lock(&f->d->lock);
	same = f->d->state == f->state;
	(void)pthread_mutex_unlock(&f->d->lock);
	return same ? 0 : err_set(e, -ESTALE, "the dataset changed");
}

static inline void fsource_hold(struct source *s, bool on)
{
	atomic_store(&CONTAINER_OF(s, struct fsource, base)->held, on);
}

static inline void fsource_close(struct source *s)
{
	free(CONTAINER_OF(s, struct fsource, base));
}

static const struct source_ops fsource_ops = {
	.name = "fake",
	.close = fsource_close,
	.check = fsource_poll,
	.hold = fsource_hold,
};

static inline int data_open(void *arg, struct view **ret, struct err *e)
{
	struct data *d = arg;
	struct fsource *s = calloc(1, sizeof(*s));
	struct fview *v = calloc(1, sizeof(*v));

	(void)e;
	assert_non_null(s);
	assert_non_null(v);
	s->base.ops = &fsource_ops;
	s->base.ds.st.st_mode = S_IFREG | 0644;
	s->d = v->d = d;
	v->base.ops = &fview_ops;
	v->base.source = &s->base;
	fview_add(v, "", true, "", 0);
	(void)pthread_mutex_lock(&d->lock);
	s->state = d->state;
	for (size_t i = 0; i < d->n; i++) {
		char *slash = d->v[i].key;

		while ((slash = strchr(slash, '/'))) {
			*slash = '\0';
			fview_add(v, d->v[i].key, true, "", 0);
			*slash++ = '/';
		}
		fview_add(v, d->v[i].key, false, d->v[i].data, d->v[i].len);
	}
	(void)pthread_mutex_unlock(&d->lock);
	atomic_fetch_add(&d->opened, 1);
	atomic_fetch_add(&d->open_now, 1);
	*ret = &v->base;
	return 0;
}

/* ---- a commit: every file of the tree goes into the dataset, but for those whose name begins with
 * "tmp", which are left ---- */

struct fcommit {
	struct data *d;
	int dir_fd;
	struct data fresh;
	struct store *tree;
	int rc;
};

static inline bool fcommit_entry(void *arg, const char *name, bool is_dir,
				 const struct store_stat *st);

struct fwalk {
	struct fcommit *c;
	const char *dir;
};

static inline void fcommit_dir(struct fcommit *c, const char *dir)
{
	struct fwalk w = {.c = c, .dir = dir};
	struct err e = ERR_INIT;

	if (!c->rc)
		c->rc = store_list(c->tree, dir, false, fcommit_entry, &w, &e);
}

static inline bool fcommit_entry(void *arg, const char *name, bool is_dir,
				 const struct store_stat *st)
{
	struct fwalk *w = arg;
	char key[STORE_KEY_MAX + 1];
	struct err e = ERR_INIT;
	struct buf b;

	(void)st;
	(void)snprintf(key, sizeof(key), "%s%s%s", w->dir, *w->dir ? "/" : "", name);
	if (strncmp(name, "tmp", 3) == 0)
		return true;
	if (is_dir) {
		fcommit_dir(w->c, key);
		return !w->c->rc;
	}
	buf_init(&b, 1 << 30);
	w->c->rc = store_get(w->c->tree, key, &b, NULL, &e);
	if (!w->c->rc)
		data_put(&w->c->fresh, key, b.data, b.len);
	buf_release(&b);
	return !w->c->rc;
}

struct fleft {
	struct buf *keys;
	bool all;
};

static inline bool fleft_key(void *arg, const char *key, const struct stage_entry *x)
{
	struct fleft *l = arg;
	const char *name = strrchr(key, '/');

	name = name ? name + 1 : key;
	if (x->kind != STAGE_DATA || (!l->all && strncmp(name, "tmp", 3) != 0))
		return true;
	buf_put(l->keys, key, strlen(key) + 1);
	return buf_ok(l->keys);
}

/* data_commit - as a process of its own would: with a stage that it opened by itself. */
static inline int data_commit(struct data *d, int dir_fd, uint64_t generation,
			      void (*quiesce)(void *view), void *view, struct buf *keys,
			      struct err *e)
{
	struct fcommit c = {.d = d};
	struct fleft left = {.keys = keys, .all = atomic_load(&d->refuse_all)};
	struct view *base;
	struct store *below;
	struct stage *s;

	atomic_fetch_add(&d->commits, 1);
	if (atomic_load(&d->fail_times) > 0) {
		atomic_fetch_sub(&d->fail_times, 1);
		return err_set(e, atomic_load(&d->fail), "made up");
	}
	assert_int_equal(data_open(d, &base, e), 0);
	assert_int_equal(stage_open(dir_fd, true, &s, e), 0);
	assert_int_equal(view_store(base, &below, e), 0);
	assert_int_equal(stage_store(s, generation, below, &c.tree, e), 0);
	if (!left.all)
		fcommit_dir(&c, "");
	assert_int_equal(c.rc, 0);
	assert_int_equal(stage_each(s, generation, fleft_key, &left), 0);
	store_close(c.tree);
	store_close(below);
	stage_close(s);
	view_close(base);
	if (!left.all) {
		if (d->stays && !data_find(&c.fresh, d->stays))
			data_text(&c.fresh, d->stays, "stays");
		quiesce(view);
		for (int i = 0; i < 5; i++) {
			assert_int_equal(atomic_load(&d->inside), 0);
			(void)sched_yield();
		}
		(void)pthread_mutex_lock(&d->lock);
		data_clear(d);
		for (size_t i = 0; i < c.fresh.n; i++)
			data_put(d, c.fresh.v[i].key, c.fresh.v[i].data, c.fresh.v[i].len);
		d->state++;
		(void)pthread_mutex_unlock(&d->lock);
	}
	data_free(&c.fresh);
	return 0;
}

#endif
