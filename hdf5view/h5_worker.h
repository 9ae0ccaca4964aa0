/* h5_worker.h - the process that reads elements with libhdf5; private to hdf5view.
 *
 * libhdf5 may crash or hang on a damaged file. So a child (h5_child.h) is started when elements are
 * first read through the library, and reads them: what it dies of costs the reader an error and
 * the source a new child. Every source has its own. */
#ifndef HDF5VIEW_H5_WORKER_H
#define HDF5VIEW_H5_WORKER_H

#include <pthread.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "hdf5view/h5_child.h"

#define H5_WORKER_NAME "nczarrfs-hdf5"  /* as ps and top show it; 15 bytes at most */
#define H5_WORKER_TRIES 3               /* chunks of an array that may kill a worker */
#define H5_WORKER_MS 60000              /* how long a read may take by default */

struct h5_source;

/* h5_fatal_chunk - one that killed a worker. */
struct h5_fatal_chunk {
	uint32_t array;
	uint64_t linear;
};

/* h5_worker - the server's end. */
struct h5_worker {
	pthread_mutex_t lock;     /* one request at a time, and all below; before h5_lock */
	struct child_proc child;
	uint64_t served;          /* requests that this child answered */
	uint64_t timeout_ms;
	struct h5_fatal_chunk *fatal;
	size_t n_fatal, c_fatal;
};

/* h5_worker_init - no process is started before the first read. timeout_ms: 0 for the default. */
void h5_worker_init(struct h5_worker *w, uint64_t timeout_ms);
/* h5_worker_release - end the process. No other call may be running. */
void h5_worker_release(struct h5_worker *w);

/* h5_worker_chunk, h5_worker_vlen - h5_library_chunk and h5_library_vlen in another process.
 * -EIO: the library died or did not answer; nothing is known about the chunk then. On failure
 * `out` of a chunk holds anything. Any thread. */
int h5_worker_chunk(struct h5_source *s, uint32_t array, uint64_t linear, uint8_t *out,
		    size_t len, struct err *e) NZ_MUST_USE;
int h5_worker_vlen(struct h5_source *s, uint32_t array, uint64_t linear, struct buf *out,
		   struct err *e) NZ_MUST_USE;

#endif
