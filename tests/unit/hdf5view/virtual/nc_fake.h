/* SPDX-License-Identifier: BSD-3-Clause */
/* nc_fake.h - one array of any shape whose chunks are in a memfd, and the HDF5 structure for it,
 * made by libhdf5 in memory: what the tests of the virtual file's layout share. */
#ifndef TESTS_UNIT_HDF5VIEW_VIRTUAL_NC_FAKE_H
#define TESTS_UNIT_HDF5VIEW_VIRTUAL_NC_FAKE_H

#include "hdf5view/virtual/file_layout.h"
#include "tests/unit/codecs_encode.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define FILL (-7)

struct ncf {
	struct source base;
	struct ds_group root;
	struct ds_array a;
	struct ds_dim dims[DS_RANK_MAX];
	char names[DS_RANK_MAX][8];
	uint32_t ords[DS_RANK_MAX], own;
	struct plan plan;
	uint64_t shape[DS_RANK_MAX], chunk[DS_RANK_MAX];
	int32_t fill;
	uint32_t params[2][1];
	struct codec_spec specs[2];
	struct chunk_ref *refs; /* a.n_chunks; NULL: located by `where` alone */
	enum chunk_where where;
	struct buf blob; /* the bytes in fd */
	uint64_t end;
	int fd;
	bool no_fd;   /* answer read_stored only */
	uint64_t bad; /* chunk that cannot be located */
	int bad_rc;
	int check_rc;
	_Atomic uint64_t looks; /* calls of locate */
	sem_t *_Atomic inside; /* the next one posts it, and waits for the one after it; NULL */
	struct chunkio *io;
	struct nc_image image;
	struct nc_layout *layout;
};

static inline struct ncf *ncf_of(struct source *s)
{
	return CONTAINER_OF(s, struct ncf, base);
}

static inline int ncf_locate(struct source *s, uint32_t array, uint64_t linear,
			     struct chunk_ref *ret, struct err *e)
{
	struct ncf *f = ncf_of(s);
	sem_t *inside = atomic_exchange(&f->inside, NULL);

	(void)array;
	f->looks++;
	if (inside) {
		(void)sem_post(&inside[0]);
		(void)sem_wait(&inside[1]);
	}
	if (linear == f->bad && f->bad_rc)
		return err_set(e, f->bad_rc, "made up");
	*ret = f->refs ? f->refs[linear] : (struct chunk_ref){.where = f->where};
	return 0;
}

static inline int ncf_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
			   struct err *e)
{
	struct ncf *f = ncf_of(s);

	for (; from < s->ds.arrays[array].n_chunks && f->refs; from++)
		if (f->refs[from].where != CHUNK_ABSENT) {
			*ret = from;
			return 0;
		}
	if (!f->refs && f->where != CHUNK_ABSENT && from < s->ds.arrays[array].n_chunks) {
		*ret = from;
		return 0;
	}
	return err_set(e, -ENOENT, "none");
}

static inline int ncf_read_chunk(struct source *s, uint32_t array, uint64_t linear,
				 uint8_t *out, size_t len, struct err *e)
{
	(void)s;
	(void)array;
	(void)linear;
	(void)out;
	(void)len;
	return err_set(e, -EOPNOTSUPP, "not made");
}

static inline int ncf_fd(struct source *s, uint32_t blob)
{
	return blob == 0 && !ncf_of(s)->no_fd ? ncf_of(s)->fd : -1;
}

static inline int ncf_read_stored(struct source *s, uint32_t array, uint64_t linear,
				  const struct chunk_ref *ref, uint64_t off, uint8_t *out,
				  size_t len, struct err *e)
{
	(void)array;
	(void)linear;
	if (pread(ncf_of(s)->fd, out, len, (off_t)(ref->off + off)) != (ssize_t)len)
		return err_set(e, -EIO, "short");
	return 0;
}

static inline int ncf_check(struct source *s, struct err *e)
{
	return ncf_of(s)->check_rc ? err_set(e, ncf_of(s)->check_rc, "changed") : 0;
}

static inline void ncf_close(struct source *s)
{
	(void)s;
}

static const struct source_ops ncf_ops = {
	.name = "fake",
	.close = ncf_close,
	.locate = ncf_locate,
	.next = ncf_next,
	.read_chunk = ncf_read_chunk,
	.fd = ncf_fd,
	.read_stored = ncf_read_stored,
	.check = ncf_check,
};

/* ncf_init - an int32 array; chunks are passed as they are, none exists yet. */
static inline void ncf_init(struct ncf *f, uint32_t rank, const uint64_t *shape,
			    const uint64_t *chunk)
{
	struct err e = ERR_INIT;

	*f = (struct ncf){.fill = FILL, .bad = UINT64_MAX};
	for (uint32_t d = 0; d < rank; d++) {
		f->shape[d] = shape[d];
		f->chunk[d] = chunk[d];
		f->ords[d] = d;
		(void)snprintf(f->names[d], sizeof(f->names[d]), "dim%u", (unsigned)d);
		f->dims[d] = (struct ds_dim){.name = f->names[d], .len = shape[d]};
	}
	f->root = (struct ds_group){.name = "",
				    .parent = DS_NONE,
				    .n_arrays = 1,
				    .arrays = &f->own,
				    .n_dims = rank,
				    .dims = f->ords};
	f->a = (struct ds_array){.name = "v",
				 .type = {.kind = DT_INT, .size = 4},
				 .rank = rank,
				 .shape = f->shape,
				 .chunk = f->chunk,
				 .dims = f->ords,
				 .fill = (const uint8_t *)&f->fill,
				 .access = DS_STORED,
				 .chain = {.specs = f->specs},
				 .key = 1};
	f->base.ops = &ncf_ops;
	f->base.ds.n_groups = 1;
	f->base.ds.groups = &f->root;
	f->base.ds.n_dims = rank;
	f->base.ds.dims = f->dims;
	f->base.ds.n_arrays = 1;
	f->base.ds.arrays = &f->a;
	arena_init(&f->base.ds.arena, 1 << 20);
	assert_int_equal(ds_array_finish(&f->base.ds, &f->a, 1 << 30, &e), 0);
	f->plan = (struct plan){.kind = PLAN_PASS, .fill_declared = true};
	f->fd = memfd_create("fake", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	f->refs = alloc_array((size_t)u64_min(f->a.n_chunks, 1 << 20), sizeof(*f->refs));
	assert_non_null(f->refs);
}

static inline void ncf_release(struct ncf *f)
{
	nc_layout_free(f->layout);
	chunkio_free(f->io);
	free(f->image.bytes);
	free(f->image.vars);
	free(f->refs);
	arena_release(&f->base.ds.arena);
	(void)close(f->fd);
}

static inline void ncf_start(struct ncf *f)
{
	struct chunkio_options o = {.cache_bytes = 1 << 20};

	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(chunkio_new(&f->base, &f->plan, &o, &f->io, NULL), 0);
}

/* ncf_deflate - chunks are stored through shuffle and deflate. decode: and presented without. */
static inline void ncf_deflate(struct ncf *f, bool decode)
{
	f->params[0][0] = 4;
	f->params[1][0] = 6;
	f->specs[0] = (struct codec_spec){
		.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = f->params[0], .name = ""};
	f->specs[1] = (struct codec_spec){
		.h5_id = CODEC_DEFLATE, .n_params = 1, .params = f->params[1], .name = ""};
	f->a.chain.n = 2;
	if (decode)
		f->plan.kind = PLAN_DECODE;
	else
		f->plan.chain = f->a.chain;
}

/* ncf_value - of element k of the array in C order: odd ones compress badly. */
static inline int32_t ncf_value(uint64_t k)
{
	uint32_t h = (uint32_t)k * 2654435761u;

	return k % 97 < 40 ? (int32_t)(h ^ h >> 13) : (int32_t)k;
}

static inline bool ncf_step(const struct ncf *f, uint64_t *at, const uint64_t *end)
{
	for (size_t d = f->a.rank; d-- > 0;) {
		if (++at[d] < end[d])
			return true;
		at[d] = 0;
	}
	return false;
}

/* ncf_elems - the elements of one chunk; those outside the array are FILL. */
static inline void ncf_elems(const struct ncf *f, uint64_t linear, int32_t *out)
{
	uint64_t c[DS_RANK_MAX] = {0}, at[DS_RANK_MAX] = {0}, k;
	bool inside;

	ds_chunk_coords(&f->a, linear, c);
	do {
		k = 0;
		inside = true;
		for (size_t d = 0; d < f->a.rank; d++) {
			uint64_t x = c[d] * f->chunk[d] + at[d];

			inside = inside && x < f->shape[d];
			k = k * f->shape[d] + x;
		}
		*out++ = inside ? ncf_value(k) : FILL;
	} while (ncf_step(f, at, f->chunk));
}

static inline void ncf_put(struct ncf *f, uint64_t linear, const void *p, size_t n)
{
	f->refs[linear] = (struct chunk_ref){.where = CHUNK_RANGE, .off = f->end, .len = n};
	assert_int_equal(pwrite(f->fd, p, n, (off_t)f->end), n);
	f->end += n;
}

/* ncf_store - chunk `linear` with its values. */
static inline void ncf_store(struct ncf *f, uint64_t linear)
{
	int32_t *v = malloc((size_t)f->a.chunk_bytes);
	struct buf out;

	assert_non_null(v);
	buf_init(&out, 1 << 24);
	ncf_elems(f, linear, v);
	if (f->a.chain.n == 0)
		ncf_put(f, linear, v, (size_t)f->a.chunk_bytes);
	else
		assert_int_equal(encode_chain(&f->a.chain, 4, (uint8_t *)v,
					      (size_t)f->a.chunk_bytes, &out, NULL),
				 0);
	if (f->a.chain.n > 0)
		ncf_put(f, linear, out.data, out.len);
	buf_release(&out);
	free(v);
}

/* ---- the structure ---- */

static inline hid_t ncf_core(bool latest)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

	assert_true(fapl >= 0 && H5Pset_fapl_core(fapl, 1 << 16, 0) >= 0);
	assert_true(H5Pset_libver_bounds(fapl, latest ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST,
					 H5F_LIBVER_V18) >= 0);
	return fapl;
}

/* ncf_attrs - so many that the header needs further blocks. */
static inline void ncf_attrs(hid_t set, unsigned n)
{
	auto_hid hid_t space = H5Screate(H5S_SCALAR);
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "attribute %u", i);
		auto_hid hid_t at =
			H5Acreate2(set, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);

		assert_true(at >= 0 && H5Awrite(at, H5T_NATIVE_INT, &i) >= 0);
	}
}

/* ncf_dcpl - ordered: attributes remember when they were made, as netCDF's do. */
static inline hid_t ncf_dcpl(const struct ncf *f, bool chunked, bool ordered)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hsize_t chunk[DS_RANK_MAX];

	for (size_t d = 0; d < f->a.rank; d++)
		chunk[d] = f->chunk[d];
	assert_true(H5Pset_fill_value(dcpl, H5T_NATIVE_INT32, &f->fill) >= 0);
	if (ordered)
		assert_true(H5Pset_attr_creation_order(
				    dcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
	if (chunked)
		assert_true(H5Pset_chunk(dcpl, (int)f->a.rank, chunk) >= 0);
	if (f->plan.chain.n > 0)
		assert_true(H5Pset_shuffle(dcpl) >= 0 && H5Pset_deflate(dcpl, 6) >= 0);
	return dcpl;
}

/* ncf_structure - a file with the dataset "v" without chunks, in f->image. */
static inline void ncf_structure(struct ncf *f, bool latest, bool chunked, unsigned n_attrs)
{
	auto_hid hid_t fapl = ncf_core(latest), dcpl = ncf_dcpl(f, chunked, n_attrs % 2);
	hid_t file = H5Fcreate("structure", H5F_ACC_TRUNC, H5P_DEFAULT, fapl), set, space;
	struct nc_image *m = &f->image;
	hsize_t dims[DS_RANK_MAX] = {0}, max[DS_RANK_MAX];
	H5O_info_t info;
	ssize_t n;

	for (size_t d = 0; d < f->a.rank; d++) {
		dims[d] = f->shape[d];
		max[d] = H5S_UNLIMITED; /* a chunk may be larger than what there is */
	}
	space = f->a.rank > 0 ? H5Screate_simple((int)f->a.rank, dims, chunked ? max : NULL)
			      : H5Screate(H5S_SCALAR);
	set = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(file >= 0 && space >= 0 && set >= 0);
	ncf_attrs(set, n_attrs);
	assert_true(H5Oget_info(set, &info) >= 0);
	assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0);
	assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
	n = H5Fget_file_image(file, NULL, 0);
	assert_true(n > 0);
	m->bytes = malloc((size_t)n);
	m->vars = alloc_array(1, sizeof(*m->vars));
	assert_true(m->bytes && m->vars);
	assert_true(H5Fget_file_image(file, m->bytes, (size_t)n) == n);
	assert_true(H5Fclose(file) >= 0);
	m->len = (size_t)n;
	m->n_vars = 1;
	m->vars[0] = (struct nc_var){.data = chunked ? NC_CHUNKED : NC_CONTIGUOUS,
				     .header = info.addr,
				     .rank = f->a.rank,
				     .elem = 4};
	for (size_t d = 0; d < f->a.rank; d++)
		m->vars[0].chunk[d] = f->chunk[d];
}

/* ncf_lay_out - returns what that gave. */
static inline int ncf_lay_out(struct ncf *f, struct err *e)
{
	if (!f->io)
		ncf_start(f);
	return nc_layout_new(&f->base, &f->plan, f->io, &f->image, 1 << 24, &f->layout, e);
}

/* ncf_read - as the kernel would: bytes into out, or an error. */
static inline int ncf_read(struct ncf *f, uint64_t off, size_t len, uint8_t *out, size_t *ret_n,
			   struct err *e)
{
	uint8_t *room = malloc(len ? len : 1);
	struct span s;
	int rc = nc_layout_read(f->layout, off, len, room, &s, e);

	assert_non_null(room);
	if (rc == 0) {
		if (s.mem && s.len > 0)
			memcpy(out, s.mem, s.len);
		else if (s.len > 0)
			assert_int_equal(pread(s.fd, out, s.len, (off_t)s.off), s.len);
		memset(out + s.len, 0, s.zeros);
		*ret_n = s.len + s.zeros;
		span_done(&s);
	}
	free(room);
	return rc;
}

#endif
