/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_h5_util.h - a netCDF-4 file that is changed by a sink: what its tests share. */
#ifndef TESTS_UNIT_HDF5VIEW_SINK_SINK_H5_UTIL_H
#define TESTS_UNIT_HDF5VIEW_SINK_SINK_H5_UTIL_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"
#include "tests/unit/hdf5view/nc_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct sk {
	char dir[64], path[96];
	int dir_fd;
	struct source *real;
	struct nc_fake *now;
	struct sink *sink;
};

#define SK_OK(rc)                                                                              \
	do {                                                                                   \
		int sk_rc = (rc);                                                              \
		if (sk_rc)                                                                     \
			print_error("%d: %s\n", sk_rc, e.msg);                                 \
		assert_int_equal(sk_rc, 0);                                                    \
	} while (0)

static inline struct source *sk_source(const char *path)
{
	static const struct source_ops *const formats[] = {&hdf5_source_ops};
	const struct source_options o = {.cut_bytes = 1 << 20,
					 .max_chunk_bytes = 1 << 28,
					 .max_index_bytes = 1 << 28,
					 .max_meta_bytes = 1 << 28};
	struct source *s = NULL;
	struct err e = ERR_INIT;

	SK_OK(source_open(formats, 1, path, &o, &s, &e));
	return s;
}

/* sk_new - an empty file in a directory of its own. */
static inline void sk_new(struct sk *k)
{
	struct err e = ERR_INIT;

	*k = (struct sk){.dir = "/tmp/nczarrfs-sink-XXXXXX"};
	assert_non_null(mkdtemp(k->dir));
	(void)snprintf(k->path, sizeof(k->path), "%s/x.nc", k->dir);
	k->dir_fd = open(k->dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	SK_OK(hdf5_create(k->path, 0, &e));
}

/* sk_begin - open it, with a dataset that it is to be; filled by the caller, then sk_start. */
static inline struct nc_fake *sk_begin(struct sk *k)
{
	struct err e = ERR_INIT;

	k->real = sk_source(k->path);
	source_hold(k->real, true);
	SK_OK(hdf5_sink_open(k->path, k->real, k->dir_fd, &k->sink, &e));
	k->now = nf_new();
	return k->now;
}

static inline void sk_start(struct sk *k)
{
	struct err e = ERR_INIT;

	nf_finish(k->now);
	SK_OK(k->sink->ops->begin(k->sink, k->real, &k->now->base, &e));
}

/* sk_end - close, after a commit or without one. */
static inline void sk_end(struct sk *k, bool commit)
{
	struct err e = ERR_INIT;

	if (commit)
		SK_OK(k->sink->ops->commit(k->sink, NULL, NULL, &e));
	sink_close(k->sink);
	k->sink = NULL;
	nf_free(k->now);
	source_close(k->real);
}

static inline void sk_remove(struct sk *k)
{
	char command[128];

	(void)close(k->dir_fd);
	if (getenv("SINK_KEEP")) {
		print_message("kept: %s\n", k->path);
		return;
	}
	(void)snprintf(command, sizeof(command), "rm -rf %s", k->dir);
	assert_int_equal(system(command), 0);
}

/* sk_add - an array, stored as the model has it. */
static inline void sk_add(struct sk *k, uint32_t array)
{
	const struct sink_new how = {.chain = k->now->arrays[array].chain};
	struct err e = ERR_INIT;

	SK_OK(k->sink->ops->add_array(k->sink, array, &how, &e));
}

static inline void sk_put(struct sk *k, uint32_t array, uint64_t linear, const void *p,
			  size_t n)
{
	const struct sink_chunk c = {.p = p, .len = n};
	struct err e = ERR_INIT;

	SK_OK(k->sink->ops->put(k->sink, array, linear, &c, &e));
}

/* ---- contents of the file ---- */

static inline hid_t sk_h5(const struct sk *k)
{
	hid_t f = H5Fopen(k->path, H5F_ACC_RDONLY, H5P_DEFAULT);

	assert_true(f >= 0);
	return f;
}

static inline void sk_ints(const struct sk *k, const char *name, int32_t *out, hsize_t want)
{
	hid_t f = sk_h5(k), d = H5Dopen2(f, name, H5P_DEFAULT), s = H5Dget_space(d);

	assert_int_equal(H5Sget_simple_extent_npoints(s), want);
	assert_true(H5Dread(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
	assert_true(H5Sclose(s) >= 0 && H5Dclose(d) >= 0 && H5Fclose(f) >= 0);
}

static inline uint32_t sk_array(const struct source *s, const char *path)
{
	struct buf b;
	uint32_t found = DS_NONE;

	buf_init(&b, 1 << 16);
	for (uint32_t i = 0; i < s->ds.n_arrays; i++) {
		buf_clear(&b);
		ds_array_path(&s->ds, i, &b);
		buf_putc(&b, '\0');
		if (strcmp((char *)b.data, path) == 0)
			found = i;
	}
	buf_release(&b);
	return found;
}

#endif
