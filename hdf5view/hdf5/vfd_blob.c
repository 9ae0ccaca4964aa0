/* SPDX-License-Identifier: BSD-3-Clause */
/* vfd_blob.c - a read-only driver of libhdf5 that reads from a blob. */
#include "hdf5view/hdf5/library.h"

#include <string.h>

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

	if (fapl >= 0 && H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0) {
		(void)H5Pclose(fapl);
		fapl = H5I_INVALID_HID;
	}
	return fapl;
}
