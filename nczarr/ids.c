/* ids.c - the id space is arithmetic over the frozen model; nothing is remembered about what
 * was looked up. */
#include "nczarr/ids.h"

#include <errno.h>

enum { GROUP_DOCS = 3, ARRAY_DOCS = 2 };

/* interval - ids that an array needs below its directory; true on overflow. */
static bool interval(const struct ds_array *a, bool nested, uint64_t *ret)
{
	uint64_t n = a->n_chunks, level = 1;

	for (uint32_t d = 0; nested && n > 0 && d + 1 < a->rank; d++)
		if (ckd_mul(&level, level, a->grid[d]) || ckd_add(&n, n, level))
			return true;
	*ret = n;
	return false;
}

int zr_ids_init(struct zr_ids *ids, const struct dataset *ds, bool nested, uint64_t limit,
		bool *hidden, struct err *e)
{
	uint64_t at, n, end;

	*ids = (struct zr_ids){.ds = ds, .nested = nested};
	ids->arrays = 1 + (uint64_t)ds->n_groups;
	ids->docs = ids->arrays + ds->n_arrays;
	at = ids->docs + (uint64_t)GROUP_DOCS * ds->n_groups +
	     (uint64_t)ARRAY_DOCS * ds->n_arrays;
	if (at >= limit)
		return err_set(e, -ERANGE, "too many groups and variables");
	ids->base = alloc_array((size_t)ds->n_arrays + 1, sizeof(*ids->base));
	if (!ids->base)
		return err_nomem(e);

	for (uint32_t a = 0; a < ds->n_arrays; a++) {
		ids->base[a] = at;
		if (hidden[a])
			continue;
		if (interval(&ds->arrays[a], nested, &n) || ckd_add(&end, at, n) || end > limit)
			hidden[a] = true;
		else
			at = end;
	}
	ids->base[ds->n_arrays] = at;
	return 0;
}

void zr_ids_release(struct zr_ids *ids)
{
	free(ids->base);
	ids->base = NULL;
}

/* find_doc - at counts from the first document. False when at is behind the last one. */
static bool find_doc(const struct zr_ids *ids, uint64_t at, struct zr_node *ret)
{
	uint64_t groups = (uint64_t)GROUP_DOCS * ids->ds->n_groups;

	ret->kind = ZR_DOC;
	if (at < groups) {
		ret->ord = (uint32_t)(at / GROUP_DOCS);
		ret->doc = (enum zr_doc)(ZR_DOC_ZGROUP + at % GROUP_DOCS);
		return ret->doc != ZR_DOC_ZMETADATA || ret->ord == 0;
	}
	at -= groups;
	ret->ord = (uint32_t)(at / ARRAY_DOCS);
	ret->doc = (enum zr_doc)(ZR_DOC_ZARRAY + at % ARRAY_DOCS);
	return ret->ord < ids->ds->n_arrays;
}

/* find_below - at is inside the interval of array ret->ord. */
static void find_below(const struct zr_ids *ids, uint64_t at, struct zr_node *ret)
{
	const struct ds_array *a = &ids->ds->arrays[ret->ord];
	uint64_t level = 1;

	for (uint32_t d = 0; ids->nested && d + 1 < a->rank; d++) {
		level *= a->grid[d]; /* checked when the space was laid out */
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

int zr_ids_find(const struct zr_ids *ids, uint64_t id, struct zr_node *ret)
{
	uint32_t lo = 0, hi = ids->ds->n_arrays;

	*ret = (struct zr_node){0};
	if (id == 0 || id >= ids->base[hi])
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
		return find_doc(ids, id - ids->docs, ret) ? 0 : -ESTALE;

	/* the last array whose interval starts at or before id; empty intervals are passed
	 * over, because the next one starts at the same id */
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (ids->base[mid] <= id)
			lo = mid;
		else
			hi = mid;
	}
	ret->ord = lo;
	find_below(ids, id - ids->base[lo], ret);
	return 0;
}

/* levels - ids of the first n levels of an array's nested directories. */
static uint64_t levels(const struct ds_array *a, uint32_t n)
{
	uint64_t sum = 0, level = 1;

	for (uint32_t d = 0; d < n; d++) {
		level *= a->grid[d];
		sum += level;
	}
	return sum;
}

uint64_t zr_ids_of(const struct zr_ids *ids, const struct zr_node *node)
{
	const struct ds_array *a;

	switch (node->kind) {
	case ZR_GROUP:
		return 1 + (uint64_t)node->ord;
	case ZR_ARRAY:
		return ids->arrays + node->ord;
	case ZR_DOC:
		if (node->doc < ZR_DOC_ZARRAY)
			return ids->docs + (uint64_t)GROUP_DOCS * node->ord + node->doc;
		return ids->docs + (uint64_t)GROUP_DOCS * ids->ds->n_groups +
		       (uint64_t)ARRAY_DOCS * node->ord + (node->doc - ZR_DOC_ZARRAY);
	case ZR_PREFIX:
		a = &ids->ds->arrays[node->ord];
		return ids->base[node->ord] + levels(a, node->level - 1) + node->index;
	case ZR_CHUNK:
		break;
	}
	a = &ids->ds->arrays[node->ord];
	return ids->base[node->ord] + node->index +
	       (ids->nested && a->rank > 1 ? levels(a, a->rank - 1) : 0);
}
