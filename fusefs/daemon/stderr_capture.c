/* SPDX-License-Identifier: BSD-3-Clause */
/* stderr_capture.c - redirects standard error to memory for some time. */
#include "fusefs/daemon/stderr_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void stderr_capture_begin(struct stderr_capture *q)
{
	q->caught = memfd_create("stderr", MFD_CLOEXEC);
	q->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (q->caught >= 0 && q->saved >= 0)
		(void)dup2(q->caught, STDERR_FILENO); /* on failure nothing is captured */
}

void stderr_capture_end(struct stderr_capture *q, char *text, size_t cap)
{
	ssize_t n = 0;

	if (q->saved >= 0) {
		(void)dup2(q->saved, STDERR_FILENO);
		(void)close(q->saved);
	}
	if (q->caught >= 0) {
		n = pread(q->caught, text, cap - 1, 0);
		(void)close(q->caught);
	}
	text[n > 0 ? n : 0] = '\0';
}
