/* SPDX-License-Identifier: BSD-3-Clause */
/* store_view.c - a store as a view: ids are numbers in a table of what was looked up. */
#include "translate/tree/store_view.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/hash.h"
#include "base/core/map.h"

#define FIRST (VIEW_ROOT + 1)

enum {
	FEW = 3,          /* names of a directory that are asked for one by one */
	NAMES_MAX = 20000 /* of a directory that is listed for that */
};

/* asked - how a directory was looked at. */
struct asked {
	uint32_t names;
	bool listing, large;
	int64_t listed_ms; /* 0: never */
};

/* store_view_known - a key in one version. */
struct store_view_known {
	struct link link; /* in the table by key, unless a later version is */
	uint64_t id, version, size;
	bool is_dir, odd;
	struct asked asked; /* of a directory */
	char key[];
};

struct keys_view {
	struct view base;
	struct store *store;
	struct stat st;
	uint32_t list_ms;
	pthread_mutex_t lock;
	struct asked root;   /* lock */
	struct store_view_known **known; /* lock, as what follows; of the id less FIRST */
	size_t n, cap;
	struct map by_key; /* the latest of each */
};

static struct keys_view *store_view_of(struct view *v)
{
	return CONTAINER_OF(v, struct keys_view, base);
}

/* ---- the table, under its lock ---- */

/* store_view_find - the latest of a key; NULL. */
static struct store_view_known *store_view_find(struct keys_view *v, const char *key)
{
	struct store_view_known *k;

	MAP_EACH(k, &v->by_key, hash_text(HASH_SEED, key), link)
		if (strcmp(k->key, key) == 0)
			return k;
	return NULL;
}

/* store_view_enter - *ret: the id of what a key is. */
static int store_view_enter(struct keys_view *v, const char *key, const struct store_stat *st,
			    uint64_t *ret, struct err *e)
{
	struct store_view_known *old = store_view_find(v, key), *k;
	size_t len = strlen(key);

	if (old && old->is_dir == st->is_dir && (st->is_dir || old->version == st->version)) {
		old->odd = st->odd;
		*ret = old->id;
		return 0;
	}
	k = alloc_array(1, sizeof(*k) + len + 1);
	if (!k || grow_array(&v->known, &v->cap, v->n + 1, sizeof(*v->known)) < 0 ||
	    map_add(&v->by_key, &k->link, hash_text(HASH_SEED, key)) < 0) {
		free(k);
		return err_nomem(e);
	}
	if (old)
		map_remove(&v->by_key, &old->link);
	k->id = FIRST + v->n;
	k->version = st->version;
	k->size = st->size;
	k->is_dir = st->is_dir;
	k->odd = st->odd;
	memcpy(k->key, key, len + 1);
	v->known[v->n++] = k;
	*ret = k->id;
	return 0;
}

static int store_view_remember(struct keys_view *v, const char *key,
			       const struct store_stat *st, uint64_t *ret, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&v->lock);
	rc = store_view_enter(v, key, st, ret, e);
	(void)pthread_mutex_unlock(&v->lock);
	return rc;
}

/* store_view_by_id - key: room of STORE_KEY_MAX + 1. */
static int store_view_by_id(struct keys_view *v, uint64_t id, char *key,
			    struct store_view_known *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct store_view_known){.is_dir = true};
	key[0] = '\0';
	if (id == VIEW_ROOT)
		return 0;
	(void)pthread_mutex_lock(&v->lock);
	if (id < FIRST || id - FIRST >= v->n) {
		rc = err_set(e, -ESTALE, "no such file");
	} else {
		*ret = *v->known[id - FIRST]; /* without its key */
		memcpy(key, v->known[id - FIRST]->key, strlen(v->known[id - FIRST]->key) + 1);
	}
	(void)pthread_mutex_unlock(&v->lock);
	return rc;
}

/* ---- the view ---- */

static void store_view_attr_of(const struct keys_view *v, uint64_t id,
			       const struct store_stat *st, struct view_attr *ret)
{
	mode_t mode = v->st.st_mode & 0666;

	*ret = (struct view_attr){
		.id = id,
		.size = st->is_dir ? 0 : st->size,
		.nlink = 1,
		.is_dir = st->is_dir,
		.volatile_attrs = true,
		.own = true,
		.mode = st->is_dir ? mode | (mode & 0444) >> 2 : mode,
		.uid = v->st.st_uid,
		.gid = v->st.st_gid,
		.mtime = v->st.st_mtim,
		.ctime = v->st.st_mtim,
		.unknown = st->odd,
	};
	if (st->changed)
		ret->mtime = ret->ctime = clock_timespec(st->changed);
}

/* entry_key - false: nothing can have it. */
static bool entry_key(const char *dir, const char *name, size_t len,
		      char out[STORE_KEY_MAX + 1])
{
	return !memchr(name, '\0', len) && store_key_join(dir, name, len, out) &&
	       store_key_ok(out);
}

/* dir_known - a directory that is there for certain. */
static bool dir_known(struct keys_view *v, const char *key, uint64_t *ret)
{
	const struct store_view_known *k;

	(void)pthread_mutex_lock(&v->lock);
	k = store_view_find(v, key);
	if (k && k->is_dir)
		*ret = k->id;
	(void)pthread_mutex_unlock(&v->lock);
	return k && k->is_dir;
}

/* asked_of - under the lock. */
static struct asked *asked_of(struct keys_view *v, uint64_t dir)
{
	return dir == VIEW_ROOT ? &v->root : &v->known[dir - FIRST]->asked;
}

/* store_view_worth - whether a directory is to be listed now. */
static bool store_view_worth(struct keys_view *v, uint64_t dir)
{
	struct asked *a;
	bool ret;

	if (!v->store->remote || v->store->unlisted)
		return false;
	(void)pthread_mutex_lock(&v->lock);
	a = asked_of(v, dir);
	ret = !a->listing && !a->large && ++a->names > FEW &&
	      (a->listed_ms == 0 ||
	       (v->list_ms && clock_ms() - a->listed_ms > v->list_ms));
	a->listing |= ret;
	(void)pthread_mutex_unlock(&v->lock);
	return ret;
}

static bool store_view_count(void *arg, const char *name, bool is_dir,
			     const struct store_stat *st)
{
	uint32_t *n = arg;

	(void)name;
	(void)is_dir;
	(void)st;
	return ++*n < NAMES_MAX;
}

/* list_it - so that the store knows; when that fails, it says so of the names. */
static void list_it(struct keys_view *v, uint64_t dir, const char *key)
{
	int64_t began = clock_ms();
	struct asked *a;
	uint32_t n = 0;
	int rc = store_list(v->store, key, true, store_view_count, &n, NULL);

	(void)pthread_mutex_lock(&v->lock);
	a = asked_of(v, dir);
	a->listing = false;
	a->large = n >= NAMES_MAX;
	if (rc == 0 || rc == -ENOENT)
		a->listed_ms = began;
	(void)pthread_mutex_unlock(&v->lock);
}

static int keys_lookup(struct view *view, uint64_t dir, const char *name, size_t len,
		       struct view_attr *ret, struct err *e)
{
	struct keys_view *v = store_view_of(view);
	struct store_stat st = {.is_dir = true};
	char key[STORE_KEY_MAX + 1];
	struct store_view_known k;
	uint64_t id;
	int rc = store_view_by_id(v, dir, key, &k, e);

	if (rc)
		return rc;
	if (!k.is_dir)
		return err_set(e, -ENOTDIR, "'%.200s' is not a directory", key);
	if (store_view_worth(v, dir))
		list_it(v, dir, key);
	if (!entry_key(key, name, len, key))
		return err_set(e, -ENOENT, "no such name");
	if (!dir_known(v, key, &id)) {
		rc = store_stat(v->store, key, &st, e);
		if (rc == 0)
			rc = store_view_remember(v, key, &st, &id, e);
	}
	if (rc == 0)
		store_view_attr_of(v, id, &st, ret);
	return rc;
}

static int keys_getattr(struct view *view, uint64_t id, struct view_attr *ret, struct err *e)
{
	struct keys_view *v = store_view_of(view);
	char key[STORE_KEY_MAX + 1];
	struct store_view_known k;
	int rc = store_view_by_id(v, id, key, &k, e);

	if (rc == 0)
		store_view_attr_of(
			v, id,
			&(struct store_stat){.is_dir = k.is_dir, .odd = k.odd, .size = k.size},
			ret);
	return rc;
}

struct store_view_listing {
	struct keys_view *v;
	const char *dir;
	bool want_attr, stopped;
	uint64_t at, from;
	view_emit *emit;
	void *arg;
	int rc;
	struct err *e;
};

static bool store_view_list_entry(void *arg, const char *name, bool is_dir,
				  const struct store_stat *st)
{
	const struct store_stat dir = {.is_dir = true};
	struct store_view_listing *l = arg;
	char key[STORE_KEY_MAX + 1];
	struct view_attr a;
	uint64_t id = 0;

	if (!entry_key(l->dir, name, strlen(name), key))
		return true; /* no file of ours */
	l->at++;
	if (l->at <= l->from)
		return true;
	st = is_dir ? &dir : st;
	if (st)
		l->rc = store_view_remember(l->v, key, st, &id, l->e);
	if (l->rc)
		return false;
	if (st)
		store_view_attr_of(l->v, id, st, &a);
	l->stopped = !l->emit(l->arg, name, id, is_dir, l->want_attr && st ? &a : NULL, l->at);
	return !l->stopped;
}

static int keys_list(struct view *view, uint64_t dir, uint64_t cookie, bool want_attr,
		     view_emit *emit, void *arg, struct err *e)
{
	char key[STORE_KEY_MAX + 1];
	struct store_view_listing l = {.v = store_view_of(view),
				       .dir = key,
				       .want_attr = want_attr,
				       .from = cookie,
				       .emit = emit,
				       .arg = arg,
				       .e = e};
	struct store_view_known k;
	int rc = store_view_by_id(l.v, dir, key, &k, e);

	if (rc)
		return rc;
	if (!k.is_dir)
		return err_set(e, -ENOTDIR, "'%.200s' is not a directory", key);
	/* sizes come with the names */
	rc = store_list(l.v->store, key, true, store_view_list_entry, &l, e);
	if (rc == -ENOENT)
		rc = 0; /* the last object below it is gone */
	return rc ? rc : l.rc;
}

static int keys_read(struct view *view, uint64_t id, uint64_t off, size_t len, uint8_t *room,
		     struct span *ret, struct err *e)
{
	struct keys_view *v = store_view_of(view);
	char key[STORE_KEY_MAX + 1];
	uint64_t version = 0;
	struct store_view_known k;
	int rc = store_view_by_id(v, id, key, &k, e);

	*ret = (struct span){.mem = room, .fd = -1};
	if (rc)
		return rc;
	if (k.is_dir)
		return err_set(e, -EISDIR, "'%.200s' is a directory", key);
	if (off >= k.size || len == 0)
		return 0;
	len = (size_t)u64_min(len, k.size - off);
	rc = store_read(v->store, key, off, room, len, &version, e);
	if (rc)
		return rc;
	if (version != k.version)
		return err_set(e, -ESTALE, "'%.200s' was changed since it was opened", key);
	ret->len = len;
	return 0;
}

static uint64_t keys_parent(struct view *view, uint64_t dir)
{
	struct keys_view *v = store_view_of(view);
	char key[STORE_KEY_MAX + 1];
	uint64_t id = VIEW_ROOT;
	struct store_view_known k;
	char *slash;

	if (store_view_by_id(v, dir, key, &k, NULL) < 0)
		return VIEW_ROOT;
	slash = strrchr(key, '/');
	if (slash) {
		*slash = '\0';
		if (!dir_known(v, key, &id))
			id = VIEW_ROOT;
	}
	return id;
}

static void keys_close(struct view *view)
{
	struct keys_view *v = store_view_of(view);

	for (size_t i = 0; i < v->n; i++)
		free(v->known[i]);
	free(v->known);
	map_free(&v->by_key);
	(void)pthread_mutex_destroy(&v->lock);
	free(v);
}

static const struct view_ops keys_ops = {
	.name = "keys",
	.close = keys_close,
	.lookup = keys_lookup,
	.getattr = keys_getattr,
	.list = keys_list,
	.read = keys_read,
	.parent = keys_parent,
};

int store_view_open(struct store *s, const struct stat *st, uint32_t list_ms, struct view **ret,
		    struct err *e)
{
	struct keys_view *v = alloc_array(1, sizeof(*v));

	if (!v || pthread_mutex_init(&v->lock, NULL) != 0) {
		free(v);
		return err_nomem(e);
	}
	v->base = (struct view){.ops = &keys_ops, .follows = true};
	v->store = s;
	v->st = *st;
	v->list_ms = list_ms;
	*ret = &v->base;
	return 0;
}

int store_view_dirs(struct view *view, const char *key, struct err *e)
{
	const struct store_stat st = {.is_dir = true};
	struct keys_view *v = store_view_of(view);
	char dir[STORE_KEY_MAX + 1];
	uint64_t id;
	int rc = 0;

	memcpy(dir, key, strlen(key) + 1);
	for (char *slash; rc == 0 && (slash = strrchr(dir, '/')) != NULL;) {
		*slash = '\0';
		if (dir_known(v, dir, &id))
			return 0; /* and so are those above it */
		rc = store_view_remember(v, dir, &st, &id, e);
	}
	return rc;
}
