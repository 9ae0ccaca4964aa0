/* SPDX-License-Identifier: BSD-3-Clause */
/* shard.c - chunks inside a stored object: indexes of shards, level by level.
 *
 * An index is read and checked as a whole at the first look-up in its shard, and cached. Its
 * entries are validated on use: an invalid one must not hide the others. Spec: Zarr v3, "Sharding
 * codec". */
#include "base/core/endian.h"
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* An index in the cache: the version of its object, then for each chunk its offset and length in
 * the shard; both UINT64_MAX: absent. */
enum { VERSION, ENTRIES };

/* shard_read_index - read the stored index into m->stored; x is the shard. */
static int shard_read_index(struct zr_source *s, const struct zr_place *p,
			    const struct zr_at *at, const struct chunk_location *x,
			    struct zr_scratch *m, uint64_t *ret_version, struct err *e)
{
	uint64_t bytes = at->sh->index_bytes, off = x->off;
	uint8_t *to;

	if (bytes > x->len)
		return err_set(e, -EBADMSG,
			       "a shard of %" PRIu64
			       " bytes is too small for its index of %" PRIu64,
			       x->len, bytes);
	if (!at->sh->index_first)
		off += x->len - bytes;
	to = buf_grow(&m->stored, (size_t)bytes);
	if (!to && bytes > 0)
		return err_nomem(e);
	if (x->where == ZR_MEMORY) {
		memcpy(to, x->mem + off, (size_t)bytes);
		return 0;
	}
	return zr_object_read(s, at->array, p, x, off, to, (size_t)bytes, ret_version, e);
}

static int load_index(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
		      const struct chunk_location *x, struct zr_scratch *m,
		      struct cache_entry *c, struct err *e)
{
	uint64_t version = 0, size, *v;
	uint8_t *out;
	int rc;

	if (ckd_mul(&size, at->sh->n, (uint64_t)16) || ckd_add(&size, size, (uint64_t)8) ||
	    size > s->opts.max_index_bytes || at->sh->index_bytes > s->opts.max_index_bytes)
		return err_set(e, -ERANGE,
			       "the index of a shard with %" PRIu64 " chunks exceeds %" PRIu64
			       " bytes (a quarter of -o memory)",
			       at->sh->n, s->opts.max_index_bytes);
	rc = shard_read_index(s, p, at, x, m, &version, e);
	if (rc)
		return rc;
	out = cache_alloc(c, (size_t)size);
	if (!out)
		return err_nomem(e);
	rc = codec_chain_decode(&at->sh->index, 0, 8, m->stored.data, m->stored.len, out + 8,
				(size_t)size - 8, m->codec, e);
	if (rc)
		return err_wrap(e, rc, "cannot decode the index of a shard");
	v = (uint64_t *)(void *)out; /* allocated, so aligned */
	v[VERSION] = version;
	for (uint64_t i = 0; i < 2 * at->sh->n; i++)
		v[ENTRIES + i] = get_uint(out + 8 * (ENTRIES + i), 8, at->sh->index_big);
	return 0;
}

/* shard_index_of - the shard's index with a reference. */
static int shard_index_of(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
			  const struct chunk_location *x, struct cache_entry **ret,
			  struct err *e)
{
	struct err own = ERR_INIT;
	struct zr_scratch *m;
	int rc = cache_get(s->data->indexes, at->id, at->first, ret, e);

	if (rc != CACHE_LOAD)
		return rc;
	m = zr_scratch_take(s->data);
	rc = m ? load_index(s, p, at, x, m, *ret, &own) : err_nomem(&own);
	if (m)
		zr_scratch_give(s->data, m);
	if (rc == -EBADMSG && x->where != ZR_MEMORY)
		rc = zr_object_blame(s, p, x, rc, &own);
	if (rc == 0) {
		cache_publish(*ret);
		return 0;
	}
	own.code = rc;
	cache_fail(*ret, &own);
	return err_set(e, rc, "%s", own.msg);
}

/* shard_look_up - entry `slot` of the shard x: the location of the chunk, or the next shard. */
static int shard_look_up(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
			 uint64_t slot, struct chunk_location *x, struct err *e)
{
	struct cache_entry *c;
	uint64_t off, len, end;
	const uint64_t *v;
	size_t size;
	int rc = shard_index_of(s, p, at, x, &c, e);

	if (rc)
		return rc;
	v = (const uint64_t *)(const void *)cache_data(c, &size);
	off = v[ENTRIES + 2 * slot];
	len = v[ENTRIES + 2 * slot + 1];
	if (x->where == ZR_PART && x->version != v[VERSION])
		rc = err_set(e, -ESTALE, "a shard was replaced");
	else if (x->where == ZR_OBJECT)
		x->version = v[VERSION];
	cache_put(c);
	if (rc)
		return rc;
	if (off == UINT64_MAX && len == UINT64_MAX) {
		x->where = ZR_NOWHERE;
		return 0;
	}
	if (ckd_add(&end, off, len) || end > x->len) {
		rc = err_set(e, -EBADMSG,
			     "index of a shard: the chunk at offset %" PRIu64 " with %" PRIu64
			     " bytes exceeds the shard's %" PRIu64,
			     off, len, x->len);
		return zr_object_blame(s, p, x, rc, e);
	}
	x->off += off;
	x->len = len;
	if (x->where == ZR_OBJECT)
		x->where = ZR_PART;
	return 0;
}

/* shard_slot_of - number of a chunk in the index: C order over the axes in stored order. */
static uint64_t shard_slot_of(const struct zr_meta *m, const struct zr_shard *sh,
			      const uint64_t *coords)
{
	uint64_t slot = 0;

	for (uint32_t k = 0; k < m->rank; k++) {
		uint32_t d = sh->order ? sh->order[k] : k;

		slot = slot * sh->grid[d] + coords[d];
	}
	return slot;
}

void zr_shard_at(struct zr_source *s, uint32_t array, const struct zr_place *p,
		 const uint64_t *chunk, struct zr_at *ret, uint64_t *ret_slot)
{
	const struct zr_shard *sh = p->meta->shard;
	uint64_t first[DS_RANK_MAX], coords[DS_RANK_MAX];

	*ret = (struct zr_at){.array = array, .id = array, .sh = sh};
	for (uint32_t d = 0; d < p->meta->rank; d++) {
		first[d] = chunk[d] - chunk[d] % p->per[d];
		coords[d] = (chunk[d] - first[d]) / (p->per[d] / sh->grid[d]);
	}
	ret->first = ds_chunk_linear(&s->base.ds.arrays[array], first);
	*ret_slot = shard_slot_of(p->meta, sh, coords);
}

bool zr_shard_known(struct zr_source *s, const struct zr_at *at, uint64_t slot,
		    uint64_t *ret_off, uint64_t *ret_len)
{
	struct cache_entry *c;
	const uint64_t *v;
	size_t size;

	if (!cache_peek(s->data->indexes, at->id, at->first, &c))
		return false;
	v = (const uint64_t *)(const void *)cache_data(c, &size);
	*ret_off = v[ENTRIES + 2 * slot];
	*ret_len = v[ENTRIES + 2 * slot + 1];
	cache_put(c);
	return true;
}

int zr_shard_find(struct zr_source *s, uint32_t array, const struct zr_place *p,
		  const uint64_t *chunk, struct chunk_location *x, struct err *e)
{
	const struct ds_array *a = &s->base.ds.arrays[array];
	uint64_t unit[DS_RANK_MAX], first[DS_RANK_MAX], coords[DS_RANK_MAX];
	struct zr_at at = {.array = array, .id = array, .sh = p->meta->shard};
	uint32_t rank = p->meta->rank;
	int rc = 0;

	for (uint32_t d = 0; d < rank; d++)
		unit[d] = p->per[d];
	x->len = x->size;
	for (; !rc && at.sh && x->where != ZR_NOWHERE; at.sh = at.sh->next) {
		at.n_chunks = 1;
		for (uint32_t d = 0; d < rank; d++) {
			if (ckd_mul(&at.n_chunks, at.n_chunks, unit[d]))
				at.n_chunks = UINT64_MAX;
			first[d] = chunk[d] - chunk[d] % unit[d];
			unit[d] /= at.sh->grid[d]; /* unit was their product */
			coords[d] = (chunk[d] - first[d]) / unit[d];
		}
		at.first = ds_chunk_linear(a, first);
		if (at.sh->outer.n > 0)
			rc = zr_whole_get(s, p, &at, x, e);
		if (!rc)
			rc = shard_look_up(s, p, &at, shard_slot_of(p->meta, at.sh, coords), x,
					   e);
		at.id += s->base.ds.n_arrays;
	}
	return rc;
}

/* Shards with outer codecs, which must be decoded before their chunks can be located.
 *
 * A decoded shard is cached for the next chunk. While one thread decodes it, other threads that
 * need it wait. */

/* most_of - upper limit of the bytes of a shard with plausible chunks. */
static uint64_t most_of(const struct zr_place *p, const struct zr_at *at)
{
	uint64_t n;

	if (p->stored_bytes == 0 || ckd_add(&n, 2 * p->stored_bytes, ZR_SLACK) ||
	    ckd_mul(&n, n, at->n_chunks) || ckd_add(&n, n, at->sh->index_bytes))
		return ZR_FRAME_MAX;
	return u64_min(n, ZR_FRAME_MAX);
}

static int shard_load(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
		      const struct chunk_location *x, struct zr_scratch *m,
		      struct cache_entry *c, struct err *e)
{
	uint64_t limit = most_of(p, at);
	const uint8_t *in, *out;
	size_t n, len;
	uint8_t *to;
	int rc = chunk_location_bytes(s, at->array, p, x, 2 * limit, m, &in, &n, e);

	if (!rc) {
		rc = codec_chain_decode_any(&at->sh->outer, 1, in, n, (size_t)limit, m->codec,
					    &out, &len, e);
		if (rc)
			rc = zr_object_blame(s, p, x, rc, e);
	}
	if (rc)
		return rc;
	to = cache_alloc(c, len);
	if (!to)
		return err_nomem(e);
	if (len > 0)
		memcpy(to, out, len);
	return 0;
}

int zr_whole_get(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
		 struct chunk_location *x, struct err *e)
{
	struct err own = ERR_INIT;
	struct cache_entry *c;
	struct zr_scratch *m;
	size_t len;
	int rc = cache_get(s->data->wholes, at->id, at->first, &c, e);

	if (rc < 0)
		return rc;
	if (rc == CACHE_LOAD) {
		m = zr_scratch_take(s->data);
		rc = m ? shard_load(s, p, at, x, m, c, &own) : err_nomem(&own);
		if (m)
			zr_scratch_give(s->data, m);
		if (rc) {
			own.code = rc;
			cache_fail(c, &own);
			return err_set(e, rc, "%s", own.msg);
		}
		cache_publish(c);
	}
	chunk_location_release(x); /* the enclosing shard, if it was decoded too */
	x->where = ZR_MEMORY;
	x->held = c;
	x->mem = cache_data(c, &len);
	x->off = 0;
	x->len = len;
	return 0;
}
