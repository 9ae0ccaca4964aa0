/* SPDX-License-Identifier: BSD-3-Clause */
/* to_local.c - a local copy: a directory of files, or one file. */
#include "fusefs/cmd/convert/convert_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/open_beneath.h"
#include "base/os/io.h"

struct local {
	struct convert_out base;
	struct convert *c;
	struct convert_place place;
	bool tree;
	int fd; /* of the directory, or the file */
};

static struct local *to_local_of(struct convert_out *o)
{
	return CONTAINER_OF(o, struct local, base);
}

static int local_begin(struct convert_out *o, uint64_t *done, struct err *e)
{
	struct local *l = to_local_of(o);
	struct convert_place *p = &l->place;

	*done = convert_place_done(p, l->c->same);
	if (*done == 0) {
		remove_beneath(p->parent, p->tmp);
		if (l->tree && mkdirat(p->parent, p->tmp, 0777) < 0)
			return err_sys(e, errno, "'%s'", l->c->setup->cfg->out);
	}
	l->fd = l->tree ? openat(p->parent, p->tmp,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			: openat(p->parent, p->tmp, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				 0666);
	return l->fd < 0 ? err_sys(e, errno, "'%s'", l->c->setup->cfg->out) : 0;
}

static int tree_dir(struct convert_out *o, const char *path, struct err *e)
{
	if (mkdirat(to_local_of(o)->fd, path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "'%.200s'", path);
	return 0;
}

static int tree_write(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		      uint8_t *room, uint64_t *ret, struct err *e)
{
	auto_fd int fd = openat(to_local_of(o)->fd, u->path,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	uint64_t off = 0;
	size_t n;
	int rc;

	if (fd < 0)
		return err_sys(e, errno, "'%.200s'", u->path);
	do {
		rc = convert_read(c, u->id, off, room, CONVERT_PIECE, &n, e);
		if (rc == 0 && n > 0) {
			rc = io_pwrite(fd, room, n, off, e);
			if (rc < 0)
				rc = err_wrap(e, rc, "writing '%.200s'", u->path);
		}
		off += rc == 0 ? n : 0;
	} while (rc == 0 && n == CONVERT_PIECE);
	*ret = off;
	return rc;
}

static int file_write(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		      uint8_t *room, uint64_t *ret, struct err *e)
{
	size_t n;
	int rc = convert_read(c, u->id, u->off, room, (size_t)u->len, &n, e);

	if (rc == 0 && n != u->len)
		rc = err_set(e, -EIO, "the file is shorter than its stated size");
	if (rc == 0) {
		rc = io_pwrite(to_local_of(o)->fd, room, n, u->off, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "writing '%.200s'", c->setup->cfg->out);
	}
	*ret = rc == 0 ? n : 0;
	return rc;
}

static int to_local_sync_all(const struct local *l, struct err *e)
{
	if (!l->tree)
		return io_sync(l->fd, true, e);
	return syncfs(l->fd) < 0 ? err_sys(e, errno, "syncing the copy") : 0;
}

static int local_note(struct convert_out *o, uint64_t done, struct err *e)
{
	struct local *l = to_local_of(o);
	int rc = l->c->same ? to_local_sync_all(l, e) : 0;

	return rc ? rc : convert_place_note(&l->place, l->c->same, done, e);
}

static int local_finish(struct convert_out *o, struct err *e)
{
	int rc = to_local_sync_all(to_local_of(o), e);

	return rc ? rc : convert_place_appear(&to_local_of(o)->place, e);
}

static void local_close(struct convert_out *o, bool keep)
{
	struct local *l = to_local_of(o);

	close_fd(&l->fd);
	convert_place_close(&l->place, keep);
	free(l);
}

static const struct convert_out_ops tree_ops = {
	.begin = local_begin,
	.dir = tree_dir,
	.write = tree_write,
	.note = local_note,
	.finish = local_finish,
	.close = local_close,
};

static const struct convert_out_ops file_ops = {
	.one_file = true,
	.begin = local_begin,
	.write = file_write,
	.note = local_note,
	.finish = local_finish,
	.close = local_close,
};

int convert_local(struct convert *c, bool tree, struct convert_out **ret, struct err *e)
{
	const struct cfg *cfg = c->setup->cfg;
	struct local *l = alloc_array(1, sizeof(*l));
	int rc;

	if (!l)
		return err_nomem(e);
	*l = (struct local){
		.base.ops = tree ? &tree_ops : &file_ops, .c = c, .tree = tree, .fd = -1};
	rc = convert_place_open(cfg->out, cfg->convert.force, &l->place, e);
	if (rc < 0) {
		free(l);
		return rc;
	}
	*ret = &l->base;
	return 0;
}
