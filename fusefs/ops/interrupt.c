/* SPDX-License-Identifier: BSD-3-Clause */
/* interrupt.c - tells whether the program still waits for a request that takes long, because it
 * waits for a remote server or assembles chunks.
 *
 * The kernel reports an interrupt when the program gets a signal of any kind: the end of a child, a
 * profiler's timer, the scheduler of a language runtime. To cancel the request then would be an
 * error without a cause. The kernel also reports it only once, and only to a thread that is free to
 * receive it. Therefore the waiting thread itself checks, ten times a second, for a signal that
 * ends the program: a fatal signal stays pending in the thread that the kernel holds in the
 * request. If the program is not visible (it is in another namespace), the kernel's report is
 * used. */
#include "fusefs/ops/request_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_BYTES = 4096 };

/* signals_of - parse the signal set behind a name ("SigPnd:") in /proc/PID/status. */
static bool signals_of(const char *text, const char *name, uint64_t *ret)
{
	const char *p = strstr(text, name);
	uint64_t v = 0;

	if (!p)
		return false;
	for (p += strlen(name); *p == '\t' || *p == ' '; p++)
		continue;
	for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	*ret = v;
	return true;
}

int ops_dying(const char *status)
{
	const uint64_t fatal = (uint64_t)1 << (SIGKILL - 1) | (uint64_t)1 << (SIGTERM - 1) |
			       (uint64_t)1 << (SIGINT - 1) | (uint64_t)1 << (SIGQUIT - 1) |
			       (uint64_t)1 << (SIGHUP - 1);
	uint64_t own = 0, shared = 0, blocked = 0;

	if (!signals_of(status, "\nSigPnd:", &own) ||
	    !signals_of(status, "\nShdPnd:", &shared) ||
	    !signals_of(status, "\nSigBlk:", &blocked))
		return -1;
	return ((own | shared) & ~blocked & fatal) != 0;
}

/* unwanted - true if the program of a struct call is about to end. */
static bool unwanted(void *arg)
{
	const struct call *c = arg;
	const struct fuse_ctx *ctx = fuse_req_ctx(c->req);
	char path[64], text[STATUS_BYTES];
	auto_fd int fd = -1;
	ssize_t n = -1;
	int dying = -1;

	if (ctx && ctx->pid > 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)ctx->pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	if (n > 0) {
		text[n] = '\0';
		dying = ops_dying(text);
	}
	return dying < 0 ? fuse_req_interrupted(c->req) != 0 : dying > 0;
}

void ops_stop_begin(struct call *c)
{
	c->stops = c->fs->cancels;
	if (c->stops)
		cancel_begin_if(&c->stop, unwanted, c);
}

void ops_stop_end(struct call *c)
{
	if (c->stops)
		cancel_end(&c->stop);
	c->stops = false;
}
