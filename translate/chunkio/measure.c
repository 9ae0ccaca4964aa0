/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.c - makes many chunks to know their sizes: threads of its own take one after another, and
 * the caller is one of them. What they make goes through the cache, whose budget holds. */
#include "translate/chunkio/chunkio_int.h"

#include <errno.h>

#include "base/os/thread.h"

#define HELPERS_MAX 64

struct measure {
	struct chunkio *c;
	uint32_t array;
	pthread_mutex_t lock; /* of next */
	uint64_t next, end, wanted;
};

/* measure_take - take the next existing chunk that no other thread has taken. */
static bool measure_take(struct measure *m, uint64_t *ret)
{
	bool found;
	LOCK_SCOPE(&m->lock);

	found = m->next < m->end && chunkio_next(m->c, m->array, m->next, ret, NULL) == 0 &&
		*ret < m->end;
	m->next = found ? *ret + 1 : m->end;
	if (found && *ret >= m->wanted) {
		m->wanted = *ret + ACCESS_PATTERN_PREFETCH / 2;
		chunkio_want_run(m->c->source, m->array, *ret, ACCESS_PATTERN_PREFETCH);
	}
	return found;
}

static void *measure_work(void *arg)
{
	struct measure *m = arg;
	uint64_t linear, size;

	while (measure_take(m, &linear))
		if (chunkio_stat(m->c, m->array, linear, &size, NULL) == -ESTALE)
			break; /* all other errors concern this chunk, and its read reports them */
	return NULL;
}

void chunkio_measure(struct chunkio *c, uint32_t array, uint64_t from, uint64_t n)
{
	struct measure m = {.c = c, .array = array, .next = from};
	pthread_t ids[HELPERS_MAX];
	uint32_t n_ids, started = 0;

	if (array >= c->n_arrays || c->plans[array].kind != PLAN_ENCODE || n < 2)
		return;
	if (ckd_add(&m.end, from, n))
		m.end = UINT64_MAX;
	(void)pthread_mutex_init(&m.lock, NULL); /* cannot fail with default attributes */
	n_ids = c->threads < HELPERS_MAX ? c->threads : HELPERS_MAX;
	/* fewer helpers than wanted, or none, do as well */
	while (started < n_ids && thread_start(&ids[started], measure_work, &m) == 0)
		started++;
	(void)measure_work(&m);
	for (uint32_t i = 0; i < started; i++)
		(void)pthread_join(ids[i], NULL);
	(void)pthread_mutex_destroy(&m.lock);
}
