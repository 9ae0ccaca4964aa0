/* SPDX-License-Identifier: BSD-3-Clause */
/* stderr_capture.h - what libraries print on standard error, caught. */
#ifndef FUSEFS_DAEMON_STDERR_CAPTURE_H
#define FUSEFS_DAEMON_STDERR_CAPTURE_H

#include <stddef.h>

/* Libraries print on standard error, each in its way: glibc when it aborts in libhdf5, libfuse
 * and fusermount3 when they cannot mount. It is caught, so that a user reads our one line. For
 * processes with one thread: standard error is shared by all of them. */
struct stderr_capture {
	int caught, saved;
};

void stderr_capture_begin(struct stderr_capture *q);
/* stderr_capture_end - text: what was printed, cut to cap - 1 bytes. */
void stderr_capture_end(struct stderr_capture *q, char *text, size_t cap);

#endif
