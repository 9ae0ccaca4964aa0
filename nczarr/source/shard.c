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

/* shard_cached - the entry of a shard in a cache, with a reference; the first caller loads it. */
static int shard_cached(struct cache *c, const struct zr_at *at, const struct chunk_location *x,
			int (*load)(const struct zr_at *at, const struct chunk_location *x,
				    struct zr_scratch *m, struct cache_entry *to,
				    struct err *e),
			struct cache_entry **ret, struct err *e)
{
	struct zr_data *d = at->p->s->data;
	struct err own = ERR_INIT;
	struct zr_scratch *m;
	int rc = cache_get(c, at->id, at->first, ret, e);

	if (rc != CACHE_LOAD)
		return rc;
	m = zr_scratch_take(d);
	rc = m ? load(at, x, m, *ret, &own) : err_nomem(&own);
	zr_scratch_give(d, m);
	if (rc == 0) {
		cache_publish(*ret);
		return 0;
	}
	own.code = rc;
	cache_fail(*ret, &own);
	return err_set(e, rc, "%s", own.msg);
}

/* shard_read_index - read the stored index into m->stored; x is the shard. */
static int shard_read_index(const struct zr_at *at, const struct chunk_location *x,
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
	return zr_object_read(x, off, to, (size_t)bytes, ret_version, e);
}

static int load_index(const struct zr_at *at, const struct chunk_location *x,
		      struct zr_scratch *m, struct cache_entry *to, struct err *e)
{
	uint64_t version = 0, size, *v, max = at->p->s->opts.max_index_bytes;
	uint8_t *out;
	int rc;

	if (ckd_mul(&size, at->sh->n, (uint64_t)16) || ckd_add(&size, size, (uint64_t)8) ||
	    size > max || at->sh->index_bytes > max)
		return err_set(e, -ERANGE,
			       "the index of a shard with %" PRIu64 " chunks exceeds %" PRIu64
			       " bytes (a quarter of -o memory)",
			       at->sh->n, max);
	rc = shard_read_index(at, x, m, &version, e);
	if (rc)
		goto end;
	out = cache_alloc(to, (size_t)size);
	if (!out)
		return err_nomem(e);
	rc = codec_chain_decode(&at->sh->index, 0, 8, m->stored.data, m->stored.len, out + 8,
				(size_t)size - 8, m->codec, e);
	if (rc) {
		rc = err_wrap(e, rc, "cannot decode the index of a shard");
		goto end;
	}
	v = (uint64_t *)(void *)out; /* allocated, so aligned */
	v[VERSION] = version;
	for (uint64_t i = 0; i < 2 * at->sh->n; i++)
		v[ENTRIES + i] = get_uint(out + 8 * (ENTRIES + i), 8, at->sh->index_big);
end:
	return rc == -EBADMSG && x->where != ZR_MEMORY ? zr_object_blame(x, rc, e) : rc;
}

/* shard_look_up - entry `slot` of the shard x: the location of the chunk, or the next shard. */
static int shard_look_up(const struct zr_at *at, uint64_t slot, struct chunk_location *x,
			 struct err *e)
{
	struct cache_entry *c;
	uint64_t off, len, end;
	const uint64_t *v;
	size_t size;
	int rc = shard_cached(at->p->s->data->indexes, at, x, load_index, &c, e);

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
		return zr_object_blame(x, rc, e);
	}
	x->off += off;
	x->len = len;
	if (x->where == ZR_OBJECT)
		x->where = ZR_PART;
	return 0;
}

uint64_t zr_shard_slot(const struct zr_meta *m, const struct zr_shard *sh,
		       const uint64_t *coords)
{
	uint64_t slot = 0;

	for (uint32_t k = 0; k < m->rank; k++) {
		uint32_t d = sh->order ? sh->order[k] : k;

		slot = slot * sh->grid[d] + coords[d] % sh->grid[d];
	}
	return slot;
}

/* shard_level - complete the shard of one level that contains a chunk. unit: the innermost chunks
 * in it along each axis, and then those in one of its chunks. Returns the slot in its index. */
static uint64_t shard_level(struct zr_at *at, const uint64_t *chunk, uint64_t *unit)
{
	const struct zr_place *p = at->p;
	uint64_t first[DS_RANK_MAX], coords[DS_RANK_MAX];

	at->n_chunks = 1;
	for (uint32_t d = 0; d < p->meta->rank; d++) {
		if (ckd_mul(&at->n_chunks, at->n_chunks, unit[d]))
			at->n_chunks = UINT64_MAX;
		first[d] = chunk[d] - chunk[d] % unit[d];
		unit[d] /= at->sh->grid[d]; /* unit was their product */
		coords[d] = (chunk[d] - first[d]) / unit[d];
	}
	at->first = ds_chunk_linear(p->a, first);
	return zr_shard_slot(p->meta, at->sh, coords);
}

void zr_shard_at(const struct zr_place *p, const uint64_t *chunk, struct zr_at *ret,
		 uint64_t *ret_slot)
{
	uint64_t unit[DS_RANK_MAX];

	memcpy(unit, p->per, p->meta->rank * sizeof(*unit));
	*ret = (struct zr_at){.p = p, .id = p->id, .sh = p->meta->shard};
	*ret_slot = shard_level(ret, chunk, unit);
}

bool zr_shard_known(const struct zr_at *at, uint64_t slot, uint64_t *ret_off, uint64_t *ret_len)
{
	struct cache_entry *c;
	const uint64_t *v;
	size_t size;

	if (!cache_peek(at->p->s->data->indexes, at->id, at->first, &c))
		return false;
	v = (const uint64_t *)(const void *)cache_data(c, &size);
	*ret_off = v[ENTRIES + 2 * slot];
	*ret_len = v[ENTRIES + 2 * slot + 1];
	cache_put(c);
	return true;
}

/* Shards with outer codecs, which must be decoded before their chunks can be located.
 *
 * A decoded shard is cached for the next chunk. While one thread decodes it, other threads that
 * need it wait. */

static int shard_load(const struct zr_at *at, const struct chunk_location *x,
		      struct zr_scratch *m, struct cache_entry *c, struct err *e)
{
	uint64_t limit; /* bytes of a shard with plausible chunks */
	const uint8_t *in, *out;
	size_t n, len;
	uint8_t *to;
	int rc;

	if (at->p->stored_bytes == 0 || ckd_add(&limit, 2 * at->p->stored_bytes, ZR_SLACK) ||
	    ckd_mul(&limit, limit, at->n_chunks) || ckd_add(&limit, limit, at->sh->index_bytes))
		limit = ZR_FRAME_MAX;
	limit = u64_min(limit, ZR_FRAME_MAX);
	rc = chunk_location_bytes(x, 2 * limit, m, &in, &n, e);
	if (rc)
		return rc;
	rc = codec_chain_decode_any(&at->sh->outer, 1, in, n, (size_t)limit, m->codec, &out,
				    &len, e);
	if (rc)
		return zr_object_blame(x, rc, e);
	to = cache_alloc(c, len);
	if (!to)
		return err_nomem(e);
	if (len > 0)
		memcpy(to, out, len);
	return 0;
}

/* whole_get - decode a shard; x has its stored location and then its decoded one. */
static int whole_get(const struct zr_at *at, struct chunk_location *x, struct err *e)
{
	struct cache_entry *c;
	size_t len;
	int rc = shard_cached(at->p->s->data->wholes, at, x, shard_load, &c, e);

	if (rc)
		return rc;
	chunk_location_release(x); /* the enclosing shard, if it was decoded too */
	x->where = ZR_MEMORY;
	x->held = c;
	x->mem = cache_data(c, &len);
	x->off = 0;
	x->len = len;
	return 0;
}

int zr_shard_find(const uint64_t *chunk, struct chunk_location *x, struct err *e)
{
	const struct zr_place *p = x->p;
	struct zr_at at = {.p = p, .id = p->id, .sh = p->meta->shard};
	uint64_t unit[DS_RANK_MAX], slot;
	int rc = 0;

	memcpy(unit, p->per, p->meta->rank * sizeof(*unit));
	x->len = x->size;
	for (; !rc && at.sh && x->where != ZR_NOWHERE; at.sh = at.sh->next) {
		slot = shard_level(&at, chunk, unit);
		if (at.sh->outer.n > 0)
			rc = whole_get(&at, x, e);
		rc = rc ? rc : shard_look_up(&at, slot, x, e);
		at.id += p->s->base.ds.n_arrays;
	}
	return rc;
}
