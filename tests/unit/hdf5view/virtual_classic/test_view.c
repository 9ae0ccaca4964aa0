/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual classic file of a classic file is that file, byte for byte, in reads of any offset
 * and length. The source's chunks are small, so that a read needs several. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define TEXT(s)                                                                                \
	{                                                                                      \
		(s), sizeof(s) - 1                                                             \
	}
#define FILE_ID 2

/* shape - one file to be made: dimensions 0 (records), 3, 7, 40; variables of these. */
struct shape {
	unsigned version;
	uint64_t records;
	uint32_t n_vars;
	struct {
		uint32_t type, rank, dims[4];
	} vars[6];
};

static const struct shape shapes[] = {
	{1, 0, 0, {{0}}},
	{1, 5, 1, {{CDF_BYTE, 1, {0}}}},
	{1, 50, 1, {{CDF_SHORT, 2, {0, 1}}}},
	{2, 17, 3, {{CDF_BYTE, 2, {0, 1}}, {CDF_DOUBLE, 1, {0}}, {CDF_CHAR, 3, {0, 2, 3}}}},
	{1, 4, 2, {{CDF_FLOAT, 3, {0, 3, 2}}, {CDF_SHORT, 2, {0, 1}}}},
	{5,
	 9,
	 6,
	 {{CDF_UBYTE, 3, {1, 2, 3}},
	  {CDF_INT64, 2, {0, 2}},
	  {CDF_USHORT, 0, {0}},
	  {CDF_UINT64, 4, {0, 1, 2, 3}},
	  {CDF_BYTE, 1, {1}},
	  {CDF_UINT, 2, {3, 3}}}},
	{1, 0, 3, {{CDF_BYTE, 2, {0, 1}}, {CDF_INT, 2, {2, 3}}, {CDF_DOUBLE, 0, {0}}}},
};

struct fixture {
	struct cdf_dim dims[4];
	struct cdf_var vars[6];
	struct cdf_header h;
	struct cdf_layout l;
	struct buf file; /* the bytes of the file */
	char path[64];
	struct source *s;
	struct view *v;
	struct err e;
};

static int setup(void **state)
{
	static const struct cdf_dim dims[] = {
		{TEXT("t"), 0}, {TEXT("x"), 3}, {TEXT("y"), 7}, {TEXT("z"), 40}};
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	memcpy(f->dims, dims, sizeof(dims));
	memcpy(f->path, "/dev/shm/nczarrfs-XXXXXX", 25);
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	buf_init(&f->file, 1 << 24);
	*state = f;
	return 0;
}

static void shut(struct fixture *f)
{
	if (f->v)
		f->v->ops->close(f->v);
	source_close(f->s);
	f->v = NULL;
	f->s = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	shut(f);
	assert_int_equal(unlink(f->path), 0);
	buf_release(&f->file);
	free(f);
	return 0;
}

/* values - the bytes of all slabs, padded with fill values. */
static void values(struct fixture *f)
{
	uint8_t *all = buf_grow(&f->file, (size_t)(f->l.size - f->l.header));

	assert_non_null(all);
	for (uint32_t i = 0; i < f->h.n_vars; i++) {
		const struct cdf_var *v = &f->vars[i];
		const bool rec = cdf_is_record(&f->h, v);
		const uint32_t size = cdf_type_bytes(v->type);
		uint64_t bytes, pad;
		uint8_t fill[8];

		assert_true(cdf_slab_bytes(&f->h, v, &bytes));
		cdf_default_fill(v->type, fill);
		pad = rec && f->l.recsize == bytes ? 0 : cdf_padding(bytes);
		for (uint64_t r = 0; r < (rec ? f->h.numrecs : 1); r++)
			for (uint64_t k = 0; k < pad; k++)
				f->file.data[v->begin + r * f->l.recsize + bytes + k] =
					fill[k % size];
		for (uint64_t r = 0; r < (rec ? f->h.numrecs : 1); r++)
			for (uint64_t k = 0; k < bytes; k++)
				f->file.data[v->begin + r * f->l.recsize + k] =
					(uint8_t)((k * 31 + r * 7 + i * 3 + 1) % 127);
	}
}

static void make(struct fixture *f, const struct shape *s)
{
	static char names[6][2];
	FILE *out;

	f->h = (struct cdf_header){.numrecs = s->records,
				   .n_dims = 4,
				   .dims = f->dims,
				   .n_vars = s->n_vars,
				   .vars = f->vars};
	for (uint32_t i = 0; i < s->n_vars; i++) {
		names[i][0] = (char)('a' + i);
		f->vars[i] = (struct cdf_var){.name = {names[i], 1},
					      .type = s->vars[i].type,
					      .rank = s->vars[i].rank,
					      .dims = s->vars[i].dims};
	}
	if (cdf_layout_make(&f->h, s->version, &f->l, &f->file, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	values(f);
	out = fopen(f->path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(f->file.data, 1, f->file.len, out), f->file.len);
	assert_int_equal(fclose(out), 0);
}

static int open_file(struct fixture *f, uint64_t cut, enum cdf_format format)
{
	const struct source_options opts = {.cut_bytes = cut,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};
	static const struct source_ops *const formats[] = {&cdf_source_ops};
	const struct cdf_view_options view = {.name = "a.nc",
					      .format = format,
					      .io = {.cache_bytes = 1 << 20},
					      .max_meta_bytes = 1 << 20};

	shut(f);
	if (source_open(formats, 1, f->path, &opts, &f->s, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	return cdf_view_open(f->s, &view, &f->v, &f->e);
}

static void opened(struct fixture *f, uint64_t cut, enum cdf_format format)
{
	if (open_file(f, cut, format) < 0)
		fail_msg("%s", f->e.msg);
}

static void same(struct fixture *f, uint64_t off, size_t len)
{
	const size_t want = off < f->file.len ? (size_t)u64_min(len, f->file.len - off) : 0;
	uint8_t *room = malloc(len + 1);
	struct span s;

	assert_non_null(room);
	room[len] = 0xa5;
	if (f->v->ops->read(f->v, FILE_ID, 0, off, len, room, &s, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	assert_int_equal(s.len, want);
	assert_int_equal(room[len], 0xa5);
	if (want)
		assert_memory_equal(s.mem, f->file.data + off, want);
	span_done(&s);
	free(room);
}

/* every_read - reads of all, and of many offsets and lengths. */
static void every_read(struct fixture *f)
{
	uint32_t seed = 1;
	struct view_attr at;

	assert_int_equal(f->v->ops->getattr(f->v, FILE_ID, &at, &f->e), 0);
	assert_int_equal(at.size, f->file.len);
	same(f, 0, f->file.len + 10);
	same(f, f->file.len, 10);
	for (int i = 0; i < 400; i++) {
		seed = seed * 1103515245 + 12345;
		same(f, (seed >> 8) % f->file.len,
		     1 + (size_t)(seed >> 4) % (i % 2 ? 20 : 2000));
	}
}

static void test_same_bytes(void **state)
{
	static const uint64_t cuts[] = {8, 100, 1 << 20};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		make(f, &shapes[i]);
		for (size_t k = 0; k < ARRAY_LEN(cuts); k++) {
			opened(f, cuts[k], (enum cdf_format)shapes[i].version);
			every_read(f);
		}
	}
}

/* The first version that holds the data. */
static void test_auto(void **state)
{
	struct fixture *f = *state;

	make(f, &shapes[3]);
	opened(f, 100, CDF_FORMAT_AUTO);
	assert_non_null(strstr(f->v->format, "CDF-1"));
	make(f, &shapes[5]);
	opened(f, 100, CDF_FORMAT_AUTO);
	assert_non_null(strstr(f->v->format, "CDF-5"));
	every_read(f);
}

/* With CDF-1 requested, variables of its types are left, and each other one has a note. */
static void test_narrow(void **state)
{
	struct fixture *f = *state;

	make(f, &shapes[5]);
	opened(f, 100, CDF_FORMAT_1);
	assert_int_equal(f->v->n_notes, 5);
	assert_non_null(strstr(f->v->notes[0], "/a: left out: only CDF-5"));
	assert_int_equal(f->v->ops->plan(f->v, 0)->kind, PLAN_HIDE);
	assert_int_equal(f->v->ops->plan(f->v, 4)->kind, PLAN_DECODE);
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	struct view_attr at;

	make(f, &shapes[1]);
	opened(f, 100, CDF_FORMAT_AUTO);
	assert_int_equal(f->v->ops->lookup(f->v, VIEW_ROOT, "a.nc", 4, &at, &f->e), 0);
	assert_int_equal(at.id, FILE_ID);
	assert_int_equal(f->v->ops->lookup(f->v, VIEW_ROOT, "a", 1, &at, &f->e), -ENOENT);
	assert_int_equal(f->v->ops->lookup(f->v, FILE_ID, "a", 1, &at, &f->e), -ENOTDIR);
	assert_int_equal(f->v->ops->getattr(f->v, 9, &at, &f->e), -ESTALE);
	assert_null(f->v->write);
}

/* A truncated file: reads that need missing bytes fail, others do not. */
static void test_truncated(void **state)
{
	struct fixture *f = *state;
	uint8_t room[64];
	struct span s;

	make(f, &shapes[4]);
	assert_int_equal(truncate(f->path, (off_t)f->file.len - 3), 0); /* 2 are padding */
	opened(f, 8, CDF_FORMAT_AUTO);
	same(f, 0, f->file.len - 64);
	assert_true(f->v->ops->read(f->v, FILE_ID, 0, f->file.len - 64, 64, room, &s, &f->e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_auto, setup, teardown),
		cmocka_unit_test_setup_teardown(test_narrow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncated, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
