/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lzf.c - LZF on what h5py's filter stored: whole, cut, with bits flipped; by hand; and
 * there and back. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs_encode.h"

#define LEN_MAX 70000

enum kind { ZEROS, FEW, STEPS, FAR, NOISE, N_KINDS };

/* As h5py 3.7 stores a chunk of n bytes of content(), with compression="lzf"; read back with
 * read_direct_chunk. */
static const struct {
	enum kind kind;
	size_t n;
	const char *hex;
} vectors[] = {
	{ZEROS, 11, "010000a000010000"},
	{ZEROS, 300, "010000e0ff00e01700010000"},
	{ZEROS, 1000, "010000e0ff00e0ff00e0ff00e0c300010000"},
	{FEW, 100,
	 "0a010201030300010302020120040300000002200505030101010003400c000220050002"
	 "2001600e202002030201200d202401010120382019202c02020303201600022041401e20"
	 "10203d20362005202c20050002"},
	{FEW, 161,
	 "0a010201030300010302020120040300000002200505030101010003400c000220050002"
	 "2001600e202002030201200d202401010120382019202c02020303201600022041401e20"
	 "10203d20362005202c400500032023200f402b200f20062024205040162044203c201220"
	 "0c20224015202e0001207a2018203f010201"},
	{FAR, 1001,
	 "1f3d465913b7d815b71a36c9455b5a84a4647aab6620bbc5094d20930c5cecceba1cf70c"
	 "5cc60836dc2d48dfc0f0b92776979269409e740cc22309b1669555e0ff00e0ff00e0ff00"
	 "e04f00003de330ac016695"},
};

static const struct codec_spec lzf = {CODEC_LZF, 0, NULL, ""};
static const struct codec_chain chain = {1, &lzf};
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

/* content - n bytes: far ones have the first sixty again at the end. */
static void content(enum kind kind, size_t n, uint8_t *out)
{
	static uint8_t r[LEN_MAX];

	noise(r, n, 11);
	for (size_t i = 0; i < n; i++)
		switch (kind) {
		case ZEROS:
			out[i] = 0;
			break;
		case FEW:
			out[i] = r[i] & 3;
			break;
		case STEPS:
			out[i] = (uint8_t)(i / 4 * 3 >> 8 * (i % 4));
			break;
		case FAR:
			out[i] = i < 60 ? r[i] : i < n - 60 ? 0x55 : r[i - (n - 60)];
			break;
		default:
			out[i] = r[i];
		}
}

/* decode - n bytes to a new memory of len bytes, at odd addresses; same: they were `want`. */
static int decode(const uint8_t *in, size_t n, const uint8_t *want, size_t len, bool *ret_same)
{
	uint8_t *copy = malloc(n + 1), *out = malloc(len + 1);
	struct err e = ERR_INIT;
	int rc;

	assert_non_null(copy);
	assert_non_null(out);
	if (n > 0)
		memcpy(copy + 1, in, n);
	memset(out, 0xa5, len + 1);
	rc = codec_chain_decode(&chain, 0, 8, copy + 1, n, out + 1, len, scratch, &e);
	*ret_same = !rc && want && memcmp(out + 1, want, len) == 0;
	assert_int_equal(e.code, rc);
	free(copy);
	free(out);
	return rc;
}

static void test_vectors(void **state)
{
	static const int more[] = {-1, 1, 8, 4096};
	static uint8_t want[LEN_MAX], in[LEN_MAX];
	bool same;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		size_t n = from_hex(vectors[i].hex, in), len = vectors[i].n, got;
		const uint8_t *any;

		content(vectors[i].kind, len, want);
		if (decode(in, n, want, len, &same) || !same)
			fail_msg("vector %zu", i);
		for (size_t k = 0; k < ARRAY_LEN(more); k++)
			assert_int_equal(
				decode(in, n, NULL, (size_t)((int)len + more[k]), &same),
				-EBADMSG);
		assert_int_equal(codec_chain_decode_any(&chain, 1, in, n, len, scratch, &any,
							&got, NULL),
				 0);
		assert_int_equal(got, len);
		assert_int_equal(codec_chain_decode_any(&chain, 1, in, n, len - 1, scratch,
							&any, &got, NULL),
				 -ERANGE);
		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(decode(in, cut, want, len, &same), -EBADMSG);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			int rc;

			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(in, n, want, len, &same);
			assert_true(rc == 0 || rc == -EBADMSG);
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

static void test_by_hand(void **state)
{
	static const struct {
		const char *hex, *want; /* NULL: damaged */
	} rows[] = {
		{"0061", "61"},
		{"02616263", "616263"},
		{"006120002000", "61616161616161"}, /* the byte before, three times; twice */
		{"006162622002", NULL},             /* a run of one, then no such place */
		{"01616220012001", "6162616261626162"},
		{"0061e00000", "61616161616161616161"}, /* a length in a byte of its own */
		{"2000", NULL},                         /* nothing is before */
		{"00612001", NULL},
		{"0061ff00ff", NULL},
		{"006120", NULL},
		{"0061e000", NULL},
		{"1f61", NULL},
	};
	uint8_t in[64], want[64];
	bool same;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = from_hex(rows[i].hex, in);
		size_t len = rows[i].want ? from_hex(rows[i].want, want) : 8;
		int rc = decode(in, n, rows[i].want ? want : NULL, len, &same);

		if (rows[i].want ? rc != 0 || !same : rc != -EBADMSG)
			fail_msg("row %zu: %d", i, rc);
	}
}

static void test_round_trip(void **state)
{
	static const size_t lens[] = {0,    1,    2,    3,    4,    5,    31,    32,   33,
				      64,   121,  264,  265,  266,  267,  532,   1000, 8251,
				      8252, 8253, 8254, 8255, 8256, 8257, 16384, 70000};
	static uint8_t in[LEN_MAX];
	const struct codec_ops *ops = codec_find(CODEC_LZF);
	struct buf b, again;
	bool same;

	(void)state;
	buf_init(&b, 1 << 20);
	buf_init(&again, 1 << 20);
	for (size_t k = 0; k < N_KINDS * ARRAY_LEN(lens); k++) {
		enum kind kind = (enum kind)(k % N_KINDS);
		size_t n = lens[k / N_KINDS];
		uint8_t *z = malloc(ops->framed_size(n) + 1);

		assert_non_null(z);
		if (kind == FAR && n < 120)
			kind = STEPS;
		content(kind, n, in);
		buf_clear(&b);
		buf_clear(&again);
		assert_int_equal(encode_chain(&chain, 4, in, n, &b, NULL), 0);
		assert_int_equal(codec_chain_encode(&chain, 4, in, n, scratch, &again, NULL),
				 0);
		assert_int_equal(b.len, again.len);
		assert_true(b.len == 0 || memcmp(b.data, again.data, b.len) == 0);
		assert_true(b.len <= ops->framed_size(n) + 1);
		assert_true(b.len <= ops->stored_max(&lzf, n));
		if (kind == ZEROS && n > 64)
			assert_true(b.len < n / 8);
		if (decode(b.data, b.len, in, n, &same) || (n && !same))
			fail_msg("%zu bytes of kind %d", n, kind);
		assert_int_equal(codec_chain_frame(&chain, 4, in, n, z, NULL), 0);
		if (decode(z, ops->framed_size(n), in, n, &same) || (n && !same))
			fail_msg("%zu bytes of kind %d, framed", n, kind);
		free(z);
	}
	assert_int_equal(ops->framed_size(33), 35);
	assert_int_equal(ops->framed_size(UINT64_MAX - 5), 0);
	buf_release(&b);
	buf_release(&again);
}

static int prepare(const struct codec_spec *spec, const struct codec_array *a, uint32_t *params,
		   uint32_t *n)
{
	struct err e = ERR_INIT;
	int rc = codec_find(CODEC_LZF)->prepare(spec, a, params, n, &e);

	assert_int_equal(e.code, rc);
	return rc;
}

/* What h5py's get_filter says for such datasets: (4, 261, bytes). */
static void test_prepare(void **state)
{
	static const uint64_t chunk[] = {7, 9}, huge[] = {1u << 31, 2},
			      more[] = {UINT64_MAX, 2};
	static const uint32_t five[] = {9, 9, 9, 1, 2};
	const struct codec_spec user = {CODEC_LZF, 5, five, ""};
	struct codec_array a = {.elem_size = 8, .rank = 2, .chunk = chunk};
	uint32_t params[CODEC_PARAMS_MAX], n;

	(void)state;
	assert_int_equal(prepare(&lzf, &a, params, &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(params, ((uint32_t[]){4, 0x105, 504}), 12);
	assert_int_equal(prepare(&user, &a, params, &n), 0);
	assert_int_equal(n, 5);
	assert_memory_equal(params, ((uint32_t[]){4, 0x105, 504, 1, 2}), 20);
	a.chunk = huge;
	assert_int_equal(prepare(&lzf, &a, params, &n), -EOPNOTSUPP);
	a.chunk = more;
	assert_int_equal(prepare(&lzf, &a, params, &n), -EOPNOTSUPP);
	a.rank = 0;
	assert_int_equal(prepare(&lzf, &a, params, &n), 0);
	assert_int_equal(params[2], 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_prepare),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
