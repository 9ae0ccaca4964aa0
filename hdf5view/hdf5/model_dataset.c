/* SPDX-License-Identifier: BSD-3-Clause */
/* model_dataset.c - one HDF5 dataset becomes an array, a dimension, or a note.
 *
 * Everything is read once, while the dataset is open. Its shape is determined later, when all
 * dimensions are known (model_dims.c). Chunk indexes and data are not read. */
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <string.h>

struct dataset_found {
	struct h5_barray w;
	hid_t id, dcpl, type;
	H5D_layout_t layout;
	bool null; /* a null dataspace */
};

/* header_space - the extent of a dataset whose files the library must not open. */
static int header_space(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct h5_layout l = {0};
	uint64_t *ext, *max;
	int rc;

	if (f->w.x.file)
		return err_set(e, -EOPNOTSUPP, "%s", f->w.a.unreadable);
	rc = h5_layout_read(&b->src->raw, b->src->raw.base + f->w.x.addr, &l, e);
	if (rc < 0)
		return rc;
	ext = arena_copy(b->arena, l.dims, l.rank * sizeof(*ext));
	max = arena_copy(b->arena, l.maxdims, l.rank * sizeof(*max));
	if (!ext || !max)
		return h5_full(b, e);
	f->w.x.rank = l.rank;
	f->w.x.extent = ext;
	f->w.max = max;
	/* its length depends on its sources, which are not opened: no length would be right */
	for (uint32_t i = 0; i < l.rank; i++)
		if (ext[i] == 0 && max[i] == H5S_UNLIMITED)
			return err_set(e, -EACCES, "%s", f->w.a.unreadable);
	return 0;
}

static int dataset_read_space(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	auto_hid hid_t space = H5Dget_space(f->id);
	H5S_class_t cls = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
	hsize_t d[H5S_MAX_RANK] = {0}, m[H5S_MAX_RANK] = {0};
	uint64_t *ext, *max;
	int rank;

	f->null = cls == H5S_NULL;
	if (f->null)
		return 0;
	rank = cls == H5S_NO_CLASS ? -1 : H5Sget_simple_extent_dims(space, d, m);
	if (rank < 0 || rank > H5S_MAX_RANK)
		return h5_error(e, -EBADMSG, "its dataspace cannot be read");
	ext = arena_alloc(b->arena, (size_t)rank, sizeof(*ext));
	max = arena_alloc(b->arena, (size_t)rank, sizeof(*max));
	if (!ext || !max)
		return h5_full(b, e);
	for (int i = 0; i < rank; i++) {
		ext[i] = d[i];
		max[i] = m[i];
	}
	f->w.x.rank = (uint32_t)rank;
	f->w.x.extent = ext;
	f->w.max = max;
	return 0;
}

/* append_flags - describe an enumeration by CF's flag attributes. */
static int append_flags(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;
	struct ds_text *names = arena_alloc(b->arena, 1, sizeof(*names));
	uint64_t *dims = arena_alloc(b->arena, 1, sizeof(*dims));
	struct ds_attr *all;
	uint8_t *values = NULL;
	const char *values_name = arena_strdup(b->arena, "flag_values");
	const char *meanings_name = arena_strdup(b->arena, "flag_meanings");
	uint64_t n = 0;
	int rc;

	if (!names || !dims || !values_name || !meanings_name)
		return h5_full(b, e);
	if (H5Tget_class(f->type) != H5T_ENUM ||
	    ds_attr_find(a->attrs, a->n_attrs, "flag_values") ||
	    ds_attr_find(a->attrs, a->n_attrs, "flag_meanings"))
		return 0;
	rc = h5_type_flags(b->arena, f->type, &a->type, &n, &values, names, e);
	if (rc < 0 || n == 0)
		return rc;
	all = arena_alloc(b->arena, (size_t)a->n_attrs + 2, sizeof(*all));
	if (!all)
		return h5_full(b, e);
	if (a->n_attrs)
		memcpy(all, a->attrs, a->n_attrs * sizeof(*all));
	dims[0] = n;
	all[a->n_attrs] = (struct ds_attr){.name = values_name,
					   .type = a->type,
					   .rank = 1,
					   .dims = dims,
					   .n = n,
					   .data = values,
					   .of_type = true};
	all[a->n_attrs].type.big_endian = false;
	all[a->n_attrs + 1] =
		(struct ds_attr){.name = meanings_name,
				 .n = 1,
				 .strings = names,
				 .dims = dims,
				 .of_type = true,
				 .type = {.kind = DT_STRING,
					  .size = names->len > UINT32_MAX ? UINT32_MAX
						  : names->len            ? (uint32_t)names->len
									  : 1}};
	a->attrs = all;
	a->n_attrs += 2;
	return 0;
}

static int read_type(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;
	struct h5_type t;
	uint64_t *shape;
	int rc = h5_type_map(b->arena, f->type, false, &t, e);

	if (rc < 0)
		return rc;
	a->type = t.type;
	a->rank = f->w.x.rank + t.n_dims;
	if (a->rank > DS_RANK_MAX)
		return err_set(e, -EOPNOTSUPP, "it has too many dimensions");
	a->access = dt_is_vlen(&t.type) ? DS_VARIABLE : t.stored ? DS_STORED : DS_CONVERT;
	f->w.x.elem_bytes = H5Tget_size(f->type);
	shape = arena_alloc(b->arena, a->rank, sizeof(*shape));
	if (!shape)
		return h5_full(b, e);
	for (uint32_t i = 0; i < a->rank; i++)
		shape[i] = i < f->w.x.rank ? f->w.x.extent[i] : t.dims[i - f->w.x.rank];
	a->shape = shape;
	if (t.rounded)
		return h5_note(b, e,
			       "its floating-point numbers are rounded to double "
			       "precision");
	return 0;
}

static int dataset_read_layout(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;
	hsize_t chunk[H5S_MAX_RANK];
	H5D_fill_time_t when = H5D_FILL_TIME_IFSET;
	uint64_t *c;

	/* elements of a chunk beyond the extent were filled when the chunk was made, unless the
	 * properties say otherwise; other layouts have none */
	f->w.x.pad_unknown = f->layout != H5D_CHUNKED || H5Pget_fill_time(f->dcpl, &when) < 0 ||
			     when == H5D_FILL_TIME_NEVER;
	if (f->layout != H5D_CHUNKED)
		return 0;
	if (H5Pget_chunk(f->dcpl, H5S_MAX_RANK, chunk) != (int)f->w.x.rank)
		return err_set(e, -EBADMSG, "its chunks have another rank than its dataspace");
	c = arena_alloc(b->arena, a->rank, sizeof(*c));
	if (!c)
		return h5_full(b, e);
	for (uint32_t i = 0; i < a->rank; i++) {
		c[i] = i < f->w.x.rank ? chunk[i] : u64_max(a->shape[i], 1);
		if (c[i] == 0)
			return err_set(e, -EBADMSG, "its chunks have length 0");
	}
	a->chunk = c;
	return 0;
}

/* storage - read the storage layout, and check that its files may be opened. */
static int storage(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;
	struct err why = ERR_INIT;
	bool external;
	int rc;

	f->layout = H5Pget_layout(f->dcpl);
	external = H5Pget_external_count(f->dcpl) > 0;
	a->layout = f->layout == H5D_CHUNKED   ? DS_CHUNKED
		    : f->layout == H5D_COMPACT ? DS_COMPACT
		    : f->layout == H5D_VIRTUAL ? DS_VIRTUAL
		    : external                 ? DS_EXTERNAL
					       : DS_CONTIGUOUS;
	if (f->layout < 0)
		return h5_error(e, -EBADMSG, "its layout cannot be read");
	if (f->layout != H5D_VIRTUAL && !external)
		return 0;
	rc = h5_storage_ok(b, f->w.x.file, f->dcpl, &why);
	if (h5_fatal(rc))
		return err_set(e, rc, "%s", why.msg);
	if (rc < 0) {
		a->unreadable = arena_strdup(b->arena, why.msg);
		return a->unreadable ? 0 : h5_full(b, e);
	}
	/* the library finds raw data next to the file only if the file is opened by name */
	f->w.x.raw_path = external ? arena_copy(b->arena, b->path.data, b->path.len) : NULL;
	return external && !f->w.x.raw_path ? h5_full(b, e) : 0;
}

static int dataset_read_all(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;
	unsigned order = 0;
	int rc = storage(b, f, e);

	if (rc == 0 && a->layout == DS_VIRTUAL && a->unreadable)
		rc = header_space(b, f, e);
	else if (rc == 0)
		rc = dataset_read_space(b, f, e);
	if (rc < 0)
		return rc;
	(void)H5Pget_attr_creation_order(f->dcpl, &order); /* if this fails: by name */
	rc = h5_attrs_read(b, f->id, (order & H5P_CRT_ORDER_TRACKED) != 0, &a->n_attrs,
			   &a->attrs, &f->w.facts, e);
	if (rc == 0 && f->w.facts.is_scale && f->w.x.rank > 0 && !f->null)
		rc = h5_dim_add(b, a->group, f->w.x.file, f->w.x.addr, a->name,
				f->w.x.extent[0], f->w.max[0] == H5S_UNLIMITED, &f->w.facts,
				&f->w.own_dim, e);
	if (rc < 0 || (f->w.facts.dim_only && f->w.own_dim != DS_NONE))
		return rc;
	if (f->null)
		return err_set(e, -EOPNOTSUPP, "it has no data (a null dataspace)");
	rc = read_type(b, f, e);
	rc = rc ? rc : append_flags(b, f, e);
	rc = rc ? rc : dataset_read_layout(b, f, e);
	rc = rc ? rc : h5_filters_read(b, f->dcpl, a, e);
	rc = rc ? rc : h5_fill_read(b, f->dcpl, f->type, a, e);
	return rc;
}

static int dataset_add(struct h5_build *b, struct dataset_found *f, struct err *e)
{
	struct ds_array *a = &f->w.a;

	if (a->access == DS_STORED &&
	    (f->w.x.file || a->layout == DS_VIRTUAL || a->layout == DS_EXTERNAL))
		a->access = DS_CONVERT;
	if (strncmp(a->name, NETCDF_NON_COORD, sizeof(NETCDF_NON_COORD) - 1) == 0 &&
	    a->name[sizeof(NETCDF_NON_COORD) - 1])
		a->name += sizeof(NETCDF_NON_COORD) - 1;
	if (grow_array(&b->arrays, &b->c_arrays, b->n_arrays + 1, sizeof(*b->arrays)) < 0)
		return err_nomem(e);
	b->arrays[b->n_arrays++] = f->w;
	b->groups[a->group].g.n_arrays++;
	return 0;
}

int h5_dataset_add(struct h5_build *b, hid_t id, uint32_t group, uint32_t file, uint64_t addr,
		   const char *name, struct err *e)
{
	struct dataset_found f = {.id = id, .dcpl = -1, .type = -1};
	struct err why = ERR_INIT;
	int rc;

	f.w.a = (struct ds_array){.name = name, .group = group};
	f.w.x = (struct h5_array){.addr = addr, .file = file};
	f.w.own_dim = DS_NONE;
	f.dcpl = H5Dget_create_plist(id);
	f.type = H5Dget_type(id);
	if (f.dcpl < 0 || f.type < 0)
		rc = h5_error(&why, -EBADMSG, "it cannot be read");
	else
		rc = dataset_read_all(b, &f, &why);
	h5_id_close(&f.type);
	h5_id_close(&f.dcpl);
	if (h5_fatal(rc))
		return err_set(e, rc, "%s", why.msg);
	if (rc < 0)
		return h5_mark_unreadable(b, group, name, &why, e);
	if (f.w.facts.dim_only && f.w.own_dim != DS_NONE)
		return 0;
	return dataset_add(b, &f, e);
}
