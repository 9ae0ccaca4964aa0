/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.c - the chunks of an array in the store, and how one is written: as an object of the
 * transaction, a part of a shard, or not at all.
 *
 * If a document has no fill value (null in Zarr v2), readers return arbitrary data for absent
 * chunks. So these are written: all of a new array, and the added ones of a growing array. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/model/value.h"

/* ---- shapes ---- */

/* stored_rank - number of axes of `now` that are axes in the store. */
static uint32_t stored_rank(const struct zs_array *za)
{
	return za->meta->rank - za->meta->tail;
}

/* any_size - whether a chain can be decoded independent of the element size. */
static bool any_size(const struct codec_chain *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t id = c->specs[i].h5_id;

		if (id != CODEC_DEFLATE && id != CODEC_ZSTD && id != CODEC_FLETCHER32 &&
		    id != CODEC_BZIP2)
			return false;
	}
	return true;
}

static bool takes_stored(const struct zs_array *za, const struct ds_array *a)
{
	const struct zr_meta *m = za->meta;
	const struct dtype *t = &a->type, *x = &m->dtype.type;

	if (dt_is_vlen(&a->type) || m->vlen != ZR_VLEN_NONE || m->order ||
	    m->dtype.conv != ZR_AS_STORED)
		return false;
	for (const struct zr_shard *sh = m->shard; sh; sh = sh->next)
		if (sh->outer.n || sh->order)
			return false;
	if (za->spread)
		return any_size(&m->chain);
	/* elements of `now` equal the stored bytes */
	return t->size == x->size && t->kind != DT_COMPOUND && x->kind != DT_COMPOUND &&
	       (t->size == 1 || (!value_is_number(t) && t->kind != DT_COMPLEX) ||
		t->big_endian == x->big_endian);
}

int zs_resolve_layout(struct zarr_sink *s, uint32_t array, struct zs_array *za, struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	uint32_t rank = stored_rank(za);
	uint32_t text = za->meta->dtype.stored;
	char tmp[200];

	if (za->chunk)
		return 0;
	if (za->meta->shard && (za->meta->shard->next || za->meta->shard->outer.n))
		return err_set(e, -EOPNOTSUPP,
			       "'%.200s': shards within shards, and shards encoded as a whole, "
			       "cannot be written",
			       za->key);
	za->spread = a->rank == rank + 1 && dt_is_char(&a->type) && text > 1 &&
		     a->shape[rank] == text;
	if (a->rank != rank && !za->spread)
		return err_set(e, -EOPNOTSUPP,
			       "%s has other dimensions than in the store, so it cannot be "
			       "written",
			       zs_say(&s->now->ds, array, tmp));
	za->grid = arena_alloc(&s->arena, a->rank, sizeof(*za->grid));
	za->chunk = arena_alloc(&s->arena, a->rank, sizeof(*za->chunk));
	if (!za->grid || !za->chunk) {
		za->chunk = NULL;
		return err_nomem(e);
	}
	za->n_chunks = 1;
	for (uint32_t d = 0; d < a->rank; d++) {
		uint64_t len = d < rank ? za->stored[d] : text;

		za->chunk[d] = len;
		za->grid[d] = a->shape[d] / len + (a->shape[d] % len != 0);
		if (ckd_mul(&za->n_chunks, za->n_chunks, za->grid[d]) ||
		    za->n_chunks > UINT64_MAX / 4)
			return err_set(e, -ERANGE, "'%.200s': more than 2^62 chunks", a->name);
	}
	za->takes_stored = takes_stored(za, a);
	return 0;
}

/* chunks_coords_of - coordinates of a chunk, in the rank of the stored array. */
static void chunks_coords_of(const struct zs_array *za, uint32_t rank, uint64_t linear,
			     uint64_t *ret)
{
	uint64_t at[DS_RANK_MAX];
	uint32_t n = stored_rank(za);

	grid_coords(rank, za->grid, linear, at);
	for (uint32_t d = 0; d < n; d++)
		ret[d] = at[d];
	if (za->meta->tail)
		ret[n] = 0;
}

/* object_key - future key of an object of an array. */
static int object_key(const struct zs_array *za, const uint64_t *coords,
		      char out[ZR_OBJECT_KEY], struct err *e)
{
	struct zr_meta m = *za->meta;

	m.key = za->key;
	return zr_object_key(&m, coords, out, e);
}

static int chunks_ready(struct zarr_sink *s, uint32_t array, struct zs_array **ret,
			struct err *e)
{
	int rc = zs_array_of(s, array, ret, e);

	return rc ? rc : zs_resolve_layout(s, array, *ret, e);
}

int zs_target(struct sink *sink, uint32_t array, struct sink_array *ret, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	struct zs_array *za;
	int rc = chunks_ready(s, array, &za, e);

	if (rc)
		return rc;
	*ret = (struct sink_array){
		.chunk = za->chunk, .chain = za->meta->chain, .takes_stored = za->takes_stored};
	return 0;
}

/* ---- absent chunks that have to be there ---- */

int zs_track(struct zs_array *za, struct err *e)
{
	if (za->n_chunks > (uint64_t)1 << 36)
		return err_set(e, -ERANGE,
			       "'%.200s' has no fill value, so all its %" PRIu64
			       " chunks would have to be written",
			       za->key, za->n_chunks);
	za->bits = alloc_array((size_t)(za->n_chunks / 64 + 1), sizeof(*za->bits));
	return za->bits ? 0 : err_nomem(e);
}

static void chunks_mark(struct zs_array *za, uint64_t linear)
{
	if (za->bits && linear < za->n_chunks)
		za->bits[linear / 64] |= (uint64_t)1 << linear % 64;
}

int zs_mark_stored(struct zarr_sink *s, struct zs_array *za, struct err *e)
{
	const struct zr_place *p = NULL;
	uint64_t at[DS_RANK_MAX + 1], object, from = 0;
	int rc = zr_place_listed(zr_of(s->real), za->real, &p, e);

	for (; rc == 0 && zr_table_next(&p->table, from, &object); from = object + 1) {
		bool in = true;

		grid_coords(za->meta->rank, p->grid, object, at);
		for (uint32_t d = 0; d < stored_rank(za); d++)
			in = in && at[d] < za->grid[d];
		if (in) /* a spread axis has one chunk */
			chunks_mark(za, grid_linear(stored_rank(za), za->grid, at));
	}
	return rc;
}

/* filled - encode a chunk of fill values to s->stored. */
static int filled(struct zarr_sink *s, uint32_t array, const struct zs_array *za, struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	uint64_t n = 1;
	uint8_t *p;

	if (!u64_product(&n, za->chunk, a->rank, PTRDIFF_MAX / 16))
		return err_set(e, -ERANGE, "'%.200s': a chunk is too large", za->key);
	buf_clear(&s->elems);
	if (dt_is_vlen(&a->type)) {
		for (uint64_t i = 0; i < n && buf_ok(&s->elems); i++)
			codec_vlen_put((const uint8_t *)a->fill_text.s, a->fill_text.len,
				       &s->elems);
	} else if (!ckd_mul(&n, n, (uint64_t)a->type.size) && n <= PTRDIFF_MAX) {
		p = buf_grow(&s->elems, (size_t)n);
		if (p)
			value_repeat(p, (size_t)n, a->fill, a->type.size);
	}
	if (!buf_ok(&s->elems))
		return err_nomem(e);
	buf_clear(&s->stored);
	return zs_encode(s, array, za, s->elems.data, s->elems.len, &s->stored, e);
}

/* chunks_may_write - check once for each array. */
static int chunks_may_write(struct zarr_sink *s, struct zs_array *za, struct err *e)
{
	int rc = za->may || !za->was_key
			 ? 0
			 : store_movable(s->txn.store, za->was_key, s->txn.dir, e);

	if (rc == 0 && !za->may && za->was_key)
		rc = zs_watch_array(s, za->was_key, e);
	za->may = za->may || rc == 0;
	return rc;
}

static int chunks_put_object(struct zarr_sink *s, uint32_t array, struct zs_array *za,
			     uint64_t linear, const uint8_t *p, size_t len, struct err *e)
{
	uint64_t coords[DS_RANK_MAX + 1];
	char key[ZR_OBJECT_KEY];
	int rc = chunks_may_write(s, za, e);

	if (rc)
		return rc;
	chunks_coords_of(za, s->now->ds.arrays[array].rank, linear, coords);
	chunks_mark(za, linear);
	if (za->meta->shard)
		return zs_shard_put(s, array, za, coords, p, len, false, e);
	rc = object_key(za, coords, key, e);
	return rc ? rc : zs_txn_put(&s->txn, ZS_PUT, key, p, len, e);
}

/* fill_array - write the chunks that were not put. */
static int fill_array(struct zarr_sink *s, uint32_t array, struct zs_array *za, struct err *e)
{
	bool made = false;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < za->n_chunks; i++) {
		if (i % 64 == 0 && za->bits[i / 64] == UINT64_MAX) {
			i += 63;
			continue;
		}
		if (za->bits[i / 64] >> i % 64 & 1)
			continue;
		if (!made)
			rc = filled(s, array, za, e);
		made = true;
		rc = rc ? rc : chunks_put_object(s, array, za, i, s->stored.data, s->stored.len,
						 e);
	}
	return rc;
}

int zs_fill_absent(struct zarr_sink *s, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; s->now && rc == 0 && i < s->now->ds.n_arrays; i++)
		if (s->arrays[i].bits)
			rc = fill_array(s, i, &s->arrays[i], e);
	return rc;
}

/* ---- put and drop ---- */

/* chunks_plain - decode a chunk with skipped filters, which no Zarr document can
 * express. The elements are in s->elems then. */
static int chunks_plain(struct zarr_sink *s, uint32_t array, const struct zs_array *za,
			const struct sink_chunk *c, struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	uint64_t n = a->type.size;
	uint8_t *p;

	if (!u64_product(&n, za->chunk, a->rank, PTRDIFF_MAX))
		return err_set(e, -ERANGE, "'%.200s': a chunk is too large", za->key);
	buf_clear(&s->elems);
	p = buf_grow(&s->elems, (size_t)n);
	if (!p)
		return err_nomem(e);
	return codec_chain_decode(&za->meta->chain, c->filter_mask, za->meta->dtype.stored,
				  c->p, c->len, p, (size_t)n, s->scratch, e);
}

int zs_put(struct sink *sink, uint32_t array, uint64_t linear, const struct sink_chunk *c,
	   struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	struct zs_array *za;
	const uint8_t *p = c->p;
	size_t len = c->len;
	int rc = chunks_ready(s, array, &za, e);

	if (rc)
		return rc;
	if (linear >= za->n_chunks || (c->stored && !za->takes_stored))
		return err_set(e, -EINVAL,
			       "'%.200s': the chunk cannot be written: its number or form does "
			       "not fit the array",
			       za->key);
	if (c->stored && (c->filter_mask == 0 || za->meta->chain.n == 0))
		return chunks_put_object(s, array, za, linear, p, len, e);
	if (c->stored) {
		rc = chunks_plain(s, array, za, c, e);
		p = s->elems.data;
		len = s->elems.len;
	}
	buf_clear(&s->stored);
	rc = rc ? rc : zs_encode(s, array, za, p, len, &s->stored, e);
	return rc ? rc
		  : chunks_put_object(s, array, za, linear, s->stored.data, s->stored.len, e);
}

int zs_drop(struct sink *sink, uint32_t array, uint64_t linear, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	uint64_t coords[DS_RANK_MAX + 1];
	char key[ZR_OBJECT_KEY];
	struct zs_array *za;
	int rc = chunks_ready(s, array, &za, e);

	if (rc)
		return rc;
	if (linear >= za->n_chunks)
		return err_set(e, -EINVAL, "'%.200s': the array has no such chunk", za->key);
	if (!za->stated) {
		rc = filled(s, array, za, e);
		return rc ? rc
			  : chunks_put_object(s, array, za, linear, s->stored.data,
					      s->stored.len, e);
	}
	rc = chunks_may_write(s, za, e);
	if (rc)
		return rc;
	chunks_mark(za, linear);
	chunks_coords_of(za, s->now->ds.arrays[array].rank, linear, coords);
	if (za->meta->shard)
		return zs_shard_put(s, array, za, coords, NULL, 0, true, e);
	rc = object_key(za, coords, key, e);
	return rc ? rc : zs_txn_step(&s->txn, ZS_DROP, 0, key, e);
}

/* ---- another shape ---- */

static int chunks_set_shape(struct zarr_sink *s, const struct zs_array *za,
			    const struct ds_array *a, struct err *e)
{
	struct zs_doc *d;
	json_t *list;
	int rc = zs_node_doc(s, za->key, za->was_key, true, false, &d, e);

	if (rc)
		return rc;
	list = json_object_get(d->v, "shape");
	if (!json_is_array(list) || json_array_size(list) < stored_rank(za))
		return err_set(e, -EBADMSG, "'%.200s': the metadata has no shape", za->key);
	for (uint32_t i = 0; i < stored_rank(za); i++)
		if (json_array_set_new(list, i, zs_json_u64(a->shape[i])) < 0)
			return err_nomem(e);
	d->dirty = true;
	return 0;
}

/* straddles - whether a shard has chunks outside the new grid; ret: the first one. */
static bool straddles(const struct zs_array *za, const struct zr_place *p, const uint64_t *at,
		      uint64_t *ret)
{
	bool out = false;

	for (uint32_t d = 0; d < za->meta->rank; d++) {
		uint64_t first = at[d] * p->per[d];

		ret[d] = first;
		if (d < stored_rank(za) && !out && first + p->per[d] > za->grid[d] &&
		    za->grid[d] * za->chunk[d] < za->meta->shape[d]) {
			ret[d] = za->grid[d];
			out = true;
		}
	}
	return out;
}

/* chunks_outside - drop objects outside the new grid, and rewrite shards with such
 * chunks: otherwise they would reappear when the array grows again. */
static int chunks_outside(struct zarr_sink *s, uint32_t array, struct zs_array *za,
			  struct err *e)
{
	const struct zr_meta *m = za->meta;
	const struct zr_place *p = NULL;
	uint64_t at[DS_RANK_MAX + 1], grid[DS_RANK_MAX + 1], cut[DS_RANK_MAX + 1], object, from = 0;
	char key[ZR_OBJECT_KEY];
	int rc = zr_place_listed(zr_of(s->real), za->real, &p, e);

	for (uint32_t d = 0; rc == 0 && d < m->rank; d++)
		grid[d] = d < stored_rank(za) ? (za->grid[d] + p->per[d] - 1) / p->per[d] : 1;
	for (; rc == 0 && zr_table_next(&p->table, from, &object); from = object + 1) {
		bool in = true;

		grid_coords(m->rank, p->grid, object, at);
		for (uint32_t d = 0; d < m->rank; d++)
			in = in && at[d] < grid[d];
		if (in && m->shard && straddles(za, p, at, cut))
			rc = zs_shard_put(s, array, za, cut, NULL, 0, true, e);
		if (in)
			continue;
		rc = object_key(za, at, key, e);
		rc = rc ? rc : zs_txn_step(&s->txn, ZS_DROP, 0, key, e);
	}
	return rc;
}

/* mark_old - record the chunks of the old grid as unchanged. */
static void mark_old(struct zarr_sink *s, uint32_t array, struct zs_array *za)
{
	const struct zr_meta *m = za->meta;
	uint64_t at[DS_RANK_MAX];

	for (uint64_t i = 0; i < za->n_chunks; i++) {
		bool old = true;

		grid_coords(s->now->ds.arrays[array].rank, za->grid, i, at);
		for (uint32_t d = 0; d < stored_rank(za); d++)
			old = old && at[d] * za->chunk[d] < m->shape[d];
		if (old)
			chunks_mark(za, i);
	}
}

int zs_resize(struct sink *sink, uint32_t array, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	const struct ds_array *a = &s->now->ds.arrays[array];
	struct zs_array *za;
	int rc = chunks_ready(s, array, &za, e);

	if (rc)
		return rc;
	if (za->state == ZS_NEW)
		return 0;
	rc = zs_watch_array(s, za->was_key, e);
	rc = rc ? rc : chunks_set_shape(s, za, a, e);
	rc = rc ? rc : chunks_outside(s, array, za, e);
	if (rc == 0 && !za->stated && !za->bits) {
		rc = zs_track(za, e);
		if (rc == 0)
			mark_old(s, array, za);
	}
	return rc;
}
