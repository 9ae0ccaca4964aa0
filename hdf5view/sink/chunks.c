/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.c - writes chunks.
 *
 * Stored bytes bypass the library's filters unchanged. Elements are encoded by the built-in codecs
 * and then written in the same way. Only data without chunks, variable-length elements, and chains
 * that cannot be encoded here go through the library. */
#include "hdf5view/sink/sink_int.h"

#include "base/core/cursor.h"
#include "translate/model/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- open datasets ---- */

void hdf5_sink_forget(struct h5_sink *s, uint32_t array)
{
	struct hdf5_sink_array *x = &s->arrays[array];

	if (x->set > 0)
		for (uint32_t i = 0; i < s->n_open; i++)
			if (s->open[i] == array) {
				s->open[i] = s->open[--s->n_open];
				break;
			}
	h5_id_close(&x->set);
	x->set = 0;
	free(x->extent);
	free(x->chunk);
	x->extent = x->chunk = NULL;
	x->seen = false;
}

/* chunks_make_place - close the least recently used dataset. */
static void chunks_make_place(struct h5_sink *s)
{
	uint32_t oldest = 0;

	if (s->n_open < SINK_OPEN_MAX)
		return;
	for (uint32_t i = 1; i < s->n_open; i++)
		if (s->arrays[s->open[i]].used < s->arrays[s->open[oldest]].used)
			oldest = i;
	h5_id_close(&s->arrays[s->open[oldest]].set);
	s->arrays[s->open[oldest]].set = 0;
	s->open[oldest] = s->open[--s->n_open];
}

/* own_chain - the filters of a dataset that this sink made, with the parameters that it was
 * given. */
static int own_chain(struct h5_sink *s, struct hdf5_sink_array *x, hid_t dcpl)
{
	int n = H5Pget_nfilters(dcpl);
	struct codec_spec *specs;

	if (n < 0 || n > CODEC_CHAIN_MAX)
		return -1;
	specs = arena_alloc(&s->arena, (size_t)n, sizeof(*specs));
	for (unsigned i = 0; specs && i < (unsigned)n; i++) {
		unsigned v[256], flags, config;
		size_t n_params = ARRAY_LEN(v);
		H5Z_filter_t id =
			H5Pget_filter2(dcpl, i, &flags, &n_params, v, 0, NULL, &config);

		if (id < 0 || n_params > ARRAY_LEN(v))
			return -1;
		specs[i] = (struct codec_spec){
			.h5_id = (uint32_t)id,
			.n_params = (uint32_t)n_params,
			.params = arena_copy(&s->arena, v, n_params * sizeof(*v)),
			.name = ""};
		if (!specs[i].params)
			return -1;
	}
	x->chain = (struct codec_chain){(uint32_t)n, specs};
	return specs ? 0 : -1;
}

/* chunks_look - read the properties of an open dataset. */
static int chunks_look(struct h5_sink *s, uint32_t array, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	auto_hid hid_t space = H5Dget_space(x->set), dcpl = H5Dget_create_plist(x->set),
		       type = H5Dget_type(x->set);
	hsize_t len[NC_RANK_LIMIT] = {0}, chunk[NC_RANK_LIMIT] = {0};
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	unsigned opts = 0;
	uint64_t bytes;

	if (rank < 0 || rank > NC_RANK_LIMIT || dcpl < 0 || type < 0 ||
	    H5Sget_simple_extent_dims(space, len, NULL) < 0 || H5Tget_size(type) > UINT32_MAX)
		return hdf5_sink_fail(s, 0, array, e);
	x->rank = (uint32_t)rank;
	x->elem = (uint32_t)H5Tget_size(type);
	x->chunked = H5Pget_layout(dcpl) == H5D_CHUNKED;
	x->extent = alloc_array(x->rank, sizeof(*x->extent));
	x->chunk = alloc_array(u64_max(a->rank, x->rank), sizeof(*x->chunk));
	if (!x->extent || !x->chunk)
		return err_nomem(e);
	for (uint32_t d = 0; d < x->rank; d++)
		x->extent[d] = len[d];
	if (x->chunked && H5Pget_chunk(dcpl, rank, chunk) != rank)
		return hdf5_sink_fail(s, 0, array, e);
	bytes = x->elem;
	for (uint32_t d = 0; d < u64_max(a->rank, x->rank); d++)
		x->chunk[d] = d < x->rank ? chunk[d] : a->shape[d];
	for (uint32_t d = 0; d < x->rank && x->chunked; d++)
		if (chunk[d] == 0 || ckd_mul(&bytes, bytes, chunk[d]) || bytes > UINT32_MAX)
			return err_set(e, -EBADMSG, "its chunks are too large");
	x->chunk_bytes = x->chunked ? bytes : 0;
	if (x->chunked && H5Pget_chunk_opts(dcpl, &opts) >= 0)
		x->raw_edges = opts & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS;
	if (x->real != DS_NONE) {
		const struct ds_array *r = &s->real->g.base.ds.arrays[x->real];

		x->convert = r->access == DS_CONVERT;
		if (r->layout == DS_CHUNKED)
			x->chain = r->chain;
	} else if (own_chain(s, x, dcpl) < 0) {
		return hdf5_sink_fail(s, 0, array, e);
	}
	x->seen = true;
	return 0;
}

int hdf5_sink_dataset(struct h5_sink *s, uint32_t array, hid_t *ret, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	int rc = 0;

	if (x->set <= 0) {
		rc = hdf5_sink_require_in_file(s, array, e);
		if (rc)
			return rc;
		chunks_make_place(s);
		/* H5Oopen_by_addr takes no access properties, and no cache is needed: chunks
		 * bypass it */
		x->set = hdf5_sink_object(s, x->addr);
		if (x->set < 0 || H5Iget_type(x->set) != H5I_DATASET) {
			h5_id_close(&x->set);
			x->set = 0;
			return hdf5_sink_fail(s, 0, array, e);
		}
		s->open[s->n_open++] = array;
	}
	if (!x->seen)
		rc = chunks_look(s, array, e);
	x->used = ++s->clock;
	*ret = x->set;
	return rc;
}

/* ---- properties for callers ---- */

/* chunks_elsewhere - whether the data is in another file. */
static int chunks_elsewhere(const struct h5_sink *s, uint32_t array, struct err *e)
{
	uint32_t r = s->arrays[array].real;
	const struct ds_array *a = r == DS_NONE ? NULL : &s->real->g.base.ds.arrays[r];

	if (!a || (a->layout != DS_VIRTUAL && a->layout != DS_EXTERNAL))
		return 0;
	return err_set(e, -EOPNOTSUPP, "its data is in other files: change it there");
}

/* too_short - whether a dataset ends before its dimension, which has grown since, and cannot be
 * extended. */
static bool too_short(const struct ds_array *a, const struct hdf5_sink_array *x)
{
	auto_hid hid_t space = H5Dget_space(x->set);
	hsize_t max[NC_RANK_LIMIT];
	bool is = false;

	if (space < 0 || H5Sget_simple_extent_ndims(space) != (int)x->rank ||
	    H5Sget_simple_extent_dims(space, NULL, max) < 0)
		return false; /* a write reports it */
	for (uint32_t d = 0; d < x->rank && d < a->rank; d++)
		is |= max[d] != H5S_UNLIMITED && max[d] < a->shape[d];
	return is;
}

int hdf5_sink_target(struct h5_sink *s, uint32_t array, struct sink_array *ret, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	hid_t set;
	int rc = hdf5_sink_require_in_file(s, array, e);

	rc = rc ? rc : hdf5_sink_dataset(s, array, &set, e);
	if (!rc && x->chunked && !x->put && too_short(a, x)) {
		rc = hdf5_sink_resize(s, array, e);
		rc = rc ? rc : hdf5_sink_dataset(s, array, &set, e);
	}
	rc = rc ? rc : chunks_elsewhere(s, array, e);
	if (rc)
		return nc_err_path(&s->view.ds, 0, array, rc, e);
	*ret = (struct sink_array){0};
	if (!x->chunked || dt_is_vlen(&a->type))
		return 0;
	ret->chunk = x->chunk;
	ret->chain = x->chain;
	ret->takes_stored = !x->convert;
	return 0;
}

/* ---- locations of chunks ---- */

/* chunks_box - a chunk's part of the dataspace. */
struct chunks_box {
	hsize_t at[NC_RANK_LIMIT], n[NC_RANK_LIMIT], whole[NC_RANK_LIMIT];
};

/* grow_to - extend a dataset on an unlimited dimension to a written chunk. */
static int grow_to(struct h5_sink *s, uint32_t array, const struct chunks_box *b, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	hsize_t len[NC_RANK_LIMIT];
	bool grows = false;

	for (uint32_t d = 0; d < x->rank; d++) {
		uint64_t want = d < a->rank ? a->shape[d] : x->extent[d];

		len[d] = x->extent[d];
		if (b->at[d] + u64_min(b->whole[d], want - b->at[d]) > x->extent[d]) {
			len[d] = want;
			grows = true;
		}
	}
	if (!grows)
		return 0;
	if (H5Dset_extent(x->set, len) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	for (uint32_t d = 0; d < x->rank; d++)
		x->extent[d] = len[d];
	return 0;
}

/* chunks_locate - chunk `linear` of target's grid. Returns 0; -EINVAL outside. */
static int chunks_locate(struct h5_sink *s, uint32_t array, uint64_t linear,
			 struct chunks_box *b, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	const struct hdf5_sink_array *x = &s->arrays[array];
	const uint64_t *chunk = x->chunked && !dt_is_vlen(&a->type) ? x->chunk : a->chunk;
	uint64_t left = linear;

	for (uint32_t d = a->rank; d-- > 0;) {
		uint64_t c = u64_max(1, chunk[d]),
			 grid = a->shape[d] / c + (a->shape[d] % c > 0);
		uint64_t at = grid ? left % grid * c : 0;

		if (grid == 0)
			return err_set(e, -EINVAL, "the array has no chunks");
		left /= grid;
		if (d >= x->rank)
			continue;
		b->at[d] = at;
		b->whole[d] = c;
		b->n[d] = u64_min(c, a->shape[d] - at);
	}
	if (left > 0)
		return err_set(e, -EINVAL, "chunk %" PRIu64 " is outside of it", linear);
	for (uint32_t d = a->rank; d < x->rank; d++) { /* the characters of strings */
		b->at[d] = 0;
		b->whole[d] = b->n[d] = x->extent[d];
	}
	return 0;
}

/* ---- writing ---- */

static int write_stored(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
			uint32_t mask, const uint8_t *p, size_t n, struct err *e)
{
	const struct hdf5_sink_array *x = &s->arrays[array];

	if (n == 0 || n > UINT32_MAX)
		return err_set(e, -EINVAL, "a stored chunk cannot have %zu bytes", n);
	if (x->chain.n == 0 && n != x->chunk_bytes)
		return err_set(e, -EINVAL,
			       "a chunk without filters has %" PRIu64 " bytes, not %zu",
			       x->chunk_bytes, n);
	if (mask == CODEC_ALL_SKIPPED)
		mask = x->chain.n >= 32 ? UINT32_MAX : (1U << x->chain.n) - 1;
	if (H5Dwrite_chunk(x->set, H5P_DEFAULT, mask, b->at, n, p) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	return 0;
}

/* chunks_bits_of - a type to which numbers can be converted: for an enumeration, that of
 * its values. Returns a new id. */
static hid_t chunks_bits_of(hid_t set)
{
	hid_t type = H5Dget_type(set), super;

	if (type < 0 || H5Tget_class(type) != H5T_ENUM)
		return type;
	super = H5Tget_super(type);
	h5_id_close(&type);
	return super;
}

/* is_raw - whether a chunk has no filters in the file: the array ends inside it. */
static bool is_raw(const struct hdf5_sink_array *x, const struct chunks_box *b)
{
	for (uint32_t d = 0; d < x->rank && x->raw_edges; d++)
		if (b->at[d] + b->whole[d] > x->extent[d])
			return true;
	return false;
}

/* write_as_is - write a stored chunk; if it must have no filters, it is decoded first. */
static int write_as_is(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
		       const struct sink_chunk *c, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	uint8_t *p;
	int rc;

	if (!is_raw(x, b) || x->chain.n == 0)
		return write_stored(s, array, b, c->filter_mask, c->p, c->len, e);
	buf_clear(&s->room2);
	p = buf_grow(&s->room2, (size_t)x->chunk_bytes);
	if (!p)
		return err_nomem(e);
	rc = codec_chain_decode(&x->chain, c->filter_mask, x->elem, c->p, c->len, p,
				(size_t)x->chunk_bytes, s->scratch, e);
	return rc ? rc
		  : write_stored(s, array, b, CODEC_ALL_SKIPPED, p, (size_t)x->chunk_bytes, e);
}

/* as_in_file - the elements in the file's form, in s->room2 if that differs. */
static int as_in_file(struct h5_sink *s, uint32_t array, const struct sink_chunk *c,
		      const uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	auto_hid hid_t file = -1, mem = -1;
	auto_free uint8_t *gaps = NULL;
	size_t size, n, most;
	uint8_t *p;

	*ret = c->p;
	*ret_len = c->len;
	if (!x->convert)
		return 0;
	file = chunks_bits_of(x->set);
	mem = file < 0 ? -1 : h5_type_mem(file, false);
	size = mem < 0 ? 0 : H5Tget_size(mem);
	if (size == 0 || c->len % size != 0)
		return hdf5_sink_fail(s, 0, array, e);
	n = c->len / size;
	if (ckd_mul(&most, n, (size_t)u64_max(size, x->elem)))
		return err_set(e, -ERANGE, "a chunk is too large");
	buf_clear(&s->room2);
	p = buf_grow(&s->room2, most);
	gaps = H5Tget_class(file) == H5T_COMPOUND ? alloc_array(most, 1) : NULL;
	if (!p || (!gaps && H5Tget_class(file) == H5T_COMPOUND))
		return err_nomem(e);
	memcpy(p, c->p, c->len);
	if (H5Tconvert(mem, file, n, p, gaps, H5P_DEFAULT) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	*ret = p;
	*ret_len = n * x->elem;
	return 0;
}

/* write_encoded - encode the elements of a whole chunk with the built-in codecs and write them. */
static int write_encoded(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
			 const struct sink_chunk *c, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	const uint8_t *p;
	size_t n, elem = x->elem;
	int rc = as_in_file(s, array, c, &p, &n, e);

	if (rc)
		return rc;
	if (n != x->chunk_bytes)
		return err_set(e, -EINVAL, "a chunk has %" PRIu64 " bytes, not %zu",
			       x->chunk_bytes, n);
	if (x->chain.n == 0 || is_raw(x, b))
		return write_stored(s, array, b, CODEC_ALL_SKIPPED, p, n, e);
	buf_clear(&s->room);
	rc = codec_chain_encode(&x->chain, elem, p, n, s->scratch, &s->room, e);
	return rc ? rc : write_stored(s, array, b, 0, s->room.data, s->room.len, e);
}

/* write_box - write elements through the library; only those inside the shape. */
static int write_box(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
		     hid_t mem_type, const void *p, bool whole, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	hsize_t zero[NC_RANK_LIMIT] = {0};
	auto_hid hid_t file = H5Dget_space(x->set), mem = -1;
	int rank = (int)x->rank;

	mem = rank == 0 ? H5Screate(H5S_SCALAR)
			: H5Screate_simple(rank, whole ? b->whole : b->n, NULL);
	if (file < 0 || mem < 0 || mem_type < 0)
		return hdf5_sink_fail(s, 0, array, e);
	if (rank > 0 &&
	    (H5Sselect_hyperslab(file, H5S_SELECT_SET, b->at, NULL, b->n, NULL) < 0 ||
	     (whole && H5Sselect_hyperslab(mem, H5S_SELECT_SET, zero, NULL, b->n, NULL) < 0)))
		return hdf5_sink_fail(s, 0, array, e);
	return H5Dwrite(x->set, mem_type, mem, file, H5P_DEFAULT, p) < 0
		       ? hdf5_sink_fail(s, 0, array, e)
		       : 0;
}

/* filters_ready - check that the library can apply the filters. replaced: empty classes stand for
 * some of them. */
static int filters_ready(const struct hdf5_sink_array *x, bool replaced, struct err *e)
{
	for (uint32_t i = 0; i < x->chain.n; i++)
		if (!h5_filter_ready(x->chain.specs[i].h5_id) || replaced)
			return err_set(e, -EOPNOTSUPP,
				       "filter %" PRIu32 " cannot be applied here",
				       x->chain.specs[i].h5_id);
	return 0;
}

static int write_elements(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
			  const struct sink_chunk *c, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	auto_hid hid_t type = H5Dget_type(x->set);
	uint64_t want = x->elem;
	const uint8_t *p;
	size_t n;
	int rc = as_in_file(s, array, c, &p, &n, e);

	for (uint32_t d = 0; d < x->rank; d++)
		if (ckd_mul(&want, want, b->whole[d]))
			want = 0;
	if (!rc && (want == 0 || want != n))
		rc = err_set(e, -EINVAL, "a chunk has %" PRIu64 " bytes, not %zu", want, n);
	rc = rc ? rc : filters_ready(x, s->filters.n > 0, e);
	return rc ? rc : write_box(s, array, b, type, p, true, e);
}

/* ---- elements without a fixed size ---- */

static int write_frames(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
			const struct sink_chunk *c, struct err *e)
{
	struct hdf5_sink_array *x = &s->arrays[array];
	struct nc_frames f = {.a = &s->view.ds.arrays[array], .count = b->n, .inside = 1};
	auto_hid hid_t type = H5Dget_type(x->set),
		       mem = type < 0 ? -1 : h5_type_mem(type, false);
	size_t left = 0;
	uint8_t *p;
	int rc;

	for (uint32_t d = 0; d < x->rank; d++)
		f.inside *= b->n[d]; /* each has taken four bytes, or parse fails */
	if (f.inside > c->len / 4)
		return err_set(e, -EINVAL, "its elements end before the chunk does");
	rc = filters_ready(x, false, e);
	buf_clear(&s->room2);
	p = buf_grow(&s->room2, c->len + 1);
	f.values = alloc_array(f.inside, sizeof(hvl_t));
	if (!rc && (!p || !f.values))
		rc = err_nomem(e);
	if (!rc && c->len)
		memcpy(p, c->p, c->len);
	if (!rc && (!nc_frames_parse(&f, p, c->len, &left) || left > 0))
		rc = err_set(e, -EINVAL, "its elements end before the chunk does");
	rc = rc ? rc : write_box(s, array, b, mem, f.values, false, e);
	free(f.values);
	return rc;
}

/* ---- operations ---- */

/* chunk_at - open the dataset, and find the place of a chunk to be written. */
static int chunk_at(struct h5_sink *s, uint32_t array, uint64_t linear, struct chunks_box *b,
		    struct err *e)
{
	hid_t set;
	int rc = hdf5_sink_dataset(s, array, &set, e);

	rc = rc ? rc : chunks_elsewhere(s, array, e);
	return rc ? rc : chunks_locate(s, array, linear, b, e);
}

int hdf5_sink_put(struct h5_sink *s, uint32_t array, uint64_t linear,
		  const struct sink_chunk *c, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	struct chunks_box b = {0};
	int rc = chunk_at(s, array, linear, &b, e);

	rc = rc ? rc : grow_to(s, array, &b, e);
	if (!rc && dt_is_vlen(&a->type))
		rc = write_frames(s, array, &b, c, e);
	else if (!rc && c->stored && x->chunked && !x->convert)
		rc = write_as_is(s, array, &b, c, e);
	else if (!rc && c->stored)
		rc = err_set(e, -EINVAL, "it does not accept stored chunks");
	else if (!rc && x->chunked && codec_chain_encodable(&x->chain))
		rc = write_encoded(s, array, &b, c, e);
	else if (!rc)
		rc = write_elements(s, array, &b, c, e);
	x->put = true;
	return rc ? nc_err_path(&s->view.ds, 0, array, rc, e) : 0;
}

/* drop_frames - write the fill value to every element. */
static int drop_frames(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
		       struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct buf out;
	struct sink_chunk c = {0};
	uint64_t n = 1;
	int rc;

	for (uint32_t d = 0; d < a->rank; d++)
		n *= b->whole[d];
	buf_init(&out, SIZE_MAX);
	for (uint64_t i = 0; i < n && buf_ok(&out); i++) {
		size_t len = a->type.kind == DT_VSTRING ? a->fill_text.len : 0;

		buf_put_le32(&out, (uint32_t)len);
		if (len)
			buf_put(&out, a->fill_text.s, len);
	}
	c.p = out.data;
	c.len = out.len;
	rc = buf_ok(&out) ? write_frames(s, array, b, &c, e) : err_nomem(e);
	buf_release(&out);
	return rc;
}

/* exists - whether a chunk was ever written. */
static bool exists(const struct hdf5_sink_array *x, const struct chunks_box *b)
{
	hsize_t n = 0;

	if (!x->chunked)
		return true;
	if (H5Dget_chunk_storage_size(x->set, b->at, &n) >= 0)
		return n > 0;
	(void)H5Eclear2(H5E_DEFAULT);
	return false;
}

static int drop_elements(struct h5_sink *s, uint32_t array, const struct chunks_box *b,
			 struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	uint64_t bytes = a->type.size;
	auto_free uint8_t *p = NULL;
	struct sink_chunk c = {0};

	for (uint32_t d = 0; d < a->rank; d++) {
		uint64_t n = d < x->rank ? b->whole[d] : a->shape[d];

		if (ckd_mul(&bytes, bytes, n))
			return err_set(e, -ERANGE, "a chunk is too large");
	}
	p = bytes > SIZE_MAX ? NULL : alloc_array((size_t)bytes, 1);
	if (!p || !a->fill)
		return err_nomem(e);
	value_repeat(p, (size_t)bytes, a->fill, a->type.size);
	c.p = p;
	c.len = (size_t)bytes;
	return x->chunked && codec_chain_encodable(&x->chain)
		       ? write_encoded(s, array, b, &c, e)
		       : write_elements(s, array, b, &c, e);
}

int hdf5_sink_drop(struct h5_sink *s, uint32_t array, uint64_t linear, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	struct chunks_box b = {0};
	bool outside = false;
	int rc = chunk_at(s, array, linear, &b, e);

	for (uint32_t d = 0; d < x->rank && !rc; d++)
		outside |= b.at[d] >= x->extent[d];
	if (!rc && !outside && dt_is_vlen(&a->type))
		rc = grow_to(s, array, &b, e) ? e->code : drop_frames(s, array, &b, e);
	else if (!rc && !outside && exists(x, &b))
		rc = drop_elements(s, array, &b, e);
	x->put = true;
	return rc ? nc_err_path(&s->view.ds, 0, array, rc, e) : 0;
}
