/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_view.c - walks a view and copies its files with several threads.
 *
 * The view is the one that a mount would show: a chunk with the same encoding in both formats is a
 * range of the source, byte for byte, others are decoded or encoded, and a file's size is exact.
 * The result is the same as if a program copied the mount, without the kernel.
 *
 * Files are handed out in the order in which the view lists them, which is the same in every run
 * over the same source: a later run only needs the number of finished units. */
#include "fusefs/cmd/convert/convert_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/app/workers.h"

#define BATCH 64      /* entries of a directory per listing */
#define DIRS_MAX 4096 /* nesting limit of directories */

/* copy_view_node - a directory of the walk. */
struct copy_view_node {
	char *path; /* owned; "" the root */
	uint64_t id, cookie;
	bool over;
	uint32_t n, at;
	struct copy_view_entry {
		char *path; /* owned */
		uint64_t id;
		bool is_dir;
	} v[BATCH];
};

/* convert_walk - state of the walk: the directories from the root down. */
struct convert_walk {
	struct copy_view_node **v;
	size_t n, cap;
	struct convert_unit *docs; /* metadata files that are copied last */
	size_t n_docs, cap_docs;
	bool ending;
	uint64_t parts_at, parts_len; /* of a single file that is copied in parts */
	struct convert_unit whole;
};

struct convert_worker {
	bool busy;       /* c->lock: unit `number` is not done */
	uint64_t number; /* c->lock */
};

bool convert_is_doc(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return strncmp(name, ".z", 2) == 0 || strncmp(name, ".nc", 3) == 0 ||
	       strcmp(name, "zarr.json") == 0;
}

int convert_read(struct convert *c, uint64_t id, uint64_t off, uint8_t *out, size_t len,
		 size_t *ret, struct err *e)
{
	struct view *v = c->view;
	struct span span;
	int rc = v->ops->read(v, id, 0, off, len, out, &span, e);

	rc = rc ? rc : span_fetch(&span, out, len, ret, e);
	/* bytes of a file that changed are not usable */
	return rc ? rc : source_check(c->source, e);
}

/* ---- the walk ---- */

struct copy_view_listing {
	struct copy_view_node *node;
	bool failed;
};

static bool copy_view_take_entry(void *arg, const char *name, uint64_t id, bool is_dir,
				 const struct view_attr *attr NZ_UNUSED, uint64_t next)
{
	struct copy_view_listing *l = arg;
	struct copy_view_node *d = l->node;
	struct copy_view_entry *x = &d->v[d->n];

	*x = (struct copy_view_entry){.id = id, .is_dir = is_dir};
	if (asprintf(&x->path, "%s%s%s", d->path, *d->path ? "/" : "", name) < 0) {
		x->path = NULL;
		l->failed = true;
		return false;
	}
	d->n++;
	d->cookie = next;
	return d->n < BATCH;
}

/* more - list the next entries of a directory. */
static int more(struct convert *c, struct copy_view_node *d, struct err *e)
{
	struct copy_view_listing l = {.node = d};
	int rc;

	d->n = d->at = 0;
	rc = c->view->ops->list(c->view, d->id, d->cookie, false, copy_view_take_entry, &l, e);
	if (rc == 0 && l.failed)
		rc = err_nomem(e);
	d->over = d->n < BATCH;
	return rc;
}

static int copy_view_enter(struct convert_walk *w, char *path, uint64_t id, struct err *e)
{
	struct copy_view_node *d = w->n < DIRS_MAX ? alloc_array(1, sizeof(*d)) : NULL;

	if (!d || grow_array(&w->v, &w->cap, w->n + 1, sizeof(*w->v)) < 0) {
		free(d);
		free(path);
		return err_nomem(e);
	}
	d->path = path;
	d->id = id;
	w->v[w->n++] = d;
	return 0;
}

static void copy_view_leave(struct convert_walk *w)
{
	struct copy_view_node *d = w->v[--w->n];

	for (uint32_t i = d->at; i < d->n; i++)
		free(d->v[i].path);
	free(d->path);
	free(d);
}

static int put_off(struct convert_walk *w, struct copy_view_entry *x, struct err *e)
{
	if (grow_array(&w->docs, &w->cap_docs, w->n_docs + 1, sizeof(*w->docs)) < 0) {
		free(x->path);
		return err_nomem(e);
	}
	w->docs[w->n_docs++] =
		(struct convert_unit){.path = x->path, .id = x->id, .off = UINT64_MAX};
	return 0;
}

/* next_file - the next file of the walk. -ENOENT: no more files. */
static int next_file(struct convert *c, struct convert_unit *ret, struct err *e)
{
	struct convert_walk *w = c->walk;
	int rc = 0;

	while (rc == 0 && w->n > 0) {
		struct copy_view_node *d = w->v[w->n - 1];
		struct copy_view_entry x;

		if (d->at == d->n) {
			if (d->over)
				copy_view_leave(w);
			else
				rc = more(c, d, e);
			continue;
		}
		x = d->v[d->at++];
		if (x.is_dir) {
			rc = c->out->ops->dir ? c->out->ops->dir(c->out, x.path, e) : 0;
			if (rc == 0)
				rc = copy_view_enter(w, x.path, x.id, e);
			else
				free(x.path);
		} else if (c->out->ops->docs_last && convert_is_doc(x.path)) {
			rc = put_off(w, &x, e);
		} else {
			*ret = (struct convert_unit){
				.path = x.path, .id = x.id, .off = UINT64_MAX};
			return 0;
		}
	}
	return rc ? rc : -ENOENT;
}

/* by_depth - order metadata files, which are taken from the end, so that those that identify a
 * store come after all files below it. */
static int by_depth(const void *p, const void *q)
{
	const struct convert_unit *a = p, *b = q;
	size_t n = 0, m = 0;

	for (const char *s = a->path; *s; s++)
		n += *s == '/';
	for (const char *s = b->path; *s; s++)
		m += *s == '/';
	if (n != m)
		return n < m ? -1 : 1;
	return strcmp(a->path, b->path); /* .zmetadata after .zgroup */
}

/* next_part - the next part of the single file. */
static int next_part(struct convert *c, struct convert_unit *ret, struct err *e)
{
	struct convert_walk *w = c->walk;
	struct view_attr attr;
	int rc = 0;

	if (!w->whole.path) {
		rc = next_file(c, &w->whole, e);
		rc = rc ? rc : c->view->ops->getattr(c->view, w->whole.id, &attr, e);
		if (rc == 0 && attr.unknown) /* reading it gives the error */
			rc = convert_read(c, w->whole.id, 0, (uint8_t[1]){0}, 1, &(size_t){0},
					  e);
		if (rc < 0)
			return rc;
		w->parts_len = attr.size;
		(void)pthread_mutex_lock(&c->lock);
		c->all = (double)attr.size;
		(void)pthread_mutex_unlock(&c->lock);
	}
	if (w->parts_at >= w->parts_len)
		return -ENOENT;
	*ret = (struct convert_unit){
		.id = w->whole.id,
		.off = w->parts_at,
		.len = u64_min(CONVERT_PIECE, w->parts_len - w->parts_at),
	};
	w->parts_at += ret->len;
	return 0;
}

/* next_unit - call without the lock, because it lists directories; by one thread at a time. */
static int next_unit(struct convert *c, struct convert_unit *ret, struct err *e)
{
	struct convert_walk *w = c->walk;
	int rc;

	if (c->out->ops->one_file)
		return next_part(c, ret, e);
	rc = w->ending ? -ENOENT : next_file(c, ret, e);
	if (rc != -ENOENT)
		return rc;
	if (!w->ending && w->n_docs)
		qsort(w->docs, w->n_docs, sizeof(*w->docs), by_depth);
	w->ending = true;
	if (w->n_docs == 0)
		return -ENOENT;
	*ret = w->docs[--w->n_docs];
	ret->last = true;
	return 0;
}

static void walk_free(struct convert_walk *w)
{
	while (w->n)
		copy_view_leave(w);
	for (size_t i = 0; i < w->n_docs; i++)
		free(w->docs[i].path);
	free(w->whole.path);
	free(w->docs);
	free(w->v);
}

/* ---- threads ---- */

/* others_busy - true if a metadata file that comes last has to wait for earlier units. Call with
 * the lock. */
static bool others_busy(const struct convert *c, const struct convert_worker *w)
{
	for (uint32_t i = 0; i < c->n_workers; i++)
		if (c->workers[i].busy && c->workers[i].number < w->number)
			return true;
	return false;
}

/* copy_view_take - get a unit for a thread. false: no more units. Call with the lock. */
static bool copy_view_take(struct convert *c, struct convert_worker *w,
			   struct convert_unit *ret)
{
	struct err e = ERR_INIT;
	int rc = 0;

	w->busy = false;
	(void)pthread_cond_broadcast(&c->tick);
	while (rc == 0 && c->stop.code == 0) {
		if (c->walking) {
			(void)pthread_cond_wait(&c->tick, &c->lock);
			continue;
		}
		c->walking = true;
		(void)pthread_mutex_unlock(&c->lock);
		rc = next_unit(c, ret, &e);
		(void)pthread_mutex_lock(&c->lock);
		c->walking = false;
		(void)pthread_cond_broadcast(&c->tick);
		if (rc < 0)
			break;
		if (c->taken++ < c->skip) {
			free(ret->path);
			continue;
		}
		w->number = c->taken - 1;
		w->busy = true;
		while (ret->last && others_busy(c, w) && c->stop.code == 0)
			(void)pthread_cond_wait(&c->tick, &c->lock);
		return true;
	}
	if (rc < 0 && rc != -ENOENT && c->stop.code == 0) {
		if (e.code == 0)
			(void)err_set(&e, rc, "the source could not be listed");
		c->stop = e;
	}
	return false;
}

static void copy_view_work(void *arg, uint32_t i, uint8_t *room)
{
	struct convert *c = arg;
	struct convert_worker *w = &c->workers[i];
	struct convert_unit u;
	bool stop = false;

	(void)pthread_mutex_lock(&c->lock);
	while (!stop && copy_view_take(c, w, &u)) {
		struct err e = ERR_INIT;
		uint64_t bytes = 0;
		int rc;

		stop = c->stop.code != 0;
		(void)pthread_mutex_unlock(&c->lock);
		rc = stop ? 0 : c->out->ops->write(c->out, c, &u, room, &bytes, &e);
		(void)pthread_mutex_lock(&c->lock);
		free(u.path);
		c->files += rc == 0 && !stop && u.off == UINT64_MAX;
		c->bytes += bytes;
		if (rc < 0 && c->stop.code == 0) {
			if (e.code == 0)
				(void)err_set(&e, rc, "a file could not be copied");
			c->stop = e;
		}
		stop |= c->stop.code != 0;
	}
	if (!stop)
		w->busy = false;
	(void)pthread_mutex_unlock(&c->lock);
}

/* copy_view_done_to - number of units from the first on that are all written. Call with the
 * lock. */
static uint64_t copy_view_done_to(const struct convert *c)
{
	uint64_t n = c->taken;

	for (uint32_t i = 0; i < c->n_workers; i++)
		if (c->workers[i].busy)
			n = u64_min(n, c->workers[i].number);
	return n;
}

static void copy_view_on_progress(void *arg)
{
	struct convert *c = arg;
	uint64_t done;

	(void)pthread_mutex_lock(&c->lock);
	done = copy_view_done_to(c);
	(void)pthread_mutex_unlock(&c->lock);
	c->on_progress(c->progress_arg, done);
}

int convert_copy(struct convert *c, void (*tick)(void *arg, uint64_t done), void *arg,
		 struct err *e)
{
	const struct workers w = {.n = c->n_workers,
				  .room = CONVERT_PIECE,
				  .lock = &c->lock,
				  .tick = &c->tick,
				  .running = &c->running,
				  .work = copy_view_work,
				  .on_progress = copy_view_on_progress,
				  .arg = c};
	struct convert_walk walk = {0};
	char *root = strdup("");

	c->walk = &walk;
	c->workers = alloc_array(c->n_workers, sizeof(*c->workers));
	if (!c->workers || !root || copy_view_enter(&walk, root, VIEW_ROOT, e) < 0) {
		if (c->workers && !walk.n)
			root = NULL; /* owned by the walk */
		free(c->workers);
		free(root);
		return err_nomem(e);
	}
	c->on_progress = tick;
	c->progress_arg = arg;
	if (workers_run(&w, &c->stop) < 0 && c->stop.code == 0)
		(void)err_nomem(&c->stop);
	free(c->workers);
	c->workers = NULL;
	walk_free(&walk);
	if (c->stop.code && e)
		*e = c->stop;
	return c->stop.code;
}
