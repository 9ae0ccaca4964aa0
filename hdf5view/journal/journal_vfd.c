/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_vfd.c - the journal as a driver of libhdf5.
 *
 * The file that libhdf5 opens is only a window: all state belongs to the transaction, which
 * outlives it, because libhdf5 writes until the very end of H5Fclose, and a flush is not a commit
 * (H5Dflush and H5Gflush flush the driver, too, while the file is not consistent). */
#include "hdf5view/journal/journal_int.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#define DRIVER_NUMBER 601 /* HDF5 keeps those below H5_VFD_RESERVED, 256, for itself */
#endif

#define ADDR_MAX ((haddr_t)INT64_MAX)

/* window - libhdf5's open file. */
struct window {
	H5FD_t pub; /* first, libhdf5's */
	struct h5_journal *j;
};

/* journal_vfd_config - the driver's data in a property list. */
struct journal_vfd_config {
	struct h5_journal *j;
};

static struct h5_journal *journal_vfd_of(const H5FD_t *f)
{
	return ((const struct window *)(const void *)f)->j;
}

static H5FD_t *journal_vfd_vfd_open(const char *name, unsigned flags, hid_t fapl,
				    haddr_t maxaddr)
{
	const struct journal_vfd_config *c = H5Pget_driver_info(fapl);
	struct window *w;

	(void)name;
	if (!c || !c->j || c->j->open > 0 || c->j->phase >= JOURNAL_COMMITTED || maxaddr == 0 ||
	    (flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT | H5F_ACC_EXCL)))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->j = c->j;
	w->j->open++;
	w->j->eoa = 0;
	return &w->pub;
}

static herr_t journal_vfd_vfd_close(H5FD_t *f)
{
	struct window *w = CONTAINER_OF(f, struct window, pub);

	w->j->open--;
	free(w);
	return 0;
}

static int journal_vfd_vfd_cmp(const H5FD_t *a, const H5FD_t *b)
{
	uintptr_t x = (uintptr_t)journal_vfd_of(a), y = (uintptr_t)journal_vfd_of(b);

	return x < y ? -1 : x > y;
}

static herr_t journal_vfd_vfd_query(const H5FD_t *f, unsigned long *flags)
{
	(void)f;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
		 H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
	return 0;
}

static haddr_t journal_vfd_vfd_get_eoa(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return journal_vfd_of(f)->eoa;
}

static herr_t journal_vfd_vfd_set_eoa(H5FD_t *f, H5FD_mem_t type, haddr_t addr)
{
	(void)type;
	journal_vfd_of(f)->eoa = addr;
	return 0;
}

static haddr_t journal_vfd_vfd_get_eof(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return journal_vfd_of(f)->eof;
}

static herr_t vfd_get_handle(H5FD_t *f, hid_t fapl, void **ret)
{
	(void)fapl;
	*ret = &journal_vfd_of(f)->fd;
	return 0;
}

static herr_t journal_vfd_vfd_read(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr,
				   size_t n, void *out)
{
	(void)type;
	(void)dxpl;
	return journal_read(journal_vfd_of(f), out, n, addr) < 0 ? -1 : 0;
}

static herr_t journal_vfd_vfd_write(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr,
				    size_t n, const void *data)
{
	(void)type;
	(void)dxpl;
	return journal_write(journal_vfd_of(f), data, n, addr) < 0 ? -1 : 0;
}

static herr_t vfd_truncate(H5FD_t *f, hid_t dxpl, hbool_t closing)
{
	struct h5_journal *j = journal_vfd_of(f);

	(void)dxpl;
	(void)closing;
	j->eof = j->eoa;
	j->shorter = j->eof != j->head.end;
	return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
	.version = H5FD_CLASS_VERSION,
	.value = DRIVER_NUMBER,
#endif
	.name = "nczarrfs journal",
	.maxaddr = ADDR_MAX,
	.fc_degree = H5F_CLOSE_WEAK,
	.fapl_size = sizeof(struct journal_vfd_config),
	.open = journal_vfd_vfd_open,
	.close = journal_vfd_vfd_close,
	.cmp = journal_vfd_vfd_cmp,
	.query = journal_vfd_vfd_query,
	.get_eoa = journal_vfd_vfd_get_eoa,
	.set_eoa = journal_vfd_vfd_set_eoa,
	.get_eof = journal_vfd_vfd_get_eof,
	.get_handle = vfd_get_handle,
	.read = journal_vfd_vfd_read,
	.write = journal_vfd_vfd_write,
	.truncate = vfd_truncate,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t h5_journal_fapl(struct h5_journal *j)
{
	const struct journal_vfd_config c = {.j = j};
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t id = H5FDregister(&driver);

	if (id < 0 || fapl < 0 || H5Pset_driver(fapl, id, &c) < 0) {
		if (fapl >= 0)
			(void)H5Pclose(fapl); /* useless without its driver */
		fapl = H5I_INVALID_HID;
	}
	if (id >= 0)
		(void)H5FDunregister(id); /* the list holds its own reference */
	return fapl;
}
