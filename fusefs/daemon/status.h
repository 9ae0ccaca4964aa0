/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - the status of a running mount: `nczarrfs status`, `nczarrfs log`, and the socket of -o
 * metrics=.
 *
 * The request is an ioctl on the mount's root directory, so that it needs no name, no port, and no
 * right except to use the mount. It is answered without access to the source, and without any lock
 * that is held during a wait. */
#ifndef FUSEFS_DAEMON_STATUS_H
#define FUSEFS_DAEMON_STATUS_H

#include <fuse_lowlevel.h>

#include "base/core/err.h"
#include "mountcfg/options.h"

struct status;

/* status_new - cfg is borrowed for the mount's life. view: "zarr"; format: of the source; "" if
 * there is more than one. */
int status_new(const struct cfg *cfg, const char *mountpoint, const char *view, const char *format,
	       struct status **ret, struct err *e) NZ_MUST_USE;
void status_free(struct status *s); /* takes NULL */

/* status_ioctl - answer a request. Every user of the mount may read its status. Paths of other
 * files than the source, and the log's levels, are restricted to the mount's owner and root. */
void status_ioctl(struct status *s, fuse_req_t req, fuse_ino_t ino, unsigned int cmd,
		  unsigned flags, const void *in, size_t in_size, size_t out_size);

/* status_metrics - append the metrics as OpenMetrics. */
void status_metrics(struct status *s, struct buf *out);

/* status_socket - a thread that sends OpenMetrics text to each client of cfg->metrics; created
 * before mounting, so that errors are reported in time.
 * status_socket_open  binds. Returns 0 with *ret; -EADDRINUSE: another process listens there.
 * status_socket_serve starts the thread.
 * status_socket_close ends it and removes the socket. Takes NULL. */
struct status_socket;
int status_socket_open(const char *path, const char *mountpoint, struct status_socket **ret,
		       struct err *e) NZ_MUST_USE;
int status_socket_serve(struct status_socket *k, struct status *s, struct err *e) NZ_MUST_USE;
void status_socket_close(struct status_socket *k);

#endif
