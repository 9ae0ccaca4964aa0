/* SPDX-License-Identifier: BSD-3-Clause */
/* What keys of a store mean: documents, chunks, temporary files; and a source of any store. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nczarr/nczarr.h"

#include <cmocka.h>

#include "tests/unit/nczarr/zr_tree.h"

#define ARRAY(shape, chunks, more)                                                             \
	"{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " chunks                       \
	", \"dtype\": \"|u1\", \"fill_value\": 0, \"order\": \"C\", \"filters\": null, "       \
	"\"compressor\": null" more "}"
#define ARRAY3(shape, chunks, keys, codecs)                                                    \
	"{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": " shape                     \
	", \"data_type\": \"uint8\", \"fill_value\": 0, \"chunk_grid\": {\"name\": "           \
	"\"regular\", \"configuration\": {\"chunk_shape\": " chunks                            \
	"}}, \"chunk_key_encoding\": " keys ", \"codecs\": [" codecs "], \"attributes\": {}}"
#define BYTES "{\"name\": \"bytes\"}"
#define SHARDS                                                                                 \
	"{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": [2, 2], "       \
	"\"codecs\": [{\"name\": \"bytes\"}], \"index_codecs\": [{\"name\": \"bytes\", "       \
	"\"configuration\": {\"endian\": \"little\"}}]}}"

static const struct source_options options = {
	.max_chunk_bytes = 1 << 20, .max_index_bytes = 1 << 20, .max_meta_bytes = 1 << 20};

static const char *const v2[] = {
	".zgroup", "{\"zarr_format\": 2}",
	/* behind what the documents say */
	".zmetadata", "{\"zarr_consolidated_format\": 1, \"metadata\": {}}", "d/.zarray",
	ARRAY("[5, 4]", "[2, 2]", ""), "s/.zarray", ARRAY("[]", "[]", ""), "g/.zgroup",
	"{\"zarr_format\": 2}", "g/n/.zarray",
	ARRAY("[5, 4]", "[2, 2]", ", \"dimension_separator\": \"/\""), "e/.zarray",
	ARRAY("[0, 4]", "[2, 2]", ""), NULL};
static const char *const v3[] = {
	"zarr.json",
	"{\"zarr_format\": 3, \"node_type\": \"group\"}",
	"d/zarr.json",
	ARRAY3("[5, 4]", "[2, 2]", "{\"name\": \"default\"}", BYTES),
	"v/zarr.json",
	ARRAY3("[5, 4]", "[2, 2]", "{\"name\": \"v2\"}", BYTES),
	"p/zarr.json",
	ARRAY3("[5, 4]", "[2, 2]",
	       "{\"name\": \"default\", \"configuration\": {\"separator\": \".\"}}", BYTES),
	"s/zarr.json",
	ARRAY3("[]", "[]", "{\"name\": \"default\"}", BYTES),
	"t/zarr.json",
	ARRAY3("[]", "[]", "{\"name\": \"v2\"}", BYTES),
	"h/zarr.json",
	ARRAY3("[7, 4]", "[4, 4]", "{\"name\": \"default\"}", SHARDS),
	NULL};

struct said {
	char text[200];
	const struct dataset *ds;
};

static bool note(void *arg, uint32_t array, uint64_t linear)
{
	struct said *s = arg;
	size_t n = strlen(s->text);

	(void)snprintf(s->text + n, sizeof(s->text) - n, " %s%llu", s->ds->arrays[array].name,
		       (unsigned long long)linear);
	return true;
}

/* means - "other", "doc", "chunk d3". */
static const char *means(struct source *s, const char *key)
{
	static struct said said;
	enum zarr_key_kind what;

	said = (struct said){.ds = &s->ds};
	what = zarr_source_key(s, key, note, &said);
	if (what == ZARR_KEY_CHUNK) {
		memmove(said.text + 5, said.text, sizeof(said.text) - 5);
		memcpy(said.text, "chunk", 5);
		assert_int_equal(zarr_source_key(s, key, NULL, NULL), ZARR_KEY_CHUNK);
		return said.text;
	}
	assert_string_equal(said.text, "");
	return what == ZARR_KEY_DOC ? "doc" : "other";
}

static void check(const char *const *docs, const char *const *want)
{
	struct store *st = tree_store(docs);
	struct err e = ERR_INIT;
	struct source *s;

	if (zarr_store_open(st, "a tree", &options, &s, &e))
		fail_msg("%s", e.msg);
	for (; want[0]; want += 2)
		if (strcmp(means(s, want[0]), want[1]) != 0)
			fail_msg("'%s' is %s, not %s", want[0], means(s, want[0]), want[1]);
	assert_int_equal(source_check(s, NULL), 0);
	assert_int_equal(source_poll(s, NULL), 0);
	source_close(s);
	store_close(st);
}

static void test_v2(void **state)
{
	static const char *const want[] = {"d/0.0",
					   "chunk d0",
					   "d/2.1",
					   "chunk d5",
					   "d/3.0",
					   "other",
					   "d/0.2",
					   "other",
					   "d/0",
					   "other",
					   "d/0.0.0",
					   "other",
					   "d/00.0",
					   "other",
					   "d/0/0",
					   "other",
					   "d/c/0/0",
					   "other",
					   "s/0",
					   "chunk s0",
					   "s/c",
					   "other",
					   "s/1",
					   "other",
					   "g/n/1/1",
					   "chunk n3",
					   "g/n/1.1",
					   "other",
					   "g/n/1",
					   "other",
					   "g/n/1/1/0",
					   "other",
					   "e/0.0",
					   "other",
					   "d/.zarray",
					   "doc",
					   "d/.zattrs",
					   "doc",
					   ".zgroup",
					   "doc",
					   ".zmetadata",
					   "doc",
					   "g/.zattrs",
					   "doc",
					   "x/.zarray",
					   "other",
					   "x/0.0",
					   "other",
					   "d/0.0.8c1f.partial",
					   "other",
					   "d/.zarray.tmp",
					   "other",
					   "readme",
					   "other",
					   "d/__atomic0.0",
					   "other",
					   "d",
					   "other",
					   NULL};

	(void)state;
	check(v2, want);
}

static void test_v3(void **state)
{
	static const char *const want[] = {"d/c/0/0",
					   "chunk d0",
					   "d/c/2/1",
					   "chunk d5",
					   "d/0/0",
					   "other",
					   "d/c/3/0",
					   "other",
					   "d/c.0.0",
					   "other",
					   "d/c",
					   "other",
					   "d/c/0",
					   "other",
					   "v/2.1",
					   "chunk v5",
					   "v/c/0/0",
					   "other",
					   "p/c.1.1",
					   "chunk p3",
					   "p/1.1",
					   "other",
					   "s/c",
					   "chunk s0",
					   "s/0",
					   "other",
					   "t/0",
					   "chunk t0",
					   "t/c",
					   "other",
					   "h/c/0/0",
					   "chunk h0 h1 h2 h3",
					   "h/c/1/0",
					   "chunk h4 h5 h6 h7",
					   "h/c/2/0",
					   "other",
					   "zarr.json",
					   "doc",
					   "h/zarr.json",
					   "doc",
					   "h/c/0/0.__atomic",
					   "other",
					   NULL};

	(void)state;
	check(v3, want);
}

static void test_doc_key(void **state)
{
	(void)state;
	assert_true(zarr_doc_key("zarr.json"));
	assert_true(zarr_doc_key("a/b/.zattrs"));
	assert_true(zarr_doc_key(".zmetadata"));
	assert_false(zarr_doc_key("a/0.0"));
	assert_false(zarr_doc_key("a.zattrs"));
	assert_false(zarr_doc_key("a/.zattrs.5f.partial"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_v2), cmocka_unit_test(test_v3),
					   cmocka_unit_test(test_doc_key)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
