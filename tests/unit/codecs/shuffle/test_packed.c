/* SPDX-License-Identifier: BSD-3-Clause */
/* test_packed.c - HDF5's scale-offset and n-bit against libhdf5: decoding, encoding,
 * parameters; and what a damaged file may ask for. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/shuffle/packed_vectors.h"

#include <math.h>

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

/* bytes - of a hexadecimal text, in memory exactly as long, so that a sanitizer sees every byte
 * too far. */
struct bytes {
	uint8_t *p;
	size_t n;
};

static struct bytes bytes_of(const char *hex)
{
	struct bytes b = {malloc(strlen(hex) / 2), 0};

	assert_non_null(b.p);
	b.n = from_hex(hex, b.p);
	return b;
}

/* row - a vector, made ready. */
struct row {
	const struct packed_vector *v;
	struct codec_spec spec;
	struct codec_chain chain;
	struct bytes content, stored, shown;
};

static void row_open(struct row *r, const struct packed_vector *v)
{
	*r = (struct row){.v = v};
	r->spec = (struct codec_spec){v->h5_id, v->n_params, v->params, ""};
	r->chain = (struct codec_chain){1, &r->spec};
	r->content = bytes_of(v->content);
	r->stored = bytes_of(v->stored);
	r->shown = bytes_of(v->shown ? v->shown : v->content);
}

static void row_close(struct row *r)
{
	free(r->content.p);
	free(r->stored.p);
	free(r->shown.p);
}

/* decode - to exactly len bytes. same: they are what libhdf5 shows. */
static int decode(struct row *r, const uint8_t *in, size_t n, size_t len, bool *ret_same)
{
	uint8_t *copy = malloc(n ? n : 1), *out = malloc(len ? len : 1);
	struct err e = ERR_INIT;
	int rc;

	assert_non_null(copy);
	assert_non_null(out);
	memcpy(copy, in, n);
	memset(out, 0xa5, len);
	r->chain.specs = &r->spec;
	rc = codec_chain_decode(&r->chain, 0, 1, copy, n, out, len, scratch, &e);
	*ret_same = !rc && len == r->shown.n && memcmp(out, r->shown.p, len) == 0;
	if (rc) {
		assert_int_equal(e.code, rc);
		assert_true(e.msg[0] != '\0');
	}
	free(copy);
	free(out);
	return rc;
}

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		bool same;
		int rc;

		row_open(&r, &packed_vectors[i]);
		rc = decode(&r, r.stored.p, r.stored.n, r.shown.n, &same);
		if (rc || !same)
			fail_msg("%u %s: %d, %s", r.v->h5_id, r.v->what, rc,
				 same ? "same" : "different");
		row_close(&r);
	}
}

static void test_encode(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		struct buf b;
		int rc;

		row_open(&r, &packed_vectors[i]);
		buf_init(&b, 10000);
		rc = codec_chain_encode(&r.chain, 1, r.content.p, r.content.n, scratch, &b,
					NULL);
		if (rc || b.len != r.stored.n || memcmp(b.data, r.stored.p, b.len) != 0)
			fail_msg("%u %s: %d, %zu bytes of %zu", r.v->h5_id, r.v->what, rc,
				 b.len, r.stored.n);
		assert_true(codec_find(r.v->h5_id)->stored_max(&r.spec, r.content.n) >= b.len);
		buf_release(&b);
		row_close(&r);
	}
}

static void test_prepare(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		const struct packed_vector *v = &packed_vectors[i];
		const struct codec_spec given = {v->h5_id, v->n_given, v->given, ""};
		const uint64_t n = v->params[2];
		uint32_t params[CODEC_PARAMS_MAX], got = 0;
		uint8_t fill[16];
		struct codec_array a = {.class = (enum codec_class)v->class,
					.elem_size = (uint32_t)(strlen(v->content) / 2 / n),
					.big_endian = v->big,
					.rank = 3,
					.chunk = (uint64_t[]){1, n, 1}};

		if (v->class < 0)
			continue;
		if (v->fill) {
			assert_int_equal(from_hex(v->fill, fill), a.elem_size);
			a.fill = fill;
		}
		assert_int_equal(codec_find(v->h5_id)->prepare(&given, &a, params, &got, NULL),
				 0);
		if (got != v->n_params || memcmp(params, v->params, 4 * got) != 0)
			fail_msg("%u %s: %u parameters of %u", v->h5_id, v->what, got,
				 v->n_params);
	}
}

/* passes - whether the filter does nothing for these parameters, so that any length is right. */
static bool passes(const struct packed_vector *v)
{
	return v->h5_id == CODEC_NBIT ? v->params[1] != 0
				      : v->params[0] == 2 && v->params[1] == 8 * v->params[4];
}

static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		bool same;

		row_open(&r, &packed_vectors[i]);
		/* libhdf5's last byte has bits in it or not */
		for (size_t n = 0; n + 1 < r.stored.n; n++)
			if (decode(&r, r.stored.p, n, r.shown.n, &same) != -EBADMSG)
				fail_msg("%s: %zu of %zu bytes", r.v->what, n, r.stored.n);
		for (size_t n = 0; n < r.shown.n + 3; n++)
			if (n != r.shown.n &&
			    decode(&r, r.stored.p, r.stored.n, n, &same) != -EBADMSG)
				fail_msg("%s: to %zu bytes", r.v->what, n);
		row_close(&r);
	}
}

/* Bits that are not what they were: never a crash, and damage or elements of the right length. */
static void test_flipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		bool same;

		row_open(&r, &packed_vectors[i]);
		for (size_t bit = 0; bit < 8 * r.stored.n; bit++) {
			int rc;

			r.stored.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(&r, r.stored.p, r.stored.n, r.shown.n, &same);
			if (rc && rc != -EBADMSG)
				fail_msg("%s: bit %zu: %d", r.v->what, bit, rc);
			r.stored.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		row_close(&r);
	}
}

/* Parameters that are not what they were; with each bit flipped, and fewer of them. */
static void test_parameters(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		bool same;
		uint32_t *p;

		row_open(&r, &packed_vectors[i]);
		p = malloc(r.v->n_params * sizeof(*p));
		assert_non_null(p);
		memcpy(p, r.v->params, r.v->n_params * sizeof(*p));
		r.spec.params = p;
		for (size_t bit = 0; bit < 32 * (size_t)r.v->n_params; bit++) {
			struct buf b;
			int rc;

			p[bit / 32] ^= (uint32_t)1 << bit % 32;
			rc = decode(&r, r.stored.p, r.stored.n, r.shown.n, &same);
			if (rc && rc != -EBADMSG && rc != -EOPNOTSUPP)
				fail_msg("%s: parameter %zu: %d", r.v->what, bit / 32, rc);
			buf_init(&b, 10000);
			rc = codec_chain_encode(&r.chain, 1, r.content.p, r.content.n, scratch,
						&b, NULL);
			if (rc && rc != -EOPNOTSUPP)
				fail_msg("%s: parameter %zu: %d", r.v->what, bit / 32, rc);
			buf_release(&b);
			p[bit / 32] ^= (uint32_t)1 << bit % 32;
		}
		for (uint32_t n = 0; n < r.v->n_params; n++) {
			r.spec.n_params = n;
			assert_int_equal(decode(&r, r.stored.p, r.stored.n, r.shown.n, &same),
					 -EBADMSG);
		}
		free(p);
		row_close(&r);
	}
}

/* bad_nbit - what decoding 4096 bytes with a type gives. */
static int bad_nbit(const uint32_t *type, uint32_t n, uint32_t elements)
{
	uint32_t params[300] = {n + 3, 0, elements};
	const struct codec_spec spec = {CODEC_NBIT, n + 3, params, ""};
	const struct codec_chain chain = {1, &spec};
	static uint8_t in[4096], out[4096];

	assert_true(n + 3 <= ARRAY_LEN(params));
	memcpy(params + 3, type, n * sizeof(*type));
	return codec_chain_decode(&chain, 0, 1, in, sizeof(in), out, sizeof(out), scratch,
				  NULL);
}

#define BAD_NBIT(elements, ...)                                                                \
	bad_nbit((const uint32_t[]){__VA_ARGS__},                                              \
		 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), elements)

static void test_nbit_hostile(void **state)
{
	uint32_t deep[2 * 100 + 5];

	(void)state;
	assert_int_equal(BAD_NBIT(2048, 1, 2, 0, 12, 4), 0); /* a good one */
	assert_int_equal(BAD_NBIT(2048, 1, 2, 0, 12, 5), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 1, 2, 0, 0, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 1, 2, 0, 17, 0), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 1, 2, 0, 0xfffffff8, 16), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 1, 2, 2, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 1, 0, 0, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 4, 2), -EBADMSG);
	assert_int_equal(BAD_NBIT(2048, 5, 2, 0, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(0xffffffff, 1, 0xffffffff, 0, 1, 0), -EBADMSG);
	/* arrays: of parts, of nothing, of what does not fit */
	assert_int_equal(BAD_NBIT(1024, 2, 4, 1, 2, 0, 12, 4), 0);
	assert_int_equal(BAD_NBIT(1024, 2, 4, 1, 3, 0, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(1024, 2, 4, 1, 8, 0, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(1024, 2, 4, 1, 0, 0, 12, 4), -EBADMSG);
	assert_int_equal(BAD_NBIT(1024, 2, 0, 1, 2, 0, 12, 4), -EBADMSG);
	/* compounds: members outside, or of more bytes than there are */
	assert_int_equal(BAD_NBIT(512, 3, 8, 2, 0, 1, 4, 0, 9, 0, 4, 1, 4, 1, 9, 0), 0);
	assert_int_equal(BAD_NBIT(512, 3, 8, 2, 0, 1, 4, 0, 9, 0, 5, 1, 4, 1, 9, 0), -EBADMSG);
	assert_int_equal(BAD_NBIT(512, 3, 8, 2, 0, 1, 4, 0, 9, 0, 0xfffffffe, 1, 4, 1, 9, 0),
			 -EBADMSG);
	assert_int_equal(
		BAD_NBIT(512, 3, 8, 3, 0, 1, 4, 0, 9, 0, 0, 1, 4, 0, 9, 0, 0, 1, 4, 0, 9, 0),
		-EBADMSG);
	assert_int_equal(BAD_NBIT(512, 3, 8, 0xffffffff, 0, 1, 4, 0, 9, 0), -EBADMSG);
	/* what HDF5 damages itself: members behind an array of compounds */
	assert_int_equal(
		BAD_NBIT(512, 3, 8, 2, 0, 2, 4, 3, 4, 1, 0, 1, 4, 0, 9, 0, 4, 1, 4, 0, 9, 0),
		-EOPNOTSUPP);
	assert_int_equal(
		BAD_NBIT(512, 3, 8, 2, 4, 1, 4, 0, 9, 0, 0, 2, 4, 3, 4, 1, 0, 1, 4, 0, 9, 0),
		0);
	/* arrays of arrays of arrays */
	for (uint32_t i = 0; i < 100; i++) {
		deep[2 * i] = 2;
		deep[2 * i + 1] = 4;
	}
	memcpy(deep + 200, (const uint32_t[]){1, 4, 0, 9, 0}, 20);
	assert_int_equal(bad_nbit(deep + 140, 65, 1024), 0);
	assert_int_equal(bad_nbit(deep, 205, 1024), -EOPNOTSUPP);
}

/* Members in an unusual order, with gaps: bytes outside all members read as 0. */
static void test_nbit_order(void **state)
{
	static const uint32_t params[] = {18, 0, 2, 3, 5, 2, 3, 1,  1,
					  0,  7, 1, 0, 1, 2, 1, 13, 0};
	static const uint8_t in[] = {0xaa, 0x55, 0xff, 0x00, 0xff};
	static const uint8_t want[] = {0x05, 0x5f, 0, 0xaa, 0, 0x00, 0xff, 0, 0xf0, 0};
	const struct codec_spec spec = {CODEC_NBIT, 18, params, ""};
	const struct codec_chain chain = {1, &spec};
	uint8_t out[10];

	(void)state;
	memset(out, 0xa5, sizeof(out));
	assert_int_equal(codec_chain_decode(&chain, 0, 5, in, sizeof(in), out, sizeof(out),
					    scratch, NULL),
			 0);
	assert_memory_equal(out, want, sizeof(want));
}

/* A length that is not the chunk's cannot be packed. */
static void test_wrong_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packed_vectors); i++) {
		struct row r;
		struct buf b;
		struct err e = ERR_INIT;

		row_open(&r, &packed_vectors[i]);
		buf_init(&b, 10000);
		buf_putc(&b, 'x');
		if (!passes(r.v)) {
			assert_int_equal(call_encode(codec_find(r.v->h5_id), scratch, &r.spec,
						     1, r.content.p, r.content.n - 1, &b, &e),
					 -EOPNOTSUPP);
			assert_int_equal(b.len, 1);
		}
		buf_release(&b);
		row_close(&r);
	}
}

static int prepared(enum codec_class class, uint32_t size, uint32_t scaling, uint32_t factor,
		    uint32_t n, uint64_t elements)
{
	const uint32_t given[] = {scaling, factor};
	const struct codec_spec spec = {CODEC_SCALEOFFSET, n, given, ""};
	const struct codec_array a = {
		.class = class, .elem_size = size, .rank = 1, .chunk = &elements};
	uint32_t params[CODEC_PARAMS_MAX], got;
	struct err e = ERR_INIT;
	int rc = codec_find(CODEC_SCALEOFFSET)->prepare(&spec, &a, params, &got, &e);

	assert_int_equal(rc, rc ? e.code : 0);
	return rc;
}

static void test_prepare_refused(void **state)
{
	const uint64_t many[] = {65536, 65536};
	const struct codec_spec spec = {.h5_id = CODEC_NBIT, .name = ""};
	struct codec_array a = {.class = CODEC_INT, .elem_size = 4, .rank = 2, .chunk = many};
	uint32_t params[CODEC_PARAMS_MAX], got;

	(void)state;
	assert_int_equal(prepared(CODEC_INT, 4, 2, 32, 2, 10), 0);
	assert_int_equal(prepared(CODEC_INT, 4, 2, 33, 2, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_INT, 4, 0, 3, 2, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_FLOAT, 4, 2, 3, 2, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_FLOAT, 4, 1, 3, 2, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_INT, 4, 2, 0, 1, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_INT, 4, 2, 0, 0, 10), -EINVAL);
	assert_int_equal(prepared(CODEC_OTHER, 4, 2, 0, 2, 10), -EOPNOTSUPP);
	assert_int_equal(prepared(CODEC_FLOAT, 2, 0, 0, 2, 10), -EOPNOTSUPP);
	assert_int_equal(prepared(CODEC_UINT, 3, 2, 0, 2, 10), -EOPNOTSUPP);
	assert_int_equal(prepared(CODEC_UINT, 8, 2, 0, 2, (uint64_t)1 << 32), -EOPNOTSUPP);
	assert_int_equal(codec_find(CODEC_NBIT)->prepare(&spec, &a, params, &got, NULL),
			 -EOPNOTSUPP);
}

/* packed - the bytes that four floats are stored in, and what they are decoded to again. */
static void packed(const float *v, float *ret, uint8_t *ret_bits)
{
	const uint32_t params[20] = {0, 2, 4, 1, 4, 0, 0, 1};
	const struct codec_spec spec = {CODEC_SCALEOFFSET, 20, params, ""};
	const struct codec_chain chain = {1, &spec};
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(
		codec_chain_encode(&chain, 4, (const uint8_t *)v, 16, scratch, &b, NULL), 0);
	*ret_bits = b.data[0];
	assert_int_equal(codec_chain_decode(&chain, 0, 4, b.data, b.len, (uint8_t *)ret, 16,
					    scratch, NULL),
			 0);
	buf_release(&b);
}

/* libhdf5 computes minima with NaNs, and stores nothing for infinities alone. */
static void test_not_numbers(void **state)
{
	const float nans[] = {1, NAN, 3, 4}, first[] = {NAN, 1, 3, 4};
	const float infinite[] = {INFINITY, INFINITY, INFINITY, INFINITY};
	float got[4];
	uint8_t bits;

	(void)state;
	packed(nans, got, &bits);
	assert_int_equal(bits, 32);
	assert_memory_equal(got, nans, sizeof(got));
	packed(first, got, &bits);
	assert_int_equal(bits, 32);
	assert_memory_equal(got, first, sizeof(got));
	packed(infinite, got, &bits);
	assert_int_equal(bits, 32);
	assert_memory_equal(got, infinite, sizeof(got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),       cmocka_unit_test(test_encode),
		cmocka_unit_test(test_prepare),      cmocka_unit_test(test_cut),
		cmocka_unit_test(test_flipped),      cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_nbit_hostile), cmocka_unit_test(test_nbit_order),
		cmocka_unit_test(test_wrong_length), cmocka_unit_test(test_prepare_refused),
		cmocka_unit_test(test_not_numbers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
