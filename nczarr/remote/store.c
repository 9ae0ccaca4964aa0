/* SPDX-License-Identifier: BSD-3-Clause */
/* store.c - the store over a remote service.
 *
 * A key is an object if the service has one of that name. Object stores have no folders:
 *   - if the service can list, a key is a folder if a name lies below it. Only store_stat() sends
 *     that request, and only if no object has the name, no cached listing has the answer, and the
 *     name is not that of a metadata document;
 *   - if it cannot (store.unlisted), store_stat() finds objects only: -ENOENT proves that no object
 *     has this name, but not that no object lies below it. A key with a known object below it is a
 *     folder;
 *   - the root is always a folder, without a request. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/observe/metrics.h"
#include "nczarr/nczarr.h"

#define TRIES 100                /* reads of an object that changes during each of them */
#define FOLDER_VERSION 1         /* the same for all folders: only their members have versions */
#define NEAR ((uint64_t)1 << 20) /* tolerance for reordered readahead */
#define RUN_LEAST ((uint64_t)256 << 10)
#define DOC_MOST ((uint64_t)16 << 20) /* largest metadata document to fetch in one request */
#define WINDOW ((uint64_t)64 << 20)

static struct rstore *remote_of(struct store *s)
{
	return CONTAINER_OF(s, struct rstore, base);
}

static int remote_absent(const char *key, struct err *e)
{
	return err_set(e, -ENOENT, "'%s': not found", key);
}

/* ---- keys ---- */

/* object_query - the range to fetch of an unknown object. */
struct object_query {
	int what;
	uint64_t off, len;
};

static struct object_query beginning(struct rstore *st, const char *key)
{
	return (struct object_query){OBJECT_PART, 0, rc_beginning(st, key)};
}

/* remote_ask - request the info of l->obj, or wait for the request in flight. Called with
 * the shard locked, returns with it unlocked. -EAGAIN: look it up again; -EKEYEXPIRED: send it
 * again. */
static int remote_ask(struct cache_lookup *l, const struct object_query *query, struct err *e)
{
	struct ext *x = l->obj->asking;
	struct job j;
	bool mine = !x;
	int rc = 0;

	if (mine && l->obj->state == OBJ_THERE && (l->obj->n_xs || !query->len))
		rc = fetch_ask(l, OBJECT_HEAD, 0, 0, &j);
	else if (mine)
		rc = fetch_ask(l, query->what, query->off, query->len, &j);
	if (rc == 0) {
		x = l->obj->asking;
		ext_ref(x);
	}
	(void)pthread_mutex_unlock(&l->shard->lock);
	if (rc < 0)
		return err_nomem(e);
	if (mine)
		(void)fetch_start(l, &j, true); /* x has the result */
	(void)pthread_mutex_lock(&l->shard->lock);
	rc = fetch_wait(x, e);
	(void)pthread_mutex_unlock(&l->shard->lock);
	rc = rc ? rc : ext_error(x, l->key, e);
	ext_unref(x);
	return rc ? rc : -EAGAIN;
}

/* know - wait until the info of an object is known. If it returns 0, l->obj exists and the shard
 * is locked. The answer of a request of this call counts as fresh, however long it took. */
static int know(struct cache_lookup *l, const struct object_query *query, struct err *e)
{
	for (int tries = 0; tries < TRIES; tries++) {
		struct cached_object *o;
		int rc;

		(void)pthread_mutex_lock(&l->shard->lock);
		o = look_find(l, false);
		if (o && o->state != OBJ_UNKNOWN &&
		    (tries ? o->known_at >= l->st->opened_at
			   : obj_is_racy(l->st, o->known_at))) {
			if (o->state == OBJ_THERE)
				return 0;
			(void)pthread_mutex_unlock(&l->shard->lock);
			return remote_absent(l->key, e);
		}
		if (!o || (o->state == OBJ_UNKNOWN && !o->asking)) {
			(void)pthread_mutex_unlock(&l->shard->lock);
			if (look_absent(l->st, l->key))
				return remote_absent(l->key, e);
			(void)pthread_mutex_lock(&l->shard->lock);
			o = look_find(l, true);
			if (!o) {
				(void)pthread_mutex_unlock(&l->shard->lock);
				return err_nomem(e);
			}
		}
		if (o->state == OBJ_ABSENT && !o->asking)
			o->state = OBJ_UNKNOWN; /* too old */
		rc = remote_ask(l, query, e);
		if (cancel_requested())
			return err_set(e, -EINTR, "'%s': cancelled while waiting", l->key);
		if (rc != -EAGAIN && rc != -EKEYEXPIRED)
			return rc;
	}
	return err_set(e, -EIO, "'%s' changes too often", l->key);
}

static bool emit_any(void *arg, const char *name NZ_UNUSED, bool is_dir NZ_UNUSED,
		     const struct object_info *info NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

/* known_folder - cached answer whether a key is a folder. */
static enum folder_state known_folder(struct cache_lookup *l)
{
	LOCK_SCOPE(&l->shard->lock);

	return look_find(l, false) && obj_is_racy(l->st, l->obj->folder_at) ? l->obj->folder
									   : FOLDER_UNKNOWN;
}

/* stat_folder - whether a key without an object is a folder. believe: cached listings may
 * answer. */
static int stat_folder(struct cache_lookup *l, bool believe, struct store_stat *ret,
		       struct err *e)
{
	struct rstore *st = l->st;
	enum folder_state folder = known_folder(l);
	bool any = false;
	int rc;

	if (folder == FOLDER_UNKNOWN &&
	    (st->base.unlisted || zarr_doc_key(l->key) || (believe && look_absent(st, l->key))))
		folder = FOLDER_IS_NOT;
	if (folder == FOLDER_UNKNOWN) {
		rc = st->o->ops->list(st->o, l->key, true, emit_any, &any, e);
		if (rc < 0 && rc != -ENOENT)
			return rc;
		folder = any ? FOLDER_IS : FOLDER_IS_NOT;
		(void)pthread_mutex_lock(&l->shard->lock);
		if (look_find(l, true)) {
			l->obj->folder = folder;
			l->obj->folder_at = clock_ns();
		}
		(void)pthread_mutex_unlock(&l->shard->lock);
	}
	if (folder != FOLDER_IS)
		return remote_absent(l->key, e);
	*ret = (struct store_stat){.is_dir = true, .version = FOLDER_VERSION};
	return 0;
}

static int remote_size_of(const struct cached_object *o, const char *key, struct err *e)
{
	if (o->size != UINT64_MAX)
		return 0;
	return err_set(e, -EIO, "'%s': the server does not state its size", key);
}

static int remote_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct cache_lookup l = look_at(remote_of(s), key, strlen(key));
	struct object_query query = beginning(remote_of(s), key);
	int rc;

	if (!*key || known_folder(&l) == FOLDER_IS) {
		*ret = (struct store_stat){.is_dir = true, .version = FOLDER_VERSION};
		return 0;
	}
	rc = know(&l, &query, e);
	if (rc == -ENOENT)
		return stat_folder(&l, true, ret, e);
	if (rc < 0)
		return rc;
	rc = remote_size_of(l.obj, key, e);
	*ret = (struct store_stat){
		.size = l.obj->size, .version = l.obj->version, .changed = l.obj->changed};
	(void)pthread_mutex_unlock(&l.shard->lock);
	return rc;
}

/* ---- reading ---- */

/* remote_reading - a read in progress: [pos, end) is missing. */
struct remote_reading {
	struct cache_lookup l;
	uint64_t off, pos, end;
	uint8_t *out; /* destination of byte pos */
	uint64_t gen, version;
	uint64_t run; /* bytes after its end to prefetch */
};

/* next_ext - the extent with byte pos, with a reference; jobs gets the requests for missing bytes
 * of the readahead window. The shard is locked. NULL: out of memory. */
static struct ext *next_ext(struct remote_reading *r, struct job *jobs, size_t *ret_n)
{
	struct cached_object *o = r->l.obj;
	uint64_t window = u64_min(WINDOW, r->l.st->cache->limit / 4);
	size_t i;

	*ret_n = fetch_plan(&r->l, r->pos, r->pos + window, r->end, jobs, RC_JOBS);
	i = obj_at(o, r->pos);
	if (i == o->n_xs || o->xs[i]->off > r->pos)
		return NULL;
	ext_ref(o->xs[i]);
	return o->xs[i];
}

/* copy_next - copy the bytes of the extent at pos. The shard is locked, also if it returns 0. */
static int copy_next(struct remote_reading *r, struct err *e)
{
	struct job jobs[RC_JOBS];
	size_t n = 0;
	struct ext *x = next_ext(r, jobs, &n);
	bool asked = false;
	uint64_t some;
	int rc = 0;

	if (n) {
		r->l.obj->refs++;
		(void)pthread_mutex_unlock(&r->l.shard->lock);
		for (size_t i = 0; i < n; i++) { /* a thread that waits for room must not hold
						  * any */
			asked = asked || jobs[i].x == x;
			(void)fetch_start(&r->l, &jobs[i], jobs[i].x == x);
		}
		(void)pthread_mutex_lock(&r->l.shard->lock);
		r->l.obj->refs--;
	}
	if (x)
		rc = fetch_wait(x, e);
	(void)pthread_mutex_unlock(&r->l.shard->lock);
	if (!x)
		return err_nomem(e);
	metrics_count(asked ? M_MISS_BLOCKS : M_HIT_BLOCKS);
	rc = rc ? rc : ext_error(x, r->l.key, e);
	if (rc == 0) {
		some = u64_min(r->end, x->off + x->len) - r->pos;
		memcpy(r->out, x->data + (r->pos - x->off), some);
		(void)atomic_fetch_add_explicit(
			&x->handed, u64_max(some, u64_min(x->len / 16, (uint64_t)16 << 10)),
			memory_order_relaxed);
		if (atomic_load_explicit(&x->prefetched, memory_order_relaxed))
			rc_settle(x);
		r->pos += some;
		r->out += some;
	}
	ext_unref(x);
	return rc;
}

/* remote_in_order - after sequential reads of a large object, prefetch as much as was read
 * of it. The shard is locked. */
static void remote_in_order(struct remote_reading *r)
{
	struct cached_object *o = r->l.obj;
	uint64_t most = r->l.st->cache->prefetch_limit / 2;
	bool next = o->next_off && r->off <= o->next_off + NEAR && r->off + NEAR >= o->next_off;

	if (!next)
		o->run = o->run_end = 0;
	o->run = u64_min(most, o->run + (r->end - r->off));
	o->next_off = r->end;
	if (!next || o->run < RUN_LEAST || o->size - r->end == 0 ||
	    (o->run_end > r->end && o->run_end - r->end > o->run / 2))
		return;
	r->run = u64_min(o->run, o->size - r->end);
	o->run_end = r->end + r->run;
}

static int remote_stale(const char *key, struct err *e)
{
	return err_set(e, -ESTALE, "'%s' was changed while it was read", key);
}

/* read_bytes - read [off, off + len) of one version; version 0: of the current one. */
static int read_bytes(struct rstore *st, const char *key, const struct object_query *query,
		      struct remote_reading *r, struct err *e)
{
	int rc = 0;

	r->l = look_at(st, key, strlen(key));
	for (int tries = 0; tries < TRIES; tries++) {
		rc = know(&r->l, query, e);
		if (rc < 0)
			return rc;
		/* obj_forget() after damage elsewhere in the object gives it a new gen: its
		 * version decides */
		if (r->pos > r->off && r->l.obj->gen != r->gen && !r->version)
			rc = remote_stale(key, e);
		else if (r->version && r->l.obj->version != r->version)
			rc = remote_stale(key, e);
		else if (r->end > r->l.obj->size)
			rc = err_set(e, -EIO,
				     "'%s' ends at %" PRIu64 ", before offset %" PRIu64, key,
				     r->l.obj->size, r->end);
		r->gen = r->l.obj->gen;
		if (rc == 0 && r->pos == r->off)
			r->version = r->l.obj->version;
		if (rc || r->pos == r->end) {
			(void)pthread_mutex_unlock(&r->l.shard->lock);
			return rc;
		}
		if (r->pos == r->off && tries == 0)
			remote_in_order(r);
		rc = copy_next(r, e);
		if (rc == 0 && r->pos == r->end)
			return 0;
		if (cancel_requested())
			return err_set(e, -EINTR, "'%s': cancelled while waiting", key);
		if (rc && rc != -EAGAIN && rc != -EKEYEXPIRED)
			return rc;
		if (rc == 0)
			tries = 0;
	}
	return err_set(e, -EIO, "'%s' changes too often", key);
}

/* remote_part - read a range of an object. */
static int remote_part(struct rstore *st, const char *key, struct store_io *io, struct err *e)
{
	const uint64_t end = io->off + io->len;
	struct object_query query = beginning(st, key);
	struct remote_reading r = {.off = io->off, .pos = io->off, .end = end, .out = io->to};
	int rc;

	if (end > query.len) /* the request for the wanted bytes also returns the info */
		query = (struct object_query){
			OBJECT_PART, io->off / RC_BLOCK * RC_BLOCK,
			u64_min(st->cache->piece, (end + RC_BLOCK - 1) / RC_BLOCK * RC_BLOCK -
							  io->off / RC_BLOCK * RC_BLOCK)};
	rc = read_bytes(st, key, &query, &r, e);
	if (rc == 0 && r.run)
		remote_prefetch_request(st, &(struct store_range){key, r.end, r.run}, 1);
	io->version = r.version;
	return rc;
}

/* remote_whole - read a whole object, in one request if it is small. */
static int remote_whole(struct rstore *st, const char *key, struct store_io *io, struct err *e)
{
	struct cache_lookup l = look_at(st, key, strlen(key));
	uint64_t most = st->cache->head, size;
	struct object_query query = {OBJECT_ALL, 0, 0};
	struct remote_reading r = {0};
	int rc;

	if (zarr_doc_key(key)) /* documents are rarely fetched in parallel */
		most = u64_max(most, u64_min(DOC_MOST, st->cache->limit / 4));
	query.len = u64_min(u64_max(io->out->max - io->before, 1), most);
	rc = know(&l, &query, e);
	if (rc < 0)
		return rc;
	rc = remote_size_of(l.obj, key, e);
	size = l.obj->size;
	r.version = io->version = l.obj->version;
	(void)pthread_mutex_unlock(&l.shard->lock);
	rc = rc ? rc : store_io_size(io, key, size, e);
	if (rc < 0 || size == 0)
		return rc;
	r.out = io->to;
	r.end = size;
	return read_bytes(st, key, &query, &r, e);
}

static int remote_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct rstore *st = remote_of(s);

	return io->out ? remote_whole(st, key, io, e) : remote_part(st, key, io, e);
}

/* ---- listing ---- */

struct remote_listing {
	struct rstore *st;
	const char *key;
	store_emit *emit;
	void *arg;
	int64_t began;
	bool any, stopped;
};

/* remote_learn - cache one name of a listing. */
static void remote_learn(const struct remote_listing *g, const char *name, bool is_dir,
			 const struct object_info *info)
{
	char path[STORE_KEY_MAX + 1];
	int n = snprintf(path, sizeof(path), "%s%s%s", g->key, *g->key ? "/" : "", name);
	struct cache_lookup l;

	if (n < 0 || (size_t)n >= sizeof(path))
		return;
	l = look_at(g->st, path, (size_t)n);
	LOCK_SCOPE(&l.shard->lock);
	if (!look_find(&l, true))
		return;
	if (!is_dir && info)
		obj_set(&l, info, g->began);
	if (!is_dir)
		return;
	l.obj->folder = FOLDER_IS;
	l.obj->folder_at = g->began;
	if (l.obj->state == OBJ_UNKNOWN && !l.obj->asking) {
		l.obj->state = OBJ_ABSENT;
		l.obj->known_at = g->began;
	}
}

static bool remote_emit_one(void *arg, const char *name, bool is_dir,
			    const struct object_info *info)
{
	struct remote_listing *g = arg;
	struct store_stat st = {.is_dir = is_dir, .version = FOLDER_VERSION};

	g->any = true;
	remote_learn(g, name, is_dir, info);
	if (!is_dir && info) {
		st.size = info->size;
		st.version = info->version ? info->version : object_version(info);
		st.changed = info->changed;
	}
	g->stopped = !g->emit(g->arg, name, is_dir, &st);
	return !g->stopped;
}

static int list_objects(struct store *s, const char *key, bool deep, store_emit *emit,
			void *arg, struct err *e)
{
	struct rstore *st = remote_of(s);
	struct remote_listing g = {
		.st = st, .key = key, .emit = emit, .arg = arg, .began = clock_ns()};
	uint64_t drops = atomic_load(&st->root->drops);
	struct cache_lookup l = look_at(st, key, strlen(key));
	int rc;

	if (s->unlisted)
		return err_set(e, -EOPNOTSUPP, "'%s': a web server cannot list directories",
			       key);
	rc = st->o->ops->list(st->o, key, deep, remote_emit_one, &g, e);
	if (deep)
		return rc;
	if (rc == 0 && !g.any && *key)
		rc = remote_absent(key, e);
	if ((rc < 0 && rc != -ENOENT) || g.stopped)
		return rc;
	LOCK_SCOPE(&l.shard->lock);
	if (look_find(&l, true)) {
		l.obj->folder = g.any ? FOLDER_IS : FOLDER_IS_NOT;
		l.obj->folder_at = l.obj->listed_at = g.began;
		l.obj->listed = true;
		l.obj->listed_drops = drops;
	}
	return rc;
}

static int remote_list(struct store *s, const char *key, bool want_stat NZ_UNUSED,
		       store_emit *emit, void *arg, struct err *e)
{
	return list_objects(s, key, false, emit, arg, e);
}

static int remote_list_deep(struct store *s, const char *key, store_emit *emit, void *arg,
			    struct err *e)
{
	return list_objects(s, key, true, emit, arg, e);
}

/* ---- revalidation ---- */

/* settled - wait until no request for the info of the object is in flight. The shard is locked. */
static int settled(struct cache_lookup *l, struct err *e)
{
	while (look_find(l, true) && l->obj->asking) {
		struct ext *x = l->obj->asking;
		int rc;

		ext_ref(x);
		rc = fetch_wait(x, e);
		(void)pthread_mutex_unlock(&l->shard->lock);
		ext_unref(x);
		(void)pthread_mutex_lock(&l->shard->lock);
		if (rc < 0)
			return rc;
	}
	return l->obj ? 0 : err_nomem(e);
}

static int remote_fresh(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct cache_lookup l = look_at(remote_of(s), key, strlen(key));
	struct object_query query = beginning(remote_of(s), key);
	int rc;

	if (!*key)
		return remote_stat(s, key, ret, e);
	do {
		(void)pthread_mutex_lock(&l.shard->lock);
		rc = settled(&l, e);
		if (rc < 0) {
			(void)pthread_mutex_unlock(&l.shard->lock);
			return rc;
		}
		if (l.obj->state == OBJ_ABSENT)
			l.obj->state = OBJ_UNKNOWN;
		l.obj->folder = FOLDER_UNKNOWN;
		if (l.obj->state == OBJ_THERE)
			query.len = 0; /* no bytes: a frequent check rarely leads to a read */
		rc = remote_ask(&l, &query, e);
	} while (rc == -EKEYEXPIRED);
	if (rc == -ENOENT)
		return stat_folder(&l, false, ret, e);
	return rc == -EAGAIN || rc == -ESTALE ? remote_stat(s, key, ret, e) : rc;
}

/* ---- writing ---- */

/* remote_above - set the cached folder state of the parents of a key to `is`, where it is
 * `was` (FOLDER_UNKNOWN: everywhere). */
static void remote_above(struct rstore *st, const char *key, enum folder_state was,
			 enum folder_state is)
{
	for (const char *p = strchr(key, '/'); p; p = strchr(p + 1, '/')) {
		struct cache_lookup l = look_at(st, key, (size_t)(p - key));
		LOCK_SCOPE(&l.shard->lock);

		if (look_find(&l, is == FOLDER_IS) &&
		    (was == FOLDER_UNKNOWN || l.obj->folder == was)) {
			l.obj->folder = is;
			l.obj->folder_at = clock_ns();
		}
	}
}

/* remote_etag - the ETag of an object, new, if this is its known version; else -EAGAIN. */
static int remote_etag(struct cache_lookup *l, uint64_t version, char **ret, struct err *e)
{
	LOCK_SCOPE(&l->shard->lock);

	if (!look_find(l, false) || l->obj->state != OBJ_THERE || l->obj->version != version)
		return -EAGAIN;
	if (!l->obj->etag || l->obj->weak)
		return err_set(e, -EOPNOTSUPP, "'%s': the server sends no strong ETag", l->key);
	*ret = strdup(l->obj->etag);
	return *ret ? 0 : err_nomem(e);
}

/* remote_condition - the same for an expected version, after a request if that is not the known
 * one. */
static int remote_condition(struct rstore *st, const char *key, uint64_t version, char **ret,
			    struct err *e)
{
	struct cache_lookup l = look_at(st, key, strlen(key));
	struct store_stat now;
	int rc = remote_etag(&l, version, ret, e);

	if (rc != -EAGAIN)
		return rc;
	rc = remote_fresh(&st->base, key, &now, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = remote_etag(&l, version, ret, e);
	return rc == -EAGAIN ? err_set(e, -ESTALE, "'%s' was changed in the meantime", key) : rc;
}

static int remote_put(struct store *s, const char *key, const struct store_put *what,
		      uint64_t *ret_version, struct err *e)
{
	struct rstore *st = remote_of(s);
	struct put_condition cond = {.absent = what->absent};
	struct cache_lookup l = look_at(st, key, strlen(key));
	struct object_info info = {.size = UINT64_MAX};
	auto_free char *etag = NULL;
	int rc = 0;

	if (!st->o->ops->put)
		return err_set(e, -EROFS, "'%s': the server is read-only", key);
	if (what->version) {
		rc = remote_condition(st, key, what->version, &etag, e);
		if (rc)
			return rc;
		cond.etag = etag;
	}
	rc = st->o->ops->put(st->o, key, what->data, what->fd, what->off, what->len, &cond,
			     &info, e);
	if (info.size == UINT64_MAX)
		info.size = what->len;
	if (info.version == 0)
		info.version = object_version(&info);
	(void)pthread_mutex_lock(&l.shard->lock);
	if (look_find(&l, true) && rc == 0) {
		obj_gone(&l, clock_ns()); /* requests in flight may return the old version */
		obj_set(&l, &info, clock_ns());
	} else {
		obj_forget(&l);
	}
	(void)pthread_mutex_unlock(&l.shard->lock);
	if (rc < 0)
		return rc;
	remote_above(st, key, FOLDER_UNKNOWN, FOLDER_IS);
	if (ret_version)
		*ret_version = info.version;
	return 0;
}

static int remote_remove(struct store *s, const char *key, struct err *e)
{
	struct rstore *st = remote_of(s);
	struct cache_lookup l = look_at(st, key, strlen(key));
	int rc;

	if (!st->o->ops->remove)
		return err_set(e, -EROFS, "'%s': the server is read-only", key);
	rc = st->o->ops->remove(st->o, key, e);
	(void)pthread_mutex_lock(&l.shard->lock);
	if (look_find(&l, true) && (rc == 0 || rc == -ENOENT))
		obj_gone(&l, clock_ns());
	else
		obj_forget(&l);
	(void)pthread_mutex_unlock(&l.shard->lock);
	remote_above(st, key, FOLDER_IS, FOLDER_UNKNOWN);
	return rc;
}

static void remote_forget(struct store *s, const char *key)
{
	struct cache_lookup l = look_at(remote_of(s), key, strlen(key));

	distrust(&l);
	LOCK_SCOPE(&l.shard->lock);
	(void)look_find(&l, false);
	obj_forget(&l);
}

/* ---- opening ---- */

static void remote_close(struct store *s)
{
	struct rstore *st = remote_of(s);

	remote_prefetch_forget(st);
	(void)pthread_mutex_lock(&st->lock);
	while (st->in_flight)
		(void)pthread_cond_wait(&st->idle, &st->lock);
	(void)pthread_mutex_unlock(&st->lock);
	objects_close(st->o);
	(void)pthread_cond_destroy(&st->idle);
	(void)pthread_mutex_destroy(&st->lock);
	free(st);
}

static void remote_want(struct store *s, const struct store_range *r, size_t n)
{
	remote_prefetch_request(remote_of(s), r, n);
}

static const struct store_ops g_ops = {
	.name = "remote",
	.close = remote_close,
	.stat = remote_stat,
	.list = remote_list,
	.list_deep = remote_list_deep,
	.read = remote_read,
	.want = remote_want,
	.fresh = remote_fresh,
	.forget = remote_forget,
	.put = remote_put,
	.remove = remote_remove,
};

int store_remote_open(struct object_cache *c, struct object_service *o, const char *name,
		      struct store **ret, struct err *e)
{
	struct rstore *st = alloc_array(1, sizeof(*st));

	if (!st)
		return err_nomem(e);
	st->root = rc_root(c, name);
	if (!st->root) {
		free(st);
		return err_nomem(e);
	}
	st->base = (struct store){.ops = &g_ops, .remote = true, .unlisted = !o->ops->list};
	st->opened_at = clock_ns();
	st->cache = c;
	st->o = o;
	(void)pthread_mutex_init(&st->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&st->idle);
	*ret = &st->base;
	return 0;
}
