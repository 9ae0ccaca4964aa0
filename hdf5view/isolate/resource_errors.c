/* SPDX-License-Identifier: BSD-3-Clause */
/* resource_errors.c - detects shortages of memory, files or input while a library was at work.
 *
 * The libraries do not report them: libhdf5 and libhdf4 leave out objects that they had no memory
 * for, call a file bad that could not be opened or read, or crash. But the failure below them
 * leaves its number in errno, which they hardly touch, so errno is checked after each library
 * call. A result that was made during a shortage says nothing about the file.
 *
 * A damaged file may claim more memory than any machine has. Then small allocations still succeed,
 * and the shortage recurs when a new process gets the same request. */
#include "hdf5view/isolate/isolated_source.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/process/sandbox.h"
#include "base/core/util.h"

#define SOME_BYTES ((size_t)1 << 20)

/* Such a process has one thread; the signal handler reads this. */
static volatile sig_atomic_t failed; /* errno */
static bool large; /* a large allocation failed while small ones succeed */
static bool few;   /* EMFILE comes from this process's own limit */

/* noticed - whether an errno means that this machine failed. Errors that are retried do not
 * count. */
static bool noticed(int errnum)
{
	return errnum == ENOMEM || errnum == ENFILE || errnum == EIO ||
	       (errnum == EMFILE && !few);
}

/* some_memory - whether a small allocation succeeds. */
static bool some_memory(void)
{
	void *volatile p = malloc(SOME_BYTES); /* volatile: the compiler must not remove the
					        * call */
	bool got = p != NULL;

	free(p);
	return got;
}

void resource_errors_note(void)
{
	if (errno == ENOMEM && !failed && some_memory())
		large = true;
	else if (!failed && noticed(errno))
		failed = errno;
	errno = 0;
}

void resource_errors_reset(void)
{
	failed = 0;
	large = false;
	errno = 0;
}

void resource_errors_ignore_emfile(void)
{
	resource_errors_note();
	few = true;
}

int isolated_was_short(int rc, bool again, struct err *e)
{
	resource_errors_note();
	if (failed && !err_is_transient(rc)) {
		*e = (struct err)ERR_INIT;
		return err_sys(e, failed, "while the library read it");
	}
	return large && !failed && !again ? RETRY_NOMEM : rc;
}

/* on_crash - exit if a shortage explains the crash; else the signal takes its default action. */
static void on_crash(int sig NZ_UNUSED)
{
	if (failed || large || noticed(errno))
		_exit(EXIT_NOMEM_CRASH);
}

void isolated_look_at_crashes(void)
{
	static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	struct sigaction act = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};

	if (sandbox_off()) /* keep the sanitizers' reports */
		return;
	(void)sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
		(void)sigaction(deaths[i], &act, NULL); /* fails for none of these */
}
