/* SPDX-License-Identifier: BSD-3-Clause */
/* An array's zarr.json, member by member. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <stdio.h>

/* what a document says where a test does not say otherwise; NULL ends a row's list of changes */
static const char *const plain[][2] = {
	{"zarr_format", "3"},
	{"node_type", "'array'"},
	{"shape", "[10, 0, 7]"},
	{"data_type", "'int16'"},
	{"chunk_grid", "{'name': 'regular', 'configuration': {'chunk_shape': [5, 1, 9]}}"},
	{"chunk_key_encoding", "{'name': 'default', 'configuration': {'separator': '/'}}"},
	{"fill_value", "0"},
	{"codecs", "['bytes']"},
};

/* read_doc - the plain document with one member set, or, where value is NULL, left out. */
static int read_doc(struct arena *a, json_t **doc, const char *member, const char *value,
		    struct zr_meta *ret, struct err *e)
{
	struct buf b;
	bool set = !member;

	buf_init(&b, 1 << 20);
	buf_putc(&b, '{');
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		bool this = member && strcmp(member, plain[i][0]) == 0;

		set = set || this;
		if (!this || value)
			buf_printf(&b, "%s'%s': %s", b.len > 1 ? ", " : "", plain[i][0],
				   this ? value : plain[i][1]);
	}
	if (!set)
		buf_printf(&b, ", '%s': %s", member, value);
	buf_puts(&b, "}");
	buf_putc(&b, '\0');
	*doc = zr_json((const char *)b.data);
	buf_release(&b);
	return zr_v3_meta(a, *doc, ret, e);
}

struct fixture {
	struct arena a;
	json_t *doc;
	struct zr_meta m;
};

static void good(struct fixture *x, const char *member, const char *value)
{
	struct err e = ERR_INIT;

	arena_init(&x->a, 1 << 20);
	if (read_doc(&x->a, &x->doc, member, value, &x->m, &e) < 0)
		fail_msg("%s %s: %s", member, value, e.msg);
}

static void end(struct fixture *x)
{
	json_decref(x->doc);
	arena_release(&x->a);
}

static void test_plain(void **state)
{
	struct fixture x;

	(void)state;
	good(&x, NULL, NULL);
	assert_int_equal(x.m.format, 3);
	assert_int_equal(x.m.rank, 3);
	assert_int_equal(x.m.shape[0], 10);
	assert_int_equal(x.m.shape[1], 0);
	assert_int_equal(x.m.shape[2], 7);
	assert_int_equal(x.m.chunk[2], 9);
	assert_int_equal(x.m.separator, '/');
	assert_true(x.m.prefixed);
	assert_int_equal(x.m.dtype.type.kind, DT_INT);
	assert_int_equal(json_kind(x.m.fill), JSON_IS_NUMBER);
	assert_null(x.m.attrs);
	assert_null(x.m.dim_names);
	assert_null(x.m.shard);
	assert_null(x.m.unreadable);
	end(&x);
}

static void test_keys(void **state)
{
	static const struct {
		const char *text;
		bool prefixed;
		char separator;
	} rows[] = {
		{"'default'", true, '/'},
		{"{'name': 'default'}", true, '/'},
		{"{'name': 'default', 'configuration': {}}", true, '/'},
		{"{'name': 'default', 'configuration': {'separator': '.'}}", true, '.'},
		{"'v2'", false, '.'},
		{"{'name': 'v2', 'configuration': null}", false, '.'},
		{"{'name': 'v2', 'configuration': {'separator': '/'}}", false, '/'},
	};
	struct fixture x;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		good(&x, "chunk_key_encoding", rows[i].text);
		assert_int_equal(x.m.prefixed, rows[i].prefixed);
		assert_int_equal(x.m.separator, rows[i].separator);
		end(&x);
	}
}

static void test_members(void **state)
{
	struct fixture x;

	(void)state;
	good(&x, "shape", "[4294967296, 4294967296, 0]");
	end(&x);
	good(&x, "attributes", "{'a': 1}");
	assert_int_equal(json_kind(x.m.attrs), JSON_IS_OBJECT);
	end(&x);
	good(&x, "attributes", "null");
	assert_null(x.m.attrs);
	end(&x);
	good(&x, "dimension_names", "['x', null, '']");
	assert_int_equal(json_array_size(x.m.dim_names), 3);
	end(&x);
	good(&x, "dimension_names", "null");
	assert_null(x.m.dim_names);
	end(&x);
	good(&x, "storage_transformers", "[]");
	end(&x);
	good(&x, "ext", "{'must_understand': false, 'x': 1}");
	end(&x);
	good(&x, "consolidated_metadata", "null");
	end(&x);
	good(&x, "fill_value", "null");
	assert_int_equal(json_kind(x.m.fill), JSON_IS_NULL);
	end(&x);
	good(&x, "zarr_format", "3.0");
	end(&x);
	good(&x, "codecs", NULL);
	assert_int_equal(x.m.chain.n, 0);
	end(&x);
	good(&x, "codecs", "['zfp']");
	assert_non_null(strstr(x.m.unreadable, "codec 'zfp' is not supported: "));
	end(&x);
}

static void test_scalar(void **state)
{
	static const char text[] =
		"{'zarr_format': 3, 'node_type': 'array', 'shape': [], 'data_type': 'int8', "
		"'chunk_grid': {'name': 'regular', 'configuration': {'chunk_shape': []}}, "
		"'chunk_key_encoding': 'default', 'fill_value': 1, 'codecs': [{'name': "
		"'sharding_indexed', 'configuration': {'chunk_shape': [], 'codecs': ['bytes'], "
		"'index_codecs': ['bytes', 'crc32c']}}], 'dimension_names': []}";
	struct fixture x;

	(void)state;
	arena_init(&x.a, 1 << 20);
	x.doc = zr_json(text);
	assert_int_equal(zr_v3_meta(&x.a, x.doc, &x.m, NULL), 0);
	assert_int_equal(x.m.rank, 0);
	assert_non_null(x.m.shape);
	assert_non_null(x.m.chunk);
	assert_int_equal(x.m.shard->n, 1);
	assert_int_equal(x.m.shard->index_bytes, 20);
	end(&x);
}

static void test_refused(void **state)
{
	static const struct {
		const char *member, *value;
		int rc;
		const char *words;
	} rows[] = {
		{"zarr_format", NULL, -EBADMSG, "zarr_format"},
		{"zarr_format", "'3'", -EBADMSG, "zarr_format"},
		{"zarr_format", "2", -EOPNOTSUPP, "2, not 3"},
		{"zarr_format", "4", -EOPNOTSUPP, "4, not 3"},
		{"node_type", NULL, -EBADMSG, "node_type"},
		{"node_type", "'group'", -EBADMSG, "node_type"},
		{"shape", NULL, -EBADMSG, "shape is not a list"},
		{"shape", "5", -EBADMSG, "shape"},
		{"shape", "[10, 1]", -EBADMSG, "3 numbers, not 2"},
		{"shape", "[10, -1, 7]", -EBADMSG, "'-1'"},
		{"shape", "[10, 1.5, 7]", -EBADMSG, "'1.5'"},
		{"shape", "[10, '1', 7]", -EBADMSG, "an invalid number"},
		{"shape", "[10, null, 7]", -EBADMSG, "an invalid number"},
		{"shape", "[10, 9223372036854775808, 7]", -EBADMSG, "9223372036854775808"},
		{"shape", "[10, 1e30, 7]", -EBADMSG, "1e30"},
		{"shape",
		 "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
		 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
		 -ERANGE, "65 dimensions"},
		{"shape", "[4294967296, 4294967296, 1]", -ERANGE, "2^62"},
		{"data_type", NULL, -EBADMSG, "data_type"},
		{"data_type", "'complex_float16'", -EOPNOTSUPP, "'complex_float16'"},
		{"chunk_grid", NULL, -EBADMSG, "chunk_grid"},
		{"chunk_grid", "'regular'", -EBADMSG, "chunk_shape"},
		{"chunk_grid", "{'name': 'rectilinear'}", -EOPNOTSUPP, "'rectilinear'"},
		{"chunk_grid",
		 "{'name': 'regular', 'configuration': {'chunk_shape': [5, 0, 9]}}", -EBADMSG,
		 "'0'"},
		{"chunk_grid", "{'name': 'regular', 'configuration': {'chunk_shape': [5, 1]}}",
		 -EBADMSG, "2 numbers"},
		{"chunk_grid",
		 "{'name': 'regular', 'configuration': {'chunk_shape': [4611686018427387904, "
		 "1, "
		 "1]}}",
		 -ERANGE, "2^62"},
		{"chunk_grid",
		 "{'name': 'regular', 'configuration': {'chunk_shape': [9223372036854775807, "
		 "9223372036854775807, 9223372036854775807]}}",
		 -ERANGE, "2^62"},
		{"chunk_key_encoding", NULL, -EBADMSG, "chunk_key_encoding"},
		{"chunk_key_encoding", "'fanout'", -EOPNOTSUPP, "'fanout'"},
		{"chunk_key_encoding", "{'name': 'v2', 'configuration': {'separator': ''}}",
		 -EBADMSG, "separator"},
		{"chunk_key_encoding", "{'name': 'v2', 'configuration': {'separator': 5}}",
		 -EBADMSG, "separator"},
		{"chunk_key_encoding", "{'name': 'v2', 'configuration': ['/']}", -EBADMSG,
		 "configuration"},
		{"fill_value", NULL, -EBADMSG, "fill_value"},
		{"attributes", "[]", -EBADMSG, "attributes"},
		{"dimension_names", "['a', 'b']", -EBADMSG, "dimension_names"},
		{"dimension_names", "['a', 'b', 5]", -EBADMSG, "dimension_names"},
		{"dimension_names", "'abc'", -EBADMSG, "dimension_names"},
		{"storage_transformers", "[{'name': 'x'}]", -EOPNOTSUPP,
		 "storage_transformers"},
		{"storage_transformers", "{}", -EBADMSG, "storage_transformers"},
		{"ext", "1", -EOPNOTSUPP, "'ext'"},
		{"ext", "{}", -EOPNOTSUPP, "'ext'"},
		{"ext", "{'must_understand': true}", -EOPNOTSUPP, "'ext'"},
		{"codecs", "[]", -EBADMSG, "bytes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = ERR_INIT;
		struct arena a;
		struct zr_meta m;
		json_t *doc;
		int rc;

		arena_init(&a, 1 << 20);
		rc = read_doc(&a, &doc, rows[i].member, rows[i].value, &m, &e);
		if (rc != rows[i].rc || !strstr(e.msg, rows[i].words))
			fail_msg("%s %s: %d %s", rows[i].member, rows[i].value, rc, e.msg);
		json_decref(doc);
		arena_release(&a);
	}
}

static void test_no_object(void **state)
{
	static const char *const texts[] = {"[]", "3", "'x'", "null"};
	struct zr_meta m;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_t *doc = zr_json(texts[i]);

		assert_int_equal(zr_v3_meta(&a, doc, &m, NULL), -EBADMSG);
		json_decref(doc);
	}
	arena_release(&a);
}

/* However little memory there is, there is an error and nothing worse. */
static void test_memory(void **state)
{
	static const char *const codecs =
		"[{'name': 'transpose', 'configuration': {'order': 'F'}}, {'name': "
		"'sharding_indexed', 'configuration': {'chunk_shape': [9, 1, 1], 'codecs': "
		"[{'name': 'bytes', 'configuration': {'endian': 'big'}}, 'gzip'], "
		"'index_codecs': "
		"['bytes', 'crc32c']}}, 'zstd']";
	struct zr_meta m;
	json_t *doc;
	bool whole = false;

	(void)state;
	for (size_t max = 0; !whole; max += 16) {
		struct err e = ERR_INIT;
		struct arena a;

		assert_true(max < 10000);
		arena_init(&a, max);
		if (read_doc(&a, &doc, "codecs", codecs, &m, &e) == 0)
			whole = true;
		else
			assert_int_equal(e.code, -ERANGE);
		json_decref(doc);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),   cmocka_unit_test(test_keys),
		cmocka_unit_test(test_members), cmocka_unit_test(test_scalar),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
