/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - before every file of a build with SANITIZE=coverage: processes that end without exit
 * handlers, as children do, and those that are killed by their server or end with it, write down
 * which lines they ran first. */
#ifndef TESTS_COVERAGE_ENDS_H
#define TESTS_COVERAGE_ENDS_H

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define COVERAGE_SECONDS 20 /* for writing them down */

void __gcov_dump(void);

/* coverage_dump - who waits for a child's answer ends it as soon as that has come: a signal in the
 * middle would begin the same files once more and leave half of them. A child that confined itself
 * may have no descriptor free: it needs none of its own any more. */
static inline void coverage_dump(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGALRM);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	__gcov_dump();
}

static inline _Noreturn void coverage_exit(int status)
{
	coverage_dump();
	_exit(status);
}

static inline void coverage_on_end(int sig)
{
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(COVERAGE_SECONDS); /* what was interrupted may hold a lock that is needed */
	coverage_dump();
	(void)kill(getpid(), SIGKILL); /* as who waits for it expects */
	_exit(128 + sig);
}

/* coverage_kill - SIGKILL becomes one that can be answered. */
static inline int coverage_kill(pid_t pid, int sig)
{
	return kill(pid, sig == SIGKILL ? SIGSTKFLT : sig);
}

/* coverage_sigaction - a child makes all signals plain; what ends it is not. */
static inline int coverage_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction own;

	if ((sig != SIGSTKFLT && sig != SIGIO) || !act || act->sa_handler != SIG_DFL)
		return sigaction(sig, act, old);
	own = *act;
	own.sa_handler = coverage_on_end;
	return sigaction(sig, &own, old);
}

#define _exit(status) coverage_exit(status)
#define kill(pid, sig) coverage_kill(pid, sig)
#define sigaction(sig, act, old) coverage_sigaction(sig, act, old)

#endif
