/* SPDX-License-Identifier: BSD-3-Clause */
/* cancel.c - cancellation of waits. */
#include "base/os/cancel.h"

#include <errno.h>
#include <time.h>

#include "base/core/clock.h"

#define LOOK_NS ((int64_t)100 * 1000 * 1000) /* between checks for a cancellation */

static _Thread_local struct cancel *current;
static _Atomic bool everything;

void cancel_begin(struct cancel *s)
{
	cancel_begin_if(s, NULL, NULL);
}

void cancel_begin_if(struct cancel *s, bool (*look)(void *arg), void *arg)
{
	atomic_store(&s->asked, false);
	s->outer = current;
	s->look = look;
	s->arg = arg;
	s->next = look ? clock_ns() + LOOK_NS : INT64_MAX;
	current = s;
}

void cancel_end(struct cancel *s)
{
	current = s->outer;
}

struct cancel *cancel_swap(struct cancel *s)
{
	struct cancel *was = current;

	current = s;
	return was;
}

void cancel_request(struct cancel *s)
{
	atomic_store(&s->asked, true);
}

static bool cancel_asked(struct cancel *s)
{
	int64_t now;

	if (atomic_load(&s->asked))
		return true;
	if (!s->look)
		return false;
	now = clock_ns();
	if (now < s->next)
		return false;
	s->next = now + LOOK_NS;
	if (s->look(s->arg))
		atomic_store(&s->asked, true);
	return atomic_load(&s->asked);
}

bool cancel_requested(void)
{
	if (atomic_load(&everything))
		return true;
	for (struct cancel *s = current; s; s = s->outer)
		if (cancel_asked(s))
			return true;
	return false;
}

void cancel_everything(void)
{
	atomic_store(&everything, true);
}

void cancel_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	/* None of these can fail with these arguments. */
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

int cancel_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	const struct timespec ts = clock_timespec(clock_ns() + LOOK_NS);

	if (cancel_requested())
		return -EINTR;
	(void)pthread_cond_timedwait(cond, lock, &ts); /* timed out or woken: check again */
	return cancel_requested() ? -EINTR : 0;
}

int cancel_lock(pthread_mutex_t *lock)
{
	struct timespec until = {0};

	if (pthread_mutex_trylock(lock) == 0)
		return 0;
	do {
		if (cancel_requested())
			return -EINTR;
		until = clock_wall();
		until = clock_timespec(clock_ns_of(&until) + LOOK_NS);
	} while (pthread_mutex_timedlock(lock, &until) != 0);
	return 0;
}
