/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of arrays without shards: passed as they are stored, decoded, filled; and objects that are
 * not what they should be, or not what they were. */
#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "tests/unit/nczarr/source/zr_source_fake.h"
#include "tests/unit/codecs_encode.h"

static const uint32_t level6[] = {6};
static const struct codec_spec zip[] = {
	{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level6, .name = ""}};

static void put_numbers(struct fake *f, const char *key, uint32_t from, uint32_t n, bool packed)
{
	struct buf plain, out;

	buf_init(&plain, 1 << 20);
	buf_init(&out, 1 << 20);
	for (uint32_t i = 0; i < n; i++)
		buf_put_le32(&plain, from + i);
	if (packed)
		assert_int_equal(encode_chain(&(struct codec_chain){1, zip}, 4, plain.data,
					      plain.len, &out, NULL),
				 0);
	fake_replace(f, key, packed ? out.data : plain.data, packed ? out.len : plain.len);
	buf_release(&plain);
	buf_release(&out);
}

static void start(struct fake *f, bool on_disk, bool packed)
{
	const uint64_t shape[] = {95}, chunk[] = {10};
	struct zr_meta *m;

	fake_init(f, on_disk);
	m = fake_array(f, "t", 1, shape, chunk);
	if (packed)
		m->chain = (struct codec_chain){1, zip};
	f->a[0].fill = (const uint8_t *)"\1\1\1\1";
	put_numbers(f, "t/0", 0, 10, packed);
	put_numbers(f, "t/9", 90, 10, packed);
	fake_start(f);
}

/* check_stored - that the bytes of chunk 9 as stored decode to its elements. */
static void check_stored(struct fake *f)
{
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t stored[64];
	uint32_t v[10];
	int n = fake_stored(f, 0, 9, stored, sizeof(stored));

	assert_true(n > 10);
	assert_int_equal(codec_chain_decode(&f->m[0].chain, 0, 4, stored, (size_t)n,
					    (uint8_t *)v, sizeof(v), scratch, NULL),
			 0);
	assert_int_equal(v[0], 90);
	codec_scratch_free(scratch);
}

static void test_plain(void **state)
{
	uint32_t v[10];
	struct fake f;

	(void)state;
	for (int i = 0; i < 4; i++) {
		start(&f, i % 2 != 0, i / 2 != 0);
		assert_int_equal(fake_read(&f, 0, 9, v), 0);
		for (uint32_t k = 0; k < 10; k++)
			assert_int_equal(v[k], 90 + k);
		assert_int_equal(fake_read(&f, 0, 5, v), 0);
		for (uint32_t k = 0; k < 10; k++)
			assert_int_equal(v[k], 0x01010101);
		check_stored(&f);
		fake_release(&f);
	}
}

/* Stored bytes that are too few, too many, or no result of the codec. */
static void test_damaged(void **state)
{
	static const uint8_t junk[100000];
	uint32_t v[10];
	struct fake f;

	(void)state;
	for (int i = 0; i < 8; i++) {
		start(&f, false, i % 2 != 0);
		if (i / 2 < 2)
			put_numbers(&f, "t/0", 0, i / 2 ? 9 : 11, i % 2 != 0);
		else
			fake_put(&f, "t/0", junk, i / 2 == 2 ? 0 : sizeof(junk));
		assert_int_equal(fake_read(&f, 0, 0, v), -EBADMSG);
		assert_non_null(strstr(f.e.msg, "'t/0'"));
		assert_int_equal(fake_read(&f, 0, 9, v), 0);
		fake_release(&f);
	}
}

/* An object that is not the one that was located. */
static void test_changed(void **state)
{
	struct chunk_ref ref;
	uint8_t out[40];
	char path[128];
	struct fake f;

	(void)state;
	start(&f, true, false);
	snprintf(path, sizeof(path), "%s/t/0", f.dir);
	assert_int_equal(zr_locate(&f.s.base, 0, 0, &ref, &f.e), 0);
	assert_int_equal(truncate(path, 20), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 40, &f.e), -ESTALE);
	assert_non_null(strstr(f.e.msg, "'t/0'"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 40, &f.e), -ESTALE);
	ref.len--;
	put_numbers(&f, "t/0", 0, 10, false);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 39, &f.e), -ESTALE);
	fake_release(&f);

	/* between two pieces of one chunk, with the same length */
	start(&f, true, false);
	snprintf(path, sizeof(path), "%s/t/0", f.dir);
	assert_int_equal(zr_locate(&f.s.base, 0, 0, &ref, &f.e), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 20, &f.e), 0);
	assert_int_equal(unlink(path), 0);
	fake_replace(&f, "other", "", 0); /* takes the inode */
	put_numbers(&f, "t/0", 100, 10, false);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 20, out, 20, &f.e), -ESTALE);
	fake_release(&f);
}

static void test_unreadable(void **state)
{
	struct fake f;
	uint32_t v[10];

	(void)state;
	start(&f, false, false);
	f.a[0].unreadable = "codec 'x' is not known";
	assert_int_equal(fake_where(&f, 0, 0), -EOPNOTSUPP);
	assert_non_null(strstr(f.e.msg, "codec 'x'"));
	fake_release(&f);

	/* one that nobody said anything about */
	start(&f, false, false);
	f.m[0].chain = (struct codec_chain){
		1, (const struct codec_spec[]){{.h5_id = 65000, .name = "odd"}}};
	assert_int_equal(fake_read(&f, 0, 0, v), -EOPNOTSUPP);
	fake_release(&f);
}

/* A scalar of the model may be stored as one element of an axis. */
static void test_scalars(void **state)
{
	const uint64_t one[] = {1};
	uint32_t v = 0;
	uint64_t at;
	struct fake f;

	(void)state;
	fake_init(&f, false);
	fake_array(&f, "s", 0, one, one);
	fake_array(&f, "s1", 1, one, one);
	put_numbers(&f, "s/0", 7, 1, false);
	put_numbers(&f, "s1/0", 8, 1, false);
	fake_start(&f);
	f.a[1].rank = 0;
	assert_int_equal(fake_read(&f, 0, 0, &v), 0);
	assert_int_equal(v, 7);
	assert_int_equal(fake_read(&f, 1, 0, &v), 0);
	assert_int_equal(v, 8);
	assert_int_equal(zr_next(&f.s.base, 1, 0, &at, NULL), 0);
	assert_int_equal(at, 0);
	assert_int_equal(fake_where(&f, 1, 0), CHUNK_RANGE);
	fake_release(&f);
}

/* The model's array is longer than the stored one: there are no chunks behind its end. */
static void test_longer_model(void **state)
{
	const uint64_t shape[] = {20, 20}, chunk[] = {10, 10}, longer[] = {45, 35};
	uint64_t at = 0, n = 0;
	struct fake f;

	(void)state;
	fake_init(&f, false);
	fake_array(&f, "t", 2, shape, chunk);
	put_numbers(&f, "t/0.1", 0, 100, false);
	put_numbers(&f, "t/1.0", 0, 100, false);
	put_numbers(&f, "t/3.3", 0, 100, false);
	fake_start(&f);
	f.a[0].shape = longer;
	assert_int_equal(ds_array_finish(&f.s.base.ds, &f.a[0], 1 << 20, &f.e), 0);
	for (; zr_next(&f.s.base, 0, at, &at, NULL) == 0; at++, n++)
		assert_int_equal(at, n == 0 ? 1 : 4);
	assert_int_equal(n, 2);
	assert_int_equal(fake_where(&f, 0, 1), CHUNK_RANGE);
	assert_int_equal(fake_where(&f, 0, 15), CHUNK_ABSENT);
	fake_release(&f);
}

/* A model that does not fit its document is an error, not an access out of bounds. */
static void test_misfits(void **state)
{
	const uint64_t wide[] = {20};
	struct fake f;

	(void)state;
	start(&f, false, false);
	f.a[0].chunk = wide;
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	fake_release(&f);
	start(&f, false, false);
	f.a[0].type.size = 8;
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	fake_release(&f);
	start(&f, false, false);
	f.a[0].rank = 2;
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	fake_release(&f);
}

/* g_held - the listing of array "t", which waits; not longer than a test that fails should take. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	const struct store_ops *ops;
	bool inside, left, go;
} g_held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int held_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		     void *arg, struct err *e)
{
	int64_t until = clock_ns() + INT64_C(10000000000);

	if (strcmp(key, "t") == 0) {
		pthread_mutex_lock(&g_held.lock);
		g_held.inside = true;
		pthread_cond_broadcast(&g_held.cond);
		while (!g_held.go && clock_ns() < until &&
		       cancel_wait(&g_held.cond, &g_held.lock) == 0)
			;
		g_held.left = true;
		pthread_mutex_unlock(&g_held.lock);
	}
	return g_held.ops->list(s, key, want_stat, emit, arg, e);
}

static void *first_look(void *arg)
{
	struct fake *f = arg;
	struct chunk_ref ref;
	int rc = zr_locate(&f->s.base, 0, 9, &ref, NULL);

	return (void *)(intptr_t)(rc ? rc : (int)ref.where);
}

/* While the directory of an array is listed, another array can be looked at for the first time, and
 * who waits for the first one can give up. */
static void test_listing_of_another(void **state)
{
	const uint64_t shape[] = {95}, chunk[] = {10};
	struct store_ops ops;
	struct cancel stop;
	pthread_t thread;
	struct fake f;
	void *where;

	(void)state;
	fake_init(&f, false);
	(void)fake_array(&f, "t", 1, shape, chunk);
	(void)fake_array(&f, "u", 1, shape, chunk);
	put_numbers(&f, "t/9", 90, 10, false);
	put_numbers(&f, "u/9", 90, 10, false);
	fake_start(&f);
	g_held.ops = f.s.store->ops;
	ops = *f.s.store->ops;
	ops.list = held_list;
	f.s.store->ops = &ops;
	cancel_cond_init(&g_held.cond);
	assert_int_equal(pthread_create(&thread, NULL, first_look, &f), 0);
	pthread_mutex_lock(&g_held.lock);
	while (!g_held.inside)
		pthread_cond_wait(&g_held.cond, &g_held.lock);
	pthread_mutex_unlock(&g_held.lock);
	assert_int_equal(fake_where(&f, 1, 9), CHUNK_RANGE);
	pthread_mutex_lock(&g_held.lock);
	assert_false(g_held.left);
	pthread_mutex_unlock(&g_held.lock);
	cancel_begin(&stop);
	cancel_request(&stop);
	assert_int_equal(fake_where(&f, 0, 9), -EINTR);
	assert_non_null(strstr(f.e.msg, "cancelled while listing chunks"));
	cancel_end(&stop);
	pthread_mutex_lock(&g_held.lock);
	g_held.go = true;
	pthread_cond_broadcast(&g_held.cond);
	pthread_mutex_unlock(&g_held.lock);
	assert_int_equal(pthread_join(thread, &where), 0);
	assert_int_equal((intptr_t)where, CHUNK_RANGE);
	assert_int_equal(fake_where(&f, 0, 9), CHUNK_RANGE);
	f.s.store->ops = g_held.ops;
	fake_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),   cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_changed), cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_scalars), cmocka_unit_test(test_longer_model),
		cmocka_unit_test(test_misfits), cmocka_unit_test(test_listing_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
