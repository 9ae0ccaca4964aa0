/* SPDX-License-Identifier: BSD-3-Clause */
/* test_h5z.c - codecs as filters of HDF5: results, and unchanged buffers on failure. */
#include "tests/unit/codecs/util.h"

#include "codecs/export/h5z.h"

#define N 4000

static void *block(const void *bytes, size_t n)
{
	void *p = malloc(n ? n : 1);

	assert_non_null(p);
	if (n)
		memcpy(p, bytes, n);
	return p;
}

static void numbers(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i / 16);
}

struct call {
	const struct codec_ops *ops;
	unsigned params[8];
	size_t n_params;
};

static const struct call *each(size_t i)
{
	static struct call calls[] = {
		{.params = {0}, .n_params = 0},
		{.params = {2, 2, 4, N, 5, 1, 1}, .n_params = 7},
		{.params = {9}, .n_params = 1},
		{.params = {512}, .n_params = 1},
	};

	calls[0].ops = codec_find(CODEC_ZSTD);
	calls[1].ops = codec_find(CODEC_BLOSC);
	calls[2].ops = codec_find(CODEC_BZIP2);
	calls[3].ops = codec_find(CODEC_LZ4_HDF5);
	return i < ARRAY_LEN(calls) ? &calls[i] : NULL;
}

static size_t run(const struct call *c, size_t max, unsigned flags, size_t n, size_t *size,
		  void **buf)
{
	return codec_h5z(c->ops, max, flags, c->n_params, c->params, n, size, buf);
}

static void test_round_trip(void **state)
{
	static const size_t lengths[] = {1, 2, 15, 160, N};
	uint8_t want[N];
	const struct call *c;

	(void)state;
	numbers(want, N);
	for (size_t i = 0; (c = each(i)); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			size_t n = lengths[k], size = n, len;
			void *buf = block(want, n);

			len = run(c, CODEC_H5Z_MAX, 0, n, &size, &buf);
			assert_true(len > 0 && size >= len);
			len = run(c, CODEC_H5Z_MAX, CODEC_H5Z_REVERSE, len, &size, &buf);
			assert_int_equal(len, n);
			assert_true(size >= len);
			assert_memory_equal(buf, want, n);
			free(buf);
		}
}

/* A chunk that decodes to a thousand times what it takes: more than any first guess. */
static void test_much_from_little(void **state)
{
	size_t n = (size_t)16 << 20, size, len;
	const struct call *c;

	(void)state;
	for (size_t i = 0; (c = each(i)); i++) {
		void *buf = calloc(n, 1);

		assert_non_null(buf);
		size = n;
		len = run(c, CODEC_H5Z_MAX, 0, n, &size, &buf);
		assert_true(len > 0 && len < n / 10);
		len = run(c, CODEC_H5Z_MAX, CODEC_H5Z_REVERSE, len, &size, &buf);
		assert_int_equal(len, n);
		for (size_t k = 0; k < n; k++)
			assert_true(((uint8_t *)buf)[k] == 0);
		free(buf);
	}
}

/* Not more than the limit, whatever a chunk says. */
static void test_limit(void **state)
{
	uint8_t want[N];
	const struct call *c;

	(void)state;
	numbers(want, N);
	for (size_t i = 0; (c = each(i)); i++) {
		size_t size = N, len;
		void *buf = block(want, N), *was;

		len = run(c, CODEC_H5Z_MAX, 0, N, &size, &buf);
		was = buf;
		assert_int_equal(run(c, N - 1, CODEC_H5Z_REVERSE, len, &size, &buf), 0);
		assert_ptr_equal(buf, was);
		assert_int_equal(run(c, N, CODEC_H5Z_REVERSE, len, &size, &buf), N);
		assert_memory_equal(buf, want, N);
		free(buf);
	}
}

static void unchanged(const struct call *c, unsigned flags, const void *bytes, size_t n)
{
	void *buf = block(bytes, n), *was = buf;
	size_t size = n;

	assert_int_equal(run(c, CODEC_H5Z_MAX, flags, n, &size, &buf), 0);
	assert_ptr_equal(buf, was);
	assert_int_equal(size, n);
	if (n)
		assert_memory_equal(buf, bytes, n);
	free(buf);
}

static void test_failure_changes_nothing(void **state)
{
	uint8_t damaged[N];
	const struct call *c;
	void *nothing = NULL;
	size_t size = 0;

	(void)state;
	noise(damaged, N, 7);
	for (size_t i = 0; (c = each(i)); i++) {
		unchanged(c, CODEC_H5Z_REVERSE, damaged, N);
		unchanged(c, CODEC_H5Z_REVERSE, damaged, 1);
		unchanged(c, CODEC_H5Z_REVERSE, damaged, 0);
		unchanged(c, 0, damaged, 0);
		assert_int_equal(run(c, CODEC_H5Z_MAX, 0, 5, &size, &nothing), 0);
	}
}

/* What grows when encoded: stored plain where the dataset allows that, else longer. */
static void test_no_gain(void **state)
{
	uint8_t bytes[N];
	const struct call *c;

	(void)state;
	noise(bytes, N, 3);
	for (size_t i = 0; (c = each(i)); i++) {
		void *buf = block(bytes, N);
		size_t size = N, len = run(c, CODEC_H5Z_MAX, 0, N, &size, &buf);

		assert_true(len > N && size >= len);
		assert_int_equal(run(c, CODEC_H5Z_MAX, CODEC_H5Z_REVERSE, len, &size, &buf), N);
		assert_memory_equal(buf, bytes, N);
		free(buf);
		unchanged(c, CODEC_H5Z_OPTIONAL, bytes, N);
	}
}

/* A header that promises more than any chunk has costs no memory. */
static void test_huge_claim(void **state)
{
	const struct call *c = each(3);
	uint8_t head[32] = {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x10, 0, 0};

	(void)state;
	unchanged(c, CODEC_H5Z_REVERSE, head, sizeof(head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_much_from_little),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_failure_changes_nothing),
		cmocka_unit_test(test_no_gain),
		cmocka_unit_test(test_huge_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
