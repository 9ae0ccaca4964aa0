/* SPDX-License-Identifier: BSD-3-Clause */
/* worker.h - calls of child processes (child.h) that process untrusted data or run untrusted code.
 *
 * A worker is a child and, for most kinds, memory that both share (shm.h). The server sends a
 * request, one plain struct, over the socket; the child replies with a child_answer: a result of at
 * most 64 bits, or an errno and its reason. Payload is in the shared memory, or follows the answer
 * on the socket.
 *
 * The child may have been taken over, so that its answers are not trusted: worker_call bounds and
 * cleans a reason, and passes on only listed errnos (child_errno, worker_call.also). A length is
 * copied to the caller's memory before it is checked, and data in shared memory are copied once
 * before they are used.
 *
 * Threads: one thread at a time uses a worker; worker_take assigns it, or the caller's lock does.
 * Any thread may use a pool. Ownership: a worker owns its process and its memory until
 * worker_end. */
#ifndef BASE_PROCESS_WORKER_H
#define BASE_PROCESS_WORKER_H

#include <pthread.h>

#include "base/core/buf.h"
#include "base/process/child.h"
#include "base/process/shm.h"

/* worker - zeroes: no process. */
struct worker {
	struct child_proc child; /* pid 0: none */
	struct shm shared;       /* at NULL: none */
	uint64_t served;         /* calls that this process answered */
	bool busy;               /* in use by a thread; guarded by the lock of its pool */
	char *only;              /* the directory that the process may read; owned; NULL: the job
				  * says nothing of the kind */
};

/* ---- one process ---- */

/* worker_start - start a process of this kind. Its only descriptor is that of new shared memory.
 * job: plain data of `size` bytes. Returns 0; -errno with nothing started. */
int worker_start(struct worker *w, const struct child_kind *kind, void *job, size_t size,
		 struct err *e) NZ_MUST_USE;
/* worker_alive - whether there is a process to call. One that died while it was idle is ended
 * silently, so that the caller starts another. */
bool worker_alive(struct worker *w);
/* worker_end - end the process and release the memory. Returns the wait status, as child_end. */
int worker_end(struct worker *w);

/* worker_place - reserve n bytes of shared memory, aligned, after *end; returns their offset. *end
 * moves past them, or to UINT64_MAX on overflow, which shm_grow rejects. */
uint64_t worker_place(uint64_t *end, uint64_t n);

/* ---- a call ---- */

struct worker_call {
	const void *request; /* NULL: the process answers without one */
	size_t size;
	uint64_t ms;        /* limit for the answer and for processor time; 0: none */
	int known;          /* positive results up to this one are valid */
	const int *also;    /* further errnos that this kind may answer, in addition to those of
			     * child_errno, up to a 0; NULL: none */
	bool cancels;       /* the wait ends when the calling thread's request is cancelled */
	uint8_t *out;       /* receives the len bytes after a success; or */
	struct buf *append; /* appended to, at most len; both NULL: none follow */
	uint64_t len;       /* set, when rc is 0: the child's number, which the caller checks where
			     * no bytes follow */
	int rc;             /* set: 0, a known result, or the errno of a failure */
};

/* worker_call - send a request and wait for the answer. Returns CHILD_TAKEN: c->rc has the result,
 * and e the reason of a failure. After any other value the process cannot be used any more, append
 * is unchanged, and the caller calls worker_lost: CHILD_GONE it ended, CHILD_LATE it did not answer
 * in time, CHILD_WRONG its answer is invalid, CHILD_GIVEN_UP the server failed (c->rc and e say
 * why). */
enum child_taken worker_call(struct worker *w, struct worker_call *c, struct err *e);

/* worker_words - the ends of messages about a lost process, after its name. */
struct worker_words {
	const char *late;     /* after "did not answer within 60 s" */
	const char *invalid;  /* complete: " gave an invalid answer" */
	const char *killed;   /* complete: " was killed (signal 9)" */
	const char *crashed;  /* after "crashed (signal 11)" */
	const char *ended;    /* before "(status 1)" */
	const char *ended_of; /* after "(status 1)" */
	struct {
		const char *text; /* NULL: no such status */
		int status;
	} blameless[2]; /* exit statuses for which the request is not to blame */
	int again;      /* errno when it was killed or ended by itself; 0: -EIO */
};

/* worker_fate - the consequence of the loss of a process. */
enum worker_fate {
	WORKER_FAILED, /* an error; the request may be tried again later */
	WORKER_RETRY,  /* it had answered before, and an older request may have damaged its memory:
		        * repeat in a new process, whose death this request has caused */
	WORKER_LOST,   /* it ended with status 0, which is listed as blameless: repeat once */
	WORKER_FATAL,  /* the request caused it and must not be repeated */
};

/* worker_lost - end a process that failed to answer, and set e. who: its name in messages. *ret may
 * be NULL. Returns -EIO, or words->again. */
int worker_lost(struct worker *w, const struct worker_words *words, const char *who,
		enum child_taken got, uint64_t ms, enum worker_fate *ret, struct err *e);

/* ---- pools ---- */

#define WORKER_POOL_MAX 32

/* worker_pool - at most n workers, each used by one calling thread. */
struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	pid_t owner; /* a process forked from this one must not use its children */
	uint32_t n;
	struct worker v[WORKER_POOL_MAX];
};
#define WORKER_POOL_INIT(most)                                                                 \
	{                                                                                      \
		.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER,           \
		.n = (most)                                                                    \
	}

/* worker_take - an idle worker, after waiting for one: the first that `fits`, else one without a
 * process, else any. Its process may have died, or be of another use. fits: NULL takes all. */
struct worker *worker_take(struct worker_pool *p,
			   bool (*fits)(const struct worker *w, const void *arg),
			   const void *arg);
/* worker_give - return it to its pool, which keeps little of the memory. */
void worker_give(struct worker_pool *p, struct worker *w);
/* worker_pool_end - end all processes of a pool, whose workers are idle. */
void worker_pool_end(struct worker_pool *p);

/* ---- chunks that kill processes ---- */

#define WORKER_TRIES 3 /* chunks of an array that may kill a process each */

/* worker_blame - the chunks that killed a process. For a while they are not decoded again, nor is
 * an array with several of them, so that a hostile file costs a limited number of processes.
 * Zeroes: none. The caller holds a lock. */
struct worker_blame {
	struct {
		uint32_t array;
		uint64_t linear;
		int64_t until; /* clock_ms */
	} *v;
	size_t n, cap;
};

/* worker_blame_check - -EIO when this chunk, or its array, must not be tried. doing: the action,
 * for the message; rest: how long that lasts, " for a minute". */
int worker_blame_check(const struct worker_blame *b, uint32_t array, uint64_t linear,
		       const char *doing, const char *rest, struct err *e) NZ_MUST_USE;
/* worker_blame_add - record that this chunk killed a process: for rest_ms, 0: permanently. If
 * memory is short, the chunk will be tried again. */
void worker_blame_add(struct worker_blame *b, uint32_t array, uint64_t linear, int64_t rest_ms);
void worker_blame_release(struct worker_blame *b);

/* ---- in the child ---- */

/* worker_next - wait for the next request. Returns false when the server has closed the socket. */
bool worker_next(int sock, void *request, size_t size);
/* worker_reply - send rc below 0 with the reason in e, or a number. Ends the process when the other
 * end is closed. A positive rc has no number. */
void worker_reply(int sock, int rc, uint64_t number, const struct err *e);

#endif
