/* SPDX-License-Identifier: BSD-3-Clause */
/* canary.h - deliberate faults, which prove that sanitizers and the like detect them.
 *
 * canary_sing triggers one where NCZARRFS_CANARY="PLACE:KIND" names it, in builds with a sanitizer
 * only; in other builds it does nothing. canary_fault is for test programs. */
#ifndef BASE_PROCESS_CANARY_H
#define BASE_PROCESS_CANARY_H

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/core/util.h"

/* canary_heap - write one byte past an allocation. */
__attribute__((noinline, unused)) static void canary_heap(void)
{
	volatile size_t n = 40;
	volatile char *p = calloc(n, 1);

	if (p)
		p[n] = 1;
	free((void *)(uintptr_t)p);
}

/* canary_undefined - overflow a signed integer. */
__attribute__((noinline, unused)) static void canary_undefined(void)
{
	volatile int v = INT_MAX;

	v = v + 1;
}

/* canary_leak - lose the last pointer to an allocation. */
__attribute__((noinline, unused)) static void canary_leak(void)
{
	for (int i = 0; i < 20; i++) {
		void *volatile p = calloc(77, 1);

		p = NULL;
		(void)p;
	}
}

/* canary_wild - use a wild pointer. */
__attribute__((noinline, unused)) static void canary_wild(void)
{
	volatile uintptr_t at = 64;

	*(volatile int *)at = 1;
}

static inline void *canary_count(void *arg)
{
	int *n = arg;

	for (int i = 0; i < 1000; i++)
		*(volatile int *)n = *n + 1;
	return NULL;
}

/* canary_race - write one variable from two threads. */
__attribute__((noinline, unused)) static void canary_race(void)
{
	static int n;
	pthread_t other;

	if (pthread_create(&other, NULL, canary_count, &n))
		return;
	(void)canary_count(&n);
	(void)pthread_join(other, NULL); /* fault already triggered */
}

/* canary_fault - trigger a fault of this kind. Returns false if there is no such kind. */
static inline bool canary_fault(const char *kind)
{
	if (strcmp(kind, "heap") == 0)
		canary_heap();
	else if (strcmp(kind, "undefined") == 0)
		canary_undefined();
	else if (strcmp(kind, "wild") == 0)
		canary_wild();
	else if (strcmp(kind, "leak") == 0)
		canary_leak();
	else if (strcmp(kind, "race") == 0)
		canary_race();
	else
		return false;
	return true;
}

static inline void canary_sing(const char *place)
{
	const char *asked = NZ_SANITIZED ? getenv("NCZARRFS_CANARY") : NULL;
	size_t n = strlen(place);

	if (asked && strncmp(asked, place, n) == 0 && asked[n] == ':')
		(void)canary_fault(asked + n + 1);
}

#endif
