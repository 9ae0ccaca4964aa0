/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - what a mount says about itself while it serves: `nczarrfs status`, `nczarrfs log`, and
 * the socket of -o metrics=.
 *
 * The question is an ioctl on the mount's root directory, so that it needs no name, no port and no
 * right but that of using the mount; it is answered without touching the source, and without any
 * lock that is held while somebody waits. */
#ifndef FUSEFS_DAEMON_STATUS_H
#define FUSEFS_DAEMON_STATUS_H

#include <fuse_lowlevel.h>

#include "base/core/err.h"
#include "mountcfg/options.h"

struct status;

/* status_facts - what does not change while a mount lives. Texts are copied. */
struct status_facts {
	const struct cfg *cfg;      /* borrowed for the mount's life */
	const char *mountpoint;     /* resolved */
	const char *view;           /* "zarr" */
	const char *format;         /* of the source; "" where there is not one */
};

int status_new(const struct status_facts *f, struct status **ret, struct err *e) NZ_MUST_USE;
void status_free(struct status *s); /* takes NULL */

/* status_ioctl - answer a request. Anybody who may use the mount may ask how it is; what names
 * other files than the source, and the levels of its log, are its owner's and root's. */
void status_ioctl(struct status *s, fuse_req_t req, fuse_ino_t ino, unsigned int cmd,
		  unsigned flags, const void *in, size_t in_size, size_t out_size);

/* status_text - append the state of a mount; private: with what is its owner's only. */
void status_text(struct status *s, bool json, bool private, struct buf *out);
/* status_metrics - append it as OpenMetrics. */
void status_metrics(struct status *s, struct buf *out);

/* status_command, status_log_command - the two commands, of cfg->source, a mountpoint. They print
 * and return the exit status. */
int status_command(const struct cfg *cfg);
int status_log_command(const struct cfg *cfg);

/* status_socket - a thread that gives OpenMetrics text to whoever connects to cfg->metrics; made
 * before the mount is there, so that what is wrong is said in time.
 * status_socket_open  binds. Returns 0 with *ret; -EADDRINUSE somebody serves there.
 * status_socket_serve starts the thread.
 * status_socket_close ends it and removes the socket. Takes NULL. */
struct status_socket;
int status_socket_open(const char *path, const char *mountpoint, struct status_socket **ret,
		       struct err *e) NZ_MUST_USE;
int status_socket_serve(struct status_socket *k, struct status *s, struct err *e) NZ_MUST_USE;
void status_socket_close(struct status_socket *k);

#endif
