/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that stand for elements: what numpy_dtype says is believed when everything fits, and else
 * the array stays one of bytes. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <stdio.h>

#define BYTES "[{'name': 'bytes'}]"
#define ORDER "[{'name': 'transpose', 'configuration': {'order': [1, 0]}}, {'name': 'bytes'}]"
#define SHARDS(inner)                                                                          \
	"[{'name': 'sharding_indexed', 'configuration': {'chunk_shape': " inner ", 'codecs': " \
	"['bytes'], 'index_codecs': ['bytes', 'crc32c'], 'index_location': 'end'}}]"

struct fixture {
	struct arena a;
	json_t *doc;
	struct zr_meta m;
};

/* doc - an array's document. said: numpy_dtype as JSON; NULL: no such attribute. */
static void doc(struct fixture *x, const char *shape, const char *chunk, const char *type,
		const char *codecs, const char *said)
{
	struct err e = ERR_INIT;
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_printf(&b,
		   "{'zarr_format': 3, 'node_type': 'array', 'shape': %s, 'data_type': '%s', "
		   "'chunk_grid': {'name': 'regular', 'configuration': {'chunk_shape': %s}}, "
		   "'chunk_key_encoding': {'name': 'default'}, 'fill_value': %s, 'codecs': %s, "
		   "'attributes': {'a': 1%s%s}}",
		   shape, type, chunk, strcmp(type, "bytes") == 0 ? "''" : "32", codecs,
		   said ? ", 'numpy_dtype': " : "", said ? said : "");
	buf_putc(&b, '\0');
	x->doc = zr_json((const char *)b.data);
	buf_release(&b);
	arena_init(&x->a, 1 << 20);
	if (zr_v3_meta(&x->a, x->doc, &x->m, &e) < 0)
		fail_msg("%s: %s", said, e.msg);
}

static void end(struct fixture *x)
{
	json_decref(x->doc);
	arena_release(&x->a);
}

static void test_texts(void **state)
{
	struct ds_array a;
	struct fixture x;

	(void)state;
	doc(&x, "[7, 5]", "[3, 5]", "uint8", BYTES, "'|S5'");
	assert_int_equal(x.m.dtype.type.kind, DT_STRING);
	assert_int_equal(x.m.dtype.type.size, 5);
	assert_true(x.m.as_bytes && x.m.tail);
	assert_int_equal(x.m.rank, 2); /* of keys */
	assert_int_equal(x.m.shape[0], 7);
	assert_int_equal(x.m.shape[1], 1);
	assert_int_equal(x.m.chunk[0], 3);
	assert_int_equal(x.m.chunk[1], 1);
	assert_null(json_get(x.m.attrs, "numpy_dtype"));
	assert_non_null(json_get(x.m.attrs, "a"));
	/* one value for all bytes */
	a = (struct ds_array){.type = x.m.dtype.type};
	assert_int_equal(zr_fill_value(&x.a, &x.m, &a, NULL), 0);
	assert_memory_equal(a.fill, "     ", 5);
	end(&x);

	doc(&x, "[7, 6]", "[3, 4]", "uint8", BYTES, "'|S1'");
	assert_int_equal(x.m.dtype.type.kind, DT_STRING);
	assert_true(x.m.as_bytes);
	assert_false(x.m.tail);
	assert_int_equal(x.m.chunk[1], 4);
	end(&x);
}

static void test_others(void **state)
{
	struct fixture x;

	(void)state;
	doc(&x, "[3]", "[3]", "uint8", BYTES, "'|V3'"); /* a scalar */
	assert_int_equal(x.m.dtype.type.kind, DT_OPAQUE);
	assert_true(x.m.tail);
	end(&x);

	doc(&x, "[4, 6]", "[2, 6]", "uint8", BYTES,
	    "'[[\\'a\\', \\'>i2\\'], [\\'b\\', \\'<f2\\', [2]]]'");
	assert_int_equal(x.m.dtype.type.kind, DT_COMPOUND);
	assert_int_equal(x.m.dtype.type.n_fields, 2);
	assert_true(x.m.dtype.type.fields[0].type.big_endian);
	assert_int_equal(x.m.dtype.type.fields[1].dims[0], 2);
	end(&x);

	doc(&x, "[4]", "[2]", "bytes", "[{'name': 'vlen-bytes'}]", "'<i4'");
	assert_int_equal(x.m.dtype.type.kind, DT_VLEN);
	assert_int_equal(x.m.dtype.type.base->size, 4);
	assert_int_equal(x.m.dtype.type.base->kind, DT_INT);
	end(&x);

	doc(&x, "[8, 5]", "[4, 5]", "uint8", SHARDS("[2, 5]"), "'|S5'");
	assert_true(x.m.tail);
	assert_int_equal(x.m.shard->inner[0], 2);
	assert_int_equal(x.m.shard->inner[1], 1);
	assert_int_equal(x.m.shard->n, 2);
	end(&x);
}

static void test_not_believed(void **state)
{
	static const struct {
		const char *shape, *chunk, *type, *codecs, *said;
	} rows[] = {
		{"[7, 5]", "[3, 5]", "uint8", BYTES, NULL},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "5"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "''"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'|S6'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'|S'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'|S5\\\"'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'<U1'"},
		{"[7, 8]", "[3, 8]", "uint8", BYTES, "'<f8'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'[[\\'a\\', \\'|S4\\']]'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES, "'[[\\'a\\', \\'|S5\\']'"},
		{"[7, 5]", "[3, 5]", "uint8", BYTES,
		 "'[[\\'\\', \\'|V1\\'], [\\'a\\', \\'|S4\\']]'"},
		{"[7, 5]", "[3, 4]", "uint8", BYTES, "'|S5'"},
		{"[7, 5]", "[3, 5]", "int8", BYTES, "'|S5'"},
		{"[5, 5]", "[5, 5]", "uint8", ORDER, "'|S5'"},
		{"[8, 6]", "[4, 6]", "uint8", SHARDS("[2, 3]"), "'|S6'"},
		{"[8, 6]", "[4, 6]", "uint8", SHARDS("[2, 3]"), "'|S3'"},
		{"[4]", "[2]", "bytes", "[{'name': 'vlen-bytes'}]", "'|S4'"},
	};
	struct fixture x;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		doc(&x, rows[i].shape, rows[i].chunk, rows[i].type, rows[i].codecs,
		    rows[i].said);
		if (x.m.as_bytes || x.m.tail ||
		    (x.m.dtype.type.base && x.m.dtype.type.base->size != 1))
			fail_msg("row %zu is believed", i);
		assert_true(!rows[i].said || json_get(x.m.attrs, "numpy_dtype"));
		end(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
