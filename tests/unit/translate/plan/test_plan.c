/* SPDX-License-Identifier: BSD-3-Clause */
/* test_plan.c - the chains that pass, those that are decoded, and the reasons. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "codecs/plugin/plugin.h"
#include "translate/plan/plan.h"

#include <cmocka.h>

static const uint32_t eight = 8, four = 4;

#define D                                                                                      \
	{                                                                                      \
		CODEC_DEFLATE, 1, &four, "deflate"                                             \
	}
#define S8                                                                                     \
	{                                                                                      \
		CODEC_SHUFFLE, 1, &eight, "shuffle"                                            \
	}
#define S4                                                                                     \
	{                                                                                      \
		CODEC_SHUFFLE, 1, &four, "shuffle"                                             \
	}
#define F                                                                                      \
	{                                                                                      \
		CODEC_FLETCHER32, 0, NULL, "fletcher32"                                        \
	}
#define Z                                                                                      \
	{                                                                                      \
		40000, 0, NULL, "unheard"                                                      \
	}
#define X                                                                                      \
	{                                                                                      \
		40000, 0, NULL,                                                                \
			"a name that is far longer than anything that fits into one reason"    \
	}

static struct ds_array array_with(const struct codec_spec *specs, uint32_t n)
{
	return (struct ds_array){.name = "v",
				 .type = {.kind = DT_FLOAT, .size = 8},
				 .access = DS_STORED,
				 .chunk_bytes = 800,
				 .n_chunks = 1,
				 .chain = {n, specs}};
}

/* make_as - the plan of an array without rules. */
static void make_as(const struct ds_array *a, enum plan_format format, enum plan_filter filter,
		    bool declared, struct plan *ret)
{
	struct ds_array own = *a;
	const struct dataset ds = {.n_arrays = 1, .arrays = &own};
	const struct plan_policy policy = {.filter = filter};
	const struct plan_ask ask = {
		.ds = &ds, .format = format, .policy = &policy, .fill_declared = declared};

	assert_int_equal(plan_make(&ask, ret, NULL), 0);
}

static void make(const struct ds_array *a, enum plan_filter filter, bool declared,
		 struct plan *ret)
{
	make_as(a, PLAN_ZARR2, filter, declared, ret);
}

static void test_chains(void **state)
{
	static const struct {
		struct codec_spec specs[4];
		uint32_t n;
		enum plan_kind kind;
		uint32_t left, trailer, bit;
		const char *reason;
	} rows[] = {
		{{D}, 0, PLAN_PASS, 0, 0, 0, "uncompressed bytes pass through"},
		{{D}, 1, PLAN_PASS, 1, 0, 0, "deflate passes through"},
		{{S8}, 1, PLAN_PASS, 1, 0, 0, "shuffle passes through"},
		{{S8, D}, 2, PLAN_PASS, 2, 0, 0, "shuffle, deflate pass through"},
		{{S8, D, F},
		 3,
		 PLAN_PASS,
		 2,
		 4,
		 4,
		 "shuffle, deflate pass through; fletcher32 is removed"},
		{{F},
		 1,
		 PLAN_PASS,
		 0,
		 4,
		 1,
		 "uncompressed bytes pass through; fletcher32 is removed"},
		{{F, S8, D},
		 3,
		 PLAN_DECODE,
		 0,
		 0,
		 0,
		 "fletcher32 comes first: standard readers cannot decode it"},
		{{S8, F, D},
		 3,
		 PLAN_DECODE,
		 0,
		 0,
		 0,
		 "fletcher32 comes before deflate: standard readers cannot decode it"},
		{{D, F, F}, 3, PLAN_DECODE, 0, 0, 0, "deflate comes before fletcher32"},
		{{D, S8}, 2, PLAN_DECODE, 0, 0, 0, "deflate comes before shuffle"},
		{{D, D}, 2, PLAN_DECODE, 0, 0, 0, "deflate comes before deflate"},
		{{S8, S8}, 2, PLAN_DECODE, 0, 0, 0, "shuffle is applied twice"},
		{{S4, D},
		 2,
		 PLAN_DECODE,
		 0,
		 0,
		 0,
		 "shuffle works on elements of 4 bytes, but the array's have 8"},
		{{Z}, 1, PLAN_DECODE, 0, 0, 0, "unheard: no Zarr codec"},
		{{S8, Z, F}, 3, PLAN_DECODE, 0, 0, 0, "unheard: no Zarr codec"},
		{{X},
		 1,
		 PLAN_DECODE,
		 0,
		 0,
		 0,
		 "a name that is far longer than anything: no Zarr codec"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ds_array a = array_with(rows[i].specs, rows[i].n);
		struct plan p;

		make(&a, PLAN_PORTABLE, i % 2 == 0, &p);
		assert_string_equal(p.reason, rows[i].reason);
		assert_int_equal(p.kind, rows[i].kind);
		assert_int_equal(p.chain.n, rows[i].left);
		assert_int_equal(p.trailer, rows[i].trailer);
		assert_int_equal(p.trailer_bit, rows[i].bit);
		assert_int_equal(p.fill_declared, i % 2 == 0);

		make(&a, PLAN_NONE, false, &p);
		assert_int_equal(p.kind, rows[i].n == 0 ? PLAN_PASS : PLAN_DECODE);
		assert_int_equal(p.chain.n, 0);
		assert_int_equal(p.trailer, 0);
		if (rows[i].n > 0)
			assert_string_equal(p.reason, "filter=none");
	}
}

static void test_access(void **state)
{
	static const struct codec_spec deflate[] = {D}, blosc2[] = {Z};
	struct ds_array a = array_with(deflate, 1);
	struct plan p;

	(void)state;
	a.access = DS_CONVERT;
	make(&a, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	assert_string_equal(p.reason, "type needs conversion");
	a.layout = DS_VIRTUAL;
	make(&a, PLAN_PORTABLE, false, &p);
	assert_string_equal(p.reason, "virtual dataset: assembled from other datasets");
	a.chain.specs = blosc2;
	make(&a, PLAN_PORTABLE, false, &p);
	assert_string_equal(p.reason, "unheard: no Zarr codec");

	a.type = (struct dtype){.kind = DT_VSTRING};
	a.access = DS_VARIABLE;
	make(&a, PLAN_NONE, true, &p);
	assert_int_equal(p.kind, PLAN_VLEN);
	assert_true(p.fill_declared);

	a.unreadable = "filter 40000 is not built in";
	make(&a, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_ERROR);
	assert_string_equal(p.reason, a.unreadable);
}

static void test_odd_sizes(void **state)
{
	static const struct codec_spec chain[] = {S8, D};
	static const struct codec_spec bare[] = {{CODEC_SHUFFLE, 0, NULL, ""}, D};
	struct ds_array a = array_with(chain, 2);
	struct plan p;

	(void)state;
	a.chunk_bytes = 801;
	make(&a, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	assert_string_equal(p.reason, "shuffle: a chunk of 801 bytes is not a multiple of 8");
	a = array_with(bare, 2);
	make(&a, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_PASS);
	a.chain.n = CODEC_CHAIN_MAX + 1;
	make(&a, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
}

/* netCDF-C takes scanlines from the array, HDF5 from the chunk. */
static void test_szip(void **state)
{
	static const uint32_t params[] = {169, 8, 64, 10}, whole[] = {169, 8, 64, 100};
	static const struct codec_spec szip[] = {{CODEC_SZIP, 4, params, "szip"}},
				       wide[] = {{CODEC_SZIP, 4, whole, "szip"}};
	static const uint64_t chunk[] = {10, 10}, shape[] = {100, 100}, slim[] = {100, 10};
	struct ds_array a = array_with(szip, 1);
	struct plan p;

	(void)state;
	a.rank = 2;
	a.chunk = chunk;
	a.uniform = true;
	a.shape = slim;
	make_as(&a, PLAN_ZARR2, PLAN_KEEP, false, &p);
	assert_string_equal(p.reason, "szip passes through");
	assert_int_equal(p.kind, PLAN_PASS);
	make_as(&a, PLAN_ZARR2, PLAN_PORTABLE, false, &p);
	assert_string_equal(p.reason, "szip: standard readers cannot decode it");
	assert_int_equal(p.kind, PLAN_DECODE);
	a.shape = shape;
	make_as(&a, PLAN_ZARR2, PLAN_KEEP, false, &p);
	assert_string_equal(p.reason, "szip: readers would assume other scanlines");
	assert_int_equal(p.kind, PLAN_DECODE);
	a.chain.specs = wide;
	make_as(&a, PLAN_ZARR2, PLAN_KEEP, false, &p);
	assert_int_equal(p.kind, PLAN_PASS);
	make_as(&a, PLAN_HDF5, PLAN_PORTABLE, false, &p);
	assert_int_equal(p.kind, PLAN_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_odd_sizes),
		cmocka_unit_test(test_szip),
	};

	codec_plugins_off(); /* zfp may be installed */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
