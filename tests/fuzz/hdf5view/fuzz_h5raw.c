/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_h5raw.c - the program's own HDF5 readers on any bytes: the superblock, object headers with
 * their layouts, and the chunk index of each dataset that is found, of every kind.
 *
 * Properties: no crash; memory stays near the limit; every error has a message; every chunk of an
 * index is in the grid, and the same by every query.
 *
 * max_len: 8192
 *
 *   make fuzz TIME=60 FUZZ=h5raw */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5view/format/hdf5_format.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/memory.h"

#define INDEX_BYTES ((uint64_t)1 << 20)
#define HEADERS_MAX 40
#define CHUNKS_MAX 3000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* bytes - a blob in memory. */
struct bytes {
	struct blob b;
	const uint8_t *p;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int read_bytes(struct blob *b, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	const struct bytes *x = (const struct bytes *)(const void *)b;

	if (off > b->size || len > b->size - off)
		return err_set(e, -EIO, "ends before");
	memcpy(out, x->p + off, len);
	return 0;
}

static void check_index(const struct h5_file *f, const struct h5_layout *l)
{
	uint64_t grid[DS_RANK_MAX], n = 1, at, found = 0;
	struct h5_index *x = NULL;
	struct err e = ERR_INIT;
	int rc;

	for (uint32_t d = 0; d < l->rank; d++) {
		require(l->chunk[d] > 0);
		grid[d] = l->dims[d] / l->chunk[d] + (l->dims[d] % l->chunk[d] != 0);
		if (grid[d] == 0 || ckd_mul(&n, n, grid[d]) || n >= (uint64_t)1 << 62)
			return; /* never queried */
	}
	rc = h5_index_load(f, l, grid, INDEX_BYTES, &x, &e);
	require(rc <= 0 && (rc == 0 || e.msg[0]));
	if (rc)
		return;
	for (at = h5_index_next(x, 0); at != UINT64_MAX && found < CHUNKS_MAX;
	     at = h5_index_next(x, at + 1), found++) {
		struct h5_chunk c = h5_index_get(x, at);

		require(at < n && c.addr != UINT64_MAX);
		if (at + 1 == n)
			at = UINT64_MAX - 1;
	}
	require(found >= CHUNKS_MAX || found == h5_index_count(x));
	require(h5_index_get(x, n - 1).addr == UINT64_MAX || h5_index_count(x) > 0);
	h5_index_free(x);
}

static void check_header(const struct h5_file *f, uint64_t at)
{
	struct h5_layout l;
	struct err e = ERR_INIT;
	int rc = h5_layout_read(f, at, &l, &e);

	require(rc <= 0 && (rc == 0 || e.msg[0]));
	if (rc)
		return;
	require(l.rank <= DS_RANK_MAX);
	if (l.cls == HDF5_LAYOUT_CHUNKED)
		check_index(f, &l);
}

/* may_be_header - one of version 2, or what looks like one of version 1. */
static bool may_be_header(const uint8_t *p, size_t n)
{
	return n >= 16 && (memcmp(p, "OHDR", 4) == 0 ||
			   (p[0] == 1 && p[1] == 0 && p[4] && p[4] < 3 && !p[5]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct blob_ops ops = {.read = read_bytes};
	struct bytes x = {.b = {.ops = &ops, .fd = -1, .size = size}, .p = data};
	struct err e = ERR_INIT;
	unsigned headers = 0;
	struct h5_file f;
	int rc;

	memory_watch();
	rc = h5_file_read(&x.b, &f, &e);
	require(rc <= 0 && (rc == 0 || e.msg[0]));
	for (size_t at = 0; rc == 0 && at < size && headers < HEADERS_MAX; at++)
		if (may_be_header(data + at, size - at)) {
			check_header(&f, at);
			headers++;
		}
	require(memory_most() <= 4 * INDEX_BYTES + 64 * size);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct dice d = dice_of(seed, size);
	struct hurt h = {.p = data, .n = size, .cap = max};
	struct sums sums;

	sums_find(data, size, &sums);
	for (uint64_t i = 1 + dice_below(&d, 4); i > 0; i--)
		damage_hdf5(&d, &h, &sums);
	sums_release(&sums);
	return h.n;
}
