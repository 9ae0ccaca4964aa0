/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards, made by hand level by level: every place and form of an index, transposed axes, shards in
 * shards, codecs around them; and indexes that lie. An element's value is its linear index. */
#include "tests/unit/nczarr/source/zr_source_fake.h"
#include "tests/unit/codecs_encode.h"

/* ---- writing shards ---- */

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;

	while (n-- > 0) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void put64(struct buf *b, uint64_t v, bool big)
{
	for (int i = 0; i < 8; i++)
		buf_putc(b, (char)(v >> 8 * (big ? 7 - i : i)));
}

/* there - whether the chunk at these coordinates (in chunks) was written. */
static bool there(const struct zr_meta *m, const uint64_t *at)
{
	uint64_t h = 17;

	for (uint32_t d = 0; d < m->rank; d++)
		h = h * 31 + at[d];
	return h * 2654435761u % 97 < 60;
}

/* put_chunk - elements of the chunk whose first element is at `from`, in stored order. */
static void put_chunk(const struct zr_meta *m, const uint64_t *len, const uint64_t *from,
		      struct buf *out)
{
	uint64_t k[3] = {0}, total = 1;
	uint32_t order[3];

	for (uint32_t d = 0; d < m->rank; d++) {
		order[d] = m->order ? m->order[d] : d;
		total *= len[d];
	}
	for (uint64_t i = 0; i < total; i++) {
		uint64_t left = i, v = 0;

		for (uint32_t s = m->rank; s-- > 0;) {
			k[order[s]] = left % len[order[s]];
			left /= len[order[s]];
		}
		for (uint32_t d = 0; d < m->rank; d++)
			v = v * m->shape[d] + from[d] + k[d];
		buf_put_le32(out, (uint32_t)v);
	}
}

/* put_shard - one level; the chunks in it are in an order that is not the index's. */
static void put_shard(const struct zr_meta *m, const struct zr_shard *sh, const uint64_t *from,
		      struct buf *out)
{
	uint64_t *v = test_malloc(16 * (size_t)sh->n),
		 base = sh->index_first ? sh->index_bytes : 0;
	struct buf body, index, plain;

	buf_init(&body, 1 << 24);
	buf_init(&index, 1 << 24);
	buf_init(&plain, 1 << 24);
	for (uint64_t i = sh->n; i-- > 0;) {
		uint64_t left = i, c[3], at[3];
		bool stored = true;

		for (uint32_t k = m->rank; k-- > 0;) {
			uint32_t d = sh->order ? sh->order[k] : k;

			c[d] = left % sh->grid[d];
			left /= sh->grid[d];
			at[d] = from[d] + c[d] * sh->inner[d];
			stored = stored && at[d] < m->shape[d];
		}
		v[2 * i] = v[2 * i + 1] = UINT64_MAX;
		for (uint32_t d = 0; d < m->rank; d++)
			c[d] = at[d] / sh->inner[d];
		if (!stored || (!sh->next && !there(m, c)))
			continue;
		v[2 * i] = base + body.len;
		if (sh->next)
			put_shard(m, sh->next, at, &body);
		else
			put_chunk(m, sh->inner, at, &body);
		v[2 * i + 1] = base + body.len - v[2 * i];
	}
	for (uint64_t i = 0; i < 2 * sh->n; i++)
		put64(&index, v[i], sh->index_big);
	if (sh->index.n > 0)
		buf_put_le32(&index, crc32c(index.data, index.len));
	assert_int_equal(index.len, sh->index_bytes);
	buf_put(&plain, sh->index_first ? index.data : body.data,
		sh->index_first ? index.len : body.len);
	buf_put(&plain, sh->index_first ? body.data : index.data,
		sh->index_first ? body.len : index.len);
	if (sh->outer.n == 1 && sh->outer.specs[0].h5_id == CODEC_CRC32C) {
		buf_put(out, plain.data, plain.len);
		buf_put_le32(out, crc32c(plain.data, plain.len));
	} else {
		assert_int_equal(encode_chain(&sh->outer, 1, plain.data, plain.len, out, NULL),
				 0);
	}
	buf_release(&plain);
	buf_release(&index);
	buf_release(&body);
	test_free(v);
}

/* ---- describing them ---- */

static const uint32_t level6[] = {6};
static const struct codec_spec crc[] = {{.h5_id = CODEC_CRC32C, .name = ""}};
static const struct codec_spec zip[] = {
	{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level6, .name = ""}};

struct form {
	bool first, big, sum;
	int outer; /* 0 none, 1 a checksum, 2 deflate */
	const uint32_t *order;
};

static struct zr_shard *shard_of(struct fake *f, uint32_t rank, const uint64_t *len,
				 const uint64_t *inner, const struct form *x)
{
	struct zr_shard *sh = arena_alloc(&f->s.base.ds.arena, 1, sizeof(*sh));
	uint64_t grid[3];

	sh->n = 1;
	for (uint32_t d = 0; d < rank; d++) {
		grid[d] = len[d] / inner[d];
		sh->n *= grid[d];
	}
	sh->grid = fake_keep(f, grid, rank * sizeof(*grid));
	sh->inner = fake_keep(f, inner, rank * sizeof(*inner));
	sh->order = x->order;
	sh->index_first = x->first;
	sh->index_big = x->big;
	sh->index_bytes = sh->n * 16 + (x->sum ? 4 : 0);
	if (x->sum)
		sh->index = (struct codec_chain){1, crc};
	if (x->outer)
		sh->outer = (struct codec_chain){1, x->outer == 1 ? crc : zip};
	return sh;
}

/* put_all - the shards of array 0 but one. */
static void put_all(struct fake *f)
{
	const struct zr_meta *m = &f->m[0];
	uint64_t grid[3], n = 1, at[3];
	char key[ZR_OBJECT_KEY];

	for (uint32_t d = 0; d < m->rank; d++) {
		grid[d] = (m->shape[d] + m->chunk[d] - 1) / m->chunk[d];
		n *= grid[d];
	}
	for (uint64_t i = 0; i < n; i++) {
		struct buf b;

		grid_coords(m->rank, grid, i, at);
		assert_int_equal(zr_object_key(m, at, key, NULL), 0);
		for (uint32_t d = 0; d < m->rank; d++)
			at[d] *= m->chunk[d];
		buf_init(&b, 1 << 24);
		put_shard(m, m->shard, at, &b);
		if (i != 1)
			fake_put(f, key, b.data, b.len);
		buf_release(&b);
	}
}

/* check_chunk - elements of one chunk; those beyond the shape may be anything. */
static void check_chunk(struct fake *f, uint64_t linear, bool absent)
{
	const struct ds_array *a = &f->a[0];
	uint64_t n = a->chunk_bytes / 4, at[3], k[3];
	uint32_t *v = test_malloc((size_t)a->chunk_bytes);

	assert_int_equal(fake_read(f, 0, linear, v), 0);
	ds_chunk_coords(a, linear, at);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t want = 0;
		bool inside = true;

		grid_coords(a->rank, a->chunk, i, k);
		for (uint32_t d = 0; d < a->rank; d++) {
			uint64_t x = at[d] * a->chunk[d] + k[d];

			want = want * a->shape[d] + x;
			inside = inside && x < a->shape[d];
		}
		if (inside)
			assert_int_equal(v[i], absent ? 0 : want);
	}
	test_free(v);
}

static void check_all(struct fake *f, bool in_memory)
{
	const struct ds_array *a = &f->a[0];
	uint8_t stored[4096];
	uint64_t from = 0, n = 0, at[3];

	for (uint64_t i = 0; i < a->n_chunks; i++) {
		uint64_t object = 0;
		bool want;
		int where = fake_where(f, 0, i);

		ds_chunk_coords(a, i, at);
		want = there(&f->m[0], at);
		for (uint32_t d = 0; d < a->rank; d++) {
			uint64_t len = f->m[0].chunk[d];

			object = object * ((a->shape[d] + len - 1) / len) +
				 at[d] * f->x[0].stored[d] / len;
		}
		want = want && object != 1;
		assert_int_equal(where, !want                                 ? CHUNK_ABSENT
					: in_memory || a->access != DS_STORED ? CHUNK_SYNTH
									      : CHUNK_RANGE);
		check_chunk(f, i, !want);
		if (where == CHUNK_RANGE)
			assert_int_equal(fake_stored(f, 0, i, stored, sizeof(stored)),
					 a->chunk_bytes);
		if (!want)
			continue;
		assert_int_equal(zr_next(&f->s.base, 0, from, &from, NULL), 0);
		assert_int_equal(from++, i);
		n++;
	}
	assert_int_equal(zr_next(&f->s.base, 0, from, &from, NULL), -ENOENT);
	assert_true(n > a->n_chunks / 5);
}

static const uint32_t turned[] = {1, 0}, turned3[] = {2, 0, 1};

static void test_forms(void **state)
{
	static const struct form forms[] = {
		{.sum = true},
		{.first = true},
		{.first = true, .big = true, .sum = true},
		{.sum = true, .order = turned},
		{.sum = true, .outer = 1},
		{.first = true, .outer = 2, .order = turned},
	};
	/* edges: the last shards are cut by the shape in both axes, and a shard is absent */
	const uint64_t shape[] = {23, 50}, shard[] = {8, 12}, inner[] = {4, 3};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct zr_meta *m;
		struct fake f;

		fake_init(&f, i == 0);
		m = fake_array(&f, "g/t", 2, shape, shard);
		m->prefixed = true;
		m->separator = i % 2 ? '.' : '/';
		m->shard = shard_of(&f, 2, shard, inner, &forms[i]);
		m->order = forms[i].order;
		f.a[0].access = m->order ? DS_CONVERT : DS_STORED;
		put_all(&f);
		fake_start(&f);
		check_all(&f, forms[i].outer != 0);
		fake_release(&f);
	}
}

static void test_nested(void **state)
{
	static const struct form forms[][3] = {
		{{.sum = true}, {.first = true}, {0}},
		{{.sum = true, .outer = 1}, {.sum = true, .outer = 2}, {0}},
		{{.sum = true}, {.big = true, .outer = 2}, {.order = turned3}},
		{{.sum = true, .order = turned3}, {.order = turned3}, {.order = turned3}},
	};
	const uint64_t shape[] = {20, 9, 13}, shard[] = {8, 6, 8}, middle[] = {4, 6, 4},
		       inner[] = {2, 3, 2};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct zr_shard *outermost;
		struct zr_meta *m;
		struct fake f;

		fake_init(&f, false);
		m = fake_array(&f, "t", 3, shape, shard);
		outermost = shard_of(&f, 3, shard, middle, &forms[i][0]);
		outermost->next = shard_of(&f, 3, middle, inner, &forms[i][1]);
		m->shard = outermost;
		m->order = forms[i][2].order;
		f.a[0].access = m->order ? DS_CONVERT : DS_STORED;
		put_all(&f);
		fake_start(&f);
		check_all(&f, forms[i][0].outer || forms[i][1].outer);
		fake_release(&f);
	}
}

/* A grid of 10^12 chunks with a few shards: what is far apart is found at once. */
static void test_sparse(void **state)
{
	const uint64_t shape[] = {4000000, 2500000}, shard[] = {8, 10}, inner[] = {4, 5};
	const uint8_t chunk[80] = {1};
	const struct form form = {0};
	struct zr_meta *m;
	uint64_t at = 0, n = 0;
	struct fake f;
	struct buf b;

	(void)state;
	fake_init(&f, false);
	m = fake_array(&f, "t", 2, shape, shard);
	m->shard = shard_of(&f, 2, shard, inner, &form);
	buf_init(&b, 1024);
	buf_put(&b, chunk, sizeof(chunk));
	for (int i = 0; i < 4; i++) {
		put64(&b, i == 1 ? UINT64_MAX : 0, false);
		put64(&b, i == 1 ? UINT64_MAX : sizeof(chunk), false);
	}
	fake_put(&f, "t/7.3", b.data, b.len);
	fake_put(&f, "t/7.249999", b.data, b.len);
	fake_put(&f, "t/499999.0", b.data, b.len);
	buf_release(&b);
	fake_start(&f);
	/* two rows of chunks run through the shards of a row: 0 of 3 and 1 absent, ... */
	static const uint64_t want[][2] = {{14, 6},     {14, 499998}, {15, 6},
					   {15, 7},     {15, 499998}, {15, 499999},
					   {999998, 0}, {999999, 0},  {999999, 1}};

	for (; zr_next(&f.s.base, 0, at, &at, NULL) == 0; at++, n++) {
		assert_true(n < ARRAY_LEN(want));
		assert_int_equal(at, want[n][0] * 500000 + want[n][1]);
	}
	assert_int_equal(n, ARRAY_LEN(want));
	fake_release(&f);
}

/* ---- indexes that lie ---- */

/* A shard of four chunks of 16 bytes, with the index as given. */
static struct buf lying(const uint64_t index[8], size_t cut)
{
	struct buf b;

	buf_init(&b, 1024);
	for (int i = 0; i < 16; i++)
		buf_put_le32(&b, (uint32_t)i);
	for (int i = 0; i < 8; i++)
		put64(&b, index[i], false);
	buf_put_le32(&b, crc32c(b.data + 64, 64));
	b.len -= cut;
	return b;
}

static void start_lying(struct fake *f, const struct buf *b)
{
	const uint64_t shape[] = {16}, inner[] = {4};
	const struct form form = {.sum = true};

	fake_init(f, true);
	fake_array(f, "t", 1, shape, shape)->shard = shard_of(f, 1, shape, inner, &form);
	fake_put(f, "t/0", b->data, b->len);
	fake_start(f);
}

static void test_lies(void **state)
{
	const uint64_t index[] = {0, 16, 120, 16, UINT64_MAX, 0, UINT64_MAX - 3, 8};
	struct buf b = lying(index, 0);
	uint32_t v[4];
	struct fake f;
	uint64_t at;

	(void)state;
	start_lying(&f, &b);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
	assert_int_equal(fake_read(&f, 0, 0, v), 0);
	assert_int_equal(v[3], 3);
	for (uint64_t i = 1; i < 4; i++) {
		assert_int_equal(fake_where(&f, 0, i), -EBADMSG);
		assert_non_null(strstr(f.e.msg, "'t/0'"));
		assert_int_equal(fake_read(&f, 0, i, v), -EBADMSG);
		/* it is not as if there were none */
		assert_int_equal(zr_next(&f.s.base, 0, i, &at, NULL), 0);
		assert_int_equal(at, i);
	}
	fake_release(&f);
	buf_release(&b);
}

static void test_lengths(void **state)
{
	/* chunks may share bytes; one is short, one is empty */
	const uint64_t index[] = {0, 16, 8, 16, 0, 12, 64, 0};
	struct buf b = lying(index, 0);
	uint32_t v[4];
	struct fake f;

	(void)state;
	start_lying(&f, &b);
	assert_int_equal(fake_read(&f, 0, 1, v), 0);
	assert_int_equal(v[0], 2);
	assert_int_equal(fake_read(&f, 0, 2, v), -EBADMSG);
	assert_non_null(strstr(f.e.msg, "'t/0'"));
	assert_int_equal(fake_read(&f, 0, 3, v), -EBADMSG);
	fake_release(&f);
	buf_release(&b);
}

static void test_damaged_index(void **state)
{
	const uint64_t index[] = {0, 16, 16, 16, 32, 16, 48, 16};
	struct buf b = lying(index, 0);
	uint32_t v[4];
	struct fake f;

	(void)state;
	b.data[70] ^= 1;
	start_lying(&f, &b);
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	assert_non_null(strstr(f.e.msg, "'t/0'"));
	assert_int_equal(fake_read(&f, 0, 0, v), -EBADMSG);
	fake_release(&f);
	buf_release(&b);

	b = lying(index, 80); /* shorter than an index */
	start_lying(&f, &b);
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	fake_release(&f);
	buf_release(&b);

	b = lying(index, 132);
	start_lying(&f, &b);
	assert_int_equal(fake_where(&f, 0, 0), -EBADMSG);
	fake_release(&f);
	buf_release(&b);
}

static void test_index_too_large(void **state)
{
	const uint64_t shape[] = {1 << 20}, inner[] = {1};
	const struct form form = {0};
	struct fake f;

	(void)state;
	fake_init(&f, false);
	fake_array(&f, "t", 1, shape, shape)->shard = shard_of(&f, 1, shape, inner, &form);
	f.s.opts.max_index_bytes = (uint64_t)1 << 20;
	fake_put(&f, "t/0", "x", 1);
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), -ERANGE);
	assert_non_null(strstr(f.e.msg, "a quarter of -o memory"));
	fake_release(&f);
}

/* A shard is replaced after its index was read: its old index is not used on the new one. */
static void test_replaced(void **state)
{
	const uint64_t index[] = {0, 16, 16, 16, 32, 16, 48, 16};
	const uint64_t other[] = {16, 16, 0, 16, 32, 16, 48, 16};
	struct buf b = lying(index, 0), c = lying(other, 0);
	struct chunk_ref ref;
	uint8_t out[16];
	struct fake f;
	char path[128];

	(void)state;
	start_lying(&f, &b);
	assert_int_equal(zr_locate(&f.s.base, 0, 0, &ref, &f.e), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 16, &f.e), 0);
	snprintf(path, sizeof(path), "%s/t/0", f.dir);
	assert_int_equal(unlink(path), 0);
	fake_put(&f, "other", "", 0); /* takes the inode */
	fake_put(&f, "t/0", c.data, c.len);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 16, &f.e), -ESTALE);
	/* nor when so much was read since that nobody remembers the shard */
	for (uint64_t i = 1; i < 5000; i++)
		zr_recent_note(&f.s.data->watch, 0, i, 1);
	assert_int_equal(zr_recent_version(&f.s.data->watch, 0, 0), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 16, &f.e), -ESTALE);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(zr_read_stored(&f.s.base, 0, 0, &ref, 0, out, 16, &f.e), -ESTALE);
	assert_int_equal(zr_poll(&f.s.base, &f.e), -ESTALE);
	fake_release(&f);
	buf_release(&b);
	buf_release(&c);
}

/* Codecs around a shard that give nonsense, or never end. */
static void test_damaged_whole(void **state)
{
	const uint64_t shape[] = {16}, inner[] = {4};
	const struct form form = {.sum = true, .outer = 2};
	struct buf zeros, packed;
	struct fake f;
	uint32_t v[4];

	(void)state;
	buf_init(&zeros, 1 << 26);
	buf_init(&packed, 1 << 26);
	memset(buf_grow(&zeros, 1 << 23), 0, 1 << 23);
	assert_int_equal(encode_chain(&(struct codec_chain){1, zip}, 1, zeros.data, zeros.len,
				      &packed, NULL),
			 0);
	for (int i = 0; i < 2; i++) {
		fake_init(&f, false);
		fake_array(&f, "t", 1, shape, shape)->shard =
			shard_of(&f, 1, shape, inner, &form);
		fake_put(&f, "t/0", i ? packed.data : (const uint8_t *)"nonsense",
			 i ? packed.len : 8);
		fake_start(&f);
		assert_true(fake_where(&f, 0, 0) < 0);
		assert_true(f.e.code == -EBADMSG || f.e.code == -ERANGE);
		assert_non_null(strstr(f.e.msg, "'t/0'"));
		assert_true(fake_read(&f, 0, 0, v) < 0);
		fake_release(&f);
	}
	buf_release(&zeros);
	buf_release(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),           cmocka_unit_test(test_nested),
		cmocka_unit_test(test_sparse),          cmocka_unit_test(test_lies),
		cmocka_unit_test(test_lengths),         cmocka_unit_test(test_damaged_index),
		cmocka_unit_test(test_index_too_large), cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_damaged_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
