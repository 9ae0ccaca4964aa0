/* SPDX-License-Identifier: BSD-3-Clause */
/* index_btree_v2.c - chunk index of type B-tree version 2, for two or more unlimited dimensions.
 *
 * Records are in inner nodes too, so the tree is walked in order, one buffer for each depth.
 * Children are stated with their number of records in fields whose width depends on what nodes
 * of that depth can hold at most.
 *
 * Spec: HDF5 File Format 3.0, III.A.2, record types 10 (chunks) and 11 (filtered chunks). */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

#define PREFIX 6              /* signature, version, type */
#define OVERHEAD (PREFIX + 4) /* with the checksum */

struct btree2_tree {
	struct index_builder *b;
	uint8_t type;      /* of records: 10 or 11 */
	unsigned record;   /* bytes of a record */
	unsigned len_size; /* bytes of a stored size; type 11 */
	uint64_t node_size;
	uint64_t records; /* that the header states in all */
	uint64_t seen;
	unsigned depth;
	unsigned count_size;                 /* bytes of a child's own number of records */
	unsigned sum_size[FORMAT_DEPTH_MAX +
			  1];                 /* bytes of the number of records below a node of
					      * this height; leaves have none */
	uint64_t max_n[FORMAT_DEPTH_MAX + 1]; /* records in a node of this height */
	uint8_t *buf[FORMAT_DEPTH_MAX + 1];
	size_t cap[FORMAT_DEPTH_MAX + 1];
	bool any;                   /* last is set */
	uint64_t last[DS_RANK_MAX]; /* coordinates of the previous record */
};

static unsigned bytes_for(uint64_t v)
{
	unsigned n = 1;

	while (v >>= 8)
		n++;
	return n;
}

/* Capacity of nodes and width of fields, from the leaves up. */
static int btree2_measure(struct btree2_tree *t, struct err *e)
{
	uint64_t below = (t->node_size - OVERHEAD) / t->record;

	t->max_n[0] = below;
	t->count_size = bytes_for(below);
	for (unsigned h = 1; below > 0 && h <= t->depth; h++) {
		unsigned pointer = t->b->f->offset_size + t->count_size + t->sum_size[h - 1];
		uint64_t n = 0, sum;

		if (t->node_size > OVERHEAD + pointer)
			n = (t->node_size - OVERHEAD - pointer) / (t->record + pointer);
		if (n == 0 || ckd_mul(&sum, n + 1, below) || ckd_add(&below, sum, n))
			below = 0;
		t->max_n[h] = n;
		t->sum_size[h] = bytes_for(below);
	}
	if (below == 0)
		return err_set(e, -EBADMSG,
			       "chunk B-tree: invalid node size, %llu bytes at depth %u",
			       (unsigned long long)t->node_size, t->depth);
	return 0;
}

static int btree2_read_header(struct btree2_tree *t, uint64_t *ret_root, uint64_t *ret_n,
			      struct err *e)
{
	const struct h5_file *f = t->b->f;
	uint64_t n = 22 + (uint64_t)f->offset_size + f->length_size;
	unsigned plain = f->offset_size + 8 * t->b->rank;
	int rc = index_builder_node(t->b, t->b->l->addr, &t->buf[0], &t->cap[0], n, "BTHD", e);
	struct slice s = slice_of(t->buf[0], rc < 0 ? 0 : (size_t)n);

	if (rc < 0)
		return rc;
	rd_skip(&s, 5);
	t->type = rd_u8(&s);
	t->node_size = rd_le32(&s);
	t->record = rd_le16(&s);
	t->depth = rd_le16(&s);
	rd_skip(&s, 2);
	*ret_root = h5_rd_addr(f, &s);
	*ret_n = rd_le16(&s);
	t->records = rd_uint(&s, f->length_size);
	if (t->type != (t->b->l->filtered ? 11 : 10))
		return err_set(e, -EBADMSG, "chunk B-tree: unexpected record type %u", t->type);
	if (t->type == 10 ? t->record != plain
			  : t->record < plain + 5 || t->record > plain + 12)
		return err_set(e, -EBADMSG, "chunk B-tree: invalid record size, %u bytes",
			       t->record);
	t->len_size = t->type == 11 ? t->record - plain - 4 : 0;
	if (t->depth > FORMAT_DEPTH_MAX)
		return err_set(e, -EBADMSG, "chunk B-tree: depth %u exceeds %u", t->depth,
			       FORMAT_DEPTH_MAX);
	if (t->node_size < OVERHEAD + t->record)
		return err_set(e, -EBADMSG, "chunk B-tree: invalid node size, %llu bytes",
			       (unsigned long long)t->node_size);
	return btree2_measure(t, e);
}

/* Records are strictly ascending; that also exposes a node that is reached twice. */
static bool btree2_ascending(struct btree2_tree *t, const uint64_t *coords)
{
	size_t d = 0;

	while (d < t->b->rank && coords[d] == t->last[d])
		d++;
	if (t->any && (d == t->b->rank || coords[d] < t->last[d]))
		return false;
	memcpy(t->last, coords, t->b->rank * sizeof(*coords));
	t->any = true;
	return true;
}

static int btree2_record(struct btree2_tree *t, const uint8_t *p, struct err *e)
{
	uint64_t addr = h5_addr(t->b->f, p), size = 0;
	uint64_t coords[DS_RANK_MAX];
	uint32_t mask = 0;

	p += t->b->f->offset_size;
	if (t->type == 11) {
		size = get_le(p, t->len_size);
		mask = get_le32(p + t->len_size);
		p += t->len_size + 4;
	}
	for (size_t d = 0; d < t->b->rank; d++)
		coords[d] = get_le64(p + 8 * d);
	if (!btree2_ascending(t, coords))
		return err_set(e, -EBADMSG, "chunk B-tree: records out of order");
	if (++t->seen > t->records)
		return err_set(e, -EBADMSG, "chunk B-tree: more than the stated %llu records",
			       (unsigned long long)t->records);
	return addr == HDF5_ABSENT ? 0 : index_builder_add(t->b, coords, addr, size, mask, e);
}

/* btree2_children - of an inner node. */
struct btree2_children {
	const struct btree2_tree *t;
	const uint8_t *first;
	size_t pointer;
};

static uint64_t child_at(const void *arg, size_t i)
{
	const struct btree2_children *c = arg;

	return h5_addr(c->t->b->f, c->first + i * c->pointer);
}

/* A node of height h with n records; recursion ends at height 0, h <= FORMAT_DEPTH_MAX. */
static int btree2_node(struct btree2_tree *t, uint64_t addr, unsigned h, uint64_t n,
		       struct err *e)
{
	size_t osize = t->b->f->offset_size;
	size_t pointer = h ? osize + t->count_size + t->sum_size[h - 1] : 0;
	uint64_t bytes = OVERHEAD + n * t->record + (h ? (n + 1) * pointer : 0);
	size_t at = PREFIX, child = PREFIX + (size_t)n * t->record;
	struct readahead ra = {.f = t->b->f};
	int rc;

	if (n > t->max_n[h] || (n == 0 && h != t->depth))
		return err_set(e, -EBADMSG,
			       "chunk B-tree: %llu records in a node that can hold %llu",
			       (unsigned long long)n, (unsigned long long)t->max_n[h]);
	rc = index_builder_node(t->b, addr, &t->buf[h], &t->cap[h], bytes, h ? "BTIN" : "BTLF",
				e);
	if (rc < 0)
		return rc;
	if (t->buf[h][5] != t->type)
		return err_set(e, -EBADMSG, "chunk B-tree: unexpected node type %u",
			       t->buf[h][5]);
	for (uint64_t i = 0; rc == 0 && i <= n; i++) {
		if (h) {
			const uint8_t *p = t->buf[h] + child + i * pointer;
			struct btree2_children below = {t, t->buf[h] + child, pointer};

			readahead_nodes(&ra, (size_t)i, (size_t)n + 1, t->node_size, child_at,
					&below);

			rc = btree2_node(t, h5_addr(t->b->f, p), h - 1,
					 get_le(p + osize, t->count_size), e);
		}
		if (rc == 0 && i < n)
			rc = btree2_record(t, t->buf[h] + at + i * t->record, e);
	}
	return rc;
}

int h5_btree2_load(struct index_builder *b, struct err *e)
{
	struct btree2_tree t = {.b = b};
	uint64_t root, n;
	int rc = btree2_read_header(&t, &root, &n, e);

	if (rc == 0 && root != HDF5_ABSENT)
		rc = btree2_node(&t, root, t.depth, n, e);
	if (rc == 0 && t.seen != t.records)
		rc = err_set(e, -EBADMSG, "chunk B-tree: only %llu of %llu records were found",
			     (unsigned long long)t.seen, (unsigned long long)t.records);
	for (size_t h = 0; h <= FORMAT_DEPTH_MAX; h++)
		free(t.buf[h]);
	return rc;
}
