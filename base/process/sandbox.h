/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.h - confine a process of child.h once it has everything that it needs.
 *
 * There are three independent layers: only listed system calls (seccomp), only listed files
 * (Landlock), and limits of memory and processor time. A kernel without one of them, or a container
 * that denies it, leaves the others; sandbox_missing reports it. Under sanitizers and valgrind,
 * which need files and memory of their own, only time is limited. docs/dev/isolation.md has the
 * lists and the reasons. */
#ifndef BASE_PROCESS_SANDBOX_H
#define BASE_PROCESS_SANDBOX_H

#include "base/core/buf.h"
#include "base/core/err.h"

/* The abilities of a kind of process, in addition to computing and to using the descriptors that it
 * was given. */
enum sandbox_may {
	SANDBOX_OPENS = 1,  /* opens listed files for reading */
	SANDBOX_LOADS = 2,  /* loads libraries, which may have threads */
	SANDBOX_WRITES = 4, /* changes listed files and starts processes */
};

/* sandbox_path - a file, or a directory with everything below it. */
struct sandbox_path {
	const char *path;  /* NULL: use fd */
	int fd;
	bool writable;     /* else only for reading */
	bool beside;       /* allow the directory that path is in, instead of path */
};

struct sandbox_limits {
	uint64_t memory;   /* bytes of address space in addition to those in use; 0: no limit */
	uint64_t cpu_ms;   /* of processor time from now on; 0: no limit */
};

/* sandbox_prepare - build what sandbox_enter needs for a kind: once, before a fork, because it
 * takes a hundred times as long as entering. may: of enum sandbox_may. Any thread. On failure the
 * next call tries again. */
void sandbox_prepare(unsigned may);

/* sandbox_enter - confine this process, irrevocably. It must have one thread.
 * paths  n files and directories, with SANDBOX_OPENS or SANDBOX_WRITES; those that do not exist are
 *        skipped. sandbox_libraries are added with SANDBOX_LOADS.
 * Returns 0, also when the kernel lacks some layers; -errno when a layer exists and fails. */
int sandbox_enter(unsigned may, const struct sandbox_path *paths, size_t n,
		  const struct sandbox_limits *limits, struct err *e) NZ_MUST_USE;

/* sandbox_wipe_environment - in a forked process with one thread: remove the environment variables
 * that libraries do not need and that may hold keys, and zero their bytes. */
void sandbox_wipe_environment(void);

/* sandbox_renew - in the server: allow its process `pid` cpu_ms more of processor time. */
void sandbox_renew(int pid, uint64_t cpu_ms);

/* sandbox_off - whether processes are not confined, because this one runs under a sanitizer or
 * valgrind, which would not work in a sandbox and whose crash reports are needed. */
bool sandbox_off(void);

/* sandbox_report - append the layers of this kernel for messages: "seccomp, Landlock 7". */
void sandbox_report(struct buf *out);
/* sandbox_missing - the missing layers and their consequence, in a static string; NULL: none. */
const char *sandbox_missing(void);

#endif
