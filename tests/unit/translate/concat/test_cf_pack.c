/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cf_pack.c - packed numbers; figures are those of xarray 2023.1 with numpy 1.24.
 * test_cf.py compares many more. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/concat/cf_pack_int.h"

#include <cmocka.h>

#define I(n)                                                                                   \
	{                                                                                      \
		.kind = DT_INT, .size = (n)                                                    \
	}
#define U(n)                                                                                   \
	{                                                                                      \
		.kind = DT_UINT, .size = (n)                                                   \
	}
#define F(n)                                                                                   \
	{                                                                                      \
		.kind = DT_FLOAT, .size = (n)                                                  \
	}
#define NUM(name_, type_, ...)                                                                 \
	{                                                                                      \
		.name = (name_), .type = type_, .n = 1,                                        \
		.data = (const uint8_t *)&(__VA_ARGS__)                                        \
	}
#define TEXT(name_, s_)                                                                        \
	{                                                                                      \
		.name = (name_), .type = {.kind = DT_VSTRING}, .n = 1,                         \
		.strings = &(const struct ds_text)                                             \
		{                                                                              \
			(s_), sizeof(s_) - 1                                                   \
		}                                                                              \
	}

#define SCALE8 NUM("scale_factor", F(8), (const double){0.01})
#define ADD8 NUM("add_offset", F(8), (const double){273.15})
#define FILL2 NUM("_FillValue", I(2), (const int16_t){-32768})

struct row {
	struct dtype type;
	const char *raw; /* three elements */
	struct ds_attr attrs[4];
	struct dtype to;
	uint64_t want[3]; /* bits */
};

static const struct row rows[] = {
	{I(2),
	 "\x00\x80\xff\x7f\xd2\x04",
	 {SCALE8},
	 F(4),
	 {0xc3a3d70a, 0x43a3d5c2, 0x414570a4}},
	{I(2),
	 "\x00\x80\xff\x7f\xd2\x04",
	 {SCALE8, ADD8},
	 F(8),
	 {0xc04b43d70a3d70a8, 0x4082c68f5c28f5c2, 0x4071d7d70a3d70a3}},
	{I(2),
	 "\x00\x80\xff\x7f\xd2\x04",
	 {SCALE8, ADD8, FILL2},
	 F(4),
	 {0x7fc00000, 0x4416347a, 0x438ebeb8}},
	{I(2),
	 "\x00\x80\xff\x7f\xd2\x04",
	 {FILL2, NUM("add_offset", I(4), (const int32_t){100000})},
	 F(4),
	 {0x7fc00000, 0x4801a7c0, 0x47c5b900}},
	{I(1),
	 "\xff\xfe\x7f",
	 {TEXT("_Unsigned", "true"), NUM("_FillValue", I(1), (const int8_t){-1})},
	 F(4),
	 {0x7fc00000, 0x437e0000, 0x42fe0000}},
	{I(1), "\xff\xfe\x7f", {TEXT("_Unsigned", "true")}, U(1), {255, 254, 127}},
	{I(1), "\xff\xfe\x7f", {TEXT("_Unsigned", "yes")}, I(1), {0xff, 0xfe, 0x7f}},
	{U(1),
	 "\xff\xfe\x7f",
	 {TEXT("_Unsigned", "false"), NUM("scale_factor", F(4), (const float){0.5f})},
	 F(4),
	 {0xbf000000, 0xbf800000, 0x427e0000}},
	{I(8),
	 "\1\0\0\0\0\0\0\x40\xfb\xff\xff\xff\xff\xff\xff\xff\7\0\0\0\0\0\0\0",
	 {NUM("_FillValue", I(8), (const int64_t){-5})},
	 F(8),
	 {0x43d0000000000000, 0x7ff8000000000000, 0x401c000000000000}},
	{F(4),
	 "\xec\x78\xad\x60\0\0\0\x40\0\0\xc0\x7f",
	 {NUM("missing_value", F(8), (const double){1e20})},
	 F(4),
	 {0x7fc00000, 0x40000000, 0x7fc00000}},
	{F(2),
	 "\x00\x3e\xff\x7b\xe2\xf0",
	 {NUM("missing_value", F(8), (const double){-9999})},
	 F(2),
	 {0x3e00, 0x7bff, 0x7e00}},
	{F(2),
	 "\x00\x3e\xff\x7b\xe2\xf0",
	 {NUM("scale_factor", F(8), (const double){0.1})},
	 F(4),
	 {0x3e19999a, 0x45ccb333, 0xc47a0000}},
	{F(8),
	 "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\x08\x40",
	 {NUM("add_offset", F(8), (const double){0.1}),
	  {.name = "missing_value",
	   .type = F(8),
	   .n = 2,
	   .data = (const uint8_t *)(const double[]){2, 3}}},
	 F(8),
	 {0x3ff199999999999a, 0x7ff8000000000000, 0x7ff8000000000000}},
	{I(2),
	 "\x01\x00\xff\xff\xd2\x04",
	 {TEXT("missing_value", "none")},
	 F(4),
	 {0x3f800000, 0xbf800000, 0x449a4000}},
	{F(4),
	 "\0\0\0\x40\0\0\xc0\x7f\1\0\xa0\x7f",
	 {NUM("_FillValue", F(4), (const float){NAN})},
	 F(4),
	 {0x40000000, 0x7fc00000, 0x7fa00001}},
};

static uint64_t bits_at(const uint8_t *p, uint32_t size)
{
	uint64_t v = 0;

	for (uint32_t k = 0; k < size; k++)
		v |= (uint64_t)p[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? size - 1 - k : k]
		     << 8 * k;
	return v;
}

static uint32_t count(const struct ds_attr *attrs)
{
	uint32_t n = 0;

	while (n < 4 && attrs[n].name)
		n++;
	return n;
}

/* check - one row, as it is or with its elements turned around. */
static void check(const struct row *r, bool big)
{
	struct dtype t = r->type;
	struct cf_pack p;
	uint8_t raw[24], out[24];

	t.big_endian = big;
	for (uint32_t i = 0; i < 3 * t.size; i++)
		raw[i] = (uint8_t)r->raw[big ? i - i % t.size + t.size - 1 - i % t.size : i];
	assert_int_equal(cf_pack_of(r->attrs, count(r->attrs), &t, &p, NULL), 0);
	assert_int_equal(p.to.kind, r->to.kind);
	assert_int_equal(p.to.size, r->to.size);
	cf_unpack(&p, raw, out, 3);
	for (size_t i = 0; i < 3; i++) {
		if (bits_at(out + i * p.to.size, p.to.size) != r->want[i])
			fail_msg("row %zu, element %zu: %llx", (size_t)(r - rows), i,
				 (unsigned long long)bits_at(out + i * p.to.size, p.to.size));
	}
}

static void test_figures(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		check(&rows[i], false);
		check(&rows[i], true);
	}
}

/* test_many - more elements than are unpacked at a time, and none. */
static void test_many(void **state)
{
	static int16_t in[5000];
	static float out[5000];
	const struct dtype t = {.kind = DT_INT,
				.size = 2,
				.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
	struct cf_pack p;

	(void)state;
	for (int i = 0; i < 5000; i++)
		in[i] = (int16_t)i;
	assert_int_equal(cf_pack_of(rows[0].attrs, 1, &t, &p, NULL), 0);
	cf_unpack(&p, (const uint8_t *)in, (uint8_t *)out, 0);
	assert_true(out[0] == 0);
	cf_unpack(&p, (const uint8_t *)in, (uint8_t *)out, 5000);
	for (int i = 0; i < 5000; i++)
		assert_true(out[i] == (float)i * 0.01f);
}

static void test_refused(void **state)
{
	static const double many[CF_FILLS_MAX + 1] = {0};
	static double differing[CF_FILLS_MAX + 1];
	const struct {
		struct dtype type;
		struct ds_attr attrs[2];
		int code;
		const char *said;
	} bad[] = {
		{I(2), {TEXT("scale_factor", "0.1")}, -EINVAL, "'scale_factor'"},
		{I(2),
		 {{.name = "add_offset", .type = F(8), .n = 2, .data = (const uint8_t *)many}},
		 -EINVAL,
		 "'add_offset' is not a single number"},
		{I(2), {{.name = "add_offset", .type = F(8)}}, -EINVAL, "'add_offset'"},
		{I(1),
		 {TEXT("_Unsigned", "true"), NUM("_FillValue", F(8), (const double){0.5})},
		 -EINVAL,
		 "_Unsigned"},
		{I(1),
		 {TEXT("_Unsigned", "true"), NUM("_FillValue", F(8), (const double){NAN})},
		 -EINVAL,
		 "_Unsigned"},
		{I(2),
		 {{.name = "missing_value",
		   .type = F(8),
		   .n = CF_FILLS_MAX + 1,
		   .data = (const uint8_t *)differing}},
		 -ERANGE,
		 "missing_value"},
		{I(2),
		 {{.name = "missing_value",
		   .type = F(8),
		   .n = CF_FILLS_MAX + 1,
		   .data = (const uint8_t *)many}},
		 0,
		 NULL},
	};

	(void)state;
	for (int i = 0; i <= CF_FILLS_MAX; i++)
		differing[i] = -i;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;
		struct cf_pack p;
		uint32_t n = bad[i].attrs[1].name ? 2 : 1;

		assert_int_equal(cf_pack_of(bad[i].attrs, n, &bad[i].type, &p, &e),
				 bad[i].code);
		if (bad[i].said)
			assert_non_null(strstr(e.msg, bad[i].said));
	}
}

/* test_not_packed - what has no such attributes, or is no number, stays what it is. */
static void test_not_packed(void **state)
{
	const struct ds_attr attrs[] = {SCALE8, FILL2};
	const struct ds_attr other[] = {TEXT("units", "m")};
	const struct dtype text = {.kind = DT_STRING, .size = 3};
	const struct dtype big = {.kind = DT_INT, .size = 2, .big_endian = true};
	struct cf_pack p;
	uint8_t out[6];
	int16_t v;

	(void)state;
	assert_int_equal(cf_pack_of(attrs, 2, &text, &p, NULL), 0);
	assert_false(p.packed);
	cf_unpack(&p, (const uint8_t *)"abcdef", out, 2);
	assert_memory_equal(out, "abcdef", 6);
	assert_int_equal(cf_pack_of(other, 1, &big, &p, NULL), 0);
	assert_false(p.packed);
	cf_unpack(&p, (const uint8_t *)"\1\2", out, 1);
	memcpy(&v, out, 2);
	assert_int_equal(v, 0x102);
}

static void test_same(void **state)
{
	const struct ds_attr one[] = {SCALE8, FILL2};
	const struct ds_attr rounded[] = {NUM("scale_factor", F(4), (const float){0.01f}),
					  NUM("missing_value", I(2), (const int16_t){-32768})};
	const struct ds_attr more[] = {SCALE8, FILL2,
				       NUM("missing_value", I(2), (const int16_t){-1})};
	const struct ds_attr other[] = {NUM("scale_factor", F(4), (const float){0.02f}), FILL2};
	const struct dtype t = I(2), wide = I(4),
			   big = {.kind = DT_INT, .size = 2, .big_endian = true};
	struct cf_pack a, b;

	(void)state;
	assert_int_equal(cf_pack_of(one, 2, &t, &a, NULL), 0);
	assert_int_equal(cf_pack_of(one, 2, &big, &b, NULL), 0);
	assert_true(cf_pack_same(&a, &b));
	assert_int_equal(cf_pack_of(rounded, 2, &t, &b, NULL), 0);
	assert_true(cf_pack_same(&a, &b)); /* masked: in float, where both factors are one */
	assert_int_equal(cf_pack_of(more, 3, &t, &b, NULL), 0);
	assert_false(cf_pack_same(&a, &b));
	assert_int_equal(cf_pack_of(other, 2, &t, &b, NULL), 0);
	assert_false(cf_pack_same(&a, &b));
	assert_int_equal(cf_pack_of(one, 1, &t, &b, NULL), 0);
	assert_false(cf_pack_same(&a, &b));
	assert_int_equal(cf_pack_of(one, 2, &wide, &b, NULL), 0);
	assert_false(cf_pack_same(&a, &b));
	assert_int_equal(cf_pack_of(one, 0, &t, &b, NULL), 0);
	assert_false(cf_pack_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures), cmocka_unit_test(test_many),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_not_packed),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
