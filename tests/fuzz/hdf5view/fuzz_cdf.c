/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_cdf.c - a classic netCDF file of any bytes: its header, its model, its chunks.
 *
 * Properties: no crash; memory stays near the limit; every error has a message; names are valid
 * file names and unique; lengths, grids and sizes agree; a range lies in the file and makes a
 * whole chunk with its padding; a chunk can be read, or there is a message.
 *
 *   make fuzz TIME=60 FUZZ=cdf */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hdf5view/hdf5view.h"
#include "tests/fuzz/memory.h"

#define META_BYTES ((uint64_t)1 << 20)
#define CHUNK_BYTES ((uint64_t)1 << 16)
#define CHUNKS 40 /* of each array, that are looked at */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_name(const char *name)
{
	require(*name && strlen(name) <= DS_NAME_MAX && !strchr(name, '/') &&
		strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

static void check_attrs(const struct ds_attr *attrs, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		require(ds_attr_find(attrs, n, attrs[i].name) == &attrs[i]);
		for (uint64_t k = 0; attrs[i].strings && k < attrs[i].n; k++)
			for (size_t b = 0; b < attrs[i].strings[k].len; b++)
				sum += (uint8_t)attrs[i].strings[k].s[b];
		for (uint64_t k = 0; attrs[i].data && k < attrs[i].n * attrs[i].type.size; k++)
			sum += attrs[i].data[k];
	}
	require(sum < UINT64_MAX); /* they were read */
}

static void check_chunk(struct source *s, uint32_t array, uint64_t linear, uint64_t size)
{
	static uint8_t out[CHUNK_BYTES];
	const struct ds_array *a = &s->ds.arrays[array];
	struct chunk_ref ref;
	struct err e = ERR_INIT;
	int rc = source_locate(s, array, linear, &ref, &e);

	require(rc <= 0 && (rc == 0 || e.msg[0]));
	if (rc == 0 && ref.where == CHUNK_RANGE)
		require(ref.off <= size && ref.len <= size - ref.off &&
			ref.len + ref.pad == a->chunk_bytes);
	e = (struct err)ERR_INIT;
	require(a->chunk_bytes <= sizeof(out));
	rc = source_read_chunk(s, array, linear, out, (size_t)a->chunk_bytes, &e);
	require(rc <= 0 && (rc == 0 || e.msg[0]));
	require(ref.where != CHUNK_RANGE || rc == 0 || e.msg[0]);
}

static void check_array(struct source *s, uint32_t array, uint64_t size)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t n = 1, bytes = a->type.size, next;
	struct err e = ERR_INIT;

	check_name(a->name);
	check_attrs(a->attrs, a->n_attrs);
	(void)ds_fill_declared(a);
	for (uint32_t d = 0; d < a->rank; d++) {
		require(a->dims[d] < s->ds.n_dims && a->shape[d] == s->ds.dims[a->dims[d]].len);
		require(a->chunk[d] > 0);
		n *= a->grid[d];
		bytes *= a->chunk[d];
	}
	require(n == a->n_chunks && bytes == a->chunk_bytes && bytes <= CHUNK_BYTES);
	for (uint64_t i = 0; i < n && i < CHUNKS; i++) {
		check_chunk(s, array, i, size);
		check_chunk(s, array, n - 1 - i, size);
	}
	if (n > 0)
		require(source_next(s, array, n - 1, &next, &e) == 0 && next == n - 1);
}

static void check_source(struct source *s, uint64_t size)
{
	struct err e = ERR_INIT;

	for (uint32_t i = 0; i < s->ds.n_dims; i++)
		check_name(s->ds.dims[i].name);
	check_attrs(s->ds.groups[0].attrs, s->ds.groups[0].n_attrs);
	for (uint32_t i = 0; i < s->ds.n_arrays && i < 200; i++) {
		check_array(s, i, size);
		for (uint32_t k = 0; k < i; k++)
			require(strcmp(s->ds.arrays[i].name, s->ds.arrays[k].name) != 0);
	}
	require(source_check(s, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct source_ops *const formats[] = {&cdf_source_ops};
	const struct source_options opts = {.cut_bytes = 4096,
					    .max_chunk_bytes = CHUNK_BYTES,
					    .max_index_bytes = META_BYTES,
					    .max_meta_bytes = META_BYTES};
	/* data behind the header, or none */
	uint64_t more = size > 0 && data[size - 1] & 1 ? 1 << 16 : 0;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct source *s = NULL;
	struct err e = ERR_INIT;
	char path[40];

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size &&
		ftruncate(fd, (off_t)(size + more)) == 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memory_watch();
	if (source_open(formats, 1, path, &opts, &s, &e) == 0) {
		check_source(s, size + more);
		source_close(s);
	} else {
		require(e.msg[0] != '\0');
	}
	require(memory_most() <= 4 * META_BYTES);
	require(close(fd) == 0);
	return 0;
}
