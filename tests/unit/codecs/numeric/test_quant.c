/* SPDX-License-Identifier: BSD-3-Clause */
/* test_quant.c - quantisation, against what netCDF-C stores; rules and the variables that
 * they are for. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "codecs/numeric/quant.h"
#include "codecs/spec/var_pattern.h"
#include "tests/unit/codecs/numeric/quant_vectors.h"

#include <cmocka.h>

#define N 4096

static void store(uint8_t *p, size_t size, bool big_endian, uint64_t v)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(v >> (8 * (big_endian ? size - 1 - i : i)));
}

static uint64_t load(const uint8_t *p, size_t size, bool big_endian)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v |= (uint64_t)p[i] << (8 * (big_endian ? size - 1 - i : i));
	return v;
}

/* one - one element, quantised as element `at` of its chunk. */
static uint64_t one(enum codec_quant_mode mode, uint32_t digits, size_t size, size_t at,
		    const uint8_t *fill, uint64_t v)
{
	const struct codec_quant q = {.mode = mode, .digits = digits};
	uint8_t data[16];

	store(data, size, false, v);
	store(data + size, size, false, v);
	codec_quantize(&q, size, false, fill, data, at + 1);
	return load(data + at * size, size, false);
}

static void test_values(void **state)
{
	uint8_t data[2 * (16 * 8 + 1)];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(stored4) + ARRAY_LEN(stored8); k++) {
		const bool doubles = k >= ARRAY_LEN(stored4);
		const size_t at = doubles ? k - ARRAY_LEN(stored4) : k, size = doubles ? 8 : 4;
		const struct codec_quant q = {
			.mode = doubles ? stored8[at].mode : stored4[at].mode,
			.digits = doubles ? stored8[at].digits : stored4[at].digits};

		for (unsigned int big = 0; big < 2; big++) {
			uint8_t *p = data + 1; /* misaligned */

			for (size_t i = 0; i < 16; i++)
				store(p + i * size, size, big,
				      doubles ? values8[i] : values4[i]);
			codec_quantize(&q, size, big, NULL, p, 16);
			for (size_t i = 0; i < 16; i++) {
				const uint64_t want =
					doubles ? stored8[at].stored[i] : stored4[at].stored[i];
				const uint64_t got = load(p + i * size, size, big);

				if (got != want)
					fail_msg("%zu bytes, %s %u, value %zu: %llx, not %llx",
						 size, codec_quant_attr(q.mode), q.digits, i,
						 (unsigned long long)got,
						 (unsigned long long)want);
			}
		}
	}
}

/* make - element i: random bits, a random significand near 1, i / 8, a power of two. */
static uint64_t make(size_t size, size_t i, uint64_t *x)
{
	const unsigned int sig = size == 4 ? 23 : 52, top = 8 * (unsigned int)size - 1;
	const uint64_t bias = size == 4 ? 127 : 1023, expo = 2 * bias + 1;
	const float eighth4 = (float)i / 8;
	const double eighth8 = (double)i / 8;
	uint64_t r, v, sign;
	uint32_t v4;

	*x = *x * 6364136223846793005u + 1442695040888963407u;
	r = *x >> (64 - 8 * size);
	sign = r >> top << top;
	switch (i % 4) {
	case 0:
		v = r;
		if ((v >> sig & expo) == 0 || (v >> sig & expo) == expo)
			v ^= (uint64_t)1 << (sig + 1);
		if ((v >> sig & expo) == expo)
			v ^= (uint64_t)1 << (sig + 2);
		return v;
	case 1:
		return sign | (bias - 20 + i * 7 % 40) << sig |
		       (r & (((uint64_t)1 << sig) - 1));
	case 2:
		memcpy(&v4, &eighth4, 4);
		memcpy(&v, &eighth8, 8);
		return size == 4 ? v4 : v;
	default:
		return sign | (bias - 60 + i % 120) << sig;
	}
}

static void fill_input(uint8_t *data, size_t size)
{
	uint64_t x = 7;

	for (size_t i = 0; i < N; i++)
		store(data + i * size, size, false, make(size, i, &x));
}

static uint64_t fnv(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

/* All digits of both types, of many elements. */
static void test_hashes(void **state)
{
	static uint8_t data[N * 8];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(hashes); k++) {
		const size_t size = hashes[k].elem_size;
		const struct codec_quant q = {.mode = hashes[k].mode,
					      .digits = hashes[k].digits};

		fill_input(data, size);
		assert_true(fnv(data, N * size) == hash_of_input[size / 8]);
		codec_quantize(&q, size, false, NULL, data, N);
		if (fnv(data, N * size) != hashes[k].hash)
			fail_msg("%zu bytes, %s %u", size, codec_quant_attr(q.mode), q.digits);
	}
}

/* What carries no information that could be rounded stays, bit for bit. */
static void test_special(void **state)
{
	static const uint64_t kept4[] = {0,          0x80000000, 0x7fc00000,
					 0x7f800001, 0xffffffff, 0x7cf00000};
	static const uint64_t kept8[] = {0,
					 0x8000000000000000,
					 0x7ff8000000000000,
					 0x7ff0000000000001,
					 0xffffffffffffffff,
					 0x479e000000000000};
	const enum codec_quant_mode all[] = {CODEC_QUANT_NONE, CODEC_QUANT_BITGROOM,
					     CODEC_QUANT_GRANULARBR, CODEC_QUANT_BITROUND};

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(all); m++)
		for (size_t at = 0; at < 2; at++)
			for (size_t i = 0; i < ARRAY_LEN(kept4); i++) {
				assert_true(one(all[m], 2, 4, at, NULL, kept4[i]) == kept4[i]);
				assert_true(one(all[m], 2, 8, at, NULL, kept8[i]) == kept8[i]);
			}

	/* infinity is one, but for BitGroom's set bits, as in netCDF-C */
	assert_true(one(CODEC_QUANT_BITROUND, 3, 4, 0, NULL, 0xff800000) == 0xff800000);
	assert_true(one(CODEC_QUANT_GRANULARBR, 3, 4, 0, NULL, 0x7f800000) == 0x7f800000);
	assert_true(one(CODEC_QUANT_GRANULARBR, 3, 8, 1, NULL, 0xfff0000000000000) ==
		    0xfff0000000000000);
	assert_true(one(CODEC_QUANT_BITGROOM, 3, 4, 0, NULL, 0x7f800000) == 0x7f800000);
	assert_true(one(CODEC_QUANT_BITGROOM, 3, 4, 1, NULL, 0x7f800000) == 0x7f800fff);
	/* other types have nothing to lose */
	assert_true(one(CODEC_QUANT_BITROUND, 1, 2, 0, NULL, 0x1234) == 0x1234);
}

static void test_fill(void **state)
{
	static const uint8_t fill4[] = {0x79, 0xe9, 0xf6, 0x42}; /* 123.456 */
	static const uint8_t fill8[] = {0x77, 0xbe, 0x9f, 0x1a, 0x2f, 0xdd, 0x5e, 0x40};
	static const uint8_t zero4[] = {0, 0, 0, 0x80}, nan4[] = {0, 0, 0xc0, 0x7f};
	const struct codec_quant q = {.mode = CODEC_QUANT_BITROUND, .digits = 1};
	uint8_t big[8] = {0x42, 0xf6, 0xe9, 0x79, 0x42, 0xf6, 0xe9, 0x78};

	(void)state;
	assert_true(one(CODEC_QUANT_BITROUND, 1, 4, 0, fill4, 0x42f6e979) == 0x42f6e979);
	assert_true(one(CODEC_QUANT_BITROUND, 1, 4, 0, NULL, 0x42f6e979) == 0x43000000);
	assert_true(one(CODEC_QUANT_BITROUND, 1, 8, 0, fill8, 0x405edd2f1a9fbe77) ==
		    0x405edd2f1a9fbe77);
	assert_true(one(CODEC_QUANT_BITROUND, 1, 8, 0, NULL, 0x405edd2f1a9fbe77) ==
		    0x4060000000000000);
	/* the default is no fill value where there is another one */
	assert_true(one(CODEC_QUANT_BITROUND, 1, 4, 0, fill4, 0x7cf00000) == 0x7d000000);
	assert_true(one(CODEC_QUANT_BITROUND, 1, 4, 0, nan4, 0x42f6e979) == 0x43000000);
	assert_true(one(CODEC_QUANT_BITROUND, 1, 4, 0, zero4, 0) == 0);
	/* in the array's byte order */
	codec_quantize(&q, 4, true, big, big + 4, 1);
	assert_memory_equal(big + 4, "\x43\0\0\0", 4);
	memcpy(big + 4, big, 4);
	codec_quantize(&q, 4, true, big, big + 4, 1);
	assert_memory_equal(big + 4, big, 4);
}

/* ---- rules ---- */

static bool match(const char *vars, const char *path)
{
	return codec_vars_match(vars, strlen(vars), path) != CODEC_VARS_NONE;
}

static void test_vars(void **state)
{
	(void)state;
	assert_int_equal(codec_vars_match("*", 1, "/g/v"), CODEC_VARS_EVERY);
	assert_int_equal(codec_vars_match("*&v", 3, "/v"), CODEC_VARS_NAMED);
	assert_int_equal(codec_vars_match("v", 1, "/v"), CODEC_VARS_NAMED);
	assert_int_equal(codec_vars_match("w", 1, "/v"), CODEC_VARS_NONE);
	assert_false(match("v", "/g/v"));
	assert_true(match("g/v", "/g/v") && match("/g/v", "/g/v"));
	assert_true(match("a&b&/g/v", "/g/v") && match("a&b&/g/v", "/b"));
	assert_true(match("t*", "/temp") && !match("t*", "/g/temp") && !match("t*", "/t/x"));
	assert_true(match("/*/t?mp", "/g/temp") && !match("/*/t?mp", "/g/h/temp"));
	assert_true(match("a\\&b", "/a&b") && !match("a\\&b", "/a") && match("\\*", "/*"));
	assert_false(match("\\*", "/x"));
	assert_false(match("", "/v") || match("&", "/v") || match("[", "/v"));
}

static void test_vars_check(void **state)
{
	char longest[CODEC_VARS_PATTERN_MAX];
	struct err e = ERR_INIT;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(codec_vars_check("a&b", 3, &e), 0);
	assert_int_equal(codec_vars_check("", 0, &e), -EINVAL);
	assert_int_equal(codec_vars_check("a&", 2, &e), -EINVAL);
	assert_int_equal(codec_vars_check("&a", 2, &e), -EINVAL);
	assert_int_equal(codec_vars_check("a&&b", 4, &e), -EINVAL);
	assert_int_equal(codec_vars_check("a\\&b\\", 5, &e), 0);
	assert_int_equal(codec_vars_check(longest, sizeof(longest) - 2, &e), 0);
	assert_int_equal(codec_vars_check(longest, sizeof(longest) - 1, &e), -EINVAL);
}

static void want(const struct codec_quant_rules *r, const char *path, size_t size,
		 enum codec_quant_mode mode, uint32_t digits)
{
	const struct codec_quant q = codec_quant_for(r, path, size);

	assert_int_equal(q.mode, mode);
	assert_int_equal(q.digits, digits);
}

static void test_rules(void **state)
{
	struct codec_quant_rules r = {.n = 0};
	struct err e = ERR_INIT;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	want(&r, "/v", 4, CODEC_QUANT_NONE, 0);
	assert_int_equal(codec_quant_rule_add(&a, "v&g/w,BitGroom,7", &r, &e), 0);
	assert_int_equal(codec_quant_rule_add(&a, "granularbr,8", &r, &e), 0);
	assert_int_equal(codec_quant_rule_add(&a, "a,b,bitround,52", &r, &e), 0);
	assert_int_equal(codec_quant_rule_add(&a, "l*,none", &r, &e), 0);
	assert_int_equal(r.n, 4);
	want(&r, "/v", 4, CODEC_QUANT_BITGROOM, 7);
	want(&r, "/g/w", 8, CODEC_QUANT_BITGROOM, 7);
	want(&r, "/x", 8, CODEC_QUANT_GRANULARBR, 8);
	want(&r, "/x", 4, CODEC_QUANT_NONE, 0); /* more digits than a float has */
	want(&r, "/v", 2, CODEC_QUANT_NONE, 0);
	want(&r, "/a,b", 8, CODEC_QUANT_BITROUND, 52);
	want(&r, "/a,b", 4, CODEC_QUANT_NONE, 0);
	want(&r, "/lat", 8, CODEC_QUANT_NONE, 0);
	assert_int_equal(codec_quant_rule_add(&a, "none", &r, &e), 0); /* the later one */
	want(&r, "/x", 8, CODEC_QUANT_NONE, 0);
	want(&r, "/v", 4, CODEC_QUANT_BITGROOM, 7);
	arena_release(&a);
}

static void test_bad_rules(void **state)
{
	static const char *const bad[] = {
		"",
		"bitgroom",
		"bitgroom,",
		"bitgroom,0",
		"bitgroom,16",
		",",
		"groom,3",
		"bitround,53",
		"bitround,-1",
		"bitround,1.5",
		"v,3",
		",,bitgroom",
		"*,nothing",
		",bitgroom,3",
		",none",
		"v&,none",
		"bitgroom,3,",
		"bitgroom,3 ",
		"v,,granularbr",
		"bitround,99999999999",
	};
	struct codec_quant_rules r = {.n = 0};
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		if (codec_quant_rule_add(&a, bad[i], &r, &e) != -EINVAL || !*e.msg)
			fail_msg("'%s' was taken", bad[i]);
	}
	assert_int_equal(r.n, 0);
	arena_release(&a);
	arena_init(&a, 0);
	assert_int_equal(codec_quant_rule_add(&a, "v,bitgroom,3", &r, NULL), -ENOMEM);
	assert_int_equal(r.n, 0);
	arena_release(&a);
}

static void test_attr(void **state)
{
	(void)state;
	assert_null(codec_quant_attr(CODEC_QUANT_NONE));
	assert_string_equal(codec_quant_attr(CODEC_QUANT_GRANULARBR),
			    "_QuantizeGranularBitRoundNumberOfSignificantDigits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_hashes),
		cmocka_unit_test(test_special), cmocka_unit_test(test_fill),
		cmocka_unit_test(test_vars),    cmocka_unit_test(test_vars_check),
		cmocka_unit_test(test_rules),   cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_attr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
