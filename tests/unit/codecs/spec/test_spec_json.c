/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spec_json.c - chains as the codecs of Zarr documents. */
#include "tests/unit/codecs/util.h"

#include "codecs/spec/spec.h"

static void json_of(const struct codec_spec *specs, uint32_t n, size_t elem_size, int version,
		    const char *want)
{
	const struct codec_chain chain = {.n = n, .specs = specs};
	struct buf b;

	buf_init(&b, 4096);
	codec_spec_json(&chain, elem_size, version, &b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	assert_string_equal((const char *)b.data, want);
	buf_release(&b);
}

static void json(const struct codec_spec *specs, uint32_t n, size_t elem_size, const char *want)
{
	json_of(specs, n, elem_size, 2, want);
}

static void test_chains(void **state)
{
	static const uint32_t five = 5, sz[] = {3, 0, 4294967295};
	static const struct codec_spec usual[] = {{CODEC_SHUFFLE, 0, NULL, ""},
						  {CODEC_DEFLATE, 1, &five, "deflate"}};
	static const struct codec_spec odd[] = {{32017, 3, sz, "SZ"},
						{40000, 0, NULL, "a\"\\b"}};
	static const struct codec_spec nameless[] = {{40000, 1, &five, ""}};
	static const struct codec_spec third[] = {{CODEC_CRC32C, 0, NULL, ""}};

	(void)state;
	json(NULL, 0, 8, "[]");
	json(usual, 2, 8,
	     "[{\"id\": \"shuffle\", \"elementsize\": 8}, {\"id\": \"zlib\", \"level\": 5}]");
	json(odd, 2, 8,
	     "[{\"id\": \"unknown\", \"name\": \"sz\", \"hdf5\": 32017, \"parameters\": "
	     "[3, 0, 4294967295]}, {\"id\": \"unknown\", \"name\": \"a\\\"\\\\b\", \"hdf5\": "
	     "40000, \"parameters\": []}]");
	json(nameless, 1, 8, "[{\"id\": \"unknown\", \"hdf5\": 40000, \"parameters\": [5]}]");
	json(third, 1, 8, "[{\"name\": \"crc32c\"}]");

	json_of(NULL, 0, 8, 3, "[]");
	json_of(usual, 2, 8, 3,
		"[{\"name\": \"numcodecs.shuffle\", \"configuration\": {\"elementsize\": 8}}, "
		"{\"name\": \"numcodecs.zlib\", \"configuration\": {\"level\": 5}}]");
	json_of(third, 1, 8, 3, "[{\"name\": \"crc32c\", \"configuration\": {}}]");
	json_of(nameless, 1, 8, 3,
		"[{\"id\": \"unknown\", \"hdf5\": 40000, \"parameters\": [5]}]");
}

static void test_no_room(void **state)
{
	static const struct codec_spec one[] = {{CODEC_FLETCHER32, 0, NULL, ""}};
	const struct codec_chain chain = {.n = 1, .specs = one};
	struct buf b;

	(void)state;
	for (size_t max = 0; max < 22; max++) {
		buf_init(&b, max);
		codec_spec_json(&chain, 4, max % 2 ? 3 : 2, &b);
		assert_false(buf_ok(&b));
		buf_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
