/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr view with rules: chunks in other chains than the source's, and quantised floats. */
#include "codecs/spec/spec.h"
#include "nczarr/nczarr.h"
#include "tests/unit/nczarr/view/nczarr_sample.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct rules {
	struct arena arena;
	struct codec_rules filters;
	struct codec_quant_rules quants;
};

/* opened - a view with one filter rule and one for quantisation; either may be NULL. */
static struct view *opened(struct source *s, enum zarr_mode mode, struct rules *r,
			   const char *filter, const char *quant)
{
	struct zarr_view_options opts = {
		.mode = mode, .io = {.cache_bytes = 1 << 20}, .max_meta_bytes = 1 << 20};
	struct err e = ERR_INIT;
	struct view *v = NULL;

	*r = (struct rules){0};
	arena_init(&r->arena, 1 << 20);
	if (filter)
		assert_int_equal(codec_rule_add(&r->arena, filter, &r->filters, &e), 0);
	if (quant)
		assert_int_equal(codec_quant_rule_add(&r->arena, quant, &r->quants, &e), 0);
	opts.policy = (struct plan_policy){.rules = &r->filters, .quant = &r->quants};
	assert_int_equal(zarr_view_open(s, &opts, &v, &e), 0);
	return v;
}

static void closed(struct view *v, struct source *s, struct rules *r)
{
	v->ops->close(v);
	source_close(s);
	arena_release(&r->arena);
}

static struct view_attr find(struct view *v, const char *path)
{
	struct view_attr at = {.id = VIEW_ROOT};

	while (*path) {
		size_t n = strcspn(path, "/");

		assert_int_equal(v->ops->lookup(v, at.id, path, n, &at, NULL), 0);
		path += n + (path[n] == '/');
	}
	return at;
}

/* content - of a file, which has the size that it says; NUL behind it. */
static size_t content(struct view *v, const char *path, uint8_t out[8192])
{
	static uint8_t room[8192];
	struct view_attr at = find(v, path);
	struct span span;
	size_t n;

	assert_int_equal(v->ops->read(v, at.id, 0, 0, 8191, room, &span, NULL), 0);
	n = span.len + span.zeros;
	assert_int_equal(n, at.size);
	if (span.mem)
		memcpy(out, span.mem, span.len);
	else if (span.len)
		assert_int_equal(pread(span.fd, out, span.len, (off_t)span.off), span.len);
	memset(out + span.len, 0, span.zeros + 1);
	span_done(&span);
	return n;
}

static void has(struct view *v, const char *path, const char *text)
{
	uint8_t doc[8192];

	(void)content(v, path, doc);
	if (!strstr((char *)doc, text))
		fail_msg("no '%s' in %s: %s", text, path, (char *)doc);
}

/* is_chunk - a chunk file decodes with the plan's chain to the first `bytes` of its values. */
static void is_chunk(struct view *v, uint32_t ord, const char *path, uint64_t linear,
		     size_t bytes)
{
	const struct plan *p = v->ops->plan(v, ord);
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t got[8192], want[8192], elems[8192];
	size_t n = content(v, path, got);

	assert_int_equal(p->kind, PLAN_ENCODE);
	s_chunk(&v->source->ds.arrays[ord], ord, linear, want);
	assert_int_equal(codec_chain_decode(&p->chain, 0, p->elem_size, got, n, elems, bytes,
					    scratch, NULL),
			 0);
	assert_memory_equal(elems, want, bytes);
	codec_scratch_free(scratch);
}

/* is_zeros - the same of a chunk that was never written, and that the view presents. */
static void is_zeros(struct view *v, uint32_t ord, const char *path, size_t bytes)
{
	const struct plan *p = v->ops->plan(v, ord);
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t got[8192], want[8192] = {0}, elems[8192];
	size_t n = content(v, path, got);

	assert_int_equal(codec_chain_decode(&p->chain, 0, p->elem_size, got, n, elems, bytes,
					    scratch, NULL),
			 0);
	assert_memory_equal(elems, want, bytes);
	codec_scratch_free(scratch);
}

static bool noted(const struct view *v, const char *text)
{
	for (uint32_t i = 0; i < v->n_notes; i++)
		if (strcmp(v->notes[i], text) == 0)
			return true;
	return false;
}

static void test_encoded(void **state)
{
	struct source *s = sample_new();
	struct rules r;
	struct view *v = opened(s, ZARR_PURE, &r, "*,shuffle|zstd,3", NULL);
	struct view_attr at;

	(void)state;
	has(v, "i/.zarray", "\"compressor\": {\"id\": \"zstd\", \"level\": 3},");
	has(v, "i/.zarray", "\"filters\": [{\"id\": \"shuffle\", \"elementsize\": 4}],");
	has(v, "big/.zarray", "\"dtype\": \">f8\"");
	has(v, "sc/.zarray", "\"compressor\": null");
	has(v, "s/.zarray", "\"filters\": [{\"id\": \"vlen-utf8\"}]");
	is_chunk(v, S_I, "i/0.0", 0, 24);
	is_chunk(v, S_I, "i/1.0", 2, 24);
	is_chunk(v, S_F, "f/2.1.0", 5, 72);
	is_chunk(v, S_BIG, "big/0", 0, 32);
	is_zeros(v, S_BIG, "big/1", 32);
	is_chunk(v, S_C, "c/0.0", 0, 24);
	is_chunk(v, S_CMP, "cmp/1", 1, 28);
	is_chunk(v, S_REC, "rec/0", 0, 32);
	is_chunk(v, S_V, "g1/v/0.0", 0, 8);
	assert_int_equal(v->ops->lookup(v, find(v, "i").id, "1.1", 3, &at, NULL), -ENOENT);
	assert_int_equal(v->n_notes, 0);
	closed(v, s, &r);
}

/* A rule for one variable, and what cannot be. */
static void test_rules(void **state)
{
	struct source *s = sample_new();
	struct rules r;
	struct view *v = opened(s, ZARR_PURE, &r, "f&s&sc&/g1/v&i,shuffle", NULL);

	(void)state;
	has(v, "f/.zarray", "\"filters\": [{\"id\": \"shuffle\", \"elementsize\": 4}]");
	has(v, "f/.zarray", "\"compressor\": null"); /* no reader takes it for one */
	has(v, "rec/.zarray", "\"compressor\": {\"id\": \"zlib\"");
	is_chunk(v, S_V, "g1/v/0.0", 0, 8);
	assert_true(
		noted(v, "/s: is not filtered with shuffle: its elements have no fixed size"));
	assert_true(noted(
		v, "/sc: is not filtered with shuffle: scalars and empty elements cannot have "
		   "filters"));
	assert_int_equal(v->n_notes, 2);
	closed(v, s, &r);
}

/* What netCDF-C would refuse is cut, and encoded cut. */
static void test_nczarr(void **state)
{
	struct source *s = sample_new();
	struct rules r;
	struct view *v = opened(s, ZARR_NCZARR, &r, "deflate,1", "granularbr,2");

	(void)state;
	has(v, "rec/.zarray", "\"chunks\": [3]");
	has(v, "rec/.zarray", "\"compressor\": {\"id\": \"zlib\", \"level\": 1}");
	is_chunk(v, S_REC, "rec/0", 0, 6);
	has(v, "f/.zattrs", "\"_QuantizeGranularBitRoundNumberOfSignificantDigits\": 2,");
	has(v, "f/.zattrs", "\"_QuantizeGranularBitRoundNumberOfSignificantDigits\": \"<i4\"");
	closed(v, s, &r);
}

static void test_quantised(void **state)
{
	struct source *s = sample_new();
	struct rules r;
	struct view *v = opened(s, ZARR_PURE, &r, NULL, "bitround,2");
	const struct codec_quant q = {.mode = CODEC_QUANT_BITROUND, .digits = 2};
	uint8_t got[8192], want[72];

	(void)state;
	has(v, "f/.zattrs", "\"_QuantizeBitRoundNumberOfSignificantBits\": 2,");
	has(v, "f/.zarray", "\"compressor\": null");
	s_chunk(&s->ds.arrays[S_F], S_F, 1, want);
	codec_quantize(&q, 4, false, s->ds.arrays[S_F].fill, want, 18);
	assert_int_equal(content(v, "f/0.1.0", got), 72);
	assert_memory_equal(got, want, 72);
	has(v, "big/.zattrs", "_QuantizeBitRound");
	assert_int_equal(content(v, "big/1", got), 32);
	closed(v, s, &r);
}

/* counter - how many entries came with attributes. */
struct counter {
	size_t files, with_attr;
};

static bool count(void *arg, const char *name, uint64_t id, bool is_dir,
		  const struct view_attr *attr, uint64_t next)
{
	struct counter *c = arg;

	(void)id;
	(void)next;
	c->files += !is_dir && name[0] != '.';
	c->with_attr += attr != NULL && name[0] != '.';
	return true;
}

/* A listing of names encodes nothing. */
static void test_listing(void **state)
{
	struct source *s = sample_new();
	struct rules r;
	struct view *v = opened(s, ZARR_PURE, &r, "zstd", NULL);
	struct counter c = {0};
	uint64_t dir = find(v, "f").id;

	(void)state;
	assert_int_equal(v->ops->list(v, dir, 0, true, count, &c, NULL), 0);
	assert_int_equal(c.files, 6);
	assert_int_equal(c.with_attr, 0);
	(void)find(v, "f/1.0.0");
	c = (struct counter){0};
	assert_int_equal(v->ops->list(v, dir, 0, true, count, &c, NULL), 0);
	assert_int_equal(c.with_attr, 1); /* its size is known now */
	closed(v, s, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encoded), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_nczarr),  cmocka_unit_test(test_quantised),
		cmocka_unit_test(test_listing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
