/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lzma.c - lzma with filters that only the document states: against numcodecs 0.11, and
 * documents that are not supported. */
#include "tests/unit/codecs/util.h"

#include "codecs/export/conf_json.h"

#define LEN 160

/* The twenty doubles of chunk20(); apostrophes are quotation marks. */
static const struct {
	const char *what;
	int format;
	const char *filters, *hex;
} rows[] = {
	{"raw, LZMA2", 3, "[{'id': 33, 'preset': 1}]",
	 "e0009f002d5d00006cd85087f6c59c7ac0bb043917d6de6e38f941c48f6e48bf8c58d44aba9f"
	 "1593d4593a1e1d0be5e73744ab0000"},
	{"raw, delta and LZMA2", 3,
	 "[{'id': 3, 'dist': 8}, {'id': 33, 'preset': 6, 'dict_size': 65536}]",
	 "e0009f001a5d00006cd85090f5a0735e4d09150cdcea5da2c70116777187d99d0000"},
	{"raw, LZMA1", 3,
	 "[{'id': 4611686018427387905, 'preset': 0, 'lc': 2, 'lp': 1, 'pb': 1}]",
	 "00006cd85087f8977a8674a9eca1d6a82e3650531a709eb32921b4138453ff029389ee381aeb"
	 "a023933465006749ffff101c0000"},
	{"raw, x86, delta and LZMA2", 3, "[{'id': 4}, {'id': 3}, {'id': 33}]",
	 "e0009f00415d00006cd8538df06a90b81b95f8b2128888c6cece4b9df5e9ecbbb9a4bc579a1c"
	 "14f6243873c310db97bdc3509434d316604a091f249eb2525cbcdf57e062e6fae3af00"},
	{"xz with filters", 1, "[{'id': 3, 'dist': 4}, {'id': 33, 'preset': 1}]",
	 "fd377a585a000004e6d6b4460201030103210110a22a1215e0009f00635d00006cd8508ff339"
	 "26011d06a257d70f6bd713f6065eff1bce7c56770acad60d7dc23d5290568a2222eb0c29bdf3"
	 "1b063d20d8c2bed3256cff213952ef24a68c68715c51f727fbe706c6c283d1527a2e4770a49c"
	 "9e10a2485a0c9c4d9c7eacee7800220000001cbfc0d8e9e14a4b00017fa0010000003a93baf1"
	 "b1c467fb020000000004595a"},
	{"alone with filters", 2, "[{'id': 4611686018427387905, 'preset': 2}]",
	 "5d00002000ffffffffffffffff00006cd85087f6c59c7ac0bb043917d6de6e38f941c48f6e48"
	 "bf8c58d44aba9f1593d4593a1e1d0be5e738e22d84ffff37500000"},
};

/* from_json - the filter that a document names by these members. */
static int from_json(struct made *m, int format, const char *filters, struct err *e)
{
	struct codec_json *j = calloc(1, sizeof(*j));
	char text[2048];
	int rc;

	assert_non_null(j);
	(void)snprintf(text, sizeof(text), "{'id': 'lzma', 'format': %d, 'filters': %s}",
		       format, filters);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	assert_int_equal(codec_json_open(text, strlen(text), 8, j), 0);
	*m = (struct made){.ops = codec_find_zarr2("lzma", 4)};
	assert_non_null(m->ops);
	m->spec = (struct codec_spec){.h5_id = CODEC_LZMA, .params = m->params, .name = ""};
	rc = m->ops->from_zarr(&j->conf, m->params, &m->spec.n_params, e);
	assert_true(m->spec.n_params <= CODEC_PARAMS_MAX);
	codec_json_close(j);
	free(j);
	return rc;
}

static void test_numcodecs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t in[512], want[LEN], out[LEN];
		size_t n = from_hex(rows[i].hex, in), len = 0;
		struct err e = ERR_INIT;
		struct made m;
		struct buf b;

		chunk20(want);
		assert_int_equal(from_json(&m, rows[i].format, rows[i].filters, &e), 0);
		if (call_decode(m.ops, NULL, &m.spec, 8, in, n, out, LEN, &len, &e))
			fail_msg("%s: %s", rows[i].what, e.msg);
		assert_int_equal(len, LEN);
		assert_memory_equal(out, want, LEN);
		assert_int_equal(
			call_decode(m.ops, NULL, &m.spec, 8, in, n, out, LEN - 1, &len, &e),
			-ERANGE);
		for (size_t cut = 0; cut + 1 < n; cut++)
			if (call_decode(m.ops, NULL, &m.spec, 8, in, cut, out, LEN, &len, &e) ==
			    0)
				fail_msg("%s: %zu of %zu bytes", rows[i].what, cut, n);

		buf_init(&b, 100000);
		assert_int_equal(call_encode(m.ops, NULL, &m.spec, 8, want, LEN, &b, &e), 0);
		assert_int_equal(b.len, n);
		assert_memory_equal(b.data, in, n);
		buf_release(&b);
	}
}

/* What we write into a document is read as the same. */
static void test_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct made m, again;
		char text[1024];
		const char *list;
		struct buf b;

		assert_int_equal(from_json(&m, rows[i].format, rows[i].filters, NULL), 0);
		buf_init(&b, sizeof(text));
		m.ops->zarr2_params(&m.spec, 8, &b);
		buf_putc(&b, '\0');
		assert_true(buf_ok(&b));
		memcpy(text, b.data, b.len);
		buf_release(&b);
		list = strstr(text, "\"filters\": ");
		assert_non_null(list);
		assert_int_equal(from_json(&again, rows[i].format, list + 11, NULL), 0);
		assert_int_equal(again.spec.n_params, m.spec.n_params);
		assert_memory_equal(again.params, m.params, 4 * m.spec.n_params);
	}
}

static void test_refused(void **state)
{
	static const struct {
		int format;
		const char *filters;
		int want;
	} bad[] = {
		{3, "null", -EOPNOTSUPP},
		{3, "[]", -EOPNOTSUPP},
		{1, "[]", 0},
		{3, "7", -EBADMSG},
		{3, "{'id': 33}", -EBADMSG},
		{3, "[{'id': 99}]", -EOPNOTSUPP},
		{3, "[{}]", -EOPNOTSUPP},
		{3, "[{'id': 'x'}]", -EBADMSG},
		{3, "[{'id': 33, 'preset': 55}]", -EOPNOTSUPP},
		{3, "[{'id': 33, 'lc': -1}]", -EBADMSG},
		{3, "[{'id': 33, 'lc': 4294967296}]", -EBADMSG},
		{3, "[{'id': 3}, {'id': 3}, {'id': 3}, {'id': 3}, {'id': 33}]", -EOPNOTSUPP},
		{3, "[{'id': 33}, {'id': 33}, {'id': 33}]", -EOPNOTSUPP},
		{3, "[ {'a': ']}\\\"}', 'id' : 33 } ]", 0},
	};
	/* what liblzma refuses, or what needs too much memory, when it is used */
	static const char *const unusable[] = {
		"[{'id': 3}]", "[{'id': 33}, {'id': 3}]",
		"[{'id': 4611686018427387905, 'lc': 4, 'lp': 4}]",
		"[{'id': 3, 'dist': 257}, {'id': 33}]",
		"[{'id': 33, 'dict_size': 4294967295}]"};
	uint8_t in[4] = {0}, out[4];
	struct made m;
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;
		int rc = from_json(&m, bad[i].format, bad[i].filters, &e);

		if (rc != bad[i].want)
			fail_msg("%s: %d, %s", bad[i].filters, rc, e.msg);
	}
	for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
		assert_int_equal(from_json(&m, 3, unusable[i], NULL), 0);
		assert_int_equal(
			call_decode(m.ops, NULL, &m.spec, 8, in, 4, out, 4, &len, NULL),
			-EOPNOTSUPP);
	}
}

/* Parameters of another origin: any number of them, with any content. */
static void test_parameters(void **state)
{
	uint8_t in[8] = {0}, out[8];
	size_t len;

	(void)state;
	for (uint32_t n = 0; n <= CODEC_PARAMS_MAX; n++)
		for (uint32_t seed = 0; seed < 50; seed++) {
			uint32_t *p = malloc(4 * n + 1);
			struct codec_spec spec = {CODEC_LZMA, n, p, ""};

			assert_non_null(p);
			for (uint32_t i = 0; i < n; i++) {
				noise((uint8_t *)&p[i], 4, 77 * seed + i);
				p[i] &= seed % 2 ? 7 : UINT32_MAX;
			}
			if (n > 0)
				p[0] = 3;
			assert_int_not_equal(call_decode(codec_find(CODEC_LZMA), NULL, &spec, 1,
							 in, 8, out, 8, &len, NULL),
					     0);
			free(p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numcodecs),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
