/* SPDX-License-Identifier: BSD-3-Clause */
/* open_beneath.h - open files below a directory and never outside it, whatever links it
 * contains. */
#ifndef BASE_OS_OPEN_BENEATH_H
#define BASE_OS_OPEN_BENEATH_H

#include "base/core/err.h"

/* open_beneath - open path, relative to dirfd, without leaving dirfd. "" is dirfd itself. flags: as
 * for open, without O_CREAT. O_CLOEXEC, O_NONBLOCK and O_NOCTTY are added, so that a pipe without a
 * writer does not block and a terminal does not become the controlling one; the caller checks
 * whether the result is a regular file. With O_PATH | O_NOFOLLOW a link itself is opened.
 *
 * Links are followed as long as they stay below dirfd. Kernels before 5.6, and sandboxes that do
 * not know openat2, cannot guarantee that: there every link is rejected with -ELOOP, and ".." with
 * -EXDEV.
 *
 * Returns a descriptor, or a negative errno: -EXDEV the path leads outside (an absolute path or
 * link, or too many ".."); -ELOOP too many links, or one that leads through /proc; -ENOENT the
 * path, or the target of a link on it, does not exist. */
int open_beneath(int dirfd, const char *path, int flags) NZ_MUST_USE;

/* remove_beneath - remove an entry of a directory, recursively if it is one. It descends by
 * descriptors only: links are removed, never followed, even if another process replaces a directory
 * by a link meanwhile. Entries that cannot be removed stay. */
void remove_beneath(int at, const char *name);
/* remove_beneath_err - the same, with the first error. A missing entry is none. */
int remove_beneath_err(int at, const char *name, struct err *e) NZ_MUST_USE;

#endif
