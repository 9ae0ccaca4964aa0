/* SPDX-License-Identifier: BSD-3-Clause */
/* inject.h - calls of libc and libcurl that fail when they are told to: the n-th of those that are
 * made while it is armed, or all from the n-th on; in this process, in its children, or in any.
 *
 * inject.c is linked into tests/faults/loops.c, whose functions come before those of every library
 * in it, and is a library of its own, to be preloaded: then the state is a file, INJECT_STATE.
 * 64-bit Linux with glibc. */
#ifndef FAULTS_INJECT_H
#define FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum inject_class {
	ON_ALLOC = 1,      /* malloc, calloc, realloc, aligned ones; what calls them */
	ON_OPEN = 2,       /* open..., openat2, fopen, opendir, dup, F_DUPFD */
	ON_READ = 4,       /* read, pread, preadv, readv, getdelim of files */
	ON_STAT = 8,       /* stat..., statx, access, readlink, realpath */
	ON_DIR = 16,       /* readdir, scandir */
	ON_MAP = 32,       /* mmap, mprotect, memfd_create */
	ON_MAKE = 64,      /* pipe, socketpair, socket, eventfd, inotify, signalfd, connect */
	ON_FORK = 128,     /* fork, pthread_create */
	ON_WAIT = 256,     /* poll, epoll_wait, select */
	ON_WIRE = 512,     /* send..., recv... */
	ON_WRITE = 1024,   /* write..., ftruncate, fallocate, copy_file_range, opening to create */
	ON_SYNC = 2048,    /* fsync, fdatasync, syncfs */
	ON_NAMES = 4096,   /* rename, unlink, mkdir, rmdir, link, chmod, utimes */
	ON_CURL = 8192,
	ON_HDF5 = 16384,   /* what libhdf5 allocates in this process, not in its children */
};

enum inject_how { BY_FAILING, BY_HALF };
enum inject_who { IN_ANY, IN_SERVER, IN_CHILDREN };

#define INJECT_DEPTH 32
#define INJECT_CALLS ((uint32_t)1 << 20)

/* inject - shared by all processes; the head of the file of a preloaded one, native order. */
struct inject {
	_Atomic uint32_t armed;
	uint32_t mask;            /* of classes */
	uint32_t at;              /* from 1; 0: nothing fails */
	uint32_t more;            /* calls after it that fail as well; UINT32_MAX: all */
	uint32_t code;            /* errno */
	uint32_t how, who;
	uint32_t self;            /* the pid that is not a child */
	_Atomic uint32_t count;   /* calls of mask */
	_Atomic uint32_t fired;
	uint32_t hit_class, hit_pid;
	uint32_t depth;           /* of where it was first */
	uint32_t record;          /* remember a hash of the callers of each call */
	uintptr_t stack[INJECT_DEPTH];
	uint64_t hashes[];        /* INJECT_CALLS of them, where record may be set */
};

extern struct inject *inject;

/* Allocations of this process that were made while `tracking` and not freed. Only in loops. */
struct inject_live {
	void *p;
	size_t size;
	uint32_t depth;
	uintptr_t stack[12];
};

/* inject_track - from now on (deep: with callers), forgetting what was; or no more. */
void inject_track(bool on, bool deep);
/* inject_live_next - the next one from *at (0 at first); NULL: no more. */
const struct inject_live *inject_live_next(size_t *at);
size_t inject_live_count(void);
/* inject_callers - of who calls, without allocating. */
uint32_t inject_callers(uintptr_t *out, uint32_t cap);

#endif
