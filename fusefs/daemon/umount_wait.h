/* SPDX-License-Identifier: BSD-3-Clause */
/* umount_wait.h - the end of a mount: unmounting returns before the last commit is complete and the
 * source is released. To wait for that, get the server's processes before unmounting, and wait for
 * them. */
#ifndef FUSEFS_DAEMON_UMOUNT_WAIT_H
#define FUSEFS_DAEMON_UMOUNT_WAIT_H

#include "base/core/buf.h"
#include "fusefs/daemon/mountinfo.h"

/* umount_wait - the end of one mount. */
struct umount_wait {
	char *dir;          /* the mountpoint; owned */
	int fds[2];         /* of the server and its supervisor; -1: none */
	struct buf states;  /* state directories of datasets being written, each with its NUL */
};

/* umount_wait_answer - in the server: append the answer to umount_wait_ask to out. */
void umount_wait_answer(struct buf *out);

/* umount_wait_ask - call it before m is unmounted. Returns 0, then umount_wait_wait or
 * umount_wait_free it; -errno: the processes are not known, and e has the reason. */
int umount_wait_ask(const struct mounted *m, struct umount_wait *ret,
		    struct err *e) NZ_MUST_USE;

/* umount_wait_wait - call it after m was unmounted: wait until its processes have ended. A longer
 * wait is reported on a terminal. Frees en. Returns true if all writes are in the datasets; logs
 * those that are not. */
bool umount_wait_wait(struct umount_wait *en);
/* umount_wait_pass - the same for a read-only mount: no data is lost if its processes do not end,
 * so the wait has a short limit. Frees en. */
void umount_wait_pass(struct umount_wait *en);
void umount_wait_free(struct umount_wait *en);

#endif
