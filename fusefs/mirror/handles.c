/* SPDX-License-Identifier: BSD-3-Clause */
/* handles.c - requests that change a mirrored directory, passed to its real entries and to the
 * writable views of its datasets.
 *
 * Every open file has a handle: a descriptor of a real file, or a slot with the handle of its view;
 * a file that is open for reading in a dataset that cannot be written has none (0). The name of a
 * dataset's converted view means that view, also when a new file is renamed over it: the file's
 * content becomes the dataset's. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/os/lock.h"
#include "base/observe/log.h"
#include "fusefs/mirror/handles_int.h"

/* mirror_handle - an open file. */
struct mirror_handle {
	struct list_link link; /* under the mirror's lock */
	struct slot *slot; /* NULL: a real file */
	uint64_t fh;       /* of the slot's view */
	int fd;            /* of a real file; owned */
	uint64_t id;       /* of a real file */
	bool writes;
	_Atomic bool wrote;
	pthread_mutex_t flush; /* of a real file: each flush waits for the one before */
};

static struct mirror_handle *handle_of(uint64_t fh)
{
	return (struct mirror_handle *)(uintptr_t)fh;
}

static bool for_writing(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

static void handle_remember(struct mirror *m, struct mirror_handle *h)
{
	LOCK_SCOPE(&m->lock);
	list_add(&m->handles, &h->link);
}

void write_handles_free(struct mirror *m)
{
	struct list_link *it;

	while ((it = list_take(&m->handles))) {
		struct mirror_handle *h = CONTAINER_OF(it, struct mirror_handle, link);

		close_fd(&h->fd); /* flushed data is in the file */
		free(h);
	}
}

/* ---- opening ---- */

/* give_fd - create the handle of a real file; takes fd, also on failure. */
static int give_fd(struct mirror *m, int fd, uint64_t id, int flags, struct view_handle *ret,
		   struct err *e)
{
	struct mirror_handle *h = alloc_array(1, sizeof(*h));
	bool writes = for_writing(flags);

	if (!h) {
		(void)close(fd);
		return err_nomem(e);
	}
	*h = (struct mirror_handle){
		.fd = fd, .id = id, .writes = writes, .flush = PTHREAD_MUTEX_INITIALIZER};
	handle_remember(m, h);
	real_opened(m, id, fd, false, writes);
	/* Appended data bypasses the page cache: other programs may write to the directory itself,
	 * so that the end of the file is not where the kernel last saw it. */
	*ret = (struct view_handle){.fh = (uint64_t)(uintptr_t)h,
				    .direct_io = writes && (flags & O_APPEND)};
	return 0;
}

/* give_slot - create the handle of a file in a slot, which stays in use. known: as for slot_put. */
static int give_slot(struct mirror *m, struct slot *s, uint64_t id, uint64_t known,
		     struct view_handle *ret, struct err *e)
{
	struct mirror_handle *h = alloc_array(1, sizeof(*h));

	if (!h) {
		s->view->write->release(s->view, inner_of(id), ret->fh);
		if (known && s->view->ops->forget)
			s->view->ops->forget(s->view, inner_of(id), known);
		slot_put(m, s, 0);
		return err_nomem(e);
	}
	*h = (struct mirror_handle){.slot = s, .fh = ret->fh, .fd = -1};
	handle_remember(m, h);
	slot_pin(m, s, known);
	ret->fh = (uint64_t)(uintptr_t)h;
	return 0;
}

static int open_in_slot(struct mirror *m, uint64_t id, int flags, struct view_handle *ret,
			struct err *e)
{
	struct slot *s;
	int rc = slot_get(m, number_of(id), &s, e);

	if (rc < 0)
		return rc;
	*ret = (struct view_handle){.keep_cache = true};
	if (s->view->write)
		rc = s->view->write->open(s->view, inner_of(id), flags, ret, e);
	else if (for_writing(flags))
		rc = write_read_only(s, e);
	if (rc == 0 && s->view->write)
		return give_slot(m, s, id, 0, ret, e);
	slot_put(m, s, 0);
	return rc;
}

static int w_open(struct view *v, uint64_t id, int flags, struct view_handle *ret,
		  struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct view_attr gone;
	int fd;

	if (number_of(id))
		return open_in_slot(m, id, flags, ret, e);
	fd = passthrough_open(m, id, flags, e);
	/* a removed name must not be opened: drop it, and the kernel looks it up again */
	if (fd == -ESTALE)
		(void)walk_gone_id(m, id, true, &gone, NULL);
	return fd < 0 ? fd : give_fd(m, fd, id, flags, ret, e);
}

/* ---- creating ---- */

static int create_in_slot(struct mirror *m, uint64_t dir, const char *name, int flags,
			  mode_t mode, struct view_attr *ret_attr, struct view_handle *ret,
			  struct err *e)
{
	struct slot *s;
	int rc = write_slot_get(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	rc = s->view->write->create(s->view, inner_of(dir), name, flags, mode, ret_attr, ret, e);
	if (rc < 0) {
		slot_put(m, s, 0);
		return rc;
	}
	mirror_show(m, s, ret_attr);
	return give_slot(m, s, ret_attr->id, 1, ret, e);
}

static int create_real(struct mirror *m, const struct where *dir, const char *name, int flags,
		       mode_t mode, bool fresh, struct view_attr *ret_attr,
		       struct view_handle *ret, struct err *e)
{
	char other[NAME_BYTES];
	int fd = -1, rc;

	fresh = fresh && new_wanted(m, dir, name, false, other);
	rc = passthrough_create(m, dir, name, flags, mode, &fd, ret_attr, e);
	if (rc < 0)
		return rc;
	if (fresh)
		real_set_fresh(m, ret_attr->id);
	return give_fd(m, fd, ret_attr->id, flags, ret, e);
}

/* create_counterpart - create the converted view of an existing dataset, whose file may have been
 * removed. */
static int create_counterpart(struct mirror *m, const struct where *dir, const char *name,
			      int flags, mode_t mode, struct view_attr *ret_attr,
			      struct view_handle *ret, struct err *e)
{
	uint32_t number = write_slot_named(m, dir, name);
	int rc;

	if (!number)
		return 1;
	rc = create_in_slot(m, id_of(number, VIEW_ROOT), name, flags, mode, ret_attr, ret, e);
	slot_forget(m, number, 1);
	return rc;
}

static int create_name(struct mirror *m, uint64_t dir, const char *name, int flags, mode_t mode,
		       struct view_attr *ret_attr, struct view_handle *ret, struct err *e)
{
	auto_where where = {0};
	enum target at;
	int rc = write_target(m, dir, name, &where, &at, ret_attr, e);

	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return create_in_slot(m, dir, name, flags, mode, ret_attr, ret, e);
	if (at == AT_COUNTERPART && (flags & O_EXCL))
		return err_set(e, -EEXIST, "'%s' already exists", name);
	if (at == AT_COUNTERPART && ret_attr->is_dir)
		return err_set(e, -EISDIR, "'%s' is a directory", name);
	rc = at == AT_REAL ? 1
			   : create_counterpart(m, &where, name, flags, mode, ret_attr, ret, e);
	if (rc <= 0)
		return rc;
	if (at == AT_COUNTERPART)
		return err_set(e, -EROFS, "'%s' cannot be written through this mount", name);
	return create_real(m, &where, name, flags, mode, at == AT_NOTHING, ret_attr, ret, e);
}

static int w_create(struct view *v, uint64_t dir, const char *name, int flags, mode_t mode,
		    struct view_attr *ret_attr, struct view_handle *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	uint64_t again;
	int rc = write_dir_again(m, &dir, &again, e);

	rc = rc ? rc : create_name(m, dir, name, flags, mode, ret_attr, ret, e);
	if (again)
		m->base.ops->forget(v, again, 1);
	return rc;
}

/* ---- reading and writing ---- */

/* read_real - read a real file that is open for writing. */
static int read_real(int fd, uint64_t off, size_t len, uint8_t *room, struct span *ret,
		     struct err *e)
{
	size_t got = 0;
	int rc = real_read_up_to(fd, room, len, off, &got);

	if (rc < 0)
		return err_sys(e, -rc, "read");
	*ret = (struct span){.mem = got ? room : NULL, .fd = -1, .len = got};
	return 0;
}

/* held_bytes - a view's bytes that a reader holds: the dataset stays open. */
struct held_bytes {
	struct mirror *m;
	struct slot *slot;
	struct span inner;
};

static void held_bytes_done(void *arg)
{
	struct held_bytes *h = arg;

	span_done(&h->inner);
	slot_put(h->m, h->slot, 0);
	free(h);
}

/* hold - pass bytes in a view's memory on with the slot; the reader owns both on success. */
static int hold(struct mirror *m, struct slot *s, const struct span *in, struct span *ret,
		struct err *e)
{
	struct held_bytes *h = alloc_array(1, sizeof(*h));

	if (!h)
		return err_nomem(e);
	*h = (struct held_bytes){.m = m, .slot = s, .inner = *in};
	*ret = *in;
	ret->done = held_bytes_done;
	ret->arg = h;
	return 0;
}

/* read_slot - read, through a handle or without one (fh 0). This use of the slot ends, or passes to
 * the answer with bytes in the view's memory. */
static int read_slot(struct mirror *m, struct slot *s, uint64_t id, uint64_t fh, uint64_t off,
		     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	struct span in = {0};
	int rc = s->view->ops->read(s->view, id, fh, off, len, room, &in, e);

	if (rc)
		return slot_end(m, s, rc, NULL, 0, e);
	if (in.mem && in.mem != room) {
		rc = hold(m, s, &in, ret, e);
		if (!rc)
			return 0;
	} else {
		if (!in.mem && in.len) {
			rc = in.len > len ? err_set(e, -EIO,
						    "read of %zu bytes was answered with %zu",
						    len, in.len)
					  : io_pread(in.fd, room, in.len, in.off, e);
			/* checked after the read */
			rc = rc ? slot_map_error(m, s, rc, e) : slot_check(m, s, e);
		}
		*ret = (struct span){
			.mem = in.len ? room : NULL, .fd = -1, .len = in.len, .zeros = in.zeros};
	}
	span_done(&in);
	slot_put(m, s, 0);
	return rc;
}

int mirror_read(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		uint8_t *room, struct span *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	const struct mirror_handle *h = handle_of(fh);
	struct slot *s;
	int rc = 0;

	if (!number_of(id))
		return h ? read_real(h->fd, off, len, room, ret, e)
			 : real_read(m, id, off, len, room, ret, e);
	s = h ? slot_if_open(m, number_of(id)) : NULL; /* the open handle guarantees that */
	if (h && !s)
		rc = err_set(e, -ESTALE, "the file is no longer open");
	else if (!h)
		rc = slot_get(m, number_of(id), &s, e);
	return rc ? rc : read_slot(m, s, inner_of(id), h ? h->fh : 0, off, len, room, ret, e);
}

static int w_write(struct view *v NZ_UNUSED, uint64_t id, uint64_t fh, uint64_t off,
		   const uint8_t *data, size_t len, struct err *e)
{
	struct mirror_handle *h = handle_of(fh);
	int rc;

	if (!h)
		return err_set(e, -EBADF, "the file was not opened for writing");
	if (h->slot)
		return h->slot->view->write->write(h->slot->view, inner_of(id), h->fh, off,
						   data, len, e);
	h->wrote = true;
	rc = io_pwrite(h->fd, data, len, off, e);
	return rc == -EFBIG || rc == -EINVAL ? real_fail(e, -rc, "write") : rc;
}

/* ---- closing ---- */

static int w_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e)
{
	struct mirror_handle *h = handle_of(fh);
	int rc;

	if (h && h->slot)
		return h->slot->view->write->flush(h->slot->view, inner_of(id), h->fh, e);
	if (!h)
		return 0;
	LOCK_SCOPE(&h->flush);
	/* cleared first: a write during the flush needs another one */
	if (!atomic_exchange(&h->wrote, false))
		return 0;
	rc = become_flushed(mirror_of(v), h->id, h->fd, e);
	if (rc < 0)
		h->wrote = true;
	return rc;
}

static int w_fsync(struct view *v NZ_UNUSED, uint64_t id, uint64_t fh, bool data_only,
		   struct err *e)
{
	struct mirror_handle *h = handle_of(fh);

	if (!h)
		return 0;
	if (!h->slot)
		return io_sync(h->fd, !data_only, e);
	return h->slot->view->write->fsync(h->slot->view, inner_of(id), h->fh, data_only, e);
}

static int w_fsyncdir(struct view *v, uint64_t dir, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_where n = {0};
	struct slot *s;
	int rc;

	if (number_of(dir)) {
		rc = slot_get(m, number_of(dir), &s, e);
		if (rc < 0)
			return rc;
		if (s->view->write)
			rc = s->view->write->fsyncdir(s->view, inner_of(dir), e);
		slot_put(m, s, 0);
		return rc;
	}
	rc = real_where(m, dir, &n, e);
	rc = rc ? rc : slots_sync(m, n.path, e);
	auto_fd int fd = rc ? rc : real_open_dir(m, &n, e);

	return fd < 0 ? fd : io_sync(fd, true, e);
}

static void w_release(struct view *v, uint64_t id, uint64_t fh)
{
	struct mirror *m = mirror_of(v);
	struct mirror_handle *h = handle_of(fh);
	struct err e = ERR_INIT;

	if (!h)
		return;
	(void)pthread_mutex_lock(&m->lock);
	list_remove(&h->link);
	(void)pthread_mutex_unlock(&m->lock);
	if (h->slot) {
		h->slot->view->write->release(h->slot->view, inner_of(id), h->fh);
		slot_unpin(m, h->slot);
	} else {
		if (h->writes && real_writer_last(m, h->id) &&
		    become_flushed(m, h->id, h->fd, &e) < 0)
			log_error("%s", e.msg);
		real_closed(m, h->id);
		(void)close(h->fd); /* data was flushed before, or the error was reported */
	}
	free(h);
}

/* ---- attributes and syncing ---- */

static int w_setattr(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		     struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct mirror_handle *h = handle_of(fh);
	struct slot *s;
	int rc;

	if (!number_of(id)) {
		if (h && set->size_set)
			h->wrote = true;
		return passthrough_setattr(m, id, h && h->writes ? h->fd : -1, set, ret, e);
	}
	rc = write_slot_get(m, number_of(id), &s, e);
	if (rc < 0)
		return rc;
	rc = s->view->write->setattr(s->view, inner_of(id), h ? h->fh : 0, set, ret, e);
	return slot_end(m, s, rc, ret, 0, e);
}

/* w_setxattr - files of a dataset only have the attributes that say where their bytes are
 * stored. */
static int w_setxattr(struct view *v, uint64_t id, const char *name, const uint8_t *value,
		      size_t len, int flags, struct err *e)
{
	return number_of(id) ? -EOPNOTSUPP
			     : real_setxattr(mirror_of(v), id, name, value, len, flags, e);
}

static int w_finish(struct view *v, bool last NZ_UNUSED, struct err *e)
{
	return slots_finish(mirror_of(v), e);
}

const struct view_write_ops mirror_write_ops = {
	.open = w_open,
	.create = w_create,
	.write = w_write,
	.flush = w_flush,
	.fsync = w_fsync,
	.fsyncdir = w_fsyncdir,
	.release = w_release,
	.setattr = w_setattr,
	.mkdir = write_mkdir,
	.unlink = write_unlink,
	.rmdir = write_rmdir,
	.rename = write_rename,
	.symlink = write_symlink,
	.link = write_link,
	.setxattr = w_setxattr,
	.finish = w_finish,
};
