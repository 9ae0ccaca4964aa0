/* ends.h - before every file of a build with SANITIZE=coverage: processes that end without exit
 * handlers, as children do, and those that are killed write down which lines they ran first. */
#ifndef TESTS_COVERAGE_ENDS_H
#define TESTS_COVERAGE_ENDS_H

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);

static inline _Noreturn void coverage_exit(int status)
{
	__gcov_dump();
	_exit(status);
}

/* coverage_on_term - what coverage_kill sends; a handler that libraries of others do not know. */
static void coverage_on_end(int sig __attribute__((unused)))
{
	coverage_exit(0);
}

__attribute__((constructor)) static void coverage_begin(void)
{
	(void)signal(SIGSTKFLT, coverage_on_end);
}

static inline int coverage_kill(pid_t pid, int sig)
{
	return kill(pid, sig == SIGKILL ? SIGSTKFLT : sig);
}

#define _exit(status) coverage_exit(status)
#define kill(pid, sig) coverage_kill(pid, sig)

#endif
