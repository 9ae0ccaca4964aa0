/* SPDX-License-Identifier: BSD-3-Clause */
/* array_index.c - what fixed and extensible arrays have in common: how an element number becomes
 * chunk coordinates, and how one element is stored.
 *
 * Spec: HDF5 File Format 3.0, VII.C and VII.D; the order of elements is not spelled out there:
 * C order over the maximum extent, in an extensible array with the unlimited dimension first.
 */
#include "hdf5view/format/format_int.h"

#include <errno.h>

int chunk_iter_init(struct chunk_iter *w, const struct index_builder *b, bool extensible,
		    struct err *e)
{
	const struct h5_layout *l = b->l;
	uint32_t unlimited = 0, at = 0, slot = 0;

	*w = (struct chunk_iter){.rank = b->rank};
	for (uint32_t d = 0; d < b->rank; d++) {
		if (l->maxdims[d] == UINT64_MAX) {
			unlimited++;
			at = d;
		}
	}
	if (unlimited != extensible)
		return err_set(e, -EBADMSG, "chunk index does not fit %u unlimited dimensions",
			       unlimited);
	if (extensible)
		w->dim[slot++] = at;
	for (uint32_t d = 0; d < b->rank; d++)
		if (!extensible || d != at)
			w->dim[slot++] = d;

	w->count = 1;
	for (size_t i = b->rank; i-- > 0;) {
		uint32_t d = w->dim[i];

		w->n[i] = l->maxdims[d] / l->chunk[d] + (l->maxdims[d] % l->chunk[d] != 0);
		if (extensible && i == 0)
			w->n[i] = b->limit[d];
		if (ckd_mul(&w->count, w->count, w->n[i]))
			return err_set(e, -EOPNOTSUPP,
				       "chunk index: more than 2^64 chunks in all");
	}
	return 0;
}

/* chunk_iter_seek - go to element idx < w->count. */
static void chunk_iter_seek(struct chunk_iter *w, uint64_t idx)
{
	for (size_t i = w->rank; i-- > 0; idx /= w->n[i])
		w->coords[w->dim[i]] = idx % w->n[i];
}

static void chunk_iter_step(struct chunk_iter *w)
{
	for (size_t i = w->rank; i-- > 0;) {
		if (++w->coords[w->dim[i]] < w->n[i])
			return;
		w->coords[w->dim[i]] = 0;
	}
}

int array_index_init(struct array_index *m, const struct index_builder *b, uint8_t client,
		     uint8_t size, struct err *e)
{
	unsigned plain = b->f->offset_size;

	if (client != (b->l->filtered ? 1 : 0))
		return err_set(e, -EBADMSG,
			       "chunk array: client %u, but the dataset has%s filters", client,
			       b->l->filtered ? "" : " no");
	/* filtered: address, stored size in 1 to 8 bytes, filter mask */
	if (b->l->filtered ? size < plain + 5 || size > plain + 12 : size != plain)
		return err_set(e, -EBADMSG, "chunk array: invalid element size %u", size);
	m->size = size;
	m->len_size = b->l->filtered ? (uint8_t)(size - plain - 4) : 0;
	return 0;
}

int array_index_owner(const struct index_builder *b, const char *what, const uint8_t *block,
		      struct err *e)
{
	if (block[5] != (b->l->filtered ? 1 : 0) || h5_addr(b->f, block + 6) != b->l->addr)
		return err_set(e, -EBADMSG, "%s: a block belongs to another array", what);
	return 0;
}

int array_index_page(struct index_builder *b, const char *what, uint64_t addr, uint8_t **buf,
		     size_t *cap, uint64_t bytes, struct err *e)
{
	int rc;

	if (!h5_in_file(b->f, addr, bytes))
		return err_set(e, -EBADMSG, "%s: a page is outside the file", what);
	if (bytes > b->max_bytes)
		return err_set(e, -ERANGE, "%s: invalid page size, %llu bytes", what,
			       (unsigned long long)bytes);
	if (grow_array(buf, cap, (size_t)bytes, 1) < 0)
		return err_nomem(e);
	rc = index_builder_read(b, addr, *buf, (size_t)bytes, what, e);
	if (rc == 0 && !h5_sum_ok(*buf, (size_t)bytes))
		rc = err_set(e, -EBADMSG, "%s: wrong page checksum", what);
	return rc;
}

int array_index_add(struct index_builder *b, const struct array_index *m, struct chunk_iter *w,
		    uint64_t idx, const uint8_t *p, uint64_t n, struct err *e)
{
	size_t at = b->f->offset_size;
	int rc = 0;

	if (idx >= w->count)
		return 0;
	n = u64_min(n, w->count - idx);
	chunk_iter_seek(w, idx);
	for (uint64_t i = 0; rc == 0 && i < n; i++, p += m->size) {
		uint64_t addr = h5_addr(b->f, p);

		if (addr != HDF5_ABSENT)
			rc = index_builder_add(b, w->coords, addr, get_le(p + at, m->len_size),
					       m->len_size ? get_le32(p + at + m->len_size) : 0,
					       e);
		chunk_iter_step(w);
	}
	return rc;
}
