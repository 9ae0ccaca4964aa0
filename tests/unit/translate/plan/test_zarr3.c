/* SPDX-License-Identifier: BSD-3-Clause */
/* test_zarr3.c - which chains pass in a Zarr v3 view, under which names, and what
 * rules make there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codecs/plugin/plugin.h"
#include "translate/plan/plan.h"

#include <cmocka.h>

static const uint32_t one = 1, four = 4, seven = 7, eight = 8, huge = 512, delta8[] = {0, 0};
static const uint32_t lz4_shuffled[] = {2, 2, 8, 800, 5, 1, 1};
static const uint32_t snappy[] = {2, 2, 8, 800, 5, 1, 3};

static const struct codec_spec shuffle = {CODEC_SHUFFLE, 1, &eight, "shuffle"},
			       seventh = {CODEC_SHUFFLE, 1, &seven, "shuffle"},
			       wide = {CODEC_SHUFFLE, 1, &huge, "shuffle"},
			       deflate = {CODEC_DEFLATE, 1, &seven, "deflate"},
			       zstd = {CODEC_ZSTD, 1, &four, "zstd"},
			       fletcher = {CODEC_FLETCHER32, 0, NULL, "fletcher32"},
			       gzip = {CODEC_GZIP, 1, &four, ""},
			       crc32c = {CODEC_CRC32C, 0, NULL, ""},
			       crc32 = {CODEC_CRC32, 1, &one, ""},
			       blosc = {CODEC_BLOSC, 7, lz4_shuffled, ""},
			       blosc_snappy = {CODEC_BLOSC, 7, snappy, ""},
			       lz4 = {CODEC_LZ4, 1, &one, ""},
			       bzip2 = {CODEC_BZIP2, 1, &one, ""},
			       lzf = {CODEC_LZF, 0, NULL, "lzf"},
			       szip = {CODEC_SZIP, 0, NULL, ""},
			       bits3 = {CODEC_PACKBITS_ZARR3, 0, NULL, ""},
			       delta = {CODEC_DELTA, 2, delta8, ""};

/* world - an array of 1000 elements in chunks of 100, and rules for it. */
struct world {
	struct arena arena;
	struct ds_group root;
	struct ds_array a;
	struct dataset ds;
	uint64_t shape, chunk;
	struct codec_spec specs[4];
	struct codec_rules rules;
	struct plan_policy policy;
	struct plan_ask ask;
	struct plan p;
};

static int setup(void **state)
{
	struct world *w = alloc_array(1, sizeof(*w));

	assert_non_null(w);
	arena_init(&w->arena, 1 << 20);
	w->root = (struct ds_group){.name = "", .parent = DS_NONE};
	w->shape = 1000;
	w->chunk = 100;
	w->a = (struct ds_array){.name = "v",
				 .type = {.kind = DT_FLOAT, .size = 8},
				 .rank = 1,
				 .shape = &w->shape,
				 .chunk = &w->chunk,
				 .n_chunks = 10,
				 .chunk_bytes = 800,
				 .chain = {.specs = w->specs},
				 .access = DS_STORED};
	w->ds = (struct dataset){
		.n_arrays = 1, .arrays = &w->a, .n_groups = 1, .groups = &w->root};
	w->policy = (struct plan_policy){.rules = &w->rules};
	w->ask = (struct plan_ask){.ds = &w->ds,
				   .format = PLAN_ZARR3,
				   .policy = &w->policy,
				   .fill_declared = true,
				   .arena = &w->arena};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	arena_release(&w->arena);
	free(w);
	return 0;
}

static void stored(struct world *w, const struct codec_spec *a, const struct codec_spec *b,
		   const struct codec_spec *c)
{
	const struct codec_spec *all[] = {a, b, c};

	w->a.chain.n = 0;
	for (size_t i = 0; i < 3 && all[i]; i++)
		w->specs[w->a.chain.n++] = *all[i];
}

static void rule(struct world *w, const char *text)
{
	struct err e = ERR_INIT;

	w->rules.n = 0;
	if (text && codec_rule_add(&w->arena, text, &w->rules, &e) < 0)
		fail_msg("%s", e.msg);
}

/* is - kind, reason and chain ("blosc+crc32c") of a plan. */
static void is(struct world *w, enum plan_filter filter, enum plan_kind kind,
	       const char *reason, const char *chain)
{
	char tmp[32], names[200] = "";
	struct err e = ERR_INIT;

	w->policy.filter = filter;
	if (plan_make(&w->ask, &w->p, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(w->p.reason, reason);
	assert_int_equal(w->p.kind, kind);
	for (uint32_t i = 0; i < w->p.chain.n; i++)
		(void)snprintf(names + strlen(names), 60, "%s%s", i ? "+" : "",
			       codec_name(&w->p.chain.specs[i], tmp, sizeof(tmp)));
	assert_string_equal(names, chain);
	assert_true(w->p.fill_declared);
	if (kind != PLAN_PASS) {
		assert_false(w->p.wrap);
		assert_int_equal(w->p.trailer, 0);
	}
}

/* both - alike for portable and keep. */
static void both(struct world *w, enum plan_kind kind, const char *reason, const char *chain)
{
	is(w, PLAN_PORTABLE, kind, reason, chain);
	is(w, PLAN_KEEP, kind, reason, chain);
}

static void test_stock(void **state)
{
	struct world *w = *state;

	both(w, PLAN_PASS, "uncompressed bytes pass through", "");
	stored(w, &zstd, NULL, NULL);
	both(w, PLAN_PASS, "zstd passes through", "zstd");
	assert_false(w->p.wrap);
	is(w, PLAN_NONE, PLAN_DECODE, "filter=none", "");
	stored(w, &gzip, NULL, NULL);
	both(w, PLAN_PASS, "gzip passes through", "gzip");
	stored(w, &blosc, NULL, NULL);
	both(w, PLAN_PASS, "blosc passes through", "blosc");
	stored(w, &zstd, &crc32c, NULL); /* a checksum that all readers check stays */
	both(w, PLAN_PASS, "zstd, crc32c pass through", "zstd+crc32c");
	assert_int_equal(w->p.trailer, 0);
	stored(w, &crc32c, &gzip, NULL); /* and anywhere */
	both(w, PLAN_PASS, "crc32c, gzip pass through", "crc32c+gzip");
	stored(w, &zstd, &fletcher, NULL);
	both(w, PLAN_PASS, "zstd passes through; fletcher32 is removed", "zstd");
	assert_int_equal(w->p.trailer, 4);
	assert_int_equal(w->p.trailer_bit, 2);
	stored(w, &fletcher, NULL, NULL);
	both(w, PLAN_PASS, "uncompressed bytes pass through; fletcher32 is removed", "");
	stored(w, &blosc_snappy, NULL, NULL);
	is(w, PLAN_PORTABLE, PLAN_DECODE, "blosc: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "blosc passes through", "blosc");
}

static void test_wrapped(void **state)
{
	struct world *w = *state;
	const uint32_t *p;

	stored(w, &shuffle, &deflate, NULL);
	both(w, PLAN_PASS, "shuffle, deflate pass through as blosc", "blosc");
	assert_true(w->p.wrap);
	p = w->p.chain.specs[0].params;
	assert_int_equal(w->p.chain.specs[0].n_params, 7);
	assert_int_equal(p[2], 8);
	assert_int_equal(p[3], 800);
	assert_int_equal(p[4], 7);
	assert_int_equal(p[5], 1);
	assert_int_equal(p[6], 4);
	is(w, PLAN_NONE, PLAN_DECODE, "filter=none", "");
	stored(w, &deflate, NULL, NULL);
	both(w, PLAN_PASS, "deflate passes through as blosc", "blosc");
	stored(w, &shuffle, &zstd, NULL);
	both(w, PLAN_PASS, "shuffle, zstd pass through as blosc", "blosc");
	stored(w, &seventh, &zstd, NULL); /* of other sizes, to the last byte */
	both(w, PLAN_PASS, "shuffle, zstd pass through as blosc", "blosc");
	stored(w, &shuffle, &deflate, &fletcher);
	both(w, PLAN_PASS, "shuffle, deflate pass through as blosc; fletcher32 is removed",
	     "blosc");
	assert_int_equal(w->p.trailer, 4);
	assert_int_equal(w->p.trailer_bit, 4);
	stored(w, &shuffle, &deflate, &crc32c);
	both(w, PLAN_PASS, "shuffle, deflate pass through as blosc; crc32c is removed",
	     "blosc");

	/* chunks of other sizes than the view's are no chunks of it */
	stored(w, &shuffle, &deflate, NULL);
	w->ask.as = &(struct codec_array){.elem_size = 8, .rank = 1, .chunk = &(uint64_t){50}};
	both(w, PLAN_DECODE, "chunks are cut: they are longer than the array", "");
	assert_false(w->p.wrap);
}

static void test_kept(void **state)
{
	struct world *w = *state;

	stored(w, &shuffle, NULL, NULL);
	is(w, PLAN_PORTABLE, PLAN_DECODE, "shuffle: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "shuffle passes through", "shuffle");
	stored(w, &seventh, &lz4, NULL);
	is(w, PLAN_KEEP, PLAN_DECODE, "shuffle: Zarr readers require whole elements", "");
	stored(w, &wide, &deflate, NULL); /* Blosc has no such elements, but for one of them */
	is(w, PLAN_KEEP, PLAN_PASS, "shuffle, deflate pass through as blosc", "blosc");
	w->a.chunk_bytes = 1024;
	w->chunk = 128;
	is(w, PLAN_PORTABLE, PLAN_DECODE, "shuffle: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "shuffle, deflate pass through", "shuffle+deflate");
	w->a.chunk_bytes = 800;
	w->chunk = 100;
	w->a.uniform = true;
	stored(w, &shuffle, &lz4, NULL);
	is(w, PLAN_PORTABLE, PLAN_DECODE, "shuffle: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "shuffle, lz4 pass through", "shuffle+lz4");
	stored(w, &bzip2, &crc32, NULL);
	is(w, PLAN_PORTABLE, PLAN_DECODE, "bzip2: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "bzip2, crc32 pass through", "bzip2+crc32");
	stored(w, &fletcher, &shuffle, &deflate); /* 804 bytes */
	is(w, PLAN_PORTABLE, PLAN_DECODE, "fletcher32: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_DECODE, "shuffle: Zarr readers require whole elements", "");
	stored(w, &fletcher, &deflate, NULL);
	is(w, PLAN_KEEP, PLAN_PASS, "fletcher32, deflate pass through", "fletcher32+deflate");
	stored(w, &lzf, NULL, NULL);
	is(w, PLAN_KEEP, PLAN_DECODE, "lzf: no Zarr v3 codec", "");
	stored(w, &szip, NULL, NULL);
	is(w, PLAN_KEEP, PLAN_DECODE, "szip: no Zarr v3 codec", "");
	stored(w, &bits3, NULL, NULL);
	is(w, PLAN_KEEP, PLAN_DECODE, "packbits-v3: no Zarr v3 codec", "");
}

/* Codecs of elements come first, and big-endian ones nowhere. */
static void test_elements(void **state)
{
	struct world *w = *state;

	w->a.uniform = true;
	stored(w, &delta, &zstd, NULL);
	is(w, PLAN_PORTABLE, PLAN_DECODE, "delta: standard readers cannot decode it", "");
	is(w, PLAN_KEEP, PLAN_PASS, "delta, zstd pass through", "delta+zstd");
	stored(w, &zstd, &delta, NULL);
	is(w, PLAN_KEEP, PLAN_DECODE, "delta: Zarr v3 requires it before all other codecs", "");
	stored(w, &delta, &zstd, NULL);
	w->a.type.big_endian = true;
	is(w, PLAN_KEEP, PLAN_DECODE,
	   "delta: Zarr v3 readers disagree about big-endian elements", "");
	stored(w, &shuffle, &zstd, NULL);
	is(w, PLAN_KEEP, PLAN_PASS, "shuffle, zstd pass through as blosc", "blosc");
}

static void test_rules(void **state)
{
	struct world *w = *state;

	stored(w, &shuffle, &deflate, &fletcher);
	rule(w, "shuffle|deflate,2"); /* levels are no difference, a checksum is removed */
	both(w, PLAN_PASS, "shuffle, deflate pass through as blosc; fletcher32 is removed",
	     "blosc");
	assert_true(w->p.wrap);
	rule(w, "blosc,0,0,0,0,9,1,4"); /* the same to a reader of Blosc */
	both(w, PLAN_PASS, "shuffle, deflate pass through as blosc; fletcher32 is removed",
	     "blosc");
	rule(w, "blosc,0,0,0,0,9,1,5");
	both(w, PLAN_ENCODE, "encoded with blosc", "blosc");
	assert_int_equal(w->p.chain.specs[0].params[6], 5);
	rule(w, "shuffle|deflate|fletcher32"); /* a rule with the checksum keeps it */
	is(w, PLAN_PORTABLE, PLAN_PASS, "shuffle, deflate, fletcher32 pass through",
	   "shuffle+deflate+fletcher32");
	assert_false(w->p.wrap);
	rule(w, "shuffle|zstd,7"); /* more readers know it as Blosc */
	both(w, PLAN_ENCODE, "encoded with blosc", "blosc");
	assert_int_equal(w->p.chain.specs[0].params[2], 8);
	assert_int_equal(w->p.chain.specs[0].params[4], 4);
	assert_int_equal(w->p.chain.specs[0].params[6], 5);
	assert_int_equal(w->p.bytes, 800);
	rule(w, "zstd,7");
	both(w, PLAN_ENCODE, "encoded with zstd", "zstd");
	rule(w, "gzip|crc32c");
	both(w, PLAN_ENCODE, "encoded with gzip, crc32c", "gzip+crc32c");
	rule(w, "shuffle|lzma");
	both(w, PLAN_ENCODE, "encoded with shuffle, lzma", "shuffle+lzma");
	rule(w, "none");
	both(w, PLAN_DECODE, "filter=none", "");
	rule(w, "szip,32,8");
	is(w, PLAN_PORTABLE, PLAN_PASS,
	   "shuffle, deflate pass through as blosc; fletcher32 is removed", "blosc");
	assert_string_equal(w->p.note, "is not filtered with szip: szip: no Zarr v3 codec");

	w->a.access = DS_CONVERT;
	rule(w, "deflate");
	both(w, PLAN_ENCODE, "encoded with blosc", "blosc");
	assert_int_equal(w->p.chain.specs[0].params[5], 0);
	rule(w, NULL);
	both(w, PLAN_DECODE, "type needs conversion", "");
}

/* Hard links whose chunks are wrapped in one view only are not presented alike. */
static void test_same(void **state)
{
	struct world *w = *state;
	struct plan p;

	stored(w, &deflate, NULL, NULL);
	is(w, PLAN_PORTABLE, PLAN_PASS, "deflate passes through as blosc", "blosc");
	p = w->p;
	is(w, PLAN_PORTABLE, PLAN_PASS, "deflate passes through as blosc", "blosc");
	assert_true(plan_same(&p, &w->p));
	p.wrap = false;
	assert_false(plan_same(&p, &w->p));
}

static void test_memory(void **state)
{
	struct world *w = *state;
	struct arena none;
	struct err e = ERR_INIT;

	arena_init(&none, 8);
	w->ask.arena = &none;
	stored(w, &shuffle, &deflate, NULL);
	assert_int_equal(plan_make(&w->ask, &w->p, &e), -ENOMEM);
	arena_release(&none);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stock), TEST(test_wrapped), TEST(test_kept),   TEST(test_elements),
		TEST(test_rules), TEST(test_same),    TEST(test_memory),
	};

	codec_plugins_off();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
