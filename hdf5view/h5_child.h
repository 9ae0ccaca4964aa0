/* h5_child.h - processes in which libhdf5 meets files of others; private to hdf5view.
 *
 * The library crashes and hangs on damaged files, so it only sees them in a child (base/child.h).
 * Its region of memory is shared with the server only until the server has looked at it
 * (h5_open.c). */
#ifndef HDF5VIEW_H5_CHILD_H
#define HDF5VIEW_H5_CHILD_H

#include <limits.h>
#include <sys/stat.h>

#include "base/child.h"

struct h5_source;

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
enum { H5_FD_SOURCE, H5_FD_REGION, H5_FDS };

/* h5_child_start - a child that does a job for s. Returns 0 with *ret filled; -errno. Any
 * thread. */
int h5_child_start(struct h5_source *s, enum h5_job_kind kind, struct child_proc *ret,
		   struct err *e) NZ_MUST_USE;

/* What a child does; neither returns. h5_open.c, h5_worker.c. */
_Noreturn void h5_open_job(struct h5_source *s, int sock);
_Noreturn void h5_read_job(struct h5_source *s, int sock);

#endif
