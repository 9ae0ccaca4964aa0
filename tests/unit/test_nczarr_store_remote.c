/* The store over a remote service: what it asks, and what it does not ask again. */
#include "remote_fake.h"

#include "nczarr/store_remote_int.h"

#include <sched.h>

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

struct fx {
	struct fake *f;
	struct rcache *c;
	struct store *s;
	struct err e;
};

static void fx_open(struct fx *x, bool lists, const struct remote_options *o)
{
	static const struct remote_options usual = {
		.cache_bytes = 64 * MIB, .ahead_bytes = 16 * MIB, .connections = 16};

	*x = (struct fx){.f = fake_new(lists)};
	assert_int_equal(rcache_new(o ? o : &usual, &x->c, &x->e), 0);
	assert_int_equal(store_remote_open(x->c, &x->f->base, "fake://a", &x->s, &x->e), 0);
}

static void fx_close(struct fx *x)
{
	store_close(x->s);
	assert_true(x->f->closed);
	rcache_free(x->c);
	fake_free(x->f);
}

/* right - whether out has bytes [off, off + n) of what the service has now. */
static void right(struct fx *x, const char *key, uint64_t off, const uint8_t *out, size_t n)
{
	const struct fake_object *o = fake_find(x->f, key);

	assert_non_null(o);
	assert_true(off + n <= o->len);
	assert_memory_equal(out, o->data + off, n);
}

static int get(struct fx *x, const char *key, uint64_t off, size_t n)
{
	uint8_t *out = malloc(n ? n : 1);
	int rc = store_read(x->s, key, off, out, n, NULL, &x->e);

	if (rc == 0)
		right(x, key, off, out, n);
	free(out);
	return rc;
}

static void test_stat_and_read_cost_one(void **state)
{
	struct fx x;
	struct store_stat st;
	struct buf b;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a/0.0", NULL, 3 * MIB + 17);
	fake_set(x.f, "a/0.1", NULL, 1000);
	fake_set(x.f, "a/none", NULL, 0);
	assert_int_equal(store_stat(x.s, "a/0.0", &st, &x.e), 0);
	assert_int_equal(st.size, 3 * MIB + 17);
	assert_true(st.version != 0);
	for (uint64_t off = 0; off + 128 * KIB <= 3 * MIB; off += 128 * KIB)
		assert_int_equal(get(&x, "a/0.0", off, 128 * KIB), 0);
	assert_int_equal(get(&x, "a/0.0", 0, 3 * MIB + 17), 0);
	assert_int_equal(fake_count(x.f), 1);
	assert_int_equal(get(&x, "a/0.0", 0, 3 * MIB + 18), -EIO);
	buf_init(&b, MIB);
	assert_int_equal(store_get(x.s, "a/0.1", &b, &x.e), 0);
	assert_int_equal(b.len, 1000);
	right(&x, "a/0.1", 0, b.data, 1000);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_get(x.s, "a/0.1", &b, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a/0.1", &st, &x.e), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_get(x.s, "a/none", &b, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a/none", &st, &x.e), 0);
	assert_int_equal(st.size, 0);
	assert_int_equal(b.len, 2000);
	assert_int_equal(fake_count(x.f), 3);
	assert_int_equal(store_get(x.s, "a/0.0", &b, &x.e), -ERANGE);
	buf_release(&b);
	fx_close(&x);
}

static void test_large_objects_by_range(void **state)
{
	struct fx x;
	struct store_stat st;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "big", NULL, 40 * MIB + 5);
	assert_int_equal(store_stat(x.s, "big", &st, &x.e), 0);
	assert_int_equal(st.size, 40 * MIB + 5);
	assert_int_equal(get(&x, "big", 30 * MIB + 3, 100), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(x.f->asked[1].what, OBJECT_PART);
	assert_true(x.f->asked[1].conditional);
	assert_int_equal(x.f->asked[1].off % (64 * KIB), 0);
	assert_int_equal(get(&x, "big", 40 * MIB, 5), 0);
	assert_int_equal(fake_count(x.f), 3);
	/* what is missing of it, side by side, in pieces */
	fake_forget(x.f);
	x.f->delay = 10 * 1000000;
	assert_int_equal(get(&x, "big", 3 * MIB, 30 * MIB), 0);
	assert_true(fake_count(x.f) <= 6);
	assert_true(x.f->most_in_flight >= 2);
	for (size_t i = 0; i < x.f->n_asked; i++)
		assert_true(x.f->asked[i].len <= 8 * MIB);
	fx_close(&x);
}

static void test_absence(void **state)
{
	struct fx x;
	struct store_stat st;

	(void)state;
	fx_open(&x, false, NULL);
	assert_true(x.s->far);
	assert_true(x.s->unlisted);
	assert_int_equal(store_stat(x.s, "", &st, &x.e), 0);
	assert_true(st.is_dir);
	assert_int_equal(store_stat(x.s, "a/1.1", &st, &x.e), -ENOENT);
	assert_int_equal(store_stat(x.s, "a/1.1", &st, &x.e), -ENOENT);
	assert_int_equal(get(&x, "a/1.1", 0, 1), -ENOENT);
	assert_int_equal(fake_count(x.f), 1);
	/* a fault is no absence, and is not remembered */
	fake_set(x.f, "a/2", NULL, 10);
	fake_fail(x.f, "a/2", -EACCES, 1);
	assert_int_equal(store_stat(x.s, "a/2", &st, &x.e), -EACCES);
	assert_non_null(strstr(x.e.msg, "scripted"));
	assert_int_equal(store_stat(x.s, "a/2", &st, &x.e), 0);
	assert_int_equal(fake_count(x.f), 3);
	fx_close(&x);
}

struct names {
	size_t n, dirs;
	uint64_t bytes;
};

static bool count(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct names *n = arg;

	(void)name;
	n->n++;
	n->dirs += is_dir;
	n->bytes += st ? st->size : 0;
	return true;
}

static void test_listing_says_it(void **state)
{
	struct fx x;
	struct store_stat st;
	struct names n = {0};

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a/.zarray", NULL, 100);
	fake_set(x.f, "a/0", NULL, 1000);
	fake_set(x.f, "a/b/0", NULL, 1000);
	assert_int_equal(store_list(x.s, "a", true, count, &n, &x.e), 0);
	assert_int_equal(n.n, 3);
	assert_int_equal(n.dirs, 1);
	assert_int_equal(n.bytes, 1100);
	assert_int_equal(fake_count(x.f), 1);
	assert_int_equal(store_stat(x.s, "a/0", &st, &x.e), 0);
	assert_int_equal(st.size, 1000);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_true(st.is_dir);
	assert_int_equal(store_stat(x.s, "a/b", &st, &x.e), 0);
	assert_true(st.is_dir);
	assert_int_equal(store_stat(x.s, "a/1", &st, &x.e), -ENOENT);
	assert_int_equal(store_stat(x.s, "a/c/d/1", &st, &x.e), -ENOENT);
	assert_int_equal(get(&x, "a/1", 0, 1), -ENOENT);
	assert_int_equal(fake_count(x.f), 1);
	assert_int_equal(get(&x, "a/0", 0, 1000), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_stat(x.s, "a/b/1", &st, &x.e), -ENOENT); /* not listed */
	assert_true(fake_count(x.f) > 2);
	fake_forget(x.f);
	assert_int_equal(store_list(x.s, "none", true, count, &n, &x.e), -ENOENT);
	assert_int_equal(store_stat(x.s, "none/1", &st, &x.e), -ENOENT);
	assert_int_equal(fake_count(x.f), 1);
	fx_close(&x);
}

static void test_folders_are_asked_for(void **state)
{
	struct fx x;
	struct store_stat st;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "g/a/0", NULL, 10);
	assert_int_equal(store_stat(x.s, "g/a", &st, &x.e), 0);
	assert_true(st.is_dir);
	assert_int_equal(fake_count(x.f), 2); /* an object? a folder? */
	assert_int_equal(store_stat(x.s, "g/a", &st, &x.e), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_stat(x.s, "g/.zgroup", &st, &x.e), -ENOENT);
	assert_int_equal(fake_count(x.f), 3); /* documents are no folders */
	x.f->list_fail = -EIO;
	assert_int_equal(store_stat(x.s, "g/b", &st, &x.e), -EIO);
	x.f->list_fail = 0;
	assert_int_equal(store_stat(x.s, "g/b", &st, &x.e), -ENOENT);
	fx_close(&x);
}

/* ---- many at a time ---- */

struct reader {
	struct fx *x;
	const char *key;
	uint64_t off;
	size_t n;
	int rc;
	struct stop *stop;
	pthread_t thread;
	struct err e;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	uint8_t *out = malloc(r->n);
	struct stop none;

	stop_begin(r->stop ? r->stop : &none);
	r->rc = store_read(r->x->s, r->key, r->off, out, r->n, NULL, &r->e);
	stop_end(r->stop ? r->stop : &none);
	if (r->rc == 0)
		right(r->x, r->key, r->off, out, r->n);
	free(out);
	return NULL;
}

static void reader_start(struct reader *r, struct fx *x, const char *key, uint64_t off,
			 size_t n)
{
	*r = (struct reader){.x = x, .key = key, .off = off, .n = n, .stop = r->stop};
	assert_int_equal(pthread_create(&r->thread, NULL, reader_main, r), 0);
}

static int reader_end(struct reader *r)
{
	(void)pthread_join(r->thread, NULL);
	return r->rc;
}

static void test_single_flight(void **state)
{
	struct reader r[16] = {0};
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, MIB);
	fake_set(x.f, "b", NULL, 20 * MIB);
	fake_hold(x.f, true, 0);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		reader_start(&r[i], &x, "a", i * 1000, 1000);
	fake_await(x.f, 1);
	fake_hold(x.f, false, 0);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		assert_int_equal(reader_end(&r[i]), 0);
	assert_int_equal(fake_count(x.f), 1);
	/* the same of a range of what is known */
	assert_int_equal(get(&x, "b", 0, 1), 0);
	fake_forget(x.f);
	fake_hold(x.f, true, 0);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		reader_start(&r[i], &x, "b", 10 * MIB + i * 1000, 1000);
	fake_await(x.f, 1);
	fake_hold(x.f, false, 0);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		assert_int_equal(reader_end(&r[i]), 0);
	assert_int_equal(fake_count(x.f), 1);
	/* an error is everybody's who waited, and nobody's later */
	fake_set(x.f, "c", NULL, 10);
	fake_forget(x.f);
	fake_fail(x.f, "c", -ETIMEDOUT, 1);
	fake_hold(x.f, true, 0);
	reader_start(&r[0], &x, "c", 0, 10);
	fake_await(x.f, 1);
	fake_hold(x.f, false, 0);
	assert_int_equal(reader_end(&r[0]), -ETIMEDOUT);
	assert_int_equal(get(&x, "c", 0, 10), 0);
	fx_close(&x);
}

static void test_who_waits_can_give_up(void **state)
{
	struct stop stop = {.asked = false};
	struct reader r[2] = {{.stop = &stop}, {.stop = NULL}};
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 1000);
	fake_hold(x.f, true, 0);
	reader_start(&r[0], &x, "a", 0, 1000);
	fake_await(x.f, 1);
	reader_start(&r[1], &x, "a", 0, 1000);
	stop_ask(&stop);
	assert_int_equal(reader_end(&r[0]), -EINTR);
	fake_hold(x.f, false, 0);
	assert_int_equal(reader_end(&r[1]), 0); /* the other one gets what was begun */
	assert_int_equal(fake_count(x.f), 1);
	fx_close(&x);
}

/* ---- versions ---- */

static void test_another_version(void **state)
{
	struct store_stat st, st2;
	uint64_t version = 0;
	uint8_t out[100];
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	for (int kind = 0; kind < 3; kind++) { /* strong, weak, no ETags */
		x.f->weak = kind == 1;
		x.f->no_etags = kind == 2;
		fake_set(x.f, "a", NULL, 20 * MIB + (size_t)kind);
		assert_int_equal(store_fresh(x.s, "a", &st, &x.e), 0);
		assert_int_equal(get(&x, "a", 0, 100), 0);
		fake_set(x.f, "a", NULL, 19 * MIB);
		/* what is kept is of the old one, and what is not says so, once */
		assert_int_equal(store_read(x.s, "a", 0, out, 100, &version, &x.e), 0);
		assert_int_equal(version, st.version);
		assert_int_equal(get(&x, "a", 10 * MIB, 100), -ESTALE);
		assert_int_equal(get(&x, "a", 10 * MIB, 100), 0);
		assert_int_equal(get(&x, "a", 0, 100), 0);
		assert_int_equal(store_stat(x.s, "a", &st2, &x.e), 0);
		assert_int_equal(st2.size, 19 * MIB);
		assert_true(st2.version != st.version);
		/* a piece of the new one is not put beside pieces of the old one */
		fake_set(x.f, "a", NULL, 19 * MIB);
		assert_int_equal(get(&x, "a", 0, 15 * MIB), -ESTALE);
		assert_int_equal(get(&x, "a", 0, 15 * MIB), 0);
	}
	fx_close(&x);
}

static void test_fresh(void **state)
{
	struct store_stat st, st2;
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 1000);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_true(x.f->asked[1].unless);
	assert_int_equal(x.f->asked[1].what, OBJECT_HEAD);
	assert_int_equal(st.version, st2.version);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	assert_int_equal(fake_count(x.f), 2);
	fake_set(x.f, "a", NULL, 1001);
	assert_int_equal(store_stat(x.s, "a", &st2, &x.e), 0);
	assert_int_equal(st2.size, 1000); /* nobody asked */
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), 0);
	assert_int_equal(st2.size, 1001);
	assert_int_equal(get(&x, "a", 0, 1001), 0);
	fake_unset(x.f, "a");
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), -ENOENT);
	fake_set(x.f, "a", NULL, 5);
	assert_int_equal(store_stat(x.s, "a", &st2, &x.e), -ENOENT); /* known to be absent */
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), 0);
	assert_int_equal(st2.size, 5);
	fake_fail(x.f, "a", -ETIMEDOUT, 1);
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), -ETIMEDOUT);
	assert_int_equal(store_stat(x.s, "a", &st2, &x.e), 0);
	fx_close(&x);
}

static void pass(int64_t ns)
{
	for (int64_t then = stop_now(); stop_now() - then < ns;)
		(void)sched_yield();
}

/* Things known are asked for again when they are too old. */
static void test_check_every(void **state)
{
	const struct remote_options o = {.cache_bytes = 64 * MIB, .check_ms = 1};
	struct store_stat st;
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	fake_set(x.f, "a", NULL, 1000);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_int_equal(store_stat(x.s, "b/.zarray", &st, &x.e), -ENOENT);
	fake_set(x.f, "a", NULL, 2000);
	fake_set(x.f, "b/.zarray", NULL, 1);
	pass(2000000);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_int_equal(st.size, 2000);
	assert_int_equal(store_stat(x.s, "b/.zarray", &st, &x.e), 0);
	fx_close(&x);
}

/* What is too old and of which nothing is kept costs what it costs anyway. */
static void test_too_old_costs_nothing_more(void **state)
{
	const struct remote_options o = {
		.cache_bytes = 64 * MIB, .ahead_bytes = 16 * MIB, .check_ms = 1};
	struct store_range r = {"a/0", 0, UINT64_MAX};
	struct store_stat st;
	struct names n = {0};
	char key[16];
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	for (size_t i = 0; i < 8; i++) {
		(void)snprintf(key, sizeof(key), "a/%zu", i);
		fake_set(x.f, key, NULL, 5000);
	}
	assert_int_equal(store_list(x.s, "a", true, count, &n, &x.e), 0);
	for (size_t i = 0; i < 8; i++) {
		(void)snprintf(key, sizeof(key), "a/%zu", i);
		pass(1500000);
		fake_forget(x.f);
		if (i % 2)
			assert_int_equal(get(&x, key, 0, 5000), 0);
		else
			assert_int_equal(store_stat(x.s, key, &st, &x.e), 0);
		assert_int_equal(fake_count(x.f), 1);
		assert_int_equal(x.f->asked[0].what, OBJECT_PART);
	}
	/* who wants something soon has it looked at soon */
	pass(1500000);
	fake_forget(x.f);
	store_want(x.s, &r, 1);
	fake_quiet(x.f);
	assert_int_equal(fake_count(x.f), 1);
	assert_int_equal(x.f->asked[0].what, OBJECT_HEAD);
	assert_true(x.f->asked[0].background);
	/* and when it is another one, nobody reads the old one */
	fake_set(x.f, "a/0", NULL, 6000);
	pass(1500000);
	assert_int_equal(get(&x, "a/0", 0, 6000), 0);
	fx_close(&x);
}

/* ---- fetching early ---- */

static void test_wanted_objects_come_in_order(void **state)
{
	struct store_range r[40];
	char keys[40][16];
	struct fx x;

	(void)state;
	fx_open(&x, false, NULL);
	for (size_t i = 0; i < 40; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "a/%zu", i);
		r[i] = (struct store_range){keys[i], 0, UINT64_MAX};
		if (i % 10 != 9)
			fake_set(x.f, keys[i], NULL, 100 * KIB);
	}
	x.f->delay = 5 * 1000000;
	store_want(x.s, r, 40);
	store_want(x.s, r, 40);
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(get(&x, keys[i], 0, 100 * KIB), i % 10 == 9 ? -ENOENT : 0);
	assert_int_equal(fake_count(x.f), 40);
	assert_true(x.f->most_in_flight > 4);
	assert_true(x.f->most_in_flight <= 17);
	for (size_t i = 0; i < 40; i++)
		assert_string_equal(x.f->asked[i].key, keys[i]);
	store_want(x.s, r, 40);
	fake_quiet(x.f);
	assert_int_equal(fake_count(x.f), 40);
	fx_close(&x);
}

static void test_end_first(void **state)
{
	struct store_range tail = {"a", UINT64_MAX, 1000};
	struct store_stat st;
	struct fx x;

	(void)state;
	fx_open(&x, false, NULL);
	fake_set(x.f, "a", NULL, 20 * MIB + 77);
	store_want(x.s, &tail, 1);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_int_equal(st.size, 20 * MIB + 77);
	assert_int_equal(get(&x, "a", 20 * MIB + 77 - 1000, 1000), 0);
	store_want(x.s, &tail, 1);
	assert_int_equal(fake_count(x.f), 1);
	assert_int_equal(get(&x, "a", 20 * MIB + 77 - 70000, 70000), 0);
	assert_int_equal(fake_count(x.f), 2);
	fx_close(&x);
}

static void test_near_ranges_are_one_request(void **state)
{
	const struct store_range r[] = {{"a", 6 * MIB, 1000},
					{"a", 6 * MIB + 200 * KIB, 1000},
					{"a", 6 * MIB + 100 * KIB, 1000},
					{"a", 9 * MIB, 1000}};
	struct store_stat st;
	struct fx x;

	(void)state;
	fx_open(&x, false, NULL);
	fake_set(x.f, "a", NULL, 20 * MIB);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	fake_forget(x.f);
	store_want(x.s, r, ARRAY_LEN(r));
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		assert_int_equal(get(&x, "a", r[i].off, r[i].len), 0);
	assert_int_equal(fake_count(x.f), 2);
	fx_close(&x);
}

static void test_early_is_bounded(void **state)
{
	const struct remote_options o = {
		.cache_bytes = 64 * MIB, .ahead_bytes = 4 * MIB, .connections = 64};
	struct store_range r[64];
	char keys[64][16];
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	for (size_t i = 0; i < 64; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "a/%zu", i);
		r[i] = (struct store_range){keys[i], 0, UINT64_MAX};
		fake_set(x.f, keys[i], NULL, MIB - 4096);
	}
	{
		struct names n = {0};

		assert_int_equal(store_list(x.s, "a", true, count, &n, &x.e), 0);
	}
	fake_forget(x.f);
	store_want(x.s, r, 64);
	fake_quiet(x.f);
	assert_in_range(fake_count(x.f), 3, 5);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(get(&x, keys[i], 0, MIB - 4096), 0);
	assert_int_equal(fake_count(x.f), 64);
	fx_close(&x);
}

static void test_in_order_within_an_object(void **state)
{
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 60 * MIB);
	for (uint64_t off = 0; off < 60 * MIB; off += 128 * KIB)
		assert_int_equal(get(&x, "a", off, 128 * KIB), 0);
	assert_true(fake_count(x.f) < 60);
	assert_true(x.f->bytes <= 61 * MIB);
	/* who jumps about gets what he asks for */
	fake_set(x.f, "b", NULL, 60 * MIB);
	assert_int_equal(get(&x, "b", 0, 100), 0);
	fake_quiet(x.f);
	x.f->bytes = 0;
	for (uint64_t off = 50 * MIB; off > 6 * MIB; off -= 4 * MIB)
		assert_int_equal(get(&x, "b", off, 1000), 0);
	fake_quiet(x.f);
	assert_true(x.f->bytes < 4 * MIB);
	fx_close(&x);
}

/* ---- the budget ---- */

struct stream {
	struct fx *x;
	size_t no;
	uint64_t seed;
	pthread_t thread;
	bool wants;
};

static void *stream_main(void *arg)
{
	struct stream *t = arg;
	uint8_t *out = malloc(MIB);

	for (size_t i = 0; i < 24; i++) {
		char key[8][16];
		struct store_range r[8];

		for (size_t k = 0; k < 8; k++) {
			(void)snprintf(key[k], sizeof(key[k]), "s/%zu",
				       (t->no * 7 + i + k) % 128);
			r[k] = (struct store_range){key[k], 0, UINT64_MAX};
		}
		if (t->wants)
			store_want(t->x->s, r, 8);
		for (size_t off = 0; off < MIB; off += 128 * KIB)
			assert_int_equal(store_read(t->x->s, key[0], off, out + off, 128 * KIB,
						    NULL, NULL),
					 0);
		right(t->x, key[0], 0, out, MIB);
	}
	free(out);
	return NULL;
}

static void test_many_streams_under_a_small_budget(void **state)
{
	const struct remote_options o = {
		.cache_bytes = 16 * MIB, .ahead_bytes = 8 * MIB, .connections = 64};
	struct stream t[64];
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	for (size_t i = 0; i < 128; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "s/%zu", i);
		fake_set(x.f, key, NULL, MIB);
	}
	x.f->delay = 200000;
	for (size_t i = 0; i < 64; i++) {
		t[i] = (struct stream){.x = &x, .no = i, .wants = i % 2};
		assert_int_equal(pthread_create(&t[i].thread, NULL, stream_main, &t[i]), 0);
	}
	for (size_t i = 0; i < 64; i++)
		(void)pthread_join(t[i].thread, NULL);
	assert_true(rcache_peak(x.c) <= 17 * MIB);
	fx_close(&x);
}

/* What is read again and again survives a scan. */
static void test_scan(void **state)
{
	const struct remote_options o = {.cache_bytes = 16 * MIB, .connections = 16};
	char key[16];
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	fake_set(x.f, "hot", NULL, MIB);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(get(&x, "hot", 0, MIB), 0);
	for (size_t i = 0; i < 64; i++) {
		(void)snprintf(key, sizeof(key), "s/%zu", i);
		fake_set(x.f, key, NULL, MIB);
		assert_int_equal(get(&x, key, 0, i % 2 ? MIB : MIB / 2), 0);
	}
	fake_forget(x.f);
	assert_int_equal(get(&x, "hot", 0, MIB), 0);
	assert_int_equal(fake_count(x.f), 0);
	fx_close(&x);
}

/* However many names are looked at, what is known of them does not grow for ever; and what had to be
 * forgotten is not taken for absent. */
static void test_names_are_bounded(void **state)
{
	const struct remote_options o = {.cache_bytes = MIB};
	struct store_stat st;
	struct names n = {0};
	char key[32];
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	for (size_t i = 0; i < 4000; i++) {
		(void)snprintf(key, sizeof(key), "a/%zu", i);
		fake_set(x.f, key, "x", 1);
	}
	assert_int_equal(store_list(x.s, "a", true, count, &n, &x.e), 0);
	assert_int_equal(n.n, 4000);
	for (size_t i = 0; i < 4000; i += 97) {
		(void)snprintf(key, sizeof(key), "a/%zu", i);
		assert_int_equal(store_stat(x.s, key, &st, &x.e), 0);
	}
	for (size_t i = 0; i < 20000; i++) {
		(void)snprintf(key, sizeof(key), "b/%zu/.zarray", i);
		assert_int_equal(store_stat(x.s, key, &st, &x.e), -ENOENT);
	}
	assert_true(rcache_peak(x.c) <= MIB);
	fx_close(&x);
}

/* ---- writing ---- */

static void test_put_and_remove(void **state)
{
	struct store_put p = {.data = "hello", .len = 5};
	struct store_stat st;
	uint64_t version = 0, version2 = 0;
	uint8_t out[8];
	struct names n = {0};
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a/0", NULL, 100);
	assert_int_equal(store_list(x.s, "", true, count, &n, &x.e), 0);
	assert_int_equal(store_list(x.s, "a", true, count, &n, &x.e), 0);
	assert_int_equal(store_stat(x.s, "b/c", &st, &x.e), -ENOENT);
	assert_int_equal(store_put(x.s, "b/c", &p, &version, &x.e), 0);
	assert_int_equal(store_stat(x.s, "b/c", &st, &x.e), 0);
	assert_int_equal(st.size, 5);
	assert_int_equal(st.version, version);
	assert_int_equal(store_read(x.s, "b/c", 0, out, 5, &version2, &x.e), 0);
	assert_memory_equal(out, "hello", 5);
	assert_int_equal(version2, version);
	assert_int_equal(store_stat(x.s, "b", &st, &x.e), 0); /* a folder now */
	assert_true(st.is_dir);
	assert_int_equal(store_stat(x.s, "b/d", &st, &x.e), -ENOENT);
	p = (struct store_put){.data = "world!", .len = 6, .absent = true};
	assert_int_equal(store_put(x.s, "b/c", &p, NULL, &x.e), -EEXIST);
	p.absent = false;
	p.version = version;
	assert_int_equal(store_put(x.s, "b/c", &p, &version2, &x.e), 0);
	assert_int_equal(store_put(x.s, "b/c", &p, NULL, &x.e), -ESTALE);
	assert_int_equal(store_read(x.s, "b/c", 0, out, 6, NULL, &x.e), 0);
	assert_memory_equal(out, "world!", 6);
	assert_int_equal(get(&x, "a/0", 0, 100), 0);
	assert_int_equal(store_remove(x.s, "a/0", &x.e), 0);
	assert_int_equal(store_stat(x.s, "a/0", &st, &x.e), -ENOENT);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), -ENOENT);
	assert_int_equal(store_remove(x.s, "a/0", &x.e), 0);
	fx_close(&x);
}

/* An answer to what was asked before a write does not bring the old object back. */
static void test_put_while_it_is_fetched(void **state)
{
	struct store_put p = {.data = "hello", .len = 5};
	struct reader r = {.stop = NULL};
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	x.f->at_once = true;
	fake_set(x.f, "a", NULL, 5);
	fake_hold(x.f, true, 0);
	reader_start(&r, &x, "a", 0, 5);
	fake_await(x.f, 1);
	assert_int_equal(store_put(x.s, "a", &p, NULL, &x.e), 0);
	fake_hold(x.f, false, 0);
	assert_int_equal(reader_end(&r), 0);
	assert_int_equal(get(&x, "a", 0, 5), 0);
	/* nor does an absence */
	fake_hold(x.f, true, 0);
	reader_start(&r, &x, "b", 0, 5);
	while (fake_count(x.f) < 3)
		(void)sched_yield();
	assert_int_equal(store_put(x.s, "b", &p, NULL, &x.e), 0);
	fake_hold(x.f, false, 0);
	assert_int_equal(reader_end(&r), 0);
	assert_int_equal(get(&x, "b", 0, 5), 0);
	fx_close(&x);
}

/* What is known of a root is known when it is opened again. */
static void test_opened_again(void **state)
{
	struct store_stat st;
	struct fake *f = fake_new(true);
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 1000);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	store_close(x.s);
	assert_int_equal(store_remote_open(x.c, &f->base, "fake://a", &x.s, &x.e), 0);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	assert_int_equal(fake_count(f), 0);
	store_close(x.s);
	assert_int_equal(store_remote_open(x.c, &f->base, "fake://b", &x.s, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), -ENOENT);
	fx_close(&x);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_and_read_cost_one),
		cmocka_unit_test(test_large_objects_by_range),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_listing_says_it),
		cmocka_unit_test(test_folders_are_asked_for),
		cmocka_unit_test(test_single_flight),
		cmocka_unit_test(test_who_waits_can_give_up),
		cmocka_unit_test(test_another_version),
		cmocka_unit_test(test_fresh),
		cmocka_unit_test(test_check_every),
		cmocka_unit_test(test_too_old_costs_nothing_more),
		cmocka_unit_test(test_wanted_objects_come_in_order),
		cmocka_unit_test(test_end_first),
		cmocka_unit_test(test_near_ranges_are_one_request),
		cmocka_unit_test(test_early_is_bounded),
		cmocka_unit_test(test_in_order_within_an_object),
		cmocka_unit_test(test_many_streams_under_a_small_budget),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_put_and_remove),
		cmocka_unit_test(test_put_while_it_is_fetched),
		cmocka_unit_test(test_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
