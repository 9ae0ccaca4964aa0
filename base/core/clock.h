/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the time: monotonic for waits and ages, wall-clock for files. No call can fail. */
#ifndef BASE_CORE_CLOCK_H
#define BASE_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_ns, clock_ms - CLOCK_MONOTONIC in nanoseconds, in milliseconds. */
int64_t clock_ns(void);
int64_t clock_ms(void);
/* clock_ns_of - a time in nanoseconds; clock_timespec - the reverse, for any sign. */
int64_t clock_ns_of(const struct timespec *t);
struct timespec clock_timespec(int64_t ns);
/* clock_after - the time of CLOCK_MONOTONIC that is ns from now, for pthread_cond_timedwait on a
 * condition of that clock. ns >= 0. */
struct timespec clock_after(int64_t ns);
/* clock_wall - CLOCK_REALTIME, as file systems stamp files. */
struct timespec clock_wall(void);

#endif
