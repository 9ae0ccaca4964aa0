/* sink_zarr_create.c - a store with nothing in it but the root's documents. It is made under
 * another name and then renamed, so that nobody finds half of it. */
#include "nczarr/nczarr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "nczarr/sink_zarr_int.h"

#define LONG 200

static int root_doc(int dir, const struct zr_emit *em, enum zr_doc doc, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, ZR_DOC_MAX);
	rc = zr_emit_doc(em, doc, 0, &b, e);
	if (rc == 0)
		rc = zs_write_file(dir, zr_doc_file(doc), b.data, b.len, e);
	buf_release(&b);
	return rc;
}

static int fill(int dir, const struct zarr_sink_options *opts, struct err *e)
{
	struct ds_group root = {.name = "", .parent = DS_NONE};
	struct dataset ds = {.n_groups = 1, .groups = &root};
	const bool hidden = false;
	struct zr_emit em = {.ds = &ds,
			     .hidden_groups = &hidden,
			     .format = zr_format_of(opts->format),
			     .mode = opts->mode,
			     .strict_json = opts->strict_json};
	int rc;

	if (opts->format == 3)
		return root_doc(dir, &em, ZR_DOC_GROUP_JSON, e);
	rc = root_doc(dir, &em, ZR_DOC_ZGROUP, e);
	return rc ? rc : root_doc(dir, &em, ZR_DOC_GROUP_ATTRS, e);
}

/* place - the temporary directory becomes `name`, and all of it is on the disk. */
static int place(int parent, int dir, const char *tmp, const char *name, struct err *e)
{
	if (syncfs(dir) < 0)
		return err_sys(e, errno, "syncing '%.*s'", LONG, name);
	if (renameat2(parent, tmp, parent, name, RENAME_NOREPLACE) < 0)
		return err_sys(e, errno, "'%.*s'", LONG, name);
	return fsync(parent) < 0 ? err_sys(e, errno, "syncing '%.*s'", LONG, name) : 0;
}

int zarr_create(const char *path, const struct zarr_sink_options *opts, struct err *e)
{
	auto_free char *copy = strdup(path), *tmp = NULL;
	auto_fd int parent = -1, dir = -1;
	const char *name;
	struct stat st;
	char *slash;
	int rc;

	if (!copy)
		return err_nomem(e);
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (slash)
		*slash = '\0';
	parent = open(!slash ? "." : *copy ? copy : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return err_sys(e, errno, "the directory of '%.*s'", LONG, path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, -EEXIST, "'%.*s' is there already", LONG, path);
	if (asprintf(&tmp, ".%s.%ld.nczarrfs", name, (long)getpid()) < 0) {
		tmp = NULL;
		return err_nomem(e);
	}
	if (mkdirat(parent, tmp, 0777) < 0)
		return err_sys(e, errno, "'%.*s'", LONG, path);
	dir = openat(parent, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	rc = dir < 0 ? err_sys(e, errno, "'%.*s'", LONG, path) : fill(dir, opts, e);
	if (rc == 0)
		rc = place(parent, dir, tmp, name, e);
	if (rc && zs_remove_tree(parent, tmp, NULL) < 0)
		return err_wrap(e, rc, "'%.*s' is left behind", LONG, tmp);
	return rc;
}
