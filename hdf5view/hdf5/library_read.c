/* SPDX-License-Identifier: BSD-3-Clause */
/* library_read.c - reads elements through libhdf5, for filters and types that this program cannot
 * decode.
 *
 * All of it runs in the worker process, which opens the file again on first use. It does so
 * without HDF5's lock, so that writers are not kept out; source_check detects whether one changed
 * the file. */
#include "hdf5view/hdf5/library.h"

#include "base/core/endian.h"
#include "base/core/utf8.h"
#include "translate/model/value.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Memory limit of one chunk's elements with bookkeeping, so that a gigabyte can be presented. */
#define VLEN_MAX ((size_t)3 << 30)

/* Excess over a chunk's size that a decoder may return: other filters' headers and checksums. */
#define ROOM_SPARE ((size_t)65536)

/* library_reading - one chunk's selection. */
struct library_reading {
	hid_t set, file_type, mem, file_space, mem_space;
	bool empty; /* the chunk lies outside the extent */
};

static void reading_release(struct library_reading *r)
{
	h5_id_close(&r->mem_space);
	h5_id_close(&r->file_space);
	h5_id_close(&r->mem);
	h5_id_close(&r->file_type);
	h5_id_close(&r->set);
}

static int library_fail(struct err *e)
{
	return h5_error(e, -EBADMSG, "the HDF5 library cannot read it");
}

/* library_open_named - a dataset with external raw data, whose files are found from the
 * directory of the file and not from wherever this program runs. */
static hid_t library_open_named(const struct h5_source *s, const struct h5_array *x, hid_t file)
{
	auto_hid hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
	char dir[PATH_MAX];

	if (dapl < 0 || h5_file_dir(s, x->file, dir, sizeof(dir)) < 0 ||
	    H5Pset_efile_prefix(dapl, dir) < 0)
		return -1;
	return H5Dopen2(file, x->raw_path, dapl);
}

static int open_set(struct h5_source *s, uint32_t array, hid_t *ret, struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	hid_t *file = x->file ? &s->files[x->file - 1].id : &s->file;
	int rc;

	if (*file <= 0) {
		rc = h5_open_file(s, x->file, false, file, e);
		if (rc < 0)
			return rc;
	}
	if (!x->file && s->moved && (a->layout == DS_VIRTUAL || a->layout == DS_EXTERNAL))
		return err_set(e, -ESTALE,
			       "the file was moved, and the files that it names are "
			       "no longer found");
	*ret = x->raw_path ? library_open_named(s, x, *file) : H5Oopen_by_addr(*file, x->addr);
	if (*ret < 0 || H5Iget_type(*ret) != H5I_DATASET)
		return library_fail(e);
	return 0;
}

/* select_region - the part of a chunk that is inside the extent, on both sides. */
static int select_region(struct h5_source *s, uint32_t array, uint64_t linear,
			 struct library_reading *r, struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	hsize_t start[DS_RANK_MAX], count[DS_RANK_MAX], chunk[DS_RANK_MAX],
		zero[DS_RANK_MAX] = {0};
	uint64_t at[DS_RANK_MAX];
	int rank = (int)x->rank;

	r->file_space = H5Dget_space(r->set);
	if (r->file_space < 0 || H5Sget_simple_extent_ndims(r->file_space) != rank)
		return library_fail(e);
	if (rank == 0) {
		r->mem_space = H5Screate(H5S_SCALAR);
		return r->mem_space < 0 ? library_fail(e) : 0;
	}
	ds_chunk_coords(a, linear, at);
	for (int i = 0; i < rank; i++) {
		chunk[i] = a->chunk[i];
		start[i] = at[i] * a->chunk[i];
		if (start[i] >= x->extent[i]) {
			r->empty = true;
			return 0;
		}
		count[i] = u64_min(chunk[i], x->extent[i] - start[i]);
	}
	r->mem_space = H5Screate_simple(rank, chunk, NULL);
	if (r->mem_space < 0 ||
	    H5Sselect_hyperslab(r->file_space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
	    H5Sselect_hyperslab(r->mem_space, H5S_SELECT_SET, zero, NULL, count, NULL) < 0)
		return library_fail(e);
	return a->layout == DS_VIRTUAL ? h5_sources_ok(s, x->file, r->set, start, count, e) : 0;
}

/* ready_filters - register codecs of this program, and plugins, for the filters that libhdf5
 * cannot decode. The codecs may return a chunk's size in the file and the additions of other
 * filters. */
static void ready_filters(const struct ds_array *a, const struct h5_array *x)
{
	uint64_t bytes = x->elem_bytes;

	if (a->layout == DS_VIRTUAL) {
		h5_filters_ready();
		h5_codecs_max(0);
		return;
	}
	for (uint32_t i = 0; i < a->chain.n; i++)
		(void)h5_filter_ready(a->chain.specs[i].h5_id);
	for (uint32_t i = 0; i < x->rank; i++)
		if (ckd_mul(&bytes, bytes, a->chunk[i]))
			bytes = UINT32_MAX;
	h5_codecs_max((size_t)u64_min(bytes, UINT32_MAX) / 4 * 5 + ROOM_SPARE);
}

static int library_prepare(struct h5_source *s, uint32_t array, uint64_t linear,
			   struct library_reading *r, struct err *e)
{
	int rc = open_set(s, array, &r->set, e);

	if (rc < 0)
		return rc;
	ready_filters(&s->g.base.ds.arrays[array], &s->arrays[array]);
	r->file_type = H5Dget_type(r->set);
	r->mem = r->file_type < 0 ? -1 : h5_type_mem(r->file_type, false);
	if (r->mem < 0 || H5Tget_size(r->file_type) != s->arrays[array].elem_bytes)
		return library_fail(e);
	return select_region(s, array, linear, r, e);
}

/* type_elems - elements of the model in one of the dataspace's: more for array types. */
static uint64_t type_elems(const struct ds_array *a, const struct h5_array *x)
{
	uint64_t n = 1;

	for (uint32_t i = x->rank; i < a->rank; i++)
		n *= a->shape[i];
	return n;
}

static int library_read_locked(struct h5_source *s, uint32_t array, uint64_t linear,
			       uint8_t *out, struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	struct library_reading r = {0};
	int rc = library_prepare(s, array, linear, &r, e);

	if (rc == 0 && H5Tget_size(r.mem) != a->type.size * type_elems(a, &s->arrays[array]))
		rc = err_set(e, -EBADMSG, "its type differs from the one that was opened");
	if (rc == 0 && !r.empty &&
	    H5Dread(r.set, r.mem, r.mem_space, r.file_space, H5P_DEFAULT, out) < 0)
		rc = library_fail(e);
	reading_release(&r);
	return rc;
}

int h5_library_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		     size_t len, struct err *e)
{
	struct h5_source *s = h5_of_isolated(g);
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	int rc;

	if (len)
		value_repeat(out, len, a->fill, a->type.size);
	h5_enter();
	rc = library_read_locked(s, array, linear, out, e);
	if (h5_transient_error(NULL) < 0)
		rc = h5_transient_error(e);
	h5_leave();
	return rc;
}

/* ---- elements of variable length ---- */

static int put_elem(const struct ds_array *a, const uint8_t *at, struct buf *out, struct err *e)
{
	size_t head = out->len, len = 0;
	char *s = NULL;
	hvl_t seq;

	buf_put_le32(out, 0);
	if (a->type.kind == DT_VSTRING) {
		memcpy(&s, at, sizeof(s));
		if (s)
			(void)utf8_put_text(out, s, strlen(s));
	} else {
		memcpy(&seq, at, sizeof(seq));
		if (ckd_mul(&len, seq.len, (size_t)a->type.base->size))
			return err_set(e, -ERANGE, "a sequence is too long");
		if (seq.p && len)
			buf_put(out, seq.p, len);
	}
	if (!buf_ok(out) || out->len - head - 4 > UINT32_MAX)
		return buf_full(out, e, -ERANGE, "a chunk's elements take more than %zu bytes",
				out->max);
	put_le32(out->data + head, (uint32_t)(out->len - head - 4));
	return 0;
}

/* pool - memory for elements of variable length. The library allocates them here, because it leaks
 * its allocations when it fails halfway, and has no limit. For a string of a damaged file it may
 * allocate no bytes and write no terminator, so a NUL follows each allocation. */
struct library_block {
	struct library_block *next;
	max_align_t data[];
};

struct pool {
	struct library_block *blocks;
	size_t left;
	bool full;
};

static void *pool_take(size_t n, void *arg)
{
	struct pool *p = arg;
	struct library_block *b = NULL;
	size_t all;

	if (ckd_add(&all, n, sizeof(*b) + 1) || all > p->left) {
		p->full = true;
		return NULL;
	}
	b = malloc(all);
	if (!b)
		return NULL;
	((char *)b->data)[n] = '\0';
	b->next = p->blocks;
	p->blocks = b;
	p->left -= all;
	return b->data;
}

static void pool_return(void *mem, void *arg NZ_UNUSED)
{
	(void)mem; /* freed with the whole pool */
}

static void pool_release(struct pool *p)
{
	while (p->blocks) {
		struct library_block *next = p->blocks->next;

		free(p->blocks);
		p->blocks = next;
	}
}

/* same_elems - whether the library's elements are the model's: then the library needs as much
 * memory for an element as is read of it here. Elements of array types are dimensions of the
 * model. */
static bool same_elems(const struct ds_array *a, const struct library_reading *r)
{
	hid_t base, t = H5Tcopy(r->mem);
	bool same;

	while (t >= 0 && H5Tget_class(t) == H5T_ARRAY) {
		base = H5Tget_super(t);
		(void)H5Tclose(t);
		t = base;
	}
	if (a->type.kind == DT_VSTRING) {
		same = t >= 0 && H5Tis_variable_str(t) > 0;
	} else {
		base = t >= 0 && H5Tget_class(t) == H5T_VLEN ? H5Tget_super(t) : -1;
		same = base >= 0 && H5Tget_size(base) == a->type.base->size;
		if (base >= 0)
			(void)H5Tclose(base);
	}
	if (t >= 0)
		(void)H5Tclose(t);
	return same;
}

static int read_vlen_locked(struct h5_source *s, uint32_t array, uint64_t linear,
			    uint8_t *elems, struct library_reading *r, struct pool *pool,
			    struct err *e)
{
	auto_hid hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);
	int rc = library_prepare(s, array, linear, r, e);

	if (rc < 0 || r->empty)
		return rc;
	if (!same_elems(&s->g.base.ds.arrays[array], r))
		return err_set(e, -EBADMSG, "its type differs from the one that was opened");
	if (dxpl < 0 || H5Pset_vlen_mem_manager(dxpl, pool_take, pool, pool_return, pool) < 0)
		return h5_error(e, -ENOMEM, "the HDF5 library cannot be set up");
	if (H5Dread(r->set, r->mem, r->mem_space, r->file_space, dxpl, elems) >= 0)
		return 0;
	if (pool->full)
		return err_set(e, -ERANGE, "a chunk's elements take too much memory");
	return library_fail(e);
}

/* inside_extent - whether element i of a chunk is stored in the file. */
static bool inside_extent(const struct ds_array *a, const struct h5_array *x,
			  const uint64_t *at, uint64_t i)
{
	for (uint32_t d = a->rank; d-- > 0;) {
		uint64_t pos = at[d] * a->chunk[d] + i % a->chunk[d];

		i /= a->chunk[d];
		if (d < x->rank && pos >= x->extent[d])
			return false;
	}
	return true;
}

static int library_put_all(const struct ds_array *a, const struct h5_array *x, uint64_t linear,
			   const uint8_t *elems, size_t size, uint64_t n, struct buf *out,
			   struct err *e)
{
	const char *fill = a->fill_text.s;
	uint64_t at[DS_RANK_MAX];
	int rc = 0;

	ds_chunk_coords(a, linear, at);
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		const uint8_t *elem = elems + (size_t)i * size;

		if (a->type.kind == DT_VSTRING && a->fill_text.len &&
		    !inside_extent(a, x, at, i))
			elem = (const uint8_t *)&fill;
		rc = put_elem(a, elem, out, e);
	}
	return rc;
}

int h5_library_vlen(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e)
{
	struct h5_source *s = h5_of_isolated(g);
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	size_t size = a->type.kind == DT_VSTRING ? sizeof(char *) : sizeof(hvl_t);
	struct pool pool = {.left = VLEN_MAX};
	struct library_reading r = {0};
	uint64_t n = 1;
	auto_free uint8_t *elems = NULL;
	int rc;

	for (uint32_t i = 0; i < a->rank; i++)
		n *= a->chunk[i]; /* bounded when the source was opened */
	elems = alloc_array((size_t)n, size);
	if (!elems)
		return err_nomem(e);
	h5_enter();
	rc = read_vlen_locked(s, array, linear, elems, &r, &pool, e);
	if (h5_transient_error(NULL) < 0)
		rc = h5_transient_error(e);
	reading_release(&r);
	h5_leave();
	rc = rc ? rc : library_put_all(a, &s->arrays[array], linear, elems, size, n, out, e);
	pool_release(&pool);
	return rc;
}
