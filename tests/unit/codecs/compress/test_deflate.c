/* SPDX-License-Identifier: BSD-3-Clause */
/* test_deflate.c - zlib streams: against numcodecs' bytes and zlib's own inflate. */
#include "tests/unit/codecs/util.h"

#include <errno.h>
#include <zlib.h>

/* numcodecs.Zlib(6) of the text */
static const char fox_hex[] =
	"789c0bc94855282ccd4cce56482aca2fcf5348cbaf50c82acd2d2856c82f4b2d5228"
	"014ae72456552aa4e4a703005bdc0fda";
static const char fox[] = "The quick brown fox jumps over the lazy dog";
#define FOX_LEN (sizeof(fox) - 1)

static const struct codec_ops *ops;
static struct codec_scratch *scratch;
static const struct codec_spec plain = {.h5_id = CODEC_DEFLATE, .name = ""};

static int setup(void **state)
{
	(void)state;
	ops = codec_find(CODEC_DEFLATE);
	scratch = codec_scratch_new();
	return ops && scratch ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	codec_scratch_free(scratch);
	return 0;
}

static int run(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *len,
	       struct err *e)
{
	return call_decode(ops, scratch, &plain, 1, in, n, out, cap, len, e);
}

static void test_vector(void **state)
{
	uint8_t in[128], out[FOX_LEN + 7];
	size_t n = from_hex(fox_hex, in), len = 0;

	(void)state;
	assert_int_equal(run(in, n, out, FOX_LEN, &len, NULL), 0);
	assert_int_equal(len, FOX_LEN);
	assert_memory_equal(out, fox, FOX_LEN);

	/* more room: the true length is returned */
	assert_int_equal(run(in, n, out, sizeof(out), &len, NULL), 0);
	assert_int_equal(len, FOX_LEN);

	/* bytes behind the stream are not looked at, as in the HDF5 library */
	in[n] = 0x55;
	assert_int_equal(run(in, n + 1, out, sizeof(out), &len, NULL), 0);
	assert_int_equal(len, FOX_LEN);
}

static void test_damage(void **state)
{
	uint8_t in[128], out[FOX_LEN];
	size_t n = from_hex(fox_hex, in), len = 99;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(run(in, n, out, FOX_LEN - 1, &len, &e), -ERANGE);
	assert_string_equal(e.msg, "deflate: 50 bytes inflate to more than 42");
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(run(in, cut, out, FOX_LEN, &len, &e), -EBADMSG);
	for (size_t bit = 0; bit < 8 * n; bit++) {
		int rc;

		in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = run(in, n, out, FOX_LEN, &len, &e);
		/* only the two level bits of the head (with its check bits) carry nothing */
		if (!rc)
			assert_memory_equal(out, fox, FOX_LEN);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -ERANGE);
		in[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void test_empty(void **state)
{
	uint8_t in[16], out[1];
	size_t len = 1;

	(void)state;
	assert_int_equal(ops->framed_size(0), 11);
	call_frame(ops, &plain, 1, NULL, 0, in);
	assert_int_equal(run(in, 11, out, 0, &len, NULL), 0);
	assert_int_equal(len, 0);
	assert_int_equal(run(in, 0, out, 1, &len, NULL), -EBADMSG);
}

static void test_framed(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 65534, 65535, 65536, 131070, 131071, 200000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t n = sizes[i], size = (size_t)ops->framed_size(n), len;
		uint8_t *in = malloc(n + 1), *z = malloc(size), *out = malloc(n + 1);
		uLongf got = n + 1;

		assert_non_null(in);
		assert_non_null(z);
		assert_non_null(out);
		noise(in, n, 7);
		call_frame(ops, &plain, 1, in, n, z);
		assert_int_equal(uncompress(out, &got, z, size), Z_OK);
		assert_int_equal(got, n);
		assert_memory_equal(out, in, n);
		memset(out, 0, n + 1);
		assert_int_equal(run(z, size, out, n, &len, NULL), 0);
		assert_int_equal(len, n);
		assert_memory_equal(out, in, n);
		free(in);
		free(z);
		free(out);
	}
	assert_int_equal(ops->framed_size(UINT64_MAX), 0);
	assert_int_equal(ops->framed_size(UINT64_MAX - 20), 0);
}

static void test_encode(void **state)
{
	static const uint32_t levels[] = {0, 1, 4, 9, 12, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		struct codec_spec spec = {.h5_id = CODEC_DEFLATE,
					  .n_params = 1,
					  .params = &levels[i],
					  .name = ""};
		uint8_t out[FOX_LEN + 1];
		uLongf got = sizeof(out);
		struct buf b;

		buf_init(&b, 4096);
		buf_puts(&b, "kept");
		assert_int_equal(call_encode(ops, scratch, &spec, 1, (const uint8_t *)fox,
					     FOX_LEN, &b, NULL),
				 0);
		assert_memory_equal(b.data, "kept", 4);
		assert_int_equal(uncompress(out, &got, b.data + 4, b.len - 4), Z_OK);
		assert_int_equal(got, FOX_LEN);
		assert_memory_equal(out, fox, FOX_LEN);
		buf_release(&b);
	}
}

static void test_encode_ceiling(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 8);
	assert_int_equal(
		call_encode(ops, scratch, &plain, 1, (const uint8_t *)fox, FOX_LEN, &b, NULL),
		-ENOMEM);
	buf_release(&b);
}

static void expect_params(const struct codec_spec *spec, const char *text)
{
	struct buf b;

	buf_init(&b, 100);
	ops->zarr2_params(spec, 4, &b);
	assert_int_equal(b.len, strlen(text));
	assert_memory_equal(b.data, text, b.len);
	buf_release(&b);
}

static void test_params(void **state)
{
	static const uint32_t one = 1, big = 77, huge = UINT32_MAX;
	struct codec_spec spec = plain;

	(void)state;
	expect_params(&spec, ", \"level\": 4");
	spec.n_params = 1;
	spec.params = &one;
	expect_params(&spec, ", \"level\": 1");
	spec.params = &big;
	expect_params(&spec, ", \"level\": 9");
	spec.params = &huge;
	expect_params(&spec, ", \"level\": 9");
	assert_string_equal(ops->zarr2_id, "zlib");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_empty),  cmocka_unit_test(test_framed),
		cmocka_unit_test(test_encode), cmocka_unit_test(test_encode_ceiling),
		cmocka_unit_test(test_params),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
