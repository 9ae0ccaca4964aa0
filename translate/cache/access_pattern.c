/* SPDX-License-Identifier: BSD-3-Clause */
/* access_pattern.c - detects strided readers. One mutex protects a few positions of readers.
 *
 * A position begins with one chunk. The adjacent chunk continues it at once. A chunk at a larger
 * distance continues it when the same step was made before: one step may be a coincidence, two
 * equal steps are a pattern. Readers that follow a time series at one point of a map are therefore
 * prefetched, and random readers are not. The number of prefetched chunks grows with the length of
 * the run. */
#include "translate/cache/access_pattern.h"

#include <pthread.h>

#define PLACES 128     /* of all arrays */
#define BEHIND 8       /* steps behind a place that a late piece may come from */
#define FORWARD 2      /* steps ahead of it that still continue it: others took those between */
#define FIRST 4        /* chunks ahead at the first step; doubled with each */
#define STATS_UNREAD 8 /* sizes in a row without a read: a program lists the directory */

struct access_pattern_place {
	uint64_t at, step; /* the furthest chunk; step 0: there is no other yet */
	uint64_t guess; /* with step 0: from the place before, another array's never; 0: none */
	uint64_t used;  /* time of the last touch; 0: the place is free */
	uint32_t array, run;
};

struct access_pattern {
	pthread_mutex_t lock;
	uint64_t now;
	uint8_t *stats; /* n_arrays: sizes since the last read; STATS_UNREAD: no program reads */
	struct access_pattern_place places[PLACES];
};

struct access_pattern *access_pattern_new(uint32_t n_arrays)
{
	struct access_pattern *s = alloc_array(1, sizeof(*s));

	if (!s)
		return NULL;
	s->stats = alloc_array(n_arrays, 1);
	if (!s->stats) {
		free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < n_arrays; i++)
		s->stats[i] = STATS_UNREAD;
	(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes */
	return s;
}

void access_pattern_free(struct access_pattern *s)
{
	if (!s)
		return;
	(void)pthread_mutex_destroy(&s->lock);
	free(s->stats);
	free(s);
}

/* access_pattern_behind - whether k is where the place was a moment ago, or is. */
static bool access_pattern_behind(const struct access_pattern_place *p, uint64_t k)
{
	uint64_t step = p->step ? p->step : 1, back = p->at - k;

	return k <= p->at && back / step <= (p->step ? BEHIND : 0) && back % step == 0;
}

/* continues - whether k is the next one of a place; then its step. */
static bool continues(const struct access_pattern_place *p, uint64_t k, uint64_t *ret_step)
{
	uint64_t way = k - p->at;

	if (k <= p->at)
		return false;
	*ret_step = p->step ? p->step : 1;
	if (way % *ret_step == 0 && way / *ret_step <= (p->step ? FORWARD : 1))
		return true;
	*ret_step = p->guess;
	return p->step == 0 && way == p->guess;
}

/* begin_locked - begin a new position in the least recently used entry. before: the array's latest
 * position, or NULL. */
static void begin_locked(struct access_pattern *s, uint32_t array, uint64_t k,
			 const struct access_pattern_place *before)
{
	uint64_t guess = before && k > before->at ? k - before->at : 0;
	struct access_pattern_place *p = &s->places[0];

	for (size_t i = 1; i < PLACES; i++)
		if (s->places[i].used < p->used)
			p = &s->places[i];
	*p = (struct access_pattern_place){
		.at = k, .guess = guess, .used = s->now, .array = array};
}

/* step_locked - where k leads to. Returns chunks to want ahead. *ret_new: it was not touched just
 * now. */
static uint32_t step_locked(struct access_pattern *s, uint32_t array, uint64_t k,
			    uint64_t *ret_step, bool *ret_new)
{
	struct access_pattern_place *before = NULL;
	uint64_t step;

	s->now++;
	*ret_new = true;
	for (size_t i = 0; i < PLACES; i++) {
		struct access_pattern_place *p = &s->places[i];

		if (!p->used || p->array != array)
			continue;
		if (access_pattern_behind(p, k)) {
			p->used = s->now;
			*ret_new = k != p->at;
			return 0;
		}
		if (continues(p, k, &step)) {
			p->run += p->step ? 1 : step == 1 ? 1 : 2;
			p->at = k;
			p->step = *ret_step = step;
			p->used = s->now;
			return p->run > 4 ? ACCESS_PATTERN_PREFETCH
					  : (uint32_t)FIRST << (p->run - 1);
		}
		if (p->step == 0 && (!before || p->used > before->used))
			before = p;
	}
	begin_locked(s, array, k, before);
	return 0;
}

struct access_pattern_say access_pattern_note(struct access_pattern *s, uint32_t array,
					      uint64_t linear, enum prefetch_touch what)
{
	struct access_pattern_say say = {.n = 0};
	bool fresh = false;

	(void)pthread_mutex_lock(&s->lock);
	if (what == PREFETCH_READ)
		s->stats[array] = 0;
	else if (s->stats[array] < STATS_UNREAD)
		s->stats[array]++;
	if (s->stats[array] < STATS_UNREAD) {
		say.n = step_locked(s, array, linear, &say.step, &fresh);
		say.self = fresh;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return say;
}

bool access_pattern_passed(struct access_pattern *s, uint32_t array, uint64_t linear)
{
	bool passed = false, coming = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < PLACES && !coming; i++) {
		const struct access_pattern_place *p = &s->places[i];

		if (!p->used || p->array != array)
			continue;
		if (p->at > linear)
			passed = true;
		else
			coming = (linear - p->at) / (p->step ? p->step : 1) <=
				 ACCESS_PATTERN_PREFETCH;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return passed && !coming;
}
