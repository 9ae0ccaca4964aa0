/* SPDX-License-Identifier: BSD-3-Clause */
/* The store over a remote service: what it asks, and what it does not ask again. */
#include "base/core/clock.h"
#include "tests/unit/nczarr/remote/remote_fx.h"

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
	assert_int_equal(store_get(x.s, "a/0.1", &b, NULL, &x.e), 0);
	assert_int_equal(b.len, 1000);
	right(&x, "a/0.1", 0, b.data, 1000);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_get(x.s, "a/0.1", &b, NULL, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a/0.1", &st, &x.e), 0);
	assert_int_equal(fake_count(x.f), 2);
	assert_int_equal(store_get(x.s, "a/none", &b, NULL, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a/none", &st, &x.e), 0);
	assert_int_equal(st.size, 0);
	assert_int_equal(b.len, 2000);
	assert_int_equal(fake_count(x.f), 3);
	assert_int_equal(store_get(x.s, "a/0.0", &b, NULL, &x.e), -ERANGE);
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
	assert_true(x.s->remote);
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
	struct cancel stop = {.asked = false};
	struct reader r[2] = {{.stop = &stop}, {.stop = NULL}};
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 1000);
	fake_hold(x.f, true, 0);
	reader_start(&r[0], &x, "a", 0, 1000);
	fake_await(x.f, 1);
	reader_start(&r[1], &x, "a", 0, 1000);
	cancel_request(&stop);
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

/* Keys of the service that have ended: each kind of request is made again by the thread that waits
 * for it, and what was known before does not take the place of its answer. */
static void test_keys_ended(void **state)
{
	struct store_stat st, st2;
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 40 * MIB);
	fake_fail(x.f, "a", -EKEYEXPIRED, 1);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), 0);
	assert_int_equal(fake_count(x.f), 2);
	fake_fail(x.f, "a", -EKEYEXPIRED, 1);
	assert_int_equal(get(&x, "a", 30 * MIB, 100), 0);
	assert_int_equal(fake_count(x.f), 4);
	fake_set(x.f, "a", NULL, 41 * MIB);
	fake_fail(x.f, "a", -EKEYEXPIRED, 1);
	assert_int_equal(store_fresh(x.s, "a", &st2, &x.e), 0);
	assert_int_equal(st2.size, 41 * MIB);
	assert_true(st2.version != st.version);
	assert_int_equal(fake_count(x.f), 6);
	fx_close(&x);
}

static void pass(int64_t ns)
{
	for (int64_t then = clock_ns(); clock_ns() - then < ns;)
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
		.cache_bytes = 64 * MIB, .prefetch_bytes = 16 * MIB, .check_ms = 1};
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

/* What was fetched of a root is there when it is opened again, but it may have been opened because
 * it changed: each object is asked about once. */
static void test_opened_again(void **state)
{
	struct store_stat st;
	struct fx x;

	(void)state;
	fx_open(&x, true, NULL);
	fake_set(x.f, "a", NULL, 1000);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	fake_forget(x.f);
	store_close(x.s);
	assert_int_equal(store_remote_open(x.c, &x.f->base, "fake://a", &x.s, &x.e), 0);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	assert_int_equal(get(&x, "a", 0, 1000), 0);
	assert_int_equal(fake_count(x.f), 1);
	store_close(x.s);
	fake_set(x.f, "a", NULL, 1000);
	assert_int_equal(store_remote_open(x.c, &x.f->base, "fake://a", &x.s, &x.e), 0);
	assert_int_equal(get(&x, "a", 0, 1000), 0); /* the other one */
	store_close(x.s);
	fake_unset(x.f, "a");
	assert_int_equal(store_remote_open(x.c, &x.f->base, "fake://b", &x.s, &x.e), 0);
	assert_int_equal(store_stat(x.s, "a", &st, &x.e), -ENOENT);
	fx_close(&x);
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
		cmocka_unit_test(test_keys_ended),
		cmocka_unit_test(test_check_every),
		cmocka_unit_test(test_too_old_costs_nothing_more),
		cmocka_unit_test(test_put_and_remove),
		cmocka_unit_test(test_put_while_it_is_fetched),
		cmocka_unit_test(test_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
