/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C of bytes that come in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codecs/core/codec.h"

/* RFC 3720, B.4 */
static void test_vectors(void **state)
{
	uint8_t v[32] = {0};

	(void)state;
	assert_int_equal(codec_crc32c_sum(0, NULL, 0), 0);
	assert_int_equal(codec_crc32c_sum(0, (const uint8_t *)"123456789", 9), 0xe3069283);
	assert_int_equal(codec_crc32c_sum(0, v, sizeof(v)), 0x8a9136aa);
	for (size_t i = 0; i < sizeof(v); i++)
		v[i] = (uint8_t)i;
	assert_int_equal(codec_crc32c_sum(0, v, sizeof(v)), 0x46dd794e);
}

static void test_pieces(void **state)
{
	/* a byte at a time; and pieces that are summed three at once, and almost */
	static const size_t steps[] = {1, 7, 300, 4096, 12287, 12288, 12289, 24600, 39999};
	static uint8_t v[40000];
	uint32_t whole, sum;

	(void)state;
	for (size_t i = 0; i < sizeof(v); i++)
		v[i] = (uint8_t)(i * i + i / 7);
	whole = codec_crc32c_sum(0, v, sizeof(v));
	for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
		sum = 0;
		for (size_t at = 0; at < sizeof(v); at += steps[k])
			sum = codec_crc32c_sum(sum, v + at, u64_min(steps[k], sizeof(v) - at));
		assert_int_equal(sum, whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
