/* SPDX-License-Identifier: BSD-3-Clause */
/* test_vlen.c - object arrays as numcodecs stores them: to bodies and back to the same
 * bytes; cut, with bits flipped, of other counts; and JSON that is none. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/vlen/vectors_vlen.h"

#define BYTES_MAX 4096

struct vec {
	const struct vlen_vector *v;
	uint8_t body[BYTES_MAX], stored[BYTES_MAX];
	size_t body_len, len;
	uint64_t n;
};

static void vec_open(struct vec *x, const struct vlen_vector *v)
{
	assert_true(strlen(v->body) / 2 <= BYTES_MAX && strlen(v->stored) / 2 <= BYTES_MAX);
	x->v = v;
	x->body_len = from_hex(v->body, x->body);
	x->len = from_hex(v->stored, x->stored);
	x->n = 1;
	for (uint32_t d = 0; d < v->rank; d++)
		x->n *= v->shape[d];
}

/* decode - len bytes, copied to where they end with their memory. same: they gave the body. */
static int decode(const struct vec *x, const uint8_t *in, size_t len, uint64_t n, size_t max,
		  bool *ret_same, struct err *e)
{
	uint8_t *copy = malloc(len ? len : 1);
	const uint8_t *got;
	struct buf room;
	size_t got_len;
	int rc;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, in, len);
	buf_init(&room, max);
	*e = (struct err)ERR_INIT;
	rc = codec_vlen_decode(x->v->vlen, x->v->size, copy, len, n, &room, &got, &got_len, e);
	*ret_same = !rc && got_len == x->body_len &&
		    (got_len == 0 || memcmp(got, x->body, got_len) == 0);
	assert_int_equal(e->code, rc);
	buf_release(&room);
	free(copy);
	return rc;
}

static void test_whole(void **state)
{
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vlen_vectors); i++) {
		struct vec x;
		struct buf out;
		bool same;
		int rc;

		vec_open(&x, &vlen_vectors[i]);
		rc = decode(&x, x.stored, x.len, x.n, 1 << 20, &same, &e);
		if (rc || !same)
			fail_msg("%s, %s: %d %s", x.v->what, codec_vlen_id(x.v->vlen), rc,
				 e.msg);
		buf_init(&out, 1 << 20);
		buf_puts(&out, "front");
		assert_int_equal(codec_vlen_encode(x.v->vlen, x.v->size, x.body, x.body_len,
						   x.v->rank, x.v->shape, &out, NULL),
				 0);
		assert_memory_equal(out.data, "front", 5);
		if (out.len != 5 + x.len || memcmp(out.data + 5, x.stored, x.len) != 0)
			fail_msg("%s, %s: %.*s", x.v->what, codec_vlen_id(x.v->vlen),
				 (int)(out.len - 5), (const char *)out.data + 5);
		buf_release(&out);
	}
}

static void test_damaged(void **state)
{
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vlen_vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &vlen_vectors[i]);
		for (size_t len = 0; len < x.len; len++)
			assert_int_equal(decode(&x, x.stored, len, x.n, 1 << 20, &same, &e),
					 -EBADMSG);
		assert_int_equal(decode(&x, x.stored, x.len, x.n + 1, 1 << 20, &same, &e),
				 -EBADMSG);
		if (x.n > 0)
			assert_int_equal(
				decode(&x, x.stored, x.len, x.n - 1, 1 << 20, &same, &e),
				-EBADMSG);
		assert_int_equal(decode(&x, x.stored, x.len, UINT64_MAX, 1 << 20, &same, &e),
				 -EBADMSG);
		x.stored[x.len] = ',';
		assert_int_equal(decode(&x, x.stored, x.len + 1, x.n, 1 << 20, &same, &e),
				 -EBADMSG);
		for (size_t bit = 0; bit < 8 * x.len; bit++) {
			int rc;

			x.stored[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(&x, x.stored, x.len, x.n, 1 << 20, &same, &e);
			assert_true(rc == 0 || rc == -EBADMSG);
			x.stored[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		/* room for less than there is */
		if (x.v->vlen == CODEC_VLEN_JSON2 && x.n > 0)
			assert_int_equal(
				decode(&x, x.stored, x.len, x.n, x.body_len - 1, &same, &e),
				-ERANGE);
	}
}

/* Bodies that are none, and room that is too small: nothing is appended. */
static void test_bad_bodies(void **state)
{
	static const uint64_t two[] = {2}, huge[] = {1u << 31, 2},
			      wrap[] = {1u << 31, 1u << 31, 4};
	static const enum codec_vlen all[] = {CODEC_VLEN_UTF8, CODEC_VLEN_BYTES,
					      CODEC_VLEN_ARRAY, CODEC_VLEN_JSON2};
	static const uint8_t body[] = "\1\0\0\0a\2\0\0\0bc", latin[] = "\0\0\0\0\1\0\0\0\xe9";
	struct buf out;

	(void)state;
	buf_init(&out, 40);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const bool text = all[i] == CODEC_VLEN_UTF8 || all[i] == CODEC_VLEN_JSON2;

		for (size_t len = 0; len < 11; len++)
			assert_int_equal(
				codec_vlen_encode(all[i], 1, body, len, 1, two, &out, NULL),
				-EBADMSG);
		assert_int_equal(codec_vlen_encode(all[i], 2, body, 11, 1, two, &out, NULL),
				 -EBADMSG);
		assert_int_equal(codec_vlen_encode(all[i], 1, body, 11, 2, huge, &out, NULL),
				 -ERANGE);
		assert_int_equal(codec_vlen_encode(all[i], 1, body, 11, 3, wrap, &out, NULL),
				 -ERANGE);
		assert_int_equal(out.len, 0);
		assert_int_equal(codec_vlen_encode(all[i], 1, latin, 9, 1, two, &out, NULL),
				 text ? -EBADMSG : 0);
		buf_clear(&out);
	}
	/* a scalar is one element; numcodecs has no list for it */
	assert_int_equal(codec_vlen_encode(CODEC_VLEN_UTF8, 1, body, 5, 0, NULL, &out, NULL),
			 0);
	assert_int_equal(out.len, 9);
	assert_int_equal(codec_vlen_encode(CODEC_VLEN_JSON2, 1, body, 5, 0, NULL, &out, NULL),
			 -EOPNOTSUPP);
	assert_int_equal(out.len, 9);
	out.max = 20;
	assert_int_equal(codec_vlen_encode(CODEC_VLEN_JSON2, 1, body, 11, 1, two, &out, NULL),
			 -ERANGE);
	assert_int_equal(out.len, 9);
	buf_release(&out);
}

/* Valid and invalid JSON for Python: two strings, or damage. */
static void test_json(void **state)
{
	static const struct {
		const char *doc;
		bool good;
	} rows[] = {
		{"[\"a\",\"\\u00e9\",\"|O\",[2]]", true},
		{" [ \"\\u0061\" ,\n[[\"\xc3\xa9\"]]\t, \"|O\" , [ 2 , -3, [], true ] ] \r\n",
		 true},
		{"[[],[\"a\",[\"\\u00E9\"]],\"|O\",[]]", true},
		{"[\"a\",\"\\u00e9\",\"|O\",[2]]]", false},
		{"[\"a\",\"\\u00e9\",\"|O\",[2],]", false},
		{"[\"a\",,\"\\u00e9\",\"|O\",[2]]", false},
		{"[,\"a\",\"\\u00e9\",\"|O\",[2]]", false},
		{"[\"a\" \"\\u00e9\",\"|O\",[2]]", false},
		{"[\"a\",\"\\u00e9\",\"|O\",[2]", false},
		{"[\"a\",\"\\u00e9\",\"|O\",2]", false},
		{"[\"a\",\"\\u00e9\",null,[2]]", false},
		{"[\"a\",\"\\u00e9\",[2],\"|O\"]", false},
		{"[\"a\",1,\"|O\",[2]]", false},
		{"[\"a\",[1],\"\\u00e9\",\"|O\",[2]]", false},
		{"[\"a\",{\"b\":1},\"|O\",[2]]", false},
		{"[\"a\",\"\\u00e9\",\"\",\"|O\",[2]]", false},
		{"[\"a\",\"|O\",[2]]", false},
		{"[\"a\",\"\xe9\",\"|O\",[2]]", false},
		{"[\"a\",\"\xc3\",\"|O\",[2]]", false},
		{"[\"a\",\"\\ud83d\",\"|O\",[2]]", false},
		{"[\"a\",\"\\ud83d\\n\",\"|O\",[2]]", false},
		{"[\"a\",\"\\ud83d\\ud83d\",\"|O\",[2]]", false},
		{"[\"a\",\"\\ude00\",\"|O\",[2]]", false},
		{"[\"a\",\"\\u00g9\",\"|O\",[2]]", false},
		{"[\"a\",\"\\x\",\"|O\",[2]]", false},
		{"[\"a\",\"\n\",\"|O\",[2]]", false},
		{"[\"a\",\"b\\", false},
		{"[\"a\",\"b\\u00", false},
		{"[nul]", false},
		{"\"a\"", false},
		{"{}", false},
		{"", false},
		{"  ", false},
	};
	static const uint8_t want[] = "\1\0\0\0a\2\0\0\0\xc3\xa9";
	static const struct vlen_vector v = {.vlen = CODEC_VLEN_JSON2, .size = 1};
	struct vec x = {.v = &v, .body_len = sizeof(want) - 1};
	char deep[200];
	struct err e;
	bool same;

	(void)state;
	memcpy(x.body, want, x.body_len);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rc = decode(&x, (const uint8_t *)rows[i].doc, strlen(rows[i].doc), 2, 4096,
				&same, &e);

		if (rows[i].good ? rc != 0 || !same : rc != -EBADMSG)
			fail_msg("%s: %d %s", rows[i].doc, rc, e.msg);
	}
	memset(deep, '[', sizeof(deep));
	assert_int_equal(decode(&x, (const uint8_t *)deep, sizeof(deep), 2, 4096, &same, &e),
			 -EBADMSG);
	assert_non_null(strstr(e.msg, "nested lists"));
}

static void test_names(void **state)
{
	(void)state;
	for (enum codec_vlen v = CODEC_VLEN_UTF8; v <= CODEC_VLEN_JSON2; v++)
		assert_int_equal(codec_vlen_find(codec_vlen_id(v), strlen(codec_vlen_id(v))),
				 v);
	assert_int_equal(codec_vlen_find("vlen-utf8x", 9), CODEC_VLEN_UTF8);
	assert_int_equal(codec_vlen_find("vlen-utf8x", 10), CODEC_VLEN_NONE);
	assert_int_equal(codec_vlen_find("", 0), CODEC_VLEN_NONE);
	assert_int_equal(codec_vlen_find("json", 4), CODEC_VLEN_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),      cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_bad_bodies), cmocka_unit_test(test_json),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
