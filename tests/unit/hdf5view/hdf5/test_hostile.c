/* SPDX-License-Identifier: BSD-3-Clause */
/* Damaged superblocks, headers and indexes: hand-made B-trees with one fault each, and files
 * whose index nodes are changed at random with their checksums set right again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "hdf5view/format/format_int.h"
#include "tests/unit/hdf5view/hdf5/h5_oracle.h"

#define ROUNDS 2000
#define GRID_MAX 2000

/* ---- hand-made B-trees: one dimension, chunks of 10 bytes, no filters unless said ---- */

struct tree {
	struct buf b;
	struct h5_file f;
	struct h5_layout l;
};

static void tree_start(struct tree *t)
{
	*t = (struct tree){.l = {.cls = HDF5_LAYOUT_CHUNKED,
				 .rank = 1,
				 .dims = {100},
				 .maxdims = {100},
				 .chunk = {10},
				 .elem_size = 1,
				 .index = HDF5_INDEX_BTREE1,
				 .filtered = true}};
	buf_init(&t->b, 1 << 20);
}

static void put64(struct buf *b, uint64_t v)
{
	buf_put_le32(b, (uint32_t)v);
	buf_put_le32(b, (uint32_t)(v >> 32));
}

/* A node; returns its address. pairs: n times (element offset, child address). */
static uint64_t put_node(struct tree *t, unsigned level, size_t n, uint64_t (*pairs)[2])
{
	uint64_t at = t->b.len;

	buf_puts(&t->b, "TREE");
	buf_putc(&t->b, 1);
	buf_putc(&t->b, (char)level);
	buf_putc(&t->b, (char)(n & 255));
	buf_putc(&t->b, (char)(n >> 8));
	put64(&t->b, UINT64_MAX);
	put64(&t->b, UINT64_MAX);
	for (size_t i = 0; i < n; i++) {
		buf_put_le32(&t->b, 10);
		buf_put_le32(&t->b, 2);
		put64(&t->b, pairs[i][0]);
		put64(&t->b, 0);
		put64(&t->b, pairs[i][1]);
	}
	return at;
}

static int tree_load(struct tree *t, uint64_t root, uint64_t grid, uint64_t max_bytes,
		     struct h5_index **ret)
{
	int fd = memfd_create("tree", MFD_CLOEXEC), rc;
	struct blob blob = blob_of_fd(fd, t->b.len);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, t->b.data, t->b.len), t->b.len);
	t->f = (struct h5_file){.blob = &blob,
				.size = t->b.len,
				.offset_size = 8,
				.length_size = 8,
				.eof = t->b.len};
	t->l.addr = root;
	rc = h5_index_load(&t->f, &t->l, &grid, max_bytes, ret, NULL);
	close(fd);
	return rc;
}

static void test_tree_good(void **state)
{
	uint64_t a[][2] = {{0, 0}, {20, 10}}, b[][2] = {{50, 1U << 30}, {90, 5}, {100, 7}};
	struct h5_index *x;
	struct tree t;
	uint64_t top[2][2] = {{0, 0}, {50, 0}};

	(void)state;
	tree_start(&t);
	top[0][1] = put_node(&t, 0, 2, a);
	top[1][1] = put_node(&t, 0, 3, b);
	assert_int_equal(tree_load(&t, put_node(&t, 1, 2, top), 10, 1 << 16, &x), 0);
	assert_int_equal(h5_index_count(x), 4); /* the one beyond the extent does not count */
	assert_int_equal(h5_index_get(x, 2).addr, 10);
	assert_int_equal(h5_index_get(x, 2).mask, 2);
	assert_int_equal(h5_index_get(x, 5).addr, 1U << 30); /* as stated: the caller checks */
	assert_true(h5_index_get(x, 1).addr == UINT64_MAX);
	assert_int_equal(h5_index_next(x, 0), 0);
	assert_int_equal(h5_index_next(x, 3), 5);
	assert_true(h5_index_next(x, 10) == UINT64_MAX);
	h5_index_free(x);
	assert_int_equal(tree_load(&t, 0, 1ULL << 40, 1 << 16, &x), 0); /* sparse */
	assert_int_equal(h5_index_count(x), 2);
	assert_int_equal(h5_index_next(x, 1), 2);
	assert_true(h5_index_next(x, 3) == UINT64_MAX);
	h5_index_free(x);
	assert_int_equal(tree_load(&t, 0, 10, 16, &x), -ERANGE);
	buf_release(&t.b);
}

static void bad_tree(unsigned level, size_t n, uint64_t (*pairs)[2])
{
	struct h5_index *x;
	struct tree t;

	tree_start(&t);
	(void)put_node(&t, 0, 1, (uint64_t[][2]){{0, 0}}); /* at 0, 56 bytes */
	assert_int_equal(tree_load(&t, put_node(&t, level, n, pairs), 10, 1 << 16, &x),
			 -EBADMSG);
	buf_release(&t.b);
}

static void test_tree_bad(void **state)
{
	struct h5_index *x;
	struct tree t;

	(void)state;
	bad_tree(0, 2, (uint64_t[][2]){{10, 0}, {10, 0}}); /* a key twice */
	bad_tree(0, 3, (uint64_t[][2]){{10, 0}, {0, 0}, {10, 0}});
	bad_tree(0, 1, (uint64_t[][2]){{11, 0}});         /* between chunks */
	bad_tree(1, 2, (uint64_t[][2]){{0, 0}, {10, 0}}); /* a child twice */
	bad_tree(1, 1, (uint64_t[][2]){{0, 56}});         /* its own child */
	bad_tree(1, 1, (uint64_t[][2]){{0, 1U << 30}});   /* outside the file */
	bad_tree(1, 1, (uint64_t[][2]){{0, UINT64_MAX - 8}});
	bad_tree(1, 1, (uint64_t[][2]){{0, 3}});  /* not a node */
	bad_tree(2, 1, (uint64_t[][2]){{0, 0}});  /* a level is missing */
	bad_tree(65, 1, (uint64_t[][2]){{0, 0}}); /* too deep */

	tree_start(&t);
	(void)put_node(&t, 0, 1, (uint64_t[][2]){{0, 0}});
	t.b.data[6] = 200; /* more entries than bytes */
	assert_int_equal(tree_load(&t, 0, 10, 1 << 16, &x), -EBADMSG);
	t.b.data[6] = 1;
	t.l.chunk[0] = 0;
	assert_int_equal(tree_load(&t, 0, 10, 1 << 16, &x), -EBADMSG);
	t.l.chunk[0] = UINT64_MAX;
	assert_int_equal(tree_load(&t, 0, 10, 1 << 16, &x), -EOPNOTSUPP);
	buf_release(&t.b);
}

/* ---- superblock ---- */

static int superblock(const void *data, size_t n, struct h5_file *f)
{
	int fd = memfd_create("superblock", MFD_CLOEXEC), rc;
	struct blob blob = blob_of_fd(fd, n);

	assert_int_equal(write(fd, data, n), n);
	rc = h5_file_read(&blob, f, NULL);
	close(fd);
	return rc;
}

static void test_superblock(void **state)
{
	uint8_t v2[48] = "\x89HDF\r\n\x1a\n\x02\x08\x08";
	uint8_t moved[560] = {0};
	struct h5_file f;
	uint32_t sum;

	(void)state;
	v2[28] = 48;              /* end of file */
	memset(v2 + 20, 0xff, 8); /* no extension */
	sum = h5_lookup3(v2, 44);
	memcpy(v2 + 44, &sum, 4);
	assert_int_equal(superblock(v2, 48, &f), 0);
	assert_int_equal(f.eof, 48);
	memcpy(moved + 512, v2, 48);
	assert_int_equal(superblock(moved, 560, &f), 0);
	assert_int_equal(f.base, 512);
	assert_int_equal(f.eof, 560);
	for (size_t n = 0; n < 48; n++)
		assert_int_equal(superblock(v2, n, &f), -EBADMSG);
	for (size_t i = 0; i < 48; i++) {
		v2[i] ^= 1;
		assert_true(superblock(v2, 48, &f) < 0);
		v2[i] ^= 1;
	}
}

/* ---- changed files ---- */

struct node {
	uint64_t at, len;
};

struct victim {
	char path[64];
	uint8_t *data;
	size_t size;
	uint64_t headers[16];
	size_t n_headers;
	struct node nodes[512]; /* structures with a checksum */
	size_t n_nodes;
	uint64_t seed;
};

static uint64_t rnd(struct victim *v, uint64_t below)
{
	v->seed ^= v->seed << 13;
	v->seed ^= v->seed >> 7;
	v->seed ^= v->seed << 17;
	return v->seed % below;
}

static void put_dataset(struct victim *v, hid_t file, bool deflate, const hsize_t *max)
{
	const hsize_t dims[2] = {40, 60}, chunk[2] = {1, 2};
	hid_t space = H5Screate_simple(2, dims, max), dcpl = H5Pcreate(H5P_DATASET_CREATE), ds;
	uint8_t data[40 * 60] = {0};
	char name[2] = "";
	H5O_info_t info;

	H5Pset_chunk(dcpl, 2, chunk);
	if (deflate)
		H5Pset_deflate(dcpl, 1);
	name[0] = (char)('a' + v->n_headers);
	ds = H5Dcreate2(file, name, H5T_NATIVE_UINT8, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	H5Dwrite(ds, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
	H5Oget_info2(ds, &info, H5O_INFO_BASIC);
	v->headers[v->n_headers++] = info.addr;
	H5Dclose(ds);
	H5Pclose(dcpl);
	H5Sclose(space);
}

static void find_nodes(struct victim *v)
{
	static const char *const names[] = {"OHDR", "OCHK", "FAHD", "FADB", "EAHD", "EAIB",
					    "EASB", "EADB", "BTHD", "BTIN", "BTLF"};

	for (size_t at = 0; at + 16 < v->size && v->n_nodes < ARRAY_LEN(v->nodes); at++) {
		bool known = false;

		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			known = known || memcmp(v->data + at, names[k], 4) == 0;
		for (size_t n = 10; known && n <= 4096 && at + n <= v->size; n++) {
			if (!h5_sum_ok(v->data + at, n))
				continue;
			v->nodes[v->n_nodes++] = (struct node){.at = at, .len = n};
			break;
		}
	}
}

static void victim_make(struct victim *v, bool latest)
{
	const hsize_t unl = H5S_UNLIMITED;
	const hsize_t max[4][2] = {{40, 60}, {unl, 60}, {40, unl}, {unl, unl}};
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
	struct stat st;
	int fd;

	*v = (struct victim){.path = "/tmp/nczarrfs-hostile-XXXXXX",
			     .seed = 88172645463325252U};
	fd = mkstemp(v->path);
	assert_true(fd >= 0);
	if (latest)
		H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	file = H5Fcreate(v->path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	for (size_t i = 0; i < (latest ? 4 : 1); i++) {
		put_dataset(v, file, false, max[i]);
		put_dataset(v, file, true, max[i]);
	}
	H5Fclose(file);
	H5Pclose(fapl);
	fstat(fd, &st);
	v->size = (size_t)st.st_size;
	v->data = malloc(v->size);
	assert_int_equal(io_pread(fd, v->data, v->size, 0, NULL), 0);
	close(fd);
	unlink(v->path);
	find_nodes(v);
}

/* Load all indexes of the file as it now is; whatever happens, tables must be consistent. */
static unsigned victim_load(struct victim *v)
{
	int fd = memfd_create("victim", MFD_CLOEXEC);
	struct blob blob = blob_of_fd(fd, v->size);
	unsigned good = 0;
	struct h5_file f;

	assert_int_equal(write(fd, v->data, v->size), v->size);
	if (h5_file_read(&blob, &f, NULL) < 0)
		f.size = 0;
	for (size_t i = 0; f.size > 0 && i < v->n_headers; i++) {
		uint64_t grid[DS_RANK_MAX], total = 1, seen = 0;
		struct h5_index *x = NULL;
		struct h5_layout l;
		int rc;

		if (h5_layout_read(&f, v->headers[i], &l, NULL) < 0 ||
		    l.cls != HDF5_LAYOUT_CHUNKED)
			continue;
		for (size_t d = 0; d < l.rank; d++)
			total *= grid[d] = u64_min(l.dims[d] / l.chunk[d] + 1, GRID_MAX);
		rc = h5_index_load(&f, &l, grid, 1 << 20, &x, NULL);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -ERANGE || rc == -EOPNOTSUPP);
		if (rc < 0)
			continue;
		good++;
		for (uint64_t n = 0; (n = h5_index_next(x, n)) != UINT64_MAX; n++, seen++)
			assert_true(n < total && h5_index_get(x, n).addr != UINT64_MAX);
		assert_int_equal(seen, h5_index_count(x));
		h5_index_free(x);
	}
	close(fd);
	return good;
}

static uint8_t change(struct victim *v, uint8_t old)
{
	switch (rnd(v, 6)) {
	case 0:
		return 0;
	case 1:
		return 0xff;
	case 2:
		return (uint8_t)(old + 1);
	case 3:
		return (uint8_t)(old - 1);
	case 4:
		return old ^ (uint8_t)(1U << rnd(v, 8));
	default:
		return (uint8_t)rnd(v, 256);
	}
}

static void fix_sum(struct victim *v, const struct node *n)
{
	uint32_t sum = h5_lookup3(v->data + n->at, n->len - 4);

	for (size_t i = 0; i < 4; i++)
		v->data[n->at + n->len - 4 + i] = (uint8_t)(sum >> 8 * i);
}

static void test_changed_latest(void **state)
{
	struct victim v;
	uint8_t *keep;

	(void)state;
	victim_make(&v, true);
	assert_true(v.n_nodes > 30);
	assert_int_equal(victim_load(&v), 8);
	keep = malloc(v.size);
	memcpy(keep, v.data, v.size);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct node *n = &v.nodes[rnd(&v, v.n_nodes)];

		for (uint64_t k = 1 + rnd(&v, 3); k-- > 0;) {
			/* the first bytes of a node are the telling ones */
			uint64_t at =
				n->at + rnd(&v, rnd(&v, 2) ? n->len : u64_min(n->len, 48));

			v.data[at] = change(&v, v.data[at]);
		}
		fix_sum(&v, n);
		(void)victim_load(&v);
		memcpy(v.data, keep, v.size);
	}
	free(keep);
	free(v.data);
}

static void test_changed_old(void **state)
{
	struct victim v;
	uint8_t *keep;

	(void)state;
	victim_make(&v, false);
	assert_int_equal(victim_load(&v), 2);
	keep = malloc(v.size);
	memcpy(keep, v.data, v.size);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t from = round % 4 ? v.headers[round % 2] : 0;
		uint64_t span = u64_min(v.size - from, round % 4 ? 3000 : v.size);

		for (uint64_t k = 1 + rnd(&v, 4); k-- > 0;) {
			uint64_t at = from + rnd(&v, span);

			v.data[at] = change(&v, v.data[at]);
		}
		(void)victim_load(&v);
		memcpy(v.data, keep, v.size);
	}
	free(keep);
	free(v.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_good),   cmocka_unit_test(test_tree_bad),
		cmocka_unit_test(test_superblock),  cmocka_unit_test(test_changed_latest),
		cmocka_unit_test(test_changed_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
