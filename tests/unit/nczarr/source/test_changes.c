/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether changes of a tree are noticed: documents, directories with and without chunks, chunks
 * that were read; a store whose clock is too coarse; and that a poll asks a bounded number of
 * times. */
#include "tests/unit/nczarr/source/zr_source_fake.h"

#include <time.h>

static int polled(struct fake *f)
{
	f->e = (struct err)ERR_INIT;
	return zr_poll(&f->s.base, &f->e);
}

/* seen - the version that a key has now goes to the source's list. */
static void seen(struct fake *f, const char *key)
{
	struct store_stat st = {.version = 0};

	assert_int_equal(
		grow_array(&f->s.seen, &f->s.c_seen, f->s.n_seen + 1, sizeof(*f->s.seen)), 0);
	(void)!store_stat(f->s.store, key, &st, NULL);
	f->s.seen[f->s.n_seen++] = (struct zr_doc_seen){key, st.version};
}

static const uint64_t shape[] = {100, 100}, chunk[] = {10, 10};

static void start(struct fake *f, char separator)
{
	fake_init(f, true);
	fake_array(f, "g/t", 2, shape, chunk)->separator = separator;
	fake_put(f, "g/t/.zarray", "{}", 2);
	fake_put(f, separator == '.' ? "g/t/1.1" : "g/t/1/1", "1234", 4);
	fake_start(f);
}

static void test_documents(void **state)
{
	static const char *const written[] = {"g/t/.zarray", "g/t/.zattrs", "g/.zgroup"};
	struct fake f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		start(&f, '.');
		seen(&f, "g");
		seen(&f, "g/t/.zarray");
		seen(&f, "g/t/.zattrs");
		assert_int_equal(polled(&f), 0);
		assert_int_equal(polled(&f), 0);
		fake_put(&f, written[i], "{\"x\": 1}", 8);
		assert_int_equal(polled(&f), -ESTALE);
		fake_release(&f);
	}
	start(&f, '.');
	seen(&f, "g/t/.zarray");
	fake_put(&f, "g/other", "", 0); /* nobody looked there */
	assert_int_equal(polled(&f), 0);
	assert_int_equal(zr_check(&f.s.base, &f.e), 0);
	fake_release(&f);
}

/* Written or removed right after the first look, before the first poll. */
static void test_chunks(void **state)
{
	static const struct {
		char separator;
		const char *written;
	} rows[] = {
		{'.', "g/t/3.3"}, {'/', "g/t/1/2"}, {'/', "g/t/2/1"}, {'.', NULL}, {'/', NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fake f;
		char path[128];

		start(&f, rows[i].separator);
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		assert_int_equal(polled(&f), 0);
		fake_release(&f);
		start(&f, rows[i].separator);
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		if (rows[i].written) {
			fake_put(&f, rows[i].written, "1234", 4);
		} else {
			snprintf(path, sizeof(path), "%s/g/t/1%c1", f.dir, rows[i].separator);
			assert_int_equal(unlink(path), 0);
		}
		assert_int_equal(polled(&f), -ESTALE);
		fake_release(&f);
	}
}

/* The directory that all chunks would be in is not there, and then is. */
static void test_first_chunk(void **state)
{
	struct fake f;

	(void)state;
	fake_init(&f, true);
	fake_array(&f, "t", 2, shape, chunk)->prefixed = true;
	f.m[0].separator = '/';
	fake_put(&f, "t/zarr.json", "{}", 2);
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_ABSENT);
	assert_int_equal(polled(&f), 0);
	fake_put(&f, "t/c/0/0", "1234", 4);
	assert_int_equal(polled(&f), -ESTALE);
	fake_release(&f);
}

/* An object that was asked for by its name. */
static void test_few(void **state)
{
	static const char *const written[] = {"s/0", "s/1"};
	struct fake f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		fake_init(&f, true);
		fake_array(&f, "s", 1, (const uint64_t[]){20}, chunk);
		fake_put(&f, "s/0", "1234", 4);
		fake_start(&f);
		assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
		assert_int_equal(polled(&f), 0);
		fake_put(&f, written[i], "12345", 5);
		assert_int_equal(polled(&f), -ESTALE);
		fake_release(&f);
	}
}

/* A chunk that was read and is then written in place: its directory does not show that. */
static void test_rewritten(void **state)
{
	const uint8_t zeros[400] = {0};
	uint32_t v[100];
	struct fake f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start(&f, '.');
		fake_put(&f, "g/t/1.1", zeros, sizeof(zeros));
		if (i)
			assert_int_equal(fake_read(&f, 0, 11, v), 0);
		else
			assert_int_equal(fake_stored(&f, 0, 11, (uint8_t *)v, sizeof(v)), 400);
		assert_int_equal(polled(&f), 0);
		fake_put(&f, "g/t/1.1", zeros, 399);
		assert_int_equal(polled(&f), -ESTALE);
		assert_non_null(strstr(f.e.msg, "g/t/1.1"));
		fake_release(&f);
	}
}

/* Pieces of an object before and after it was replaced: the later one is an error, as long as the
 * source lives, whether somebody polled in between or not. */
static void test_pieces(void **state)
{
	const uint8_t zeros[400] = {0}, ones[400] = {1};
	uint32_t v[100];
	struct fake f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start(&f, '.');
		fake_put(&f, "g/t/1.1", zeros, sizeof(zeros));
		assert_int_equal(fake_stored(&f, 0, 11, (uint8_t *)v, sizeof(v)), 400);
		fake_replace(&f, "g/t/1.1", ones, 200); /* another length: another version */
		fake_replace(&f, "g/t/1.1", ones, sizeof(ones));
		if (i)
			assert_int_equal(fake_read(&f, 0, 11, v), -ESTALE);
		else
			assert_int_equal(fake_stored(&f, 0, 11, (uint8_t *)v, sizeof(v)), -ESTALE);
		fake_release(&f);
	}
}

/* ---- a store that shows less, and counts ---- */

struct coarse {
	struct store base;
	struct store *in;
	uint64_t version; /* of every directory, whatever happens there */
	int64_t changed;
	const char *removed; /* a name that is not listed any more */
	int stats, lists;
};

static struct coarse *coarse_of(struct store *s)
{
	return CONTAINER_OF(s, struct coarse, base);
}

static void coarse_close(struct store *s)
{
	store_close(coarse_of(s)->in);
}

static int coarse_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct coarse *c = coarse_of(s);
	int rc = store_stat(c->in, key, ret, e);

	c->stats++;
	if (rc == 0 && ret->is_dir) {
		ret->version = c->version;
		ret->changed = c->changed;
	}
	return rc;
}

struct passed {
	struct coarse *c;
	store_emit *emit;
	void *arg;
};

static bool coarse_emit(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct passed *p = arg;
	struct store_stat mine;

	if (p->c->removed && strcmp(name, p->c->removed) == 0)
		return true;
	if (st && is_dir) {
		mine = *st;
		mine.version = p->c->version;
		mine.changed = p->c->changed;
		st = &mine;
	}
	return p->emit(p->arg, name, is_dir, st);
}

static int coarse_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		       void *arg, struct err *e)
{
	struct passed p = {coarse_of(s), emit, arg};

	p.c->lists++;
	return store_list(p.c->in, key, want_stat, coarse_emit, &p, e);
}

static int coarse_check(struct store *s, struct err *e)
{
	return store_check(coarse_of(s)->in, e);
}

static const struct store_ops coarse_ops = {.name = "coarse",
					    .close = coarse_close,
					    .stat = coarse_stat,
					    .list = coarse_list,
					    .check = coarse_check};

/* just_now - for a clock of whole seconds, so that it stays just now while the test runs. */
static int64_t just_now(void)
{
	return ((int64_t)time(NULL) + 1) * 1000000000;
}

static void start_coarse(struct fake *f, struct coarse *c, char separator)
{
	fake_init(f, false);
	*c = (struct coarse){.base.ops = &coarse_ops, .in = f->s.store, .version = 77};
	fake_array(f, "t", 2, shape, chunk)->separator = separator;
	fake_put(f, separator == '.' ? "t/1.1" : "t/1/1", "1234", 4);
	f->s.store = &c->base;
	fake_start(f);
}

static void put_inside(struct fake *f, struct coarse *c, const char *key)
{
	f->s.store = c->in;
	fake_put(f, key, "1234", 4);
	f->s.store = &c->base;
}

static void test_tick(void **state)
{
	static const char *const written[][2] = {
		{"t/5.5", "t/.zattrs"}, {"t/5/5", "t/1/.nfs01"}, {"t/1/5", "t/x"}};
	struct coarse c;
	struct fake f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		start_coarse(&f, &c, i ? '/' : '.');
		c.changed = just_now();
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		assert_int_equal(polled(&f), 0);
		put_inside(&f, &c, written[i][1]); /* no chunk */
		assert_int_equal(polled(&f), 0);
		put_inside(&f, &c, written[i][0]);
		c.changed = 1; /* by the clock of the poll, it was long ago */
		assert_int_equal(polled(&f), -ESTALE);
		fake_release(&f);

		/* one listing, and then the version is enough */
		start_coarse(&f, &c, i ? '/' : '.');
		c.changed = just_now();
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		c.changed = 1;
		assert_int_equal(polled(&f), 0);
		c.lists = 0;
		assert_int_equal(polled(&f), 0);
		assert_int_equal(c.lists, 0);
		fake_release(&f);
	}
}

/* One chunk less and one more: there are as many as before. */
static void test_exchanged(void **state)
{
	struct coarse c;
	struct fake f;

	(void)state;
	start_coarse(&f, &c, '.');
	c.changed = just_now();
	assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
	put_inside(&f, &c, "t/5.5");
	c.removed = "1.1";
	assert_int_equal(polled(&f), -ESTALE);
	fake_release(&f);
}

/* A version that was made long before the look needs no listing, nor one that is in the future. */
static void test_old(void **state)
{
	struct coarse c;
	struct fake f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start_coarse(&f, &c, '/');
		c.changed = i ? 1 : just_now() + (int64_t)3600 * 1000000000 + 1;
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		c.lists = 0;
		assert_int_equal(polled(&f), 0);
		assert_int_equal(c.lists, 0);
		c.version++;
		assert_int_equal(polled(&f), -ESTALE);
		fake_release(&f);
	}
}

static void test_bounded(void **state)
{
	const uint64_t wide[] = {60000, 10};
	char key[32];
	struct coarse c;
	struct fake f;
	int polls = 0;

	(void)state;
	fake_init(&f, false);
	c = (struct coarse){
		.base.ops = &coarse_ops, .in = f.s.store, .version = 77, .changed = 1};
	fake_array(&f, "t", 2, wide, chunk)->separator = '/';
	for (int i = 0; i < 6000; i++) {
		snprintf(key, sizeof(key), "t/%d/0", i);
		fake_put(&f, key, "1", 1);
	}
	f.s.store = &c.base;
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
	c.stats = 0;
	for (polls = 0; polls < 3; polls++) {
		assert_int_equal(polled(&f), 0);
		assert_in_range(c.stats, 1, 4000 * (polls + 1));
	}
	/* all were looked at */
	assert_true(c.stats >= 6000);
	fake_release(&f);
}

/* More objects than are remembered are read: the last ones still count. */
static void test_many_read(void **state)
{
	const uint64_t one[] = {1, 1};
	char key[32];
	uint32_t v;
	struct fake f;

	(void)state;
	fake_init(&f, true);
	fake_array(&f, "t", 2, shape, one);
	for (int i = 0; i < 500; i++) {
		snprintf(key, sizeof(key), "t/%d.%d", i / 100, i % 100);
		fake_put(&f, key, "1234", 4);
	}
	fake_start(&f);
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(fake_read(&f, 0, i, &v), 0);
	assert_int_equal(polled(&f), 0);
	fake_put(&f, "t/4.99", "12345", 5);
	assert_int_equal(polled(&f), -ESTALE);
	fake_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents),   cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_first_chunk), cmocka_unit_test(test_few),
		cmocka_unit_test(test_rewritten),   cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_tick),
		cmocka_unit_test(test_exchanged),   cmocka_unit_test(test_old),
		cmocka_unit_test(test_bounded),     cmocka_unit_test(test_many_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
