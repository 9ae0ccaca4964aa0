/* SPDX-License-Identifier: BSD-3-Clause */
/* Stored chunks with damaged bytes, from the source through the view: libhdf5 sees none of them
 * when a file is opened, and our decoders must neither crash nor answer with a wrong length. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <hdf5.h>

#include "hdf5view/hdf5view.h"
#include "nczarr/nczarr.h"

#define ROUNDS 250
#define CHUNKS 8
#define ELEMS 500
#define ARRAYS 3

struct fixture {
	char path[64];
	uint64_t seed;
	struct source *s;
	struct view *v;
	unsigned good, bad;
};

static uint64_t rnd(struct fixture *f, uint64_t below)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed % below;
}

static void put_array(hid_t file, const char *name, bool shuffle, bool deflate, bool sum)
{
	static const hsize_t dims[1] = {CHUNKS * ELEMS}, chunk[1] = {ELEMS};
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, dims, NULL), d;
	int32_t data[CHUNKS * ELEMS];

	for (int32_t i = 0; i < CHUNKS * ELEMS; i++)
		data[i] = i * i;
	assert_true(H5Pset_chunk(dcpl, 1, chunk) >= 0);
	assert_true(!shuffle || H5Pset_shuffle(dcpl) >= 0);
	assert_true(!deflate || H5Pset_deflate(dcpl, 6) >= 0);
	assert_true(!sum || H5Pset_fletcher32(dcpl) >= 0);
	d = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(d >= 0 &&
		    H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0 && H5Pclose(dcpl) >= 0);
}

static int setup(void **state)
{
	static const char name[] = "/tmp/nczarrfs-damage-XXXXXX";
	struct fixture *f = calloc(1, sizeof(*f));
	hid_t file;
	int fd;

	assert_non_null(f);
	f->seed = 88172645463325252u;
	memcpy(f->path, name, sizeof(name));
	fd = mkstemp(f->path);
	assert_true(fd >= 0 && close(fd) == 0);
	file = H5Fcreate(f->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(file >= 0);
	put_array(file, "a", false, true, false);
	put_array(file, "b", true, true, true);
	put_array(file, "c", true, false, true);
	assert_true(H5Fclose(file) >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unlink(f->path), 0);
	free(f);
	return 0;
}

static void open_it(struct fixture *f, enum plan_filter filter)
{
	static const struct source_ops *const formats[] = {&hdf5_source_ops};
	const struct source_options opts = {.cut_bytes = 4096,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};
	const struct zarr_view_options view = {
		.policy.filter = filter, .io = {.cache_bytes = 1 << 14}, .max_meta_bytes = 1 << 20};

	assert_int_equal(source_open(formats, 1, f->path, &opts, &f->s, NULL), 0);
	assert_int_equal(zarr_view_open(f->s, &view, &f->v, NULL), 0);
}

static void close_it(struct fixture *f)
{
	f->v->ops->close(f->v);
	source_close(f->s);
}

/* read_chunk - through the view, in two pieces. */
static void read_chunk(struct fixture *f, const char *array, unsigned chunk, bool decoded)
{
	const char name[2] = {(char)('0' + chunk), '\0'};
	struct view_attr dir, attr;
	struct err e = ERR_INIT;
	uint64_t at = 0;
	int rc = 0;

	assert_int_equal(f->v->ops->lookup(f->v, VIEW_ROOT, array, 1, &dir, &e), 0);
	assert_int_equal(f->v->ops->lookup(f->v, dir.id, name, 1, &attr, &e), 0);
	assert_true(!decoded || attr.size == ELEMS * sizeof(int32_t));
	while (rc == 0 && at < attr.size) {
		struct span s = {0};

		rc = f->v->ops->read(f->v, attr.id, 0, at, attr.size / 2 + 1, NULL, &s, &e);
		if (rc == 0) {
			assert_true(s.len + s.zeros > 0 && s.len + s.zeros <= attr.size - at);
			at += s.len + s.zeros;
			span_done(&s);
		}
	}
	assert_true(rc == 0 || rc == -EBADMSG);
	assert_true(rc == 0 || strstr(e.msg, "chunk"));
	f->good += rc == 0;
	f->bad += rc < 0;
}

/* damage - change up to four bytes of a stored chunk in the file. */
static void damage(struct fixture *f, const struct chunk_ref *at, uint8_t *keep)
{
	int fd = open(f->path, O_RDWR | O_CLOEXEC);
	uint64_t n = 1 + rnd(f, 4);
	uint8_t b;

	assert_true(fd >= 0 && at->len <= 4096);
	assert_int_equal(pread(fd, keep, at->len, (off_t)at->off), at->len);
	for (uint64_t i = 0; i < n; i++) {
		/* the first bytes say how the rest is to be read */
		uint64_t off = at->off + rnd(f, rnd(f, 2) ? at->len : 16);

		b = (uint8_t)rnd(f, 256);
		assert_int_equal(pwrite(fd, &b, 1, (off_t)off), 1);
	}
	assert_int_equal(close(fd), 0);
}

static void restore(struct fixture *f, const struct chunk_ref *at, const uint8_t *keep)
{
	int fd = open(f->path, O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, keep, at->len, (off_t)at->off), at->len);
	assert_int_equal(close(fd), 0);
}

static void test_damage(void **state)
{
	static const char *const names[ARRAYS] = {"a", "b", "c"};
	struct fixture *f = *state;
	struct chunk_ref at;
	uint8_t keep[4096];

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned array = i % ARRAYS, chunk = (unsigned)rnd(f, CHUNKS);
		bool decoded = i % 5 != 0;

		open_it(f, PLAN_NONE);
		assert_int_equal(source_locate(f->s, array, chunk, &at, NULL), 0);
		assert_int_equal(at.where, CHUNK_RANGE);
		close_it(f);
		damage(f, &at, keep);
		open_it(f, decoded ? PLAN_NONE : PLAN_PORTABLE);
		read_chunk(f, names[array], chunk, decoded);
		close_it(f);
		restore(f, &at, keep);
	}
	assert_true(f->bad > ROUNDS / 3);
	for (unsigned i = 0; i < ARRAYS * CHUNKS; i++) {
		unsigned bad = f->bad;

		open_it(f, PLAN_NONE);
		read_chunk(f, names[i % ARRAYS], i / ARRAYS, true);
		close_it(f);
		assert_int_equal(f->bad, bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
	};

	return cmocka_run_group_tests_name("whole_damage", tests, NULL, NULL);
}
