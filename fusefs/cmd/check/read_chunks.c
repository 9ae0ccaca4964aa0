/* SPDX-License-Identifier: BSD-3-Clause */
/* read_chunks.c - reads chunks with several threads.
 *
 * Chunks are handed out in order, several at a time, so that all chunks before a position are done
 * if no thread holds one of them: a state file stores that position. A chunk with filters or
 * without a fixed size is decoded by chunkio as for a view; a chunk that is stored unfiltered is
 * read in pieces, or as a whole if its checksum covers the whole (an archive's). */
#include "fusefs/cmd/check/check_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os/lock.h"
#include "fusefs/app/workers.h"
#include "translate/chunkio/delivery.h"

#define RUN 32                        /* chunks that are handed out at once, at most */
#define RUN_BYTES ((uint64_t)4 << 20) /* the same for small chunks, in bytes */
#define PIECE ((size_t)1 << 20)
#define PREFETCH 64 /* remote chunks that are prefetched */
#define GIVE_UP 16 /* unreadable chunks until the check is stopped */

struct check_worker {
	struct check *c;
	/* c->lock: the chunks from here on that were handed out are not done */
	bool busy;
	struct check_at from; /* c->lock */
	uint64_t taken;       /* c->lock: chunks before it */
	uint32_t array;
	uint64_t linear[RUN];
	size_t n;
	uint8_t *piece; /* PIECE bytes; owned by the thread */
};

int check_at_cmp(struct check_at a, struct check_at b)
{
	if (a.array != b.array)
		return a.array < b.array ? -1 : 1;
	return a.linear < b.linear ? -1 : a.linear > b.linear;
}

/* ---- results ---- */

/* why_of - the error message after the chunk's name, which chunkio prepends. */
static const char *why_of(const struct ds_array *a, uint64_t linear, const char *msg)
{
	uint64_t coords[DS_RANK_MAX] = {0};
	auto_buf b = buf_of(4096);
	const char *at = NULL;

	if (linear >= a->n_chunks)
		return msg;
	ds_chunk_coords(a, linear, coords);
	buf_printf(&b, "' chunk %" PRIu64, coords[0]);
	for (uint32_t i = 1; i < a->rank; i++)
		buf_printf(&b, ".%" PRIu64, coords[i]);
	buf_puts(&b, ": ");
	buf_putc(&b, '\0');
	if (buf_ok(&b))
		at = strstr(msg, (const char *)b.data);
	at = at ? at + b.len - 1 : msg;
	return at;
}

/* read_chunks_place_of - set where a chunk is stored, as far as that is known. */
static void read_chunks_place_of(struct check *c, uint32_t array, uint64_t linear,
				 struct check_bad *b)
{
	struct chunk_ref ref;
	auto_buf key = buf_of(8192);
	struct store_place place = {.key = &key};

	if (linear == CHECK_ARRAY || source_locate(c->source, array, linear, &ref, NULL) < 0 ||
	    ref.where != CHUNK_RANGE)
		return;
	if (source_place(c->source, array, linear, &ref, &place, NULL) == 0) {
		buf_putc(&key, '\0');
		b->key = buf_ok(&key) ? strdup((const char *)key.data) : NULL;
		b->placed = b->key != NULL;
		b->whole = place.whole;
		b->off = place.off;
		b->len = ref.len;
	}
}

/* read_chunks_found - record a damaged chunk. Takes the lock. */
static void read_chunks_found(struct check *c, uint32_t array, uint64_t linear,
			      const struct err *why)
{
	struct check_bad b = {.array = array, .linear = linear};

	read_chunks_place_of(c, array, linear, &b);
	b.why = strdup(why_of(&c->source->ds.arrays[array], linear, why->msg));
	(void)pthread_mutex_lock(&c->lock);
	if (!b.why)
		(void)err_nomem(&c->stop);
	if (c->stop.code == 0 && check_bad_add(&c->bad, &b, &c->stop) == 0)
		b = (struct check_bad){0};
	(void)pthread_mutex_unlock(&c->lock);
	free(b.key);
	free(b.why);
}

/* read_chunks_ends - true if an error is fatal for the whole check rather than a verdict on this
 * chunk. Takes the lock. */
static bool read_chunks_ends(struct check *c, uint32_t array, uint64_t linear, int rc,
			     const struct err *why)
{
	const struct check_at at = {array, linear == CHECK_ARRAY ? 0 : linear};
	bool stop = rc == -ENOMEM || rc == -EINTR || rc == -EMFILE || rc == -ENFILE, remote;

	remote = c->source->remote && rc != -EBADMSG && rc != -ERANGE && rc != -EOPNOTSUPP;
	if (rc != -ESTALE && !stop && !remote)
		return false;
	LOCK_SCOPE(&c->lock);
	if (remote && rc != -ESTALE && !stop) {
		if (c->unreadable++ == 0 || check_at_cmp(at, c->hold) < 0)
			c->hold = at;
		stop = c->unreadable >= GIVE_UP;
	}
	if (c->stop.code == 0 && rc == -ESTALE)
		(void)err_set(&c->stop, rc, "'%s' changed while it was read: run the check again",
			      c->setup->cfg->shown);
	else if (c->stop.code == 0 && stop)
		c->stop = *why;
	return true;
}

static void read_chunks_judge(struct check *c, uint32_t array, uint64_t linear, int rc,
			      const struct err *why)
{
	if (!read_chunks_ends(c, array, linear, rc, why))
		read_chunks_found(c, array, linear, why);
}

/* ---- one chunk ---- */

static int read_whole(struct check *c, uint32_t array, uint64_t linear,
		      const struct chunk_ref *ref, struct err *e)
{
	uint8_t *room;
	int rc;

	room_hold(&c->room, ref->len);
	room = malloc(ref->len ? (size_t)ref->len : 1);
	rc = room ? source_read_stored(c->source, array, linear, ref, 0, room, (size_t)ref->len,
				       e)
		  : err_nomem(e);
	free(room);
	room_give(&c->room, ref->len);
	return rc;
}

/* read_plain - read the bytes of a chunk without filters. */
static int read_plain(struct check_worker *w, uint64_t linear, const struct chunk_ref *ref,
		      struct err *e)
{
	struct check *c = w->c;
	const struct ds_array *a = &c->source->ds.arrays[w->array];
	uint64_t want = a->chunk_bytes;
	int rc = 0;

	if (ckd_sub(&want, want, ref->pad) || ref->len != want)
		return delivery_bad_length(ref->len, want, e);
	if (source_fd(c->source, ref->blob) < 0)
		return read_whole(c, w->array, linear, ref, e);
	for (uint64_t off = 0; rc == 0 && off < ref->len; off += PIECE)
		rc = source_read_stored(c->source, w->array, linear, ref, off, w->piece,
					(size_t)u64_min(PIECE, ref->len - off), e);
	return rc;
}

/* read_made - read a chunk through chunkio. */
static int read_made(struct check_worker *w, uint64_t linear, uint64_t *ret, struct err *e)
{
	struct span span;
	int rc = chunkio_read(w->c->io, w->array, linear, 0, SIZE_MAX / 2, NULL, &span, e);

	if (rc < 0)
		return rc;
	*ret = span.len;
	span_done(&span);
	return 0;
}

static void read_chunks_look(struct check_worker *w, uint64_t linear)
{
	struct check *c = w->c;
	const struct ds_array *a = &c->source->ds.arrays[w->array];
	struct err why = ERR_INIT;
	struct chunk_ref ref;
	uint64_t made = a->chunk_bytes;
	int rc = source_locate(c->source, w->array, linear, &ref, &why);

	if (rc == 0 && ref.where == CHUNK_ABSENT) {
		rc = -ENOENT;
	} else if (rc == 0 && !c->setup->cfg->check.quick) {
		if (ref.where == CHUNK_RANGE && a->access == DS_STORED &&
		    delivery_plain(a, &ref))
			rc = read_plain(w, linear, &ref, &why);
		else
			rc = read_made(w, linear, &made, &why);
		if (rc == 0 && source_check(c->source, &why) < 0)
			rc = why.code;
		rc = rc == -ENOENT ? -EIO : rc; /* the index has the chunk */
	}
	if (rc < 0 && rc != -ENOENT)
		read_chunks_judge(c, w->array, linear, rc, &why);
	LOCK_SCOPE(&c->lock);
	c->chunks += rc != -ENOENT;
	if (rc == 0) {
		c->bytes += ref.where == CHUNK_RANGE ? ref.len : made;
		c->elements += made;
	}
}

/* ---- handing out ---- */

/* read_chunks_leave - continue with the next array. */
static void read_chunks_leave(struct check *c)
{
	const struct ds_array *a = &c->source->ds.arrays[c->next.array++];

	c->passed += (double)a->n_chunks * (double)u64_max(a->chunk_bytes, 1);
	c->next.linear = 0;
}

/* unread - true if no chunk of an array can be read; *ret is the reason. */
static bool unread(const struct ds_array *a, struct err *ret)
{
	if (!a->unreadable || a->n_chunks == 0)
		return false;
	(void)err_set(ret, -EOPNOTSUPP, "no chunk can be decoded: %s", a->unreadable);
	return true;
}

/* read_chunks_fill - find the next chunks of an array for a thread, without the lock, because an
 * index may have to be loaded. *next: where to continue. Returns true if the array is complete, or
 * if it cannot be searched, with the reason in *ret. */
static bool read_chunks_fill(struct check *c, struct check_worker *w, uint64_t *next,
			     struct err *ret)
{
	const struct ds_array *a = &c->source->ds.arrays[w->array];
	uint64_t bytes = 0, linear;
	int rc = 0;

	while (rc == 0 && w->n < RUN && bytes < RUN_BYTES) {
		rc = *next < a->n_chunks
			     ? source_next(c->source, w->array, *next, &linear, ret)
			     : -ENOENT;
		if (rc < 0)
			break;
		w->linear[w->n++] = linear;
		*next = linear + 1;
		bytes += u64_max(a->chunk_bytes, RUN_BYTES / RUN / 16);
	}
	if (rc == -ENOENT)
		*ret = (struct err)ERR_INIT;
	return rc < 0;
}

/* read_chunks_take - get the next chunks for a thread. false: no more chunks. */
static bool read_chunks_take(struct check *c, struct check_worker *w)
{
	LOCK_SCOPE(&c->lock);
	struct err why;
	uint64_t next;
	uint32_t array;
	bool over;

	w->busy = false;
	w->n = 0;
	while (w->n == 0 && c->stop.code == 0 && c->next.array < c->source->ds.n_arrays) {
		if (c->filling) {
			(void)pthread_cond_wait(&c->tick, &c->lock);
			continue;
		}
		why = (struct err)ERR_INIT;
		w->busy = true;
		w->from = c->next;
		w->taken = c->taken;
		w->array = array = c->next.array;
		next = c->next.linear;
		c->filling = true;
		(void)pthread_mutex_unlock(&c->lock);
		over = unread(&c->source->ds.arrays[array], &why) ||
		       read_chunks_fill(c, w, &next, &why);
		(void)pthread_mutex_lock(&c->lock);
		c->filling = false;
		(void)pthread_cond_broadcast(&c->tick);
		c->next.linear = next;
		c->taken += w->n;
		if (over)
			read_chunks_leave(c);
		if (why.code) {
			(void)pthread_mutex_unlock(&c->lock);
			read_chunks_judge(c, array, CHECK_ARRAY, why.code, &why);
			(void)pthread_mutex_lock(&c->lock);
		}
	}
	w->busy = w->n > 0;
	return w->busy;
}

static void read_chunks_work(void *arg, uint32_t i, uint8_t *room)
{
	struct check *c = arg;
	struct check_worker *w = &c->workers[i];
	bool stop = false;

	w->c = c;
	w->piece = room;
	while (!stop && read_chunks_take(c, w)) {
		if (!c->setup->cfg->check.quick)
			source_want(c->source, w->array, w->linear, w->n);
		for (size_t k = 0; k < w->n && !stop; k++) {
			read_chunks_look(w, w->linear[k]);
			(void)pthread_mutex_lock(&c->lock);
			stop = c->stop.code != 0;
			(void)pthread_mutex_unlock(&c->lock);
		}
	}
	LOCK_SCOPE(&c->lock);
	w->busy = stop; /* the chunks it held are not done */
}

/* ---- all threads ---- */

/* read_chunks_done_to - the position before which everything is done. Call with the lock. */
static struct check_at read_chunks_done_to(const struct check *c, uint64_t *ret_taken)
{
	struct check_at at = c->next;

	*ret_taken = c->taken;
	for (uint32_t i = 0; i < c->n_workers; i++) {
		const struct check_worker *w = &c->workers[i];

		if (w->busy && check_at_cmp(w->from, at) < 0) {
			at = w->from;
			*ret_taken = w->taken;
		}
	}
	if (c->unreadable && check_at_cmp(c->hold, at) < 0)
		at = c->hold; /* a few are counted twice in this case */
	return at;
}

static void read_chunks_on_progress(void *arg)
{
	struct check *c = arg;
	uint64_t taken;
	struct check_at at;

	(void)pthread_mutex_lock(&c->lock);
	if (c->running == 0 && c->unreadable && c->stop.code == 0)
		(void)err_set(&c->stop, -EIO,
			      "%" PRIu32 " chunks could not be fetched: run the check again",
			      c->unreadable);
	at = read_chunks_done_to(c, &taken);
	(void)pthread_mutex_unlock(&c->lock);
	c->on_progress(c->progress_arg, at, taken);
}

int check_run(struct check *c, void (*tick)(void *arg, struct check_at at, uint64_t taken),
	      void *arg, struct err *e)
{
	const struct workers w = {.n = c->n_workers,
				  .room = PIECE,
				  .lock = &c->lock,
				  .tick = &c->tick,
				  .running = &c->running,
				  .work = read_chunks_work,
				  .on_progress = read_chunks_on_progress,
				  .arg = c};
	int rc;

	c->workers = alloc_array(c->n_workers, sizeof(*c->workers));
	if (!c->workers)
		return err_nomem(e);
	c->on_progress = tick;
	c->progress_arg = arg;
	room_init(&c->room, c->setup->cfg->limits.cache_size);
	rc = workers_run(&w, &c->stop);
	free(c->workers);
	c->workers = NULL;
	room_end(&c->room);
	if (c->stop.code && e)
		*e = c->stop;
	return c->stop.code ? c->stop.code : rc;
}
