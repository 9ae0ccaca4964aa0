/* SPDX-License-Identifier: BSD-3-Clause */
/* request_int.h - shared by read_ops.c, write_ops.c and interrupt.c: a request in its epoch. */
#ifndef FUSEFS_OPS_REQUEST_INT_H
#define FUSEFS_OPS_REQUEST_INT_H

#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "fusefs/app/fusefs.h"

#define NAME_BYTES_MAX 255 /* longest name; the kernel itself passes up to 1024 bytes */

/* call - one request in its epoch. */
struct call {
	struct fs *fs;
	fuse_req_t req;
	struct epoch *ep;
	struct view *view;
	bool past;   /* the source cannot be opened: only names are served, from the last epoch */
	bool writes; /* errors are those of system calls that change something */
	struct err e;
	struct cancel stop; /* for remote sources: interrupt.c */
	bool stops;       /* `stop` is the thread's current one */
};

/* call_begin - count a request as `kind`, and start it in its epoch; false if the request has been
 * answered already. Otherwise end it with call_end. names: the request is about names and sizes
 * only. */
bool call_begin(struct call *c, fuse_req_t req, fuse_ino_t ino, enum metric kind, bool names);
/* call_end - end a request. rc: 0: it has been answered; otherwise it is answered with this error,
 * or with -ESTALE if the source changed. may_be_absent: as for reply_errno. */
void call_end(struct call *c, int rc, bool may_be_absent);

/* name_fits - false if a name is too long for any file; the request has been answered then. */
bool name_fits(fuse_req_t req, const char *name);

/* call_timeout - seconds that the kernel may cache an answer; a: NULL for an absent name. */
double call_timeout(const struct call *c, const struct view_attr *a);
void call_stat(const struct call *c, const struct view_attr *a, struct stat *st);
void call_entry(const struct call *c, const struct view_attr *a, struct fuse_entry_param *entry);
/* call_reply_entry - reply with the entry of file id. If the lookup was interrupted, the kernel
 * gets no entry. */
void call_reply_entry(struct call *c, const struct fuse_entry_param *entry, uint64_t id);
/* call_forget - the kernel did not get the entry of id. */
void call_forget(const struct call *c, uint64_t id);

/* access_allowed - true if the mode allows a user this access (mask of access(2)), as on a disk.
 * in_group: the user is in the file's group. */
bool access_allowed(const struct stat *st, uid_t uid, bool in_group, int mask);

/* xattr_refused - reject a request for an extended attribute that no file can have, and count it;
 * name: NULL: of all names. false: the request goes on, and is not counted. */
bool xattr_refused(fuse_req_t req, const char *name);
/* xattr_end - call_end of such a request: errors that are normal answers to the program are passed
 * unchanged and not logged. */
void xattr_end(struct call *c, int rc);

/* ops_stop_begin, ops_stop_end - between these calls, waiting for a remote server is cancelled if
 * the program that made the request ends. Both do nothing for local sources. */
void ops_stop_begin(struct call *c);
void ops_stop_end(struct call *c); /* may be called more than once */
/* ops_dying - 1 if a signal that ends the program is pending, 0 if not; -1 if that is unknown.
 * status: the contents of /proc/PID/status. */
int ops_dying(const char *status);

/* ops_add_write - add the operations of a writable view to a table. */
void ops_add_write(struct fuse_lowlevel_ops *ops);

#endif
