/* SPDX-License-Identifier: BSD-3-Clause */
/* mounter.h - the process that mounts and unmounts, and does nothing else.
 *
 * Users mount and unmount with fusermount3, which gets its rights from its set-user-id bit. A
 * process that may start fusermount3 may start every other set-user-id program. Therefore every
 * process that reads foreign data, and all its children, give up that right before they open
 * anything (PR_SET_NO_NEW_PRIVS). The mounter is the process that keeps it: it is forked before the
 * source is opened, it never reads a byte of the source, and it accepts two requests of one byte
 * each: mount, once, and unmount that mount. It outlives its clients: a server or a supervisor that
 * is killed leaves no mount behind. */
#ifndef FUSEFS_DAEMON_MOUNTER_H
#define FUSEFS_DAEMON_MOUNTER_H

#include "fusefs/app/fusefs.h"

#define MOUNTER_NAME "nczarrfs-mount" /* as in ps; at most 15 bytes */
#define MOUNTER_TEXT_MAX 2048

/* mounter - the process, for the supervisor. */
struct mounter {
	pid_t pid; /* 0: none */
	int sock;  /* the server's end; owned */
};

/* mounter_start - fork the mounter, while this process has one thread and no source open. dir: the
 * resolved mountpoint; NULL: it could not be resolved. made: the mountpoint was created for this
 * mount, and is removed, if it is empty, when the mounter ends as the last process of the mount.
 * also_close: a descriptor for the child to close in addition to those that it always closes; -1:
 * none. Returns 0 or -errno. */
int mounter_start(struct mounter *m, const struct app *setup, const char *dir, bool made,
		  int also_close, struct err *e) NZ_MUST_USE;
/* mounter_close - close this process's end of the socket. */
void mounter_close(struct mounter *m);
/* mounter_wait - wait until it has ended, which it does when the last copy of the socket is
 * closed. */
void mounter_wait(struct mounter *m);

/* mounter_args - libfuse's command line: the user's options and the fixed ones, without those of
 * libfuse's loop. Returns 0 or -ENOMEM; fuse_opt_free_args it in either case. */
int mounter_args(const struct cfg *cfg, bool writes, struct fuse_args *args,
		 struct err *e) NZ_MUST_USE;

/* mounter_mount - called by the server: request the mount. *ret_fd: the session's descriptor, owned
 * by the caller. text: the output of libfuse and fusermount3 after a failure. Returns 0 or
 * -errno. */
int mounter_mount(int sock, bool writes, int *ret_fd, char text[MOUNTER_TEXT_MAX],
		  struct err *e) NZ_MUST_USE;
/* mounter_unmount - called by the server after it closed its descriptor: when it returns, the mount
 * is detached from its mountpoint. gone: another program has unmounted it. */
void mounter_unmount(int sock, bool gone);

/* mounter_remove - unmount dir if our mount there still has this id (0: unknown) and no server that
 * answers, by umount2, or for users by fusermount3. Returns true if it is unmounted. */
bool mounter_remove(const char *dir, uint64_t id);

/* mounter_ask_fusermount - unmount with fusermount3, as umount(8) does: fails if the mount is in
 * use. Returns true if the mount with this id does not exist any more. */
bool mounter_ask_fusermount(const char *dir, uint64_t id);

/* mounter_no_new_privs - from now on no program that this process starts can gain rights. This also
 * applies to threads and children that are created later. */
void mounter_no_new_privs(void);

#endif
