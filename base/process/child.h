/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h - child processes that isolate the server from untrusted code and data: the HDF5 library
 * with untrusted files, and third-party filters.
 *
 * A server has many threads, and after a fork from one of many, any lock may be held in the child,
 * which then never gets it. So before it starts threads, a server forks one process, the forker,
 * which has a single thread and holds no lock, and which forks all others (child_prepare). A
 * program that never called child_prepare forks by itself.
 *
 * A child has the descriptors of its job and stdio, ends when the server does, and confines itself
 * (base/process/sandbox.h). Keys and passwords are not in its memory: the forker has erased
 * them. */
#ifndef BASE_PROCESS_CHILD_H
#define BASE_PROCESS_CHILD_H

#include <errno.h>
#include <sys/types.h>

#include "base/core/err.h"
#include "base/process/sandbox.h"

#define CHILD_FORKER_NAME "nczarrfs-forker" /* as ps and top show it; 15 bytes at most */
#define CHILD_FDS_MAX 4                     /* descriptors of a job */
#define CHILD_DATA_MAX ((size_t)32 << 10)   /* bytes of a job's data */

/* child_self - the arguments of a child. They live as long as the process. */
struct child_self {
	void *own;         /* child_start's, in a child that its caller forked; else NULL */
	const void *data;  /* in other children: the job's data, aligned for any type */
	size_t size;
	const int *fds;    /* of the job, under numbers of this process */
	int sock;          /* to the process that called child_start */
};

/* child_kind - a kind of child processes. Static, and defined before child_prepare: the forker is
 * sent its address. */
struct child_kind {
	const char *name;  /* of the process, 15 bytes at most */
	const char *who;   /* in messages: "the HDF5 library" */
	uint32_t n_fds;    /* descriptors of its jobs, at most CHILD_FDS_MAX */
	unsigned may;      /* the flags of enum sandbox_may that run passes to sandbox_enter as soon
			    * as it has what it needs, before it reads untrusted data */

	/* run - the child's main function. When it returns, the process ends without exit handlers:
	 * they are the server's. */
	void (*run)(const struct child_self *self);

	/* before - called in the process that will fork this child, to set up memory that its
	 * children inherit. own, data: as in child_self. NULL: nothing. */
	void (*before)(const void *own, const void *data);

	/* keeps_files - called first in the child: whether a library has files open in this
	 * process, whose descriptors must stay open for its users. NULL: no. */
	bool (*keeps_files)(void);

	/* enter, leave - called around a fork by the caller's own process, so that no thread is
	 * inside a library whose state the child inherits; the child calls leave as well. NULL:
	 * nothing. */
	void (*enter)(void);
	void (*leave)(void);
};

/* child_proc - a child, as its parent sees it. */
struct child_proc {
	pid_t pid;         /* 0: none */
	int sock;          /* our end, owned */
	int life;          /* closing this pipe ends the child; owned */
	int report;        /* the forker sends its wait status here; owned; -1: we forked it */
	int64_t renewed;   /* clock_ms of the last child_renew */
};

/* child_forget - set a function that every process forked from now on calls first. It erases
 * secrets from the copied memory and must not allocate. Before child_prepare. */
void child_forget(void (*forget)(void));
/* child_background - the program that started this process may wait until its standard error is
 * closed, which builds with sanitizers otherwise keep open for their reports. Before
 * child_prepare. */
void child_background(void);

/* child_prepare - start the forker, while this process has a single thread and holds no lock.
 * ready: called in the forker once, for libraries that take long to set up; NULL: nothing. Call it
 * at most once. Returns 0 or -errno. */
int child_prepare(void (*ready)(void), struct err *e) NZ_MUST_USE;
/* child_prepared - whether there is a forker, so that a job needs `data`. */
bool child_prepared(void);

/* child_alone - in a child that has one thread and starts children of its own: from now on this
 * process forks them itself, as a program does that never called child_prepare. */
void child_alone(void);

/* child_start - start a child of this kind.
 * own   the job, for a child that this process has to fork itself
 * data  the same as plain data of `size` bytes, at most CHILD_DATA_MAX, for the forker; NULL only
 *       when there is none
 * fds   kind->n_fds descriptors, borrowed for the call
 * Returns 0 with *ret filled; -errno with *ret empty. Any thread. */
int child_start(const struct child_kind *kind, void *own, const void *data, size_t size,
		const int *fds, struct child_proc *ret, struct err *e) NZ_MUST_USE;

/* child_send_job - give a child that waits in child_next_job another job, as child_start did. fds:
 * borrowed. Returns false if the child has ended or does not receive; never waits. One thread at a
 * time for each child. */
bool child_send_job(const struct child_proc *c, const struct child_kind *kind, void *data,
		    size_t size, const int *fds);
/* child_next_job - in the child: wait for the next job, of `size` bytes. fds gets kind->n_fds
 * descriptors, owned by the caller. Returns false when no further job will come. */
bool child_next_job(const struct child_self *self, const struct child_kind *kind, void *data,
		    size_t size, int *fds);

/* child_end - kill the child if it still runs, and release it. Returns its wait status, or 0 when
 * that is not known. A child that has ended already keeps its real status: the signal does not
 * change it. */
int child_end(struct child_proc *c);

/* child_errno - map a result that a child reports. Allowed are the errors of its own work, and
 * those that say that memory or descriptors are short; all others, which the server would take for
 * a state of the source or of the request (-ENOENT, -ESTALE, -EINTR ...), become -EIO. */
static inline int child_errno(int64_t rc)
{
	static const int own[] = {EBADMSG, EINVAL, ERANGE, EOPNOTSUPP, EFBIG,
				  ENODATA, ENOMEM, EMFILE, ENFILE,     ENOSPC};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (rc == -own[i])
			return -own[i];
	return -EIO;
}

/* child_take - receive n bytes before `end` (clock_ms). Returns TAKEN, GONE or LATE; the other
 * values are those of worker_call. */
enum child_taken { CHILD_TAKEN, CHILD_GONE, CHILD_LATE, CHILD_WRONG, CHILD_GIVEN_UP };
enum child_taken child_take(int sock, void *out, size_t n, int64_t end);
/* child_send - send all n bytes. Returns false on failure. flags: of send(2). */
bool child_send(int sock, const void *data, size_t n, int flags);

/* child_renew - limit the child's processor time to cpu_ms from now on, whatever it has used. Takes
 * effect at most once a second. */
void child_renew(struct child_proc *c, uint64_t cpu_ms);

/* child_answer - the first bytes of a child's answer: a result, and the number of bytes after
 * it. */
struct child_answer {
	int64_t rc;
	uint64_t len;
};

/* child_say - in the child: send an answer; end the process when the other end is closed. */
void child_say(int sock, int rc, const void *data, size_t n);

/* child_died_of - the signal in a wait status, or 0. */
int child_died_of(int status);

/* child_why - describe a wait status by a signal, in room: "crashed (signal 11)", "made a system
 * call that it must not make (signal 31)". Returns room. */
#define CHILD_WHY_MAX 80
const char *child_why(int sig, char room[CHILD_WHY_MAX]);

#endif
