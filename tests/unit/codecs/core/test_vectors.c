/* SPDX-License-Identifier: BSD-3-Clause */
/* test_vectors.c - every codec on what a second implementation stored: whole, cut, with bits
 * flipped, and into room of another length. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/vectors.h"
#include "tests/unit/codecs_encode.h"

#define LEN 160

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

/* vec - one vector, made ready. in and out are exactly as long as they are, so that a sanitizer
 * sees every byte too far. */
struct vec {
	const struct vector *v;
	struct made m;
	struct codec_chain chain;
	uint8_t want[LEN];
	uint8_t *in;
	size_t n;
};

static void vec_open(struct vec *x, const struct vector *v)
{
	struct err e = ERR_INIT;

	x->v = v;
	if (from_conf(&x->m, v->version, v->codec, v->conf, 8, &e))
		fail_msg("%s: %s", v->what, e.msg);
	x->chain = (struct codec_chain){1, &x->m.spec};
	chunk20(x->want);
	x->in = malloc(strlen(v->hex) / 2);
	assert_non_null(x->in);
	x->n = from_hex(v->hex, x->in);
}

/* decode - n bytes of x to a new memory of len bytes, freed after comparing. same: they were the
 * content. */
static int decode(const struct vec *x, const uint8_t *in, size_t n, size_t len, bool *ret_same)
{
	uint8_t *copy = malloc(n ? n : 1), *out = malloc(len ? len : 1);
	struct err e = ERR_INIT;
	int rc;

	assert_non_null(copy);
	assert_non_null(out);
	memcpy(copy, in, n);
	memset(out, 0xa5, len);
	rc = codec_chain_decode(&x->chain, 0, 8, copy, n, out, len, scratch, &e);
	*ret_same = !rc && len == LEN && memcmp(out, x->want, LEN) == 0;
	if (rc) {
		assert_int_equal(e.code, rc);
		assert_true(e.msg[0] != '\0');
	}
	free(copy);
	free(out);
	return rc;
}

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct vec x;
		const uint8_t *any;
		size_t len;
		bool same;
		int rc;

		vec_open(&x, &vectors[i]);
		rc = decode(&x, x.in, x.n, LEN, &same);
		if (rc || !same)
			fail_msg("%s: %d, %s", x.v->what, rc, same ? "same" : "different");
		assert_int_equal(codec_chain_decode_any(&x.chain, 8, x.in, x.n, LEN, scratch,
							&any, &len, NULL),
				 0);
		assert_int_equal(len, LEN);
		assert_memory_equal(any, x.want, LEN);
		free(x.in);
	}
}

static void test_other_length(void **state)
{
	static const size_t lens[] = {0, 1, 8, 159, 161, 168, 4096};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct vec x;
		struct err e = ERR_INIT;
		const uint8_t *any;
		size_t len;
		bool same;

		vec_open(&x, &vectors[i]);
		for (size_t k = 0; k < ARRAY_LEN(lens); k++)
			if (decode(&x, x.in, x.n, lens[k], &same) != -EBADMSG)
				fail_msg("%s to %zu bytes", x.v->what, lens[k]);
		assert_int_equal(codec_chain_decode_any(&x.chain, 8, x.in, x.n, LEN - 1,
							scratch, &any, &len, &e),
				 -ERANGE);
		assert_int_equal(e.code, -ERANGE);
		free(x.in);
	}
}

/* spare_bytes - bytes at the end of a vector that may be cut off without harm: the zeros behind
 * gzip's members. */
static size_t spare_bytes(const struct vector *v)
{
	return strstr(v->what, "zeros") ? 3 : 0;
}

static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &vectors[i]);
		for (size_t n = 0; n < x.n - spare_bytes(x.v); n++)
			if (decode(&x, x.in, n, LEN, &same) != -EBADMSG)
				fail_msg("%s: %zu of %zu bytes", x.v->what, n, x.n);
		free(x.in);
	}
}

/* summed - a vector that has a checksum over all of its content. */
static bool summed(const struct vector *v)
{
	static const char *const codecs[] = {"gzip",  "zlib",          "numcodecs.zlib",
					     "bz2",   "numcodecs.bz2", "crc32c",
					     "crc32", "adler32",       "numcodecs.crc32"};

	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (strcmp(v->codec, codecs[i]) == 0)
			return true;
	return strstr(v->what, "with checksum") || strcmp(v->what, "lzma") == 0;
}

static void test_flipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &vectors[i]);
		for (size_t bit = 0; bit < 8 * x.n; bit++) {
			int rc;

			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(&x, x.in, x.n, LEN, &same);
			if (rc && rc != -EBADMSG && rc != -EOPNOTSUPP)
				fail_msg("%s: bit %zu: %d", x.v->what, bit, rc);
			if (!rc && !same && summed(x.v))
				fail_msg("%s: bit %zu is not noticed", x.v->what, bit);
			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		free(x.in);
	}
}

/* gives_back - whether encoding any bytes loses nothing: not filters that compute. */
static bool gives_back(const struct codec_ops *ops)
{
	return ops->encode && !ops->lossy && ops->h5_id != CODEC_DELTA;
}

/* What we encode, really or framed, decodes again; in room that ends where it ends. */
static void test_round_trip(void **state)
{
	static uint8_t in[300000];
	static const size_t lens[] = {0, 1, 8, 160, 4000, 65535, 65536, 131072, 131080, 300000};

	(void)state;
	noise(in, sizeof(in) / 2, 7);
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct vec x;

		vec_open(&x, &vectors[i]);
		for (size_t k = 0; k < ARRAY_LEN(lens) && gives_back(x.m.ops); k++) {
			size_t n = lens[k];
			uint64_t framed = codec_chain_framed_size(&x.chain, n);
			uint8_t *z = malloc(framed ? framed : 1), *out = malloc(n ? n : 1);
			struct buf b;

			assert_non_null(z);
			assert_non_null(out);
			buf_init(&b, 1000000);
			assert_int_equal(encode_chain(&x.chain, 8, in, n, &b, NULL), 0);
			assert_int_equal(codec_chain_decode(&x.chain, 0, 8, b.data, b.len, out,
							    n, scratch, NULL),
					 0);
			assert_memory_equal(out, in, n);
			buf_release(&b);
			if (framed) {
				assert_int_equal(codec_chain_frame(&x.chain, 8, in, n, z, NULL),
						 0);
				memset(out, 0, n);
				assert_int_equal(codec_chain_decode(&x.chain, 0, 8, z, framed,
								    out, n, scratch, NULL),
						 0);
				assert_memory_equal(out, in, n);
			}
			free(z);
			free(out);
		}
		free(x.in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),      cmocka_unit_test(test_other_length),
		cmocka_unit_test(test_cut),        cmocka_unit_test(test_flipped),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
