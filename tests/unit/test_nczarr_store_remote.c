/* The store over a remote service: what it asks, and what it does not ask again. */
#include "remote_fake.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_and_read_cost_one),
		cmocka_unit_test(test_large_objects_by_range),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_listing_says_it),
		cmocka_unit_test(test_folders_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
