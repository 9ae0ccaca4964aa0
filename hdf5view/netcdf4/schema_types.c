/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_types.c - decides which named datatypes the file has. netCDF identifies compound, opaque
 * and vlen types by name only. Values of the same type share the one of their group or of a group
 * above; the types of complex numbers are in the root group. */
#include "hdf5view/netcdf4/schema.h"
#include "translate/model/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16 /* compounds within compounds */
#define TYPES_MAX 20000
#define FIELD_BYTES 96 /* of a field in a datatype message, without its name; generous */

bool nc_type_same(const struct dtype *a, const struct dtype *b, bool any_order)
{
	if (a->kind != b->kind || a->size != b->size || a->n_fields != b->n_fields)
		return false;
	if (!any_order && a->size > 1 && a->big_endian != b->big_endian &&
	    (a->kind == DT_INT || a->kind == DT_UINT || a->kind == DT_FLOAT ||
	     a->kind == DT_COMPLEX))
		return false;
	if (a->kind == DT_VLEN)
		return a->base && b->base && nc_type_same(a->base, b->base, any_order);
	for (uint32_t i = 0; a->kind == DT_COMPOUND && i < a->n_fields; i++) {
		const struct dt_field *x = &a->fields[i], *y = &b->fields[i];

		/* depth: types are compared only after type_bytes has seen them */
		if (strcmp(x->name, y->name) != 0 || x->offset != y->offset ||
		    x->rank != y->rank || !nc_type_same(&x->type, &y->type, any_order))
			return false;
		for (uint32_t d = 0; d < x->rank; d++)
			if (x->dims[d] != y->dims[d])
				return false;
	}
	return true;
}

/* field_ok - whether a field's lengths are valid for an HDF5 array. */
static int field_ok(const struct dt_field *f, struct err *e)
{
	if (f->rank + 1 > NC_RANK_LIMIT)
		return err_set(e, -EOPNOTSUPP,
			       "field '%s' has %" PRIu32
			       " dimensions, but HDF5 allows at most %d",
			       f->name, f->rank, NC_RANK_LIMIT);
	for (uint32_t d = 0; d < f->rank; d++)
		if (f->dims[d] == 0 || f->dims[d] > UINT32_MAX)
			return err_set(e, -EOPNOTSUPP,
				       "field '%s' has a length of %" PRIu64
				       ", but HDF5 allows at most %" PRIu32,
				       f->name, f->dims[d], UINT32_MAX);
	return dt_is_vlen(&f->type)
		       ? err_set(e, -EOPNOTSUPP, "field '%s' has no fixed size", f->name)
		       : 0;
}

/* type_bytes - add the size of a type in a header message to *at. */
static int type_bytes(const struct dtype *t, unsigned int depth, size_t *at, struct err *e)
{
	int rc = 0;

	if (depth > DEPTH_MAX)
		return err_set(e, -EOPNOTSUPP, "structures are nested deeper than %d",
			       DEPTH_MAX);
	if (t->kind == DT_COMPOUND && t->n_fields == 0)
		return err_set(e, -EOPNOTSUPP, "a structure has no fields");
	if (t->kind == DT_VLEN && (!t->base || !value_is_number(t->base)))
		return err_set(e, -EOPNOTSUPP,
			       "the elements of variable-length arrays are not numbers");
	for (uint32_t i = 0; t->kind == DT_COMPOUND && i < t->n_fields && !rc; i++) {
		*at += FIELD_BYTES + strlen(t->fields[i].name) + 4 * (size_t)t->fields[i].rank;
		if (*at > NC_MESSAGE_MAX)
			return err_set(
				e, -EOPNOTSUPP,
				"the description of a structure takes more than %d bytes",
				NC_MESSAGE_MAX);
		rc = field_ok(&t->fields[i], e);
		rc = rc ? rc : type_bytes(&t->fields[i].type, depth + 1, at, e);
	}
	return rc;
}

static bool needs_name(const struct dtype *t)
{
	return t->kind == DT_COMPLEX || t->kind == DT_COMPOUND || t->kind == DT_OPAQUE ||
	       t->kind == DT_VLEN;
}

/* complex_name - "_complex64", with numpy's number of bits. */
static const char *complex_name(const struct dtype *t)
{
	if (t->size == 8)
		return t->big_endian ? "_complex64_be" : "_complex64";
	return t->big_endian ? "_complex128_be" : "_complex128";
}

/* types_join - "a_b" in the arena; NULL: memory. */
static const char *types_join(struct nc_model *m, const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 2;
	char *out = arena_alloc(&m->arena, n, 1);

	if (out)
		(void)snprintf(out, n, "%s_%s", a, b);
	return out;
}

static int types_add(struct nc_model *m, uint32_t group, const struct dtype *t,
		     const char *base, const uint32_t *fields, uint32_t *ret, struct err *e)
{
	const char *name = t->kind == DT_COMPLEX ? complex_name(t) : types_join(m, base, "t");

	if (m->n_types >= TYPES_MAX)
		return err_set(e, -ERANGE, "more than %d types that need a name", TYPES_MAX);
	if (name)
		name = nc_names_claim(&m->names, &m->arena, group, name, DS_NONE,
				      NC_NAME_LIMIT);
	if (!name)
		return nc_full(m, e);
	if (grow_array(&m->types, &m->c_types, (size_t)m->n_types + 1, sizeof(*m->types)) < 0)
		return err_nomem(e);
	m->types[m->n_types] = (struct nc_type){.group = group,
						.name = name,
						.type = t,
						.n_fields = t->n_fields,
						.fields = fields};
	*ret = m->n_types++;
	return 0;
}

/* types_visible - whether the contents of one group are visible in another: the same or a
 * descendant. */
static bool types_visible(const struct nc_model *m, uint32_t holds, uint32_t from)
{
	/* groups form a tree: order_groups has seen to it */
	while (from != holds && from != 0)
		from = m->ds->groups[from].parent;
	return from == holds;
}

static int need(struct nc_model *m, uint32_t group, const struct dtype *t, const char *base,
		unsigned int depth, uint32_t *ret, struct err *e)
{
	uint32_t *fields = NULL;
	int rc = 0;

	*ret = DS_NONE;
	if (!needs_name(t))
		return 0;
	if (depth > DEPTH_MAX)
		return err_set(e, -EOPNOTSUPP, "structures are nested deeper than %d",
			       DEPTH_MAX);
	if (t->kind == DT_COMPLEX)
		group = 0;
	for (uint32_t i = 0; i < m->n_types; i++)
		if (types_visible(m, m->types[i].group, group) &&
		    nc_type_same(m->types[i].type, t, false)) {
			*ret = i;
			return 0;
		}
	if (t->kind == DT_COMPOUND) {
		fields = arena_alloc(&m->arena, t->n_fields, sizeof(*fields));
		if (!fields)
			return nc_full(m, e);
	}
	for (uint32_t i = 0; fields && i < t->n_fields && !rc; i++) {
		const struct dt_field *f = &t->fields[i];
		const char *inner = nc_escape(&m->arena, f->name, NC_NAME_LIMIT);

		fields[i] = DS_NONE;
		if (!needs_name(&f->type))
			continue;
		inner = inner ? types_join(m, base, inner) : NULL;
		rc = inner ? need(m, group, &f->type, inner, depth + 1, &fields[i], e)
			   : nc_full(m, e);
	}
	return rc ? rc : types_add(m, group, t, base, fields, ret, e);
}

int nc_type_check(const struct dtype *t, struct err *e)
{
	size_t bytes = 0;

	return type_bytes(t, 0, &bytes, e);
}

int nc_type_need(struct nc_model *m, uint32_t group, const struct dtype *t, const char *base,
		 uint32_t *ret, struct err *e)
{
	return need(m, group, t, base, 0, ret, e);
}
