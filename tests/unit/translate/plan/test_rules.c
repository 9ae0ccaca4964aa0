/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rules.c - the effect of rules on arrays: chunks pass, are encoded, or are presented as
 * without the rule, and the reasons. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/plan/plan.h"

#include <cmocka.h>

static const uint32_t two = 2, four = 4, eight = 8;
static const uint32_t lz4_shuffled[] = {2, 2, 4, 400, 5, 1, 1},
		      zstd_bits[] = {2, 2, 4, 0, 1, 2, 5};

static const struct codec_spec deflate4 = {CODEC_DEFLATE, 1, &four, ""},
			       deflate8 = {CODEC_DEFLATE, 1, &eight, ""},
			       shuffle2 = {CODEC_SHUFFLE, 1, &two, ""},
			       shuffle4 = {CODEC_SHUFFLE, 1, &four, ""},
			       bare = {CODEC_SHUFFLE, 0, NULL, ""},
			       fletcher = {CODEC_FLETCHER32, 0, NULL, ""},
			       zstd = {CODEC_ZSTD, 1, &two, ""},
			       blosc_lz4 = {CODEC_BLOSC, 7, lz4_shuffled, ""},
			       blosc_zstd = {CODEC_BLOSC, 7, zstd_bits, ""};

/* world - one array of 100 elements in chunks of 50, and the rules for it. */
struct world {
	struct arena arena;
	struct ds_group root;
	struct ds_array a;
	struct dataset ds;
	uint64_t shape, chunk;
	struct codec_spec specs[4];
	struct ds_attr attrs[2];
	struct codec_rules rules;
	struct codec_quant_rules quant;
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
	w->shape = 100;
	w->chunk = 50;
	w->a = (struct ds_array){.name = "v",
				 .type = {.kind = DT_FLOAT, .size = 4},
				 .rank = 1,
				 .shape = &w->shape,
				 .chunk = &w->chunk,
				 .n_chunks = 2,
				 .chunk_bytes = 200,
				 .chain = {.specs = w->specs},
				 .attrs = w->attrs,
				 .access = DS_STORED};
	w->ds = (struct dataset){
		.n_arrays = 1, .arrays = &w->a, .n_groups = 1, .groups = &w->root};
	w->policy = (struct plan_policy){.rules = &w->rules, .quant = &w->quant};
	w->ask = (struct plan_ask){.ds = &w->ds, .policy = &w->policy, .arena = &w->arena};
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

/* stored - the array's filters; the first of n that are NULL ends them. */
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

static void quantise(struct world *w, const char *text)
{
	struct err e = ERR_INIT;

	w->quant.n = 0;
	if (text && codec_quant_rule_add(&w->arena, text, &w->quant, &e) < 0)
		fail_msg("%s", e.msg);
}

static const struct plan *made(struct world *w)
{
	struct err e = ERR_INIT;

	if (plan_make(&w->ask, &w->p, &e) < 0)
		fail_msg("%s", e.msg);
	return &w->p;
}

/* is - kind and reason of the plan, the ids of its chain (0 ends them), and a note or NULL. */
static void is(struct world *w, enum plan_kind kind, const char *reason, uint32_t a, uint32_t b,
	       const char *note)
{
	const struct plan *p = made(w);
	const uint32_t ids[] = {a, b};

	assert_string_equal(p->reason, reason);
	assert_int_equal(p->kind, kind);
	assert_int_equal(p->chain.n, (a != 0) + (b != 0));
	for (uint32_t i = 0; i < p->chain.n; i++)
		assert_int_equal(p->chain.specs[i].h5_id, ids[i]);
	if (note)
		assert_string_equal(p->note ? p->note : "no note", note);
	else if (p->note)
		fail_msg("noted: %s", p->note);
}

static void test_encode(void **state)
{
	struct world *w = *state;

	rule(w, "*,zstd,3");
	is(w, PLAN_ENCODE, "encoded with zstd", CODEC_ZSTD, 0, NULL);
	assert_int_equal(w->p.chain.specs[0].params[0], 3);
	assert_int_equal(w->p.elem_size, 4);
	assert_int_equal(w->p.bytes, 200);
	assert_int_equal(w->p.trailer, 0);
	stored(w, &shuffle4, &deflate4, NULL);
	is(w, PLAN_ENCODE, "encoded with zstd", CODEC_ZSTD, 0, NULL);
	rule(w, "shuffle|zstd"); /* for all as well */
	is(w, PLAN_ENCODE, "encoded with shuffle, zstd", CODEC_SHUFFLE, CODEC_ZSTD, NULL);
	assert_int_equal(w->p.chain.specs[0].params[0], 4);
	w->a.access = DS_CONVERT; /* whether a library makes the elements or not */
	is(w, PLAN_ENCODE, "encoded with shuffle, zstd", CODEC_SHUFFLE, CODEC_ZSTD, NULL);
	w->a.access = DS_STORED;

	/* an array without a rule is presented as before */
	rule(w, "w,zstd");
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	rule(w, "v,none");
	is(w, PLAN_DECODE, "filter=none", 0, 0, NULL);
	rule(w, "v,zstd"); /* and wins over the policy */
	w->policy.filter = PLAN_NONE;
	is(w, PLAN_ENCODE, "encoded with zstd", CODEC_ZSTD, 0, NULL);
	rule(w, "/g/v,zstd");
	is(w, PLAN_DECODE, "filter=none", 0, 0, NULL);
}

/* netCDF-C takes scanlines from the shape in Zarr; HDF5's writers from the chunk. */
static void test_szip(void **state)
{
	static const uint32_t stored_params[] = {169, 8, 32, 50};
	const struct codec_spec szip = {CODEC_SZIP, 4, stored_params, ""};
	struct world *w = *state;

	stored(w, &szip, NULL, NULL);
	w->a.uniform = true;
	rule(w, "*,szip,32,8");
	is(w, PLAN_ENCODE, "encoded with szip", CODEC_SZIP, 0, NULL);
	assert_memory_equal(w->p.chain.specs[0].params, ((uint32_t[]){169, 8, 32, 100}), 16);
	w->ask.format = PLAN_HDF5;
	is(w, PLAN_PASS, "szip passes through", CODEC_SZIP, 0, NULL);
	w->ask.format = PLAN_ZARR2;
	w->shape = 50;
	is(w, PLAN_PASS, "szip passes through", CODEC_SZIP, 0, NULL);
	rule(w, "*,szip,32,16");
	is(w, PLAN_ENCODE, "encoded with szip", CODEC_SZIP, 0, NULL);
	assert_memory_equal(w->p.chain.specs[0].params, ((uint32_t[]){169, 16, 32, 50}), 16);
	w->a.type.kind = DT_STRING;
	is(w, PLAN_DECODE, "szip: standard readers cannot decode it", 0, 0,
	   "is not filtered with szip: szip: elements are not numbers");
}

static void test_same_chain_passes(void **state)
{
	struct world *w = *state;

	stored(w, &shuffle4, &deflate8, NULL);
	rule(w, "*,shuffle|deflate,4"); /* levels are no difference */
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	assert_int_equal(w->p.chain.specs[1].params[0], 8);
	stored(w, &bare, &deflate8, NULL);
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	stored(w, &shuffle2, &deflate8, NULL); /* of other bytes */
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	stored(w, &deflate8, &shuffle4, NULL); /* in another order */
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	stored(w, &shuffle4, &deflate8, &zstd);
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	stored(w, &zstd, NULL, NULL); /* one that needs filter=keep else */
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	rule(w, "zstd,9");
	is(w, PLAN_PASS, "zstd passes through", CODEC_ZSTD, 0, NULL);
	stored(w, &blosc_lz4, NULL, NULL);
	rule(w, "blosc,0,0,0,0,9,1,1"); /* harder, but the same way */
	is(w, PLAN_PASS, "blosc passes through", CODEC_BLOSC, 0, NULL);
	stored(w, &blosc_zstd, NULL, NULL);
	is(w, PLAN_ENCODE, "encoded with blosc", CODEC_BLOSC, 0, NULL);

	w->a.access = DS_CONVERT; /* the stored chunks are other elements */
	stored(w, &blosc_lz4, NULL, NULL);
	is(w, PLAN_ENCODE, "encoded with blosc", CODEC_BLOSC, 0, NULL);
}

static void test_checksums(void **state)
{
	struct world *w = *state;

	stored(w, &shuffle4, &deflate8, &fletcher);
	rule(w, "shuffle|deflate"); /* the rest after the checksum is removed */
	is(w, PLAN_PASS, "shuffle, deflate pass through; fletcher32 is removed", CODEC_SHUFFLE,
	   CODEC_DEFLATE, NULL);
	assert_int_equal(w->p.trailer, 4);
	assert_int_equal(w->p.trailer_bit, 4);
	rule(w, "shuffle|deflate|fletcher32"); /* as the user says it, whatever netCDF writes */
	assert_int_equal(made(w)->kind, PLAN_PASS);
	assert_int_equal(w->p.chain.n, 3);
	assert_int_equal(w->p.trailer, 0);
	w->ask.format = PLAN_HDF5;
	assert_int_equal(made(w)->kind, PLAN_PASS);
	rule(w, "shuffle|deflate"); /* no HDF5 file has checksums without its filter */
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);

	/* four bytes in front of elements of eight: numcodecs refuses to shuffle them back */
	stored(w, NULL, NULL, NULL);
	rule(w, "fletcher32|shuffle");
	is(w, PLAN_ENCODE, "encoded with fletcher32, shuffle", CODEC_FLETCHER32, CODEC_SHUFFLE,
	   NULL);
	w->ask.format = PLAN_ZARR2;
	is(w, PLAN_ENCODE, "encoded with fletcher32, shuffle", CODEC_FLETCHER32, CODEC_SHUFFLE,
	   NULL);
	w->a.type.size = 8;
	w->a.chunk_bytes = 400;
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with fletcher32, shuffle: shuffle: Zarr readers require whole "
	   "elements");
}

static void test_names(void **state)
{
	struct world *w = *state;

	rule(w, "*,lzma,1");
	is(w, PLAN_ENCODE, "encoded with lzma", CODEC_LZMA, 0, NULL);
	w->ask.format = PLAN_HDF5;
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with lzma: lzma: no HDF5 filter");
	rule(w, "*,lz4"); /* each format has its own head */
	is(w, PLAN_ENCODE, "encoded with lz4", CODEC_LZ4_HDF5, 0, NULL);
	w->ask.format = PLAN_ZARR2;
	is(w, PLAN_ENCODE, "encoded with lz4", CODEC_LZ4, 0, NULL);
	rule(w, "*,bitgroom,3|zstd");
	stored(w, &deflate4, NULL, NULL);
	is(w, PLAN_PASS, "deflate passes through", CODEC_DEFLATE, 0,
	   "is not filtered with bitgroom, zstd: bitgroom: no Zarr codec");
	rule(w, "*,40000,3");
	assert_int_equal(made(w)->kind, PLAN_PASS);
	assert_non_null(strstr(w->p.note, "is not filtered with filter 40000: "));
	w->ask.format = PLAN_HDF5;
	w->a.type = (struct dtype){.kind = DT_INT, .size = 4};
	rule(w, "*,bitgroom,3");
	assert_int_equal(made(w)->kind, PLAN_PASS);
	assert_non_null(strstr(w->p.note, "is not filtered with bitgroom: "));
}

/* netCDF puts shuffle first. A filter that rounds must not get its bytes. */
static void test_rounding(void **state)
{
	struct world *w = *state;

	w->ask.format = PLAN_HDF5;
	rule(w, "bitgroom,3|deflate");
	is(w, PLAN_ENCODE, "encoded with bitgroom, deflate", CODEC_BITGROOM, CODEC_DEFLATE,
	   NULL);
	rule(w, "bitgroom,3|shuffle|deflate");
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with bitgroom, shuffle, deflate: bitgroom would round the output of "
	   "shuffle");
	rule(w, "scaleoffset,0,3|shuffle");
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with scaleoffset, shuffle: scaleoffset would round the output of "
	   "shuffle");
	w->a.type.kind = DT_INT;
	rule(w, "scaleoffset,2,0|shuffle");
	is(w, PLAN_ENCODE, "encoded with shuffle, scaleoffset", CODEC_SHUFFLE,
	   CODEC_SCALEOFFSET, NULL);
}

static const char *refuse(const struct plan_ask *ask, const struct codec_chain *chain)
{
	return ask->array == 0 && chain->n == 1 ? "made up" : NULL;
}

static void test_refused(void **state)
{
	struct world *w = *state;

	w->ask.refuses = refuse;
	rule(w, "zstd");
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with zstd: made up");
	rule(w, "shuffle|zstd");
	is(w, PLAN_ENCODE, "encoded with shuffle, zstd", CODEC_SHUFFLE, CODEC_ZSTD, NULL);
	stored(w, &deflate4, NULL, NULL); /* nor can it pass */
	rule(w, NULL);
	is(w, PLAN_DECODE, "made up", 0, 0, NULL);
	assert_int_equal(w->p.trailer, 0);
	rule(w, "deflate");
	is(w, PLAN_DECODE, "made up", 0, 0, "is not filtered with deflate: made up");
}

static void test_no_chains(void **state)
{
	struct world *w = *state;

	w->a.rank = 0; /* scalars are not filtered; a rule that names one gets a note */
	w->a.chunk_bytes = 4;
	rule(w, "*,zstd");
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0, NULL);
	rule(w, "v,zstd");
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0,
	   "is not filtered with zstd: scalars and empty elements cannot have filters");
	w->a.rank = 1;
	w->a.type = (struct dtype){.kind = DT_VSTRING};
	w->a.access = DS_VARIABLE;
	is(w, PLAN_VLEN, "elements have no fixed size", 0, 0,
	   "is not filtered with zstd: its elements have no fixed size");
	rule(w, "zstd");
	is(w, PLAN_VLEN, "elements have no fixed size", 0, 0, NULL);
	rule(w, "v,none");
	is(w, PLAN_VLEN, "elements have no fixed size", 0, 0, NULL);
	w->a.unreadable = "filter 7 is not there";
	is(w, PLAN_ERROR, "filter 7 is not there", 0, 0, NULL);
}

static void test_cut(void **state)
{
	struct world *w = *state;
	struct codec_array as;
	uint64_t rows = 30;

	plan_elements(&w->a, &as);
	assert_int_equal(as.class, CODEC_FLOAT);
	assert_null(as.fill);
	as.chunk = &rows;
	w->ask.as = &as;
	is(w, PLAN_PASS, "uncompressed bytes pass through", 0, 0, NULL);
	stored(w, &deflate4, NULL, NULL);
	is(w, PLAN_DECODE, "chunks are cut: they are longer than the array", 0, 0, NULL);
	rule(w, "deflate"); /* of the rows that there are */
	is(w, PLAN_ENCODE, "encoded with deflate", CODEC_DEFLATE, 0, NULL);
	assert_int_equal(w->p.bytes, 120);
}

/* ---- quantisation ---- */

static void test_quantise(void **state)
{
	struct world *w = *state;

	quantise(w, "granularbr,3");
	is(w, PLAN_DECODE, "quantised to 3 digits (granularbr)", 0, 0, NULL);
	assert_int_equal(w->p.quant.mode, CODEC_QUANT_GRANULARBR);
	assert_null(w->p.quant_fill);
	rule(w, "shuffle|deflate");
	stored(w, &shuffle4, &deflate8, NULL); /* the same chain, but other elements */
	is(w, PLAN_ENCODE, "encoded with shuffle, deflate; quantised to 3 digits (granularbr)",
	   CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	rule(w, "v,none");
	is(w, PLAN_DECODE, "quantised to 3 digits (granularbr)", 0, 0, NULL);
	rule(w, "*,bitgroom,3");
	quantise(w, "v,bitround,10");
	is(w, PLAN_DECODE, "quantised to 10 bits (bitround)", 0, 0,
	   "is not filtered with bitgroom: bitgroom: no Zarr codec");
	rule(w, NULL);
	quantise(w, "w,bitround,10");
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);

	quantise(w, "bitround,24"); /* more than there are */
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE,
	   "is not quantised: floats of 4 bytes have fewer digits");
	w->a.type = (struct dtype){.kind = DT_INT, .size = 4};
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE, NULL);
	quantise(w, "v,bitround,9");
	is(w, PLAN_PASS, "shuffle, deflate pass through", CODEC_SHUFFLE, CODEC_DEFLATE,
	   "is not quantised: it has no floats of 4 or 8 bytes");
	rule(w, "v,lzma|bitgroom");
	assert_int_equal(made(w)->kind, PLAN_PASS);
	assert_non_null(strstr(w->p.note, "is not quantised: it has no floats of 4 or 8 bytes; "
					  "is not filtered with lzma, bitgroom: "));
}

static void test_quantise_fill(void **state)
{
	static const uint8_t own[] = {1, 2, 3, 4};
	struct world *w = *state;
	int16_t number = -999;
	double wide = 0.1;
	float f = 0.1F;
	uint8_t big[4];

	quantise(w, "bitgroom,3");
	w->a.fill = own;
	assert_null(made(w)->quant_fill); /* the library's default, if none is stated */
	w->a.fill_defined = true;
	assert_ptr_equal(made(w)->quant_fill, own);
	w->a.n_attrs = 1;
	w->attrs[0] = (struct ds_attr){.name = "_FillValue",
				       .type = {.kind = DT_INT, .size = 2},
				       .n = 1,
				       .data = (uint8_t *)&number};
	f = -999;
	assert_memory_equal(made(w)->quant_fill, &f, 4);
	w->attrs[0].type = (struct dtype){.kind = DT_FLOAT, .size = 8};
	w->attrs[0].data = (uint8_t *)&wide;
	f = 0.1F;
	assert_memory_equal(made(w)->quant_fill, &f, 4);
	w->a.type.big_endian = true;
	for (size_t i = 0; i < 4; i++)
		big[i] = ((uint8_t *)&f)[3 - i]; /* of a little-endian host */
	assert_memory_equal(made(w)->quant_fill, big, 4);
	w->a.type = (struct dtype){.kind = DT_FLOAT, .size = 8};
	w->a.chunk_bytes = 400;
	assert_memory_equal(made(w)->quant_fill, &wide, 8);
	w->attrs[0].n = 2; /* no fill value */
	assert_ptr_equal(made(w)->quant_fill, own);
}

static void test_same(void **state)
{
	struct world *w = *state;
	struct plan p;

	rule(w, "zstd,3");
	p = *made(w);
	assert_true(plan_same(&p, made(w))); /* other copies of the same parameters */
	rule(w, "zstd,4");
	assert_false(plan_same(&p, made(w)));
	rule(w, "zstd,3");
	quantise(w, "bitgroom,3");
	assert_false(plan_same(&p, made(w)));
	p = *made(w);
	quantise(w, "bitgroom,4");
	assert_false(plan_same(&p, made(w)));
	rule(w, NULL);
	assert_false(plan_same(&p, made(w)));
}

static void test_memory(void **state)
{
	struct world *w = *state;
	struct arena none;
	struct err e = ERR_INIT;

	arena_init(&none, 8);
	rule(w, "shuffle|deflate");
	w->ask.arena = &none;
	assert_int_equal(plan_make(&w->ask, &w->p, &e), -ENOMEM);
	arena_release(&none);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_encode),    TEST(test_szip),          TEST(test_same_chain_passes),
		TEST(test_checksums), TEST(test_names),         TEST(test_rounding),
		TEST(test_refused),   TEST(test_no_chains),     TEST(test_cut),
		TEST(test_quantise),  TEST(test_quantise_fill), TEST(test_same),
		TEST(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
