/* SPDX-License-Identifier: BSD-3-Clause */
/* write_ops.c - translates requests that open, change and sync files to calls of a writable view.
 *
 * The kernel keeps no written data (op_init): the view has the data when write(2) returns, and
 * close(2) and fsync(2) return the view's result. Locks (flock, fcntl) are handled by the kernel,
 * among the programs of this machine. The open request includes truncation, so that a view gets one
 * call and not two. */
#include "fusefs/ops/request_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* RENAME_NOREPLACE */
#include <string.h>

#include "base/core/clock.h"

#define PERM_BITS 0777

/* write_ops_begin - as call_begin, for a request that changes something. name: NULL, or a name that
 * must not be too long. */
static bool write_ops_begin(struct call *c, fuse_req_t req, fuse_ino_t ino, enum metric kind,
			    const char *name)
{
	if ((name && !name_fits(req, name)) || !call_begin(c, req, ino, kind, false))
		return false;
	c->writes = true;
	return true;
}

static void reply_done(struct call *c, int rc, bool names)
{
	if (rc == 0)
		(void)fuse_reply_err(c->req, 0);
	call_end(c, rc, names);
}

/* reply_entry - reply with a new name and its attributes, or with an error. Ends the call. */
static void reply_entry(struct call *c, int rc, const struct view_attr *a)
{
	struct fuse_entry_param entry;

	if (rc == 0) {
		call_entry(c, a, &entry);
		call_reply_entry(c, &entry, a->id);
	}
	call_end(c, rc, true);
}

/* Files. */

static void set_file(const struct view_handle *h, struct fuse_file_info *fi)
{
	fi->fh = h->fh;
	fi->direct_io = h->direct_io;
	fi->keep_cache = !h->direct_io && h->keep_cache;
}

static void write_ops_release(struct call *c, uint64_t id, uint64_t fh)
{
	/* a release is never cancelled, and the request may have been answered */
	ops_stop_end(c);
	c->view->write->release(c->view, id, fh);
}

static void write_ops_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct view_handle h = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, ino, M_REQ_OPEN, NULL))
		return;
	rc = c.view->write->open(c.view, live_id(ino), fi->flags, &h, &c.e);
	if (rc == 0) {
		set_file(&h, fi);
		if (fuse_reply_open(req, fi) == -ENOENT)
			write_ops_release(&c, live_id(ino),
					  h.fh); /* interrupted: the program has no descriptor */
	}
	call_end(&c, rc, false);
}

static int write_ops_make(struct call *c, fuse_ino_t parent, const char *name, int flags,
			  mode_t mode, struct view_attr *a, struct view_handle *h)
{
	return c->view->write->create(c->view, live_id(parent), name, flags, mode & PERM_BITS, a,
				      h, &c->e);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct fuse_entry_param entry;
	struct view_handle h = {0};
	struct view_attr a = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, parent, M_REQ_CREATE, name))
		return;
	rc = write_ops_make(&c, parent, name, fi->flags, mode, &a, &h);
	if (rc == 0) {
		call_entry(&c, &a, &entry);
		set_file(&h, fi);
		if (fuse_reply_create(req, &entry, fi) == -ENOENT) {
			write_ops_release(&c, a.id, h.fh);
			call_forget(&c, a.id);
		}
	}
	call_end(&c, rc, true);
}

/* op_mknod - create a regular file without opening it; devices and the like are rejected. */
static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t dev NZ_UNUSED)
{
	struct view_handle h = {0};
	struct view_attr a = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, parent, M_REQ_CREATE, name))
		return;
	if (!S_ISREG(mode)) {
		(void)fuse_reply_err(req, EPERM);
		call_end(&c, 0, false);
		return;
	}
	rc = write_ops_make(&c, parent, name, O_CREAT | O_EXCL | O_WRONLY, mode, &a, &h);
	if (rc == 0) {
		rc = c.view->write->flush(c.view, a.id, h.fh, &c.e);
		write_ops_release(&c, a.id, h.fh);
		if (rc < 0)
			call_forget(&c, a.id);
	}
	reply_entry(&c, rc, &a);
}

static void write_ops_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
			       off_t off, struct fuse_file_info *fi)
{
	struct call c;
	uint64_t end;
	int rc = -EFBIG; /* a normal answer, not logged */

	if (!write_ops_begin(&c, req, ino, M_REQ_WRITE, NULL))
		return;
	if (off >= 0 && !ckd_add(&end, (uint64_t)off, (uint64_t)size) && end <= INT64_MAX)
		rc = c.view->write->write(c.view, live_id(ino), fi->fh, (uint64_t)off,
					  (const uint8_t *)data, size, &c.e);
	if (rc == 0) {
		metrics_add(M_WRITTEN_BYTES, size);
		(void)fuse_reply_write(req, size);
	}
	call_end(&c, rc, false);
}

/* write_ops_op_flush - commit the writes of the file, also those by a program that was killed: its
 * end closes its files, and its earlier writes were confirmed. */
static void write_ops_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct call c;

	if (!write_ops_begin(&c, req, ino, M_REQ_FLUSH, NULL))
		return;
	ops_stop_end(&c);
	reply_done(&c, c.view->write->flush(c.view, live_id(ino), fi->fh, &c.e), false);
}

static void write_ops_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct call c;

	if (!write_ops_begin(&c, req, ino, M_REQ_RELEASE, NULL))
		return;
	write_ops_release(&c, live_id(ino), fi->fh);
	reply_done(&c, 0, false);
}

static void write_ops_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
			       struct fuse_file_info *fi)
{
	struct call c;

	if (!write_ops_begin(&c, req, ino, M_REQ_FSYNC, NULL))
		return;
	reply_done(&c, c.view->write->fsync(c.view, live_id(ino), fi->fh, datasync != 0, &c.e),
		   false);
}

static void write_ops_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync NZ_UNUSED,
				  struct fuse_file_info *fi NZ_UNUSED)
{
	struct call c;

	if (!write_ops_begin(&c, req, ino, M_REQ_FSYNC, NULL))
		return;
	reply_done(&c, c.view->write->fsyncdir(c.view, live_id(ino), &c.e), false);
}

/* Attributes. */

/* same_owner - uid and gid are the dataset's. Setting them to their present values is no error, so
 * that `cp -p` and tar succeed. */
static int same_owner(struct call *c, const struct stat *want, int to_set,
		      const struct stat *is)
{
	if ((!(to_set & FUSE_SET_ATTR_UID) || want->st_uid == is->st_uid) &&
	    (!(to_set & FUSE_SET_ATTR_GID) || want->st_gid == is->st_gid))
		return 0;
	return err_set(&c->e, -EPERM,
		       "the owner of a file in a mount cannot be changed");
}

static void attributes_to_set(const struct stat *want, int to_set, struct view_set *ret)
{
	*ret = (struct view_set){
		.size_set = (to_set & FUSE_SET_ATTR_SIZE) != 0,
		.mode_set = (to_set & FUSE_SET_ATTR_MODE) != 0,
		.mtime_set = (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) != 0,
		.size = (uint64_t)want->st_size,
		.mode = want->st_mode & PERM_BITS,
		.mtime = want->st_mtim,
	};
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		ret->mtime = clock_wall();
}

static int write_ops_set_attr(struct call *c, uint64_t id, uint64_t fh, const struct stat *want,
			      int to_set, struct view_attr *ret)
{
	struct view_set set;
	struct stat is;
	int rc = c->view->ops->getattr(c->view, id, ret, &c->e);

	if (rc < 0)
		return rc;
	call_stat(c, ret, &is);
	rc = same_owner(c, want, to_set, &is);
	if (rc < 0)
		return rc;
	attributes_to_set(want, to_set, &set);
	if (set.size_set && want->st_size < 0)
		return err_set(&c->e, -EINVAL, "a negative size");
	if (!set.size_set && !set.mode_set && !set.mtime_set)
		return 0; /* the owner, or a time of access, which is not stored */
	return c->view->write->setattr(c->view, id, fh, &set, ret, &c->e);
}

static void write_ops_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *want, int to_set,
				 struct fuse_file_info *fi)
{
	struct view_attr a = {0};
	struct stat st;
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, ino, M_REQ_SETATTR, NULL))
		return;
	rc = write_ops_set_attr(&c, live_id(ino), fi ? fi->fh : 0, want, to_set, &a);
	if (rc == 0) {
		call_stat(&c, &a, &st);
		(void)fuse_reply_attr(req, &st, call_timeout(&c, &a));
	}
	call_end(&c, rc, false);
}

/* Names. */

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct view_attr a = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, parent, M_REQ_MKDIR, name))
		return;
	rc = c.view->write->mkdir
		     ? c.view->write->mkdir(c.view, live_id(parent), name, mode & PERM_BITS,
					    &a, &c.e)
		     : err_set(&c.e, -EPERM, "directories cannot be created here");
	reply_entry(&c, rc, &a);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct call c;

	if (write_ops_begin(&c, req, parent, M_REQ_REMOVE, name))
		reply_done(&c, c.view->write->unlink(c.view, live_id(parent), name, &c.e), true);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct call c;

	if (!write_ops_begin(&c, req, parent, M_REQ_REMOVE, name))
		return;
	reply_done(&c,
		   c.view->write->rmdir
			   ? c.view->write->rmdir(c.view, live_id(parent), name, &c.e)
			   : err_set(&c.e, -EOPNOTSUPP, "rmdir: not supported here"),
		   true);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *to_name, unsigned int flags)
{
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, parent, M_REQ_RENAME,
			     strlen(to_name) > strlen(name) ? to_name : name))
		return;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		rc = -EINVAL; /* a normal answer, not logged */
	else
		rc = c.view->write->rename(c.view, live_id(parent), name, live_id(to), to_name,
					   flags, &c.e);
	reply_done(&c, rc, true);
}

static void op_symlink(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name)
{
	struct view_attr a = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, parent, M_REQ_LINK, name))
		return;
	rc = c.view->write->symlink
		     ? c.view->write->symlink(c.view, live_id(parent), name, text, &a, &c.e)
		     : err_set(&c.e, -EPERM, "symbolic links cannot be created here");
	reply_entry(&c, rc, &a);
}

/* op_link - zarr-python uses link(2) to create metadata files exclusively. */
static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t to, const char *to_name)
{
	struct view_attr a = {0};
	struct call c;
	int rc;

	if (!write_ops_begin(&c, req, ino, M_REQ_LINK, to_name))
		return;
	rc = c.view->write->link ? c.view->write->link(c.view, live_id(ino), live_id(to),
						       to_name, &a, &c.e)
				 : err_set(&c.e, -EPERM, "hard links cannot be created here");
	reply_entry(&c, rc, &a);
}

/* set_xattr - value NULL: remove the attribute. */
static void set_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		      size_t size, int flags)
{
	struct call c;
	int rc;

	if (xattr_refused(req, name) || !write_ops_begin(&c, req, ino, M_REQ_XATTR, NULL))
		return;
	rc = c.view->write->setxattr
		     ? c.view->write->setxattr(c.view, live_id(ino), name,
					       (const uint8_t *)value, size, flags, &c.e)
		     : -EOPNOTSUPP;
	if (rc == 0)
		(void)fuse_reply_err(req, 0);
	xattr_end(&c, rc);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t size, int flags)
{
	set_xattr(req, ino, name, value ? value : "", size, flags);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	set_xattr(req, ino, name, NULL, 0, 0);
}

void ops_add_write(struct fuse_lowlevel_ops *ops)
{
	ops->open = write_ops_op_open;
	ops->create = op_create;
	ops->mknod = op_mknod;
	ops->write = write_ops_op_write;
	ops->flush = write_ops_op_flush;
	ops->release = write_ops_op_release;
	ops->fsync = write_ops_op_fsync;
	ops->fsyncdir = write_ops_op_fsyncdir;
	ops->setattr = write_ops_op_setattr;
	ops->mkdir = op_mkdir;
	ops->unlink = op_unlink;
	ops->rmdir = op_rmdir;
	ops->rename = op_rename;
	ops->symlink = op_symlink;
	ops->link = op_link;
	ops->setxattr = op_setxattr;
	ops->removexattr = op_removexattr;
}
