/* SPDX-License-Identifier: BSD-3-Clause */
/* h5plugin.c - one of our codecs as a plugin of HDF5; compiled once for each.
 *
 * PLUGIN_OPS is the codec. Third-party programs load the library: it has no other entries than
 * HDF5's two (and netCDF-C's one in ncz.c), keeps no state but working memory, prints nothing, and
 * is linked with neither libhdf5 nor libnetcdf. Filters themselves need only malloc. `set_local`,
 * which depends on the dataset, calls the libhdf5 that called it; if that cannot be found, the
 * parameters stay as the user gave them.
 *
 * Spec: https://docs.hdfgroup.org/hdf5/rfc/HDF5DynamicallyLoadedFilters.pdf; H5Zset_local in the
 * reference manual, H5Z_class2_t. */
#include "codecs/core/codec_impl.h"
#include "codecs/export/h5z.h"
#include "codecs/export/plugins/caller_int.h"

#include <H5PLextern.h>
#include <errno.h>

/* hid_t has 64 bits since 1.10; the layout for older libraries differs. */
#define HDF5_MAJOR 1
#define HDF5_MINOR 10
#define FILL_MAX 16

static const struct codec_ops *const ops = &PLUGIN_OPS;

/* ---- the caller's libhdf5 ---- */

#define FUNCTIONS(F)                                                                           \
	F(H5get_libversion)                                                                    \
	F(H5Pget_filter_by_id2)                                                                \
	F(H5Pmodify_filter)                                                                    \
	F(H5Pget_chunk)                                                                        \
	F(H5Pfill_value_defined)                                                               \
	F(H5Pget_fill_value)                                                                   \
	F(H5Tget_class)                                                                        \
	F(H5Tget_size)                                                                         \
	F(H5Tget_order)                                                                        \
	F(H5Tget_sign)                                                                         \
	F(H5Tget_super)                                                                        \
	F(H5Tclose)

struct hdf5 {
#define MEMBER(name) __typeof__(name) *name##_f;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

static bool find_hdf5(const struct caller *c, struct hdf5 *ret)
{
	unsigned major = 0, minor = 0, release = 0;

#define FIND(name)                                                                             \
	if (!caller_find(c, #name, &ret->name##_f))                                            \
		return false;
	FUNCTIONS(FIND)
#undef FIND
	return ret->H5get_libversion_f(&major, &minor, &release) >= 0 &&
	       (major > HDF5_MAJOR || (major == HDF5_MAJOR && minor >= HDF5_MINOR));
}

/* ---- the dataset to be created ---- */

struct h5plugin_dataset {
	struct codec_array array;
	uint64_t chunk[H5S_MAX_RANK];
	uint8_t fill[FILL_MAX];
	unsigned flags; /* of the filter */
	struct codec_spec spec;
	uint32_t params[CODEC_PARAMS_MAX];
};

/* read_elem - class, size and order of an element; for an array type those of its base type. */
static bool read_elem(const struct hdf5 *h, hid_t type, struct codec_array *ret)
{
	H5T_class_t class = h->H5Tget_class_f(type);
	size_t size = h->H5Tget_size_f(type);
	hid_t super;
	bool good;

	if (class == H5T_ARRAY) {
		super = h->H5Tget_super_f(type);
		good = super >= 0 && read_elem(h, super, ret);
		if (super >= 0)
			(void)h->H5Tclose_f(super);
		return good;
	}
	if (class < 0 || size == 0 || size > UINT32_MAX)
		return false;
	ret->elem_size = (uint32_t)size;
	ret->class = class == H5T_FLOAT                    ? CODEC_FLOAT
		     : class != H5T_INTEGER                ? CODEC_OTHER
		     : h->H5Tget_sign_f(type) == H5T_SGN_2 ? CODEC_INT
							   : CODEC_UINT;
	ret->big_endian = ret->class != CODEC_OTHER && h->H5Tget_order_f(type) == H5T_ORDER_BE;
	return true;
}

/* h5plugin_read_chunk - the chunk's elements; those of array types are in the last dimension. */
static bool h5plugin_read_chunk(const struct hdf5 *h, hid_t dcpl, hid_t type,
				struct h5plugin_dataset *d)
{
	hsize_t dims[H5S_MAX_RANK];
	int rank = h->H5Pget_chunk_f(dcpl, H5S_MAX_RANK, dims);
	size_t elems = h->H5Tget_size_f(type) / d->array.elem_size;

	if (rank < 1 || rank > H5S_MAX_RANK)
		return false;
	for (int i = 0; i < rank; i++)
		d->chunk[i] = dims[i];
	if (ckd_mul(&d->chunk[rank - 1], d->chunk[rank - 1], (uint64_t)elems))
		return false;
	d->array.rank = (uint32_t)rank;
	d->array.chunk = d->chunk;
	return true;
}

static void h5plugin_read_fill(const struct hdf5 *h, hid_t dcpl, hid_t type,
			       struct h5plugin_dataset *d)
{
	H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;

	if (d->array.class != CODEC_OTHER && h->H5Tget_class_f(type) != H5T_ARRAY &&
	    d->array.elem_size <= FILL_MAX && h->H5Pfill_value_defined_f(dcpl, &state) >= 0 &&
	    state == H5D_FILL_VALUE_USER_DEFINED &&
	    h->H5Pget_fill_value_f(dcpl, type, d->fill) >= 0)
		d->array.fill = d->fill;
}

static bool read_filter(const struct hdf5 *h, hid_t dcpl, struct h5plugin_dataset *d)
{
	size_t n = CODEC_PARAMS_MAX;

	if (h->H5Pget_filter_by_id2_f(dcpl, (H5Z_filter_t)ops->h5_id, &d->flags, &n, d->params,
				      0, NULL, NULL) < 0)
		return false;
	d->spec = (struct codec_spec){
		.h5_id = ops->h5_id,
		.n_params = (uint32_t)u64_min(n, CODEC_PARAMS_MAX),
		.params = d->params,
		.name = ops->name,
	};
	return true;
}

/* h5plugin_prepare - set the parameters for a dataset. Returns the codec's result, or -ENOENT if
 * the dataset cannot be queried. */
static int h5plugin_prepare(const void *from, hid_t dcpl, hid_t type, bool store)
{
	struct h5plugin_dataset d = {0};
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	struct hdf5 h = {0};
	struct caller c;
	int rc = -ENOENT;

	if (!caller_open(from, &c))
		return rc;
	if (find_hdf5(&c, &h) && read_filter(&h, dcpl, &d) && read_elem(&h, type, &d.array) &&
	    h5plugin_read_chunk(&h, dcpl, type, &d)) {
		h5plugin_read_fill(&h, dcpl, type, &d);
		rc = ops->prepare(&d.spec, &d.array, params, &n, NULL);
		if (rc == 0 && store &&
		    h.H5Pmodify_filter_f(dcpl, (H5Z_filter_t)ops->h5_id, d.flags, n, params) <
			    0)
			rc = -EIO;
	}
	caller_close(&c);
	return rc;
}

/* The return address is taken here, in the functions that the library calls. */

static htri_t can_apply(hid_t dcpl, hid_t type, hid_t space NZ_UNUSED)
{
	return h5plugin_prepare(__builtin_return_address(0), dcpl, type, false) != -EOPNOTSUPP;
}

/* set_local - -EOPNOTSUPP is no failure: after a failed can_apply, HDF5 calls this only for
 * optional filters, and then stores chunks without them. */
static herr_t set_local(hid_t dcpl, hid_t type, hid_t space NZ_UNUSED)
{
	int rc = h5plugin_prepare(__builtin_return_address(0), dcpl, type, true);

	return rc == 0 || rc == -ENOENT || rc == -EOPNOTSUPP ? 0 : -1;
}

/* ---- what HDF5 asks for ---- */

static size_t filter(unsigned flags, size_t n_params, const unsigned params[], size_t n,
		     size_t *size, void **buf)
{
	return codec_h5z(ops, CODEC_H5Z_MAX, flags, n_params, params, n, size, buf);
}

static H5Z_class2_t class;

static __attribute__((constructor)) void fill_class(void)
{
	class = (H5Z_class2_t){
		.version = H5Z_CLASS_T_VERS,
		.id = (H5Z_filter_t)ops->h5_id,
		.encoder_present = ops->encode != NULL,
		.decoder_present = ops->decode != NULL,
		.name = ops->name,
		.can_apply = ops->prepare ? can_apply : NULL,
		.set_local = ops->prepare ? set_local : NULL,
		.filter = filter,
	};
}

H5PL_type_t H5PLget_plugin_type(void)
{
	return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return &class;
}
