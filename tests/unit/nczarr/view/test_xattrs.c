/* SPDX-License-Identifier: BSD-3-Clause */
/* test_xattrs.c - extended attributes of arrays in a Zarr tree. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "nczarr/view/view.h"

#include <cmocka.h>

static const uint32_t five = 5;
static const struct codec_spec specs[] = {{CODEC_SHUFFLE, 0, NULL, ""},
					  {CODEC_DEFLATE, 1, &five, ""}};
static const struct ds_array filtered = {.type = {.kind = DT_INT, .size = 4},
					 .chain = {.n = 2, .specs = specs}};
static const struct ds_array plain = {.type = {.kind = DT_INT, .size = 4}};

static void test_values(void **state)
{
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(zr_xattr(&filtered, 2, NULL, &b, &e), 0);
	assert_int_equal(b.len, 26);
	assert_memory_equal(b.data, "user._Filter\0user._Codecs", 26);
	buf_clear(&b);
	assert_int_equal(zr_xattr(&filtered, 2, "user._Filter", &b, &e), 0);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "2|1,5", 5);
	buf_clear(&b);
	assert_int_equal(zr_xattr(&filtered, 2, "user._Codecs", &b, &e), 0);
	assert_memory_equal(b.data, "[{\"id\": \"shuffle\"", 17);
	buf_release(&b);
}

static void test_none(void **state)
{
	const struct ds_array *without[] = {NULL, &plain};
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		assert_int_equal(zr_xattr(without[i], 2, NULL, &b, &e), 0);
		assert_int_equal(zr_xattr(without[i], 2, "user._Filter", &b, &e), -ENODATA);
		assert_int_equal(zr_xattr(without[i], 2, "user._Codecs", &b, &e), -ENODATA);
	}
	assert_int_equal(zr_xattr(&filtered, 2, "user._Filters", &b, &e), -ENODATA);
	assert_int_equal(zr_xattr(&filtered, 2, "", &b, &e), -ENODATA);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

static void test_no_room(void **state)
{
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	assert_int_equal(zr_xattr(&filtered, 2, "user._Filter", &b, &e), -E2BIG);
	buf_clear(&b);
	assert_int_equal(zr_xattr(&filtered, 2, NULL, &b, &e), -ENOMEM);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
