/* SPDX-License-Identifier: BSD-3-Clause */
/* request_int.h - shared by read_ops.c, write_ops.c and interrupt.c: a request in its epoch. */
#ifndef FUSEFS_OPS_REQUEST_INT_H
#define FUSEFS_OPS_REQUEST_INT_H

#include "base/os/cancel.h"
#include "fusefs/app/fusefs.h"

#define NAME_BYTES_MAX 255 /* of one name: the kernel itself hands on up to 1024 */

/* call - one request in its epoch. */
struct call {
	struct fs *fs;
	fuse_req_t req;
	struct epoch *ep;
	struct view *view;
	bool past;   /* names of a source that cannot be opened at the moment */
	bool writes; /* errors are those of the system calls that change something */
	struct err e;
	struct cancel stop; /* of sources that are far: interrupt.c */
	bool stops;       /* it is the thread's */
};

/* call_begin - false when the request has been answered already. Otherwise: call_end it. names:
 * only names and sizes are asked for. */
bool call_begin(struct call *c, fuse_req_t req, fuse_ino_t ino, bool names);
void call_end(struct call *c);
/* call_fail - answer with an error; a source that changed explains every error. */
void call_fail(struct call *c, int rc, bool may_be_absent);

/* name_fits - false when a name is too long for any file, and the request has been answered. */
bool name_fits(fuse_req_t req, const char *name);

/* call_timeout - how long the kernel may remember what it is told; a: NULL for an absent name. */
double call_timeout(const struct call *c, const struct view_attr *a);
void call_stat(const struct call *c, const struct view_attr *a, struct stat *st);
void call_entry(const struct call *c, const struct view_attr *a, struct fuse_entry_param *entry);
/* call_reply_entry - of file id: a look-up that was interrupted tells the kernel nothing. */
void call_reply_entry(struct call *c, const struct fuse_entry_param *entry, uint64_t id);
/* call_forget - the kernel was not told of id after all. */
void call_forget(const struct call *c, uint64_t id);

/* access_allowed - whether the mode lets a user do this (mask of access(2)), as on a disk.
 * in_group: the user is in the file's group. */
bool access_allowed(const struct stat *st, uid_t uid, bool in_group, int mask);

/* xattr_answer - whether an error of a request for extended attributes is an answer to the program,
 * and no fault: the program gets it as it is, and the log has no line. */
bool xattr_answer(int rc);

/* ops_stop_begin, ops_stop_end - between them what waits for a server far away gives up when nobody
 * wants the answer any more. Nothing for sources of this machine. */
void ops_stop_begin(struct call *c);
void ops_stop_end(struct call *c); /* more than once does no harm */
/* ops_dying - whether a signal that ends the program is pending: 1, 0; -1 when it cannot be told.
 * status: the text of /proc/PID/status. */
int ops_dying(const char *status);

/* ops_add_write - the operations of a writable view besides, into a table. */
void ops_add_write(struct fuse_lowlevel_ops *ops);

#endif
