/* SPDX-License-Identifier: BSD-3-Clause */
/* test_packbits.c - Zarr v3's packbits. */
#include "tests/unit/codecs/util.h"

/* opened - the codec of a document, for elements of a class and size. */
static int opened(struct made *m, const char *text, enum codec_class class, uint32_t size,
		  struct err *e)
{
	const uint64_t chunk = 10;
	const struct codec_array a = {
		.class = class, .elem_size = size, .rank = 1, .chunk = &chunk};
	struct fake_conf c = {.text = text};
	const struct codec_conf conf = {.arg = &c,
					.version = 3,
					.elem_size = size,
					.array = size ? &a : NULL,
					.integer = fake_integer,
					.real = fake_real,
					.text = fake_text};

	*m = (struct made){.ops = codec_find_zarr3("packbits", 8)};
	assert_non_null(m->ops);
	assert_int_equal(m->ops->h5_id, CODEC_PACKBITS_ZARR3);
	m->spec = (struct codec_spec){
		.h5_id = m->ops->h5_id, .params = m->params, .name = m->ops->name};
	return m->ops->from_zarr(&conf, m->params, &m->spec.n_params, e);
}

/* Ten elements by hand. The bits of the first byte are those of the first elements, the first one
 * lowest. */
static const struct {
	const char *conf;
	enum codec_class class;
	uint32_t size;
	const char *content, *stored;
} rows[] = {
	{"", CODEC_OTHER, 1, "01000001010100000001", "3902"},
	{"padding_encoding=none", CODEC_OTHER, 1, "01000001010100000001", "3902"},
	{"padding_encoding=first_byte", CODEC_OTHER, 1, "01000001010100000001", "063902"},
	{"padding_encoding=last_byte", CODEC_OTHER, 1, "01000001010100000001", "390206"},
	{"padding_encoding=first_byte", CODEC_OTHER, 1, "0100000101010000", "0039"},
	{"", CODEC_UINT, 1, "0102ff", "0102ff"},
	{"last_bit=#2", CODEC_UINT, 1, "0100070203040506", "c135d6" /* 1 0 7 2 3 4 5 6 */},
	{"last_bit=#2", CODEC_INT, 1, "0100ff0203fcfdfe", "c135d6" /* the same with a sign */},
	{"first_bit=#4,last_bit=#7", CODEC_UINT, 1, "1020f0", "210f"},
	{"first_bit=#4", CODEC_INT, 2, "f0ff1000", "ff1f00"},
	{"first_bit=#24,padding_encoding=last_byte", CODEC_FLOAT, 4, "0000003f000000c1",
	 "3fc100"},
	{"", CODEC_INT, 8, "0102030405060788", "0102030405060788"},
	{"last_bit=#62", CODEC_UINT, 8, "ffffffffffffff7f0100000000000000",
	 "ffffffffffffffff0000000000000000"},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].stored) / 2, len = strlen(rows[i].content) / 2,
		       got = 0;
		uint8_t *in = malloc(n), *want = malloc(len), *out = malloc(len);
		struct err e = ERR_INIT;
		struct made m;
		struct buf b;
		int rc;

		assert_non_null(in);
		assert_non_null(want);
		assert_non_null(out);
		from_hex(rows[i].stored, in);
		from_hex(rows[i].content, want);
		assert_int_equal(opened(&m, rows[i].conf, rows[i].class, rows[i].size, &e), 0);
		buf_init(&b, 1000);
		assert_int_equal(call_encode(m.ops, NULL, &m.spec, 1, want, len, &b, &e), 0);
		if (b.len != n || memcmp(b.data, in, n) != 0)
			fail_msg("%s %zu: encoded as %02x%02x...", rows[i].conf, i, b.data[0],
				 b.data[1]);
		assert_true(m.ops->stored_max(&m.spec, len) >= n);
		buf_release(&b);

		rc = call_decode(m.ops, NULL, &m.spec, 1, in, n, out, len, &got, &e);
		if (rc || got != len || memcmp(out, want, len) != 0)
			fail_msg("%s %zu: %d, %zu bytes of %zu", rows[i].conf, i, rc, got, len);
		/* fewer elements than there is room for, or more */
		assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, in, n, out, 0, &got, &e),
				 -ERANGE);
		for (size_t cut = 0; cut < n; cut++) {
			rc = call_decode(m.ops, NULL, &m.spec, 1, in, cut, out, len, &got, &e);
			assert_true(rc == -EBADMSG || (rc == 0 && got < len));
		}
		free(in);
		free(want);
		free(out);
	}
}

static void test_documents(void **state)
{
	static const struct {
		const char *conf;
		enum codec_class class;
		uint32_t size;
		int want;
	} docs[] = {
		{"first_bit=#0,last_bit=#0", CODEC_OTHER, 1, 0},
		{"last_bit=#1", CODEC_OTHER, 1, -EBADMSG},
		{"last_bit=#8", CODEC_UINT, 1, -EBADMSG},
		{"first_bit=#8", CODEC_UINT, 1, -EBADMSG},
		{"first_bit=#-1", CODEC_UINT, 1, -EBADMSG},
		{"first_bit=#5,last_bit=#4", CODEC_UINT, 1, -EBADMSG},
		{"padding_encoding=start_byte", CODEC_UINT, 1, -EBADMSG},
		{"padding_encoding=#1", CODEC_UINT, 1, -EBADMSG},
		{"first_bit=x", CODEC_UINT, 1, -EBADMSG},
		{"", CODEC_UINT, 3, -EOPNOTSUPP},
		{"", CODEC_UINT, 0, -EOPNOTSUPP}, /* unknown element type */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		struct err e = ERR_INIT;
		struct made m;
		int rc = opened(&m, docs[i].conf, docs[i].class, docs[i].size, &e);

		if (rc != docs[i].want)
			fail_msg("%s: %d, %s", docs[i].conf, rc, e.msg);
	}
}

/* Damage: counts that cannot be, and parameters of another origin. */
static void test_damage(void **state)
{
	static const uint8_t in[] = {7, 0xff, 0xff};
	uint8_t out[64];
	uint32_t params[6];
	struct codec_spec spec = {CODEC_PACKBITS_ZARR3, 6, params, ""};
	struct made m;
	size_t len;

	(void)state;
	assert_int_equal(opened(&m, "padding_encoding=first_byte", CODEC_OTHER, 1, NULL), 0);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, in, 3, out, 64, &len, NULL), 0);
	assert_int_equal(len, 9);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, in, 1, out, 64, &len, NULL),
			 -EBADMSG);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, in + 1, 2, out, 64, &len, NULL),
			 -EBADMSG);
	assert_int_equal(
		opened(&m, "padding_encoding=first_byte,last_bit=#4", CODEC_UINT, 1, NULL), 0);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, in, 3, out, 64, &len, NULL),
			 -EBADMSG);

	for (uint32_t seed = 0; seed < 3000; seed++) {
		noise((uint8_t *)params, sizeof(params), seed);
		for (size_t i = 0; i < 6; i++)
			params[i] = seed % 3 ? params[i] % 9 : params[i];
		assert_true(call_decode(m.ops, NULL, &spec, 1, in, 3, out, 64, &len, NULL) <=
			    0);
	}
	for (spec.n_params = 0; spec.n_params < 6; spec.n_params++)
		assert_int_equal(call_decode(m.ops, NULL, &spec, 1, in, 3, out, 64, &len, NULL),
				 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
