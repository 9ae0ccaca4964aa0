/* SPDX-License-Identifier: BSD-3-Clause */
/* stderr_capture.h - captures the output of libraries on standard error. */
#ifndef FUSEFS_DAEMON_STDERR_CAPTURE_H
#define FUSEFS_DAEMON_STDERR_CAPTURE_H

#include <stddef.h>

/* Libraries print on standard error: glibc when it aborts in libhdf5, libfuse and fusermount3 when
 * they cannot mount. Their output is captured so that the user reads our one line. For processes
 * with one thread, because all threads share standard error. */
struct stderr_capture {
	int caught, saved;
};

void stderr_capture_begin(struct stderr_capture *q);
/* stderr_capture_end - text: the output, truncated to cap - 1 bytes. */
void stderr_capture_end(struct stderr_capture *q, char *text, size_t cap);

#endif
