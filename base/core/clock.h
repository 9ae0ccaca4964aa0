/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - monotonic time for waits and ages, wall-clock time for files. No call can fail. */
#ifndef BASE_CORE_CLOCK_H
#define BASE_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_S INT64_C(1000000000)

/* clock_ns_of - convert to nanoseconds; clock_timespec - the reverse, for any sign. */
static inline int64_t clock_ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * CLOCK_NS_PER_S + t->tv_nsec;
}

static inline struct timespec clock_timespec(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / CLOCK_NS_PER_S, .tv_nsec = ns % CLOCK_NS_PER_S};

	if (t.tv_nsec < 0) {
		t.tv_nsec += CLOCK_NS_PER_S;
		t.tv_sec--;
	}
	return t;
}

/* clock_ns, clock_ms - CLOCK_MONOTONIC in nanoseconds, in milliseconds. */
static inline int64_t clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return clock_ns_of(&t);
}

static inline int64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}

/* clock_after - CLOCK_MONOTONIC in ns nanoseconds from now, >= 0: the deadline for
 * pthread_cond_timedwait on a condition of that clock. */
static inline struct timespec clock_after(int64_t ns)
{
	int64_t t = clock_ns();

	return clock_timespec(ns > INT64_MAX - t ? INT64_MAX : t + ns);
}

/* clock_wall - CLOCK_REALTIME, for file timestamps. */
static inline struct timespec clock_wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return t;
}

#endif
