/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_remote_fake.h - a store that is far away, as one over a remote service behaves: what was
 * fetched is kept, a look at something unknown is a request and brings its first bytes along, and
 * what was wanted is under way. Counts requests, and how often somebody had to wait: all that is
 * under way then arrives. Behind it is a store in memory. */
#ifndef TESTS_UNIT_NCZARR_SOURCE_BLOB_REMOTE_FAKE_H
#define TESTS_UNIT_NCZARR_SOURCE_BLOB_REMOTE_FAKE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nczarr/store/store.h"
#include "tests/unit/nczarr/store_mem.h"

#define FAR_FIRST 4096 /* bytes that come with a stat */
#define FAR_PARTS 16

struct far_object {
	char key[200];
	bool flying, known, absent;
	struct store_stat st;
	struct store_range part[FAR_PARTS]; /* fetched or flying; key unused, off resolved */
	size_t n;
};

struct blob_proxy {
	struct store base;
	struct store *real;
	struct far_object *list;
	size_t n, cap;
	int requests, rounds, lists, fresh;
	int wanted;         /* ranges that a want began to fetch */
	const char *broken; /* this key fails with broken_rc; NULL */
	int broken_rc;
	char log[8000]; /* what was requested, "key " or "key[off+len] " */
};

static struct blob_proxy *far_of(struct store *s)
{
	return CONTAINER_OF(s, struct blob_proxy, base);
}

static struct far_object *far_object(struct blob_proxy *f, const char *key)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->list[i].key, key) == 0)
			return &f->list[i];
	if (grow_array(&f->list, &f->cap, f->n + 1, sizeof(*f->list)) < 0 ||
	    strlen(key) >= sizeof(f->list->key))
		abort();
	f->list[f->n] = (struct far_object){0};
	memcpy(f->list[f->n].key, key, strlen(key) + 1);
	return &f->list[f->n++];
}

static void far_note(struct blob_proxy *f, const char *key, uint64_t off, uint64_t len)
{
	size_t n = strlen(f->log);

	f->requests++;
	if (off == 0 && (len == UINT64_MAX || len == FAR_FIRST))
		(void)snprintf(f->log + n, sizeof(f->log) - n, "%s ", key);
	else
		(void)snprintf(f->log + n, sizeof(f->log) - n, "%s[%lld+%lld] ", key,
			       (long long)off, (long long)len);
}

/* far_fetch - one request. */
static void far_fetch(struct blob_proxy *f, struct far_object *o, uint64_t off, uint64_t len)
{
	if (o->n == FAR_PARTS)
		abort();
	far_note(f, o->key, off, len);
	if (!o->known)
		o->absent =
			store_stat(f->real, o->key, &o->st, NULL) == -ENOENT || o->st.is_dir;
	if (!o->absent && off == UINT64_MAX) {
		off = o->st.size - u64_min(o->st.size, len);
		len = o->st.size - off;
	}
	o->part[o->n++] = (struct store_range){.off = off, .len = len};
	o->flying = true;
}

/* far_land - wait for what is under way. */
static void far_land(struct blob_proxy *f)
{
	f->rounds++;
	for (size_t i = 0; i < f->n; i++) {
		f->list[i].known |= f->list[i].flying;
		f->list[i].flying = false;
	}
}

static int far_broken(struct blob_proxy *f, const char *key, struct err *e)
{
	return f->broken && strcmp(f->broken, key) == 0
		       ? err_set(e, f->broken_rc, "'%s': the server says no", key)
		       : 0;
}

static int far_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct blob_proxy *f = far_of(s);
	struct far_object *o = far_object(f, key);

	if (!o->known && !o->flying)
		far_fetch(f, o, 0, FAR_FIRST);
	if (o->flying)
		far_land(f);
	if (far_broken(f, key, e))
		return f->broken_rc;
	if (o->absent)
		return err_set(e, -ENOENT, "'%s': not found", key);
	*ret = o->st;
	return 0;
}

static bool far_covered(const struct far_object *o, uint64_t off, uint64_t len)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct store_range *p = &o->part[i];

		if (off >= p->off && (p->len == UINT64_MAX || (off - p->off <= p->len &&
							       len <= p->len - (off - p->off))))
			return true;
	}
	return len == 0;
}

static int far_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct blob_proxy *f = far_of(s);
	struct far_object *o = far_object(f, key);
	struct store_stat st;

	if (io->out) {
		int rc = far_stat(s, key, &st, e);

		if (rc)
			return rc;
		if (!far_covered(o, 0, st.size))
			far_fetch(f, o, 0, UINT64_MAX);
		return store_read_io(f->real, key, io, e);
	}
	if (io->len == 0 && !o->known && !o->flying)
		far_fetch(f, o, 0, FAR_FIRST);
	else if (!far_covered(o, io->off, io->len))
		far_fetch(f, o, io->off, io->len);
	if (o->flying)
		far_land(f);
	if (far_broken(f, key, e))
		return f->broken_rc;
	if (o->absent)
		return err_set(e, -ENOENT, "'%s': not found", key);
	return store_read_io(f->real, key, io, e);
}

struct far_listing {
	struct blob_proxy *f;
	const char *dir;
	store_emit *emit;
	void *arg;
};

static bool far_emit(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct far_listing *l = arg;
	char key[200];

	(void)snprintf(key, sizeof(key), "%s%s%s", l->dir, l->dir[0] ? "/" : "", name);
	if (!is_dir && st) {
		struct far_object *o = far_object(l->f, key);

		o->known = true;
		o->st = *st;
	}
	return l->emit(l->arg, name, is_dir, st);
}

static int far_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		    void *arg, struct err *e)
{
	struct blob_proxy *f = far_of(s);
	struct far_listing l = {f, key, emit, arg};
	size_t n = strlen(f->log);

	(void)want_stat;
	if (s->unlisted)
		return err_set(e, -EOPNOTSUPP, "'%s': cannot be listed", key);
	f->lists++;
	f->requests++;
	f->rounds++;
	(void)snprintf(f->log + n, sizeof(f->log) - n, "list:%s ", key);
	return store_list(f->real, key, true, far_emit, &l, e);
}

static void far_want(struct store *s, const struct store_range *r, size_t n)
{
	struct blob_proxy *f = far_of(s);

	for (size_t i = 0; i < n; i++) {
		struct far_object *o = far_object(f, r[i].key);
		uint64_t off = r[i].off, len = r[i].len;

		if (o->absent && o->known)
			continue;
		if (o->known && off == UINT64_MAX)
			off = o->st.size - u64_min(o->st.size, len);
		if (o->known && len == UINT64_MAX)
			len = o->st.size - off;
		if ((o->flying && o->n && !o->known) || (o->n && far_covered(o, off, len)))
			continue;
		far_fetch(f, o, off, len);
		f->wanted++;
	}
}

static int far_fresh(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct blob_proxy *f = far_of(s);

	f->fresh++;
	f->requests++;
	if (far_broken(f, key, e))
		return f->broken_rc;
	return store_stat(f->real, key, ret, e);
}

static int far_check(struct store *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

static void far_close(struct store *s)
{
	struct blob_proxy *f = far_of(s);

	store_close(f->real);
	free(f->list);
	free(f);
}

static const struct store_ops far_ops = {
	.name = "far",
	.close = far_close,
	.stat = far_stat,
	.list = far_list,
	.read = far_read,
	.check = far_check,
	.want = far_want,
	.fresh = far_fresh,
};

static inline struct blob_proxy *far_new(bool unlisted)
{
	struct blob_proxy *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->base = (struct store){.ops = &far_ops, .remote = true, .unlisted = unlisted};
	f->real = store_mem_new();
	if (!f->real)
		abort();
	return f;
}

static inline void far_put(struct blob_proxy *f, const char *key, const void *data, size_t n)
{
	if (store_mem_put(f->real, key, data, n) < 0)
		abort();
}

/* far_forget - what was counted, not what is known. */
static inline void far_forget(struct blob_proxy *f)
{
	f->requests = f->rounds = f->lists = f->fresh = f->wanted = 0;
	f->log[0] = '\0';
}

#endif
