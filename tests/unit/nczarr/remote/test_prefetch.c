/* SPDX-License-Identifier: BSD-3-Clause */
/* The store over a remote service: fetching early, and the budget. */
#include "tests/unit/nczarr/remote/remote_fx.h"

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
		.cache_bytes = 64 * MIB, .prefetch_bytes = 4 * MIB, .connections = 64};
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

/* With a budget of no bytes nothing is fetched before a reader requests it. */
static void test_no_prefetch(void **state)
{
	const struct remote_options o = {.cache_bytes = 64 * MIB, .connections = 16};
	const struct store_range r[] = {{"a", 0, UINT64_MAX}, {"b", UINT64_MAX, 1000}};
	struct fx x;

	(void)state;
	fx_open(&x, true, &o);
	fake_set(x.f, "a", NULL, 20 * MIB);
	fake_set(x.f, "b", NULL, 20 * MIB);
	store_want(x.s, r, ARRAY_LEN(r));
	fake_quiet(x.f);
	assert_int_equal(fake_count(x.f), 0);
	for (uint64_t off = 0; off < 20 * MIB; off += 128 * KIB)
		assert_int_equal(get(&x, "a", off, 128 * KIB), 0);
	fake_quiet(x.f);
	for (size_t i = 0; i < x.f->n_asked; i++)
		assert_false(x.f->asked[i].background);
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
		.cache_bytes = 16 * MIB, .prefetch_bytes = 8 * MIB, .connections = 64};
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
	assert_true(object_cache_peak(x.c) <= 17 * MIB);
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

/* However many names are looked at, what is known of them does not grow for ever; and what had to
 * be forgotten is not taken for absent. */
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
	assert_true(object_cache_peak(x.c) <= MIB);
	fx_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted_objects_come_in_order),
		cmocka_unit_test(test_end_first),
		cmocka_unit_test(test_near_ranges_are_one_request),
		cmocka_unit_test(test_early_is_bounded),
		cmocka_unit_test(test_no_prefetch),
		cmocka_unit_test(test_in_order_within_an_object),
		cmocka_unit_test(test_many_streams_under_a_small_budget),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
