/* SPDX-License-Identifier: BSD-3-Clause */
/* child_query.c - calls that may hang in the kernel. A call to a server that hangs cannot be
 * cancelled without killing its process. */
#include "fusefs/daemon/child_query.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"

static void child_query_write(int fd, const struct buf *answer)
{
	size_t done = 0;
	ssize_t n;

	while (buf_ok(answer) && done < answer->len) {
		n = write(fd, answer->data + done, answer->len - done);
		if (n < 0 && errno != EINTR)
			return;
		done += n > 0 ? (size_t)n : 0;
	}
}

/* child_query_read - read the answer to its end. -ETIMEDOUT: it is not complete in time. */
static int child_query_read(int fd, int ms, struct buf *out)
{
	const int64_t end = clock_ms() + ms;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char data[4096];
	int64_t left;
	ssize_t n;

	while ((left = end - clock_ms()) > 0) {
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(fd, data, sizeof(data));
		if (n == 0)
			return 0;
		if (n > 0)
			buf_put(out, data, (size_t)n);
	}
	return -ETIMEDOUT;
}

int child_query(void (*fn)(const void *arg, struct buf *answer), const void *arg, int ms,
		struct buf *out, struct err *e)
{
	struct buf answer;
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		buf_init(&answer, out->max);
		fn(arg, &answer);
		child_query_write(fds[1], &answer);
		_exit(0);
	}
	rc = pid < 0 ? err_sys(e, errno, "start a process") : 0;
	(void)close(fds[1]);
	rc = rc ? rc : child_query_read(fds[0], ms, out);
	(void)close(fds[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL); /* it has answered, or never will */
		(void)waitpid(pid, NULL, rc < 0 ? WNOHANG : 0);
	}
	return rc;
}
