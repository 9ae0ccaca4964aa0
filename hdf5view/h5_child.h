/* h5_child.h - processes in which libhdf5 meets files of others; private to hdf5view.
 *
 * The library crashes and hangs on damaged files, so it only sees them in a child. A server has
 * many threads, and a child forked from one of many may find any lock taken for ever; so that a
 * server forks one process before it starts threads, and that one, which has a single thread and
 * holds nothing, forks all others (hdf5_prepare). A program that never prepared forks by itself.
 *
 * A child has the descriptors of its job and stdio, and ends when the server does. */
#ifndef HDF5VIEW_H5_CHILD_H
#define HDF5VIEW_H5_CHILD_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

struct h5_source;

#define H5_FORKER_NAME "nczarrfs-forker"  /* as ps and top show it; 15 bytes at most */

enum h5_job_kind { H5_JOB_OPEN, H5_JOB_READ };

/* h5_job - plain data, sent to the process that forks. */
struct h5_job {
	enum h5_job_kind kind;
	void *at;                  /* where the region of the model is mapped, in every process */
	size_t size;               /* bytes of it */
	struct stat st;            /* of the source */
	uint64_t max_meta_bytes, cut_bytes, max_chunk_bytes, max_index_bytes;
	bool has_root;
	char path[PATH_MAX], link_root[PATH_MAX];
};

/* The descriptors of a job. */
enum { H5_FD_SOURCE, H5_FD_REGION, H5_FD_SOCK, H5_FD_LIFE, H5_FDS };

struct h5_child {
	pid_t pid;    /* 0: none */
	int sock;     /* our end, owned */
	int life;     /* a pipe that ends the child when it is closed; owned */
	int report;   /* tells how it ended when another process forked it; owned; -1: we did */
};

/* h5_child_start - a child that does a job. region: descriptor of the model's memory, or -1.
 * Returns 0 with *ret filled; -errno. Any thread. */
int h5_child_start(struct h5_source *s, enum h5_job_kind kind, struct h5_child *ret,
		   struct err *e) NZ_MUST_USE;

/* h5_child_end - kill it when it still runs, and let go of it. Returns what waitpid says of it, 0
 * when that is not known. What has ended, or closed its socket by ending, has its status
 * already: the signal does not change it. */
int h5_child_end(struct h5_child *c);

/* h5_child_take - n bytes from it before `end` (h5_child_now). */
enum h5_taken { H5_TAKEN, H5_GONE, H5_LATE, H5_WRONG };
enum h5_taken h5_child_take(int sock, void *out, size_t n, int64_t end);
int64_t h5_child_now(void);  /* milliseconds, monotonic */
/* h5_child_send - all of it, or false. flags: of send(2). */
bool h5_child_send(int sock, const void *data, size_t n, int flags);

/* h5_answer - what a child says first: a result, and that many bytes after it. */
struct h5_answer {
	int64_t rc;
	uint64_t len;
};

/* h5_child_say - in the child: an answer; ends the process when nobody listens. */
void h5_child_say(int sock, int rc, const void *data, size_t n);

/* h5_died_of - the signal in a wait status, or 0. */
int h5_died_of(int status);

/* What a child does; neither returns. h5_open.c, h5_worker.c. */
_Noreturn void h5_open_job(struct h5_source *s, int sock);
_Noreturn void h5_read_job(struct h5_source *s, int sock);

#endif
