/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr sink and Zarr v2 stores: chunks, shapes, attributes, new arrays and groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#define T_ATTRS                                                                                \
	"{\"_ARRAY_DIMENSIONS\": [\"x\"], \"units\": \"K\", \"range\": [1.5], "                \
	"\"big\": 12345678901234567890, \"tiny\": 1e-320}"

static const char *const store[] = {
	".zgroup",   GROUP2,
	".zattrs",   "{\"title\": \"old\"}",
	"t/.zarray", ARRAY2("<i4", "[5]", "[2]", "-9", ""),
	"t/.zattrs", T_ATTRS,
	"f/.zarray", ARRAY2(">i2", "[2, 3]", "[2, 3]", "0", ", \"note\": 1.50"),
	"f/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"z\"]}",
	"n/.zarray", ARRAY2("|u1", "[3]", "[2]", "null", ""),
	"n/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"w\"]}",
	NULL};

static const struct zarr_sink_options plain = {
	.format = 2, .mode = ZARR_PURE, .consolidated = -1};

static void set_up(struct zs_box *x)
{
	static const int32_t t0[] = {1, 2}, t2[] = {5, -9};

	zs_box_init(x, store);
	zs_write(x->store, "t/0", t0, sizeof(t0));
	zs_write(x->store, "t/2", t2, sizeof(t2));
	zs_write(x->store, "n/0", "ab", 2);
	zs_write(x->store, "n/1", "cd", 2);
}

static void put(struct zs_box *x, const char *array, uint64_t linear, const void *p, size_t n,
		bool stored)
{
	const struct sink_chunk c = {.stored = stored, .p = p, .len = n};

	zs_ok(x->sink->ops->put(x->sink, zs_array_named(x->now, array), linear, &c, &e));
}

static void commit(struct zs_box *x)
{
	zs_ok(x->sink->ops->commit(x->sink, NULL, NULL, &e));
	zs_end(x);
}

/* values - all elements of an array of the store, as text. */
static const char *values(const struct zs_box *x, const char *array)
{
	static char text[2000];
	struct source *s = zs_open(x);
	uint32_t ord = zs_array_named(s, array);
	const struct ds_array *a = &s->ds.arrays[ord];
	uint8_t bytes[1000];
	size_t at = 0;

	text[0] = '\0';
	for (uint64_t i = 0; i < a->n_chunks; i++) {
		zs_ok(source_read_chunk(s, ord, i, bytes, (size_t)a->chunk_bytes, &e));
		dt_swap_to_host(&a->type, bytes, (size_t)(a->chunk_bytes / a->type.size));
		for (uint64_t k = 0; k < a->chunk_bytes; k += a->type.size) {
			int32_t v = 0;
			int16_t h;

			memcpy(&v, bytes + k, a->type.size);
			memcpy(&h, bytes + k, sizeof(h));
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ",
					       a->type.size == 2 ? h : v);
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, "| ");
	}
	source_close(s);
	return text;
}

/* ---- */

static void test_chunks(void **state)
{
	static const int32_t a[] = {7, 8};
	static const int16_t h[] = {1, 2, 3, 4, 5, 6};
	static const char *const now[] = {
		"f/.zarray", ARRAY2("<i2", "[2, 3]", "[2, 3]", "0", ""), "t/.zarray",
		ARRAY2("<i4", "[5]", "[2]", "-9", ""), NULL};
	struct sink_array how;
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, now, plain);
	zs_ok(x.sink->ops->target(x.sink, zs_array_named(x.now, "t"), &how, &e));
	assert_true(how.takes_stored);
	assert_int_equal(how.chunk[0], 2);
	zs_ok(x.sink->ops->target(x.sink, zs_array_named(x.now, "f"), &how, &e));
	assert_false(how.takes_stored); /* the other byte order */
	put(&x, "t", 1, a, sizeof(a), true);
	put(&x, "f", 0, h, sizeof(h), false);
	zs_ok(x.sink->ops->drop(x.sink, zs_array_named(x.now, "t"), 2, &e));
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | 5 -9 | ");
	commit(&x);
	assert_string_equal(values(&x, "t"), "1 2 | 7 8 | -9 -9 | ");
	assert_string_equal(values(&x, "f"), "1 2 3 4 5 6 | ");
	assert_false(zs_exists(&x, "t/2"));
	assert_int_equal(zarr_sink_pending(x.state_fd, NULL), 0);
	zs_box_release(&x);
}

static void test_nothing(void **state)
{
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, store, plain);
	put(&x, "t", 1, "12345678", 8, true);
	zs_end(&x);
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | 5 -9 | ");
	assert_int_equal(faccessat(x.state_fd, "txn", F_OK, 0), -1);
	zs_box_release(&x);
}

static void test_resize(void **state)
{
	static const char *const now[] = {
		"t/.zarray", ARRAY2("<i4", "[3]", "[2]", "-9", ""),
		"n/.zarray", ARRAY2("|u1", "[9]", "[2]", "1", ""),
		"f/.zarray", ARRAY2(">i2", "[2, 3]", "[2, 3]", "0", ""),
		NULL};
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, now, plain);
	zs_ok(x.sink->ops->resize(x.sink, zs_array_named(x.now, "t"), &e));
	zs_ok(x.sink->ops->resize(x.sink, zs_array_named(x.now, "n"), &e));
	put(&x, "n", 3, "ef", 2, true);
	commit(&x);
	assert_false(zs_exists(&x, "t/2"));
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | ");
	/* nothing says what is absent: it has to be there */
	assert_string_equal(values(&x, "n"), "97 98 | 99 100 | 1 1 | 101 102 | 1 1 | ");
	assert_true(zs_exists(&x, "n/4"));
	assert_non_null(strstr(zs_read(&x, "f/.zarray"), "\"note\": 1.50"));
	zs_box_release(&x);
}

static void set_number(struct zs_box *x, uint32_t array, const char *name, double v)
{
	const struct ds_attr a = {.name = name,
				  .type = {.kind = DT_FLOAT, .size = 8},
				  .n = 1,
				  .data = (const uint8_t *)&v};

	zs_ok(x->sink->ops->set_attr(x->sink, 0, array, &a, &e));
}

static void set_text(struct zs_box *x, uint32_t array, const char *name, const char *v)
{
	const struct ds_text t = {.s = v, .len = strlen(v)};
	const struct ds_attr a = {
		.name = name, .type = {.kind = DT_VSTRING}, .n = 1, .strings = &t};

	zs_ok(x->sink->ops->set_attr(x->sink, 0, array, &a, &e));
}

static void test_attrs(void **state)
{
	struct zs_box x;
	const char *t;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, store, plain);
	set_number(&x, zs_array_named(x.now, "t"), "range", 2.5);
	set_text(&x, zs_array_named(x.now, "t"), "long_name", "\xc3\xa9t\xc3\xa9");
	set_text(&x, DS_NONE, "title", "new");
	zs_ok(x.sink->ops->remove_attr(x.sink, 0, zs_array_named(x.now, "t"), "units", &e));
	commit(&x);
	t = zs_read(&x, "t/.zattrs");
	assert_string_equal(t, "{\n    \"_ARRAY_DIMENSIONS\": [\"x\"],\n    \"range\": [2.5],\n"
			       "    \"big\": 12345678901234567890,\n    \"tiny\": 1e-320,\n"
			       "    \"long_name\": \"\\u00e9t\\u00e9\"\n}\n");
	assert_string_equal(zs_read(&x, ".zattrs"), "{\n    \"title\": \"new\"\n}\n");
	assert_string_equal(zs_read(&x, "t/.zarray"), store[5]); /* untouched */
	zs_box_release(&x);
}

/* _FillValue is fill_value; what was absent stays what it was. */
static void test_fill(void **state)
{
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, store, plain);
	set_number(&x, zs_array_named(x.now, "t"), "_FillValue", 5);
	commit(&x);
	assert_non_null(strstr(zs_read(&x, "t/.zarray"), "\"fill_value\": 5.0"));
	assert_null(strstr(zs_read(&x, "t/.zattrs"), "_FillValue"));
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | 5 -9 | ");
	zs_box_release(&x);
}

static void test_new(void **state)
{
	static const char *const now[] = {
		".zgroup",
		GROUP2,
		"g/.zgroup",
		GROUP2,
		"g/.zattrs",
		"{\"a\": 1}",
		"g/v/.zarray",
		ARRAY2("<f4", "[4, 2]", "[2, 2]", "\"NaN\"", ""),
		"g/v/.zattrs",
		"{\"_ARRAY_DIMENSIONS\": [\"t\", \"x\"], \"_FillValue\": NaN, "
		"\"units\": \"m\"}",
		"t/.zarray",
		ARRAY2("<i4", "[5]", "[2]", "-9", ""),
		"t/.zattrs",
		T_ATTRS,
		"s/.zarray",
		ARRAY2("<i4", "[]", "[]", "null", ""),
		"s/.zattrs",
		"{\"_ARRAY_DIMENSIONS\": []}",
		NULL};
	static const uint32_t level[] = {3}, size[] = {4};
	static const struct codec_spec specs[] = {
		{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = size, .name = ""},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""}};
	static const uint64_t chunk[] = {4, 1};
	const struct sink_new how = {.chunk = chunk, .chain = {.n = 2, .specs = specs}};
	const struct sink_new none = {.chunk = NULL};
	static const float v[] = {1, 2, 3, 4.5F};
	struct sink_array target;
	struct zs_box x;
	struct source *s;
	float got[4];
	uint32_t ord;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, now, plain);
	zs_ok(x.sink->ops->remove_array(x.sink, zs_array_named(x.was, "n"), &e));
	zs_ok(x.sink->ops->add_group(x.sink, 1, &e));
	ord = zs_array_named(x.now, "v");
	zs_ok(x.sink->ops->add_array(x.sink, ord, &how, &e));
	zs_ok(x.sink->ops->add_array(x.sink, zs_array_named(x.now, "s"), &none, &e));
	zs_ok(x.sink->ops->dims(x.sink, &e));
	zs_ok(x.sink->ops->target(x.sink, ord, &target, &e));
	assert_int_equal(target.chunk[0], 4);
	assert_int_equal(target.chunk[1], 1);
	assert_int_equal(target.chain.n, 2);
	put(&x, "v", 1, v, sizeof(v), false);
	commit(&x);
	assert_false(zs_exists(&x, "n"));
	s = zs_open(&x);
	ord = zs_array_named(s, "v");
	zs_ok(source_read_chunk(s, ord, 1, (uint8_t *)got, sizeof(got), &e));
	assert_memory_equal(got, v, sizeof(v));
	zs_ok(source_read_chunk(s, ord, 0, (uint8_t *)got, sizeof(got), &e));
	assert_true(got[0] != got[0]);
	assert_string_equal(s->ds.dims[s->ds.arrays[ord].dims[1]].name, "x");
	source_close(s);
	assert_string_equal(values(&x, "s"), "0 | ");
	assert_true(zs_exists(&x, "s/0"));
	zs_box_release(&x);
}

static int refuse(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, -EIO, "no");
}

static void test_refused(void **state)
{
	struct err e = ERR_INIT;
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, store, plain);
	put(&x, "t", 1, "12345678", 8, true);
	assert_int_equal(x.sink->ops->commit(x.sink, refuse, NULL, &e), -EIO);
	zs_end(&x);
	assert_int_equal(zarr_sink_pending(x.state_fd, NULL), 0);
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | 5 -9 | ");
	/* somebody else writes */
	zs_begin(&x, NULL, store, plain);
	put(&x, "t", 1, "12345678", 8, true);
	zs_write(x.store, "t/.zattrs", "{}", 2);
	assert_int_equal(x.sink->ops->commit(x.sink, NULL, NULL, &e), -ESTALE);
	zs_end(&x);
	assert_string_equal(values(&x, "t"), "1 2 | -9 -9 | 5 -9 | ");
	zs_box_release(&x);
}

/* where a link leads outside nothing is begun: a commit that began could not be ended */
static void test_outside(void **state)
{
	const struct sink_chunk c = {
		.stored = true, .p = (const uint8_t *)"12345678", .len = 8};
	struct err e = ERR_INIT;
	char path[200], to[200];
	struct zs_box x;

	(void)state;
	set_up(&x);
	zs_begin(&x, NULL, store, plain);
	(void)snprintf(path, sizeof(path), "%s/t", x.store);
	(void)snprintf(to, sizeof(to), "%s/elsewhere", x.top);
	assert_int_equal(rename(path, to), 0);
	assert_int_equal(symlink(to, path), 0);
	assert_int_equal(x.sink->ops->put(x.sink, zs_array_named(x.now, "t"), 1, &c, &e),
			 -EXDEV);
	zs_end(&x);
	assert_int_equal(unlink(path), 0);
	zs_box_release(&x);
}

static uint32_t first(void *arg, const char *path)
{
	(void)arg;
	(void)path;
	return 0;
}

/* a store that is one array: chunks, shape and attributes of that one */
static void test_lone(void **state)
{
	static const char *const one[] = {".zarray", ARRAY2("|u1", "[3]", "[2]", "0", ""),
					  NULL};
	static const char *const now[] = {".zarray", ARRAY2("|u1", "[4]", "[2]", "0", ""),
					  NULL};
	const struct ds_text text = {.s = "m", .len = 1};
	const struct ds_attr units = {
		.name = "units", .type = {.kind = DT_VSTRING}, .n = 1, .strings = &text};
	const struct sink_names names = {.array = first, .group = first, .dim = first};
	struct zarr_sink_options opts = plain;
	struct zs_box x;

	(void)state;
	opts.names = &names; /* the models call it otherwise */
	zs_box_init(&x, one);
	zs_begin(&x, NULL, now, opts);
	zs_ok(x.sink->ops->resize(x.sink, 0, &e));
	zs_ok(x.sink->ops->set_attr(x.sink, 0, 0, &units, &e));
	assert_int_equal(x.sink->ops->set_attr(x.sink, 0, DS_NONE, &units, NULL), -EOPNOTSUPP);
	put(&x, "model", 1, "ab", 2, true);
	commit(&x);
	assert_string_equal(values(&x, "x"), "0 0 | 97 98 | ");
	assert_non_null(strstr(zs_read(&x, ".zattrs"), "units"));
	zs_box_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),  cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_resize),  cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_fill),    cmocka_unit_test(test_new),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_outside),
		cmocka_unit_test(test_lone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
