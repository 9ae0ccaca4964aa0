/* SPDX-License-Identifier: BSD-3-Clause */
/* passthrough.c - the real entries of the mirrored directory.
 *
 * No file is kept open for them except by programs. Every request opens its path again, without
 * ever leaving the base, and then checks that the inode still is the one of the id: ESTALE makes
 * the kernel look the path up again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/os/lock.h"
#include "base/os/open_beneath.h"
#include "fusefs/mirror/mirror_int.h"
#include "translate/chunkio/provenance.h"

static int open_real(const struct mirror *m, const char *path, int flags, struct err *e)
{
	int fd = open_beneath(m->fd, path, flags | O_NOFOLLOW);

	/* a link or a file in place of a directory, or a name that no file can have */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ||
	    fd == -ENAMETOOLONG)
		return err_set(e, -ENOENT, "'%s': no such file or directory", path);
	return fd < 0 ? err_sys(e, -fd, "'%s'", path) : fd;
}

int real_stat(const struct mirror *m, const char *path, struct stat *ret, struct err *e)
{
	auto_fd int fd = open_real(m, path, O_PATH, e);

	if (fd < 0)
		return fd;
	return fstat(fd, ret) < 0 ? err_sys(e, errno, "'%s'", path) : 0;
}

bool real_is_mountpoint(const struct mirror *m, dev_t dev, ino_t ino, const char *name)
{
	return m->mount_name && dev == m->mount_dev && ino == m->mount_ino &&
	       strcmp(name, m->mount_name) == 0;
}

int real_probe(const struct mirror *m, const struct where *dir, const char *name,
	       char **ret_path, struct stat *ret, struct err *e)
{
	auto_free char *path = NULL;
	int rc;

	if (real_is_mountpoint(m, dir->dev, dir->ino, name))
		return err_set(e, -ENOENT, "'%s': the mountpoint", name);
	if (mirror_hidden(name))
		return err_set(e, -ENOENT, "'%s': a state directory", name);
	path = path_join(dir->path, name);
	if (!path)
		return err_nomem(e);
	if (strlen(path) >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s': path too long", name);
	rc = real_stat(m, path, ret, e);
	if (rc == 0)
		*ret_path = steal(&path);
	return rc;
}

void real_attr(const struct stat *st, struct view_attr *ret)
{
	bool reg = S_ISREG(st->st_mode);

	*ret = (struct view_attr){
		.size = reg || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0,
		/* 1 for directories: converted views add entries */
		.nlink = reg ? (uint32_t)st->st_nlink : 1,
		.nameless = reg && st->st_nlink == 0,
		.is_dir = S_ISDIR(st->st_mode),
		.is_link = S_ISLNK(st->st_mode),
		.volatile_attrs = true,
		.cached = true,
		.own = true,
		.mode = st->st_mode & 0777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
	if (reg || ret->is_dir || ret->is_link)
		return;
	/* a pipe, a socket, a device: shown, but an empty file would be read as one */
	ret->mode = 0;
	ret->size = 1;
	ret->unknown = true;
}

/* Nodes. */

static struct mirror_node *node_of_id(const struct mirror *m, uint64_t id)
{
	for (struct link *l = map_first(&m->nodes_by_id, id); l; l = map_next(l)) {
		struct mirror_node *n = CONTAINER_OF(l, struct mirror_node, by_id);

		if (n->id == id)
			return n;
	}
	return NULL;
}

static struct mirror_node *node_of_path(const struct mirror *m, const char *path, uint64_t hash)
{
	for (struct link *l = map_first(&m->nodes_by_path, hash); l; l = map_next(l)) {
		struct mirror_node *n = CONTAINER_OF(l, struct mirror_node, by_path);

		if (strcmp(n->path, path) == 0)
			return n;
	}
	return NULL;
}

static bool is_of(dev_t dev, ino_t ino, mode_t type, const struct stat *st)
{
	return dev == st->st_dev && ino == st->st_ino && type == (st->st_mode & S_IFMT);
}

static void passthrough_unlist(struct mirror *m, struct mirror_node *n)
{
	if (n->listed)
		map_remove(&m->nodes_by_path, &n->by_path);
	n->listed = false;
}

static void node_free(struct mirror *m, struct mirror_node *n)
{
	passthrough_unlist(m, n);
	map_remove(&m->nodes_by_id, &n->by_id);
	close_fd(&n->fd);
	free(n->path);
	free(n);
}

/* node_new - takes path on success. */
static struct mirror_node *node_new(struct mirror *m, char *path, uint64_t hash, uint64_t id,
				    const struct stat *st)
{
	auto_free struct mirror_node *n = alloc_array(1, sizeof(*n));

	if (!n)
		return NULL;
	*n = (struct mirror_node){
		.id = id,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.type = st->st_mode & S_IFMT,
		.fd = -1,
	};
	if (map_add(&m->nodes_by_id, &n->by_id, id) < 0)
		return NULL;
	if (map_add(&m->nodes_by_path, &n->by_path, hash) < 0) {
		map_remove(&m->nodes_by_id, &n->by_id);
		return NULL;
	}
	n->listed = true;
	n->path = path;
	return steal(&n);
}

/* enter_locked - the node of path with the state st. Takes path on success. */
static struct mirror_node *enter_locked(struct mirror *m, char *path, const struct stat *st)
{
	uint64_t hash = mirror_hash(m, path, strlen(path));
	struct mirror_node *n = node_of_path(m, path, hash);

	if (n && is_of(n->dev, n->ino, n->type, st)) {
		free(path);
		return n;
	}
	if (n)
		passthrough_unlist(m, n); /* the kernel may still reference it: it is stale */
	if (m->next_id >= UNKNOWN_ID)
		return NULL;
	n = node_new(m, path, hash, m->next_id, st);
	if (n)
		m->next_id++;
	return n;
}

int real_root(struct mirror *m, const struct stat *st, struct err *e)
{
	char *path = strdup("");
	struct mirror_node *n =
		path ? node_new(m, path, mirror_hash(m, "", 0), VIEW_ROOT, st) : NULL;

	if (!n) {
		free(path);
		return err_nomem(e);
	}
	n->known = 1; /* never forgotten */
	m->next_id = VIEW_ROOT + 1;
	return 0;
}

void real_free(struct mirror *m)
{
	for (size_t i = 0; i < m->nodes_by_id.n_heads; i++)
		while (m->nodes_by_id.heads[i])
			node_free(m, CONTAINER_OF(m->nodes_by_id.heads[i], struct mirror_node,
						  by_id));
	map_free(&m->nodes_by_id);
	map_free(&m->nodes_by_path);
}

int real_where(struct mirror *m, uint64_t id, struct where *ret, struct err *e)
{
	int rc = real_copy(m, id, ret, e);

	return rc == 0 && !S_ISDIR(ret->type)
		       ? err_set(e, -ENOTDIR, "'%s' is not a directory", ret->path)
		       : rc;
}

int real_copy(struct mirror *m, uint64_t id, struct where *ret, struct err *e)
{
	LOCK_SCOPE(&m->lock);
	const struct mirror_node *n = node_of_id(m, id);

	*ret = (struct where){.path = NULL};
	if (!n || (!n->listed && id != VIEW_ROOT))
		return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
	*ret = (struct where){
		.path = strdup(n->path),
		.id = id,
		.dev = n->dev,
		.ino = n->ino,
		.type = n->type,
		.in_dataset = n->in_dataset,
	};
	return ret->path ? 0 : err_nomem(e);
}

void real_opened(struct mirror *m, uint64_t id, int fd, bool reads, bool writes)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (!n)
		return;
	n->opens++;
	n->writers += writes;
	if (n->fd < 0 && fd >= 0)
		/* on failure it is only accessible by name */
		n->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	n->reads = reads;
}

void real_closed(struct mirror *m, uint64_t id)
{
	auto_fd int fd = -1; /* closed without the lock */
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (n && n->opens > 0 && --n->opens == 0) {
		fd = n->fd;
		n->fd = -1;
	}
}

/* stat_opened - stat an open file, whose name may have been removed. */
static int stat_opened(struct mirror *m, uint64_t id, struct stat *ret)
{
	LOCK_SCOPE(&m->lock);
	const struct mirror_node *n = node_of_id(m, id);

	return n && n->fd >= 0 && fstat(n->fd, ret) == 0 ? 0 : -ESTALE;
}

void real_set_fresh(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (n)
		n->fresh = true;
}

bool real_writer_last(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);
	bool last = n && n->writers > 0 && --n->writers == 0 && n->due;

	if (last)
		n->due = false;
	return last;
}

bool real_flushed(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (!n)
		return false;
	/* two writers may both be flushed before one of them is released */
	n->due = n->fresh && n->writers > 1;
	return n->fresh && !n->due;
}

bool real_renamed_due(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (!n)
		return false;
	n->fresh = true;
	n->due = n->writers > 0;
	return n->due;
}

/* passthrough_renamed - set a node's path, which is taken. Without memory the node becomes stale,
 * and the kernel looks it up again. */
static void passthrough_renamed(struct mirror *m, struct mirror_node *n, char *path)
{
	passthrough_unlist(m, n);
	if (!path ||
	    map_add(&m->nodes_by_path, &n->by_path, mirror_hash(m, path, strlen(path))) < 0) {
		free(path);
		return;
	}
	free(n->path);
	n->path = path;
	n->listed = true;
}

/* moved_below - rename the nodes in a directory with it, for programs that work in it. */
static void moved_below(struct mirror *m, const char *from, const char *to)
{
	const size_t len = strlen(from);

	for (size_t i = 0; i < m->nodes_by_id.n_heads; i++)
		for (struct link *l = m->nodes_by_id.heads[i]; l; l = l->next) {
			struct mirror_node *n = CONTAINER_OF(l, struct mirror_node, by_id);

			if (n->listed && strncmp(n->path, from, len) == 0 &&
			    n->path[len] == '/')
				passthrough_renamed(m, n, path_join(to, n->path + len + 1));
		}
}

void real_moved(struct mirror *m, const char *from, const char *to)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_path(m, from, mirror_hash(m, from, strlen(from)));
	struct mirror_node *other = node_of_path(m, to, mirror_hash(m, to, strlen(to)));

	if (other)
		passthrough_unlist(m, other);
	if (n)
		passthrough_renamed(m, n, strdup(to));
	if (!n || S_ISDIR(n->type))
		moved_below(m, from, to);
}

uint64_t real_known_id(struct mirror *m, const char *path)
{
	uint64_t hash = mirror_hash(m, path, strlen(path));
	LOCK_SCOPE(&m->lock);
	const struct mirror_node *n = node_of_path(m, path, hash);

	return n ? n->id : UNKNOWN_ID;
}

int real_enter(struct mirror *m, const struct where *dir, char *path, const struct stat *st,
	       struct view_attr *ret, struct err *e)
{
	/* checked at every lookup: a directory may become a Zarr store */
	bool in_dataset =
		S_ISDIR(st->st_mode) && (dir->in_dataset || mirror_has(m, path, NAME_PLAIN));
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = enter_locked(m, path, st);

	if (!n) {
		free(path);
		return err_nomem(e);
	}
	n->in_dataset = in_dataset;
	n->known++;
	real_attr(st, ret);
	ret->id = n->id;
	return 0;
}

void real_forget(struct mirror *m, uint64_t id, uint64_t count)
{
	LOCK_SCOPE(&m->lock);
	struct mirror_node *n = node_of_id(m, id);

	if (!n || id == VIEW_ROOT)
		return;
	n->known -= u64_min(n->known, count);
	if (!n->known)
		node_free(m, n);
}

/* Requests. */

/* passthrough_check - check that st belongs to the entry. */
static int passthrough_check(const struct where *n, const struct stat *st, struct err *e)
{
	if (is_of(n->dev, n->ino, n->type, st))
		return 0;
	return err_set(e, -ESTALE, "'%s' was replaced by another file", n->path);
}

/* passthrough_gone - the error for a node that does not exist any more. */
static int passthrough_gone(int rc)
{
	return rc == -ENOENT ? -ESTALE : rc;
}

int real_getattr(struct mirror *m, uint64_t id, struct view_attr *ret, struct err *e)
{
	auto_where n = {.path = NULL};
	struct stat st;
	int rc = real_copy(m, id, &n, e);

	if (!rc)
		rc = passthrough_gone(real_stat(m, n.path, &st, e));
	if (!rc)
		rc = passthrough_check(&n, &st, e);
	if (rc == -ESTALE)
		rc = stat_opened(m, id, &st);
	if (!rc) {
		real_attr(&st, ret);
		ret->id = id;
	}
	return rc;
}

/* read_up_to - reads fewer than len bytes only at the end of the file. */
int real_read_up_to(int fd, uint8_t *out, size_t len, uint64_t off, size_t *ret)
{
	size_t have = 0;

	if (off > INT64_MAX - len)
		return -EINVAL;
	while (have < len) {
		ssize_t n = pread(fd, out + have, len - have, (off_t)(off + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	*ret = have;
	return 0;
}

/* open_entry - open an entry, and no other file at its path. */
static int open_entry(const struct mirror *m, const struct where *n, int flags, struct err *e)
{
	struct stat st;
	int fd = open_real(m, n->path, flags, e), rc;

	if (fd < 0)
		return passthrough_gone(fd);
	rc = fstat(fd, &st) < 0 ? err_sys(e, errno, "'%s'", n->path)
				: passthrough_check(n, &st, e);
	if (rc == 0)
		return fd;
	(void)close(fd);
	return rc;
}

int real_open_dir(const struct mirror *m, const struct where *dir, struct err *e)
{
	return open_entry(m, dir, O_RDONLY | O_DIRECTORY, e);
}

int real_open_file(const struct mirror *m, const struct where *n, int flags, struct err *e)
{
	if (!S_ISREG(n->type))
		return err_set(e, S_ISDIR(n->type) ? -EISDIR : -EIO,
			       "'%s' is not a regular file", n->path);
	return open_entry(m, n, flags, e);
}

int real_open(struct mirror *m, uint64_t id, struct err *e)
{
	auto_where n = {.path = NULL};

	if (real_copy(m, id, &n, e))
		return 0; /* reading it gives the error */
	auto_fd int fd = real_open_file(m, &n, O_RDONLY, e);

	if (fd == -EACCES)
		return fd;
	real_opened(m, id, fd, true, false);
	return 0;
}

/* kept_fd - descriptor of an open file, until its release; -1. */
static int kept_fd(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	const struct mirror_node *n = node_of_id(m, id);

	return n && n->reads ? n->fd : -1;
}

int real_read(struct mirror *m, uint64_t id, uint64_t off, size_t len, uint8_t *room,
	      struct span *ret, struct err *e)
{
	auto_fd int own = -1;
	auto_where n = {.path = NULL};
	int fd = kept_fd(m, id), rc;
	size_t got = 0;

	if (fd < 0) {
		rc = real_copy(m, id, &n, e);
		if (rc)
			return rc;
		fd = own = real_open_file(m, &n, O_RDONLY, e);
	}
	if (fd < 0)
		return fd;
	rc = real_read_up_to(fd, room, len, off, &got);
	if (rc < 0)
		return err_sys(e, -rc, "'%s'", n.path ? n.path : "a mirrored file");
	*ret = (struct span){.mem = room, .fd = -1, .len = got};
	return 0;
}

int real_readlink(struct mirror *m, uint64_t id, struct buf *out, struct err *e)
{
	char text[PATH_MAX];
	ssize_t len;
	auto_where n = {.path = NULL};
	int rc = real_copy(m, id, &n, e);

	if (rc)
		return rc;
	auto_fd int fd = S_ISLNK(n.type) ? open_real(m, n.path, O_PATH, e)
					 : err_set(e, -EINVAL, "'%s' is not a link", n.path);

	if (fd < 0)
		return passthrough_gone(fd);
	len = readlinkat(fd, "", text, sizeof(text)); /* of the link that is open */
	if (len < 0)
		return err_sys(e, errno, "'%s'", n.path);
	if ((size_t)len == sizeof(text))
		return err_set(e, -ERANGE, "'%s': the link is %zu bytes or longer", n.path,
			       sizeof(text));
	buf_put(out, text, (size_t)len);
	return buf_ok(out) ? 0 : err_nomem(e);
}

/* Extended attributes. */

#define XATTR_MAX_BYTES ((size_t)65536) /* the kernel's limit for a value and for the list */

/* xattr_path - a path to the inode of fd, which may be O_PATH, independent of its name. */
static void xattr_path(int fd, char ret[32])
{
	(void)snprintf(ret, 32, "/proc/self/fd/%d", fd); /* fits */
}

/* dup_kept - a duplicate of an entry's kept descriptor; -1: none. */
static int dup_kept(struct mirror *m, uint64_t id)
{
	LOCK_SCOPE(&m->lock);
	const struct mirror_node *known = node_of_id(m, id);

	return known && known->fd >= 0 ? fcntl(known->fd, F_DUPFD_CLOEXEC, 3) : -1;
}

/* open_node - open the entry of an id: its kept descriptor, otherwise its path. */
static int open_node(struct mirror *m, uint64_t id, struct err *e)
{
	int fd = dup_kept(m, id), rc;
	auto_where n = {.path = NULL};

	if (fd >= 0)
		return fd;
	rc = real_copy(m, id, &n, e);
	return rc ? rc : open_entry(m, &n, O_PATH, e);
}

/* passthrough_put_names - append the names of a list that are shown. */
static void passthrough_put_names(const char *list, size_t len, struct buf *out)
{
	for (const char *p = list; p < list + len; p += strlen(p) + 1)
		if (strncmp(p, "user.", 5) == 0 &&
		    strncmp(p, PROVENANCE_PREFIX, sizeof(PROVENANCE_PREFIX) - 1) != 0)
			buf_put(out, p, strlen(p) + 1);
}

int real_xattr(struct mirror *m, uint64_t id, const char *name, struct buf *out, struct err *e)
{
	auto_free char *room = NULL;
	char path[32];
	ssize_t n;

	if (name && strncmp(name, PROVENANCE_PREFIX, sizeof(PROVENANCE_PREFIX) - 1) == 0)
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	auto_fd int fd = open_node(m, id, e);

	if (fd < 0)
		return fd;
	room = malloc(XATTR_MAX_BYTES + 1);
	if (!room)
		return err_nomem(e);
	xattr_path(fd, path);
	n = name ? getxattr(path, name, room, XATTR_MAX_BYTES)
		 : listxattr(path, room, XATTR_MAX_BYTES);
	if (n < 0 && errno == EOPNOTSUPP && !name)
		return 0; /* a file system without attributes */
	if (n < 0)
		return err_sys(e, errno, "extended attributes");
	room[n] = '\0';
	if (name)
		buf_put(out, room, (size_t)n);
	else
		passthrough_put_names(room, (size_t)n, out);
	return buf_ok(out) ? 0 : buf_full(out, e, -E2BIG, "too many extended attributes");
}

int real_setxattr(struct mirror *m, uint64_t id, const char *name, const uint8_t *value,
		  size_t len, int flags, struct err *e)
{
	char path[32];

	if (strncmp(name, PROVENANCE_PREFIX, sizeof(PROVENANCE_PREFIX) - 1) == 0)
		return err_set(e, -EPERM, "'%s': this name is reserved for nczarrfs", name);
	auto_fd int fd = open_node(m, id, e);

	if (fd < 0)
		return fd;
	xattr_path(fd, path);
	if (value ? setxattr(path, name, value, len, flags) < 0 : removexattr(path, name) < 0)
		return err_sys(e, errno, "'%s'", name);
	return 0;
}
