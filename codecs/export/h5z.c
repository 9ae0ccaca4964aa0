/* SPDX-License-Identifier: BSD-3-Clause */
/* h5z.c - one codec as a filter of HDF5's pipeline.
 *
 * HDF5 does not pass the decoded length to a filter. Most formats state it, and a codec reads it
 * before it does anything else; for the others memory grows until it is sufficient. Chunks of one
 * dataset have equal length, so that the length of the last one is the first guess for the next. */
#include "codecs/export/h5z.h"

#include <errno.h>
#include <stdatomic.h>

#include "codecs/core/codec_impl.h"

#define ROOM_MIN ((size_t)4096)
#define GROWTH 4
#define GUESS_RATIO 1024 /* limit of the first guess */

/* One thread's working memory is kept; a second thread allocates its own. */
static _Atomic(struct codec_scratch *) spare;
static _Atomic(size_t) last;

/* A plugin may be unloaded. */
static __attribute__((destructor)) void forget_spare(void)
{
	codec_scratch_free(atomic_exchange(&spare, NULL));
}

/* first_room - the first guess for the decoded length of n bytes. */
static size_t first_room(size_t n, size_t max)
{
	size_t guess = (size_t)u64_min(atomic_load(&last), codec_times(n, GUESS_RATIO));
	size_t room = (size_t)u64_max(u64_max(codec_times(n, GROWTH), guess), ROOM_MIN);

	return (size_t)u64_min(room, max);
}

/* export_h5z_decode - new memory, of which *c->ret_len bytes are the chunk; NULL on failure. */
static uint8_t *export_h5z_decode(const struct codec_ops *ops, struct codec_call *c, size_t max,
				  size_t *ret_size)
{
	const size_t *got = c->ret_len;
	uint8_t *less;
	int rc;

	c->cap = first_room(c->in_len, max);
	for (;;) {
		c->out = malloc(c->cap);
		if (!c->out)
			return NULL;
		rc = ops->decode(c);
		if (rc == 0 && *got > 0)
			break;
		free(c->out);
		if (rc != -ERANGE || c->cap == max)
			return NULL;
		c->cap = (size_t)u64_min(codec_times(c->cap, GROWTH), max);
	}
	atomic_store(&last, *got);
	*ret_size = c->cap;
	if (c->cap - *got <= *got / 4 + ROOM_MIN)
		return c->out;
	/* HDF5 keeps it in its cache of chunks */
	less = realloc(c->out, *got);
	*ret_size = less ? *got : c->cap;
	return less ? less : c->out;
}

static uint8_t *export_h5z_encode(const struct codec_ops *ops, struct codec_call *c, size_t max,
				  size_t *ret_size)
{
	auto_buf out = buf_of(PTRDIFF_MAX);

	c->to = &out;
	if (ops->encode(c) || !buf_ok(&out) || out.len == 0 || out.len > max)
		return NULL;
	*ret_size = out.cap;
	return buf_take(&out, c->ret_len);
}

size_t codec_h5z(const struct codec_ops *ops, size_t max, unsigned flags, size_t n_params,
		 const unsigned *params, size_t n, size_t *size, void **buf)
{
	_Static_assert(sizeof(*params) == sizeof(uint32_t),
		       "parameters are passed as they are");
	const struct codec_spec spec = {
		.h5_id = ops->h5_id,
		.n_params = params ? (uint32_t)u64_min(n_params, UINT16_MAX) : 0,
		.params = params,
		.name = ops->name,
	};
	bool back = (flags & CODEC_H5Z_REVERSE) != 0;
	size_t len = 0, room = 0;
	struct codec_call c = {
		.spec = &spec, .elem_size = 1, .in = *buf, .in_len = n, .ret_len = &len};
	uint8_t *out;

	if (n == 0 || !*buf || !(back ? ops->decode != NULL : ops->encode != NULL))
		return 0;
	c.scratch = atomic_exchange(&spare, NULL);
	if (!c.scratch)
		c.scratch = codec_scratch_new();
	if (!c.scratch)
		return 0;
	if (back)
		out = export_h5z_decode(ops, &c, max, &room);
	else
		out = export_h5z_encode(ops, &c, flags & CODEC_H5Z_OPTIONAL ? n : SIZE_MAX,
					&room);
	codec_scratch_free(atomic_exchange(&spare, c.scratch));
	if (!out)
		return 0;
	free(*buf);
	*buf = out;
	*size = room;
	return len;
}
