/* SPDX-License-Identifier: BSD-3-Clause */
/* model_attrs.c - attributes, including the hidden ones in which netCDF and the dimension scale
 * interface keep their bookkeeping.
 *
 * One pass over an object's attributes, each opened and read once. An unreadable attribute is left
 * out with a note; only limits and memory end the opening. */
#include "hdf5view/hdf5/library.h"

#include "base/core/utf8.h"

#include <errno.h>
#include <string.h>

struct attrs_pass {
	struct h5_build *b;
	struct netcdf_hints *facts;
	struct ds_attr *v;
	size_t n, cap;
	size_t name_at; /* position of NAME, shown unless the object is a scale */
	bool recoded;   /* some string was not UTF-8 */
	int rc; /* a failure that ends the opening */
	struct err *e;
};

/* value - an attribute as the library returns it. */
struct value {
	hid_t space, file, mem;
	struct h5_type t;
	uint64_t n;  /* elements, array types' dimensions included */
	size_t elem; /* bytes of one of them in memory */
	uint8_t *bytes;
};

static void value_release(struct value *v)
{
	if (v->bytes && v->mem > 0 && v->space > 0 && dt_is_vlen(&v->t.type))
		(void)H5Dvlen_reclaim(v->mem, v->space, H5P_DEFAULT, v->bytes);
	free(v->bytes);
	h5_id_close(&v->mem);
	h5_id_close(&v->file);
	h5_id_close(&v->space);
}

/* attrs_shape - store the dimensions of the dataspace and of the type in the
 * attribute. */
static int attrs_shape(struct attrs_pass *p, struct value *v, struct ds_attr *a, struct err *e)
{
	H5S_class_t cls = H5Sget_simple_extent_type(v->space);
	hsize_t d[H5S_MAX_RANK] = {0};
	uint64_t *dims;
	int rank;

	if (cls == H5S_NULL) {
		a->rank = 1;
		a->dims = arena_alloc(p->b->arena, 1, sizeof(uint64_t));
		return a->dims ? 0 : h5_full(p->b, e);
	}
	rank = H5Sget_simple_extent_dims(v->space, d, NULL);
	if (cls == H5S_NO_CLASS || rank < 0)
		return h5_error(e, -EBADMSG, "its dataspace cannot be read");
	a->rank = (uint32_t)rank + v->t.n_dims;
	if (a->rank > DS_RANK_MAX)
		return err_set(e, -EOPNOTSUPP, "it has too many dimensions");
	dims = arena_alloc(p->b->arena, a->rank, sizeof(*dims));
	if (!dims)
		return h5_full(p->b, e);
	v->n = 1;
	for (uint32_t i = 0; i < a->rank; i++) {
		dims[i] = i < (uint32_t)rank ? d[i] : v->t.dims[i - (uint32_t)rank];
		if (ckd_mul(&v->n, v->n, dims[i]))
			return err_set(e, -EOPNOTSUPP, "it is too large");
	}
	a->dims = dims;
	a->n = v->n;
	return 0;
}

static int attrs_load(struct attrs_pass *p, hid_t attr, struct value *v, struct err *e)
{
	uint64_t bytes;

	v->mem = h5_type_mem(v->file, true);
	if (v->mem < 0)
		return h5_error(e, -EOPNOTSUPP, "its type cannot be read");
	v->elem = v->t.type.kind == DT_VSTRING ? sizeof(char *)
		  : v->t.type.kind == DT_VLEN  ? sizeof(hvl_t)
					       : v->t.type.size;
	if (ckd_mul(&bytes, v->n, (uint64_t)v->elem) || bytes > p->b->arena->max)
		return err_set(e, -EOPNOTSUPP, "it has %llu elements, which is too large",
			       (unsigned long long)v->n);
	v->bytes = alloc_array((size_t)v->n, v->elem);
	if (!v->bytes)
		return err_nomem(e);
	if (v->n && H5Aread(attr, v->mem, v->bytes) < 0) {
		free(v->bytes);
		v->bytes = NULL;
		return h5_error(e, -EBADMSG, "it cannot be read");
	}
	return 0;
}

static int attrs_put_text(struct attrs_pass *p, const char *s, size_t len, struct ds_text *ret,
			  struct err *e)
{
	while (len && s[len - 1] == '\0')
		len--;
	ret->s = utf8_copy(p->b->arena, s, len, &ret->len, &p->recoded);
	return ret->s ? 0 : h5_full(p->b, e);
}

static int attrs_one_text(struct attrs_pass *p, const struct value *v, uint64_t i,
			  struct ds_text *ret, struct err *e)
{
	const uint8_t *at = v->bytes + (size_t)i * v->elem;
	char *s;
	hvl_t seq;

	if (v->t.type.kind == DT_STRING)
		return attrs_put_text(p, (const char *)at, v->elem, ret, e);
	if (v->t.type.kind == DT_VSTRING) {
		memcpy(&s, at, sizeof(s));
		return s ? attrs_put_text(p, s, strlen(s), ret, e)
			 : attrs_put_text(p, "", 0, ret, e);
	}
	memcpy(&seq, at, sizeof(seq));
	if (ckd_mul(&ret->len, seq.len, (size_t)v->t.type.base->size))
		return err_set(e, -EOPNOTSUPP, "it is too large");
	ret->s = arena_copy(p->b->arena, seq.p, ret->len);
	return ret->s ? 0 : h5_full(p->b, e);
}

/* attrs_keep - copy the value to the arena. */
static int attrs_keep(struct attrs_pass *p, const struct value *v, struct ds_attr *a,
		      struct err *e)
{
	struct ds_text *strings;

	if (v->t.type.kind != DT_STRING && !dt_is_vlen(&v->t.type)) {
		a->data = arena_copy(p->b->arena, v->bytes, (size_t)v->n * v->elem);
		return a->data ? 0 : h5_full(p->b, e);
	}
	strings = arena_alloc(p->b->arena, (size_t)v->n, sizeof(*strings));
	if (!strings)
		return h5_full(p->b, e);
	for (uint64_t i = 0; i < v->n; i++) {
		int rc = attrs_one_text(p, v, i, &strings[i], e);

		if (rc < 0)
			return rc;
	}
	a->strings = strings;
	return 0;
}

static int attrs_add(struct attrs_pass *p, hid_t attr, const char *name, struct err *e)
{
	struct ds_attr a = {.name = name};
	struct value v = {0};
	bool mapped = false;
	int rc;

	a.name = h5_name(p->b, name, &mapped);
	if (!a.name)
		return h5_full(p->b, e);
	p->recoded |= mapped;
	v.file = H5Aget_type(attr);
	v.space = H5Aget_space(attr);
	if (v.file < 0 || v.space < 0)
		rc = h5_error(e, -EBADMSG, "its type or dataspace cannot be read");
	else
		rc = h5_type_map(p->b->arena, v.file, true, &v.t, e);
	rc = rc ? rc : attrs_shape(p, &v, &a, e);
	rc = rc ? rc : attrs_load(p, attr, &v, e);
	rc = rc ? rc : attrs_keep(p, &v, &a, e);
	a.type = v.t.type;
	a.type.big_endian = false;
	value_release(&v);
	if (rc < 0)
		return rc;
	if (grow_array(&p->v, &p->cap, p->n + 1, sizeof(*p->v)) < 0)
		return err_nomem(e);
	p->v[p->n++] = a;
	return 0;
}

/* read_ints - read an integer attribute of at most max elements; *ret is in the arena. */
static int read_ints(struct attrs_pass *p, hid_t attr, size_t max, const int32_t **ret,
		     uint32_t *ret_n)
{
	auto_hid hid_t space = H5Aget_space(attr);
	auto_hid hid_t type = H5Aget_type(attr);
	hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	int32_t *v;

	if (n < 1 || (uint64_t)n > max || type < 0 || H5Tget_class(type) != H5T_INTEGER)
		return 0;
	v = arena_alloc(p->b->arena, (size_t)n, sizeof(*v));
	if (!v)
		return -ERANGE;
	if (H5Aread(attr, H5T_NATIVE_INT32, v) < 0)
		return 0;
	*ret = v;
	*ret_n = (uint32_t)n;
	return 0;
}

/* read_refs - DIMENSION_LIST: for each dimension a list of object references; the last counts,
 * as in netCDF-C.
 * A reference's value is the address of an object header. */
static int read_refs(struct attrs_pass *p, hid_t attr)
{
	auto_hid hid_t space = H5Aget_space(attr);
	auto_hid hid_t type = H5Aget_type(attr);
	auto_hid hid_t super = -1;
	hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	hvl_t lists[H5S_MAX_RANK] = {{0}};
	uint64_t *refs;

	if (n < 1 || n > H5S_MAX_RANK || type < 0 || H5Tget_class(type) != H5T_VLEN)
		return 0;
	super = H5Tget_super(type);
	if (super < 0 || H5Tequal(super, H5T_STD_REF_OBJ) <= 0)
		return 0;
	refs = arena_alloc(p->b->arena, (size_t)n, sizeof(*refs));
	if (!refs)
		return -ERANGE;
	if (H5Aread(attr, type, lists) < 0)
		return 0;
	for (size_t i = 0; i < (size_t)n; i++) {
		hobj_ref_t r = HADDR_UNDEF;

		if (lists[i].len)
			memcpy(&r, (const char *)lists[i].p + (lists[i].len - 1) * sizeof(r),
			       sizeof(r));
		refs[i] = r;
	}
	(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists);
	p->facts->refs = refs;
	p->facts->n_refs = (uint32_t)n;
	return 0;
}

static int read_bookkeeping(struct attrs_pass *p, hid_t attr, const char *name, bool *ret_done)
{
	static const char *const silent[] = {"REFERENCE_LIST", "_ARRAY_DIMENSIONS",
					     "_nc3_strict", "_NCProperties"};
	const int32_t *one = NULL;
	uint32_t n = 0;
	int rc;

	*ret_done = true;
	if (strcmp(name, "DIMENSION_LIST") == 0)
		return read_refs(p, attr);
	if (strcmp(name, "_Netcdf4Coordinates") == 0) {
		p->b->netcdf = true;
		return read_ints(p, attr, H5S_MAX_RANK, &p->facts->coords, &p->facts->n_coords);
	}
	if (strcmp(name, "_Netcdf4Dimid") == 0) {
		p->b->netcdf = true;
		rc = read_ints(p, attr, 1, &one, &n);
		p->facts->has_dimid = n == 1 && one[0] >= 0;
		p->facts->dimid = p->facts->has_dimid ? one[0] : 0;
		return rc;
	}
	*ret_done = strncasecmp(name, "_nczarr_", 8) == 0;
	for (size_t i = 0; i < ARRAY_LEN(silent); i++)
		if (strcmp(name, silent[i]) == 0) {
			p->b->netcdf |= i >= 2;
			*ret_done = true;
		}
	return 0;
}

/* scale_sign - CLASS and NAME are plain attributes unless CLASS is "DIMENSION_SCALE". */
static void scale_sign(struct attrs_pass *p, const char *name, size_t before)
{
	const struct ds_text *t;

	if (p->n == before)
		return;
	t = p->v[before].n == 1 ? p->v[before].strings : NULL;
	if (strcmp(name, "CLASS") == 0 && t && t->len == 15 &&
	    memcmp(t->s, "DIMENSION_SCALE", 15) == 0) {
		p->facts->is_scale = true;
		p->n = before;
	} else if (strcmp(name, "NAME") == 0) {
		p->name_at = before;
		p->facts->dim_only =
			t && t->len >= sizeof(NETCDF_DIM_ONLY) - 1 &&
			memcmp(t->s, NETCDF_DIM_ONLY, sizeof(NETCDF_DIM_ONLY) - 1) == 0;
	}
}

static herr_t attrs_visit(hid_t obj, const char *name, const H5A_info_t *info NZ_UNUSED,
			  void *arg)
{
	struct attrs_pass *p = arg;
	auto_hid hid_t attr = H5Aopen(obj, name, H5P_DEFAULT);
	struct err why = ERR_INIT;
	size_t before = p->n;
	bool done = false;
	int rc;

	resource_errors_note();
	if (attr < 0) {
		rc = h5_error(&why, -EBADMSG, "it cannot be opened");
	} else {
		rc = read_bookkeeping(p, attr, name, &done);
		if (rc < 0)
			rc = h5_full(p->b, &why);
		else if (!done)
			rc = attrs_add(p, attr, name, &why);
	}
	if (h5_fatal(rc))
		p->rc = err_set(p->e, rc, "attribute '%s': %s", name, why.msg);
	else if (rc < 0)
		p->rc = h5_note(p->b, p->e, "attribute '%s' is left out: %s", name, why.msg);
	else
		scale_sign(p, name, before);
	return p->rc < 0 ? -1 : 0;
}

static int attrs_by_name(const void *pa, const void *pb)
{
	const struct ds_attr *const *a = pa, *const *b = pb;
	int c = strcmp((*a)->name, (*b)->name);

	return c ? c : *a < *b ? -1 : *a > *b;
}

/* attrs_drop_equal - of attributes of one name, which a damaged file has, and one whose
 * names are read as Latin-1, the first stays. */
static int attrs_drop_equal(struct attrs_pass *p)
{
	auto_free const struct ds_attr **v = alloc_array(p->n + 1, sizeof(*v));
	auto_free bool *gone = alloc_array(p->n + 1, sizeof(*gone));
	size_t n = 0;
	int rc = 0;

	if (!v || !gone)
		return err_nomem(p->e);
	for (size_t i = 0; i < p->n; i++)
		v[i] = &p->v[i];
	qsort(v, p->n, sizeof(*v), attrs_by_name);
	for (size_t i = 1; i < p->n && rc == 0; i++) {
		if (strcmp(v[i]->name, v[i - 1]->name) != 0)
			continue;
		rc = h5_note(p->b, p->e, "a second attribute '%s' is left out", v[i]->name);
		gone[v[i] - p->v] = true;
	}
	for (size_t i = 0; i < p->n; i++)
		if (!gone[i])
			p->v[n++] = p->v[i];
	p->n = n;
	return rc;
}

int h5_attrs_read(struct h5_build *b, hid_t obj, bool ordered, uint32_t *ret_n,
		  const struct ds_attr **ret, struct netcdf_hints *facts, struct err *e)
{
	struct attrs_pass p = {.b = b, .facts = facts, .name_at = SIZE_MAX, .e = e};
	herr_t rc = H5Aiterate2(obj, ordered ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC,
				NULL, attrs_visit, &p);

	resource_errors_note();
	if (p.rc == 0 && rc < 0) {
		char why[200];

		h5_reason(why, sizeof(why));
		p.rc = h5_note(b, e, "attributes are left out: %s", why);
	}
	if (p.rc == 0 && facts->is_scale && p.name_at < p.n) {
		memmove(&p.v[p.name_at], &p.v[p.name_at + 1],
			(p.n - p.name_at - 1) * sizeof(*p.v));
		p.n--;
	}
	if (p.rc == 0)
		p.rc = attrs_drop_equal(&p);
	facts->dim_only = facts->dim_only && facts->is_scale;
	b->netcdf |= facts->dim_only;
	if (p.rc == 0 && p.recoded)
		p.rc = h5_note(b, e, "strings that are not UTF-8 are read as Latin-1");
	if (p.rc == 0) {
		*ret = arena_copy(b->arena, p.v, p.n * sizeof(*p.v));
		*ret_n = (uint32_t)p.n;
		if (!*ret)
			p.rc = h5_full(b, e);
	}
	free(p.v);
	return p.rc;
}
