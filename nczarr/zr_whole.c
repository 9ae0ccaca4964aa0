/* zr_whole.c - shards with codecs around them, which have to be decoded before anything in them
 * can be found; and decoding without knowing how many bytes will come out.
 *
 * A decoded shard is kept for the next chunk of it. While one thread decodes it, others who want
 * the same shard wait for it. */
#include "nczarr/zr_data_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FIRST_GUESS ((uint64_t)64 << 10)
#define GROWTH 8  /* of a guess that was too small */

/* decode_step - undo one filter into memory that grows with the guess. A decoder that finds too
 * little room says what it says of damaged bytes, so only the largest guess tells which. */
static int decode_step(const struct codec_ops *ops, const struct codec_spec *spec,
		       size_t elem_size, const uint8_t *in, size_t in_len, uint64_t limit,
		       struct codec_scratch *codec, struct buf *to, struct err *e)
{
	uint64_t cap = u64_min(limit, u64_max(FIRST_GUESS, 4 * (uint64_t)in_len));
	size_t len;
	uint8_t *out;
	int rc;

	for (;; cap = u64_min(limit, cap * GROWTH)) {
		buf_clear(to);
		out = buf_grow(to, (size_t)cap);
		if (!out)
			return err_nomem(e);
		rc = ops->decode(codec, spec, elem_size, in, in_len, out, (size_t)cap, &len, e);
		if (rc == 0)
			to->len = len;
		if (rc != -EBADMSG || cap >= limit)
			return rc;
	}
}

int zr_decode_any(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
		  size_t in_len, uint64_t limit, struct zr_scratch *m, const uint8_t **ret,
		  size_t *ret_len, struct err *e)
{
	char tmp[32];
	bool turn = false;

	for (uint32_t i = chain->n; i-- > 0;) {
		const struct codec_spec *spec = &chain->specs[i];
		const struct codec_ops *ops = codec_find(spec->h5_id);
		struct buf *to = &m->turn[turn];
		int rc;

		if (!ops || !ops->decode)
			return err_set(e, -EOPNOTSUPP, "filter '%s' is not built in",
				       codec_name(spec, tmp, sizeof(tmp)));
		if (ops->check) {
			rc = ops->check(in, in_len, &in_len, e);
			if (rc)
				return rc;
			continue;
		}
		/* what comes out of a compressor may still carry the checksums of others */
		rc = decode_step(ops, spec, elem_size, in, in_len, limit + ZR_SLACK, m->codec, to,
				 e);
		if (rc)
			return rc;
		in = to->data;
		in_len = to->len;
		turn = !turn;
	}
	if (in_len > limit)
		return err_set(e, -EBADMSG, "decoded bytes exceed %" PRIu64, limit);
	*ret = in;
	*ret_len = in_len;
	return 0;
}

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
		rc = zr_decode_any(&at->sh->outer, 1, in, n, limit, m, &out, &len, e);
		if (rc)
			rc = zr_object_blame(s, p, x->object, x->size, rc, e);
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
