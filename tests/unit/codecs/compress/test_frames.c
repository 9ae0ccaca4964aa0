/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frames.c - frames of compressors that say more than they have, less, or something
 * else; and the frames that no vector has. */
#include "base/core/endian.h"
#include "tests/unit/codecs/util.h"

#include <limits.h>

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

static int run(uint32_t id, const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *len,
	       struct err *e)
{
	const struct codec_spec spec = {.h5_id = id, .name = ""};

	return call_decode(codec_find(id), scratch, &spec, 1, in, n, out, cap, len, e);
}

/* decodes - from hexadecimal: the result, or the text of the error. */
static void decodes(uint32_t id, const char *hex, size_t cap, int want, const char *text)
{
	uint8_t in[256], out[256];
	struct err e = ERR_INIT;
	size_t n = from_hex(hex, in), len = 0;

	assert_true(cap <= sizeof(out));
	assert_int_equal(run(id, in, n, out, cap, &len, &e), want);
	if (want) {
		assert_string_equal(e.msg, text);
	} else {
		assert_int_equal(len, strlen(text));
		assert_memory_equal(out, text, len);
	}
}

static void test_zstd(void **state)
{
	(void)state;
	/* raw block "abc" in a single segment, content size in one byte */
	decodes(CODEC_ZSTD, "28b52ffd2003190000616263", 3, 0, "abc");
	decodes(CODEC_ZSTD, "28b52ffd200319000061626328b52ffd2003190000616263", 6, 0, "abcabc");
	decodes(CODEC_ZSTD, "28b52ffd200319000061626328b52ffd2003190000616263", 5, -ERANGE,
		"zstd: content of 3 bytes exceeds 2");
	/* the content size is a lie: 255, or 2^62, of which nothing is allocated */
	decodes(CODEC_ZSTD, "28b52ffd20ff190000616263", 255, -EBADMSG,
		"zstd: Data corruption detected");
	decodes(CODEC_ZSTD, "28b52ffde00000000000000040190000616263", 200, -ERANGE,
		"zstd: content of 4611686018427387904 bytes exceeds 200");
	/* no content size, a window of 1 KiB; two lengths of room too little */
	decodes(CODEC_ZSTD, "28b52ffd0000190000616263", 3, 0, "abc");
	decodes(CODEC_ZSTD, "28b52ffd0000190000616263", 2, -ERANGE,
		"zstd: content is larger than 2 bytes");
	/* something behind, a format of 2015, nothing */
	decodes(CODEC_ZSTD, "28b52ffd200319000061626300", 9, -EBADMSG,
		"zstd: 1 bytes at offset 12 are not a complete frame");
	decodes(CODEC_ZSTD, "25b52ffd2003190000616263", 3, -EBADMSG,
		"zstd: 12 bytes at offset 0 are not a complete frame");
	decodes(CODEC_ZSTD, "", 3, -EBADMSG,
		"zstd: 0 bytes at offset 0 are not a complete frame");
	decodes(CODEC_ZSTD, "502a4d1800000000", 0, 0, "");
}

static void test_gzip(void **state)
{
	static const uint8_t junk[] = {'x', 0};
	uint8_t in[64], out[16];
	const struct codec_ops *ops = codec_find(CODEC_GZIP);
	const struct codec_spec spec = {.h5_id = CODEC_GZIP, .name = ""};
	size_t n = (size_t)ops->framed_size(3), len;

	(void)state;
	assert_int_equal(n, 10 + 5 + 3 + 8);
	call_frame(ops, &spec, 1, (const uint8_t *)"abc", 3, in);
	call_frame(ops, &spec, 1, (const uint8_t *)"def", 3, in + n);
	assert_int_equal(run(CODEC_GZIP, in, 2 * n, out, 6, &len, NULL), 0);
	assert_int_equal(len, 6);
	assert_memory_equal(out, "abcdef", 6);
	assert_int_equal(run(CODEC_GZIP, in, 2 * n, out, 5, &len, NULL), -ERANGE);
	assert_int_equal(run(CODEC_GZIP, in, 2 * n, out, 3, &len, NULL), -ERANGE);
	assert_int_equal(run(CODEC_GZIP, in, 2 * n - 1, out, 6, &len, NULL), -EBADMSG);
	memcpy(in + n, junk, sizeof(junk));
	assert_int_equal(run(CODEC_GZIP, in, n + 2, out, 6, &len, NULL), -EBADMSG);
	assert_int_equal(run(CODEC_GZIP, in, 0, out, 6, &len, NULL), -EBADMSG);
}

/* One field of a sound header after the other is given every kind of wrong value. */
static void test_blosc(void **state)
{
	static const uint32_t odd[] = {0,    1,     15,        16,          17,        4095,
				       4097, 65536, INT32_MAX, 0x80000000u, UINT32_MAX};
	enum { LEN = 4096 };
	const struct codec_ops *ops = codec_find(CODEC_BLOSC);
	struct made m;
	uint8_t *in = malloc(LEN), *out = malloc(LEN);
	struct err e = ERR_INIT;
	struct buf b;
	size_t len;

	(void)state;
	assert_non_null(in);
	assert_non_null(out);
	for (size_t i = 0; i < LEN; i++)
		in[i] = (uint8_t)(i / 7 % 11);
	assert_int_equal(from_conf(&m, 2, "blosc", "cname=snappy,clevel=#5", 4, NULL), 0);
	buf_init(&b, 2 * LEN);
	assert_int_equal(call_encode(ops, scratch, &m.spec, 4, in, LEN, &b, NULL), 0);
	assert_false(b.data[2] & 2); /* compressed, not copied */
	assert_int_equal(run(CODEC_BLOSC, b.data, b.len, out, LEN, &len, NULL), 0);
	assert_memory_equal(out, in, LEN);
	assert_int_equal(run(CODEC_BLOSC, b.data, b.len, out, LEN - 1, &len, &e), -ERANGE);
	assert_string_equal(e.msg, "blosc: content of 4096 bytes exceeds 4095");
	buf_putc(&b, 'x'); /* ignored, as by numcodecs */
	assert_int_equal(run(CODEC_BLOSC, b.data, b.len, out, LEN, &len, NULL), 0);

	for (size_t at = 4; at < 16; at += 4)
		for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
			uint8_t head[16];
			int rc;

			memcpy(head, b.data, 16);
			put_le32(b.data + at, odd[i]);
			rc = run(CODEC_BLOSC, b.data, b.len, out, LEN, &len, NULL);
			assert_true(rc <= 0 && (rc || len <= LEN));
			memcpy(b.data, head, 16);
		}
	b.data[0] = 3; /* Blosc2 */
	assert_int_equal(run(CODEC_BLOSC, b.data, b.len, out, LEN, &len, &e), -EBADMSG);
	assert_string_equal(e.msg, "blosc: unknown format version 3 (the latest known is 2)");
	assert_int_equal(run(CODEC_BLOSC, b.data, 15, out, LEN, &len, &e), -EBADMSG);
	assert_int_equal(ops->framed_size(INT_MAX), 0);
	buf_release(&b);
	free(in);
	free(out);
}

static void test_lz4(void **state)
{
	(void)state;
	decodes(CODEC_LZ4, "0300000030616263", 3, 0, "abc");
	decodes(CODEC_LZ4, "0300000030616263", 2, -ERANGE, "lz4: content of 3 bytes exceeds 2");
	decodes(CODEC_LZ4, "0400000030616263", 9, -EBADMSG,
		"lz4: a block of 4 bytes does not decode to 4");
	decodes(CODEC_LZ4, "0200000030616263", 9, -EBADMSG,
		"lz4: a block of 4 bytes does not decode to 2");
	decodes(CODEC_LZ4, "ffffffff30616263", 200, -ERANGE,
		"lz4: content of 4294967295 bytes exceeds 200");
	decodes(CODEC_LZ4, "030000", 3, -EBADMSG, "lz4: length 3 is less than 4");
	decodes(CODEC_LZ4, "00000000", 0, 0, "");
}

/* The HDF5 filter's frame: a copied block, a compressed one, and lies. */
static void test_lz4_hdf5(void **state)
{
	(void)state;
	decodes(CODEC_LZ4_HDF5,
		"000000000000000300000003"
		"00000003616263",
		3, 0, "abc");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000300000003"
		"0000000430616263",
		3, 0, "abc");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000500000003"
		"0000000430616263"
		"000000026465",
		5, 0, "abcde");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000340000000"
		"00000003616263",
		3, 0, "abc");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000300000003"
		"00000003616263",
		2, -ERANGE, "lz4: content of 3 bytes exceeds 2");
	decodes(CODEC_LZ4_HDF5,
		"ffffffffffffffff00000003"
		"00000003616263",
		200, -ERANGE, "lz4: content of 18446744073709551615 bytes exceeds 200");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000300000000"
		"00000003616263",
		3, -EBADMSG, "lz4: the block size is 0");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000300000003"
		"00000004616263",
		3, -EBADMSG, "lz4: a block of 4 bytes, but only 3 are left");
	decodes(CODEC_LZ4_HDF5,
		"000000000000000500000003"
		"00000003616263"
		"0000",
		5, -EBADMSG, "lz4: a chunk of 21 bytes ends after 3 of 5 decoded bytes");
	decodes(CODEC_LZ4_HDF5, "0000000000000003000000", 3, -EBADMSG,
		"lz4: length 11 is less than 12");
	decodes(CODEC_LZ4_HDF5, "000000000000000000000000", 0, 0, "");
}

/* Blocks of every size, with the sizes as parameter, of bytes that compress and that do not. */
static void test_lz4_hdf5_blocks(void **state)
{
	static uint8_t in[2000], out[2000];
	const struct codec_ops *ops = codec_find(CODEC_LZ4_HDF5);

	(void)state;
	noise(in, 1000, 1);
	for (uint32_t size = 0; size < 2200; size += size < 3 ? 1 : 419) {
		const struct codec_spec spec = {CODEC_LZ4_HDF5, 1, &size, ""};
		const struct codec_chain chain = {1, &spec};
		struct buf b;

		buf_init(&b, 100000);
		assert_int_equal(call_encode(ops, scratch, &spec, 1, in, 2000, &b, NULL), 0);
		assert_true(b.len <= ops->stored_max(&spec, 2000));
		assert_int_equal(codec_chain_decode(&chain, 0, 1, b.data, b.len, out, 2000,
						    scratch, NULL),
				 0);
		assert_memory_equal(in, out, 2000);
		buf_release(&b);
	}
}

/* Streams whose end is not read by the time the room is full. */
static void test_bzip2(void **state)
{
	static uint8_t in[70000], out[70001];
	const struct codec_spec spec = {.h5_id = CODEC_BZIP2, .name = ""};
	const struct codec_ops *ops = codec_find(CODEC_BZIP2);
	size_t len;

	(void)state;
	noise(in + 1000, 20000, 5); /* runs, noise, a long run */
	for (size_t n = 0; n <= sizeof(in); n += n < 300 ? 1 : 23233) {
		struct buf b;

		buf_init(&b, 100000);
		assert_int_equal(call_encode(ops, scratch, &spec, 1, in, n, &b, NULL), 0);
		assert_int_equal(run(CODEC_BZIP2, b.data, b.len, out, n, &len, NULL), 0);
		assert_int_equal(len, n);
		assert_memory_equal(in, out, n);
		if (n > 0)
			assert_int_equal(
				run(CODEC_BZIP2, b.data, b.len, out, n - 1, &len, NULL),
				-ERANGE);
		assert_int_equal(run(CODEC_BZIP2, b.data, b.len - 1, out, n, &len, NULL),
				 -EBADMSG);
		buf_puts(&b, "BZ and no stream");
		assert_int_equal(run(CODEC_BZIP2, b.data, b.len, out, n + 1, &len, NULL), 0);
		assert_int_equal(len, n);
		buf_release(&b);
	}
}

/* A decoder that wants 4 GiB for its dictionary. */
static void test_lzma(void **state)
{
	uint8_t in[32] = {0x5d, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 0, 0, 0, 0}, out[16];
	struct err e = ERR_INIT;
	struct made m;
	size_t len;

	(void)state;
	assert_int_equal(from_conf(&m, 2, "lzma", "format=#2", 1, NULL), 0);
	assert_int_equal(
		call_decode(m.ops, scratch, &m.spec, 1, in, sizeof(in), out, 3, &len, &e),
		-EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "the limit is 268435456"));
}

/* The check values that catalogues of checksums give, and lengths that are no multiple of a
 * word. */
static void test_sums(void **state)
{
	static const uint8_t digits[] = "123456789";
	static const struct {
		uint32_t id, sum;
	} rows[] = {{CODEC_CRC32C, 0xe3069283},
		    {CODEC_CRC32, 0xcbf43926},
		    {CODEC_ADLER32, 0x091e01de}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct codec_spec spec = {.h5_id = rows[i].id, .name = ""};
		const struct codec_chain chain = {1, &spec};
		bool behind = rows[i].id == CODEC_CRC32C;
		uint8_t z[64], out[64];
		size_t at = behind ? 9 : 0, n;

		assert_int_equal(codec_chain_frame(&chain, 1, digits, 9, z, NULL), 0);
		assert_memory_equal(z + (behind ? 0 : 4), digits, 9);
		for (size_t k = 0; k < 4; k++)
			assert_int_equal(z[at + k], rows[i].sum >> (8 * k) & 0xff);
		for (n = 0; n <= 9; n++) {
			assert_int_equal(codec_chain_frame(&chain, 1, digits, n, z, NULL), 0);
			assert_int_equal(codec_chain_decode(&chain, 0, 1, z, n + 4, out, n,
							    scratch, NULL),
					 0);
			assert_memory_equal(out, digits, n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zstd),     cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_blosc),    cmocka_unit_test(test_lz4),
		cmocka_unit_test(test_lz4_hdf5), cmocka_unit_test(test_lz4_hdf5_blocks),
		cmocka_unit_test(test_bzip2),    cmocka_unit_test(test_lzma),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
