/* SPDX-License-Identifier: BSD-3-Clause */
/* mounter.h - the process that mounts and unmounts, and does nothing else.
 *
 * Users mount and unmount by fusermount3, which gets its rights from its set-user-id bit. A process
 * that may start it may start every other such program, so that whatever reads the bytes of others
 * must not: it and all that it starts gave that up before it opened anything
 * (PR_SET_NO_NEW_PRIVS). What is left is this process. It is forked before the source is looked at,
 * it never sees a byte of it, and it does two things when it is asked by one byte: mount, once, and
 * unmount what it mounted. It outlives who asked: a server or a supervisor that is killed leaves no
 * mount behind. */
#ifndef FUSEFS_DAEMON_MOUNTER_H
#define FUSEFS_DAEMON_MOUNTER_H

#include "fusefs/app/fusefs.h"

#define MOUNTER_NAME "nczarrfs-mount" /* as ps shows it; 15 bytes at most */
#define MOUNTER_TEXT_MAX 2048

/* mounter - its process, as the supervisor sees it. */
struct mounter {
	pid_t pid; /* 0: none */
	int sock;  /* the server's end; owned */
};

/* mounter_start - fork it, while this process has one thread and has opened nothing. dir: the
 * resolved mountpoint, or NULL when it could not be. made: it was created for this mount, and is
 * removed, if it is empty, when the process ends, as the last of the mount's processes.
 * close_fd: what it is not to keep in addition to what it closes by itself; -1: nothing.
 * Returns 0 or -errno. */
int mounter_start(struct mounter *m, const struct app *setup, const char *dir, bool made,
		  int close_fd, struct err *e) NZ_MUST_USE;
/* mounter_close - this process talks to it no more. */
void mounter_close(struct mounter *m);
/* mounter_wait - until it has ended, which it does when nobody has the socket any more. */
void mounter_wait(struct mounter *m);

/* mounter_args - the command line of libfuse: what the user said, what always holds, without the
 * options of its loop. Returns 0 or -ENOMEM; fuse_opt_free_args it in any case. */
int mounter_args(const struct cfg *cfg, bool writes, struct fuse_args *args,
		 struct err *e) NZ_MUST_USE;
/* mounter_loop_option - whether libfuse's session does not know this one: its loop does. */
bool mounter_loop_option(const char *opt);

/* mounter_mount - in the server: have it mounted. *ret_fd: of the session, owned by the caller.
 * text: what libfuse and fusermount3 printed when it failed. Returns 0 or -errno. */
int mounter_mount(int sock, bool writes, int *ret_fd, char text[MOUNTER_TEXT_MAX],
		  struct err *e) NZ_MUST_USE;
/* mounter_unmount - in the server, which has closed its descriptor: when this returns the mount is
 * gone from its place. gone: somebody else has unmounted it. */
void mounter_unmount(int sock, bool gone);

/* mounter_remove - take the mount of ours off dir, if it is still the one with this id (0: not
 * known). By umount2, and for users by fusermount3. Returns whether it is gone. */
bool mounter_remove(const char *dir, uint64_t id);

/* mounter_ask_fusermount - unmount by fusermount3, as umount(8) does: not when it is in use.
 * Returns whether the mount with this id is gone. */
bool mounter_ask_fusermount(const char *dir, uint64_t id);

/* mounter_no_new_privs - from now on no program that this process starts has more rights than it
 * has itself. Threads and children that there will be are bound by it as well. */
void mounter_no_new_privs(void);

#endif
