/* SPDX-License-Identifier: BSD-3-Clause */
/* to_s3.c - a copy in an object store: chunks first, then metadata, the root's last, so that a
 * reader finds no dataset before it is complete. */
#include "base/core/str.h"
#include "fusefs/cmd/convert/convert_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os/io.h"
#include "fusefs/app/remote.h"
#include "translate/contract/store.h"

struct remote_out {
	struct convert_out base;
	struct convert *c;
	struct store *store;
};

static struct remote_out *to_s3_of(struct convert_out *o)
{
	return CONTAINER_OF(o, struct remote_out, base);
}

static bool to_s3_any(void *arg, const char *name NZ_UNUSED, bool is_dir NZ_UNUSED,
		      const struct store_stat *st NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

static int remote_begin(struct convert_out *o, uint64_t *done, struct err *e)
{
	const struct cfg *cfg = to_s3_of(o)->c->setup->cfg;
	auto_free char *shown = NULL;
	bool there = false;
	int rc = store_list(to_s3_of(o)->store, "", false, to_s3_any, &there, e);

	*done = 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	shown = fs_shown(cfg->out);
	return there ? err_set(e, -EEXIST,
			       "'%s' already exists: remove it with a program of that service, "
			       "or choose another name",
			       shown ? shown : "there")
		     : 0;
}

/* nameless - open a temporary file without a name, also if the file system has no O_TMPFILE. */
static int nameless(struct err *e)
{
	const char *dir = getenv("TMPDIR");
	auto_free char *name = NULL;
	int fd;

	dir = dir && *dir ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	name = str_printf("%s/nczarrfs-XXXXXX", dir);
	if (!name)
		return err_nomem(e);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "a temporary file in '%s'", dir);
	(void)unlink(name); /* it was created a moment ago */
	return fd;
}

/* to_s3_spill - write a file that exceeds the thread's room through a temporary file. The first
 * piece is in room. */
static int to_s3_spill(struct convert *c, const struct convert_unit *u, uint8_t *room,
		       int *ret_fd, uint64_t *ret, struct err *e)
{
	size_t n = CONVERT_PIECE;
	uint64_t off = 0;
	int rc, fd = nameless(e);

	if (fd < 0)
		return fd;
	do {
		rc = io_pwrite(fd, room, n, off, e);
		off += n;
		if (n < CONVERT_PIECE)
			break;
		rc = rc ? rc : convert_read(c, u->id, off, room, CONVERT_PIECE, &n, e);
	} while (rc == 0 && n > 0);
	*ret = off;
	*ret_fd = fd;
	return rc;
}

static int remote_write(struct convert_out *o, struct convert *c, const struct convert_unit *u,
			uint8_t *room, uint64_t *ret, struct err *e)
{
	struct store_put what = {.data = room, .fd = -1};
	size_t n;
	int rc = convert_read(c, u->id, 0, room, CONVERT_PIECE, &n, e);

	what.len = n;
	if (rc == 0 && n == CONVERT_PIECE) {
		what.data = NULL;
		rc = to_s3_spill(c, u, room, &what.fd, &what.len, e);
	}
	rc = rc ? rc : store_put(to_s3_of(o)->store, u->path, &what, NULL, e);
	close_fd(&what.fd);
	*ret = rc == 0 ? what.len : 0;
	return rc;
}

static void to_s3_close(struct convert_out *o, bool keep NZ_UNUSED)
{
	store_close(to_s3_of(o)->store);
	free(to_s3_of(o));
}

static const struct convert_out_ops remote_ops = {
	.docs_last = true,
	.begin = remote_begin,
	.write = remote_write,
	.close = to_s3_close,
};

int convert_to_s3(struct convert *c, struct convert_out **ret, struct err *e)
{
	const struct cfg *cfg = c->setup->cfg;
	struct remote_out *f = alloc_array(1, sizeof(*f));
	int rc;

	if (!f)
		return err_nomem(e);
	if (cfg->convert.force) {
		auto_free char *shown = fs_shown(cfg->out);

		free(f);
		return err_set(e, -EINVAL,
			       "--force replaces local copies only: remove '%s' with a program "
			       "of that service first",
			       shown ? shown : "it");
	}
	f->base.ops = &remote_ops;
	f->c = c;
	rc = fs_store(c->setup, cfg->out, &f->store, e);
	if (rc < 0) {
		free(f);
		return rc;
	}
	*ret = &f->base;
	return 0;
}
