/* SPDX-License-Identifier: BSD-3-Clause */
/* datatypes.c - HDF5 types in the model's terms.
 *
 * Two functions walk a type in the same way: h5_type_map decides the presentation, and whether the
 * file's bytes have it already; h5_type_mem makes the library's type for the same presentation.
 * They must agree on every case, so both start from classify(). */
#include "hdf5view/hdf5/library.h"

#include "base/core/utf8.h"

#include <errno.h>
#include <string.h>

#define TYPE_DEPTH_MAX 16
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* atom - one number, as presented. */
struct atom {
	enum dt_kind kind;
	uint32_t size;
	bool big;
	bool bits;     /* the library's bit fields convert to bit fields only */
	bool standard; /* the file's bytes are the same number, byte order aside */
	bool swap;     /* presented in another byte order than stored */
	bool rounded;
};

static int unsupported(struct err *e, const char *what)
{
	return err_set(e, -EOPNOTSUPP, "%s", what);
}

static int classify_int(hid_t t, struct atom *a, struct err *e)
{
	size_t size = H5Tget_size(t), prec = H5Tget_precision(t);
	int off = H5Tget_offset(t);

	if (!size || !prec || off < 0)
		return h5_error(e, -EBADMSG, "its integer type cannot be read");
	if (prec > 64)
		return unsupported(e, "integers of more than 64 bits are not supported");
	a->kind = DT_UINT;
	if (!a->bits && H5Tget_sign(t) == H5T_SGN_2)
		a->kind = DT_INT;
	/* as in h5py and netCDF: the size in the file, if it is a machine's */
	if (size == 1 || size == 2 || size == 4 || size == 8)
		a->size = (uint32_t)size;
	else
		a->size = prec <= 8 ? 1 : prec <= 16 ? 2 : prec <= 32 ? 4 : 8;
	a->standard = size == a->size && prec == 8 * size && off == 0;
	return 0;
}

static int classify_float(hid_t t, struct atom *a, struct err *e)
{
	static const struct {
		size_t size, expo, mant, bias;
	} ieee[] = {{2, 5, 10, 15}, {4, 8, 23, 127}, {8, 11, 52, 1023}};
	size_t size = H5Tget_size(t), sp, ep, es, mp, ms;

	if (!size || H5Tget_fields(t, &sp, &ep, &es, &mp, &ms) < 0)
		return h5_error(e, -EBADMSG, "its floating-point type cannot be read");
	a->kind = DT_FLOAT;
	for (size_t i = 0; i < ARRAY_LEN(ieee); i++) {
		if (size != ieee[i].size || es != ieee[i].expo || ms != ieee[i].mant ||
		    mp != 0 || ep != ms || sp != ms + es || H5Tget_offset(t) != 0 ||
		    H5Tget_precision(t) != 8 * size || H5Tget_ebias(t) != ieee[i].bias ||
		    H5Tget_norm(t) != H5T_NORM_IMPLIED)
			continue;
		a->size = (uint32_t)size;
		a->standard = true;
		return 0;
	}
	a->size = es <= 8 && ms <= 23 ? 4 : 8;
	a->rounded = es > 11 || ms > 52;
	return 0;
}

/* classify - the number that an integer, bit field, float or enumeration is presented as. */
static int classify(hid_t t, H5T_class_t cls, bool host, struct atom *a, struct err *e)
{
	H5T_order_t order;
	int rc;

	*a = (struct atom){.bits = cls == H5T_BITFIELD};
	if (cls == H5T_ENUM) {
		auto_hid hid_t super = H5Tget_super(t);

		if (super < 0 || H5Tget_class(super) != H5T_INTEGER)
			return unsupported(
				e,
				"enumerations of types other than integers are not supported");
		return classify(super, H5T_INTEGER, host, a, e);
	}
	rc = cls == H5T_FLOAT ? classify_float(t, a, e) : classify_int(t, a, e);
	if (rc < 0)
		return rc;
	order = H5Tget_order(t);
	if (order != H5T_ORDER_LE && order != H5T_ORDER_BE && order != H5T_ORDER_NONE)
		a->standard = false;
	a->big = a->standard && a->size > 1 && order == H5T_ORDER_BE;
	if (host && a->size > 1) {
		a->swap = a->big != HOST_BIG;
		a->big = HOST_BIG;
	}
	return 0;
}

/* is_bool - h5py's truth values: an enumeration of one byte, FALSE = 0, TRUE = 1. */
static bool is_bool(hid_t t, const struct atom *a)
{
	unsigned seen = 0;

	if (a->size != 1 || !a->standard || H5Tget_nmembers(t) != 2)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		char *name = H5Tget_member_name(t, i);
		uint8_t v = 2;

		if (!name || H5Tget_member_value(t, i, &v) < 0)
			v = 2;
		if (name && v < 2 && strcmp(name, v ? "TRUE" : "FALSE") == 0)
			seen |= 1u << v;
		(void)H5free_memory(name);
	}
	return seen == 3;
}

static bool member_is(hid_t t, unsigned i, const char *a, const char *b, const char *c)
{
	char *name = H5Tget_member_name(t, i);
	bool yes =
		name && (strcmp(name, a) == 0 || strcmp(name, b) == 0 || strcmp(name, c) == 0);

	(void)H5free_memory(name);
	return yes;
}

/* is_complex - a compound of a real and an imaginary part of the same floating-point type. */
static bool is_complex(hid_t t, bool host, struct atom *a)
{
	struct atom im;
	auto_hid hid_t r = -1;
	auto_hid hid_t i = -1;

	if (H5Tget_nmembers(t) != 2 || !member_is(t, 0, "r", "re", "real") ||
	    !member_is(t, 1, "i", "im", "imag"))
		return false;
	r = H5Tget_member_type(t, 0);
	i = H5Tget_member_type(t, 1);
	if (r < 0 || i < 0 || H5Tget_class(r) != H5T_FLOAT || H5Tget_class(i) != H5T_FLOAT ||
	    classify(r, H5T_FLOAT, host, a, NULL) < 0 ||
	    classify(i, H5T_FLOAT, host, &im, NULL) < 0)
		return false;
	if (a->size < 4 || im.size != a->size || im.big != a->big)
		return false;
	a->standard = a->standard && im.standard && H5Tget_size(t) == 2 * (size_t)a->size &&
		      H5Tget_member_offset(t, 0) == 0 && H5Tget_member_offset(t, 1) == a->size;
	a->rounded = a->rounded || im.rounded;
	return true;
}

/* strip_array - append the dimensions of array types to ret; gives the innermost type, new. */
static hid_t strip_array(hid_t t, uint32_t *n, uint64_t *dims, struct err *e)
{
	hid_t cur = H5Tcopy(t);

	while (cur >= 0 && H5Tget_class(cur) == H5T_ARRAY) {
		hsize_t d[H5S_MAX_RANK];
		int rank = H5Tget_array_ndims(cur);
		hid_t base;

		if (rank < 1 || *n + (uint32_t)rank > DS_RANK_MAX ||
		    H5Tget_array_dims2(cur, d) < 0) {
			(void)err_set(e, -EOPNOTSUPP, "its array type has too many dimensions");
			(void)H5Tclose(cur);
			return -1;
		}
		for (int i = 0; i < rank; i++)
			dims[(*n)++] = d[i];
		base = H5Tget_super(cur);
		(void)H5Tclose(cur);
		cur = base;
	}
	if (cur < 0)
		(void)h5_error(e, -EBADMSG, "its type cannot be read");
	return cur;
}

static int datatypes_map(struct arena *a, hid_t t, bool host, unsigned depth,
			 struct h5_type *ret, struct err *e);

/* map_member - field i; *ret_bytes: of all its values as presented. */
static int map_member(struct arena *a, hid_t t, unsigned i, bool host, unsigned depth,
		      struct dt_field *f, bool *stored, bool *rounded, uint32_t *ret_bytes,
		      struct err *e)
{
	struct h5_type sub = {0};
	char *name = H5Tget_member_name(t, i);
	auto_hid hid_t mt = H5Tget_member_type(t, i);
	uint32_t bytes;
	bool text_ok = name && name[0] && utf8_ok(name, strlen(name));
	int rc;

	f->name = text_ok ? arena_strdup(a, name) : NULL;
	(void)H5free_memory(name);
	if (!text_ok)
		return unsupported(e, "a compound member's name is not UTF-8");
	if (!f->name)
		return arena_full(a, e, "types");
	if (mt < 0)
		return h5_error(e, -EBADMSG, "a compound member's type cannot be read");
	rc = datatypes_map(a, mt, host, depth + 1, &sub, e);
	if (rc < 0)
		return rc;
	if (dt_is_vlen(&sub.type))
		return unsupported(e, "compounds with members of variable length are not "
				      "supported");
	if (sub.type.kind == DT_BOOL)
		sub.type.kind = DT_INT;
	f->type = sub.type;
	f->rank = sub.n_dims;
	f->dims = arena_copy(a, sub.dims, sub.n_dims * sizeof(sub.dims[0]));
	if (!f->dims)
		return arena_full(a, e, "types");
	bytes = sub.type.size;
	for (uint32_t d = 0; d < sub.n_dims; d++)
		if (sub.dims[d] > UINT32_MAX || ckd_mul(&bytes, bytes, (uint32_t)sub.dims[d]))
			return unsupported(e, "a compound of more than 4 GiB is not supported");
	*stored = *stored && sub.stored && H5Tget_member_offset(t, i) == f->offset;
	*rounded = *rounded || sub.rounded;
	*ret_bytes = bytes;
	return 0;
}

static int map_compound(struct arena *a, hid_t t, bool host, unsigned depth,
			struct h5_type *ret, struct err *e)
{
	int n = H5Tget_nmembers(t);
	struct dt_field *fields;
	struct atom at;
	uint32_t off = 0;

	if (is_complex(t, host, &at)) {
		ret->type = (struct dtype){
			.kind = DT_COMPLEX, .size = 2 * at.size, .big_endian = at.big};
		ret->stored = at.standard && !at.swap;
		ret->rounded = at.rounded;
		return 0;
	}
	if (n < 1)
		return unsupported(e, "a compound without members is not supported");
	fields = arena_alloc(a, (size_t)n, sizeof(*fields));
	if (!fields)
		return arena_full(a, e, "types");
	ret->stored = true;
	for (unsigned i = 0; i < (unsigned)n; i++) {
		uint32_t bytes = 0;
		int rc;

		fields[i].offset = off;
		rc = map_member(a, t, i, host, depth, &fields[i], &ret->stored, &ret->rounded,
				&bytes, e);
		if (rc < 0)
			return rc;
		if (ckd_add(&off, off, bytes))
			return unsupported(e, "a compound of more than 4 GiB is not supported");
	}
	ret->stored = ret->stored && H5Tget_size(t) == off;
	ret->type = (struct dtype){
		.kind = DT_COMPOUND, .size = off, .n_fields = (uint32_t)n, .fields = fields};
	return 0;
}

static int map_vlen(struct arena *a, hid_t t, bool host, unsigned depth, struct h5_type *ret,
		    struct err *e)
{
	auto_hid hid_t super = H5Tget_super(t);
	struct h5_type sub = {0};
	struct dtype *base;
	int rc;

	if (super < 0)
		return h5_error(e, -EBADMSG, "its type cannot be read");
	rc = datatypes_map(a, super, host, depth + 1, &sub, e);
	if (rc < 0)
		return rc;
	if (sub.n_dims || (sub.type.kind != DT_INT && sub.type.kind != DT_UINT &&
			   sub.type.kind != DT_FLOAT && sub.type.kind != DT_BOOL))
		return unsupported(e, "sequences of variable length are supported for numbers "
				      "only");
	base = arena_copy(a, &sub.type, sizeof(sub.type));
	if (!base)
		return arena_full(a, e, "types");
	ret->type = (struct dtype){.kind = DT_VLEN, .base = base};
	ret->rounded = sub.rounded;
	return 0;
}

/* map_fixed - fixed-size strings and opaque bytes. A string that ends with its first NUL may have
 * any bytes after it, and blanks may be padding, so only NUL-padded strings are presented
 * unchanged. Attributes keep their bytes: netCDF's may hold NULs. */
static int map_fixed(hid_t t, enum dt_kind kind, struct h5_type *ret, struct err *e)
{
	size_t size = H5Tget_size(t);

	if (!size || size > UINT32_MAX)
		return unsupported(e, "elements of more than 4 GiB are not supported");
	ret->type = (struct dtype){.kind = kind, .size = (uint32_t)size};
	ret->stored = kind == DT_OPAQUE || size == 1 || H5Tget_strpad(t) == H5T_STR_NULLPAD;
	return 0;
}

static int map_number(hid_t t, H5T_class_t cls, bool host, struct h5_type *ret, struct err *e)
{
	struct atom at;
	int rc = classify(t, cls, host, &at, e);

	if (rc < 0)
		return rc;
	if (cls == H5T_ENUM && is_bool(t, &at))
		at.kind = DT_BOOL;
	ret->type = (struct dtype){.kind = at.kind, .size = at.size, .big_endian = at.big};
	ret->stored = at.standard && !at.swap;
	ret->rounded = at.rounded;
	return 0;
}

/* datatypes_map - *ret is zeroed; dimensions of array types are appended to ret->dims. */
static int datatypes_map(struct arena *a, hid_t t, bool host, unsigned depth,
			 struct h5_type *ret, struct err *e)
{
	auto_hid hid_t base = -1;
	H5T_class_t cls;
	htri_t var;

	if (depth > TYPE_DEPTH_MAX)
		return unsupported(e, "its type is nested too deeply");
	base = strip_array(t, &ret->n_dims, ret->dims, e);
	if (base < 0)
		return e && e->code ? e->code : -EBADMSG;
	cls = H5Tget_class(base);
	switch (cls) {
	case H5T_INTEGER:
	case H5T_FLOAT:
	case H5T_BITFIELD:
	case H5T_ENUM:
		return map_number(base, cls, host, ret, e);
	case H5T_STRING:
		var = H5Tis_variable_str(base);
		if (var < 0)
			return h5_error(e, -EBADMSG, "its string type cannot be read");
		if (!var)
			return map_fixed(base, DT_STRING, ret, e);
		ret->type = (struct dtype){.kind = DT_VSTRING};
		return 0;
	case H5T_OPAQUE:
		return map_fixed(base, DT_OPAQUE, ret, e);
	case H5T_COMPOUND:
		return map_compound(a, base, host, depth, ret, e);
	case H5T_VLEN:
		return map_vlen(a, base, host, depth, ret, e);
	case H5T_REFERENCE:
		return unsupported(e, "references are not supported");
	case H5T_TIME:
		return unsupported(e, "HDF5's time types are not supported");
	default:
		return unsupported(e, "its type is not supported");
	}
}

int h5_type_map(struct arena *a, hid_t t, bool host, struct h5_type *ret, struct err *e)
{
	struct err local = ERR_INIT;

	*ret = (struct h5_type){.stored = false};
	return datatypes_map(a, t, host, 0, ret, e ? e : &local);
}

hid_t h5_number(enum dt_kind kind, uint32_t size, bool big, bool bits)
{
	const hid_t all[4][7] = {
		{H5T_STD_I8LE, H5T_STD_I8BE, H5T_STD_U8LE, H5T_STD_U8BE, H5T_STD_B8LE,
		 H5T_STD_B8BE, -1},
		{H5T_STD_I16LE, H5T_STD_I16BE, H5T_STD_U16LE, H5T_STD_U16BE, H5T_STD_B16LE,
		 H5T_STD_B16BE, -1},
		{H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_U32LE, H5T_STD_U32BE, H5T_STD_B32LE,
		 H5T_STD_B32BE, big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE},
		{H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U64LE, H5T_STD_U64BE, H5T_STD_B64LE,
		 H5T_STD_B64BE, big ? H5T_IEEE_F64BE : H5T_IEEE_F64LE},
	};
	const unsigned k = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4;
	hid_t t;

	if (kind == DT_FLOAT && size == 2) { /* the library has no predefined type for these */
		t = H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
		return h5_id_unless(t < 0 || H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 ||
					    H5Tset_size(t, 2) < 0 || H5Tset_ebias(t, 15) < 0,
				    t);
	}
	t = k > 3              ? -1
	    : kind == DT_FLOAT ? all[k][6]
			       : all[k][(bits              ? 4
					 : kind == DT_UINT ? 2
							   : 0) +
					big];
	return t < 0 ? -1 : H5Tcopy(t);
}

static hid_t mem(hid_t t, bool host, unsigned depth);

/* datatypes_pack - a compound of the n given member types without gaps. */
static hid_t datatypes_pack(hid_t t, const hid_t *m, unsigned n)
{
	size_t size = 0, off = 0;
	hid_t ret;

	for (unsigned i = 0; i < n; i++)
		if (m[i] < 0 || ckd_add(&size, size, H5Tget_size(m[i])))
			return -1;
	ret = size ? H5Tcreate(H5T_COMPOUND, size) : -1;
	for (unsigned i = 0; ret >= 0 && i < n; i++) {
		char *name = H5Tget_member_name(t, i);
		herr_t rc = name ? H5Tinsert(ret, name, off, m[i]) : -1;

		(void)H5free_memory(name);
		off += H5Tget_size(m[i]);
		ret = h5_id_unless(rc < 0, ret);
	}
	return ret;
}

static hid_t compound_mem(hid_t t, bool host, unsigned depth)
{
	int n = H5Tget_nmembers(t);
	hid_t *m = n > 0 ? alloc_array((size_t)n, sizeof(*m)) : NULL;
	hid_t ret;

	if (!m)
		return -1;
	for (unsigned i = 0; i < (unsigned)n; i++) {
		auto_hid hid_t file = H5Tget_member_type(t, i);

		m[i] = file < 0 ? -1 : mem(file, host, depth + 1);
	}
	ret = datatypes_pack(t, m, (unsigned)n);
	for (unsigned i = 0; i < (unsigned)n; i++)
		h5_id_close(&m[i]);
	free(m);
	return ret;
}

static hid_t super_mem(hid_t t, H5T_class_t cls, bool host, unsigned depth)
{
	auto_hid hid_t super = H5Tget_super(t);
	auto_hid hid_t m = super < 0 ? -1 : mem(super, host, depth + 1);
	hsize_t dims[H5S_MAX_RANK];
	int rank;

	if (m < 0)
		return -1;
	if (cls == H5T_VLEN)
		return H5Tvlen_create(m);
	rank = H5Tget_array_ndims(t);
	if (rank < 1 || H5Tget_array_dims2(t, dims) < 0)
		return -1;
	return H5Tarray_create2(m, (unsigned)rank, dims);
}

static hid_t text_mem(hid_t t, bool host)
{
	hid_t copy = H5Tcopy(t);

	return h5_id_unless(copy >= 0 && !host && H5Tis_variable_str(t) == 0 &&
				    H5Tget_size(t) > 1 &&
				    H5Tset_strpad(copy, H5T_STR_NULLPAD) < 0,
			    copy);
}

static hid_t mem(hid_t t, bool host, unsigned depth)
{
	H5T_class_t cls = H5Tget_class(t);
	struct atom a;

	if (depth > 2 * TYPE_DEPTH_MAX)
		return -1;
	switch (cls) {
	case H5T_INTEGER:
	case H5T_FLOAT:
	case H5T_BITFIELD:
	case H5T_ENUM:
		if (classify(t, cls, host, &a, NULL) < 0)
			return -1;
		return h5_number(a.kind, a.size, a.big, a.bits);
	case H5T_COMPOUND:
		return compound_mem(t, host, depth);
	case H5T_VLEN:
	case H5T_ARRAY:
		return super_mem(t, cls, host, depth);
	case H5T_STRING:
		return text_mem(t, host);
	default:
		return H5Tcopy(t);
	}
}

hid_t h5_type_mem(hid_t t, bool host)
{
	return mem(t, host, 0);
}

/* flag_value - member i in host order, of `size` bytes as presented. */
static int flag_value(hid_t t, hid_t super, hid_t host, unsigned i, uint8_t *out, size_t size)
{
	_Alignas(8) uint8_t v[64] = {0};

	if (H5Tget_size(super) > sizeof(v) || H5Tget_member_value(t, i, v) < 0 ||
	    H5Tconvert(super, host, 1, v, NULL, H5P_DEFAULT) < 0)
		return -1;
	memcpy(out, v, size);
	return 0;
}

static void flag_name(hid_t t, unsigned i, struct buf *names)
{
	char *name = H5Tget_member_name(t, i);
	size_t from = names->len;

	if (from)
		buf_putc(names, ' ');
	from = names->len;
	if (name)
		(void)utf8_put_text(names, name, strlen(name));
	for (size_t k = from; buf_ok(names) && k < names->len; k++)
		if (names->data[k] <= ' ')
			names->data[k] = '_';
	(void)H5free_memory(name);
}

int h5_type_flags(struct arena *a, hid_t t, const struct dtype *base, uint64_t *ret_n,
		  uint8_t **ret_values, struct ds_text *ret_names, struct err *e)
{
	auto_hid hid_t super = -1;
	auto_hid hid_t host = -1;
	struct buf names;
	uint8_t *values;
	int n, rc = 0;

	*ret_n = 0;
	if (H5Tget_class(t) != H5T_ENUM || base->kind == DT_BOOL)
		return 0;
	n = H5Tget_nmembers(t);
	super = H5Tget_super(t);
	host = super < 0 ? -1 : h5_type_mem(super, true);
	if (n < 1 || host < 0)
		return 0;
	values = arena_alloc(a, (size_t)n, base->size);
	if (!values)
		return arena_full(a, e, "types");
	buf_init(&names, (size_t)16 << 20);
	for (unsigned i = 0; i < (unsigned)n && rc == 0; i++) {
		rc = flag_value(t, super, host, i, values + (size_t)i * base->size, base->size);
		flag_name(t, i, &names);
	}
	if (rc < 0)
		rc = h5_error(e, -EBADMSG, "its enumeration cannot be read");
	else if (!buf_ok(&names) || !(ret_names->s = arena_copy(a, names.data, names.len)))
		rc = arena_full(a, e, "types");
	if (rc == 0) {
		ret_names->len = names.len;
		*ret_values = values;
		*ret_n = (uint64_t)n;
	}
	buf_release(&names);
	return rc;
}
