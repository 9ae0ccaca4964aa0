/* SPDX-License-Identifier: BSD-3-Clause */
/* view_store.c - the files of a view as a store: keys are paths from the root. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/lock.h"
#include "translate/stage/stage.h"
#include "translate/contract/view.h"

#define BATCH 64 /* entries that are listed at a time */
#define NAME_LONGEST 255

struct viewed {
	struct store base;
	struct view *v;
	pthread_mutex_t lock;
	char dir[STORE_KEY_MAX + 1]; /* lock: the directory that was last walked to */
	uint64_t dir_id;             /* lock; 0: none */
};

static struct viewed *view_store_of(struct store *s)
{
	return CONTAINER_OF(s, struct viewed, base);
}

/* known_dir - id of a directory, len bytes of a key, where that is the last one; 0: it is not. */
static uint64_t known_dir(struct viewed *s, const char *dir, size_t len)
{
	if (!len)
		return VIEW_ROOT;
	LOCK_SCOPE(&s->lock);
	return s->dir_id && str_is(s->dir, dir, len) ? s->dir_id : 0;
}

static void know_dir(struct viewed *s, const char *dir, size_t len, uint64_t id)
{
	LOCK_SCOPE(&s->lock);

	memcpy(s->dir, dir, len);
	s->dir[len] = '\0';
	s->dir_id = id;
}

int view_find(struct store *st, const char *key, struct view_attr *ret, struct err *e)
{
	struct viewed *s = view_store_of(st);
	const struct view_ops *ops = s->v->ops;
	const char *last = strrchr(key, '/');
	size_t dir_len = last ? (size_t)(last - key) : 0;
	uint64_t id = known_dir(s, key, dir_len);
	const char *at = id && last ? last + 1 : key;
	int rc;

	if (!*key)
		return ops->getattr(s->v, VIEW_ROOT, ret, e);
	id = id ? id : VIEW_ROOT;
	for (;;) {
		size_t len = strcspn(at, "/");

		rc = ops->lookup(s->v, id, at, len, ret, e);
		if (rc || !at[len])
			break;
		if (!ret->is_dir)
			return err_set(e, -ENOENT, "'%.200s' is not a directory", key);
		id = ret->id;
		at += len + 1;
	}
	if (!rc && dir_len)
		know_dir(s, key, dir_len, id);
	return rc == -ENOTDIR ? -ENOENT : rc;
}

static void view_store_fill(const struct view_attr *a, struct store_stat *ret)
{
	*ret = (struct store_stat){.is_dir = a->is_dir,
				   .odd = a->unknown || a->is_link,
				   .size = a->is_dir ? 0 : a->size,
				   .version = a->id};
}

int view_why_unknown(const char *key, const struct err *why, struct err *e)
{
	if (why->code < 0 && why->code != -ENOENT)
		return err_set(e, why->code, "%s", why->msg);
	return err_set(e, -EIO, "'%.200s' cannot be examined", key);
}

/* view_store_look - as view_find, but a size that could not be determined is an error if the caller
 * reads the file, or if it says nothing about the file. */
static int view_store_look(struct store *st, const char *key, bool reads, struct view_attr *ret,
			   struct err *e)
{
	struct err why = ERR_INIT;
	int rc = view_find(st, key, ret, &why);

	if (rc)
		return err_set(e, rc, "%s", why.msg);
	return ret->unknown && (reads || err_is_transient(why.code))
		       ? view_why_unknown(key, &why, e)
		       : 0;
}

static int viewed_stat(struct store *st, const char *key, struct store_stat *ret, struct err *e)
{
	struct view_attr a;
	int rc = view_store_look(st, key, false, &a, e);

	if (!rc)
		view_store_fill(&a, ret);
	return rc;
}

/* batch - entries of a listing, so that the receiver may call the view. */
struct batch {
	size_t n;
	uint64_t next;
	struct {
		char name[NAME_LONGEST + 1];
		uint64_t id;
		bool is_dir, has_attr;
		struct view_attr attr;
	} v[BATCH];
};

static bool view_store_gather(void *arg, const char *name, uint64_t id, bool is_dir,
			      const struct view_attr *attr, uint64_t next)
{
	struct batch *b = arg;
	size_t len = strlen(name);

	if (b->n == BATCH)
		return false;
	b->next = next;
	if (len > NAME_LONGEST)
		return true;
	memcpy(b->v[b->n].name, name, len + 1);
	b->v[b->n].id = id;
	b->v[b->n].is_dir = is_dir;
	b->v[b->n].has_attr = attr != NULL;
	if (attr)
		b->v[b->n].attr = *attr;
	b->n++;
	return true;
}

static int viewed_list(struct store *st, const char *key, bool want_stat, store_emit *emit,
		       void *arg, struct err *e)
{
	const struct view_ops *ops = view_store_of(st)->v->ops;
	auto_free struct batch *b = alloc_array(1, sizeof(*b));
	struct view_attr dir;
	int rc = b ? view_find(st, key, &dir, e) : err_nomem(e);

	if (!rc && !dir.is_dir)
		rc = err_set(e, -ENOTDIR, "'%.200s' is not a directory", key);
	while (!rc) {
		b->n = 0;
		rc = ops->list(view_store_of(st)->v, dir.id, b->next, want_stat,
			       view_store_gather, b, e);
		if (rc || !b->n)
			break;
		for (size_t i = 0; !rc && i < b->n; i++) {
			struct err why = ERR_INIT;
			struct store_stat stat;

			if (want_stat && (!b->v[i].has_attr || b->v[i].attr.unknown))
				rc = ops->getattr(view_store_of(st)->v, b->v[i].id,
						  &b->v[i].attr, &why);
			if (rc)
				return err_set(e, rc, "%s", why.msg);
			if (want_stat && b->v[i].attr.unknown && err_is_transient(why.code))
				return view_why_unknown(b->v[i].name, &why, e);
			if (want_stat)
				view_store_fill(&b->v[i].attr, &stat);
			if (!emit(arg, b->v[i].name, b->v[i].is_dir, want_stat ? &stat : NULL))
				return 0;
		}
	}
	return rc;
}

int view_read(struct view *v, uint64_t id, const char *name, uint64_t off, uint8_t *out,
	      size_t len, struct err *e)
{
	for (size_t done = 0, n; done < len; done += n) {
		struct span sp = {0};
		int rc = v->ops->read(v, id, 0, off + done, len - done, out + done, &sp, e);

		n = 0;
		rc = rc ? rc : span_fetch(&sp, out + done, len - done, &n, e);
		if (!rc && v->source)
			rc = source_check(v->source, e);
		if (!rc && !n)
			rc = err_set(e, -EIO, "'%.200s' ends at byte %llu", name,
				     (unsigned long long)(off + done));
		if (rc)
			return rc;
	}
	return 0;
}

static int viewed_read(struct store *st, const char *key, struct store_io *io, struct err *e)
{
	struct view_attr a;
	int rc = view_store_look(st, key, true, &a, e);

	if (!rc && a.is_dir)
		rc = err_set(e, -EISDIR, "'%.200s' is a directory", key);
	rc = rc ? rc : store_io_size(io, key, a.size, e);
	rc = rc ? rc : view_read(view_store_of(st)->v, a.id, key, io->off, io->to, io->len, e);
	io->version = rc ? 0 : a.id;
	return rc;
}

static int viewed_check(struct store *st, struct err *e)
{
	const struct view *v = view_store_of(st)->v;

	return v->source ? source_check(v->source, e) : 0;
}

static void viewed_close(struct store *st)
{
	(void)pthread_mutex_destroy(&view_store_of(st)->lock);
	free(view_store_of(st));
}

static const struct store_ops viewed_ops = {
	.name = "view",
	.close = viewed_close,
	.stat = viewed_stat,
	.list = viewed_list,
	.read = viewed_read,
	.check = viewed_check,
};

int view_store(struct view *v, struct store **ret, struct err *e)
{
	struct viewed *s = alloc_array(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->base.ops = &viewed_ops;
	s->v = v;
	(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail without attributes */
	*ret = &s->base;
	return 0;
}
