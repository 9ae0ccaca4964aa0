/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.c - runs the filters of a chain: backwards to decode, forwards to frame or encode.
 *
 * A step reads the result of the one before and writes to one of two scratch buffers in turn; the
 * last one writes to the caller's memory. Trailers that are only checksums are checked in place. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_CAP 32
#define ROOM_MIN ((size_t)4096) /* first size of an intermediate result */
#define GROWTH 4

int (*codec_decode_apart)(const struct codec_ops *ops, const struct codec_call *c);

/* undo - undo one filter, in this process or in another. */
static int undo(const struct codec_ops *ops, const struct codec_call *c)
{
	return codec_decode_apart && !ops->origin ? codec_decode_apart(ops, c) : ops->decode(c);
}

static bool skipped(uint32_t mask, uint32_t i)
{
	return mask == CODEC_ALL_SKIPPED || (mask >> i & 1) != 0;
}

int codec_chain_check(const struct codec_chain *chain, int code, struct err *e)
{
	if (chain->n <= CODEC_CHAIN_MAX)
		return 0;
	return err_set(e, code, "%" PRIu32 " filters given, at most %d are supported", chain->n,
		       CODEC_CHAIN_MAX);
}

/* find_all - the codecs of a chain; those that the mask skips need not be available. */
static int find_all(const struct codec_chain *chain, uint32_t mask,
		    const struct codec_ops **ret_ops, struct err *e)
{
	char tmp[NAME_CAP];
	int rc = codec_chain_check(chain, -EBADMSG, e);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < chain->n; i++) {
		ret_ops[i] = codec_find(chain->specs[i].h5_id);
		if (!skipped(mask, i) && (!ret_ops[i] || !ret_ops[i]->decode))
			return err_set(e, -EOPNOTSUPP,
				       "filter '%s' (id %" PRIu32 ") is not built in",
				       codec_name(&chain->specs[i], tmp, sizeof(tmp)),
				       chain->specs[i].h5_id);
	}
	return 0;
}

/* caps_of - ret[i]: the most bytes that the input of filter i can have had when out_len bytes went
 * into filter 0. */
static int caps_of(const struct codec_chain *chain, const struct codec_ops *const *ops,
		   uint32_t mask, size_t out_len, size_t *ret, struct err *e)
{
	uint64_t cap = out_len;

	for (uint32_t i = 0; i < chain->n; i++) {
		ret[i] = (size_t)cap;
		if (skipped(mask, i) || (!ops[i]->stored_max && !ops[i]->framed_size))
			continue;
		cap = cap ? cap : 1; /* empty input has output, too */
		cap = ops[i]->stored_max ? ops[i]->stored_max(&chain->specs[i], cap)
					 : ops[i]->framed_size(cap);
		if (cap == 0 || cap > SIZE_MAX)
			return err_set(e, -EBADMSG, "chunk length %zu is too large", out_len);
	}
	return 0;
}

/* pipeline_step - undo one filter into scratch memory `turn`: first with room for `start` bytes,
 * then with more, up to max, so that memory depends on the data and not on the chain's upper
 * bound. */
static int pipeline_step(const struct codec_ops *ops, struct codec_call *c, size_t start,
			 size_t max, unsigned int turn)
{
	int rc;

	c->cap = start < max ? start : max;
	for (;;) {
		c->out = codec_scratch_get(c->scratch, turn, c->cap);
		if (!c->out)
			return err_nomem(c->e);
		rc = undo(ops, c);
		if (rc != -ERANGE || c->cap == max)
			return rc;
		c->cap = (size_t)u64_min(codec_times(c->cap, GROWTH), max);
	}
}

/* decode_steps - undo the filters of a chain. The last one writes to out, out_len bytes; NULL: to
 * scratch memory, at most out_len bytes. The result is at c->in. */
static int decode_steps(const struct codec_chain *chain, uint32_t mask, struct codec_call *c,
			uint8_t *out, size_t out_len)
{
	const struct codec_ops *ops[CODEC_CHAIN_MAX];
	size_t caps[CODEC_CHAIN_MAX];
	uint32_t todo = 0;
	unsigned int turn = 0;
	int rc = find_all(chain, mask, ops, c->e);

	rc = rc ? rc : caps_of(chain, ops, mask, out_len, caps, c->e);
	for (uint32_t i = 0; !rc && i < chain->n; i++)
		todo += !skipped(mask, i);

	for (uint32_t i = chain->n; !rc && i-- > 0;) {
		if (skipped(mask, i))
			continue;
		todo--;
		c->spec = &chain->specs[i];
		if (ops[i]->check) {
			rc = ops[i]->check(c);
		} else if (out && todo == 0) {
			c->out = out;
			c->cap = out_len;
			rc = undo(ops[i], c);
			c->in = out;
		} else {
			size_t guess = codec_times(out ? out_len / 2 : c->in_len, GROWTH);

			rc = pipeline_step(ops[i], c, ROOM_MIN + guess, caps[i], turn);
			c->in = c->out;
			turn = !turn;
		}
		c->in_len = *c->ret_len;
	}
	return rc;
}

int codec_chain_decode(const struct codec_chain *chain, uint32_t mask, size_t elem_size,
		       const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len,
		       struct codec_scratch *scratch, struct err *e)
{
	size_t got = 0;
	struct codec_call c = {.scratch = scratch,
			       .elem_size = elem_size,
			       .in = in,
			       .in_len = in_len,
			       .ret_len = &got,
			       .e = e};
	int rc = decode_steps(chain, mask, &c, out, out_len);

	if (rc == -ERANGE && e) /* it gave more than its array can have stored */
		e->code = -EBADMSG;
	if (rc)
		return rc == -ERANGE ? -EBADMSG : rc;
	if (c.in_len != out_len)
		return err_set(e, -EBADMSG, "the chunk decodes to %zu bytes, expected %zu",
			       c.in_len, out_len);
	if (c.in != out && out_len > 0)
		memcpy(out, c.in, out_len);
	return 0;
}

int codec_chain_decode_any(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
			   size_t in_len, size_t max, struct codec_scratch *scratch,
			   const uint8_t **ret, size_t *ret_len, struct err *e)
{
	size_t got = 0;
	struct codec_call c = {.scratch = scratch,
			       .elem_size = elem_size,
			       .in = in,
			       .in_len = in_len,
			       .ret_len = &got,
			       .e = e};
	int rc = decode_steps(chain, 0, &c, NULL, max);

	if (rc)
		return rc;
	if (c.in_len > max)
		return err_set(e, -ERANGE, "a chunk of %zu bytes exceeds %zu", c.in_len, max);
	*ret = c.in;
	*ret_len = c.in_len;
	return 0;
}

uint64_t codec_chain_framed_size(const struct codec_chain *chain, uint64_t n)
{
	if (chain->n > CODEC_CHAIN_MAX)
		return 0;
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || !ops->framed_size || !ops->frame)
			return 0;
		n = ops->framed_size(n);
		if (n == 0)
			return 0;
	}
	return n;
}

int codec_chain_frame(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
		      size_t n, uint8_t *out, struct err *e)
{
	auto_free uint8_t *held = NULL;

	if (n == 0 && chain->n == 0)
		return 0;
	if (codec_chain_framed_size(chain, n) == 0 && n > 0)
		return err_set(
			e, -EOPNOTSUPP,
			"%zu bytes cannot be stored in the uncompressed form of these filters",
			n);
	if (chain->n == 0)
		memcpy(out, in, n);

	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);
		uint64_t size;
		uint8_t *to = out;

		if (!ops || !ops->frame || !ops->framed_size)
			return err_set(e, -EOPNOTSUPP,
				       "these filters have no uncompressed form");
		size = ops->framed_size(n);
		if (i + 1 < chain->n) {
			to = size <= SIZE_MAX ? alloc_array((size_t)size, 1) : NULL;
			if (!to)
				return err_nomem(e);
		}
		ops->frame(&(const struct codec_call){.spec = &chain->specs[i],
						      .elem_size = elem_size,
						      .in = in,
						      .in_len = n,
						      .out = to});
		free(held);
		held = to == out ? NULL : to;
		in = to;
		n = (size_t)size;
	}
	return 0;
}

uint32_t codec_chain_without_sum(struct codec_chain *chain)
{
	const struct codec_ops *last =
		chain->n > 0 ? codec_find(chain->specs[chain->n - 1].h5_id) : NULL;

	if (!last || last->trailer == 0)
		return 0;
	chain->n--;
	return last->trailer;
}

/* chain_can - whether all codecs of a chain are available, and can decode or encode. */
static bool chain_can(const struct codec_chain *chain, bool encode)
{
	for (uint32_t i = 0; i < chain->n && chain->n <= CODEC_CHAIN_MAX; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || (encode ? !ops->encode : !ops->decode))
			return false;
	}
	return chain->n <= CODEC_CHAIN_MAX;
}

bool codec_chain_decodable(const struct codec_chain *chain)
{
	return chain_can(chain, false);
}

bool codec_chain_encodable(const struct codec_chain *chain)
{
	return chain_can(chain, true);
}

int codec_chain_encode(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
		       size_t n, struct codec_scratch *scratch, struct buf *out, struct err *e)
{
	struct codec_call c = {
		.scratch = scratch, .elem_size = elem_size, .in = in, .in_len = n, .e = e};
	int rc = codec_chain_check(chain, -EOPNOTSUPP, e);

	if (!rc && chain->n == 0 && n > 0)
		buf_put(out, in, n);

	for (uint32_t i = 0; !rc && i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);
		char tmp[NAME_CAP];

		c.spec = &chain->specs[i];
		c.to = i + 1 < chain->n ? &scratch->turn[i % 2] : out;
		if (!ops || !ops->encode) {
			rc = err_set(e, -EOPNOTSUPP, "filter '%s' cannot be encoded",
				     codec_name(c.spec, tmp, sizeof(tmp)));
			break;
		}
		if (c.to != out)
			buf_clear(c.to);
		rc = ops->encode(&c);
		c.in = c.to->data;
		c.in_len = c.to->len;
	}
	if (!rc && !buf_ok(out))
		rc = err_nomem(e);
	return rc;
}
