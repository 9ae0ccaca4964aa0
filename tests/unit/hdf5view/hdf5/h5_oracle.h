/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_oracle.h - compares hdf5view/format/hdf5_format.h with libhdf5, dataset by dataset and chunk
 * by chunk.
 *
 * The oracle is H5Dread_chunk, never H5Dget_chunk_info: the latter gives wrong coordinates in
 * HDF5 1.10 for extensible arrays whose unlimited dimension is not the first. */
#ifndef TESTS_UNIT_HDF5VIEW_HDF5_H5_ORACLE_H
#define TESTS_UNIT_HDF5VIEW_HDF5_H5_ORACLE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <hdf5.h>

#include "base/os/io.h"
#include "hdf5view/format/hdf5_format.h"

/* libhdf5 loses memory when it fails to open a dataset. */
const char *__lsan_default_suppressions(void);
__attribute__((used, visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libhdf5";
}

#define ORACLE_BYTES ((hsize_t)64 << 20) /* largest chunk compared */
#define ORACLE_CHUNKS 4000               /* positions compared in one dataset, spread evenly */

struct oracle {
	struct blob blob;
	struct h5_file f;
	hid_t file;
	const char *path;
	hsize_t user_block;
	unsigned datasets, chunked, unsupported, mismatches;
	uint64_t chunks, absent, unread; /* unread: libhdf5 itself cannot */
	unsigned kinds[6];               /* by enum h5_index_type */
};

#define ORACLE_FAIL(o, name, ...)                                                              \
	do {                                                                                   \
		(o)->mismatches++;                                                             \
		printf("%s: %s: ", (o)->path, (name));                                         \
		printf(__VA_ARGS__);                                                           \
		printf("\n");                                                                  \
	} while (0)

/* One position: the bytes at (addr, size) and the mask against the library's. */
static inline void oracle_chunk(struct oracle *o, hid_t ds, const char *name,
				const struct h5_layout *l, const hsize_t *off,
				const struct h5_chunk *c)
{
	hsize_t size = 0;
	uint32_t mask = 0;
	uint8_t *want, *got;

	o->chunks++;
	/* for an absent chunk the size may be anything: only reading it is decisive */
	if (H5Dget_chunk_storage_size(ds, off, &size) < 0 || size > ORACLE_BYTES)
		size = 0;
	want = malloc(size + 1);
	got = malloc(size + 1);
	if (c->addr == UINT64_MAX) {
		o->absent++;
		if (size > 0 && H5Dread_chunk(ds, H5P_DEFAULT, off, &mask, want) >= 0)
			ORACLE_FAIL(o, name, "no chunk where the library has one");
	} else if (c->size != size) {
		ORACLE_FAIL(o, name, "chunk of %u bytes, not %llu", c->size,
			    (unsigned long long)size);
	} else if (H5Dread_chunk(ds, H5P_DEFAULT, off, &mask, want) < 0) {
		o->unread++;
	} else if (blob_read(o->f.blob, c->addr, got, size, NULL) < 0) {
		ORACLE_FAIL(o, name, "chunk outside the file");
	} else if (memcmp(want, got, size) != 0) {
		ORACLE_FAIL(o, name, "other bytes in a chunk");
	} else if (l->filtered && mask != c->mask &&
		   !(l->edges_unfiltered && c->mask == CODEC_ALL_SKIPPED)) {
		ORACLE_FAIL(o, name, "mask %u, not %u", mask, c->mask);
	}
	free(want);
	free(got);
}

static inline void oracle_compare(struct oracle *o, hid_t ds, const char *name,
				  const struct h5_layout *l, const uint64_t *grid,
				  const struct h5_index *x)
{
	uint64_t total = 1, seen = 0, step, at = 0;
	hsize_t off[DS_RANK_MAX];

	for (size_t d = 0; d < l->rank; d++)
		total *= grid[d];
	step = total / ORACLE_CHUNKS + 1;
	for (uint64_t i = 0; i < total; i += step) {
		struct h5_chunk c = h5_index_get(x, i);
		uint64_t rest = i;

		bool inside = true;

		for (size_t d = l->rank; d-- > 0; rest /= grid[d]) {
			off[d] = rest % grid[d] * l->chunk[d];
			inside = inside && off[d] < l->dims[d];
		}
		/* beyond the extent the library's answer is that of another chunk */
		if (inside)
			oracle_chunk(o, ds, name, l, off, &c);
		else if (c.addr != UINT64_MAX)
			ORACLE_FAIL(o, name, "chunk beyond the extent");
	}
	while ((at = h5_index_next(x, at)) != UINT64_MAX) {
		seen++;
		if (h5_index_get(x, at).addr == UINT64_MAX)
			ORACLE_FAIL(o, name, "next gives an absent chunk");
		at++;
	}
	if (seen != h5_index_count(x))
		ORACLE_FAIL(o, name, "%llu chunks, %llu counted", (unsigned long long)seen,
			    (unsigned long long)h5_index_count(x));
	if (h5_index_get(x, total).addr != UINT64_MAX || h5_index_next(x, total) != UINT64_MAX)
		ORACLE_FAIL(o, name, "chunks beyond the grid");
}

/* Extents, class, chunk shape against the library's. */
static inline void oracle_layout(struct oracle *o, hid_t ds, const char *name,
				 const struct h5_layout *l)
{
	static const H5D_layout_t classes[] = {H5D_COMPACT, H5D_CONTIGUOUS, H5D_CHUNKED,
					       H5D_VIRTUAL};
	hid_t dcpl = H5Dget_create_plist(ds), space = H5Dget_space(ds);
	hsize_t dims[DS_RANK_MAX], max[DS_RANK_MAX], chunk[DS_RANK_MAX];
	int rank = H5Sget_simple_extent_dims(space, dims, max);

	if (H5Pget_layout(dcpl) != classes[l->cls] || rank != (int)l->rank ||
	    l->external != (H5Pget_external_count(dcpl) > 0) ||
	    l->filtered != (H5Pget_nfilters(dcpl) > 0))
		ORACLE_FAIL(o, name, "another layout");
	if (l->cls == HDF5_LAYOUT_CHUNKED)
		H5Pget_chunk(dcpl, DS_RANK_MAX, chunk);
	/* the library does not see narrow fields of all ones as unlimited, and computes the
	 * extent of a virtual dataset from its sources */
	for (int d = 0; d < rank && l->cls != HDF5_LAYOUT_VIRTUAL; d++)
		if (dims[d] != l->dims[d] ||
		    (max[d] != l->maxdims[d] && l->maxdims[d] != UINT64_MAX) ||
		    (l->cls == HDF5_LAYOUT_CHUNKED && chunk[d] != l->chunk[d]))
			ORACLE_FAIL(o, name, "another extent or chunk shape");
	if (l->cls == HDF5_LAYOUT_CONTIGUOUS && !l->external && l->addr != UINT64_MAX &&
	    H5Dget_offset(ds) != (haddr_t)l->addr)
		ORACLE_FAIL(o, name, "contiguous at %llu, not %llu",
			    (unsigned long long)l->addr, (unsigned long long)H5Dget_offset(ds));
	H5Pclose(dcpl);
	H5Sclose(space);
}

/* extra: make the grid larger than the extent in each dimension by that much. */
static inline void oracle_dataset(struct oracle *o, hid_t ds, const char *name, uint64_t header,
				  uint64_t extra)
{
	struct err e = ERR_INIT;
	struct h5_index *x = NULL;
	uint64_t grid[DS_RANK_MAX];
	struct h5_layout l;
	int rc = h5_layout_read(&o->f, header, &l, &e);

	o->datasets += extra == 0;
	if (rc < 0) {
		o->unsupported += rc == -EOPNOTSUPP;
		if (rc != -EOPNOTSUPP)
			ORACLE_FAIL(o, name, "layout: %s", e.msg);
		return;
	}
	oracle_layout(o, ds, name, &l);
	if (l.cls != HDF5_LAYOUT_CHUNKED)
		return;
	o->chunked += extra == 0;
	o->kinds[l.index] += extra == 0;
	for (size_t d = 0; d < l.rank; d++)
		grid[d] = l.dims[d] / l.chunk[d] + (l.dims[d] % l.chunk[d] != 0) + extra;
	rc = h5_index_load(&o->f, &l, grid, (uint64_t)256 << 20, &x, &e);
	if (rc < 0)
		ORACLE_FAIL(o, name, "index: %s", e.msg);
	if (rc == 0)
		oracle_compare(o, ds, name, &l, grid, x);
	h5_index_free(x);
}

static inline herr_t oracle_visit(hid_t root, const char *name, const H5O_info_t *info,
				  void *arg)
{
	struct oracle *o = arg;
	hid_t ds;

	if (info->type != H5O_TYPE_DATASET)
		return 0;
	ds = H5Dopen2(root, name, H5P_DEFAULT);
	if (ds < 0)
		return 0;
	oracle_dataset(o, ds, name, info->addr + o->user_block, 0);
	oracle_dataset(o, ds, name, info->addr + o->user_block, 2);
	H5Dclose(ds);
	return 0;
}

/* All datasets of a file. Returns 0, or why it could not be opened by us; libhdf5's refusal
 * alone is 1. */
static inline int oracle_file(struct oracle *o, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;
	hid_t fcpl;
	herr_t visited = 0;

	o->path = path;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open");
	o->blob = blob_of_fd(fd, (uint64_t)st.st_size);
	rc = h5_file_read(&o->blob, &o->f, e);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	o->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (o->file >= 0) {
		fcpl = H5Fget_create_plist(o->file);
		H5Pget_userblock(fcpl, &o->user_block);
		H5Pclose(fcpl);
		if (rc == 0 && o->user_block != o->f.base)
			ORACLE_FAIL(o, "superblock", "user block");
		if (rc == 0)
			visited = H5Ovisit2(o->file, H5_INDEX_NAME, H5_ITER_NATIVE,
					    oracle_visit, o, H5O_INFO_BASIC);
		else
			ORACLE_FAIL(o, "superblock", "%s", e->msg);
		if (visited < 0)
			printf("%s: the library cannot visit all objects\n", path);
		H5Fclose(o->file);
	}
	close(fd);
	return rc < 0 ? rc : o->file < 0;
}

/* Without libhdf5, for files that it may not survive: take every aligned offset and every
 * signature for an object header and load what follows from it. Returns how many were datasets. */
static inline unsigned oracle_hostile(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct blob blob;
	struct h5_file f;
	struct stat st;
	uint8_t *all;
	unsigned n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	all = malloc((size_t)st.st_size + 1);
	blob = blob_of_fd(fd, (uint64_t)st.st_size);
	if (h5_file_read(&blob, &f, NULL) < 0)
		f = (struct h5_file){.blob = &blob,
				     .size = (uint64_t)st.st_size,
				     .eof = (uint64_t)st.st_size,
				     .offset_size = 8,
				     .length_size = 8};
	if (io_pread(fd, all, (size_t)st.st_size, 0, NULL) < 0)
		f.size = 0;
	for (uint64_t at = f.base; at + 16 < f.size; at++) {
		uint64_t grid[DS_RANK_MAX];
		struct h5_index *x = NULL;
		struct h5_layout l;

		if (memcmp(all + at, "OHDR", 4) != 0 &&
		    (all[at] != 1 || all[at + 1] != 0 || (at - f.base) % 8 != 0))
			continue;
		if (h5_layout_read(&f, at, &l, NULL) < 0)
			continue;
		n++;
		if (l.cls != HDF5_LAYOUT_CHUNKED)
			continue;
		for (size_t d = 0; d < l.rank; d++)
			grid[d] = l.dims[d] / l.chunk[d] + (l.dims[d] % l.chunk[d] != 0);
		if (h5_index_load(&f, &l, grid, (uint64_t)16 << 20, &x, NULL) == 0)
			for (uint64_t i = 0; (i = h5_index_next(x, i)) != UINT64_MAX; i++)
				(void)h5_index_get(x, i);
		h5_index_free(x);
	}
	free(all);
	close(fd);
	return n;
}

#endif
