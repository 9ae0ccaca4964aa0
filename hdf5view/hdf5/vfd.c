/* SPDX-License-Identifier: BSD-3-Clause */
/* vfd.c - file drivers of libhdf5 with the callbacks of struct h5_vfd. */
#include "hdf5view/hdf5/library.h"

#include <stdlib.h>
#include <string.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#define ADDR_MAX ((haddr_t)INT64_MAX)

/* vfd_file - libhdf5's open file. */
struct vfd_file {
	H5FD_t pub; /* first, libhdf5's */
	struct h5_vfd v;
	haddr_t eoa;
};

static const struct vfd_file *vfd_of(const H5FD_t *f)
{
	return (const struct vfd_file *)(const void *)f;
}

static H5FD_t *vfd_open(const char *name NZ_UNUSED, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
	const struct h5_vfd *v = H5Pget_driver_info(fapl);
	struct vfd_file *f;

	if (!v || maxaddr == 0 || (flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT | H5F_ACC_EXCL)) ||
	    ((flags & H5F_ACC_RDWR) && !v->write))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->v = *v;
	if (v->size(v->arg) > ADDR_MAX || (v->open && !v->open(v->arg))) {
		free(f);
		return NULL;
	}
	return &f->pub;
}

static herr_t vfd_close(H5FD_t *f)
{
	const struct h5_vfd *v = &vfd_of(f)->v;

	if (v->close)
		v->close(v->arg);
	free(CONTAINER_OF(f, struct vfd_file, pub));
	return 0;
}

static int vfd_cmp(const H5FD_t *a, const H5FD_t *b)
{
	uintptr_t x = (uintptr_t)vfd_of(a)->v.arg, y = (uintptr_t)vfd_of(b)->v.arg;

	return x < y ? -1 : x > y;
}

static herr_t vfd_query(const H5FD_t *f NZ_UNUSED, unsigned long *flags)
{
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
		 H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
	return 0;
}

static haddr_t vfd_get_eoa(const H5FD_t *f, H5FD_mem_t type NZ_UNUSED)
{
	return vfd_of(f)->eoa;
}

static herr_t vfd_set_eoa(H5FD_t *f, H5FD_mem_t type NZ_UNUSED, haddr_t addr)
{
	CONTAINER_OF(f, struct vfd_file, pub)->eoa = addr;
	return 0;
}

static haddr_t vfd_get_eof(const H5FD_t *f, H5FD_mem_t type NZ_UNUSED)
{
	return vfd_of(f)->v.size(vfd_of(f)->v.arg);
}

static herr_t vfd_get_handle(H5FD_t *f, hid_t fapl NZ_UNUSED, void **ret)
{
	*ret = vfd_of(f)->v.fd;
	return 0;
}

static herr_t vfd_read(H5FD_t *f, H5FD_mem_t type NZ_UNUSED, hid_t dxpl NZ_UNUSED, haddr_t addr,
		       size_t n, void *out)
{
	return vfd_of(f)->v.read(vfd_of(f)->v.arg, out, n, addr) < 0 ? -1 : 0;
}

static herr_t vfd_write(H5FD_t *f, H5FD_mem_t type NZ_UNUSED, hid_t dxpl NZ_UNUSED,
			haddr_t addr, size_t n, const void *data)
{
	const struct h5_vfd *v = &vfd_of(f)->v;

	return !v->write || v->write(v->arg, data, n, addr) < 0 ? -1 : 0;
}

static herr_t vfd_truncate(H5FD_t *f, hid_t dxpl NZ_UNUSED, hbool_t closing NZ_UNUSED)
{
	vfd_of(f)->v.truncate(vfd_of(f)->v.arg, vfd_of(f)->eoa);
	return 0;
}

hid_t h5_vfd_fapl(const struct h5_vfd *v)
{
	const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
		.version = H5FD_CLASS_VERSION,
		.value = v->number,
#endif
		.name = v->name,
		.maxaddr = ADDR_MAX,
		.fc_degree = H5F_CLOSE_WEAK,
		.fapl_size = sizeof(*v),
		.open = vfd_open,
		.close = vfd_close,
		.cmp = vfd_cmp,
		.query = vfd_query,
		.get_eoa = vfd_get_eoa,
		.set_eoa = vfd_set_eoa,
		.get_eof = vfd_get_eof,
		.get_handle = v->fd ? vfd_get_handle : NULL,
		.read = vfd_read,
		.write = vfd_write,
		.truncate = v->truncate ? vfd_truncate : NULL,
		.fl_map = H5FD_FLMAP_DICHOTOMY,
	};
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t id = H5FDregister(&driver); /* which copies it */

	fapl = h5_id_unless(id < 0 || fapl < 0 || H5Pset_driver(fapl, id, v) < 0, fapl);
	if (id >= 0)
		(void)H5FDunregister(id); /* the list holds its own reference */
	return fapl;
}

/* ---- a read-only driver that reads from a blob ---- */

static uint64_t vfd_blob_size(void *arg)
{
	return ((struct blob *)arg)->size;
}

/* vfd_blob_read - bytes after the end of the file are zeros, as with the library's own drivers. */
static int vfd_blob_read(void *arg, void *out, size_t n, uint64_t addr)
{
	struct blob *b = arg;
	size_t there = addr < b->size ? (size_t)u64_min(n, b->size - addr) : 0;

	memset((uint8_t *)out + there, 0, n - there);
	return there > 0 ? blob_read(b, addr, out, there, NULL) : 0;
}

hid_t h5_blob_fapl(struct blob *b)
{
	const struct h5_vfd v = {
		.name = "nczarrfs remote",
		.number = 602,
		.arg = b,
		.size = vfd_blob_size,
		.read = vfd_blob_read,
	};
	hid_t fapl = b ? h5_vfd_fapl(&v) : H5I_INVALID_HID;

	return h5_id_unless(fapl >= 0 && H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0, fapl);
}
