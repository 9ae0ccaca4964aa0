/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - a mutex that is held until the end of the scope, for functions with several exits. */
#ifndef BASE_OS_LOCK_H
#define BASE_OS_LOCK_H

#include <pthread.h>

static inline pthread_mutex_t *lock_scope_take(pthread_mutex_t *m)
{
	(void)pthread_mutex_lock(m); /* cannot fail: an initialised mutex of the default kind */
	return m;
}

static inline void lock_scope_give(pthread_mutex_t *const *m)
{
	(void)pthread_mutex_unlock(*m);
}

#define LOCK_SCOPE_NAME2(line) lock_scope_##line
#define LOCK_SCOPE_NAME(line) LOCK_SCOPE_NAME2(line)

/* LOCK_SCOPE - take a mutex, and release it at the end of the enclosing block. pthread_cond_wait
 * may be called with it. The value of a return statement is computed under the lock. */
#define LOCK_SCOPE(m)                                                                          \
	__attribute__((cleanup(lock_scope_give), unused)) pthread_mutex_t *const               \
	LOCK_SCOPE_NAME(__LINE__) = lock_scope_take(m)

#endif
