/* SPDX-License-Identifier: BSD-3-Clause */
/* import.c - files written in a mirrored directory that become datasets: new files, and files that
 * replace a dataset's file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fusefs/mirror/handles_int.h"

#define COPY_BYTES ((size_t)1 << 20)

/* copy_in - copy a real file to a converted view: as a new file that is renamed over the old
 * one. */
static int copy_in(struct slot *s, uint64_t id, uint64_t fh, int fd, struct err *e)
{
	auto_free uint8_t *room = malloc(COPY_BYTES);
	uint64_t off = 0;
	size_t got = 1;
	int rc = room ? 0 : err_nomem(e);

	for (; rc == 0 && got; off += got) {
		rc = real_read_up_to(fd, room, COPY_BYTES, off, &got);
		if (rc < 0)
			return err_sys(e, -rc, "read");
		if (got)
			rc = s->view->write->write(s->view, id, fh, off, room, got, e);
	}
	return rc ? rc : s->view->write->flush(s->view, id, fh, e);
}

int become_feed(struct mirror *m, uint32_t number, int fd, struct err *e)
{
	char name[32];
	struct view_handle h = {0};
	struct view_attr a;
	struct slot *s;
	int rc = write_slot_get(m, number, &s, e);

	if (rc < 0)
		return rc;
	(void)snprintf(name, sizeof(name), ".new-%d",
		       fd); /* the descriptor's number is unique */
	rc = s->view->write->create(s->view, VIEW_ROOT, name, strlen(name), O_RDWR | O_TRUNC,
				    0600, &a, &h, e);
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
	slot_put(m, s, 0);
	return rc;
}

/* become_dataset - a new real file without writers becomes a dataset, if it is one. */
int become_dataset(struct mirror *m, const struct where *dir, const char *name, struct err *e)
{
	char other[NAME_BYTES];
	auto_free char *path = path_join(dir->path, name);
	auto_free char *to = NULL;
	int rc;

	if (!new_wanted(m, dir, name, false, other))
		return 0;
	to = path_join(dir->path, other);
	if (!path || !to)
		return err_nomem(e);
	rc = new_store(m, path, to, e);
	return rc < 0 ? rc : 0;
}

/* import_in_dataset - true if a directory, or one above it, is a dataset. */
static bool import_in_dataset(const struct mirror *m, const char *path)
{
	auto_free char *part = strdup(path);
	bool found = !part; /* without memory the file stays as it is */

	for (char *end = part ? part + strlen(part) : NULL; end && end > part && !found;) {
		*end = '\0';
		found = mirror_has(m, part, NAME_PLAIN);
		end = strrchr(part, '/');
	}
	return found;
}

/* import_where_of - the directory of a node's path, and its name there. */
static int import_where_of(struct mirror *m, const char *path, struct where *ret,
			   const char **ret_name, struct err *e)
{
	auto_fd int fd = real_open_at(m, path, ret_name, e);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	ret->path = strndup(path, *ret_name > path ? (size_t)(*ret_name - path - 1) : 0);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->in_dataset = ret->path && import_in_dataset(m, ret->path);
	return ret->path ? 0 : err_nomem(e);
}

/* become_flushed - for a file that is new and was written. */
int become_flushed(struct mirror *m, uint64_t id, int fd, struct err *e)
{
	auto_where dir = {0}, n = {0};
	const char *name;
	struct stat own, st;
	uint32_t others, number;
	bool fresh;
	int rc;

	real_writer(m, id, 0, &fresh, &others);
	/* two writers may both be flushed before one of them is released */
	real_set_due(m, id, fresh && others > 0);
	if (!fresh || others > 0)
		return 0;
	if (fstat(fd, &own) < 0)
		return err_sys(e, errno, "a new file");
	rc = real_copy(m, id, &n, e);
	if (rc < 0)
		return own.st_nlink ? 0 : rc;
	rc = import_where_of(m, n.path, &dir, &name, e);
	if (rc < 0)
		return rc;
	if (own.st_nlink)
		return real_stat(m, n.path, &st, NULL) == 0 && st.st_ino == own.st_ino &&
				       st.st_dev == own.st_dev
			       ? become_dataset(m, &dir, name, e)
			       : 0;
	/* it is a dataset already: another process continued to write to an inherited descriptor */
	number = write_slot_named(m, &dir, name);
	if (!number)
		return err_set(e, -ESTALE, "'%s' was removed", n.path);
	rc = become_feed(m, number, fd, e);
	slot_forget(m, number, 1);
	return rc;
}
