/* SPDX-License-Identifier: BSD-3-Clause */
/* test_blosc_wrap.c - wrapped chunks, read by c-blosc itself: every element size, length and
 * filter mask; what cannot be wrapped. */
#include "tests/unit/codecs/util.h"

#include <blosc.h>
#include <stdlib.h>

#include "codecs/compress/blosc_wrap.h"

#define ROOM 70000

static struct codec_scratch *scratch;

static int setup(void **state)
{
	(void)state;
	scratch = codec_scratch_new();
	return scratch ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	codec_scratch_free(scratch);
	return 0;
}

/* chunk - a content and a chain of at most two filters. */
struct chunk {
	struct codec_chain chain;
	struct codec_spec specs[2];
	uint32_t size, level;
	uint8_t content[ROOM];
	size_t n;
	struct buf stored;
};

static void chunk_open(struct chunk *c, uint32_t shuffle, uint32_t compress, size_t n)
{
	memset(c, 0, sizeof(*c));
	c->size = shuffle;
	c->level = 3;
	if (shuffle)
		c->specs[c->chain.n++] = (struct codec_spec){CODEC_SHUFFLE, 1, &c->size, ""};
	c->specs[c->chain.n++] = (struct codec_spec){compress, 1, &c->level, ""};
	c->chain.specs = c->specs;
	c->n = n;
	noise(c->content, n, (uint32_t)n + shuffle);
	for (size_t i = 0; i < n; i++) /* so that shuffled bytes are shorter than others */
		if (shuffle && i % shuffle != 0)
			c->content[i] = (uint8_t)(i / shuffle / 64);
	buf_init(&c->stored, 4 * ROOM);
}

/* store - as HDF5 does with the filters of mask skipped. */
static void store(struct chunk *c, uint32_t mask)
{
	struct codec_spec specs[2];
	struct codec_chain left = {.specs = specs};

	for (uint32_t i = 0; i < c->chain.n; i++)
		if (!(mask >> i & 1))
			specs[left.n++] = c->specs[i];
	buf_clear(&c->stored);
	if (left.n == 0)
		buf_put(&c->stored, c->content, c->n);
	else
		assert_int_equal(codec_chain_encode(&left, 1, c->content, c->n, scratch,
						    &c->stored, NULL),
				 0);
	assert_true(buf_ok(&c->stored));
}

/* buffer - head and stored bytes, in memory exactly as long; new. NULL: no head. */
static uint8_t *buffer(const struct chunk *c, uint32_t mask, size_t elem_size, size_t *ret_n)
{
	uint8_t head[CODEC_WRAP_MAX], *p;
	uint32_t n = codec_wrap_head(&c->chain, mask, elem_size, c->n, c->stored.len, head);

	if (n == 0)
		return NULL;
	p = malloc(n + c->stored.len);
	assert_non_null(p);
	memcpy(p, head, n);
	memcpy(p + n, c->stored.data, c->stored.len);
	*ret_n = n + c->stored.len;
	return p;
}

/* blosc_reads - whether c-blosc makes the content of a buffer. */
static bool blosc_reads(const struct chunk *c, const uint8_t *p, size_t n)
{
	uint8_t *out = malloc(c->n);
	size_t claim, typesize;
	int flags, got;
	bool same;

	assert_non_null(out);
	memset(out, 0xa5, c->n);
	assert_int_equal(blosc_cbuffer_validate(p, n, &claim), 0);
	assert_int_equal(claim, c->n);
	blosc_cbuffer_metainfo(p, &typesize, &flags);
	assert_in_range(typesize, 1, 255);
	got = blosc_decompress_ctx(p, out, c->n, 1);
	same = got == (int)c->n && memcmp(out, c->content, c->n) == 0;
	free(out);
	return same;
}

static void check(struct chunk *c, uint32_t mask, size_t elem_size)
{
	struct codec_spec spec = {.h5_id = CODEC_BLOSC, .name = ""};
	const struct codec_chain blosc = {1, &spec};
	uint32_t params[7];
	uint8_t *p, *out = malloc(c->n);
	size_t n;

	assert_non_null(out);
	store(c, mask);
	p = buffer(c, mask, elem_size, &n);
	if (!p) { /* there is one such length for each content: see below */
		assert_int_equal(c->stored.len, c->n);
		free(out);
		return;
	}
	assert_true(blosc_reads(c, p, n));
	assert_true(codec_wrap_fits(&c->chain, elem_size, c->n, params));
	spec.n_params = 7;
	spec.params = params;
	assert_int_equal(
		codec_chain_decode(&blosc, 0, elem_size, p, n, out, c->n, scratch, NULL), 0);
	assert_memory_equal(out, c->content, c->n);
	free(p);
	free(out);
}

static void test_all(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 12, 16, 17, 100, 255};
	static const size_t lengths[] = {1,   2,   5,    8,    15,   16,    17,    127,
					 128, 129, 1024, 2047, 4096, 16384, 32768, 65536};
	static const uint32_t compressors[] = {CODEC_DEFLATE, CODEC_ZSTD};
	struct chunk *c = malloc(sizeof(*c));

	(void)state;
	assert_non_null(c);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
			for (uint32_t m = 0; m < 2 * 4; m++) {
				size_t n = lengths[k] + (m & 4 ? sizes[i] : 0);

				chunk_open(c, sizes[i], compressors[k & 1], n);
				check(c, m & 3, sizes[i] ? sizes[i] : 8);
				check(c, CODEC_ALL_SKIPPED, 8);
				buf_release(&c->stored);
			}
	free(c);
}

/* Blosc takes data compressed to exactly n bytes for uncompressed ones: no header. */
static void test_same_length(void **state)
{
	struct chunk *c = malloc(sizeof(*c));
	bool met = false;

	(void)state;
	assert_non_null(c);
	for (size_t zeros = 0; zeros < 64 && !met; zeros++) {
		size_t n;
		uint8_t *p;

		chunk_open(c, 0, CODEC_DEFLATE, 1000);
		memset(c->content, 0, zeros);
		store(c, 0);
		p = buffer(c, 0, 1, &n);
		met = c->stored.len == c->n;
		if (met)
			assert_null(p);
		else
			assert_true(p && blosc_reads(c, p, n));
		free(p);
		buf_release(&c->stored);
	}
	assert_true(met);
	free(c);
}

static void test_fits(void **state)
{
	static const uint32_t four = 4, huge = 256, six = 6, level22 = 22, none = 0;
	const struct codec_spec shuffle = {CODEC_SHUFFLE, 1, &four, ""};
	const struct codec_spec wide = {CODEC_SHUFFLE, 1, &huge, ""};
	const struct codec_spec whole = {CODEC_SHUFFLE, 1, &none, ""};
	const struct codec_spec deflate = {CODEC_DEFLATE, 1, &six, ""};
	const struct codec_spec zstd = {CODEC_ZSTD, 1, &level22, ""};
	const struct codec_spec gzip = {CODEC_GZIP, 1, &six, ""};
	const struct codec_spec a[] = {shuffle, deflate, shuffle};
	const struct codec_spec b[] = {wide, zstd};
	const struct codec_spec d[] = {shuffle, gzip};
	const struct codec_spec w[] = {whole, zstd};
	const struct codec_chain empty = {0, a}, both = {2, a}, only = {1, a}, three = {3, a};
	const struct codec_chain back = {2, a + 1}, big = {2, b}, alone = {1, b + 1};
	const struct codec_chain other = {2, d}, elems = {2, w};
	uint32_t p[7];

	(void)state;
	assert_true(codec_wrap_fits(&both, 8, 4096, p));
	assert_int_equal(p[2], 4); /* shuffle's own size */
	assert_int_equal(p[3], 4096);
	assert_int_equal(p[4], 6);
	assert_int_equal(p[5], BLOSC_SHUFFLE);
	assert_int_equal(p[6], BLOSC_ZLIB);
	assert_true(codec_wrap_fits(&alone, 300, 4096, p));
	assert_int_equal(p[2], 1);
	assert_int_equal(p[4], 9);
	assert_int_equal(p[5], BLOSC_NOSHUFFLE);
	assert_int_equal(p[6], BLOSC_ZSTD);
	assert_true(codec_wrap_fits(&elems, 16, 4096, p)); /* 0: elements of the array */
	assert_int_equal(p[2], 16);
	assert_false(codec_wrap_fits(&elems, 256, 4096, p));
	assert_false(codec_wrap_fits(&big, 256, 512, p));
	assert_true(codec_wrap_fits(&big, 256, 511, p)); /* one element is not shuffled */
	assert_false(codec_wrap_fits(&empty, 4, 4096, p));
	assert_false(codec_wrap_fits(&only, 4, 4096, p));
	assert_false(codec_wrap_fits(&three, 4, 4096, p));
	assert_false(codec_wrap_fits(&back, 4, 4096, p));
	assert_false(codec_wrap_fits(&other, 4, 4096, p));
	assert_false(codec_wrap_fits(&both, 4, 0, p));
	assert_false(codec_wrap_fits(&both, 4, (uint64_t)1 << 29, p));
	assert_true(codec_wrap_fits(&both, 4, 536866816, p));
}

/* Lengths that cannot be: nothing is claimed about them. */
static void test_lengths(void **state)
{
	static const uint32_t four = 4;
	const struct codec_spec specs[] = {{CODEC_SHUFFLE, 1, &four, ""},
					   {CODEC_DEFLATE, 0, NULL, ""}};
	const struct codec_chain chain = {2, specs};
	uint8_t head[CODEC_WRAP_MAX];

	(void)state;
	assert_int_equal(codec_wrap_head(&chain, 0, 4, 100, 50, head), 24);
	assert_int_equal(codec_wrap_head(&chain, 3, 4, 100, 100, head), 16);
	assert_int_equal(codec_wrap_head(&chain, 2, 4, 100, 100, head), 24);
	assert_int_equal(codec_wrap_head(&chain, 0, 4, 100, 0, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 0, 4, 100, 100, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 2, 4, 100, 99, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 3, 4, 100, 104, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 0, 4, 100, INT32_MAX, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 0, 4, 100, UINT64_MAX - 8, head), 0);
	assert_int_equal(codec_wrap_head(&chain, 0, 4, UINT64_MAX, 50, head), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_same_length),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
