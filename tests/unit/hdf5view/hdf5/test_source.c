/* SPDX-License-Identifier: BSD-3-Clause */
/* The HDF5 source on files that the test makes with libhdf5: model, dimensions, chunk location,
 * library reads. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct source_options opts = {
	.cut_bytes = 1 << 12,
	.max_chunk_bytes = 1 << 20,
	.max_index_bytes = 1 << 20,
	.max_meta_bytes = 1 << 20,
};

struct fixture {
	char path[64];
	hid_t file;
	struct source *s;
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	memcpy(f->path, "/tmp/nczarrfs-XXXXXX", 21);
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	f->file = H5Fcreate(f->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(f->file > 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	source_close(f->s);
	assert_int_equal(unlink(f->path), 0);
	free(f);
	return 0;
}

static struct dataset *open_it(struct fixture *f)
{
	const struct source_ops *formats[] = {&hdf5_source_ops};

	assert_true(H5Fclose(f->file) >= 0);
	if (source_open(formats, 1, f->path, &opts, &f->s, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	return &f->s->ds;
}

static uint32_t find(const struct dataset *ds, const char *name)
{
	for (uint32_t i = 0; i < ds->n_arrays; i++)
		if (strcmp(ds->arrays[i].name, name) == 0)
			return i;
	fail_msg("no array '%s'", name);
	return 0;
}

static hid_t make(hid_t loc, const char *name, hid_t type, int rank, const hsize_t *dims,
		  bool unlimited, const hsize_t *chunk, bool deflate)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, d;
	hsize_t max[2] = {H5S_UNLIMITED, rank > 1 ? dims[1] : 0};

	if (chunk)
		assert_true(H5Pset_chunk(dcpl, rank, chunk) >= 0);
	if (deflate)
		assert_true(H5Pset_deflate(dcpl, 1) >= 0);
	space = H5Screate_simple(rank, dims, unlimited ? max : NULL);
	d = H5Dcreate2(loc, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(d > 0);
	h5_id_close(&space);
	h5_id_close(&dcpl);
	return d;
}

static void text_attr(hid_t obj, const char *name, const char *text)
{
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), a;

	assert_true(H5Tset_size(type, strlen(text) + 1) >= 0);
	a = H5Acreate2(obj, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(a > 0 && H5Awrite(a, type, text) >= 0);
	h5_id_close(&a);
	h5_id_close(&space);
	h5_id_close(&type);
}

/* attach - scale `path` is the first dimension of d. */
static void attach(hid_t file, hid_t d, const char *path)
{
	hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), space, a;
	hsize_t one = 1;
	hobj_ref_t ref;
	hvl_t list = {.len = 1, .p = &ref};

	assert_true(H5Rcreate(&ref, file, path, H5R_OBJECT, -1) >= 0);
	space = H5Screate_simple(1, &one, NULL);
	a = H5Acreate2(d, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(a > 0 && H5Awrite(a, type, &list) >= 0);
	h5_id_close(&a);
	h5_id_close(&space);
	h5_id_close(&type);
}

/* An unlimited dimension is as long as its longest user; what a shorter one lacks is absent. */
static void test_dimensions(void **state)
{
	struct fixture *f = *state;
	const hsize_t ten = 10, three = 3, four = 4;
	const int32_t v[3] = {7, 8, 9};
	const struct dataset *ds;
	const struct ds_array *a;
	struct chunk_ref ref;
	uint8_t got[16];
	uint64_t next;
	hid_t d = make(f->file, "t", H5T_IEEE_F64LE, 1, &ten, true, &four, false);

	text_attr(d, "CLASS", "DIMENSION_SCALE");
	text_attr(d, "NAME", "t");
	text_attr(d, "units", "days");
	h5_id_close(&d);
	d = make(f->file, "v", H5T_STD_I32LE, 1, &three, true, &four, true);
	attach(f->file, d, "/t");
	assert_true(H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	h5_id_close(&d);
	ds = open_it(f);
	assert_int_equal(ds->n_dims, 1);
	assert_string_equal(ds->dims[0].name, "t");
	assert_true(ds->dims[0].unlimited && ds->dims[0].len == 10);
	a = &ds->arrays[find(ds, "t")];
	assert_int_equal(a->n_attrs, 1); /* bookkeeping is hidden */
	assert_string_equal(a->attrs[0].name, "units");
	assert_int_equal(a->attrs[0].strings[0].len, 4);
	a = &ds->arrays[find(ds, "v")];
	assert_int_equal(a->shape[0], 10);
	assert_int_equal(a->n_chunks, 3);
	assert_int_equal(a->chain.n, 1);
	assert_int_equal(a->access, DS_STORED);
	assert_int_equal(source_locate(f->s, find(ds, "v"), 0, &ref, &f->e), 0);
	assert_int_equal(ref.where, CHUNK_RANGE);
	assert_int_equal(source_locate(f->s, find(ds, "v"), 2, &ref, &f->e), 0);
	assert_int_equal(ref.where, CHUNK_ABSENT);
	assert_int_equal(source_next(f->s, find(ds, "v"), 0, &next, &f->e), 0);
	assert_int_equal(next, 0);
	assert_int_equal(source_next(f->s, find(ds, "v"), 1, &next, &f->e), -ENOENT);
	assert_int_equal(source_next(f->s, find(ds, "t"), 0, &next, &f->e), -ENOENT);
	assert_int_equal(source_read_chunk(f->s, find(ds, "v"), 0, got, sizeof(got), &f->e), 0);
	assert_memory_equal(got, v, sizeof(v));
	assert_memory_equal(got + sizeof(v), "\0\0\0\0", 4);
}

/* Arrays stored in one piece are cut into rows; links share the object; cycles end. */
static void test_pieces_and_links(void **state)
{
	struct fixture *f = *state;
	const hsize_t dims[2] = {100, 25};
	const struct dataset *ds;
	const struct ds_array *a;
	struct chunk_ref ref;
	uint64_t first, covered = 0;
	double v[100][25] = {{0}};
	hid_t d = make(f->file, "x", H5T_IEEE_F64LE, 2, dims, false, NULL, false), g;

	assert_true(H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	h5_id_close(&d);
	g = H5Gcreate2(f->file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(H5Lcreate_hard(f->file, "/x", g, "y", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	assert_true(H5Lcreate_hard(f->file, "/", g, "up", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	assert_true(H5Lcreate_soft("/nowhere", g, "lost", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	assert_true(H5Lcreate_external("/etc/x.h5", "/", g, "out", H5P_DEFAULT, H5P_DEFAULT) >=
		    0);
	h5_id_close(&g);
	ds = open_it(f);
	assert_int_equal(ds->n_groups, 2);
	assert_int_equal(ds->n_arrays, 2);
	assert_int_equal(ds->n_notes, 3);
	assert_true(ds->arrays[0].key == ds->arrays[1].key);
	a = &ds->arrays[find(ds, "x")];
	assert_int_equal(a->chunk[0], 20); /* 4096 / 200 */
	assert_int_equal(a->chunk[1], 25);
	assert_int_equal(source_locate(f->s, find(ds, "x"), 0, &ref, &f->e), 0);
	first = ref.off;
	for (uint64_t i = 0; i < a->n_chunks; i++) {
		assert_int_equal(source_locate(f->s, find(ds, "y"), i, &ref, &f->e), 0);
		assert_int_equal(ref.where, CHUNK_RANGE);
		assert_int_equal(ref.off, first + covered);
		covered += ref.len;
	}
	assert_int_equal(covered, sizeof(v));
	assert_string_equal(ds->dims[0].name, "phony_dim_0");
	assert_true(ds->dims[0].phony);
}

static void test_texts(void **state)
{
	struct fixture *f = *state;
	const hsize_t two = 2;
	const char *v[2] = {"ab", "\xe9"};
	static const uint8_t want[] = {2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 0xc3, 0xa9};
	hid_t type = H5Tcopy(H5T_C_S1), d;
	const struct dataset *ds;
	struct buf out;

	assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0);
	d = make(f->file, "s", type, 1, &two, false, NULL, false);
	assert_true(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	h5_id_close(&d);
	h5_id_close(&type);
	ds = open_it(f);
	assert_int_equal(ds->arrays[0].access, DS_VARIABLE);
	buf_init(&out, 1000);
	assert_int_equal(source_read_vlen(f->s, 0, 0, &out, &f->e), 0);
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(out.data, want, sizeof(want));
	buf_release(&out);
}

static void test_stale(void **state)
{
	struct fixture *f = *state;
	int fd;

	(void)open_it(f);
	assert_int_equal(source_check(f->s, &f->e), 0);
	fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(source_check(f->s, &f->e), -ESTALE);
}

/* A file that was replaced before the library was needed is stale, and not damaged. */
static void test_replaced(void **state)
{
	struct fixture *f = *state;
	const hsize_t two = 2;
	uint8_t got[8];
	hid_t d = make(f->file, "v", H5T_STD_I32LE, 1, &two, false, NULL, false);

	h5_id_close(&d);
	(void)open_it(f);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(close(open(f->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(source_read_chunk(f->s, 0, 0, got, sizeof(got), &f->e), -ESTALE);
}

/* A writer's lock is respected, and ours is not kept. */
static void test_lock(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *formats[] = {&hdf5_source_ops};
	int fd = open(f->path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0 && H5Fclose(f->file) >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	if (!getenv("HDF5_USE_FILE_LOCKING")) {
		assert_int_equal(source_open(formats, 1, f->path, &opts, &f->s, &f->e),
				 -EAGAIN);
		assert_non_null(strstr(f->e.msg, "open for writing by another program"));
	}
	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_int_equal(source_open(formats, 1, f->path, &opts, &f->s, &f->e), 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(close(fd), 0);
}

/* opens_with - open the file with a model. Returns whether that one is the source's. */
static bool opens_with(struct fixture *f, const struct source_model *model)
{
	const struct source_ops *formats[] = {&hdf5_source_ops};
	struct source_options shared = opts;
	struct source_model now;
	struct stat was, is;

	shared.model = model;
	if (source_open(formats, 1, f->path, &shared, &f->s, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	assert_int_equal(f->s->ds.n_arrays, 1);
	assert_string_equal(f->s->ds.arrays[0].name, "v");
	source_model_of(f->s, &now);
	assert_int_equal(fstat(model->fd, &was), 0);
	assert_int_equal(fstat(now.fd, &is), 0);
	return was.st_ino == is.st_ino;
}

/* A model is taken over for the file that it was made of, where its place is free, and not for one
 * that was changed since. */
static void test_model(void **state)
{
	struct fixture *f = *state;
	const hsize_t three = 3;
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct source_model model;
	struct source *first;
	hid_t d = make(f->file, "v", H5T_STD_I32LE, 1, &three, false, NULL, false);

	h5_id_close(&d);
	(void)open_it(f);
	first = f->s;
	source_model_of(first, &model);
	assert_true(model.size > 0);
	model.fd = fcntl(model.fd, F_DUPFD_CLOEXEC, 0);
	assert_true(model.fd >= 0);
	assert_false(opens_with(f, &model));
	source_close(f->s);
	source_close(first);
	assert_true(opens_with(f, &model));
	source_close(f->s);
	assert_int_equal(utimensat(AT_FDCWD, f->path, times, 0), 0);
	assert_false(opens_with(f, &model));
	assert_int_equal(close(model.fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dimensions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces_and_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_model, setup, teardown),
	};

	return cmocka_run_group_tests_name("hdf5view_source", tests, NULL, NULL);
}
