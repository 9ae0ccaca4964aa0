/* SPDX-License-Identifier: BSD-3-Clause */
/* Rearranging against the plainest way to say it, over random shapes and orders; texts of UTF-32;
 * structures. */
#include "tests/unit/nczarr/source/zr_source_fake.h"

static uint32_t seed = 1;

static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* plainly - what zr_rearrange has to do, element by element. */
static void plainly(const struct ds_array *a, const struct zr_place *p, size_t size,
		    const uint8_t *in, uint8_t *out)
{
	const struct zr_meta *m = p->meta;
	uint64_t at[8], n = 1;

	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d];
	for (uint64_t i = 0; i < n; i++) {
		uint64_t from = 0;

		grid_coords(a->rank, a->chunk, i, at);
		for (uint32_t k = 0; k < a->rank; k++) {
			uint32_t d = m->order ? m->order[k] : k;

			from = from * p->array->stored[d] + at[d];
		}
		memcpy(out + i * size, in + from * size, size);
	}
}

static void check(uint32_t rank, const uint64_t *stored, const uint64_t *chunk,
		  const uint32_t *order, size_t size)
{
	struct zr_meta m = {.rank = rank, .order = order};
	struct zr_array x = {.meta = &m, .stored = stored};
	struct zr_place *p = test_calloc(1, sizeof(*p));
	struct ds_array a = {.rank = rank, .chunk = chunk};
	uint64_t n_in = size, n_out = size;
	uint8_t *in, *out, *want;

	p->meta = &m;
	p->array = &x;
	for (uint32_t d = 0; d < rank; d++) {
		n_in *= stored[d];
		n_out *= chunk[d];
	}
	in = test_malloc(n_in);
	out = test_calloc(1, n_out);
	want = test_calloc(1, n_out);
	for (uint64_t i = 0; i < n_in; i++)
		in[i] = (uint8_t)dice(256);
	plainly(&a, p, size, in, want);
	zr_rearrange(&m, stored, rank, chunk, size, false, in, out);
	assert_memory_equal(out, want, n_out);
	test_free(want);
	test_free(out);
	test_free(in);
	test_free(p);
}

static void test_random(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 17};

	(void)state;
	for (int round = 0; round < 3000; round++) {
		uint64_t stored[6], chunk[6], n = 1;
		uint32_t rank = dice(6), order[6];

		for (uint32_t d = 0; d < rank; d++) {
			stored[d] = 1 + dice(n > 500 ? 3 : 9);
			chunk[d] = dice(3) ? stored[d] : 1 + dice((uint32_t)stored[d]);
			n *= stored[d];
			order[d] = d;
		}
		for (uint32_t d = rank; d > 1; d--) {
			uint32_t k = dice(d), keep = order[d - 1];

			order[d - 1] = order[k];
			order[k] = keep;
		}
		check(rank, stored, chunk, dice(4) ? order : NULL,
		      sizes[dice(ARRAY_LEN(sizes))]);
	}
}

static void test_tiles(void **state)
{
	const uint64_t large[] = {100, 67}, cut[] = {97, 33}, planes[] = {70, 3, 45};
	const uint32_t turned[] = {1, 0}, turned3[] = {2, 1, 0}, moved[] = {1, 2, 0};

	(void)state;
	check(2, large, large, turned, 4);
	check(2, large, cut, turned, 8);
	check(2, large, cut, NULL, 1);
	check(3, planes, planes, turned3, 2);
	check(3, planes, planes, moved, 16);
}

/* ---- texts ---- */

static void test_utf32(void **state)
{
	/* 'a', U+00E9, U+20AC, U+1F600; then one character and zeros; then a NUL inside */
	const uint32_t texts[3][4] = {
		{0x61, 0xe9, 0x20ac, 0x1f600}, {0x10ffff}, {0x62, 0, 0x63}};
	static const char want[3][16] = {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
					 "\xf4\x8f\xbf\xbf", "b\0c"};
	uint8_t p[48];

	(void)state;
	for (int big = 0; big < 2; big++) {
		for (size_t i = 0; i < 12; i++)
			for (size_t k = 0; k < 4; k++)
				p[4 * i + k] =
					(uint8_t)(texts[i / 4][i % 4] >> 8 * (big ? 3 - k : k));
		assert_int_equal(zr_utf32(p, 3, 16, big != 0, NULL), 0);
		assert_memory_equal(p, want, 48);
	}
	/* every character takes its four bytes */
	for (size_t i = 0; i < 48; i += 4)
		memcpy(p + i, "\0\1\xf6\0", 4);
	memset(p, 0, 4);
	memcpy(p, "\0\xf6\1\0", 4);
	assert_int_equal(zr_utf32(p, 1, 4, false, NULL), 0);
	assert_memory_equal(p, "\xf0\x9f\x98\x80", 4);
}

static void test_bad_utf32(void **state)
{
	static const uint32_t bad[] = {0xd800, 0xdfff, 0x110000, 0xffffffff};
	struct err e = ERR_INIT;
	uint8_t p[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memset(p, 0, sizeof(p));
		for (size_t k = 0; k < 4; k++)
			p[4 + k] = (uint8_t)(bad[i] >> 8 * k);
		assert_int_equal(zr_utf32(p, 2, 4, false, &e), -EBADMSG);
		assert_int_equal(zr_utf32(p, 1, 8, false, &e), -EBADMSG);
	}
	/* the same bytes are a character in the other order */
	memcpy(p, "\0\0\xd7\xff", 4);
	assert_int_equal(zr_utf32(p, 1, 4, true, NULL), 0);
}

static void test_fields(void **state)
{
	/* a byte, a gap of three, a number of four, a gap; packed behind each other */
	const struct zr_field moves[] = {{0, 0, 1}, {4, 1, 4}};
	const struct zr_dtype t = {.type = {.kind = DT_COMPOUND, .size = 5},
				   .stored = 12,
				   .conv = ZR_FIELDS,
				   .n_moves = 2,
				   .moves = moves};
	const uint8_t in[] = "A---1234----B---5678----";
	uint8_t out[10];

	(void)state;
	zr_fields(&t, 2, false, in, out);
	assert_memory_equal(out, "A1234B5678", 10);
}

/* ---- the whole way, through a source ---- */

static void test_clipped(void **state)
{
	/* the chunk is longer than the array on both axes, stored with the axes exchanged */
	const uint64_t shape[] = {3, 2}, chunk[] = {5, 4};
	const uint32_t order[] = {1, 0};
	uint32_t stored[20], v[6];
	struct fake f;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		stored[i] = i;
	fake_init(&f, false);
	fake_array(&f, "t", 2, shape, chunk)->order = order;
	f.a[0].access = DS_CONVERT;
	fake_put(&f, "t/0.0", stored, sizeof(stored));
	fake_start(&f);
	assert_int_equal(f.a[0].chunk_bytes, sizeof(v));
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_SYNTH);
	assert_int_equal(fake_read(&f, 0, 0, v), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(v[i], i % 2 * 5 + i / 2);
	fake_release(&f);
}

static void test_text_chunk(void **state)
{
	const uint64_t shape[] = {4}, chunk[] = {2};
	uint8_t stored[16] = "\0\0\0\x61\0\0\0\xe9\0\0\0\x62\0\0\0", out[16];
	struct zr_meta *m;
	struct fake f;

	(void)state;
	fake_init(&f, false);
	m = fake_array(&f, "t", 1, shape, chunk);
	m->dtype = (struct zr_dtype){.type = {.kind = DT_STRING, .size = 8},
				     .stored = 8,
				     .conv = ZR_UTF32,
				     .big = true};
	f.a[0].access = DS_CONVERT;
	f.a[0].fill = (const uint8_t *)"fill\0\0\0";
	fake_put(&f, "t/0", stored, 16);
	fake_start(&f);
	assert_int_equal(fake_read(&f, 0, 0, out), 0);
	assert_memory_equal(out, "a\xc3\xa9\0\0\0\0\0b\0\0\0\0\0\0\0", 16);
	assert_int_equal(fake_read(&f, 0, 1, out), 0);
	assert_memory_equal(out, "fill\0\0\0\0fill\0\0\0\0", 16);
	stored[0] = 1;
	fake_put(&f, "t/0", stored, 16);
	assert_int_equal(fake_read(&f, 0, 0, out), -EBADMSG);
	assert_non_null(strstr(f.e.msg, "'t/0'"));
	fake_release(&f);
}

static void test_fields_chunk(void **state)
{
	const uint64_t shape[] = {2, 2}, chunk[] = {2, 2};
	const struct zr_field moves[] = {{1, 0, 1}, {3, 1, 2}};
	const uint32_t order[] = {1, 0};
	uint8_t out[12];
	struct zr_meta *m;
	struct fake f;

	(void)state;
	fake_init(&f, false);
	m = fake_array(&f, "t", 2, shape, chunk);
	m->dtype = (struct zr_dtype){.type = {.kind = DT_COMPOUND, .size = 3},
				     .stored = 5,
				     .conv = ZR_FIELDS,
				     .n_moves = 2,
				     .moves = moves};
	m->order = order;
	f.a[0].access = DS_CONVERT;
	fake_put(&f, "t/0.0", "-a-12-b-34-c-56-d-78", 20);
	fake_start(&f);
	assert_int_equal(fake_read(&f, 0, 0, out), 0);
	assert_memory_equal(out, "a12c56b34d78", 12);
	fake_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),     cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_utf32),      cmocka_unit_test(test_bad_utf32),
		cmocka_unit_test(test_fields),     cmocka_unit_test(test_clipped),
		cmocka_unit_test(test_text_chunk), cmocka_unit_test(test_fields_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
