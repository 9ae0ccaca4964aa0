/* SPDX-License-Identifier: BSD-3-Clause */
/* contents.c - which dimensions and variables a classic file has.
 *
 * The file has the root group of the netCDF-4 file that the dataset would be (hdf5view/netcdf4),
 * less what classic netCDF cannot express. A dimension of length 0 is the record dimension in the
 * format, and only one dimension can be that, as the first of its variables. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endian.h"

/* contents - the decisions in progress. */
struct contents {
	struct cdf_file *f;
	struct nc_model *m;
	const struct dataset *ds;
	struct plan *plans;
	enum cdf_format format; /* as requested */
	bool keep_going;
	uint32_t *ids; /* of each dimension of the model: its number in the file, or DS_NONE */
	uint8_t *uses; /* of each dimension of the model: USE_ bits */
	uint32_t record;  /* the record dimension, in the model, or DS_NONE */
	uint32_t *arrays; /* in the file, in order */
	uint32_t n_arrays;
	bool wide; /* a variable has a type of CDF-5 */
};

enum { USE_FIRST = 1, USE_INNER = 2, USE_TEXT = 4 };

uint32_t cdf_type_of(const struct dtype *t)
{
	const unsigned log = t->size >= 8 ? 3 : t->size >= 4 ? 2 : t->size >= 2;
	static const uint32_t ints[] = {CDF_BYTE, CDF_SHORT, CDF_INT, CDF_INT64},
			      uints[] = {CDF_UBYTE, CDF_USHORT, CDF_UINT, CDF_UINT64},
			      floats[] = {0, CDF_FLOAT, CDF_FLOAT, CDF_DOUBLE};

	switch (t->kind) {
	case DT_BOOL:
		return CDF_BYTE;
	case DT_STRING:
		return CDF_CHAR;
	case DT_INT:
		return ints[log];
	case DT_UINT:
		return uints[log];
	case DT_FLOAT:
		return floats[log];
	default:
		return 0;
	}
}

static bool contents_zero(const struct contents *c, uint32_t dim)
{
	return c->m->dims[dim].len == 0;
}

/* ---- variables ---- */

/* contents_leave - leave out an array, with a note. */
static int contents_leave(struct contents *c, uint32_t i, const char *why, struct err *e)
{
	c->plans[i] = (struct plan){.kind = PLAN_HIDE};
	(void)snprintf(c->plans[i].reason, sizeof(c->plans[i].reason), "%s", why);
	return nc_note(c->m, 0, i, "left out: %s", why) < 0 ? err_nomem(e) : 0;
}

/* contents_fits - whether all values of an array, with the lengths of its dimensions, are below
 * 2^62 bytes. */
static bool contents_fits(const struct contents *c, const struct ds_array *a)
{
	uint64_t n = a->type.kind == DT_STRING ? a->type.size : 8;

	for (uint32_t d = 0; d < a->rank; d++)
		if (ckd_mul(&n, n, u64_max(c->m->dims[a->dims[d]].len, 1)) || n > INT64_MAX / 2)
			return false;
	return true;
}

/* contents_unfit - why an array is not in the file, whatever its dimensions are; NULL: it is. */
static const char *contents_unfit(const struct contents *c, const struct ds_array *a)
{
	const uint32_t type = cdf_type_of(&a->type);

	if (dt_is_vlen(&a->type))
		return "classic netCDF has no elements of variable length";
	if (!type)
		return "classic netCDF has no such type";
	if (type > CDF_DOUBLE && (c->format == CDF_FORMAT_1 || c->format == CDF_FORMAT_2))
		return "only CDF-5 has unsigned and 64-bit integers";
	for (uint32_t d = 0; d < a->rank; d++)
		if (c->ds->dims[a->dims[d]].group != 0)
			return "one of its dimensions is not in the root group";
	return contents_fits(c, a) ? NULL : "it has more values than a file can hold";
}

/* contents_use - note how an array uses its dimensions. */
static void contents_use(struct contents *c, uint32_t i)
{
	const struct ds_array *a = &c->ds->arrays[i];

	for (uint32_t d = 0; d < a->rank; d++)
		c->uses[a->dims[d]] |= d == 0 ? USE_FIRST : USE_INNER;
	c->wide |= cdf_type_of(&a->type) > CDF_DOUBLE;
	c->arrays[c->n_arrays++] = i;
}

/* contents_pick - choose among the arrays of the root group. The model has hidden those that cannot
 * be read, or that HDF5 cannot express either. */
static int contents_pick(struct contents *c, struct err *e)
{
	const struct ds_group *root = &c->ds->groups[0];
	int rc = 0;

	for (uint32_t k = 0; k < root->n_arrays && rc == 0; k++) {
		const uint32_t i = root->arrays[k];
		const char *why = contents_unfit(c, &c->ds->arrays[i]);

		if (!c->m->arrays[i].name && !why && !c->keep_going)
			rc = err_set(e, -EOPNOTSUPP,
				     "'/%.100s' cannot be shown in a classic netCDF file: %s",
				     c->ds->arrays[i].name, c->plans[i].reason);
		else if (c->m->arrays[i].name && why)
			rc = contents_leave(c, i, why, e);
		else if (c->m->arrays[i].name)
			contents_use(c, i);
	}
	return rc;
}

/* contents_groups - hide all other arrays; one note for each group below the root. */
static int contents_groups(struct contents *c, struct err *e)
{
	const struct ds_group *root = &c->ds->groups[0];

	for (uint32_t i = 0; i < c->ds->n_arrays; i++)
		if (c->ds->arrays[i].group != 0) {
			c->plans[i] = (struct plan){.kind = PLAN_HIDE};
			(void)snprintf(c->plans[i].reason, sizeof(c->plans[i].reason),
				       "classic netCDF has no groups");
		}
	for (uint32_t k = 0; k < root->n_groups; k++)
		if (nc_note(c->m, 0, DS_NONE,
			    "group '%s' is left out, with everything in it: classic netCDF has "
			    "no groups",
			    c->m->groups[root->groups[k]].name) < 0)
			return err_nomem(e);
	return 0;
}

/* ---- dimensions ---- */

/* contents_record - choose the record dimension: one that is only the first of its variables. A
 * length of 0 cannot be anything else, and comes first; then the first unlimited one in use, then
 * any unlimited one. */
static void contents_record(struct contents *c)
{
	const struct ds_group *root = &c->ds->groups[0];
	int best = 0;

	for (uint32_t k = 0; k < root->n_dims; k++) {
		const uint32_t d = root->dims[k];
		const bool used = c->uses[d] & USE_FIRST, unlimited = c->m->dims[d].unlimited;
		const int rank = used && contents_zero(c, d) ? 3
				 : unlimited && used         ? 2
				 : unlimited                 ? 1
							     : 0;

		if ((c->uses[d] & USE_INNER) || rank <= best)
			continue;
		best = rank;
		c->record = d;
	}
}

/* contents_empty - leave out arrays with a dimension of length 0 that is not the record dimension:
 * they have no values. */
static int contents_empty(struct contents *c, struct err *e)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < c->n_arrays; k++) {
		const struct ds_array *a = &c->ds->arrays[c->arrays[k]];
		bool fits = true;

		for (uint32_t d = 0; d < a->rank; d++)
			fits = fits &&
			       (!contents_zero(c, a->dims[d]) || a->dims[d] == c->record);
		if (fits)
			c->arrays[n++] = c->arrays[k];
		else if (contents_leave(
				 c, c->arrays[k],
				 "it is empty: in classic netCDF only the record "
				 "dimension, of which there is one, can have the length 0",
				 e) < 0)
			return -ENOMEM;
	}
	c->n_arrays = n;
	for (uint32_t k = 0; k < n; k++)
		if (c->m->arrays[c->arrays[k]].text_dim != DS_NONE)
			c->uses[c->m->arrays[c->arrays[k]].text_dim] |= USE_TEXT;
	return 0;
}

static void contents_add_dim(struct contents *c, uint32_t d)
{
	struct cdf_header *h = &c->f->h;
	const struct nc_dim *x = &c->m->dims[d];

	c->ids[d] = h->n_dims;
	h->dims[h->n_dims++] = (struct cdf_dim){.name = {x->name, strlen(x->name)},
						.len = d == c->record ? 0 : x->len};
}

/* contents_dims - the root group's dimensions in netCDF's order, then those of strings. */
static int contents_dims(struct contents *c, struct err *e)
{
	const struct ds_group *root = &c->ds->groups[0];
	struct cdf_header *h = &c->f->h;

	h->dims = arena_alloc(&c->m->arena, c->m->n_dims, sizeof(*h->dims));
	if (!h->dims)
		return nc_full(c->m, e);
	for (uint32_t k = 0; k < root->n_dims; k++) {
		const uint32_t d = root->dims[k];
		const char *what = "is shown with its present length: classic netCDF has one "
				   "record dimension, the first of its variables";

		if (contents_zero(c, d) && d != c->record)
			what = "is left out: in classic netCDF only the record dimension can "
			       "have the length 0";
		else
			contents_add_dim(c, d);
		if (d != c->record && (c->m->dims[d].unlimited || contents_zero(c, d)) &&
		    nc_note(c->m, 0, DS_NONE, "dimension '%s' %s", c->m->dims[d].name, what) <
			    0)
			return err_nomem(e);
	}
	for (uint32_t d = c->ds->n_dims; d < c->m->n_dims; d++)
		if (c->uses[d] & USE_TEXT)
			contents_add_dim(c, d);
	if (c->record != DS_NONE)
		h->numrecs = c->m->dims[c->record].len;
	return 0;
}

/* ---- places ---- */

/* contents_lengths - rank lengths of a place: those of v, and `last` for the characters of strings.
 * NULL when memory is short. */
static uint64_t *contents_lengths(struct contents *c, const struct ds_array *a, uint32_t rank,
				  const uint64_t *v)
{
	uint64_t *out = arena_alloc(&c->m->arena, rank, sizeof(*out));

	if (out && a->rank)
		memcpy(out, v, a->rank * sizeof(*out));
	if (out && rank > a->rank)
		out[a->rank] = a->type.size;
	return out;
}

/* contents_shape - the lengths of a variable, which are those of its dimensions. */
static int contents_shape(struct contents *c, uint32_t i, struct cdf_place *p, struct err *e)
{
	const struct ds_array *a = &c->ds->arrays[i];
	uint64_t *shape = contents_lengths(c, a, p->rank, a->shape);

	p->have = contents_lengths(c, a, p->rank, a->shape);
	p->chunk = contents_lengths(c, a, p->rank, a->chunk);
	if (!shape || !p->have || !p->chunk)
		return nc_full(c->m, e);
	for (uint32_t d = 0; d < a->rank; d++) {
		shape[d] = c->m->dims[a->dims[d]].len;
		p->grown |= shape[d] != a->shape[d];
	}
	p->shape = shape;
	return 0;
}

/* contents_pad - the fill value that netCDF-C would write for a variable. */
static void contents_pad(const struct cdf_var *v, uint8_t out[8])
{
	cdf_default_fill(v->type, out);
	for (uint32_t i = 0; i < v->n_attrs; i++)
		if (strcmp(v->attrs[i].name.s, "_FillValue") == 0 &&
		    v->attrs[i].type == v->type && v->attrs[i].n == 1)
			memcpy(out, v->attrs[i].data, cdf_type_bytes(v->type));
}

/* contents_place - a variable's place, less the offset. */
static int contents_place(struct contents *c, uint32_t i, const struct cdf_var *v,
			  struct cdf_place *p, struct err *e)
{
	const struct ds_array *a = &c->ds->arrays[i];

	*p = (struct cdf_place){.array = i,
				.rank = nc_rank(a),
				.elem = nc_elem(a),
				.size = cdf_type_bytes(v->type),
				.fill = a->fill,
				.fill_size = a->type.size};
	p->half = a->type.kind == DT_FLOAT && a->type.size == 2;
	p->swap = p->elem > 1 && a->type.kind != DT_STRING && !a->type.big_endian;
	if (!cdf_slab_bytes(&c->f->h, v, &p->bytes))
		p->bytes = 0; /* the layout fails */
	p->values = p->bytes / p->size;
	contents_pad(v, p->pad);
	return contents_shape(c, i, p, e);
}

/* contents_var - the entry of a variable in the header. */
static int contents_var(struct contents *c, uint32_t i, struct cdf_var *v, struct err *e)
{
	const struct ds_array *a = &c->ds->arrays[i];
	const struct nc_array *x = &c->m->arrays[i];
	uint32_t *dims = arena_alloc(&c->m->arena, (size_t)a->rank + 1, sizeof(*dims));

	if (!dims)
		return nc_full(c->m, e);
	for (uint32_t d = 0; d < a->rank; d++)
		dims[d] = c->ids[a->dims[d]];
	if (x->text_dim != DS_NONE)
		dims[a->rank] = c->ids[x->text_dim];
	*v = (struct cdf_var){.name = {x->name, strlen(x->name)},
			      .type = cdf_type_of(&a->type),
			      .rank = nc_rank(a),
			      .dims = dims};
	return 0;
}

static int contents_vars(struct contents *c, struct err *e)
{
	struct cdf_header *h = &c->f->h;
	int rc = 0;

	h->vars = arena_alloc(&c->m->arena, c->n_arrays, sizeof(*h->vars));
	if (!h->vars)
		return nc_full(c->m, e);
	for (; h->n_vars < c->n_arrays && rc == 0; h->n_vars++)
		rc = contents_var(c, c->arrays[h->n_vars], &h->vars[h->n_vars], e);
	return rc;
}

/* contents_places - the places of all variables, in two lists; their offsets ascend. */
static int contents_places(struct contents *c, struct err *e)
{
	struct cdf_file *f = c->f;
	int rc = 0;

	f->fixed = arena_alloc(&c->m->arena, c->n_arrays, sizeof(*f->fixed));
	f->records = arena_alloc(&c->m->arena, c->n_arrays, sizeof(*f->records));
	if (!f->fixed || !f->records)
		return nc_full(c->m, e);
	for (uint32_t k = 0; k < c->n_arrays && rc == 0; k++) {
		const struct cdf_var *v = &f->h.vars[k];
		struct cdf_place *p = cdf_is_record(&f->h, v) ? &f->records[f->n_records++]
							      : &f->fixed[f->n_fixed++];

		rc = contents_place(c, c->arrays[k], v, p, e);
		p->begin = v->begin;
	}
	return rc;
}

/* ---- the version ---- */

static int contents_attrs(struct contents *c, struct cdf_attrs_how *how, struct err *e)
{
	struct cdf_header *h = &c->f->h;
	int rc = cdf_attrs_make(c->m, DS_NONE, &c->m->groups[0].attrs, how, &h->attrs,
				&h->n_attrs, e);

	for (uint32_t k = 0; k < h->n_vars && rc == 0; k++)
		rc = cdf_attrs_make(c->m, c->arrays[k], &c->m->arrays[c->arrays[k]].attrs, how,
				    &h->vars[k].attrs, &h->vars[k].n_attrs, e);
	return rc;
}

/* contents_needs_5 - whether types require CDF-5. */
static bool contents_needs_5(const struct contents *c)
{
	bool fit = !c->wide && cdf_attrs_fit(&c->m->groups[0].attrs);

	for (uint32_t k = 0; k < c->n_arrays && fit; k++)
		fit = cdf_attrs_fit(&c->m->arrays[c->arrays[k]].attrs);
	return !fit;
}

/* contents_attrs_for - the attributes of a version, which depend on whether it is CDF-5. */
static int contents_attrs_for(struct contents *c, struct cdf_attrs_how *how, unsigned version,
			      struct err *e)
{
	if (how->version != 0 && (version == 5) == (how->version == 5))
		return 0;
	how->noted = how->version != 0;
	how->version = version;
	how->made = 0;
	return contents_attrs(c, how, e);
}

/* contents_version - the first version that can hold the data, or the requested one. Another
 * version helps neither if memory is short for attributes nor if the header is too long. */
static int contents_version(struct contents *c, struct err *e)
{
	static const unsigned all[] = {1, 2, 5};
	const bool automatic = c->format == CDF_FORMAT_AUTO, five = contents_needs_5(c);
	struct cdf_file *f = c->f;
	struct cdf_attrs_how how = {0};
	struct err why = ERR_INIT;
	int rc = -ERANGE;

	for (size_t i = 0; i < ARRAY_LEN(all) && rc == -ERANGE && buf_ok(&f->header); i++) {
		if (automatic ? five && all[i] != 5 : all[i] != (unsigned)c->format)
			continue;
		rc = contents_attrs_for(c, &how, all[i], e);
		if (rc < 0)
			return rc;
		rc = cdf_layout_make(&f->h, all[i], &f->at, &f->header, &why);
	}
	if (rc < 0)
		return err_set(e, rc, "classic netCDF file (CDF-%u): %s", f->h.version,
			       why.msg);
	if (how.made && nc_note(c->m, 0, DS_NONE,
				"%" PRIu64 " attributes of unsigned or 64-bit integers are "
				"stored as int, which CDF-%u has",
				how.made, f->h.version) < 0)
		return err_nomem(e);
	return 0;
}

static int contents_all(struct contents *c, struct err *e)
{
	int rc = contents_groups(c, e);

	rc = rc ? rc : contents_pick(c, e);
	contents_record(c);
	rc = rc ? rc : contents_empty(c, e);
	rc = rc ? rc : contents_dims(c, e);
	rc = rc ? rc : contents_vars(c, e);
	rc = rc ? rc : contents_version(c, e);
	return rc < 0 ? rc : contents_places(c, e);
}

int cdf_contents(struct cdf_file *f, struct plan *plans, const struct cdf_view_options *opts,
		 struct err *e)
{
	struct nc_model *m = f->model;
	auto_free uint32_t *ids = alloc_array(m->n_dims, sizeof(*ids));
	auto_free uint32_t *arrays = alloc_array(m->ds->n_arrays, sizeof(*arrays));
	auto_free uint8_t *uses = alloc_array(m->n_dims, sizeof(*uses));
	struct contents c = {.f = f,
			     .m = m,
			     .ds = m->ds,
			     .plans = plans,
			     .format = opts->format,
			     .keep_going = opts->keep_going,
			     .ids = ids,
			     .uses = uses,
			     .arrays = arrays,
			     .record = DS_NONE};

	if (!ids || !arrays || !uses)
		return err_nomem(e);
	return contents_all(&c, e);
}
