/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox_int.h - the two halves of the sandbox: sandbox_seccomp.c has the lists of system calls,
 * sandbox.c everything else. */
#ifndef BASE_PROCESS_SANDBOX_INT_H
#define BASE_PROCESS_SANDBOX_INT_H

#include "base/process/sandbox.h"

/* Sanitizers and valgrind open files, map shadow memory and start programs: what differs with them
 * is decided here. SANDBOX_OFF: a build with sanitizers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_OFF 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_OFF 1
#endif
#endif
#ifndef SANDBOX_OFF
#define SANDBOX_OFF 0
#endif

struct sock_fprog;

/* calls_prepare - the filter for a kind, kept for ever; NULL where there is none. Any thread. */
const struct sock_fprog *calls_prepare(unsigned may);
/* calls_enter - install it, for this process. Returns 0, -ENOSYS where the kernel or a container
 * refuses, -errno. PR_SET_NO_NEW_PRIVS was set. */
int calls_enter(unsigned may) NZ_MUST_USE;
/* calls_known - whether this kernel filters at all. */
bool calls_known(void);

#endif
