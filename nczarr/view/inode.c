/* SPDX-License-Identifier: BSD-3-Clause */
/* inode.c - the id space: arithmetic over the frozen model, without state. */
#include "nczarr/view/inode.h"

#include <errno.h>

/* interval - ids that an array needs below its directory; true on overflow. */
static bool interval(const struct zr_inodes *ids, uint32_t array, uint64_t *ret)
{
	const struct zr_grid *g = &ids->grids[array];
	uint32_t levels = zr_key_levels(g);
	uint64_t n = g->n, level = 1;

	for (uint32_t d = 0; n > 0 && d < levels; d++)
		if (ckd_mul(&level, level, zr_key_parts(g, d)) ||
		    ckd_add(&n, n, level))
			return true;
	*ret = n;
	return false;
}

int zr_inodes_init(struct zr_inodes *ids, uint64_t limit, bool *hidden, struct err *e)
{
	const struct dataset *ds = ids->ds;
	uint64_t at, n, end;

	ids->base = NULL;
	ids->arrays = 1 + (uint64_t)ds->n_groups;
	ids->docs = ids->arrays + ds->n_arrays;
	ids->array_docs = ids->docs + (uint64_t)ids->format->root.n * ds->n_groups;
	at = ids->array_docs + (uint64_t)ids->format->array.n * ds->n_arrays;
	if (at >= limit)
		return err_set(e, -ERANGE, "too many groups and variables");
	ids->base = alloc_array((size_t)ds->n_arrays + 1, sizeof(*ids->base));
	if (!ids->base)
		return err_nomem(e);

	for (uint32_t a = 0; a < ds->n_arrays; a++) {
		ids->base[a] = at;
		if (hidden[a])
			continue;
		if (interval(ids, a, &n) || ckd_add(&end, at, n) || end > limit)
			hidden[a] = true;
		else
			at = end;
	}
	ids->base[ds->n_arrays] = at;
	return 0;
}

void zr_inodes_release(struct zr_inodes *ids)
{
	free(ids->base);
	ids->base = NULL;
}

/* find_doc - whether id is the slot of a document. False if the slot is empty. */
static bool find_doc(const struct zr_inodes *ids, uint64_t id, struct zr_node *ret)
{
	const struct zr_format *f = ids->format;
	const bool of_group = id < ids->array_docs;
	const struct zr_docs *docs = of_group ? &f->root : &f->array;
	uint64_t at = id - (of_group ? ids->docs : ids->array_docs);

	ret->kind = ZR_DOC;
	ret->ord = (uint32_t)(at / docs->n);
	at %= docs->n;
	if (of_group && ret->ord != 0)
		docs = &f->group;
	if (at >= docs->n)
		return false;
	ret->doc = docs->doc[at];
	return true;
}

/* find_below - at is inside the interval of array ret->ord. */
static void find_below(const struct zr_inodes *ids, uint64_t at, struct zr_node *ret)
{
	const struct zr_grid *g = &ids->grids[ret->ord];
	uint32_t levels = zr_key_levels(g);
	uint64_t level = 1;

	for (uint32_t d = 0; d < levels; d++) {
		level *= zr_key_parts(g, d); /* checked when laid out */
		if (at < level) {
			ret->kind = ZR_PREFIX;
			ret->level = d + 1;
			ret->index = at;
			return;
		}
		at -= level;
	}
	ret->kind = ZR_CHUNK;
	ret->index = at;
}

int zr_inodes_find(const struct zr_inodes *ids, uint64_t id, struct zr_node *ret)
{
	uint32_t after = 1;

	*ret = (struct zr_node){0};
	if (id == 0 || id >= ids->base[ids->ds->n_arrays])
		return -ESTALE;
	if (id < ids->arrays) {
		ret->kind = ZR_GROUP;
		ret->ord = (uint32_t)(id - 1);
		return 0;
	}
	if (id < ids->docs) {
		ret->kind = ZR_ARRAY;
		ret->ord = (uint32_t)(id - ids->arrays);
		return 0;
	}
	if (id < ids->base[0])
		return find_doc(ids, id, ret) ? 0 : -ESTALE;

	/* the last array whose interval starts at or before id; empty intervals are skipped,
	 * because the next one starts at the same id */
	BISECT(after, ids->ds->n_arrays, mid, ids->base[mid] <= id);
	ret->ord = after - 1;
	find_below(ids, id - ids->base[ret->ord], ret);
	return 0;
}

/* inode_levels - ids of the first n levels of an array's nested directories. */
static uint64_t inode_levels(const struct zr_inodes *ids, uint32_t array, uint32_t n)
{
	const struct zr_grid *g = &ids->grids[array];
	uint64_t sum = 0, level = 1;

	for (uint32_t d = 0; d < n; d++) {
		level *= zr_key_parts(g, d);
		sum += level;
	}
	return sum;
}

/* doc_slot - position of a document among those of its directory. */
static uint32_t doc_slot(const struct zr_docs *docs, enum zr_doc doc)
{
	uint32_t i = 0;

	while (i + 1 < docs->n && docs->doc[i] != doc)
		i++;
	return i;
}

uint64_t zr_inodes_of(const struct zr_inodes *ids, const struct zr_node *node)
{
	const struct zr_format *f = ids->format;
	uint32_t above = 0;

	switch (node->kind) {
	case ZR_GROUP:
		return 1 + (uint64_t)node->ord;
	case ZR_ARRAY:
		return ids->arrays + node->ord;
	case ZR_DOC:
		if (zr_doc_of_group(node->doc))
			return ids->docs + (uint64_t)f->root.n * node->ord +
			       doc_slot(node->ord ? &f->group : &f->root, node->doc);
		return ids->array_docs + (uint64_t)f->array.n * node->ord +
		       doc_slot(&f->array, node->doc);
	case ZR_PREFIX:
		above = node->level - 1;
		break;
	case ZR_CHUNK:
		above = zr_key_levels(&ids->grids[node->ord]);
		break;
	}
	return ids->base[node->ord] + inode_levels(ids, node->ord, above) + node->index;
}
