/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements without a fixed size: every framing, order and clipping; frames and lists that lie. */
#include "tests/unit/nczarr/source/zr_source_fake.h"
#include "tests/unit/codecs_encode.h"

static void put32(struct buf *b, uint32_t v)
{
	buf_put_le32(b, v);
}

static void put_text(struct buf *b, const char *s)
{
	put32(b, (uint32_t)strlen(s));
	buf_puts(b, s);
}

/* frame - a count and texts, "a", "bb", "ccc" ... */
static struct buf frame(uint32_t n)
{
	char text[32];
	struct buf b;

	buf_init(&b, 1 << 20);
	put32(&b, n);
	for (uint32_t i = 0; i < n; i++) {
		memset(text, 'a' + (int)i % 26, i % 30 + 1);
		text[i % 30 + 1] = '\0';
		put_text(&b, text);
	}
	return b;
}

static const uint64_t len[] = {3, 2};

static struct zr_meta *add(struct fake *f, enum zr_vlen vlen, const uint64_t *shape,
			   const uint64_t *chunk)
{
	static const struct dtype base = {.kind = DT_INT, .size = 4};
	struct zr_meta *m = fake_array(f, "t", 2, shape, chunk);
	bool list = vlen == ZR_VLEN_BYTES || vlen == ZR_VLEN_ARRAY;

	m->vlen = vlen;
	m->dtype = (struct zr_dtype){
		.type = {.kind = list ? DT_VLEN : DT_VSTRING, .base = list ? &base : NULL}};
	f->a[0].access = DS_VARIABLE;
	f->a[0].fill = NULL;
	f->a[0].fill_text = (struct ds_text){"fill", 4};
	return m;
}

/* read_body - a chunk's body; the caller releases it. */
static int read_body(struct fake *f, uint64_t linear, struct buf *out)
{
	buf_init(out, 1 << 20);
	f->e = (struct err)ERR_INIT;
	return zr_read_vlen(&f->s.base, 0, linear, out, &f->e);
}

static void check_body(struct fake *f, uint64_t linear, const struct buf *want)
{
	struct buf out;

	assert_int_equal(read_body(f, linear, &out), 0);
	assert_int_equal(out.len, want->len);
	assert_memory_equal(out.data, want->data, want->len);
	buf_release(&out);
}

static void fails(struct fake *f, int code)
{
	struct buf out;

	assert_int_equal(read_body(f, 0, &out), code);
	assert_non_null(strstr(f->e.msg, "'t/0.0'"));
	buf_release(&out);
}

static void test_texts(void **state)
{
	const uint32_t level[] = {1};
	const struct codec_spec zip[] = {
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""}};
	struct buf b = frame(6), want, packed, fill;
	const uint64_t shape[] = {6, 2};
	struct fake f;

	(void)state;
	buf_init(&packed, 1 << 20);
	buf_init(&fill, 1 << 20);
	assert_int_equal(
		encode_chain(&(struct codec_chain){1, zip}, 1, b.data, b.len, &packed, NULL),
		0);
	for (int i = 0; i < 6; i++)
		put_text(&fill, "fill");
	for (int i = 0; i < 2; i++) {
		fake_init(&f, false);
		if (i)
			add(&f, ZR_VLEN_UTF8, shape, len)->chain = (struct codec_chain){1, zip};
		else
			add(&f, ZR_VLEN_UTF8, shape, len);
		fake_put(&f, "t/0.0", i ? packed.data : b.data, i ? packed.len : b.len);
		fake_start(&f);
		assert_int_equal(fake_where(&f, 0, 0), CHUNK_SYNTH);
		assert_int_equal(fake_where(&f, 0, 1), CHUNK_ABSENT);
		want = b;
		want.data += 4;
		want.len -= 4;
		check_body(&f, 0, &want);
		check_body(&f, 1, &fill);
		fake_release(&f);
	}
	buf_release(&b);
	buf_release(&packed);
	buf_release(&fill);
}

static void test_order_and_clip(void **state)
{
	const uint64_t shape[] = {2, 2};
	const uint32_t order[] = {1, 0};
	struct buf b = frame(6), want;
	struct fake f;

	(void)state;
	/* stored by columns: element (r, c) is number 3 * c + r; the third row is cut off */
	buf_init(&want, 1024);
	put_text(&want, "a");
	put_text(&want, "dddd");
	put_text(&want, "bb");
	put_text(&want, "eeeee");
	fake_init(&f, false);
	add(&f, ZR_VLEN_UTF8, shape, len)->order = order;
	fake_put(&f, "t/0.0", b.data, b.len);
	fake_start(&f);
	check_body(&f, 0, &want);
	fake_release(&f);
	buf_release(&b);
	buf_release(&want);
}

/* NCZarr's strings: bytes of the dtype, shuffled by them; half a character at the end is left out,
 * other bytes that are no UTF-8 are damage; so is another length of the chunk. */
static void test_fixed(void **state)
{
	static const struct codec_spec mixed[] = {{.h5_id = CODEC_SHUFFLE, .name = ""}};
	const uint64_t shape[] = {3, 2};
	const char stored[] = "a\0\0\0abcd\0\0\0\0abc\xc3"
			      "ab\xe6\x97"
			      "\0b\0\0";
	struct buf want, packed;
	struct fake f;

	(void)state;
	buf_init(&want, 1024);
	buf_init(&packed, 1024);
	for (size_t i = 0; i < 6; i++)
		put_text(&want, (const char *[]){"a", "abcd", "", "abc", "ab", ""}[i]);
	assert_int_equal(encode_chain(&(struct codec_chain){1, mixed}, 4,
				      (const uint8_t *)stored, 24, &packed, NULL),
			 0);
	for (int i = 0; i < 4; i++) {
		struct zr_meta *m;

		fake_init(&f, false);
		m = add(&f, ZR_VLEN_FIXED, shape, len);
		m->dtype.stored = 4;
		if (i == 1)
			m->chain = (struct codec_chain){1, mixed};
		if (i == 3)
			packed.data[0] = 0xff;
		fake_put(&f, "t/0.0", i & 1 ? packed.data : (const uint8_t *)stored,
			 i == 2 ? 23 : 24);
		fake_start(&f);
		if (i < 2)
			check_body(&f, 0, &want);
		else
			fails(&f, -EBADMSG);
		fake_release(&f);
	}
	buf_release(&want);
	buf_release(&packed);
}

static void test_lists(void **state)
{
	struct buf b, want;
	struct fake f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fake_init(&f, false);
		add(&f, i ? ZR_VLEN_ARRAY : ZR_VLEN_BYTES, len, len);
		buf_init(&b, 1024);
		put32(&b, 6);
		for (uint32_t k = 0; k < 6; k++) {
			put32(&b, 4 * k);
			for (uint32_t v = 0; v < k; v++)
				put32(&b, 0xfffefdfc + v);
		}
		fake_put(&f, "t/0.0", b.data, b.len);
		fake_start(&f);
		want = b;
		want.data += 4;
		want.len -= 4;
		check_body(&f, 0, &want);
		/* three bytes are no number */
		b.data[4] = 3;
		memmove(b.data + 11, b.data + 8, b.len - 8);
		fake_put(&f, "t/0.0", b.data, b.len + 3);
		fails(&f, -EBADMSG);
		fake_release(&f);
		buf_release(&b);
	}
}

/* Counts, lengths and texts that are not right; each with and without an order, which takes
 * another way. */
static void test_lies(void **state)
{
	const uint32_t order[] = {1, 0};

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct buf b = frame(6);
		struct zr_meta *m;
		struct fake f;
		size_t n = b.len;

		fake_init(&f, false);
		m = add(&f, ZR_VLEN_UTF8, len, len);
		m->order = i % 2 ? order : NULL;
		switch (i / 2) {
		case 0:
			b.data[0] = 7;
			break;
		case 1:
			b.data[0] = 5;
			break;
		case 2:
			b.data[3] = 0xff;
			break;
		case 3:
			b.data[7] = 0xff;
			break;
		case 4:
			n--;
			break;
		case 5:
			n = 3;
			break;
		case 6:
			b.data[8] = 0xff;
			break;
		default:
			buf_putc(&b, 'x');
			n++;
			break;
		}
		fake_put(&f, "t/0.0", b.data, n);
		fake_start(&f);
		fails(&f, -EBADMSG);
		fake_release(&f);
		buf_release(&b);
	}
}

/* A count that would take more memory than anybody has. */
static void test_huge_count(void **state)
{
	const uint64_t shape[] = {1 << 13, 1 << 13};
	const uint32_t order[] = {1, 0};
	struct fake f;

	(void)state;
	fake_init(&f, false);
	add(&f, ZR_VLEN_UTF8, shape, shape)->order = order;
	fake_put(&f, "t/0.0", "\0\0\0\4\0\0\0\0", 8);
	fake_start(&f);
	fails(&f, -EBADMSG);
	fake_release(&f);
}

/* ---- JSON ---- */

static int read_json(struct fake *f, const char *doc, struct buf *out)
{
	fake_init(f, false);
	add(f, ZR_VLEN_JSON, len, len);
	fake_put(f, "t/0.0", doc, strlen(doc));
	fake_start(f);
	return read_body(f, 0, out);
}

static void test_json(void **state)
{
	static const char *const good[] = {
		"[\"a\",\"\\u00e9\",null,\"\",\"a\\u0000b\",\"\\ud83d\\ude00\",\"|O\",[6]]",
		"[[\"a\",\"\xc3\xa9\"],[null,\"\"],[\"a\\u0000b\",\"\\ud83d\\ude00\"],\"|O\",["
		"3,2]]",
		" [ [\"a\"], [\"\xc3\xa9\", null], \"\", [[\"a\\u0000b\"], "
		"\"\xf0\x9f\x98\x80\"], \"|O\", [] ]"};
	struct buf want, out;
	struct fake f;

	(void)state;
	buf_init(&want, 1024);
	put_text(&want, "a");
	put_text(&want, "\xc3\xa9");
	put_text(&want, "");
	put_text(&want, "");
	put32(&want, 3);
	buf_put(&want, "a\0b", 3);
	put_text(&want, "\xf0\x9f\x98\x80");
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(read_json(&f, good[i], &out), 0);
		assert_int_equal(out.len, want.len);
		assert_memory_equal(out.data, want.data, want.len);
		buf_release(&out);
		fake_release(&f);
	}
	buf_release(&want);
}

static void test_bad_json(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"{}",
		"[]",
		"[\"|O\",[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"|O\",[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"|O\",[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",6,\"|O\",[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",{},\"|O\",[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"|O\",6]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",8,[6]]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"|O\",[6]",
		"[\"a\",\"b\",\"c\",\"d\",\"e\",\"\xff\",\"|O\",[6]]"};
	char *many = test_malloc(300000);
	struct buf out;
	struct fake f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(read_json(&f, bad[i], &out), -EBADMSG);
		assert_non_null(strstr(f.e.msg, "'t/0.0'"));
		buf_release(&out);
		fake_release(&f);
	}
	many[0] = '[';
	for (size_t i = 1; i < 299999; i++)
		many[i] = i % 2 ? '1' : ',';
	many[299999] = '\0';
	assert_int_equal(read_json(&f, many, &out), -EBADMSG);
	assert_non_null(strstr(f.e.msg, "is not a string"));
	buf_release(&out);
	fake_release(&f);
	test_free(many);
}

/* The caller's ceiling holds, for what is stored and for what is not. */
static void test_ceiling(void **state)
{
	struct buf b = frame(6), out;
	struct fake f;

	(void)state;
	fake_init(&f, false);
	add(&f, ZR_VLEN_UTF8, (const uint64_t[]){6, 2}, len);
	fake_put(&f, "t/0.0", b.data, b.len);
	fake_start(&f);
	for (uint64_t i = 0; i < 2; i++) {
		buf_init(&out, 20);
		assert_int_equal(zr_read_vlen(&f.s.base, 0, i, &out, &f.e), -ERANGE);
		buf_release(&out);
	}
	fake_release(&f);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),      cmocka_unit_test(test_order_and_clip),
		cmocka_unit_test(test_lists),      cmocka_unit_test(test_lies),
		cmocka_unit_test(test_huge_count), cmocka_unit_test(test_json),
		cmocka_unit_test(test_bad_json),   cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
