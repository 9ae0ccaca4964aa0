/* SPDX-License-Identifier: BSD-3-Clause */
/* recreate.c - changes the lengths of datasets, and recreates those whose lengths cannot change.
 *
 * A recreated dataset can grow along the changed axes. Its chunks are copied in their stored form,
 * its attributes with their types; references to it are updated at the end. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEW_CHUNK_BYTES ((uint64_t)1 << 20) /* for data that was stored in one piece */

/* remaking - the recreation of one dataset. */
struct remaking {
	struct h5_sink *s;
	uint32_t array; /* DS_NONE: a scale without a variable */
	hid_t old, set, type;
	uint32_t rank;
	hsize_t len[NC_RANK_LIMIT], had[NC_RANK_LIMIT], max[NC_RANK_LIMIT];
	const uint8_t *fill; /* a new fill value; NULL: unchanged */
};

/* ---- properties ---- */

/* remaking_begin - open the old dataset, with its type and lengths. Returns 0 or -1. */
static int remaking_begin(struct remaking *r, uint64_t addr)
{
	auto_hid hid_t space = -1;
	int rank;

	r->set = -1;
	r->old = hdf5_sink_object(r->s, addr);
	r->type = r->old < 0 ? -1 : H5Dget_type(r->old);
	space = r->type < 0 ? -1 : H5Dget_space(r->old);
	rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	if (rank < 0 || rank > NC_RANK_LIMIT ||
	    H5Sget_simple_extent_dims(space, r->had, r->max) < 0)
		return -1;
	r->rank = (uint32_t)rank;
	return 0;
}

/* creation - the old dataset's properties. Returns a new id; -1. */
static hid_t creation(struct remaking *r)
{
	hsize_t chunk[NC_RANK_LIMIT];
	hid_t dcpl = H5Dget_create_plist(r->old);
	bool ok = dcpl >= 0, grows = false;

	for (uint32_t d = 0; d < r->rank; d++)
		grows |= r->max[d] != r->len[d];
	if (ok && grows && H5Pget_layout(dcpl) != H5D_CHUNKED) {
		memcpy(chunk, r->had, sizeof(chunk));
		nc_chunk_limit(r->rank, u64_max(1, H5Tget_size(r->type)), NEW_CHUNK_BYTES,
			       chunk);
		for (uint32_t d = 0; d < r->rank; d++)
			if (r->max[d] < chunk[d]) /* HDF5 requires chunks to fit */
				r->max[d] = chunk[d];
		ok = H5Pset_chunk(dcpl, (int)r->rank, chunk) >= 0 &&
		     H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR) >= 0;
	}
	if (ok && r->fill)
		ok = H5Pset_fill_value(dcpl, r->type, r->fill) >= 0;
	return h5_id_unless(!ok, dcpl);
}

/* recreate_stand_in - register classes for filters that the library may lack. */
static int recreate_stand_in(struct remaking *r, hid_t dcpl)
{
	int n = H5Pget_nfilters(dcpl);

	for (int i = 0; i < n && i < CODEC_CHAIN_MAX; i++) {
		unsigned flags, config;
		size_t n_params = 0;
		char name[64] = "";
		H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, &flags, &n_params, NULL,
						 sizeof(name), name, &config);
		const struct codec_spec spec = {.h5_id = (uint32_t)id, .name = name};

		name[sizeof(name) - 1] = '\0';
		if (id < 0 ||
		    nc_filters_stand_in(&r->s->filters,
					&(struct codec_chain){.n = 1, .specs = &spec}) < 0)
			return -1;
	}
	return n < 0 ? -1 : 0;
}

/* ---- content ---- */

/* copy_place - where chunk `linear` of the file's model begins, and the lengths of it that old and
 * new share; false: it is outside. */
static bool copy_place(const struct remaking *r, const struct ds_array *a, uint64_t linear,
		       hsize_t *at, hsize_t *n)
{
	uint64_t coords[DS_RANK_MAX];

	ds_chunk_coords(a, linear, coords);
	for (uint32_t d = 0; d < r->rank; d++) {
		const uint64_t both = u64_min(r->had[d], r->len[d]);

		at[d] = coords[d] * a->chunk[d];
		if (at[d] >= both)
			return false;
		n[d] = u64_min(a->chunk[d], both - at[d]);
	}
	return true;
}

/* copy_stored - copy a chunk in its stored form. */
static int copy_stored(const struct remaking *r, const hsize_t *at, struct buf *room)
{
	hsize_t n = 0;
	uint32_t mask = 0;
	uint8_t *p;

	if (H5Dget_chunk_storage_size(r->old, at, &n) < 0 || n == 0) {
		(void)H5Eclear2(H5E_DEFAULT);
		return 0;
	}
	buf_clear(room);
	p = n > UINT32_MAX ? NULL : buf_grow(room, (size_t)n);
	return !p || H5Dread_chunk(r->old, H5P_DEFAULT, at, &mask, p) < 0 ||
			       H5Dwrite_chunk(r->set, H5P_DEFAULT, mask, at, (size_t)n, p) < 0
		       ? -1
		       : 0;
}

/* copy_box - copy the elements of a chunk in the file's own type. */
static int copy_box(const struct remaking *r, bool vlen, const hsize_t *at, const hsize_t *n,
		    struct buf *room)
{
	uint64_t bytes = H5Tget_size(r->type);
	auto_hid hid_t from = -1, to = -1, mem = -1;
	uint8_t *p;
	int rc;

	for (uint32_t d = 0; d < r->rank; d++)
		if (ckd_mul(&bytes, bytes, n[d]))
			return -1;
	from = H5Dget_space(r->old);
	to = H5Dget_space(r->set);
	mem = H5Screate_simple((int)r->rank, n, NULL);
	buf_clear(room);
	p = bytes > SIZE_MAX ? NULL : buf_grow(room, (size_t)bytes);
	if (!p || from < 0 || to < 0 || mem < 0 ||
	    H5Sselect_hyperslab(from, H5S_SELECT_SET, at, NULL, n, NULL) < 0 ||
	    H5Sselect_hyperslab(to, H5S_SELECT_SET, at, NULL, n, NULL) < 0 ||
	    H5Dread(r->old, r->type, mem, from, H5P_DEFAULT, p) < 0)
		return -1;
	rc = H5Dwrite(r->set, r->type, mem, to, H5P_DEFAULT, p) < 0 ? -1 : 0;
	if (vlen)
		(void)H5Dvlen_reclaim(r->type, mem, H5P_DEFAULT, p);
	return rc;
}

/* recreate_carry - copy all stored chunks. h5_lock is released while the source is read. */
static int recreate_carry(struct remaking *r, struct err *e)
{
	const struct hdf5_sink_array *x = &r->s->arrays[r->array];
	struct source *real = &r->s->real->g.base;
	const struct ds_array *a = x->real == DS_NONE ? NULL : &real->ds.arrays[x->real];
	const bool vlen = a && dt_is_vlen(&a->type);
	hsize_t at[NC_RANK_LIMIT] = {0}, n[NC_RANK_LIMIT] = {1};
	struct buf room;
	uint64_t linear = 0;
	int rc = 0;

	if (!a)
		return 0;
	buf_init(&room, SIZE_MAX);
	while (linear < a->n_chunks) {
		h5_leave();
		rc = source_next(real, x->real, linear, &linear, e);
		hdf5_sink_enter();
		if (rc)
			break;
		if (copy_place(r, a, linear, at, n))
			rc = a->layout == DS_CHUNKED && !vlen ? copy_stored(r, at, &room)
							      : copy_box(r, vlen, at, n, &room);
		if (rc) {
			rc = hdf5_sink_fail(r->s, 0, r->array, e);
			break;
		}
		linear++;
	}
	buf_release(&room);
	return rc == -ENOENT ? 0 : rc;
}

/* ---- recreating ---- */

/* recreate_create - make the dataset in the old one's place. group: the address of its group. */
static int recreate_create(struct remaking *r, uint64_t group, uint64_t addr, const char *guess)
{
	auto_hid hid_t parent = hdf5_sink_object(r->s, group), dcpl = creation(r), space = -1;
	auto_free char *link = NULL;

	if (parent < 0 || dcpl < 0 || hdf5_sink_link(parent, addr, guess, &link) < 0 ||
	    recreate_stand_in(r, dcpl) < 0)
		return -1;
	space = H5Screate_simple((int)r->rank, r->len, r->max);
	if (space < 0 || H5Ldelete(parent, link, H5P_DEFAULT) < 0)
		return -1;
	r->set = H5Dcreate2(parent, link, r->type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	return r->set < 0 ? -1 : 0;
}

/* recreate_may - reject a dataset that cannot be recreated without loss. */
static int recreate_may(const struct remaking *r, struct err *e)
{
	auto_hid hid_t dcpl = H5Dget_create_plist(r->old);
	H5D_layout_t layout = dcpl < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(dcpl);
	unsigned opts = 0;

	if (!hdf5_sink_links_one(r->old))
		return err_set(e, -EOPNOTSUPP,
			       "its lengths are fixed in the file, and more than one link "
			       "there refers to it");
	if (layout == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0)
		return err_set(e, -EOPNOTSUPP,
			       "its lengths are fixed, and its data is in other files");
	if (layout == H5D_CHUNKED && H5Pget_chunk_opts(dcpl, &opts) >= 0 && opts != 0)
		return err_set(
			e, -EOPNOTSUPP,
			"its lengths are fixed, and chunks at its end are stored differently");
	return r->rank == 0 ? err_set(e, -EOPNOTSUPP, "a scalar has no dimensions") : 0;
}

/* remake - recreate it; r->old, len and max are set. *addr: its address, old and new. old is
 * taken. */
static int remake(struct remaking *r, uint64_t group, uint64_t *addr, const char *guess,
		  struct err *e)
{
	bool dim_only = r->array == DS_NONE;
	/* the name of a scale without a variable contains its length */
	const char *const without[] = {"REFERENCE_LIST", dim_only ? "NAME" : NULL, NULL};
	char name[100] = "";
	uint64_t from = *addr;
	int rc = recreate_may(r, e);

	if (rc) {
		h5_id_close(&r->old);
		return rc;
	}
	if (dim_only && H5Aexists(r->old, "NAME") > 0)
		(void)snprintf(name, sizeof(name), NETCDF_DIM_ONLY ".%10" PRIu64,
			       (uint64_t)r->len[0]);
	rc = hdf5_sink_note_references(r->s, r->old) < 0 ||
			     recreate_create(r, group, from, guess) < 0 ||
			     hdf5_sink_attrs_copy(r->old, r->set, without) < 0 ||
			     (name[0] && nc_h5_attr_text(r->set, "NAME", name, strlen(name) + 1,
							 false) < 0)
		     ? hdf5_sink_fail(r->s, 0, r->array, e)
		     : 0;
	if (!rc && !dim_only)
		rc = recreate_carry(r, e);
	if (!rc)
		*addr = nc_h5_address(r->set);
	if (!rc && hdf5_sink_list_add(&r->s->scales, *addr) < 0)
		rc = err_nomem(e);
	h5_id_close(&r->set);
	if (rc) {
		h5_id_close(&r->old);
		return rc;
	}
	return hdf5_sink_moved(r->s, from, *addr, r->old) < 0 ? err_nomem(e) : 0;
}

/* recreate_grow - set the lengths of the existing dataset, if it can have them. Returns 1 if it
 * cannot. */
static int recreate_grow(struct remaking *r)
{
	bool fits = true, same = true;

	for (uint32_t d = 0; d < r->rank; d++) {
		same &= r->len[d] == r->had[d];
		fits &= r->max[d] == H5S_UNLIMITED || r->len[d] <= r->max[d];
	}
	if (same)
		return 0;
	if (fits) {
		auto_hid hid_t dcpl = H5Dget_create_plist(r->old);

		if (dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED)
			return H5Dset_extent(r->old, r->len) < 0 ? -1 : 0;
	}
	for (uint32_t d = 0; d < r->rank; d++)
		if (r->len[d] != r->had[d])
			r->max[d] = H5S_UNLIMITED;
	return 1;
}

int hdf5_sink_remake_fill(struct h5_sink *s, uint32_t array, const uint8_t *fill, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	struct remaking r = {.s = s, .array = array, .fill = fill};
	int rc;

	hdf5_sink_forget(s, array);
	rc = remaking_begin(&r, x->addr) < 0 ? hdf5_sink_fail(s, 0, array, e) : 0;
	memcpy(r.len, r.had, sizeof(r.len));
	if (!rc)
		rc = remake(&r, s->b.groups[a->group], &x->addr, s->m->arrays[array].link, e);
	else
		h5_id_close(&r.old);
	h5_id_close(&r.type);
	s->b.arrays[array] = x->addr;
	return rc ? nc_err_path(&s->view.ds, 0, array, rc, e) : 0;
}

int hdf5_sink_resize(struct h5_sink *s, uint32_t array, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	struct remaking r = {.s = s, .array = array};
	int rc = hdf5_sink_require_in_file(s, array, e);

	if (rc)
		return rc;
	hdf5_sink_forget(s, array);
	rc = remaking_begin(&r, x->addr) < 0 || r.rank > nc_rank(a)
		     ? hdf5_sink_fail(s, 0, array, e)
		     : 0;
	for (uint32_t d = 0; d < r.rank; d++)
		r.len[d] = d < a->rank ? a->shape[d] : r.had[d];
	rc = rc ? rc : recreate_grow(&r);
	if (rc == -1)
		rc = hdf5_sink_fail(s, 0, array, e);
	if (rc == 1 && x->put)
		rc = err_set(e, -EINVAL, "it already has chunks of its new shape");
	if (rc == 1)
		rc = remake(&r, s->b.groups[a->group], &x->addr,
			    s->m->arrays[array].link ? s->m->arrays[array].link : a->name, e);
	else
		h5_id_close(&r.old);
	h5_id_close(&r.type);
	s->b.arrays[array] = x->addr;
	/* the address of its dimension */
	for (uint32_t k = 0; k < a->rank && !rc; k++)
		if (s->dims[a->dims[k]].addr != HADDR_UNDEF)
			s->dims[a->dims[k]].addr =
				hdf5_sink_current_address(s, s->dims[a->dims[k]].addr);
	return rc ? nc_err_path(&s->view.ds, 0, array, rc, e) : 0;
}

int hdf5_sink_scale_resize(struct h5_sink *s, uint32_t dim, struct err *e)
{
	struct hdf5_sink_dim *d = &s->dims[dim];
	const struct dataset *real = &s->real->g.base.ds;
	struct remaking r = {.s = s, .array = DS_NONE};
	int rc = remaking_begin(&r, d->addr) < 0 || r.rank != 1 ? -1 : 0;

	r.len[0] = s->m->dims[dim].len;
	rc = rc ? rc : recreate_grow(&r);
	if (rc == 1 && d->real != DS_NONE)
		rc = remake(&r, s->real->groups[real->dims[d->real].group].addr, &d->addr,
			    real->dims[d->real].name, e);
	else
		h5_id_close(&r.old);
	h5_id_close(&r.type);
	if (rc == -1)
		rc = hdf5_sink_fail(s, s->m->dims[dim].group, DS_NONE, e);
	return rc < 0 ? err_wrap(e, rc, "dimension '%.100s'", s->m->dims[dim].name) : 0;
}
