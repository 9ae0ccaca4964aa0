/* SPDX-License-Identifier: BSD-3-Clause */
/* open_beneath.h - opening what is below a directory, and nothing else, whatever links lie
 * there. */
#ifndef BASE_OS_OPEN_BENEATH_H
#define BASE_OS_OPEN_BENEATH_H

#include "base/core/util.h"

/* open_beneath - open path, relative to dirfd, without ever leaving dirfd. "" is dirfd itself.
 * flags: as for open, without O_CREAT. O_CLOEXEC, O_NONBLOCK and O_NOCTTY are added, so that a
 * pipe without a writer does not hang and a terminal is not taken over; whether what was opened
 * is a regular file is for the caller to see. With O_PATH | O_NOFOLLOW a link is opened itself.
 *
 * Links are followed as long as they stay below dirfd. Kernels before 5.6, and sandboxes that
 * do not know openat2, cannot promise that: there every link is refused with -ELOOP, and ".."
 * with -EXDEV.
 *
 * Returns a descriptor, or a negative errno: -EXDEV path leads outside (an absolute path or link,
 * or too many ".."); -ELOOP too many links, or one that leads through /proc; -ENOENT the path or
 * what a link on it leads to. */
int open_beneath(int dirfd, const char *path, int flags) NZ_MUST_USE;

/* remove_beneath - remove an entry of a directory, and all that is in it when it is one, on the way
 * down by descriptors alone: links are removed, never followed, also when somebody puts one in the
 * place of a directory meanwhile. What cannot be removed stays. */
void remove_beneath(int at, const char *name);

#endif
