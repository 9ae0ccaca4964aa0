/* SPDX-License-Identifier: BSD-3-Clause */
/* read_ops.c - translates the kernel's requests to calls of the view.
 *
 * Inode numbers are those of the view in its epoch (epoch.h). Every request holds its epoch until
 * the kernel has the answer, so that an old answer cannot overtake a later notification by the
 * watcher. A view that follows changes itself has only one epoch, and decides which of its answers
 * the kernel may cache.
 *
 * Directory offsets: 1 after ".", 2 after "..", then the view's cookie + 2. In the root, whose
 * inode number is the same in every epoch, the upper bits carry the epoch, so that a listing that
 * began in one epoch does not continue in another. */
#include "fusefs/ops/request_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/os/io.h"
#include "base/observe/log.h"
#include "fusefs/mirror/view.h"
#include "fusefs/daemon/status.h"

#define TIMEOUT 3600.0 /* seconds: the kernel learns of every change in another way */
#define VOLATILE_ATTRS 1.0                   /* seconds: the kernel is not notified of changes */
#define UNCACHED_BYTES ((uint64_t)256 << 10) /* smaller files gain nothing */
#define BLOCK_SIZE 131072                    /* st_blksize: the kernel's readahead */
#define LINK_MAX_BYTES 4097                  /* a link's target and its NUL */
#define COOKIE_BITS 55
#define COOKIE_LIMIT (((uint64_t)1 << COOKIE_BITS) - 2)

bool call_begin(struct call *c, fuse_req_t req, fuse_ino_t ino, enum metric kind, bool names)
{
	int rc;

	metrics_count(kind);
	*c = (struct call){.fs = fuse_req_userdata(req), .req = req};
	metrics_gauge_add(G_REQUESTS_RUNNING, 1);
	mirror_caller = fuse_req_ctx(req)->pid;
	ops_stop_begin(c);
	rc = names ? epoch_acquire_stale(c->fs->live, ino, &c->ep, &c->past, &c->e)
		   : epoch_acquire(c->fs->live, ino, &c->ep, &c->e);
	if (rc < 0) {
		ops_stop_end(c);
		metrics_gauge_add(G_REQUESTS_RUNNING, -1);
		reply_fail(c->fs, req, rc, false, false, &c->e);
		return false;
	}
	c->view = c->ep->view;
	return true;
}

/* read_ops_result - epoch_result: while the source cannot be opened, the last epoch answers. */
static int read_ops_result(struct call *c, int rc)
{
	return c->past ? rc : epoch_result(c->fs->live, c->ep, rc, &c->e);
}

void call_end(struct call *c, int rc, bool may_be_absent)
{
	if (rc < 0)
		reply_fail(c->fs, c->req, read_ops_result(c, rc), may_be_absent, c->writes,
			   &c->e);
	metrics_gauge_add(G_REQUESTS_RUNNING, -1);
	ops_stop_end(c);
	epoch_release(c->fs->live, c->ep);
}

/* inherit - copy owner, times and mode bits from a source's file or directory to the view's
 * attributes. bits: the mode bits that have a meaning here. */
static void inherit(const struct stat *src, mode_t bits, bool is_dir, struct stat *st)
{
	mode_t mode = src->st_mode & bits;

	st->st_mode |= is_dir ? mode | (mode & 0444) >> 2 : mode;
	st->st_uid = src->st_uid;
	st->st_gid = src->st_gid;
	st->st_atim = src->st_atim;
	st->st_mtim = src->st_mtim;
	st->st_ctim = src->st_ctim;
}

void call_stat(const struct call *c, const struct view_attr *a, struct stat *st)
{
	*st = (struct stat){
		.st_ino = live_ino(c->ep, a->id),
		.st_mode = a->is_dir    ? S_IFDIR
			   : a->is_link ? S_IFLNK
					: S_IFREG,
		.st_nlink = a->nameless ? 0
			    : a->nlink  ? a->nlink
					: 1,
		.st_size = (off_t)a->size,
		.st_blksize = BLOCK_SIZE,
		.st_blocks = (blkcnt_t)(a->size / 512 + (a->size % 512 != 0)),
	};
	if (!a->own) {
		struct stat src;

		if (c->view->source)
			inherit(&c->view->source->ds.st, 0444, a->is_dir, st);
		else if (c->fs->writes && !c->fs->remote && stat(c->fs->path, &src) == 0)
			inherit(&src, 0666, a->is_dir, st); /* the view changes its source */
		return;
	}
	st->st_mode |= a->mode & 0777;
	st->st_uid = a->uid;
	st->st_gid = a->gid;
	st->st_mtim = st->st_atim = a->mtime;
	st->st_ctim = a->ctime;
}

double call_timeout(const struct call *c, const struct view_attr *a)
{
	if (c->past || (a && a->unknown))
		return 0;
	/* A commit changes the contents of files without notifying the kernel. It removes no
	 * directories, and every path leads through some. */
	if (c->view->write)
		return a && a->steady ? VOLATILE_ATTRS : 0;
	if (c->view->follows || (a && a->volatile_attrs))
		return VOLATILE_ATTRS;
	/* nothing reports changes of remote sources: requests trigger the check */
	return c->fs->revalidate ? c->fs->revalidate : TIMEOUT;
}

void call_entry(const struct call *c, const struct view_attr *a, struct fuse_entry_param *entry)
{
	*entry = (struct fuse_entry_param){
		.ino = live_ino(c->ep, a->id),
		.generation = c->ep->number / EPOCHS_EPOCHS,
		.attr_timeout = call_timeout(c, a),
		.entry_timeout = a->inner ? TIMEOUT : call_timeout(c, a),
	};
	call_stat(c, a, &entry->attr);
}

/* unknown - handle a file that is shown although it could not be examined. If the source changed,
 * the kernel must repeat the request: -ESTALE; otherwise the reason is logged, and reading the file
 * gives the error. */
static int unknown(struct call *c, const struct view_attr *a)
{
	if (!a->unknown || c->past)
		return 0;
	if (read_ops_result(c, -EIO) == -ESTALE)
		return -ESTALE;
	reply_log(c->fs, &c->e);
	return 0;
}

static void read_ops_forget(struct view *v, uint64_t id, uint64_t count)
{
	if (v->ops->forget)
		v->ops->forget(v, id, count);
}

void call_forget(const struct call *c, uint64_t id)
{
	read_ops_forget(c->view, id, 1);
}

void call_reply_entry(struct call *c, const struct fuse_entry_param *entry, uint64_t id)
{
	bool untold;

	epochs_reported(c->fs->live, c->ep, 1);
	untold = fuse_reply_entry(c->req, entry) == -ENOENT;
	ops_stop_end(c); /* after the reply there is no request to cancel */
	if (!untold)
		return;
	epochs_reported(c->fs->live, c->ep, -1);
	read_ops_forget(c->view, id, 1);
}

bool name_fits(fuse_req_t req, const char *name)
{
	if (strlen(name) <= NAME_BYTES_MAX)
		return true;
	(void)fuse_reply_err(req, ENAMETOOLONG);
	return false;
}

static void read_ops_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {.ino = 0};
	struct view_attr attr;
	struct call c;
	int rc;

	log_debug("look-up in inode %" PRIu64, (uint64_t)parent);
	if (!name_fits(req, name) || !call_begin(&c, req, parent, M_REQ_LOOKUP, true))
		return;
	entry.entry_timeout = call_timeout(&c, NULL);
	rc = c.view->ops->lookup(c.view, live_id(parent), name, strlen(name), &attr, &c.e);
	rc = rc ? rc : unknown(&c, &attr);
	if (rc == 0) {
		call_entry(&c, &attr, &entry);
		call_reply_entry(&c, &entry, attr.id);
	} else if (rc == -ENOENT && (rc = read_ops_result(&c, rc)) == -ENOENT) {
		(void)fuse_reply_entry(req, &entry); /* ino 0: cache that it is absent */
		rc = 0;
	}
	call_end(&c, rc, true);
}

static void read_ops_op_getattr(fuse_req_t req, fuse_ino_t ino,
				struct fuse_file_info *fi NZ_UNUSED)
{
	struct view_attr attr;
	struct stat st;
	struct call c;
	int rc;

	log_debug("getattr of inode %" PRIu64, (uint64_t)ino);
	if (!call_begin(&c, req, ino, M_REQ_GETATTR, true))
		return;
	rc = c.view->ops->getattr(c.view, live_id(ino), &attr, &c.e);
	rc = rc ? rc : unknown(&c, &attr);
	if (rc == 0) {
		call_stat(&c, &attr, &st);
		(void)fuse_reply_attr(req, &st, call_timeout(&c, &attr));
	}
	call_end(&c, rc, false);
}

/* access_allowed - Spec: access(2), path_resolution(7). */
bool access_allowed(const struct stat *st, uid_t uid, bool in_group, int mask)
{
	mode_t bits = st->st_mode & 7;

	/* root may do everything, except to execute a file that no class may execute */
	if (uid == 0)
		bits = S_ISDIR(st->st_mode) || (st->st_mode & 0111) ? 7 : 6;
	else if (uid == st->st_uid)
		bits = st->st_mode >> 6 & 7;
	else if (in_group)
		bits = st->st_mode >> 3 & 7;
	return !((mode_t)mask & 7 & ~bits);
}

/* in_group - true if the caller is in a group, including its supplementary groups. */
static bool in_group(fuse_req_t req, gid_t gid)
{
	int n = fuse_req_ctx(req)->gid == gid ? 0 : fuse_req_getgroups(req, 0, NULL);
	auto_free gid_t *list = n > 0 ? alloc_array((size_t)n, sizeof(*list)) : NULL;
	int m = list ? fuse_req_getgroups(req, n, list) : 0;
	bool found = fuse_req_ctx(req)->gid == gid;

	for (int i = 0; !found && i < n && i < m; i++)
		found = list[i] == gid;
	return found;
}

/* op_access - sent by the kernel if it does not check modes itself (default_permissions). */
static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	const uid_t uid = fuse_req_ctx(req)->uid;
	struct view_attr attr;
	struct stat st;
	struct call c;
	int rc, answer = 0;

	if (!call_begin(&c, req, ino, M_REQ_GETATTR, true))
		return;
	rc = c.view->ops->getattr(c.view, live_id(ino), &attr, &c.e);
	if (rc == 0) {
		call_stat(&c, &attr, &st);
		if ((mask & W_OK) && !c.view->write)
			answer = EROFS;
		else if (!attr.is_link &&
			 !access_allowed(&st, uid,
					 uid && uid != st.st_uid && in_group(req, st.st_gid),
					 mask))
			answer = EACCES;
		(void)fuse_reply_err(req, answer);
	}
	call_end(&c, rc, false);
}

/* forget_ino - views that follow count the kernel's references themselves; epochs count those of
 * other views. */
static void forget_ino(struct fs *fs, fuse_ino_t ino, uint64_t count)
{
	struct epoch *ep;

	if (!fs->follows)
		epochs_forgotten(fs->live, ino, count);
	else if (epoch_acquire(fs->live, ino, &ep, NULL) == 0) {
		read_ops_forget(ep->view, live_id(ino), count);
		epoch_release(fs->live, ep);
	}
}

static void read_ops_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	metrics_count(M_REQ_FORGET);
	forget_ino(fuse_req_userdata(req), ino, nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	metrics_add(M_REQ_FORGET, count);
	for (size_t i = 0; i < count; i++)
		forget_ino(fuse_req_userdata(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	auto_buf text = buf_of(LINK_MAX_BYTES);
	struct call c;
	int rc;

	if (!call_begin(&c, req, ino, M_REQ_READLINK, true))
		return;
	rc = c.view->ops->readlink ? c.view->ops->readlink(c.view, live_id(ino), &text, &c.e)
				   : err_set(&c.e, -EINVAL, "not a symbolic link");
	buf_putc(&text, '\0');
	if (rc == 0 && !buf_ok(&text))
		rc = err_nomem(&c.e);
	if (rc == 0)
		(void)fuse_reply_readlink(req, (const char *)text.data);
	call_end(&c, rc, false);
}

/* Extended attributes. Only names in "user.*" exist. Programs that list files request
 * "security.selinux" and access lists of each file, but stop if the filesystem does not support
 * them. Views without attributes make the kernel send no such requests. */

#define XATTR_MAX_BYTES 65536 /* the kernel's limit for a value and for the list */

bool xattr_refused(fuse_req_t req, const char *name)
{
	const struct fs *fs = fuse_req_userdata(req);

	if (!fs->no_xattr && (!name || strncmp(name, "user.", 5) == 0))
		return false;
	metrics_count(M_REQ_XATTR);
	(void)fuse_reply_err(req, fs->no_xattr ? ENOSYS : EOPNOTSUPP);
	return true;
}

void xattr_end(struct call *c, int rc)
{
	const bool answer = rc == -ENODATA || rc == -E2BIG || rc == -EOPNOTSUPP || rc == -EPERM ||
			    rc == -EACCES || rc == -EEXIST || rc == -EINVAL || rc == -ERANGE ||
			    rc == -ENOSPC || rc == -EDQUOT; /* an inode has little room */

	if (answer)
		(void)fuse_reply_err(c->req, -rc);
	call_end(c, answer ? 0 : rc, false);
}

/* reply_xattr - both requests have the same protocol: size 0 requests the length. */
static void reply_xattr(struct call *c, const struct buf *out, size_t size)
{
	if (size == 0)
		(void)fuse_reply_xattr(c->req, out->len);
	else if (out->len > size)
		(void)fuse_reply_err(c->req, ERANGE);
	else
		(void)fuse_reply_buf(c->req, (const char *)out->data, out->len);
}

static void xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	auto_buf out = buf_of(XATTR_MAX_BYTES);
	struct call c;
	int rc;

	if (xattr_refused(req, name))
		return;
	if (!call_begin(&c, req, ino, M_REQ_XATTR, true))
		return;
	rc = name ? -ENODATA : 0;
	if (c.view->ops->xattr)
		rc = c.view->ops->xattr(c.view, live_id(ino), name, &out, &c.e);
	if (rc == 0)
		reply_xattr(&c, &out, size);
	xattr_end(&c, rc);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	xattr(req, ino, name, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	xattr(req, ino, NULL, size);
}

/* Read. */

struct buffer {
	uint8_t *p;
	size_t cap;
};

static void buffer_free(void *arg)
{
	struct buffer *b = arg;

	free(b->p);
	free(b);
}

/* thread_buffer - at least len bytes that belong to this thread; NULL when memory is short. */
static uint8_t *thread_buffer(const struct fs *fs, size_t len)
{
	struct buffer *b = pthread_getspecific(fs->buffer_key);
	size_t cap;

	if (!b) {
		b = alloc_array(1, sizeof(*b));
		if (!b || pthread_setspecific(fs->buffer_key, b) != 0) {
			free(b);
			return NULL;
		}
	}
	if (b->cap >= len)
		return b->p;
	if (ckd_add(&cap, len, 4095))
		return NULL;
	cap &= ~(size_t)4095;
	free(b->p);
	b->p = aligned_alloc(4096, cap);
	b->cap = b->p ? cap : 0;
	return b->p;
}

/* reply_memory - reply with bytes in memory, then zeros, without a copy. */
static int reply_memory(struct call *c, const struct span *s)
{
	static const uint8_t zero[65536];
	struct iovec iov[1 + 64];
	size_t left = s->zeros;
	int n = 0;

	if (left > (ARRAY_LEN(iov) - 1) * sizeof(zero))
		return err_set(&c->e, -ERANGE, "read of %zu zeros is too large", left);
	/* writev does not modify its buffers */
	if (s->len)
		iov[n++] = (struct iovec){(void *)(uintptr_t)s->mem, s->len};
	for (size_t part; left; left -= part) {
		part = left < sizeof(zero) ? left : sizeof(zero);
		iov[n++] = (struct iovec){(void *)(uintptr_t)zero, part};
	}
	/* counted before the reader can query the number */
	metrics_add(M_READ_BYTES, s->len + s->zeros);
	(void)fuse_reply_iov(c->req, iov, n);
	return 0;
}

/* reply_file - reply with bytes of the source's file, then zeros. buf: room for all of them. */
static int reply_file(struct call *c, const struct span *s, uint8_t *buf)
{
	int rc = io_pread(s->fd, buf, s->len, s->off, &c->e);

	/* The source's state is checked after the bytes were read. A view without a source checks
	 * itself. */
	if (rc == 0 && c->view->source)
		rc = source_check(c->view->source, &c->e);
	if (rc < 0)
		return rc;
	memset(buf + s->len, 0, s->zeros);
	metrics_add(M_READ_BYTES, s->len + s->zeros);
	(void)fuse_reply_buf(c->req, (const char *)buf, s->len + s->zeros);
	return 0;
}

static void read_ops_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			     struct fuse_file_info *fi)
{
	struct span s = {0};
	uint8_t *room;
	size_t total;
	struct call c;
	int rc;

	log_debug("read of inode %" PRIu64, (uint64_t)ino);
	if (!call_begin(&c, req, ino, M_REQ_READ, false))
		return;
	room = thread_buffer(c.fs, size);
	if (off < 0)
		rc = err_set(&c.e, -EINVAL, "read at a negative offset");
	else if (!room)
		rc = err_nomem(&c.e);
	else
		rc = c.view->ops->read(c.view, live_id(ino), c.view->write ? fi->fh : 0,
				       (uint64_t)off, size, room, &s, &c.e);
	if (rc == 0) {
		if (ckd_add(&total, s.len, s.zeros) || total > size)
			rc = err_set(&c.e, -EIO, "read of %zu bytes was answered with more",
				     size);
		else if (s.mem || !s.len)
			rc = reply_memory(&c, &s);
		else
			rc = reply_file(&c, &s, room);
		span_done(&s);
	}
	call_end(&c, rc, false);
}

/* Directories. */

struct readdir_listing {
	struct call *c;
	char *buf;
	size_t size, used;
	uint64_t tag; /* upper bits of offsets */
	bool plus;
	int64_t reported; /* entries for which the kernel gets an inode */
	bool overflow; /* a cookie that does not fit */
};

/* read_ops_add - append one entry; false if the buffer is full. off: without the tag. */
static bool read_ops_add(struct readdir_listing *l, const char *name, uint64_t id, bool is_dir,
			 const struct view_attr *attr, uint64_t off)
{
	struct fuse_entry_param entry = {.ino = 0};
	char *at = l->buf + l->used;
	size_t left = l->size - l->used, n;

	/* Without attributes ino stays 0: the kernel then takes the name only. */
	if (attr)
		call_entry(l->c, attr, &entry);
	else
		call_stat(l->c, &(struct view_attr){.id = id, .is_dir = is_dir}, &entry.attr);
	off |= l->tag;
	n = l->plus ? fuse_add_direntry_plus(l->c->req, at, left, name, &entry, (off_t)off)
		    : fuse_add_direntry(l->c->req, at, left, name, &entry.attr, (off_t)off);
	if (n > left)
		return false;
	l->used += n;
	l->reported += l->plus && entry.ino;
	return true;
}

static bool read_ops_emit(void *arg, const char *name, uint64_t id, bool is_dir,
			  const struct view_attr *attr, uint64_t next)
{
	struct readdir_listing *l = arg;

	if (next >= COOKIE_LIMIT) {
		l->overflow = true;
		return false;
	}
	return read_ops_add(l, name, id, is_dir, l->plus ? attr : NULL, next + 2);
}

static int read_ops_list(struct readdir_listing *l, uint64_t id, uint64_t off)
{
	struct view *v = l->c->view;
	size_t dots;
	int rc;

	if (off == 0 && !read_ops_add(l, ".", id, true, NULL, 1))
		return 0;
	if (off <= 1 && !read_ops_add(l, "..", v->ops->parent(v, id), true, NULL, 2))
		return 0;
	dots = l->used;
	rc = v->ops->list(v, id, off <= 2 ? 0 : off - 2, l->plus, read_ops_emit, l, &l->c->e);
	if (rc == 0 && l->overflow)
		rc = err_set(&l->c->e, -ERANGE, "directory is too large to be listed");
	/* the error is returned again when the listing continues at this entry */
	return l->used > dots ? 0 : rc;
}

static void read_directory(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	struct call c;
	struct readdir_listing l = {.c = &c, .plus = plus, .size = size};
	uint64_t at = (uint64_t)off & (((uint64_t)1 << COOKIE_BITS) - 1);
	int rc;

	log_debug("listing of inode %" PRIu64, (uint64_t)ino);
	if (!call_begin(&c, req, ino, M_REQ_READDIR, true))
		return;
	if (ino == EPOCHS_ROOT)
		l.tag = (c.ep->number & 255) << COOKIE_BITS;
	l.buf = (char *)thread_buffer(c.fs, size);
	if (!l.buf)
		rc = err_nomem(&c.e);
	else if (off && ((uint64_t)off & ~(((uint64_t)1 << COOKIE_BITS) - 1)) != l.tag)
		rc = err_set(&c.e, -ESTALE, "directory changed while it was listed");
	else
		rc = read_ops_list(&l, live_id(ino), at);
	if (rc == 0) {
		epochs_reported(c.fs->live, c.ep, l.reported);
		if (fuse_reply_buf(req, l.buf, l.used) == -ENOENT)
			epochs_reported(c.fs->live, c.ep, -l.reported);
	} else if (rc == -ESTALE) { /* of a listing, not of the source */
		reply_fail(c.fs, req, rc, false, false, &c.e);
		rc = 0;
	}
	call_end(&c, rc, false);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi NZ_UNUSED)
{
	read_directory(req, ino, size, off, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi NZ_UNUSED)
{
	read_directory(req, ino, size, off, true);
}

/* Opening: ENOSYS makes the kernel send no more open requests and keep its page cache. If large
 * decoded chunks must bypass the page cache, the kernel has to send them: the bytes then reach the
 * reader's memory from the chunk cache with one copy, in requests of up to a MiB
 * (docs/dev/benchmarks.md). */

/* read_ops_caching - set how the kernel caches a file. The contents of a file that may change are
 * requested again at every opening. */
static void read_ops_caching(const struct call *c, const struct view_attr *a,
			     struct fuse_file_info *fi)
{
	fi->direct_io = c->fs->uncached && !a->cached && a->size >= UNCACHED_BYTES;
	fi->keep_cache = !fi->direct_io && (!c->view->follows || a->fixed);
}

static void read_ops_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct view_attr attr = {.id = 0};
	struct call c;
	int rc = 0;

	log_debug("open of inode %" PRIu64, (uint64_t)ino);
	if (fs->no_open) {
		metrics_count(M_REQ_OPEN);
		(void)fuse_reply_err(req, ENOSYS);
		return;
	}
	if (!call_begin(&c, req, ino, M_REQ_OPEN, true))
		return;
	if (fs->uncached || c.view->follows)
		rc = c.view->ops->getattr(c.view, live_id(ino), &attr, &c.e);
	if (rc == 0 && c.view->ops->open) {
		rc = c.view->ops->open(c.view, live_id(ino), &c.e);
		c.writes = rc < 0; /* EACCES is passed unchanged */
	}
	if (rc == 0) {
		read_ops_caching(&c, &attr, fi);
		if (fuse_reply_open(req, fi) == -ENOENT && c.view->ops->release)
			/* the program was interrupted */
			c.view->ops->release(c.view, live_id(ino));
	}
	call_end(&c, rc, false);
}

static void read_ops_op_release(fuse_req_t req, fuse_ino_t ino,
				struct fuse_file_info *fi NZ_UNUSED)
{
	struct call c;

	if (!call_begin(&c, req, ino, M_REQ_RELEASE, true))
		return;
	ops_stop_end(&c); /* a release is never cancelled */
	if (c.view->ops->release)
		c.view->ops->release(c.view, live_id(ino));
	(void)fuse_reply_err(req, 0);
	call_end(&c, 0, false);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino NZ_UNUSED, struct fuse_file_info *fi)
{
	const struct fs *fs = fuse_req_userdata(req);

	metrics_count(M_REQ_OPENDIR);
	if (fs->no_opendir) {
		(void)fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = fi->cache_readdir = !fs->follows;
	(void)fuse_reply_open(req, fi);
}

/* op_statfs - for a source that is one file, the filesystem is exactly full. For a directory, which
 * may grow, and for a writable source, the values are those of the filesystem below. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino NZ_UNUSED)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct statvfs out = {
		.f_bsize = BLOCK_SIZE, .f_frsize = 4096, .f_namemax = NAME_BYTES_MAX};
	struct statvfs below;
	struct stat st;

	metrics_count(M_REQ_STATFS);
	(void)epochs_broken(fs->live, &st); /* the size from the last epoch will do */
	if (S_ISREG(st.st_mode) && !fs->writes) {
		out.f_blocks = ((fsblkcnt_t)st.st_size + 4095) / 4096;
	} else if (!fs->remote && statvfs(fs->path, &below) == 0) {
		out.f_frsize = below.f_frsize;
		out.f_blocks = below.f_blocks;
		out.f_bfree = below.f_bfree;
		out.f_bavail = below.f_bavail;
	}
	(void)fuse_reply_statfs(req, &out);
}

/* op_ioctl - report the mount's status from what the server has in memory. */
static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg NZ_UNUSED,
		     struct fuse_file_info *fi NZ_UNUSED, unsigned flags, const void *in,
		     size_t in_size, size_t out_size)
{
	const struct fs *fs = fuse_req_userdata(req);

	metrics_count(M_REQ_IOCTL);
	status_ioctl(fs->status, req, ino, cmd, flags, in, in_size, out_size);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fs *fs = userdata;

	/* Without an open request the kernel keeps its cache, so requests are needed if contents
	 * may change without a notification. */
	fs->no_open =
		(conn->capable & FUSE_CAP_NO_OPEN_SUPPORT) && !fs->uncached && !fs->follows;
	fs->no_opendir = (conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT) && !fs->ask_opendir &&
			 !fs->follows;
	fs->no_xattr = fs->no_xattr || !epochs_first(fs->live)->view->ops->xattr;
	conn->max_read = fs->max_read; /* libfuse requires this value in both places */
	/* A change that the kernel does not see changes the inode number or needs a new open, so
	 * the kernel need not query a file's size at each read. Written data is with the server
	 * before close returns, so there is no writeback cache. */
	if (fs->writes)
		conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE);
	/* Names in one directory are looked up in parallel, as each lookup may cost a round trip to
	 * a server. Older versions of libfuse (3.14) do not pass this on. */
	if (fs->remote)
		conn->want |= conn->capable & FUSE_CAP_PARALLEL_DIROPS;
	log_debug("kernel protocol %u.%u, read-ahead %u bytes", conn->proto_major,
		  conn->proto_minor, conn->max_readahead);
}

const struct fuse_lowlevel_ops *fs_operations(bool writes)
{
	static struct fuse_lowlevel_ops more;
	static const struct fuse_lowlevel_ops ops = {
		.init = op_init,
		.lookup = read_ops_op_lookup,
		.getattr = read_ops_op_getattr,
		.access = op_access,
		.readlink = op_readlink,
		.forget = read_ops_op_forget,
		.forget_multi = op_forget_multi,
		.open = read_ops_op_open,
		.release = read_ops_op_release,
		.read = read_ops_op_read,
		.opendir = op_opendir,
		.readdir = op_readdir,
		.readdirplus = op_readdirplus,
		.statfs = op_statfs,
		.ioctl = op_ioctl,
		.getxattr = op_getxattr,
		.listxattr = op_listxattr,
	};

	if (!writes)
		return &ops;
	more = ops;
	ops_add_write(&more);
	return &more;
}

int fs_init(struct fs *fs, struct err *e)
{
	int rc;

	*fs = (struct fs){0};
	rc = pthread_key_create(&fs->buffer_key, buffer_free);
	if (rc)
		return err_sys(e, rc, "pthread key");
	rc = pthread_mutex_init(&fs->log.lock, NULL);
	if (rc) {
		(void)pthread_key_delete(fs->buffer_key);
		return err_sys(e, rc, "mutex");
	}
	return 0;
}

void fs_release(struct fs *fs)
{
	struct buffer *b = pthread_getspecific(fs->buffer_key);

	if (b)
		buffer_free(b);
	(void)pthread_key_delete(fs->buffer_key);
	(void)pthread_mutex_destroy(&fs->log.lock);
	free(fs->folder);
}
