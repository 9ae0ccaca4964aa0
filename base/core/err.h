/* SPDX-License-Identifier: BSD-3-Clause */
/* err.h - error values: an int for the program, one line of text for the user.
 *
 * Every function that can fail returns 0 or a negative errno and takes `struct err *e` last.
 * The object is the caller's, needs no release and no allocation, may be NULL, and is written
 * only on failure. Text: lower case, no full stop, names in single quotes, numbers with both
 * sides ("length 7 exceeds 5").
 *
 * The codes and what they mean here:
 *   -ENOENT      proven absence, and nothing else
 *   -EBADMSG     corrupt or undecodable data
 *   -EOPNOTSUPP  a feature or codec that is not supported
 *   -ERANGE      a limit was exceeded
 *   -EROFS       no write operation
 *   -ESTALE      the source changed under us
 *   -ENOMEM, -EIO, and whatever errno a system call gave
 */
#ifndef BASE_CORE_ERR_H
#define BASE_CORE_ERR_H

#include <stdarg.h>

#include "base/core/util.h"

#define ERR_TEXT_MAX 400

struct err {
	int code;                /* negative errno, 0 while nothing failed */
	char msg[ERR_TEXT_MAX];  /* NUL-terminated, truncated when too long, never with newlines */
};

#define ERR_INIT {.code = 0, .msg = ""}

/* err_set - record `code` and a message, with '?' for each control character. Returns code, so that
 * `return err_set(e, -EIO, ...)` works. e may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...) NZ_PRINTF(3, 4);

/* err_wrap - put "<text>: " in front of e's message and set e->code to `code`, in most cases the
 * code of the failure itself. Returns code, whether or not e is NULL. */
int err_wrap(struct err *e, int code, const char *fmt, ...) NZ_PRINTF(3, 4);

/* err_sys - record -errnum with "<text>: <strerror>". Returns -errnum. */
int err_sys(struct err *e, int errnum, const char *fmt, ...) NZ_PRINTF(3, 4);

/* err_nomem - record -ENOMEM. Returns -ENOMEM. */
int err_nomem(struct err *e);

/* err_is_transient - whether a code means that this machine was short of a resource, and nothing
 * about a file or a dataset: it must not be cached as a property of them, and the next attempt may
 * succeed. */
bool err_is_transient(int code);

#endif
