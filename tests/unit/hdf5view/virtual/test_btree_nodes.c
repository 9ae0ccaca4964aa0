/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of the chunk B-tree: walked from the root, they name every chunk once, in order, with
 * keys and siblings that agree; and a small one is what libhdf5 writes. */
#include "tests/unit/hdf5view/virtual/nc_fake.h"

struct tree {
	struct ncf f;
	struct nc_chunks *c;
	struct nc_var v;
	struct nc_index x;
	uint8_t *bytes; /* all nodes */
	uint64_t next;  /* chunk that the walk expects */
};

#define AT 1000
#define DATA 5000000

static uint64_t le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

/* plant - a tree over the chunks of f that were stored. */
static void plant(struct tree *t)
{
	struct nc_budget budget = {.max = 1 << 24};
	struct err e = ERR_INIT;

	ncf_start(&t->f);
	if (nc_chunks_make(t->f.io, &t->f.a, 0, &t->f.plan, &budget, &t->c, &e) < 0)
		fail_msg("%s", e.msg);
	t->v = (struct nc_var){.data = NC_CHUNKED, .rank = t->f.a.rank, .elem = 4};
	memcpy(t->v.chunk, t->f.chunk, sizeof(t->f.chunk));
	if (nc_index_init(&t->x, t->c, &t->v, &t->f.a, 2, &e) < 0)
		fail_msg("%s", e.msg);
	t->x.at = AT;
	t->x.data = DATA;
	t->bytes = malloc((size_t)t->x.n_nodes * t->x.node_bytes + 1);
	assert_non_null(t->bytes);
	for (uint64_t i = 0; i < t->x.n_nodes; i++)
		nc_index_node(&t->x, i, t->bytes + i * t->x.node_bytes);
}

static void fell(struct tree *t)
{
	nc_chunks_free(t->c);
	free(t->bytes);
	ncf_release(&t->f);
}

/* is_key - that of chunk i, or for i = n the one behind the last. */
static void is_key(const struct tree *t, const uint8_t *p, uint64_t i)
{
	uint64_t coords[DS_RANK_MAX] = {0}, linear, off, size;
	bool past = i == nc_chunks_n(t->c);

	nc_chunks_nth(t->c, i - past, &linear, &off, &size);
	ds_chunk_coords(&t->f.a, linear, coords);
	assert_int_equal(le(p, 4), past ? 0 : size);
	assert_int_equal(le(p + 4, 4), 0);
	for (size_t d = 0; d < t->v.rank; d++)
		assert_int_equal(le(p + 8 + 8 * d, 8), (coords[d] + past) * t->f.chunk[d]);
	assert_int_equal(le(p + 8 + 8 * (size_t)t->v.rank, 8), past ? 4 : 0);
}

static void walk(struct tree *t, uint64_t addr, unsigned level, uint64_t left, uint64_t right)
{
	const uint8_t *p = t->bytes + (addr - AT), *key = p + 24;
	size_t key_bytes = 8 + 8 * ((size_t)t->v.rank + 1);
	uint64_t n, linear, off, size;

	assert_true(addr >= AT && (addr - AT) % t->x.node_bytes == 0);
	assert_true((addr - AT) / t->x.node_bytes < t->x.n_nodes);
	assert_memory_equal(p, "TREE\1", 5);
	assert_int_equal(p[5], level);
	n = le(p + 6, 2);
	assert_in_range(n, 1, 64);
	assert_int_equal(le(p + 8, 8), left);
	assert_int_equal(le(p + 16, 8), right);
	for (uint64_t i = 0; i < n; i++, key += key_bytes + 8) {
		uint64_t child = le(key + key_bytes, 8);
		uint64_t one = t->x.node_bytes;

		is_key(t, key, t->next);
		if (level > 0) {
			bool last = right == UINT64_MAX && i == n - 1;

			walk(t, child, level - 1,
			     left == UINT64_MAX && i == 0 ? UINT64_MAX : child - one,
			     last ? UINT64_MAX : child + one);
			continue;
		}
		nc_chunks_nth(t->c, t->next++, &linear, &off, &size);
		assert_int_equal(child, DATA + off);
	}
	is_key(t, key, t->next);
	for (key += key_bytes; key < p + t->x.node_bytes; key++)
		assert_int_equal(*key, 0);
}

static void grow(struct tree *t, uint32_t rank, const uint64_t *shape, const uint64_t *chunk,
		 uint64_t skip, bool sizes)
{
	*t = (struct tree){0};
	ncf_init(&t->f, rank, shape, chunk);
	if (sizes)
		ncf_deflate(&t->f, false);
	for (uint64_t l = 0; l < t->f.a.n_chunks; l++)
		if (skip == 0 || l % skip != 0)
			t->f.refs[l] = (struct chunk_ref){.where = CHUNK_RANGE,
							  .len = 10 + l * 31 % 1000};
	plant(t);
	assert_int_equal(t->x.node_bytes, 24 + 65 * (8 + 8 * (rank + 1)) + 64 * 8);
}

static void test_walk(void **state)
{
	/* the last has four levels */
	static const uint64_t counts[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 5000, 262145};
	static const unsigned levels[] = {1, 1, 1, 1, 2, 2, 2, 3, 3, 4};
	struct tree t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		for (unsigned k = 0; k < 2; k++) {
			uint64_t shape = counts[i] * 3, chunk = 3;

			grow(&t, 1, &shape, &chunk, 0, k);
			assert_int_equal(t.x.levels, levels[i]);
			assert_int_equal(nc_index_root(&t.x),
					 AT + (t.x.n_nodes - 1) * t.x.node_bytes);
			walk(&t, nc_index_root(&t.x), levels[i] - 1, UINT64_MAX, UINT64_MAX);
			assert_int_equal(t.next, counts[i]);
			fell(&t);
		}
}

static void test_ranks(void **state)
{
	static const uint64_t shape[6] = {9, 8, 9, 5, 7, 4}, chunk[6] = {2, 3, 2, 2, 3, 2};
	struct tree t;

	(void)state;
	for (uint32_t rank = 1; rank <= 6; rank++)
		for (uint64_t skip = 0; skip < 9; skip += 4) {
			grow(&t, rank, shape, chunk, skip, skip > 4);
			walk(&t, nc_index_root(&t.x), t.x.levels - 1, UINT64_MAX, UINT64_MAX);
			assert_int_equal(t.next, nc_chunks_n(t.c));
			fell(&t);
		}
}

/* An HDF5 dataset may have one dimension more than the array: the bytes of a text. */
static void test_texts(void **state)
{
	static const uint64_t shape = 100, chunk = 10;
	uint64_t linear, off, size;
	uint8_t *p;
	struct tree t;

	(void)state;
	grow(&t, 1, &shape, &chunk, 0, false);
	t.v.rank = 2;
	t.v.chunk[1] = 4;
	t.v.elem = 1;
	assert_int_equal(nc_index_init(&t.x, t.c, &t.v, &t.f.a, 2, NULL), 0);
	p = malloc(t.x.node_bytes);
	assert_non_null(p);
	nc_index_node(&t.x, 0, p);
	nc_chunks_nth(t.c, 7, &linear, &off, &size);
	assert_int_equal(le(p + 24 + 7 * 40 + 8, 8), 70);
	assert_int_equal(le(p + 24 + 7 * 40 + 16, 8), 0);
	assert_int_equal(le(p + 24 + 7 * 40 + 24, 8), 0);
	assert_int_equal(le(p + 24 + 10 * 40 + 8, 8), 100);
	assert_int_equal(le(p + 24 + 10 * 40 + 16, 8), 4);
	assert_int_equal(le(p + 24 + 10 * 40 + 24, 8), 1);
	free(p);
	fell(&t);
}

static void test_none(void **state)
{
	static const uint64_t shape = 0, chunk = 10;
	struct tree t;

	(void)state;
	grow(&t, 1, &shape, &chunk, 0, false);
	assert_int_equal(t.x.n_nodes, 0);
	fell(&t);
}

/* library_node - the only B-tree node of the same chunks written by libhdf5; in image. */
static const uint8_t *library_node(const struct tree *t, uint8_t *image, size_t cap)
{
	auto_hid hid_t fapl = ncf_core(false), dcpl = ncf_dcpl(&t->f, true, false);
	auto_hid hid_t file, space, set;
	hsize_t dims[2] = {t->f.shape[0], t->f.shape[1]}, at[2] = {0};
	hsize_t max[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
	int32_t data[64] = {0};
	ssize_t n;

	file = H5Fcreate("library", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	space = H5Screate_simple(2, dims, max);
	set = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(file >= 0 && space >= 0 && set >= 0);
	for (uint64_t l = 0; l < t->f.a.n_chunks; l++) {
		uint64_t c[DS_RANK_MAX];

		ds_chunk_coords(&t->f.a, l, c);
		at[0] = c[0] * t->f.chunk[0];
		at[1] = c[1] * t->f.chunk[1];
		assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, at, (size_t)t->f.a.chunk_bytes,
					   data) >= 0);
	}
	assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
	n = H5Fget_file_image(file, image, cap);
	assert_true(n > 0);
	for (ssize_t i = 0; i + 5 < n; i++)
		if (memcmp(image + i, "TREE\1", 5) == 0)
			return image + i;
	return NULL;
}

/* Up to the addresses, a node is equal to the library's. After the last chunk of several, the
 * library writes more than one form of key. */
static void test_library(void **state)
{
	static const uint64_t shapes[3][2] = {{5, 4}, {3, 2}, {20, 30}}, chunk[2] = {5, 4};
	static uint8_t image[1 << 20];
	const uint8_t *p, *q;
	struct tree t;

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		grow(&t, 2, shapes[k], chunk, 0, false);
		p = library_node(&t, image, sizeof(image));
		assert_non_null(p);
		assert_int_equal(t.x.n_nodes, 1);
		q = t.bytes;
		assert_memory_equal(p, q, 24);
		p += 24;
		q += 24;
		for (uint64_t i = 0; i < t.f.a.n_chunks; i++, p += 40, q += 40)
			assert_memory_equal(p, q, 32);
		assert_memory_equal(p, q, t.f.a.n_chunks == 1 ? 32 : 8);
		fell(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),    cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_texts),   cmocka_unit_test(test_none),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
