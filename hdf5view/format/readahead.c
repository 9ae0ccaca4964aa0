/* SPDX-License-Identifier: BSD-3-Clause */
/* readahead.c - prefetches parts of a remote file in parallel instead of one after the other. */
#include "hdf5view/format/format_int.h"

void readahead_add(struct readahead *x, uint64_t addr, uint64_t n)
{
	if (x->f->blob->fd >= 0 || addr >= x->f->size || n == 0)
		return;
	x->parts[x->n++] = (struct blob_part){addr, u64_min(n, x->f->size - addr)};
	if (x->n == READAHEAD_PARTS)
		readahead_done(x);
}

void readahead_done(struct readahead *x)
{
	if (x->n > 0)
		blob_want(x->f->blob, x->parts, x->n);
	x->n = 0;
}

void readahead_nodes(struct readahead *x, size_t i, size_t n, uint64_t bytes,
		     uint64_t (*addr)(const void *arg, size_t i), const void *arg)
{
	size_t from = i == 0 ? 0 : i + READAHEAD_PARTS;

	if (x->f->blob->fd >= 0 || i % READAHEAD_PARTS != 0)
		return;
	for (size_t k = from; k < n && k < i + 2 * (size_t)READAHEAD_PARTS; k++)
		readahead_add(x, addr(arg, k), bytes);
	readahead_done(x);
}
