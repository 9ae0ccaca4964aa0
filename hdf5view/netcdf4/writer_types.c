/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_types.c - the model's types in libhdf5's terms. */
#include "hdf5view/netcdf4/schema.h"

#include <string.h>

#include "base/core/endian.h"

/* types_text - the type of variable-length strings. Returns a new id. */
static hid_t types_text(void)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	return h5_id_unless(t < 0 || H5Tset_size(t, H5T_VARIABLE) < 0 ||
				    H5Tset_cset(t, H5T_CSET_UTF8) < 0,
			    t);
}

/* types_number - a plain type in its own byte order. Returns a new id; -1. */
static hid_t types_number(const struct dtype *t, bool big)
{
	switch (t->kind) {
	case DT_BOOL:
		return H5Tcopy(H5T_STD_I8LE);
	case DT_INT:
	case DT_UINT:
	case DT_FLOAT:
		/* types of one byte have no byte order */
		return h5_number(t->kind, t->size, big && t->size > 1, false);
	case DT_STRING:
		return H5Tcopy(H5T_C_S1);
	case DT_VSTRING:
		return types_text();
	default:
		return -1;
	}
}

static hid_t complex(const struct dtype *t, bool big)
{
	auto_hid hid_t part = h5_number(DT_FLOAT, t->size / 2, big, false);
	hid_t out = part < 0 ? -1 : H5Tcreate(H5T_COMPOUND, t->size);

	return h5_id_unless(out < 0 || H5Tinsert(out, "r", 0, part) < 0 ||
				    H5Tinsert(out, "i", t->size / 2, part) < 0,
			    out);
}

/* types_making - fields: nc_types of the fields, or NULL for types in memory, in host
 * order. */
struct types_making {
	const struct nc_builder *b;
	const uint32_t *fields;
	bool host;
};

static hid_t types_make(const struct types_making *x, const struct dtype *t);

/* field_type - the type of a field with its dimensions; a string is an array of characters.
 * Returns a new id. */
static hid_t field_type(const struct types_making *x, const struct dt_field *f, uint32_t named)
{
	struct types_making inner = {.b = x->b, .host = x->host};
	hsize_t dims[NC_RANK_LIMIT];
	unsigned rank = 0;
	auto_hid hid_t one = -1;
	hid_t out;

	one = named == DS_NONE ? types_make(&inner, &f->type)
			       : nc_h5_type(x->b, &f->type, named);
	if (one < 0 || f->rank + 1 > NC_RANK_LIMIT)
		return -1;
	for (uint32_t d = 0; d < f->rank; d++)
		dims[rank++] = f->dims[d];
	if (f->type.kind == DT_STRING && f->type.size > 1)
		dims[rank++] = f->type.size;
	if (rank > 0)
		return H5Tarray_create2(one, rank, dims);
	out = one;
	one = -1;
	return out;
}

static hid_t compound(const struct types_making *x, const struct dtype *t)
{
	hid_t out = H5Tcreate(H5T_COMPOUND, t->size);
	struct arena names;
	bool ok = out >= 0;

	arena_init(&names, (size_t)1 << 20);
	for (uint32_t i = 0; ok && i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];
		const char *name = nc_escape(&names, f->name, NC_NAME_LIMIT);
		auto_hid hid_t type = field_type(x, f, x->fields ? x->fields[i] : DS_NONE);

		ok = name && type >= 0 && H5Tinsert(out, name, f->offset, type) >= 0;
	}
	arena_release(&names);
	return h5_id_unless(!ok, out);
}

/* types_make - make an unnamed type. nc_type_check has checked its depth. Returns a new
 * id. */
static hid_t types_make(const struct types_making *x, const struct dtype *t)
{
	bool big = x->host ? HOST_BIG_ENDIAN : t->big_endian;

	switch (t->kind) {
	case DT_COMPLEX:
		return complex(t, big);
	case DT_COMPOUND:
		return compound(x, t);
	case DT_OPAQUE:
		return H5Tcreate(H5T_OPAQUE, t->size);
	case DT_VLEN: {
		auto_hid hid_t base =
			types_number(t->base, x->host ? big : t->base->big_endian);

		return base < 0 ? -1 : H5Tvlen_create(base);
	}
	default:
		return types_number(t, big);
	}
}

hid_t nc_h5_type(const struct nc_builder *b, const struct dtype *t, uint32_t type)
{
	struct types_making x = {.b = b};

	if (type == DS_NONE)
		return types_make(&x, t);
	return H5Iinc_ref(b->types[type]) < 0 ? -1 : b->types[type];
}

hid_t nc_h5_type_host(const struct nc_builder *b, const struct dtype *t)
{
	struct types_making x = {.b = b, .host = true};

	return types_make(&x, t);
}

/* types_commit - give a type its name. */
static int types_commit(struct nc_builder *b, const struct nc_type *t, hid_t type)
{
	auto_hid hid_t tcpl = H5Pcreate(H5P_DATATYPE_CREATE);
	hid_t group = nc_h5_group(b, t->group);

	if (tcpl < 0 || group < 0 || H5Pset_obj_track_times(tcpl, 0) < 0 ||
	    H5Pset_attr_creation_order(tcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) < 0)
		return -1;
	return H5Tcommit2(group, t->name, type, H5P_DEFAULT, tcpl, H5P_DEFAULT) < 0 ? -1 : 0;
}

/* take_type - reuse an existing named type if it is equal. Returns 0, or -EEXIST with *type
 * closed. */
static int take_type(hid_t group, const char *name, hid_t *type)
{
	hid_t there = H5Topen2(group, name, H5P_DEFAULT);
	bool same = there >= 0 && H5Tequal(there, *type) > 0;

	h5_id_close(type);
	*type = same ? there : -1;
	if (!same)
		h5_id_close(&there);
	return same ? 0 : -EEXIST;
}

int nc_h5_make_type(struct nc_builder *b, uint32_t i)
{
	const struct nc_type *t = &b->m->types[i];
	struct types_making x = {.b = b, .fields = t->fields};

	hid_t group = nc_h5_group(b, t->group);

	b->types[i] = types_make(&x, t->type);
	if (b->types[i] < 0 || group < 0)
		return -1;
	if (H5Lexists(group, t->name, H5P_DEFAULT) > 0)
		return take_type(group, t->name, &b->types[i]);
	return types_commit(b, t, b->types[i]);
}

int nc_h5_types(struct nc_builder *b, struct err *e)
{
	for (uint32_t i = 0; i < b->m->n_types; i++)
		if (nc_h5_make_type(b, i) < 0) {
			(void)nc_h5_fail(b, b->m->types[i].group, DS_NONE, e);
			return err_wrap(e, -EIO, "type '%s'", b->m->types[i].name);
		}
	return 0;
}
