/* names_whole.c - datasets that are removed, or get another name, through what their
 * counterparts are called. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "fusefs/mirror/handles_int.h"

static bool any(void *arg, const char *name NZ_UNUSED, uint64_t id NZ_UNUSED,
		bool is_dir NZ_UNUSED, const struct view_attr *a NZ_UNUSED,
		uint64_t next NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

/* may - whether a dataset can be written; empty: and there is nothing in it. */
static int may(struct mirror *m, uint32_t number, bool empty, struct err *e)
{
	bool there = false;
	struct slot *s;
	int rc = slot_use(m, number, &s, e);

	if (rc < 0)
		return rc;
	if (!s->rw)
		rc = write_read_only(s, e);
	else if (empty)
		rc = s->view->ops->list(s->view, VIEW_ROOT, 0, false, any, &there, e);
	slot_release(m, s, 0);
	return rc == 0 && there ? err_set(e, -ENOTEMPTY, "it is not empty") : rc;
}

int write_remove_file(struct mirror *m, uint32_t number, struct err *e)
{
	auto_free char *path = NULL;
	enum name_kind kind;
	const char *name;
	struct stat st;
	int rc = may(m, number, true, e), fd;

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

/* remove_at - a tree: it is gone at once, under a name that the mount does not show. */
static int remove_at(int fd, const char *name, struct err *e)
{
	char gone[NAME_BYTES + 32];
	struct stat st;

	(void)snprintf(gone, sizeof(gone), ".%.200s.gone.nczarrfs", name);
	beneath_remove(fd, gone); /* what another mount left, that died */
	if (renameat2(fd, name, fd, gone, RENAME_NOREPLACE) < 0)
		return err_sys(e, errno, "'%s'", name);
	beneath_remove(fd, gone);
	if (fstatat(fd, gone, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, -EIO, "'%s': some of it could not be removed, and is '%s'",
			       name, gone);
	return 0;
}

int write_remove_store(struct mirror *m, uint32_t number, struct err *e)
{
	auto_free char *path = NULL;
	enum name_kind kind;
	const char *name;
	struct stat st;
	int rc = may(m, number, false, e), fd;

	if (rc == 0)
		rc = slot_peek(m, number, &kind, &path, &st, e);
	if (rc == 0 && !S_ISDIR(st.st_mode))
		rc = err_set(e, -EPERM, "'%s' is no directory", path);
	if (rc == 0)
		rc = slots_leave(m, path, e);
	if (rc < 0)
		return rc;
	fd = real_open_at(m, path, &name, e);
	if (fd < 0)
		return fd;
	rc = remove_at(fd, name, e);
	(void)close(fd);
	return rc;
}

/* same_ending - whether both names end alike: "a.nc", "b.nc". */
static bool same_ending(const char *a, const char *b)
{
	const char *x = strrchr(a, '.'), *y = strrchr(b, '.');

	return x && y && strcmp(x, y) == 0;
}

int write_rename_whole(struct mirror *m, uint32_t number, const struct where *dir,
		       const struct where *to_dir, const char *to, struct err *e)
{
	auto_free char *path = NULL;
	char other[NAME_BYTES];
	enum name_kind kind;
	const char *name;
	struct stat st;
	int rc = slot_peek(m, number, &kind, &path, &st, e);

	if (rc < 0)
		return rc;
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if ((kind != NAME_FILE && kind != NAME_TREE) ||
	    !new_wanted(m, to_dir, to, kind == NAME_TREE, other) || !same_ending(name, other))
		return err_set(e, -EXDEV, "'%s' would not be shown as '%s'", path, to);
	rc = may(m, number, false, e);
	if (rc == 0)
		rc = slots_leave(m, path, e);
	return rc ? rc : real_w_rename(m, dir, name, to_dir, other, RENAME_NOREPLACE, e);
}
