/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.h - start a thread that leaves signals to other threads. */
#ifndef BASE_OS_THREAD_H
#define BASE_OS_THREAD_H

#include <pthread.h>
#include <signal.h>

/* thread_start - start a thread with all signals blocked. The caller's mask stays. Returns 0 or a
 * positive errno value. */
static inline int thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int errnum;

	(void)sigfillset(&all);
	errnum = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (errnum)
		return errnum;
	errnum = pthread_create(ret, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* the mask was valid a moment ago */
	return errnum;
}

#endif
