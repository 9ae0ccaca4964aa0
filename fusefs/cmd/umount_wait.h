/* SPDX-License-Identifier: BSD-3-Clause */
/* umount_wait.h - the end of a mount: unmounting returns before the last commit is done and the
 * source is let go of. Who wants to know when it is asks the server for its processes first, and
 * waits for those. */
#ifndef FUSEFS_CMD_UMOUNT_WAIT_H
#define FUSEFS_CMD_UMOUNT_WAIT_H

#include "base/core/buf.h"
#include "fusefs/cmd/mounts.h"

/* umount_wait - of one mount. */
struct umount_wait {
	char *dir;          /* where it was; owned */
	int fds[2];         /* of the server and its supervisor; -1: none */
	struct buf states;  /* state directories of datasets being written, each with its NUL */
};

/* umount_wait_answer - in the server: what umount_wait_ask is told, appended to out. */
void umount_wait_answer(struct buf *out);

/* umount_wait_ask - before m is unmounted. Returns 0, then umount_wait_wait or umount_wait_free it;
 * -errno: it is not known what to wait for, e says why. */
int umount_wait_ask(const struct mounted *m, struct umount_wait *ret,
		    struct err *e) NZ_MUST_USE;

/* umount_wait_wait - after it was unmounted: until its processes have ended. Says on a terminal
 * what is waited for when that takes a moment. Frees en. Returns whether everything that was
 * written is in the datasets; what is not is said. */
bool umount_wait_wait(struct umount_wait *en);
/* umount_wait_pass - the same of a mount that only read: nothing is lost when its processes do not
 * end, so they are waited for only as long as they should need. Frees en. */
void umount_wait_pass(struct umount_wait *en);
void umount_wait_free(struct umount_wait *en);

#endif
