/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - creates, removes and renames names in a mirrored directory.
 *
 * The name of a dataset's converted view means that view, also when a new file is renamed over it:
 * the file's content becomes the dataset's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "fusefs/mirror/handles_int.h"

/* write_target - AT_SLOT is an inner directory of a slot. *ret_dir: the real directory (its path is
 * owned), except for AT_SLOT. */
int write_target(struct mirror *m, uint64_t dir, const char *name, struct where *ret_dir,
		 enum target *ret, struct view_attr *ret_attr, struct err *e)
{
	auto_free char *path = NULL;
	struct view_attr a;
	struct stat st;
	int rc;

	*ret_dir = (struct where){0};
	*ret = AT_SLOT;
	if (number_of(dir))
		return 0;
	rc = real_where(m, dir, ret_dir, e);
	if (rc < 0)
		return rc;
	if (mirror_hidden(name) || real_is_mountpoint(m, ret_dir->dev, ret_dir->ino, name))
		return err_set(e, -EPERM, "'%s': this name is reserved for nczarrfs", name);
	*ret = AT_REAL;
	rc = real_probe(m, ret_dir, name, &path, &st, e);
	if (rc != -ENOENT)
		return rc;
	rc = mirror_look_up(m, dir, name, &a, e);
	if (rc == 0) {
		m->base.ops->forget(&m->base, a.id, 1);
		*ret = number_of(a.id) ? AT_COUNTERPART : AT_REAL;
		*ret_attr = a;
		return 0;
	}
	*ret = AT_NOTHING;
	return rc == -ENOENT ? 0 : rc;
}

/* target_new - the same for a name that is to be created: -EEXIST. */
static int target_new(struct mirror *m, uint64_t dir, const char *name, struct where *ret_dir,
		      enum target *ret, struct err *e)
{
	struct view_attr a;
	int rc = write_target(m, dir, name, ret_dir, ret, &a, e);

	return rc == 0 && *ret != AT_SLOT && *ret != AT_NOTHING
		       ? err_set(e, -EEXIST, "'%s' already exists", name)
		       : rc;
}

/* write_slot_named - also if the file was removed from its view, because the dataset still
 * exists. */
uint32_t write_slot_named(struct mirror *m, const struct where *dir, const char *name)
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

int write_read_only(const struct slot *s, struct err *e)
{
	return err_set(e, -EROFS, "'%s' cannot be written through this mount", s->path);
}

int write_slot_get(struct mirror *m, uint32_t number, struct slot **ret, struct err *e)
{
	int rc = slot_get(m, number, ret, e);

	if (rc == 0 && !(*ret)->view->write) {
		rc = write_read_only(*ret, e);
		slot_put(m, *ret, 0);
	}
	return rc;
}

/* ---- datasets, through the names of their converted views ---- */

static bool names_any(void *arg, const char *name NZ_UNUSED, uint64_t id NZ_UNUSED,
		      bool is_dir NZ_UNUSED, const struct view_attr *a NZ_UNUSED,
		      uint64_t next NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

/* names_may - check that a dataset can be written; empty: and that it is empty. */
static int names_may(struct mirror *m, uint32_t number, bool empty, struct err *e)
{
	bool there = false;
	struct slot *s;
	int rc = write_slot_get(m, number, &s, e);

	if (rc < 0)
		return rc;
	if (empty)
		rc = s->view->ops->list(s->view, VIEW_ROOT, 0, false, names_any, &there, e);
	slot_put(m, s, 0);
	return rc == 0 && there ? err_set(e, -ENOTEMPTY, "it is not empty") : rc;
}

/* names_remove_file - remove the file that a Zarr store view shows, if the view is empty.
 * -ENOTEMPTY; -EROFS; -EBUSY. */
static int names_remove_file(struct mirror *m, uint32_t number, struct err *e)
{
	auto_slot_at at = {0};
	const char *name;
	int rc = names_may(m, number, true, e);

	rc = rc ? rc : slot_lookup(m, number, &at, e);
	rc = rc ? rc : slot_retire(m, number, e);
	if (rc < 0)
		return rc;
	auto_fd int fd = real_open_at(m, at.path, &name, e);

	if (fd < 0)
		return fd;
	return unlinkat(fd, name, 0) < 0 ? err_sys(e, errno, "'%s'", at.path) : 0;
}

/* remove_at - rename a store to a hidden name, so that it disappears at once, and delete it. */
static int remove_at(int fd, const char *name, struct err *e)
{
	char gone[NAME_BYTES + 32];
	struct stat st;

	(void)snprintf(gone, sizeof(gone), ".%.200s.gone.nczarrfs", name);
	remove_beneath(fd, gone); /* left over from a mount that died */
	if (renameat2(fd, name, fd, gone, RENAME_NOREPLACE) < 0)
		return err_sys(e, errno, "'%s'", name);
	remove_beneath(fd, gone);
	if (fstatat(fd, gone, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, -EIO, "'%s': some of it could not be removed and remains as "
					"'%s'",
			       name, gone);
	return 0;
}

/* names_remove_store - remove the Zarr store that a file shows, with all its contents. -EROFS;
 * -EBUSY: a program has the file open; -EIO: part of it still exists, under a name that the mount
 * does not show. */
static int names_remove_store(struct mirror *m, uint32_t number, struct err *e)
{
	auto_slot_at at = {0};
	const char *name;
	int rc = names_may(m, number, false, e);

	rc = rc ? rc : slot_lookup(m, number, &at, e);
	if (rc == 0 && !S_ISDIR(at.st.st_mode))
		rc = err_set(e, -EPERM, "'%s' is not a directory", at.path);
	rc = rc ? rc : slots_flush_below(m, at.path, e);
	if (rc < 0)
		return rc;
	auto_fd int fd = real_open_at(m, at.path, &name, e);

	return fd < 0 ? fd : remove_at(fd, name, e);
}

/* same_ending - true if both names have the same ending: "a.nc", "b.nc". */
static bool same_ending(const char *a, const char *b)
{
	const char *x = strrchr(a, '.'), *y = strrchr(b, '.');

	return x && y && strcmp(x, y) == 0;
}

/* names_rename_whole - rename the dataset whose converted view is in `dir` so that its view is
 * called `to`, a free name. -EXDEV: no name of a dataset has that view; -EROFS; -EBUSY. */
static int names_rename_whole(struct mirror *m, uint32_t number, const struct where *dir,
		       const struct where *to_dir, const char *to, struct err *e)
{
	auto_slot_at at = {0};
	char other[NAME_BYTES];
	const char *name;
	int rc = slot_lookup(m, number, &at, e);

	if (rc < 0)
		return rc;
	name = strrchr(at.path, '/');
	name = name ? name + 1 : at.path;
	if ((at.kind != NAME_FILE && at.kind != NAME_TREE) ||
	    !new_wanted(m, to_dir, to, at.kind == NAME_TREE, other) || !same_ending(name, other))
		return err_set(e, -EXDEV, "'%s' would not be shown as '%s'", at.path, to);
	rc = names_may(m, number, false, e);
	rc = rc ? rc : slots_flush_below(m, at.path, e);
	return rc ? rc : passthrough_rename(m, dir, name, to_dir, other, RENAME_NOREPLACE, e);
}

/* ---- directories ---- */

static int mkdir_in_slot(struct mirror *m, uint64_t dir, const char *name, mode_t mode,
			 struct view_attr *ret, struct err *e)
{
	struct slot *s;
	int rc = write_slot_get(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	rc = s->view->write->mkdir
		     ? s->view->write->mkdir(s->view, inner_of(dir), name, mode, ret, e)
		     : err_set(e, -EPERM, "'%s' cannot contain directories", s->name);
	return slot_end(m, s, rc, ret, 1, e);
}

/* mkdir_tree - create a new, empty file whose converted view is x.zarr. */
static int mkdir_tree(struct mirror *m, const struct where *dir, uint64_t id, const char *name,
		      const char *file, struct view_attr *ret, struct err *e)
{
	auto_free char *path = path_join(dir->path, file);
	int rc = path ? new_file(m, path, e) : err_nomem(e);

	return rc ? rc : m->base.ops->lookup(&m->base, id, name, strlen(name), ret, e);
}

static int names_make_dir(struct mirror *m, uint64_t dir, const char *name, mode_t mode,
			  struct view_attr *ret, struct err *e)
{
	auto_where where = {0};
	char other[NAME_BYTES];
	enum target at;
	int rc = target_new(m, dir, name, &where, &at, e);

	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return mkdir_in_slot(m, dir, name, mode, ret, e);
	return new_wanted(m, &where, name, true, other)
		       ? mkdir_tree(m, &where, dir, name, other, ret, e)
		       : passthrough_mkdir(m, &where, name, mode, ret, e);
}

int write_dir_again(struct mirror *m, uint64_t *dir, uint64_t *ret_again, struct err *e)
{
	struct walk_name at;
	struct view_attr a;
	int rc;

	*ret_again = 0;
	if (number_of(*dir) || !walk_gone_id(m, *dir, true, &a, &at) || !a.is_dir)
		return 0;
	rc = names_make_dir(m, at.dir, at.name, 0777, &a, e);
	if (rc == 0)
		*dir = *ret_again = a.id;
	return rc;
}

int write_mkdir(struct view *v, uint64_t dir, const char *name, mode_t mode,
		struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	uint64_t again;
	int rc = write_dir_again(m, &dir, &again, e);

	rc = rc ? rc : names_make_dir(m, dir, name, mode, ret, e);
	if (again)
		m->base.ops->forget(v, again, 1);
	return rc;
}

/* ---- removing ---- */

/* remove_in_slot - remove a name in a slot's directory. */
static int remove_in_slot(struct mirror *m, uint64_t dir, const char *name, bool is_dir,
			  struct err *e)
{
	int (*fn)(struct view * v, uint64_t at, const char *text, struct err *why);
	struct slot *s;
	int rc = write_slot_get(m, number_of(dir), &s, e);

	if (rc == 0) {
		fn = is_dir ? s->view->write->rmdir : s->view->write->unlink;
		rc = fn ? fn(s->view, inner_of(dir), name, e)
			: err_set(e, -EPERM, "'%s' cannot be removed", name);
		slot_put(m, s, 0);
		walk_touch(m, false);
	}
	return rc;
}

/* remove_real - pending writes of a dataset are removed with it. */
static int remove_real(struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		       struct err *e)
{
	auto_free char *path = path_join(dir->path, name);

	if (!path)
		return err_nomem(e);
	(void)slots_flush_below(m, path, NULL); /* otherwise a state directory remains */
	return passthrough_remove(m, dir, name, is_dir, e);
}

/* names_remove_gone - remove a missing name, which may have disappeared with its dataset. */
static int names_remove_gone(struct mirror *m, const struct where *dir, const char *name,
			     bool is_dir, struct err *e)
{
	struct view_attr a;

	if (walk_gone(m, dir, name, false, &a) < 0 || a.is_dir != is_dir)
		return err_set(e, -ENOENT, "no '%s'", name);
	(void)walk_gone(m, dir, name, true, &a);
	walk_touch(m, false);
	return 0;
}

static int remove_name(struct mirror *m, uint64_t dir, const char *name, bool is_dir,
		       struct err *e)
{
	auto_where where = {0};
	struct view_attr a;
	enum target at;
	int rc = write_target(m, dir, name, &where, &at, &a, e);

	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return remove_in_slot(m, dir, name, is_dir, e);
	if (at == AT_NOTHING)
		return names_remove_gone(m, &where, name, is_dir, e);
	if (at == AT_REAL)
		rc = remove_real(m, &where, name, is_dir, e);
	else if (a.is_dir != is_dir)
		rc = is_dir ? err_set(e, -ENOTDIR, "'%s' is not a directory", name)
			    : err_set(e, -EISDIR, "'%s' is a directory", name);
	else
		rc = is_dir ? names_remove_file(m, number_of(a.id), e)
			    : names_remove_store(m, number_of(a.id), e);
	if (rc == 0)
		walk_removed(m, &where, name);
	return rc;
}

int write_unlink(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	return remove_name(mirror_of(v), dir, name, false, e);
}

int write_rmdir(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	return remove_name(mirror_of(v), dir, name, true, e);
}

/* ---- renaming ---- */

/* rename_over - rename a real file over a converted view: copy its content to the dataset, and
 * remove it. */
static int rename_over(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to, const struct view_attr *a,
		       struct err *e)
{
	auto_free char *path = path_join(dir->path, name);
	auto_fd int at = -1, fd = -1;
	const char *last;
	uint32_t number = write_slot_named(m, to_dir, to);
	struct stat st;
	int rc;

	if (!path)
		return err_nomem(e);
	if (!number || (number_of(a->id) != number && a->is_dir)) {
		if (number)
			slot_forget(m, number, 1);
		return err_set(e, -EXDEV, "'%s' is a dataset of another format", to);
	}
	at = real_open_at(m, path, &last, e);
	if (at >= 0)
		fd = openat(at, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (at < 0)
		rc = at;
	else if (fd < 0 || fstat(fd, &st) < 0)
		rc = err_sys(e, errno, "'%s'", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(e, -ENOTDIR, "'%s' is not a file", path);
	else
		rc = become_feed(m, number, fd, e);
	if (rc == 0 && unlinkat(at, last, 0) < 0)
		rc = err_sys(e, errno, "'%s'", path);
	slot_forget(m, number, 1);
	return rc;
}

/* rename_real - rename a real entry; the file may become a dataset by it. */
static int rename_real(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to, unsigned flags, bool fresh,
		       struct err *e)
{
	auto_free char *path = path_join(to_dir->path, to);
	char other[NAME_BYTES];
	struct stat st;
	uint64_t id;
	int rc;

	fresh = fresh && new_wanted(m, to_dir, to, false, other);
	rc = passthrough_rename(m, dir, name, to_dir, to, flags, e);
	if (rc < 0 || !fresh || !path || real_stat(m, path, &st, NULL) < 0 ||
	    !S_ISREG(st.st_mode))
		return rc;
	id = real_known_id(m, path);
	/* the close of the last writer makes a dataset of it, or its release: the kernel may send
	 * that after the rename */
	if (id != UNKNOWN_ID && real_renamed_due(m, id))
		return 0;
	return become_dataset(m, to_dir, to, e);
}

static int rename_in_slot(struct mirror *m, uint64_t dir, const char *name, uint64_t to_dir,
			  const char *to, unsigned flags, struct err *e)
{
	struct slot *s;
	int rc = write_slot_get(m, number_of(dir), &s, e);

	if (rc < 0)
		return rc;
	rc = s->view->write->rename(s->view, inner_of(dir), name, inner_of(to_dir), to, flags, e);
	return slot_end(m, s, rc, NULL, 0, e);
}

/* leave_both - commit pending writes of datasets under either name, or below it, first, because
 * state directories are next to datasets. */
static int leave_both(struct mirror *m, const struct where *dir, const char *name,
		      const struct where *to_dir, const char *to, struct err *e)
{
	auto_free char *from = path_join(dir->path, name);
	auto_free char *over = path_join(to_dir->path, to);

	if (!from || !over)
		return err_nomem(e);
	(void)slots_flush_below(m, over, NULL); /* it is replaced even if a program has it open */
	return slots_flush_below(m, from, e);
}

static int rename_from_real(struct mirror *m, const struct where *dir, const char *name,
			    uint64_t to_dir, const char *to, unsigned flags, struct err *e)
{
	auto_where to_where = {0};
	struct view_attr a = {0};
	enum target at;
	int rc = write_target(m, to_dir, to, &to_where, &at, &a, e);

	if (rc == 0 && at != AT_SLOT)
		rc = leave_both(m, dir, name, &to_where, to, e);
	if (rc < 0)
		return rc;
	if (at == AT_SLOT)
		return err_set(e, -EXDEV, "'%s': cannot be renamed into a dataset", name);
	if (at == AT_COUNTERPART && (flags & RENAME_NOREPLACE))
		return err_set(e, -EEXIST, "'%s' already exists", to);
	return at == AT_COUNTERPART
		       ? rename_over(m, dir, name, &to_where, to, &a, e)
		       : rename_real(m, dir, name, &to_where, to, flags, at == AT_NOTHING, e);
}

/* rename_counterpart - rename to a free name that can be a view of the dataset; with an error,
 * programs copy. */
static int rename_counterpart(struct mirror *m, const struct where *dir, uint32_t number,
			      uint64_t to_dir, const char *to, unsigned flags, struct err *e)
{
	auto_where to_where = {0};
	struct view_attr a;
	enum target at;
	int rc = write_target(m, to_dir, to, &to_where, &at, &a, e);

	if (rc < 0)
		return rc;
	if (at != AT_SLOT && at != AT_NOTHING && (flags & RENAME_NOREPLACE))
		return err_set(e, -EEXIST, "'%s' already exists", to);
	if (at != AT_NOTHING || (flags & ~(unsigned)RENAME_NOREPLACE))
		return err_set(e, -EXDEV, "'%s': cannot be renamed over another dataset", to);
	return names_rename_whole(m, number, dir, &to_where, to, e);
}

int write_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		 unsigned flags, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_where where = {0};
	struct view_attr a;
	enum target at;
	int rc;

	if (number_of(dir) && number_of(dir) == number_of(to_dir))
		return rename_in_slot(m, dir, name, to_dir, to, flags, e);
	rc = write_target(m, dir, name, &where, &at, &a, e);
	if (rc < 0)
		return rc;
	switch (at) {
	case AT_REAL:
		return rename_from_real(m, &where, name, to_dir, to, flags, e);
	case AT_COUNTERPART:
		return rename_counterpart(m, &where, number_of(a.id), to_dir, to, flags, e);
	case AT_SLOT:
		return err_set(e, -EXDEV, "'%s': cannot be renamed out of its dataset", name);
	case AT_NOTHING:
		break;
	}
	return err_set(e, -ENOENT, "no '%s'", name);
}

int write_symlink(struct view *v, uint64_t dir, const char *name, const char *text,
		  struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_where where = {0};
	enum target at;
	int rc = target_new(m, dir, name, &where, &at, e);

	if (rc < 0)
		return rc;
	return at == AT_NOTHING ? passthrough_symlink(m, &where, name, text, ret, e)
				: err_set(e, -EPERM,
					  "'%s': a dataset cannot contain symbolic links", name);
}

int write_link(struct view *v, uint64_t id, uint64_t dir, const char *name,
	       struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_where where = {0};
	enum target at;
	struct slot *s;
	int rc;

	if (number_of(id) != number_of(dir))
		return err_set(e, -EXDEV, "hard links between datasets are not supported");
	if (!number_of(id)) {
		rc = target_new(m, dir, name, &where, &at, e);
		return rc ? rc : passthrough_link(m, id, &where, name, ret, e);
	}
	rc = slot_get(m, number_of(id), &s, e);
	if (rc < 0)
		return rc;
	rc = s->view->write && s->view->write->link
		     ? s->view->write->link(s->view, inner_of(id), inner_of(dir), name, ret,
					    e)
		     : err_set(e, -EPERM, "'%s' cannot contain hard links", s->name);
	return slot_end(m, s, rc, ret, 1, e);
}
