/* mirror_write.c - requests that change a mirrored directory, given to what is there and to the
 * writable views of its datasets.
 *
 * Whatever a program has open has a handle: a descriptor of a real file, or a slot with the handle of
 * its view; reading what nobody can write has none (0). A name that a dataset's counterpart has
 * means that counterpart, also when a new file is renamed over it: its content is then the
 * dataset's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/log.h"
#include "fusefs/mirror_int.h"

#define COPY_BYTES ((size_t)1 << 20)

/* handle - an open file. */
struct handle {
	struct slot *slot; /* NULL: a real file */
	uint64_t fh;       /* of the slot's view */
	int fd;            /* of a real file; owned */
	uint64_t id;       /* the same */
	bool writes;
	_Atomic bool wrote;
};

static struct handle *handle_of(uint64_t fh)
{
	return (struct handle *)(uintptr_t)fh;
}

static bool writing(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

/* ---- opening ---- */

/* give_fd - a handle of a real file; fd is taken, also on failure. */
static int give_fd(struct mirror *m, int fd, uint64_t id, bool writes, struct view_handle *ret,
		   struct err *e)
{
	struct handle *h = alloc_array(1, sizeof(*h));
	uint32_t others;
	bool fresh;

	if (!h) {
		(void)close(fd);
		return err_nomem(e);
	}
	*h = (struct handle){.fd = fd, .id = id, .writes = writes};
	if (writes)
		real_writer(m, id, 1, &fresh, &others);
	*ret = (struct view_handle){.fh = (uint64_t)(uintptr_t)h};
	return 0;
}

/* give_slot - a handle of a file in a slot, which stays in use. */
static int give_slot(struct mirror *m, struct slot *s, uint64_t id, struct view_handle *ret,
		     struct err *e)
{
	struct handle *h = alloc_array(1, sizeof(*h));

	if (!h) {
		if (s->view->write->release)
			s->view->write->release(s->view, inner_of(id), ret->fh);
		slot_release(m, s, 0);
		return err_nomem(e);
	}
	*h = (struct handle){.slot = s, .fh = ret->fh, .fd = -1};
	slot_hold(m, s);
	ret->fh = (uint64_t)(uintptr_t)h;
	return 0;
}

static int read_only(const struct slot *s, struct err *e)
{
	return err_set(e, -EROFS, "'%s' cannot be written through this mount", s->path);
}

static int open_in_slot(struct mirror *m, uint64_t id, int flags, struct view_handle *ret,
			struct err *e)
{
	struct slot *s;
	int rc = slot_use(m, number_of(id), &s, e);

	if (rc < 0)
		return rc;
	*ret = (struct view_handle){.keep_cache = true};
	if (s->rw)
		rc = s->view->write->open(s->view, inner_of(id), flags, ret, e);
	else if (writing(flags))
		rc = read_only(s, e);
	if (rc == 0 && s->rw)
		return give_slot(m, s, id, ret, e);
	slot_release(m, s, 0);
	return rc;
}

static int w_open(struct view *v, uint64_t id, int flags, struct view_handle *ret,
		  struct err *e)
{
	struct mirror *m = mirror_of(v);
	int fd = -1, rc;

	if (number_of(id))
		return open_in_slot(m, id, flags, ret, e);
	rc = real_w_open(m, id, flags, &fd, e);
	return rc ? rc : give_fd(m, fd, id, writing(flags), ret, e);
}

/* ---- names ---- */

static char *text_of(const char *name, size_t len)
{
	return strndup(name, len);
}

/* target - what a name in a directory means. */
enum target { AT_SLOT, AT_REAL, AT_COUNTERPART, AT_NOTHING };

/* find_target - an inner directory of a slot; a real entry; a counterpart; nothing.
 * *ret_dir: the real directory (its path is owned) but for AT_SLOT. */
static int find_target(struct mirror *m, uint64_t dir, const char *name, struct where *ret_dir,
		       enum target *ret, struct view_attr *ret_attr, struct err *e)
{
	struct view_attr a;
	struct stat st;
	char *path;
	int rc;

	*ret_dir = (struct where){0};
	*ret = AT_SLOT;
	if (number_of(dir))
		return 0;
	rc = real_where(m, dir, ret_dir, e);
	if (rc < 0)
		return rc;
	if (mirror_hidden(name) || real_is_mountpoint(m, ret_dir->dev, ret_dir->ino, name)) {
		free(ret_dir->path);
		ret_dir->path = NULL;
		return err_set(e, -EPERM, "'%s': such names are the mount's own", name);
	}
	rc = real_probe(m, ret_dir, name, &path, &st, e);
	if (rc == 0) {
		free(path);
		*ret = AT_REAL;
		return 0;
	}
	if (rc == -ENOENT)
		rc = m->base.ops->lookup(&m->base, dir, name, strlen(name), &a, e);
	if (rc == 0) {
		m->base.ops->forget(&m->base, a.id, 1);
		*ret = number_of(a.id) ? AT_COUNTERPART : AT_REAL;
		*ret_attr = a;
		return 0;
	}
	*ret = AT_NOTHING;
	if (rc == -ENOENT)
		return 0;
	free(ret_dir->path);
	ret_dir->path = NULL;
	return rc;
}

/* slot_named - the slot of the file that this name would show, when it has been removed from its
 * view: the dataset is still there. 0: there is none. */
static uint32_t slot_named(struct mirror *m, const struct where *dir, const char *name)
{
	for (unsigned rank = 0; rank < NAME_RANKS; rank++) {
		char source[NAME_BYTES];
		auto_free char *path = NULL;
		bool dir_only;
		struct stat st;
		uint32_t number;

		if (name_source(name, rank, source, &dir_only) != NAME_FILE ||
		    real_probe(m, dir, source, &path, &st, NULL) < 0 || !S_ISDIR(st.st_mode) ||
		    !mirror_has(m, path, NAME_FILE))
			continue;
		if (slot_of(m, NAME_FILE, path, name, &st, &number, NULL) < 0)
			return 0;
		return number;
	}
	return 0;
}

/* ---- making ---- */

static int create_in_slot(struct mirror *m, uint64_t dir, const char *name, int flags,
			  mode_t mode, struct view_attr *ret_attr, struct view_handle *ret,
			  struct err *e)
{
	struct slot *s;
	int rc = slot_use(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	if (s->rw)
		rc = s->view->write->create(s->view, inner_of(dir), name, strlen(name), flags,
					    mode, ret_attr, ret, e);
	else
		rc = read_only(s, e);
	if (rc < 0) {
		slot_release(m, s, 0);
		return rc;
	}
	mirror_show(s, ret_attr);
	slot_release(m, s, 1);
	rc = slot_use(m, number_of(dir), &s, e); /* another use, for the handle */
	return rc ? rc : give_slot(m, s, ret_attr->id, ret, e);
}

static int create_real(struct mirror *m, const struct where *dir, const char *name, int flags,
		       mode_t mode, bool fresh, struct view_attr *ret_attr,
		       struct view_handle *ret, struct err *e)
{
	char other[NAME_BYTES];
	int fd = -1, rc;

	fresh = fresh && new_wanted(m, dir, name, false, other);
	rc = real_w_create(m, dir, name, flags, mode, &fd, ret_attr, e);
	if (rc < 0)
		return rc;
	if (fresh)
		real_set_fresh(m, ret_attr->id, true);
	return give_fd(m, fd, ret_attr->id, writing(flags), ret, e);
}

/* create_counterpart - of a dataset that is there, whose file may have been removed. */
static int create_counterpart(struct mirror *m, const struct where *dir, const char *name,
			      int flags, mode_t mode, struct view_attr *ret_attr,
			      struct view_handle *ret, struct err *e)
{
	uint32_t number = slot_named(m, dir, name);
	int rc;

	if (!number)
		return 1;
	rc = create_in_slot(m, id_of(number, VIEW_ROOT), name, flags, mode, ret_attr, ret, e);
	slot_forget(m, number, 1);
	return rc;
}

static int w_create(struct view *v, uint64_t dir, const char *name, size_t len, int flags,
		    mode_t mode, struct view_attr *ret_attr, struct view_handle *ret,
		    struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_free char *text = text_of(name, len);
	struct where where;
	enum target at;
	int rc;

	if (!text)
		return err_nomem(e);
	rc = find_target(m, dir, text, &where, &at, ret_attr, e);
	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return create_in_slot(m, dir, text, flags, mode, ret_attr, ret, e);
	if (at == AT_COUNTERPART && (flags & O_EXCL))
		rc = err_set(e, -EEXIST, "'%s' is there", text);
	else if (at == AT_COUNTERPART && ret_attr->is_dir)
		rc = err_set(e, -EISDIR, "'%s' is a directory", text);
	else
		rc = at == AT_REAL ? 1
				   : create_counterpart(m, &where, text, flags, mode, ret_attr,
							ret, e);
	if (rc > 0 && at == AT_COUNTERPART)
		rc = err_set(e, -EROFS, "'%s' cannot be written through this mount", text);
	else if (rc > 0)
		rc = create_real(m, &where, text, flags, mode, at == AT_NOTHING, ret_attr, ret,
				 e);
	free(where.path);
	return rc;
}

static int mkdir_in_slot(struct mirror *m, uint64_t dir, const char *name, mode_t mode,
			 struct view_attr *ret, struct err *e)
{
	struct slot *s;
	int rc = slot_use(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	if (!s->rw)
		rc = read_only(s, e);
	else if (!s->view->write->mkdir)
		rc = err_set(e, -EPERM, "no directories in '%s'", s->name);
	else
		rc = s->view->write->mkdir(s->view, inner_of(dir), name, strlen(name), mode,
					   ret, e);
	if (rc == 0)
		mirror_show(s, ret);
	slot_release(m, s, rc == 0);
	return rc;
}

/* mkdir_tree - x.zarr becomes the counterpart of a new, empty file. */
static int mkdir_tree(struct mirror *m, const struct where *dir, uint64_t id, const char *name,
		      const char *file, struct view_attr *ret, struct err *e)
{
	auto_free char *path = mirror_join(dir->path, file);
	int rc = path ? new_file(m, path, e) : err_nomem(e);

	return rc ? rc : m->base.ops->lookup(&m->base, id, name, strlen(name), ret, e);
}

static int w_mkdir(struct view *v, uint64_t dir, const char *name, size_t len, mode_t mode,
		   struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_free char *text = text_of(name, len);
	char other[NAME_BYTES];
	struct where where;
	enum target at;
	int rc;

	if (!text)
		return err_nomem(e);
	rc = find_target(m, dir, text, &where, &at, ret, e);
	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return mkdir_in_slot(m, dir, text, mode, ret, e);
	if (at != AT_NOTHING)
		rc = err_set(e, -EEXIST, "'%s' is there", text);
	else if (new_wanted(m, &where, text, true, other))
		rc = mkdir_tree(m, &where, dir, text, other, ret, e);
	else
		rc = real_w_mkdir(m, &where, text, mode, ret, e);
	free(where.path);
	return rc;
}

/* ---- reading and writing ---- */

static int read_fd(int fd, uint64_t off, size_t len, uint8_t *room, struct span *ret,
		   struct err *e)
{
	size_t have = 0;

	if (off > INT64_MAX - len)
		return err_set(e, -EINVAL, "a read beyond any file's end");
	while (have < len) {
		ssize_t n = pread(fd, room + have, len - have, (off_t)(off + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "read");
		if (n == 0)
			break;
		have += (size_t)n;
	}
	*ret = (struct span){.mem = have ? room : NULL, .fd = -1, .len = have};
	return 0;
}

static int w_read(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		  uint8_t *room, struct span *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct handle *h = handle_of(fh);
	bool held = false;
	struct slot *s;
	int rc;

	if (!h)
		return m->base.ops->read(v, id, off, len, room, ret, e);
	if (!h->slot)
		return read_fd(h->fd, off, len, room, ret, e);
	s = slot_if_open(m, number_of(id)); /* the handle keeps it so */
	if (!s)
		return err_set(e, -ESTALE, "it is not open any more");
	rc = mirror_read_slot(m, s, inner_of(id), h->fh, off, len, room, ret, &held, e);
	if (!held)
		slot_release(m, s, 0);
	return rc;
}

static int w_write(struct view *v, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		   size_t len, struct err *e)
{
	struct handle *h = handle_of(fh);

	(void)v;
	if (!h)
		return err_set(e, -EBADF, "it was not opened for writing");
	if (h->slot)
		return h->slot->view->write->write(h->slot->view, inner_of(id), h->fh, off,
						   data, len, e);
	h->wrote = true;
	return io_pwrite(h->fd, data, len, off, e);
}

/* ---- what a new file becomes ---- */

/* feed - the content of a real file becomes that of a counterpart: as a new file that is renamed over
 * it. */
static int copy_in(struct slot *s, uint64_t id, uint64_t fh, int fd, struct err *e)
{
	auto_free uint8_t *room = malloc(COPY_BYTES);
	uint64_t off = 0;
	struct span got = {0};
	int rc = room ? 0 : err_nomem(e);

	while (rc == 0) {
		rc = read_fd(fd, off, COPY_BYTES, room, &got, e);
		if (rc < 0 || got.len == 0)
			break;
		rc = s->view->write->write(s->view, id, fh, off, room, got.len, e);
		off += got.len;
	}
	if (rc == 0)
		rc = s->view->write->flush(s->view, id, fh, e);
	return rc;
}

static int feed(struct mirror *m, uint32_t number, int fd, struct err *e)
{
	char name[32];
	struct view_handle h = {0};
	struct view_attr a;
	struct slot *s;
	int rc = slot_use(m, number, &s, e);

	if (rc < 0)
		return rc;
	(void)snprintf(name, sizeof(name), ".new-%d", fd); /* nobody else has this descriptor */
	rc = s->rw ? s->view->write->create(s->view, VIEW_ROOT, name, strlen(name),
					    O_RDWR | O_TRUNC, 0600, &a, &h, e)
		   : read_only(s, e);
	if (rc == 0) {
		rc = copy_in(s, a.id, h.fh, fd, e);
		s->view->write->release(s->view, a.id, h.fh);
		if (rc == 0)
			rc = s->view->write->rename(s->view, VIEW_ROOT, name, strlen(name),
						    VIEW_ROOT, s->name, strlen(s->name), 0, e);
		if (rc < 0)
			(void)s->view->write->unlink(s->view, VIEW_ROOT, name, strlen(name),
						     NULL);
	}
	slot_release(m, s, 0);
	return rc;
}

/* convert - a new real file that nobody writes to any more becomes a dataset, when it is one. */
static int convert(struct mirror *m, const struct where *dir, const char *name, struct err *e)
{
	char other[NAME_BYTES];
	auto_free char *path = mirror_join(dir->path, name);
	auto_free char *to = NULL;
	int rc;

	if (!new_wanted(m, dir, name, false, other))
		return 0;
	to = mirror_join(dir->path, other);
	if (!path || !to)
		return err_nomem(e);
	rc = new_store(m, path, to, e);
	return rc < 0 ? rc : 0;
}

/* where_of - the directory that a node's path is in, and its name there; free(ret->path). */
static int where_of(struct mirror *m, const char *path, struct where *ret,
		    const char **ret_name, struct err *e)
{
	int fd = real_open_at(m, path, ret_name, e);
	struct stat st;

	if (fd < 0)
		return fd;
	*ret = (struct where){0};
	if (fstat(fd, &st) < 0) {
		(void)close(fd);
		return err_sys(e, errno, "'%s'", path);
	}
	(void)close(fd);
	ret->path = strndup(path, *ret_name > path ? (size_t)(*ret_name - path - 1) : 0);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	return ret->path ? 0 : err_nomem(e);
}

/* flush_real - a file that is new and was written. */
static int flush_real(struct mirror *m, struct handle *h, struct err *e)
{
	struct where dir = {0};
	const char *name;
	struct stat own, st;
	struct node n;
	uint32_t others;
	bool fresh;
	uint32_t number;
	int rc;

	real_writer(m, h->id, 0, &fresh, &others);
	if (!h->wrote || !fresh || others > 0 || fstat(h->fd, &own) < 0)
		return 0;
	rc = real_copy(m, h->id, &n, e);
	if (rc < 0)
		return own.st_nlink ? 0 : rc;
	rc = where_of(m, n.path, &dir, &name, e);
	if (rc == 0 && own.st_nlink == 0) {
		/* it is a dataset by now: somebody went on writing, with what he had inherited */
		number = slot_named(m, &dir, name);
		rc = number ? feed(m, number, h->fd, e)
			    : err_set(e, -ESTALE, "'%s' is gone", n.path);
		if (number)
			slot_forget(m, number, 1);
	} else if (rc == 0 && real_stat(m, n.path, &st, NULL) == 0 && st.st_ino == own.st_ino &&
		   st.st_dev == own.st_dev) {
		rc = convert(m, &dir, name, e);
	}
	if (rc == 0)
		h->wrote = false;
	free(dir.path);
	free(n.path);
	return rc;
}

static int w_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e)
{
	struct handle *h = handle_of(fh);

	if (!h)
		return 0;
	if (!h->slot)
		return h->writes ? flush_real(mirror_of(v), h, e) : 0;
	return h->slot->view->write->flush
		       ? h->slot->view->write->flush(h->slot->view, inner_of(id), h->fh, e)
		       : 0;
}

static int w_fsync(struct view *v, uint64_t id, uint64_t fh, bool data_only, struct err *e)
{
	struct handle *h = handle_of(fh);

	(void)v;
	if (!h)
		return 0;
	if (!h->slot)
		return io_sync(h->fd, !data_only, e);
	return h->slot->view->write->fsync
		       ? h->slot->view->write->fsync(h->slot->view, inner_of(id), h->fh,
						     data_only, e)
		       : 0;
}

static int w_fsyncdir(struct view *v, uint64_t dir, struct err *e)
{
	struct mirror *m = mirror_of(v);
	const char *name;
	struct node n;
	struct slot *s;
	int rc, fd;

	if (number_of(dir)) {
		rc = slot_use(m, number_of(dir), &s, e);
		if (rc < 0)
			return rc;
		if (s->rw && s->view->write->fsyncdir)
			rc = s->view->write->fsyncdir(s->view, inner_of(dir), e);
		slot_release(m, s, 0);
		return rc;
	}
	rc = real_copy(m, dir, &n, e);
	if (rc < 0)
		return rc;
	fd = real_open_at(m, n.path, &name, e);
	if (fd >= 0) {
		auto_fd int own =
			n.path[0] ? openat(fd, name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				  : dup(fd);

		rc = own < 0 ? err_sys(e, errno, "'%s'", n.path) : io_sync(own, true, e);
		(void)close(fd);
	} else {
		rc = fd;
	}
	free(n.path);
	return rc;
}

static void w_release(struct view *v, uint64_t id, uint64_t fh)
{
	struct mirror *m = mirror_of(v);
	struct handle *h = handle_of(fh);
	uint32_t others;
	bool fresh;

	if (!h)
		return;
	if (h->slot) {
		if (h->slot->view->write->release)
			h->slot->view->write->release(h->slot->view, inner_of(id), h->fh);
		slot_let_go(m, h->slot);
	} else {
		if (h->writes)
			real_writer(m, h->id, -1, &fresh, &others);
		(void)close(h->fd); /* what was written has been flushed, or it was said */
	}
	free(h);
}

/* ---- attributes, and names that go ---- */

static int w_setattr(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		     struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct handle *h = handle_of(fh);
	struct slot *s;
	int rc;

	if (!number_of(id)) {
		if (h && set->size_set)
			h->wrote = true;
		return real_w_setattr(m, id, h && h->writes ? h->fd : -1, set, ret, e);
	}
	rc = slot_use(m, number_of(id), &s, e);
	if (rc < 0)
		return rc;
	if (!s->rw)
		rc = read_only(s, e);
	else
		rc = s->view->write->setattr(s->view, inner_of(id), h ? h->fh : 0, set, ret, e);
	if (rc == 0)
		mirror_show(s, ret);
	slot_release(m, s, 0);
	return rc;
}

/* remove_in_slot - a name in a slot's directory. */
static int remove_in_slot(struct mirror *m, uint64_t dir, const char *name, bool is_dir,
			  struct err *e)
{
	struct slot *s;
	int rc = slot_use(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	if (!s->rw)
		rc = read_only(s, e);
	else if (is_dir ? !s->view->write->rmdir : !s->view->write->unlink)
		rc = err_set(e, -EPERM, "'%s' cannot be removed", name);
	else
		rc = (is_dir ? s->view->write->rmdir : s->view->write->unlink)(
			s->view, inner_of(dir), name, strlen(name), e);
	slot_release(m, s, 0);
	return rc;
}

static bool any(void *arg, const char *name NZ_UNUSED, uint64_t id NZ_UNUSED,
		bool is_dir NZ_UNUSED, const struct view_attr *a NZ_UNUSED,
		uint64_t next NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

/* remove_tree - rmdir of a counterpart that has nothing in it any more: its file goes. */
static int remove_tree(struct mirror *m, uint32_t number, struct err *e)
{
	auto_free char *path = NULL;
	enum name_kind kind;
	bool there = false;
	const char *name;
	struct stat st;
	struct slot *s;
	int rc = slot_use(m, number, &s, e), fd;

	if (rc < 0)
		return rc;
	if (!s->rw)
		rc = read_only(s, e);
	else
		rc = s->view->ops->list(s->view, VIEW_ROOT, 0, false, any, &there, e);
	slot_release(m, s, 0);
	if (rc == 0 && there)
		rc = err_set(e, -ENOTEMPTY, "it is not empty");
	if (rc == 0)
		rc = slot_peek(m, number, &kind, &path, &st, e);
	if (rc == 0)
		rc = slot_end(m, number, e);
	if (rc < 0)
		return rc;
	fd = real_open_at(m, path, &name, e);
	if (fd < 0)
		return fd;
	rc = unlinkat(fd, name, 0) < 0 ? err_sys(e, errno, "'%s'", path) : 0;
	(void)close(fd);
	return rc;
}

static int remove_name(struct mirror *m, uint64_t dir, const char *name, size_t len,
		       bool is_dir, struct err *e)
{
	auto_free char *text = text_of(name, len);
	struct view_attr a;
	struct where where;
	enum target at;
	int rc;

	if (!text)
		return err_nomem(e);
	rc = find_target(m, dir, text, &where, &at, &a, e);
	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return remove_in_slot(m, dir, text, is_dir, e);
	if (at == AT_REAL)
		rc = real_w_remove(m, &where, text, is_dir, e);
	else if (at == AT_NOTHING)
		rc = err_set(e, -ENOENT, "no '%s'", text);
	else if (a.is_dir != is_dir)
		rc = is_dir ? err_set(e, -ENOTDIR, "'%s' is no directory", text)
			    : err_set(e, -EISDIR, "'%s' is a directory", text);
	else
		rc = is_dir ? remove_tree(m, number_of(a.id), e)
			    : remove_in_slot(m, id_of(number_of(a.id), VIEW_ROOT), text, false,
					     e);
	free(where.path);
	return rc;
}

static int w_unlink(struct view *v, uint64_t dir, const char *name, size_t len, struct err *e)
{
	return remove_name(mirror_of(v), dir, name, len, false, e);
}

static int w_rmdir(struct view *v, uint64_t dir, const char *name, size_t len, struct err *e)
{
	return remove_name(mirror_of(v), dir, name, len, true, e);
}

/* ---- renaming ---- */

/* rename_over - a real file over a counterpart: its content is the dataset's, and it goes. */
static int rename_over(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to, const struct view_attr *a,
		       struct err *e)
{
	auto_free char *path = mirror_join(dir->path, name);
	const char *last;
	uint32_t number = slot_named(m, to_dir, to);
	int at, rc;

	if (!path)
		return err_nomem(e);
	if (!number || (a && number_of(a->id) != number && a->is_dir)) {
		if (number)
			slot_forget(m, number, 1);
		return err_set(e, -EXDEV, "'%s' is a dataset of another kind", to);
	}
	at = real_open_at(m, path, &last, e);
	rc = at < 0 ? at : 0;
	if (rc == 0) {
		auto_fd int fd =
			openat(at, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			rc = err_sys(e, errno, "'%s'", path);
		else if (!S_ISREG(st.st_mode))
			rc = err_set(e, -ENOTDIR, "'%s' is no file", path);
		else
			rc = feed(m, number, fd, e);
		if (rc == 0 && unlinkat(at, last, 0) < 0)
			rc = err_sys(e, errno, "'%s'", path);
		(void)close(at);
	}
	slot_forget(m, number, 1);
	return rc;
}

/* rename_real - one real name to another; the file may be a dataset from then on. */
static int rename_real(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to, unsigned flags, bool fresh,
		       struct err *e)
{
	auto_free char *path = mirror_join(to_dir->path, to);
	char other[NAME_BYTES];
	uint32_t others = 0;
	struct stat st;
	bool was;
	uint64_t id;
	int rc;

	fresh = fresh && new_wanted(m, to_dir, to, false, other);
	rc = real_w_rename(m, dir, name, to_dir, to, flags, e);
	if (rc < 0 || !fresh || !path || real_stat(m, path, &st, NULL) < 0 ||
	    !S_ISREG(st.st_mode))
		return rc;
	id = real_known_id(m, path);
	if (id != UNKNOWN_ID) {
		real_set_fresh(m, id, true);
		real_writer(m, id, 1, &was, &others);
		real_writer(m, id, -1, &was, &(uint32_t){0});
	}
	/* who still writes to it says with his close that it is whole */
	return others > 0 ? 0 : convert(m, to_dir, to, e);
}

static int rename_in_slot(struct mirror *m, uint64_t dir, const char *name, uint64_t to_dir,
			  const char *to, unsigned flags, struct err *e)
{
	struct slot *s;
	int rc = slot_use(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	rc = s->rw ? s->view->write->rename(s->view, inner_of(dir), name, strlen(name),
					    inner_of(to_dir), to, strlen(to), flags, e)
		   : read_only(s, e);
	slot_release(m, s, 0);
	return rc;
}

static int rename_from_real(struct mirror *m, const struct where *dir, const char *name,
			    uint64_t to_dir, const char *to, unsigned flags, struct err *e)
{
	struct view_attr a = {0};
	struct where to_where;
	enum target at;
	int rc = find_target(m, to_dir, to, &to_where, &at, &a, e);

	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return err_set(e, -EXDEV, "'%s': from a directory into a dataset", name);
	if (at == AT_COUNTERPART && (flags & RENAME_NOREPLACE))
		rc = err_set(e, -EEXIST, "'%s' is there", to);
	else if (at == AT_COUNTERPART)
		rc = rename_over(m, dir, name, &to_where, to, &a, e);
	else
		rc = rename_real(m, dir, name, &to_where, to, flags, at == AT_NOTHING, e);
	free(to_where.path);
	return rc;
}

static int w_rename(struct view *v, uint64_t dir, const char *name, size_t len, uint64_t to_dir,
		    const char *to_name, size_t to_len, unsigned flags, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_free char *text = text_of(name, len), *to = text_of(to_name, to_len);
	struct view_attr a;
	struct where where;
	enum target at;
	int rc;

	if (!text || !to)
		return err_nomem(e);
	if (number_of(dir) && number_of(dir) == number_of(to_dir))
		return rename_in_slot(m, dir, text, to_dir, to, flags, e);
	rc = find_target(m, dir, text, &where, &at, &a, e);
	if (rc < 0)
		return rc;
	if (at == AT_REAL)
		rc = rename_from_real(m, &where, text, to_dir, to, flags, e);
	else if (at == AT_NOTHING)
		rc = err_set(e, -ENOENT, "no '%s'", text);
	else
		rc = err_set(e, -EXDEV, "'%s' shows a dataset that is called otherwise", text);
	free(where.path);
	return rc;
}

static int w_link(struct view *v, uint64_t id, uint64_t dir, const char *name, size_t len,
		  struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_free char *text = text_of(name, len);
	struct where where;
	enum target at;
	struct slot *s;
	int rc;

	if (!text)
		return err_nomem(e);
	if (number_of(id) != number_of(dir))
		return err_set(e, -EXDEV, "a link between datasets");
	if (!number_of(id)) {
		rc = find_target(m, dir, text, &where, &at, ret, e);
		if (rc < 0)
			return rc;
		rc = at == AT_NOTHING ? real_w_link(m, id, &where, text, ret, e)
				      : err_set(e, -EEXIST, "'%s' is there", text);
		free(where.path);
		return rc;
	}
	rc = slot_use(m, number_of(id), &s, e);
	if (rc < 0)
		return rc;
	rc = s->rw && s->view->write->link
		     ? s->view->write->link(s->view, inner_of(id), inner_of(dir), text, len,
					    ret, e)
		     : err_set(e, -EPERM, "no links in '%s'", s->name);
	if (rc == 0)
		mirror_show(s, ret);
	slot_release(m, s, rc == 0);
	return rc;
}

static int w_finish(struct view *v, struct err *e)
{
	return slots_finish(mirror_of(v), e);
}

const struct view_write_ops mirror_write_ops = {
	.open = w_open,
	.create = w_create,
	.read = w_read,
	.write = w_write,
	.flush = w_flush,
	.fsync = w_fsync,
	.fsyncdir = w_fsyncdir,
	.release = w_release,
	.setattr = w_setattr,
	.mkdir = w_mkdir,
	.unlink = w_unlink,
	.rmdir = w_rmdir,
	.rename = w_rename,
	.link = w_link,
	.finish = w_finish,
};
