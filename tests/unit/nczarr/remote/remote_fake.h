/* SPDX-License-Identifier: BSD-3-Clause */
/* remote_fake.h - a remote service in memory: objects that are fetched on a thread of its own, that
 * count what was asked, and that are late or fail when a test says so. */
#ifndef TESTS_UNIT_NCZARR_REMOTE_REMOTE_FAKE_H
#define TESTS_UNIT_NCZARR_REMOTE_REMOTE_FAKE_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "nczarr/remote/services.h"

#include <cmocka.h>

#define FAKE_OBJECTS 4096
#define FAKE_ASKED 8192

struct fake_object {
	char key[64];
	uint8_t *data;
	size_t len;
	char etag[40];
	int64_t changed;
	int fail;  /* what the next fetches of it give */
	int fails; /* how many of them */
};

struct fake_request {
	struct fake_request *next;
	struct object_range r;
	char key[64], etag[OBJECT_ETAG_MAX];
	object_done *done;
	void *arg;
	int64_t due;
	struct object_got *got; /* made when it was asked, NULL: when it is answered */
};

struct fake_asked {
	char key[64];
	int what;
	uint64_t off, len;
	bool background, conditional, unless;
};

struct fake {
	struct object_service base;
	struct object_service_ops ops;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t thread;
	bool running, ending, held;
	size_t let;    /* of those held, how many may go */
	int64_t delay; /* ns of each request */
	uint64_t rate; /* bytes a second of all answers; 0: at once */
	int64_t line;  /* when the line is free again */
	struct fake_request *queue;
	struct fake_object objects[FAKE_OBJECTS];
	size_t n;
	struct fake_asked asked[FAKE_ASKED];
	size_t n_asked, n_lists, in_flight, most_in_flight;
	uint64_t bytes, in_flight_bytes, most_bytes;
	uint64_t versions;
	bool weak, no_etags, closed;
	bool at_once; /* what an answer says is what was there when it was asked */
	int list_fail;
};

static struct fake_object *fake_find(struct fake *f, const char *key)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->objects[i].data && strcmp(f->objects[i].key, key) == 0)
			return &f->objects[i];
	return NULL;
}

/* fake_byte - what is at off of version v of any object. */
static inline uint8_t fake_byte(uint64_t v, uint64_t off)
{
	return (uint8_t)((off * 2654435761u >> 8) + v * 37 + (off >> 16));
}

static void fake_info(const struct fake *f, const struct fake_object *o,
		      struct object_info *ret)
{
	*ret = (struct object_info){.size = o->len, .changed = o->changed, .weak = f->weak};
	if (!f->no_etags)
		(void)snprintf(ret->etag, sizeof(ret->etag), "%s%s", f->weak ? "W/" : "",
			       o->etag);
	ret->version = object_version(ret);
}

static void fake_set(struct fake *f, const char *key, const void *data, size_t len)
{
	struct fake_object *o;

	(void)pthread_mutex_lock(&f->lock);
	o = fake_find(f, key);
	if (!o)
		o = &f->objects[f->n++];
	free(o->data);
	(void)snprintf(o->key, sizeof(o->key), "%s", key);
	o->data = malloc(len ? len : 1);
	o->len = len;
	f->versions++;
	(void)snprintf(o->etag, sizeof(o->etag), "\"v%llu\"", (unsigned long long)f->versions);
	o->changed = (int64_t)f->versions * 1000000000;
	for (size_t i = 0; !data && i < len; i++)
		o->data[i] = fake_byte(f->versions, i);
	if (data)
		memcpy(o->data, data, len);
	(void)pthread_mutex_unlock(&f->lock);
}

static inline void fake_unset(struct fake *f, const char *key)
{
	struct fake_object *o;

	(void)pthread_mutex_lock(&f->lock);
	o = fake_find(f, key);
	if (o) {
		free(o->data);
		o->data = NULL;
	}
	(void)pthread_mutex_unlock(&f->lock);
}

static inline void fake_fail(struct fake *f, const char *key, int rc, int times)
{
	(void)pthread_mutex_lock(&f->lock);
	fake_find(f, key)->fail = rc;
	fake_find(f, key)->fails = times;
	(void)pthread_mutex_unlock(&f->lock);
}

static void fake_answer(struct fake *f, const struct fake_request *q, struct object_got *got)
{
	struct fake_object *o = fake_find(f, q->key);
	uint64_t off = q->r.off, len = q->r.len;

	*got = (struct object_got){0};
	if (!o) {
		got->rc = err_set(&got->e, -ENOENT, "'%s': not found", q->key);
		return;
	}
	if (o->fails > 0) {
		o->fails--;
		got->rc = err_set(&got->e, o->fail, "'%s': scripted", q->key);
		return;
	}
	fake_info(f, o, &got->info);
	if (q->r.etag && strcmp(q->etag, got->info.etag) != 0) {
		got->rc = err_set(&got->e, -ESTALE, "'%s': changed", q->key);
		return;
	}
	if (q->r.unless && strcmp(q->etag, got->info.etag) == 0) {
		got->rc = -EALREADY;
		return;
	}
	if (q->r.what == OBJECT_ALL) {
		off = 0;
		if (o->len > len) {
			got->rc = err_set(&got->e, -ERANGE, "'%s': too large", q->key);
			return;
		}
	}
	if (q->r.what == OBJECT_TAIL)
		off = o->len > len ? o->len - len : 0;
	len = q->r.what == OBJECT_HEAD || off >= o->len ? 0 : u64_min(len, o->len - off);
	got->off = off;
	got->len = len;
	if (len) {
		got->data = malloc(len);
		memcpy(got->data, o->data + off, len);
		f->bytes += len;
	}
}

/* fake_next - the request that is due first, taken out; NULL: the end. The lock is held. */
static struct fake_request *fake_next(struct fake *f)
{
	for (;;) {
		int64_t now = clock_ns();
		struct fake_request **p = &f->queue, *q = *p;

		if (!q && f->ending)
			return NULL;
		if (q && (f->ending || ((!f->held || f->let) && q->due <= now))) {
			*p = q->next;
			if (f->held && f->let)
				f->let--;
			return q;
		}
		if (q && !f->held) {
			struct timespec ts = {.tv_sec = q->due / 1000000000,
					      .tv_nsec = q->due % 1000000000};

			(void)pthread_cond_timedwait(&f->cond, &f->lock, &ts);
		} else {
			(void)pthread_cond_wait(&f->cond, &f->lock);
		}
	}
}

static void *fake_main(void *arg)
{
	struct fake *f = arg;
	struct fake_request *q;

	(void)pthread_mutex_lock(&f->lock);
	while ((q = fake_next(f))) {
		struct object_got got;

		if (q->got)
			got = *q->got;
		else
			fake_answer(f, q, &got);
		free(q->got);
		f->in_flight--;
		f->in_flight_bytes -= q->r.len;
		(void)pthread_mutex_unlock(&f->lock);
		q->done(q->arg, &got);
		free(q);
		(void)pthread_mutex_lock(&f->lock);
		(void)pthread_cond_broadcast(&f->cond);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}

static int fake_fetch(struct object_service *base, const struct object_range *r,
		      object_done *done, void *arg, struct err *e)
{
	struct fake *f = (struct fake *)(void *)base;
	struct fake_request *q = calloc(1, sizeof(*q)), **p;
	struct fake_asked *a;
	const struct fake_object *o;
	int64_t now = clock_ns();

	(void)e;
	q->r = *r;
	q->done = done;
	q->arg = arg;
	(void)snprintf(q->key, sizeof(q->key), "%s", r->key);
	if (r->etag || r->unless)
		(void)snprintf(q->etag, sizeof(q->etag), "%s", r->etag ? r->etag : r->unless);
	(void)pthread_mutex_lock(&f->lock);
	if (f->n_asked < FAKE_ASKED) {
		a = &f->asked[f->n_asked];
		*a = (struct fake_asked){.what = (int)r->what,
					 .off = r->off,
					 .len = r->len,
					 .background = r->background,
					 .conditional = r->etag,
					 .unless = r->unless};
		(void)snprintf(a->key, sizeof(a->key), "%s", r->key);
	}
	f->n_asked++;
	f->in_flight++;
	f->in_flight_bytes += r->len;
	if (f->in_flight > f->most_in_flight)
		f->most_in_flight = f->in_flight;
	f->most_bytes = u64_max(f->most_bytes, f->in_flight_bytes);
	if (f->at_once) {
		q->got = calloc(1, sizeof(*q->got));
		fake_answer(f, q, q->got);
	}
	o = fake_find(f, r->key);
	q->due = now + f->delay;
	if (f->rate && o) { /* the line carries one answer after the other */
		uint64_t n = r->off < o->len ? u64_min(r->len, o->len - r->off) : 0;

		if (f->line < q->due)
			f->line = q->due;
		f->line += (int64_t)((double)n * 1e9 / (double)f->rate);
		q->due = f->line;
	}
	for (p = &f->queue; *p && (*p)->due <= q->due;)
		p = &(*p)->next;
	q->next = *p;
	*p = q;
	(void)pthread_cond_broadcast(&f->cond);
	(void)pthread_mutex_unlock(&f->lock);
	return 0;
}

static int fake_list(struct object_service *base, const char *key, bool deep, object_emit *emit,
		     void *arg, struct err *e)
{
	struct fake *f = (struct fake *)(void *)base;
	size_t skip = *key ? strlen(key) + 1 : 0;
	char seen[64][64];
	size_t n_seen = 0;

	(void)pthread_mutex_lock(&f->lock);
	f->n_lists++;
	(void)pthread_mutex_unlock(&f->lock);
	if (f->list_fail)
		return err_set(e, f->list_fail, "'%s': scripted", key);
	for (size_t i = 0; i < f->n; i++) {
		struct fake_object *o = &f->objects[i];
		struct object_info info;
		const char *slash;
		char name[64];
		bool known = false;

		if (!o->data ||
		    (skip && (strncmp(o->key, key, skip - 1) != 0 || o->key[skip - 1] != '/')))
			continue;
		(void)snprintf(name, sizeof(name), "%s", o->key + skip);
		slash = deep ? NULL : strchr(name, '/');
		if (slash)
			name[slash - name] = '\0';
		for (size_t k = 0; slash && k < n_seen; k++)
			known |= strcmp(seen[k], name) == 0;
		if (known)
			continue;
		if (slash)
			memcpy(seen[n_seen++], name, sizeof(name));
		fake_info(f, o, &info);
		if (!emit(arg, name, slash, slash ? NULL : &info))
			break;
	}
	return 0;
}

static int fake_put(struct object_service *base, const char *key, const void *data, int fd,
		    uint64_t off, uint64_t len, const struct put_condition *cond,
		    struct object_info *ret, struct err *e)
{
	struct fake *f = (struct fake *)(void *)base;
	struct fake_object *o;
	struct object_info info;

	(void)fd, (void)off;
	(void)pthread_mutex_lock(&f->lock);
	o = fake_find(f, key);
	if (o)
		fake_info(f, o, &info);
	(void)pthread_mutex_unlock(&f->lock);
	if (cond && cond->absent && o)
		return err_set(e, -EEXIST, "'%s': is there", key);
	if (cond && cond->etag && (!o || strcmp(cond->etag, info.etag) != 0))
		return err_set(e, -ESTALE, "'%s': changed", key);
	fake_set(f, key, data, len);
	fake_info(f, fake_find(f, key), ret);
	return 0;
}

static int fake_remove(struct object_service *base, const char *key, struct err *e)
{
	(void)e;
	fake_unset((struct fake *)(void *)base, key);
	return 0;
}

static void fake_close(struct object_service *base)
{
	((struct fake *)(void *)base)->closed = true;
}

static struct fake *fake_new(bool lists)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->ops = (struct object_service_ops){.name = "fake",
					     .close = fake_close,
					     .fetch = fake_fetch,
					     .list = lists ? fake_list : NULL,
					     .put = fake_put,
					     .remove = fake_remove};
	f->base = (struct object_service){.ops = &f->ops, .name = "fake"};
	(void)pthread_mutex_init(&f->lock, NULL);
	cancel_cond_init(&f->cond);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
	return f;
}

static void fake_free(struct fake *f)
{
	(void)pthread_mutex_lock(&f->lock);
	f->ending = true;
	(void)pthread_cond_broadcast(&f->cond);
	(void)pthread_mutex_unlock(&f->lock);
	(void)pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->n; i++)
		free(f->objects[i].data);
	(void)pthread_mutex_destroy(&f->lock);
	(void)pthread_cond_destroy(&f->cond);
	free(f);
}

/* fake_hold - from now on requests are not answered, but for n of them. */
static inline void fake_hold(struct fake *f, bool held, size_t n)
{
	(void)pthread_mutex_lock(&f->lock);
	f->held = held;
	f->let = n;
	(void)pthread_cond_broadcast(&f->cond);
	(void)pthread_mutex_unlock(&f->lock);
}

/* fake_await - until n requests were made since the last fake_forget. */
static inline void fake_await(struct fake *f, size_t n)
{
	(void)pthread_mutex_lock(&f->lock);
	while (f->n_asked < n)
		(void)pthread_cond_wait(&f->cond, &f->lock);
	(void)pthread_mutex_unlock(&f->lock);
}

/* fake_quiet - until nothing is in flight. */
static inline void fake_quiet(struct fake *f)
{
	(void)pthread_mutex_lock(&f->lock);
	while (f->in_flight)
		(void)pthread_cond_wait(&f->cond, &f->lock);
	(void)pthread_mutex_unlock(&f->lock);
}

static inline size_t fake_count(struct fake *f)
{
	size_t n;

	(void)pthread_mutex_lock(&f->lock);
	n = f->n_asked + f->n_lists;
	(void)pthread_mutex_unlock(&f->lock);
	return n;
}

static inline void fake_forget(struct fake *f)
{
	(void)pthread_mutex_lock(&f->lock);
	f->n_asked = f->n_lists = 0;
	f->most_in_flight = f->in_flight;
	f->most_bytes = 0;
	(void)pthread_mutex_unlock(&f->lock);
}

#endif
