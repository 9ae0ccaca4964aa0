/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters as text: constants, chains, rules, and what a writer stores for an array.
 *
 * Constants are those of netCDF-C's own test (nc_test4/tst_filterparser.c) and what its library
 * was seen to make of them; tests/cases/zarr_view/test_filter_specs.py asks the library itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codecs/spec/spec.h"
#include "codecs/spec/spec_int.h"

static struct arena arena;

static int setup(void **state NZ_UNUSED)
{
	arena_init(&arena, (size_t)1 << 20);
	return 0;
}

static int teardown(void **state NZ_UNUSED)
{
	arena_release(&arena);
	return 0;
}

/* expect_text - what codec_spec_print makes of a chain. */
static void expect_text(const struct codec_chain *chain, const char *text)
{
	struct buf b;

	buf_init(&b, 65536);
	codec_spec_print(chain, &b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	assert_string_equal((char *)b.data, text);
	buf_release(&b);
}

static void expect(const char *text, const char *canonical)
{
	struct codec_chain c;
	struct err e = ERR_INIT;

	if (codec_spec_parse(&arena, text, strlen(text), &c, &e))
		fail_msg("'%s': %s", text, e.msg);
	expect_text(&c, canonical);
}

/* refuse - with a message that has `part` in it. */
static void refuse(const char *text, const char *part)
{
	struct codec_chain c;
	struct err e = ERR_INIT;

	assert_int_equal(codec_spec_parse(&arena, text, strlen(text), &c, &e), -EINVAL);
	if (!strstr(e.msg, part))
		fail_msg("'%s': '%s' does not say '%s'", text, e.msg, part);
}

static void constants(void **state NZ_UNUSED)
{
	expect("32768, -17b, 23ub, -25S, 27US, 77, 93U, 2147483647, -2147483648, "
	       "4294967295U, 789f, -9223372036854775807L, 18446744073709551615UL, "
	       "12345678.12345678d",
	       "32768,239,23,65511,27,77,93,2147483647,2147483648,4294967295,1145389056,1,"
	       "2147483648,4294967295,4294967295,3287505826,1097305129");
	expect("307,9", "307,9");
	expect("307,1.", "307,1065353216");
	expect("307,-1.5e1F,.5f,0d", "307,3245342720,1056964608,0,0");
	expect("307,007,+5,-0,-1", "307,7,5,0,4294967295");
	expect("307,255b,-128B,255UB,65535s,-32768S", "307,255,128,255,65535,32768");
	expect("307,7l,-1L,9223372036854775808uL",
	       "307,7,0,4294967295,4294967295,0,2147483648");
}

static void bad_constants(void **state NZ_UNUSED)
{
	static const char *const not_there[] = {"0x10", "1 2", "9x",   "12LU", "1bu",
						"5ll",  "1e",  "1e5l", "1ff",  "--1x"};
	static const char *const too_much[] = {"4294967296",
					       "-2147483649",
					       "256b",
					       "-129b",
					       "256ub",
					       "-1ub",
					       "65536s",
					       "-1U",
					       "-1us",
					       "9223372036854775808L",
					       "-9223372036854775809l",
					       "18446744073709551616UL",
					       "-1ul",
					       "1e39f",
					       "1e309d",
					       "99999999999999999999999"};
	static const char *const none[] = {"", " ", "-", "b", "inff", "nan", ".", ".f", "e5f"};
	char text[64];

	for (size_t i = 0; i < ARRAY_LEN(not_there); i++) {
		(void)snprintf(text, sizeof(text), "307,1,%s", not_there[i]);
		refuse(text, "parameter 2 of filter '307'");
	}
	for (size_t i = 0; i < ARRAY_LEN(too_much); i++) {
		(void)snprintf(text, sizeof(text), "307,%s", too_much[i]);
		refuse(text, "does not fit");
	}
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		(void)snprintf(text, sizeof(text), "307,%s", none[i]);
		refuse(text, "parameter 1");
	}
	refuse("307,1.5", "write 1.5f or 1.5d");
	refuse("307,1e5", "write 1e5f or 1e5d");
	refuse("307,99999999999999999999999999999999999999999999999999999999999999999999d",
	       "exceeds 63");
}

static void chains(void **state NZ_UNUSED)
{
	expect("307,9|4,32,32", "307,9|4,32,32");
	expect(" 307 , 9 |\t4 ,32, 32 ", "307,9|4,32,32");
	expect("Deflate,5", "1,5");
	expect("zlib", "1");
	expect("SHUFFLE|zstd,-5", "2|32015,4294967291");
	expect("bz2,9|Fletcher32", "307,9|3");
	expect("gzip,3|lzma", "gzip,3|lzma");
	expect("65535", "65535");
	expect("SZ3,1|zfp,4", "32024,1|32013,4"); /* registered, available or not */
	/* named again: the first place, the last parameters */
	expect("1,2|307,3|1,4", "1,4|307,3");
	expect("deflate,2|bzip2|zlib", "1|307");
}

/* What a file stores of szip is shown as it was given: H5Pset_szip adds bits for the type. */
static void szip_as_given(void **state NZ_UNUSED)
{
	const uint32_t stored[] = {141, 32, 32, 800}, given[] = {32, 16};
	const struct codec_spec specs[] = {
		{.h5_id = CODEC_SZIP, .n_params = 4, .params = stored, .name = ""},
		{.h5_id = CODEC_SZIP, .n_params = 2, .params = given, .name = ""},
		{.h5_id = 0, .name = "zfpy"}};
	const struct codec_chain chain = {.n = 3, .specs = specs};

	expect_text(&chain, "4,4,32|4,32,16|zfpy");
}

static void bad_chains(void **state NZ_UNUSED)
{
	char text[4096] = "307";

	refuse("", "needs an id or a name");
	refuse("307,9|", "needs an id or a name");
	refuse("|307", "needs an id or a name");
	refuse("307||1", "needs an id or a name");
	refuse("nosuch,5", "unknown filter 'nosuch'");
	refuse("zst", "unknown filter 'zst'");
	refuse("0,5", "not a filter id");
	refuse("65536", "not a filter id");
	refuse("-1", "not a filter id");
	refuse("307u", "not a filter id");
	refuse("1.,5", "not a filter id");
	refuse("307a,5", "not a filter id");
	refuse("1 2", "not a filter id");
	for (int i = 0; i < 32; i++)
		strncat(text, ",1", sizeof(text) - strlen(text) - 1);
	expect(text, text);
	strncat(text, ",1", sizeof(text) - strlen(text) - 1);
	refuse(text, "more than 32 parameters");
	text[0] = '\0';
	for (int i = 0; i < 33; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
			       i ? "|" : "", 100 + i);
	refuse(text, "more than 32 filters given");
}

/* rules_of - parse the strings in turn. */
static struct codec_rules rules_of(const char *const *texts, size_t n)
{
	struct codec_rules r = {0};
	struct err e = ERR_INIT;

	for (size_t i = 0; i < n; i++)
		if (codec_rule_add(&arena, texts[i], &r, &e))
			fail_msg("'%s': %s", texts[i], e.msg);
	assert_int_equal(r.n, n);
	return r;
}

/* expect_rule - which chain a variable gets: NULL no rule, "" none. */
static void expect_rule(const struct codec_rules *r, const char *path, const char *text)
{
	const struct codec_rule *rule = codec_rules_for(r, path);

	if (!text) {
		assert_null(rule);
		return;
	}
	assert_non_null(rule);
	assert_int_equal(rule->none, !*text);
	expect_text(&rule->chain, text);
}

static void rules(void **state NZ_UNUSED)
{
	static const char *const texts[] = {"*,zstd,5", "v1&/g/v2,shuffle|deflate,4",
					    "v3,none",  "v3x,1,1",
					    "v3x,1,2",  "a\\,b\\&c,307"};
	struct codec_rules r = rules_of(texts, ARRAY_LEN(texts)), none = {0};

	expect_rule(&r, "/other", "32015,5");
	expect_rule(&r, "/g/v1", "32015,5");
	expect_rule(&r, "/v1", "2|1,4");
	expect_rule(&r, "/g/v2", "2|1,4");
	expect_rule(&r, "/v2", "32015,5");
	expect_rule(&r, "/v3", "");
	expect_rule(&r, "/v3x", "1,2");
	expect_rule(&r, "/a,b&c", "307");
	expect_rule(&none, "/v", NULL);
}

static void rules_for_all(void **state NZ_UNUSED)
{
	static const char *const texts[] = {"v,deflate,1", "zstd"};
	static const char *const off[] = {"shuffle|deflate,5", "NONE", " t*, bzip2 "};
	struct codec_rules r = rules_of(texts, ARRAY_LEN(texts));

	expect_rule(&r, "/v", "1,1");
	expect_rule(&r, "/w", "32015");
	r = rules_of(off, 1);
	expect_rule(&r, "/v", "2|1,5");
	r = rules_of(off, 2);
	expect_rule(&r, "/v", "");
	r = rules_of(off, 3);
	expect_rule(&r, "/v", "");
	expect_rule(&r, "/temp", "307");
	expect_rule(&r, "/g/temp", "");
}

static void bad_rules(void **state NZ_UNUSED)
{
	static const char *const bad[] = {"",         "*,",     "v&,1",     "v1&&v2,1", ",1",
					  "v,nosuch", "nosuch", "*,zstd,x", "v1,none,5"};
	struct codec_rules r = {0};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = (struct err)ERR_INIT;
		if (codec_rule_add(&arena, bad[i], &r, &e) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
		assert_true(e.msg[0]);
		assert_int_equal(r.n, 0);
	}
}

static const uint64_t chunk[] = {10, 20};
static const struct codec_array floats = {
	.class = CODEC_FLOAT, .elem_size = 4, .rank = 2, .chunk = chunk};

static void expect_prepared(const char *text, const char *stored)
{
	struct codec_chain c;
	struct err e = ERR_INIT;

	assert_int_equal(codec_spec_parse(&arena, text, strlen(text), &c, &e), 0);
	assert_int_equal(codec_chain_for(&arena, CODEC_FORMAT_HDF5, &c, &c, &e), 0);
	if (codec_chain_prepare(&arena, &c, &floats, &c, &e))
		fail_msg("'%s': %s", text, e.msg);
	expect_text(&c, stored);
}

static void prepared(void **state NZ_UNUSED)
{
	/* nccopy 4.9.0 writes these orders and parameters */
	expect_prepared("deflate,5|shuffle|fletcher32", "3|2,4|1,5");
	expect_prepared("fletcher32|deflate,5|shuffle", "3|2,4|1,5");
	expect_prepared("bzip2,9|shuffle", "2,4|307,9");
	expect_prepared("bzip2,9|fletcher32|deflate,1", "3|307,9|1,1");
	expect_prepared("2,99", "2,4");
	expect_prepared("blosc,0,0,0,0,9,2,5", "32001,2,2,4,800,9,2,5");
	expect_prepared("32001,1,1,1,1", "32001,2,2,4,800");
	expect_prepared("32001,0,0,0,0,7", "32001,2,2,4,800,7");
	/* left out */
	expect_prepared("deflate", "1,4");
	expect_prepared("gzip", "1,4");
	expect_prepared("zstd", "32015,3");
	expect_prepared("bzip2", "307,9");
	expect_prepared("blosc", "32001,2,2,4,800,5,1,1");
	expect_prepared("lz4", "32004");
	expect_prepared("lz4,8", "32004");
	expect_prepared("32004,4096", "32004,4096");
	expect_prepared("zstd,-5", "32015,4294967291");
}

static void not_prepared(void **state NZ_UNUSED)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
		{"deflate,10", -EINVAL},
		{"deflate,1,2", -EINVAL},
		{"zstd,99", -EINVAL},
		{"bzip2,0", -EINVAL},
		{"blosc,0,0,0,0,10", -EINVAL},
		{"blosc,0,0,0,0,5,3", -EINVAL},
		{"blosc,0,0,0,0,5,1,6", -EINVAL},
		{"32004,4294967295", -EINVAL},
		{"40000,1", -EOPNOTSUPP},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct codec_chain c;
		struct err e = ERR_INIT;
		const char *t = rows[i].text;

		assert_int_equal(codec_spec_parse(&arena, t, strlen(t), &c, &e), 0);
		assert_int_equal(codec_chain_prepare(&arena, &c, &floats, &c, &e), rows[i].rc);
		assert_true(e.msg[0]);
	}
}

static void framings(void **state NZ_UNUSED)
{
	struct codec_chain c;
	struct err e = ERR_INIT;

	assert_int_equal(codec_spec_parse(&arena, "shuffle|32004,9", 15, &c, &e), 0);
	assert_int_equal(codec_chain_for(&arena, CODEC_FORMAT_ZARR, &c, &c, &e), 0);
	expect_text(&c, "2|lz4");
	assert_int_equal(codec_chain_for(&arena, CODEC_FORMAT_HDF5, &c, &c, &e), 0);
	expect_text(&c, "2|32004");
	assert_int_equal(codec_spec_parse(&arena, "gzip,3", 6, &c, &e), 0);
	assert_int_equal(codec_chain_for(&arena, CODEC_FORMAT_ZARR, &c, &c, &e), 0);
	expect_text(&c, "gzip,3");
	assert_int_equal(codec_chain_for(&arena, CODEC_FORMAT_HDF5, &c, &c, &e), 0);
	expect_text(&c, "1,3");
}

/* If memory is short, every failure is reported. */
static void short_of_memory(void **state NZ_UNUSED)
{
	static const char text[] = "v,deflate,5|307,9";

	for (size_t max = 0; max < 400; max += 16) {
		struct codec_rules r = {0};
		struct arena small;
		int rc;

		arena_init(&small, max);
		rc = codec_rule_add(&small, text, &r, NULL);
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(r.n, rc == 0);
		arena_release(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(constants, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_constants, setup, teardown),
		cmocka_unit_test_setup_teardown(chains, setup, teardown),
		cmocka_unit_test(szip_as_given),
		cmocka_unit_test_setup_teardown(bad_chains, setup, teardown),
		cmocka_unit_test_setup_teardown(rules, setup, teardown),
		cmocka_unit_test_setup_teardown(rules_for_all, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(prepared, setup, teardown),
		cmocka_unit_test_setup_teardown(not_prepared, setup, teardown),
		cmocka_unit_test_setup_teardown(framings, setup, teardown),
		cmocka_unit_test_setup_teardown(short_of_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
