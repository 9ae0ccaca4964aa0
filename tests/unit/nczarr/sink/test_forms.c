/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr sink writes chunks in whatever form a store keeps them: what our source reads back is
 * what was put, for every order, type, filter and kind of shard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"
#include "translate/model/value.h"

#define V2(dtype, order, fill, compressor, filters)                                            \
	"{\"zarr_format\": 2, \"shape\": [5, 7], \"chunks\": [2, 3], \"dtype\": " dtype        \
	", \"fill_value\": " fill ", \"order\": \"" order "\", \"filters\": " filters          \
	", \"compressor\": " compressor "}"
#define V3(type, fill, chunks, codecs)                                                         \
	"{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [5, 7], \"data_type\": "    \
	"\"" type "\", \"fill_value\": " fill ", \"chunk_grid\": {\"name\": \"regular\", "     \
	"\"configuration\": {\"chunk_shape\": " chunks                                         \
	"}}, \"chunk_key_encoding\": {\"name\": \"default\"}, \"codecs\": [" codecs            \
	"], \"attributes\": {}}"
#define LITTLE "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}"
#define BIG "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}"
#define TURN "{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 0]}}, "
#define GZIP ", {\"name\": \"gzip\", \"configuration\": {\"level\": 5}}"
#define SHARDS(inner, codecs, index, where)                                                    \
	"{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": " inner         \
	", \"codecs\": [" codecs "], \"index_codecs\": [" index                                \
	"], \"index_location\": \"" where "\"}}"
#define SUM ", {\"name\": \"crc32c\"}"

static const struct {
	const char *what, *doc;
} forms[] = {
	{"plain", V2("\"<f8\"", "C", "0", "null", "null")},
	{"order F", V2("\"<f8\"", "F", "0", "null", "null")},
	{"bytes in order F",
	 V2("\"|u1\"", "F", "0", "{\"id\": \"zlib\", \"level\": 1}", "null")},
	{"big-endian", V2("\">i4\"", "C", "0", "{\"id\": \"gzip\", \"level\": 1}", "null")},
	{"bool", V2("\"|b1\"", "C", "false", "null", "null")},
	{"S", V2("\"|S4\"", "C", "null", "null", "null")},
	{"U", V2("\"<U3\"", "F", "null", "{\"id\": \"zlib\", \"level\": 1}", "null")},
	{"U, big-endian", V2("\">U3\"", "C", "null", "null", "null")},
	{"times", V2("\"<M8[ns]\"", "C", "null", "null", "null")},
	{"complex", V2("\"<c8\"", "F", "null", "null", "null")},
	{"structure", V2("[[\"a\", \"<i2\"], [\"b\", \"<f4\"]]", "C", "null", "null", "null")},
	{"blosc", V2("\"<i2\"", "C", "0",
		     "{\"id\": \"blosc\", \"cname\": \"lz4\", \"clevel\": 5, \"shuffle\": 1, "
		     "\"blocksize\": 0}",
		     "null")},
	{"filters",
	 V2("\"<i4\"", "C", "0", "{\"id\": \"zstd\", \"level\": 1}",
	    "[{\"id\": \"delta\", \"dtype\": \"<i4\", \"astype\": \"<i4\"}, {\"id\": "
	    "\"shuffle\", \"elementsize\": 4}]")},
	{"v3", V3("float64", "0.0", "[2, 3]", LITTLE GZIP)},
	{"v3 transposed", V3("int16", "0", "[2, 3]", TURN LITTLE GZIP)},
	{"v3 big-endian", V3("float32", "0.0", "[2, 3]", BIG)},
	{"shards",
	 V3("int32", "7", "[4, 6]", SHARDS("[2, 3]", LITTLE GZIP, LITTLE SUM, "end"))},
	{"index first", V3("int32", "7", "[4, 6]", SHARDS("[2, 3]", LITTLE, LITTLE, "start"))},
	{"shards, transposed inside",
	 V3("int32", "7", "[4, 6]", SHARDS("[2, 3]", TURN LITTLE, BIG SUM, "end"))},
	{"transposed shards",
	 V3("int32", "7", "[4, 6]", TURN SHARDS("[3, 2]", LITTLE, LITTLE SUM, "end"))},
};

static const struct zarr_sink_options plain = {
	.format = 2, .mode = ZARR_PURE, .consolidated = -1};

/* pattern - elements of chunk i that any type takes: ASCII for texts, 0 and 1 for bools. */
static void pattern(const struct ds_array *a, uint64_t i, uint8_t *out, size_t n)
{
	for (size_t k = 0; k < n; k++)
		out[k] = a->type.kind == DT_BOOL ? (uint8_t)((i + k) & 1)
			 : a->type.kind == DT_STRING
				 ? (uint8_t)(k % a->type.size < 2 ? 'a' + (i + k) % 26 : 0)
				 : (uint8_t)(13 * i + k);
}

static void one_form(const char *what, const char *doc)
{
	const bool v3 = strstr(doc, "\"zarr_format\": 3") != NULL;
	const char *const list[] = {v3 ? "zarr.json" : ".zgroup", v3 ? GROUP3 : GROUP2,
				    v3 ? "a/zarr.json" : "a/.zarray", doc, NULL};
	uint8_t bytes[400], got[400];
	const struct ds_array *a;
	struct zs_box x;
	struct source *s;
	size_t n;

	print_message("%s\n", what);
	zs_box_init(&x, list);
	/* twice: into an empty store, and beside chunks that are there; chunk 4 never */
	for (uint64_t turn = 0; turn < 2; turn++) {
		zs_begin(&x, NULL, list, plain);
		a = &x.now->ds.arrays[0];
		n = (size_t)a->chunk_bytes;
		for (uint64_t i = turn; i < a->n_chunks; i += 2) {
			struct sink_chunk c = {.p = bytes, .len = n};

			if (i == 4)
				continue;
			pattern(a, i, bytes, n);
			zs_ok(x.sink->ops->put(x.sink, 0, i, &c, &e));
		}
		if (turn == 1)
			zs_ok(x.sink->ops->drop(x.sink, 0, 2, &e));
		zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
		zs_end(&x);
	}
	s = zs_open(&x);
	a = &s->ds.arrays[0];
	assert_int_equal(a->n_chunks, 9);
	for (uint64_t i = 0; i < a->n_chunks; i++) {
		pattern(a, i, bytes, n);
		if (i == 4 || i == 2)
			value_repeat(bytes, n, a->fill, a->type.size);
		zs_ok(source_read_chunk(s, 0, i, got, n, &e));
		if (memcmp(got, bytes, n) != 0)
			fail_msg("%s: chunk %d is another", what, (int)i);
	}
	source_close(s);
	zs_box_release(&x);
}

static void test_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		one_form(forms[i].what, forms[i].doc);
}

/* numbers in the other byte order than the store's */
static void test_swapped(void **state)
{
	static const char *const list[] = {".zgroup", GROUP2, "a/.zarray",
					   V2("\">i4\"", "F", "0", "null", "null"), NULL};
	static const char *const now[] = {".zgroup", GROUP2, "a/.zarray",
					  V2("\"<i4\"", "C", "0", "null", "null"), NULL};
	static const int32_t v[] = {1, -2, 3, 4, 5, 1 << 30};
	struct sink_chunk c = {.p = (const uint8_t *)v, .len = sizeof(v)};
	struct zs_box x;
	struct source *s;
	int32_t got[6];

	(void)state;
	zs_box_init(&x, list);
	zs_begin(&x, NULL, now, plain);
	zs_ok(x.sink->ops->put(x.sink, 0, 3, &c, &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	s = zs_open(&x);
	zs_ok(source_read_chunk(s, 0, 3, (uint8_t *)got, sizeof(got), &e));
	dt_swap_to_host(&s->ds.arrays[0].type, (uint8_t *)got, 6);
	assert_memory_equal(got, v, sizeof(v));
	source_close(s);
	zs_box_release(&x);
}

/* texts that a virtual file shows as characters with one more dimension */
static void test_spread(void **state)
{
	static const char *const list[] = {
		".zgroup", GROUP2, "a/.zarray",
		"{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"|S3\", "
		"\"fill_value\": null, \"order\": \"C\", \"filters\": null, \"compressor\": "
		"null}",
		NULL};
	static const char *const now[] = {".zgroup", GROUP2, "a/.zarray",
					  "{\"zarr_format\": 2, \"shape\": [6, 3], \"chunks\": "
					  "[2, 3], \"dtype\": \"|S1\", "
					  "\"fill_value\": null, \"order\": \"C\", "
					  "\"filters\": null, \"compressor\": null}",
					  NULL};
	struct sink_chunk c = {.p = (const uint8_t *)"abcdef", .len = 6};
	struct sink_array how;
	struct zs_box x;

	(void)state;
	zs_box_init(&x, list);
	zs_begin(&x, NULL, now, plain);
	zs_ok(x.sink->ops->target(x.sink, 0, &how, &e));
	assert_int_equal(how.chunk[0], 2);
	assert_int_equal(how.chunk[1], 3);
	zs_ok(x.sink->ops->resize(x.sink, 0, &e));
	zs_ok(x.sink->ops->put(x.sink, 0, 1, &c, &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	assert_non_null(strstr(zs_read(&x, "a/.zarray"), "\"shape\": [6]"));
	assert_string_equal(zs_read(&x, "a/1"), "abcdef");
	assert_true(zs_exists(&x, "a/2"));  /* no fill value: it has to be there */
	assert_false(zs_exists(&x, "a/0")); /* as it was */
	zs_box_release(&x);
}

/* texts of any length */
static void test_texts(void **state)
{
	static const struct {
		const char *doc;
		bool v3;
	} docs[] = {{V2("\"|O\"", "F", "\"\"", "{\"id\": \"zlib\", \"level\": 1}",
			"[{\"id\": \"vlen-utf8\"}]"),
		     false},
		    {V2("\"|O\"", "C", "\"\"", "null", "[{\"id\": \"json2\"}]"), false},
		    {V3("string", "\"\"", "[2, 3]", "{\"name\": \"vlen-utf8\"}" GZIP), true},
		    {V3("string", "\"\"", "[4, 6]",
			SHARDS("[2, 3]", "{\"name\": \"vlen-utf8\"}", LITTLE SUM, "end")),
		     true}};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(docs); k++) {
		const bool v3 = docs[k].v3;
		const char *const list[] = {v3 ? "zarr.json" : ".zgroup", v3 ? GROUP3 : GROUP2,
					    v3 ? "a/zarr.json" : "a/.zarray", docs[k].doc,
					    NULL};
		struct buf in, got;
		struct sink_chunk c;
		struct zs_box x;
		struct source *s;

		buf_init(&in, 1000);
		buf_init(&got, 1000);
		for (size_t i = 0; i < 6; i++)
			codec_vlen_put((const uint8_t *)"abc\xc3\xa9xyz" + (i == 4 ? 3 : 0),
				       i == 4 ? 2 : i % 3, &in);
		c = (struct sink_chunk){.p = in.data, .len = in.len};
		zs_box_init(&x, list);
		zs_begin(&x, NULL, list, plain);
		zs_ok(x.sink->ops->put(x.sink, 0, 4, &c, &e));
		zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
		zs_end(&x);
		s = zs_open(&x);
		zs_ok(source_read_vlen(s, 0, 4, &got, &e));
		assert_int_equal(got.len, in.len);
		assert_memory_equal(got.data, in.data, in.len);
		source_close(s);
		zs_box_release(&x);
		buf_release(&in);
		buf_release(&got);
	}
}

/* a chunk that a shard has stays when the array shrinks and grows, one outside does not */
static void test_shard_shape(void **state)
{
	static const char doc[] =
		V3("int32", "7", "[4, 6]", SHARDS("[2, 3]", LITTLE, LITTLE SUM, "end"));
	static const char *const list[] = {"zarr.json", GROUP3, "a/zarr.json", doc, NULL};
	char small[sizeof(doc)];
	const char *const less[] = {"zarr.json", GROUP3, "a/zarr.json", small, NULL};
	static const int32_t v[] = {1, 2, 3, 4, 5, 6};
	struct sink_chunk c = {.stored = true, .p = (const uint8_t *)v, .len = sizeof(v)};
	struct zs_box x;
	struct source *s;
	int32_t got[6];

	(void)state;
	memcpy(small, doc, sizeof(doc));
	memcpy(strstr(small, "[5, 7]"), "[2, 3]", 6);
	zs_box_init(&x, list);
	zs_begin(&x, NULL, list, plain);
	for (uint64_t i = 0; i < 9; i++)
		zs_ok(x.sink->ops->put(x.sink, 0, i, &c, &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	assert_true(zs_exists(&x, "a/c/1/1"));
	for (int turn = 0; turn < 2; turn++) {
		zs_begin(&x, NULL, turn ? list : less, plain);
		zs_ok(x.sink->ops->resize(x.sink, 0, &e));
		zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
		zs_end(&x);
		assert_false(zs_exists(&x, "a/c/1/1"));
	}
	s = zs_open(&x);
	for (uint64_t i = 0; i < 9; i++) {
		zs_ok(source_read_chunk(s, 0, i, (uint8_t *)got, sizeof(got), &e));
		assert_int_equal(got[1], i == 0 ? 2 : 7);
	}
	source_close(s);
	zs_box_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),       cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_spread),      cmocka_unit_test(test_texts),
		cmocka_unit_test(test_shard_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
