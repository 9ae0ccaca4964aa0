/* SPDX-License-Identifier: BSD-3-Clause */
/* vfd_blob.c - a read-only driver of libhdf5 that reads from a blob. */
#include <stdlib.h>
#include <string.h>

#include "hdf5view/hdf5/library.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#define DRIVER_NUMBER 602 /* HDF5 keeps those below H5_VFD_RESERVED, 256, for itself */
#endif

#define ADDR_MAX ((haddr_t)INT64_MAX)

/* vfd_blob_file - libhdf5's open file. */
struct vfd_blob_file {
	H5FD_t pub; /* first, libhdf5's */
	struct blob *blob;
	haddr_t eoa;
};

/* vfd_blob_config - the driver's data in a property list. */
struct vfd_blob_config {
	struct blob *blob;
};

static const struct vfd_blob_file *vfd_blob_of(const H5FD_t *f)
{
	return (const struct vfd_blob_file *)(const void *)f;
}

static H5FD_t *vfd_blob_vfd_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
	const struct vfd_blob_config *c = H5Pget_driver_info(fapl);
	struct vfd_blob_file *f;

	(void)name;
	if (!c || !c->blob || maxaddr == 0 || c->blob->size > ADDR_MAX ||
	    (flags & H5F_ACC_RDWR) || (flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT | H5F_ACC_EXCL)))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->blob = c->blob;
	return &f->pub;
}

static herr_t vfd_blob_vfd_close(H5FD_t *f)
{
	free(CONTAINER_OF(f, struct vfd_blob_file, pub));
	return 0;
}

static int vfd_blob_vfd_cmp(const H5FD_t *a, const H5FD_t *b)
{
	uintptr_t x = (uintptr_t)vfd_blob_of(a)->blob, y = (uintptr_t)vfd_blob_of(b)->blob;

	return x < y ? -1 : x > y;
}

static herr_t vfd_blob_vfd_query(const H5FD_t *f, unsigned long *flags)
{
	(void)f;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
		 H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
	return 0;
}

static haddr_t vfd_blob_vfd_get_eoa(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return vfd_blob_of(f)->eoa;
}

static herr_t vfd_blob_vfd_set_eoa(H5FD_t *f, H5FD_mem_t type, haddr_t addr)
{
	(void)type;
	CONTAINER_OF(f, struct vfd_blob_file, pub)->eoa = addr;
	return 0;
}

static haddr_t vfd_blob_vfd_get_eof(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return vfd_blob_of(f)->blob->size;
}

/* vfd_blob_vfd_read - what lies behind the end of the file is zeros, as with the library's own
 * drivers. */
static herr_t vfd_blob_vfd_read(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t n,
				void *out)
{
	struct blob *b = vfd_blob_of(f)->blob;
	size_t there = addr < b->size ? (size_t)u64_min(n, b->size - addr) : 0;

	(void)type;
	(void)dxpl;
	memset((uint8_t *)out + there, 0, n - there);
	return there > 0 && blob_read(b, addr, out, there, NULL) < 0 ? -1 : 0;
}

static herr_t vfd_blob_vfd_write(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t n,
				 const void *data)
{
	(void)f;
	(void)type;
	(void)dxpl;
	(void)addr;
	(void)n;
	(void)data;
	return -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
	.version = H5FD_CLASS_VERSION,
	.value = DRIVER_NUMBER,
#endif
	.name = "nczarrfs remote",
	.maxaddr = ADDR_MAX,
	.fc_degree = H5F_CLOSE_WEAK,
	.fapl_size = sizeof(struct vfd_blob_config),
	.open = vfd_blob_vfd_open,
	.close = vfd_blob_vfd_close,
	.cmp = vfd_blob_vfd_cmp,
	.query = vfd_blob_vfd_query,
	.get_eoa = vfd_blob_vfd_get_eoa,
	.set_eoa = vfd_blob_vfd_set_eoa,
	.get_eof = vfd_blob_vfd_get_eof,
	.read = vfd_blob_vfd_read,
	.write = vfd_blob_vfd_write,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t h5_blob_fapl(struct blob *b)
{
	const struct vfd_blob_config c = {.blob = b};
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t id = H5FDregister(&driver);

	if (id < 0 || fapl < 0 || H5Pset_driver(fapl, id, &c) < 0 ||
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0) {
		if (fapl >= 0)
			(void)H5Pclose(fapl); /* useless without its driver */
		fapl = H5I_INVALID_HID;
	}
	if (id >= 0)
		(void)H5FDunregister(id); /* the list holds its own reference */
	return fapl;
}
