/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_verify.c - the model of a file as written by a child under an attacker's control: a model
 * that passes isolated_verify has to be safe for all later code.
 *
 * A small HDF5 file is opened once. Input: changes of the model's memory, 11 bytes each: the place
 * (3, little-endian), a width and a kind (1 + 1), a value (6). Properties: every rejection has a
 * message; a model that passes is walked through the views like any other (look.h).
 *
 *   make fuzz TIME=60 FUZZ=verify */
#include <fcntl.h>
#include <hdf5.h>
#include <sys/mman.h>

#include "base/observe/log.h"
#include "base/core/cursor.h"
#include "hdf5view/hdf5/library.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct h5_source *first;
static uint8_t *copy; /* of the region as the child wrote it */
static size_t used;

static void put_set(hid_t file, const char *name, bool packed)
{
	const hsize_t dims[2] = {6, 4}, chunk[2] = {2, 4};
	hid_t space = H5Screate_simple(2, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	hid_t set, attr, text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
	float v[24];

	for (int i = 0; i < 24; i++)
		v[i] = (float)i;
	look_require(H5Pset_chunk(plist, 2, chunk) >= 0 && H5Tset_size(text, 6) >= 0);
	look_require(!packed || (H5Pset_shuffle(plist) >= 0 && H5Pset_deflate(plist, 4) >= 0));
	set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	look_require(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	attr = H5Acreate2(set, "units", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
	look_require(H5Awrite(attr, text, "kelvin") >= 0 && H5Aclose(attr) >= 0);
	attr = H5Acreate2(set, "number", H5T_STD_I16LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
	look_require(H5Awrite(attr, H5T_NATIVE_FLOAT, v) >= 0 && H5Aclose(attr) >= 0);
	look_require(H5Dclose(set) >= 0 && H5Tclose(text) >= 0 && H5Sclose(scalar) >= 0 &&
		     H5Sclose(space) >= 0 && H5Pclose(plist) >= 0);
}

static void start(void)
{
	static const struct source_ops *const formats[] = {&hdf5_source_ops};
	struct source_options opts = look_options();
	struct err e = ERR_INIT;
	struct source *s;
	char path[64];
	hid_t file;

	opts.max_meta_bytes = 1 << 18;
	(void)snprintf(path, sizeof(path), "/dev/shm/nczarrfs-fuzz-%d.h5", (int)getpid());
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	put_set(file, "v", true);
	put_set(file, "w", false);
	look_require(H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >=
		     0);
	look_require(H5Fclose(file) >= 0);
	look_require(source_open(formats, 1, path, &opts, &s, &e) == 0 && unlink(path) == 0);
	first = h5_of(s);
	used = ((struct isolated_model *)first->g.region)->used;
	copy = malloc(first->g.region_size);
	look_require(copy != NULL);
	memcpy(copy, first->g.region, first->g.region_size);
	/* at the same address, or every pointer would lead out of it */
	look_require(mmap(first->g.region, first->g.region_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == first->g.region);
}

/* change - as the input says. Pointers are changed by small distances: others are found at once. */
static void change(struct slice in)
{
	uint8_t *at = first->g.region;

	while (in.len >= 11) {
		size_t place = (size_t)rd_uint(&in, 3) % used;
		uint8_t width = rd_u8(&in), kind = rd_u8(&in);
		uint64_t v = rd_uint(&in, 6), was = 0;
		size_t n = (size_t)1 << width % 4;

		if (kind % 4)
			place -= place % n;
		if (n > used - place)
			continue;
		memcpy(&was, at + place, n);
		if (kind % 4 == 1)
			v = was + v % 64 - 32;
		else if (kind % 4 == 2)
			v = v % 16;
		else if (kind % 4 == 3) /* another field's value, a pointer for instance */
			memcpy(&v, copy + v % (used - 8) / 8 * 8, sizeof(v));
		memcpy(at + place, &v, n);
	}
}

/* seen - the model through the views, as a source of its own. */
static void seen(unsigned how)
{
	struct isolated_model *m = first->g.region;
	struct isolated *g = h5_library_kind.make();
	struct look sum = {0};
	struct err e = ERR_INIT;
	struct stat st = first->g.base.ds.st;
	int fd = fcntl(first->g.fd, F_DUPFD_CLOEXEC, 3);

	look_require(g != NULL && fd >= 0 && first->g.path);
	g->kind = &h5_library_kind;
	g->path = strdup(first->g.path);
	g->fd = fd;
	g->local = blob_of_fd(fd, (uint64_t)st.st_size);
	g->blob = &g->local;
	g->opts = first->g.opts;
	g->opts.read_timeout_ms = 1000;
	g->region_fd = -1;
	isolated_worker_init(&g->worker, 1000);
	g->base.ds = m->ds;
	g->base.ds.st = st;
	look_require(h5_library_kind.use(g, m->own, &e) == 0);
	h5_of(&g->base)->raw = first->raw;
	h5_of(&g->base)->raw.blob = g->blob;
	if (how % 8)
		look_tree(&g->base, how / 8, false, &sum);
	else
		look_nc(&g->base, how / 8, false, &sum);
	isolated_worker_release(&g->worker);
	free(g->path);
	h5_library_kind.release(g);
	(void)close(fd); /* it was only read from */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;

	if (!first) {
		log_init(LOG_ERROR, false);
		start();
	}
	if (size < 1)
		return 0;
	memcpy(first->g.region, copy, first->g.region_size);
	change(slice_of(data + 1, size - 1));
	if (isolated_verify(&h5_library_kind, first->g.region, first->g.region_size, UINT64_MAX,
			    &e) < 0)
		look_require(e.msg[0] != '\0');
	else
		seen(data[0]);
	return 0;
}
