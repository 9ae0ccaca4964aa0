/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox_int.h - shared by sandbox_seccomp.c, which has the lists of system calls, and sandbox.c,
 * which has the rest of the sandbox. */
#ifndef BASE_PROCESS_SANDBOX_INT_H
#define BASE_PROCESS_SANDBOX_INT_H

#include "base/process/sandbox.h"

/* Sanitizers and valgrind open files, map shadow memory and start programs: the exceptions for them
 * are defined here. SANDBOX_OFF: a build with sanitizers. */
#define SANDBOX_OFF NZ_SANITIZED

struct sock_fprog;

/* calls_prepare - the filter of a kind, of static lifetime; NULL if there is none. Any thread. */
const struct sock_fprog *calls_prepare(unsigned may);
/* calls_enter - install it in this process, after PR_SET_NO_NEW_PRIVS. Returns 0, -ENOSYS where the
 * kernel or a container denies it, -errno. */
int calls_enter(unsigned may) NZ_MUST_USE;
/* calls_known - whether this kernel supports filters. */
bool calls_known(void);

#endif
