/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_load.h - an HDF5 file, a transaction on it that touches most kinds of metadata, and a
 * fingerprint of everything that libhdf5 finds in a file. */
#ifndef TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_LOAD_H
#define TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_LOAD_H

#include <hdf5.h>

#include <stdio.h>
#include <string.h>

#include "codecs/core/codec.h"
#include "hdf5view/journal/journal_int.h"

/* libhdf5 loses memory when it fails to open a file. */
const char *__lsan_default_suppressions(void);
__attribute__((used, visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libhdf5";
}

#define LOAD_GROUPS 8

struct load_kind {
	const char *name;
	bool latest; /* superblock 3 and new indexes */
	hsize_t user_block;
};

static const struct load_kind load_kinds[] = {
	{.name = "earliest"},
	{.name = "latest", .latest = true},
	{.name = "user block", .user_block = 512},
};

/* Every step of a load: nonzero when libhdf5 failed, so that the caller ends. */
#define LOAD(x)                                                                                \
	do {                                                                                   \
		if ((x) < 0)                                                                   \
			return -1;                                                             \
	} while (0)

static inline int load_attr(hid_t at, const char *name, int value)
{
	hsize_t n = 20;
	int v[20];
	hid_t space = H5Screate_simple(1, &n, NULL);
	hid_t a = H5Aexists(at, name) > 0 ? H5Aopen(at, name, H5P_DEFAULT)
					  : H5Acreate2(at, name, H5T_NATIVE_INT, space,
						       H5P_DEFAULT, H5P_DEFAULT);

	for (int i = 0; i < 20; i++)
		v[i] = value + i;
	LOAD(a);
	LOAD(H5Awrite(a, H5T_NATIVE_INT, v));
	LOAD(H5Aclose(a));
	return H5Sclose(space);
}

static inline int load_dataset(hid_t at, const char *name, hsize_t n, int seed)
{
	hsize_t max = H5S_UNLIMITED, chunk = 64;
	hid_t space = H5Screate_simple(1, &n, &max);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), ds;
	int v[2048];

	LOAD(H5Pset_chunk(dcpl, 1, &chunk));
	LOAD(H5Pset_obj_track_times(dcpl, false));
	ds = H5Dcreate2(at, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	LOAD(ds);
	for (hsize_t i = 0; i < n && i < 2048; i++)
		v[i] = seed * 1000 + (int)i;
	LOAD(H5Dwrite(ds, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v));
	LOAD(load_attr(ds, "units", seed));
	LOAD(H5Pclose(dcpl));
	LOAD(H5Sclose(space));
	return H5Dclose(ds);
}

static inline int load_text(hid_t at, const char *name, const char *text)
{
	hsize_t n = 3;
	const char *v[3] = {text, "a second text", ""};
	hid_t space = H5Screate_simple(1, &n, NULL), type = H5Tcopy(H5T_C_S1), ds;

	LOAD(H5Tset_size(type, H5T_VARIABLE));
	ds = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	LOAD(ds);
	LOAD(H5Dwrite(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v));
	LOAD(H5Dclose(ds));
	LOAD(H5Tclose(type));
	return H5Sclose(space);
}

static inline int load_make(const char *path, const struct load_kind *kind)
{
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = H5Pcreate(H5P_FILE_ACCESS), f;

	LOAD(H5Pset_userblock(fcpl, kind->user_block));
	if (kind->latest)
		LOAD(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
	f = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
	LOAD(f);
	for (int i = 0; i < LOAD_GROUPS; i++) {
		char name[32];
		hid_t g;

		(void)snprintf(name, sizeof(name), "old%d", i);
		g = H5Gcreate2(f, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		LOAD(g);
		LOAD(load_attr(g, "title", i));
		LOAD(load_dataset(g, "data", 300, i));
		LOAD(load_dataset(g, "gone", 1500, i + 50));
		LOAD(H5Gclose(g));
	}
	LOAD(load_text(f, "text", "the first text"));
	LOAD(H5Pclose(fcpl));
	LOAD(H5Pclose(fapl));
	return H5Fclose(f);
}

/* One old group: appended to, overwritten, cut, an attribute more and one less. */
static inline int load_change_old(hid_t f, int i)
{
	char name[32];
	hsize_t n = 700, start = 10, count = 400;
	int v[400];
	hid_t ds, all, mem;

	(void)snprintf(name, sizeof(name), "old%d/data", i);
	ds = H5Dopen2(f, name, H5P_DEFAULT);
	LOAD(ds);
	LOAD(H5Dset_extent(ds, &n));
	all = H5Dget_space(ds);
	mem = H5Screate_simple(1, &count, NULL);
	LOAD(H5Sselect_hyperslab(all, H5S_SELECT_SET, &start, NULL, &count, NULL));
	for (int k = 0; k < 400; k++)
		v[k] = -k - i;
	LOAD(H5Dwrite(ds, H5T_NATIVE_INT, mem, all, H5P_DEFAULT, v));
	LOAD(load_attr(ds, "more", i));
	LOAD(H5Adelete(ds, "units"));
	LOAD(H5Sclose(all));
	LOAD(H5Sclose(mem));
	LOAD(H5Dclose(ds));
	(void)snprintf(name, sizeof(name), "old%d/gone", i);
	LOAD(i % 2 ? H5Ldelete(f, name, H5P_DEFAULT) : 0);
	(void)snprintf(name, sizeof(name), "old%d", i);
	ds = H5Gopen2(f, name, H5P_DEFAULT);
	LOAD(ds);
	LOAD(load_attr(ds, "title", 90 + i));
	return H5Gclose(ds);
}

static inline int load_change(hid_t f)
{
	for (int i = 0; i < LOAD_GROUPS; i++) {
		char name[32];
		hid_t g;

		LOAD(load_change_old(f, i));
		(void)snprintf(name, sizeof(name), "new%d", i);
		g = H5Gcreate2(f, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		LOAD(g);
		LOAD(load_dataset(g, "data", 500, i + 20));
		LOAD(load_attr(g, "title", 7 * i));
		LOAD(H5Gclose(g));
		if (i == 3)
			LOAD(H5Fflush(f, H5F_SCOPE_GLOBAL));
	}
	return load_text(f, "another text", "which is new");
}

/* load_run - the whole transaction. Returns what the journal returned; -EIO libhdf5 failed. */
static inline int load_run(const char *path, int dir_fd, bool *ret_committed, struct err *e)
{
	struct h5_journal *j = NULL;
	hid_t fapl, f;
	int rc = h5_journal_open(path, dir_fd, &j, e);

	*ret_committed = false;
	if (rc < 0)
		return rc;
	fapl = h5_journal_fapl(j);
	f = H5Fopen(path, H5F_ACC_RDWR, fapl);
	rc = f < 0 ? -EIO : load_change(f);
	if (f >= 0 && H5Fclose(f) < 0)
		rc = -EIO;
	(void)H5Pclose(fapl);
	if (h5_journal_failure(j, e) < 0)
		rc = h5_journal_failure(j, e);
	else if (rc < 0)
		rc = err_set(e, -EIO, "libhdf5 failed, and the journal knows nothing of it");
	rc = rc ? rc : h5_journal_commit(j, NULL, NULL, e);
	*ret_committed = h5_journal_committed(j);
	h5_journal_close(j);
	return rc;
}

/* ---- contents of a file ---- */

struct print {
	uint32_t sum;
	unsigned objects;
	bool bad;
};

static inline void print_add(struct print *p, const void *data, size_t n)
{
	p->sum = codec_crc32c_sum(p->sum, data, n);
}

static inline herr_t print_attr(hid_t at, const char *name, const H5A_info_t *info, void *arg)
{
	struct print *p = arg;
	int v[20] = {0};
	hid_t a = H5Aopen(at, name, H5P_DEFAULT);

	(void)info;
	print_add(p, name, strlen(name));
	if (a < 0 || H5Aread(a, H5T_NATIVE_INT, v) < 0)
		p->bad = true;
	print_add(p, v, sizeof(v));
	(void)H5Aclose(a);
	return 0;
}

static inline void print_dataset(hid_t ds, struct print *p)
{
	hid_t type = H5Dget_type(ds), space = H5Dget_space(ds);
	bool text = H5Tget_class(type) == H5T_STRING;
	hssize_t n = H5Sget_simple_extent_npoints(space);
	static int v[65536];
	char *texts[3] = {0};

	if (n < 0 || n > 65536 || (text && n != 3)) {
		p->bad = true;
	} else if (text) {
		if (H5Dread(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) < 0)
			p->bad = true;
		for (int i = 0; i < 3 && texts[i]; i++)
			print_add(p, texts[i], strlen(texts[i]) + 1);
		(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts);
	} else {
		if (H5Dread(ds, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0)
			p->bad = true;
		print_add(p, v, (size_t)n * sizeof(int));
	}
	(void)H5Sclose(space);
	(void)H5Tclose(type);
}

static inline herr_t print_object(hid_t at, const char *name, const H5O_info_t *info, void *arg)
{
	struct print *p = arg;
	hid_t o = H5Oopen(at, name, H5P_DEFAULT);

	p->objects++;
	print_add(p, name, strlen(name));
	if (o < 0) {
		p->bad = true;
		return 0;
	}
	if (H5Aiterate2(o, H5_INDEX_NAME, H5_ITER_INC, NULL, print_attr, p) < 0)
		p->bad = true;
	if (info->type == H5O_TYPE_DATASET)
		print_dataset(o, p);
	(void)H5Oclose(o);
	return 0;
}

/* load_print - 0: libhdf5 cannot read all of it. */
static inline uint32_t load_print(const char *path)
{
	struct print p = {.sum = 0};
	hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);

	if (f < 0)
		return 0;
	if (H5Ovisit(f, H5_INDEX_NAME, H5_ITER_INC, print_object, &p) < 0)
		p.bad = true;
	if (H5Fclose(f) < 0)
		p.bad = true;
	return p.bad || p.objects == 0 ? 0 : p.sum | 1;
}

#endif
