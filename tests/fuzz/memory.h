/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - how much memory is allocated at once, in programs with AddressSanitizer. In others
 * nothing is counted. One thread. */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/core/util.h"

/* Of the sanitizer's run-time library; its headers do not come with every compiler. */
__attribute__((weak)) int
__sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					  void (*on_free)(const volatile void *));
__attribute__((weak)) size_t __sanitizer_get_allocated_size(const volatile void *p);

static size_t memory_now, memory_start, memory_peak; /* bytes */

static void memory_on_malloc(const volatile void *p NZ_UNUSED, size_t n)
{
	memory_now += n;
	if (memory_now > memory_peak)
		memory_peak = memory_now;
}

static void memory_on_free(const volatile void *p)
{
	size_t n = p ? __sanitizer_get_allocated_size(p) : 0;

	memory_now -= n < memory_now ? n : memory_now; /* some are from before */
}

/* memory_watch - count from here. */
static inline void memory_watch(void)
{
	static bool installed;

	if (!installed && __sanitizer_install_malloc_and_free_hooks)
		(void)__sanitizer_install_malloc_and_free_hooks(memory_on_malloc,
								memory_on_free);
	installed = true;
	memory_start = memory_peak = memory_now;
}

/* memory_most - bytes that there were at once since memory_watch, besides those before it. */
static inline size_t memory_most(void)
{
	return memory_peak - memory_start;
}

#endif
