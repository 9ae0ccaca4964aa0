/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch.c - requests: planned under the shard's lock, started without it; answers become extents.
 *
 * An answer is used only if it has the known version. If it has another one, all cached data of
 * the object is dropped and the waiting readers get -ESTALE. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/observe/metrics.h"
#include "nczarr/nczarr.h"
#include "nczarr/store/sorted_keys.h"

#define SIZE_BITS 48
#define DOC_USUAL ((uint64_t)256 << 10) /* of a metadata document */

/* fetch - a request in flight. */
struct fetch {
	struct cache_lookup l; /* key points to fetch.key */
	struct job j;
	int64_t began;
	char key[];
};

static void fetch_finish(struct ext *x, int code, const struct err *why)
{
	x->code = code;
	x->state = code ? EXT_FAILED : EXT_READY;
	if (code && why && code != -EAGAIN) {
		x->why = malloc(sizeof(*why));
		if (x->why)
			*x->why = *why;
	}
	if (code && x->attached)
		obj_detach(x->obj, x);
	if (code)
		rc_unqueue(x);
}

/* release_locked - the request of j has ended, whatever its result. */
static void release_locked(struct cache_lookup *l, struct job *j)
{
	if (l->obj->asking == j->x)
		l->obj->asking = NULL;
	l->obj->refs--;
	(void)pthread_cond_broadcast(&l->shard->done);
}

static void fetch_fail(struct cache_lookup *l, struct job *j, int code, const struct err *why)
{
	(void)pthread_mutex_lock(&l->shard->lock);
	fetch_finish(j->x, code, why);
	release_locked(l, j);
	(void)pthread_mutex_unlock(&l->shard->lock);
	rc_landed(j->x);
	rc_charge(j->x, 0);
	ext_unref(j->x);
	free(j->etag);
	free(j->kept);
}

/* ---- answers ---- */

/* usual_of - the slot with the usual object size of key's folder: its lower 48 bits, valid if the
 * upper ones are the folder's mark. */
static _Atomic uint64_t *usual_of(struct rstore *st, const char *key, uint64_t *ret_mark)
{
	size_t n = store_key_parent_len(key);
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++)
		h = store_mix(h, (unsigned char)key[i]);
	*ret_mark = (h | 1) << SIZE_BITS;
	return &st->root->usual[(h >> 32) % ARRAY_LEN(st->root->usual)];
}

/* usual_size - usual object size of a folder; 0: not known. */
static uint64_t usual_size(struct rstore *st, const char *key)
{
	uint64_t mark, v = atomic_load_explicit(usual_of(st, key, &mark), memory_order_relaxed);

	return v >> SIZE_BITS << SIZE_BITS == mark ? v & (((uint64_t)1 << SIZE_BITS) - 1) : 0;
}

/* note_size - update the usual object size of a folder. It reserves room for objects of unknown
 * size, so it rather overestimates. */
static void note_size(struct cache_lookup *l, uint64_t size)
{
	uint64_t was = rc_guess(l->st, l->key), mark;
	_Atomic uint64_t *slot = usual_of(l->st, l->key, &mark);

	if (size >> SIZE_BITS)
		return;
	was = u64_max(was, usual_size(l->st, l->key));
	if (size < was)
		size = was - (was - size) / 4;
	atomic_store_explicit(slot, mark | u64_max(size, 1), memory_order_relaxed);
}

uint64_t rc_guess(struct rstore *st, const char *key)
{
	uint64_t n = usual_size(st, key), most = st->cache->head;

	if (!n && zarr_doc_key(key))
		return u64_min(DOC_USUAL, most);
	return n ? u64_min(n, most) : most;
}

uint64_t rc_beginning(struct rstore *st, const char *key)
{
	return usual_size(st, key) > 2 * st->cache->head ? RC_BLOCK : st->cache->head;
}

/* bytes_came - move the bytes of an answer of the right version into x. */
static int bytes_came(struct cache_lookup *l, struct job *j, struct object_got *got)
{
	struct cached_object *o = l->obj;
	struct ext *x = j->x;
	uint64_t from = j->what == OBJECT_TAIL ? got->off : j->off, want;
	uint8_t *less;

	if (o->size == UINT64_MAX && got->len < j->len)
		o->size = from + got->len;
	want = o->size <= from
		       ? 0
		       : u64_min(j->what == OBJECT_ALL ? o->size : j->len, o->size - from);
	if (j->what == OBJECT_HEAD || want == 0)
		return -EAGAIN; /* the info was all that was missing */
	if (got->off != from || got->len != want)
		return err_set(&got->e, -EIO,
			       "'%s': received %zu bytes at offset %" PRIu64
			       " instead of %" PRIu64 " at %" PRIu64,
			       l->key, got->len, got->off, want, from);
	if (!x->attached) { /* a tail: its offset was not known before */
		size_t i = obj_at(o, from);

		x->off = from;
		x->len = want;
		if ((i < o->n_xs && o->xs[i]->off < from + want) || obj_attach(o, x) < 0)
			return -EAGAIN;
	}
	x->len = want;
	x->data = got->data;
	got->data = NULL;
	less = want < j->len ? realloc(x->data, want) : NULL;
	if (less)
		x->data = less;
	return 0;
}

/* settle_locked - update the object from an answer; returns the code of x. */
static int settle_locked(struct cache_lookup *l, struct job *j, struct object_got *got)
{
	struct cached_object *o = l->obj;
	int64_t known_at = o->known_at;

	if (o->gen != j->gen)
		return -EAGAIN; /* it was written, or another version was found, meanwhile */
	if (got->rc == -ENOENT) {
		obj_gone(l, j->asked_at);
		(void)atomic_fetch_add(&l->st->base.absences, 1);
		return got->rc;
	}
	if (got->rc == -ESTALE) {
		obj_forget(l);
		return got->rc;
	}
	if (got->rc == -EALREADY) {
		if (j->kept)
			obj_set(l, j->kept, j->asked_at);
		o->known_at = j->asked_at > known_at ? j->asked_at : known_at;
		return -EAGAIN;
	}
	if (got->rc && !(got->rc == -ERANGE && j->what == OBJECT_ALL))
		return got->rc;
	if (got->info.version == 0)
		got->info.version = object_version(&got->info);
	if (o->state == OBJ_THERE && o->version != got->info.version && o->asking != j->x) {
		obj_set(l, &got->info, j->asked_at);
		return err_set(&got->e, -ESTALE, "'%s' was changed while it was read", l->key);
	}
	obj_set(l, &got->info, j->asked_at);
	if (j->from_disk)
		o->known_at = known_at; /* no request was sent */
	note_size(l, got->info.size);
	return got->rc == -ERANGE ? -EAGAIN : bytes_came(l, j, got);
}

/* arrived - store an answer and wake the waiting threads. */
static void arrived(struct cache_lookup *l, struct job *j, struct object_got *got)
{
	struct object_cache *c = l->st->cache;
	struct ext *x = j->x;
	int code;

	rc_landed(x);
	(void)pthread_mutex_lock(&l->shard->lock);
	code = settle_locked(l, j, got);
	fetch_finish(x, code, &got->e);
	rc_charge(x, code ? 0 : x->len + sizeof(*x));
	if (!code)
		rc_enqueue(x);
	release_locked(l, j);
	(void)pthread_mutex_unlock(&l->shard->lock);
	if (!code && !j->from_disk)
		keep_write(l, x, &got->info);
	ext_unref(x);
	free(got->data);
	free(j->etag);
	free(j->kept);
	remote_prefetch_wake(c);
}

/* fetch_left - a request has ended, or could not be sent. */
static void fetch_left(struct rstore *st)
{
	LOCK_SCOPE(&st->lock);

	if (--st->in_flight == 0)
		(void)pthread_cond_broadcast(&st->idle);
}

static void fetched(void *arg, struct object_got *got)
{
	struct fetch *f = arg;
	struct rstore *st = f->l.st;

	rc_line_note(st->cache, clock_ns() - f->began, got->len);
	arrived(&f->l, &f->j, got);
	free(f);
	fetch_left(st);
}

/* ---- starting ---- */

static int fetch_do_start(struct cache_lookup *l, struct job *j, struct err *e)
{
	struct rstore *st = l->st;
	struct fetch *f = alloc_array(1, sizeof(*f) + l->len + 1);
	struct object_range r = {.key = NULL,
				 .what = j->what,
				 .off = j->off,
				 .len = j->len,
				 .etag = j->unless ? NULL : j->etag,
				 .unless = j->unless ? j->etag : NULL,
				 .background = j->prefetch};
	int rc;

	if (!f)
		return err_nomem(e);
	f->l = *l;
	f->j = *j;
	memcpy(f->key, l->key, l->len);
	f->l.key = r.key = f->key;
	f->began = f->j.asked_at = clock_ns();
	(void)pthread_mutex_lock(&st->lock);
	st->in_flight++;
	(void)pthread_mutex_unlock(&st->lock);
	rc = st->o->ops->fetch(st->o, &r, fetched, f, e);
	if (rc == 0)
		return 0;
	fetch_left(st);
	free(f);
	return rc;
}

/* from_disk - whether the bytes are on disk. If the object is unknown but its info is on disk, the
 * request only checks that its version is unchanged. */
static bool from_disk(struct cache_lookup *l, struct job *j)
{
	struct object_got got = {.off = j->off, .len = j->len};
	struct object_info *i = &got.info;
	bool known;

	(void)pthread_mutex_lock(&l->shard->lock);
	known = l->obj->state == OBJ_THERE && l->obj->asking != j->x;
	if (known)
		*i = (struct object_info){.size = l->obj->size,
					  .weak = l->obj->weak,
					  .changed = l->obj->changed,
					  .version = l->obj->version};
	if (known && l->obj->etag)
		(void)snprintf(i->etag, sizeof(i->etag), "%s", l->obj->etag);
	(void)pthread_mutex_unlock(&l->shard->lock);
	if (known) {
		got.data = j->what == OBJECT_PART ? keep_read(l, i, j->off, j->len) : NULL;
		if (j->what == OBJECT_PART && l->st->cache->disk)
			metrics_count(got.data ? M_HIT_DISK : M_MISS_DISK);
		j->from_disk = got.data;
		if (got.data)
			arrived(l, j, &got);
		return j->from_disk;
	}
	if (j->what == OBJECT_HEAD || !keep_info(l, i))
		return false;
	if (!i->etag[0]) {
		j->what = OBJECT_HEAD;
		return false;
	}
	free(j->etag);
	j->etag = strdup(i->etag);
	j->kept = malloc(sizeof(*j->kept));
	j->unless = j->etag && j->kept;
	if (j->kept)
		*j->kept = *i;
	return false;
}

bool fetch_start(struct cache_lookup *l, struct job *j, bool must)
{
	struct err e = ERR_INIT;
	int rc;

	j->grant = u64_min(j->grant, l->st->cache->limit); /* rc_granted() charges the same */
	rc = j->grant ? rc_grant(l->st->cache, j->grant, must) : 0;

	if (rc < 0) {
		fetch_fail(l, j, -EAGAIN, NULL);
		return false;
	}
	rc_granted(j->x, j->grant, j->prefetch);
	if (l->st->cache->disk && !distrusted(l) && from_disk(l, j))
		return true;
	rc = fetch_do_start(l, j, &e);
	if (rc < 0)
		fetch_fail(l, j, rc, &e);
	return true;
}

/* fetch_job_of - a job for x, with a reference for the request. */
static struct job fetch_job_of(struct cache_lookup *l, struct ext *x, int what, uint64_t off,
			       uint64_t len)
{
	struct cached_object *o = l->obj;
	struct job j = {
		.x = x, .what = what, .off = off, .len = len, .grant = len, .gen = o->gen};

	if (o->state == OBJ_THERE && o->etag && !o->weak)
		j.etag = strdup(o->etag);
	o->refs++;
	return j;
}

size_t fetch_plan(struct cache_lookup *l, uint64_t from, uint64_t before, uint64_t to,
		  struct job *jobs, size_t max)
{
	struct object_cache *c = l->st->cache;
	struct cached_object *o = l->obj;
	uint64_t least = atomic_load_explicit(&c->grain, memory_order_relaxed);
	size_t n = 0;

	to = u64_min(to, o->size);
	while (n < max && from < to && from < before) {
		size_t i = obj_at(o, from);
		uint64_t lo = from / RC_BLOCK * RC_BLOCK, hi, room;
		struct ext *x;

		if (i < o->n_xs && o->xs[i]->off <= from) {
			from = o->xs[i]->off + o->xs[i]->len;
			continue;
		}
		/* the gap around `from`, within the wanted range */
		if (i > 0)
			lo = u64_max(lo, o->xs[i - 1]->off + o->xs[i - 1]->len);
		room = i < o->n_xs ? o->xs[i]->off : o->size;
		hi = (u64_max(to, lo + least) + RC_BLOCK - 1) / RC_BLOCK * RC_BLOCK;
		hi = u64_min(hi, u64_min(room, lo + c->piece));
		x = ext_new(c, l, lo, hi - lo);
		if (!x || obj_attach(o, x) < 0) {
			free(x);
			break;
		}
		jobs[n++] = fetch_job_of(l, x, OBJECT_PART, lo, hi - lo);
		from = hi;
	}
	return n;
}

int fetch_ask(struct cache_lookup *l, int what, uint64_t off, uint64_t len, struct job *ret)
{
	struct object_cache *c = l->st->cache;
	bool placed = what == OBJECT_PART || what == OBJECT_ALL;
	struct ext *x = ext_new(c, l, off, len);

	if (!x)
		return -ENOMEM;
	if (placed && obj_attach(l->obj, x) < 0) {
		free(x);
		return -ENOMEM;
	}
	*ret = fetch_job_of(l, x, what, off, len);
	if (what == OBJECT_HEAD) {
		ret->grant = 0;
		free(ret->etag);
		ret->etag = l->obj->state == OBJ_THERE && l->obj->etag ? strdup(l->obj->etag)
								       : NULL;
		ret->unless = true;
	} else if (placed) {
		/* valid for a known object, whatever its version is now */
		free(ret->etag);
		ret->etag = NULL;
		ret->grant = u64_min(len, rc_guess(l->st, l->key));
	}
	l->obj->asking = x;
	return 0;
}

int fetch_wait(struct ext *x, struct err *e)
{
	while (x->state == EXT_FETCHING)
		if (cancel_wait(&x->shard->done, &x->shard->lock) == -EINTR)
			return err_set(e, -EINTR, "cancelled while waiting");
	return 0;
}

int ext_error(const struct ext *x, const char *key, struct err *e)
{
	if (x->state == EXT_READY || x->code == -EAGAIN)
		return x->code;
	if (x->why && e)
		*e = *x->why;
	else
		(void)err_set(e, x->code, "'%s' cannot be downloaded", key);
	return x->code;
}
