/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch.c - prefetches chunks: from a remote source, and in worker threads if they have to be
 * decoded or encoded. No function waits. Requests are hints: the source limits how much it fetches,
 * the cache how much is prefetched. */
#include "translate/chunkio/chunkio_int.h"

struct access_pattern_say chunkio_touch(struct chunkio *c, uint32_t array, uint64_t linear,
					enum prefetch_touch what, bool whole)
{
	uint64_t list[1 + ACCESS_PATTERN_PREFETCH], end;
	struct access_pattern_say say = {.n = 0};
	enum plan_kind kind;
	size_t n = 0;

	if (!c->source->remote || array >= c->n_arrays)
		return say;
	kind = c->plans[array].kind;
	end = c->source->ds.arrays[array].n_chunks;
	if (kind == PLAN_HIDE || kind == PLAN_ERROR || linear >= end)
		return say;
	array = c->arrays[array].owner;
	say = access_pattern_note(c->pattern, array, linear, what);
	if (say.self && (whole || kind != PLAN_PASS || c->plans[array].chain.n > 0))
		list[n++] = linear;
	for (uint32_t i = 0; i < say.n && say.step < end - linear; i++)
		list[n++] = linear += say.step;
	if (n > 0)
		source_want(c->source, array, list, n);
	return say;
}

void chunkio_hint(struct chunkio *c, uint32_t array, uint64_t linear, enum prefetch_touch what,
		  struct access_pattern_say said)
{
	uint32_t owner = c->arrays[array].owner, depth = c->arrays[owner].depth;
	const uint64_t end = c->source->ds.arrays[owner].n_chunks;

	if (!c->ahead || depth == 0)
		return;
	if (!c->source->remote)
		said = access_pattern_note(c->pattern, owner, linear, what);
	if (said.self && what == PREFETCH_STAT && !cache_has(c->cache, owner, linear))
		prefetch_push(c->ahead, owner, linear);
	for (uint32_t i = 0; said.n > 0 && i < depth; i++) {
		/* of a remote source, finding out which one is there may cost more than asking */
		if (c->source->remote || said.step > 1) {
			if (said.step >= end - linear)
				return;
			linear += said.step;
		} else if (source_next(c->source, owner, linear + 1, &linear, NULL) < 0) {
			return;
		}
		if (!cache_has(c->cache, owner, linear))
			prefetch_push(c->ahead, owner, linear);
	}
}

void chunkio_want_run(struct source *s, uint32_t array, uint64_t from, uint64_t n)
{
	uint64_t list[ACCESS_PATTERN_PREFETCH], end = s->ds.arrays[array].n_chunks;
	size_t k;

	if (!s->remote || from >= end)
		return;
	end = from + u64_min(n, end - from);
	while (from < end) {
		for (k = 0; k < ACCESS_PATTERN_PREFETCH && from < end; k++)
			list[k] = from++;
		source_want(s, array, list, k);
	}
}
