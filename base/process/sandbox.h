/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.h - what a process of child.h may do once it has everything that it needs.
 *
 * Three walls, each for itself: the kernel answers only the system calls of a list (seccomp), opens
 * only the files of a list (Landlock), and grants only so much memory and time (limits). A kernel
 * without one of them, or a container that refuses it, leaves the others; sandbox_missing says so.
 * With sanitizers and valgrind, which need files and memory of their own, only time is limited.
 * docs/dev/isolation.md has the lists and the reasons. */
#ifndef BASE_PROCESS_SANDBOX_H
#define BASE_PROCESS_SANDBOX_H

#include "base/core/buf.h"
#include "base/core/err.h"

/* What a kind of process does besides computing, and reading and talking over descriptors that it
 * was given. */
enum sandbox_may {
	SANDBOX_OPENS = 1,  /* opens files for reading, those of its list */
	SANDBOX_LOADS = 2,  /* loads libraries, which may have threads */
	SANDBOX_WRITES = 4, /* changes files of its list, and has processes of its own */
};

/* sandbox_path - a file, or everything below a directory. */
struct sandbox_path {
	const char *path;  /* NULL: fd */
	int fd;
	bool writable;     /* else only for reading */
	bool beside;       /* not path, but the directory that it is in */
};

struct sandbox_limits {
	uint64_t memory;   /* bytes of address space besides what is mapped already; 0: no limit */
	uint64_t cpu_ms;   /* of processor time from now on; 0: no limit */
};

/* sandbox_prepare - make what sandbox_enter needs for a kind: once, before a fork, because it takes
 * a hundred times as long as entering. may: of enum sandbox_may. Any thread. What cannot be made is
 * missing, as on a kernel that does not have it. */
void sandbox_prepare(unsigned may);

/* sandbox_enter - from now on, in this process, for ever. One thread.
 * paths  n files and directories, with SANDBOX_OPENS or SANDBOX_WRITES; those that do not exist are
 *        passed over. sandbox_libraries are added with SANDBOX_LOADS.
 * Returns 0, also when the kernel has only a part of it; -errno when it has it and refused. */
int sandbox_enter(unsigned may, const struct sandbox_path *paths, size_t n,
		  const struct sandbox_limits *limits, struct err *e) NZ_MUST_USE;

/* sandbox_wipe_environment - in a process that was forked and has one thread: variables that tell
 * libraries nothing, and may be somebody's keys, are gone, and their bytes are zero. */
void sandbox_wipe_environment(void);

/* sandbox_renew - in the server: its process `pid` may use cpu_ms from now on. */
void sandbox_renew(int pid, uint64_t cpu_ms);

/* sandbox_off - whether processes are not confined, because a sanitizer or valgrind, which are in
 * this one, would not bear it: their reports of crashes are wanted, too. */
bool sandbox_off(void);

/* sandbox_report - "seccomp, Landlock 7": what this kernel has; appended for people. */
void sandbox_report(struct buf *out);
/* sandbox_missing - what it lacks, and what that means, in a static text; NULL: nothing. */
const char *sandbox_missing(void);

#endif
