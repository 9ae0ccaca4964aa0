/* SPDX-License-Identifier: BSD-3-Clause */
/* remote_fx.h - a store over the service of remote_fake.h, and readers of it. */
#ifndef TESTS_UNIT_NCZARR_REMOTE_REMOTE_FX_H
#define TESTS_UNIT_NCZARR_REMOTE_REMOTE_FX_H

#include <sched.h>

#include "nczarr/remote/cache_int.h"
#include "tests/unit/nczarr/remote/remote_fake.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

struct fx {
	struct fake *f;
	struct object_cache *c;
	struct store *s;
	struct err e;
};

static inline void fx_open(struct fx *x, bool lists, const struct remote_options *o)
{
	static const struct remote_options usual = {
		.cache_bytes = 64 * MIB, .prefetch_bytes = 16 * MIB, .connections = 16};

	*x = (struct fx){.f = fake_new(lists)};
	assert_int_equal(object_cache_new(o ? o : &usual, &x->c, &x->e), 0);
	assert_int_equal(store_remote_open(x->c, &x->f->base, "fake://a", &x->s, &x->e), 0);
}

static inline void fx_close(struct fx *x)
{
	store_close(x->s);
	assert_true(x->f->closed);
	object_cache_free(x->c);
	fake_free(x->f);
}

/* right - whether out has bytes [off, off + n) of what the service has now. */
static inline void right(struct fx *x, const char *key, uint64_t off, const uint8_t *out,
			 size_t n)
{
	const struct fake_object *o = fake_find(x->f, key);

	assert_non_null(o);
	assert_true(off + n <= o->len);
	assert_memory_equal(out, o->data + off, n);
}

static inline int get(struct fx *x, const char *key, uint64_t off, size_t n)
{
	uint8_t *out = malloc(n ? n : 1);
	int rc = store_read(x->s, key, off, out, n, NULL, &x->e);

	if (rc == 0)
		right(x, key, off, out, n);
	free(out);
	return rc;
}

struct names {
	size_t n, dirs;
	uint64_t bytes;
};

static inline bool count(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct names *n = arg;

	(void)name;
	n->n++;
	n->dirs += is_dir;
	n->bytes += st ? st->size : 0;
	return true;
}

struct reader {
	struct fx *x;
	const char *key;
	uint64_t off;
	size_t n;
	int rc;
	struct cancel *stop;
	pthread_t thread;
	struct err e;
};

static inline void *reader_main(void *arg)
{
	struct reader *r = arg;
	uint8_t *out = malloc(r->n);
	struct cancel none;

	cancel_begin(r->stop ? r->stop : &none);
	r->rc = store_read(r->x->s, r->key, r->off, out, r->n, NULL, &r->e);
	cancel_end(r->stop ? r->stop : &none);
	if (r->rc == 0)
		right(r->x, r->key, r->off, out, r->n);
	free(out);
	return NULL;
}

static inline void reader_start(struct reader *r, struct fx *x, const char *key, uint64_t off,
				size_t n)
{
	*r = (struct reader){.x = x, .key = key, .off = off, .n = n, .stop = r->stop};
	assert_int_equal(pthread_create(&r->thread, NULL, reader_main, r), 0);
}

static inline int reader_end(struct reader *r)
{
	(void)pthread_join(r->thread, NULL);
	return r->rc;
}

#endif
