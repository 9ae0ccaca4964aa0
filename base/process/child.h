/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h - processes for what must not happen in the server: the HDF5 library with files of
 * others, and filters that others wrote.
 *
 * A server has many threads, and a child forked from one of many may find any lock taken for ever;
 * so that a server forks one process before it starts threads, the forker, which has a single
 * thread and holds nothing, and that one forks all others (child_prepare). A program that never
 * prepared forks by itself.
 *
 * A child has the descriptors of its job and stdio, ends when the server does, and confines itself
 * (base/process/sandbox.h). Keys and passwords are not in its memory: they are wiped in the
 * forker. */
#ifndef BASE_PROCESS_CHILD_H
#define BASE_PROCESS_CHILD_H

#include <errno.h>
#include <sys/types.h>

#include "base/core/err.h"
#include "base/process/sandbox.h"

#define CHILD_FORKER_NAME "nczarrfs-forker" /* as ps and top show it; 15 bytes at most */
#define CHILD_FDS_MAX 4                     /* descriptors of a job */
#define CHILD_DATA_MAX ((size_t)32 << 10)   /* bytes of a job's data */

/* child_self - what a child is given. All of it lives as long as the process. */
struct child_self {
	void *own;         /* child_start's, in a child that was forked by who asked; else NULL */
	const void *data;  /* else: what was sent to the forker, aligned for any type */
	size_t size;
	const int *fds;    /* of the job, under numbers of this process */
	int sock;          /* to who asked */
};

/* child_kind - one thing that children do. Of static lifetime, and there before child_prepare: the
 * forker is told its address. */
struct child_kind {
	const char *name;  /* of the process, 15 bytes at most */
	const char *who;   /* for messages: "the HDF5 library" */
	uint32_t n_fds;    /* descriptors of its jobs, at most CHILD_FDS_MAX */
	unsigned may;      /* of enum sandbox_may: what run passes to sandbox_enter as soon as it
	                    * has what it needs, before it looks at anything of others */

	/* run - in the child: the whole of its life. When it returns the process ends, without
	 * exit handlers: they are the server's. */
	void (*run)(const struct child_self *self);

	/* before - in the process that is going to fork this child: what its children should find
	 * made. own, data: as in child_self. NULL: nothing. */
	void (*before)(const void *own, const void *data);

	/* keeps_files - in the child, before anything else: whether a library has files open here,
	 * whose descriptors must stay or it would find them dead. NULL: no. */
	bool (*keeps_files)(void);

	/* enter, leave - around a fork by who asks, so that nobody is inside a library whose
	 * state the child takes over; the child leaves as well. NULL: nothing. */
	void (*enter)(void);
	void (*leave)(void);
};

/* child_proc - a child, as who asked for it sees it. */
struct child_proc {
	pid_t pid;         /* 0: none */
	int sock;          /* our end, owned */
	int life;          /* a pipe that ends the child when it is closed; owned */
	int report;        /* tells how it ended when the forker forked it; owned; -1: we did */
	int64_t renewed;   /* clock_ms of the last child_renew */
};

/* child_forget - in every process that is forked from now on, `forget` is called before anything
 * else: it wipes what is secret from the memory that was copied. It must not allocate. Before
 * child_prepare. */
void child_forget(void (*forget)(void));
/* child_background - before child_prepare: whoever started this process may wait until nobody has
 * its standard error any more, which builds with sanitizers otherwise keep for their reports. */
void child_background(void);

/* child_prepare - start the forker, while this process has a single thread and holds no lock.
 * ready: called there once, for libraries that take long to set up; NULL: nothing. Call it at most
 * once. Returns 0 or -errno. */
int child_prepare(void (*ready)(void), struct err *e) NZ_MUST_USE;
/* child_prepared - whether there is a forker, and a job needs data. */
bool child_prepared(void);

/* child_alone - in a child that has one thread and wants children of its own: from now on this
 * process forks them itself, as a program does that never prepared. */
void child_alone(void);

/* child_start - a child of this kind.
 * own   what the job is made of, for a child that this process has to fork itself
 * data  the same as plain data of `size` bytes, at most CHILD_DATA_MAX, for the forker; NULL only
 *       when there is none
 * fds   kind->n_fds descriptors, borrowed for the call
 * Returns 0 with *ret filled; -errno with *ret empty. Any thread. */
int child_start(const struct child_kind *kind, void *own, const void *data, size_t size,
		const int *fds, struct child_proc *ret, struct err *e) NZ_MUST_USE;

/* child_end - kill it when it still runs, and let go of it. Returns what waitpid says of it, 0 when
 * that is not known. What has ended, or closed its socket by ending, has its status already: the
 * signal does not change it. */
int child_end(struct child_proc *c);

/* child_errno - what a child may say: one of the errors that are its own, or that memory or
 * descriptors are short; all else, which the server would take for a state of the source or of the
 * request (-ENOENT, -ESTALE, -EINTR ...), is -EIO. */
static inline int child_errno(int64_t rc)
{
	static const int own[] = {EBADMSG, EINVAL, ERANGE, EOPNOTSUPP, EFBIG,
				  ENODATA, ENOMEM, EMFILE, ENFILE,     ENOSPC};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (rc == -own[i])
			return -own[i];
	return -EIO;
}

/* child_take - n bytes from it before `end` (clock_ms): TAKEN, GONE or LATE. The others are for
 * callers: worker_call has them. */
enum child_taken { CHILD_TAKEN, CHILD_GONE, CHILD_LATE, CHILD_WRONG, CHILD_GIVEN_UP };
enum child_taken child_take(int sock, void *out, size_t n, int64_t end);
/* child_send - all of it, or false. flags: of send(2). */
bool child_send(int sock, const void *data, size_t n, int flags);

/* child_renew - it may use cpu_ms of processor time from now on, whatever it has used; looked at
 * about once a second. */
void child_renew(struct child_proc *c, uint64_t cpu_ms);

/* child_answer - what a child says first: a result, and that many bytes after it. */
struct child_answer {
	int64_t rc;
	uint64_t len;
};

/* child_say - in the child: an answer; ends the process when nobody listens. */
void child_say(int sock, int rc, const void *data, size_t n);

/* child_died_of - the signal in a wait status, or 0. */
int child_died_of(int status);

/* child_why - what to say of a child that a signal ended, in room: "crashed (signal 11)", "made a
 * system call that it must not make (signal 31)". Returns room. */
#define CHILD_WHY_MAX 80
const char *child_why(int sig, char room[CHILD_WHY_MAX]);

#endif
