/* SPDX-License-Identifier: BSD-3-Clause */
/* test_names.c - filters by their names, and what Zarr documents may say of them. */
#include "tests/unit/codecs/util.h"

static const struct codec_ops *zarr2(const char *id)
{
	return codec_find_zarr2(id, strlen(id));
}

static const struct codec_ops *zarr3(const char *name)
{
	return codec_find_zarr3(name, strlen(name));
}

/* Every codec is found by each name that it has, and names are not shared. */
static void test_all(void **state)
{
	static const uint32_t ids[] = {
		CODEC_DEFLATE,     CODEC_SHUFFLE,       CODEC_FLETCHER32,
		CODEC_BZIP2,       CODEC_BLOSC,         CODEC_LZ4_HDF5,
		CODEC_ZSTD,        CODEC_GZIP,          CODEC_LZ4,
		CODEC_LZMA,        CODEC_CRC32C,        CODEC_CRC32,
		CODEC_ADLER32,     CODEC_DELTA,         CODEC_FIXEDSCALEOFFSET,
		CODEC_QUANTIZE,    CODEC_BITROUND,      CODEC_ASTYPE,
		CODEC_PACKBITS,    CODEC_CRC32C_ZARR2,  CODEC_SZIP,
		CODEC_LZF,         CODEC_BITSHUFFLE,    CODEC_NBIT,
		CODEC_SCALEOFFSET, CODEC_PACKBITS_ZARR3};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		const struct codec_ops *o = codec_find(ids[i]);
		char name[64];

		assert_non_null(o);
		assert_int_equal(o->h5_id, ids[i]);
		assert_non_null(o->decode);
		if (o->zarr2_id) {
			assert_ptr_equal(zarr2(o->zarr2_id), o);
			(void)snprintf(name, sizeof(name), "numcodecs.%s", o->zarr2_id);
			assert_ptr_equal(zarr3(name), o);
		}
		if (o->zarr3_name)
			assert_ptr_equal(zarr3(o->zarr3_name), o);
		assert_int_equal(o->h5_stock, ids[i] <= CODEC_SCALEOFFSET);
		assert_int_equal(o->portable, ids[i] <= CODEC_SHUFFLE);
		assert_true(!o->framed_size || o->frame);
	}
	assert_null(codec_find(40000));
	assert_null(codec_find(CODEC_PACKBITS_ZARR3 + 1));
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(zarr2("zlib")->h5_id, CODEC_DEFLATE);
	assert_int_equal(zarr2("bz2")->h5_id, CODEC_BZIP2);
	assert_int_equal(zarr2("lz4")->h5_id, CODEC_LZ4);
	assert_int_equal(zarr2("crc32c")->h5_id, CODEC_CRC32C_ZARR2);
	assert_int_equal(zarr3("crc32c")->h5_id, CODEC_CRC32C);
	assert_int_equal(zarr3("numcodecs.crc32c")->h5_id, CODEC_CRC32C_ZARR2);
	assert_int_equal(zarr3("gzip")->h5_id, CODEC_GZIP);
	assert_null(zarr3("zlib")); /* only with its prefix */
	assert_null(zarr3("bytes"));
	assert_null(zarr3("numcodecs."));
	assert_null(zarr3(""));
	assert_null(zarr2(""));
	assert_null(zarr2("zlib2"));
	assert_null(codec_find_zarr2("zlib", 3));
	assert_ptr_equal(codec_find_zarr2("zlibrary", 4), zarr2("zlib"));
	assert_null(codec_find_zarr2("zlib", 5)); /* the NUL is no part of it */
}

/* in_zarr3 - a codec of a Zarr v3 document as it is written: name and members. */
static void in_zarr3(uint32_t id, uint32_t n, const uint32_t *params, const char *want)
{
	const struct codec_spec spec = {id, n, params, ""};
	const struct codec_ops *o = codec_find(id);
	char tmp[64];
	struct buf b;

	assert_non_null(o);
	assert_non_null(codec_zarr3_name(o, tmp, sizeof(tmp)));
	buf_init(&b, 1000);
	buf_puts(&b, codec_zarr3_name(o, tmp, sizeof(tmp)));
	if (o->zarr3_params)
		o->zarr3_params(&spec, 8, &b);
	else if (o->zarr2_params)
		o->zarr2_params(&spec, 8, &b);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.data, want);
	buf_release(&b);
}

static void test_zarr3(void **state)
{
	static const uint32_t six = 6, blosc[] = {2, 2, 4, 400, 7, 2, 5}, minus = (uint32_t)-3;
	const struct codec_ops *o;
	char tmp[64];

	(void)state;
	for (size_t i = 0; (o = codec_at(i)); i++) {
		const char *name = codec_zarr3_name(o, tmp, sizeof(tmp));

		if (name)
			assert_ptr_equal(zarr3(name), o);
		if (o->zarr3_stock)
			assert_ptr_equal(name, o->zarr3_name);
	}
	in_zarr3(CODEC_GZIP, 1, &six, "gzip, \"level\": 6");
	in_zarr3(CODEC_ZSTD, 1, &six, "zstd, \"level\": 6, \"checksum\": false");
	in_zarr3(CODEC_ZSTD, 1, &minus, "zstd, \"level\": -3, \"checksum\": false");
	in_zarr3(CODEC_CRC32C, 0, NULL, "crc32c");
	in_zarr3(CODEC_BLOSC, 7, blosc,
		 "blosc, \"cname\": \"zstd\", \"clevel\": 7, \"shuffle\": \"bitshuffle\", "
		 "\"typesize\": 4, \"blocksize\": 0");
	in_zarr3(CODEC_BLOSC, 0, NULL,
		 "blosc, \"cname\": \"blosclz\", \"clevel\": 5, \"shuffle\": \"shuffle\", "
		 "\"typesize\": 8, \"blocksize\": 0");
	in_zarr3(CODEC_DEFLATE, 1, &six, "numcodecs.zlib, \"level\": 6");
	in_zarr3(CODEC_SHUFFLE, 0, NULL, "numcodecs.shuffle, \"elementsize\": 8");
	in_zarr3(CODEC_CRC32C_ZARR2, 0, NULL, "numcodecs.crc32c");
	assert_null(codec_zarr3_name(codec_find(CODEC_SZIP), tmp, sizeof(tmp)));
	assert_null(codec_zarr3_name(codec_find(CODEC_LZF), tmp, sizeof(tmp)));
	assert_null(codec_zarr3_name(codec_find(CODEC_DEFLATE), tmp, 14));
}

static void test_versions(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	codec_versions(&b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	assert_non_null(strstr((char *)b.data, "zstd 1."));
	assert_non_null(strstr((char *)b.data, "c-blosc 1."));
	assert_null(strchr((char *)b.data, ','));
	buf_release(&b);
}

/* conf_of - parameters of a configuration as text: the error, or what zarr2_params writes. */
static const char *conf_of(int version, const char *codec, const char *conf, size_t elem_size)
{
	static char text[512];
	struct err e = ERR_INIT;
	struct made m;
	struct buf b;
	int rc = from_conf(&m, version, codec, conf, elem_size, &e);

	if (rc) {
		assert_int_equal(rc, e.code);
		(void)snprintf(text, sizeof(text), "%s %s",
			       rc == -EBADMSG      ? "EBADMSG"
			       : rc == -EOPNOTSUPP ? "EOPNOTSUPP"
						   : "?",
			       e.msg);
		return text;
	}
	buf_init(&b, sizeof(text));
	if (m.ops->zarr2_params)
		m.ops->zarr2_params(&m.spec, elem_size, &b);
	assert_true(buf_ok(&b));
	(void)snprintf(text, sizeof(text), "%.*s", (int)b.len, b.len ? (char *)b.data : "");
	buf_release(&b);
	return text;
}

struct row {
	const char *codec, *conf, *want;
};

static void expect(int version, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_string_equal(conf_of(version, rows[i].codec, rows[i].conf, 8),
				    rows[i].want);
}

static void test_levels(void **state)
{
	static const struct row rows[] = {
		{"zlib", "", ", \"level\": 1"},
		{"zlib", "level=5", ", \"level\": 5"},
		{"zlib", "level=#-1", ", \"level\": 6"},
		{"zlib", "level=#99", ", \"level\": 9"},
		{"zlib", "level=#-99999999999", ", \"level\": 6"},
		{"zlib", "level=high", "EBADMSG 'level' is not a whole number"},
		{"gzip", "level=#0", ", \"level\": 0"},
		{"bz2", "level=#0", ", \"level\": 1"},
		{"zstd", "level=#-5,checksum=#1", ", \"level\": -5"},
		{"zstd", "level=#5000000000", ", \"level\": 22"},
		{"lz4", "", ", \"acceleration\": 1"},
		{"lz4", "acceleration=#17", ", \"acceleration\": 17"},
		{"bitround", "keepbits=#7", ", \"keepbits\": 7"},
		{"lzma", "",
		 ", \"format\": 1, \"check\": -1, \"preset\": null, \"filters\": null"},
		{"lzma", "format=2,check=#1,preset=#9",
		 ", \"format\": 2, \"check\": 1, \"preset\": 9, \"filters\": null"},
		{"lzma", "format=#3", "EOPNOTSUPP lzma: a raw stream needs 'filters'"},
		{"lzma", "format=#4", "EBADMSG lzma: unknown format 4"},
		{"packbits", "", ""},
	};

	(void)state;
	expect(2, rows, ARRAY_LEN(rows));
}

static void test_blosc(void **state)
{
	static const struct row rows[] = {
		{"blosc", "",
		 ", \"cname\": \"lz4\", \"clevel\": 5, \"shuffle\": 1, \"blocksize\": 0"},
		{"blosc", "cname=zstd,clevel=#9,shuffle=#2,blocksize=#4096",
		 ", \"cname\": \"zstd\", \"clevel\": 9, \"shuffle\": 2, \"blocksize\": 0"},
		{"blosc", "shuffle=#3", "EBADMSG blosc: unknown shuffle 3"},
		{"blosc", "shuffle=bitshuffle", "EBADMSG 'shuffle' is not a whole number"},
		{"blosc", "cname=lzo", "EOPNOTSUPP blosc: compressor 'lzo' is not supported"},
		{"blosc", "cname=#1", "EBADMSG 'cname' is not a string"},
	};
	static const struct row v3[] = {
		{"blosc", "cname=zlib,clevel=#1,shuffle=noshuffle,typesize=#4",
		 ", \"cname\": \"zlib\", \"clevel\": 1, \"shuffle\": 0, \"blocksize\": 0"},
		{"numcodecs.blosc", "cname=snappy,shuffle=#2",
		 ", \"cname\": \"snappy\", \"clevel\": 5, \"shuffle\": 2, \"blocksize\": 0"},
		{"blosc", "shuffle=sometimes", "EBADMSG blosc: unknown shuffle 'sometimes'"},
	};
	struct made m;

	(void)state;
	expect(2, rows, ARRAY_LEN(rows));
	expect(3, v3, ARRAY_LEN(v3));

	/* the HDF5 filter's parameters; -1 is what suits the type */
	assert_int_equal(from_conf(&m, 2, "blosc", "cname=zlib,shuffle=#-1", 1, NULL), 0);
	assert_int_equal(m.spec.n_params, 7);
	assert_memory_equal(m.params, ((uint32_t[]){2, 2, 1, 0, 5, 2, 4}), 28);
	assert_int_equal(from_conf(&m, 2, "blosc", "shuffle=#-1", 300, NULL), 0);
	assert_int_equal(m.params[2], 1);
	assert_int_equal(m.params[5], 2);
	assert_int_equal(from_conf(&m, 3, "blosc", "typesize=#16,shuffle=shuffle", 1, NULL), 0);
	assert_int_equal(m.params[2], 16);
	assert_int_equal(from_conf(&m, 3, "blosc", "typesize=#256", 4, NULL), 0);
	assert_int_equal(m.params[2], 1);
}

static void test_checksums(void **state)
{
	static const struct row rows[] = {
		{"crc32", "", ""},
		{"crc32", "location=start", ""},
		{"crc32", "location=end", ", \"location\": \"end\""},
		{"adler32", "location=end", ", \"location\": \"end\""},
		{"crc32c", "", ""},
		{"crc32c", "location=start", ", \"location\": \"start\""},
		{"crc32", "location=middle",
		 "EBADMSG checksum: location 'middle' is neither 'start' nor 'end'"},
		{"crc32", "location=#1", "EBADMSG 'location' is not a string"},
	};

	(void)state;
	expect(2, rows, ARRAY_LEN(rows));
}

static void test_shuffle(void **state)
{
	static const struct row rows[] = {
		{"shuffle", "", ", \"elementsize\": 8"},
		{"shuffle", "elementsize=0", ", \"elementsize\": 8"},
		{"shuffle", "elementsize=#0", ", \"elementsize\": 8"},
		{"shuffle", "elementsize=#1", ", \"elementsize\": 1"},
		{"shuffle", "elementsize=#2", ", \"elementsize\": 2"},
		{"shuffle", "elementsize=#-2", "EBADMSG shuffle: wrong element size -2"},
		{"shuffle", "elementsize=#4294967296",
		 "EBADMSG shuffle: wrong element size 4294967296"},
	};

	(void)state;
	expect(2, rows, ARRAY_LEN(rows));
}

static void test_types(void **state)
{
	static const struct row rows[] = {
		{"delta", "dtype=<i4", ", \"dtype\": \"<i4\", \"astype\": \"<i4\""},
		{"delta", "dtype=>u8,astype=i1", ", \"dtype\": \">u8\", \"astype\": \"|i1\""},
		{"delta", "dtype=float16", ", \"dtype\": \"<f2\", \"astype\": \"<f2\""},
		{"delta", "", "EBADMSG 'dtype' is missing"},
		{"delta", "dtype=#4", "EBADMSG 'dtype' is not a string"},
		{"delta", "dtype=|b1", "EOPNOTSUPP delta: booleans are not supported"},
		{"delta", "dtype=<M8[ns]", "EOPNOTSUPP dtype '<M8[ns]' is not supported"},
		{"delta", "dtype=|O", "EOPNOTSUPP dtype '|O' is not supported"},
		{"delta", "dtype=<", "EOPNOTSUPP dtype '<' is not supported"},
		{"delta", "dtype=<c8", "EOPNOTSUPP dtype '<c8' is not supported"},
		{"astype", "encode_dtype=|b1,decode_dtype=>f4",
		 ", \"encode_dtype\": \"|b1\", \"decode_dtype\": \">f4\""},
		{"astype", "decode_dtype=>f4", "EBADMSG 'encode_dtype' is missing"},
		{"quantize", "digits=#3,dtype=<f8,astype=<f4",
		 ", \"digits\": 3, \"dtype\": \"<f8\", \"astype\": \"<f4\""},
		{"quantize", "digits=#3,dtype=<f8,astype=<i4",
		 "EBADMSG quantize: the elements are not floating-point numbers"},
		{"fixedscaleoffset", "scale=#10,offset=#0.1,dtype=<f8,astype=<u2",
		 ", \"scale\": 10.0, \"offset\": 0.1, \"dtype\": \"<f8\", \"astype\": \"<u2\""},
		{"fixedscaleoffset", "offset=#0,dtype=<f8",
		 "EBADMSG 'scale' is missing or not finite"},
		{"fixedscaleoffset", "scale=#inf,offset=#0,dtype=<f8",
		 "EBADMSG 'scale' is missing or not finite"},
		{"fixedscaleoffset", "scale=1,offset=#0,dtype=<f8",
		 "EBADMSG 'scale' is not a number"},
	};

	(void)state;
	expect(2, rows, ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),       cmocka_unit_test(test_names),
		cmocka_unit_test(test_zarr3),     cmocka_unit_test(test_versions),
		cmocka_unit_test(test_levels),    cmocka_unit_test(test_blosc),
		cmocka_unit_test(test_checksums), cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
