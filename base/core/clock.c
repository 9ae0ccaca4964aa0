/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - clock_gettime with clocks that every kernel has. */
#include "base/core/clock.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

int64_t clock_ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

struct timespec clock_timespec(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	if (t.tv_nsec < 0) {
		t.tv_nsec += NS_PER_S;
		t.tv_sec--;
	}
	return t;
}

int64_t clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return clock_ns_of(&t);
}

int64_t clock_ms(void)
{
	return clock_ns() / NS_PER_MS;
}

struct timespec clock_after(int64_t ns)
{
	int64_t t = clock_ns();

	return clock_timespec(ns > INT64_MAX - t ? INT64_MAX : t + ns);
}

struct timespec clock_wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return t;
}
