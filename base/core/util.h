/* SPDX-License-Identifier: BSD-3-Clause */
/* util.h - compiler attributes, checked arithmetic and scope cleanup.
 * Same-width unsigned operands are expected by ckd_*; they return true on overflow. */
#ifndef BASE_CORE_UTIL_H
#define BASE_CORE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define NZ_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NZ_MUST_USE __attribute__((warn_unused_result))
#define NZ_UNUSED __attribute__((unused))

/* NZ_SANITIZED - 1 in a build with sanitizers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NZ_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NZ_SANITIZED 1
#endif
#endif
#ifndef NZ_SANITIZED
#define NZ_SANITIZED 0
#endif

/* C23 names and argument order: ckd_add(&result, a, b). */
#define ckd_add(r, a, b) __builtin_add_overflow((a), (b), (r))
#define ckd_sub(r, a, b) __builtin_sub_overflow((a), (b), (r))
#define ckd_mul(r, a, b) __builtin_mul_overflow((a), (b), (r))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* u64_product - multiply *n by all n_v factors. Returns false if the product would exceed max. */
static inline bool u64_product(uint64_t *n, const uint64_t *v, size_t n_v, uint64_t max)
{
	for (size_t i = 0; i < n_v; i++)
		if (ckd_mul(n, *n, v[i]) || *n > max)
			return false;
	return true;
}

/* BISECT - advance lo to the first `mid` in [lo, hi) for which `before`, an expression of mid that
 * is true up to there, is false; hi if there is none. lo and hi are variables of one type. */
#define BISECT(lo, hi, mid, before)                                                            \
	for (__typeof__(lo) mid, end_ = (hi); (lo) < end_;)                                    \
		if (mid = (lo) + (end_ - (lo)) / 2, (before))                                  \
			(lo) = mid + 1;                                                        \
		else                                                                           \
			end_ = mid

/* alloc_array - zeroed memory for n elements of `size` bytes; NULL when the product overflows
 * or memory is short. n == 0 gives a unique pointer. New: free() it. */
static inline void *alloc_array(size_t n, size_t size)
{
	return calloc(n ? n : 1, size ? size : 1);
}

/* grow_array - make room for at least `want` elements in the array *p (capacity *cap), doubling.
 * Returns 0, or -1 with *p and *cap unchanged when the size overflows or memory is short. */
int grow_array(void *p, size_t *cap, size_t want, size_t size) NZ_MUST_USE;

static inline void auto_free_fn(void *p)
{
	free(*(void **)p);
}

/* close_fd - close a descriptor whose error could not be handled or does not matter, and set it
 * to -1. */
static inline void close_fd(int *fd)
{
	if (*fd < 0)
		return; /* it may be a negative errno */
	(void)close(*fd);
	*fd = -1;
}

/* Freed (closed) when the variable goes out of scope; initialise it (NULL, -1) at once. */
#define auto_free __attribute__((cleanup(auto_free_fn)))
#define auto_fd __attribute__((cleanup(close_fd)))

/* steal - move a pointer out, so that the cleanup does not free it: return steal(&p); */
#define steal(pp)                                                                                \
	__extension__({                                                                          \
		__typeof__(*(pp)) steal_v = *(pp);                                               \
		*(pp) = NULL;                                                                    \
		steal_v;                                                                         \
	})

#endif
