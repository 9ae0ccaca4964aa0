/* SPDX-License-Identifier: BSD-3-Clause */
/* child_query.h - calls that may hang in the kernel, in a child process with a time limit. */
#ifndef FUSEFS_DAEMON_CHILD_QUERY_H
#define FUSEFS_DAEMON_CHILD_QUERY_H

#include "base/core/buf.h"

/* child_query - append to out what fn appends to its answer, in a child process that this process,
 * which has one thread, forks. Returns 0, with an incomplete answer if the child died; -ETIMEDOUT
 * after ms milliseconds; -errno with *e if no child could be started. */
int child_query(void (*fn)(const void *arg, struct buf *answer), const void *arg, int ms,
		struct buf *out, struct err *e) NZ_MUST_USE;

#endif
