/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_rw_fake.h - a writable virtual file over an HDF5 file that a test makes, with a commit
 * that takes everything: the file that was written becomes the dataset, whole. Programs are played
 * by libhdf5 on a copy, whose differences are written. */
#ifndef TESTS_UNIT_HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_FAKE_H
#define TESTS_UNIT_HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_FAKE_H

#include "base/os/io.h"
#include "hdf5view/virtual_rw/virtual_rw_int.h"
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ROWS 60
#define COLS 50

struct rwf {
	char dir[64], path[80], copy[80];
	int dir_fd;
	struct view *v;
	struct snapshots *g;
	/* what the commits saw */
	unsigned commits;
	int fail; /* what the next ones give; -EINPROGRESS: behind the point of no return */
	unsigned ends; /* calls of `end` */
	int end_fail;  /* what the next ones give */
	bool had_was, readable;
	bool was_row;      /* `was` has the dataset */
	uint64_t changed;  /* bytes of the old file's size that were written */
	const char *extra; /* a dataset that `now` is to have, or NULL */
	bool has_extra;
};

static inline int rwf_open_ground(void *arg, struct view **ret, struct err *e)
{
	static const struct source_options so = {.cut_bytes = 1 << 12,
						 .max_chunk_bytes = 1 << 20,
						 .max_index_bytes = 1 << 20,
						 .max_meta_bytes = 1 << 20};
	static const struct nc_view_options vo = {.name = "x.nc",
						  .io = {.cache_bytes = 1 << 20},
						  .max_image_bytes = 1 << 24,
						  .max_index_bytes = 1 << 20};
	const struct source_ops *formats[] = {&hdf5_source_ops};
	struct rwf *f = arg;
	struct source *source;
	int rc = source_open(formats, 1, f->path, &so, &source, e);

	if (rc < 0)
		return rc;
	rc = nc_view_open(source, &vo, ret, e);
	if (rc < 0)
		source_close(source);
	return rc;
}

/* ---- HDF5 files ---- */

static inline void rwf_set(hid_t file, const char *name, const int32_t *v, bool chunked)
{
	hsize_t shape[2] = {ROWS, COLS}, chunk[2] = {25, 20};
	hid_t space = H5Screate_simple(2, shape, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t set;

	if (chunked)
		assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0 && H5Pset_deflate(dcpl, 4) >= 0);
	set = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(set >= 0);
	assert_true(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	assert_true(H5Dclose(set) >= 0 && H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
}

/* rwf_values - of a dataset, by a seed. */
static inline const int32_t *rwf_values(int32_t seed)
{
	static int32_t v[ROWS * COLS];

	for (int32_t i = 0; i < ROWS * COLS; i++)
		v[i] = seed * 1000000 + i * (i % 7);
	return v;
}

static inline void rwf_make(const char *path)
{
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

	assert_true(file >= 0);
	rwf_set(file, "packed", rwf_values(1), true);
	rwf_set(file, "plain", rwf_values(2), false);
	assert_true(H5Fclose(file) >= 0);
}

/* rwf_add - another program adds a dataset to a file. */
static inline void rwf_add(const char *path, const char *name, int32_t seed)
{
	hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

	assert_true(file >= 0);
	rwf_set(file, name, rwf_values(seed), true);
	assert_true(H5Fclose(file) >= 0);
}

/* rwf_has - whether a file can be opened, and has a dataset with these values; seed 0: whatever its
 * values are, which may be holes. */
static inline bool rwf_has(const char *path, const char *name, int32_t seed)
{
	int32_t got[ROWS * COLS];
	hid_t file = H5I_INVALID_HID, set = H5I_INVALID_HID;
	bool ok = false;

	H5E_BEGIN_TRY
	{
		file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
		set = file >= 0 ? H5Dopen2(file, name, H5P_DEFAULT) : H5I_INVALID_HID;
	}
	H5E_END_TRY;
	if (set >= 0)
		ok = seed == 0 ||
		     (H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0 &&
		      memcmp(got, rwf_values(seed), sizeof(got)) == 0);
	if (set >= 0)
		assert_true(H5Dclose(set) >= 0);
	if (file >= 0)
		assert_true(H5Fclose(file) >= 0);
	return ok;
}

/* ---- the commit ---- */

/* rwf_replace - everything that readers of the old state have open is about to go. */
static inline int rwf_replace(const struct file_rw_change *c, struct err *e)
{
	const struct dataset *ds = &c->source->ds;
	int rc = 0;

	for (uint32_t a = 0; rc == 0 && a < ds->n_arrays; a++)
		for (uint64_t l = 0; rc == 0 && l < ds->arrays[a].n_chunks; l++)
			rc = c->replaced(c->arg, a, l, e);
	return rc;
}

static inline int rwf_commit(void *arg, const struct file_rw_change *c, struct err *e)
{
	struct rwf *f = arg;
	char temp[96];
	struct stat st;
	int from, to, rc;

	f->commits++;
	f->had_was = c->was != NULL;
	f->was_row = c->was && rwf_has(c->was, "packed", 0);
	if (f->fail != -EBADMSG) { /* libhdf5 leaks memory over files that are none */
		f->readable = rwf_has(c->now, "packed", 0);
		f->has_extra = f->extra && rwf_has(c->now, f->extra, 0);
	}
	assert_int_equal(stat(c->now, &st), 0);
	f->changed = 0;
	for (uint64_t at = 0; at < (uint64_t)st.st_size; at += RW_PAGE)
		f->changed += c->written(c->arg, at, 1);
	if (f->fail && f->fail != -EINPROGRESS)
		return err_set(e, f->fail, "made up");
	rc = c->fill(c->arg, 0, (uint64_t)st.st_size, e);
	if (rc == 0)
		rc = rwf_replace(c, e);
	if (rc < 0)
		return rc;
	if (!rwf_has(c->now, "packed", 0))
		return err_set(e, -EBADMSG, "not HDF5");
	(void)snprintf(temp, sizeof(temp), "%s.new", f->path);
	from = open(c->now, O_RDONLY | O_CLOEXEC);
	to = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(from >= 0 && to >= 0);
	assert_int_equal(rw_clone(from, to, e), 0);
	(void)close(from);
	(void)close(to);
	if (f->fail)
		return err_set(e, f->fail, "made up");
	assert_int_equal(rename(temp, f->path), 0);
	return 0;
}

/* rwf_end - the rest of a commit that gave -EINPROGRESS. */
static inline int rwf_end(void *arg, struct err *e)
{
	struct rwf *f = arg;
	char temp[96];

	f->ends++;
	if (f->end_fail)
		return err_set(e, f->end_fail, "made up as well");
	(void)snprintf(temp, sizeof(temp), "%s.new", f->path);
	assert_int_equal(rename(temp, f->path), 0);
	return 0;
}

/* ---- the view ---- */

static inline void rwf_view(struct rwf *f)
{
	struct file_rw_options o = {.dir_fd = f->dir_fd,
				    .dir = f->dir,
				    .name = "x.nc",
				    .id_limit = 1 << 20,
				    .commit = rwf_commit,
				    .end = rwf_end,
				    .arg = f};
	struct err e = ERR_INIT;

	if (snapshots_new(rwf_open_ground, f, &f->g, &e) < 0 ||
	    nc_rw_open(f->g, &o, &f->v, &e) < 0)
		fail_msg("%s", e.msg);
}

static inline int rwf_setup(void **state)
{
	struct rwf *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/nczarrfs-rw-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s.h5", f->dir);
	(void)snprintf(f->copy, sizeof(f->copy), "%s.copy", f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dir_fd >= 0);
	rwf_make(f->path);
	rwf_view(f);
	*state = f;
	return 0;
}

static inline int rwf_teardown(void **state)
{
	struct rwf *f = *state;
	char command[256];

	if (f->v)
		f->v->ops->close(f->v);
	(void)close(f->dir_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s %s %s", f->dir, f->path, f->copy);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* ---- requests ---- */

static inline uint64_t rwf_id(struct rwf *f, const char *name)
{
	struct view_attr at;

	return f->v->ops->lookup(f->v, VIEW_ROOT, name, strlen(name), &at, NULL) == 0 ? at.id
										      : 0;
}

static inline uint64_t rwf_size(struct rwf *f, const char *name)
{
	struct view_attr at = {.size = 0};
	struct err e = ERR_INIT;

	if (f->v->ops->lookup(f->v, VIEW_ROOT, name, strlen(name), &at, &e) < 0 || at.unknown)
		fail_msg("'%s': %s", name, e.msg);
	return at.size;
}

/* rwf_open - open by name like the kernel: a stale id is looked up again, once. */
static inline uint64_t rwf_open(struct rwf *f, const char *name, int flags, uint64_t *ret_id)
{
	struct view_handle h = {.fh = 0};
	struct err e = ERR_INIT;
	int rc;

	*ret_id = rwf_id(f, name);
	rc = f->v->write->open(f->v, *ret_id, flags, &h, &e);
	if (rc == -ESTALE) {
		*ret_id = rwf_id(f, name);
		rc = f->v->write->open(f->v, *ret_id, flags, &h, &e);
	}
	if (rc < 0)
		fail_msg("open '%s': %s", name, e.msg);
	return h.fh;
}

static inline uint64_t rwf_create(struct rwf *f, const char *name, int flags, uint64_t *ret_id)
{
	struct view_handle h = {.fh = 0};
	struct view_attr at;
	struct err e = ERR_INIT;

	if (f->v->write->create(f->v, VIEW_ROOT, name, flags, 0644, &at, &h, &e) <
	    0)
		fail_msg("create '%s': %s", name, e.msg);
	*ret_id = at.id;
	return h.fh;
}

static inline int rwf_close(struct rwf *f, uint64_t id, uint64_t fh)
{
	int rc = f->v->write->flush(f->v, id, fh, NULL);

	f->v->write->release(f->v, id, fh);
	return rc;
}

/* rwf_read - exactly n bytes. */
static inline void rwf_read(struct rwf *f, uint64_t id, uint64_t fh, uint64_t off, size_t n,
			    uint8_t *out)
{
	struct err e = ERR_INIT;
	struct span s;

	while (n > 0) {
		size_t got;

		if (f->v->ops->read(f->v, id, fh, off, n, out, &s, &e) < 0)
			fail_msg("read at %llu: %s", (unsigned long long)off, e.msg);
		got = s.len + s.zeros;
		assert_true(got > 0 && got <= n);
		if (s.len > 0 && !s.mem)
			assert_int_equal(pread(s.fd, out, s.len, (off_t)s.off), s.len);
		else if (s.len > 0 && s.mem != out)
			memcpy(out, s.mem, s.len);
		memset(out + s.len, 0, s.zeros);
		span_done(&s);
		off += got;
		out += got;
		n -= got;
	}
}

/* rwf_out - all of an open file into f->copy. */
static inline void rwf_out(struct rwf *f, uint64_t id, uint64_t fh)
{
	struct view_attr at;
	uint8_t *all;
	int fd;

	assert_int_equal(f->v->ops->getattr(f->v, id, &at, NULL), 0);
	all = malloc(at.size ? at.size : 1);
	assert_non_null(all);
	rwf_read(f, id, fh, 0, at.size, all);
	fd = open(f->copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, all, at.size), at.size);
	(void)close(fd);
	free(all);
}

/* rwf_in - make the open file what f->copy is: only bytes that are different are written, in pieces
 * that begin and end anywhere. */
static inline void rwf_in(struct rwf *f, uint64_t id, uint64_t fh)
{
	int fd = open(f->copy, O_RDONLY | O_CLOEXEC);
	struct view_attr at;
	struct err e = ERR_INIT;
	struct stat st;
	uint8_t *old, *new;
	size_t n, end;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(f->v->ops->getattr(f->v, id, &at, NULL), 0);
	n = (size_t)st.st_size;
	old = calloc(1, n > at.size ? n : at.size);
	new = malloc(n);
	assert_true(old && new);
	rwf_read(f, id, fh, 0, at.size, old);
	assert_int_equal(read(fd, new, n), n);
	for (size_t i = 0; i < n; i = end) {
		end = i + 1;
		if (i < at.size && old[i] == new[i])
			continue;
		while (end < n && end < i + 3000 && (end >= at.size || old[end] != new[end]))
			end++;
		if (f->v->write->write(f->v, id, fh, i, new + i, end - i, &e) < 0)
			fail_msg("write: %s", e.msg);
	}
	if (n < at.size) {
		struct view_set set = {.size_set = true, .size = n};

		assert_int_equal(f->v->write->setattr(f->v, id, fh, &set, &at, &e), 0);
	}
	free(old);
	free(new);
	(void)close(fd);
}

/* rwf_sees - whether a reader through this handle finds a dataset with these values. */
static inline bool rwf_sees(struct rwf *f, uint64_t id, uint64_t fh, const char *name,
			    int32_t seed)
{
	rwf_out(f, id, fh);
	return rwf_has(f->copy, name, seed);
}

/* rwf_shows - the same for a program that opens the file now. */
static inline bool rwf_shows(struct rwf *f, const char *file, const char *name, int32_t seed)
{
	uint64_t id, fh = rwf_open(f, file, O_RDONLY, &id);
	bool ok = rwf_sees(f, id, fh, name, seed);

	assert_int_equal(rwf_close(f, id, fh), 0);
	return ok;
}

/* rwf_edit - a program that has the file open for writing adds a dataset, or overwrites one. */
static inline void rwf_edit(struct rwf *f, uint64_t id, uint64_t fh, const char *name,
			    int32_t seed)
{
	hid_t file, set;

	rwf_out(f, id, fh);
	file = H5Fopen(f->copy, H5F_ACC_RDWR, H5P_DEFAULT);
	assert_true(file >= 0);
	if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
		set = H5Dopen2(file, name, H5P_DEFAULT);
		assert_true(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT,
				     rwf_values(seed)) >= 0);
		assert_true(H5Dclose(set) >= 0);
	} else {
		rwf_set(file, name, rwf_values(seed), true);
	}
	assert_true(H5Fclose(file) >= 0);
	rwf_in(f, id, fh);
}

#endif
