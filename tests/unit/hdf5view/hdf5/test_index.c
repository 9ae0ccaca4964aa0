/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of chunk index, written by libhdf5 with a known content (an element's value is its
 * linear index) and read back by our own reader: each stored chunk is decoded here and compared
 * with what it must hold, then the file goes through the oracle of h5_oracle.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include "tests/unit/hdf5view/hdf5/h5_oracle.h"

#define UNL H5S_UNLIMITED

enum { DENSE, SPARSE, ENDS }; /* which chunks are written; ENDS: a few, far apart */

/* a row is written as it is, also with deflate, or both of these also sparse */
enum { ONE, BOTH, ALL };

struct set {
	char name[32];
	enum h5_index_type index;
	int rank;
	hsize_t dims[3], max[3], chunk[3];
	bool deflate, early, edges_unfiltered;
	int fill;
	int forms;
};

struct made {
	char path[64];
	hid_t file;
	uint32_t *all;
};

static bool wanted(int fill, uint64_t n, uint64_t total)
{
	if (fill == DENSE)
		return true;
	if (fill == SPARSE)
		return n * 2654435761U % 97 < 7;
	return n < 3 || n + 2 > total || n == total / 2 || n == total / 3 || n % 30011 == 7;
}

static void make_file(struct made *m, bool latest, hsize_t user_block, size_t widths,
		      unsigned k)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
	int fd;

	strcpy(m->path, "/tmp/nczarrfs-index-XXXXXX");
	fd = mkstemp(m->path);
	assert_true(fd >= 0);
	close(fd);
	if (latest)
		H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	H5Pset_userblock(fcpl, user_block);
	if (widths)
		H5Pset_sizes(fcpl, widths, widths);
	if (k)
		H5Pset_istore_k(fcpl, k);
	m->file = H5Fcreate(m->path, H5F_ACC_TRUNC, fcpl, fapl);
	assert_true(m->file >= 0);
	H5Pclose(fapl);
	H5Pclose(fcpl);
}

/* Grid of a set; returns its number of chunks. */
static uint64_t grid_of(const struct set *s, uint64_t *grid)
{
	uint64_t total = 1;

	for (int d = 0; d < s->rank; d++) {
		grid[d] = (s->dims[d] + s->chunk[d] - 1) / s->chunk[d];
		total *= grid[d];
	}
	return total;
}

/* Origin and size of chunk n inside the extent. */
static uint64_t box_of(const struct set *s, const uint64_t *grid, uint64_t n, hsize_t *start,
		       hsize_t *count)
{
	uint64_t elems = 1;

	for (int d = s->rank; d-- > 0; n /= grid[d]) {
		start[d] = n % grid[d] * s->chunk[d];
		count[d] = u64_min(s->chunk[d], s->dims[d] - start[d]);
		elems *= count[d];
	}
	return elems;
}

/* Value of element i (C order) of a box. */
static uint32_t value_of(const struct set *s, const hsize_t *start, const hsize_t *count,
			 uint64_t i)
{
	uint64_t pos[3] = {0}, linear = 0;

	for (int d = s->rank; d-- > 0; i /= count[d])
		pos[d] = start[d] + i % count[d];
	for (int d = 0; d < s->rank; d++)
		linear = linear * s->dims[d] + pos[d];
	return (uint32_t)linear;
}

static hid_t create(const struct made *m, const struct set *s)
{
	hid_t space = H5Screate_simple(s->rank, s->dims, s->max);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dapl = H5Pcreate(H5P_DATASET_ACCESS), ds;

	H5Pset_chunk(dcpl, s->rank, s->chunk);
	if (s->deflate)
		H5Pset_deflate(dcpl, 1);
	if (s->early)
		H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
	if (s->edges_unfiltered)
		H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
	ds = H5Dcreate2(m->file, s->name, H5T_STD_U32LE, space, H5P_DEFAULT, dcpl, dapl);
	assert_true(ds >= 0);
	H5Pclose(dcpl);
	H5Pclose(dapl);
	H5Sclose(space);
	return ds;
}

static void write_set(struct made *m, const struct set *s)
{
	hid_t ds = create(m, s), space = H5Dget_space(ds);
	uint64_t grid[3], total = grid_of(s, grid), elems = 1;
	uint32_t *buf;

	for (int d = 0; d < s->rank; d++)
		elems *= s->chunk[d];
	buf = calloc(elems, sizeof(*buf));
	for (uint64_t n = 0; n < total; n++) {
		hsize_t start[3], count[3];
		uint64_t here = box_of(s, grid, n, start, count);
		hid_t mem;

		if (!wanted(s->fill, n, total))
			continue;
		for (uint64_t i = 0; i < here; i++)
			buf[i] = value_of(s, start, count, i);
		mem = H5Screate_simple(s->rank, count, NULL);
		H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
		assert_true(H5Dwrite(ds, H5T_NATIVE_UINT32, mem, space, H5P_DEFAULT, buf) >= 0);
		H5Sclose(mem);
	}
	free(buf);
	H5Sclose(space);
	H5Dclose(ds);
}

/* Decode chunk c of a set and compare what lies inside the extent. */
static void check_chunk(const struct h5_file *f, const struct set *s, const uint64_t *grid,
			uint64_t n, const struct h5_chunk *c)
{
	uint64_t elems = 1, here;
	uLongf len;
	uint8_t *raw = malloc(c->size), *out;
	hsize_t start[3], count[3];

	for (int d = 0; d < s->rank; d++)
		elems *= s->chunk[d];
	len = elems * 4;
	out = calloc(elems, 4);
	assert_int_equal(blob_read(f->blob, c->addr, raw, c->size, NULL), 0);
	if (s->deflate && c->mask != CODEC_ALL_SKIPPED) {
		assert_int_equal(c->mask, 0);
		assert_int_equal(uncompress(out, &len, raw, c->size), Z_OK);
	} else {
		assert_int_equal(c->size, len);
		memcpy(out, raw, len);
	}
	assert_int_equal(len, elems * 4);
	here = box_of(s, grid, n, start, count);
	for (uint64_t i = 0; i < here; i++) {
		uint64_t rest = i, at = 0, pos[3] = {0};
		uint32_t v;

		for (int d = s->rank; d-- > 0; rest /= count[d])
			pos[d] = rest % count[d];
		for (int d = 0; d < s->rank; d++)
			at = at * s->chunk[d] + pos[d];
		memcpy(&v, out + at * 4, 4);
		assert_int_equal(v, value_of(s, start, count, i));
	}
	free(raw);
	free(out);
}

static void check_set(const struct h5_file *f, const struct set *s, uint64_t header)
{
	struct err e = ERR_INIT;
	struct h5_index *x = NULL;
	uint64_t grid[3], total = grid_of(s, grid), stored = 0;
	struct h5_layout l;

	if (h5_layout_read(f, header, &l, &e) < 0 ||
	    h5_index_load(f, &l, grid, (uint64_t)64 << 20, &x, &e) < 0)
		fail_msg("%s: %s", s->name, e.msg);
	assert_int_equal(l.index, s->index);
	assert_int_equal(l.edges_unfiltered, s->edges_unfiltered);
	for (uint64_t n = 0; n < total; n++) {
		struct h5_chunk c = h5_index_get(x, n);

		if (!s->early && wanted(s->fill, n, total) != (c.addr != UINT64_MAX))
			fail_msg("%s: chunk %llu", s->name, (unsigned long long)n);
		stored += c.addr != UINT64_MAX;
		if (c.addr != UINT64_MAX && wanted(s->fill, n, total))
			check_chunk(f, s, grid, n, &c);
	}
	assert_int_equal(stored, h5_index_count(x));
	if (s->early)
		assert_int_equal(stored, total);
	h5_index_free(x);
}

/* All forms of n rows. */
static size_t expand(const struct set *rows, size_t n, struct set *ret)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		for (int form = 0; form < (rows[i].forms == ALL ? 4 : 1 + rows[i].forms);
		     form++) {
			struct set *s = &ret[k++];

			*s = rows[i];
			s->deflate = s->deflate || form & 1;
			s->fill = form & 2 ? SPARSE : s->fill;
			snprintf(s->name, sizeof(s->name), "%.16s-%d", rows[i].name, form);
		}
	}
	return k;
}

static void check_file(struct made *m, const struct set *rows, size_t n_rows,
		       hsize_t user_block)
{
	struct set sets[64];
	size_t n = expand(rows, n_rows, sets);
	struct oracle o = {0};
	struct err e = ERR_INIT;
	uint64_t headers[64];
	struct blob blob;
	struct h5_file f;
	struct stat st;
	int fd;

	for (size_t i = 0; i < n; i++)
		write_set(m, &sets[i]);
	for (size_t i = 0; i < n; i++) {
		H5O_info_t info;

		assert_true(H5Oget_info_by_name(m->file, sets[i].name, &info, H5P_DEFAULT) >=
			    0);
		headers[i] = info.addr + user_block;
	}
	H5Fclose(m->file);
	fd = open(m->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	blob = blob_of_fd(fd, (uint64_t)st.st_size);
	if (h5_file_read(&blob, &f, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(f.base, user_block);
	assert_true(f.eof <= f.size);
	for (size_t i = 0; i < n; i++)
		check_set(&f, &sets[i], headers[i]);
	close(fd);
	assert_int_equal(oracle_file(&o, m->path, &e), 0);
	assert_int_equal(o.mismatches, 0);
	/* libhdf5 cannot reopen its own extensible arrays when lengths have 4 bytes */
	if (f.length_size == 8)
		assert_int_equal(o.chunked, n);
	unlink(m->path);
}

static void btree1(hsize_t user_block, size_t widths, unsigned k)
{
	static const struct set sets[] = {
		{"1", HDF5_INDEX_BTREE1, 1, {1000}, {1000}, {7}, .forms = ALL},
		{"2", HDF5_INDEX_BTREE1, 2, {40, 60}, {UNL, 60}, {3, 7}, .forms = ALL},
		{"3", HDF5_INDEX_BTREE1, 3, {9, 21, 13}, {9, UNL, 40}, {2, 3, 5}, .forms = ALL},
		{"far", HDF5_INDEX_BTREE1, 1, {20000}, {UNL}, {1}, .forms = BOTH, .fill = ENDS},
	};
	struct made m;

	make_file(&m, false, user_block, widths, k);
	check_file(&m, sets, ARRAY_LEN(sets), user_block);
}

static void test_btree1(void **state)
{
	(void)state;
	btree1(0, 0, 0);
	btree1(512, 0, 0);
	btree1(0, 4, 2);      /* a deep tree */
	btree1(1024, 4, 300); /* one node */
}

static const struct set latest_sets[] = {
	{"fa1", HDF5_INDEX_FARRAY, 1, {1000}, {1200}, {7}, .forms = ALL},
	{"fa2", HDF5_INDEX_FARRAY, 2, {40, 60}, {50, 90}, {3, 7}, .forms = ALL},
	{"fa3", HDF5_INDEX_FARRAY, 3, {9, 21, 13}, {9, 30, 40}, {2, 3, 5}, .forms = ALL},
	{"fa-paged", HDF5_INDEX_FARRAY, 1, {3000}, {3500}, {1}, .forms = BOTH},
	{"fa-pages",
	 HDF5_INDEX_FARRAY,
	 2,
	 {150, 100},
	 {300, 100},
	 {1, 1},
	 .forms = BOTH,
	 .fill = ENDS},
	{"ea1", HDF5_INDEX_EARRAY, 1, {1000}, {UNL}, {7}, .forms = ALL},
	{"ea2-0", HDF5_INDEX_EARRAY, 2, {40, 60}, {UNL, 80}, {3, 7}, .forms = ALL},
	{"ea2-1", HDF5_INDEX_EARRAY, 2, {40, 60}, {50, UNL}, {3, 7}, .forms = ALL},
	{"ea3-1", HDF5_INDEX_EARRAY, 3, {9, 21, 13}, {12, UNL, 13}, {2, 3, 5}, .forms = ALL},
	{"ea3-2", HDF5_INDEX_EARRAY, 3, {9, 21, 13}, {12, 30, UNL}, {2, 3, 5}, .forms = ALL},
	{"ea-far", HDF5_INDEX_EARRAY, 1, {400000}, {UNL}, {1}, .forms = BOTH, .fill = ENDS},
	{"bt2", HDF5_INDEX_BTREE2, 2, {40, 60}, {UNL, UNL}, {3, 7}, .forms = ALL},
	{"bt3", HDF5_INDEX_BTREE2, 3, {19, 21, 13}, {UNL, 21, UNL}, {1, 1, 2}, .forms = ALL},
};

static const struct set latest_more[] = {
	{"one", HDF5_INDEX_SINGLE, 2, {5, 6}, {5, 6}, {5, 6}, .forms = BOTH},
	{"implicit", .index = HDF5_INDEX_IMPLICIT, .rank = 2, .dims = {20, 30}, .max = {27, 35},
	 .chunk = {3, 7}, .early = true, .fill = SPARSE},
	{"early", .index = HDF5_INDEX_EARRAY, .rank = 2, .dims = {20, 30}, .max = {27, UNL},
	 .chunk = {3, 7}, .early = true, .fill = SPARSE},
	{"edges", .index = HDF5_INDEX_FARRAY, .rank = 2, .dims = {20, 30}, .max = {20, 30},
	 .chunk = {3, 7}, .deflate = true, .edges_unfiltered = true},
	{"edges-ea", .index = HDF5_INDEX_EARRAY, .rank = 2, .dims = {20, 30}, .max = {20, UNL},
	 .chunk = {3, 7}, .deflate = true, .edges_unfiltered = true},
	{"edges-bt", .index = HDF5_INDEX_BTREE2, .rank = 2, .dims = {20, 30}, .max = {UNL, UNL},
	 .chunk = {3, 7}, .deflate = true, .edges_unfiltered = true},
};

static void test_latest(void **state)
{
	struct made m;

	(void)state;
	make_file(&m, true, 0, 0, 0);
	check_file(&m, latest_sets, ARRAY_LEN(latest_sets), 0);
	make_file(&m, true, 512, 0, 0);
	check_file(&m, latest_sets, ARRAY_LEN(latest_sets), 512);
	make_file(&m, true, 512, 4, 0);
	check_file(&m, latest_sets, ARRAY_LEN(latest_sets), 512);
}

static void test_latest_more(void **state)
{
	struct made m;

	(void)state;
	make_file(&m, true, 0, 0, 0);
	check_file(&m, latest_more, ARRAY_LEN(latest_more), 0);
	make_file(&m, true, 2048, 4, 0);
	check_file(&m, latest_more, ARRAY_LEN(latest_more), 2048);
}

static void test_small_widths(void **state)
{
	static const struct set sets[] = {
		{"b", HDF5_INDEX_BTREE1, 2, {10, 12}, {10, UNL}, {3, 7}, .forms = BOTH},
	};
	struct made m;

	(void)state;
	make_file(&m, false, 0, 2, 4);
	check_file(&m, sets, ARRAY_LEN(sets), 0);
}

/* Compact, contiguous, scalar, empty and never written datasets; an extent that shrank. */
static void test_other(void **state)
{
	struct set s = {.name = "shrunk",
			.index = HDF5_INDEX_BTREE1,
			.rank = 2,
			.dims = {20, 30},
			.max = {UNL, UNL},
			.chunk = {3, 7}};
	struct oracle o = {0};
	struct err e = ERR_INIT;
	struct made m;

	(void)state;
	for (int latest = 0; latest < 2; latest++) {
		hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), scalar = H5Screate(H5S_SCALAR);
		hsize_t none[2] = {0, 4}, max[2] = {UNL, 4}, small[2] = {7, 8},
			chunk[2] = {2, 4};
		hid_t empty = H5Screate_simple(2, none, max), ds;
		double v = 3;

		make_file(&m, latest != 0, 0, 0, 0);
		write_set(&m, &s);
		ds = H5Dopen2(m.file, s.name, H5P_DEFAULT);
		H5Dset_extent(ds, small);
		H5Dclose(ds);
		ds = H5Dcreate2(m.file, "scalar", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, dcpl,
				H5P_DEFAULT);
		H5Dwrite(ds, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &v);
		H5Dclose(ds);
		H5Pset_layout(dcpl, H5D_COMPACT);
		H5Dclose(H5Dcreate2(m.file, "compact", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT,
				    dcpl, H5P_DEFAULT));
		H5Pset_chunk(dcpl, 2, chunk);
		H5Dclose(H5Dcreate2(m.file, "empty", H5T_NATIVE_DOUBLE, empty, H5P_DEFAULT,
				    dcpl, H5P_DEFAULT));
		H5Fclose(m.file);
		H5Sclose(scalar);
		H5Sclose(empty);
		H5Pclose(dcpl);
		o = (struct oracle){0};
		assert_int_equal(oracle_file(&o, m.path, &e), 0);
		assert_int_equal(o.mismatches, 0);
		assert_int_equal(o.datasets, 4);
		unlink(m.path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_btree1),      cmocka_unit_test(test_latest),
		cmocka_unit_test(test_latest_more), cmocka_unit_test(test_small_widths),
		cmocka_unit_test(test_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
