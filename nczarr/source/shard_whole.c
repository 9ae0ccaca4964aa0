/* shard_whole.c - shards with codecs around them, which have to be decoded before anything in them
 * can be found.
 *
 * A decoded shard is kept for the next chunk of it. While one thread decodes it, others who want
 * the same shard wait for it. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* most_of - bytes that a shard can have at most when its chunks are not absurd. */
static uint64_t most_of(const struct zr_place *p, const struct zr_at *at)
{
	uint64_t n;

	if (p->stored_bytes == 0 || ckd_add(&n, 2 * p->stored_bytes, ZR_SLACK) ||
	    ckd_mul(&n, n, at->n_chunks) || ckd_add(&n, n, at->sh->index_bytes))
		return ZR_FRAME_MAX;
	return u64_min(n, ZR_FRAME_MAX);
}

static int load(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
		const struct zr_spot *x, struct zr_scratch *m, struct cache_entry *c,
		struct err *e)
{
	uint64_t limit = most_of(p, at);
	const uint8_t *in, *out;
	size_t n, len;
	uint8_t *to;
	int rc = zr_spot_bytes(s, at->array, p, x, 2 * limit, m, &in, &n, e);

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
		 struct zr_spot *x, struct err *e)
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
		rc = m ? load(s, p, at, x, m, c, &own) : err_nomem(&own);
		if (m)
			zr_scratch_give(s->data, m);
		if (rc) {
			own.code = rc;
			cache_fail(c, &own);
			return err_set(e, rc, "%s", own.msg);
		}
		cache_publish(c);
	}
	zr_spot_release(x); /* the shard around this one, when that was decoded too */
	x->where = ZR_MEMORY;
	x->held = c;
	x->mem = cache_data(c, &len);
	x->off = 0;
	x->len = len;
	return 0;
}
