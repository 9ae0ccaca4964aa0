/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch.c - says early what readers of a source that is far away will want. Nothing here waits,
 * and what is said binds nobody: the source bounds what it fetches. */
#include "translate/chunkio/chunkio_int.h"

void chunkio_touch(struct chunkio *c, uint32_t array, uint64_t linear, enum prefetch_touch what,
		   bool whole)
{
	uint64_t list[1 + ACCESS_PATTERN_PREFETCH], end;
	struct access_pattern_say say;
	enum plan_kind kind;
	size_t n = 0;

	if (!c->streams || array >= c->n_arrays)
		return;
	kind = c->plans[array].kind;
	end = c->source->ds.arrays[array].n_chunks;
	if (kind == PLAN_HIDE || kind == PLAN_ERROR || linear >= end)
		return;
	array = c->arrays[array].owner;
	say = access_pattern_note(c->streams, array, linear, what);
	if (say.self && (whole || kind != PLAN_PASS || c->plans[array].chain.n > 0))
		list[n++] = linear;
	for (uint32_t i = 0; i < say.n && say.step < end - linear; i++)
		list[n++] = linear += say.step;
	if (n > 0)
		source_want(c->source, array, list, n);
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
