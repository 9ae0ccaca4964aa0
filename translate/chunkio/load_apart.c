/* load_apart.c - chunks that are decoded in another process: which of them are not tried again.
 *
 * The stored bytes are read into the memory of that process, where they are decoded, so that one
 * copy, of the elements, is all that it costs besides waking somebody up. */
#include <errno.h>

#include "codecs/isolate/decoder.h"
#include "translate/chunkio/chunkio_int.h"

#define TRIES 3 /* chunks of an array that may kill a process */

/* refuse - what killed a process is not given to the next one, and an array that does it again and
 * again is left alone: a hostile file costs only so many processes. */
static int refuse(struct chunkio *c, uint32_t array, uint64_t linear, struct err *e)
{
	unsigned n = 0;
	bool same = false;

	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n_fatal; i++) {
		if (c->fatal[i].array != array)
			continue;
		same |= c->fatal[i].linear == linear;
		n++;
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (same)
		return err_set(e, -EIO,
			       "decoding it crashed or hung before: it is not tried again");
	if (n < TRIES)
		return 0;
	return err_set(e, -EIO,
		       "decoding crashed or hung on %u chunks of the array: no other is tried",
		       n);
}

static void remember(struct chunkio *c, uint32_t array, uint64_t linear)
{
	(void)pthread_mutex_lock(&c->lock);
	/* without memory it is tried again */
	if (grow_array(&c->fatal, &c->c_fatal, c->n_fatal + 1, sizeof(*c->fatal)) == 0)
		c->fatal[c->n_fatal++] =
			(struct chunkio_fatal){.array = array, .linear = linear};
	(void)pthread_mutex_unlock(&c->lock);
}

int chunkio_decode_apart(struct chunkio *c, uint32_t array, uint64_t linear,
			 const struct way *w, uint8_t *out, size_t want, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	const size_t n = (size_t)w->ref.len;
	enum decoder_end end = DECODER_AGAIN;
	int rc = refuse(c, array, linear, e);
	bool again = false;

	for (; rc == 0 && end == DECODER_AGAIN; again = true) {
		struct decoder *d;
		uint8_t *in;

		end = DECODER_DONE;
		rc = decoder_take(&a->chain, n, want, again, &d, &in, e);
		if (rc < 0)
			return rc;
		rc = source_read_stored(c->source, array, linear, &w->ref, 0, in, n, e);
		if (rc == 0)
			rc = decoder_run(d, &a->chain, way_skipped(a, &w->ref), a->type.size,
					 out, &end, e);
		decoder_give(d);
		if (end == DECODER_FATAL)
			remember(c, array, linear);
		if (end == DECODER_AGAIN)
			rc = 0;
	}
	return rc;
}
