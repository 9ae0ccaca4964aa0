/* SPDX-License-Identifier: BSD-3-Clause */
/* btree_nodes.c - nodes of the B-tree over a variable's chunks, each computed when it is read.
 *
 * All nodes but the last of a level are full, so the number of a node determines the chunks below
 * it: node j of level v has the chunks from j * 64^(v+1) on. Leaves come first, then each level in
 * order; the root is the last node.
 *
 * Keys are those that the library writes: size, mask and element offsets of the first chunk of
 * each child, then the first key of the right sibling, or after the very last chunk a key of size
 * 0 that is one chunk further in every dimension.
 *
 * Spec: HDF5 File Format 3.0, III.A.1, node type 1. */
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <string.h>

#include "base/core/endian.h"

#define CHILDREN ((uint64_t)2 * NC_BTREE_K)
#define HEAD 24 /* signature, type, level, entries, siblings */
#define NO_ADDRESS UINT64_MAX

static size_t key_bytes(const struct nc_index *x)
{
	return 8 + 8 * ((size_t)x->var->rank + 1);
}

/* level_nodes - nodes of one level. */
static uint64_t level_nodes(const struct nc_index *x, uint32_t level)
{
	return (level + 1 < x->levels ? x->first[level + 1] : x->n_nodes) - x->first[level];
}

int nc_index_init(struct nc_index *x, const struct nc_chunks *c, const struct nc_var *v,
		  const struct ds_array *a, uint32_t n_filters, struct err *e)
{
	uint64_t n = nc_chunks_n(c), bytes;

	*x = (struct nc_index){.chunks = c, .var = v, .a = a};
	x->mask = a->checksum ? (uint32_t)1 << n_filters : 0;
	x->node_bytes = (uint32_t)(HEAD + (CHILDREN + 1) * key_bytes(x) + CHILDREN * 8);
	while (n > 0) {
		n = n / CHILDREN + (n % CHILDREN != 0);
		x->first[x->levels++] = x->n_nodes;
		x->n_nodes += n; /* of a sum below 2^64 / 63 */
		if (n == 1)
			break;
	}
	if (ckd_mul(&bytes, x->n_nodes, (uint64_t)x->node_bytes) || bytes > INT64_MAX)
		return err_set(e, -ERANGE, "an index of %llu nodes is too large for a file",
			       (unsigned long long)x->n_nodes);
	return 0;
}

uint64_t nc_index_root(const struct nc_index *x)
{
	return x->at + (x->n_nodes - 1) * x->node_bytes;
}

/* put_key - write the key of existing chunk i, or for i = n the one after the last. Returns the
 * offset of chunk i's data. */
static uint64_t put_key(const struct nc_index *x, uint64_t i, uint8_t *p)
{
	uint64_t coords[DS_RANK_MAX] = {0}, linear, off, size;
	bool past = i == nc_chunks_n(x->chunks);

	nc_chunks_nth(x->chunks, past ? i - 1 : i, &linear, &off, &size);
	ds_chunk_coords(x->a, linear, coords);
	put_le32(p, past ? 0 : (uint32_t)size);
	put_le32(p + 4, past ? 0 : x->mask);
	p += 8;
	for (size_t d = 0; d < x->var->rank; d++, p += 8)
		put_le64(p, (coords[d] + past) * x->var->chunk[d]);
	put_le64(p, past ? x->var->elem : 0);
	return x->data + off;
}

void nc_index_node(const struct nc_index *x, uint64_t node, uint8_t *out)
{
	uint64_t n = nc_chunks_n(x->chunks), below = 1, here, child, end, addr;
	uint32_t level = 0;
	uint8_t *p = out + HEAD;

	while (level + 1 < x->levels && node >= x->first[level + 1]) {
		level++;
		below *= CHILDREN;
	}
	here = node - x->first[level];
	child = here * CHILDREN;
	end = level > 0 ? level_nodes(x, level - 1) : n;
	end = u64_min(child + CHILDREN, end);

	memset(out, 0, x->node_bytes);
	memcpy(out, "TREE", 4);
	out[4] = 1;
	out[5] = (uint8_t)level;
	put_le16(out + 6, (uint16_t)(end - child));
	put_le64(out + 8, here > 0 ? x->at + (node - 1) * x->node_bytes : NO_ADDRESS);
	put_le64(out + 16, here + 1 < level_nodes(x, level) ? x->at + (node + 1) * x->node_bytes
							     : NO_ADDRESS);
	for (; child < end; child++) {
		addr = put_key(x, child * below, p);
		if (level > 0)
			addr = x->at + (x->first[level - 1] + child) * x->node_bytes;
		p += key_bytes(x);
		put_le64(p, addr);
		p += 8;
	}
	(void)put_key(x, u64_min(end * below, n), p);
}
