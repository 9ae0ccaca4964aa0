/* SPDX-License-Identifier: BSD-3-Clause */
/* test_catalogue.c - what users are told of filters and codecs that are not there. */
#include "tests/unit/codecs/util.h"

static const char *missing(uint32_t h5_id, const char *name)
{
	static char text[400];
	const struct codec_spec spec = {.h5_id = h5_id, .name = name};
	struct buf b;

	buf_init(&b, sizeof(text) - 1);
	codec_missing(&spec, &b);
	assert_true(buf_ok(&b));
	assert_true(b.len < 200); /* what a plan has room for */
	memcpy(text, b.data, b.len);
	text[b.len] = '\0';
	buf_release(&b);
	return text;
}

static void test_filters(void **state)
{
	(void)state;
	assert_string_equal(missing(32013, "H5Z-ZFP-1.1.0"),
			    "filter 32013 (zfp) is not available: install the package "
			    "hdf5-filter-plugin-zfp-serial, or add the directory of its HDF5 "
			    "plugin to HDF5_PLUGIN_PATH");
	assert_string_equal(missing(32024, ""),
			    "filter 32024 (sz3) is not available: install Python's hdf5plugin "
			    "and add its plugin directory to HDF5_PLUGIN_PATH");
	assert_string_equal(missing(32020, "vbz"),
			    "filter 32020 (vbz) is not available: build its HDF5 plugin "
			    "(github.com/nanoporetech/vbz_compression) and add its directory "
			    "to HDF5_PLUGIN_PATH");
	assert_string_equal(missing(400, "ours"),
			    "filter 400 (ours) is not available: add the directory of its HDF5 "
			    "plugin to HDF5_PLUGIN_PATH");
	assert_string_equal(missing(40000, ""),
			    "filter 40000 is not available: it is a private filter: add the "
			    "directory of its HDF5 plugin to HDF5_PLUGIN_PATH");
	/* every one of the list, and a name from a file */
	for (uint32_t id = 1; id < 33000; id++)
		assert_non_null(strstr(missing(id, ""), "HDF5_PLUGIN_PATH"));
	assert_null(strchr(missing(40000, "a\nb"), '\n'));
	assert_non_null(strstr(missing(40000, "0123456789012345678901234567890123456789"
					      "0123456789012345678901234567890123456789XXX"),
			       "456789) is not"));
}

static void test_codecs(void **state)
{
	(void)state;
	assert_string_equal(missing(0, "numcodecs.zfpy"),
			    "codec 'numcodecs.zfpy' is not supported: copy the array with "
			    "zarr-python and numcodecs[zfpy] to another codec, or add the "
			    "directory of an NCZarr plugin for it to HDF5_PLUGIN_PATH");
	assert_non_null(
		strstr(missing(0, "imagecodecs_jpegxl"), "zarr-python and imagecodecs "));
	assert_non_null(strstr(missing(0, "pickles"), "with the program that wrote it, or"));
	assert_non_null(strstr(missing(0, "01234567890123456789012345678901234567890123456789"),
			       "codec '012345678901234567890123456789012345' is"));
}

static void test_names(void **state)
{
	char tmp[32];

	(void)state;
	assert_string_equal(
		codec_name(&(struct codec_spec){.h5_id = 32026, .name = "x"}, tmp, sizeof(tmp)),
		"blosc2");
	assert_string_equal(
		codec_name(&(struct codec_spec){.h5_id = 40000, .name = "x"}, tmp, sizeof(tmp)),
		"x");
	assert_string_equal(
		codec_name(&(struct codec_spec){.h5_id = 40000, .name = ""}, tmp, sizeof(tmp)),
		"filter 40000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_codecs),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
